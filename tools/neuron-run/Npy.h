// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arrays in NumPy's .npy format, C order. Element types that NumPy does not know (bf16, 8-bit floats) are opaque items
// of their size.

#ifndef NEURON_TOOLS_NEURON_RUN_NPY_H
#define NEURON_TOOLS_NEURON_RUN_NPY_H

#include <cstdint>
#include <string>
#include <vector>

#include "neuron/Isa/Instruction.h"
#include "neuron/Support/Error.h"

namespace neuroncore::run {

struct Array {
  /// NumPy's description of the element, for example "<f4".
  std::string descr;
  std::vector<int64_t> shape;
  std::vector<uint8_t> data;
};

Expected<Array> readNpy(const std::string &path);
Status writeNpy(const std::string &path, const Array &array);

/// The description that neuron-run writes for a dtype.
std::string descrOf(isa::Dtype dtype);
/// Whether elements described so may be bound to a variable of this dtype.
bool matches(const std::string &descr, isa::Dtype dtype);

} // namespace neuroncore::run

#endif // NEURON_TOOLS_NEURON_RUN_NPY_H

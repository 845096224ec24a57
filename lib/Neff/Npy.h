// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constants as .npy files (version 1.0, C order), the documented form of a variable's initial content.

#ifndef NEURON_LIB_NEFF_NPY_H
#define NEURON_LIB_NEFF_NPY_H

#include <cstdint>
#include <span>
#include <vector>

#include "neuron/Neff/Neff.h"

namespace neuroncore::neff {

/// dtypes that NumPy does not know are stored as opaque items of their size.
std::vector<uint8_t> writeNpy(const Variable &variable);

/// The data bytes of a C-order array, whatever its dtype.
Expected<std::span<const uint8_t>> readNpy(std::span<const uint8_t> file);

} // namespace neuroncore::neff

#endif // NEURON_LIB_NEFF_NPY_H

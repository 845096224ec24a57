// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors on the host as the evaluator sees them: row-major, floats held as f32 (exact for every narrower type),
// integers as i64.

#ifndef LIB_REFERENCE_HOSTTENSOR_H
#define LIB_REFERENCE_HOSTTENSOR_H

#include <span>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinTypes.h"

#include "neuron/Support/Error.h"

namespace mlir::neuron::reference {

struct HostTensor {
  RankedTensorType type;
  /// One of the two, by element type.
  std::vector<float> floats;
  std::vector<int64_t> integers;

  explicit HostTensor(RankedTensorType type);
  bool isFloat() const { return isa<FloatType>(type.getElementType()); }
  int64_t size() const { return type.getNumElements(); }
  /// Copies element `from` of `other`, which has the same element type.
  void copyElement(int64_t to, const HostTensor &other, int64_t from) {
    if (isFloat())
      floats[to] = other.floats[from];
    else
      integers[to] = other.integers[from];
  }

  /// Little-endian elements as PyTorch stores them.
  static neuroncore::Expected<HostTensor> fromBytes(RankedTensorType type, std::span<const uint8_t> bytes);
  std::vector<uint8_t> toBytes() const;
};

/// To the nearest value of a float type, ties to even.
float roundTo(Type element, double value);
/// Modulo the width of an integer type, in its signedness; bool is != 0.
int64_t wrapTo(Type element, int64_t value);
/// torch.Tensor.to on x86: truncation, and the most negative number of the conversion's width out of range.
int64_t floatToInteger(Type element, float value);

/// Arrays in NumPy's .npy format, version 1.0, C order. bfloat16 is stored as <u2 and float8 as |u1 (their bits).
struct NpyArray {
  std::string descriptor; // for example "<f4"
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};
neuroncore::Expected<NpyArray> readNpy(const std::string &path);
neuroncore::Status writeNpy(const std::string &path, const HostTensor &tensor);
/// The descriptor of an element type.
std::string npyDescriptor(Type element);

} // namespace mlir::neuron::reference

#endif // LIB_REFERENCE_HOSTTENSOR_H

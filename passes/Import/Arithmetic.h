// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expressions that importers of several subjects share.

#ifndef PASSES_IMPORT_ARITHMETIC_H
#define PASSES_IMPORT_ARITHMETIC_H

#include "passes/Import/NodeImporter.h"

namespace mlir::neuron {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// ATen's Reduction enum.
enum class LossReduction { None = 0, Mean = 1, Sum = 2 };

/// True when a number survives the conversion to `element`; false for run-time numbers.
bool isExact(const Number &number, Type element);

/// One arithmetic operation on `type`. Operands round to it first, with one exception of CPU PyTorch: a 16-bit tensor
/// is multiplied and divided by a number (or a tensor of rank 0) in f32; the caller's result rounds once.
Value arithmetic(NodeImporter &b, BinaryFunction function, const Operand &lhs, const Operand &rhs, Type type);

/// self + alpha * other in ATen's sense (bool: or).
Value scaledAdd(NodeImporter &b, const Operand &self, const Operand &other, const Number &alpha, bool subtract);

/// min(max(x, lower), upper) with absent bounds; NaN in any operand gives NaN.
Value clamp(NodeImporter &b, Value x, std::optional<Value> lower, std::optional<Value> upper);

/// x ** exponent with the cases that CPU PyTorch computes without pow.
Value power(NodeImporter &b, Value base, const Number &exponent);

/// All elements of a loss to its result (number of elements over all dimensions for the mean).
Value reduceLoss(NodeImporter &b, Value loss, LossReduction reduction);

/// log(sigmoid(x)) = min(x, 0) - log1p(exp(-|x|)).
Value logSigmoid(NodeImporter &b, Value x);

/// Numerically safe softmax pieces of f32 values along `dims`.
Value softmax(NodeImporter &b, Value x, ArrayRef<int64_t> dims);
Value logSoftmax(NodeImporter &b, Value x, ArrayRef<int64_t> dims);

/// Mean and centred second moment (sum of squares over the count) along dims, in f32.
struct Moments {
  Value mean, centred, variance;
};
Moments moments(NodeImporter &b, Value x, ArrayRef<int64_t> dims, double correction = 0);

/// start, end and step arguments (at `startAt` and following) applied to a dimension, clamped as Python slices.
struct SliceBounds {
  int64_t start, size, step;
};
SliceBounds sliceBounds(NodeImporter &b, int64_t dimensionSize, unsigned startAt);

/// The diagonal of two dimensions as a strided view of a contiguous tensor; the diagonal is the last dimension.
struct Diagonal {
  Shape sizes, strides;
  int64_t offset;
};
Diagonal diagonalOf(NodeImporter &b, Value x, int64_t offset, int64_t dim1, int64_t dim2);

/// `destination` with its diagonal replaced by `source`.
Value scatterDiagonal(NodeImporter &b, Value destination, Value source, int64_t offset, int64_t dim1, int64_t dim2);

/// `destination` (contiguous) with the elements of the strided view replaced by `source`.
Value scatterStrided(NodeImporter &b, Value destination, Value source, ArrayRef<int64_t> sizes,
                     ArrayRef<int64_t> strides, int64_t offset);

/// bool [..., rows, columns] (leading sizes 1): column - row <= diagonal, or >= for the upper triangle.
Value diagonalMask(NodeImporter &b, int64_t rank, int64_t rows, int64_t columns, int64_t diagonal, bool lower);

} // namespace mlir::neuron

#endif // PASSES_IMPORT_ARITHMETIC_H

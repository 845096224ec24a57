// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Import/Arithmetic.h"

#include "dialects/Neuron/NeuronViews.h"

using namespace mlir;
using namespace mlir::neuron;

bool mlir::neuron::isExact(const Number &number, Type element) {
  if (!number.isKnown())
    return false;
  auto type = dyn_cast<FloatType>(element);
  if (!type)
    return true;
  bool losesInfo;
  APFloat value(number.asDouble());
  value.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
  return !losesInfo;
}

Value mlir::neuron::arithmetic(NodeImporter &b, BinaryFunction function, const Operand &lhs, const Operand &rhs,
                               Type type) {
  bool takesWideNumber =
      function == BinaryFunction::Mul || function == BinaryFunction::Div || function == BinaryFunction::FloorDiv;
  bool survives = rhs.isTensor() ? NodeImporter::element(rhs.tensor) == type || NodeImporter::rank(rhs.tensor) != 0
                                 : isExact(rhs.number, type);
  if (b.isFloat(type) && !type.isF32() && takesWideNumber && !survives)
    return b.binary(function, b.castTo(b.operandAs(lhs, type), b.f32()), b.operandAs(rhs, b.f32()));
  return b.binary(function, b.operandAs(lhs, type), b.operandAs(rhs, type));
}

Value mlir::neuron::scaledAdd(NodeImporter &b, const Operand &self, const Operand &other, const Number &alpha,
                              bool subtract) {
  Type type = b.promote({self, other});
  if (type.isInteger(1)) {
    Value scaled = b.operandAs(other, type);
    if (!alpha.is(1))
      scaled = b.logicalAnd(scaled, b.numberAs(alpha, type));
    return b.logicalOr(b.operandAs(self, type), scaled);
  }
  BinaryFunction function = subtract ? BinaryFunction::Sub : BinaryFunction::Add;
  if (alpha.is(1))
    return arithmetic(b, function, self, other, type);
  // Operands and factor round to the dtype, the product does not.
  Type compute = b.computeType(type);
  auto wide = [&](Value value) { return b.castTo(value, compute); };
  Value scaled = b.mul(wide(b.operandAs(other, type)), wide(b.numberAs(alpha, type)));
  return b.binary(function, wide(b.operandAs(self, type)), scaled);
}

Value mlir::neuron::clamp(NodeImporter &b, Value x, std::optional<Value> lower, std::optional<Value> upper) {
  if (lower)
    x = b.binary(BinaryFunction::Max, x, *lower);
  if (upper)
    x = b.binary(BinaryFunction::Min, x, *upper);
  return x;
}

Value mlir::neuron::power(NodeImporter &b, Value base, const Number &exponent) {
  Type element = b.element(base);
  if (exponent.isKnown()) {
    double value = exponent.asDouble();
    if (value == 0)
      return b.constant(element, 1, b.shape(base));
    if (value == 1)
      return base;
    if (value == 2)
      return b.unary(UnaryFunction::Square, base);
    if (b.isFloat(element)) {
      Value wide = b.castTo(base, b.f32());
      if (value == 3)
        return b.mul(b.unary(UnaryFunction::Square, wide), wide);
      // Eager takes the root, but for f16: there -inf and -0.0 give what pow gives.
      if (value == 0.5 && !element.isF16())
        return b.unary(UnaryFunction::Sqrt, base);
      if (value == -0.5 && !element.isF16())
        return b.unary(UnaryFunction::Rsqrt, base);
      if (value == -1)
        return b.unary(UnaryFunction::Reciprocal, base);
      if (value == -2)
        return b.unary(UnaryFunction::Reciprocal, b.unary(UnaryFunction::Square, wide));
    }
  }
  return arithmetic(b, BinaryFunction::Pow, {base, {}}, {nullptr, exponent}, element);
}

Value mlir::neuron::reduceLoss(NodeImporter &b, Value loss, LossReduction reduction) {
  Shape dims = b.allDimensions(loss);
  switch (reduction) {
  case LossReduction::None:
    return loss;
  case LossReduction::Sum:
    return b.dropDimensions(b.sum(loss, dims), dims);
  case LossReduction::Mean:
    return b.dropDimensions(b.mean(loss, dims), dims);
  }
  b.error("expected a reduction of 0 (none), 1 (mean) or 2 (sum)");
  return loss;
}

Value mlir::neuron::logSigmoid(NodeImporter &b, Value x) {
  // log(1 + exp(-|x|)) is one function of the scalar engine.
  Value small = b.unary(UnaryFunction::Softplus, b.unary(UnaryFunction::Neg, b.unary(UnaryFunction::Abs, x)));
  return b.sub(b.binary(BinaryFunction::Min, x, 0.0), small);
}

Value mlir::neuron::softmax(NodeImporter &b, Value x, ArrayRef<int64_t> dims) {
  Value shifted = b.sub(x, b.reduce(ReduceKind::Max, x, dims));
  Value exponentials = b.unary(UnaryFunction::Exp, shifted);
  return b.div(exponentials, b.sum(exponentials, dims));
}

Value mlir::neuron::logSoftmax(NodeImporter &b, Value x, ArrayRef<int64_t> dims) {
  Value shifted = b.sub(x, b.reduce(ReduceKind::Max, x, dims));
  Value total = b.sum(b.unary(UnaryFunction::Exp, shifted), dims);
  return b.sub(shifted, b.unary(UnaryFunction::Log, total));
}

Moments mlir::neuron::moments(NodeImporter &b, Value x, ArrayRef<int64_t> dims, double correction) {
  Moments result;
  int64_t count = NodeImporter::reducedSize(x, dims);
  result.mean = b.mean(x, dims);
  result.centred = b.sub(x, result.mean);
  Value squares = b.sum(b.unary(UnaryFunction::Square, result.centred), dims);
  // No degrees of freedom left: 0/0 or x/0, as CPU PyTorch.
  result.variance = b.div(squares, std::max(0.0, static_cast<double>(count) - correction));
  return result;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Regions of tensors
//===--------------------------------------------------------------------------------------------------------------===//

SliceBounds mlir::neuron::sliceBounds(NodeImporter &b, int64_t dimensionSize, unsigned startAt) {
  int64_t step = b.integer(startAt + 2);
  if (step <= 0) {
    b.error("expected a positive step but got " + Twine(step));
    step = 1;
  }
  auto bound = [&](unsigned i, int64_t fallback) {
    int64_t value = b.integerOr(i, fallback);
    if (value < 0)
      value = value < -dimensionSize ? 0 : value + dimensionSize;
    return std::min(value, dimensionSize);
  };
  int64_t start = bound(startAt, 0), end = std::max(bound(startAt + 1, dimensionSize), start);
  int64_t length = end - start;
  return {start, length / step + (length % step != 0), step};
}

Diagonal mlir::neuron::diagonalOf(NodeImporter &b, Value x, int64_t offset, int64_t dim1, int64_t dim2) {
  int64_t rank = NodeImporter::rank(x);
  dim1 = b.wrapDimension(dim1, rank);
  dim2 = b.wrapDimension(dim2, rank);
  if (rank < 2 || dim1 == dim2) {
    b.error("expected two different dimensions");
    return {{}, {}, 0};
  }
  ArrayRef<int64_t> shape = NodeImporter::shape(x);
  Shape strides = contiguousStrides(shape);
  Diagonal result{{}, {}, 0};
  for (int64_t d = 0; d < rank; ++d)
    if (d != dim1 && d != dim2) {
      result.sizes.push_back(shape[d]);
      result.strides.push_back(strides[d]);
    }
  // No difference can reach past the edges.
  int64_t limit = shape[dim1] + shape[dim2];
  offset = std::clamp(offset, -limit, limit);
  int64_t rows = shape[dim1] + std::min<int64_t>(offset, 0), columns = shape[dim2] - std::max<int64_t>(offset, 0);
  int64_t count = std::max<int64_t>(std::min(rows, columns), 0);
  result.sizes.push_back(count);
  result.strides.push_back(strides[dim1] + strides[dim2]);
  if (count > 0)
    result.offset = offset >= 0 ? offset * strides[dim2] : -offset * strides[dim1];
  return result;
}

Value mlir::neuron::scatterDiagonal(NodeImporter &b, Value destination, Value source, int64_t offset, int64_t dim1,
                                    int64_t dim2) {
  Diagonal view = diagonalOf(b, destination, offset, dim1, dim2);
  if (view.sizes.empty() || !b.expectElements(source, view.sizes))
    return destination;
  int64_t rank = NodeImporter::rank(destination);
  dim1 = b.wrapDimension(dim1, rank);
  dim2 = b.wrapDimension(dim2, rank);
  ArrayRef<int64_t> shape = NodeImporter::shape(destination);
  // The diagonal's dimension goes where the rows are, one value per row, repeated along the columns.
  Shape sizes = view.sizes, order = llvm::to_vector(llvm::seq<int64_t>(0, rank - 2));
  bool rowsFirst = dim1 < dim2;
  order.insert(order.begin() + dim1 - !rowsFirst, rank - 2);
  Value rows = b.unsqueeze(b.transpose(b.reshape(source, sizes), order), dim2);
  Shape padded(NodeImporter::shape(rows)), starts(rank, 0);
  padded[dim1] = shape[dim1];
  int64_t limit = shape[dim1] + shape[dim2];
  offset = std::clamp(offset, -limit, limit);
  starts[dim1] = std::max<int64_t>(-offset, 0);
  if (padded[dim1] != view.sizes.back())
    rows = b.insert(rows, b.constantInteger(NodeImporter::element(source), 0, padded), starts, Shape(rank, 1));
  Shape rowSizes(rank, 1), columnSizes(rank, 1), rowSteps(rank, 0), columnSteps(rank, 0);
  rowSizes[dim1] = shape[dim1];
  columnSizes[dim2] = shape[dim2];
  rowSteps[dim1] = columnSteps[dim2] = 1;
  Type index = b.indexElement(limit + std::abs(offset));
  Value isDiagonal = b.compare(ComparePredicate::Eq, b.iota(index, rowSizes, offset, rowSteps),
                               b.iota(index, columnSizes, 0, columnSteps));
  return b.select(isDiagonal, rows, destination);
}

Value mlir::neuron::scatterStrided(NodeImporter &b, Value destination, Value source, ArrayRef<int64_t> sizes,
                                   ArrayRef<int64_t> strides, int64_t offset) {
  if (llvm::is_contained(sizes, 0))
    return destination;
  if (offset < 0) {
    b.error("expected an offset of at least 0 but got " + Twine(offset));
    return destination;
  }
  // Descending strides that nest (each divides the one before) are the digits of a mixed-radix address: in a flat
  // buffer cut into those digits, the region is a box.
  Shape order;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1)
      order.push_back(d);
  llvm::stable_sort(order, [&](int64_t x, int64_t y) { return strides[x] > strides[y]; });
  int64_t elements = NodeImporter::numElements(destination), rest = offset;
  Shape radices, starts, counts;
  int64_t above = -1;
  for (int64_t d : order) {
    int64_t stride = strides[d];
    if (stride <= 0 || (above > 0 && above % stride != 0)) {
      b.error("unsupported strides; expected each to divide the next larger one and no overlap");
      return destination;
    }
    radices.push_back(above > 0 ? above / stride : (elements + stride - 1) / stride);
    starts.push_back(rest / stride);
    counts.push_back(sizes[d]);
    rest %= stride;
    above = stride;
  }
  radices.push_back(above > 0 ? above : elements);
  starts.push_back(rest);
  counts.push_back(1);
  int64_t padded = 1;
  for (size_t d = 0; d < radices.size(); ++d) {
    padded *= radices[d];
    if (starts[d] + counts[d] > radices[d]) {
      b.error("unsupported strides; expected a region that does not wrap around");
      return destination;
    }
  }
  Type element = NodeImporter::element(destination);
  Value flat = b.reshape(destination, {elements});
  if (padded != elements)
    flat = b.concat({flat, b.constant(element, 0, {padded - elements})}, 0);
  // The source's dimensions in the order of their strides.
  Shape permutation = order;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] == 1)
      permutation.push_back(d);
  Value box = b.reshape(b.transpose(source, permutation), counts);
  Value result = b.insert(box, b.reshape(flat, radices), starts, Shape(radices.size(), 1));
  result = b.reshape(result, {padded});
  if (padded != elements)
    result = b.sliceDimension(result, 0, 0, elements);
  return b.reshape(result, NodeImporter::shape(destination));
}

Value mlir::neuron::diagonalMask(NodeImporter &b, int64_t rank, int64_t rows, int64_t columns, int64_t diagonal,
                                 bool lower) {
  Type element = b.indexElement(rows + columns + std::abs(diagonal));
  Shape rowSizes(rank, 1), columnSizes(rank, 1), rowSteps(rank, 0), columnSteps(rank, 0);
  rowSizes[rank - 2] = rows;
  rowSteps[rank - 2] = 1;
  columnSizes[rank - 1] = columns;
  columnSteps[rank - 1] = 1;
  Value row = b.iota(element, rowSizes, diagonal, rowSteps), column = b.iota(element, columnSizes, 0, columnSteps);
  return b.compare(lower ? ComparePredicate::Le : ComparePredicate::Ge, column, row);
}

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compares the indices of each block of 128 with one another. Work is linear in the number of rows.

#include "passes/Kernels/OrderScatters.h"

#include <limits>

#include "llvm/ADT/DenseSet.h"

#include "dialects/Neuron/NeuronIndexingOps.h"

using namespace mlir;
using namespace mlir::neuron;

namespace {

/// No index occurs twice, for reasons that are visible in the graph.
bool isDistinct(Value index) {
  if (typeOf(index).getNumElements() == 1)
    return true;
  if (auto iota = index.getDefiningOp<IotaOp>())
    return iota.getSteps().front() != 0;
  auto constant = index.getDefiningOp<ConstantOp>();
  auto dense = constant ? dyn_cast<DenseIntElementsAttr>(constant.getValue()) : DenseIntElementsAttr();
  if (!dense || dense.isSplat())
    return false;
  llvm::DenseSet<int64_t> seen;
  return llvm::all_of(dense.getValues<APInt>(),
                      [&](const APInt &value) { return seen.insert(value.getSExtValue()).second; });
}

class ScatterOrderer {
public:
  explicit ScatterOrderer(ScatterOp op) : builder(op), loc(op.getLoc()), op(op) {}

  void run() {
    if (!isDistinct(op.getIndex()))
      op.getSourceMutable().assign(op.getAccumulate() ? sums() : lastRows());
    op.setBlocked(true);
  }

private:
  /// `count` blocks of `width` indices from `start` on.
  struct Blocks {
    int64_t start, count, width;
    int64_t rows() const { return count * width; }
  };

  SmallVector<Blocks> blocks() {
    int64_t rows = typeOf(op.getIndex()).getDimSize(0), full = rows / ScatterOp::kBlock;
    SmallVector<Blocks> result;
    if (full)
      result.push_back({0, full, ScatterOp::kBlock});
    if (int64_t rest = rows % ScatterOp::kBlock)
      result.push_back({full * ScatterOp::kBlock, 1, rest});
    return result;
  }

  RankedTensorType type(ArrayRef<int64_t> shape, Type element) { return RankedTensorType::get(shape, element); }
  Value reshape(Value value, ArrayRef<int64_t> shape) {
    return builder.createOrFold<ReshapeOp>(loc, type(shape, typeOf(value).getElementType()), value);
  }
  Value number(double value, size_t rank, Type element) {
    return ConstantOp::create(builder, loc, type(SmallVector<int64_t>(rank, 1), element), value);
  }
  Value select(Value condition, Value onTrue, Value onFalse, ArrayRef<int64_t> shape) {
    return SelectOp::create(builder, loc, type(shape, typeOf(onTrue).getElementType()), condition, onTrue, onFalse);
  }
  Value binary(BinaryFunction function, Value lhs, Value rhs) {
    return BinaryOp::create(builder, loc, lhs.getType(), function, lhs, rhs);
  }
  Value rowsOf(Value value, const Blocks &part) {
    SmallVector<int64_t> shape(typeOf(value).getShape()), starts(shape.size(), 0), steps(shape.size(), 1);
    shape[0] = part.rows();
    starts[0] = part.start;
    return builder.createOrFold<SliceOp>(loc, type(shape, typeOf(value).getElementType()), value, starts, steps);
  }
  Value join(ArrayRef<Value> parts) {
    if (parts.size() == 1)
      return parts.front();
    SmallVector<int64_t> shape(typeOf(parts.front()).getShape());
    shape[0] = typeOf(op.getIndex()).getDimSize(0);
    return ConcatOp::create(builder, loc, type(shape, typeOf(parts.front()).getElementType()), parts, 0);
  }

  /// [count, width, width]: whether two indices of a block are equal.
  Value equal(const Blocks &part) {
    Value index = rowsOf(op.getIndex(), part);
    return CompareOp::create(builder, loc, type({part.count, part.width, part.width}, builder.getI1Type()),
                             ComparePredicate::Eq, reshape(index, {part.count, part.width, 1}),
                             reshape(index, {part.count, 1, part.width}));
  }

  /// The source with each row replaced by the last one of its block with the same index.
  Value lastRows() {
    Type element = typeOf(op.getIndex()).getDimSize(0) <= std::numeric_limits<int32_t>::max() ? builder.getI32Type()
                                                                                              : builder.getI64Type();
    SmallVector<Value> parts;
    for (const Blocks &part : blocks()) {
      Value position = IotaOp::create(builder, loc, type({part.count, 1, part.width}, element), part.start,
                                      ArrayRef<int64_t>{part.width, 0, 1});
      Value candidates = select(equal(part), position, number(-1, 3, element), {part.count, part.width, part.width});
      Value last = ReduceOp::create(builder, loc, type({part.count, part.width, 1}, element), ReduceKind::Max,
                                    candidates, ArrayRef<int64_t>{2});
      parts.push_back(reshape(last, {part.rows()}));
    }
    return GatherOp::create(builder, loc, op.getSource().getType(), op.getSource(), join(parts), op.getDim());
  }

  /// The source with each row replaced by the sum of those of its block with the same index.
  Value sums() {
    RankedTensorType sourceType = typeOf(op.getSource());
    int64_t dim = op.getDim(), rank = sourceType.getRank(), rows = sourceType.getDimSize(dim);
    int64_t inner = sourceType.getNumElements() / rows;
    SmallVector<int64_t> permutation = {dim}, inverse(rank), front;
    for (int64_t d = 0; d < rank; ++d)
      if (d != dim)
        permutation.push_back(d);
    for (int64_t d = 0; d < rank; ++d) {
      inverse[permutation[d]] = d;
      front.push_back(sourceType.getDimSize(permutation[d]));
    }
    Type element = sourceType.getElementType();
    Value source = builder.createOrFold<TransposeOp>(loc, type(front, element), op.getSource(), permutation);
    source = reshape(source, {rows, inner});
    SmallVector<Value> parts;
    for (const Blocks &part : blocks())
      parts.push_back(reshape(isa<FloatType>(element) ? floatSums(rowsOf(source, part), part, inner)
                                                      : integerSums(rowsOf(source, part), part, inner),
                              {part.rows(), inner}));
    return builder.createOrFold<TransposeOp>(loc, sourceType, reshape(join(parts), front), inverse);
  }

  Value integerSums(Value source, const Blocks &part, int64_t inner) {
    Type element = typeOf(source).getElementType();
    SmallVector<int64_t> shape = {part.count, part.width, part.width, inner};
    Value same = reshape(equal(part), {part.count, part.width, part.width, 1});
    Value values = select(same, reshape(source, {part.count, 1, part.width, inner}), number(0, 4, element), shape);
    shape[2] = 1;
    return ReduceOp::create(builder, loc, type(shape, element), element.isInteger(1) ? ReduceKind::Or : ReduceKind::Sum,
                            values, ArrayRef<int64_t>{2});
  }

  /// A product with the matrix of equal indices. What is not finite would spoil the rows it is multiplied by 0 for, so
  /// such elements are counted by a product of their own and put back.
  Value floatSums(Value source, const Blocks &part, int64_t inner) {
    Type element = typeOf(source).getElementType(), f32 = builder.getF32Type(), flag = builder.getI1Type();
    SmallVector<int64_t> shape = {part.count, part.width, inner};
    RankedTensorType wide = type(shape, f32), flags = type(shape, flag);
    Value values = reshape(source, shape);
    if (element != f32)
      values = CastOp::create(builder, loc, wide, values);
    Value same = CastOp::create(builder, loc, type({part.count, part.width, part.width}, f32), equal(part));
    Value isFinite = UnaryOp::create(builder, loc, flags, UnaryFunction::Isfinite, values);
    Value isNan = UnaryOp::create(builder, loc, flags, UnaryFunction::Isnan, values);
    Value zero = number(0, 3, f32);
    Value isPositive = CompareOp::create(builder, loc, flags, ComparePredicate::Gt, values, zero);
    // At most 128 of each: the counts of +inf and -inf are the digits to base 256; NaN counts as both.
    Value code = select(isPositive, number(1, 3, f32), number(256, 3, f32), shape);
    code = select(isNan, number(257, 3, f32), code, shape);
    code = select(isFinite, zero, code, shape);
    Value sum = ContractOp::create(builder, loc, wide, same, select(isFinite, values, zero, shape));
    Value counts = ContractOp::create(builder, loc, wide, same, code);
    Value negative = UnaryOp::create(builder, loc, wide, UnaryFunction::Floor,
                                     binary(BinaryFunction::Mul, counts, number(1.0 / 256, 3, f32)));
    Value positive = binary(BinaryFunction::Sub, counts, binary(BinaryFunction::Mul, negative, number(256, 3, f32)));
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (auto [count, value] : {std::pair(positive, kInfinity), std::pair(negative, -kInfinity)}) {
      Value any = CompareOp::create(builder, loc, flags, ComparePredicate::Gt, count, zero);
      sum = binary(BinaryFunction::Add, sum, select(any, number(value, 3, f32), zero, shape));
    }
    return element == f32 ? sum : CastOp::create(builder, loc, type(shape, element), sum).getResult();
  }

  OpBuilder builder;
  Location loc;
  ScatterOp op;
};

} // namespace

void mlir::neuron::orderScatters(func::FuncOp function) {
  SmallVector<ScatterOp> scatters;
  function.walk([&](ScatterOp op) {
    if (!op.getBlocked())
      scatters.push_back(op);
  });
  for (ScatterOp op : scatters)
    ScatterOrderer(op).run();
}

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Kernels/NarrowAssembly.h"

#include "dialects/Neuron/NeuronOps.h"

using namespace mlir;
using namespace mlir::neuron;

namespace {

/// Pieces of this many bytes and more are stored at a quarter of the full rate, or better.
constexpr int64_t kWidePiece = 128;
/// Fewer shorter ones are not worth a kernel.
constexpr int64_t kManyPieces = 64;
/// Each part beyond the first is one more pass over the result; where a part is inserted, all of the result is written
/// for it.
constexpr int64_t kMaxParts = 8;

bool isSelectable(Type element) {
  return element.isF32() || element.isF16() || element.isBF16() || isa<IntegerType>(element);
}

/// Whether pieces of a part are many and short; they alternate with others along `dim`, where the part has `count`.
bool isNarrow(RankedTensorType type, size_t dim, int64_t count) {
  int64_t bytes = ShapedType::getNumElements(type.getShape().drop_front(dim + 1)) * elementBytes(type.getElementType());
  return bytes < kWidePiece && ShapedType::getNumElements(type.getShape().take_front(dim)) * count >= kManyPieces;
}

/// Whether the index along `dim` is `value`, as a tensor that has only this dimension.
Value isIndex(OpBuilder &builder, Location loc, RankedTensorType type, size_t dim, int64_t value) {
  SmallVector<int64_t> shape(type.getRank(), 1), steps(type.getRank(), 0);
  shape[dim] = type.getDimSize(dim);
  steps[dim] = 1;
  auto number = RankedTensorType::get(shape, builder.getF32Type());
  Value index = IotaOp::create(builder, loc, number, 0, steps);
  Value wanted = ConstantOp::create(
      builder, loc, RankedTensorType::get(SmallVector<int64_t>(type.getRank(), 1), builder.getF32Type()),
      double(value));
  return CompareOp::create(builder, loc, RankedTensorType::get(shape, builder.getI1Type()), ComparePredicate::Eq, index,
                           wanted);
}

/// Parts of one element each along the dimension in which they are joined.
void selectParts(ConcatOp concat) {
  RankedTensorType type = cast<RankedTensorType>(concat.getType());
  int64_t dim = concat.getDim(), count = concat.getOperands().size();
  if (count != type.getDimSize(dim) || count < 2 || count > kMaxParts || !isNarrow(type, dim, 1) ||
      !isSelectable(type.getElementType()))
    return;
  OpBuilder builder(concat);
  Value result = concat.getOperands().back();
  for (int64_t part = count - 1; part-- > 0;)
    result = SelectOp::create(builder, concat.getLoc(), type, isIndex(builder, concat.getLoc(), type, dim, part),
                              concat.getOperands()[part], result);
  concat.getResult().replaceAllUsesWith(result);
  concat.erase();
}

/// Every n-th element of a dimension that n divides, for any number of dimensions.
void selectInserted(InsertOp insert) {
  RankedTensorType type = cast<RankedTensorType>(insert.getType());
  SmallVector<int64_t> split, sourceShape;
  SmallVector<std::pair<size_t, int64_t>> chosen; // of the split dimensions, and the index there
  size_t last = 0;
  int64_t parts = 1;
  for (auto [d, size] : llvm::enumerate(type.getShape())) {
    int64_t start = insert.getStarts()[d], step = insert.getSteps()[d],
            count = typeOf(insert.getSource()).getDimSize(d);
    if (step == 1) {
      if (start != 0 || count != size)
        return;
      split.push_back(size);
      sourceShape.push_back(size);
      continue;
    }
    if (step < 2 || start >= step || count * step != size)
      return;
    split.append({count, step});
    sourceShape.append({count, 1});
    chosen.push_back({split.size() - 1, start});
    last = d;
    parts *= step;
  }
  if (chosen.empty() || parts > kMaxParts || !isNarrow(type, last, typeOf(insert.getSource()).getDimSize(last)) ||
      !isSelectable(type.getElementType()))
    return;
  OpBuilder builder(insert);
  Location loc = insert.getLoc();
  Type element = type.getElementType();
  auto splitType = RankedTensorType::get(split, element);
  Value source = ReshapeOp::create(builder, loc, RankedTensorType::get(sourceShape, element), insert.getSource());
  Value destination = ReshapeOp::create(builder, loc, splitType, insert.getDestination()), condition;
  for (auto [dim, index] : chosen) {
    Value here = isIndex(builder, loc, splitType, dim, index);
    if (condition) {
      SmallVector<int64_t> shape(typeOf(condition).getShape());
      shape[dim] = split[dim];
      here = BinaryOp::create(builder, loc, RankedTensorType::get(shape, builder.getI1Type()), BinaryFunction::And,
                              condition, here);
    }
    condition = here;
  }
  Value result = SelectOp::create(builder, loc, splitType, condition, source, destination);
  insert.getResult().replaceAllUsesWith(ReshapeOp::create(builder, loc, type, result));
  insert.erase();
}

} // namespace

void mlir::neuron::selectNarrowParts(func::FuncOp function) {
  for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
    if (auto concat = dyn_cast<ConcatOp>(op))
      selectParts(concat);
    else if (auto insert = dyn_cast<InsertOp>(op))
      selectInserted(insert);
  }
}

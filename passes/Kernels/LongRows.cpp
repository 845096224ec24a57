// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Kernels/LongRows.h"

#include <limits>

#include "neuron/Isa/Instruction.h"
#include "passes/Kernels/Grouping.h"

using namespace mlir;
using namespace mlir::neuron;

namespace {

/// Elements of one row along `dims`.
int64_t rowElements(Value value, ArrayRef<int64_t> dims) {
  int64_t elements = 1;
  for (int64_t dim : dims)
    elements *= typeOf(value).getDimSize(dim);
  return elements;
}

/// Rows up to this length are left whole: operand and result take half of the memory.
int64_t longestRow(const ::neuroncore::target::MachineModel &model, int64_t bytesPerElement) {
  return std::min<int64_t>(model.memory().sbufUsableBytesPerPartition / 2 / bytesPerElement, 32768);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Index reductions
//===--------------------------------------------------------------------------------------------------------------===//

/// argmax(x) = min over i of (x_i is the maximum ? i : n), where NaN counts as the extreme element.
void expandArgReduce(ArgReduceOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value x = op.getOperand();
  RankedTensorType type = typeOf(x), resultType = typeOf(op.getResult());
  const bool isFloat = isa<FloatType>(type.getElementType());
  SmallVector<int64_t> dims(op.getDims()), kept(type.getShape()), own(type.getRank(), 1), steps(type.getRank(), 0);
  int64_t count = 1;
  for (int64_t dim : llvm::reverse(dims)) {
    own[dim] = type.getDimSize(dim);
    steps[dim] = count;
    count *= own[dim];
    kept[dim] = 1;
  }
  Type flag = builder.getI1Type();
  Type index = count < std::numeric_limits<int32_t>::max() ? builder.getI32Type() : builder.getI64Type();
  auto whole = [&](Type element) { return RankedTensorType::get(type.getShape(), element); };
  auto rows = [&](Type element) { return RankedTensorType::get(kept, element); };
  Value extreme = ReduceOp::create(builder, loc, rows(type.getElementType()), op.getKind(), x, dims);
  Value found = CompareOp::create(builder, loc, whole(flag), ComparePredicate::Eq, x, extreme);
  if (isFloat) {
    Value nan = UnaryOp::create(builder, loc, whole(flag), UnaryFunction::Isnan, x);
    Value anyNan = UnaryOp::create(builder, loc, rows(flag), UnaryFunction::Isnan, extreme);
    found = SelectOp::create(builder, loc, whole(flag), anyNan, nan, found);
  }
  Value position = IotaOp::create(builder, loc, RankedTensorType::get(own, index), 0, steps);
  SmallVector<int64_t> ones(type.getRank(), 1);
  Value none = ConstantOp::create(builder, loc, RankedTensorType::get(ones, index), double(count));
  Value candidates = SelectOp::create(builder, loc, whole(index), found, position, none);
  Value first = ReduceOp::create(builder, loc, rows(index), ReduceKind::Min, candidates, dims);
  if (first.getType() != RankedTensorType::get(kept, resultType.getElementType()))
    first = CastOp::create(builder, loc, rows(resultType.getElementType()), first);
  if (first.getType() != resultType)
    first = ReshapeOp::create(builder, loc, resultType, first);
  op.getResult().replaceAllUsesWith(first);
  op.erase();
}

/// How many dimensions an access pattern needs for the dimensions `dims` of a value: neighbours that one step walks are
/// one.
size_t patternDims(Value value, ArrayRef<int64_t> dims) {
  std::optional<StridedLayout> layout = layoutInSource(value, bufferLayout(viewSource(value)));
  if (!layout)
    return 0;
  SmallVector<int64_t> sorted(dims);
  llvm::sort(sorted);
  size_t count = 0;
  int64_t next = 0; // the step of a dimension outside that would continue the last one
  for (int64_t dim : llvm::reverse(sorted)) {
    if (layout->sizes[dim] == 1)
      continue;
    count += count == 0 || layout->strides[dim] != next;
    next = layout->strides[dim] * layout->sizes[dim];
  }
  return count;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Scans
//===--------------------------------------------------------------------------------------------------------------===//

std::optional<BinaryFunction> functionOf(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::Sum:
    return BinaryFunction::Add;
  case ReduceKind::Prod:
    return BinaryFunction::Mul;
  case ReduceKind::Max:
    return BinaryFunction::Max;
  case ReduceKind::Min:
    return BinaryFunction::Min;
  default:
    return std::nullopt;
  }
}

Value slice(OpBuilder &builder, Location loc, Value value, int64_t dim, int64_t start, int64_t size) {
  RankedTensorType type = typeOf(value);
  SmallVector<int64_t> shape(type.getShape()), starts(type.getRank(), 0), steps(type.getRank(), 1);
  shape[dim] = size;
  starts[dim] = start;
  return SliceOp::create(builder, loc, RankedTensorType::get(shape, type.getElementType()), value, starts, steps);
}

/// Blocks are scanned for themselves; then each is combined with the last element of the scan of the totals before it.
/// What is between them stays f32 where the result is a shorter float: each element is rounded once.
void splitScan(ScanOp op, int64_t longest) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value x = op.getOperand();
  RankedTensorType type = typeOf(x);
  Type element = typeOf(op.getResult()).getElementType();
  if (isa<FloatType>(element))
    element = builder.getF32Type();
  const int64_t dim = op.getDim(), size = type.getDimSize(dim);
  BinaryFunction combine = *functionOf(op.getKind());
  int64_t block = 2048;
  while (size / block > longest)
    block *= 2;
  const int64_t blocks = size / block, rest = size % block;
  SmallVector<int64_t> blockShape(type.getShape()), flatShape(type.getShape());
  blockShape[dim] = block;
  blockShape.insert(blockShape.begin() + dim, blocks);
  flatShape[dim] = blocks * block;
  Value main = rest ? slice(builder, loc, x, dim, 0, blocks * block) : x;
  main = ReshapeOp::create(builder, loc, RankedTensorType::get(blockShape, type.getElementType()), main);
  main = ScanOp::create(builder, loc, RankedTensorType::get(blockShape, element), op.getKind(), main, dim + 1);
  // [..., blocks, 1, ...]: running totals.
  Value totals = slice(builder, loc, main, dim + 1, block - 1, 1);
  totals = ScanOp::create(builder, loc, totals.getType(), op.getKind(), totals, dim);
  Value head = slice(builder, loc, main, dim, 0, 1), tail;
  SmallVector<Value> parts = {head};
  if (blocks > 1) {
    tail = slice(builder, loc, main, dim, 1, blocks - 1);
    Value before = slice(builder, loc, totals, dim, 0, blocks - 1);
    parts.push_back(BinaryOp::create(builder, loc, tail.getType(), combine, tail, before));
  }
  for (Value &part : parts) {
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = typeOf(part).getDimSize(dim) * block;
    part = ReshapeOp::create(builder, loc, RankedTensorType::get(shape, element), part);
  }
  if (rest) {
    Value end = slice(builder, loc, x, dim, blocks * block, rest);
    end = ScanOp::create(builder, loc, RankedTensorType::get(typeOf(end).getShape(), element), op.getKind(), end, dim);
    Value all = slice(builder, loc, totals, dim, blocks - 1, 1);
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = 1;
    all = ReshapeOp::create(builder, loc, RankedTensorType::get(shape, element), all);
    parts.push_back(BinaryOp::create(builder, loc, end.getType(), combine, end, all));
  }
  Value result =
      parts.size() == 1 ? parts.front() : ConcatOp::create(builder, loc, type.clone(element), parts, dim).getResult();
  if (result.getType() != op.getResult().getType())
    result = CastOp::create(builder, loc, op.getResult().getType(), result);
  op.getResult().replaceAllUsesWith(result);
  op.erase();
}

//===--------------------------------------------------------------------------------------------------------------===//
// Sums of exponentials
//===--------------------------------------------------------------------------------------------------------------===//

/// sum of exp(x - base) over one dimension, where the base depends on the largest x, with the operations that it
/// consists of.
struct ExponentialSum {
  Value x, base;
  ReduceOp largest, sum;
  Operation *exp = nullptr, *difference = nullptr;
  int64_t dim = 0;
};

constexpr size_t kMaxBaseValues = 8;

std::optional<ExponentialSum> matchExponentialSum(ReduceOp sum) {
  auto exp = sum.getOperand().getDefiningOp<UnaryOp>();
  if (sum.getKind() != ReduceKind::Sum || sum.getDims().size() != 1 || !exp ||
      exp.getFunction() != UnaryFunction::Exp || !typeOf(exp.getResult()).getElementType().isF32())
    return std::nullopt;
  auto difference = exp.getOperand().getDefiningOp<BinaryOp>();
  if (!difference || difference.getFunction() != BinaryFunction::Sub)
    return std::nullopt;
  // The largest element itself, or what an infinite one is replaced by.
  ReduceOp largest;
  SmallVector<Value> work = {difference.getRhs()};
  for (size_t index = 0; index < work.size() && index < kMaxBaseValues && !largest; ++index) {
    Operation *definition = work[index].getDefiningOp();
    auto reduce = dyn_cast_or_null<ReduceOp>(definition);
    if (reduce && reduce.getKind() == ReduceKind::Max && reduce.getOperand() == difference.getLhs() &&
        reduce.getDims() == sum.getDims())
      largest = reduce;
    else if (definition && isElementwise(definition))
      llvm::append_range(work, definition->getOperands());
  }
  if (!largest || typeOf(difference.getRhs()).getDimSize(sum.getDims()[0]) != 1)
    return std::nullopt;
  return ExponentialSum{difference.getLhs(), difference.getRhs(), largest, sum, exp, difference, sum.getDims()[0]};
}

/// Of rows along `dim`, all in one pass.
struct PartialSum {
  Value largest;
  /// The largest element, or the number next to it where that is infinite: exponentials relative to it are 0 and inf
  /// then, not NaN.
  Value base;
  /// Of the exponentials relative to `base`.
  Value sum;
};

PartialSum partialSum(OpBuilder &builder, Location loc, Value x, int64_t dim) {
  RankedTensorType type = typeOf(x);
  SmallVector<int64_t> kept(type.getShape()), ones(type.getRank(), 1);
  kept[dim] = 1;
  auto rows = RankedTensorType::get(kept, type.getElementType());
  auto number = [&](float value) {
    return ConstantOp::create(builder, loc, RankedTensorType::get(ones, type.getElementType()), double(value));
  };
  Value lowest = number(std::numeric_limits<float>::lowest()), highest = number(std::numeric_limits<float>::max());
  Value largest = ReduceOp::create(builder, loc, rows, ReduceKind::Max, x, ArrayRef<int64_t>{dim});
  Value base = BinaryOp::create(builder, loc, rows, BinaryFunction::Max, largest, lowest);
  base = BinaryOp::create(builder, loc, rows, BinaryFunction::Min, base, highest);
  Value difference = BinaryOp::create(builder, loc, type, BinaryFunction::Sub, x, base);
  Value exp = UnaryOp::create(builder, loc, type, UnaryFunction::Exp, difference);
  return {largest, base, ReduceOp::create(builder, loc, rows, ReduceKind::Sum, exp, ArrayRef<int64_t>{dim})};
}

/// A row that does not fit on chip would be read once for its largest element and once more for the sum. Blocks of it
/// fit: each has a largest element and a sum of its own, and sum(exp(x - base)) over all is that of
/// sum(exp(x - base_block)) * exp(base_block - base) over the blocks.
void splitExponentialSum(ExponentialSum found) {
  constexpr int64_t kLongestBlock = 4096, kShortestBlock = 512, kManyBlocks = 256;
  OpBuilder builder(found.largest);
  Location loc = found.sum.getLoc();
  RankedTensorType type = typeOf(found.x);
  const int64_t dim = found.dim, size = type.getDimSize(dim);
  // Few rows make many blocks, so that there is work for all partitions.
  int64_t block = kLongestBlock;
  while (block > kShortestBlock && type.getNumElements() / block < kManyBlocks)
    block /= 2;
  const int64_t blocks = size / block, rest = size % block;
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = block;
  shape.insert(shape.begin() + dim, blocks);
  Value main = rest ? slice(builder, loc, found.x, dim, 0, blocks * block) : found.x;
  main = ReshapeOp::create(builder, loc, RankedTensorType::get(shape, type.getElementType()), main);
  PartialSum ofBlocks = partialSum(builder, loc, main, dim + 1), ofRest;
  // [..., blocks, ...]
  shape.erase(shape.begin() + dim + 1);
  auto perBlock = RankedTensorType::get(shape, type.getElementType());
  for (Value *value : {&ofBlocks.largest, &ofBlocks.base, &ofBlocks.sum})
    *value = ReshapeOp::create(builder, loc, perBlock, *value);
  RankedTensorType rows = typeOf(found.sum.getResult());
  Value largest = ReduceOp::create(builder, loc, rows, ReduceKind::Max, ofBlocks.largest, ArrayRef<int64_t>{dim});
  if (rest) {
    ofRest = partialSum(builder, loc, slice(builder, loc, found.x, dim, blocks * block, rest), dim);
    largest = BinaryOp::create(builder, loc, rows, BinaryFunction::Max, largest, ofRest.largest);
  }
  found.largest.getResult().replaceAllUsesWith(largest);
  Value base = found.base == found.largest.getResult() ? largest : found.base;
  builder.setInsertionPoint(found.sum);
  auto relative = [&](const PartialSum &part, RankedTensorType type) -> Value {
    Value difference = BinaryOp::create(builder, loc, type, BinaryFunction::Sub, part.base, base);
    Value scale = UnaryOp::create(builder, loc, type, UnaryFunction::Exp, difference);
    return BinaryOp::create(builder, loc, type, BinaryFunction::Mul, part.sum, scale);
  };
  Value total =
      ReduceOp::create(builder, loc, rows, ReduceKind::Sum, relative(ofBlocks, perBlock), ArrayRef<int64_t>{dim});
  if (rest)
    total = BinaryOp::create(builder, loc, rows, BinaryFunction::Add, total, relative(ofRest, rows));
  found.sum.getResult().replaceAllUsesWith(total);
  // The exponentials and differences may be needed for something else.
  for (Operation *op : {found.sum.getOperation(), found.exp, found.difference, found.largest.getOperation()})
    if (op->use_empty())
      op->erase();
}

} // namespace

void mlir::neuron::splitLongRows(func::FuncOp function, const ::neuroncore::target::MachineModel &model) {
  SmallVector<ArgReduceOp> argReduces;
  SmallVector<ScanOp> scans;
  SmallVector<ExponentialSum> sums;
  function.walk([&](Operation *op) {
    if (auto argReduce = dyn_cast<ArgReduceOp>(op)) {
      int64_t bytes = elementBytes(typeOf(argReduce.getOperand()).getElementType());
      if (rowElements(argReduce.getOperand(), argReduce.getDims()) > longestRow(model, bytes))
        argReduces.push_back(argReduce);
    } else if (auto scan = dyn_cast<ScanOp>(op)) {
      int64_t bytes = elementBytes(typeOf(scan.getOperand()).getElementType()) +
                      elementBytes(typeOf(scan.getResult()).getElementType());
      int64_t longest = longestRow(model, bytes);
      if (typeOf(scan.getOperand()).getDimSize(scan.getDim()) > longest && functionOf(scan.getKind()))
        scans.push_back(scan);
    } else if (auto reduce = dyn_cast<ReduceOp>(op)) {
      // A row and its exponentials are on chip at once.
      int64_t longest = model.memory().sbufUsableBytesPerPartition / 8;
      if (auto found = matchExponentialSum(reduce); found && typeOf(found->x).getDimSize(found->dim) > longest)
        sums.push_back(*found);
    }
  });
  // A row is whole on the free axis. One of more dimensions than patterns have is put in order first.
  function.walk([&](ArgReduceOp op) {
    Value x = op.getOperand();
    if (llvm::is_contained(argReduces, op) || patternDims(x, op.getDims()) <= ::neuroncore::isa::kMaxFreeDims)
      return;
    OpBuilder builder(op);
    op->setOperand(0, UnaryOp::create(builder, op.getLoc(), x.getType(), UnaryFunction::Copy, x));
  });
  for (ArgReduceOp op : argReduces)
    expandArgReduce(op);
  for (ScanOp op : scans)
    splitScan(op, longestRow(model, 16));
  for (ExponentialSum sum : sums)
    splitExponentialSum(sum);
}

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Kernels/LongRows.h"

#include <limits>

#include "neuron/Isa/Instruction.h"
#include "passes/Kernels/Grouping.h"

using namespace mlir;
using namespace mlir::neuron;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

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
void splitScan(ScanOp op, int64_t longest) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value x = op.getOperand();
  RankedTensorType type = typeOf(x);
  Type element = typeOf(op.getResult()).getElementType();
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
  Value result = parts.size() == 1 ? parts.front()
                                   : ConcatOp::create(builder, loc, op.getResult().getType(), parts, dim).getResult();
  op.getResult().replaceAllUsesWith(result);
  op.erase();
}

} // namespace

void mlir::neuron::splitLongRows(func::FuncOp function, const ::neuroncore::target::MachineModel &model) {
  SmallVector<ArgReduceOp> argReduces;
  SmallVector<ScanOp> scans;
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
}

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions along the free axis and across partitions, index reductions, scans, and running results.

#include "dialects/Neuron/NeuronAttentionOps.h"
#include "passes/Select/KernelSelector.h"

using namespace mlir;
using namespace mlir::neuron;
namespace isa = ::neuroncore::isa;

namespace {

isa::AluOp operatorOf(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::Sum:
    return isa::AluOp::Add;
  case ReduceKind::Prod:
    return isa::AluOp::Multiply;
  case ReduceKind::Max:
  case ReduceKind::Or:
    return isa::AluOp::Maximum;
  case ReduceKind::Min:
  case ReduceKind::And:
    return isa::AluOp::Minimum;
  case ReduceKind::Xor:
    return isa::AluOp::LogicalXor;
  }
  llvm_unreachable("kind outside its enumeration");
}

isa::IntReduceFunction routineOf(ReduceKind kind) {
  using F = isa::IntReduceFunction;
  switch (kind) {
  case ReduceKind::Sum:
    return F::Add;
  case ReduceKind::Prod:
    return F::Multiply;
  case ReduceKind::Max:
    return F::Maximum;
  case ReduceKind::Min:
    return F::Minimum;
  case ReduceKind::And:
    return F::BitwiseAnd;
  case ReduceKind::Or:
    return F::BitwiseOr;
  case ReduceKind::Xor:
    return F::BitwiseXor;
  }
  llvm_unreachable("kind outside its enumeration");
}

isa::PartitionReduceFunction partitionRoutineOf(ReduceKind kind) {
  using F = isa::PartitionReduceFunction;
  switch (kind) {
  case ReduceKind::Sum:
    return F::Add;
  case ReduceKind::Prod:
    return F::Multiply;
  case ReduceKind::Max:
    return F::Maximum;
  case ReduceKind::Min:
    return F::Minimum;
  case ReduceKind::And:
    return F::BitwiseAnd;
  case ReduceKind::Or:
    return F::BitwiseOr;
  case ReduceKind::Xor:
    return F::BitwiseXor;
  }
  llvm_unreachable("kind outside its enumeration");
}

bool isBool(Type type) { return type.isInteger(1); }

/// The free dimensions of a tile in the order kept, ended.
void splitDims(ArrayRef<int64_t> dims, size_t rank, SmallVectorImpl<int64_t> &kept, SmallVectorImpl<int64_t> &ended) {
  for (size_t d = 0; d < rank; ++d)
    (llvm::is_contained(dims, static_cast<int64_t>(d) + 1) ? ended : kept).push_back(d);
}

TileRef withDims(const TileRef &ref, ArrayRef<int64_t> dims) {
  TileRef result = ref;
  result.steps.clear();
  result.counts.clear();
  for (int64_t d : dims) {
    result.steps.push_back(ref.steps[d]);
    result.counts.push_back(ref.counts[d]);
  }
  return result;
}

} // namespace

LogicalResult KernelSelector::selectReduce(ReduceOp op) {
  if (llvm::is_contained(op.getDims(), 0))
    return selectPartitionReduce(op);
  Value result = op.getResult();
  Type from = typeOf(op.getOperand()).getElementType(), to = typeOf(result).getElementType();
  SmallVector<int64_t> kept, ended;
  splitDims(op.getDims(), freeShape(op.getOperand()).size(), kept, ended);
  if (std::optional<RowMoments> moments = findRowMoments(op))
    return selectRowMoments(op, *moments);
  Value stored = storedResult(result);
  if ((isa<FloatType>(from) && isa<FloatType>(to)) || (isBool(from) && isBool(to))) {
    FailureOr<TileRef> src = tile(op.getOperand());
    if (failed(src))
      return failure();
    TileRef dst = allocateFor(stored);
    src->partitions = dst.partitions;
    // A row sum may also come out of the scalar engine, which then writes the elements somewhere.
    TileRef unused;
    if (op.getKind() == ReduceKind::Sum && isa<FloatType>(from) && dst.element.isF32() && isColumnShape(result) &&
        !isColumnShape(op.getOperand()))
      unused = scratch(dst.partitions, freeShape(op.getOperand()), /*ofScalarEngine=*/true);
    writer.tensorReduce(op.getLoc(), dst, *src, kept, ended, operatorOf(op.getKind()), unused);
    define(result, dst);
    if (stored != result) {
      define(stored, dst);
      done.insert(stored.getDefiningOp());
    }
    return success();
  }
  if (isa<FloatType>(to) || isa<FloatType>(from))
    return unsupported(op, "a reduction from " + (Twine(isa<FloatType>(from) ? "float" : "integer")) +
                               " to another class of types");
  // Integers: the routine reduces trailing dimensions and accumulates in the result's type.
  FailureOr<TileRef> src = exactTile(op.getOperand());
  if (failed(src))
    return failure();
  TileRef source = inSbuf(op.getLoc(), *src);
  if (from != to) {
    TileRef wide = allocate(source.partitions, source.counts, to);
    writer.routine(op.getLoc(), isa::Routine::Cast, static_cast<uint8_t>(isa::CastFunction::Convert), wide, {source},
                   source.counts);
    source = wide;
  }
  TileRef dst = allocateFor(result);
  source.partitions = dst.partitions;
  SmallVector<int64_t> order(kept);
  llvm::append_range(order, ended);
  define(result, dst);
  if (llvm::all_of(ended, [&](int64_t d) { return source.counts[d] == 1; })) {
    writer.tensorCopy(op.getLoc(), dst, source);
    return success();
  }
  writer.rowRoutine(op.getLoc(), isa::Routine::IntReduce, static_cast<uint8_t>(routineOf(op.getKind())), dst,
                    withDims(source, order), ended.size(), 0);
  return success();
}

LogicalResult KernelSelector::selectPartitionReduce(ReduceOp op) {
  Value result = op.getResult();
  Type element = typeOf(op.getOperand()).getElementType();
  Location loc = op.getLoc();
  if (op.getDims().size() != 1)
    return unsupported(op, "a reduction over partitions and the free axis at once");
  FailureOr<TileRef> src = isa<FloatType>(element) ? tile(op.getOperand()) : exactTile(op.getOperand());
  if (failed(src))
    return failure();
  if (src->partitions == 1) {
    TileRef dst = allocateFor(result);
    writer.tensorCopy(loc, dst, *src);
    define(result, dst);
    return success();
  }
  if (op.getKind() == ReduceKind::Sum && isa<FloatType>(element)) {
    TileRef dst = allocateFor(result, MemorySpace::Psum);
    dst.element = builder.getF32Type();
    if (!typeOf(result).getElementType().isF32())
      dst = allocate(1, freeShape(result), builder.getF32Type(), MemorySpace::Psum);
    if (failed(sumPartitions(loc, dst, *src, /*accumulate=*/false)))
      return failure();
    define(result, dst);
    return success();
  }
  if (isa<FloatType>(element)) {
    FailureOr<TileRef> exact = exactTile(op.getOperand());
    if (failed(exact))
      return failure();
    src = exact;
  }
  TileRef dst = allocateFor(result);
  writer.routine(loc, isa::Routine::PartitionReduce, static_cast<uint8_t>(partitionRoutineOf(op.getKind())), dst,
                 {inSbuf(loc, *src)}, {});
  define(result, dst);
  return success();
}

LogicalResult KernelSelector::selectArgReduce(ArgReduceOp op) {
  Value result = op.getResult();
  Location loc = op.getLoc();
  FailureOr<TileRef> src = exactTile(op.getOperand());
  if (failed(src))
    return failure();
  TileRef source = inSbuf(loc, *src);
  SmallVector<int64_t> kept, ended;
  splitDims(op.getDims(), source.counts.size(), kept, ended);
  SmallVector<int64_t> order(kept);
  llvm::append_range(order, ended);
  TileRef dst = allocateFor(result);
  define(result, dst);
  if (llvm::all_of(ended, [&](int64_t d) { return source.counts[d] == 1; })) {
    // One element: its index is 0.
    TileRef words = dst;
    words.element = builder.getI32Type();
    words.counts.push_back(2);
    for (int64_t &step : words.steps)
      step *= 2;
    words.steps.push_back(1);
    writer.memset(loc, words, uint32_t(0));
    return success();
  }
  TileRef ordered = withDims(source, order);
  ordered.partitions = dst.partitions;
  using F = isa::ArgReduceFunction;
  F function = op.getKind() == ReduceKind::Max ? F::Maximum : F::Minimum;
  writer.rowRoutine(loc, isa::Routine::ArgReduce, static_cast<uint8_t>(function), dst, ordered, ended.size(), 0);
  return success();
}

/// A running sum or product of floats by the vector engine, one instruction per row of a partition: s = s * 1 + x, s =
/// s * x * 1.
LogicalResult KernelSelector::selectFloatScan(ScanOp op, int64_t numRows) {
  FailureOr<TileRef> src = tile(op.getOperand());
  if (failed(src))
    return failure();
  Value result = op.getResult();
  TileRef rows = *src, dst = allocateFor(result);
  rows.partitions = dst.partitions;
  define(result, dst);
  TileRef one = constantColumn(op.getLoc(), builder.getF32FloatAttr(1.0f));
  one.partitions = dst.partitions;
  const bool adds = op.getKind() == ReduceKind::Sum;
  const size_t last = op.getDim() - 1;
  one.counts = {rows.counts[last]};
  one.steps = {0};
  // Rows one after the other: all dimensions but the scanned one.
  for (int64_t number = 0; number < numRows; ++number) {
    TileRef from = withDims(rows, {int64_t(last)}), to = withDims(dst, {int64_t(last)});
    int64_t rest = number;
    for (size_t d = rows.counts.size(); d-- > 0;) {
      if (d == last)
        continue;
      const int64_t index = rest % rows.counts[d];
      rest /= rows.counts[d];
      from.byteOffset += index * rows.steps[d] * elementBytes(rows.element);
      to.byteOffset += index * dst.steps[d] * elementBytes(dst.element);
    }
    writer.scan(op.getLoc(), to, adds ? one : from, adds ? from : one, adds ? AluOp::Add : AluOp::Multiply,
                adds ? 0.0f : 1.0f);
  }
  return success();
}

LogicalResult KernelSelector::selectScan(ScanOp op) {
  Value result = op.getResult();
  Location loc = op.getLoc();
  Type from = typeOf(op.getOperand()).getElementType(), to = typeOf(result).getElementType();
  // Many short rows are one routine of GpSimd.
  constexpr int64_t kMostRows = 4;
  const int64_t numRows = typeOf(result).getNumElements() /
                          std::max<int64_t>(typeOf(result).getDimSize(0) * typeOf(result).getDimSize(op.getDim()), 1);
  if (isa<FloatType>(from) && isa<FloatType>(to) && numRows <= kMostRows &&
      (op.getKind() == ReduceKind::Sum || op.getKind() == ReduceKind::Prod))
    return selectFloatScan(op, numRows);
  FailureOr<TileRef> src = exactTile(op.getOperand());
  if (failed(src))
    return failure();
  TileRef source = inSbuf(loc, *src);
  if (from != to) {
    TileRef wide = allocate(source.partitions, source.counts, to);
    writer.routine(loc, isa::Routine::Cast, static_cast<uint8_t>(isa::CastFunction::Convert), wide, {source},
                   source.counts);
    source = wide;
  }
  using F = isa::ScanFunction;
  F function;
  switch (op.getKind()) {
  case ReduceKind::Sum:
    function = F::Add;
    break;
  case ReduceKind::Prod:
    function = F::Multiply;
    break;
  case ReduceKind::Max:
    function = F::Maximum;
    break;
  case ReduceKind::Min:
    function = F::Minimum;
    break;
  default:
    return unsupported(op, "a running " + stringifyReduceKind(op.getKind()));
  }
  TileRef dst = allocateFor(result);
  define(result, dst);
  // The scanned dimension goes last on both sides.
  SmallVector<int64_t> order;
  for (size_t d = 0; d < source.counts.size(); ++d)
    if (static_cast<int64_t>(d) + 1 != static_cast<int64_t>(op.getDim()))
      order.push_back(d);
  order.push_back(op.getDim() - 1);
  TileRef in = withDims(source, order);
  in.partitions = dst.partitions;
  if (in.counts.back() == 1) {
    writer.tensorCopy(loc, dst, source);
    return success();
  }
  writer.rowRoutine(loc, isa::Routine::Scan, static_cast<uint8_t>(function), withDims(dst, order), in, 1, 1);
  return success();
}

//===--------------------------------------------------------------------------------------------------------------===//
// Running results
//===--------------------------------------------------------------------------------------------------------------===//

LogicalResult KernelSelector::combine(Location loc, ReduceKind kind, Type element, const TileRef &dst,
                                      const TileRef &lhs, const TileRef &rhs) {
  if (isa<FloatType>(element) || isBool(element)) {
    writer.tensorTensor(loc, dst, lhs, rhs, operatorOf(kind));
    return success();
  }
  using F = isa::IntBinaryFunction;
  F function;
  switch (kind) {
  case ReduceKind::Sum:
    function = F::Add;
    break;
  case ReduceKind::Prod:
    function = F::Multiply;
    break;
  case ReduceKind::Max:
    function = F::Maximum;
    break;
  case ReduceKind::Min:
    function = F::Minimum;
    break;
  case ReduceKind::And:
    function = F::BitwiseAnd;
    break;
  case ReduceKind::Or:
    function = F::BitwiseOr;
    break;
  case ReduceKind::Xor:
    function = F::BitwiseXor;
    break;
  }
  writer.routine(loc, isa::Routine::IntBinary, static_cast<uint8_t>(function), dst, {lhs, rhs}, dst.counts);
  return success();
}

/// The tensor engine computes it.
static bool isProduct(Value value) {
  if (value.getDefiningOp<TileMatmulOp>())
    return true;
  auto reduce = value.getDefiningOp<ReduceOp>();
  return reduce && llvm::is_contained(reduce.getDims(), 0) && reduce.getKind() == ReduceKind::Sum;
}

bool KernelSelector::isAccumulatedSum(Operation *op) const {
  if (!isa<ReduceOp>(op) || !op->getResult(0).hasOneUse() || !isProduct(op->getResult(0)))
    return false;
  auto accumulate = dyn_cast<AccumulateOp>(*op->getResult(0).user_begin());
  return accumulate && accumulate.getValue() == op->getResult(0) && accumulate->getBlock() == op->getBlock() &&
         accumulatesInPsum(accumulate.getResult());
}

LogicalResult KernelSelector::selectAccumulate(AccumulateOp op) {
  Location loc = op.getLoc();
  Value accumulator = op.getAccumulator();
  TileRef target;
  if (auto constant = accumulator.getDefiningOp<ConstantOp>()) {
    // The first contribution outside of any loop.
    if (accumulatesInPsum(op.getResult()) && isProduct(op.getValue())) {
      target = allocateFor(accumulator, MemorySpace::Psum);
      if (failed(startPsumAccumulator(loc, target)))
        return failure();
    } else {
      FailureOr<TileRef> initial = constantTile(accumulator);
      if (failed(initial))
        return failure();
      target = allocateFor(accumulator);
      writer.tensorCopy(loc, target, *initial);
    }
  } else {
    FailureOr<TileRef> ref = tile(accumulator);
    if (failed(ref))
      return failure();
    target = *ref;
  }
  define(op.getResult(), target);
  // The box that the value covers.
  TileRef part = target;
  part.partitions = typeOf(op.getValue()).getDimSize(0);
  part.byteOffset += firstColumn(op) * part.steps.back() * elementBytes(part.element);
  part.counts.assign(freeShape(op.getValue()).begin(), freeShape(op.getValue()).end());
  if (target.space() == MemorySpace::Psum && isProduct(op.getValue())) {
    if (auto matmul = op.getValue().getDefiningOp<TileMatmulOp>())
      return multiply(loc, part, matmul.getStationary(), matmul.getMoving(), /*accumulate=*/true);
    auto reduce = op.getValue().getDefiningOp<ReduceOp>();
    FailureOr<TileRef> src = tile(reduce.getOperand());
    if (failed(src))
      return failure();
    return sumPartitions(loc, part, *src, /*accumulate=*/true);
  }
  FailureOr<TileRef> value = exactTile(op.getValue());
  if (failed(value))
    return failure();
  TileRef contribution = *value;
  if (!isa<FloatType>(typeOf(op.getValue()).getElementType()))
    contribution = inSbuf(loc, contribution);
  return combine(loc, op.getKind(), typeOf(op.getValue()).getElementType(), part, part, contribution);
}

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Mean and variance of rows. Spelt out they are three passes over a row (a sum, a difference, a sum of squares); the
// vector engine has an instruction that finds both in one, from pieces of up to 512 elements, with the variance around
// the mean of each piece, so that nothing cancels.

#include "lib/Analysis/TilePlan.h"
#include "passes/Select/KernelSelector.h"

using namespace mlir;
using namespace mlir::neuron;

static constexpr int64_t kPiece = ::neuroncore::isa::kMaxStatisticsElements;
static constexpr int64_t kStatistics = ::neuroncore::isa::kStatisticsResults;

static Value withoutWidening(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isWideningCast(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The user of a value that nobody else uses.
template <typename Op> static Op onlyUser(Value value) {
  return value.hasOneUse() ? dyn_cast<Op>(*value.user_begin()) : Op();
}

/// What `op` multiplies its first operand by, if that is a number.
static std::optional<double> factorOf(BinaryOp op) {
  std::optional<double> number = op ? getSplatConstant(op.getRhs()) : std::nullopt;
  if (!number || *number == 0)
    return std::nullopt;
  if (op.getFunction() == BinaryFunction::Div)
    return 1 / *number;
  if (op.getFunction() == BinaryFunction::Mul)
    return *number;
  return std::nullopt;
}

static bool isRowSum(ReduceOp reduce, Block *block) {
  return reduce && reduce->getBlock() == block && reduce.getKind() == ReduceKind::Sum &&
         typeOf(reduce.getOperand()).getRank() == 2 && reduce.getDims() == ArrayRef<int64_t>{1} &&
         isa<FloatType>(typeOf(reduce.getOperand()).getElementType()) &&
         typeOf(reduce.getResult()).getElementType().isF32();
}

/// Operations of a block on two tiles like `row`, which only the vector engine and GpSimd execute.
static int64_t countPairs(Block &block, RankedTensorType row) {
  return llvm::count_if(block, [&](Operation &op) {
    auto binary = dyn_cast<BinaryOp>(op);
    return binary && llvm::all_of(binary->getOperands(), [&](Value operand) {
             return typeOf(operand).getShape() == row.getShape() && !getSplatConstant(operand);
           });
  });
}

/// Whether the three passes cost less than one of the vector engine: with two operations on pairs of long rows (weight
/// and bias of a layer norm) that engine and GpSimd are what limits the kernel, and the scalar engine makes the passes
/// beside them. With fewer pairs it limits the kernel itself; with more, its intermediate rows leave memory for fewer
/// iterations at once. Modelled: docs/Performance.md, "Layer norm".
static bool scalarEngineIsFree(ReduceOp sum) {
  constexpr int64_t kLongRow = 1024;
  RankedTensorType row = typeOf(sum.getOperand());
  return row.getDimSize(1) >= kLongRow && countPairs(*sum->getBlock(), row) == 2;
}

std::optional<KernelSelector::RowMoments> KernelSelector::findRowMoments(ReduceOp sum) const {
  Block *block = sum->getBlock();
  if (!isRowSum(sum, block))
    return std::nullopt;
  const double count = double(typeOf(sum.getOperand()).getDimSize(1));
  RowMoments found;
  found.mean = onlyUser<BinaryOp>(sum.getResult());
  std::optional<double> factor = factorOf(found.mean);
  if (count < 2 || !factor || *factor != 1 / count || found.mean.getLhs() != sum.getResult() ||
      found.mean->getBlock() != block)
    return std::nullopt;
  const Value rows = withoutWidening(sum.getOperand());
  for (Operation *user : found.mean.getResult().getUsers()) {
    auto difference = dyn_cast<BinaryOp>(user);
    if (!difference || difference->getBlock() != block || difference.getFunction() != BinaryFunction::Sub ||
        difference.getRhs() != found.mean.getResult() || withoutWidening(difference.getLhs()) != rows)
      continue;
    for (Operation *next : difference.getResult().getUsers()) {
      auto square = dyn_cast<UnaryOp>(next);
      if (!square || square.getFunction() != UnaryFunction::Square)
        continue;
      auto squares = onlyUser<ReduceOp>(square.getResult());
      if (!isRowSum(squares, block))
        continue;
      found.variances.clear();
      for (Operation *last : squares.getResult().getUsers())
        if (auto variance = dyn_cast<BinaryOp>(last);
            variance && variance->getBlock() == block && variance.getLhs() == squares.getResult() && factorOf(variance))
          found.variances.push_back(variance);
      if (found.variances.size() != size_t(llvm::range_size(squares.getResult().getUses())))
        continue;
      found.centred = difference;
      found.square = square;
      found.squares = squares;
      if (scalarEngineIsFree(sum))
        return std::nullopt;
      return found;
    }
  }
  return std::nullopt;
}

LogicalResult KernelSelector::selectRowMoments(ReduceOp sum, RowMoments moments) {
  Location loc = sum.getLoc();
  FailureOr<TileRef> rows = tile(sum.getOperand());
  if (failed(rows))
    return failure();
  const int64_t partitions = typeOf(sum.getResult()).getDimSize(0), count = rows->counts.front();
  rows->partitions = partitions;
  const int64_t length = llvm::divideCeil(count, llvm::divideCeil(count, kPiece));
  const int64_t pieces = llvm::divideCeil(count, length);
  Type f32 = builder.getF32Type();
  TileRef statistics = allocate(partitions, {pieces * kStatistics}, f32), both = allocate(partitions, {2}, f32);
  for (int64_t number = 0; number < pieces; ++number) {
    const int64_t start = number * length;
    TileRef piece = *rows, of = statistics;
    piece.byteOffset += start * piece.steps.front() * elementBytes(piece.element);
    piece.counts = {std::min(length, count - start)};
    of.byteOffset += number * kStatistics * elementBytes(f32);
    of.counts = {kStatistics};
    writer.rowStatistics(loc, of, piece);
  }
  writer.mergeStatistics(loc, both, statistics);

  TileRef mean = both, variance = both;
  mean.counts = variance.counts = {1};
  variance.byteOffset += elementBytes(f32);
  define(moments.mean.getResult(), mean);
  for (BinaryOp op : moments.variances) {
    TileRef scaled = variance;
    if (double factor = *factorOf(op) * double(count); factor != 1) {
      scaled = allocateFor(op.getResult());
      writer.tensorScalar(op.getLoc(), scaled, variance, {AluOp::Multiply, {static_cast<float>(factor), {}}});
    }
    define(op.getResult(), scaled);
    done.insert(op);
  }
  for (Operation *op : {moments.mean.getOperation(), moments.square.getOperation(), moments.squares.getOperation()})
    done.insert(op);
  const bool isNeeded =
      llvm::any_of(moments.centred->getUsers(), [&](Operation *user) { return !done.contains(user); });
  (isNeeded ? centredRows : done).insert(moments.centred);
  return success();
}

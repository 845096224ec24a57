// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/Neuron/NeuronAttentionOps.h"

#include <cmath>

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::neuron;

bool mlir::neuron::isStreamableAttention(int64_t depth, int64_t valueDepth, double scale) {
  return (depth <= 128 || (depth <= 256 && depth % 2 == 0)) && valueDepth <= 512 && scale > 1e-30 &&
         std::isfinite(scale);
}

/// What attention and its gradient ask of their operands: one float type, sizes that agree, heads in whole groups, a
/// mask that repeats to the scores, a positive scale.
template <typename OpTy> static LogicalResult verifyOperands(OpTy op) {
  RankedTensorType query = typeOf(op.getQuery()), key = typeOf(op.getKey()), value = typeOf(op.getValue());
  for (auto [name, type] : {std::pair("query", query), std::pair("key", key), std::pair("value", value)}) {
    if (type.getRank() != 4)
      return op.emitOpError() << "expected " << name << " of rank 4 but got " << type;
    if (!isa<FloatType>(type.getElementType()))
      return op.emitOpError() << "expected " << name << " of a float type but got " << type;
    if (type.getElementType() != query.getElementType())
      return op.emitOpError() << "expected " << name << " of " << query.getElementType() << " but got " << type;
  }
  ArrayRef<int64_t> q = query.getShape(), k = key.getShape(), v = value.getShape();
  if (k[0] != q[0] || k[3] != q[3] || v[0] != q[0] || v[1] != k[1] || v[2] != k[2])
    return op.emitOpError() << "expected key [" << q[0] << ", groups, keys, " << q[3]
                            << "] and value with the same batch, groups and keys but got " << key << " and " << value;
  if (k[1] == 0 || q[1] % k[1] != 0)
    return op.emitOpError() << "expected heads to be a multiple of groups but got " << q[1] << " and " << k[1];
  bool isChoice = false;
  if (Value mask = op.getMask()) {
    RankedTensorType type = typeOf(mask);
    isChoice = type.getElementType().isInteger(1);
    bool fits = type.getRank() == 4 && (type.getElementType().isF32() || isChoice) && type.getDimSize(3) == k[2];
    for (int64_t d = 0; fits && d < 3; ++d)
      fits = type.getDimSize(d) == 1 || type.getDimSize(d) == q[d];
    if (!fits)
      return op.emitOpError() << "expected a mask that repeats to [" << q[0] << ", " << q[1] << ", " << q[2] << ", "
                              << k[2] << "] of f32 or i1 but got " << type;
  }
  if (isChoice != op.getFill().has_value())
    return op.emitOpError() << "expected a fill with a mask of i1, and only then";
  if (bool(op.getState()) != op.getDropout().has_value() || bool(op.getIndex()) != bool(op.getState()))
    return op.emitOpError() << "expected a state and an index with dropout, and only then";
  if (Value state = op.getState()) {
    double dropout = op.getDropout()->convertToDouble();
    if (!(dropout > 0 && dropout < 1))
      return op.emitOpError() << "expected dropout between 0 and 1 but got " << dropout;
    auto i64 = IntegerType::get(op.getContext(), 64);
    if (state.getType() != RankedTensorType::get({2}, i64))
      return op.emitOpError() << "expected a state [2] of i64 but got " << state.getType();
    if (op.getIndex().getType() != RankedTensorType::get({q[0], q[1], q[2]}, i64))
      return op.emitOpError() << "expected an index [" << q[0] << ", " << q[1] << ", " << q[2] << "] of i64 but got "
                              << op.getIndex().getType();
  }
  double scale = op.getScale().convertToDouble();
  if (!(scale > 0))
    return op.emitOpError() << "expected a positive scale but got " << scale;
  return success();
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyOperands(*this)))
    return failure();
  RankedTensorType query = typeOf(getQuery()), result = typeOf(getResult()), sums = typeOf(getLogsumexp());
  ArrayRef<int64_t> q = query.getShape(), v = typeOf(getValue()).getShape();
  if (result != RankedTensorType::get({q[0], q[1], q[2], v[3]}, query.getElementType()))
    return emitOpError() << "expected result [" << q[0] << ", " << q[1] << ", " << q[2] << ", " << v[3] << "] of "
                         << query.getElementType() << " but got " << result;
  if (sums != RankedTensorType::get({q[0], q[1], q[2]}, Float32Type::get(getContext())))
    return emitOpError() << "expected sums [" << q[0] << ", " << q[1] << ", " << q[2] << "] of f32 but got " << sums;
  return success();
}

LogicalResult AttentionBackwardOp::verify() {
  if (failed(verifyOperands(*this)))
    return failure();
  RankedTensorType query = typeOf(getQuery()), key = typeOf(getKey()), value = typeOf(getValue());
  ArrayRef<int64_t> q = query.getShape(), v = value.getShape();
  auto expect = [&](StringRef name, Value operand, RankedTensorType expected) -> LogicalResult {
    if (operand.getType() != expected)
      return emitOpError() << "expected " << name << " of type " << expected << " but got " << operand.getType();
    return success();
  };
  if (failed(
          expect("gradient", getGradient(), RankedTensorType::get({q[0], q[1], q[2], v[3]}, query.getElementType()))))
    return failure();
  auto perRow = RankedTensorType::get({q[0], q[1], q[2]}, Float32Type::get(getContext()));
  if (failed(expect("logsumexp", getLogsumexp(), perRow)) || failed(expect("delta", getDelta(), perRow)) ||
      failed(expect("query gradient", getQueryGradient(), query)) ||
      failed(expect("key gradient", getKeyGradient(), key)) ||
      failed(expect("value gradient", getValueGradient(), value)))
    return failure();
  return success();
}

#define GET_OP_CLASSES
#include "dialects/Neuron/NeuronAttentionOps.cpp.inc"

namespace {

/// What `heads` [batch, group * n, rows, depth] repeats n times along each group, seen as [batch, group, 1, rows,
/// depth], or, with one group, as [batch, 1, rows, depth]; null if it repeats nothing.
Value repeatedPerGroup(Value heads) {
  auto broadcast = heads.getDefiningOp<BroadcastOp>();
  auto merged = heads.getDefiningOp<ReshapeOp>();
  if (merged)
    broadcast = merged.getOperand().getDefiningOp<BroadcastOp>();
  if (!broadcast)
    return {};
  ArrayRef<int64_t> all = typeOf(broadcast.getResult()).getShape(), source = typeOf(broadcast.getOperand()).getShape();
  const size_t repeated = merged ? 2 : 1;
  if (all.size() != repeated + 3 || all[repeated] == source[repeated])
    return {};
  for (size_t d = 0; d < all.size(); ++d)
    if (d != repeated && all[d] != source[d])
      return {};
  ArrayRef<int64_t> shape = typeOf(heads).getShape();
  bool keepsOthers = shape.front() == all.front() && shape.take_back(2) == all.take_back(2);
  return keepsOthers ? broadcast.getOperand() : Value();
}

/// Heads of a group share keys and values, so these need not be repeated in memory.
struct ShareRepeatedHeads : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    Value key = repeatedPerGroup(op.getKey()), value = repeatedPerGroup(op.getValue());
    if (!key || !value)
      return failure();
    auto groupsOf = [](Value source) { return typeOf(source).getDimSize(1); };
    if (groupsOf(key) != groupsOf(value))
      return failure();
    auto seenAsGroups = [&](Value source) -> Value {
      RankedTensorType type = typeOf(source);
      if (type.getRank() == 4)
        return source;
      SmallVector<int64_t> shape(type.getShape());
      shape.erase(shape.begin() + 2);
      return ReshapeOp::create(rewriter, source.getLoc(), RankedTensorType::get(shape, type.getElementType()), source);
    };
    Value groupKey = seenAsGroups(key), groupValue = seenAsGroups(value);
    rewriter.modifyOpInPlace(op, [&] {
      op.getKeyMutable().assign(groupKey);
      op.getValueMutable().assign(groupValue);
    });
    return success();
  }
};

/// One query for each head, as when a sequence grows by a token: the heads of a group are rows that meet its keys
/// together.
struct HeadsAsRows : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    ArrayRef<int64_t> query = typeOf(op.getQuery()).getShape();
    const int64_t batch = query[0], groups = typeOf(op.getKey()).getDimSize(1);
    if (query[2] != 1 || groups == query[1] || groups == 0 || op.getCausal() || op.getDropout())
      return failure();
    const int64_t rows = query[1] / groups;
    auto reshaped = [&](Value value, ArrayRef<int64_t> shape) -> Value {
      auto type = RankedTensorType::get(shape, typeOf(value).getElementType());
      return ReshapeOp::create(rewriter, op.getLoc(), type, value);
    };
    IRMapping mapping;
    mapping.map(op.getQuery(), reshaped(op.getQuery(), {batch, groups, rows, query[3]}));
    if (Value mask = op.getMask(); mask && typeOf(mask).getDimSize(1) != 1) {
      ArrayRef<int64_t> shape = typeOf(mask).getShape();
      mapping.map(mask, reshaped(mask, {shape[0], groups, rows, shape[3]}));
    }
    auto grouped = cast<AttentionOp>(rewriter.clone(*op, mapping));
    RankedTensorType result = typeOf(op.getResult()), sums = typeOf(op.getLogsumexp());
    grouped.getResult().setType(
        RankedTensorType::get({batch, groups, rows, result.getDimSize(3)}, result.getElementType()));
    grouped.getLogsumexp().setType(RankedTensorType::get({batch, groups, rows}, sums.getElementType()));
    Value merged = reshaped(grouped.getResult(), result.getShape());
    rewriter.replaceOp(op, {merged, reshaped(grouped.getLogsumexp(), sums.getShape())});
    return success();
  }
};

} // namespace

void AttentionOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ShareRepeatedHeads, HeadsAsRows>(context);
}

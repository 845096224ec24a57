// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/Neuron/NeuronAttentionOps.h"

#include <cmath>

#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace mlir::neuron;

bool mlir::neuron::isStreamableAttention(int64_t depth, int64_t valueDepth, double scale) {
  return (depth <= 128 || (depth <= 256 && depth % 2 == 0)) && valueDepth <= 512 && scale > 1e-30 &&
         std::isfinite(scale);
}

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

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

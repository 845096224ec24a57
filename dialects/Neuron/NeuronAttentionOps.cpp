// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/Neuron/NeuronAttentionOps.h"

#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace mlir::neuron;

LogicalResult mlir::neuron::verifyAttentionOperands(Operation *op, RankedTensorType query, RankedTensorType key,
                                                    RankedTensorType value, Value mask, double scale) {
  ArrayRef<int64_t> q = query.getShape(), k = key.getShape(), v = value.getShape();
  if (k[0] != q[0] || k[3] != q[3] || v[0] != q[0] || v[1] != k[1] || v[2] != k[2])
    return op->emitOpError() << "expected key [" << q[0] << ", groups, keys, " << q[3]
                             << "] and value with the same batch, groups and keys but got " << key << " and " << value;
  if (k[1] == 0 || q[1] % k[1] != 0)
    return op->emitOpError() << "expected heads to be a multiple of groups but got " << q[1] << " and " << k[1];
  if (mask) {
    RankedTensorType type = cast<RankedTensorType>(mask.getType());
    bool fits = type.getRank() == 4 && type.getElementType().isF32() && type.getDimSize(3) == k[2];
    for (int64_t d = 0; fits && d < 3; ++d)
      fits = type.getDimSize(d) == 1 || type.getDimSize(d) == q[d];
    if (!fits)
      return op->emitOpError() << "expected a mask that repeats to [" << q[0] << ", " << q[1] << ", " << q[2] << ", "
                               << k[2] << "] of f32 but got " << type;
  }
  if (!(scale > 0))
    return op->emitOpError() << "expected a positive scale but got " << scale;
  return success();
}

LogicalResult AttentionBackwardOp::verify() {
  auto typeOf = [](Value value) { return cast<RankedTensorType>(value.getType()); };
  RankedTensorType query = typeOf(getQuery()), key = typeOf(getKey()), value = typeOf(getValue());
  for (auto [name, type] : {std::pair("query", query), std::pair("key", key), std::pair("value", value)})
    if (type.getRank() != 4 || !isa<FloatType>(type.getElementType()) ||
        type.getElementType() != query.getElementType())
      return emitOpError() << "expected " << name << " of rank 4 and one float type but got " << type;
  if (failed(verifyAttentionOperands(*this, query, key, value, getMask(), getScale().convertToDouble())))
    return failure();
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

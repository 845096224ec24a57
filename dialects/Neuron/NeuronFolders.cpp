// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Folders and canonicalisations. They keep the rounding of every intermediate element type: x + 0 and x * 1 fold only
// where the result is bit-identical for all inputs (signed zeros, NaN).

#include "mlir/IR/Matchers.h"

#include "dialects/Neuron/NeuronOps.h"

using namespace mlir;
using namespace mlir::neuron;

namespace {

ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

/// Splat value of a constant operand attribute.
std::optional<APFloat> floatSplat(Attribute attribute) {
  auto dense = dyn_cast_or_null<DenseElementsAttr>(attribute);
  if (!dense || !dense.isSplat() || !isa<FloatType>(dense.getElementType()))
    return std::nullopt;
  return dense.getSplatValue<APFloat>();
}

std::optional<APInt> intSplat(Attribute attribute) {
  auto dense = dyn_cast_or_null<DenseElementsAttr>(attribute);
  if (!dense || !dense.isSplat() || !isa<IntegerType>(dense.getElementType()))
    return std::nullopt;
  return dense.getSplatValue<APInt>();
}

bool isUnsignedElement(Type type) { return type.isInteger(1) || type.isUnsignedInteger(); }

/// One arithmetic step as the device does it: in f32, then rounded to the element type.
Attribute foldFloat(BinaryFunction function, RankedTensorType type, const APFloat &lhs, const APFloat &rhs) {
  float a = lhs.convertToDouble(), b = rhs.convertToDouble(), value;
  switch (function) {
  case BinaryFunction::Add:
    value = a + b;
    break;
  case BinaryFunction::Sub:
    value = a - b;
    break;
  case BinaryFunction::Mul:
    value = a * b;
    break;
  case BinaryFunction::Div:
    value = a / b;
    break;
  default:
    return {};
  }
  APFloat rounded(value);
  bool losesInfo;
  rounded.convert(cast<FloatType>(type.getElementType()).getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
  return DenseElementsAttr::get(type, rounded);
}

Attribute foldInt(BinaryFunction function, RankedTensorType type, const APInt &a, const APInt &b) {
  APInt value;
  bool isUnsigned = isUnsignedElement(type.getElementType());
  switch (function) {
  case BinaryFunction::Add:
    value = a + b;
    break;
  case BinaryFunction::Sub:
    value = a - b;
    break;
  case BinaryFunction::Mul:
    value = a * b;
    break;
  case BinaryFunction::Max:
    value = isUnsigned ? llvm::APIntOps::umax(a, b) : llvm::APIntOps::smax(a, b);
    break;
  case BinaryFunction::Min:
    value = isUnsigned ? llvm::APIntOps::umin(a, b) : llvm::APIntOps::smin(a, b);
    break;
  case BinaryFunction::And:
    value = a & b;
    break;
  case BinaryFunction::Or:
    value = a | b;
    break;
  case BinaryFunction::Xor:
    value = a ^ b;
    break;
  default:
    return {};
  }
  if (type.getElementType().isInteger(1) && function != BinaryFunction::And && function != BinaryFunction::Or &&
      function != BinaryFunction::Xor)
    return {};
  return DenseElementsAttr::get(type, value);
}

} // namespace

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

OpFoldResult UnaryOp::fold(FoldAdaptor adaptor) {
  auto type = cast<RankedTensorType>(getType());
  if (getFunction() == UnaryFunction::Copy && getOperand().getType() == type)
    return getOperand();
  if (std::optional<APFloat> operand = floatSplat(adaptor.getOperand())) {
    if (getFunction() == UnaryFunction::Neg) {
      operand->changeSign();
      return DenseElementsAttr::get(type, *operand);
    }
    if (getFunction() == UnaryFunction::Abs) {
      operand->clearSign();
      return DenseElementsAttr::get(type, *operand);
    }
  }
  return {};
}

OpFoldResult BinaryOp::fold(FoldAdaptor adaptor) {
  auto type = cast<RankedTensorType>(getType());
  std::optional<APFloat> lhs = floatSplat(adaptor.getLhs()), rhs = floatSplat(adaptor.getRhs());
  if (lhs && rhs)
    return foldFloat(getFunction(), type, *lhs, *rhs);
  std::optional<APInt> intLhs = intSplat(adaptor.getLhs()), intRhs = intSplat(adaptor.getRhs());
  if (intLhs && intRhs)
    return foldInt(getFunction(), type, *intLhs, *intRhs);
  bool sameType = getLhs().getType() == type;
  if (rhs && sameType) {
    bool isOne = rhs->isExactlyValue(1.0);
    if ((getFunction() == BinaryFunction::Mul || getFunction() == BinaryFunction::Div) && isOne)
      return getLhs();
    // x - (+0) and x + (-0) are x for every x; x + (+0) changes -0.
    if ((getFunction() == BinaryFunction::Sub && rhs->isPosZero()) ||
        (getFunction() == BinaryFunction::Add && rhs->isNegZero()))
      return getLhs();
  }
  if (intRhs && sameType) {
    if ((getFunction() == BinaryFunction::Add || getFunction() == BinaryFunction::Sub ||
         getFunction() == BinaryFunction::Or || getFunction() == BinaryFunction::Xor) &&
        intRhs->isZero())
      return getLhs();
    if (getFunction() == BinaryFunction::Mul && intRhs->isOne())
      return getLhs();
  }
  return {};
}

/// Constants to the right, so that later patterns look at one side only.
LogicalResult BinaryOp::canonicalize(BinaryOp op, PatternRewriter &rewriter) {
  switch (op.getFunction()) {
  case BinaryFunction::Add:
  case BinaryFunction::Mul:
  case BinaryFunction::Max:
  case BinaryFunction::Min:
  case BinaryFunction::And:
  case BinaryFunction::Or:
  case BinaryFunction::Xor:
    break;
  default:
    return failure();
  }
  auto isConstant = [](Value value) { return value.getDefiningOp<ConstantOp>() != nullptr; };
  if (!isConstant(op.getLhs()) || isConstant(op.getRhs()))
    return failure();
  rewriter.modifyOpInPlace(op, [&] {
    Value lhs = op.getLhs();
    op.getLhsMutable().assign(op.getRhs());
    op.getRhsMutable().assign(lhs);
  });
  return success();
}

OpFoldResult CastOp::fold(FoldAdaptor adaptor) {
  auto type = cast<RankedTensorType>(getType());
  if (getOperand().getType() == type)
    return getOperand();
  Type element = type.getElementType();
  if (std::optional<APFloat> value = floatSplat(adaptor.getOperand())) {
    if (auto target = dyn_cast<FloatType>(element)) {
      bool losesInfo;
      value->convert(target.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
      return DenseElementsAttr::get(type, *value);
    }
    if (element.isInteger(1))
      return DenseElementsAttr::get(type, !value->isZero());
    return {};
  }
  if (std::optional<APInt> value = intSplat(adaptor.getOperand())) {
    bool isUnsigned = isUnsignedElement(cast<RankedTensorType>(getOperand().getType()).getElementType());
    if (auto target = dyn_cast<FloatType>(element)) {
      APFloat converted(target.getFloatSemantics());
      converted.convertFromAPInt(*value, !isUnsigned, APFloat::rmNearestTiesToEven);
      return DenseElementsAttr::get(type, converted);
    }
    if (element.isInteger(1))
      return DenseElementsAttr::get(type, !value->isZero());
    unsigned width = element.getIntOrFloatBitWidth();
    return DenseElementsAttr::get(type, isUnsigned ? value->zextOrTrunc(width) : value->sextOrTrunc(width));
  }
  return {};
}

/// Float widening followed by a cast back to the original type changes nothing.
LogicalResult CastOp::canonicalize(CastOp op, PatternRewriter &rewriter) {
  auto inner = op.getOperand().getDefiningOp<CastOp>();
  if (!inner || inner.getOperand().getType() != op.getType())
    return failure();
  Type original = cast<RankedTensorType>(op.getType()).getElementType();
  Type wide = cast<RankedTensorType>(inner.getType()).getElementType();
  bool widens = wide.isF32() && (original.isF16() || original.isBF16());
  if (!widens && !(isa<IntegerType>(original) && isa<IntegerType>(wide) && !original.isUnsignedInteger() &&
                   !original.isInteger(1) && wide.getIntOrFloatBitWidth() > original.getIntOrFloatBitWidth()))
    return failure();
  rewriter.replaceOp(op, inner.getOperand());
  return success();
}

//===--------------------------------------------------------------------------------------------------------------===//
// Views
//===--------------------------------------------------------------------------------------------------------------===//

/// A splat stays a splat under every view.
static OpFoldResult foldSplatView(Attribute operand, Type result) {
  auto dense = dyn_cast_or_null<DenseElementsAttr>(operand);
  if (!dense || !dense.isSplat())
    return {};
  return dense.resizeSplat(cast<ShapedType>(result));
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  if (auto inner = getOperand().getDefiningOp<ReshapeOp>()) {
    getOperandMutable().assign(inner.getOperand());
    return getResult();
  }
  if (auto dense = dyn_cast_or_null<DenseElementsAttr>(adaptor.getOperand()))
    return dense.reshape(cast<ShapedType>(getType()));
  return {};
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  ArrayRef<int64_t> permutation = getPermutation();
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size())))
    return getOperand();
  if (auto inner = getOperand().getDefiningOp<TransposeOp>()) {
    SmallVector<int64_t> composed;
    for (int64_t d : permutation)
      composed.push_back(inner.getPermutation()[d]);
    getOperandMutable().assign(inner.getOperand());
    setPermutation(composed);
    return getResult();
  }
  return foldSplatView(adaptor.getOperand(), getType());
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  if (auto inner = getOperand().getDefiningOp<BroadcastOp>()) {
    getOperandMutable().assign(inner.getOperand());
    return getResult();
  }
  return foldSplatView(adaptor.getOperand(), getType());
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  bool identity = llvm::equal(shapeOf(getOperand()), shapeOf(getResult())) &&
                  llvm::all_of(getStarts(), [](int64_t s) { return s == 0; }) &&
                  llvm::all_of(getSteps(), [](int64_t s) { return s == 1; });
  if (identity)
    return getOperand();
  if (auto inner = getOperand().getDefiningOp<SliceOp>()) {
    SmallVector<int64_t> starts, steps;
    for (size_t d = 0; d < getStarts().size(); ++d) {
      starts.push_back(inner.getStarts()[d] + getStarts()[d] * inner.getSteps()[d]);
      steps.push_back(getSteps()[d] * inner.getSteps()[d]);
    }
    getOperandMutable().assign(inner.getOperand());
    setStarts(starts);
    setSteps(steps);
    return getResult();
  }
  return foldSplatView(adaptor.getOperand(), getType());
}

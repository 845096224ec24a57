// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Local rewrites by the greedy driver; each makes its operation smaller or cheaper, so that the driver ends. Linear in
// the number of operations.

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include "dialects/Neuron/NeuronViews.h"
#include "passes/Graph/Passes.h"

namespace mlir::neuron {
#define GEN_PASS_DEF_SIMPLIFYGRAPHPASS
#include "passes/Graph/Passes.h.inc"
} // namespace mlir::neuron

using namespace mlir;
using namespace mlir::neuron;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

//===--------------------------------------------------------------------------------------------------------------===//
// Broadcasts
//===--------------------------------------------------------------------------------------------------------------===//

/// Elementwise operations repeat dimensions of size 1 themselves.
struct DropOperandBroadcast : RewritePattern {
  explicit DropOperandBroadcast(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isElementwise(op))
      return failure();
    bool changed = false;
    for (OpOperand &operand : op->getOpOperands())
      if (auto broadcast = operand.get().getDefiningOp<BroadcastOp>()) {
        rewriter.modifyOpInPlace(op, [&] { operand.set(broadcast.getOperand()); });
        changed = true;
      }
    return success(changed);
  }
};

/// A dimension that every operand repeats is repeated after the operation instead.
struct SinkBroadcast : RewritePattern {
  explicit SinkBroadcast(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isElementwise(op))
      return failure();
    RankedTensorType type = typeOf(op->getResult(0));
    SmallVector<int64_t> small(type.getRank(), 1);
    for (Value operand : op->getOperands())
      for (auto [d, size] : llvm::enumerate(typeOf(operand).getShape()))
        if (size != 1)
          small[d] = size;
    if (type.getShape() == ArrayRef<int64_t>(small))
      return failure();
    Operation *computed = rewriter.clone(*op);
    computed->getResult(0).setType(type.clone(small));
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, type, computed->getResult(0));
    return success();
  }
};

//===--------------------------------------------------------------------------------------------------------------===//
// Arithmetic
//===--------------------------------------------------------------------------------------------------------------===//

struct MultiplyBySelf : OpRewritePattern<BinaryOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BinaryOp op, PatternRewriter &rewriter) const override {
    if (op.getFunction() != BinaryFunction::Mul || op.getLhs() != op.getRhs() ||
        typeOf(op.getResult()).getElementType().isInteger(1))
      return failure();
    rewriter.replaceOpWithNewOp<UnaryOp>(op, op.getType(), UnaryFunction::Square, op.getLhs());
    return success();
  }
};

/// Only when the reciprocal is exact: a power of two whose reciprocal is a normal number.
struct DivideByPowerOfTwo : OpRewritePattern<BinaryOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BinaryOp op, PatternRewriter &rewriter) const override {
    auto constant = op.getRhs().getDefiningOp<ConstantOp>();
    auto element = dyn_cast<FloatType>(typeOf(op.getResult()).getElementType());
    if (op.getFunction() != BinaryFunction::Div || !constant || !element)
      return failure();
    auto value = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!value || !value.isSplat())
      return failure();
    APFloat inverse(element.getFloatSemantics());
    if (!value.getSplatValue<APFloat>().getExactInverse(&inverse))
      return failure();
    Value factor = ConstantOp::create(rewriter, constant.getLoc(), constant.getType(),
                                      cast<ElementsAttr>(DenseElementsAttr::get(value.getType(), inverse)));
    rewriter.replaceOpWithNewOp<BinaryOp>(op, op.getType(), BinaryFunction::Mul, op.getLhs(), factor);
    return success();
  }
};

//===--------------------------------------------------------------------------------------------------------------===//
// Conversions
//===--------------------------------------------------------------------------------------------------------------===//

/// Every value of `from` is a value of `to`.
bool isLossless(Type from, Type to) {
  if (from.isInteger(1))
    return true;
  if (isa<FloatType>(from) && isa<FloatType>(to))
    return to.isF32() || from == to;
  if (!isa<IntegerType>(from))
    return false;
  unsigned digits = from.getIntOrFloatBitWidth() - !from.isUnsignedInteger();
  if (auto floating = dyn_cast<FloatType>(to))
    return digits <= APFloat::semanticsPrecision(floating.getFloatSemantics());
  if (to.isInteger(1) || (to.isUnsignedInteger() && !from.isUnsignedInteger()))
    return false;
  return digits <= to.getIntOrFloatBitWidth() - !to.isUnsignedInteger();
}

/// A conversion that loses nothing does not matter to the next one.
struct FoldCastOfCast : OpRewritePattern<CastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CastOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getOperand().getDefiningOp<CastOp>();
    if (!inner || typeOf(inner.getOperand()).getShape() != typeOf(op.getResult()).getShape())
      return failure();
    Type from = typeOf(inner.getOperand()).getElementType(), middle = typeOf(inner.getResult()).getElementType();
    Type to = typeOf(op.getResult()).getElementType();
    // An integer that reaches a float by way of another integer type rounds once either way.
    if (!isLossless(from, middle))
      return failure();
    // float -> wider float -> integer truncates the same value; integer -> float -> integer is a plain integer
    // conversion only where the integer types themselves agree on range.
    bool throughFloat = isa<IntegerType>(from) && isa<FloatType>(middle) && isa<IntegerType>(to);
    if (throughFloat && !isLossless(from, to))
      return failure();
    if (from == to)
      rewriter.replaceOp(op, inner.getOperand());
    else
      rewriter.replaceOpWithNewOp<CastOp>(op, op.getType(), inner.getOperand());
    return success();
  }
};

/// bool -> number -> (!= 0) is the bool itself.
struct FoldTruthOfBool : OpRewritePattern<CompareOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CompareOp op, PatternRewriter &rewriter) const override {
    auto cast = op.getLhs().getDefiningOp<CastOp>();
    std::optional<double> zero = getSplatConstant(op.getRhs());
    if (op.getPredicate() != ComparePredicate::Ne || !cast || !zero || *zero != 0 ||
        cast.getOperand().getType() != op.getType())
      return failure();
    rewriter.replaceOp(op, cast.getOperand());
    return success();
  }
};

//===--------------------------------------------------------------------------------------------------------------===//
// Index numbers
//===--------------------------------------------------------------------------------------------------------------===//

/// Part of a sequence is a sequence, found as an address is: by start and steps.
struct FoldViewOfIota : RewritePattern {
  explicit FoldViewOfIota(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    // A broadcast repeats numbers that need not be made more than once.
    if (!isView(op) || isa<BroadcastOp>(op))
      return failure();
    auto iota = op->getOperand(0).getDefiningOp<IotaOp>();
    if (!iota)
      return failure();
    StridedLayout numbers{static_cast<int64_t>(iota.getOffset()), SmallVector<int64_t>(iota.getType().getShape()),
                          SmallVector<int64_t>(iota.getSteps())};
    std::optional<StridedLayout> part = applyView(op, numbers);
    if (!part || part->numElements() == 0)
      return failure();
    rewriter.replaceOpWithNewOp<IotaOp>(op, op->getResult(0).getType(), part->offset, part->strides);
    return success();
  }
};

//===--------------------------------------------------------------------------------------------------------------===//
// Assembly
//===--------------------------------------------------------------------------------------------------------------===//

struct InsertOfEverything : OpRewritePattern<InsertOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(InsertOp op, PatternRewriter &rewriter) const override {
    if (op.getSource().getType() != op.getType() || llvm::any_of(op.getSteps(), [](int64_t step) { return step != 1; }))
      return failure();
    rewriter.replaceOp(op, op.getSource());
    return success();
  }
};

struct ConcatWithoutEmptyParts : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op, PatternRewriter &rewriter) const override {
    SmallVector<Value> parts;
    for (Value value : op.getOperands())
      if (typeOf(value).getDimSize(op.getDim()) != 0)
        parts.push_back(value);
    if (parts.size() == 1 && parts.front().getType() == op.getType()) {
      rewriter.replaceOp(op, parts.front());
      return success();
    }
    if (parts.empty() || parts.size() == op.getNumOperands())
      return failure();
    rewriter.replaceOpWithNewOp<ConcatOp>(op, op.getType(), parts, op.getDim());
    return success();
  }
};

struct SimplifyGraphPass : neuron::impl::SimplifyGraphPassBase<SimplifyGraphPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<DropOperandBroadcast, SinkBroadcast, MultiplyBySelf, DivideByPowerOfTwo, FoldCastOfCast,
                 FoldTruthOfBool, FoldViewOfIota, InsertOfEverything, ConcatWithoutEmptyParts>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Local rewrites by the greedy driver; each makes its operation smaller or cheaper, so that the driver ends. Linear in
// the number of operations.

#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include "dialects/Neuron/NeuronAttentionOps.h"
#include "dialects/Neuron/NeuronIndexingOps.h"
#include "dialects/Neuron/NeuronViews.h"
#include "passes/Graph/Passes.h"

namespace mlir::neuron {
#define GEN_PASS_DEF_SIMPLIFYGRAPHPASS
#include "passes/Graph/Passes.h.inc"
} // namespace mlir::neuron

using namespace mlir;
using namespace mlir::neuron;

namespace {

/// A value is small against another one with at least this many times the elements.
constexpr int64_t kSmall = 4;
/// Operations on more joined values than this stay as they are.
constexpr unsigned kMaxParts = 4;
/// Operations between a value and the memory its parts are taken from.
constexpr unsigned kMaxDepth = 32;

/// The result of an elementwise operation on operands of another shape.
Value computeAs(PatternRewriter &rewriter, Operation *op, ArrayRef<int64_t> shape, IRMapping mapping = {}) {
  Value result = rewriter.clone(*op, mapping)->getResult(0);
  result.setType(typeOf(result).clone(shape));
  return result;
}

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
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, type, computeAs(rewriter, op, small));
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

/// Where a part [start, start + size) of a dimension of a tensor is taken from.
struct Part {
  int64_t dim = 0, start = 0, size = 0;
};

/// The dimension of a reshape's operand that becomes dimension `dim`, or -1 if there is none.
int64_t dimBeforeReshape(ReshapeOp reshape, int64_t dim) {
  ArrayRef<int64_t> after = typeOf(reshape.getResult()).getShape(), before = typeOf(reshape.getOperand()).getShape();
  int64_t inner = 1, reached = 1;
  for (int64_t size : after.drop_front(dim + 1))
    inner *= size;
  for (int64_t d = before.size() - 1; d >= 0 && reached <= inner; reached *= before[d--])
    if (reached == inner && before[d] == after[dim])
      return d;
  return -1;
}

/// Part of a value, where taking it costs no more than what uses it: the value is in memory anyway, small against
/// `elements`, or computed for this use alone from such values.
bool isPartCheap(Value value, int64_t dim, int64_t elements, unsigned depth = 0) {
  RankedTensorType type = typeOf(value);
  Operation *definition = value.getDefiningOp();
  if (type.getDimSize(dim) == 1 || !definition || type.getNumElements() * kSmall <= elements)
    return true;
  if (auto constant = dyn_cast<ConstantOp>(definition))
    return isa<SplatElementsAttr>(constant.getValue());
  if (depth > kMaxDepth)
    return false;
  if (auto reshape = dyn_cast<ReshapeOp>(definition))
    if (int64_t before = dimBeforeReshape(reshape, dim); before >= 0)
      return isPartCheap(reshape.getOperand(), before, elements, depth + 1);
  if (isElementwise(definition))
    return value.hasOneUse() && llvm::all_of(definition->getOperands(), [&](Value operand) {
             return isPartCheap(operand, dim, elements, depth + 1);
           });
  Operation *source = viewSource(value).getDefiningOp();
  return !source || isa<ContractOp, AttentionOp, GatherOp, ConcatOp>(source);
}

Value partOf(PatternRewriter &rewriter, Value value, Part part) {
  RankedTensorType type = typeOf(value);
  if (type.getDimSize(part.dim) == 1)
    return value;
  SmallVector<int64_t> shape(type.getShape());
  shape[part.dim] = part.size;
  RankedTensorType partType = type.clone(shape);
  Operation *definition = value.getDefiningOp();
  if (auto constant = dyn_cast_or_null<ConstantOp>(definition))
    if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
      return ConstantOp::create(rewriter, value.getLoc(), partType, cast<ElementsAttr>(splat.resizeSplat(partType)));
  if (auto concat = dyn_cast_or_null<ConcatOp>(definition);
      concat && static_cast<int64_t>(concat.getDim()) == part.dim) {
    int64_t start = 0;
    for (Value operand : concat.getOperands()) {
      int64_t size = typeOf(operand).getDimSize(part.dim);
      if (start == part.start && size == part.size)
        return operand;
      start += size;
    }
  }
  if (auto reshape = dyn_cast_or_null<ReshapeOp>(definition))
    if (int64_t before = dimBeforeReshape(reshape, part.dim); before >= 0)
      return ReshapeOp::create(rewriter, value.getLoc(), partType,
                               partOf(rewriter, reshape.getOperand(), {before, part.start, part.size}));
  if (definition && isElementwise(definition) && value.hasOneUse()) {
    IRMapping mapping;
    for (Value operand : definition->getOperands())
      mapping.map(operand, partOf(rewriter, operand, part));
    return computeAs(rewriter, definition, shape, mapping);
  }
  SmallVector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1);
  starts[part.dim] = part.start;
  return SliceOp::create(rewriter, value.getLoc(), partType, value, starts, steps);
}

/// An element-wise operation on joined values is one on each of them, joined afterwards: what is computed can be stored
/// where it belongs, what is only moved can not.
struct SinkConcat : RewritePattern {
  explicit SinkConcat(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isElementwise(op))
      return failure();
    RankedTensorType type = typeOf(op->getResult(0));
    ConcatOp concat;
    for (Value operand : op->getOperands())
      if (auto found = operand.getDefiningOp<ConcatOp>(); found && operand.hasOneUse() &&
                                                          found.getNumOperands() <= kMaxParts &&
                                                          typeOf(operand).getShape() == type.getShape())
        concat = found;
    if (!concat || type.getNumElements() == 0)
      return failure();
    const int64_t dim = concat.getDim();
    for (Value operand : op->getOperands())
      if (operand != concat.getResult() && !isPartCheap(operand, dim, type.getNumElements()))
        return failure();
    SmallVector<Value> parts;
    int64_t start = 0;
    for (Value joined : concat.getOperands()) {
      const Part part{dim, start, typeOf(joined).getDimSize(dim)};
      start += part.size;
      IRMapping mapping;
      for (Value operand : op->getOperands())
        mapping.map(operand, operand == concat.getResult() ? joined : partOf(rewriter, operand, part));
      SmallVector<int64_t> shape(type.getShape());
      shape[dim] = part.size;
      parts.push_back(computeAs(rewriter, op, shape, mapping));
    }
    rewriter.replaceOpWithNewOp<ConcatOp>(op, type, parts, dim);
    return success();
  }
};

struct SimplifyGraphPass : neuron::impl::SimplifyGraphPassBase<SimplifyGraphPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<DropOperandBroadcast, SinkBroadcast, MultiplyBySelf, DivideByPowerOfTwo, FoldCastOfCast,
                 FoldTruthOfBool, FoldViewOfIota, InsertOfEverything, ConcatWithoutEmptyParts, SinkConcat>(
        &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

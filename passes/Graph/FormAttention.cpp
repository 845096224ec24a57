// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention that a program spells out. The match starts at the product with the values and walks back through the
// softmax to the product of queries and keys. What lies in between (the interior) may only be used there; rows stay in
// their order all the way, so that interior values differ in shape only by how leading dimensions are split.

#include <cmath>

#include "dialects/Neuron/NeuronAttentionOps.h"
#include "dialects/Neuron/NeuronViews.h"
#include "passes/Graph/MaskAnalysis.h"
#include "passes/Graph/Passes.h"

namespace mlir::neuron {
#define GEN_PASS_DEF_FORMATTENTIONPASS
#include "passes/Graph/Passes.h.inc"
} // namespace mlir::neuron

using namespace mlir;
using namespace mlir::neuron;

namespace {

/// A score of this or less has no weight beside one that is not as low, and no score that is added to it changes it.
constexpr double kLow = -1e30;
/// Operations between the two products; programs have far fewer.
constexpr unsigned kMostInterior = 64;

Type elementOf(Value value) { return typeOf(value).getElementType(); }
ArrayRef<int64_t> shapeOf(Value value) { return typeOf(value).getShape(); }
bool isFloat(Value value) { return isa<FloatType>(elementOf(value)); }

/// How many leading dimensions of `shape` have `elements` elements together.
std::optional<size_t> prefixOf(ArrayRef<int64_t> shape, int64_t elements) {
  for (size_t count = 0; count <= shape.size(); ++count)
    if (ShapedType::getNumElements(shape.take_front(count)) == elements)
      return count;
  return std::nullopt;
}

/// What changes scores besides a factor.
struct Term {
  /// Added to the scores, or a bool that says where they are replaced by `fill`.
  Value value;
  double factor = 1; // of what is added
  std::optional<double> fill;
  bool replacesWhereTrue = false;
  /// The shape of the scores there.
  SmallVector<int64_t> shape;
};

struct Match {
  ContractOp scores, output;
  double scale = 1;
  SmallVector<Term> terms; // from the softmax to the scores
  bool causal = false;
  llvm::SmallSetVector<Operation *, 16> interior;
};

//===--------------------------------------------------------------------------------------------------------------===//
// Matching
//===--------------------------------------------------------------------------------------------------------------===//

class Matcher {
public:
  static std::optional<Match> match(ContractOp output) {
    Matcher matcher;
    matcher.result.output = output;
    Value input = matcher.throughSoftmax(output.getLhs());
    if (!input || !matcher.throughScores(input, 1) || !matcher.isPrivate() || !matcher.fits())
      return std::nullopt;
    return matcher.result;
  }

private:
  bool enter(Operation *op) {
    result.interior.insert(op);
    return result.interior.size() <= kMostInterior;
  }

  /// The operand of a conversion between float types, or of a view that keeps elements in their order; else null.
  Value beforeRearrangement(Operation *op) {
    if (auto cast = dyn_cast<CastOp>(op))
      return isFloat(cast.getOperand()) && isFloat(cast.getResult()) ? cast.getOperand() : Value();
    if (!isa<ReshapeOp, TransposeOp>(op))
      return {};
    std::optional<StridedLayout> layout = applyView(op, StridedLayout::contiguous(shapeOf(op->getOperand(0))));
    return layout && layout->isContiguous() ? op->getOperand(0) : Value();
  }

  /// The value before conversions between float types.
  Value withoutCasts(Value value) {
    while (auto cast = value.getDefiningOp<CastOp>()) {
      if (!isFloat(cast.getOperand()))
        break;
      enter(cast);
      value = cast.getOperand();
    }
    return value;
  }

  ReduceOp rowReduction(Value value, ReduceKind kind) {
    auto reduce = withoutCasts(value).getDefiningOp<ReduceOp>();
    if (!reduce || reduce.getKind() != kind || reduce.getDims().size() != 1 ||
        reduce.getDims()[0] != typeOf(reduce.getOperand()).getRank() - 1)
      return {};
    enter(reduce);
    return reduce;
  }

  /// What the softmax is of; null when `weights` are none.
  Value throughSoftmax(Value weights) {
    Operation *op = weights.getDefiningOp();
    while (op && !isa<BinaryOp>(op)) {
      Value before = beforeRearrangement(op);
      if (!before || !enter(op))
        return {};
      op = before.getDefiningOp();
    }
    auto quotient = dyn_cast_or_null<BinaryOp>(op);
    if (!quotient || quotient.getFunction() != BinaryFunction::Div)
      return {};
    enter(quotient);
    auto exponential = withoutCasts(quotient.getLhs()).getDefiningOp<UnaryOp>();
    ReduceOp sum = rowReduction(quotient.getRhs(), ReduceKind::Sum);
    if (!sum || !exponential || exponential.getFunction() != UnaryFunction::Exp ||
        withoutCasts(sum.getOperand()) != exponential.getResult())
      return {};
    enter(exponential);
    auto difference = withoutCasts(exponential.getOperand()).getDefiningOp<BinaryOp>();
    if (!difference || difference.getFunction() != BinaryFunction::Sub)
      return {};
    enter(difference);
    ReduceOp largest = rowReduction(difference.getRhs(), ReduceKind::Max);
    Value input = withoutCasts(difference.getLhs());
    if (!largest || withoutCasts(largest.getOperand()) != input || shapeOf(input) != shapeOf(quotient.getResult()))
      return {};
    keys = shapeOf(input).back();
    return input;
  }

  /// Walks from `value`, which is multiplied by `factor` before the softmax, to the product of queries and keys.
  bool throughScores(Value value, double factor) {
    Operation *op = value.getDefiningOp();
    if (!op || !isFloat(value) || !enter(op))
      return false;
    if (auto contract = dyn_cast<ContractOp>(op)) {
      result.scores = contract;
      result.scale = factor;
      return true;
    }
    if (Value before = beforeRearrangement(op))
      return throughScores(before, factor);
    if (auto select = dyn_cast<SelectOp>(op))
      return throughSelect(select, factor);
    auto binary = dyn_cast<BinaryOp>(op);
    if (!binary)
      return false;
    Value lhs = binary.getLhs(), rhs = binary.getRhs();
    std::optional<double> left = getSplatConstant(lhs), right = getSplatConstant(rhs);
    switch (binary.getFunction()) {
    case BinaryFunction::Mul:
      return (right && isWhole(lhs, value) && throughScores(lhs, factor * *right)) ||
             (left && isWhole(rhs, value) && throughScores(rhs, factor * *left));
    case BinaryFunction::Div:
      return right && *right != 0 && isWhole(lhs, value) && throughScores(lhs, factor / *right);
    case BinaryFunction::Add:
      return throughSum(lhs, rhs, factor, factor) || throughSum(rhs, lhs, factor, factor);
    case BinaryFunction::Sub:
      return throughSum(lhs, rhs, factor, -factor);
    default:
      return false;
    }
  }

  static bool isWhole(Value operand, Value value) { return shapeOf(operand) == shapeOf(value); }

  bool throughSum(Value scores, Value added, double factor, double factorOfAdded) {
    auto shape = llvm::to_vector(shapeOf(scores));
    for (auto [d, size] : llvm::enumerate(shapeOf(added)))
      if (size > shape[d])
        return false;
    Match before = result;
    result.terms.push_back({added, factorOfAdded, std::nullopt, false, shape});
    if (throughScores(scores, factor))
      return true;
    result = std::move(before);
    return false;
  }

  bool throughSelect(SelectOp select, double factor) {
    for (bool whereTrue : {true, false}) {
      Value kept = whereTrue ? select.getOnFalse() : select.getOnTrue();
      std::optional<double> fill = getSplatConstant(whereTrue ? select.getOnTrue() : select.getOnFalse());
      if (!fill || std::isnan(*fill) || !isWhole(kept, select.getResult()))
        continue;
      result.terms.push_back({select.getCondition(), 1, *fill * factor, whereTrue, llvm::to_vector(shapeOf(kept))});
      return throughScores(kept, factor);
    }
    return false;
  }

  /// Nobody else looks at scores or weights.
  bool isPrivate() {
    return llvm::all_of(result.interior, [&](Operation *op) {
      return llvm::all_of(op->getUsers(), [&](Operation *user) {
        return user == result.output.getOperation() || result.interior.contains(user);
      });
    });
  }

  bool fits() {
    RankedTensorType scores = result.scores.getType(), weights = typeOf(result.output.getLhs());
    Type element = elementOf(result.output.getRhs());
    if (!(element.isF32() || element.isF16() || element.isBF16()) || weights.getShape() != scores.getShape() ||
        scores.getDimSize(2) != keys || elementOf(result.output.getResult()) != element ||
        llvm::is_contained(scores.getShape(), 0))
      return false;
    for (const Term &term : result.terms)
      if (term.shape.back() != keys)
        return false;
    int64_t depth = shapeOf(result.scores.getLhs())[2], valueDepth = shapeOf(result.output.getRhs())[2];
    return depth > 0 && valueDepth > 0 && isStreamableAttention(depth, valueDepth, result.scale);
  }

  Match result;
  int64_t keys = 0;
};

//===--------------------------------------------------------------------------------------------------------------===//
// Rewriting
//===--------------------------------------------------------------------------------------------------------------===//

class Rewriter {
public:
  explicit Rewriter(Match &match) : match(match), b(match.output), loc(match.output.getLoc()) {
    ArrayRef<int64_t> scores = shapeOf(match.scores.getResult());
    all = scores[0];
    rows = scores[1];
    keys = scores[2];
  }

  bool run() {
    Type element = elementOf(match.output.getRhs());
    Value query = operandOf(match.scores.getLhs(), element), key = operandOf(match.scores.getRhs(), element);
    if (!query || !key || !simplifyTerms())
      return false;
    Value value = match.output.getRhs();
    int64_t shared = 1;
    if (auto [lessKey, ofKey] = withoutRepeats(key); lessKey)
      if (auto [lessValue, ofValue] = withoutRepeats(value); lessValue && ofKey == ofValue) {
        shared = ofKey;
        key = lessKey;
        value = lessValue;
      }
    batch = chooseBatch(query, shared);
    Value mask;
    std::optional<double> fill;
    if (!makeMask(mask, fill))
      return false;
    int64_t heads = all / batch, groups = heads / shared;
    Value q = byHead(query, heads, false), k = byHead(key, groups, true), v = byHead(value, groups, false);
    auto type = RankedTensorType::get({batch, heads, rows, shapeOf(value)[2]}, element);
    auto attention =
        AttentionOp::create(b, loc, type, RankedTensorType::get({batch, heads, rows}, b.getF32Type()), q, k, v, mask,
                            /*state=*/Value(), /*index=*/Value(), b.getF64FloatAttr(match.scale),
                            fill ? b.getF64FloatAttr(*fill) : FloatAttr(), /*dropout=*/FloatAttr(),
                            match.causal ? b.getUnitAttr() : UnitAttr(), /*strict=*/b.getUnitAttr());
    match.output.getResult().replaceAllUsesWith(reshape(attention.getResult(), shapeOf(match.output.getResult())));
    match.output.erase();
    return true;
  }

private:
  Value reshape(Value value, ArrayRef<int64_t> shape) {
    if (shapeOf(value) == shape)
      return value;
    if (auto before = value.getDefiningOp<ReshapeOp>())
      value = before.getOperand();
    if (shapeOf(value) == shape)
      return value;
    return ReshapeOp::create(b, loc, typeOf(value).clone(shape), value);
  }

  /// A chain of views from `source`, once more from `from`.
  Value again(ArrayRef<Operation *> chain, Value from) {
    for (Operation *view : llvm::reverse(chain)) {
      IRMapping mapping;
      mapping.map(view->getOperand(0), from);
      Operation *copy = b.clone(*view, mapping);
      copy->getResult(0).setType(RankedTensorType::get(shapeOf(view->getResult(0)), elementOf(from)));
      from = copy->getResult(0);
    }
    return from;
  }

  /// An operand of the first product in the type that the second has; null when that would round it. (The product of
  /// 16-bit numbers that were widened is that of the numbers themselves.)
  Value operandOf(Value value, Type element) {
    if (elementOf(value) == element)
      return value;
    SmallVector<Operation *> chain;
    while (value.getDefiningOp() && isView(value.getDefiningOp())) {
      chain.push_back(value.getDefiningOp());
      value = chain.back()->getOperand(0);
    }
    auto cast = value.getDefiningOp<CastOp>();
    if (!cast || elementOf(cast.getOperand()) != element || !elementOf(value).isF32())
      return {};
    return again(chain, cast.getOperand());
  }

  //===------------------------------------------------------------------------------------------------------------===//
  // Heads that share keys and values
  //===------------------------------------------------------------------------------------------------------------===//

  /// `value` [heads, ...] without a broadcast that repeats each of its leading indices, and how often it does; null if
  /// there is none.
  std::pair<Value, int64_t> withoutRepeats(Value value) {
    SmallVector<Operation *> chain;
    while (isa_and_nonnull<ReshapeOp, TransposeOp>(value.getDefiningOp())) {
      chain.push_back(value.getDefiningOp());
      value = chain.back()->getOperand(0);
    }
    auto broadcast = value.getDefiningOp<BroadcastOp>();
    if (!broadcast)
      return {};
    auto shape = llvm::to_vector(shapeOf(broadcast.getOperand()));
    int64_t dim = -1, repeats = 1; // `dim` has the repeated index as its innermost factor
    for (auto [d, size] : llvm::enumerate(shapeOf(value)))
      if (size != shape[d]) {
        if (dim >= 0)
          return {};
        dim = static_cast<int64_t>(d);
        repeats = size;
      }
    if (dim < 0)
      return {};
    struct Less {
      Operation *view;
      SmallVector<int64_t> shape;
    };
    SmallVector<Less> less;
    for (Operation *view : llvm::reverse(chain)) {
      ArrayRef<int64_t> from = shapeOf(view->getOperand(0)), to = shapeOf(view->getResult(0));
      if (auto transpose = dyn_cast<TransposeOp>(view)) {
        dim = llvm::find(transpose.getPermutation(), dim) - transpose.getPermutation().begin();
      } else {
        // The dimension with as many elements after it.
        int64_t after = ShapedType::getNumElements(from.drop_front(dim + 1)), next = -1;
        for (int64_t d = static_cast<int64_t>(to.size()); d-- > 0 && next < 0;)
          if (ShapedType::getNumElements(to.drop_front(d + 1)) == after && to[d] % repeats == 0)
            next = d;
        if (next < 0)
          return {};
        dim = next;
      }
      auto smaller = llvm::to_vector(to);
      smaller[dim] /= repeats;
      less.push_back({view, smaller});
    }
    if (dim != 0)
      return {};
    Value from = broadcast.getOperand();
    for (const Less &step : less) {
      auto type = RankedTensorType::get(step.shape, elementOf(from));
      from = isa<ReshapeOp>(step.view)
                 ? ReshapeOp::create(b, loc, type, from).getResult()
                 : TransposeOp::create(b, loc, type, from, cast<TransposeOp>(step.view).getPermutation()).getResult();
    }
    return {from, repeats};
  }

  //===------------------------------------------------------------------------------------------------------------===//
  // Batch and heads
  //===------------------------------------------------------------------------------------------------------------===//

  /// The leading dimension of the scores where a mask meets them, or of the queries: so that masks and operands need no
  /// copies.
  int64_t chooseBatch(Value query, int64_t shared) {
    auto accept = [&](ArrayRef<int64_t> shape) -> int64_t {
      std::optional<size_t> prefix = prefixOf(shape, all);
      return prefix && *prefix >= 2 && (all / shape[0]) % shared == 0 ? shape[0] : 0;
    };
    for (const Term &term : match.terms)
      if (int64_t size = accept(term.shape))
        return size;
    if (auto before = query.getDefiningOp<ReshapeOp>())
      if (int64_t size = accept(shapeOf(before.getOperand())))
        return size;
    return 1;
  }

  /// [heads of all batches, rows, columns] as [batch, heads, rows, columns], with the last two exchanged for `turned`.
  Value byHead(Value value, int64_t heads, bool turned) {
    auto last = llvm::to_vector(shapeOf(value).take_back(2));
    if (auto before = value.getDefiningOp<ReshapeOp>())
      if (typeOf(before.getOperand()).getRank() > 2 && shapeOf(before.getOperand()).take_back(2) == ArrayRef(last))
        value = before.getOperand();
    if (turned) {
      auto permutation = llvm::to_vector(llvm::seq<int64_t>(typeOf(value).getRank()));
      std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
      auto before = value.getDefiningOp<TransposeOp>();
      if (before && before.getPermutation() == ArrayRef(permutation)) {
        value = before.getOperand();
      } else {
        auto shape = llvm::to_vector(shapeOf(value));
        std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
        value = TransposeOp::create(b, loc, typeOf(value).clone(shape), value, permutation);
      }
      std::swap(last[0], last[1]);
    }
    return reshape(value, {batch, heads, last[0], last[1]});
  }

  //===------------------------------------------------------------------------------------------------------------===//
  // Masks
  //===------------------------------------------------------------------------------------------------------------===//

  /// Takes causal masks and what changes nothing out of the terms; false when something is left that a mask cannot say.
  bool simplifyTerms() {
    SmallVector<Term> left;
    struct Causal {
      Term term;
      double hidden;
    };
    SmallVector<Causal> candidates;
    for (Term &term : match.terms) {
      std::optional<Step> step = findStep(term.value);
      // What a score becomes: a replacement, or a number that is added.
      auto added = [&](double value) {
        if (!term.fill)
          return value == 0 ? 0 : value * term.factor;
        return (value != 0) == term.replacesWhereTrue ? *term.fill : 0;
      };
      if (step && step->isConstant() && added(step->inside) == 0)
        continue;
      bool meetsRows = term.shape.size() >= 2 && term.shape[term.shape.size() - 2] == rows;
      if (step && meetsRows && !step->isConstant() && step->bound == 0 && added(step->inside) == 0 &&
          added(step->outside) <= kLow) {
        candidates.push_back({term, added(step->outside)});
        continue;
      }
      left.push_back(term);
    }
    // A row always sees its first key, unless another mask hides that: then finite numbers matter.
    for (const Causal &candidate : candidates) {
      bool alone = left.empty() && candidates.size() == 1;
      if (alone || std::isinf(candidate.hidden))
        match.causal = true;
      else
        left.push_back(candidate.term);
    }
    match.terms = std::move(left);
    size_t choices = llvm::count_if(match.terms, [](const Term &term) { return term.fill.has_value(); });
    if (choices == match.terms.size() &&
        llvm::all_of(match.terms, [&](const Term &term) { return *term.fill == *match.terms[0].fill; }))
      return true;
    return llvm::all_of(match.terms, [](const Term &term) { return !term.fill || *term.fill <= kLow; });
  }

  /// [1 or batch, 1 or heads, 1 or rows, keys]
  Value byHead(const Term &term) {
    ArrayRef<int64_t> full = term.shape, own = shapeOf(term.value);
    std::optional<size_t> batches = prefixOf(full, batch), heads = prefixOf(full, all);
    auto repeated = llvm::to_vector(own);
    repeated.back() = keys;
    SmallVector<int64_t> target;
    bool splits = batches && heads && *batches <= *heads && *heads < full.size();
    if (splits) {
      size_t ends[] = {*batches, *heads, full.size() - 1}, start = 0;
      for (size_t end : ends) {
        ArrayRef<int64_t> mine = own.slice(start, end - start), whole = full.slice(start, end - start);
        bool isOnce = llvm::all_of(mine, [](int64_t size) { return size == 1; });
        if (!isOnce)
          llvm::copy(whole, repeated.begin() + start);
        target.push_back(isOnce ? 1 : ShapedType::getNumElements(whole));
        start = end;
      }
      target.push_back(keys);
    } else {
      repeated = llvm::to_vector(full);
      target = {batch, all / batch, rows, keys};
    }
    Value value = term.value;
    if (ArrayRef(repeated) != own)
      value = BroadcastOp::create(b, loc, typeOf(value).clone(repeated), value);
    return reshape(value, target);
  }

  RankedTensorType common(Value lhs, Value rhs) {
    auto shape = llvm::to_vector(shapeOf(lhs));
    for (auto [d, size] : llvm::enumerate(shapeOf(rhs)))
      shape[d] = std::max(shape[d], size);
    return RankedTensorType::get(shape, elementOf(lhs));
  }

  Value constant(double value) {
    return ConstantOp::create(b, loc, RankedTensorType::get({1, 1, 1, 1}, b.getF32Type()), value);
  }

  bool makeMask(Value &mask, std::optional<double> &fill) {
    bool choices = llvm::all_of(match.terms, [](const Term &term) { return term.fill.has_value(); });
    for (const Term &term : match.terms) {
      Value value = byHead(term);
      if (term.fill && choices) {
        if (term.replacesWhereTrue)
          value = UnaryOp::create(b, loc, value.getType(), UnaryFunction::Not, value);
        fill = *term.fill;
        if (fill == 0)
          fill = 0.0; // not -0.0, which prints as another attribute
      } else if (term.fill) {
        Value hidden = constant(*term.fill), seen = constant(0);
        value = SelectOp::create(b, loc, RankedTensorType::get(shapeOf(value), b.getF32Type()), value,
                                 term.replacesWhereTrue ? hidden : seen, term.replacesWhereTrue ? seen : hidden);
      } else {
        if (!isFloat(value))
          return false;
        auto type = RankedTensorType::get(shapeOf(value), b.getF32Type());
        if (!elementOf(value).isF32())
          value = CastOp::create(b, loc, type, value);
        if (term.factor != 1)
          value = BinaryOp::create(b, loc, type, BinaryFunction::Mul, value, constant(term.factor));
      }
      if (!mask)
        mask = value;
      else
        mask = BinaryOp::create(b, loc, common(mask, value), choices ? BinaryFunction::And : BinaryFunction::Add, mask,
                                value);
    }
    return true;
  }

  Match &match;
  OpBuilder b;
  Location loc;
  int64_t all, rows, keys, batch = 1;
};

struct FormAttentionPass : neuron::impl::FormAttentionPassBase<FormAttentionPass> {
  using FormAttentionPassBase::FormAttentionPassBase;

  void runOnOperation() override {
    SmallVector<ContractOp> outputs;
    getOperation().walk([&](ContractOp op) { outputs.push_back(op); });
    for (ContractOp output : outputs)
      if (std::optional<Match> match = Matcher::match(output))
        if (Rewriter(*match).run())
          ++formed;
  }
};

} // namespace

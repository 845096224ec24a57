// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Graph/MaskAnalysis.h"

#include <cmath>
#include <variant>

using namespace mlir;
using namespace mlir::neuron;

namespace {

/// offset + row * rows + column * columns, in whole numbers.
struct Sequence {
  int64_t offset = 0, rows = 0, columns = 0;
};

/// Which dimension counts rows, and which columns; -1: none, only index 0 is looked at.
struct Coordinates {
  int64_t row = -1, column = -1;
};

using Function = std::variant<Sequence, Step>;

/// Where the dimension is among those that do not have size 1, and back.
int64_t throughReshape(ArrayRef<int64_t> from, ArrayRef<int64_t> to, int64_t dim) {
  if (dim < 0 || from[dim] == 1)
    return -1;
  int64_t position = llvm::count_if(from.take_front(dim), [](int64_t size) { return size != 1; });
  for (auto [d, size] : llvm::enumerate(to))
    if (size != 1 && position-- == 0)
      return static_cast<int64_t>(d);
  return -1;
}

SmallVector<int64_t> withoutOnes(ArrayRef<int64_t> shape) {
  return llvm::filter_to_vector(shape, [](int64_t size) { return size != 1; });
}

std::optional<double> apply(BinaryFunction function, double a, double b) {
  switch (function) {
  case BinaryFunction::Add:
    return a + b;
  case BinaryFunction::Sub:
    return a - b;
  case BinaryFunction::Mul:
    return a * b;
  case BinaryFunction::Max:
    return std::max(a, b);
  case BinaryFunction::Min:
    return std::min(a, b);
  default:
    return std::nullopt;
  }
}

/// `value` after a conversion to `type`; nullopt where that is not as simple.
std::optional<double> convert(double value, Type type) {
  if (type.isInteger(1))
    return value != 0;
  if (auto floating = dyn_cast<FloatType>(type)) {
    APFloat converted(value);
    bool losesInfo;
    converted.convert(floating.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
    converted.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
    return converted.convertToDouble();
  }
  if (std::isfinite(value) && value == std::trunc(value) && std::abs(value) < 100)
    return value;
  return std::nullopt;
}

class Analysis {
public:
  std::optional<Function> find(Value value, Coordinates at) {
    // A bound, so that shared values cannot make the walk exponential.
    if (++visited > 200)
      return std::nullopt;
    if (std::optional<double> splat = getSplatConstant(value); splat && !std::isnan(*splat))
      return Step{0, *splat, *splat};
    Operation *op = value.getDefiningOp();
    if (!op)
      return std::nullopt;
    Type element = cast<RankedTensorType>(value.getType()).getElementType();
    if (auto iota = dyn_cast<IotaOp>(op)) {
      Sequence result{static_cast<int64_t>(iota.getOffset()), 0, 0};
      for (auto [d, step] : llvm::enumerate(iota.getSteps()))
        if (step != 0 && iota.getType().getDimSize(d) != 1) {
          if (int64_t(d) != at.row && int64_t(d) != at.column)
            return std::nullopt;
          (int64_t(d) == at.row ? result.rows : result.columns) = step;
        }
      return result;
    }
    if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      auto from = reshape.getType().getShape();
      auto to = cast<RankedTensorType>(reshape.getOperand().getType()).getShape();
      if (withoutOnes(from) != withoutOnes(to))
        return std::nullopt;
      return find(reshape.getOperand(), {throughReshape(from, to, at.row), throughReshape(from, to, at.column)});
    }
    if (auto transpose = dyn_cast<TransposeOp>(op)) {
      auto before = [&](int64_t dim) { return dim < 0 ? -1 : transpose.getPermutation()[dim]; };
      return find(transpose.getOperand(), {before(at.row), before(at.column)});
    }
    if (auto broadcast = dyn_cast<BroadcastOp>(op))
      return find(broadcast.getOperand(), at);
    if (!isElementwise(op))
      return std::nullopt;
    SmallVector<Function> operands;
    for (Value operand : op->getOperands()) {
      std::optional<Function> function = find(operand, at);
      if (!function)
        return std::nullopt;
      operands.push_back(*function);
    }
    if (isa<CastOp>(op))
      if (auto *sequence = std::get_if<Sequence>(&operands[0]))
        return element.isF32() || element.isInteger(32) || element.isInteger(64) ? std::optional<Function>(*sequence)
                                                                                 : std::nullopt;
    if (auto compare = dyn_cast<CompareOp>(op))
      if (std::optional<Step> step = compareSequences(compare.getPredicate(), operands[0], operands[1]))
        return *step;
    if (auto binary = dyn_cast<BinaryOp>(op))
      if (std::optional<Sequence> sequence = addSequences(binary.getFunction(), operands[0], operands[1]))
        return *sequence;
    return combine(op, element, operands);
  }

private:
  static std::optional<Sequence> asSequence(const Function &function) {
    if (auto *sequence = std::get_if<Sequence>(&function))
      return *sequence;
    Step step = std::get<Step>(function);
    if (step.isConstant() && step.inside == std::trunc(step.inside) && std::abs(step.inside) < 1e6)
      return Sequence{static_cast<int64_t>(step.inside), 0, 0};
    return std::nullopt;
  }

  static std::optional<Sequence> addSequences(BinaryFunction function, const Function &lhs, const Function &rhs) {
    std::optional<Sequence> a = asSequence(lhs), b = asSequence(rhs);
    if (!a || !b || (std::holds_alternative<Step>(lhs) && std::holds_alternative<Step>(rhs)))
      return std::nullopt;
    if (function == BinaryFunction::Add)
      return Sequence{a->offset + b->offset, a->rows + b->rows, a->columns + b->columns};
    if (function == BinaryFunction::Sub)
      return Sequence{a->offset - b->offset, a->rows - b->rows, a->columns - b->columns};
    return std::nullopt;
  }

  static std::optional<Step> compareSequences(ComparePredicate predicate, const Function &lhs, const Function &rhs) {
    if (std::holds_alternative<Step>(lhs) && std::holds_alternative<Step>(rhs))
      return std::nullopt;
    std::optional<Sequence> a = asSequence(lhs), b = asSequence(rhs);
    if (!a || !b)
      return std::nullopt;
    // lhs - rhs = sign * (column - row) + offset, compared with 0.
    int64_t sign = a->columns - b->columns, offset = a->offset - b->offset;
    if (a->rows - b->rows != -sign || (sign != 1 && sign != -1))
      return std::nullopt;
    bool rising = sign == 1;
    switch (predicate) {
    case ComparePredicate::Le:
      return rising ? Step{-offset, 1, 0} : Step{offset - 1, 0, 1};
    case ComparePredicate::Lt:
      return rising ? Step{-offset - 1, 1, 0} : Step{offset, 0, 1};
    case ComparePredicate::Ge:
      return rising ? Step{-offset - 1, 0, 1} : Step{offset, 1, 0};
    case ComparePredicate::Gt:
      return rising ? Step{-offset, 0, 1} : Step{offset - 1, 1, 0};
    default:
      return std::nullopt;
    }
  }

  /// An elementwise operation on steps that agree on where they are.
  static std::optional<Function> combine(Operation *op, Type element, ArrayRef<Function> operands) {
    std::optional<int64_t> bound;
    for (const Function &function : operands) {
      auto *step = std::get_if<Step>(&function);
      if (!step || (!step->isConstant() && bound && *bound != step->bound))
        return std::nullopt;
      if (!step->isConstant())
        bound = step->bound;
    }
    auto compute = [&](bool inside) {
      SmallVector<double> values;
      for (const Function &function : operands)
        values.push_back(inside ? std::get<Step>(function).inside : std::get<Step>(function).outside);
      return valueOf(op, element, values);
    };
    std::optional<double> inside = compute(true), outside = compute(false);
    if (!inside || !outside || std::isnan(*inside) || std::isnan(*outside))
      return std::nullopt;
    return Step{bound.value_or(0), *inside, *outside};
  }

  static std::optional<double> valueOf(Operation *op, Type element, ArrayRef<double> values) {
    if (isa<CastOp>(op))
      return convert(values[0], element);
    if (isa<SelectOp>(op))
      return values[0] != 0 ? values[1] : values[2];
    if (auto compare = dyn_cast<CompareOp>(op))
      return compareValues(compare.getPredicate(), values[0], values[1]);
    if (auto unary = dyn_cast<UnaryOp>(op)) {
      if (unary.getFunction() == UnaryFunction::Not && element.isInteger(1))
        return values[0] == 0;
      if (unary.getFunction() == UnaryFunction::Neg && isa<FloatType>(element))
        return -values[0];
      return std::nullopt;
    }
    auto binary = dyn_cast<BinaryOp>(op);
    if (!binary)
      return std::nullopt;
    if (element.isInteger(1)) {
      if (binary.getFunction() == BinaryFunction::And || binary.getFunction() == BinaryFunction::Mul)
        return values[0] != 0 && values[1] != 0;
      if (binary.getFunction() == BinaryFunction::Or)
        return values[0] != 0 || values[1] != 0;
      return std::nullopt;
    }
    std::optional<double> result = apply(binary.getFunction(), values[0], values[1]);
    return result ? convert(*result, element) : std::nullopt;
  }

  int visited = 0;
};

} // namespace

std::optional<Step> mlir::neuron::findStep(Value value) {
  int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
  if (rank < 2)
    return std::nullopt;
  std::optional<Function> function = Analysis().find(value, {rank - 2, rank - 1});
  if (!function)
    return std::nullopt;
  auto *step = std::get_if<Step>(&*function);
  return step ? std::optional<Step>(*step) : std::nullopt;
}

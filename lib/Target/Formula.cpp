// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recursive-descent parser to postfix, and its evaluator. The stack depth is bounded at parse time.

#include "neuron/Target/Formula.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "neuron/Support/Text.h"

namespace neuroncore::target {

class FormulaParser {
public:
  FormulaParser(std::string_view text, std::span<const std::string_view> variables,
                const Formula::ConstantLookup &constants)
      : text_(text), variables_(variables), constants_(constants) {}

  Expected<Formula> run() {
    comparison();
    skipSpace();
    if (error_.empty() && position_ != text_.size())
      fail("expected the end of the formula");
    if (!error_.empty())
      return Error(ErrorKind::InvalidInput, cat("formula '", text_, "': ", error_, " at character ", position_ + 1));
    return formula_;
  }

private:
  using Op = Formula::Op;

  void fail(std::string message) {
    if (error_.empty())
      error_ = std::move(message);
  }

  void skipSpace() {
    while (position_ < text_.size() && text_[position_] == ' ')
      ++position_;
  }

  bool accept(std::string_view token) {
    skipSpace();
    if (!text_.substr(position_).starts_with(token))
      return false;
    position_ += token.size();
    return true;
  }

  void expect(std::string_view token) {
    if (error_.empty() && !accept(token))
      fail(cat("expected '", token, "'"));
  }

  void emit(Op op, int pops, uint8_t variable = 0, double number = 0) {
    if (!error_.empty())
      return;
    depth_ += 1 - pops;
    if (formula_.numSteps_ == Formula::kMaxSteps || depth_ > Formula::kMaxStack)
      return fail("expected a shorter formula");
    formula_.steps_[formula_.numSteps_++] = {op, variable, number};
  }

  void comparison() {
    sum();
    // Longer operators first: "<" is a prefix of "<=".
    static constexpr std::pair<std::string_view, Op> kOperators[] = {
        {"<=", Op::LessEqual}, {">=", Op::GreaterEqual}, {"==", Op::Equal}, {"<", Op::Less}, {">", Op::Greater}};
    for (const auto &[token, op] : kOperators) {
      if (!accept(token))
        continue;
      sum();
      return emit(op, 2);
    }
  }

  void sum() {
    product();
    while (error_.empty()) {
      if (accept("+")) {
        product();
        emit(Op::Add, 2);
      } else if (accept("-")) {
        product();
        emit(Op::Subtract, 2);
      } else {
        return;
      }
    }
  }

  void product() {
    factor();
    while (error_.empty()) {
      if (accept("*")) {
        factor();
        emit(Op::Multiply, 2);
      } else if (accept("/")) {
        factor();
        emit(Op::Divide, 2);
      } else {
        return;
      }
    }
  }

  void factor() {
    if (!error_.empty())
      return;
    if (++nesting_ > 32)
      return fail("expected at most 32 nested parentheses");
    if (accept("-")) {
      factor();
      emit(Op::Negate, 1);
    } else if (accept("(")) {
      comparison();
      expect(")");
    } else {
      numberOrName();
    }
    --nesting_;
  }

  void numberOrName() {
    skipSpace();
    const char *begin = text_.data() + position_;
    const char *end = text_.data() + text_.size();
    if (begin != end && *begin >= '0' && *begin <= '9') {
      double number = 0;
      auto [next, code] = std::from_chars(begin, end, number);
      if (code != std::errc())
        return fail("expected a number");
      position_ += size_t(next - begin);
      return emit(Op::Number, 0, 0, number);
    }
    auto isNameChar = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
    };
    std::string_view name(begin, size_t(std::find_if_not(begin, end, isNameChar) - begin));
    if (name.empty())
      return fail("expected a number, a name or '('");
    size_t start = position_;
    position_ += name.size();
    if (accept("("))
      return call(name);
    if (auto found = std::find(variables_.begin(), variables_.end(), name); found != variables_.end())
      return emit(Op::Variable, 0, uint8_t(found - variables_.begin()));
    if (constants_ && name.find('.') != name.npos)
      if (std::optional<double> value = constants_(name))
        return emit(Op::Number, 0, 0, *value);
    position_ = start;
    fail(cat("expected a known variable or constant but got '", name, "'"));
  }

  void call(std::string_view name) {
    int arguments = 0;
    do {
      comparison();
      ++arguments;
      // Variadic min and max are folded pairwise.
      if (arguments > 1 && (name == "min" || name == "max"))
        emit(name == "min" ? Op::Min : Op::Max, 2);
    } while (error_.empty() && accept(","));
    expect(")");
    if (!error_.empty())
      return;
    if (name == "min" || name == "max") {
      if (arguments < 2)
        fail(cat("expected at least 2 arguments of ", name, " but got ", arguments));
    } else if (name == "ceil" || name == "floor") {
      if (arguments != 1)
        return fail(cat("expected 1 argument of ", name, " but got ", arguments));
      emit(name == "ceil" ? Op::Ceil : Op::Floor, 1);
    } else if (name == "if") {
      if (arguments != 3)
        return fail(cat("expected 3 arguments of if but got ", arguments));
      emit(Op::If, 3);
    } else {
      fail(cat("expected min, max, ceil, floor or if but got '", name, "'"));
    }
  }

  std::string_view text_;
  std::span<const std::string_view> variables_;
  const Formula::ConstantLookup &constants_;
  size_t position_ = 0;
  int depth_ = 0;
  int nesting_ = 0;
  std::string error_;
  Formula formula_;
};

Expected<Formula> Formula::parse(std::string_view text, std::span<const std::string_view> variables,
                                 const ConstantLookup &constants) {
  return FormulaParser(text, variables, constants).run();
}

double Formula::evaluate(std::span<const double> values) const {
  std::array<double, kMaxStack> stack = {};
  double *top = stack.data() - 1;
  for (int i = 0; i < numSteps_; ++i) {
    const Step &step = steps_[i];
    switch (step.op) {
    case Op::Number:
      *++top = step.number;
      break;
    case Op::Variable:
      *++top = values[step.variable];
      break;
    case Op::Add:
      --top;
      top[0] += top[1];
      break;
    case Op::Subtract:
      --top;
      top[0] -= top[1];
      break;
    case Op::Multiply:
      --top;
      top[0] *= top[1];
      break;
    case Op::Divide:
      --top;
      top[0] /= top[1];
      break;
    case Op::Negate:
      *top = -*top;
      break;
    case Op::Min:
      --top;
      top[0] = std::min(top[0], top[1]);
      break;
    case Op::Max:
      --top;
      top[0] = std::max(top[0], top[1]);
      break;
    case Op::Ceil:
      *top = std::ceil(*top);
      break;
    case Op::Floor:
      *top = std::floor(*top);
      break;
    case Op::If:
      top -= 2;
      top[0] = top[0] != 0 ? top[1] : top[2];
      break;
    case Op::Less:
      --top;
      top[0] = top[0] < top[1];
      break;
    case Op::LessEqual:
      --top;
      top[0] = top[0] <= top[1];
      break;
    case Op::Greater:
      --top;
      top[0] = top[0] > top[1];
      break;
    case Op::GreaterEqual:
      --top;
      top[0] = top[0] >= top[1];
      break;
    case Op::Equal:
      --top;
      top[0] = top[0] == top[1];
      break;
    }
  }
  return numSteps_ ? *top : 0;
}

} // namespace neuroncore::target

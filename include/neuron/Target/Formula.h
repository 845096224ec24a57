// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cost formulas of the machine model: arithmetic over named variables, parsed once when the model is loaded and
// evaluated without allocation.
//
//   formula    := sum (("<" | "<=" | ">" | ">=" | "==") sum)?          a comparison is 1 or 0
//   sum        := product (("+" | "-") product)*
//   product    := factor (("*" | "/") factor)*
//   factor     := number | name | "-" factor | "(" formula ")" | function "(" formula ("," formula)* ")"
//   function   := "min" | "max" (two or more arguments) | "ceil" | "floor" | "if" (condition, then, else)
//   name       := letters, digits, "_" and "."; a name with a dot is a constant of the model

#ifndef NEURON_TARGET_FORMULA_H
#define NEURON_TARGET_FORMULA_H

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "neuron/Support/Error.h"

namespace neuroncore::target {

class Formula {
public:
  /// The value of a constant of the model, or nothing when there is no such number.
  using ConstantLookup = std::function<std::optional<double>(std::string_view)>;

  /// A default-constructed formula is 0.
  Formula() = default;

  /// `variables` are the names that evaluate() receives values for, in its order.
  static Expected<Formula> parse(std::string_view text, std::span<const std::string_view> variables,
                                 const ConstantLookup &constants = {});

  /// `values` must have one element per variable given to parse(). NaN when a division by zero meets zero.
  double evaluate(std::span<const double> values) const;

private:
  friend class FormulaParser;
  enum class Op : uint8_t {
    Number,
    Variable,
    Add,
    Subtract,
    Multiply,
    Divide,
    Negate,
    Min,
    Max,
    Ceil,
    Floor,
    If,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal
  };
  struct Step {
    Op op = Op::Number;
    uint8_t variable = 0;
    double number = 0;
  };
  static constexpr int kMaxSteps = 48;
  static constexpr int kMaxStack = 12;
  std::array<Step, kMaxSteps> steps_ = {};
  uint8_t numSteps_ = 0;
};

} // namespace neuroncore::target

#endif // NEURON_TARGET_FORMULA_H

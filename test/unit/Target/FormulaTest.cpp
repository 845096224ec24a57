// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The formula language of the machine model.

#include "neuron/Target/Formula.h"

#include <cmath>

#include <gtest/gtest.h>

using namespace neuroncore;
using target::Formula;

namespace {

constexpr std::string_view kVariables[] = {"N", "K"};

double evaluate(std::string_view text, double n = 0, double k = 0) {
  Expected<Formula> formula = Formula::parse(text, kVariables, [](std::string_view name) -> std::optional<double> {
    return name == "pool.start" ? std::optional<double>(150) : std::nullopt;
  });
  if (!formula) {
    ADD_FAILURE() << formula.error().message();
    return std::nan("");
  }
  const double values[] = {n, k};
  return formula->evaluate(values);
}

std::string failure(std::string_view text) {
  Expected<Formula> formula = Formula::parse(text, kVariables);
  return formula ? "no error" : formula.error().message();
}

} // namespace

TEST(Formula, Arithmetic) {
  EXPECT_EQ(evaluate("1 + 2*3 - 8/4"), 5);
  EXPECT_EQ(evaluate("(1 + 2) * -3"), -9);
  EXPECT_EQ(evaluate("10 - 3 - 2"), 5);
  EXPECT_EQ(evaluate("2.5*N", 4), 10);
  EXPECT_EQ(evaluate("max(64,N)", 10), 64);
  EXPECT_EQ(evaluate("max(1, 5, 3) + min(9, 4)"), 9);
  EXPECT_EQ(evaluate("ceil(N/8) + floor(N/8)", 12), 3);
  EXPECT_EQ(evaluate("pool.start + N", 5), 155);
}

TEST(Formula, Conditions) {
  for (auto [k, expected] : {std::pair{64.0, 200.0}, {65.0, 100.0}})
    EXPECT_EQ(evaluate("if(K <= 64, 2, 1) * N", 100, k), expected);
  EXPECT_EQ(evaluate("N < 3", 3), 0);
  EXPECT_EQ(evaluate("N >= 3", 3), 1);
  EXPECT_EQ(evaluate("N == 3", 3), 1);
  EXPECT_EQ(evaluate("N > 3", 3), 0);
}

TEST(Formula, ErrorsNameThePlace) {
  EXPECT_EQ(failure("max(64, Q)"),
            "formula 'max(64, Q)': expected a known variable or constant but got 'Q' at character 9");
  EXPECT_NE(failure("1 +").find("expected a number, a name or '('"), std::string::npos);
  EXPECT_NE(failure("(1").find("expected ')'"), std::string::npos);
  EXPECT_NE(failure("1 2").find("expected the end of the formula"), std::string::npos);
  EXPECT_NE(failure("max(1)").find("expected at least 2 arguments of max but got 1"), std::string::npos);
  EXPECT_NE(failure("sqrt(1)").find("expected min, max, ceil, floor or if"), std::string::npos);
  EXPECT_NE(failure("").find("expected a number"), std::string::npos);
  EXPECT_NE(failure(std::string(100, '(')).find("at most 32 nested"), std::string::npos);
  std::string longSum = "1";
  for (int i = 0; i < 100; ++i)
    longSum += "+1";
  EXPECT_NE(failure(longSum).find("expected a shorter formula"), std::string::npos);
}

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The overlap test against all values, on small forms.

#include <gtest/gtest.h>

#include <random>

#include "lib/Schedule/LinearRange.h"

namespace neuroncore::schedule {

namespace {

struct Case {
  int64_t constant;
  std::vector<std::pair<int64_t, int64_t>> terms;
};

bool reaches(const Case &c, size_t term, int64_t value, int64_t low, int64_t high) {
  if (term == c.terms.size())
    return value >= low && value <= high;
  for (int64_t x = 0; x <= c.terms[term].second; ++x)
    if (reaches(c, term + 1, value + c.terms[term].first * x, low, high))
      return true;
  return false;
}

TEST(LinearRange, AgreesWithEnumeration) {
  std::mt19937_64 random(5);
  auto pick = [&](int low, int high) { return low + int64_t(random() % uint64_t(high - low + 1)); };
  int reached = 0, missed = 0, conservative = 0;
  for (int i = 0; i < 20000; ++i) {
    Case c;
    c.constant = pick(-40, 40);
    for (int64_t n = pick(0, 4); n > 0; --n)
      c.terms.push_back({pick(-20, 20), pick(0, 4)});
    int64_t low = pick(-30, 30), high = low + pick(0, 6);
    LinearRange range;
    range.addConstant(c.constant);
    for (auto [coefficient, bound] : c.terms)
      range.addTerm(coefficient, bound);
    bool expected = reaches(c, 0, c.constant, low, high);
    bool got = range.mayReach(low, high);
    ASSERT_TRUE(got || !expected) << "case " << i;
    (expected ? reached : got ? conservative : missed) += 1;
  }
  EXPECT_GT(reached, 1000);
  EXPECT_GT(missed, 1000);
  EXPECT_EQ(conservative, 0);
}

/// Columns j of a row-major matrix: hulls overlap, elements never do.
TEST(LinearRange, InterleavedTilesAreDisjoint) {
  for (int64_t other = 1; other < 8; ++other) {
    LinearRange difference;
    difference.addConstant(other * 2048);
    difference.addTerm(-8 * 2048, 127);
    difference.addTerm(8 * 2048, 127);
    EXPECT_FALSE(difference.mayReach(1 - 2048, 2047));
  }
}

TEST(LinearRange, OverflowIsConservative) {
  LinearRange range;
  range.addTerm(int64_t(1) << 40, int64_t(1) << 40);
  EXPECT_TRUE(range.mayReach(3, 4));
}

} // namespace

} // namespace neuroncore::schedule

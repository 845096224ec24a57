// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bounded search, largest coefficient first. Nested strides leave one or two candidates per term, so the search is
// short exactly where accesses are regular.

#include "LinearRange.h"

#include <algorithm>
#include <numeric>

namespace neuroncore::schedule {

void LinearRange::addConstant(int64_t value) { overflow_ |= __builtin_add_overflow(constant_, value, &constant_); }

void LinearRange::addTerm(int64_t coefficient, int64_t bound) {
  if (coefficient == 0 || bound <= 0)
    return;
  if (coefficient < 0) {
    // x' = bound - x turns the sign.
    int64_t part = 0;
    overflow_ |= __builtin_mul_overflow(coefficient, bound, &part) ||
                 __builtin_sub_overflow(int64_t(0), coefficient, &coefficient);
    addConstant(part);
  }
  for (int i = 0; i < numTerms_; ++i)
    if (terms_[i].coefficient == coefficient) {
      overflow_ |= __builtin_add_overflow(terms_[i].bound, bound, &terms_[i].bound);
      return;
    }
  if (numTerms_ == kMaxTerms) {
    overflow_ = true;
    return;
  }
  terms_[numTerms_++] = {coefficient, bound};
}

bool LinearRange::mayReach(int64_t low, int64_t high) {
  overflow_ |= __builtin_sub_overflow(low, constant_, &low) || __builtin_sub_overflow(high, constant_, &high);
  std::sort(terms_.begin(), terms_.begin() + numTerms_,
            [](const Term &a, const Term &b) { return a.coefficient > b.coefficient; });
  rest_[numTerms_] = 0;
  divisor_[numTerms_] = 0;
  for (int i = numTerms_ - 1; i >= 0; --i) {
    int64_t part = 0;
    overflow_ |= __builtin_mul_overflow(terms_[i].coefficient, terms_[i].bound, &part) ||
                 __builtin_add_overflow(part, rest_[i + 1], &rest_[i]);
    divisor_[i] = std::gcd(terms_[i].coefficient, divisor_[i + 1]);
  }
  if (overflow_)
    return true;
  budget_ = kSearchBudget;
  return search(0, low, high);
}

bool LinearRange::search(int term, int64_t low, int64_t high) {
  if (high < 0 || low > rest_[term])
    return false;
  if (low <= 0 || high >= rest_[term])
    return true; // all zero, or all at their bounds
  // Here 0 < low <= high < rest: only multiples of the common divisor can be hit.
  if (high / divisor_[term] * divisor_[term] < low)
    return false;
  if (--budget_ < 0)
    return true;
  int64_t coefficient = terms_[term].coefficient;
  int64_t first = std::max<int64_t>(0, low - rest_[term + 1] + coefficient - 1) / coefficient;
  int64_t last = std::min(terms_[term].bound, high / coefficient);
  for (int64_t x = last; x >= first; --x)
    if (search(term + 1, low - coefficient * x, high - coefficient * x))
      return true;
  return false;
}

} // namespace neuroncore::schedule

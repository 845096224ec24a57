// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Does a linear form over bounded integers reach an interval? Overlap of strided accesses, alone and across loop
// iterations, is this one question about the difference of two start addresses.

#ifndef NEURON_LIB_SCHEDULE_LINEARRANGE_H
#define NEURON_LIB_SCHEDULE_LINEARRANGE_H

#include <array>
#include <cstdint>

namespace neuroncore::schedule {

/// constant + sum of coefficient_k * x_k with 0 <= x_k <= bound_k.
class LinearRange {
public:
  void addConstant(int64_t value);
  void addTerm(int64_t coefficient, int64_t bound);
  /// False only if no assignment gives a value in [low, high]. True may be wrong where an exact answer would take long
  /// (or a value does not fit 64 bits).
  bool mayReach(int64_t low, int64_t high);

private:
  struct Term {
    int64_t coefficient;
    int64_t bound;
  };
  bool search(int term, int64_t low, int64_t high);

  static constexpr int kMaxTerms = 24;
  static constexpr int kSearchBudget = 64;

  std::array<Term, kMaxTerms> terms_;
  std::array<int64_t, kMaxTerms + 1> rest_; // largest value of the terms from here on
  std::array<int64_t, kMaxTerms + 1> divisor_;
  int numTerms_ = 0;
  int budget_ = 0;
  int64_t constant_ = 0;
  bool overflow_ = false;
};

} // namespace neuroncore::schedule

#endif // NEURON_LIB_SCHEDULE_LINEARRANGE_H

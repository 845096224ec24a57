// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a program hands on an index that it has found to be out of range. Gathers and scatters refuse every negative
// index, so programs that compute the row from several indices put a negative number in its place. It keeps what a
// message needs: the index itself and the dimension it belongs to. 64 bits: a one, four bits of one plus the dimension,
// 59 bits of the index in two's complement. The four bits are ones in a small negative index and zeros in the most
// negative ones: such rows are refused as they are.

#ifndef NEURON_ISA_REJECTEDINDEX_H
#define NEURON_ISA_REJECTEDINDEX_H

#include <algorithm>
#include <cstdint>
#include <string>

#include "neuron/Support/Text.h"

namespace neuroncore::isa {

constexpr int kRejectedIndexBits = 59;
constexpr int64_t kMaxRejectedDimension = 13;

/// An index i of dimension d is handed on as (i & mask) | tag(d). Indices beyond 58 bits are refused all the same, but
/// under another number.
constexpr int64_t rejectedIndexMask() { return (int64_t(1) << kRejectedIndexBits) - 1; }
constexpr int64_t rejectedIndexTag(int64_t dimension) {
  return INT64_MIN | (std::clamp<int64_t>(dimension, 0, kMaxRejectedDimension) + 1) << kRejectedIndexBits;
}

struct RejectedIndex {
  int64_t index = 0;
  /// -1: the row itself was refused.
  int dimension = -1;

  static constexpr RejectedIndex of(int64_t row) {
    const int dimension = (int(uint64_t(row) >> kRejectedIndexBits) & 15) - 1;
    if (row >= 0 || dimension < 0 || dimension > kMaxRejectedDimension)
      return {row, -1};
    constexpr int kUnused = 64 - kRejectedIndexBits;
    return {int64_t(uint64_t(row) << kUnused) >> kUnused, dimension};
  }

  /// "index 7", "index 7 of dimension 1".
  std::string text() const {
    return dimension < 0 ? cat("index ", index) : cat("index ", index, " of dimension ", dimension);
  }
};

} // namespace neuroncore::isa

#endif // NEURON_ISA_REJECTEDINDEX_H

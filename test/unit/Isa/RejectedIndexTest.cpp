// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "neuron/Isa/RejectedIndex.h"

#include "gtest/gtest.h"

using namespace neuroncore::isa;

namespace {

int64_t handOn(int64_t index, int64_t dimension) { return (index & rejectedIndexMask()) | rejectedIndexTag(dimension); }

TEST(RejectedIndex, KeepsIndexAndDimension) {
  for (int64_t dimension = 0; dimension <= kMaxRejectedDimension; ++dimension)
    for (int64_t index : {int64_t(0), int64_t(7), int64_t(-1), int64_t(-9), int64_t(1) << 40, -(int64_t(1) << 40),
                          (int64_t(1) << 58) - 1, -(int64_t(1) << 58)}) {
      const int64_t row = handOn(index, dimension);
      EXPECT_LT(row, 0);
      EXPECT_EQ(RejectedIndex::of(row).index, index);
      EXPECT_EQ(RejectedIndex::of(row).dimension, dimension);
    }
  EXPECT_EQ(RejectedIndex::of(handOn(7, 1)).text(), "index 7 of dimension 1");
}

TEST(RejectedIndex, IsNegativeWhateverTheIndex) {
  for (int64_t index : {INT64_MAX, INT64_MIN, int64_t(1) << 62, -(int64_t(1) << 62)})
    EXPECT_LT(handOn(index, 3), 0);
  EXPECT_LT(handOn(5, 20), 0);
}

TEST(RejectedIndex, PlainRowsAreThemselves) {
  for (int64_t row :
       {int64_t(0), int64_t(12), INT64_MAX, INT64_MIN, int64_t(-1), int64_t(-2147483653), int64_t(-1) << 58}) {
    EXPECT_EQ(RejectedIndex::of(row).index, row);
    EXPECT_EQ(RejectedIndex::of(row).dimension, -1);
  }
}

} // namespace

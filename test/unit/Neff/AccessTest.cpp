// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Static accesses to HBM are checked against the variables.

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "SampleNeff.h"

using namespace neuroncore;
using namespace neuroncore::neff;
using namespace neuroncore::isa;
using testing::HasSubstr;

namespace {

/// Verifies the sample with the load of x changed.
std::string failure(const std::function<void(Instruction &)> &change) {
  Neff neff = sampleNeff();
  change(neff.program[4][0]);
  Status status = verifyNeff(neff);
  return status ? "no error" : status.error().message();
}

} // namespace

TEST(Access, InsideIsAccepted) {
  EXPECT_EQ(failure([](Instruction &) {}), "no error");
  // From the last row backwards.
  EXPECT_EQ(failure([](Instruction &in) {
              in.hbm[1].byteOffset = 127 * 256;
              in.hbm[1].step[0] = -256;
            }),
            "no error");
}

TEST(Access, OutsideIsRefused) {
  EXPECT_EQ(failure([](Instruction &in) { in.hbm[1].byteOffset = 4; }),
            "sync instruction 0 (dma_copy): src: expected bytes 0 to 32768 of 'x' but the access takes 4 to 32772");
  EXPECT_THAT(failure([](Instruction &in) { in.hbm[1].byteOffset = -4; }), HasSubstr("takes -4 to 32764"));
  EXPECT_THAT(failure([](Instruction &in) { in.hbm[1].step[0] = -256; }), HasSubstr("takes -32512 to 256"));
  EXPECT_THAT(failure([](Instruction &in) { in.hbm[1].step[0] = INT64_MAX; }), HasSubstr("more than 2^63"));
  EXPECT_THAT(failure([](Instruction &in) { in.hbm[1].step[0] = INT64_MIN; }), HasSubstr("less than -2^63"));
  EXPECT_THAT(failure([](Instruction &in) { in.hbm[1].byteOffset = INT64_MAX; }), HasSubstr("expected bytes 0 to"));
  EXPECT_THAT(failure([](Instruction &in) { in.hbm[1].variable = 7; }),
              HasSubstr("expected a variable below 7 but got 7"));
}

TEST(Access, DynamicAddressesAreLeftToTheRun) {
  auto dynamic = [](Instruction &in) {
    in.dgeMode = DgeMode::Hardware;
    in.hbm[1].terms[0] = {3, 32768};
    in.hbm[1].byteOffset = -32768;
  };
  EXPECT_EQ(failure(dynamic), "no error");
  // But the variable must exist.
  EXPECT_THAT(failure([&](Instruction &in) {
                dynamic(in);
                in.hbm[1].variable = 9;
              }),
              HasSubstr("expected a variable below"));
}

TEST(Access, ConstantsAndPlainInputsAreNotWritten) {
  auto storeTo = [](uint16_t variable) {
    Neff neff = sampleNeff();
    neff.program[4][2].hbm[0].variable = variable;
    Status status = verifyNeff(neff);
    return status ? "no error" : status.error().message();
  };
  EXPECT_THAT(storeTo(kW), HasSubstr("'w' is a constant"));
  EXPECT_EQ(storeTo(kX), "no error"); // an output aliases it
  EXPECT_EQ(storeTo(kScratch), "no error");
  EXPECT_THAT(storeTo(kRng), HasSubstr("'rng' is an input"));
}

TEST(Access, IndexedTransfersMustFitApartFromTheIndex) {
  auto gather = [](Instruction &in) {
    in.dgeMode = DgeMode::Software;
    in.tiles[2] = in.tiles[0];
    in.tiles[2].dtype = Dtype::I32;
    in.tiles[2].count[3] = 1;
    in.tiles[2].byteOffset = 2048;
  };
  auto check = [&](const std::function<void(Instruction &)> &change) {
    Neff neff = sampleNeff();
    Instruction in = neff.program[4][0];
    gather(in);
    change(in);
    neff.program[2].push_back(in);
    Status status = verifyNeff(neff);
    return status ? "no error" : status.error().message();
  };
  // A row stride that would leave the variable if the index were the partition number.
  EXPECT_EQ(check([](Instruction &in) { in.hbm[1].step[0] = 1 << 20; }), "no error");
  EXPECT_THAT(check([](Instruction &in) { in.hbm[1].step[4] = 1 << 12; }), HasSubstr("expected bytes 0 to 32768"));
}

TEST(Access, DebugIdsRefer) {
  EXPECT_THAT(failure([](Instruction &in) { in.debugId = 4; }),
              HasSubstr("expected a debug id of at most 3 but got 4"));
}

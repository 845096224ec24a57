// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random programs: whatever order the machine takes, memory is that of the sequential program, no stream is left
// waiting, and the happens-before check finds every conflict ordered.

#include <algorithm>

#include <gtest/gtest.h>

#include "HappensBefore.h"
#include "ProgramBuilder.h"
#include "RandomProgram.h"
#include "SymbolicMachine.h"
#include "TestEnvironment.h"
#include "neuron/Schedule/Projection.h"
#include "neuron/Schedule/Synchronisation.h"

namespace neuroncore::schedule::test {

namespace {

constexpr int64_t kLargeProgram = 800;

struct Totals {
  int64_t dynamic = 0;
  int64_t refused = 0;
  int64_t split = 0;
  int64_t shared = 0;
  int64_t waits = 0, kept = 0;
  std::array<int64_t, 4> fallbacks = {};
};

class RandomPrograms : public ::testing::Test {
protected:
  RandomOptions random_;
  SynchronisationOptions options_;
  ProjectionOptions projection_;
  int runs_ = 6;
  Totals totals_;

  void tryPrograms(uint64_t count, uint64_t firstSeed) {
    for (uint64_t i = 0; i < count && !HasFatalFailure(); ++i)
      tryProgram(firstSeed + i);
    RecordProperty("dynamic_instructions", std::to_string(totals_.dynamic));
    RecordProperty("refused", std::to_string(totals_.refused));
    RecordProperty("waits", std::to_string(totals_.waits));
    RecordProperty("kept", std::to_string(totals_.kept));
  }

private:
  void tryProgram(uint64_t seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    StructuredProgram program = randomProgram(seed, random_);
    Layout layout(program.variables);
    int64_t dynamic = 0;
    Memory expected = runSequentially(program, layout, &dynamic);
    totals_.dynamic += dynamic;
    SynchronisationReport report;
    Status status = synchronise(program, options_, &report);
    ASSERT_TRUE(status) << status.error().message();
    totals_.split += report.numSplitKernels;
    totals_.shared += report.numSharedSites;
    totals_.waits += report.numWaits;
    totals_.kept += report.numKeptWaits;
    ASSERT_LE(report.numSemaphores, options_.numSemaphores);

    ProjectionReport streamReport;
    Expected<isa::Program> streams = project(program, projection_, &streamReport);
    if (!streams && projection_.numRegisters < isa::kNumRegisters) {
      ASSERT_NE(streams.error().message().find("registers"), std::string::npos) << streams.error().message();
      ++totals_.refused;
      return;
    }
    ASSERT_TRUE(streams) << streams.error().message();
    for (const StreamReport &stream : streamReport.streams) {
      ++totals_.fallbacks[int(stream.fallback)];
      ASSERT_LT(stream.maxLiveRegisters, projection_.numRegisters);
    }

    // The check is quadratic.
    bool large = dynamic > kLargeProgram;
    if (!large || environmentNumber("NEURON_SCHEDULE_CHECK_LARGE", 0)) {
      ASSERT_EQ(findHazard(*streams, layout), "") << describe(program) << describe(*streams);
    }
    for (int run = 0; run < (large ? 2 : runs_); ++run) {
      RunResult result = runStreams(*streams, layout, seed * 1000 + run);
      ASSERT_FALSE(result.deadlock) << result.where << "\n" << describe(program) << describe(*streams);
      ASSERT_TRUE(result.memory == expected) << "run " << run << "\n" << describe(program) << describe(*streams);
    }
  }
};

TEST_F(RandomPrograms, EveryInterleavingIsSequential) {
  tryPrograms(numPrograms(), firstSeed());
  EXPECT_GT(totals_.dynamic, int64_t(numPrograms()) * 100);
  EXPECT_LT(totals_.kept * 2, totals_.waits);
}

/// Enough passes for the elimination to skip some.
TEST_F(RandomPrograms, LongLoops) {
  random_.maxKernels = 2;
  random_.maxDepth = 2;
  random_.maxInstructions = 5;
  random_.maxTrips = 25;
  tryPrograms(numPrograms() / 2, firstSeed() + 1000000);
}

TEST_F(RandomPrograms, ManyShortKernels) {
  random_.maxKernels = 12;
  random_.maxDepth = 1;
  random_.maxInstructions = 4;
  random_.maxTrips = 3;
  tryPrograms(numPrograms(), firstSeed() + 2000000);
}

TEST_F(RandomPrograms, WithoutElimination) {
  options_.eliminate = false;
  tryPrograms(numPrograms() / 4, firstSeed() + 3000000);
  EXPECT_EQ(totals_.kept, totals_.waits);
}

/// Skipping passes never drops a wait that walking them all keeps, and keeps few more.
TEST_F(RandomPrograms, SkippedPasses) {
  random_.maxKernels = 2;
  random_.maxDepth = 2;
  random_.maxTrips = 20;
  options_.skipPasses = false;
  int64_t skippedKept = 0, walkedKept = 0;
  for (uint64_t i = 0; i < numPrograms(); ++i) {
    uint64_t seed = firstSeed() + 6000000 + i;
    SCOPED_TRACE("seed " + std::to_string(seed));
    StructuredProgram walked = randomProgram(seed, random_), skipped = randomProgram(seed, random_);
    ASSERT_TRUE(synchronise(walked, options_));
    ASSERT_TRUE(synchronise(skipped));
    std::vector<Instruction *> instructions;
    forEachInstruction(walked, [&](Instruction &instruction) { instructions.push_back(&instruction); });
    size_t at = 0;
    forEachInstruction(skipped, [&](Instruction &instruction) {
      const Instruction &reference = *instructions[at++];
      walkedKept += int64_t(reference.waits.size());
      skippedKept += int64_t(instruction.waits.size());
      for (const SymbolicWait &wait : reference.waits)
        EXPECT_NE(std::find(instruction.waits.begin(), instruction.waits.end(), wait), instruction.waits.end());
    });
  }
  RecordProperty("walked", std::to_string(walkedKept));
  RecordProperty("skipped", std::to_string(skippedKept));
  EXPECT_LE(skippedKept, walkedKept + walkedKept / 100);
}

TEST_F(RandomPrograms, FewSemaphores) {
  options_.numSemaphores = 5 + 12;
  tryPrograms(numPrograms() / 2, firstSeed() + 4000000);
  EXPECT_GT(totals_.split, 0);
  EXPECT_GT(totals_.shared, 0);
}

TEST_F(RandomPrograms, FewRegisters) {
  runs_ = 2;
  for (int registers : {4, 5, 6, 8}) {
    projection_.numRegisters = registers;
    tryPrograms(numPrograms() / 4, firstSeed() + 5000000);
  }
  EXPECT_GT(totals_.fallbacks[1], 0);
  EXPECT_GT(totals_.fallbacks[2], 0);
  EXPECT_GT(totals_.fallbacks[3], 0);
  EXPECT_GT(totals_.refused, 0);
}

} // namespace

} // namespace neuroncore::schedule::test

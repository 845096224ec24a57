// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random programs: whatever order the machine takes, memory is that of the sequential program.

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

constexpr int kRunsPerProgram = 6;

void expectSequential(uint64_t seed, const RandomOptions &random, const SynchronisationOptions &options,
                      const ProjectionOptions &projection, int64_t &dynamic, int64_t &refused) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  StructuredProgram program = randomProgram(seed, random);
  Layout layout(program.variables);
  Memory expected = runSequentially(program, layout, &dynamic);
  Status status = synchronise(program, options);
  ASSERT_TRUE(status) << status.error().message();
  Expected<isa::Program> streams = project(program, projection);
  if (!streams && projection.numRegisters < isa::kNumRegisters) {
    ++refused;
    return;
  }
  ASSERT_TRUE(streams) << streams.error().message();
  ASSERT_EQ(findHazard(*streams, layout), "") << describe(program) << describe(*streams);
  for (int run = 0; run < kRunsPerProgram; ++run) {
    RunResult result = runStreams(*streams, layout, seed * 1000 + run);
    ASSERT_FALSE(result.deadlock) << result.where << "\n" << describe(program) << describe(*streams);
    ASSERT_TRUE(result.memory == expected) << "run " << run << "\n" << describe(program) << describe(*streams);
  }
}

TEST(RandomPrograms, EveryInterleavingIsSequential) {
  int64_t dynamic = 0, refused = 0;
  for (uint64_t i = 0; i < numPrograms() && !HasFatalFailure(); ++i)
    expectSequential(firstSeed() + i, {}, {}, {}, dynamic, refused);
  RecordProperty("dynamic_instructions", std::to_string(dynamic));
  EXPECT_GT(dynamic, int64_t(numPrograms()) * 10);
}

} // namespace

} // namespace neuroncore::schedule::test

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the synchronisation costs: the period of real loops against exact dependences in the same instruction order.

#include <gtest/gtest.h>

#include "EventSimulation.h"
#include "HappensBefore.h"
#include "Pipeline.h"
#include "RealPrograms.h"
#include "neuron/Schedule/Projection.h"
#include "neuron/Schedule/Synchronisation.h"

namespace neuroncore::schedule::test {

namespace {

using isa::Engine;

TEST(Overlap, PipelineByBuffers) {
  for (auto [copies, expected] : {std::pair(1, 6060.0), std::pair(2, 3030.0), std::pair(4, 2600.0)}) {
    PipelineOptions options;
    options.copies = copies;
    Period period = measurePeriod(options);
    EXPECT_NEAR(period.streams, expected, expected * 0.01) << copies << " buffers";
    EXPECT_NEAR(period.streams, period.exact, 1) << copies << " buffers";
  }
}

/// Durations by opcode; the ratio of the streams' time to that with exact dependences.
double ratioToExact(const std::function<void(ProgramBuilder &)> &add, const std::map<isa::Opcode, double> &byOpcode) {
  ProgramBuilder builder;
  add(builder);
  StructuredProgram program = builder.take();
  Durations durations;
  forEachInstruction(program, [&](Instruction &instruction) {
    durations.of[instruction.code.debugId] = byOpcode.at(instruction.code.opcode);
  });
  Layout layout(program.variables);
  Status status = synchronise(program);
  EXPECT_TRUE(status) << status.error().message();
  Expected<isa::Program> streams = project(program);
  EXPECT_TRUE(streams) << streams.error().message();
  EXPECT_EQ(findHazard(*streams, layout), "");
  return timeOfStreams(*streams, durations) / timeWithExactDependences(program, layout, durations);
}

const std::map<isa::Opcode, double> kRowDurations = {
    {isa::Opcode::DmaCopy, 2600},      {isa::Opcode::Activation, 1900},         {isa::Opcode::TensorCopy, 200},
    {isa::Opcode::TensorTensor, 2000}, {isa::Opcode::ScalarTensorTensor, 3800},
};

TEST(Overlap, RmsNormLosesNothing) {
  for (int copies : {1, 2, 4})
    EXPECT_NEAR(ratioToExact(
                    [&](ProgramBuilder &b) {
                      int x = b.addVariable(400), w = b.addVariable(4), y = b.addVariable(400);
                      addRmsNorm(b, copies, 33, x, w, y);
                    },
                    kRowDurations),
                1, 1e-9)
        << copies << " buffers";
}

TEST(Overlap, MatmulLosesNothing) {
  std::map<isa::Opcode, double> durations = {{isa::Opcode::DmaCopy, 1000},
                                             {isa::Opcode::LoadStationary, 60},
                                             {isa::Opcode::Matmul, 650},
                                             {isa::Opcode::TensorCopy, 500}};
  for (int copies : {1, 2, 4})
    EXPECT_NEAR(ratioToExact(
                    [&](ProgramBuilder &b) {
                      int a = b.addVariable(1000), bm = b.addVariable(1000), c = b.addVariable(1000);
                      addMatmul(b, copies, 3, 5, 8, a, bm, c);
                    },
                    durations),
                1, 1e-9)
        << copies << " buffers";
}

TEST(Overlap, IndependentKernelsOverlap) {
  // Each chain works on its own variables, but on the same SBUF addresses.
  double ratio = ratioToExact(
      [&](ProgramBuilder &b) {
        for (int kernel = 0; kernel < 3; ++kernel) {
          int x = b.addVariable(100), w = b.addVariable(4), y = b.addVariable(100);
          addRmsNorm(b, 2, 12, x, w, y);
        }
      },
      kRowDurations);
  EXPECT_LT(ratio, 1.05);
}

} // namespace

} // namespace neuroncore::schedule::test

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Durations of this loop: load 2600, scalar 1700, vector 2100, store 2600.

#include "Pipeline.h"

#include <gtest/gtest.h>

#include "neuron/Schedule/Projection.h"
#include "neuron/Schedule/Synchronisation.h"

namespace neuroncore::schedule::test {

Pipeline makePipeline(const PipelineOptions &options, int64_t trips) {
  ProgramBuilder b;
  Pipeline out;
  int words = int(4 * (trips + 4));
  int input = b.addVariable(words, options.mayAlias ? 0 : -1);
  // With a common group both start at one address; the store of tile i then goes where tile i + 1 is loaded from.
  int output = b.addVariable(words, options.mayAlias ? 0 : -1);
  int outputStart = options.mayAlias ? 4 : 0;
  auto timed = [&](Instruction &instruction, double duration) {
    out.durations.of[instruction.code.debugId] = duration;
  };
  auto x = [&](int copy) { return sbuf(copy % options.copies * 12); };
  if (options.loadsAhead)
    for (int tile = 0; tile < 2; ++tile)
      timed(b.load(options.loader, x(tile), {input, tile * 4, 4}), 2600);
  LoopId loop = b.beginLoop(trips, options.copies);
  for (int copy = 0; copy < options.copies; ++copy) {
    if (copy > 0)
      b.nextCopy();
    Tile middle = sbuf(copy * 12 + 4), result = sbuf(copy * 12 + 8);
    int ahead = options.loadsAhead ? 2 : 0;
    timed(b.load(options.loader, x(copy + ahead), {input, ahead * 4, 4, 1, 4, {{loop, 4}}}), 2600);
    timed(b.compute(isa::Engine::Scalar, middle, {x(copy)}), 1700);
    timed(b.compute(isa::Engine::Vector, result, {middle}), 2100);
    timed(b.store(options.storer, {output, outputStart, 4, 1, 4, {{loop, 4}}}, result), 2600);
  }
  b.endLoop();
  out.program = b.take();
  return out;
}

Period measurePeriod(const PipelineOptions &options) {
  Period period;
  double streams[2], exact[2];
  constexpr int64_t kTrips[2] = {40, 80};
  for (int i = 0; i < 2; ++i) {
    Pipeline pipeline = makePipeline(options, kTrips[i]);
    Layout layout(pipeline.program.variables);
    exact[i] = timeWithExactDependences(pipeline.program, layout, pipeline.durations);
    Status status = synchronise(pipeline.program);
    EXPECT_TRUE(status) << status.error().message();
    Expected<isa::Program> program = project(pipeline.program);
    EXPECT_TRUE(program) << program.error().message();
    streams[i] = timeOfStreams(*program, pipeline.durations);
  }
  period.streams = (streams[1] - streams[0]) / double(kTrips[1] - kTrips[0]);
  period.exact = (exact[1] - exact[0]) / double(kTrips[1] - kTrips[0]);
  return period;
}

} // namespace neuroncore::schedule::test

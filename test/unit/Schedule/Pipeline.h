// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loop most questions of overlap are asked of: load - scalar engine - vector engine - store.

#ifndef NEURON_TEST_SCHEDULE_PIPELINE_H
#define NEURON_TEST_SCHEDULE_PIPELINE_H

#include <functional>
#include <vector>

#include "EventSimulation.h"
#include "ProgramBuilder.h"

namespace neuroncore::schedule::test {

struct PipelineOptions {
  int copies = 4;
  isa::Engine loader = isa::Engine::Sync;
  isa::Engine storer = isa::Engine::Gpsimd;
  /// The load of tile i + 2 stands in front of the computation of tile i (needs 4 copies).
  bool loadsAhead = false;
  /// The output is one alias group with the input.
  bool mayAlias = false;
};

struct Pipeline {
  StructuredProgram program;
  Durations durations;
};

Pipeline makePipeline(const PipelineOptions &options, int64_t trips);

struct Period {
  double streams = 0;
  double exact = 0;
};

/// Nanoseconds per tile in the steady state.
Period measurePeriod(const PipelineOptions &options);

} // namespace neuroncore::schedule::test

#endif // NEURON_TEST_SCHEDULE_PIPELINE_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random structured programs with many conflicts: shared and rotating buffers, partial ranges, aliases, nests to depth
// three, transfers on three engines.

#ifndef NEURON_TEST_SCHEDULE_RANDOMPROGRAM_H
#define NEURON_TEST_SCHEDULE_RANDOMPROGRAM_H

#include <cstdint>

#include "neuron/Schedule/StructuredProgram.h"

namespace neuroncore::schedule::test {

struct RandomOptions {
  int maxKernels = 4;
  int maxInstructions = 9; // of one body at any level
  int maxDepth = 3;
  int maxTrips = 7;
};

StructuredProgram randomProgram(uint64_t seed, const RandomOptions &options = {});

} // namespace neuroncore::schedule::test

#endif // NEURON_TEST_SCHEDULE_RANDOMPROGRAM_H

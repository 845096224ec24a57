// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random units over one set of variables, and random steps that run them. What a unit calls a variable is a variable,
// or a parameter that each run binds to another one.

#ifndef NEURON_TEST_SCHEDULE_RANDOMRUNS_H
#define NEURON_TEST_SCHEDULE_RANDOMRUNS_H

#include <cstdint>
#include <vector>

#include "RandomProgram.h"
#include "neuron/Schedule/Linking.h"

namespace neuroncore::schedule::test {

struct RandomRunsOptions {
  RandomOptions unit;
  int maxUnits = 3;
  int maxSteps = 5;
  int maxRuns = 4;
};

struct RandomRuns {
  std::vector<StructuredProgram> units;
  std::vector<Step> steps;
  std::vector<VariableInfo> variables;
  /// Per run and parameter; -1: nothing.
  std::vector<std::vector<int>> bindings;
};

RandomRuns randomRuns(uint64_t seed, const RandomRunsOptions &options = {});

} // namespace neuroncore::schedule::test

#endif // NEURON_TEST_SCHEDULE_RANDOMRUNS_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Time of a program with given durations: once as its streams run, once with exact dependences and the same instruction
// order, which no synchronisation can beat.

#ifndef NEURON_TEST_SCHEDULE_EVENTSIMULATION_H
#define NEURON_TEST_SCHEDULE_EVENTSIMULATION_H

#include <map>

#include "SymbolicMachine.h"

namespace neuroncore::schedule::test {

/// Nanoseconds. A transfer starts `dispatch` after its trigger, occupies its engine's queue for its duration and is
/// seen complete `completion` after its last byte; every semaphore update is seen elsewhere `hop` later.
struct Durations {
  std::map<uint32_t, double> of; // by debugId
  double dispatch = 1000;
  double completion = 300;
  double hop = 30;
};

double timeOfStreams(const isa::Program &program, const Durations &durations);
double timeWithExactDependences(const StructuredProgram &program, const Layout &layout, const Durations &durations);

} // namespace neuroncore::schedule::test

#endif // NEURON_TEST_SCHEDULE_EVENTSIMULATION_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which conflicting accesses of five streams are ordered in every execution the machine allows? Independent of how the
// waits came about: it reads the streams only.

#ifndef NEURON_TEST_SCHEDULE_HAPPENSBEFORE_H
#define NEURON_TEST_SCHEDULE_HAPPENSBEFORE_H

#include <string>

#include "SymbolicMachine.h"

namespace neuroncore::schedule::test {

struct CheckOptions {
  /// What a count of a DMA semaphore proves depends on the order of later triggers, so the order is a fixpoint. With
  /// too few rounds correct programs are reported.
  int maxRounds = 1 << 20;
};

/// Empty if every pair of conflicting accesses is ordered and the semaphores are cleared at the right time.
std::string findHazard(const isa::Program &program, const Layout &layout, const CheckOptions &options = {});

} // namespace neuroncore::schedule::test

#endif // NEURON_TEST_SCHEDULE_HAPPENSBEFORE_H

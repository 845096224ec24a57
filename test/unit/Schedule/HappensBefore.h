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
  /// A wait that proves that a trigger was issued also proves what that trigger had waited for. Without this, correct
  /// programs are reported.
  bool useIssueFacts = true;
};

/// Empty if every pair of conflicting accesses is ordered and the semaphores are cleared at the right time.
std::string findHazard(const isa::Program &program, const Layout &layout, const CheckOptions &options = {});

} // namespace neuroncore::schedule::test

#endif // NEURON_TEST_SCHEDULE_HAPPENSBEFORE_H

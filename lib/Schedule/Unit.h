// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Synchronisation of a program that others follow.

#ifndef NEURON_LIB_SCHEDULE_UNIT_H
#define NEURON_LIB_SCHEDULE_UNIT_H

#include <vector>

#include "neuron/Schedule/Synchronisation.h"

namespace neuroncore::schedule {

/// synchronise(), and the waits with which the sync stream, behind all it has in the program, knows that the program
/// has ended: every compute instruction and every transfer is complete, every stream has passed all of its waits, and
/// no semaphore changes any more. Waits that follow from what the stream has seen are left out. Values are constants,
/// so several on one instruction or on several are the same.
Status synchroniseUnit(StructuredProgram &program, const SynchronisationOptions &options, SynchronisationReport *report,
                       std::vector<isa::Wait> *drain);

} // namespace neuroncore::schedule

#endif // NEURON_LIB_SCHEDULE_UNIT_H

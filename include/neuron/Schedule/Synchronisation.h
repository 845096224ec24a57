// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dependences of a structured program turned into semaphore waits and updates, such that every execution of its five
// streams that respects them equals the sequential one and none deadlocks (docs/Synchronisation.md).

#ifndef NEURON_SCHEDULE_SYNCHRONISATION_H
#define NEURON_SCHEDULE_SYNCHRONISATION_H

#include <cstdint>

#include "neuron/Schedule/StructuredProgram.h"
#include "neuron/Support/Error.h"

namespace neuroncore::schedule {

struct SynchronisationOptions {
  /// Drop waits that earlier ones imply. Off only to measure or to debug.
  bool eliminate = true;
  /// Let the elimination skip passes of steady loops. Off only to check it: the cost then grows with trip counts.
  bool skipPasses = true;
  /// Semaphores the program may use: one per engine, the rest for DMA. The others belong to the runtime.
  int32_t numSemaphores = 245;
};

struct SynchronisationReport {
  int64_t numInstructions = 0;
  int64_t numDmaSites = 0;
  /// Pairs of accesses that were compared and of which at least one writes.
  int64_t numPairs = 0;
  /// One per (instruction, counter, anchor), before and after elimination; boundaries between kernels included.
  int64_t numWaits = 0;
  int64_t numKeptWaits = 0;
  /// Kernels that were ended early because they had more DMA sites than a block of semaphores.
  int32_t numSplitKernels = 0;
  /// DMA sites that share the semaphore of another one (and so wait for it).
  int32_t numSharedSites = 0;
  /// Semaphores in use: numbers 0 .. n - 1.
  int32_t numSemaphores = 0;
};

/// Fills the results of synchronisation in `program`: waits, updates, DMA counters and kernel boundaries. A kernel with
/// more DMA sites than semaphores is split at its top level into several of the same name.
Status synchronise(StructuredProgram &program, const SynchronisationOptions &options = {},
                   SynchronisationReport *report = nullptr);

} // namespace neuroncore::schedule

#endif // NEURON_SCHEDULE_SYNCHRONISATION_H

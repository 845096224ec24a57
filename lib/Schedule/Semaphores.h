// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Semaphore numbers: one per engine, then three blocks that consecutive kernels use in turn.

#ifndef NEURON_LIB_SCHEDULE_SEMAPHORES_H
#define NEURON_LIB_SCHEDULE_SEMAPHORES_H

#include <cstdint>
#include <vector>

#include "FlatProgram.h"
#include "neuron/Schedule/Synchronisation.h"

namespace neuroncore::schedule {

/// A block is cleared when the kernel three before has ended and no kernel waits on it any more: not two before, whose
/// successor may still wait for its last transfers.
inline constexpr int32_t kNumBlocks = 3;

struct SemaphorePlan {
  std::vector<int32_t> numCounters; // per kernel
  std::vector<int32_t> first;       // per kernel
  int32_t numSemaphores = 0;
};

/// Assigns counters to the DMA sites of `flat`. Where a kernel has too many, `program` is split at top-level boundaries
/// and `flat` is built again; where that does not help, sites share counters.
Status assignSemaphores(StructuredProgram &program, FlatProgram &flat, const SynchronisationOptions &options,
                        SemaphorePlan &plan, SynchronisationReport &report);

} // namespace neuroncore::schedule

#endif // NEURON_LIB_SCHEDULE_SEMAPHORES_H

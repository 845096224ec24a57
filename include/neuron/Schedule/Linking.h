// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several structured programs run one after the other in one set of streams, each stored once however often it runs
// (docs/Synchronisation.md).

#ifndef NEURON_SCHEDULE_LINKING_H
#define NEURON_SCHEDULE_LINKING_H

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "neuron/Schedule/Projection.h"
#include "neuron/Schedule/StructuredProgram.h"
#include "neuron/Schedule/Synchronisation.h"
#include "neuron/Support/Error.h"

namespace neuroncore::schedule {

/// `runs` runs of a unit in a row. The runs of all steps are numbered 0, 1, 2, ... in order.
struct Step {
  int32_t unit = 0; // index in the units
  int32_t runs = 1;
};

struct LinkReport {
  /// Semaphores in use: numbers 0 .. n - 1. With several runs the last one counts the runs that have ended.
  int32_t numSemaphores = 0;
  int64_t numRuns = 0;
  /// Of each unit; of units that no step runs all zeros.
  std::vector<SynchronisationReport> units;
  /// Of all units together: the most live registers, the deepest fall-back, sums of the counts, and the registers with
  /// the kernels numbered through all units in order. Barriers between runs are not in the counts.
  ProjectionReport projection;
  /// Units that are stored once and called, per stream.
  std::array<int32_t, isa::kNumStreams> numCalledUnits = {};
};

/// Synchronises and projects each unit as a program of its own, and puts the runs of all steps one after the other.
/// Between two runs everything is drained and the semaphores that the unit used are zero again, and isa::kRunRegister
/// of every stream holds the number of the run. One run of a unit without parameters gives exactly what synchronise()
/// and project() give. A stream without an instruction in any run is empty. Deterministic.
Expected<isa::Program> link(std::span<StructuredProgram> units, std::span<const Step> steps,
                            const SynchronisationOptions &synchronisation = {},
                            const ProjectionOptions &projection = {}, LinkReport *report = nullptr);

} // namespace neuroncore::schedule

#endif // NEURON_SCHEDULE_LINKING_H

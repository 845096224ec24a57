// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Software pipelining of a loop body on in-order engines: which instructions of later iterations run beside those of an
// earlier one, and in which order.

#ifndef PASSES_SCHEDULE_MODULOSCHEDULE_H
#define PASSES_SCHEDULE_MODULOSCHEDULE_H

#include <cstdint>
#include <optional>
#include <vector>

#include "neuron/Isa/Instruction.h"

namespace mlir::neuron {

/// One instruction of the body; times in picoseconds of the machine model.
struct BodyInstruction {
  int stream = 0;
  int64_t occupancy = 0; // of its engine (a transfer: the trigger)
  int64_t latency = 0;   // from its start until other engines may use its result
  int64_t transfer = 0;  // time of the DMA engines
  bool load = false;     // runs ahead on a stream of its own
  bool attached = false; // nothing else of its stream may come between it and the instruction before
};

/// `to` of iteration i + distance follows `from` of iteration i.
struct BodyDependence {
  unsigned from = 0, to = 0;
  int64_t distance = 0;
};

struct LoopBody {
  std::vector<BodyInstruction> instructions;
  std::vector<BodyDependence> dependences;
};

/// Instruction order[k].index of iteration j - order[k].stage runs at place k of the new body's iteration j.
struct PipelinedOrder {
  struct Entry {
    unsigned index = 0;
    int64_t stage = 0;
  };
  std::vector<Entry> order;
  int64_t stages = 1;
  int64_t periodPs = 0; // simulated, steady state
};

/// The order with the shortest simulated period among the modulo schedules of at most `maxStages` stages and the order
/// the body has; nullopt when none is more than 2 % faster than that.
std::optional<PipelinedOrder> pipeline(const LoopBody &body, int64_t maxStages);

} // namespace mlir::neuron

#endif // PASSES_SCHEDULE_MODULOSCHEDULE_H

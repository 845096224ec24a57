// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one structured program projected onto the five instruction streams (docs/Synchronisation.md).

#ifndef NEURON_SCHEDULE_PROJECTION_H
#define NEURON_SCHEDULE_PROJECTION_H

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "neuron/Schedule/StructuredProgram.h"
#include "neuron/Support/Error.h"

namespace neuroncore::schedule {

struct ProjectionOptions {
  /// Registers per sequencer, register 0 (always zero) included.
  int32_t numRegisters = isa::kNumRegisters;
};

/// What a kernel gives up on one engine to fit the registers; each level includes those before. Always correct, slower.
enum class RegisterFallback : uint8_t {
  None,
  NoDisarming,    // waits on an earlier pass also wait in the first pass, for what stands before the loop
  RoundToCurrent, // waits on an engine ask for everything sequentially before
  HoistWaits,     // waits for what stands outside a loop move in front of it
};

/// A register and where it lives: from the entry of `scope` to its end.
struct RegisterUse {
  enum class Kind : uint8_t {
    Linear,      // sum of rate * pass number over the loops around
    EarlierPass, // the same, but far below every count in the first pass of `scope`
  };
  int32_t kernel = 0;
  uint8_t number = 0;
  Kind kind = Kind::Linear;
  LoopId scope = -1;
  std::vector<std::pair<LoopId, int64_t>> rates;
};

struct StreamReport {
  int32_t maxLiveRegisters = 0;
  /// The deepest fall-back of any kernel.
  RegisterFallback fallback = RegisterFallback::None;
  std::vector<RegisterUse> registers;
  /// Sequencer instructions that were added: register and branch instructions, and NOPs that carry waits.
  int32_t numControl = 0;
  int32_t numWaitNops = 0;
};

struct ProjectionReport {
  std::array<StreamReport, isa::kNumStreams> streams;
};

/// Needs the results of synchronise(). An engine takes part in a loop only if it has an instruction in it; a stream
/// ends with RETURN unless it is empty. Deterministic.
Expected<isa::Program> project(const StructuredProgram &program, const ProjectionOptions &options = {},
                               ProjectionReport *report = nullptr);

} // namespace neuroncore::schedule

#endif // NEURON_SCHEDULE_PROJECTION_H

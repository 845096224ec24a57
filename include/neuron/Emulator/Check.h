// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The check observer: proves from the instruction streams alone that every execution they allow gives the same result.
// It knows what the machine promises (docs/Emulator.md) and nothing of how the compiler placed its waits. Checked are
// races between instructions and transfers, reads of memory that was never written, PSUM accumulation onto other data,
// addresses outside variables, deadlocks and the reuse of semaphores.

#ifndef NEURON_EMULATOR_CHECK_H
#define NEURON_EMULATOR_CHECK_H

#include <cstdint>
#include <string>
#include <vector>

#include "neuron/Emulator/Emulator.h"

namespace neuroncore::emulator {

struct Hazard {
  enum class Kind : uint8_t {
    Race,           // two accesses, one of them a write, that nothing orders
    UnwrittenRead,  // SBUF, PSUM or scratch memory is read before it was written
    PsumAccumulate, // a matmul accumulates onto values that no matmul wrote
    OutOfBounds,    // an access outside its variable, or a size above its bound
    ConstantWrite,  // a transfer writes a constant
    Deadlock,
    SemaphoreReuse, // a semaphore is cleared while updates or waits of its earlier use may be outstanding
  };
  Kind kind = Kind::Race;
  /// Names the instructions with their streams, positions and debug records, and the memory.
  std::string message;
  /// Stream (index in isa::kStreamEngines) and position; `second` is the later one, or equal to `first`.
  struct Place {
    int stream = 0;
    uint32_t pc = 0;
    bool operator==(const Place &) const = default;
  };
  Place first, second;
};

struct CheckOptions {
  /// Of an execution, when the program's path depends on data; without it such loads give 0.
  ControlTrace trace;
  /// Stop after so many executed instructions; the result then says that it is incomplete.
  uint64_t maxInstructions = 4000000;
  /// Orderings are proven inside windows of at most so many instructions; instructions of different windows are taken
  /// to be ordered.
  uint64_t windowInstructions = 200000;
  size_t maxHazards = 50;
};

struct CheckResult {
  /// Each pair of instructions is reported once.
  std::vector<Hazard> hazards;
  uint64_t instructions = 0;
  uint64_t windows = 0;
  bool isComplete = true;
};

Expected<CheckResult> checkProgram(const LoadedProgram &program, const CheckOptions &options = {});

/// Executes the program in a random order that the machine allows: sequencers run ahead of their engines, an
/// instruction reads and writes at different moments, a transfer is sixteen parts in any order, some DMA engine may
/// stand still for long. A race-free program gives the same result for every seed.
Status executeAdversarially(const LoadedProgram &program, std::span<void *const> variables, uint64_t seed);

} // namespace neuroncore::emulator

#endif // NEURON_EMULATOR_CHECK_H

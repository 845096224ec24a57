// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The structured program: what the schedule phase reasons about and the emit phase projects onto five streams. It is a
// plain tree (kernels, loops, instructions) without MLIR, so that dependence analysis, synchronisation, register
// assignment and projection can be tested alone. "Sequential" means: executed in the order of this tree.

#ifndef NEURON_SCHEDULE_STRUCTUREDPROGRAM_H
#define NEURON_SCHEDULE_STRUCTUREDPROGRAM_H

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "neuron/Isa/Instruction.h"

namespace neuroncore::schedule {

using LoopId = int32_t;

/// A part of an HBM address: iteration number of an enclosing loop (0, 1, 2, ...) times a stride in bytes.
struct HbmTerm {
  LoopId loop = -1;
  int64_t stride = 0;
};

/// A wait before registers exist: counter >= base + immediate, where base is the sequential value of the counter at the
/// start of the current pass of the loop `anchor`, or 0 without one. Counters of engines count completed instructions
/// and run on through the whole program; counters of DMA sites count completed transfers since the start of their
/// kernel.
struct SymbolicWait {
  enum class Counter : uint8_t { Engine, DmaSite };
  Counter counter = Counter::Engine;
  /// Engine: index in isa::kStreamEngines. DmaSite: number of the counter within its kernel.
  int32_t index = 0;
  /// DmaSite: how many kernels before this one the counter belongs to.
  uint8_t kernelsBack = 0;
  /// The producer ran in an earlier pass of `anchor`: there is nothing to wait for in the first one.
  bool armedAfterFirstPass = false;
  /// A loop around the instruction; -1: none, the immediate is the whole value.
  LoopId anchor = -1;
  int64_t immediate = 0;

  friend bool operator==(const SymbolicWait &, const SymbolicWait &) = default;
};

struct Instruction {
  /// Addresses in SBUF and PSUM are final. The update is filled by synchronise(), waits and the terms of hbm[] by
  /// project(); they must be empty before.
  isa::Instruction code;
  isa::Engine engine = isa::Engine::Unknown;
  /// Loop-dependent parts of the addresses of code.hbm[0] and code.hbm[1].
  std::array<std::vector<HbmTerm>, 2> hbmTerms;
  /// The caller's identity of this instruction (for example the position of a nisa op); never interpreted.
  int32_t tag = -1;

  // Results of synchronisation.
  int32_t dmaSite = -1; // number of the DMA counter within the kernel, -1 for compute
  std::vector<SymbolicWait> waits;
};

struct Loop;
using Node = std::variant<Instruction, std::unique_ptr<Loop>>;
using Sequence = std::vector<Node>;

/// Iteration i (0 <= i < trips) runs copies[i mod copies.size()]. The copies are the rotation of one body: same
/// instructions in the same order, other addresses. One run through all copies is a pass.
struct Loop {
  LoopId id = -1; // unique in the program
  int64_t trips = 0;
  std::vector<Sequence> copies;
};

struct Kernel {
  std::string name;
  Sequence body;

  // Results of synchronisation.
  /// What the boundary to the kernels before needs: ordering, clearing of the semaphore block, ticks.
  std::vector<Instruction> entry;
  /// The tick of each participating engine, if a later kernel asks for it.
  std::vector<Instruction> exit;
  /// DMA counter i is semaphore firstSemaphore + i.
  int32_t firstSemaphore = 0;
  int32_t numDmaCounters = 0;
};

/// Variables with equal aliasGroup may overlap (a mutated input and the output bound to it have one group and offset
/// 0).
struct VariableInfo {
  int64_t bytes = 0;
  int32_t aliasGroup = -1; // -1: overlaps nothing else
};

struct StructuredProgram {
  std::vector<Kernel> kernels;
  /// Index = var_id.
  std::vector<VariableInfo> variables;
  /// Index = number of the parameter less `firstParameter`. Two parameters overlap only if their aliasGroup is equal
  /// to that of each other, or of a variable.
  std::vector<VariableInfo> parameters;
  uint32_t firstParameter = 0;

  /// What an HBM operand names; null if there is no such variable or parameter.
  const VariableInfo *operand(uint16_t variable) const {
    if (!(variable & isa::kParameterFlag))
      return variable < variables.size() ? &variables[variable] : nullptr;
    uint32_t index = uint32_t(variable & ~isa::kParameterFlag) - firstParameter;
    return index < parameters.size() ? &parameters[index] : nullptr;
  }
};

} // namespace neuroncore::schedule

#endif // NEURON_SCHEDULE_STRUCTUREDPROGRAM_H

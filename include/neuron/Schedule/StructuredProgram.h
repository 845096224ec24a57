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

/// A wait before registers exist: counter >= anchor + immediate.
struct SymbolicWait {
  enum class Counter : uint8_t { Engine, DmaSite };
  Counter counter = Counter::Engine;
  /// Engine: index in isa::kStreamEngines. DmaSite: site number within its kernel.
  int32_t index = 0;
  /// DmaSite of the previous kernel (its semaphore block) rather than of this one.
  bool previousKernel = false;
  /// Which mirror the immediate is added to; -1: none, the immediate is the whole value.
  int32_t anchor = -1;
  int64_t immediate = 0;
};

struct Instruction {
  /// Addresses in SBUF and PSUM are final. waits, update, debug terms of hbm[] are filled by synchronisation and
  /// projection and must be empty before.
  isa::Instruction code;
  isa::Engine engine = isa::Engine::Unknown;
  /// Loop-dependent parts of the addresses of code.hbm[0] and code.hbm[1].
  std::array<std::vector<HbmTerm>, 2> hbmTerms;
  /// The caller's identity of this instruction (for example the position of a nisa op); never interpreted.
  int32_t tag = -1;

  // Results of synchronisation.
  int32_t dmaSite = -1; // number within the kernel, -1 for compute
  std::vector<SymbolicWait> waits;
};

struct Loop;
using Node = std::variant<Instruction, std::unique_ptr<Loop>>;
using Sequence = std::vector<Node>;

/// Iteration i (0 <= i < trips) runs copies[i mod copies.size()]. The copies are the rotation of one body: same
/// instructions in the same order, other addresses.
struct Loop {
  LoopId id = -1; // unique in the program
  int64_t trips = 0;
  std::vector<Sequence> copies;
};

struct Kernel {
  std::string name;
  Sequence body;
};

/// Variables with equal aliasGroup may overlap (a mutated input and the output bound to it have one group and offset 0).
struct VariableInfo {
  int64_t bytes = 0;
  int32_t aliasGroup = -1; // -1: overlaps nothing else
};

struct StructuredProgram {
  std::vector<Kernel> kernels;
  /// Index = var_id.
  std::vector<VariableInfo> variables;
};

} // namespace neuroncore::schedule

#endif // NEURON_SCHEDULE_STRUCTUREDPROGRAM_H

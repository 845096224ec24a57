// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What one instruction costs on the machine model. The compiler chooses engines by it and the emulator computes its
// timelines from it, so there is one set of rules; docs/MachineModel.md states them. Nothing here parses or allocates.
//
// How the numbers combine, for an instruction that issues at time t (its waits satisfied, its predecessor in the stream
// issued):
//   * the sequencer is free again at t + issuePs;
//   * a compute instruction starts at s = max(t, engine free, all resources of the mask free) and holds engine and
//     resources until s + occupancyPs; its result and its update are visible at s + latencyPs. If it needs a table set
//     that is not the loaded one, s moves by the model's tableLoadPs first;
//   * the tensor engine has two units. A Loader instruction holds the weight loader; an Array instruction holds the
//   array
//     and starts when the loader is free as well. Both start in stream order, so a load hides behind the running
//     matmul;
//   * a DMA trigger at t: first byte at t + dispatchPs, DMA engine e busy for busyPs[e] once it is free, completion
//     (and the increments of its update) completionPs after the last byte. The next transfer of the same queue starts
//     no earlier than max(queueFloorPs, dataPs()) after this one started. generatorPs: GpSimd is busy with descriptors.

#ifndef NEURON_ISA_COST_H
#define NEURON_ISA_COST_H

#include <algorithm>
#include <array>
#include <cstdint>

#include "neuron/Isa/Instruction.h"
#include "neuron/Target/MachineModel.h"

namespace neuroncore::isa {

/// Bits of ComputeCost::resources. Two instructions of different engines that share a bit do not overlap.
namespace Resource {
enum : uint32_t {
  SbufVectorGpsimd = 1 << 0,
  PsumVectorScalar = 1 << 1,
  PsumBank0 = 1 << 2, // and the following bits, one per bank
};
} // namespace Resource

enum class TensorUnit : uint8_t { None, Loader, Array };

/// What the tensor engine's cost depends on besides the instruction: the stationary that is loaded.
struct PeState {
  uint8_t rows = 0; // K; 0: nothing loaded
  uint8_t cols = 0; // M
  Dtype dtype = Dtype::None;
  bool oneZero = false;

  /// To be called with each instruction of the tensor engine's stream, after its cost was asked for.
  void update(const Instruction &instruction);
};

struct ComputeCost {
  int64_t issuePs = 0;
  int64_t occupancyPs = 0;
  int64_t latencyPs = 0; // >= occupancyPs
  uint32_t resources = 0;
  /// Any: the instruction needs no table.
  ActivationSet tableSet = ActivationSet::Any;
  TensorUnit unit = TensorUnit::None;
};

/// Cost of a compute or control instruction. A control instruction only occupies its sequencer: all three times are
/// equal. `pe` may be null: a matmul is then charged as if a full stationary of the moving dtype were loaded.
ComputeCost computeCost(const target::MachineModel &model, Engine engine, const Instruction &instruction,
                        const PeState *pe = nullptr);

inline constexpr int kMaxDmaEngines = 16;

/// Bytes of the rows that are worth transposing on their way: shorter ones than the smallest efficient piece of a
/// transfer gain nothing.
inline constexpr int64_t kShortestTransposedRow = 64;

struct DmaCost {
  int64_t issuePs = 0;
  int64_t dispatchPs = 0;
  int64_t completionPs = 0;
  int64_t queueFloorPs = 0;
  int64_t generatorPs = 0;
  std::array<int64_t, kMaxDmaEngines> busyPs = {};
  /// Of the wider side of a transfer that casts.
  std::array<int64_t, kMaxDmaEngines> bytes = {};
  int64_t descriptors = 0;
  int64_t hbmReadBytes = 0;
  int64_t hbmWriteBytes = 0;

  int64_t dataPs() const { return *std::max_element(busyPs.begin(), busyPs.end()); }
};

/// Cost of a DMA instruction. `registers`: the 64 registers of the triggering sequencer, for dynamic counts and steps;
/// null: the immediates (upper bounds) are used.
DmaCost dmaCost(const target::MachineModel &model, Engine engine, const Instruction &instruction,
                const uint32_t *registers = nullptr);

} // namespace neuroncore::isa

#endif // NEURON_ISA_COST_H

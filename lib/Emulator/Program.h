// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program as the observers run it.

#ifndef NEURON_LIB_EMULATOR_PROGRAM_H
#define NEURON_LIB_EMULATOR_PROGRAM_H

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lib/Emulator/Batch.h"
#include "lib/Emulator/Dma.h"
#include "lib/Emulator/Machine.h"
#include "lib/Emulator/Ops/Matmul.h"
#include "neuron/Emulator/Emulator.h"

namespace neuroncore::emulator {

/// One instruction of a stream, with what the sequencer needs at hand.
struct Step {
  enum class Kind : uint8_t { Tile, Dma, RegisterLoad, RegisterStore, SemaphoreClear, Control };
  Kind kind = Kind::Control;
  uint8_t numWaits = 0;
  bool hasUpdate = false;
  /// register_load: the value decides what is executed.
  bool isRecorded = false;
  const isa::Instruction *instruction = nullptr;
  const TileOp *tile = nullptr;
  /// The tile operation, if it is a load or a product that may be batched.
  const LoadStationaryOp *load = nullptr;
  const MatmulOp *product = nullptr;
  const DmaOp *dma = nullptr;
  Locality locality;
};

struct LoadedProgram::Impl {
  std::shared_ptr<const neff::Neff> neff;
  const target::MachineModel *model = nullptr;
  ImageLayout layout;
  std::array<std::vector<Step>, isa::kNumStreams> steps;
  std::vector<std::unique_ptr<TileOp>> tileOps;
  std::vector<std::unique_ptr<DmaOp>> dmaOps;
  bool pathDependsOnData = false;
  mutable std::once_flag counted;
  mutable uint64_t executedInstructions = 0;
};

/// Which HBM pattern belongs to the only operand of register_load (a source: 1) and register_store (a destination: 0).
inline int registerOperandSide(isa::Opcode opcode) { return opcode == isa::Opcode::RegisterLoad ? 1 : 0; }

ImageLayout layoutOf(const target::MachineModel &model);

/// "vector[12] TENSOR_TENSOR (kernel 'softmax', neuron.binary<sub>)"
std::string describeInstruction(const neff::Neff &neff, int stream, uint32_t index);

/// Registers of a stream whose values decide what it executes or transfers, directly or through arithmetic.
std::vector<bool> decidingRegisters(const isa::Stream &stream);

} // namespace neuroncore::emulator

#endif // NEURON_LIB_EMULATOR_PROGRAM_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lookup in the generated tables. Codes are eight bits wide, so an index array makes each lookup one load.

#include "neuron/Isa/InstructionTable.h"

#include <cassert>

namespace neuroncore::isa {

namespace {

/// Indexable at compile time, before streamIndex() is.
constexpr unsigned engineBit(Engine engine) {
  for (int i = 0; i < kNumStreams; ++i)
    if (kStreamEngines[i] == engine)
      return 1u << i;
  return 0;
}

#include "neuron/Isa/InstructionTable.inc"

inline constexpr uint8_t kAbsent = 255;
using CodeIndex = std::array<uint8_t, 256>;

template <typename Row, size_t size, typename Key> constexpr CodeIndex makeIndex(const Row (&rows)[size], Key key) {
  static_assert(size < kAbsent);
  CodeIndex index = {};
  index.fill(kAbsent);
  for (size_t i = 0; i < size; ++i)
    index[uint8_t(key(rows[i]))] = uint8_t(i);
  return index;
}

constexpr CodeIndex kInstructionIndex = makeIndex(kInstructions, [](const auto &row) { return row.opcode; });
constexpr CodeIndex kAluOpIndex = makeIndex(kAluOps, [](const auto &row) { return row.op; });
constexpr CodeIndex kActivationIndex = makeIndex(kActivations, [](const auto &row) { return row.function; });
constexpr CodeIndex kRoutineIndex = makeIndex(kRoutines, [](const auto &row) { return row.routine; });

template <typename Row, size_t size> const Row &lookUp(const Row (&rows)[size], const CodeIndex &index, uint8_t code) {
  assert(index[code] != kAbsent && "code is not in the instruction set; the decoder checks it");
  return rows[index[code]];
}

} // namespace

const InstructionInfo &instructionInfo(Opcode opcode) {
  return lookUp(kInstructions, kInstructionIndex, uint8_t(opcode));
}
std::span<const InstructionInfo> instructionTable() { return kInstructions; }
std::span<const LimitInfo> generalLimits() { return kGeneralLimits; }

std::span<const DtypeInfo> dtypeTable() { return kDtypes; }

const AluOpInfo &aluOpInfo(AluOp op) { return lookUp(kAluOps, kAluOpIndex, uint8_t(op)); }
std::span<const AluOpInfo> aluOpTable() { return kAluOps; }

const ActivationInfo &activationInfo(ActivationFunction function) {
  return lookUp(kActivations, kActivationIndex, uint8_t(function));
}
std::span<const ActivationInfo> activationTable() { return kActivations; }

const RoutineInfo &routineInfo(Routine routine) { return lookUp(kRoutines, kRoutineIndex, uint8_t(routine)); }
std::span<const RoutineInfo> routineTable() { return kRoutines; }

const RoutineFunctionInfo *routineFunctionInfo(Routine routine, uint8_t function) {
  if (routine == Routine::None || !isValidRoutine(uint8_t(routine)))
    return nullptr;
  for (const RoutineFunctionInfo &info : routineInfo(routine).functions)
    if (info.code == function)
      return &info;
  return nullptr;
}

} // namespace neuroncore::isa

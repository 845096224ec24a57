// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What lib/Isa/instructions.toml says about each opcode, operator, activation function and GpSimd routine, as tables.
// The codec, the verifier, the disassembler and the cost model are driven by them.

#ifndef NEURON_ISA_INSTRUCTIONTABLE_H
#define NEURON_ISA_INSTRUCTIONTABLE_H

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "neuron/Isa/Instruction.h"

namespace neuroncore::isa {

enum class Group : uint8_t { Compute, Dma, Control };
enum class Access : uint8_t { Read = 1, Write = 2, Readwrite = 3 };
enum class AluClass : uint8_t { Arithmetic, Compare, Bitvec, Unary };

inline constexpr uint8_t kSbufBit = 1 << unsigned(MemorySpace::Sbuf);
inline constexpr uint8_t kPsumBit = 1 << unsigned(MemorySpace::Psum);
inline constexpr uint8_t kHbmBit = 1 << unsigned(MemorySpace::Hbm);

/// Members of Instruction that an opcode uses besides waits, update, tiles and scalars. Function is
/// Instruction::function, RoutineFunction is Instruction::routineFunction.
namespace Field {
enum : uint32_t {
  None = 0,
  Op0 = 1 << 0,
  Op1 = 1 << 1,
  Reverse0 = 1 << 2,
  Reverse1 = 1 << 3,
  Negate = 1 << 4,
  Accumulate = 1 << 5,
  OneZero = 1 << 6,
  IsTranspose = 1 << 7,
  Axes = 1 << 8,
  Function = 1 << 9,
  ReduceCommand = 1 << 10,
  Queue = 1 << 11,
  DgeMode = 1 << 12,
  OobMode = 1 << 13,
  Routine = 1 << 14,
  RoutineFunction = 1 << 15,
  Immediates = 1 << 16,
  Rd = 1 << 17,
  Rs = 1 << 18,
  Rt = 1 << 19,
  Immediate = 1 << 20,
  Target = 1 << 21,
};
} // namespace Field

struct TileInfo {
  std::string_view name;
  Access access = Access::Read;
  uint8_t spaces = 0; // k*Bit
  bool optional = false;

  bool reads() const { return uint8_t(access) & uint8_t(Access::Read); }
  bool writes() const { return uint8_t(access) & uint8_t(Access::Write); }
};

/// A numbered constraint, for example {"matmul_c3", "N <= ..."}.
struct LimitInfo {
  std::string_view number;
  std::string_view statement;
};

struct InstructionInfo {
  Opcode opcode;
  std::string_view name;
  std::string_view mnemonic;
  std::string_view summary;
  std::string_view cost;
  Group group;
  uint8_t maxSlots;
  Engine defaultEngine;
  uint8_t engines; // bit streamIndex(engine)
  uint8_t numTiles;
  std::array<TileInfo, kMaxTiles> tiles;
  uint8_t numScalars;
  std::array<std::string_view, 2> scalars;
  uint32_t fields; // Field::*
  std::span<const LimitInfo> limits;

  bool uses(uint32_t field) const { return fields & field; }
  bool runsOn(Engine engine) const {
    int index = streamIndex(engine);
    return index >= 0 && (engines >> index & 1);
  }
};

/// The entry of a valid opcode.
const InstructionInfo &instructionInfo(Opcode opcode);
std::span<const InstructionInfo> instructionTable();
/// Constraints of every instruction, beside InstructionInfo::limits.
std::span<const LimitInfo> generalLimits();

struct DtypeInfo {
  Dtype dtype;
  std::string_view name;
  uint8_t bytes;
};
std::span<const DtypeInfo> dtypeTable();

struct AluOpInfo {
  AluOp op;
  std::string_view name;
  AluClass cls;
  /// Takes one operand: class Unary, and bitwise_not.
  bool unary;
};
const AluOpInfo &aluOpInfo(AluOp op);
std::span<const AluOpInfo> aluOpTable();

struct ActivationInfo {
  ActivationFunction function;
  std::string_view name;
  ActivationSet set;
  /// Outside [low, high] (of the magnitude, if rangeOfMagnitude) the result is NaN.
  bool hasRange;
  bool rangeOfMagnitude;
  double low, high;
};
const ActivationInfo &activationInfo(ActivationFunction function);
std::span<const ActivationInfo> activationTable();

struct RoutineFunctionInfo {
  std::string_view name;
  uint8_t code;
  /// 512-bit vector operations per 16 lanes of 32 bits.
  uint16_t vectorOps;
};

struct RoutineInfo {
  Routine routine;
  std::string_view name;
  std::string_view summary;
  std::span<const RoutineFunctionInfo> functions;
  /// Bit i: tile i of gpsimd_call must, may be present.
  uint8_t requiredTiles;
  uint8_t allowedTiles;
};
const RoutineInfo &routineInfo(Routine routine);
std::span<const RoutineInfo> routineTable();
/// Null when the routine has no such function.
const RoutineFunctionInfo *routineFunctionInfo(Routine routine, uint8_t function);

} // namespace neuroncore::isa

#endif // NEURON_ISA_INSTRUCTIONTABLE_H

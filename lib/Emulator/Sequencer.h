// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sequencer: program counter, registers, call stack, and what instructions ask of semaphores and HBM once register
// values are known. The function, time and check observers all run their streams through this file.

#ifndef NEURON_LIB_EMULATOR_SEQUENCER_H
#define NEURON_LIB_EMULATOR_SEQUENCER_H

#include <array>
#include <cstdint>
#include <optional>

#include "neuron/Isa/Instruction.h"

namespace neuroncore::emulator {

inline constexpr int kMaxCallDepth = 8;
inline constexpr int kDmaParts = 16;

struct SequencerState {
  uint32_t pc = 0;
  uint8_t depth = 0;
  bool ended = false;
  std::array<uint32_t, kMaxCallDepth> stack = {};
  std::array<int32_t, isa::kNumRegisters> registers = {};

  void write(uint8_t reg, int32_t value) {
    if (reg != isa::kZeroRegister)
      registers[reg] = value;
  }
};

inline int32_t wrap(int64_t value) { return int32_t(uint32_t(uint64_t(value))); }

/// r[rs] op (r[rt] + immediate), 32-bit wrap.
inline int32_t registerAlu(isa::AluOp op, int32_t a, int32_t b) {
  using isa::AluOp;
  const uint32_t ua = uint32_t(a), ub = uint32_t(b);
  switch (op) {
  case AluOp::Add:
    return int32_t(ua + ub);
  case AluOp::Subtract:
    return int32_t(ua - ub);
  case AluOp::Multiply:
    return int32_t(ua * ub);
  case AluOp::Maximum:
    return a > b ? a : b;
  case AluOp::Minimum:
    return a < b ? a : b;
  case AluOp::BitwiseAnd:
    return a & b;
  case AluOp::BitwiseOr:
    return a | b;
  case AluOp::BitwiseXor:
    return a ^ b;
  case AluOp::BitwiseNot:
    return ~a;
  case AluOp::ShiftLeft:
    return ub < 32 ? int32_t(ua << ub) : 0;
  case AluOp::ShiftRightLogical:
    return ub < 32 ? int32_t(ua >> ub) : 0;
  case AluOp::ShiftRightArithmetic:
    return ub < 32 ? a >> ub : (a < 0 ? -1 : 0);
  default: // bypass
    return a;
  }
}

inline bool compareRegisters(isa::AluOp op, int32_t a, int32_t b) {
  using isa::AluOp;
  switch (op) {
  case AluOp::Equal:
    return a == b;
  case AluOp::NotEqual:
    return a != b;
  case AluOp::GreaterEqual:
    return a >= b;
  case AluOp::Greater:
    return a > b;
  case AluOp::LessEqual:
    return a <= b;
  case AluOp::Less:
    return a < b;
  default: // bypass: always
    return true;
  }
}

enum class ControlResult : uint8_t { Ok, StackOverflow };

/// Executes the control flow and register part of a control instruction (not register_load and register_store, whose
/// operands are memory) and moves the program counter. `streamLength` is where a stream ends.
inline ControlResult executeControl(const isa::Instruction &instruction, SequencerState &state, uint32_t streamLength) {
  using isa::Opcode;
  const auto &r = state.registers;
  switch (instruction.opcode) {
  case Opcode::RegisterMove:
    state.write(instruction.rd, instruction.immediate);
    break;
  case Opcode::RegisterAlu:
    state.write(instruction.rd, registerAlu(instruction.op0, r[instruction.rs],
                                            wrap(int64_t(r[instruction.rt]) + instruction.immediate)));
    break;
  case Opcode::Branch:
    if (compareRegisters(instruction.op0, r[instruction.rs],
                         wrap(int64_t(r[instruction.rt]) + instruction.immediate))) {
      state.pc = instruction.target;
      state.ended = state.pc >= streamLength;
      return ControlResult::Ok;
    }
    break;
  case Opcode::Call:
    if (state.depth == kMaxCallDepth)
      return ControlResult::StackOverflow;
    state.stack[state.depth++] = state.pc + 1;
    state.pc = instruction.target;
    state.ended = state.pc >= streamLength;
    return ControlResult::Ok;
  case Opcode::Return:
    if (state.depth == 0) {
      state.ended = true;
      return ControlResult::Ok;
    }
    state.pc = state.stack[--state.depth];
    state.ended = state.pc >= streamLength;
    return ControlResult::Ok;
  default:
    break;
  }
  ++state.pc;
  state.ended = state.pc >= streamLength;
  return ControlResult::Ok;
}

inline void advance(SequencerState &state, uint32_t streamLength) {
  ++state.pc;
  state.ended = state.pc >= streamLength;
}

/// A wait with its registers resolved. `semaphore` may be outside [0, 256): a fault of the program.
struct ResolvedWait {
  int64_t semaphore;
  int32_t value;
  bool equal;
};
inline ResolvedWait resolve(const isa::Wait &wait, const SequencerState &state) {
  return {int64_t(wait.semaphore) + state.registers[wait.blockRegister],
          wrap(int64_t(state.registers[wait.valueRegister]) + wait.immediate), wait.equal};
}
/// The wrap-safe comparison of the instruction set.
inline bool isSatisfied(const ResolvedWait &wait, int32_t semaphoreValue) {
  const int32_t difference = wrap(int64_t(semaphoreValue) - wait.value);
  return wait.equal ? difference == 0 : difference >= 0;
}

inline int64_t resolveSemaphore(const isa::Update &update, const SequencerState &state) {
  return int64_t(update.semaphore) + state.registers[update.blockRegister];
}
inline int32_t applyUpdate(isa::UpdateOp op, int32_t old, uint8_t value) {
  using isa::UpdateOp;
  switch (op) {
  case UpdateOp::Increment:
    return wrap(int64_t(old) + 1);
  case UpdateOp::Decrement:
    return wrap(int64_t(old) - 1);
  case UpdateOp::AddImmediate:
    return wrap(int64_t(old) + value);
  case UpdateOp::SubtractImmediate:
    return wrap(int64_t(old) - value);
  case UpdateOp::Write:
    return value;
  case UpdateOp::None:
    break;
  }
  return old;
}
inline bool isValidSemaphore(int64_t index) { return index >= 0 && index < isa::kNumSemaphores; }

/// An HBM access pattern with its registers resolved: five dimensions, outermost first, byte offsets from the variable.
/// Elements pair up with the other side by their position in the static counts; those at or beyond a limit are left
/// out.
struct ResolvedHbm {
  int64_t offset = 0;
  std::array<int64_t, isa::kMaxHbmDims> count = {};
  std::array<int64_t, isa::kMaxHbmDims> limit = {};
  std::array<int64_t, isa::kMaxHbmDims> step = {};
  /// A number does not fit 64 bits.
  bool overflow = false;
  /// A run-time size is above its bound: the dimension, or -1.
  int beyondBound = -1;

  bool isFull() const { return count == limit; }
  bool isEmpty() const {
    for (int64_t l : limit)
      if (l == 0)
        return true;
    return false;
  }
};

inline ResolvedHbm resolve(const isa::HbmPattern &pattern, const SequencerState &state) {
  ResolvedHbm result;
  __int128 offset = pattern.byteOffset;
  for (const isa::HbmPattern::Term &term : pattern.terms)
    if (term.reg != isa::kZeroRegister)
      offset += __int128(state.registers[term.reg]) * term.stride;
  result.overflow = offset < INT64_MIN || offset > INT64_MAX;
  result.offset = result.overflow ? 0 : int64_t(offset);
  for (int i = 0; i < isa::kMaxHbmDims; ++i) {
    result.count[i] = pattern.count[i];
    result.limit[i] = pattern.count[i];
    if (pattern.countRegister[i] != isa::kZeroRegister) {
      result.limit[i] = uint32_t(state.registers[pattern.countRegister[i]]);
      if (result.limit[i] > result.count[i])
        result.beyondBound = i;
    }
    __int128 step = pattern.step[i];
    if (pattern.stepRegister[i] != isa::kZeroRegister)
      step *= state.registers[pattern.stepRegister[i]];
    result.overflow |= step < INT64_MIN || step > INT64_MAX;
    result.step[i] = int64_t(step);
  }
  return result;
}

/// First and one-past-last byte that a pattern touches; {0, 0} when it touches nothing, nothing returned on overflow.
struct ByteRange {
  int64_t begin = 0, end = 0;
};
inline std::optional<ByteRange> byteRange(const ResolvedHbm &pattern, int elementBytes) {
  if (pattern.overflow)
    return std::nullopt;
  if (pattern.isEmpty())
    return ByteRange{};
  __int128 low = pattern.offset, high = pattern.offset;
  for (int i = 0; i < isa::kMaxHbmDims; ++i) {
    const __int128 extent = __int128(pattern.limit[i] - 1) * pattern.step[i];
    (extent < 0 ? low : high) += extent;
  }
  high += elementBytes;
  if (low < INT64_MIN || low > INT64_MAX || high < INT64_MIN || high > INT64_MAX)
    return std::nullopt;
  return ByteRange{int64_t(low), int64_t(high)};
}

} // namespace neuroncore::emulator

#endif // NEURON_LIB_EMULATOR_SEQUENCER_H

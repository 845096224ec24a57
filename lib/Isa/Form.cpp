// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the encoding can carry: known codes, operands as the opcode has them, everything else at its default.

#include <algorithm>
#include <bit>
#include <iterator>

#include "Encoding.h"
#include "neuron/Isa/Codec.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Isa/Verify.h"
#include "neuron/Support/Text.h"

namespace neuroncore::isa {

namespace {

Error invalid(std::string message) { return Error(ErrorKind::InvalidInput, std::move(message)); }

class FormVerifier {
public:
  FormVerifier(Engine engine, const Instruction &instruction)
      : engine_(engine), in_(instruction), info_(instructionInfo(instruction.opcode)) {}

  Status run() {
    if (!info_.runsOn(engine_))
      return invalid(cat("expected a stream that holds ", info_.name, " but got ", toString(engine_)));
    for (auto check : {&FormVerifier::waits, &FormVerifier::update, &FormVerifier::codes, &FormVerifier::unusedFields,
                       &FormVerifier::scalars, &FormVerifier::tiles, &FormVerifier::hbm})
      if (Status status = (this->*check)(); !status)
        return status;
    return Status::success();
  }

private:
  Status checkRegister(uint8_t reg, const char *field) const {
    if (reg >= kNumRegisters)
      return invalid(cat("register_c1: ", field, ": expected a register below ", kNumRegisters, " but got ", int(reg)));
    return Status::success();
  }

  Status waits() {
    if (in_.numWaits > kMaxWaits)
      return invalid(cat("waits: expected at most ", kMaxWaits, " but got ", int(in_.numWaits),
                         "; put the others on a nop before"));
    for (int i = 0; i < kMaxWaits; ++i) {
      const Wait &wait = in_.waits[i];
      if (i >= in_.numWaits &&
          (wait.semaphore || wait.blockRegister || wait.valueRegister || wait.equal || wait.immediate))
        return invalid(cat("wait ", i, ": expected its default beyond the ", int(in_.numWaits), " waits"));
      if (Status status = checkRegister(wait.blockRegister, "block register of a wait"); !status)
        return status;
      if (Status status = checkRegister(wait.valueRegister, "value register of a wait"); !status)
        return status;
    }
    return Status::success();
  }

  Status update() {
    const Update &update = in_.update;
    switch (update.op) {
    case UpdateOp::None:
    case UpdateOp::Increment:
    case UpdateOp::Decrement:
      if (update.value != 1)
        return invalid(cat("update: expected value 1 but got ", int(update.value), "; use add_immediate"));
      if (update.op == UpdateOp::None && (update.semaphore || update.blockRegister))
        return invalid("update: expected no semaphore without an operation");
      break;
    case UpdateOp::AddImmediate:
    case UpdateOp::SubtractImmediate:
    case UpdateOp::Write:
      break;
    default:
      return invalid(cat("update: expected a known operation but got code ", int(update.op)));
    }
    return checkRegister(update.blockRegister, "block register of the update");
  }

  Status codes() {
    if (!isValidAluOp(uint8_t(in_.op0)))
      return invalid(cat("op0: expected a known operator but got code ", int(in_.op0)));
    if (!isValidAluOp(uint8_t(in_.op1)))
      return invalid(cat("op1: expected a known operator but got code ", int(in_.op1)));
    if (!isValidActivationFunction(uint8_t(in_.function)))
      return invalid(cat("function: expected a known activation function but got code ", int(in_.function)));
    if (uint8_t(in_.reduceCommand) > uint8_t(ReduceCommand::LoadReduce))
      return invalid(cat("reduce_command: expected a known command but got code ", int(in_.reduceCommand)));
    if (uint8_t(in_.dgeMode) > uint8_t(DgeMode::Static))
      return invalid(cat("dge_mode: expected a known mode but got code ", int(in_.dgeMode)));
    if (uint8_t(in_.oobMode) > uint8_t(OutOfBoundsMode::Skip))
      return invalid(cat("oob_mode: expected a known mode but got code ", int(in_.oobMode)));
    if (!isValidRoutine(uint8_t(in_.routine)))
      return invalid(cat("routine: expected a known routine but got code ", int(in_.routine)));
    for (auto [reg, name] : {std::pair{in_.rd, "rd"}, {in_.rs, "rs"}, {in_.rt, "rt"}})
      if (Status status = checkRegister(reg, name); !status)
        return status;
    return Status::success();
  }

  /// Fields that differ from their defaults.
  uint32_t changedFields() const {
    static const Instruction defaults;
    auto bit = [](bool changed, uint32_t field) { return changed ? field : 0u; };
    return bit(in_.op0 != defaults.op0, Field::Op0) | bit(in_.op1 != defaults.op1, Field::Op1) |
           bit(in_.reverse0, Field::Reverse0) | bit(in_.reverse1, Field::Reverse1) | bit(in_.negate, Field::Negate) |
           bit(in_.accumulate, Field::Accumulate) | bit(in_.oneZero, Field::OneZero) |
           bit(in_.isTranspose, Field::IsTranspose) | bit(in_.axes, Field::Axes) |
           bit(in_.function != defaults.function, Field::Function) |
           bit(in_.reduceCommand != defaults.reduceCommand, Field::ReduceCommand) | bit(in_.queue, Field::Queue) |
           bit(in_.dgeMode != defaults.dgeMode, Field::DgeMode) | bit(in_.oobMode != defaults.oobMode, Field::OobMode) |
           bit(in_.routine != defaults.routine, Field::Routine) | bit(in_.routineFunction, Field::RoutineFunction) |
           bit(in_.immediates != defaults.immediates, Field::Immediates) | bit(in_.rd, Field::Rd) |
           bit(in_.rs, Field::Rs) | bit(in_.rt, Field::Rt) | bit(in_.immediate, Field::Immediate) |
           bit(in_.target, Field::Target);
  }

  Status unusedFields() {
    // In the order of the bits of Field.
    static constexpr const char *kNames[] = {"op0",
                                             "op1",
                                             "reverse0",
                                             "reverse1",
                                             "negate",
                                             "accumulate",
                                             "one_zero",
                                             "is_transpose",
                                             "axes",
                                             "function",
                                             "reduce_command",
                                             "queue",
                                             "dge_mode",
                                             "oob_mode",
                                             "routine",
                                             "routine function",
                                             "immediates",
                                             "rd",
                                             "rs",
                                             "rt",
                                             "immediate",
                                             "target"};
    static_assert(Field::Target == 1u << (std::size(kNames) - 1));
    if (uint32_t unused = changedFields() & ~info_.fields)
      return invalid(
          cat(kNames[std::countr_zero(unused)], ": expected its default, because ", info_.name, " does not use it"));
    return Status::success();
  }

  Status scalars() {
    for (int i = 0; i < 2; ++i) {
      const ScalarOperand &scalar = in_.scalars[i];
      bool constant = scalar.kind == ScalarOperand::Kind::Constant;
      bool vector = scalar.kind == ScalarOperand::Kind::Vector;
      if (scalar.kind != ScalarOperand::Kind::None && !constant && !vector)
        return invalid(cat("scalar ", i, ": expected none, a constant or a vector but got code ", int(scalar.kind)));
      if (i >= info_.numScalars && scalar.kind != ScalarOperand::Kind::None)
        return invalid(cat("scalar ", i, ": expected none, because ", info_.name, " has ", int(info_.numScalars)));
      if (!constant && scalar.bits != 0)
        return invalid(cat("scalar ", i, ": expected bits 0, because it is no constant"));
      if (!vector && (scalar.byteOffset != 0 || scalar.space != MemorySpace::None))
        return invalid(cat("scalar ", i, ": expected no address, because it is no vector"));
      if (vector && scalar.space != MemorySpace::Sbuf && scalar.space != MemorySpace::Psum)
        return invalid(cat("scalar ", i, ": expected a vector in sbuf or psum but got space ", int(scalar.space)));
    }
    return Status::success();
  }

  static bool isDefaultTile(const TilePattern &tile, MemorySpace space) {
    const TilePattern defaults;
    return tile.space == space && tile.dtype == defaults.dtype && tile.startPartition == defaults.startPartition &&
           tile.numPartitions == defaults.numPartitions && tile.byteOffset == defaults.byteOffset &&
           tile.step == defaults.step && tile.count == defaults.count;
  }

  Status tiles() {
    for (int i = 0; i < kMaxTiles; ++i) {
      const TilePattern &tile = in_.tiles[i];
      if (i >= info_.numTiles || tile.space == MemorySpace::None) {
        if (i < info_.numTiles && !info_.tiles[i].optional)
          return invalid(cat("operand ", info_.tiles[i].name, ": expected a tile but it is absent"));
        if (!isDefaultTile(tile, MemorySpace::None))
          return invalid(cat("tile ", i, ": expected none, or all of its members at their defaults"));
        continue;
      }
      const TileInfo &operand = info_.tiles[i];
      if (uint8_t(tile.space) > uint8_t(MemorySpace::Hbm) || !(operand.spaces >> uint8_t(tile.space) & 1))
        return invalid(cat("operand ", operand.name, ": expected ", spaceNames(operand.spaces), " but got ",
                           spaceName(tile.space)));
      if (tile.space == MemorySpace::Hbm) {
        if (!isDefaultTile(tile, MemorySpace::Hbm))
          return invalid(cat("operand ", operand.name,
                             ": expected a tile in hbm to have no members but its space; hbm[",
                             encoding::hbmIndex(in_.opcode, i), "] has its pattern"));
        continue;
      }
      if (dtypeBytes(tile.dtype) == 0)
        return invalid(cat("operand ", operand.name, ": dtype: expected a known dtype but got code ", int(tile.dtype)));
      if (tile.byteOffset > encoding::Tile::kMaxByteOffset)
        return invalid(cat("operand ", operand.name, ": byte offset: expected at most ", encoding::Tile::kMaxByteOffset,
                           " but got ", tile.byteOffset));
      for (uint16_t count : tile.count)
        if (count == 0)
          return invalid(cat("operand ", operand.name, ": count: expected at least 1 but got 0"));
    }
    return Status::success();
  }

  static std::string_view spaceName(MemorySpace space) {
    switch (space) {
    case MemorySpace::Sbuf:
      return "sbuf";
    case MemorySpace::Psum:
      return "psum";
    case MemorySpace::Hbm:
      return "hbm";
    default:
      return "no memory space";
    }
  }

  static std::string spaceNames(uint8_t spaces) {
    std::string names;
    for (MemorySpace space : {MemorySpace::Sbuf, MemorySpace::Psum, MemorySpace::Hbm})
      if (spaces >> uint8_t(space) & 1)
        names += cat(names.empty() ? "" : " or ", spaceName(space));
    return names;
  }

  Status hbm() {
    bool used[2] = {false, false};
    for (int i = 0; i < info_.numTiles; ++i)
      if (in_.tiles[i].space == MemorySpace::Hbm)
        used[encoding::hbmIndex(in_.opcode, i)] = true;
    for (int i = 0; i < 2; ++i)
      if (Status status = used[i] ? pattern(in_.hbm[i]) : unusedPattern(in_.hbm[i]); !status)
        return status.error().withContext(cat("hbm[", i, "]"));
    return Status::success();
  }

  static Status unusedPattern(const HbmPattern &pattern) {
    const HbmPattern defaults;
    bool isDefault = pattern.variable == defaults.variable && pattern.dtype == defaults.dtype &&
                     pattern.byteOffset == defaults.byteOffset && pattern.step == defaults.step &&
                     pattern.count == defaults.count && pattern.countRegister == defaults.countRegister &&
                     pattern.stepRegister == defaults.stepRegister;
    for (const HbmPattern::Term &term : pattern.terms)
      isDefault &= term.reg == kZeroRegister && term.stride == 0;
    if (!isDefault)
      return invalid("expected its default, because no operand on its side is in hbm");
    return Status::success();
  }

  Status pattern(const HbmPattern &pattern) const {
    if (dtypeBytes(pattern.dtype) == 0)
      return invalid(cat("dtype: expected a known dtype but got code ", int(pattern.dtype)));
    for (const HbmPattern::Term &term : pattern.terms) {
      if (Status status = checkRegister(term.reg, "term"); !status)
        return status;
      if (term.reg == kZeroRegister && term.stride != 0)
        return invalid(cat("term: expected stride 0 without a register but got ", term.stride));
    }
    for (int k = 0; k < kMaxHbmDims; ++k) {
      if (pattern.count[k] == 0)
        return invalid(cat("count ", k, ": expected at least 1 but got 0"));
      if (Status status = checkRegister(pattern.countRegister[k], "count register"); !status)
        return status;
      if (Status status = checkRegister(pattern.stepRegister[k], "step register"); !status)
        return status;
    }
    return Status::success();
  }

  Engine engine_;
  const Instruction &in_;
  const InstructionInfo &info_;
};

} // namespace

Status verifyForm(Engine engine, const Instruction &instruction) {
  if (!isValidOpcode(uint8_t(instruction.opcode)))
    return invalid(cat("opcode: expected a known code but got ", hex(uint8_t(instruction.opcode))));
  return FormVerifier(engine, instruction).run();
}

Status verifyTargets(Engine engine, std::span<const Instruction> stream) {
  for (size_t i = 0; i < stream.size(); ++i) {
    Opcode opcode = stream[i].opcode;
    if ((opcode == Opcode::Branch || opcode == Opcode::Call) && stream[i].target >= stream.size())
      return invalid(
          cat(describeInstruction(engine, i, opcode), ": ", opcode == Opcode::Branch ? "branch_c2" : "call_c1",
              ": target is an instruction of the stream, but it is ", stream[i].target, " of ", stream.size()));
  }
  return Status::success();
}

} // namespace neuroncore::isa

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs to text. Members at their defaults are left out.

#include <charconv>
#include <cmath>
#include <cstdio>
#include <set>

#include "Encoding.h"
#include "FieldNames.h"
#include "neuron/Isa/Assembly.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Support/Text.h"

namespace neuroncore::isa {

namespace {

/// "+ 16", "- 16"
std::string signedOffset(int64_t value) {
  return value < 0 ? cat("- ", uint64_t(0) - uint64_t(value)) : cat("+ ", value);
}

std::string semaphoreName(uint8_t semaphore, uint8_t blockRegister) {
  if (blockRegister == kZeroRegister)
    return cat("S[", int(semaphore), "]");
  return cat("S[r", int(blockRegister), " + ", int(semaphore), "]");
}

bool isDefaultDim(const HbmPattern &pattern, int k) {
  return pattern.count[k] == 1 && pattern.step[k] == 0 && pattern.countRegister[k] == kZeroRegister &&
         pattern.stepRegister[k] == kZeroRegister;
}

/// A constant is shown as a number where it is one and reads back to the same bits; else as its bits.
std::string printConstant(uint32_t bits, bool isNumber) {
  float value = ScalarOperand::constantBits(bits).asFloat();
  if (isNumber && std::isfinite(value)) {
    char buffer[32];
    auto [end, code] = std::to_chars(buffer, buffer + sizeof(buffer), value);
    std::string text(buffer, end);
    return text.find_first_of(".e") == text.npos ? text + ".0" : text;
  }
  return hex(bits);
}

class InstructionPrinter {
public:
  explicit InstructionPrinter(const Instruction &instruction)
      : in_(instruction), info_(instructionInfo(instruction.opcode)) {}

  std::string run() {
    out_ = info_.name;
    for (int i = 0; i < info_.numTiles; ++i)
      if (in_.tiles[i].present())
        item(cat(info_.tiles[i].name, "=", operand(i)));
    for (int i = 0; i < info_.numScalars; ++i)
      if (in_.scalars[i].kind != ScalarOperand::Kind::None)
        item(cat(info_.scalars[i], "=", scalar(in_.scalars[i])));
    fields();
    if (in_.numWaits) {
      std::string waits;
      for (int i = 0; i < in_.numWaits; ++i)
        waits += cat(i ? ", " : "", printWait(in_.waits[i]));
      item(cat("wait(", waits, ")"));
    }
    if (in_.update.op != UpdateOp::None)
      item(cat("update(", printUpdate(in_.update), ")"));
    if (in_.debugId)
      item(cat("debug=", in_.debugId));
    return std::move(out_);
  }

private:
  void item(std::string_view text) {
    out_ += first_ ? " " : ", ";
    out_ += text;
    first_ = false;
  }

  std::string operand(int i) const {
    if (in_.tiles[i].space == MemorySpace::Hbm)
      return printHbm(in_.hbm[encoding::hbmIndex(in_.opcode, i)]);
    return printTile(in_.tiles[i]);
  }

  bool constantsAreNumbers() const {
    if (in_.opcode == Opcode::Memset)
      return isFloatDtype(in_.tiles[0].dtype);
    auto isBitvec = [](AluOp op) { return aluOpInfo(op).cls == AluClass::Bitvec; };
    return !(info_.uses(Field::Op0) && isBitvec(in_.op0)) && !(info_.uses(Field::Op1) && isBitvec(in_.op1));
  }

  std::string scalar(const ScalarOperand &scalar) const {
    if (scalar.kind == ScalarOperand::Kind::Constant)
      return printConstant(scalar.bits, constantsAreNumbers());
    return cat(scalar.space == MemorySpace::Psum ? "psum" : "sbuf", "@", hex(scalar.byteOffset));
  }

  void fields() {
    const Instruction defaults;
    if (in_.op0 != defaults.op0)
      item(cat("op0=", toString(in_.op0)));
    if (in_.op1 != defaults.op1)
      item(cat("op1=", toString(in_.op1)));
    for (const auto &[name, member] : kFlagNames)
      if (in_.*member)
        item(name);
    if (in_.axes)
      item(cat("axes=", int(in_.axes)));
    if (info_.uses(Field::Function))
      item(cat("function=", toString(in_.function)));
    if (in_.reduceCommand != defaults.reduceCommand)
      item(cat("reduce_command=", kReduceCommandNames[size_t(in_.reduceCommand)]));
    if (in_.dgeMode != defaults.dgeMode)
      item(cat("dge_mode=", kDgeModeNames[size_t(in_.dgeMode)]));
    if (in_.queue)
      item(cat("queue=", int(in_.queue)));
    if (in_.oobMode != defaults.oobMode)
      item(cat("oob_mode=", kOobModeNames[size_t(in_.oobMode)]));
    routine();
    immediates();
    for (const auto &[name, member] : kRegisterNames)
      if (in_.*member)
        item(cat(name, "=r", int(in_.*member)));
    if (in_.immediate)
      item(cat("immediate=", in_.immediate));
    if (info_.opcode == Opcode::Branch || info_.opcode == Opcode::Call)
      item(cat("target=L", in_.target));
    else if (in_.target)
      item(cat("target=", in_.target));
  }

  void routine() {
    if (in_.routine == Routine::None && in_.routineFunction == 0)
      return;
    item(cat("routine=", toString(in_.routine)));
    if (const RoutineFunctionInfo *function = routineFunctionInfo(in_.routine, in_.routineFunction))
      item(cat("routine_function=", function->name));
    else
      item(cat("routine_function=", int(in_.routineFunction)));
  }

  void immediates() {
    size_t used = in_.immediates.size();
    while (used && in_.immediates[used - 1] == 0)
      --used;
    if (used == 0)
      return;
    std::string text;
    // The mask of a shuffle is bytes; zeros at its end are entries like any other.
    if (in_.opcode == Opcode::StreamShuffle && used <= 4) {
      for (int i = 0; i < 32; ++i)
        text += cat(i ? ", " : "", int(uint64_t(in_.immediates[i / 8]) >> (8 * (i % 8)) & 255));
      return item(cat("mask=[", text, "]"));
    }
    for (size_t i = 0; i < used; ++i)
      text += cat(i ? ", " : "", in_.immediates[i]);
    item(cat("immediates=[", text, "]"));
  }

  const Instruction &in_;
  const InstructionInfo &info_;
  bool first_ = true;
  std::string out_;
};

} // namespace

std::string printTile(const TilePattern &tile) {
  const TilePattern defaults;
  std::string out = cat(tile.space == MemorySpace::Psum ? "psum[" : "sbuf[", int(tile.startPartition), ":",
                        int(tile.startPartition) + int(tile.numPartitions), ", ", hex(tile.byteOffset));
  int k = 0;
  while (k < kMaxFreeDims - 1 && tile.step[k] == defaults.step[k] && tile.count[k] == defaults.count[k])
    ++k;
  for (; k < kMaxFreeDims; ++k)
    out += cat(" + ", tile.step[k], "*", tile.count[k]);
  return cat(out, "] ", toString(tile.dtype));
}

std::string printHbm(const HbmPattern &pattern) {
  std::string out =
      pattern.isParameter() ? cat("hbm[param[", pattern.parameter(), "]") : cat("hbm[v", pattern.variable);
  if (pattern.byteOffset != 0)
    out += " " + signedOffset(pattern.byteOffset);
  int terms = kMaxHbmTerms;
  while (terms && pattern.terms[terms - 1].reg == kZeroRegister)
    --terms;
  for (int i = 0; i < terms; ++i)
    out += cat(" + r", int(pattern.terms[i].reg), "*", pattern.terms[i].stride);
  int k = 0;
  while (k < kMaxHbmDims && isDefaultDim(pattern, k))
    ++k;
  for (int first = k; k < kMaxHbmDims; ++k) {
    out += k == first ? ", " : " + ";
    if (pattern.stepRegister[k] != kZeroRegister)
      out += cat("r", int(pattern.stepRegister[k]), "*");
    out += cat(pattern.step[k], "*", pattern.count[k]);
    if (pattern.countRegister[k] != kZeroRegister)
      out += cat("(r", int(pattern.countRegister[k]), ")");
  }
  return cat(out, "] ", toString(pattern.dtype));
}

std::string printWait(const Wait &wait) {
  std::string out = cat(semaphoreName(wait.semaphore, wait.blockRegister), wait.equal ? " == " : " >= ");
  if (wait.valueRegister == kZeroRegister)
    return cat(out, wait.immediate);
  out += cat("r", int(wait.valueRegister));
  return wait.immediate == 0 ? out : cat(out, " ", signedOffset(wait.immediate));
}

std::string printUpdate(const Update &update) {
  std::string name = semaphoreName(update.semaphore, update.blockRegister);
  switch (update.op) {
  case UpdateOp::None:
    return {};
  case UpdateOp::Increment:
    return name + "++";
  case UpdateOp::Decrement:
    return name + "--";
  case UpdateOp::AddImmediate:
    return cat(name, " += ", int(update.value));
  case UpdateOp::SubtractImmediate:
    return cat(name, " -= ", int(update.value));
  case UpdateOp::Write:
    return cat(name, " = ", int(update.value));
  }
  return cat(name, " operation ", int(update.op));
}

std::string printInstruction(const Instruction &instruction) {
  if (!isValidOpcode(uint8_t(instruction.opcode)))
    return cat("opcode ", hex(uint8_t(instruction.opcode)));
  return InstructionPrinter(instruction).run();
}

std::string printStream(Engine engine, const Stream &stream, const CommentSource &comments) {
  std::set<uint32_t> targets;
  for (const Instruction &in : stream)
    if (in.opcode == Opcode::Branch || in.opcode == Opcode::Call)
      targets.insert(in.target);
  std::string out = cat("stream ", toString(engine), " {\n");
  for (size_t i = 0; i < stream.size(); ++i) {
    if (targets.contains(uint32_t(i)))
      out += cat("L", i, ":\n");
    out += "  " + printInstruction(stream[i]);
    std::string comment = comments ? comments(stream[i]) : std::string();
    if (!comment.empty()) {
      // The comment ends with its line.
      for (char &c : comment)
        if (c == '\n' || c == '\r')
          c = ' ';
      out += "  // " + comment;
    }
    out += '\n';
  }
  return out + "}\n";
}

std::string printProgram(const Program &program, const CommentSource &comments) {
  std::string out;
  for (int s = 0; s < kNumStreams; ++s)
    out += cat(s ? "\n" : "", printStream(kStreamEngines[s], program[s], comments));
  return out;
}

} // namespace neuroncore::isa

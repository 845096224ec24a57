// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds small programs by hand: instructions with waits and updates, variables with host memory.

#ifndef NEURON_TEST_UNIT_EMULATOR_PROGRAMTESTER_H
#define NEURON_TEST_UNIT_EMULATOR_PROGRAMTESTER_H

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "neuron/Emulator/Emulator.h"
#include "neuron/Isa/Instruction.h"
#include "neuron/Neff/Neff.h"
#include "neuron/Target/MachineModel.h"

namespace neuroncore::emulator::test {

using isa::Dtype;
using isa::Engine;
using isa::Instruction;
using isa::MemorySpace;
using isa::Opcode;
using isa::TilePattern;

/// A contiguous tile.
inline TilePattern tile(Dtype dtype, int partitions, int n, uint32_t byteOffset, MemorySpace space = MemorySpace::Sbuf,
                        int start = 0) {
  TilePattern pattern;
  pattern.space = space;
  pattern.dtype = dtype;
  pattern.startPartition = uint8_t(start);
  pattern.numPartitions = uint8_t(partitions);
  pattern.byteOffset = byteOffset;
  pattern.count[3] = uint16_t(n);
  return pattern;
}

inline isa::Wait atLeast(int semaphore, int32_t value, int valueRegister = 0, int blockRegister = 0) {
  isa::Wait wait;
  wait.semaphore = uint8_t(semaphore);
  wait.immediate = value;
  wait.valueRegister = uint8_t(valueRegister);
  wait.blockRegister = uint8_t(blockRegister);
  return wait;
}

inline isa::Update increment(int semaphore, int blockRegister = 0) {
  isa::Update update;
  update.op = isa::UpdateOp::Increment;
  update.semaphore = uint8_t(semaphore);
  update.blockRegister = uint8_t(blockRegister);
  return update;
}

struct ProgramTester {
  std::shared_ptr<neff::Neff> neff = std::make_shared<neff::Neff>();
  std::vector<std::vector<uint8_t>> memory;

  ProgramTester() { neff->name = "test"; }

  int addVariable(const std::string &name, int64_t bytes, neff::Variable::Kind kind = neff::Variable::Kind::Input,
                  Dtype dtype = Dtype::F32) {
    neff::Variable variable;
    variable.name = name;
    variable.kind = kind;
    variable.bytes = bytes;
    variable.dtype = dtype;
    variable.shape = {bytes / isa::dtypeBytes(dtype)};
    if (kind == neff::Variable::Kind::Constant)
      variable.data.resize(size_t(bytes));
    neff->variables.push_back(variable);
    memory.emplace_back(size_t(bytes), uint8_t(0));
    return int(neff->variables.size()) - 1;
  }
  template <typename T> T *data(int variable) { return reinterpret_cast<T *>(memory[variable].data()); }

  isa::Stream &stream(Engine engine) { return neff->program[isa::streamIndex(engine)]; }
  Instruction &add(Engine engine, const Instruction &instruction) {
    stream(engine).push_back(instruction);
    return stream(engine).back();
  }

  /// A transfer between a tile and contiguous memory; further fields may be changed in the result.
  Instruction &load(Engine engine, const TilePattern &to, int variable, int64_t byteOffset = 0) {
    return transfer(engine, to, variable, byteOffset, true);
  }
  Instruction &store(Engine engine, int variable, const TilePattern &from, int64_t byteOffset = 0) {
    return transfer(engine, from, variable, byteOffset, false);
  }
  Instruction &transfer(Engine engine, const TilePattern &tilePattern, int variable, int64_t byteOffset, bool isLoad) {
    Instruction instruction;
    instruction.opcode = Opcode::DmaCopy;
    instruction.dgeMode = engine == Engine::Gpsimd ? isa::DgeMode::Software : isa::DgeMode::Static;
    const int hbmSide = isLoad ? 1 : 0;
    instruction.tiles[1 - hbmSide] = tilePattern;
    instruction.tiles[hbmSide].space = MemorySpace::Hbm;
    isa::HbmPattern &hbm = instruction.hbm[hbmSide];
    hbm.variable = uint16_t(variable);
    hbm.dtype = tilePattern.dtype;
    hbm.byteOffset = byteOffset;
    const int64_t bytes = isa::dtypeBytes(tilePattern.dtype);
    hbm.count = {1, 1, 1, tilePattern.numPartitions, uint32_t(tilePattern.elementsPerPartition())};
    hbm.step = {0, 0, 0, tilePattern.elementsPerPartition() * bytes, bytes};
    return add(engine, instruction);
  }

  Instruction &control(Engine engine, Opcode opcode) {
    Instruction instruction;
    instruction.opcode = opcode;
    return add(engine, instruction);
  }
  Instruction &move(Engine engine, int reg, int32_t value) {
    Instruction &instruction = control(engine, Opcode::RegisterMove);
    instruction.rd = uint8_t(reg);
    instruction.immediate = value;
    return instruction;
  }
  Instruction &alu(Engine engine, int rd, int rs, isa::AluOp op, int rt, int32_t immediate) {
    Instruction &instruction = control(engine, Opcode::RegisterAlu);
    instruction.rd = uint8_t(rd);
    instruction.rs = uint8_t(rs);
    instruction.rt = uint8_t(rt);
    instruction.op0 = op;
    instruction.immediate = immediate;
    return instruction;
  }
  /// if r[rs] op (r[rt] + immediate): to `target`.
  Instruction &branch(Engine engine, int rs, isa::AluOp op, int rt, int32_t immediate, uint32_t target) {
    Instruction &instruction = control(engine, Opcode::Branch);
    instruction.rs = uint8_t(rs);
    instruction.rt = uint8_t(rt);
    instruction.op0 = op;
    instruction.immediate = immediate;
    instruction.target = target;
    return instruction;
  }
  uint32_t here(Engine engine) { return uint32_t(stream(engine).size()); }

  Expected<std::shared_ptr<const LoadedProgram>> loadProgram() {
    return LoadedProgram::load(neff, *target::MachineModel::builtin("trn2"));
  }
  std::vector<void *> bindings() {
    std::vector<void *> pointers;
    for (size_t i = 0; i < memory.size(); ++i) {
      if (neff->variables[i].kind == neff::Variable::Kind::Constant)
        memory[i] = neff->variables[i].data;
      pointers.push_back(memory[i].data());
    }
    return pointers;
  }
  /// "" or the error.
  std::string run(int threads = 1, const ExecuteOptions &options = {}) {
    Expected<std::shared_ptr<const LoadedProgram>> program = loadProgram();
    if (!program)
      return "load: " + program.error().message();
    Expected<std::unique_ptr<Core>> core = Core::create(*target::MachineModel::builtin("trn2"), threads);
    if (!core)
      return core.error().message();
    Status status = (*core)->execute(**program, bindings(), options);
    return status ? "" : status.error().message();
  }
};

} // namespace neuroncore::emulator::test

#endif // NEURON_TEST_UNIT_EMULATOR_PROGRAMTESTER_H

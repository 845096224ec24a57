// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random instructions that satisfy every constraint on trn2, for property tests. One seed gives one sequence.

#ifndef NEURON_TEST_UNIT_ISA_RANDOMINSTRUCTION_H
#define NEURON_TEST_UNIT_ISA_RANDOMINSTRUCTION_H

#include <random>

#include "neuron/Isa/Instruction.h"
#include "neuron/Isa/InstructionTable.h"

namespace neuroncore::isa {

class RandomInstruction {
public:
  explicit RandomInstruction(uint64_t seed) : random_(seed) {}

  /// An instruction of the opcode for one of its engines. `streamSize` bounds branch targets.
  Instruction make(Opcode opcode, Engine engine, size_t streamSize = 1);

  /// A stream of any instructions of the engine.
  Stream stream(Engine engine, size_t size);

  int64_t number(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  bool flip() { return number(0, 1) != 0; }

private:
  template <typename T> T pick(std::initializer_list<T> values) {
    return values.begin()[number(0, int64_t(values.size()) - 1)];
  }
  /// Partitions and a start that is legal for them.
  void partitions(TilePattern &tile, int count);
  TilePattern tile(MemorySpace space, Dtype dtype, int partitions, int64_t elements, bool written);
  TilePattern like(const TilePattern &model, MemorySpace space, Dtype dtype, bool written) {
    return tile(space, dtype, model.numPartitions, model.elementsPerPartition(), written);
  }
  HbmPattern pattern(Dtype dtype, int64_t outer, int64_t inner, bool dynamic);
  ScalarOperand scalar(bool gpsimd, bool psum = true);
  Dtype narrowDtype() {
    return pick({Dtype::F32, Dtype::Bf16, Dtype::F16, Dtype::F8e4m3, Dtype::F8e5m2, Dtype::I8, Dtype::U8, Dtype::I16,
                 Dtype::U16, Dtype::I32, Dtype::U32});
  }
  MemorySpace onChip(bool gpsimd) { return !gpsimd && flip() ? MemorySpace::Psum : MemorySpace::Sbuf; }
  AluOp compare() {
    return pick({AluOp::Equal, AluOp::NotEqual, AluOp::Less, AluOp::LessEqual, AluOp::Greater, AluOp::GreaterEqual});
  }
  AluOp arithmetic() { return pick({AluOp::Add, AluOp::Subtract, AluOp::Multiply, AluOp::Maximum, AluOp::Minimum}); }
  void operands(Instruction &in, Engine engine);
  void dma(Instruction &in, Engine engine);
  void gpsimdCall(Instruction &in);
  void waitsAndUpdate(Instruction &in);

  std::mt19937_64 random_;
};

} // namespace neuroncore::isa

#endif // NEURON_TEST_UNIT_ISA_RANDOMINSTRUCTION_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of RealPrograms.h.

#include "RealPrograms.h"

namespace neuroncore::schedule::test {

using isa::Engine;

StructuredProgram oneOperation() {
  ProgramBuilder b;
  int x = b.addVariable(64), y = b.addVariable(64), z = b.addVariable(64);
  b.beginKernel("add");
  b.load(Engine::Sync, sbuf(0), {x});
  b.load(Engine::Scalar, sbuf(4), {y});
  b.compute(Engine::Vector, sbuf(8), {sbuf(0), sbuf(4)});
  b.store(Engine::Sync, {z}, sbuf(8));
  return b.take();
}

void addChain(ProgramBuilder &b, int length, int copies, int64_t trips, int input0, int input1, int output) {
  b.beginKernel("chain");
  LoopId loop = b.beginLoop(trips, copies);
  int slots = length + 2;
  for (int copy = 0; copy < copies; ++copy) {
    if (copy > 0)
      b.nextCopy();
    auto slot = [&](int i) { return sbuf((copy * slots + i) * 4); };
    b.load(Engine::Sync, slot(0), {input0, 0, 4, 1, 4, {{loop, 4}}});
    b.load(Engine::Sync, slot(1), {input1, 0, 4, 1, 4, {{loop, 4}}});
    for (int i = 0; i < length; ++i) {
      Engine engine = std::array{Engine::Vector, Engine::Gpsimd, Engine::Scalar}[i % 3];
      if (engine == Engine::Scalar)
        b.compute(engine, slot(i + 2), {slot(i + 1)});
      else
        b.compute(engine, slot(i + 2), {slot(i), slot(i + 1)});
    }
    b.store(Engine::Gpsimd, {output, 0, 4, 1, 4, {{loop, 4}}}, slot(length + 1));
  }
  b.endLoop();
}

void addRmsNorm(ProgramBuilder &b, int copies, int64_t trips, int x, int w, int y) {
  b.beginKernel("rms_norm");
  Tile weight = sbuf(0);
  b.load(Engine::Sync, weight, {w});
  LoopId loop = b.beginLoop(trips, copies);
  for (int copy = 0; copy < copies; ++copy) {
    if (copy > 0)
      b.nextCopy();
    int base = 4 + copy * 20;
    Tile xs = sbuf(base), square = sbuf(base + 4), out = sbuf(base + 8);
    Tile sum = sbuf(base + 12, 1), mean = sbuf(base + 13, 1), root = sbuf(base + 14, 1);
    b.load(Engine::Sync, xs, {x, 0, 4, 1, 4, {{loop, 4}}});
    Instruction &sq = b.compute(Engine::Scalar, square, {xs});
    sq.code.opcode = isa::Opcode::Activation;
    sq.code.tiles[2] = sq.code.tiles[0];
    sq.code.tiles[2].byteOffset = uint32_t(sum.word * 4);
    sq.code.tiles[2].count[3] = 1;
    b.compute(Engine::Vector, mean, {sum});
    b.compute(Engine::Scalar, root, {mean});
    Instruction &scale = b.compute(Engine::Vector, out, {xs, weight});
    scale.code.opcode = isa::Opcode::ScalarTensorTensor;
    scale.code.scalars[0] = isa::ScalarOperand::vector(isa::MemorySpace::Sbuf, uint32_t(root.word * 4));
    b.store(Engine::Gpsimd, {y, 0, 4, 1, 4, {{loop, 4}}}, out);
  }
  b.endLoop();
}

void addMatmul(ProgramBuilder &b, int copies, int64_t m, int64_t n, int64_t k, int a, int bm, int c) {
  b.beginKernel("matmul");
  LoopId loopM = b.beginLoop(m, 1);
  LoopId loopN = b.beginLoop(n, 2);
  for (int bank = 0; bank < 2; ++bank) {
    if (bank > 0)
      b.nextCopy();
    Tile accumulator = psum(bank * 8), out = sbuf(128 + bank * 4);
    LoopId loopK = b.beginLoop(k, copies);
    for (int copy = 0; copy < copies; ++copy) {
      if (copy > 0)
        b.nextCopy();
      Tile left = sbuf((bank * copies + copy) * 8), right = sbuf((bank * copies + copy) * 8 + 4);
      b.load(Engine::Sync, left, {a, 0, 4, 1, 4, {{loopM, 4 * k}, {loopK, 4}}});
      b.load(Engine::Sync, right, {bm, 0, 4, 1, 4, {{loopN, 4 * k}, {loopK, 4}}});
      Instruction &stationary = b.compute(Engine::Tensor, left, {});
      stationary.code.opcode = isa::Opcode::LoadStationary; // its one tile is read
      b.matmul(accumulator, right, true);
    }
    b.endLoop();
    b.compute(Engine::Vector, out, {accumulator});
    b.store(Engine::Scalar, {c, 0, 4, 1, 4, {{loopM, 4 * n}, {loopN, 4}}}, out);
  }
  b.endLoop();
  b.endLoop();
}

} // namespace neuroncore::schedule::test

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which waits small programs get.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "HappensBefore.h"
#include "Pipeline.h"
#include "RealPrograms.h"
#include "neuron/Schedule/Projection.h"
#include "neuron/Schedule/Synchronisation.h"

namespace neuroncore::schedule::test {

namespace {

using isa::Engine;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

StructuredProgram synchronised(StructuredProgram program, SynchronisationReport *report = nullptr,
                               const SynchronisationOptions &options = {}) {
  Status status = synchronise(program, options, report);
  EXPECT_TRUE(status) << status.error().message();
  return program;
}

/// "vector>=L0+2", "dma1>=L0+1", "dma0@1>=3", "vector>=L0-2 armed"
std::vector<std::string> waitsOf(const Instruction &instruction) {
  std::vector<std::string> out;
  for (const SymbolicWait &wait : instruction.waits) {
    std::string text = wait.counter == SymbolicWait::Counter::Engine
                           ? std::string(isa::toString(isa::kStreamEngines[wait.index]))
                           : "dma" + std::to_string(wait.index);
    if (wait.kernelsBack)
      text += "@" + std::to_string(wait.kernelsBack);
    text += ">=";
    if (wait.anchor >= 0)
      text += "L" + std::to_string(wait.anchor) + (wait.immediate < 0 ? "" : "+");
    text += std::to_string(wait.immediate);
    if (wait.armedAfterFirstPass)
      text += " armed";
    out.push_back(text);
  }
  return out;
}

std::vector<std::vector<std::string>> allWaits(StructuredProgram &program) {
  std::vector<std::vector<std::string>> out;
  forEachInstruction(program, [&](Instruction &instruction) { out.push_back(waitsOf(instruction)); });
  return out;
}

TEST(Synchronisation, OneOperation) {
  StructuredProgram program = synchronised(oneOperation());
  EXPECT_THAT(allWaits(program),
              ElementsAre(IsEmpty(), IsEmpty(), UnorderedElementsAre("dma0>=1", "dma1>=1"), ElementsAre("vector>=1")));
  EXPECT_THAT(program.kernels[0].entry, IsEmpty());
  EXPECT_THAT(program.kernels[0].exit, IsEmpty());
}

/// The worked example of docs/Synchronisation.md. The first pass needs no disarming: before the loop the counts are 0.
TEST(Synchronisation, RmsNormWithTwoBuffers) {
  ProgramBuilder b;
  int x = b.addVariable(400), w = b.addVariable(4), y = b.addVariable(400);
  addRmsNorm(b, 2, 64, x, w, y);
  SynchronisationReport report;
  StructuredProgram program = synchronised(b.take(), &report);
  EXPECT_EQ(report.numKeptWaits, 15);
  EXPECT_EQ(report.numDmaSites, 5);
  // w is counter 0, the loads are 1 and 3, the stores 2 and 4; two updates per copy on the scalar and the vector
  // engine.
  EXPECT_THAT(allWaits(program),
              ElementsAre(IsEmpty(),                                                     // load w
                          ElementsAre("vector>=L0-2"),                                   // load x0
                          ElementsAre("dma1>=L0+1"),                                     // square
                          ElementsAre("scalar>=L0+1"),                                   // mean
                          ElementsAre("vector>=L0+1"),                                   // rsqrt
                          UnorderedElementsAre("dma0>=1", "scalar>=L0+2", "dma2>=L0+0"), // scale
                          ElementsAre("vector>=L0+2"),                                   // store y0
                          ElementsAre("vector>=L0+0"),                                   // load x1
                          ElementsAre("dma3>=L0+1"), ElementsAre("scalar>=L0+3"),        //
                          ElementsAre("vector>=L0+3"),                                   //
                          UnorderedElementsAre("scalar>=L0+4", "dma4>=L0+0"),            //
                          ElementsAre("vector>=L0+4")));
}

TEST(Synchronisation, WaitsDoNotDependOnTripCount) {
  for (int copies : {1, 2, 4}) {
    auto waits = [&](int64_t trips) {
      ProgramBuilder b;
      int x = b.addVariable(400), w = b.addVariable(4), y = b.addVariable(400);
      addRmsNorm(b, copies, trips, x, w, y);
      StructuredProgram program = synchronised(b.take());
      return allWaits(program);
    };
    EXPECT_EQ(waits(8 * copies), waits(1000000 * copies));
    EXPECT_EQ(waits(8 * copies + copies / 2), waits(1000000 * copies + copies / 2));
  }
}

TEST(Synchronisation, AccumulationDoesNotConflictWithItself) {
  ProgramBuilder b;
  for (int k = 0; k < 4; ++k)
    b.matmul(psum(0), sbuf(4 * k), k > 0);
  b.compute(Engine::Vector, sbuf(32), {psum(0)});
  StructuredProgram program = synchronised(b.take());
  EXPECT_THAT(allWaits(program), ElementsAre(IsEmpty(), IsEmpty(), IsEmpty(), IsEmpty(), ElementsAre("tensor>=4")));
}

TEST(Synchronisation, OtherPartitionsDoNotConflict) {
  ProgramBuilder b;
  Tile low = sbuf(0), high = sbuf(0);
  high.partition = 1;
  b.compute(Engine::Vector, low, {});
  b.compute(Engine::Scalar, sbuf(8), {high});
  b.compute(Engine::Gpsimd, sbuf(16), {low});
  StructuredProgram program = synchronised(b.take());
  EXPECT_THAT(allWaits(program), ElementsAre(IsEmpty(), IsEmpty(), ElementsAre("vector>=1")));
}

TEST(Synchronisation, InterleavedTilesDoNotConflict) {
  ProgramBuilder b;
  Tile even = sbuf(0), odd = sbuf(1);
  even.step = odd.step = 2;
  b.compute(Engine::Vector, even, {});
  b.compute(Engine::Scalar, sbuf(20), {odd});
  b.compute(Engine::Gpsimd, sbuf(32), {sbuf(0, 2)});
  StructuredProgram program = synchronised(b.take());
  EXPECT_THAT(allWaits(program), ElementsAre(IsEmpty(), IsEmpty(), ElementsAre("vector>=1")));
}

TEST(Synchronisation, VectorOfScalarsIsRead) {
  ProgramBuilder b;
  b.compute(Engine::Scalar, sbuf(40, 1), {sbuf(8)});
  Instruction &scale = b.compute(Engine::Vector, sbuf(0), {sbuf(4)});
  scale.code.opcode = isa::Opcode::TensorScalar;
  scale.code.scalars[0] = isa::ScalarOperand::vector(isa::MemorySpace::Sbuf, 160);
  StructuredProgram program = synchronised(b.take());
  EXPECT_THAT(allWaits(program), ElementsAre(IsEmpty(), ElementsAre("scalar>=1")));
}

/// x[:, j] += 1 in place on column tiles of a row-major matrix: the hulls of different tiles overlap, the tiles do not.
TEST(Synchronisation, ColumnTilesInPlace) {
  auto loadWaits = [](int columns) {
    ProgramBuilder b;
    int x = b.addVariable(4 * 64);
    LoopId loop = b.beginLoop(8, 2);
    for (int copy = 0; copy < 2; ++copy) {
      if (copy > 0)
        b.nextCopy();
      Tile tile = sbuf(copy * 16, columns);
      tile.partitions = 4;
      b.load(Engine::Sync, tile, {x, 0, columns, 4, 64, {{loop, 8}}});
      b.compute(Engine::Vector, tile, {tile});
      b.store(Engine::Gpsimd, {x, 0, columns, 4, 64, {{loop, 8}}}, tile);
    }
    b.endLoop();
    StructuredProgram program = synchronised(b.take());
    return allWaits(program)[3]; // the load of the second copy
  };
  EXPECT_THAT(loadWaits(8), ElementsAre("dma3>=L0+0")); // the store of its own slot
  EXPECT_THAT(loadWaits(9), ElementsAre("dma1>=L0+1")); // that of the tile before, which waited for the other one
}

/// Only some iterations meet what one instruction accesses in each of them.
TEST(Synchronisation, MovingWindowOverAFixedTile) {
  for (int fixed : {8, 100}) {
    ProgramBuilder b;
    int x = b.addVariable(128);
    LoopId loop = b.beginLoop(4);
    b.store(Engine::Gpsimd, {x, fixed}, sbuf(0));
    b.load(Engine::Sync, sbuf(8), {x, 0, 4, 1, 4, {{loop, 4}}});
    b.endLoop();
    StructuredProgram program = synchronised(b.take());
    auto waits = allWaits(program);
    if (fixed == 8) {
      EXPECT_THAT(waits, ElementsAre(ElementsAre("dma1>=L0+0"), ElementsAre("dma0>=L0+1")));
    } else {
      EXPECT_THAT(waits, ElementsAre(ElementsAre("dma0>=L0+0"), ElementsAre("dma1>=L0+0"))); // self edges
    }
  }
}

TEST(Synchronisation, AliasGroups) {
  for (int group : {-1, 3}) {
    ProgramBuilder b;
    int x = b.addVariable(8, group), y = b.addVariable(8, group);
    b.store(Engine::Gpsimd, {x}, sbuf(0));
    b.load(Engine::Sync, sbuf(8), {y});
    b.load(Engine::Sync, sbuf(16), {y, 4});
    StructuredProgram program = synchronised(b.take());
    auto waits = allWaits(program);
    EXPECT_EQ(waits[1], group < 0 ? std::vector<std::string>() : std::vector<std::string>{"dma0>=1"});
    EXPECT_THAT(waits[2], IsEmpty());
  }
}

/// The rows a gather reads are known on the device only.
TEST(Synchronisation, GatherReadsAnywhere) {
  ProgramBuilder b;
  int table = b.addVariable(64);
  b.store(Engine::Sync, {table, 60}, sbuf(0));
  Instruction &gather = b.load(Engine::Gpsimd, sbuf(8), {table});
  gather.code.tiles[2] = gather.code.tiles[0];
  gather.code.tiles[2].byteOffset = 160;
  gather.code.tiles[2].count[3] = 1;
  b.compute(Engine::Vector, sbuf(40, 1), {}); // overwrites the indices
  StructuredProgram program = synchronised(b.take());
  EXPECT_THAT(allWaits(program), ElementsAre(IsEmpty(), ElementsAre("dma0>=1"), ElementsAre("dma1>=1")));
}

TEST(Synchronisation, DisarmedBehindAnotherKernel) {
  // In the second kernel the first pass must not wait for what the vector engine did in the first.
  ProgramBuilder b;
  for (int kernel = 0; kernel < 2; ++kernel) {
    int x = b.addVariable(400), w = b.addVariable(4), y = b.addVariable(400);
    addRmsNorm(b, 2, 64, x, w, y);
  }
  StructuredProgram program = b.take();
  forEachInstruction(program.kernels[1].body, [](Instruction &instruction) {
    for (isa::TilePattern &tile : instruction.code.tiles)
      tile.byteOffset += 512;
    for (isa::ScalarOperand &scalar : instruction.code.scalars)
      scalar.byteOffset += 512;
  });
  program = synchronised(std::move(program));
  const Loop &second = *std::get<std::unique_ptr<Loop>>(program.kernels[1].body[1]);
  EXPECT_THAT(waitsOf(std::get<Instruction>(second.copies[0][0])), ElementsAre("vector>=L1-2 armed"));
  EXPECT_THAT(waitsOf(std::get<Instruction>(second.copies[1][0])), ElementsAre("vector>=L1+0 armed"));
}

TEST(Synchronisation, ThreeKernelsNeedNoClear) {
  ProgramBuilder b;
  for (int kernel = 0; kernel < 5; ++kernel) {
    b.beginKernel();
    int x = b.addVariable(8);
    b.load(Engine::Sync, sbuf(0), {x});
    b.compute(Engine::Vector, sbuf(8), {sbuf(0)});
  }
  StructuredProgram program = synchronised(b.take());
  auto opcodes = [](const std::vector<Instruction> &instructions) {
    std::vector<isa::Opcode> out;
    for (const Instruction &instruction : instructions)
      out.push_back(instruction.code.opcode);
    return out;
  };
  using isa::Opcode;
  EXPECT_THAT(opcodes(program.kernels[1].entry), IsEmpty());
  EXPECT_THAT(opcodes(program.kernels[2].entry), ElementsAre(Opcode::Nop, Opcode::Nop));
  EXPECT_THAT(opcodes(program.kernels[3].entry),
              ElementsAre(Opcode::Nop, Opcode::SemaphoreRangeClear, Opcode::Nop, Opcode::Nop));
  EXPECT_EQ(program.kernels[3].firstSemaphore, program.kernels[0].firstSemaphore);
  EXPECT_EQ(program.kernels[3].entry[1].code.immediate, program.kernels[0].firstSemaphore);
  EXPECT_EQ(program.kernels[3].entry[1].code.target, 1u);
  // Nobody asks for the last two.
  EXPECT_EQ(program.kernels[2].exit.size(), 2u);
  EXPECT_THAT(opcodes(program.kernels[3].exit), IsEmpty());
}

TEST(Synchronisation, ManyTransfersEndAKernelEarly) {
  ProgramBuilder b;
  int x = b.addVariable(256);
  for (int i = 0; i < 250; ++i)
    b.load(Engine::Sync, sbuf(i % 64 * 4), {x, i % 64 * 4});
  SynchronisationReport report;
  StructuredProgram program = synchronised(b.take(), &report);
  EXPECT_EQ(report.numSplitKernels, 1);
  EXPECT_EQ(report.numSharedSites, 0);
  EXPECT_EQ(program.kernels.size(), 4u);
  EXPECT_LE(report.numSemaphores, 245);
  Expected<isa::Program> streams = project(program);
  ASSERT_TRUE(streams);
  EXPECT_EQ(findHazard(*streams, Layout(program.variables)), "");
}

TEST(Synchronisation, ManyTransfersInOneLoopShare) {
  ProgramBuilder b;
  int x = b.addVariable(4096);
  LoopId loop = b.beginLoop(4);
  for (int i = 0; i < 300; ++i)
    b.load(Engine::Sync, sbuf(i % 64 * 4), {x, i % 64 * 4, 4, 1, 4, {{loop, 256}}});
  b.endLoop();
  SynchronisationReport report;
  StructuredProgram program = synchronised(b.take(), &report);
  EXPECT_EQ(report.numSharedSites, 60);
  EXPECT_EQ(report.numSemaphores, 245);
  Expected<isa::Program> streams = project(program);
  ASSERT_TRUE(streams);
  EXPECT_EQ(findHazard(*streams, Layout(program.variables)), "");
}

TEST(Synchronisation, EliminationKeepsASubset) {
  SynchronisationOptions all;
  all.eliminate = false;
  StructuredProgram kept = synchronised(makePipeline({}, 30).program);
  StructuredProgram every = synchronised(makePipeline({}, 30).program, nullptr, all);
  auto keptWaits = allWaits(kept), everyWait = allWaits(every);
  size_t numKept = 0, numAll = 0;
  for (size_t i = 0; i < keptWaits.size(); ++i) {
    numKept += keptWaits[i].size();
    numAll += everyWait[i].size();
    EXPECT_LE(keptWaits[i].size(), everyWait[i].size());
  }
  EXPECT_LT(numKept, numAll);
}

TEST(Synchronisation, EmptyPrograms) {
  StructuredProgram none;
  EXPECT_TRUE(synchronise(none));
  StructuredProgram empty;
  empty.kernels.resize(4);
  EXPECT_TRUE(synchronise(empty));
  Expected<isa::Program> streams = project(empty);
  ASSERT_TRUE(streams);
}

/// Nothing that never runs takes part.
TEST(Synchronisation, LoopsWithoutTrips) {
  ProgramBuilder b;
  b.beginLoop(0, 2);
  b.compute(Engine::Vector, sbuf(0), {});
  b.endLoop();
  b.compute(Engine::Scalar, sbuf(8), {sbuf(0)});
  StructuredProgram program = synchronised(b.take());
  EXPECT_THAT(allWaits(program), ElementsAre(IsEmpty(), IsEmpty()));
  Expected<isa::Program> streams = project(program);
  ASSERT_TRUE(streams);
  EXPECT_THAT((*streams)[isa::streamIndex(Engine::Vector)], IsEmpty());
}

} // namespace

} // namespace neuroncore::schedule::test

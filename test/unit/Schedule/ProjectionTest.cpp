// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The shape of the projected streams.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ProgramBuilder.h"
#include "RandomProgram.h"
#include "RealPrograms.h"
#include "SymbolicMachine.h"
#include "neuron/Isa/Codec.h"
#include "neuron/Isa/Verify.h"
#include "neuron/Schedule/Projection.h"
#include "neuron/Schedule/Synchronisation.h"

namespace neuroncore::schedule::test {

namespace {

using isa::Engine;
using isa::Opcode;
using testing::ElementsAre;
using testing::IsEmpty;

struct Projected {
  StructuredProgram program;
  isa::Program streams;
  ProjectionReport report;

  const isa::Stream &operator[](Engine engine) const { return streams[isa::streamIndex(engine)]; }
  const StreamReport &reportOf(Engine engine) const { return report.streams[isa::streamIndex(engine)]; }
};

Projected projected(StructuredProgram program, const ProjectionOptions &options = {}) {
  Projected out;
  out.program = std::move(program);
  Status status = synchronise(out.program);
  EXPECT_TRUE(status) << status.error().message();
  Expected<isa::Program> streams = project(out.program, options, &out.report);
  EXPECT_TRUE(streams) << streams.error().message();
  out.streams = std::move(*streams);
  return out;
}

std::vector<Opcode> opcodes(const isa::Stream &stream) {
  std::vector<Opcode> out;
  for (const isa::Instruction &code : stream)
    out.push_back(code.opcode);
  return out;
}

void expectSequential(const Projected &p) {
  Layout layout(p.program.variables);
  Memory expected = runSequentially(p.program, layout);
  for (int seed = 0; seed < 20; ++seed) {
    RunResult result = runStreams(p.streams, layout, uint64_t(seed));
    ASSERT_FALSE(result.deadlock);
    ASSERT_TRUE(result.memory == expected);
  }
}

TEST(Projection, StraightLineHasNoRegisters) {
  Projected p = projected(oneOperation());
  EXPECT_THAT(opcodes(p[Engine::Sync]), ElementsAre(Opcode::DmaCopy, Opcode::DmaCopy, Opcode::Return));
  EXPECT_THAT(opcodes(p[Engine::Scalar]), ElementsAre(Opcode::DmaCopy, Opcode::Return));
  EXPECT_THAT(opcodes(p[Engine::Vector]), ElementsAre(Opcode::TensorTensor, Opcode::Return));
  EXPECT_THAT(p[Engine::Tensor], IsEmpty());
  EXPECT_THAT(p[Engine::Gpsimd], IsEmpty());
  for (const StreamReport &stream : p.report.streams)
    EXPECT_EQ(stream.maxLiveRegisters, 0);
}

TEST(Projection, LoopsOfOnePassAreStraightLine) {
  ProgramBuilder b;
  int x = b.addVariable(64);
  LoopId once = b.beginLoop(1);
  LoopId rotated = b.beginLoop(3, 4);
  for (int copy = 0; copy < 4; ++copy) {
    if (copy > 0)
      b.nextCopy();
    b.load(Engine::Sync, sbuf(copy * 4), {x, 1, 4, 1, 4, {{once, 100}, {rotated, 5}}});
  }
  b.endLoop();
  b.endLoop();
  Projected p = projected(b.take());
  const isa::Stream &sync = p[Engine::Sync];
  ASSERT_THAT(opcodes(sync), ElementsAre(Opcode::DmaCopy, Opcode::DmaCopy, Opcode::DmaCopy, Opcode::Return));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(sync[i].hbm[1].byteOffset, 4 + i * 20);
    EXPECT_EQ(sync[i].hbm[1].terms[0].reg, 0);
  }
}

TEST(Projection, LoopShape) {
  // An even number of iterations ends behind the last copy, an odd one in the middle.
  for (int64_t trips : {6, 7}) {
    ProgramBuilder b;
    int x = b.addVariable(64);
    LoopId loop = b.beginLoop(trips, 2);
    b.load(Engine::Sync, sbuf(0), {x, 0, 4, 1, 4, {{loop, 4}}});
    b.nextCopy();
    b.load(Engine::Sync, sbuf(4), {x, 0, 4, 1, 4, {{loop, 4}}});
    b.endLoop();
    Projected p = projected(b.take());
    if (trips % 2 == 0) {
      EXPECT_THAT(opcodes(p[Engine::Sync]), ElementsAre(Opcode::RegisterMove, Opcode::DmaCopy, Opcode::DmaCopy,
                                                        Opcode::RegisterAlu, Opcode::Branch, Opcode::Return));
    } else {
      EXPECT_THAT(opcodes(p[Engine::Sync]),
                  ElementsAre(Opcode::RegisterMove, Opcode::DmaCopy, Opcode::Branch, Opcode::DmaCopy,
                              Opcode::RegisterAlu, Opcode::Branch, Opcode::Return));
    }
    // The self edges count in steps of 16, the addresses of 32 bytes: one register serves both and the exit test.
    EXPECT_EQ(p.reportOf(Engine::Sync).maxLiveRegisters, 1);
    expectSequential(p);
  }
}

TEST(Projection, OnlyParticipantsLoop) {
  ProgramBuilder b;
  int x = b.addVariable(64);
  b.compute(Engine::Gpsimd, sbuf(32), {});
  LoopId loop = b.beginLoop(6);
  b.load(Engine::Sync, sbuf(0), {x, 0, 4, 1, 4, {{loop, 4}}});
  b.compute(Engine::Vector, sbuf(4), {sbuf(0)});
  b.endLoop();
  b.compute(Engine::Gpsimd, sbuf(40), {sbuf(4)});
  Projected p = projected(b.take());
  EXPECT_THAT(opcodes(p[Engine::Gpsimd]), ElementsAre(Opcode::Memset, Opcode::TensorCopy, Opcode::Return));
  // All six updates of the vector engine, as a constant.
  const isa::Instruction &last = p[Engine::Gpsimd][1];
  ASSERT_EQ(last.numWaits, 1);
  EXPECT_EQ(last.waits[0].immediate, 6);
  EXPECT_EQ(last.waits[0].valueRegister, 0);
  expectSequential(p);
}

TEST(Projection, SiblingLoopsReuseRegisters) {
  ProgramBuilder b;
  int x = b.addVariable(64);
  for (int i = 0; i < 5; ++i) {
    LoopId loop = b.beginLoop(6);
    b.load(Engine::Sync, sbuf(0), {x, 0, 4, 1, 4, {{loop, 4}}});
    b.compute(Engine::Vector, sbuf(4), {sbuf(0)});
    b.endLoop();
  }
  Projected p = projected(b.take());
  EXPECT_LE(p.reportOf(Engine::Sync).maxLiveRegisters, 3);
  EXPECT_GE(p.reportOf(Engine::Sync).registers.size(), 5u);
  for (const RegisterUse &use : p.reportOf(Engine::Sync).registers)
    EXPECT_LE(use.number, 3);
  expectSequential(p);
}

TEST(Projection, SurplusAddressTermsShareARegister) {
  ProgramBuilder b;
  int x = b.addVariable(4096);
  std::vector<HbmTerm> terms;
  for (int depth = 0; depth < 6; ++depth)
    terms.push_back({b.beginLoop(2 + depth % 2), depth == 3 ? 9 : 4 << depth});
  b.load(Engine::Sync, sbuf(0), {x, 0, 4, 1, 4, terms});
  b.compute(Engine::Vector, sbuf(8), {sbuf(8), sbuf(0)});
  for (int depth = 0; depth < 6; ++depth)
    b.endLoop();
  Projected p = projected(b.take());
  for (const isa::Instruction &code : p[Engine::Sync])
    for (const isa::HbmPattern::Term &term : code.hbm[1].terms)
      EXPECT_EQ(term.reg != 0, code.opcode == Opcode::DmaCopy);
  expectSequential(p);
}

TEST(Projection, AddressTermsThatFitNoRegister) {
  ProgramBuilder b;
  int x = b.addVariable(4096);
  std::vector<HbmTerm> terms;
  for (int depth = 0; depth < 5; ++depth)
    terms.push_back({b.beginLoop(3), depth == 0 ? int64_t(1) << 40 : 1 + depth});
  b.load(Engine::Sync, sbuf(0), {x, 0, 4, 1, 4, terms});
  for (int depth = 0; depth < 5; ++depth)
    b.endLoop();
  StructuredProgram program = b.take();
  ASSERT_TRUE(synchronise(program));
  Expected<isa::Program> streams = project(program);
  ASSERT_FALSE(streams);
  EXPECT_NE(streams.error().message().find("at most 4 loop terms but got 5"), std::string::npos);
}

TEST(Projection, SurplusWaitsGoOnNops) {
  ProgramBuilder b;
  int x = b.addVariable(64);
  for (int i = 0; i < 10; ++i)
    b.load(i % 2 ? Engine::Sync : Engine::Scalar, sbuf(i * 4), {x, i * 4});
  b.compute(Engine::Vector, sbuf(64, 40), {sbuf(0, 40)});
  Projected p = projected(b.take());
  ASSERT_THAT(opcodes(p[Engine::Vector]), ElementsAre(Opcode::Nop, Opcode::Nop, Opcode::TensorCopy, Opcode::Return));
  EXPECT_EQ(p[Engine::Vector][0].numWaits, 4);
  EXPECT_EQ(p[Engine::Vector][1].numWaits, 4);
  EXPECT_EQ(p[Engine::Vector][2].numWaits, 2);
  EXPECT_EQ(p[Engine::Vector][0].update.op, isa::UpdateOp::None);
  EXPECT_EQ(p.reportOf(Engine::Vector).numWaitNops, 2);
  expectSequential(p);
}

/// The reported number of registers is what the code uses, and no register is read before it is set.
TEST(Projection, RegistersAreSetBeforeUse) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Projected p = projected(randomProgram(seed));
    for (int stream = 0; stream < isa::kNumStreams; ++stream) {
      int highest = 0;
      std::array<bool, isa::kNumRegisters> set = {};
      set[0] = true;
      for (const isa::Instruction &code : p.streams[stream]) {
        for (int i = 0; i < code.numWaits; ++i)
          EXPECT_TRUE(set[code.waits[i].valueRegister]);
        for (const isa::HbmPattern &hbm : code.hbm)
          for (const isa::HbmPattern::Term &term : hbm.terms)
            EXPECT_TRUE(set[term.reg]);
        EXPECT_TRUE(set[code.rs]);
        set[code.rd] = true;
        highest = std::max<int>(highest, code.rd);
      }
      EXPECT_EQ(highest, p.report.streams[stream].maxLiveRegisters) << "seed " << seed;
    }
  }
}

TEST(Projection, Deterministic) {
  for (uint64_t seed = 1; seed <= 20; ++seed)
    EXPECT_EQ(describe(projected(randomProgram(seed)).streams), describe(projected(randomProgram(seed)).streams));
}

/// Registers of the deepest nest at hand, for the record of docs/Synchronisation.md.
TEST(Projection, RegistersOfRealLoops) {
  ProgramBuilder b;
  int x = b.addVariable(4096), w = b.addVariable(4096), y = b.addVariable(4096);
  addMatmul(b, 4, 8, 8, 8, x, w, y);
  Projected p = projected(b.take());
  for (const StreamReport &stream : p.report.streams) {
    EXPECT_LE(stream.maxLiveRegisters, 6);
    EXPECT_EQ(stream.fallback, RegisterFallback::None);
  }
}

/// Every instruction the projection adds is legal and survives the codec.
TEST(Projection, Encodes) {
  ProgramBuilder b;
  int x = b.addVariable(4096), y = b.addVariable(4096);
  for (int kernel = 0; kernel < 5; ++kernel) {
    b.beginKernel();
    LoopId loop = b.beginLoop(7, 2);
    for (int copy = 0; copy < 2; ++copy) {
      if (copy > 0)
        b.nextCopy();
      b.load(Engine::Sync, sbuf(copy * 8), {x, 0, 4, 1, 4, {{loop, 4}}}).code.dgeMode = isa::DgeMode::Hardware;
      b.compute(Engine::Vector, sbuf(copy * 8 + 4), {sbuf(copy * 8)});
      b.store(Engine::Gpsimd, {y, 0, 4, 1, 4, {{loop, 4}}}, sbuf(copy * 8 + 4)).code.dgeMode = isa::DgeMode::Software;
    }
    b.endLoop();
  }
  Projected p = projected(b.take());
  Status legal = isa::verifyProgram(*target::MachineModel::builtin("trn2"), p.streams);
  EXPECT_TRUE(legal) << legal.error().message();
  for (int stream = 0; stream < isa::kNumStreams; ++stream) {
    Engine engine = isa::kStreamEngines[stream];
    Expected<std::vector<uint8_t>> bytes = isa::encodeStream(engine, p.streams[stream]);
    ASSERT_TRUE(bytes) << bytes.error().message();
    Expected<isa::Stream> decoded = isa::decodeStream(engine, *bytes);
    ASSERT_TRUE(decoded) << decoded.error().message();
    isa::Program again;
    again[stream] = *decoded;
    isa::Program before;
    before[stream] = p.streams[stream];
    EXPECT_EQ(describe(again), describe(before));
  }
}

} // namespace

} // namespace neuroncore::schedule::test

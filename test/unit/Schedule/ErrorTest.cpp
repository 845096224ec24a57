// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is refused, and how.

#include <gtest/gtest.h>

#include "ProgramBuilder.h"
#include "neuron/Schedule/Projection.h"
#include "neuron/Schedule/Synchronisation.h"

namespace neuroncore::schedule::test {

namespace {

using isa::Engine;

void expectRefused(StructuredProgram program, ErrorKind kind, const std::string &part) {
  Status status = synchronise(program);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind(), kind) << status.error().message();
  EXPECT_NE(status.error().message().find(part), std::string::npos) << status.error().message();
}

TEST(Refused, RunTimeTripCount) {
  ProgramBuilder b;
  b.beginLoop(-1);
  b.compute(Engine::Vector, sbuf(0), {});
  b.endLoop();
  expectRefused(b.take(), ErrorKind::Unsupported, "static trip count of loop 0 but got -1");
}

TEST(Refused, SequencerInstruction) {
  ProgramBuilder b;
  b.compute(Engine::Vector, sbuf(0), {}).code.opcode = isa::Opcode::RegisterLoad;
  expectRefused(b.take(), ErrorKind::Unsupported, "register_load");
}

TEST(Refused, DynamicTransferSize) {
  ProgramBuilder b;
  int x = b.addVariable(64);
  b.load(Engine::Sync, sbuf(0), {x}).code.hbm[1].countRegister[4] = 3;
  expectRefused(b.take(), ErrorKind::Unsupported, "dynamic transfers are not supported");
}

TEST(Refused, EngineThatCannotRunIt) {
  ProgramBuilder b;
  b.compute(Engine::Sync, sbuf(0), {});
  expectRefused(b.take(), ErrorKind::InvalidInput, "engine that runs memset but got 'sync'");
}

TEST(Refused, UnknownEngine) {
  ProgramBuilder b;
  b.compute(Engine::Unknown, sbuf(0), {});
  expectRefused(b.take(), ErrorKind::InvalidInput, "engine with a stream");
}

TEST(Refused, TermOfAForeignLoop) {
  ProgramBuilder b;
  int x = b.addVariable(64);
  b.beginLoop(3);
  b.load(Engine::Sync, sbuf(0), {x, 0, 4, 1, 4, {{7, 4}}});
  b.endLoop();
  expectRefused(b.take(), ErrorKind::InvalidInput, "enclosing loops but got loop 7");
}

TEST(Refused, UnknownVariable) {
  ProgramBuilder b;
  b.load(Engine::Sync, sbuf(0), {3});
  expectRefused(b.take(), ErrorKind::InvalidInput, "variable below 0 but got 3");
}

TEST(Refused, PartitionsBeyondTheMemory) {
  ProgramBuilder b;
  b.compute(Engine::Vector, sbuf(0), {}).code.tiles[0].startPartition = 128;
  expectRefused(b.take(), ErrorKind::InvalidInput, "partitions within [0, 128)");
}

TEST(Refused, WaitsOfTheCaller) {
  ProgramBuilder b;
  b.compute(Engine::Vector, sbuf(0), {}).code.numWaits = 1;
  expectRefused(b.take(), ErrorKind::InvalidInput, "without waits");
}

TEST(Refused, CounterOverflow) {
  ProgramBuilder b;
  b.beginLoop(1 << 20);
  b.beginLoop(1 << 10);
  b.compute(Engine::Vector, sbuf(0), {});
  b.endLoop();
  b.endLoop();
  expectRefused(b.take(), ErrorKind::Unsupported, "updates of one semaphore");
}

TEST(Refused, TransferCounterOverflow) {
  ProgramBuilder b;
  int x = b.addVariable(64);
  b.beginLoop(1 << 26);
  b.load(Engine::Sync, sbuf(0), {x});
  b.endLoop();
  expectRefused(b.take(), ErrorKind::Unsupported, "updates of one semaphore");
}

TEST(Refused, CounterOverflowOverSeveralKernels) {
  ProgramBuilder b;
  for (int kernel = 0; kernel < 5; ++kernel) {
    b.beginKernel();
    b.beginLoop(1 << 27);
    b.compute(Engine::Vector, sbuf(0), {});
    b.endLoop();
  }
  expectRefused(b.take(), ErrorKind::Unsupported, "updates of one semaphore");
}

TEST(Refused, CounterOverflowOfASharedCounter) {
  ProgramBuilder b;
  int x = b.addVariable(4096);
  b.beginLoop((1 << 25) - 1);
  for (int i = 0; i < 241; ++i)
    b.load(Engine::Sync, sbuf(i % 64 * 4), {x, i % 64 * 4});
  b.endLoop();
  expectRefused(b.take(), ErrorKind::Unsupported, "updates of one semaphore");
}

TEST(Refused, OperandWithoutDtype) {
  ProgramBuilder b;
  b.compute(Engine::Vector, sbuf(0), {}).code.tiles[0].dtype = isa::Dtype::None;
  expectRefused(b.take(), ErrorKind::InvalidInput, "operand 0 of memset to have a dtype");
}

TEST(Refused, WaitOnACounterThatDoesNotExist) {
  ProgramBuilder b;
  b.compute(Engine::Vector, sbuf(0), {});
  StructuredProgram program = b.take();
  ASSERT_TRUE(synchronise(program));
  SymbolicWait wait;
  wait.index = 5;
  std::get<Instruction>(program.kernels[0].body[0]).waits.push_back(wait);
  Expected<isa::Program> streams = project(program);
  ASSERT_FALSE(streams);
  EXPECT_NE(streams.error().message().find("existing counter but got number 5"), std::string::npos);
}

TEST(Refused, NestedLoopsOfOneId) {
  ProgramBuilder b;
  b.beginLoop(3);
  b.beginLoop(3);
  b.compute(Engine::Vector, sbuf(0), {});
  b.endLoop();
  b.endLoop();
  StructuredProgram program = b.take();
  Loop &outer = *std::get<std::unique_ptr<Loop>>(program.kernels[0].body[0]);
  std::get<std::unique_ptr<Loop>>(outer.copies[0][0])->id = outer.id;
  expectRefused(std::move(program), ErrorKind::InvalidInput, "distinct ids");
}

TEST(Refused, SecondSynchronisation) {
  ProgramBuilder b;
  b.compute(Engine::Vector, sbuf(0), {});
  StructuredProgram program = b.take();
  ASSERT_TRUE(synchronise(program));
  expectRefused(std::move(program), ErrorKind::InvalidInput, "is the program synchronised already?");
}

TEST(Refused, ProjectionBeforeSynchronisation) {
  ProgramBuilder b;
  b.compute(Engine::Vector, sbuf(0), {});
  StructuredProgram program = b.take();
  Expected<isa::Program> streams = project(program);
  ASSERT_FALSE(streams);
  EXPECT_NE(streams.error().message().find("synchronise the program first"), std::string::npos);
}

TEST(Refused, StaticDescriptorsInALoop) {
  ProgramBuilder b;
  int x = b.addVariable(64);
  LoopId loop = b.beginLoop(5);
  b.load(Engine::Sync, sbuf(0), {x, 0, 4, 1, 4, {{loop, 4}}}).code.dgeMode = isa::DgeMode::Static;
  b.endLoop();
  StructuredProgram program = b.take();
  ASSERT_TRUE(synchronise(program));
  Expected<isa::Program> streams = project(program);
  ASSERT_FALSE(streams);
  EXPECT_NE(streams.error().message().find("dge_mode"), std::string::npos) << streams.error().message();
}

TEST(Refused, TooFewRegisters) {
  ProgramBuilder b;
  int x = b.addVariable(4096);
  std::vector<HbmTerm> terms;
  for (int depth = 0; depth < 4; ++depth)
    terms.push_back({b.beginLoop(3), 4 << (2 * depth)});
  b.load(Engine::Sync, sbuf(0), {x, 0, 4, 1, 4, terms});
  for (int depth = 0; depth < 4; ++depth)
    b.endLoop();
  StructuredProgram program = b.take();
  ASSERT_TRUE(synchronise(program));
  ProjectionOptions options;
  options.numRegisters = 3;
  Expected<isa::Program> streams = project(program, options);
  ASSERT_FALSE(streams);
  EXPECT_NE(streams.error().message().find("expected the sync stream to need at most 2 registers"), std::string::npos)
      << streams.error().message();
}

TEST(Refused, TooFewSemaphores) {
  ProgramBuilder b;
  b.compute(Engine::Vector, sbuf(0), {});
  StructuredProgram program = b.take();
  SynchronisationOptions options;
  options.numSemaphores = 6;
  Status status = synchronise(program, options);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message().find("at least 8 semaphores but got 6"), std::string::npos);
}

} // namespace

} // namespace neuroncore::schedule::test

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The known ways to get this wrong, each as its smallest program: the scheme does it right, and the mistake shows.

#include <gtest/gtest.h>

#include "HappensBefore.h"
#include "Pipeline.h"
#include "SymbolicMachine.h"
#include "neuron/Schedule/Projection.h"
#include "neuron/Schedule/Synchronisation.h"

namespace neuroncore::schedule::test {

namespace {

using isa::Engine;

int wrongRuns(const isa::Program &program, const StructuredProgram &meaning, int runs = 300) {
  Layout layout(meaning.variables);
  Memory expected = runSequentially(meaning, layout);
  int wrong = 0;
  for (int run = 0; run < runs; ++run) {
    RunResult result = runStreams(program, layout, uint64_t(run));
    wrong += !result.deadlock && result.memory != expected;
  }
  return wrong;
}

int deadlocks(const isa::Program &program, const StructuredProgram &meaning, int runs = 300) {
  Layout layout(meaning.variables);
  int count = 0;
  for (int run = 0; run < runs; ++run)
    count += runStreams(program, layout, uint64_t(run)).deadlock;
  return count;
}

isa::Program streamsOf(const StructuredProgram &program) {
  Expected<isa::Program> streams = project(program);
  EXPECT_TRUE(streams) << streams.error().message();
  return std::move(*streams);
}

std::string hazard(const isa::Program &program, const StructuredProgram &meaning, const CheckOptions &options = {}) {
  Layout layout(meaning.variables);
  return findHazard(program, layout, options);
}

StructuredProgram synchronised(ProgramBuilder &builder) {
  StructuredProgram program = builder.take();
  Status status = synchronise(program);
  EXPECT_TRUE(status) << status.error().message();
  return program;
}

void expectRight(const StructuredProgram &program) {
  isa::Program streams = streamsOf(program);
  EXPECT_EQ(hazard(streams, program), "");
  EXPECT_EQ(wrongRuns(streams, program, 60), 0);
  EXPECT_EQ(deadlocks(streams, program, 60), 0);
}

template <typename Condition> int eraseWaits(StructuredProgram &program, Condition condition) {
  int erased = 0;
  forEachInstruction(program, [&](Instruction &instruction) {
    erased += int(std::erase_if(instruction.waits, [&](const SymbolicWait &w) { return condition(instruction, w); }));
  });
  return erased;
}

bool isOwnTransfer(const Instruction &instruction, const SymbolicWait &wait) {
  return wait.counter == SymbolicWait::Counter::DmaSite && wait.kernelsBack == 0 && wait.index == instruction.dmaSite;
}

TEST(Pitfall, P1_NoSelfEdge) {
  ProgramBuilder b;
  int h = b.addVariable(64);
  LoopId loop = b.beginLoop(10);
  b.store(Engine::Scalar, {h, 0, 4, 1, 4, {{loop, 4}}}, sbuf(0));
  b.load(Engine::Sync, sbuf(8), {h, 0, 4, 1, 4, {{loop, 4}}});
  b.compute(Engine::Vector, sbuf(16), {sbuf(16), sbuf(8)});
  b.endLoop();
  StructuredProgram program = synchronised(b);
  expectRight(program);
  // Nothing overwrites what the store reads, so nothing but the edge to itself keeps two stores apart.
  ASSERT_EQ(eraseWaits(program, isOwnTransfer), 1);
  isa::Program faulty = streamsOf(program);
  EXPECT_NE(hazard(faulty, program), "");
  EXPECT_GT(wrongRuns(faulty, program), 30);
}

/// Streams of tile loads into two slots, all loads on one semaphore.
TEST(Pitfall, P2_OneSemaphoreForBothSlots) {
  ProgramBuilder b;
  int h = b.addVariable(64), out = b.addVariable(64);
  for (int tile = 0; tile < 8; ++tile) {
    b.load(Engine::Sync, sbuf(tile % 2 * 4), {h, tile * 4});
    b.compute(Engine::Vector, sbuf(16 + tile * 4), {sbuf(tile % 2 * 4)});
  }
  b.store(Engine::Scalar, {out, 0, 32}, sbuf(16, 32));
  StructuredProgram program = synchronised(b);
  expectRight(program);
  // The same streams with all loads counted by one semaphore: load i is complete at 16 (i + 1), one believes.
  isa::Program faulty = streamsOf(program);
  int loads = 0;
  std::array<int, isa::kNumSemaphores> ordinal = {};
  for (isa::Instruction &code : faulty[isa::streamIndex(Engine::Sync)])
    if (code.opcode == isa::Opcode::DmaCopy) {
      ordinal[code.update.semaphore] = ++loads;
      code.update.semaphore = 200;
    }
  for (isa::Stream &stream : faulty)
    for (isa::Instruction &code : stream)
      for (int i = 0; i < code.numWaits; ++i)
        if (int n = ordinal[code.waits[i].semaphore]) {
          code.waits[i].semaphore = 200;
          code.waits[i].immediate = 16 * n;
        }
  EXPECT_NE(hazard(faulty, program), "");
  EXPECT_GT(wrongRuns(faulty, program), 30);
  // With the edge of each load to the one before it is sound, and serial.
  int before = 0;
  for (isa::Instruction &code : faulty[isa::streamIndex(Engine::Sync)])
    if (code.opcode == isa::Opcode::DmaCopy) {
      code.waits[code.numWaits].semaphore = 200;
      code.waits[code.numWaits++].immediate = 16 * before++;
    }
  EXPECT_EQ(hazard(faulty, program), "");
  EXPECT_EQ(wrongRuns(faulty, program, 60), 0);
}

TEST(Pitfall, P3_TriggerAfterOwnCompute) {
  ProgramBuilder b;
  int x = b.addVariable(4), y = b.addVariable(4);
  b.load(Engine::Sync, sbuf(0), {x});
  b.compute(Engine::Scalar, sbuf(4), {sbuf(0)});
  b.store(Engine::Scalar, {y}, sbuf(4));
  StructuredProgram program = synchronised(b);
  expectRight(program);
  int own = isa::streamIndex(Engine::Scalar);
  ASSERT_EQ(eraseWaits(program,
                       [&](const Instruction &instruction, const SymbolicWait &wait) {
                         return instruction.dmaSite >= 0 && wait.counter == SymbolicWait::Counter::Engine &&
                                wait.index == own;
                       }),
            1);
  isa::Program faulty = streamsOf(program);
  EXPECT_NE(hazard(faulty, program), "");
  EXPECT_GT(wrongRuns(faulty, program), 30);
}

/// And the other way round: compute after a transfer that the same engine triggered.
TEST(Pitfall, P3_ComputeAfterOwnTransfer) {
  ProgramBuilder b;
  int x = b.addVariable(4);
  b.load(Engine::Scalar, sbuf(0), {x});
  b.compute(Engine::Scalar, sbuf(4), {sbuf(0)});
  StructuredProgram program = synchronised(b);
  expectRight(program);
  ASSERT_EQ(eraseWaits(program, [](const Instruction &, const SymbolicWait &) { return true; }), 1);
  EXPECT_GT(wrongRuns(streamsOf(program), program), 30);
}

TEST(Pitfall, P4_OneCountForAllSlots) {
  ProgramBuilder b;
  int h = b.addVariable(400), out = b.addVariable(400);
  LoopId outer = b.beginLoop(6);
  LoopId inner = b.beginLoop(3, 2);
  for (int copy = 0; copy < 2; ++copy) {
    if (copy > 0)
      b.nextCopy();
    b.load(Engine::Sync, sbuf(copy * 4), {h, 0, 4, 1, 4, {{outer, 12}, {inner, 4}}});
    b.compute(Engine::Vector, sbuf(8 + copy * 4), {sbuf(copy * 4)});
    b.store(Engine::Scalar, {out, 0, 4, 1, 4, {{outer, 12}, {inner, 4}}}, sbuf(8 + copy * 4));
  }
  b.endLoop();
  b.endLoop();
  StructuredProgram program = synchronised(b);
  expectRight(program);
  // Slot 0 runs twice in each run of the inner loop and slot 1 once. Count slot 1 as if it were slot 0:
  isa::Program faulty = streamsOf(program);
  isa::Stream &vector = faulty[isa::streamIndex(Engine::Vector)];
  std::vector<isa::Wait *> loads; // of the two uses
  int32_t semaphoreOfSlot[2] = {-1, -1};
  int slot = 0;
  for (const isa::Instruction &code : faulty[isa::streamIndex(Engine::Sync)])
    if (code.opcode == isa::Opcode::DmaCopy)
      semaphoreOfSlot[slot++] = code.update.semaphore;
  ASSERT_EQ(slot, 2);
  for (isa::Instruction &code : vector)
    for (int i = 0; i < code.numWaits; ++i)
      if (code.waits[i].semaphore == semaphoreOfSlot[loads.size() % 2])
        loads.push_back(&code.waits[i]);
  ASSERT_EQ(loads.size(), 2u);
  loads[1]->valueRegister = loads[0]->valueRegister;
  loads[1]->immediate = loads[0]->immediate;
  EXPECT_EQ(deadlocks(faulty, program, 20), 20);
}

/// Conditionals on device data would need padding of the branch that is not taken; they are refused.
TEST(Pitfall, P5_ConditionalsAreRefused) {
  for (isa::Opcode opcode : {isa::Opcode::Branch, isa::Opcode::RegisterLoad, isa::Opcode::Call, isa::Opcode::Return}) {
    ProgramBuilder b;
    b.compute(Engine::Vector, sbuf(0), {}).code.opcode = opcode;
    StructuredProgram program = b.take();
    Status status = synchronise(program);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind(), ErrorKind::Unsupported);
    EXPECT_NE(status.error().message().find("conditionals on device data are not supported"), std::string::npos);
  }
}

/// Kernels that each store what the next one loads.
StructuredProgram chainOfKernels(int kernels) {
  ProgramBuilder b;
  std::vector<int> v;
  for (int i = 0; i <= kernels; ++i)
    v.push_back(b.addVariable(8));
  for (int i = 0; i < kernels; ++i) {
    b.beginKernel();
    b.load(Engine::Scalar, sbuf(i % 2 * 32), {v[i]});
    b.compute(Engine::Vector, sbuf(i % 2 * 32 + 4), {sbuf(i % 2 * 32)});
    b.store(Engine::Gpsimd, {v[i + 1]}, sbuf(i % 2 * 32 + 4));
  }
  return synchronised(b);
}

TEST(Pitfall, P6_TwoSemaphoreBlocks) {
  StructuredProgram program = chainOfKernels(7);
  expectRight(program);
  // Blocks by kernel modulo two: the block of the kernel before last is cleared while the last still waits for it.
  int32_t size = program.kernels[1].firstSemaphore - program.kernels[0].firstSemaphore;
  for (size_t c = 0; c < program.kernels.size(); ++c) {
    Kernel &kernel = program.kernels[c];
    int32_t first = isa::kNumStreams + int32_t(c % 2) * size;
    forEachInstruction(kernel.body, [&](Instruction &instruction) {
      if (instruction.dmaSite >= 0)
        instruction.code.update.semaphore = uint8_t(first + instruction.dmaSite);
    });
    kernel.firstSemaphore = first;
    if (c < 2)
      continue;
    kernel.entry.erase(
        std::remove_if(kernel.entry.begin(), kernel.entry.end(),
                       [](const Instruction &i) { return i.code.opcode == isa::Opcode::SemaphoreRangeClear; }),
        kernel.entry.end());
    Instruction clear;
    clear.engine = Engine::Sync;
    clear.code.opcode = isa::Opcode::SemaphoreRangeClear;
    clear.code.immediate = first;
    clear.code.target = uint32_t(size);
    // In front of the tick; the waits stay on a NOP of their own.
    for (size_t i = 0; i < kernel.entry.size(); ++i)
      if (kernel.entry[i].engine == Engine::Sync && kernel.entry[i].code.update.op != isa::UpdateOp::None) {
        Instruction waits = kernel.entry[i];
        waits.code.update = {};
        kernel.entry[i].waits.clear();
        kernel.entry.insert(kernel.entry.begin() + i, {waits, clear});
        break;
      }
  }
  isa::Program faulty = streamsOf(program);
  EXPECT_NE(hazard(faulty, program), "");
  EXPECT_GT(deadlocks(faulty, program), 0);
}

TEST(Pitfall, P7_OperandsThatMayAlias) {
  PipelineOptions options;
  double disjoint = measurePeriod(options).streams;
  options.mayAlias = true;
  double aliased = measurePeriod(options).streams;
  EXPECT_GT(aliased, 1.5 * disjoint);
}

TEST(Pitfall, P7_WrongClaimOfDisjointnessIsFound) {
  PipelineOptions options;
  options.mayAlias = true;
  StructuredProgram program = makePipeline(options, 12).program;
  std::vector<VariableInfo> truth = program.variables;
  for (VariableInfo &variable : program.variables)
    variable.aliasGroup = -1;
  ASSERT_TRUE(synchronise(program));
  program.variables = truth;
  isa::Program streams = streamsOf(program);
  EXPECT_NE(hazard(streams, program), "");
  EXPECT_GT(wrongRuns(streams, program), 0);
}

TEST(Pitfall, P8_ProgramOrderDecidesOverlap) {
  PipelineOptions options;
  options.storer = Engine::Sync;
  double naive = measurePeriod(options).streams;
  options.loadsAhead = true;
  double ahead = measurePeriod(options).streams;
  options.loadsAhead = false;
  options.storer = Engine::Scalar;
  double onScalar = measurePeriod(options).streams;
  options.storer = Engine::Gpsimd;
  double onIdle = measurePeriod(options).streams;
  EXPECT_NEAR(onIdle, 2600, 10);
  EXPECT_GT(naive, 2.5 * onIdle);
  EXPECT_LT(ahead, 2.1 * onIdle); // one queue carries 2 x 2600
  EXPECT_GT(onScalar, 1.3 * onIdle);
  EXPECT_LT(onScalar, naive);
}

/// Row-wise softmax in two halves on the vector engine. `early` places the maximum of row i + 1 before the division of
/// row i.
double softmaxPeriod(bool early) {
  double time[2];
  for (int i = 0; i < 2; ++i) {
    ProgramBuilder b;
    Durations durations;
    auto timed = [&](Instruction &instruction, double ns) { durations.of[instruction.code.debugId] = ns; };
    int x = b.addVariable(1000), y = b.addVariable(1000);
    constexpr int kCopies = 4;
    auto row = [](int copy) { return sbuf(copy % kCopies * 16); };
    auto maximum = [](int copy) { return sbuf(copy % kCopies * 16 + 4, 1); };
    timed(b.load(Engine::Sync, row(0), {x}), 1000);
    if (early)
      timed(b.compute(Engine::Vector, maximum(0), {row(0)}), 2000);
    LoopId loop = b.beginLoop(40 + 40 * i, kCopies);
    for (int copy = 0; copy < kCopies; ++copy) {
      if (copy > 0)
        b.nextCopy();
      Tile exponential = sbuf(copy * 16 + 8), sum = sbuf(copy * 16 + 5, 1), out = sbuf(copy * 16 + 12);
      timed(b.load(Engine::Sync, row(copy + 1), {x, 4, 4, 1, 4, {{loop, 4}}}), 1000);
      if (!early)
        timed(b.compute(Engine::Vector, maximum(copy), {row(copy)}), 2000);
      timed(b.compute(Engine::Scalar, exponential, {row(copy)}), 3000);
      if (early)
        timed(b.compute(Engine::Vector, maximum(copy + 1), {row(copy + 1)}), 2000);
      timed(b.compute(Engine::Vector, sum, {exponential}), 100);
      timed(b.compute(Engine::Vector, out, {exponential, sum}), 2000);
      timed(b.store(Engine::Gpsimd, {y, 0, 4, 1, 4, {{loop, 4}}}, out), 1000);
    }
    b.endLoop();
    StructuredProgram program = b.take();
    forEachInstruction(program, [&](Instruction &instruction) {
      if (instruction.engine == Engine::Scalar && instruction.dmaSite < 0 &&
          instruction.code.opcode == isa::Opcode::TensorCopy) {
        instruction.code.opcode = isa::Opcode::Activation;
        instruction.code.scalars[1] =
            isa::ScalarOperand::vector(isa::MemorySpace::Sbuf, instruction.code.tiles[1].byteOffset + 16);
      }
    });
    EXPECT_TRUE(synchronise(program));
    isa::Program streams = streamsOf(program);
    EXPECT_EQ(hazard(streams, program), "");
    time[i] = timeOfStreams(streams, durations);
  }
  return (time[1] - time[0]) / 40;
}

TEST(Pitfall, P9_RecurrenceThroughInOrderEngines) {
  double late = softmaxPeriod(false), early = softmaxPeriod(true);
  constexpr double kSlowestStage = 4100; // the vector engine
  EXPECT_GT(late, 1.5 * kSlowestStage);
  EXPECT_LT(early, 1.05 * kSlowestStage);
}

TEST(Pitfall, P10_TwoBuffersDoNotHideLatency) {
  // Dispatch, load, completion and consumer take 1000 + 2600 + 300 + 1700 and more: three buffers at 2600 per tile.
  PipelineOptions options;
  options.copies = 2;
  EXPECT_GT(measurePeriod(options).streams, 3000);
  options.copies = 3;
  EXPECT_NEAR(measurePeriod(options).streams, 2600, 10);
}

/// Two independent kernels in the same or in different scratch memory.
double twoKernels(int secondArena) {
  ProgramBuilder b;
  Durations durations;
  for (int kernel = 0; kernel < 2; ++kernel) {
    b.beginKernel();
    int x = b.addVariable(64), y = b.addVariable(64);
    int base = kernel * secondArena;
    auto timed = [&](Instruction &instruction, double ns) { durations.of[instruction.code.debugId] = ns; };
    timed(b.load(Engine::Sync, sbuf(base), {x}), 5000);
    timed(b.compute(Engine::Vector, sbuf(base + 4), {sbuf(base)}), 5000);
    timed(b.compute(Engine::Scalar, sbuf(base + 8), {sbuf(base + 4)}), 5000);
    timed(b.store(Engine::Gpsimd, {y}, sbuf(base + 8)), 5000);
  }
  return timeOfStreams(streamsOf(synchronised(b)), durations);
}

TEST(Pitfall, P11_TwoScratchArenasOverlap) { EXPECT_LT(twoKernels(64) + 4000, twoKernels(0)); }

/// The same body twice. What is true of one call, here that its input is what its predecessor wrote, is not assumed of
/// the other.
TEST(Pitfall, P12_FactsOfOneCall) {
  ProgramBuilder b;
  int a = b.addVariable(8), c = b.addVariable(8), d = b.addVariable(8), e = b.addVariable(8);
  auto body = [&](int input, int output, int arena) {
    b.beginKernel();
    b.load(Engine::Sync, sbuf(arena), {input});
    b.compute(Engine::Vector, sbuf(arena + 4), {sbuf(arena)});
    b.store(Engine::Gpsimd, {output}, sbuf(arena + 4));
  };
  body(a, c, 0);
  body(d, e, 32); // independent of the first
  body(e, a, 0);  // reads what the second wrote
  StructuredProgram program = synchronised(b);
  expectRight(program);
  auto waitsOnPredecessor = [](const Kernel &kernel) {
    int count = 0;
    for (const SymbolicWait &wait : std::get<Instruction>(kernel.body[0]).waits)
      count += wait.kernelsBack == 1 && wait.counter == SymbolicWait::Counter::DmaSite;
    return count;
  };
  EXPECT_EQ(waitsOnPredecessor(program.kernels[1]), 0);
  EXPECT_EQ(waitsOnPredecessor(program.kernels[2]), 1);
}

/// A ring of stores on four engines, each waiting for the one before only. It is correct, but what a count proves
/// follows from the order of later stores: a checker that goes through the program once reports it.
TEST(Pitfall, P13_CheckerWeakerThanTheCompiler) {
  ProgramBuilder b;
  int h = b.addVariable(64);
  b.beginLoop(12);
  constexpr std::array engines = {Engine::Sync, Engine::Scalar, Engine::Gpsimd, Engine::Vector};
  for (int i = 0; i < 4; ++i)
    b.store(engines[i], {h, i == 3 ? 0 : i * 4, i == 3 ? 16 : 8}, sbuf(32 + 16 * i, i == 3 ? 16 : 8));
  b.endLoop();
  StructuredProgram program = synchronised(b);
  forEachInstruction(program, [](Instruction &instruction) { EXPECT_EQ(instruction.waits.size(), 1u); });
  expectRight(program);
  CheckOptions weak;
  weak.maxRounds = 1;
  EXPECT_NE(hazard(streamsOf(program), program, weak), "");
}

} // namespace

} // namespace neuroncore::schedule::test

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The checker on hand-written programs: correct ones are accepted, injected faults are reported. The pitfalls are those
// of docs/Synchronisation.md.

#include "ProgramTester.h"

#include "neuron/Emulator/Check.h"

namespace neuroncore::emulator::test {
namespace {

using isa::AluOp;

Instruction scale(const TilePattern &dst, const TilePattern &src, float factor = 2.0f) {
  Instruction instruction;
  instruction.opcode = Opcode::TensorScalar;
  instruction.op0 = AluOp::Multiply;
  instruction.scalars[0] = isa::ScalarOperand::constant(factor);
  instruction.tiles[0] = dst;
  instruction.tiles[1] = src;
  return instruction;
}

Instruction addTiles(const TilePattern &dst, const TilePattern &a, const TilePattern &b) {
  Instruction instruction;
  instruction.opcode = Opcode::TensorTensor;
  instruction.op0 = AluOp::Add;
  instruction.tiles[0] = dst;
  instruction.tiles[1] = a;
  instruction.tiles[2] = b;
  return instruction;
}

void waitFor(Instruction &instruction, const isa::Wait &wait) { instruction.waits[instruction.numWaits++] = wait; }

CheckResult check(ProgramTester &tester, const CheckOptions &options = {}) {
  Expected<std::shared_ptr<const LoadedProgram>> program = tester.loadProgram();
  EXPECT_TRUE(bool(program)) << program.error().message();
  Expected<CheckResult> result = checkProgram(**program, options);
  EXPECT_TRUE(bool(result));
  return *result;
}

std::string messages(const CheckResult &result) {
  std::string text;
  for (const Hazard &hazard : result.hazards)
    text += hazard.message + "\n";
  return text;
}

bool hasHazard(const CheckResult &result, Hazard::Kind kind) {
  for (const Hazard &hazard : result.hazards)
    if (hazard.kind == kind)
      return true;
  return false;
}

/// Whether some random order gives another result than the ordinary execution.
bool differsUnderAdversary(ProgramTester &tester, int variable, int runs) {
  const std::vector<std::vector<uint8_t>> initial = tester.memory;
  EXPECT_EQ(tester.run(), "");
  const std::vector<uint8_t> expected = tester.memory[variable];
  Expected<std::shared_ptr<const LoadedProgram>> program = tester.loadProgram();
  for (int seed = 0; seed < runs; ++seed) {
    tester.memory = initial;
    const Status status = executeAdversarially(**program, tester.bindings(), uint64_t(seed));
    EXPECT_TRUE(bool(status)) << status.error().message();
    if (tester.memory[variable] != expected)
      return true;
  }
  return false;
}

constexpr int kN = 64;
constexpr int64_t kTileBytes = 128 * kN * 4;

TilePattern buffer(int index) { return tile(Dtype::F32, 128, kN, uint32_t(index) * 4096); }

/// load -> vector -> store with two buffers over `tiles` tiles; loops in registers, as a compiler emits them. The wait
/// that `broken` names is left out or lowered.
struct Pipeline {
  enum Fault {
    None,
    LoadWithoutReader,  // the load does not wait for the reader of its buffer
    ComputeWithoutLoad, // the reader does not wait for the load
    ComputeWithoutStore,
    StoreWithoutCompute,
    LowLoadValue,
    OneInputBuffer, // both rotation copies use one buffer, waits unchanged
    HighValue,
  };
  ProgramTester tester;
  int in, out;

  explicit Pipeline(Fault fault = None, int tiles = 6) {
    in = tester.addVariable("in", tiles * kTileBytes);
    out = tester.addVariable("out", tiles * kTileBytes, neff::Variable::Kind::Output);
    for (int64_t i = 0; i < tiles * kTileBytes / 4; ++i)
      tester.data<float>(in)[i] = float(i % 977);
    const TilePattern x[2] = {buffer(0), buffer(fault == OneInputBuffer ? 0 : 1)}, y[2] = {buffer(2), buffer(3)};
    const int passes = tiles / 2;
    // Semaphores: 0, 1 loads; 2, 3 stores; 4 vector. r1 trip, r2 count before the pass, r3 tile number.
    const auto loop = [&](Engine engine, const std::function<void(int copy)> &body, int32_t perPass) {
      const uint32_t begin = tester.here(engine);
      for (int copy = 0; copy < 2; ++copy)
        body(copy);
      tester.alu(engine, 2, 2, AluOp::Add, 0, perPass);
      tester.alu(engine, 3, 3, AluOp::Add, 0, 2);
      tester.alu(engine, 4, 4, AluOp::Add, 0, 16);
      tester.alu(engine, 1, 1, AluOp::Add, 0, 1);
      tester.branch(engine, 1, AluOp::Less, 0, passes, begin);
    };
    loop(
        Engine::Sync,
        [&](int copy) {
          Instruction &load = tester.load(Engine::Sync, x[copy], in, copy * kTileBytes);
          load.hbm[1].terms[0] = {3, kTileBytes};
          load.dgeMode = isa::DgeMode::Hardware;
          load.update = increment(copy);
          // The vector engine's count at the start of the pass, less what copies after the reader added: the reader of
          // the pass before. In the first pass 0 - 1 is below every count.
          if (fault != LoadWithoutReader)
            waitFor(load, atLeast(4, fault == HighValue ? 1000 : copy == 0 ? -1 : 0, 2));
        },
        2);
    loop(
        Engine::Vector,
        [&](int copy) {
          Instruction compute = scale(y[copy], x[copy]);
          if (fault != ComputeWithoutLoad)
            waitFor(compute, atLeast(copy, fault == LowLoadValue ? 15 : 16, 4));
          if (fault != ComputeWithoutStore)
            waitFor(compute, atLeast(2 + copy, 0, 4));
          compute.update = increment(4);
          tester.add(Engine::Vector, compute);
        },
        2);
    loop(
        Engine::Gpsimd,
        [&](int copy) {
          Instruction &store = tester.store(Engine::Gpsimd, out, y[copy], copy * kTileBytes);
          store.hbm[0].terms[0] = {3, kTileBytes};
          store.update = increment(2 + copy);
          if (fault != StoreWithoutCompute)
            waitFor(store, atLeast(4, copy + 1, 2));
        },
        2);
  }
};

TEST(Check, AcceptsADoubleBufferedPipeline) {
  Pipeline pipeline;
  const CheckResult result = check(pipeline.tester);
  EXPECT_TRUE(result.hazards.empty()) << messages(result);
  EXPECT_TRUE(result.isComplete);
  EXPECT_FALSE(differsUnderAdversary(pipeline.tester, pipeline.out, 30));
}

TEST(Check, ReportsEveryInjectedFault) {
  for (Pipeline::Fault fault :
       {Pipeline::LoadWithoutReader, Pipeline::ComputeWithoutLoad, Pipeline::ComputeWithoutStore,
        Pipeline::StoreWithoutCompute, Pipeline::LowLoadValue, Pipeline::OneInputBuffer}) {
    Pipeline pipeline(fault);
    const CheckResult result = check(pipeline.tester);
    EXPECT_TRUE(hasHazard(result, Hazard::Kind::Race) || hasHazard(result, Hazard::Kind::UnwrittenRead))
        << "fault " << fault << " was not reported";
  }
}

TEST(Check, RaceNamesBothInstructionsAndTheMemory) {
  Pipeline pipeline(Pipeline::StoreWithoutCompute);
  pipeline.tester.neff->debug.push_back({"double", "neuron.binary<mul>", {1}});
  for (Instruction &instruction : pipeline.tester.stream(Engine::Vector))
    if (instruction.opcode == Opcode::TensorScalar)
      instruction.debugId = 1;
  const CheckResult result = check(pipeline.tester);
  const std::string text = messages(result);
  EXPECT_NE(text.find("vector[0] TENSOR_SCALAR (kernel 'double', neuron.binary<mul>)"), std::string::npos) << text;
  EXPECT_NE(text.find("gpsimd[0] DMA_DIRECT2D"), std::string::npos) << text;
  EXPECT_NE(text.find("sbuf partitions 0-127, bytes [8192, 8448)"), std::string::npos) << text;
}

TEST(Check, FaultsThatChangeResultsAreReported) {
  for (Pipeline::Fault fault : {Pipeline::LoadWithoutReader, Pipeline::ComputeWithoutStore,
                                Pipeline::StoreWithoutCompute, Pipeline::LowLoadValue, Pipeline::OneInputBuffer}) {
    Pipeline pipeline(fault);
    if (differsUnderAdversary(pipeline.tester, pipeline.out, 60)) {
      EXPECT_FALSE(check(pipeline.tester).hazards.empty()) << "fault " << fault << " changed results unreported";
    }
  }
}

TEST(Check, ValueTooHighIsADeadlock) {
  Pipeline pipeline(Pipeline::HighValue);
  EXPECT_TRUE(hasHazard(check(pipeline.tester), Hazard::Kind::Deadlock));
}

/// P1: stores of all iterations in flight on one semaphore; the self edge cures it.
TEST(Check, P1SelfEdge) {
  for (bool selfEdge : {false, true}) {
    ProgramTester tester;
    const int scratch = tester.addVariable("h", 4 * kTileBytes, neff::Variable::Kind::Scratch);
    const int out = tester.addVariable("out", 4 * kTileBytes, neff::Variable::Kind::Output);
    Instruction constant;
    constant.opcode = Opcode::Memset;
    constant.tiles[0] = buffer(0);
    constant.scalars[0] = isa::ScalarOperand::constant(3);
    constant.update = increment(9);
    tester.add(Engine::Vector, constant);
    for (int i = 0; i < 4; ++i) {
      Instruction &store = tester.store(Engine::Scalar, scratch, buffer(0), i * kTileBytes);
      waitFor(store, atLeast(9, 1));
      if (selfEdge)
        waitFor(store, atLeast(0, 16 * i));
      store.update = increment(0);
      Instruction &load = tester.load(Engine::Sync, buffer(1 + i), scratch, i * kTileBytes);
      waitFor(load, atLeast(0, 16 * (i + 1)));
      load.update = increment(1 + i);
      Instruction &last = tester.store(Engine::Gpsimd, out, buffer(1 + i), i * kTileBytes);
      waitFor(last, atLeast(1 + i, 16));
    }
    const CheckResult result = check(tester);
    EXPECT_EQ(hasHazard(result, Hazard::Kind::Race), !selfEdge) << messages(result);
    EXPECT_EQ(differsUnderAdversary(tester, out, 200), !selfEdge);
  }
}

/// P2: one semaphore for both slots of a double-buffered load.
TEST(Check, P2SharedSemaphore) {
  ProgramTester tester;
  const int in = tester.addVariable("in", 2 * kTileBytes),
            out = tester.addVariable("out", 2 * kTileBytes, neff::Variable::Kind::Output);
  for (int i = 0; i < 2; ++i) {
    tester.load(Engine::Sync, buffer(i), in, i * kTileBytes).update = increment(0);
    Instruction compute = scale(buffer(2 + i), buffer(i));
    waitFor(compute, atLeast(0, 16 * (i + 1)));
    compute.update = increment(1);
    tester.add(Engine::Vector, compute);
    Instruction &store = tester.store(Engine::Gpsimd, out, buffer(2 + i), i * kTileBytes);
    waitFor(store, atLeast(1, i + 1));
  }
  const CheckResult result = check(tester);
  ASSERT_TRUE(hasHazard(result, Hazard::Kind::Race));
  // Only the first load is unproven: 16 of 32 increments may be any.
  for (const Hazard &hazard : result.hazards)
    EXPECT_EQ(hazard.first.pc, 0u) << hazard.message;
}

/// P2's cure without another semaphore: wait for the total.
TEST(Check, WaitingForTheTotalOfAGroupIsAccepted) {
  ProgramTester tester;
  const int in = tester.addVariable("in", 2 * kTileBytes),
            out = tester.addVariable("out", kTileBytes, neff::Variable::Kind::Output);
  tester.load(Engine::Sync, buffer(0), in, 0).update = increment(0);
  tester.load(Engine::Sync, buffer(1), in, kTileBytes).update = increment(0);
  Instruction compute = addTiles(buffer(2), buffer(0), buffer(1));
  waitFor(compute, atLeast(0, 32));
  compute.update = increment(1);
  tester.add(Engine::Vector, compute);
  Instruction &store = tester.store(Engine::Gpsimd, out, buffer(2));
  waitFor(store, atLeast(1, 1));
  const CheckResult result = check(tester);
  EXPECT_TRUE(result.hazards.empty()) << messages(result);
}

/// P3: a trigger is not ordered after its own engine's compute.
TEST(Check, P3TriggerAfterOwnCompute) {
  for (bool waits : {false, true}) {
    ProgramTester tester;
    const int in = tester.addVariable("in", kTileBytes),
              out = tester.addVariable("out", kTileBytes, neff::Variable::Kind::Output);
    for (int64_t i = 0; i < kTileBytes / 4; ++i)
      tester.data<float>(in)[i] = float(i % 31 + 1);
    tester.load(Engine::Scalar, buffer(0), in).update = increment(0);
    Instruction compute;
    compute.opcode = Opcode::Activation;
    compute.function = isa::ActivationFunction::Square;
    compute.tiles[0] = buffer(1);
    compute.tiles[1] = buffer(0);
    waitFor(compute, atLeast(0, 16));
    compute.update = increment(1);
    tester.add(Engine::Scalar, compute);
    Instruction &store = tester.store(Engine::Scalar, out, buffer(1));
    if (waits)
      waitFor(store, atLeast(1, 1));
    const CheckResult result = check(tester);
    EXPECT_EQ(hasHazard(result, Hazard::Kind::Race), !waits) << messages(result);
    EXPECT_EQ(differsUnderAdversary(tester, out, 60), !waits);
  }
}

/// P6: clearing a block while an earlier kernel may still wait on it.
TEST(Check, P6ClearMustBeOrdered) {
  for (bool ordered : {false, true}) {
    ProgramTester tester;
    const int in = tester.addVariable("in", kTileBytes);
    tester.load(Engine::Gpsimd, buffer(0), in).update = increment(20);
    Instruction use = scale(buffer(1), buffer(0));
    waitFor(use, atLeast(20, 16));
    use.update = increment(1);
    tester.add(Engine::Vector, use);
    // SP clears the block for the next kernel.
    Instruction &wait = tester.control(Engine::Sync, Opcode::Nop);
    waitFor(wait, ordered ? atLeast(1, 1) : atLeast(20, 16));
    Instruction &clear = tester.control(Engine::Sync, Opcode::SemaphoreRangeClear);
    clear.immediate = 20;
    clear.target = 4;
    tester.control(Engine::Sync, Opcode::Nop).update = increment(2);
    Instruction &second = tester.load(Engine::Gpsimd, buffer(2), in);
    waitFor(second, atLeast(2, 1));
    second.update = increment(20);
    Instruction last = scale(buffer(3), buffer(2));
    waitFor(last, atLeast(2, 1));
    waitFor(last, atLeast(20, 16));
    tester.add(Engine::Vector, last);
    const CheckResult result = check(tester);
    EXPECT_EQ(hasHazard(result, Hazard::Kind::SemaphoreReuse), !ordered) << messages(result);
  }
}

/// What was counted before a clear satisfies a wait that is meant for what comes after it, unless something keeps the
/// wait back.
TEST(Check, WaitMaySeeTheCountBeforeAClear) {
  for (bool ordered : {false, true}) {
    ProgramTester tester;
    const int in = tester.addVariable("in", 2 * kTileBytes), out = tester.addVariable("out", kTileBytes);
    tester.neff->variables[out].kind = neff::Variable::Kind::Output;
    for (int64_t i = 0; i < 2 * kTileBytes / 4; ++i)
      tester.data<float>(in)[i] = float(i);
    tester.load(Engine::Gpsimd, buffer(0), in).update = increment(20);
    Instruction &wait = tester.control(Engine::Sync, Opcode::Nop);
    waitFor(wait, atLeast(20, 16));
    Instruction &clear = tester.control(Engine::Sync, Opcode::SemaphoreRangeClear);
    clear.immediate = 20;
    clear.target = 1;
    tester.control(Engine::Sync, Opcode::Nop).update = increment(2);
    Instruction &second = tester.load(Engine::Gpsimd, buffer(0), in, kTileBytes);
    waitFor(second, atLeast(2, 1));
    second.update = increment(20);
    Instruction use;
    use.opcode = Opcode::Activation;
    use.tiles[0] = buffer(1);
    use.tiles[1] = buffer(0);
    if (ordered)
      waitFor(use, atLeast(2, 1));
    waitFor(use, atLeast(20, 16));
    use.update = increment(3);
    tester.add(Engine::Scalar, use);
    waitFor(tester.store(Engine::Scalar, out, buffer(1)), atLeast(3, 1));
    const CheckResult result = check(tester);
    EXPECT_EQ(hasHazard(result, Hazard::Kind::SemaphoreReuse), !ordered) << messages(result);
    EXPECT_EQ(hasHazard(result, Hazard::Kind::Race), !ordered) << messages(result);
    EXPECT_EQ(differsUnderAdversary(tester, out, 40), !ordered);
  }
}

/// P13: a ring of stores where each trigger waits only for the one before; needs the two extra facts.
TEST(Check, P13RingOfStores) {
  ProgramTester tester;
  const int sites = 4, rounds = 3;
  const int out = tester.addVariable("out", sites * kTileBytes, neff::Variable::Kind::Output);
  Instruction constant;
  constant.opcode = Opcode::Memset;
  constant.tiles[0] = buffer(0);
  constant.scalars[0] = isa::ScalarOperand::constant(3);
  constant.update = increment(9);
  tester.add(Engine::Vector, constant);
  // All sites write one place; site k waits for site k - 1, in a ring.
  const Engine engines[] = {Engine::Sync, Engine::Scalar, Engine::Gpsimd, Engine::Tensor};
  for (int round = 0; round < rounds; ++round)
    for (int site = 0; site < sites; ++site) {
      Instruction &store = tester.store(engines[site], out, buffer(0), 0);
      waitFor(store, atLeast(9, 1));
      const int previous = (site + sites - 1) % sites;
      const int count = site == 0 ? round : round + 1;
      if (count > 0)
        waitFor(store, atLeast(10 + previous, 16 * count));
      store.update = increment(10 + site);
    }
  const CheckResult result = check(tester);
  EXPECT_TRUE(result.hazards.empty()) << messages(result);
}

TEST(Check, UnwrittenMemoryIsNotRead) {
  ProgramTester tester;
  const int scratch = tester.addVariable("scratch", kTileBytes, neff::Variable::Kind::Scratch);
  tester.add(Engine::Vector, scale(buffer(1), buffer(0)));
  tester.load(Engine::Sync, buffer(2), scratch);
  const CheckResult result = check(tester);
  ASSERT_EQ(result.hazards.size(), 2u) << messages(result);
  EXPECT_NE(messages(result).find("vector[0] TENSOR_SCALAR reads sbuf partitions 0-127, bytes [0, 256) but byte 0 of "
                                  "partition 0 was never written"),
            std::string::npos)
      << messages(result);
  EXPECT_NE(messages(result).find("variable 'scratch'"), std::string::npos);
}

TEST(Check, PartlyWrittenMemoryIsFound) {
  ProgramTester tester;
  Instruction zero;
  zero.opcode = Opcode::Memset;
  zero.tiles[0] = tile(Dtype::F32, 128, kN - 1, 0);
  zero.scalars[0] = isa::ScalarOperand::constant(0);
  tester.add(Engine::Vector, zero);
  tester.add(Engine::Vector, scale(buffer(1), buffer(0)));
  EXPECT_NE(messages(check(tester)).find("byte 252 of partition 0 was never written"), std::string::npos);
}

/// Interleaved columns do not conflict; overlapping ones do.
TEST(Check, StridedAccessesAreExact) {
  for (bool overlapping : {false, true}) {
    ProgramTester tester;
    Instruction even, odd;
    even.opcode = odd.opcode = Opcode::Memset;
    even.scalars[0] = odd.scalars[0] = isa::ScalarOperand::constant(1);
    even.tiles[0] = tile(Dtype::F32, 128, 32, 0);
    even.tiles[0].step[3] = 2;
    odd.tiles[0] = even.tiles[0];
    odd.tiles[0].byteOffset = overlapping ? 8 : 4;
    tester.add(Engine::Vector, even);
    tester.add(Engine::Gpsimd, odd);
    EXPECT_EQ(hasHazard(check(tester), Hazard::Kind::Race), overlapping);
  }
}

TEST(Check, PsumAccumulationNeedsAMatmulBefore) {
  for (bool fromMatmul : {false, true}) {
    ProgramTester tester;
    const TilePattern stationary = tile(Dtype::F32, 32, 16, 0), moving = tile(Dtype::F32, 32, 64, 1024),
                      out = tile(Dtype::F32, 16, 64, 0, MemorySpace::Psum);
    for (const TilePattern &input : {stationary, moving}) {
      Instruction fill;
      fill.opcode = Opcode::Memset;
      fill.tiles[0] = input;
      fill.scalars[0] = isa::ScalarOperand::constant(1);
      fill.update = increment(0);
      tester.add(Engine::Vector, fill);
    }
    Instruction zero;
    zero.opcode = Opcode::Memset;
    zero.tiles[0] = out;
    zero.scalars[0] = isa::ScalarOperand::constant(0);
    zero.update = increment(0);
    tester.add(Engine::Vector, zero);
    Instruction load;
    load.opcode = Opcode::LoadStationary;
    load.tiles[0] = stationary;
    waitFor(load, atLeast(0, 3));
    tester.add(Engine::Tensor, load);
    Instruction multiply;
    multiply.opcode = Opcode::Matmul;
    multiply.tiles[0] = out;
    multiply.tiles[1] = moving;
    if (fromMatmul)
      tester.add(Engine::Tensor, multiply);
    multiply.accumulate = true;
    tester.add(Engine::Tensor, multiply);
    const CheckResult result = check(tester);
    EXPECT_EQ(hasHazard(result, Hazard::Kind::PsumAccumulate), !fromMatmul) << messages(result);
  }
}

TEST(Check, OutOfBoundsAndConstantWrites) {
  ProgramTester tester;
  const int in = tester.addVariable("in", kTileBytes);
  tester.move(Engine::Sync, 1, 1);
  Instruction &load = tester.load(Engine::Sync, buffer(0), in);
  load.hbm[1].terms[0] = {1, 4};
  load.dgeMode = isa::DgeMode::Hardware;
  CheckResult result = check(tester);
  ASSERT_TRUE(hasHazard(result, Hazard::Kind::OutOfBounds));
  EXPECT_NE(messages(result).find("outside variable 'in' of 32768 bytes"), std::string::npos) << messages(result);
}

/// Outputs that share memory with an input are one memory.
TEST(Check, AliasedOutputsConflictWithTheirInput) {
  for (bool aliased : {false, true}) {
    ProgramTester tester;
    const int in = tester.addVariable("in", kTileBytes),
              out = tester.addVariable("out", kTileBytes, neff::Variable::Kind::Output);
    if (aliased)
      tester.neff->variables[out].aliasOf = in;
    Instruction fill;
    fill.opcode = Opcode::Memset;
    fill.tiles[0] = buffer(1);
    fill.scalars[0] = isa::ScalarOperand::constant(1);
    fill.update = increment(0);
    tester.add(Engine::Vector, fill);
    tester.load(Engine::Sync, buffer(0), in);
    Instruction &store = tester.store(Engine::Gpsimd, out, buffer(1));
    waitFor(store, atLeast(0, 1));
    EXPECT_EQ(hasHazard(check(tester), Hazard::Kind::Race), aliased);
  }
}

/// A sequencer reads memory when it issues: its own engine's compute is not ordered before.
TEST(Check, RegisterLoadIsNotOrderedAfterOwnCompute) {
  for (bool waits : {false, true}) {
    ProgramTester tester;
    Instruction fill;
    fill.opcode = Opcode::Memset;
    fill.tiles[0] = tile(Dtype::I32, 1, 1, 0);
    fill.scalars[0] = isa::ScalarOperand::constantBits(7);
    fill.update = increment(3);
    tester.add(Engine::Vector, fill);
    Instruction &load = tester.control(Engine::Vector, Opcode::RegisterLoad);
    load.rd = 1;
    load.tiles[0] = tile(Dtype::I32, 1, 1, 0);
    if (waits)
      waitFor(load, atLeast(3, 1));
    EXPECT_EQ(hasHazard(check(tester), Hazard::Kind::Race), !waits);
  }
}

TEST(Check, WindowsAndLimits) {
  Pipeline pipeline(Pipeline::None, 40);
  CheckOptions options;
  options.windowInstructions = 23;
  CheckResult result = check(pipeline.tester, options);
  EXPECT_TRUE(result.hazards.empty()) << messages(result);
  EXPECT_GT(result.windows, 5u);
  options.maxInstructions = 50;
  result = check(pipeline.tester, options);
  EXPECT_FALSE(result.isComplete);
  // A fault late enough is in a later window.
  Pipeline broken(Pipeline::OneInputBuffer, 40);
  options.maxInstructions = 100000;
  EXPECT_FALSE(check(broken.tester, options).hazards.empty());
}

} // namespace
} // namespace neuroncore::emulator::test

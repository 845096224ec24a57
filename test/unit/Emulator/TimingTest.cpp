// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Modelled times against sums written out by hand from the costs of single instructions, and skipped loops against full
// simulation.

#include <algorithm>
#include <random>
#include <tuple>

#include "ProgramTester.h"

#include "neuron/Emulator/Timing.h"

namespace neuroncore::emulator::test {
namespace {

using isa::AluOp;

const target::MachineModel &model() { return *target::MachineModel::builtin("trn2"); }

TimingResult simulate(ProgramTester &tester, TimingOptions options = {}, const ControlTrace &trace = {}) {
  Expected<std::shared_ptr<const LoadedProgram>> program = tester.loadProgram();
  EXPECT_TRUE(bool(program)) << program.error().message();
  Expected<TimingResult> result = simulateTiming(**program, trace, options);
  EXPECT_TRUE(bool(result)) << result.error().message();
  return std::move(*result);
}

TilePattern rows(int index, int n = 512) { return tile(Dtype::F32, 128, n, uint32_t(index) * 8192); }

Instruction scale(const TilePattern &dst, const TilePattern &src) {
  Instruction instruction;
  instruction.opcode = Opcode::TensorScalar;
  instruction.op0 = AluOp::Multiply;
  instruction.scalars[0] = isa::ScalarOperand::constant(2);
  instruction.tiles[0] = dst;
  instruction.tiles[1] = src;
  return instruction;
}

Instruction activate(isa::ActivationFunction function, const TilePattern &dst, const TilePattern &src) {
  Instruction instruction;
  instruction.opcode = Opcode::Activation;
  instruction.function = function;
  instruction.tiles[0] = dst;
  instruction.tiles[1] = src;
  return instruction;
}

isa::ComputeCost cost(Engine engine, const Instruction &instruction) {
  return isa::computeCost(model(), engine, instruction);
}

TEST(Timing, OneInstructionTakesItsLatency) {
  ProgramTester tester;
  const Instruction op = scale(rows(0), rows(1));
  tester.add(Engine::Vector, op);
  const TimingResult result = simulate(tester);
  EXPECT_EQ(result.kernelPs, cost(Engine::Vector, op).latencyPs);
  EXPECT_EQ(result.engines[isa::streamIndex(Engine::Vector)].busyPs, cost(Engine::Vector, op).occupancyPs);
  EXPECT_EQ(result.limiter, "vector");
}

TEST(Timing, OneEngineIsBusyBackToBack) {
  ProgramTester tester;
  const Instruction op = scale(rows(0), rows(1));
  for (int i = 0; i < 5; ++i)
    tester.add(Engine::Vector, op);
  const isa::ComputeCost c = cost(Engine::Vector, op);
  EXPECT_EQ(simulate(tester).kernelPs, 4 * c.occupancyPs + c.latencyPs);
}

TEST(Timing, DependentEnginesAddLatencyAndHop) {
  ProgramTester tester;
  Instruction first = scale(rows(0), rows(1));
  first.update = increment(3);
  tester.add(Engine::Vector, first);
  Instruction second = activate(isa::ActivationFunction::Copy, rows(2), rows(0));
  second.numWaits = 1;
  second.waits[0] = atLeast(3, 1);
  tester.add(Engine::Scalar, second);
  const TimingResult result = simulate(tester);
  const int64_t ready = cost(Engine::Vector, first).latencyPs + model().sync().engineToEngineSemaphorePs;
  EXPECT_EQ(result.kernelPs, ready + cost(Engine::Scalar, second).latencyPs);
  EXPECT_EQ(result.engines[isa::streamIndex(Engine::Scalar)].waitPs, ready);
}

TEST(Timing, IndependentEnginesOverlap) {
  ProgramTester tester;
  const Instruction first = scale(rows(0), rows(1)), second = activate(isa::ActivationFunction::Copy, rows(2), rows(3));
  tester.add(Engine::Vector, first);
  tester.add(Engine::Scalar, second);
  EXPECT_EQ(simulate(tester).kernelPs,
            std::max(cost(Engine::Vector, first).latencyPs, cost(Engine::Scalar, second).latencyPs));
}

TEST(Timing, ActivationTablesAreLoadedWhenTheSetChanges) {
  ProgramTester tester;
  using F = isa::ActivationFunction;
  for (F function : {F::Exp, F::Log, F::Copy, F::Gelu, F::Exp}) // exp and log share a set, copy needs none
    tester.add(Engine::Scalar, activate(function, rows(0), rows(1)));
  const TimingResult cold = simulate(tester);
  EXPECT_EQ(cold.tableLoads, 3u);
  EXPECT_EQ(cold.tableLoadPs, 3 * model().scalarEngine().tableLoadPs);
  TimingOptions warm;
  warm.initialTableSet = cold.finalTableSet;
  const TimingResult second = simulate(tester, warm);
  EXPECT_EQ(second.tableLoads, 2u);
  EXPECT_EQ(cold.kernelPs - second.kernelPs, model().scalarEngine().tableLoadPs);
}

TEST(Timing, ATransferTakesDispatchDataAndCompletion) {
  ProgramTester tester;
  const int in = tester.addVariable("in", 128 * 512 * 4);
  Instruction &load = tester.load(Engine::Sync, rows(0), in);
  load.update = increment(0);
  Instruction op = scale(rows(1), rows(0));
  op.numWaits = 1;
  op.waits[0] = atLeast(0, 16);
  tester.add(Engine::Vector, op);
  const isa::DmaCost c = isa::dmaCost(model(), Engine::Sync, load);
  const TimingResult result = simulate(tester);
  EXPECT_EQ(result.kernelPs, c.dispatchPs + c.dataPs() + c.completionPs + cost(Engine::Vector, op).latencyPs);
  EXPECT_EQ(result.transfers, 1u);
  EXPECT_EQ(result.hbmReadBytes, 128 * 512 * 4);
  int64_t busy = 0;
  for (int e = 0; e < isa::kMaxDmaEngines; ++e)
    busy += result.dmaBusyPs[e];
  int64_t expected = 0;
  for (int64_t b : c.busyPs)
    expected += b;
  EXPECT_EQ(busy, expected);
}

TEST(Timing, AQueueHasAFloorAndQueuesRunSideBySide) {
  const auto kernel = [](int queue) {
    ProgramTester tester;
    const int in = tester.addVariable("in", 128 * 16 * 4);
    for (int i = 0; i < 2; ++i)
      tester.load(Engine::Sync, tile(Dtype::F32, 128, 16, uint32_t(i) * 64), in).queue = uint8_t(i * queue);
    return simulate(tester).kernelPs;
  };
  ProgramTester tester;
  const int in = tester.addVariable("in", 128 * 16 * 4);
  const Instruction &load = tester.load(Engine::Sync, tile(Dtype::F32, 128, 16, 0), in);
  const isa::DmaCost c = isa::dmaCost(model(), Engine::Sync, load);
  // One queue: the second starts a floor after the first. Two: when its trigger and the engines allow.
  EXPECT_EQ(kernel(0), c.dispatchPs + std::max(c.queueFloorPs, c.dataPs()) + c.dataPs() + c.completionPs);
  EXPECT_EQ(kernel(1), c.dispatchPs + std::max(c.issuePs, c.dataPs()) + c.dataPs() + c.completionPs);
}

TEST(Timing, LoadStationaryHidesBehindTheRunningMatmul) {
  ProgramTester tester;
  Instruction load;
  load.opcode = Opcode::LoadStationary;
  load.tiles[0] = tile(Dtype::Bf16, 128, 128, 0);
  Instruction multiply;
  multiply.opcode = Opcode::Matmul;
  multiply.tiles[0] = tile(Dtype::F32, 128, 512, 0, MemorySpace::Psum);
  multiply.tiles[1] = tile(Dtype::Bf16, 128, 512, 8192);
  for (int i = 0; i < 3; ++i) {
    tester.add(Engine::Tensor, load);
    tester.add(Engine::Tensor, multiply);
  }
  isa::PeState pe;
  const isa::ComputeCost l = isa::computeCost(model(), Engine::Tensor, load, &pe);
  pe.update(load);
  const isa::ComputeCost m = isa::computeCost(model(), Engine::Tensor, multiply, &pe);
  ASSERT_LT(l.occupancyPs, m.occupancyPs);
  const TimingResult result = simulate(tester);
  EXPECT_EQ(result.kernelPs, l.occupancyPs + 2 * m.occupancyPs + m.latencyPs);
  EXPECT_EQ(result.engines[isa::streamIndex(Engine::Tensor)].busyPs, l.occupancyPs + 3 * m.occupancyPs);
  EXPECT_EQ(result.flops, 3 * 2.0 * 128 * 128 * 512);
}

TEST(Timing, WhatIfWithOtherConstants) {
  ProgramTester tester;
  const Instruction op = scale(rows(0), rows(1));
  tester.add(Engine::Vector, op);
  const target::MachineModel &other = *target::MachineModel::builtin("trn1");
  TimingOptions options;
  options.model = &other;
  EXPECT_EQ(simulate(tester, options).kernelPs, isa::computeCost(other, Engine::Vector, op).latencyPs);
}

TEST(Timing, PathsFollowTheControlTrace) {
  ProgramTester tester;
  const int in = tester.addVariable("n", 4, neff::Variable::Kind::Input, Dtype::I32);
  Instruction &load = tester.control(Engine::Vector, Opcode::RegisterLoad);
  load.rd = 1;
  load.tiles[0].space = MemorySpace::Hbm;
  load.hbm[1].variable = uint16_t(in);
  load.hbm[1].dtype = Dtype::I32;
  load.hbm[1].step[4] = 4;
  const uint32_t loop = tester.here(Engine::Vector);
  tester.add(Engine::Vector, scale(rows(0), rows(1)));
  tester.alu(Engine::Vector, 1, 1, AluOp::Add, 0, -1);
  tester.branch(Engine::Vector, 1, AluOp::Greater, 0, 0, loop);
  ControlTrace three, five;
  three.loads[isa::streamIndex(Engine::Vector)] = {3};
  five.loads[isa::streamIndex(Engine::Vector)] = {5};
  EXPECT_EQ(simulate(tester, {}, three).engines[isa::streamIndex(Engine::Vector)].instructions, 3u);
  EXPECT_EQ(simulate(tester, {}, five).engines[isa::streamIndex(Engine::Vector)].instructions, 5u);
  const Expected<TimingResult> missing = simulateTiming(**tester.loadProgram(), {});
  ASSERT_FALSE(bool(missing));
  EXPECT_NE(missing.error().message().find("control trace"), std::string::npos);
}

TEST(Timing, MonotoneUpdatesOutOfOrder) {
  // Two transfers of different length on one semaphore: the wait for all of them sees the later one.
  ProgramTester tester;
  const int in = tester.addVariable("in", 128 * 2048 * 4);
  const Instruction big = tester.load(Engine::Sync, tile(Dtype::F32, 128, 2048, 0), in);
  tester.stream(Engine::Sync).back().update = increment(0);
  Instruction &small = tester.load(Engine::Gpsimd, tile(Dtype::F32, 8, 16, 16384), in);
  small.queue = 1;
  small.update = increment(0);
  Instruction op = scale(rows(4), rows(5));
  op.numWaits = 1;
  op.waits[0] = atLeast(0, 32);
  tester.add(Engine::Vector, op);
  const isa::DmaCost c = isa::dmaCost(model(), Engine::Sync, big);
  EXPECT_GE(simulate(tester).kernelPs, c.dispatchPs + c.dataPs() + c.completionPs + cost(Engine::Vector, op).latencyPs);
}

TEST(Timing, DescriptorsBehindDescriptorsNameTheirCause) {
  // The second transfer has a queue of its own and waits for the data path of GpSimd, which no instruction holds. Both
  // are short.
  ProgramTester tester;
  const int in = tester.addVariable("in", 128 * 4 * 4);
  for (uint8_t queue : {0, 1}) {
    Instruction &load = tester.load(Engine::Gpsimd, tile(Dtype::F32, 128, 4, queue * 8192), in);
    load.queue = queue;
    load.dgeMode = isa::DgeMode::Software;
  }
  TimingOptions options;
  options.recordCauses = true;
  std::vector<TimelineEvent> events;
  simulate(tester, options).timeline.forEach([&](const TimelineEvent &event) { return events.push_back(event), true; });
  const auto second = std::find_if(events.begin(), events.end(), [](const TimelineEvent &event) {
    return event.kind == TimelineEvent::Kind::Transfer && event.queue == 1;
  });
  ASSERT_NE(second, events.end());
  EXPECT_EQ(second->reason, TimelineEvent::Reason::Engine);
  ASSERT_NE(second->cause, 0u);
  const TimelineEvent &cause = *(second - second->cause);
  EXPECT_EQ(cause.kind, TimelineEvent::Kind::Sequencer);
  EXPECT_EQ(cause.pc, 0u);
}

// ---------------------------------------------------------------------------------------------------------------------
// Steady loops
// ---------------------------------------------------------------------------------------------------------------------

/// load -> scalar -> vector -> store, `buffers` rotation copies, sizes and queues at random; optionally nested in an
/// outer loop.
ProgramTester randomPipeline(uint64_t seed, int passes, int outer) {
  std::mt19937_64 random(seed);
  const auto pick = [&](int64_t low, int64_t high) { return low + int64_t(random() % uint64_t(high - low + 1)); };
  ProgramTester tester;
  const int buffers = int(pick(1, 4)), n = int(pick(1, 8)) * 128;
  const int64_t tileBytes = 128 * n * 4;
  const int in = tester.addVariable("in", tileBytes * buffers),
            out = tester.addVariable("out", tileBytes * buffers, neff::Variable::Kind::Output);
  const auto x = [&](int b) { return tile(Dtype::F32, 128, n, uint32_t(b) * 8192); };
  const auto y = [&](int b) { return tile(Dtype::F32, 128, n, uint32_t(4 + b) * 8192); };
  const auto z = [&](int b) { return tile(Dtype::F32, 128, n, uint32_t(8 + b) * 8192); };
  const int queues = int(pick(1, 3));
  const bool hasVector = pick(0, 3) != 0;
  using F = isa::ActivationFunction;
  const F function = pick(0, 1) ? F::Exp : F::Copy;
  // r1 passes, r2 count at the start of the pass, r4 16 * passes, r5 outer.
  const auto loop = [&](Engine engine, const std::function<void(int)> &body) {
    const uint32_t begin = tester.here(engine);
    tester.move(engine, 1, 0);
    const uint32_t inner = tester.here(engine);
    for (int b = 0; b < buffers; ++b)
      body(b);
    tester.alu(engine, 2, 2, AluOp::Add, 0, buffers);
    tester.alu(engine, 4, 4, AluOp::Add, 0, 16);
    tester.alu(engine, 1, 1, AluOp::Add, 0, 1);
    tester.branch(engine, 1, AluOp::Less, 0, passes, inner);
    tester.alu(engine, 5, 5, AluOp::Add, 0, 1);
    tester.branch(engine, 5, AluOp::Less, 0, outer, begin);
  };
  // Semaphores: b loads, 8 + b stores, 20 scalar, 21 vector.
  loop(Engine::Sync, [&](int b) {
    Instruction &load = tester.load(Engine::Sync, x(b), in, b * tileBytes);
    load.queue = uint8_t(b % queues);
    load.update = increment(b);
    load.numWaits = 1;
    load.waits[0] = atLeast(20, b - buffers + 1, 2);
  });
  loop(Engine::Scalar, [&](int b) {
    Instruction op = activate(function, y(b), x(b));
    op.numWaits = 2;
    op.waits[0] = atLeast(b, 16, 4);
    op.waits[1] = hasVector ? atLeast(21, b - buffers + 1, 2) : atLeast(8 + b, 0, 4);
    op.update = increment(20);
    tester.add(Engine::Scalar, op);
  });
  if (hasVector)
    loop(Engine::Vector, [&](int b) {
      Instruction op = scale(z(b), y(b));
      op.numWaits = 2;
      op.waits[0] = atLeast(20, b + 1, 2);
      op.waits[1] = atLeast(8 + b, 0, 4);
      op.update = increment(21);
      tester.add(Engine::Vector, op);
    });
  loop(Engine::Gpsimd, [&](int b) {
    Instruction &store = tester.store(Engine::Gpsimd, out, hasVector ? z(b) : y(b), b * tileBytes);
    store.queue = uint8_t(3 + b % queues);
    store.update = increment(8 + b);
    store.numWaits = 1;
    store.waits[0] = atLeast(hasVector ? 21 : 20, b + 1, 2);
  });
  return tester;
}

void expectSame(const TimingResult &a, const TimingResult &b, uint64_t seed) {
  EXPECT_EQ(a.kernelPs, b.kernelPs) << seed;
  for (int s = 0; s < isa::kNumStreams; ++s) {
    EXPECT_EQ(a.engines[s].instructions, b.engines[s].instructions) << seed;
    EXPECT_EQ(a.engines[s].busyPs, b.engines[s].busyPs) << seed;
    EXPECT_EQ(a.engines[s].waitPs, b.engines[s].waitPs) << seed << " stream " << s;
  }
  EXPECT_EQ(a.dmaBusyPs, b.dmaBusyPs) << seed;
  EXPECT_EQ(a.transfers, b.transfers) << seed;
  EXPECT_EQ(a.dmaBytes, b.dmaBytes) << seed;
  EXPECT_EQ(a.hbmReadBytes, b.hbmReadBytes) << seed;
  EXPECT_EQ(a.hbmWriteBytes, b.hbmWriteBytes) << seed;
}

TEST(SteadyLoops, SkippingChangesNothing) {
  uint64_t simulated = 0, total = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    ProgramTester tester = randomPipeline(seed, 150, 1);
    TimingOptions full;
    full.skipSteadyLoops = false;
    const TimingResult a = simulate(tester, full), b = simulate(tester);
    expectSame(a, b, seed);
    EXPECT_EQ(a.timeline.size(), b.timeline.size());
    simulated += b.simulatedSteps;
    total += a.simulatedSteps;
    if (seed < 10) { // the same events at the same times
      std::vector<TimelineEvent> x = a.timeline.expand(), y = b.timeline.expand();
      const auto order = [](const TimelineEvent &p, const TimelineEvent &q) {
        return std::tie(p.startPs, p.stream, p.pc, p.dmaEngine, p.endPs) <
               std::tie(q.startPs, q.stream, q.pc, q.dmaEngine, q.endPs);
      };
      std::sort(x.begin(), x.end(), order);
      std::sort(y.begin(), y.end(), order);
      ASSERT_EQ(x.size(), y.size());
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_EQ(x[i].startPs, y[i].startPs) << seed << " " << i;
        ASSERT_EQ(x[i].endPs, y[i].endPs);
        ASSERT_EQ(x[i].pc, y[i].pc);
        ASSERT_EQ(x[i].stream, y[i].stream);
      }
    }
  }
  EXPECT_LT(simulated, total / 3) << simulated << " of " << total;
}

TEST(SteadyLoops, SkippingKeepsCausesAndUpdates) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    ProgramTester tester = randomPipeline(seed, 150, 1);
    TimingOptions full, skipping;
    full.skipSteadyLoops = false;
    full.recordCauses = skipping.recordCauses = true;
    const TimingResult a = simulate(tester, full), b = simulate(tester, skipping);
    std::vector<TimelineEvent> x, y;
    a.timeline.forEach([&](const TimelineEvent &event) { return x.push_back(event), true; });
    b.timeline.forEach([&](const TimelineEvent &event) { return y.push_back(event), true; });
    ASSERT_EQ(x.size(), y.size());
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(x[i].startPs, y[i].startPs) << seed << " " << i;
      ASSERT_EQ(x[i].kind, y[i].kind);
      ASSERT_EQ(x[i].reason, y[i].reason) << seed << " " << i;
      ASSERT_EQ(x[i].cause, y[i].cause) << seed << " " << i;
      ASSERT_EQ(x[i].trigger, y[i].trigger);
      ASSERT_LE(y[i].cause, i);
      if (y[i].cause != 0) { // nothing starts before what it waited for
        ASSERT_LE(y[i - y[i].cause].startPs, y[i].startPs) << seed << " " << i;
      }
    }
    std::vector<SemaphoreEvent> u, v;
    std::vector<int64_t> sources;
    a.timeline.forEachUpdate([&](const SemaphoreEvent &update, int64_t source) {
      u.push_back(update);
      sources.push_back(source);
      return true;
    });
    b.timeline.forEachUpdate([&](const SemaphoreEvent &update, int64_t source) {
      EXPECT_EQ(source, sources[v.size()]);
      if (source >= 0) { // an update becomes visible after its instruction has started
        EXPECT_LT(y[size_t(source)].startPs, update.timePs);
      }
      v.push_back(update);
      return true;
    });
    ASSERT_EQ(u.size(), v.size());
    ASSERT_FALSE(u.empty());
    for (size_t i = 0; i < u.size(); ++i) {
      ASSERT_EQ(u[i].timePs, v[i].timePs);
      ASSERT_EQ(u[i].semaphore, v[i].semaphore);
    }
  }
}

TEST(SteadyLoops, NestedLoopsAreSkippedToo) {
  uint64_t simulated = 0, total = 0;
  for (uint64_t seed = 100; seed < 115; ++seed) {
    ProgramTester tester = randomPipeline(seed, 20, 25);
    TimingOptions full;
    full.skipSteadyLoops = false;
    const TimingResult a = simulate(tester, full), b = simulate(tester);
    expectSame(a, b, seed);
    simulated += b.simulatedSteps;
    total += a.simulatedSteps;
  }
  EXPECT_LT(simulated, total / 2) << simulated << " of " << total;
}

TEST(SteadyLoops, LongLoopsCostAsMuchAsShortOnes) {
  ProgramTester small = randomPipeline(3, 200, 1), large = randomPipeline(3, 1000000, 1);
  const TimingResult a = simulate(small), b = simulate(large);
  EXPECT_LT(b.simulatedSteps, a.simulatedSteps + 2000);
  EXPECT_GT(b.kernelPs, 4000 * a.kernelPs);
}

/// Loops that are not linear, or whose exits move, are simulated in full and right.
TEST(SteadyLoops, NonLinearRegistersAreNotExtrapolated) {
  for (bool triangular : {false, true}) {
    ProgramTester tester;
    // The inner trip count depends on the outer counter: r6 = r5 & 3 (+ r5 when triangular).
    const Engine engine = Engine::Vector;
    const uint32_t outer = tester.here(engine);
    tester.alu(engine, 6, 5, AluOp::BitwiseAnd, 0, 3);
    if (triangular)
      tester.alu(engine, 6, 6, AluOp::Add, 5, 0);
    tester.move(engine, 1, 0);
    const uint32_t inner = tester.here(engine);
    tester.add(engine, scale(rows(0), rows(1)));
    tester.alu(engine, 1, 1, AluOp::Add, 0, 1);
    tester.branch(engine, 1, AluOp::LessEqual, 6, 0, inner);
    tester.alu(engine, 5, 5, AluOp::Add, 0, 1);
    tester.branch(engine, 5, AluOp::Less, 0, 60, outer);
    TimingOptions full;
    full.skipSteadyLoops = false;
    expectSame(simulate(tester, full), simulate(tester), triangular);
  }
}

TEST(SteadyLoops, EndlessLoopsHitTheLimit) {
  ProgramTester tester;
  tester.add(Engine::Vector, scale(rows(0), rows(1)));
  tester.branch(Engine::Vector, 0, AluOp::Bypass, 0, 0, 0);
  TimingOptions options;
  options.maxSteps = 10000;
  const Expected<TimingResult> result = simulateTiming(**tester.loadProgram(), {}, options);
  ASSERT_FALSE(bool(result));
  EXPECT_NE(result.error().message().find("did not end within 10000 steps"), std::string::npos);
}

} // namespace
} // namespace neuroncore::emulator::test

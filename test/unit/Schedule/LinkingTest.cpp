// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs of several units and runs: in every order that the machine allows, memory is that of the runs one after the
// other; a barrier with a fault is found.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "HappensBefore.h"
#include "ProgramBuilder.h"
#include "RandomRuns.h"
#include "SymbolicMachine.h"
#include "TestEnvironment.h"
#include "neuron/Schedule/Linking.h"

namespace neuroncore::schedule::test {

namespace {

using isa::Engine;
using isa::Opcode;
using ::testing::HasSubstr;

constexpr int64_t kLargeProgram = 800; // the check is quadratic

isa::Program mustLink(std::vector<StructuredProgram> &units, const std::vector<Step> &steps,
                      LinkReport *report = nullptr) {
  Expected<isa::Program> program = link(units, steps, {}, {}, report);
  EXPECT_TRUE(program) << program.error().message();
  return program ? *program : isa::Program();
}

const isa::Stream &streamOf(const isa::Program &program, Engine engine) { return program[isa::streamIndex(engine)]; }

int64_t countOf(const isa::Stream &stream, Opcode opcode) {
  return std::count_if(stream.begin(), stream.end(),
                       [&](const isa::Instruction &code) { return code.opcode == opcode; });
}

bool same(const isa::Program &a, const isa::Program &b) { return describe(a) == describe(b); }

/// x = f(x) of one tile of the parameter, which is bound to another variable in each run.
StructuredProgram tileUnit(uint32_t firstParameter, int numInstructions) {
  ProgramBuilder builder;
  builder.addVariable(64);
  builder.beginKernel();
  builder.load(Engine::Sync, sbuf(0), {0});
  for (int i = 0; i < numInstructions; ++i)
    builder.compute(Engine::Vector, sbuf(4 * (i + 1)), {sbuf(4 * i)});
  builder.store(Engine::Gpsimd, {0}, sbuf(4 * numInstructions));
  StructuredProgram unit = builder.take();
  unit.firstParameter = firstParameter;
  unit.parameters = std::exchange(unit.variables, {});
  forEachInstruction(unit, [&](Instruction &instruction) {
    instruction.code.debugId += 1000 * (1 + firstParameter);
    for (int side = 0; side < 2; ++side)
      if (instruction.code.tiles[side].space == isa::MemorySpace::Hbm)
        instruction.code.hbm[side].variable = uint16_t(isa::kParameterFlag | firstParameter);
  });
  return unit;
}

TEST(Linking, OneRunIsTheProgramItself) {
  for (uint64_t seed = firstSeed(); seed < firstSeed() + 20; ++seed) {
    std::vector<StructuredProgram> units;
    units.push_back(randomProgram(seed));
    StructuredProgram alone = randomProgram(seed);
    LinkReport report;
    std::vector<Step> steps = {{0, 1}};
    isa::Program linked = mustLink(units, steps, &report);
    SynchronisationReport synchronisation;
    ASSERT_TRUE(synchronise(alone, {}, &synchronisation));
    ProjectionReport projection;
    Expected<isa::Program> projected = project(alone, {}, &projection);
    ASSERT_TRUE(projected);
    EXPECT_TRUE(same(linked, *projected));
    EXPECT_EQ(report.numSemaphores, synchronisation.numSemaphores);
    for (int stream = 0; stream < isa::kNumStreams; ++stream)
      EXPECT_EQ(report.projection.streams[stream].maxLiveRegisters, projection.streams[stream].maxLiveRegisters);
  }
}

TEST(Linking, AUnitOfManyStepsIsStoredOnce) {
  std::vector<StructuredProgram> units;
  units.push_back(tileUnit(0, 8));
  units.push_back(tileUnit(1, 9));
  std::vector<Step> steps = {{0, 1}, {1, 1}, {0, 3}, {1, 2}};
  LinkReport report;
  isa::Program program = mustLink(units, steps, &report);
  EXPECT_EQ(report.numRuns, 7);
  EXPECT_EQ(report.numCalledUnits[isa::streamIndex(Engine::Vector)], 2);
  EXPECT_EQ(countOf(streamOf(program, Engine::Vector), Opcode::TensorCopy), 8 + 9);
  EXPECT_GT(countOf(streamOf(program, Engine::Vector), Opcode::Call), 0);
  EXPECT_TRUE(streamOf(program, Engine::Tensor).empty());
  Layout layout(std::vector<VariableInfo>(7, VariableInfo{256, -1}));
  for (int run = 0; run < 7; ++run)
    layout.bindings.push_back({run, run});
  EXPECT_EQ(findHazard(program, layout), "");
}

TEST(Linking, ALoopOfRunsIsStoredOnce) {
  std::vector<StructuredProgram> units;
  units.push_back(tileUnit(0, 8));
  for (int32_t runs : {2, 24, 1000}) {
    std::vector<StructuredProgram> copies;
    copies.push_back(clone(units[0]));
    isa::Program program = mustLink(copies, {{0, runs}});
    EXPECT_EQ(countOf(streamOf(program, Engine::Vector), Opcode::TensorCopy), 8);
    EXPECT_EQ(countOf(streamOf(program, Engine::Vector), Opcode::Call), 0);
    // The last run has no barrier behind it, and no stream knows one.
    EXPECT_EQ(countOf(streamOf(program, Engine::Sync), Opcode::SemaphoreRangeClear), 1);
  }
}

/// Two units in turn are a loop around both.
TEST(Linking, RepeatedSequencesAreALoop) {
  for (bool withTail : {false, true}) {
    std::vector<StructuredProgram> units;
    units.push_back(tileUnit(0, 8));
    units.push_back(tileUnit(1, 9));
    std::vector<Step> steps;
    for (int i = 0; i < 12; ++i)
      steps.insert(steps.end(), {{0, 1}, {1, 1}});
    if (withTail)
      steps.push_back({1, 1});
    LinkReport report;
    isa::Program program = mustLink(units, steps, &report);
    EXPECT_EQ(countOf(streamOf(program, Engine::Vector), Opcode::TensorCopy), 17);
    EXPECT_EQ(report.numRuns, 24 + withTail);
    Layout layout(std::vector<VariableInfo>(26, VariableInfo{256, -1}));
    for (int run = 0; run < report.numRuns; ++run)
      layout.bindings.push_back({run, run});
    EXPECT_EQ(findHazard(program, layout), "");
  }
}

/// A stream without instructions in many runs passes their barriers together.
TEST(Linking, IdleStreamsWaitOnce) {
  std::vector<StructuredProgram> units;
  units.push_back(tileUnit(0, 3));
  ProgramBuilder builder;
  builder.beginKernel();
  builder.compute(Engine::Scalar, sbuf(100), {sbuf(0)});
  units.push_back(builder.take());
  std::vector<Step> steps = {{1, 1}, {0, 50}, {1, 1}};
  isa::Program program = mustLink(units, steps);
  const isa::Stream &scalar = streamOf(program, Engine::Scalar);
  ASSERT_EQ(countOf(scalar, Opcode::Nop), 1);
  auto nop = std::find_if(scalar.begin(), scalar.end(), [](auto &code) { return code.opcode == Opcode::Nop; });
  EXPECT_EQ(nop->waits[0].valueRegister, isa::kRunRegister);
  EXPECT_EQ(nop->waits[0].immediate, 51);
}

TEST(Linking, Errors) {
  std::vector<StructuredProgram> units;
  units.push_back(tileUnit(0, 1));
  auto messageOf = [&](std::vector<Step> steps) {
    Expected<isa::Program> program = link(units, steps);
    return program ? std::string() : program.error().message();
  };
  EXPECT_THAT(messageOf({{1, 1}}), HasSubstr("expected a unit below 1 but got 1"));
  EXPECT_THAT(messageOf({{0, -2}}), HasSubstr("expected at least 0 runs of unit 0 but got -2"));
  EXPECT_THAT(messageOf({{0, 1 << 29}}), HasSubstr("expected less than 536870912 runs"));
  units[0].parameters.clear();
  EXPECT_THAT(messageOf({{0, 1}}), HasSubstr("expected one of 0 parameters from 0 on but got 0"));
}

TEST(Linking, NothingToRun) {
  std::vector<StructuredProgram> units;
  for (const isa::Stream &stream : mustLink(units, {}))
    EXPECT_TRUE(stream.empty());
  units.push_back(tileUnit(0, 1));
  for (const isa::Stream &stream : mustLink(units, {{0, 0}}))
    EXPECT_TRUE(stream.empty());
}

class RandomLinking : public ::testing::Test {
protected:
  RandomRunsOptions options_;
  SynchronisationOptions synchronisation_;
  ProjectionOptions projection_;
  int64_t dynamic_ = 0, runs_ = 0, called_ = 0, refused_ = 0;

  void tryPrograms(uint64_t count, uint64_t firstSeed) {
    for (uint64_t i = 0; i < count && !HasFatalFailure(); ++i)
      tryProgram(firstSeed + i);
    RecordProperty("dynamic_instructions", std::to_string(dynamic_));
    RecordProperty("runs", std::to_string(runs_));
  }

  void tryProgram(uint64_t seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomRuns drawn = randomRuns(seed, options_);
    Layout layout(drawn.variables);
    layout.bindings = drawn.bindings;
    int64_t dynamic = 0;
    Memory expected = runSequentially(drawn.units, drawn.steps, layout, &dynamic);
    LinkReport report;
    Expected<isa::Program> program = link(drawn.units, drawn.steps, synchronisation_, projection_, &report);
    if (!program && projection_.numRegisters < isa::kNumRegisters) {
      ASSERT_THAT(program.error().message(), HasSubstr("registers"));
      ++refused_;
      return;
    }
    ASSERT_TRUE(program) << program.error().message();
    ASSERT_LE(report.numSemaphores, synchronisation_.numSemaphores);
    dynamic_ += dynamic;
    runs_ += report.numRuns;
    for (int32_t called : report.numCalledUnits)
      called_ += called;
    bool large = dynamic > kLargeProgram;
    if (!large || environmentNumber("NEURON_SCHEDULE_CHECK_LARGE", 0)) {
      ASSERT_EQ(findHazard(*program, layout), "") << describe(*program);
    }
    for (int run = 0; run < (large ? 2 : 6); ++run) {
      RunResult result = runStreams(*program, layout, seed * 1000 + run);
      ASSERT_FALSE(result.deadlock) << result.where << "\n" << describe(*program);
      ASSERT_TRUE(result.memory == expected) << "run " << run << "\n" << describe(*program);
    }
  }
};

TEST_F(RandomLinking, EveryInterleavingIsSequential) {
  options_.unit.maxKernels = 3;
  options_.unit.maxDepth = 2;
  options_.unit.maxInstructions = 5;
  options_.unit.maxTrips = 4;
  tryPrograms(numPrograms(), firstSeed() + 7000000);
  EXPECT_GT(runs_, int64_t(numPrograms()) * 3);
  EXPECT_GT(called_, int64_t(numPrograms()));
}

TEST_F(RandomLinking, ManyShortUnits) {
  options_.unit.maxKernels = 5;
  options_.unit.maxDepth = 1;
  options_.unit.maxInstructions = 3;
  options_.unit.maxTrips = 3;
  options_.maxUnits = 5;
  options_.maxSteps = 8;
  tryPrograms(numPrograms(), firstSeed() + 8000000);
}

TEST_F(RandomLinking, WithoutElimination) {
  synchronisation_.eliminate = false;
  options_.unit.maxDepth = 2;
  options_.unit.maxInstructions = 4;
  options_.unit.maxTrips = 3;
  tryPrograms(numPrograms() / 4, firstSeed() + 9000000);
}

TEST_F(RandomLinking, FewSemaphoresAndRegisters) {
  synchronisation_.numSemaphores = 5 + 13;
  projection_.numRegisters = 8;
  options_.unit.maxDepth = 2;
  options_.unit.maxInstructions = 4;
  options_.unit.maxTrips = 3;
  tryPrograms(numPrograms() / 2, firstSeed() + 10000000);
  EXPECT_LT(refused_ * 4, int64_t(numPrograms()));
}

// ---------------------------------------------------------------------------------------------------------------------
// Injected faults
// ---------------------------------------------------------------------------------------------------------------------

struct Outcome {
  int injected = 0, reported = 0, wrong = 0;
};

/// `fault` changes a linked program, or the bindings, and says whether it found something to change.
template <typename Fault> Outcome inject(uint64_t firstSeed, Fault fault) {
  RandomRunsOptions options;
  options.unit.maxKernels = 2;
  options.unit.maxDepth = 1;
  options.unit.maxInstructions = 5;
  options.unit.maxTrips = 3;
  options.maxSteps = 3;
  options.maxRuns = 3;
  Outcome outcome;
  for (uint64_t i = 0; i < numPrograms(); ++i) {
    uint64_t seed = firstSeed + i;
    RandomRuns drawn = randomRuns(seed, options);
    Layout layout(drawn.variables);
    layout.bindings = drawn.bindings;
    int64_t dynamic = 0;
    Memory expected = runSequentially(drawn.units, drawn.steps, layout, &dynamic);
    if (dynamic > kLargeProgram)
      continue;
    LinkReport report;
    Expected<isa::Program> program = link(drawn.units, drawn.steps, {}, {}, &report);
    EXPECT_TRUE(program) << program.error().message();
    if (!program || !fault(*program, report, seed))
      continue;
    bool reported = !findHazard(*program, layout).empty();
    bool wrong = false;
    for (int run = 0; run < 8 && !wrong; ++run) {
      RunResult result = runStreams(*program, layout, seed * 100 + run);
      wrong = result.deadlock || result.memory != expected;
    }
    ++outcome.injected;
    outcome.reported += reported;
    outcome.wrong += wrong;
    EXPECT_TRUE(reported || !wrong) << "seed " << seed << " is wrong but not reported\n" << describe(*program);
  }
  ::testing::Test::RecordProperty("injected", outcome.injected);
  ::testing::Test::RecordProperty("reported", outcome.reported);
  ::testing::Test::RecordProperty("wrong", outcome.wrong);
  return outcome;
}

bool isGateWait(const isa::Instruction &code, const LinkReport &report) {
  return code.opcode == Opcode::Nop && code.numWaits == 1 && code.waits[0].semaphore == report.numSemaphores - 1 &&
         code.waits[0].valueRegister == isa::kRunRegister;
}

TEST(LinkingFaults, StreamPassesABarrierWithoutWaiting) {
  Outcome outcome = inject(firstSeed() + 11000000, [](isa::Program &program, const LinkReport &report, uint64_t seed) {
    std::vector<isa::Instruction *> gates;
    for (isa::Stream &stream : program)
      for (isa::Instruction &code : stream)
        if (isGateWait(code, report))
          gates.push_back(&code);
    if (gates.empty())
      return false;
    isa::Instruction &gate = *gates[seed % gates.size()];
    gate.numWaits = 0;
    gate.waits = {};
    return true;
  });
  EXPECT_GT(outcome.reported * 10, outcome.injected * 9);
  EXPECT_GT(outcome.wrong * 2, outcome.injected);
}

TEST(LinkingFaults, GateOpensARunEarly) {
  Outcome outcome = inject(firstSeed() + 12000000, [](isa::Program &program, const LinkReport &report, uint64_t) {
    bool found = false;
    for (isa::Stream &stream : program)
      for (isa::Instruction &code : stream)
        if (isGateWait(code, report)) {
          --code.waits[0].immediate;
          found = true;
        }
    return found;
  });
  EXPECT_GT(outcome.reported * 10, outcome.injected * 9);
  EXPECT_GT(outcome.wrong * 2, outcome.injected);
}

/// The waits of the sync stream in front of a clear are left out.
TEST(LinkingFaults, ClearedTooEarly) {
  Outcome outcome = inject(firstSeed() + 13000000, [](isa::Program &program, const LinkReport &, uint64_t seed) {
    isa::Stream &sync = program[isa::streamIndex(Engine::Sync)];
    std::vector<size_t> drains;
    for (size_t i = 0; i + 2 < sync.size(); ++i)
      if (sync[i].opcode == Opcode::Nop && sync[i].numWaits > 0 && sync[i].update.op == isa::UpdateOp::None &&
          sync[i + 1].opcode == Opcode::SemaphoreRangeClear && sync[i + 1].immediate == 0)
        drains.push_back(i);
    if (drains.empty())
      return false;
    isa::Instruction &drain = sync[drains[seed % drains.size()]];
    drain.numWaits = 0;
    drain.waits = {};
    return true;
  });
  EXPECT_GT(outcome.reported * 10, outcome.injected * 9);
  EXPECT_GT(outcome.wrong * 2, outcome.injected);
}

TEST(LinkingFaults, NotCleared) {
  Outcome outcome = inject(firstSeed() + 14000000, [](isa::Program &program, const LinkReport &, uint64_t) {
    bool found = false;
    for (isa::Instruction &code : program[isa::streamIndex(Engine::Sync)])
      if (code.opcode == Opcode::SemaphoreRangeClear && code.immediate == 0) {
        code = isa::Instruction();
        found = true;
      }
    return found;
  });
  EXPECT_GT(outcome.reported * 2, outcome.injected);
  EXPECT_GT(outcome.wrong * 2, outcome.injected);
}

} // namespace

} // namespace neuroncore::schedule::test

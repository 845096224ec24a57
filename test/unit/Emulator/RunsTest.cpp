// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs of several runs, linked from units: results, the checker's verdict on correct and on faulty ones, and
// modelled times. A layer is out = x * factor + w on row tiles, with x, w and out as parameters.

#include "ProgramTester.h"

#include <cmath>
#include <random>
#include <tuple>

#include <gmock/gmock.h>

#include "neuron/Emulator/Check.h"
#include "neuron/Emulator/Timing.h"
#include "neuron/Schedule/Linking.h"

namespace neuroncore::emulator::test {
namespace {

using isa::AluOp;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kColumns = 64;
constexpr int64_t kTileBytes = 128 * kColumns * 4;

TilePattern buffer(int index) { return tile(Dtype::F32, 128, kColumns, uint32_t(index) * kColumns * 4); }

schedule::Instruction make(Engine engine, Opcode opcode) {
  schedule::Instruction instruction;
  instruction.engine = engine;
  instruction.code.opcode = opcode;
  return instruction;
}

schedule::Instruction move(Engine engine, const TilePattern &tile, uint16_t operand, schedule::LoopId loop,
                           bool isLoad) {
  schedule::Instruction instruction = make(engine, Opcode::DmaCopy);
  instruction.code.dgeMode = engine == Engine::Gpsimd ? isa::DgeMode::Software : isa::DgeMode::Hardware;
  const int side = isLoad ? 1 : 0;
  instruction.code.tiles[1 - side] = tile;
  instruction.code.tiles[side].space = MemorySpace::Hbm;
  isa::HbmPattern &hbm = instruction.code.hbm[side];
  hbm.variable = operand;
  hbm.dtype = Dtype::F32;
  hbm.count = {1, 1, 1, 128, kColumns};
  hbm.step = {0, 0, 0, kColumns * 4, 4};
  instruction.hbmTerms[side].push_back({loop, kTileBytes});
  instruction.code.queue = uint8_t(engine == Engine::Gpsimd ? 2 : side);
  return instruction;
}

/// out = x * factor + w over `tiles` tiles; `reverses`: out has them last to first.
schedule::StructuredProgram layer(uint32_t firstParameter, int tiles, float factor, bool reverses) {
  schedule::StructuredProgram unit;
  unit.firstParameter = firstParameter;
  unit.parameters.assign(3, {tiles * kTileBytes, -1});
  auto loop = std::make_unique<schedule::Loop>();
  loop->id = 0;
  loop->trips = tiles;
  const auto parameter = [&](int index) { return uint16_t(isa::kParameterFlag | (firstParameter + uint32_t(index))); };
  for (int copy = 0; copy < 2; ++copy) {
    schedule::Sequence &body = loop->copies.emplace_back();
    const TilePattern x = buffer(4 * copy), w = buffer(4 * copy + 1), y = buffer(4 * copy + 2),
                      z = buffer(4 * copy + 3);
    body.emplace_back(move(Engine::Sync, x, parameter(0), 0, true));
    body.emplace_back(move(Engine::Sync, w, parameter(1), 0, true));
    schedule::Instruction multiply = make(Engine::Gpsimd, Opcode::TensorScalar);
    multiply.code.op0 = AluOp::Multiply;
    multiply.code.scalars[0] = isa::ScalarOperand::constant(factor);
    multiply.code.tiles[0] = y;
    multiply.code.tiles[1] = x;
    body.emplace_back(multiply);
    schedule::Instruction add = make(Engine::Vector, Opcode::TensorTensor);
    add.code.op0 = AluOp::Add;
    add.code.tiles[0] = z;
    add.code.tiles[1] = y;
    add.code.tiles[2] = w;
    body.emplace_back(add);
    schedule::Instruction store = move(Engine::Gpsimd, z, parameter(2), 0, false);
    if (reverses) {
      store.code.hbm[0].byteOffset = (tiles - 1) * kTileBytes;
      store.hbmTerms[0][0].stride = -kTileBytes;
    }
    body.emplace_back(store);
  }
  unit.kernels.emplace_back().name = "layer";
  unit.kernels.back().body.emplace_back(std::move(loop));
  return unit;
}

/// `steps` alternate between two kinds of layers; activations go through two scratch variables in turn.
struct Model {
  ProgramTester tester;
  int input = 0, output = 0;
  std::vector<float> expected;
  schedule::LinkReport report;

  Model(const std::vector<schedule::Step> &steps, int tiles, bool reverses = false) {
    const int64_t bytes = tiles * kTileBytes;
    input = tester.addVariable("x", bytes);
    output = tester.addVariable("out", bytes, neff::Variable::Kind::Output);
    const int scratch[2] = {tester.addVariable("h0", bytes, neff::Variable::Kind::Scratch),
                            tester.addVariable("h1", bytes, neff::Variable::Kind::Scratch)};
    std::mt19937 random(5);
    const auto fill = [&](int variable) {
      for (int64_t i = 0; i < bytes / 4; ++i)
        tester.data<float>(variable)[i] = float(random() % 1000) / 100;
    };
    fill(input);
    expected.assign(tester.data<float>(input), tester.data<float>(input) + bytes / 4);
    const float factors[2] = {0.5f, -0.25f};
    std::vector<schedule::StructuredProgram> units;
    for (int unit = 0; unit < 2; ++unit) {
      units.push_back(layer(uint32_t(3 * unit), tiles, factors[unit], reverses));
      for (int i = 0; i < 3; ++i)
        tester.neff->parameterBytes.push_back(bytes);
    }
    int total = 0, run = 0;
    for (const schedule::Step &step : steps)
      total += step.runs;
    for (const schedule::Step &step : steps)
      for (int i = 0; i < step.runs; ++i, ++run) {
        const int weight = tester.addVariable("w" + std::to_string(run), bytes);
        fill(weight);
        const uint32_t from = uint32_t(run == 0 ? input : scratch[run % 2]);
        const uint32_t to = uint32_t(run == total - 1 ? output : scratch[(run + 1) % 2]);
        tester.neff->runs.push_back({uint32_t(3 * step.unit), {from, uint32_t(weight), to}});
        for (int64_t k = 0; k < bytes / 4; ++k)
          expected[size_t(k)] = expected[size_t(k)] * factors[step.unit] + tester.data<float>(weight)[k];
      }
    for (schedule::StructuredProgram &unit : units)
      unit.variables.assign(tester.neff->variables.size(), {bytes, -1});
    Expected<isa::Program> program = schedule::link(units, steps, {}, {}, &report);
    EXPECT_TRUE(bool(program)) << program.error().message();
    if (program)
      tester.neff->program = *program;
    tester.neff->semaphores = report.numSemaphores;
  }

  bool isRight() {
    for (size_t i = 0; i < expected.size(); ++i)
      if (tester.data<float>(output)[i] != expected[i])
        return false;
    return true;
  }
};

std::string messages(const CheckResult &result) {
  std::string text;
  for (const Hazard &hazard : result.hazards)
    text += hazard.message + "\n";
  return text;
}

CheckResult check(Model &model, const CheckOptions &options = {}) {
  Expected<std::shared_ptr<const LoadedProgram>> program = model.tester.loadProgram();
  EXPECT_TRUE(bool(program)) << program.error().message();
  if (!program)
    return {};
  Expected<CheckResult> result = checkProgram(**program, options);
  EXPECT_TRUE(bool(result));
  return *result;
}

const std::vector<std::vector<schedule::Step>> kShapes = {
    {{0, 1}, {1, 1}}, {{0, 5}}, {{0, 3}, {1, 2}, {0, 1}}, {{1, 1}, {0, 6}}, {{0, 2}, {1, 1}, {0, 2}, {1, 1}, {0, 3}}};

TEST(Runs, ParametersStandForTheVariablesOfTheRun) {
  for (const std::vector<schedule::Step> &steps : kShapes)
    for (int threads : {1, 2}) {
      Model model(steps, 3);
      ASSERT_EQ(model.tester.run(threads), "");
      EXPECT_TRUE(model.isRight());
    }
}

TEST(Runs, AnyOrderOfTheMachineGivesTheSame) {
  for (const std::vector<schedule::Step> &steps : kShapes) {
    Model model(steps, 2);
    const std::vector<std::vector<uint8_t>> initial = model.tester.memory;
    Expected<std::shared_ptr<const LoadedProgram>> program = model.tester.loadProgram();
    ASSERT_TRUE(bool(program)) << program.error().message();
    for (uint64_t seed = 0; seed < 2; ++seed) {
      model.tester.memory = initial;
      const Status status = executeAdversarially(**program, model.tester.bindings(), seed);
      ASSERT_TRUE(bool(status)) << status.error().message();
      ASSERT_TRUE(model.isRight());
    }
  }
}

TEST(Runs, CorrectProgramsAreAccepted) {
  for (const std::vector<schedule::Step> &steps : kShapes)
    for (uint64_t window : {200000, 37}) {
      Model model(steps, 3);
      CheckOptions options;
      options.windowInstructions = window;
      const CheckResult result = check(model, options);
      EXPECT_THAT(result.hazards, IsEmpty()) << messages(result);
      EXPECT_TRUE(result.isComplete);
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Faults
// ---------------------------------------------------------------------------------------------------------------------

template <typename Fault> std::string verdictOn(Fault fault) {
  Model model({{0, 3}, {1, 2}}, 3);
  fault(model);
  return messages(check(model));
}

bool isGateWait(const Instruction &code) {
  return code.opcode == Opcode::Nop && code.numWaits == 1 && code.waits[0].valueRegister == isa::kRunRegister;
}

TEST(RunFaults, DroppedBarrier) {
  for (Engine engine : {Engine::Gpsimd, Engine::Vector})
    EXPECT_THAT(verdictOn([&](Model &model) {
                  for (Instruction &code : model.tester.stream(engine))
                    if (isGateWait(code)) {
                      code.numWaits = 0;
                      code.waits = {};
                    }
                }),
                HasSubstr("nothing orders that with its use"));
}

TEST(RunFaults, ClearedTooEarly) {
  const std::string text = verdictOn([](Model &model) {
    isa::Stream &sync = model.tester.stream(Engine::Sync);
    for (size_t i = 0; i + 1 < sync.size(); ++i)
      if (sync[i + 1].opcode == Opcode::SemaphoreRangeClear) {
        sync[i].numWaits = 0;
        sync[i].waits = {};
      }
  });
  EXPECT_THAT(text, HasSubstr("is cleared by"));
}

/// The streams would be right; what they are told to work on is not.
TEST(RunFaults, WrongBinding) {
  // Of run 1: reads what nothing has written.
  EXPECT_THAT(verdictOn([](Model &model) {
                std::swap(model.tester.neff->runs[1].variables[0], model.tester.neff->runs[1].variables[2]);
              }),
              HasSubstr("was never written"));
  // A unit that stores its tiles last to first does not order them with the tiles it loads: they are of two parameters.
  for (bool wrong : {false, true}) {
    Model model({{0, 3}}, 6, true);
    if (wrong)
      model.tester.neff->runs[1].variables[2] = model.tester.neff->runs[1].variables[0];
    EXPECT_EQ(messages(check(model)).find("race: ") != std::string::npos, wrong) << messages(check(model));
  }
}

TEST(RunFaults, BindingsAreBoundsChecked) {
  const auto loadError = [](const std::function<void(Model &)> &fault) {
    Model model({{0, 3}, {1, 2}}, 3);
    fault(model);
    Expected<std::shared_ptr<const LoadedProgram>> program = model.tester.loadProgram();
    return program ? model.tester.run() : program.error().message();
  };
  EXPECT_EQ(loadError([](Model &) {}), "");
  EXPECT_THAT(loadError([](Model &model) {
                const int small = model.tester.addVariable("small", 64);
                model.tester.neff->runs[4].variables[1] = uint32_t(small);
              }),
              HasSubstr("run 4: expected a variable of at least 98304 bytes for parameter 4 but 'small' has 64"));
  // An address beyond the parameter is an error in any run, whatever is bound to it.
  EXPECT_THAT(loadError([](Model &model) { model.tester.neff->parameterBytes[1] -= 4; }),
              HasSubstr("source of the transfer covers bytes [65536, 98304) of variable 'w0' (parameter 1 in run 0), "
                        "which has 98300 bytes"));
  EXPECT_THAT(loadError([](Model &model) { model.tester.neff->runs[3].variables.pop_back(); }),
              HasSubstr("parameter 5 is not bound in run 3"));
  EXPECT_THAT(loadError([](Model &model) { model.tester.neff->runs.pop_back(); }),
              HasSubstr("parameter 3 is not bound in run 4"));
}

/// Streams that do with the run register and with calls what no linker does: errors, never a crash or an access
/// outside a variable (the sanitizers' part).
TEST(RunFaults, HostileStreamsOnlyFail) {
  std::mt19937 random(3);
  int finished = 0, failed = 0;
  for (int i = 0; i < 60; ++i) {
    Model model({{0, 2}, {1, 1}, {0, 2}}, 1);
    for (isa::Stream &stream : model.tester.neff->program) {
      if (stream.empty() || random() % 3 != 0)
        continue;
      for (int n = 0; n < 1 + i % 2; ++n) {
        Instruction &code = stream[random() % stream.size()];
        switch (random() % 4) {
        case 0:
          code = Instruction();
          code.opcode = Opcode::RegisterMove;
          code.rd = isa::kRunRegister;
          code.immediate = random() % 2 ? int32_t(random()) : int32_t(random() % 8) - 1;
          break;
        case 1:
          code = Instruction();
          code.opcode = random() % 2 ? Opcode::Call : Opcode::Branch;
          code.target = uint32_t(random() % stream.size());
          break;
        case 2:
          code = Instruction();
          code.opcode = Opcode::Return;
          break;
        default:
          for (int side = 0; side < 2; ++side)
            if (code.tiles[side].space == MemorySpace::Hbm)
              code.hbm[side].variable = uint16_t(random() % 4 ? isa::kParameterFlag | random() % 6 : random());
        }
      }
    }
    Expected<std::shared_ptr<const LoadedProgram>> program = model.tester.loadProgram();
    if (!program) {
      ++failed;
      continue;
    }
    ExecuteOptions options;
    options.maxInstructions = 5000;
    (model.tester.run(1, options).empty() ? finished : failed) += 1;
    CheckOptions checkOptions;
    checkOptions.maxInstructions = 1000;
    (void)checkProgram(**program, checkOptions);
    TimingOptions timing;
    timing.maxSteps = 5000;
    (void)simulateTiming(**program, {}, timing);
  }
  EXPECT_GT(failed, 20);
  EXPECT_GT(finished, 0);
}

// ---------------------------------------------------------------------------------------------------------------------
// Time
// ---------------------------------------------------------------------------------------------------------------------

TimingResult simulate(Model &model, const TimingOptions &options = {}) {
  Expected<std::shared_ptr<const LoadedProgram>> program = model.tester.loadProgram();
  EXPECT_TRUE(bool(program)) << program.error().message();
  Expected<TimingResult> result = simulateTiming(**program, {}, options);
  EXPECT_TRUE(bool(result)) << result.error().message();
  return std::move(*result);
}

TEST(RunTimes, SkippingRunsChangesNothing) {
  for (const std::vector<schedule::Step> &steps :
       std::vector<std::vector<schedule::Step>>{{{0, 24}}, {{0, 12}, {1, 12}}, {{0, 1}, {1, 10}, {0, 10}, {1, 1}}}) {
    Model model(steps, 20);
    TimingOptions full;
    full.skipSteadyLoops = false;
    const TimingResult a = simulate(model, full), b = simulate(model);
    EXPECT_EQ(a.kernelPs, b.kernelPs);
    EXPECT_EQ(a.transfers, b.transfers);
    EXPECT_EQ(a.dmaBytes, b.dmaBytes);
    for (int s = 0; s < isa::kNumStreams; ++s) {
      EXPECT_EQ(a.engines[s].instructions, b.engines[s].instructions);
      EXPECT_EQ(a.engines[s].busyPs, b.engines[s].busyPs);
      EXPECT_EQ(a.engines[s].waitPs, b.engines[s].waitPs);
    }
    EXPECT_LT(b.simulatedSteps * 2, a.simulatedSteps);
    std::vector<TimelineEvent> x = a.timeline.expand(), y = b.timeline.expand();
    const auto key = [](const TimelineEvent &e) {
      return std::tuple(e.startPs, e.stream, e.pc, e.dmaEngine, e.endPs, e.run);
    };
    const auto order = [&](const TimelineEvent &p, const TimelineEvent &q) { return key(p) < key(q); };
    std::sort(x.begin(), x.end(), order);
    std::sort(y.begin(), y.end(), order);
    ASSERT_EQ(x.size(), y.size());
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(key(x[i]), key(y[i])) << i;
  }
}

TEST(RunTimes, ManyRunsCostAsMuchAsAFew) {
  Model few({{0, 8}}, 20), many({{0, 200}}, 20);
  const TimingResult a = simulate(few), b = simulate(many);
  EXPECT_LT(b.simulatedSteps, a.simulatedSteps + a.simulatedSteps / 10);
  EXPECT_GT(b.kernelPs, 20 * a.kernelPs);
  RecordProperty("steps_of_8_runs", std::to_string(a.simulatedSteps));
  RecordProperty("steps_of_200_runs", std::to_string(b.simulatedSteps));
  TimingOptions full;
  full.skipSteadyLoops = false;
  RecordProperty("steps_of_200_runs_unskipped", std::to_string(simulate(many, full).simulatedSteps));
}

} // namespace
} // namespace neuroncore::emulator::test

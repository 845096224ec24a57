// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Injected faults: a wait that was kept is dropped or made one step too low, a buffer loses a rotation slot. Every
// fault that gives wrong memory is also found by the happens-before check, and most faults are found.

#include <random>

#include <gtest/gtest.h>

#include "HappensBefore.h"
#include "ProgramBuilder.h"
#include "RandomProgram.h"
#include "SymbolicMachine.h"
#include "TestEnvironment.h"
#include "neuron/Schedule/Projection.h"
#include "neuron/Schedule/Synchronisation.h"

namespace neuroncore::schedule::test {

namespace {

constexpr int64_t kLargeProgram = 800; // the check is quadratic

struct Outcome {
  int injected = 0;
  int reported = 0;
  int wrong = 0; // memory, or a deadlock
  int unreported = 0;
};

void judge(const StructuredProgram &faulty, uint64_t seed, Outcome &outcome) {
  Layout layout(faulty.variables);
  int64_t dynamic = 0;
  Memory expected = runSequentially(faulty, layout, &dynamic);
  if (dynamic > kLargeProgram)
    return;
  Expected<isa::Program> streams = project(faulty);
  ASSERT_TRUE(streams) << streams.error().message();
  bool reported = !findHazard(*streams, layout).empty();
  bool wrong = false;
  for (int run = 0; run < 8 && !wrong; ++run) {
    RunResult result = runStreams(*streams, layout, seed * 100 + run);
    wrong = result.deadlock || result.memory != expected;
  }
  ++outcome.injected;
  outcome.reported += reported;
  outcome.wrong += wrong;
  outcome.unreported += wrong && !reported;
  if (wrong && !reported)
    ADD_FAILURE() << "seed " << seed << " is wrong but not reported\n" << describe(faulty) << describe(*streams);
}

StructuredProgram synchronised(uint64_t seed) {
  StructuredProgram program = randomProgram(seed);
  Status status = synchronise(program);
  EXPECT_TRUE(status) << status.error().message();
  return program;
}

/// The waits that execute: those of instructions with an update, outside boundaries.
std::vector<std::pair<Instruction *, size_t>> allWaits(StructuredProgram &program) {
  std::vector<std::pair<Instruction *, size_t>> out;
  forEachInstruction(program, [&](Instruction &instruction) {
    if (instruction.code.update.op != isa::UpdateOp::None)
      for (size_t i = 0; i < instruction.waits.size(); ++i)
        out.push_back({&instruction, i});
  });
  return out;
}

template <typename Fault> Outcome injectIntoWaits(Fault fault) {
  Outcome outcome;
  for (uint64_t i = 0; i < numPrograms(); ++i) {
    uint64_t seed = firstSeed() + i;
    StructuredProgram program = synchronised(seed);
    std::mt19937_64 random(seed);
    auto waits = allWaits(program);
    if (waits.empty())
      continue;
    auto [instruction, index] = waits[random() % waits.size()];
    fault(*instruction, index);
    judge(program, seed, outcome);
  }
  ::testing::Test::RecordProperty("injected", outcome.injected);
  ::testing::Test::RecordProperty("reported", outcome.reported);
  ::testing::Test::RecordProperty("wrong", outcome.wrong);
  EXPECT_EQ(outcome.unreported, 0);
  return outcome;
}

TEST(InjectedFaults, DroppedWait) {
  Outcome outcome = injectIntoWaits(
      [](Instruction &instruction, size_t index) { instruction.waits.erase(instruction.waits.begin() + index); });
  EXPECT_GT(outcome.reported * 2, outcome.injected);
  EXPECT_GT(outcome.wrong * 3, outcome.injected);
}

TEST(InjectedFaults, ValueOneStepLower) {
  Outcome outcome =
      injectIntoWaits([](Instruction &instruction, size_t index) { --instruction.waits[index].immediate; });
  EXPECT_GT(outcome.reported * 2, outcome.injected);
  EXPECT_GT(outcome.wrong * 3, outcome.injected);
}

TEST(InjectedFaults, ValueTooHighDeadlocks) {
  Outcome outcome =
      injectIntoWaits([](Instruction &instruction, size_t index) { instruction.waits[index].immediate += 1 << 20; });
  EXPECT_EQ(outcome.wrong, outcome.injected);
}

/// Copy `copy` of a loop gets the on-chip addresses of copy 0.
void dropSlot(Sequence &target, const Sequence &source) {
  for (size_t i = 0; i < target.size(); ++i) {
    if (Instruction *instruction = std::get_if<Instruction>(&target[i])) {
      for (int slot = 0; slot < isa::kMaxTiles; ++slot)
        if (instruction->code.tiles[slot].space != isa::MemorySpace::Hbm)
          instruction->code.tiles[slot] = std::get<Instruction>(source[i]).code.tiles[slot];
      continue;
    }
    Loop &loop = *std::get<std::unique_ptr<Loop>>(target[i]);
    for (size_t copy = 0; copy < loop.copies.size(); ++copy)
      dropSlot(loop.copies[copy], std::get<std::unique_ptr<Loop>>(source[i])->copies[copy]);
  }
}

void collectRotated(Sequence &sequence, std::vector<Loop *> &out) {
  for (Node &node : sequence)
    if (auto *loop = std::get_if<std::unique_ptr<Loop>>(&node)) {
      if ((*loop)->trips > 1 && (*loop)->copies.size() > 1)
        out.push_back(loop->get());
      for (Sequence &copy : (*loop)->copies)
        collectRotated(copy, out);
    }
}

TEST(InjectedFaults, OneBufferFewer) {
  Outcome outcome;
  for (uint64_t i = 0; i < numPrograms(); ++i) {
    uint64_t seed = firstSeed() + i;
    StructuredProgram program = synchronised(seed);
    std::vector<Loop *> rotated;
    for (Kernel &kernel : program.kernels)
      collectRotated(kernel.body, rotated);
    if (rotated.empty())
      continue;
    Loop &loop = *rotated[seed % rotated.size()];
    dropSlot(loop.copies[1], loop.copies[0]);
    judge(program, seed, outcome);
  }
  RecordProperty("injected", outcome.injected);
  RecordProperty("reported", outcome.reported);
  RecordProperty("wrong", outcome.wrong);
  EXPECT_EQ(outcome.unreported, 0);
  EXPECT_GT(outcome.reported, 0);
  EXPECT_GT(outcome.wrong, 0);
}

} // namespace

} // namespace neuroncore::schedule::test

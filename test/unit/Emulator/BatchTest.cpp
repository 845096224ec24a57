// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs whose instructions are executed partition by partition give the bits of the same instructions executed one
// at a time, whatever partitions and HBM rows they share.

#include <atomic>
#include <random>

#include "ProgramTester.h"
#include "lib/Emulator/Dma.h"
#include "lib/Emulator/WorkerPool.h"

namespace neuroncore::emulator::test {
namespace {

constexpr int kColumns = 4096;
constexpr int kAreas = 5;
constexpr int kVariables = 3;
constexpr int64_t kRowBytes = kColumns * int64_t(sizeof(float));
constexpr int64_t kVariableRows = 256;

class RandomProgram {
public:
  explicit RandomProgram(uint32_t seed) : random_(seed) {}

  Instruction instruction() {
    ProgramTester scratch;
    switch (pick(6)) {
    case 0:
      return scratch.load(Engine::Gpsimd, randomTile(), pick(kVariables), pick(128) * kRowBytes);
    case 1:
      return scratch.store(Engine::Gpsimd, pick(kVariables), randomTile(), pick(128) * kRowBytes);
    case 2: {
      // The rows of a transfer in the other order and two apart, so that ranges in HBM interleave.
      Instruction &transfer = scratch.transfer(Engine::Gpsimd, randomTile(), pick(kVariables), kRowBytes, pick(2) != 0);
      for (int side = 0; side < 2; ++side)
        if (transfer.tiles[side].space == MemorySpace::Hbm)
          transfer.hbm[side].step[3] = 2 * kRowBytes;
      return transfer;
    }
    default: {
      Instruction op;
      op.opcode = pick(2) ? Opcode::TensorTensor : Opcode::TensorCopy;
      op.tiles[0] = randomTile();
      op.tiles[1] = randomTile();
      // Mostly the same partitions; where fewer are shifted, they start at a multiple of their number.
      op.tiles[1].numPartitions = op.tiles[0].numPartitions;
      const int count = op.tiles[0].numPartitions;
      op.tiles[1].startPartition = op.tiles[0].startPartition;
      if (!pick(3) && count <= 64)
        op.tiles[1].startPartition = uint8_t(count * pick(128 / count));
      if (op.opcode == Opcode::TensorTensor) {
        op.op0 = isa::AluOp::Add;
        op.tiles[2] = op.tiles[1];
        op.tiles[2].byteOffset = uint32_t(pick(kAreas) * kRowBytes);
      }
      return op;
    }
    }
  }

  int pick(int n) { return int(random_() % uint32_t(n)); }

private:
  TilePattern randomTile() {
    const int quadrants = 1 + pick(4);
    const int start = quadrants == 1 ? 32 * pick(4) : quadrants == 2 ? 64 * pick(2) : 0;
    return tile(Dtype::F32, 32 * quadrants, kColumns, uint32_t(pick(kAreas) * kRowBytes), MemorySpace::Sbuf, start);
  }
  std::mt19937 random_;
};

void addVariables(ProgramTester &tester) {
  for (int v = 0; v < kVariables; ++v)
    tester.addVariable("v" + std::to_string(v), kVariableRows * kRowBytes, neff::Variable::Kind::Scratch);
}

/// Executes `instructions` as programs of `length` instructions each; the contents of HBM afterwards.
std::vector<std::vector<uint8_t>> contents(const std::vector<Instruction> &instructions, size_t length, int threads) {
  const target::MachineModel &model = *target::MachineModel::builtin("trn2");
  Expected<std::unique_ptr<Core>> core = Core::create(model, threads);
  EXPECT_TRUE(bool(core));
  ProgramTester memory;
  addVariables(memory);
  std::mt19937 random(7);
  for (int v = 0; v < kVariables; ++v)
    for (int64_t i = 0; i < kVariableRows * kColumns; ++i)
      memory.data<float>(v)[i] = float(int(random() % 2001) - 1000);
  std::vector<void *> pointers;
  for (std::vector<uint8_t> &bytes : memory.memory)
    pointers.push_back(bytes.data());
  for (size_t first = 0; first < instructions.size(); first += length) {
    ProgramTester part;
    for (int v = 0; v < kVariables; ++v) {
      neff::Variable variable = memory.neff->variables[v];
      part.neff->variables.push_back(variable);
    }
    for (size_t i = first; i < std::min(first + length, instructions.size()); ++i)
      part.add(Engine::Gpsimd, instructions[i]);
    Expected<std::shared_ptr<const LoadedProgram>> program = part.loadProgram();
    EXPECT_TRUE(bool(program)) << (program ? "" : program.error().message());
    if (!program)
      return {};
    const Status status = (*core)->execute(**program, pointers, {});
    EXPECT_TRUE(bool(status)) << (status ? "" : status.error().message());
  }
  return memory.memory;
}

TEST(Batch, EqualsOneInstructionAtATime) {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    RandomProgram program(seed);
    std::vector<Instruction> instructions;
    for (int i = 0; i < 90; ++i)
      instructions.push_back(program.instruction());
    // What is left in SBUF decides too.
    for (int area = 0; area < kAreas; ++area) {
      ProgramTester scratch;
      instructions.push_back(scratch.store(Engine::Gpsimd, area % kVariables,
                                           tile(Dtype::F32, 128, kColumns, uint32_t(area * kRowBytes)),
                                           area < kVariables ? 0 : 128 * kRowBytes));
    }
    const auto expected = contents(instructions, 1, 1);
    ASSERT_FALSE(expected.empty());
    for (int threads : {1, 3}) {
      const auto got = contents(instructions, instructions.size(), threads);
      ASSERT_EQ(got.size(), expected.size());
      for (int v = 0; v < kVariables; ++v)
        EXPECT_TRUE(got[v] == expected[v]) << "seed " << seed << ", variable " << v << ", " << threads << " threads";
    }
  }
}

/// A variable that is written past the caches, from rows that are not aligned to their lines.
TEST(Batch, StreamsLargeVariables) {
  constexpr int64_t kBytes = kStreamedVariableBytes;
  ProgramTester tester;
  const int from = tester.addVariable("from", kBytes);
  const int to = tester.addVariable("to", kBytes, neff::Variable::Kind::Output);
  for (int64_t i = 0; i < kBytes / 4; ++i)
    tester.data<uint32_t>(from)[i] = uint32_t(i) * 2654435761u;
  constexpr int kOdd = 1003;
  const TilePattern rows = tile(Dtype::F32, 100, kOdd, 4);
  constexpr int64_t kOffset = 12;
  tester.load(Engine::Gpsimd, rows, from);
  tester.store(Engine::Gpsimd, to, rows, kOffset);
  ASSERT_EQ(tester.run(), "");
  EXPECT_EQ(std::memcmp(tester.data<uint8_t>(to) + kOffset, tester.data<uint8_t>(from), size_t(100) * kOdd * 4), 0);
  EXPECT_EQ(tester.data<uint32_t>(to)[2], 0u);
  EXPECT_EQ(tester.data<uint32_t>(to)[3 + 100 * kOdd], 0u);
}

TEST(WorkerPool, EveryUnitRunsOnceAndPartsBeginAtTheAlignment) {
  WorkerPool pool(3);
  for (int round = 0; round < 300; ++round) {
    const int64_t units = 1 + round % 130, alignment = round % 3 == 0 ? 16 : 1;
    std::vector<std::atomic<int>> runs(static_cast<size_t>(units));
    std::atomic<bool> aligned = true;
    pool.run(units, alignment, [&](Worker &, int64_t begin, int64_t end) {
      if (begin % alignment != 0)
        aligned = false;
      for (int64_t i = begin; i < end; ++i)
        ++runs[size_t(i)];
    });
    ASSERT_TRUE(aligned) << round;
    for (int64_t i = 0; i < units; ++i)
      ASSERT_EQ(runs[size_t(i)], 1) << "unit " << i << " of " << units;
  }
}

TEST(WorkerPool, ReportsTheFaultThatOneThreadWouldMeetFirst) {
  WorkerPool pool(3);
  for (int round = 0; round < 300; ++round) {
    pool.run(120, 1, [&](Worker &worker, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        if (i >= round % 120)
          worker.fail(ErrorKind::OutOfBounds, std::to_string(i));
    });
    Worker *failed = pool.failedWorker();
    ASSERT_NE(failed, nullptr);
    ASSERT_EQ(failed->message, std::to_string(round % 120));
    pool.clearFaults();
    ASSERT_EQ(pool.failedWorker(), nullptr);
  }
}

} // namespace
} // namespace neuroncore::emulator::test

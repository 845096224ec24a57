// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TileTester.h"

#include "lib/Emulator/Routines/Random.h"

namespace neuroncore::emulator::test {
namespace {

using isa::PhiloxFunction;
using isa::Routine;

/// Known answers of the generator's authors (Random123, philox4x32 with 10 rounds): counter, key, result.
TEST(RoutineRandom, KnownAnswers) {
  uint32_t words[4];
  philoxBlocks(0, 0, 0, 1, words);
  EXPECT_EQ(std::vector<uint32_t>(words, words + 4),
            (std::vector<uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  philoxBlocks(~0ull, ~0ull, ~0ull, 1, words);
  EXPECT_EQ(std::vector<uint32_t>(words, words + 4),
            (std::vector<uint32_t>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // Counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0, words from low to high.
  philoxBlocks(0x85a308d3243f6a88ull, 0x0370734413198a2eull, 0x299f31d0a4093822ull, 1, words);
  EXPECT_EQ(std::vector<uint32_t>(words, words + 4),
            (std::vector<uint32_t>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

Instruction philox(PhiloxFunction function, Dtype dtype, int partitions, int n) {
  Instruction call;
  call.opcode = Opcode::GpsimdCall;
  call.routine = Routine::Philox;
  call.routineFunction = uint8_t(function);
  call.tiles[0] = rowTile(dtype, partitions, n, 0);
  call.tiles[1] = rowTile(Dtype::I64, partitions, 2, 32768);
  call.tiles[2] = rowTile(Dtype::I64, partitions, 1, 32800);
  return call;
}

void setState(TileTester &tester, const Instruction &call, int64_t seed, int64_t offset, int64_t first, int64_t pitch) {
  std::vector<int64_t> state, start;
  for (int p = 0; p < call.tiles[0].numPartitions; ++p) {
    state.push_back(seed);
    state.push_back(offset);
    start.push_back(first + p * pitch);
  }
  tester.writeRaw(call.tiles[1], state);
  tester.writeRaw(call.tiles[2], start);
}

/// The value of an element comes from its logical index, not from its tile.
TEST(RoutineRandom, IndependentOfTiling) {
  TileTester tester(101);
  const int64_t seed = 0x1234567890abcdef, offset = 77;
  std::vector<uint32_t> words(4 * 2000);
  philoxBlocks(0, uint64_t(offset), uint64_t(seed), 2000, words.data());
  for (int n : {1, 3, 7, 64, 509, 1300})
    for (int64_t first : {0, 1, 2, 3, 1001}) {
      const Instruction bits = philox(PhiloxFunction::Bits, Dtype::I32, 4, n);
      setState(tester, bits, seed, offset, first, n);
      ASSERT_TRUE(tester.run(bits, Engine::Gpsimd, 2).ok);
      const std::vector<uint32_t> got = tester.readRaw<uint32_t>(bits.tiles[0]);
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_EQ(got[i], words[size_t(first) + i]) << n << " " << first << " " << i;
      const Instruction uniform = philox(PhiloxFunction::Uniform, Dtype::F32, 4, n);
      ASSERT_TRUE(tester.run(uniform, Engine::Gpsimd).ok);
      const std::vector<float> values = tester.read(uniform.tiles[0]);
      for (size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(values[i], float(words[size_t(first) + i] >> 8) / 16777216.0f);
      const Instruction normal = philox(PhiloxFunction::Normal, Dtype::F32, 4, n);
      ASSERT_TRUE(tester.run(normal, Engine::Gpsimd).ok);
      const std::vector<float> normals = tester.read(normal.tiles[0]);
      for (size_t i = 0; i < normals.size(); ++i) {
        const size_t e = size_t(first) + i, pair = e & ~size_t(1);
        const double radius = std::sqrt(-2 * std::log(((words[pair] >> 8) + 1) / 16777216.0));
        const double angle = 2 * M_PI * ((words[pair + 1] >> 8) / 16777216.0);
        ASSERT_NEAR(normals[i], radius * (e % 2 ? std::sin(angle) : std::cos(angle)), 4e-6) << e;
      }
    }
}

TEST(RoutineRandom, WideBits) {
  TileTester tester(102);
  const Instruction call = philox(PhiloxFunction::Bits64, Dtype::I64, 1, 600);
  setState(tester, call, 5, 6, 3, 0);
  ASSERT_TRUE(tester.run(call, Engine::Gpsimd).ok);
  std::vector<uint32_t> words(4 * 400);
  philoxBlocks(0, 6, 5, 400, words.data());
  const std::vector<uint64_t> got = tester.readRaw<uint64_t>(call.tiles[0]);
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], uint64_t(words[2 * (i + 3)]) | uint64_t(words[2 * (i + 3) + 1]) << 32);
}

TEST(RoutineRandom, MomentsOfTheDistributions) {
  TileTester tester(103);
  const Instruction normal = philox(PhiloxFunction::Normal, Dtype::F32, 128, 4000);
  setState(tester, normal, 42, 0, 0, 4000);
  ASSERT_TRUE(tester.run(normal, Engine::Gpsimd).ok);
  double sum = 0, squares = 0, fourth = 0;
  const std::vector<float> values = tester.read(normal.tiles[0]);
  for (float v : values) {
    sum += v;
    squares += double(v) * v;
    fourth += double(v) * v * v * v;
  }
  const double n = double(values.size());
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.01);
  EXPECT_NEAR(fourth / n, 3, 0.05);
}

TEST(RoutineRandom, Iota64) {
  TileTester tester(104);
  Instruction iota;
  iota.opcode = Opcode::GpsimdCall;
  iota.routine = Routine::Iota64;
  iota.tiles[0] = rowTile(Dtype::I64, 3, 1, 0);
  iota.tiles[0].count[2] = 4;
  iota.tiles[0].step[2] = 9;
  iota.tiles[0].count[3] = 8;
  iota.immediates = {5000000000, 1000000007, 100, -3};
  ASSERT_TRUE(tester.run(iota, Engine::Gpsimd).ok);
  const std::vector<int64_t> got = tester.readRaw<int64_t>(iota.tiles[0]);
  size_t i = 0;
  for (int64_t p = 0; p < 3; ++p)
    for (int64_t a = 0; a < 4; ++a)
      for (int64_t b = 0; b < 8; ++b)
        EXPECT_EQ(got[i++], 5000000000 + p * 1000000007 + a * 100 - 3 * b);
}

} // namespace
} // namespace neuroncore::emulator::test

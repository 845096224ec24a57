// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <algorithm>

#include "TileTester.h"

namespace neuroncore::emulator::test {
namespace {

TEST(Shuffle, TransposeKeepsBlocksInPlace) {
  TileTester tester(61);
  for (int round = 0; round < 60; ++round) {
    const Dtype dtype = tester.oneOf({Dtype::F32, Dtype::I32, Dtype::Bf16, Dtype::I16});
    const int partitions = tester.oneOf({32, 64, 128}), n = 32 * int(tester.pick(1, 6));
    Instruction instruction;
    instruction.opcode = Opcode::Transpose;
    instruction.tiles[1] = rowTile(dtype, partitions, n, 4096);
    instruction.tiles[0] = rowTile(dtype, partitions, n, tester.pick(0, 1) ? 4096 : 0); // in place too
    tester.fill(instruction.tiles[1]);
    std::vector<uint8_t> expected = tester.snapshot();
    const int bytes = isa::dtypeBytes(dtype);
    forElements(instruction.tiles[0], [&](int p, int64_t offset, int64_t column) {
      const int sourceRow = p / 32 * 32 + int(column % 32), sourceColumn = int(column / 32 * 32) + p % 32;
      uint64_t bits = 0;
      std::memcpy(&bits, tester.at(instruction.tiles[1], sourceRow, 4096 + sourceColumn * bytes), bytes);
      tester.expect(expected, instruction.tiles[0], p, offset, bits);
    });
    const TileTester::Result run = tester.run(instruction, Engine::Vector, int(tester.pick(1, 2)));
    ASSERT_TRUE(run.ok) << run.message;
    ASSERT_TRUE(tester.equals(expected)) << round;
  }
}

TEST(Shuffle, StreamShuffle) {
  TileTester tester(62);
  for (int round = 0; round < 60; ++round) {
    const int partitions = tester.oneOf({32, 64, 128}), n = int(tester.pick(1, 100));
    Instruction instruction;
    instruction.opcode = Opcode::StreamShuffle;
    instruction.tiles[1] = rowTile(Dtype::F32, partitions, n, 4096);
    instruction.tiles[0] = rowTile(Dtype::F32, partitions, n, tester.pick(0, 1) ? 4096 : 0);
    tester.fill(instruction.tiles[0]);
    tester.fill(instruction.tiles[1]);
    uint8_t mask[32];
    for (uint8_t &entry : mask)
      entry = tester.pick(0, 5) == 0 ? 255 : uint8_t(tester.pick(0, 31));
    for (int i = 0; i < 32; ++i)
      instruction.immediates[i / 8] |= int64_t(uint64_t(mask[i]) << (8 * (i % 8)));
    std::vector<uint8_t> expected = tester.snapshot();
    forElements(instruction.tiles[0], [&](int p, int64_t offset, int64_t column) {
      if (mask[p % 32] == 255)
        return;
      uint64_t bits = 0;
      std::memcpy(&bits, tester.at(instruction.tiles[1], p / 32 * 32 + mask[p % 32], 4096 + column * 4), 4);
      tester.expect(expected, instruction.tiles[0], p, offset, bits);
    });
    const TileTester::Result run = tester.run(instruction, Engine::Vector, int(tester.pick(1, 2)));
    ASSERT_TRUE(run.ok) << run.message;
    ASSERT_TRUE(tester.equals(expected)) << round;
  }
}

TEST(Shuffle, Max8AndFindIndex8) {
  TileTester tester(63);
  for (int round = 0; round < 80; ++round) {
    const int partitions = tester.oneOf({1, 64, 128}), n = int(tester.pick(8, 3000));
    const TilePattern source = rowTile(Dtype::F32, partitions, n, 4096);
    std::vector<float> values(size_t(partitions) * n);
    for (float &value : values)
      value = round % 3 == 0 ? float(tester.pick(0, 6)) : float(int32_t(tester.random())); // duplicates
    if (round % 4 == 0)
      values[tester.random() % values.size()] = NAN;
    tester.writeRaw(source, values);
    Instruction max8;
    max8.opcode = Opcode::Max8;
    max8.tiles[0] = rowTile(Dtype::F32, partitions, 8, 0);
    max8.tiles[1] = source;
    ASSERT_TRUE(tester.run(max8, Engine::Vector).ok);
    Instruction find;
    find.opcode = Opcode::FindIndex8;
    find.tiles[0] = rowTile(tester.pick(0, 1) ? Dtype::U32 : Dtype::U16, partitions, 8, 64);
    find.tiles[1] = source;
    find.tiles[2] = max8.tiles[0];
    ASSERT_TRUE(tester.run(find, Engine::Vector).ok);
    const std::vector<float> top = tester.read(max8.tiles[0]), index = tester.read(find.tiles[0]);
    for (int p = 0; p < partitions; ++p) {
      std::vector<int> order(n);
      for (int i = 0; i < n; ++i)
        order[i] = i;
      const float *row = values.data() + size_t(p) * n;
      std::stable_sort(order.begin(), order.end(),
                       [&](int x, int y) { return std::isnan(row[x]) ? !std::isnan(row[y]) : row[x] > row[y]; });
      for (int i = 0; i < 8; ++i) {
        EXPECT_TRUE(top[p * 8 + i] == row[order[i]] || (std::isnan(top[p * 8 + i]) && std::isnan(row[order[i]])));
        EXPECT_EQ(index[p * 8 + i], float(order[i])) << round << " " << p << " " << i;
      }
    }
  }
}

TEST(Shuffle, MissingValueGivesAllOnes) {
  TileTester tester(64);
  Instruction find;
  find.opcode = Opcode::FindIndex8;
  find.tiles[0] = rowTile(Dtype::U32, 1, 8, 0);
  find.tiles[1] = rowTile(Dtype::F32, 1, 8, 64);
  find.tiles[2] = rowTile(Dtype::F32, 1, 8, 128);
  tester.writeRaw<float>(find.tiles[1], {5, 6, 5, 7, 5, 8, 9, 1});
  tester.writeRaw<float>(find.tiles[2], {5, 5, 5, 5, 100, 9, 6, 0});
  ASSERT_TRUE(tester.run(find, Engine::Vector).ok);
  EXPECT_EQ(tester.readRaw<uint32_t>(find.tiles[0]), (std::vector<uint32_t>{0, 2, 4, ~0u, ~0u, 6, 1, ~0u}));
}

} // namespace
} // namespace neuroncore::emulator::test

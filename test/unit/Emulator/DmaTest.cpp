// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Transfers with random patterns on both sides against a walk element by element; gather, scatter, run-time sizes,
// bounds.

#include <random>

#include "ProgramTester.h"
#include "TileTester.h"

namespace neuroncore::emulator::test {
namespace {

/// Byte offsets of the elements of an HBM pattern in order, and whether each is inside its run-time limits.
std::vector<int64_t> hbmOffsets(const isa::HbmPattern &hbm) {
  std::vector<int64_t> offsets;
  std::array<uint32_t, 5> i = {};
  for (i[0] = 0; i[0] < hbm.count[0]; ++i[0])
    for (i[1] = 0; i[1] < hbm.count[1]; ++i[1])
      for (i[2] = 0; i[2] < hbm.count[2]; ++i[2])
        for (i[3] = 0; i[3] < hbm.count[3]; ++i[3])
          for (i[4] = 0; i[4] < hbm.count[4]; ++i[4]) {
            int64_t offset = hbm.byteOffset;
            for (int d = 0; d < 5; ++d)
              offset += int64_t(i[d]) * hbm.step[d];
            offsets.push_back(offset);
          }
  return offsets;
}

class DmaPatterns : public ::testing::Test {
protected:
  std::mt19937_64 random_{111};
  int64_t pick(int64_t low, int64_t high) { return low + int64_t(random_() % uint64_t(high - low + 1)); }

  /// A random factorisation of `n` over up to `dims` dimensions, and steps that do not overlap.
  isa::HbmPattern randomHbm(int64_t n, int64_t bytes, bool shuffled) {
    isa::HbmPattern hbm;
    std::vector<int64_t> counts;
    int64_t rest = n;
    for (int d = 0; d < 4 && rest > 1; ++d) {
      std::vector<int64_t> divisors;
      for (int64_t k = 1; k <= rest; ++k)
        if (rest % k == 0)
          divisors.push_back(k);
      const int64_t count = divisors[random_() % divisors.size()];
      counts.push_back(count);
      rest /= count;
    }
    counts.push_back(rest);
    std::vector<int> order(counts.size());
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = int(i);
    if (shuffled)
      std::shuffle(order.begin(), order.end(), random_);
    int64_t extent = bytes;
    std::vector<int64_t> steps(counts.size());
    for (int d : order) {
      steps[d] = extent;
      extent = extent * counts[d] + (pick(0, 2) == 0 ? bytes * pick(1, 3) : 0);
    }
    for (size_t i = 0; i < counts.size(); ++i) { // innermost last
      hbm.count[4 - i] = uint32_t(counts[i]);
      hbm.step[4 - i] = steps[i];
    }
    return hbm;
  }
};

TEST_F(DmaPatterns, AnyPatternOnBothSides) {
  for (int round = 0; round < 120; ++round) {
    ProgramTester tester;
    const Dtype dtypes[] = {Dtype::F32, Dtype::Bf16, Dtype::I8, Dtype::I64, Dtype::I32};
    const Dtype from = dtypes[random_() % 5];
    Dtype to = pick(0, 1) ? from : dtypes[random_() % 5];
    if (isa::dtypeBytes(from) == 8 || isa::dtypeBytes(to) == 8)
      to = from;
    const int partitions = int(pick(1, 128)), n = int(pick(1, 60));
    TileTester shape(uint64_t(round) + 1); // for random tiles only
    const TilePattern middle = randomTile(shape, from, partitions, 0, n, 0, 4096, false);
    const int in = tester.addVariable("in", 1 << 20),
              out = tester.addVariable("out", 1 << 20, neff::Variable::Kind::Output);
    for (uint8_t &byte : tester.memory[in])
      byte = uint8_t(random_());
    if (from == Dtype::F32 || from == Dtype::Bf16) // no NaN when casting
      for (size_t i = 0; i + 4 <= tester.memory[in].size(); i += isa::dtypeBytes(from))
        tester.memory[in][i + isa::dtypeBytes(from) - 1] &= 0xbf;
    Instruction &load = tester.load(Engine::Sync, middle, in);
    isa::HbmPattern source = randomHbm(int64_t(partitions) * n, isa::dtypeBytes(from), pick(0, 1));
    source.variable = uint16_t(in);
    source.dtype = from;
    source.byteOffset = pick(0, 40) * isa::dtypeBytes(from);
    load.hbm[1] = source;
    load.update = increment(0);
    Instruction &store = tester.store(Engine::Sync, out, middle);
    isa::HbmPattern target = randomHbm(int64_t(partitions) * n, isa::dtypeBytes(to), pick(0, 1));
    target.variable = uint16_t(out);
    target.dtype = to;
    store.hbm[0] = target;
    store.numWaits = 1;
    store.waits[0] = atLeast(0, 16);
    std::vector<uint8_t> expected = tester.memory[out];
    const std::vector<int64_t> read = hbmOffsets(source), written = hbmOffsets(target);
    for (size_t i = 0; i < read.size(); ++i) {
      const uint8_t *element = tester.memory[in].data() + read[i];
      uint64_t bits = 0;
      std::memcpy(&bits, element, isa::dtypeBytes(from));
      if (from != to)
        bits = elementBits(to, float(elementValue(from, element)));
      std::memcpy(expected.data() + written[i], &bits, isa::dtypeBytes(to));
    }
    ASSERT_EQ(tester.run(int(pick(1, 2))), "");
    ASSERT_TRUE(tester.memory[out] == expected)
        << "round " << round << " " << isa::toString(from) << " " << isa::toString(to);
  }
}

TEST(Dma, Transpose) {
  for (Dtype dtype : {Dtype::F32, Dtype::Bf16})
    for (bool fromHbm : {true, false}) {
      ProgramTester tester;
      const int rows = 70, columns = 100;
      const int bytes = isa::dtypeBytes(dtype);
      const int in = tester.addVariable("in", rows * columns * bytes, neff::Variable::Kind::Input, dtype);
      const int out = tester.addVariable("out", rows * columns * bytes, neff::Variable::Kind::Output, dtype);
      for (size_t i = 0; i < tester.memory[in].size(); ++i)
        tester.memory[in][i] = uint8_t(i * 7 + i / 256);
      const TilePattern source = tile(dtype, rows, columns, 0), turned = tile(dtype, columns, rows, 8192);
      tester.load(Engine::Sync, source, in).update = increment(0);
      Instruction transpose = tester.stream(Engine::Sync).back(); // its HBM side is the whole matrix
      transpose.opcode = Opcode::DmaTranspose;
      transpose.tiles[0] = turned;
      if (!fromHbm) {
        transpose.tiles[1] = source;
        transpose.hbm[1] = isa::HbmPattern();
      }
      transpose.numWaits = 1;
      transpose.waits[0] = atLeast(0, 16);
      transpose.update = increment(1);
      tester.add(Engine::Sync, transpose);
      Instruction &store = tester.store(Engine::Sync, out, turned);
      store.numWaits = 1;
      store.waits[0] = atLeast(1, 16);
      ASSERT_EQ(tester.run(), "");
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < columns; ++c)
          ASSERT_EQ(std::memcmp(tester.memory[out].data() + (c * rows + r) * bytes,
                                tester.memory[in].data() + (r * columns + c) * bytes, bytes),
                    0);
    }
}

/// Gather rows of a table, and scatter them to other places.
struct IndexedProgram {
  ProgramTester tester;
  int table, index, out;
  static constexpr int kRows = 50, kColumns = 12, kPartitions = 8;

  explicit IndexedProgram(isa::OutOfBoundsMode mode = isa::OutOfBoundsMode::Error, Dtype indexType = Dtype::I64) {
    table = tester.addVariable("table", kRows * kColumns * 4);
    index = tester.addVariable("index", kPartitions * 8, neff::Variable::Kind::Input, indexType);
    out = tester.addVariable("out", kRows * kColumns * 4, neff::Variable::Kind::Output);
    for (int i = 0; i < kRows * kColumns; ++i)
      tester.data<float>(table)[i] = float(i);
    const TilePattern indices = tile(indexType, kPartitions, 1, 0), rows = tile(Dtype::F32, kPartitions, kColumns, 64);
    tester.load(Engine::Gpsimd, indices, index).update = increment(0);
    Instruction &gather = tester.load(Engine::Gpsimd, rows, table);
    gather.tiles[2] = indices;
    gather.oobMode = mode;
    gather.hbm[1].count = {kPartitions, 1, 1, 1, kColumns};
    gather.hbm[1].step = {kColumns * 4, 0, 0, 0, 4};
    gather.numWaits = 1;
    gather.waits[0] = atLeast(0, 16);
    gather.update = increment(1);
    Instruction &scatter = tester.store(Engine::Gpsimd, out, rows);
    scatter.tiles[2] = indices;
    scatter.oobMode = mode;
    scatter.hbm[0].count = {kPartitions, 1, 1, 1, kColumns};
    scatter.hbm[0].step = {kColumns * 4, 0, 0, 0, 4};
    scatter.numWaits = 1;
    scatter.waits[0] = atLeast(1, 16);
  }
};

TEST(Dma, GatherAndScatter) {
  IndexedProgram program;
  const int64_t rows[] = {3, 49, 0, 17, 21, 22, 48, 9};
  std::copy(std::begin(rows), std::end(rows), program.tester.data<int64_t>(program.index));
  ASSERT_EQ(program.tester.run(2), "");
  for (int64_t row : rows)
    for (int c = 0; c < IndexedProgram::kColumns; ++c)
      EXPECT_EQ(program.tester.data<float>(program.out)[row * IndexedProgram::kColumns + c],
                float(row * IndexedProgram::kColumns + c));
}

TEST(Dma, IndexOutOfBoundsNamesIndexVariableAndRange) {
  for (int64_t bad : {int64_t(-1), int64_t(50), int64_t(1) << 40, INT64_MIN, INT64_MAX}) {
    IndexedProgram program;
    program.tester.data<int64_t>(program.index)[5] = bad;
    const std::string message = program.tester.run();
    EXPECT_NE(message.find("index " + std::to_string(bad) +
                           " (partition 5) is out of bounds for variable 'table': "
                           "expected 0 <= index < 50"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("gpsimd[1] DMA_DIRECT2D"), std::string::npos) << message;
  }
}

TEST(Dma, IndexOutOfBoundsMaySkip) {
  IndexedProgram program(isa::OutOfBoundsMode::Skip);
  int64_t *index = program.tester.data<int64_t>(program.index);
  for (int i = 0; i < 8; ++i)
    index[i] = i == 4 ? 1000 : i;
  ASSERT_EQ(program.tester.run(), "");
  EXPECT_EQ(program.tester.data<float>(program.out)[3 * 12], 36.0f);
  EXPECT_EQ(program.tester.data<float>(program.out)[4 * 12], 0.0f);
}

TEST(Dma, ThirtyTwoBitIndices) {
  IndexedProgram program(isa::OutOfBoundsMode::Error, Dtype::I32);
  int32_t *index = program.tester.data<int32_t>(program.index);
  for (int i = 0; i < 8; ++i)
    index[i] = 49 - i;
  ASSERT_EQ(program.tester.run(), "");
  EXPECT_EQ(program.tester.data<float>(program.out)[49 * 12 + 11], float(49 * 12 + 11));
  index[0] = -1;
  EXPECT_NE(program.tester.run().find("index -1"), std::string::npos);
}

/// A run-time row count and a run-time row length: pairing follows the static pattern.
TEST(Dma, RuntimeSizes) {
  for (int rows : {0, 1, 5, 8})
    for (int columns : {0, 3, 10}) {
      ProgramTester tester;
      const int in = tester.addVariable("in", 8 * 10 * 4),
                out = tester.addVariable("out", 8 * 10 * 4, neff::Variable::Kind::Output);
      for (int i = 0; i < 80; ++i)
        tester.data<float>(in)[i] = float(i + 1);
      const TilePattern middle = tile(Dtype::F32, 8, 10, 0);
      Instruction zero;
      zero.opcode = Opcode::Memset;
      zero.tiles[0] = middle;
      zero.scalars[0] = isa::ScalarOperand::constant(0);
      zero.update = increment(2);
      tester.add(Engine::Gpsimd, zero);
      tester.move(Engine::Gpsimd, 1, rows);
      tester.move(Engine::Gpsimd, 2, columns);
      Instruction &load = tester.load(Engine::Gpsimd, middle, in);
      load.hbm[1].countRegister[3] = 1;
      load.hbm[1].countRegister[4] = 2;
      load.numWaits = 1;
      load.waits[0] = atLeast(2, 1);
      load.update = increment(0);
      Instruction &store = tester.store(Engine::Gpsimd, out, middle);
      store.numWaits = 1;
      store.waits[0] = atLeast(0, 16);
      ASSERT_EQ(tester.run(), "");
      for (int r = 0; r < 8; ++r)
        for (int c = 0; c < 10; ++c)
          EXPECT_EQ(tester.data<float>(out)[r * 10 + c], r < rows && c < columns ? float(r * 10 + c + 1) : 0.0f);
    }
}

TEST(Dma, RuntimeSizeAboveItsBoundAndOffsetsOutsideAreErrors) {
  ProgramTester tester;
  const int in = tester.addVariable("in", 8 * 10 * 4);
  tester.move(Engine::Gpsimd, 1, 9);
  Instruction &load = tester.load(Engine::Gpsimd, tile(Dtype::F32, 8, 10, 0), in);
  load.hbm[1].countRegister[3] = 1;
  const std::string message = tester.run();
  EXPECT_NE(message.find("run-time size of dimension 3 of source is 9, above its bound 8"), std::string::npos)
      << message;

  for (int32_t block : {1, -1}) {
    ProgramTester offset;
    const int variable = offset.addVariable("in", 8 * 10 * 4);
    offset.move(Engine::Gpsimd, 1, block);
    Instruction &shifted = offset.load(Engine::Gpsimd, tile(Dtype::F32, 8, 10, 0), variable);
    shifted.hbm[1].terms[0] = {1, 40};
    const std::string text = offset.run();
    EXPECT_NE(text.find("of variable 'in', which has 320 bytes"), std::string::npos) << text;
  }
}

TEST(Dma, LargeOffsetsUseSixtyFourBits) {
  ProgramTester tester;
  const int in = tester.addVariable("in", 4096);
  tester.move(Engine::Gpsimd, 1, 1 << 30);
  Instruction &load = tester.load(Engine::Gpsimd, tile(Dtype::F32, 8, 10, 0), in);
  load.hbm[1].terms[0] = {1, int64_t(1) << 34}; // wraps to 0 in 64 bits
  EXPECT_NE(tester.run().find("beyond 64 bits"), std::string::npos);
}

} // namespace
} // namespace neuroncore::emulator::test

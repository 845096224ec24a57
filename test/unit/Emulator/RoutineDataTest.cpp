// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// select, gather, scatter, sort, arg_reduce, scan, partition_reduce.

#include <algorithm>

#include "TileTester.h"

namespace neuroncore::emulator::test {
namespace {

using isa::ArgReduceFunction;
using isa::PartitionReduceFunction;
using isa::Routine;
using isa::ScanFunction;
using isa::ScatterFunction;
using isa::SortFunction;

Instruction call(Routine routine, int function) {
  Instruction instruction;
  instruction.opcode = Opcode::GpsimdCall;
  instruction.routine = routine;
  instruction.routineFunction = uint8_t(function);
  return instruction;
}

TEST(RoutineData, SelectMovesBits) {
  TileTester tester(91);
  for (Dtype dtype : {Dtype::U8, Dtype::Bf16, Dtype::F32, Dtype::I64}) {
    Instruction select = call(Routine::Select, 0);
    select.tiles[0] = rowTile(dtype, 64, 700, 0);
    select.tiles[1] = rowTile(Dtype::U8, 64, 700, 8192);
    select.tiles[2] = randomTile(tester, dtype, 64, 0, 700, 16384, 16384, true);
    select.tiles[3] = rowTile(dtype, 64, 700, 32768);
    for (int i = 0; i < 4; ++i)
      tester.fill(select.tiles[i]);
    forElements(select.tiles[1], [&](int p, int64_t offset, int64_t i) {
      if (i % 2)
        *tester.at(select.tiles[1], p, offset) = 0;
    });
    std::vector<uint8_t> expected = tester.snapshot();
    const auto readBits = [&](const TilePattern &tile) {
      std::vector<uint64_t> bits;
      forElements(tile, [&](int p, int64_t offset, int64_t) {
        uint64_t raw = 0;
        std::memcpy(&raw, tester.at(tile, p, offset), isa::dtypeBytes(tile.dtype));
        bits.push_back(raw);
      });
      return bits;
    };
    const std::vector<uint64_t> flags = readBits(select.tiles[1]), a = readBits(select.tiles[2]),
                                b = readBits(select.tiles[3]);
    ASSERT_TRUE(tester.run(select, Engine::Gpsimd, 2).ok);
    size_t i = 0;
    forElements(select.tiles[0], [&](int p, int64_t offset, int64_t) {
      tester.expect(expected, select.tiles[0], p, offset, flags[i] ? a[i] : b[i]);
      ++i;
    });
    ASSERT_TRUE(tester.equals(expected));
  }
}

TEST(RoutineData, GatherAndItsRange) {
  TileTester tester(92);
  Instruction gather = call(Routine::Gather, 0);
  gather.tiles[0] = rowTile(Dtype::F32, 32, 50, 0);
  gather.tiles[1] = rowTile(Dtype::F32, 32, 90, 4096);
  gather.tiles[2] = rowTile(Dtype::I32, 32, 50, 8192);
  tester.fill(gather.tiles[1], 1, false);
  std::vector<int32_t> index(32 * 50);
  for (int32_t &i : index)
    i = int32_t(tester.pick(0, 89));
  tester.writeRaw(gather.tiles[2], index);
  const std::vector<float> source = tester.read(gather.tiles[1]);
  ASSERT_TRUE(tester.run(gather, Engine::Gpsimd).ok);
  const std::vector<float> out = tester.read(gather.tiles[0]);
  for (int p = 0; p < 32; ++p)
    for (int i = 0; i < 50; ++i)
      EXPECT_EQ(out[p * 50 + i], source[p * 90 + index[p * 50 + i]]);
  for (int32_t bad : {-1, 90}) {
    index[70] = bad;
    tester.writeRaw(gather.tiles[2], index);
    const TileTester::Result run = tester.run(gather, Engine::Gpsimd);
    EXPECT_FALSE(run.ok);
    EXPECT_EQ(run.kind, ErrorKind::OutOfBounds);
    EXPECT_NE(run.message.find(cat("index ", bad, " (partition 1)")), std::string::npos) << run.message;
  }
}

TEST(RoutineData, ScatterInAscendingOrder) {
  TileTester tester(93);
  const struct {
    ScatterFunction function;
    std::vector<float> expected;
  } cases[] = {{ScatterFunction::Store, {10, 4, 10, 3}},
               {ScatterFunction::Add, {10, 15, 10, 13}},
               {ScatterFunction::Multiply, {10, 80, 10, 30}},
               {ScatterFunction::Maximum, {10, 10, 10, 10}},
               {ScatterFunction::Minimum, {10, 1, 10, 3}}};
  for (const auto &test : cases)
    for (Dtype dtype : {Dtype::F32, Dtype::Bf16, Dtype::I32}) {
      Instruction scatter = call(Routine::Scatter, int(test.function));
      scatter.tiles[0] = rowTile(dtype, 1, 4, 0);
      scatter.tiles[1] = rowTile(dtype, 1, 3, 64);
      scatter.tiles[2] = rowTile(Dtype::I64, 1, 3, 128);
      const auto write = [&](const TilePattern &tile, const std::vector<float> &values) {
        size_t i = 0;
        forElements(tile, [&](int p, int64_t offset, int64_t) {
          const uint64_t bits = elementBits(dtype, values[i++]);
          std::memcpy(tester.at(tile, p, offset), &bits, isa::dtypeBytes(dtype));
        });
      };
      write(scatter.tiles[0], {10, 10, 10, 10});
      // Index 1 is hit twice: 1 (or 2 when multiplying), then 4.
      const float first = test.function == ScatterFunction::Multiply ? 2.0f : 1.0f;
      write(scatter.tiles[1], {first, 3, 4});
      tester.writeRaw<int64_t>(scatter.tiles[2], {1, 3, 1});
      ASSERT_TRUE(tester.run(scatter, Engine::Gpsimd).ok);
      EXPECT_EQ(tester.read(scatter.tiles[0]), test.expected) << isa::toString(test.function);
    }
}

TEST(RoutineData, SortIsStableAndPutsNanLast) {
  TileTester tester(94);
  for (bool descending : {false, true})
    for (Dtype dtype : {Dtype::F32, Dtype::Bf16, Dtype::I64, Dtype::U8}) {
      Instruction sort = call(Routine::Sort, int(descending ? SortFunction::Descending : SortFunction::Ascending));
      const int n = 333;
      sort.tiles[0] = rowTile(dtype, 8, n, 0);
      sort.tiles[1] = rowTile(dtype, 8, n, 8192);
      sort.tiles[5] = rowTile(Dtype::I64, 8, n, 16384);
      tester.fill(sort.tiles[1], 1.0);
      const std::vector<float> in = tester.read(sort.tiles[1]);
      ASSERT_TRUE(tester.run(sort, Engine::Gpsimd).ok);
      const std::vector<float> out = tester.read(sort.tiles[0]);
      const std::vector<int64_t> index = tester.readRaw<int64_t>(sort.tiles[5]);
      if (dtype == Dtype::I64)
        continue; // float loses bits; covered by the exact test below
      for (int p = 0; p < 8; ++p) {
        std::vector<int64_t> order(n);
        for (int i = 0; i < n; ++i)
          order[i] = i;
        const float *row = in.data() + size_t(p) * n;
        const auto before = [&](int64_t a, int64_t b) {
          return row[a] < row[b] || (std::isnan(row[b]) && !std::isnan(row[a]));
        };
        std::stable_sort(order.begin(), order.end(),
                         [&](int64_t a, int64_t b) { return descending ? before(b, a) : before(a, b); });
        for (int i = 0; i < n; ++i) {
          ASSERT_EQ(index[size_t(p) * n + i], order[i]) << isa::toString(dtype) << " " << descending << " " << i;
          const float expected = row[order[i]], got = out[size_t(p) * n + i];
          ASSERT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected)));
        }
      }
    }
  Instruction exact = call(Routine::Sort, int(SortFunction::Ascending));
  exact.tiles[0] = rowTile(Dtype::I64, 1, 4, 0);
  exact.tiles[1] = rowTile(Dtype::I64, 1, 4, 64);
  tester.writeRaw<int64_t>(exact.tiles[1], {9007199254740993, INT64_MIN, 9007199254740992, -1});
  ASSERT_TRUE(tester.run(exact, Engine::Gpsimd).ok);
  EXPECT_EQ(tester.readRaw<int64_t>(exact.tiles[0]),
            (std::vector<int64_t>{INT64_MIN, -1, 9007199254740992, 9007199254740993}));
}

TEST(RoutineData, ArgReduce) {
  TileTester tester(95);
  Instruction reduce = call(Routine::ArgReduce, int(ArgReduceFunction::Maximum));
  reduce.tiles[0] = rowTile(Dtype::I64, 1, 2, 0);
  reduce.tiles[1] = rowTile(Dtype::F32, 1, 1, 4096);
  reduce.tiles[1].count[2] = 2;
  reduce.tiles[1].step[2] = 5;
  reduce.tiles[1].count[3] = 5;
  reduce.tiles[5] = rowTile(Dtype::F32, 1, 2, 64);
  reduce.immediates = {1, 100};
  tester.writeRaw<float>(reduce.tiles[1], {1, 7, 3, 7, 2, 4, NAN, 9, NAN, 1});
  ASSERT_TRUE(tester.run(reduce, Engine::Gpsimd).ok);
  EXPECT_EQ(tester.readRaw<int64_t>(reduce.tiles[0]), (std::vector<int64_t>{101, 101}));
  EXPECT_EQ(tester.read(reduce.tiles[5])[0], 7);
  EXPECT_TRUE(std::isnan(tester.read(reduce.tiles[5])[1]));
  reduce.routineFunction = uint8_t(ArgReduceFunction::Minimum);
  ASSERT_TRUE(tester.run(reduce, Engine::Gpsimd).ok);
  EXPECT_EQ(tester.readRaw<int64_t>(reduce.tiles[0]), (std::vector<int64_t>{100, 101}));
  Instruction wide = call(Routine::ArgReduce, int(ArgReduceFunction::Maximum));
  wide.tiles[0] = rowTile(Dtype::I64, 1, 1, 0);
  wide.tiles[1] = rowTile(Dtype::I64, 1, 3, 64);
  wide.immediates = {1, 0};
  tester.writeRaw<int64_t>(wide.tiles[1], {9007199254740992, 9007199254740993, 5});
  ASSERT_TRUE(tester.run(wide, Engine::Gpsimd).ok);
  EXPECT_EQ(tester.readRaw<int64_t>(wide.tiles[0])[0], 1);
}

TEST(RoutineData, Scan) {
  TileTester tester(96);
  for (ScanFunction function : {ScanFunction::Add, ScanFunction::Multiply, ScanFunction::Maximum, ScanFunction::Minimum,
                                ScanFunction::Logaddexp}) {
    Instruction scan = call(Routine::Scan, int(function));
    const int n = 900;
    scan.tiles[0] = rowTile(Dtype::F32, 16, n, 0);
    scan.tiles[1] = rowTile(Dtype::Bf16, 16, n, 8192);
    scan.tiles[2] = rowTile(Dtype::F32, 16, 1, 16384);
    tester.fill(scan.tiles[1], 1.0, function != ScanFunction::Logaddexp);
    tester.fill(scan.tiles[2], 1.0, false);
    const std::vector<float> in = tester.read(scan.tiles[1]), initial = tester.read(scan.tiles[2]);
    ASSERT_TRUE(tester.run(scan, Engine::Gpsimd, 2).ok);
    const std::vector<float> out = tester.read(scan.tiles[0]);
    for (int p = 0; p < 16; ++p) {
      float state = initial[p];
      for (int i = 0; i < n; ++i) {
        const float x = in[size_t(p) * n + i];
        switch (function) {
        case ScanFunction::Add:
          state += x;
          break;
        case ScanFunction::Multiply:
          state *= x;
          break;
        case ScanFunction::Maximum:
          state = std::isnan(state) || state >= x ? state : x;
          break;
        case ScanFunction::Minimum:
          state = std::isnan(state) || state <= x ? state : x;
          break;
        case ScanFunction::Logaddexp:
          state = float(logl(expl(state) + expl(x)));
        }
        const float got = out[size_t(p) * n + i];
        if (function == ScanFunction::Logaddexp) {
          ASSERT_NEAR(got, state, 2e-6 * std::fabs(state));
          state = got;
        } else {
          ASSERT_TRUE(got == state || (std::isnan(got) && std::isnan(state))) << isa::toString(function) << i;
        }
      }
    }
  }
  Instruction integers = call(Routine::Scan, int(ScanFunction::Add));
  integers.tiles[0] = rowTile(Dtype::I64, 1, 2, 0);
  integers.tiles[1] = rowTile(Dtype::I32, 1, 2, 64);
  for (int i = 0; i < 2; ++i) { // two rows of three: each starts anew
    integers.tiles[i].count[2] = 2;
    integers.tiles[i].step[2] = 3;
    integers.tiles[i].count[3] = 3;
  }
  tester.writeRaw<int32_t>(integers.tiles[1], {INT32_MAX, INT32_MAX, 1, -1, -2, -3});
  ASSERT_TRUE(tester.run(integers, Engine::Gpsimd).ok);
  EXPECT_EQ(tester.readRaw<int64_t>(integers.tiles[0]),
            (std::vector<int64_t>{INT32_MAX, 2ll * INT32_MAX, 2ll * INT32_MAX + 1, -1, -3, -6}));
}

TEST(RoutineData, PartitionReduce) {
  TileTester tester(97);
  for (PartitionReduceFunction function :
       {PartitionReduceFunction::Add, PartitionReduceFunction::Maximum, PartitionReduceFunction::Minimum,
        PartitionReduceFunction::LogicalAnd, PartitionReduceFunction::LogicalOr}) {
    Instruction reduce = call(Routine::PartitionReduce, int(function));
    reduce.tiles[0] = rowTile(Dtype::F32, 1, 700, 0);
    reduce.tiles[1] = rowTile(Dtype::F32, 100, 700, 8192);
    tester.fill(reduce.tiles[1], 1.0, true);
    const std::vector<float> in = tester.read(reduce.tiles[1]);
    ASSERT_TRUE(tester.run(reduce, Engine::Gpsimd, 2).ok);
    const std::vector<float> out = tester.read(reduce.tiles[0]);
    for (int i = 0; i < 700; ++i) {
      float expected = in[i];
      const bool logical =
          function == PartitionReduceFunction::LogicalAnd || function == PartitionReduceFunction::LogicalOr;
      if (logical)
        expected = expected != 0;
      for (int p = 1; p < 100; ++p) {
        const float x = in[size_t(p) * 700 + i];
        switch (function) {
        case PartitionReduceFunction::Add:
          expected += x;
          break;
        case PartitionReduceFunction::Maximum:
          expected = std::isnan(expected) || expected >= x ? expected : x;
          break;
        case PartitionReduceFunction::Minimum:
          expected = std::isnan(expected) || expected <= x ? expected : x;
          break;
        case PartitionReduceFunction::LogicalAnd:
          expected = expected != 0 && x != 0;
          break;
        default:
          expected = expected != 0 || x != 0;
        }
      }
      ASSERT_TRUE(out[i] == expected || (std::isnan(out[i]) && std::isnan(expected))) << isa::toString(function) << i;
    }
  }
  Instruction wide = call(Routine::PartitionReduce, int(PartitionReduceFunction::Add));
  wide.tiles[0] = rowTile(Dtype::I64, 1, 1, 0);
  wide.tiles[1] = rowTile(Dtype::I32, 128, 1, 64);
  tester.writeRaw(wide.tiles[1], std::vector<int32_t>(128, INT32_MAX));
  ASSERT_TRUE(tester.run(wide, Engine::Gpsimd).ok);
  EXPECT_EQ(tester.readRaw<int64_t>(wide.tiles[0])[0], 128ll * INT32_MAX);
}

} // namespace
} // namespace neuroncore::emulator::test

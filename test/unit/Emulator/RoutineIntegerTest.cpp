// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cast, int_binary, int_compare, int_unary, int_reduce. Single values in the tables were taken from CPU PyTorch.

#include "TileTester.h"

namespace neuroncore::emulator::test {
namespace {

using isa::IntBinaryFunction;
using isa::IntCompareFunction;
using isa::IntReduceFunction;
using isa::IntUnaryFunction;
using isa::Routine;

Instruction call(Routine routine, int function, Dtype dst, Dtype src, int n, int sources) {
  Instruction instruction;
  instruction.opcode = Opcode::GpsimdCall;
  instruction.routine = routine;
  instruction.routineFunction = uint8_t(function);
  instruction.tiles[0] = rowTile(dst, 1, n, 0);
  for (int i = 1; i <= sources; ++i)
    instruction.tiles[i] = rowTile(src, 1, n, uint32_t(i) * 16384);
  return instruction;
}

TEST(RoutineCast, FloatToIntegerAsPyTorch) {
  TileTester tester(81);
  const std::vector<float> in = {NAN,    INFINITY, -INFINITY, 3e9f,     -3e9f,         1e20f,
                                 300.7f, -1.5f,    -200.9f,   70000.5f, 2147483648.0f, 2147483520.0f};
  const int n = int(in.size());
  const auto convert = [&](Dtype to) {
    const Instruction instruction = call(Routine::Cast, 0, to, Dtype::F32, n, 1);
    tester.writeRaw(instruction.tiles[1], in);
    const TileTester::Result run = tester.run(instruction, Engine::Gpsimd);
    EXPECT_TRUE(run.ok) << run.message;
    return instruction.tiles[0];
  };
  EXPECT_EQ(tester.readRaw<int8_t>(convert(Dtype::I8)),
            (std::vector<int8_t>{0, 0, 0, 0, 0, 0, 44, -1, 56, 112, 0, -128}));
  EXPECT_EQ(tester.readRaw<uint8_t>(convert(Dtype::U8)),
            (std::vector<uint8_t>{0, 0, 0, 0, 0, 0, 44, 255, 56, 112, 0, 128}));
  EXPECT_EQ(tester.readRaw<int16_t>(convert(Dtype::I16)),
            (std::vector<int16_t>{0, 0, 0, 0, 0, 0, 300, -1, -200, 4464, 0, -128}));
  const int32_t low = INT32_MIN;
  EXPECT_EQ(tester.readRaw<int32_t>(convert(Dtype::I32)),
            (std::vector<int32_t>{low, low, low, low, low, low, 300, -1, -200, 70000, low, 2147483520}));
  const int64_t lowest = INT64_MIN;
  EXPECT_EQ(tester.readRaw<int64_t>(convert(Dtype::I64)),
            (std::vector<int64_t>{lowest, lowest, lowest, 3000000000, -3000000000, lowest, 300, -1, -200, 70000,
                                  2147483648, 2147483520}));
  Instruction toBool = call(Routine::Cast, int(isa::CastFunction::Bool), Dtype::U8, Dtype::F32, 5, 1);
  tester.writeRaw<float>(toBool.tiles[1], {0.0f, -0.0f, NAN, 0.25f, -3});
  ASSERT_TRUE(tester.run(toBool, Engine::Gpsimd).ok);
  EXPECT_EQ(tester.readRaw<uint8_t>(toBool.tiles[0]), (std::vector<uint8_t>{0, 0, 1, 1, 1}));
}

TEST(RoutineCast, IntegersAreExact) {
  TileTester tester(82);
  const std::vector<int64_t> in = {0,          -1,          255,       256,       -129,
                                   2147483648, -2147483649, INT64_MAX, INT64_MIN, 9007199254740993};
  const int n = int(in.size());
  Instruction narrow = call(Routine::Cast, 0, Dtype::I32, Dtype::I64, n, 1);
  tester.writeRaw(narrow.tiles[1], in);
  ASSERT_TRUE(tester.run(narrow, Engine::Gpsimd).ok);
  const std::vector<int32_t> words = tester.readRaw<int32_t>(narrow.tiles[0]);
  for (int i = 0; i < n; ++i)
    EXPECT_EQ(words[i], int32_t(uint32_t(uint64_t(in[i]))));
  Instruction toFloat = call(Routine::Cast, 0, Dtype::F32, Dtype::I64, n, 1);
  tester.writeRaw(toFloat.tiles[1], in);
  ASSERT_TRUE(tester.run(toFloat, Engine::Gpsimd).ok);
  const std::vector<float> floats = tester.read(toFloat.tiles[0]);
  for (int i = 0; i < n; ++i)
    EXPECT_EQ(floats[i], float(in[i]));
  Instruction toDouble = call(Routine::Cast, 0, Dtype::F64, Dtype::I64, n, 1);
  tester.writeRaw(toDouble.tiles[1], in);
  ASSERT_TRUE(tester.run(toDouble, Engine::Gpsimd).ok);
  const std::vector<double> doubles = tester.readRaw<double>(toDouble.tiles[0]);
  for (int i = 0; i < n; ++i)
    EXPECT_EQ(doubles[i], double(in[i]));
}

template <typename T> void checkBinary(TileTester &tester, Dtype dtype) {
  const int n = 1500;
  std::vector<T> a(n), b(n);
  for (int i = 0; i < n; ++i) {
    a[i] = T(tester.random());
    b[i] = T(tester.random());
    if (i % 3 == 0)
      b[i] = T(tester.pick(-9, 70));
    if (i % 50 == 0)
      a[i] = std::numeric_limits<T>::min();
    if (i % 75 == 0)
      b[i] = T(-1);
  }
  using Wide = __int128;
  for (const isa::RoutineFunctionInfo &info : isa::routineInfo(Routine::IntBinary).functions) {
    const auto function = IntBinaryFunction(info.code);
    const bool divides = function == IntBinaryFunction::FloorDivide || function == IntBinaryFunction::TruncDivide ||
                         function == IntBinaryFunction::Remainder || function == IntBinaryFunction::Fmod;
    std::vector<T> divisors = b;
    if (divides)
      for (T &value : divisors)
        if (value == 0)
          value = 5;
    const Instruction instruction = call(Routine::IntBinary, info.code, dtype, dtype, n, 2);
    tester.writeRaw(instruction.tiles[1], a);
    tester.writeRaw(instruction.tiles[2], divisors);
    const TileTester::Result run = tester.run(instruction, Engine::Gpsimd);
    ASSERT_TRUE(run.ok) << info.name << ": " << run.message;
    const std::vector<T> got = tester.readRaw<T>(instruction.tiles[0]);
    for (int i = 0; i < n; ++i) {
      const Wide x = Wide(a[i]), y = Wide(divisors[i]);
      const int bits = int(sizeof(T) * 8);
      const bool inRange = y >= 0 && y < bits;
      Wide expected = 0;
      switch (function) {
      case IntBinaryFunction::Add:
        expected = x + y;
        break;
      case IntBinaryFunction::Subtract:
        expected = x - y;
        break;
      case IntBinaryFunction::Multiply:
        expected = x * y;
        break;
      case IntBinaryFunction::FloorDivide: {
        expected = x / y;
        if (x % y != 0 && (x < 0) != (y < 0))
          expected -= 1;
        break;
      }
      case IntBinaryFunction::TruncDivide:
        expected = x / y;
        break;
      case IntBinaryFunction::Remainder:
        expected = x % y;
        if (expected != 0 && (expected < 0) != (y < 0))
          expected += y;
        break;
      case IntBinaryFunction::Fmod:
        expected = x % y;
        break;
      case IntBinaryFunction::Maximum:
        expected = x > y ? x : y;
        break;
      case IntBinaryFunction::Minimum:
        expected = x < y ? x : y;
        break;
      case IntBinaryFunction::BitwiseAnd:
        expected = x & y;
        break;
      case IntBinaryFunction::BitwiseOr:
        expected = x | y;
        break;
      case IntBinaryFunction::BitwiseXor:
        expected = x ^ y;
        break;
      case IntBinaryFunction::ShiftLeft:
        expected = inRange ? Wide(uint64_t(std::make_unsigned_t<T>(a[i])) << int(y)) : 0;
        break;
      case IntBinaryFunction::ShiftRightArithmetic:
        expected = inRange ? x >> int(y) : (x < 0 ? -1 : 0);
        break;
      case IntBinaryFunction::ShiftRightLogical:
        expected = inRange ? Wide(std::make_unsigned_t<T>(a[i])) >> int(y) : 0;
        break;
      case IntBinaryFunction::Power: {
        if (y < 0) {
          expected = x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0;
          break;
        }
        uint64_t result = 1, base = uint64_t(x);
        for (uint64_t rest = uint64_t(y); rest; rest >>= 1, base *= base)
          if (rest & 1)
            result *= base;
        expected = Wide(result);
        break;
      }
      }
      ASSERT_EQ(got[i], T(uint64_t(expected))) << info.name << " " << int64_t(a[i]) << " " << int64_t(divisors[i]);
    }
  }
}

TEST(RoutineInteger, BinaryOnAllTypes) {
  TileTester tester(83);
  checkBinary<int8_t>(tester, Dtype::I8);
  checkBinary<uint8_t>(tester, Dtype::U8);
  checkBinary<int16_t>(tester, Dtype::I16);
  checkBinary<int32_t>(tester, Dtype::I32);
  checkBinary<int64_t>(tester, Dtype::I64);
}

TEST(RoutineInteger, DivisionByZeroIsAnError) {
  TileTester tester(84);
  for (IntBinaryFunction function : {IntBinaryFunction::FloorDivide, IntBinaryFunction::TruncDivide,
                                     IntBinaryFunction::Remainder, IntBinaryFunction::Fmod}) {
    const Instruction instruction = call(Routine::IntBinary, int(function), Dtype::I32, Dtype::I32, 3, 2);
    tester.writeRaw<int32_t>(instruction.tiles[1], {1, 2, 3});
    tester.writeRaw<int32_t>(instruction.tiles[2], {1, 0, 3});
    const TileTester::Result run = tester.run(instruction, Engine::Gpsimd);
    EXPECT_FALSE(run.ok);
    EXPECT_EQ(run.kind, ErrorKind::Numerical);
    EXPECT_EQ(run.message, "integer division by zero");
  }
}

TEST(RoutineInteger, CompareAndUnary) {
  TileTester tester(85);
  const std::vector<int64_t> a = {0, -5, INT64_MIN, INT64_MAX, 9007199254740993, 7},
                             b = {0, 5, INT64_MAX, INT64_MIN, 9007199254740992, 7};
  const int n = int(a.size());
  const struct {
    IntCompareFunction function;
    std::vector<uint8_t> expected;
  } compares[] = {
      {IntCompareFunction::Equal, {1, 0, 0, 0, 0, 1}},   {IntCompareFunction::NotEqual, {0, 1, 1, 1, 1, 0}},
      {IntCompareFunction::Less, {0, 1, 1, 0, 0, 0}},    {IntCompareFunction::LessEqual, {1, 1, 1, 0, 0, 1}},
      {IntCompareFunction::Greater, {0, 0, 0, 1, 1, 0}}, {IntCompareFunction::GreaterEqual, {1, 0, 0, 1, 1, 1}}};
  for (const auto &test : compares) {
    const Instruction instruction = call(Routine::IntCompare, int(test.function), Dtype::U8, Dtype::I64, n, 2);
    tester.writeRaw(instruction.tiles[1], a);
    tester.writeRaw(instruction.tiles[2], b);
    ASSERT_TRUE(tester.run(instruction, Engine::Gpsimd).ok);
    EXPECT_EQ(tester.readRaw<uint8_t>(instruction.tiles[0]), test.expected) << isa::toString(test.function);
  }
  const struct {
    IntUnaryFunction function;
    std::vector<int8_t> expected;
  } unaries[] = {{IntUnaryFunction::Negate, {0, 5, -128, -127, -7, -1}},
                 {IntUnaryFunction::Abs, {0, 5, -128, 127, 7, 1}},
                 {IntUnaryFunction::Sign, {0, -1, -1, 1, 1, 1}},
                 {IntUnaryFunction::BitwiseNot, {-1, 4, 127, -128, -8, -2}},
                 {IntUnaryFunction::Square, {0, 25, 0, 1, 49, 1}},
                 {IntUnaryFunction::Relu, {0, 0, 0, 127, 7, 1}}};
  for (const auto &test : unaries) {
    const Instruction instruction = call(Routine::IntUnary, int(test.function), Dtype::I8, Dtype::I8, 6, 1);
    tester.writeRaw<int8_t>(instruction.tiles[1], {0, -5, -128, 127, 7, 1});
    ASSERT_TRUE(tester.run(instruction, Engine::Gpsimd).ok);
    EXPECT_EQ(tester.readRaw<int8_t>(instruction.tiles[0]), test.expected) << isa::toString(test.function);
  }
}

TEST(RoutineInteger, ReduceAccumulatesInTheDestinationType) {
  TileTester tester(86);
  Instruction instruction = call(Routine::IntReduce, int(IntReduceFunction::Add), Dtype::I64, Dtype::I32, 1, 1);
  instruction.tiles[1].count[3] = 2000;
  instruction.immediates[0] = 1;
  tester.writeRaw(instruction.tiles[1], std::vector<int32_t>(2000, 2000000011));
  ASSERT_TRUE(tester.run(instruction, Engine::Gpsimd).ok);
  EXPECT_EQ(tester.readRaw<int64_t>(instruction.tiles[0])[0], 2000ll * 2000000011ll);
  for (IntReduceFunction function : {IntReduceFunction::Maximum, IntReduceFunction::Minimum,
                                     IntReduceFunction::Multiply, IntReduceFunction::BitwiseXor}) {
    Instruction rows = call(Routine::IntReduce, int(function), Dtype::I16, Dtype::I16, 6, 1);
    rows.tiles[1].count[2] = 6;
    rows.tiles[1].step[2] = 41;
    rows.tiles[1].count[3] = 40;
    rows.immediates[0] = 1;
    tester.fill(rows.tiles[1]);
    const std::vector<int16_t> in = tester.readRaw<int16_t>(rows.tiles[1]);
    ASSERT_TRUE(tester.run(rows, Engine::Gpsimd).ok);
    const std::vector<int16_t> out = tester.readRaw<int16_t>(rows.tiles[0]);
    for (int r = 0; r < 6; ++r) {
      int16_t expected = in[r * 40];
      for (int i = 1; i < 40; ++i) {
        const int16_t x = in[r * 40 + i];
        expected = function == IntReduceFunction::Maximum    ? std::max(expected, x)
                   : function == IntReduceFunction::Minimum  ? std::min(expected, x)
                   : function == IntReduceFunction::Multiply ? int16_t(expected * x)
                                                             : int16_t(expected ^ x);
      }
      EXPECT_EQ(out[r], expected);
    }
  }
}

} // namespace
} // namespace neuroncore::emulator::test

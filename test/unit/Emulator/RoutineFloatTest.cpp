// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// float_unary and float_binary against values of CPU PyTorch.

#include "TileTester.h"

#include "lib/Emulator/Routines/Routines.h"

namespace neuroncore::emulator::test {
namespace {

using F1 = isa::FloatUnaryFunction;
using F2 = isa::FloatBinaryFunction;

struct UnaryValue {
  F1 function;
  double in, out;
  bool exact;
};
struct BinaryValue {
  F2 function;
  double a, b, out;
  bool exact;
};
#include "RoutineFloatValues.inc"

void check(const std::string &what, float got, double expected, bool exact) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(got)) << what << " = " << got;
    return;
  }
  if (exact) {
    EXPECT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(float(expected))) << what << " = " << got;
    return;
  }
  // Near a zero of the function the fp32 argument itself limits the result.
  if (std::fabs(expected) < 1e-6) {
    EXPECT_NEAR(got, expected, 3e-8) << what;
    return;
  }
  // The recorded values have the error of PyTorch's own single-precision code.
  EXPECT_LE(ulpDistance(got, expected), 8) << what << " = " << got << " expected " << expected;
}

Instruction unaryCall(F1 function, int n) {
  Instruction call;
  call.opcode = Opcode::GpsimdCall;
  call.routine = isa::Routine::FloatUnary;
  call.routineFunction = uint8_t(function);
  call.tiles[0] = rowTile(Dtype::F32, 1, n, 0);
  call.tiles[1] = rowTile(Dtype::F32, 1, n, 16384);
  return call;
}

TEST(RoutineFloat, UnaryAsPyTorch) {
  TileTester tester(71);
  for (const UnaryValue &value : kUnaryValues) {
    const Instruction call = unaryCall(value.function, 1);
    tester.writeRaw<float>(call.tiles[1], {float(value.in)});
    const TileTester::Result run = tester.run(call, Engine::Gpsimd);
    ASSERT_TRUE(run.ok) << run.message;
    check(cat(isa::toString(value.function), "(", value.in, ")"), tester.read(call.tiles[0])[0], value.out,
          value.exact);
  }
}

TEST(RoutineFloat, EveryFunctionIsImplemented) {
  TileTester tester(72);
  for (const isa::RoutineFunctionInfo &info : isa::routineInfo(isa::Routine::FloatUnary).functions) {
    const TileTester::Result run = tester.run(unaryCall(F1(info.code), 3), Engine::Gpsimd);
    EXPECT_TRUE(run.ok) << info.name << ": " << run.message;
  }
}

TEST(RoutineFloat, BinaryAsPyTorch) {
  TileTester tester(73);
  for (const BinaryValue &value : kBinaryValues) {
    Instruction call;
    call.opcode = Opcode::GpsimdCall;
    call.routine = isa::Routine::FloatBinary;
    call.routineFunction = uint8_t(value.function);
    for (int i = 0; i < 3; ++i)
      call.tiles[i] = rowTile(Dtype::F32, 1, 1, uint32_t(i) * 64);
    tester.writeRaw<float>(call.tiles[1], {float(value.a)});
    tester.writeRaw<float>(call.tiles[2], {float(value.b)});
    const TileTester::Result run = tester.run(call, Engine::Gpsimd);
    ASSERT_TRUE(run.ok) << run.message;
    // For NaN some functions of PyTorch give what their checks of other cases happen to give first.
    if ((std::isnan(value.a) || std::isnan(value.b)) && std::isnan(tester.read(call.tiles[0])[0]))
      continue;
    check(cat(isa::toString(value.function), "(", value.a, ", ", value.b, ")"), tester.read(call.tiles[0])[0],
          value.out, value.exact);
  }
}

/// Vector forms over the full range, against long double.
TEST(RoutineFloat, VectorFormsAreAccurate) {
  struct Case {
    F1 function;
    long double (*reference)(long double);
    double low, high, bound;
  };
  const Case cases[] = {
      {F1::Log, logl, 0, 3e38, 1.0},       {F1::Log2, log2l, 0, 3e38, 2.0},   {F1::Log10, log10l, 0, 3e38, 2.0},
      {F1::Exp2, exp2l, -149, 128, 1.5},   {F1::Sin, sinl, -1e30, 1e30, 2.0}, {F1::Cos, cosl, -1e30, 1e30, 2.0},
      {F1::Atan, atanl, -1e30, 1e30, 2.0}, {F1::Erfc, erfcl, -6, 9, 4.0},     {F1::Exp, expl, -104, 88, 1.0},
  };
  std::mt19937_64 random(9);
  for (const Case &test : cases) {
    std::vector<float> in;
    std::uniform_real_distribution<double> uniform(test.low, test.high);
    while (in.size() < 200000) {
      double x = std::ldexp(1.0 + double(random() % 8388608) / 8388608, int(random() % 250) - 126);
      if (random() % 2)
        x = -x;
      if (in.size() % 2 && test.high < 1000)
        x = uniform(random);
      if (in.size() % 3 == 0 && test.high >= 1000)
        x = std::copysign(std::fmod(std::fabs(x), 40000.0), test.low < 0 ? x : 1.0);
      if (x > test.low && x < test.high)
        in.push_back(float(x));
    }
    std::vector<float> out(in.size());
    functionTable().floatUnary[int(test.function)](int64_t(in.size()), in.data(), out.data());
    double worst = 0, at = 0;
    for (size_t i = 0; i < in.size(); ++i) {
      const double distance = ulpDistance(out[i], test.reference(in[i]));
      if (distance > worst)
        worst = distance, at = in[i];
    }
    EXPECT_LE(worst, test.bound) << isa::toString(test.function) << " at " << at;
  }
}

TEST(RoutineFloat, SixteenBitOperands) {
  TileTester tester(74);
  for (Dtype dtype : {Dtype::Bf16, Dtype::F16}) {
    Instruction call = unaryCall(F1::NanToNum, 4);
    call.tiles[0].dtype = call.tiles[1].dtype = dtype;
    size_t i = 0;
    const float in[] = {INFINITY, -INFINITY, NAN, 1.5f};
    forElements(call.tiles[1], [&](int p, int64_t offset, int64_t) {
      const uint64_t bits = elementBits(dtype, in[i++]);
      std::memcpy(tester.at(call.tiles[1], p, offset), &bits, 2);
    });
    ASSERT_TRUE(tester.run(call, Engine::Gpsimd).ok);
    const float largest = dtype == Dtype::Bf16 ? 3.3895313892515355e38f : 65504.0f;
    EXPECT_EQ(tester.read(call.tiles[0]), (std::vector<float>{largest, -largest, 0.0f, 1.5f}));
  }
  // nextafter steps in the operands' type.
  Instruction next;
  next.opcode = Opcode::GpsimdCall;
  next.routine = isa::Routine::FloatBinary;
  next.routineFunction = uint8_t(F2::Nextafter);
  for (int i = 0; i < 3; ++i)
    next.tiles[i] = rowTile(Dtype::Bf16, 1, 5, uint32_t(i) * 64);
  const auto bf16 = [](float value) { return uint16_t(elementBits(Dtype::Bf16, value)); };
  tester.writeRaw<uint16_t>(next.tiles[1], {bf16(1), bf16(1), bf16(0), bf16(-1), bf16(2)});
  tester.writeRaw<uint16_t>(next.tiles[2], {bf16(2), bf16(0), bf16(-1), bf16(3), bf16(2)});
  ASSERT_TRUE(tester.run(next, Engine::Gpsimd).ok);
  EXPECT_EQ(tester.readRaw<uint16_t>(next.tiles[0]), (std::vector<uint16_t>{0x3f81, 0x3f7f, 0x8001, 0xbf7f, 0x4000}));
}

} // namespace
} // namespace neuroncore::emulator::test

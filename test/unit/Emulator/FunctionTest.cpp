// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Activation functions: distance from the true function in units in the last place, ranges, special values, and the
// accumulator registers.

#include "TileTester.h"

namespace neuroncore::emulator::test {
namespace {

using isa::ActivationFunction;
using isa::ReduceCommand;
using isa::ScalarOperand;
using LongDouble = long double;

const LongDouble kPi = 3.14159265358979323846264338327950288L;

LongDouble normalCdf(LongDouble x) { return 0.5L * erfcl(-x / sqrtl(2.0L)); }
LongDouble sigmoidOf(LongDouble x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); }

LongDouble reference(ActivationFunction f, LongDouble x) {
  switch (f) {
  case ActivationFunction::Copy:
    return x;
  case ActivationFunction::Square:
    return x * x;
  case ActivationFunction::Relu:
    return x > 0 ? x : 0;
  case ActivationFunction::Abs:
    return fabsl(x);
  case ActivationFunction::Sign:
    return x > 0 ? 1 : x < 0 ? -1 : 0;
  case ActivationFunction::Exp:
    return expl(x);
  case ActivationFunction::Log:
    return logl(x);
  case ActivationFunction::Sigmoid:
    return sigmoidOf(x);
  case ActivationFunction::Tanh:
    return tanhl(x);
  case ActivationFunction::Silu:
    return x * sigmoidOf(x);
  case ActivationFunction::Gelu:
    return x * normalCdf(x);
  case ActivationFunction::GeluApprxTanh:
    return x * sigmoidOf(2 * sqrtl(2 / kPi) * (x + 0.044715L * x * x * x));
  case ActivationFunction::Erf:
    return erfl(x);
  case ActivationFunction::Softplus:
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
  case ActivationFunction::Mish:
    return x * tanhl(x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x)));
  case ActivationFunction::Sin:
    return sinl(x);
  case ActivationFunction::Arctan:
    return atanl(x);
  case ActivationFunction::Sqrt:
    return sqrtl(x);
  case ActivationFunction::Rsqrt:
    return 1 / sqrtl(x);
  case ActivationFunction::Reciprocal:
    return 1 / x;
  case ActivationFunction::GeluDx:
    return normalCdf(x) + x * expl(-x * x / 2) / sqrtl(2 * kPi);
  case ActivationFunction::SiluDx:
    return sigmoidOf(x) * (1 + x * sigmoidOf(-x));
  case ActivationFunction::ErfDx:
    return 2 / sqrtl(kPi) * expl(-x * x);
  }
  return 0;
}

struct Accuracy {
  ActivationFunction function;
  double low, high;                      // sampled range
  double bound;                          // ulp
  double exceptLow = 1, exceptHigh = -1; // cancellation zone: absolute error only
};

std::vector<float> evaluate(ActivationFunction f, const std::vector<float> &in) {
  std::vector<float> out(in.size());
  const float one = 1.0f, nothing = -0.0f;
  activationRows(f, 1, int64_t(in.size()), {in.data(), 0}, {&one, 0, 0}, {&nothing, 0, 0}, {out.data(), 0});
  return out;
}

TEST(Function, AccuracyInUlp) {
  // Ranges end where a factor (a sigmoid, a tail) is no longer a normal number: relative accuracy ends there.
  const Accuracy cases[] = {
      {ActivationFunction::Exp, -104, 89, 1.0},
      {ActivationFunction::Log, 0x1p-64, 0x1p64, 1.0},
      {ActivationFunction::Sigmoid, -104, 104, 2.5},
      {ActivationFunction::Tanh, -12, 12, 2.0},
      {ActivationFunction::Silu, -87, 100, 2.5},
      {ActivationFunction::Gelu, -0.6, 13, 2.5},
      {ActivationFunction::Gelu, -12.8, -0.6, 3.5}, // where 1 + erf cancels
      {ActivationFunction::GeluApprxTanh, -9.9, 11, 2.5},
      {ActivationFunction::Erf, -6, 6, 1.5},
      {ActivationFunction::Softplus, -100, 100, 2.0},
      {ActivationFunction::Mish, -87, 100, 3.0},
      {ActivationFunction::Sin, -3.1415925, 3.1415925, 1.7},
      {ActivationFunction::Arctan, -1.5707963, 1.5707963, 2.0},
      {ActivationFunction::Sqrt, 0x1p-116, 0x1p118, 0.51},
      {ActivationFunction::Rsqrt, 0x1p-87, 0x1p97, 1.6},
      {ActivationFunction::Reciprocal, 0x1p-42, 0x1p42, 0.51},
      {ActivationFunction::GeluDx, -5, 13, 3.0, -1.3, 0},
      {ActivationFunction::SiluDx, -20, 100, 4.0, -2.2, -0.7},
      {ActivationFunction::ErfDx, -9, 9, 2.5},
      {ActivationFunction::Square, -100, 100, 0.51},
  };
  std::mt19937_64 random(5);
  for (const Accuracy &test : cases) {
    std::vector<float> in;
    std::uniform_real_distribution<double> uniform(test.low, test.high);
    for (int i = 0; i < 200000; ++i)
      in.push_back(float(uniform(random)));
    // Logarithmic samples, from the smallest normal number on.
    for (int i = 0; i < 200000; ++i) {
      const double magnitude = std::ldexp(1.0 + double(random() % 8388608) / 8388608, int(random() % 250) - 126);
      for (double x : {magnitude, -magnitude})
        if (x >= test.low && x <= test.high)
          in.push_back(float(x));
    }
    const std::vector<float> out = evaluate(test.function, in);
    double worst = 0, worstAt = 0;
    for (size_t i = 0; i < in.size(); ++i) {
      if (in[i] > test.exceptLow && in[i] < test.exceptHigh) {
        EXPECT_NEAR(out[i], double(reference(test.function, in[i])), 3e-7) << isa::toString(test.function) << in[i];
        continue;
      }
      const double distance = ulpDistance(out[i], reference(test.function, in[i]));
      if (distance > worst)
        worst = distance, worstAt = in[i];
    }
    RecordProperty(std::string(isa::toString(test.function)), std::to_string(worst));
    EXPECT_LE(worst, test.bound) << isa::toString(test.function) << " at " << worstAt;
  }
}

TEST(Function, SpecialValues) {
  const float inf = INFINITY, nan = NAN;
  struct Case {
    ActivationFunction function;
    float in, out;
  };
  const Case cases[] = {
      {ActivationFunction::Exp, -inf, 0},
      {ActivationFunction::Exp, inf, inf},
      {ActivationFunction::Exp, 88.8f, inf},
      {ActivationFunction::Exp, -104.0f, 0},
      {ActivationFunction::Exp, 0.0f, 1},
      {ActivationFunction::Exp, nan, nan},
      {ActivationFunction::Sigmoid, inf, 1},
      {ActivationFunction::Sigmoid, -inf, 0},
      {ActivationFunction::Tanh, inf, 1},
      {ActivationFunction::Tanh, -inf, -1},
      {ActivationFunction::Tanh, -0.0f, -0.0f},
      {ActivationFunction::Erf, inf, 1},
      {ActivationFunction::Erf, -inf, -1},
      {ActivationFunction::Erf, -0.0f, -0.0f},
      {ActivationFunction::Gelu, inf, inf},
      {ActivationFunction::Gelu, -inf, nan},
      {ActivationFunction::Gelu, nan, nan},
      {ActivationFunction::GeluApprxTanh, inf, inf},
      {ActivationFunction::GeluApprxTanh, -inf, nan},
      {ActivationFunction::Silu, inf, inf},
      {ActivationFunction::Silu, -inf, nan},
      {ActivationFunction::Softplus, inf, inf},
      {ActivationFunction::Softplus, -inf, 0},
      {ActivationFunction::Mish, inf, inf},
      {ActivationFunction::Mish, -inf, nan},
      {ActivationFunction::Relu, nan, nan},
      {ActivationFunction::Relu, -1, 0},
      {ActivationFunction::Sign, nan, 0},
      {ActivationFunction::Sign, -0.0f, 0},
      {ActivationFunction::GeluDx, inf, 1},
      {ActivationFunction::GeluDx, -inf, 0},
      {ActivationFunction::SiluDx, inf, 1},
      {ActivationFunction::SiluDx, -inf, 0},
      {ActivationFunction::ErfDx, inf, 0},
      // Outside the documented range.
      {ActivationFunction::Log, 0, nan},
      {ActivationFunction::Log, -1, nan},
      {ActivationFunction::Log, 0x1p65f, nan},
      {ActivationFunction::Log, 0x1p-65f, nan},
      {ActivationFunction::Sin, 3.2f, nan},
      {ActivationFunction::Sin, -9, nan},
      {ActivationFunction::Arctan, 1.6f, nan},
      {ActivationFunction::Sqrt, 0, nan},
      {ActivationFunction::Sqrt, 0x1p119f, nan},
      {ActivationFunction::Rsqrt, 0x1p-88f, nan},
      {ActivationFunction::Reciprocal, 0x1p43f, nan},
      {ActivationFunction::Reciprocal, -0x1p-43f, nan},
      {ActivationFunction::Reciprocal, -4, -0.25f},
      {ActivationFunction::Log, 0x1p-64f, -44.361420f},
  };
  for (const Case &test : cases) {
    const float got = evaluate(test.function, {test.in})[0];
    if (std::isnan(test.out))
      EXPECT_TRUE(std::isnan(got)) << isa::toString(test.function) << "(" << test.in << ") = " << got;
    else
      EXPECT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(test.out))
          << isa::toString(test.function) << "(" << test.in << ") = " << got;
  }
}

/// The instruction: scale and bias, dtypes, strides, the running sum.
TEST(Function, ActivationInstruction) {
  TileTester tester(21);
  const Dtype dtypes[] = {Dtype::F32, Dtype::Bf16, Dtype::F16, Dtype::U8};
  for (int round = 0; round < 200; ++round) {
    const int partitions = tester.oneOf({1, 32, 77, 128});
    const int n = tester.pick(0, 3) == 0 ? int(tester.pick(1, 7)) : int(tester.pick(1, 2500));
    Instruction instruction;
    instruction.opcode = Opcode::Activation;
    instruction.function =
        tester.oneOf({ActivationFunction::Copy, ActivationFunction::Exp, ActivationFunction::Relu,
                      ActivationFunction::Square, ActivationFunction::Tanh, ActivationFunction::Silu});
    instruction.tiles[0] = randomTile(tester, dtypes[tester.random() % 4], partitions, 0, n, 0, 32768, false);
    instruction.tiles[1] = randomTile(tester, dtypes[tester.random() % 3], partitions, 0, n, 32768, 32768, true);
    tester.fill(instruction.tiles[1], 1.0, tester.pick(0, 1));
    std::vector<float> scale(partitions, 1.0f), bias(partitions, -0.0f);
    const TilePattern scales = rowTile(Dtype::F32, partitions, 1, 65536),
                      biases = rowTile(Dtype::F32, partitions, 1, 65540);
    switch (tester.pick(0, 2)) {
    case 1:
      std::fill(scale.begin(), scale.end(), -0.7f);
      instruction.scalars[0] = ScalarOperand::constant(-0.7f);
      break;
    case 2:
      tester.fill(scales, 1.0, false);
      scale = tester.read(scales);
      instruction.scalars[0] = ScalarOperand::vector(MemorySpace::Sbuf, 65536);
    }
    switch (tester.pick(0, 2)) {
    case 1:
      std::fill(bias.begin(), bias.end(), 0.25f);
      instruction.scalars[1] = ScalarOperand::constant(0.25f);
      break;
    case 2:
      tester.fill(biases, 1.0, false);
      bias = tester.read(biases);
      instruction.scalars[1] = ScalarOperand::vector(MemorySpace::Sbuf, 65540);
    }
    const TilePattern result = rowTile(Dtype::F32, partitions, 1, 65544);
    instruction.reduceCommand = tester.oneOf({ReduceCommand::Idle, ReduceCommand::Reset, ReduceCommand::Reduce,
                                              ReduceCommand::ResetReduce, ReduceCommand::LoadReduce});
    const bool reads = instruction.reduceCommand != ReduceCommand::Idle;
    if (reads)
      instruction.tiles[2] = result;
    tester.fill(result, 1.0, false);
    std::vector<float> accumulators(kPartitions);
    for (int p = 0; p < kPartitions; ++p)
      accumulators[p] = tester.machine().scalarAccumulators[p] = float(p);
    const std::vector<float> before = tester.read(result);
    const std::vector<float> in = tester.read(instruction.tiles[1]);
    std::vector<float> scaled(in.size());
    for (size_t i = 0; i < in.size(); ++i)
      scaled[i] = std::fmaf(in[i], scale[i / size_t(n)], bias[i / size_t(n)]);
    const std::vector<float> values = evaluate(instruction.function, scaled);
    std::vector<uint8_t> expected = tester.snapshot();
    const TileTester::Result run = tester.run(instruction, Engine::Scalar, int(tester.pick(1, 2)));
    ASSERT_TRUE(run.ok) << run.message;
    size_t i = 0;
    forElements(instruction.tiles[0], [&](int p, int64_t offset, int64_t) {
      const float value = values[i++];
      uint64_t bits = elementBits(instruction.tiles[0].dtype, value);
      if (std::isnan(value))
        std::memcpy(&bits, tester.at(instruction.tiles[0], p, offset), isa::dtypeBytes(instruction.tiles[0].dtype));
      tester.expect(expected, instruction.tiles[0], p, offset, bits);
    });
    if (reads)
      for (int p = 0; p < partitions; ++p) {
        // The documented order: 64 partials, then a binary tree.
        float partials[64] = {};
        for (int k = 0; k < n; ++k)
          partials[k % 64] += values[size_t(p) * n + k];
        for (int half = 32; half >= 1; half /= 2)
          for (int k = 0; k < half; ++k)
            partials[k] += partials[k + half];
        float wanted = 0;
        switch (instruction.reduceCommand) {
        case ReduceCommand::Reset:
          wanted = 0;
          break;
        case ReduceCommand::Reduce:
          wanted = accumulators[p] + partials[0];
          break;
        case ReduceCommand::ResetReduce:
          wanted = partials[0];
          break;
        default:
          wanted = before[p] + partials[0];
        }
        uint64_t bits = std::bit_cast<uint32_t>(wanted);
        float got;
        std::memcpy(&got, tester.at(result, p, result.byteOffset), 4);
        if (std::isnan(wanted) && std::isnan(got))
          bits = std::bit_cast<uint32_t>(got);
        tester.expect(expected, result, p, result.byteOffset, bits);
      }
    ASSERT_TRUE(tester.equals(expected)) << "round " << round << " n " << n << " command "
                                         << int(instruction.reduceCommand);
  }
}

} // namespace
} // namespace neuroncore::emulator::test

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TileTester.h"

namespace neuroncore::emulator::test {
namespace {

using isa::AluOp;
using isa::ReduceCommand;
using isa::ScalarOperand;

/// The documented order, written out.
float reduceInOrder(AluOp op, const std::vector<float> &values) {
  const auto combine = [&](float a, float b) -> float {
    switch (op) {
    case AluOp::Add:
      return a + b;
    case AluOp::Multiply:
      return a * b;
    case AluOp::Maximum:
      return std::isnan(a) ? a : std::isnan(b) ? b : std::max(a, b);
    case AluOp::Minimum:
      return std::isnan(a) ? a : std::isnan(b) ? b : std::min(a, b);
    case AluOp::LogicalAnd:
      return a != 0 && b != 0;
    case AluOp::LogicalOr:
      return a != 0 || b != 0;
    default:
      return (a != 0) != (b != 0);
    }
  };
  float identity = 0;
  if (op == AluOp::Multiply || op == AluOp::LogicalAnd)
    identity = 1;
  else if (op == AluOp::Maximum)
    identity = -INFINITY;
  else if (op == AluOp::Minimum)
    identity = INFINITY;
  std::vector<float> partials(64, identity);
  for (size_t i = 0; i < values.size(); ++i)
    partials[i % 64] = combine(partials[i % 64], values[i]);
  for (int half = 32; half >= 1; half /= 2)
    for (int i = 0; i < half; ++i)
      partials[i] = combine(partials[i], partials[i + half]);
  return partials[0];
}

TEST(Reduce, TensorReduceInDocumentedOrder) {
  TileTester tester(31);
  const AluOp ops[] = {AluOp::Add,        AluOp::Multiply,  AluOp::Maximum,   AluOp::Minimum,
                       AluOp::LogicalAnd, AluOp::LogicalOr, AluOp::LogicalXor};
  const Dtype dtypes[] = {Dtype::F32, Dtype::Bf16, Dtype::F16, Dtype::I32, Dtype::U8};
  for (int round = 0; round < 200; ++round) {
    const int partitions = tester.oneOf({1, 32, 100, 128});
    Instruction instruction;
    instruction.opcode = Opcode::TensorReduce;
    instruction.op0 = ops[tester.random() % std::size(ops)];
    instruction.negate = tester.pick(0, 3) == 0;
    const Dtype dtype = tester.pick(0, 1) ? Dtype::F32 : dtypes[tester.random() % std::size(dtypes)];
    TilePattern source = rowTile(dtype, partitions, 1, 32768);
    int kept = 1, reduced = 1;
    switch (tester.pick(0, 3)) {
    case 0: // whole row
      reduced = int(tester.pick(1, 3000));
      source.count[3] = uint16_t(reduced);
      instruction.axes = 1;
      break;
    case 1: // kept x reduced, with a gap
      kept = int(tester.pick(1, 40));
      reduced = int(tester.pick(1, 70));
      source.count[2] = uint16_t(kept);
      source.step[2] = int16_t(reduced + tester.pick(0, 3));
      source.count[3] = uint16_t(reduced);
      instruction.axes = 1;
      break;
    case 2: // reduced dimension outside in memory
      kept = int(tester.pick(1, 200));
      reduced = int(tester.pick(1, 40));
      source.count[2] = uint16_t(kept);
      source.step[2] = 1;
      source.count[3] = uint16_t(reduced);
      source.step[3] = int16_t(kept);
      instruction.axes = 1;
      break;
    default: // two reduced dimensions
      kept = int(tester.pick(1, 9));
      source.count[1] = uint16_t(kept);
      source.step[1] = 300;
      source.count[2] = uint16_t(tester.pick(1, 14));
      source.step[2] = 20;
      source.count[3] = uint16_t(tester.pick(1, 20));
      reduced = source.count[2] * source.count[3];
      instruction.axes = 2;
    }
    instruction.tiles[1] = source;
    instruction.tiles[0] =
        randomTile(tester, tester.pick(0, 1) ? Dtype::F32 : Dtype::Bf16, partitions, 0, kept, 0, 16384, false);
    tester.fill(source, 1.0, tester.pick(0, 1));
    const std::vector<float> in = tester.read(source);
    std::vector<uint8_t> expected = tester.snapshot();
    const TileTester::Result run = tester.run(instruction, Engine::Vector, int(tester.pick(1, 3)));
    ASSERT_TRUE(run.ok) << run.message;
    size_t at = 0;
    forElements(instruction.tiles[0], [&](int p, int64_t offset, int64_t) {
      float value = reduceInOrder(instruction.op0, std::vector<float>(in.begin() + at, in.begin() + at + reduced));
      at += reduced;
      if (instruction.negate)
        value = -value;
      uint64_t bits = elementBits(instruction.tiles[0].dtype, value);
      uint64_t got = 0;
      std::memcpy(&got, tester.at(instruction.tiles[0], p, offset), isa::dtypeBytes(instruction.tiles[0].dtype));
      if (std::isnan(value) && std::isnan(elementValue(instruction.tiles[0].dtype, reinterpret_cast<uint8_t *>(&got))))
        bits = got;
      // The sign of a zero extreme is not defined.
      if (value == 0 && (instruction.op0 == AluOp::Maximum || instruction.op0 == AluOp::Minimum))
        bits = got;
      tester.expect(expected, instruction.tiles[0], p, offset, bits);
    });
    ASSERT_TRUE(tester.equals(expected)) << "round " << round << " " << isa::toString(instruction.op0) << " kept "
                                         << kept << " reduced " << reduced << " " << isa::toString(dtype);
  }
}

TEST(Reduce, BitvecReduce) {
  TileTester tester(32);
  for (AluOp op : {AluOp::BitwiseAnd, AluOp::BitwiseOr, AluOp::BitwiseXor}) {
    Instruction instruction;
    instruction.opcode = Opcode::TensorReduce;
    instruction.op0 = op;
    instruction.axes = 1;
    instruction.tiles[1] = rowTile(Dtype::I32, 64, 37, 4096);
    instruction.tiles[0] = rowTile(Dtype::I32, 64, 1, 0);
    tester.fill(instruction.tiles[1]);
    const std::vector<int32_t> in = tester.readRaw<int32_t>(instruction.tiles[1]);
    ASSERT_TRUE(tester.run(instruction, Engine::Vector).ok);
    const std::vector<int32_t> out = tester.readRaw<int32_t>(instruction.tiles[0]);
    for (int p = 0; p < 64; ++p) {
      int32_t wanted = in[p * 37];
      for (int i = 1; i < 37; ++i)
        wanted = op == AluOp::BitwiseAnd  ? wanted & in[p * 37 + i]
                 : op == AluOp::BitwiseOr ? wanted | in[p * 37 + i]
                                          : wanted ^ in[p * 37 + i];
      EXPECT_EQ(out[p], wanted);
    }
  }
}

TEST(Reduce, TensorScalarReduce) {
  TileTester tester(33);
  for (int round = 0; round < 80; ++round) {
    const int partitions = tester.oneOf({1, 64, 128});
    const int n = int(tester.pick(1, 2200));
    Instruction instruction;
    instruction.opcode = Opcode::TensorScalarReduce;
    instruction.op0 = tester.oneOf({AluOp::Add, AluOp::Multiply, AluOp::Subtract});
    instruction.reverse0 = tester.pick(0, 1);
    instruction.op1 = tester.oneOf({AluOp::Add, AluOp::Maximum, AluOp::Minimum, AluOp::Multiply});
    instruction.reduceCommand = tester.oneOf({ReduceCommand::ResetReduce, ReduceCommand::Reduce});
    instruction.scalars[0] = ScalarOperand::constant(0.75f);
    instruction.tiles[0] = rowTile(tester.pick(0, 1) ? Dtype::F32 : Dtype::Bf16, partitions, n, 0);
    instruction.tiles[1] = rowTile(tester.pick(0, 1) ? Dtype::F32 : Dtype::Bf16, partitions, n, 16384);
    instruction.tiles[2] = rowTile(Dtype::F32, partitions, 1, 32768);
    tester.fill(instruction.tiles[1], 1.0, false);
    for (int p = 0; p < kPartitions; ++p)
      tester.machine().vectorAccumulators[p] = 0.5f;
    const std::vector<float> in = tester.read(instruction.tiles[1]);
    ASSERT_TRUE(tester.run(instruction, Engine::Vector).ok);
    const std::vector<float> result = tester.read(instruction.tiles[2]);
    const std::vector<float> out = tester.read(instruction.tiles[0]);
    for (int p = 0; p < partitions; ++p) {
      std::vector<float> row(n);
      for (int i = 0; i < n; ++i) {
        const float x = in[size_t(p) * n + i], s = 0.75f;
        const float a = instruction.reverse0 ? s : x, b = instruction.reverse0 ? x : s;
        row[i] = instruction.op0 == AluOp::Add ? a + b : instruction.op0 == AluOp::Multiply ? a * b : a - b;
        const uint64_t bits = elementBits(instruction.tiles[0].dtype, row[i]);
        ASSERT_EQ(out[size_t(p) * n + i],
                  float(elementValue(instruction.tiles[0].dtype, reinterpret_cast<const uint8_t *>(&bits))));
      }
      float wanted = reduceInOrder(instruction.op1, row);
      if (instruction.reduceCommand == ReduceCommand::Reduce)
        switch (instruction.op1) {
        case AluOp::Add:
          wanted = 0.5f + wanted;
          break;
        case AluOp::Multiply:
          wanted = 0.5f * wanted;
          break;
        case AluOp::Maximum:
          wanted = std::max(0.5f, wanted);
          break;
        default:
          wanted = std::min(0.5f, wanted);
        }
      ASSERT_EQ(result[p], wanted) << round;
    }
  }
}

TEST(Reduce, BatchNormStatistics) {
  TileTester tester(34);
  for (int n : {1, 2, 7, 64, 511, 512}) {
    Instruction stats;
    stats.opcode = Opcode::BnStats;
    stats.tiles[0] = rowTile(Dtype::F32, 128, 6, 0);
    stats.tiles[1] = rowTile(Dtype::F32, 128, n, 4096);
    tester.fill(stats.tiles[1], 3.0, false);
    ASSERT_TRUE(tester.run(stats, Engine::Vector).ok);
    Instruction aggregate;
    aggregate.opcode = Opcode::BnAggr;
    aggregate.tiles[0] = rowTile(Dtype::F32, 128, 2, 64);
    aggregate.tiles[1] = stats.tiles[0];
    ASSERT_TRUE(tester.run(aggregate, Engine::Vector).ok);
    const std::vector<float> in = tester.read(stats.tiles[1]), six = tester.read(stats.tiles[0]),
                             two = tester.read(aggregate.tiles[0]);
    for (int p = 0; p < 128; ++p) {
      double mean[3] = {}, squares[3] = {};
      int count[3] = {};
      for (int part = 0; part < 3; ++part) { // even, odd, all
        for (int i = 0; i < n; ++i)
          if (part == 2 || i % 2 == part)
            mean[part] += in[size_t(p) * n + i], ++count[part];
        if (count[part])
          mean[part] /= count[part];
        for (int i = 0; i < n; ++i)
          if (part == 2 || i % 2 == part)
            squares[part] += std::pow(in[size_t(p) * n + i] - mean[part], 2);
      }
      for (int part = 0; part < 2; ++part) {
        EXPECT_EQ(six[p * 6 + 3 * part], float(count[part]));
        EXPECT_NEAR(six[p * 6 + 3 * part + 1], mean[part], 1e-5);
        EXPECT_NEAR(six[p * 6 + 3 * part + 2], squares[part], 1e-5 * (1 + squares[part]));
      }
      EXPECT_NEAR(two[p * 2], mean[2], 1e-5);
      EXPECT_NEAR(two[p * 2 + 1], squares[2] / n, 1e-5 * (1 + squares[2] / n));
    }
  }
}

} // namespace
} // namespace neuroncore::emulator::test

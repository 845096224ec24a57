// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exact integers: tensor_tensor on GpSimd beyond 2^24, and bitvec operators.

#include "TileTester.h"

namespace neuroncore::emulator::test {
namespace {

using isa::AluOp;
using isa::ScalarOperand;

int64_t word(AluOp op, int64_t a, int64_t b) {
  switch (op) {
  case AluOp::Add:
    return a + b;
  case AluOp::Subtract:
    return a - b;
  case AluOp::Multiply:
    return int64_t(uint64_t(a) * uint64_t(b));
  case AluOp::Maximum:
    return std::max(a, b);
  case AluOp::Minimum:
    return std::min(a, b);
  case AluOp::LogicalAnd:
    return a && b;
  case AluOp::LogicalOr:
    return a || b;
  case AluOp::LogicalXor:
    return !a != !b;
  case AluOp::Equal:
    return a == b;
  case AluOp::Less:
    return a < b;
  case AluOp::GreaterEqual:
    return a >= b;
  default:
    ADD_FAILURE();
    return 0;
  }
}

TEST(Integer, GpsimdWordsAreExact) {
  TileTester tester(41);
  for (int round = 0; round < 80; ++round) {
    const bool isSigned = tester.pick(0, 1);
    const Dtype dtype = isSigned ? Dtype::I32 : Dtype::U32;
    const int n = int(tester.pick(1, 900)), partitions = tester.oneOf({1, 32, 128});
    Instruction instruction;
    instruction.opcode = Opcode::TensorTensor;
    instruction.op0 =
        tester.oneOf({AluOp::Add, AluOp::Subtract, AluOp::Multiply, AluOp::Maximum, AluOp::Minimum, AluOp::LogicalAnd,
                      AluOp::LogicalOr, AluOp::LogicalXor, AluOp::Equal, AluOp::Less, AluOp::GreaterEqual});
    for (int i = 0; i < 3; ++i) {
      instruction.tiles[i] = randomTile(tester, dtype, partitions, 0, n, uint32_t(i) * 32768, 32768, i > 0);
      tester.fill(instruction.tiles[i]);
    }
    const std::vector<uint32_t> a = tester.readRaw<uint32_t>(instruction.tiles[1]),
                                b = tester.readRaw<uint32_t>(instruction.tiles[2]);
    std::vector<uint8_t> expected = tester.snapshot();
    const TileTester::Result run = tester.run(instruction, Engine::Gpsimd, int(tester.pick(1, 2)));
    ASSERT_TRUE(run.ok) << run.message;
    size_t i = 0;
    forElements(instruction.tiles[0], [&](int p, int64_t offset, int64_t) {
      const int64_t x = isSigned ? int64_t(int32_t(a[i])) : int64_t(a[i]);
      const int64_t y = isSigned ? int64_t(int32_t(b[i])) : int64_t(b[i]);
      tester.expect(expected, instruction.tiles[0], p, offset, uint64_t(word(instruction.op0, x, y)));
      ++i;
    });
    ASSERT_TRUE(tester.equals(expected)) << round << " " << isa::toString(instruction.op0);
  }
}

TEST(Integer, VectorEngineGoesThroughFp32) {
  TileTester tester(42);
  Instruction instruction;
  instruction.opcode = Opcode::TensorTensor;
  instruction.op0 = AluOp::Add;
  for (int i = 0; i < 3; ++i)
    instruction.tiles[i] = rowTile(Dtype::I32, 1, 1, uint32_t(i) * 64);
  tester.writeRaw<int32_t>(instruction.tiles[1], {16777217});
  tester.writeRaw<int32_t>(instruction.tiles[2], {1});
  ASSERT_TRUE(tester.run(instruction, Engine::Vector).ok);
  EXPECT_EQ(tester.readRaw<int32_t>(instruction.tiles[0])[0], 16777216);
  ASSERT_TRUE(tester.run(instruction, Engine::Gpsimd).ok);
  EXPECT_EQ(tester.readRaw<int32_t>(instruction.tiles[0])[0], 16777218);
}

uint64_t bitvec(AluOp op, uint64_t a, uint64_t b, int bits, bool isSigned) {
  const uint64_t mask = (1ull << bits) - 1;
  const int64_t sa = int64_t(a << (64 - bits)) >> (64 - bits);
  const int64_t shift = isSigned ? int64_t(b << (64 - bits)) >> (64 - bits) : int64_t(b);
  const bool inRange = shift >= 0 && shift < bits;
  switch (op) {
  case AluOp::BitwiseAnd:
    return a & b;
  case AluOp::BitwiseOr:
    return a | b;
  case AluOp::BitwiseXor:
    return a ^ b;
  case AluOp::BitwiseNot:
    return ~a & mask;
  case AluOp::ShiftLeft:
    return inRange ? a << shift & mask : 0;
  case AluOp::ShiftRightLogical:
    return inRange ? a >> shift : 0;
  default: // arithmetic
    if (!isSigned)
      return inRange ? a >> shift : 0;
    return uint64_t(inRange ? sa >> shift : (sa < 0 ? -1 : 0)) & mask;
  }
}

TEST(Integer, Bitvec) {
  TileTester tester(43);
  const Dtype dtypes[] = {Dtype::I8, Dtype::U8, Dtype::I16, Dtype::U16, Dtype::I32, Dtype::U32};
  for (int round = 0; round < 150; ++round) {
    const Dtype dtype = dtypes[tester.random() % std::size(dtypes)];
    const bool isSigned = dtype == Dtype::I8 || dtype == Dtype::I16 || dtype == Dtype::I32;
    const int bytes = isa::dtypeBytes(dtype), n = int(tester.pick(1, 700)), partitions = tester.oneOf({1, 64, 128});
    const AluOp op = tester.oneOf({AluOp::BitwiseAnd, AluOp::BitwiseOr, AluOp::BitwiseXor, AluOp::ShiftLeft,
                                   AluOp::ShiftRightLogical, AluOp::ShiftRightArithmetic, AluOp::BitwiseNot});
    const bool scalar = op == AluOp::BitwiseNot || tester.pick(0, 1);
    Instruction instruction;
    instruction.opcode = scalar ? Opcode::TensorScalar : Opcode::TensorTensor;
    instruction.op0 = op;
    for (int i = 0; i < (scalar ? 2 : 3); ++i) {
      instruction.tiles[i] = randomTile(tester, dtype, partitions, 0, n, uint32_t(i) * 32768, 32768, i > 0);
      tester.fill(instruction.tiles[i]);
    }
    const uint32_t scalarBits = uint32_t(tester.oneOf({0, 1, 3, 7, 31, 40, -1, 0x55}));
    if (scalar && op != AluOp::BitwiseNot)
      instruction.scalars[0] = ScalarOperand::constantBits(scalarBits);
    if (!scalar && tester.pick(0, 1)) // small shift amounts
      forElements(instruction.tiles[2], [&](int p, int64_t offset, int64_t) {
        const uint64_t amount = uint64_t(tester.pick(0, 34));
        std::memcpy(tester.at(instruction.tiles[2], p, offset), &amount, bytes);
      });
    const auto readBits = [&](const TilePattern &tile) {
      std::vector<uint64_t> bits;
      forElements(tile, [&](int p, int64_t offset, int64_t) {
        uint64_t raw = 0;
        std::memcpy(&raw, tester.at(tile, p, offset), bytes);
        bits.push_back(raw);
      });
      return bits;
    };
    const std::vector<uint64_t> a = readBits(instruction.tiles[1]);
    std::vector<uint64_t> b(a.size(), scalarBits & ((1ull << (8 * bytes)) - 1));
    if (!scalar)
      b = readBits(instruction.tiles[2]);
    std::vector<uint8_t> expected = tester.snapshot();
    const TileTester::Result run = tester.run(instruction, Engine::Vector);
    ASSERT_TRUE(run.ok) << run.message;
    size_t i = 0;
    forElements(instruction.tiles[0], [&](int p, int64_t offset, int64_t) {
      tester.expect(expected, instruction.tiles[0], p, offset, bitvec(op, a[i], b[i], 8 * bytes, isSigned));
      ++i;
    });
    ASSERT_TRUE(tester.equals(expected)) << round << " " << isa::toString(op) << " " << isa::toString(dtype);
  }
}

TEST(Integer, OperatorsWithoutIntegerFormAreRefused) {
  TileTester tester(44);
  Instruction instruction;
  instruction.opcode = Opcode::TensorTensor;
  instruction.op0 = AluOp::Divide;
  for (int i = 0; i < 3; ++i)
    instruction.tiles[i] = rowTile(Dtype::I32, 1, 1, uint32_t(i) * 64);
  const TileTester::Result run = tester.run(instruction, Engine::Gpsimd);
  EXPECT_FALSE(run.ok);
  EXPECT_NE(run.message.find("divide"), std::string::npos) << run.message;
}

} // namespace
} // namespace neuroncore::emulator::test

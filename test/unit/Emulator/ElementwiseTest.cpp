// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element-wise instructions with random shapes, strides, dtypes and engines against a scalar reference, bit for bit,
// all of memory compared.

#include "TileTester.h"

namespace neuroncore::emulator::test {
namespace {

using isa::AluOp;
using isa::ReduceCommand;
using isa::ScalarOperand;

constexpr Dtype kVectorDtypes[] = {Dtype::F32, Dtype::Bf16, Dtype::F16, Dtype::F8e4m3, Dtype::F8e5m2, Dtype::I8,
                                   Dtype::U8,  Dtype::I16,  Dtype::U16, Dtype::I32,    Dtype::U32};
constexpr AluOp kArithmetic[] = {
    AluOp::Add,      AluOp::Subtract,     AluOp::Multiply,   AluOp::Divide,    AluOp::Maximum,    AluOp::Minimum,
    AluOp::AbsMax,   AluOp::AbsMin,       AluOp::LogicalAnd, AluOp::LogicalOr, AluOp::LogicalXor, AluOp::Equal,
    AluOp::NotEqual, AluOp::GreaterEqual, AluOp::Greater,    AluOp::LessEqual, AluOp::Less,       AluOp::Bypass};
constexpr AluOp kUnary[] = {AluOp::Abs, AluOp::Square, AluOp::Relu, AluOp::Rsqrt, AluOp::Reciprocal};

float alu(AluOp op, float a, float b) {
  switch (op) {
  case AluOp::Bypass:
    return a;
  case AluOp::Add:
    return a + b;
  case AluOp::Subtract:
    return a - b;
  case AluOp::Multiply:
    return a * b;
  case AluOp::Divide:
    return a / b;
  case AluOp::Power:
    return float(std::pow(double(a), double(b)));
  case AluOp::Maximum:
    return std::isnan(a) ? a : std::isnan(b) ? b : b > a ? b : a;
  case AluOp::Minimum:
    return std::isnan(a) ? a : std::isnan(b) ? b : b < a ? b : a;
  case AluOp::AbsMax:
    return alu(AluOp::Maximum, std::fabs(a), std::fabs(b));
  case AluOp::AbsMin:
    return alu(AluOp::Minimum, std::fabs(a), std::fabs(b));
  case AluOp::LogicalAnd:
    return a != 0 && b != 0;
  case AluOp::LogicalOr:
    return a != 0 || b != 0;
  case AluOp::LogicalXor:
    return (a != 0) != (b != 0);
  case AluOp::Equal:
    return a == b;
  case AluOp::NotEqual:
    return a != b;
  case AluOp::GreaterEqual:
    return a >= b;
  case AluOp::Greater:
    return a > b;
  case AluOp::LessEqual:
    return a <= b;
  case AluOp::Less:
    return a < b;
  case AluOp::Abs:
    return std::fabs(a);
  case AluOp::Square:
    return a * a;
  case AluOp::Relu:
    return std::isnan(a) ? a : a < 0 ? 0.0f : a;
  case AluOp::Rsqrt:
    return 1.0f / std::sqrt(a);
  case AluOp::Reciprocal:
    return 1.0f / a;
  default:
    ADD_FAILURE() << "no reference for " << isa::toString(op);
    return 0;
  }
}

/// A NaN's payload and sign are not defined by the instruction set: the same NaN bits on both sides are not required.
void expectValues(TileTester &tester, std::vector<uint8_t> &expected, const TilePattern &dst,
                  const std::vector<float> &values) {
  size_t i = 0;
  forElements(dst, [&](int p, int64_t offset, int64_t) {
    const float value = values[i++];
    uint8_t *got = tester.at(dst, p, offset);
    uint64_t bits = elementBits(dst.dtype, value);
    if (std::isnan(value) && isa::isFloatDtype(dst.dtype) && std::isnan(elementValue(dst.dtype, got)))
      std::memcpy(&bits, got, isa::dtypeBytes(dst.dtype));
    tester.expect(expected, dst, p, offset, bits);
  });
}

struct Shape {
  int partitions, start, n;
};

Shape randomShape(TileTester &tester, int64_t maxN = 700) {
  Shape shape;
  shape.partitions = tester.oneOf({1, 3, 31, 32, 33, 64, 100, 128});
  shape.start = shape.partitions <= 32   ? tester.oneOf({0, 32, 64, 96})
                : shape.partitions <= 64 ? tester.oneOf({0, 64})
                                         : 0;
  shape.n = tester.pick(0, 3) == 0 ? int(tester.pick(1, 9)) : int(tester.pick(1, maxN));
  if (tester.pick(0, 2) == 0)
    shape.n = int(tester.oneOf({16, 64, 128, 256, 512}));
  return shape;
}

// Operands lie in separate areas of SBUF and PSUM.
constexpr uint32_t kArea = 16384;
uint32_t area(int i) { return uint32_t(i) * kArea; }

struct Scalars {
  ScalarOperand operand;
  std::vector<float> values; // per partition
};

Scalars randomScalar(TileTester &tester, const Shape &shape, uint32_t offset) {
  Scalars scalars;
  if (tester.pick(0, 1)) {
    const float value = tester.oneOf({0.0f, -0.0f, 1.0f, -1.5f, 0.3f, 100.0f, -1e-3f, 2.0f});
    scalars.operand = ScalarOperand::constant(value);
    scalars.values.assign(shape.partitions, value);
  } else {
    const TilePattern column = rowTile(Dtype::F32, shape.partitions, 1, offset, shape.start);
    tester.fill(column);
    scalars.operand = ScalarOperand::vector(MemorySpace::Sbuf, offset);
    scalars.values = tester.read(column);
  }
  return scalars;
}

Dtype randomDtype(TileTester &tester) {
  // f32 and bf16 have kernels of their own.
  if (tester.pick(0, 1))
    return tester.pick(0, 1) ? Dtype::F32 : Dtype::Bf16;
  return kVectorDtypes[tester.random() % std::size(kVectorDtypes)];
}

MemorySpace randomSpace(TileTester &tester, int n) {
  return n <= 256 && tester.pick(0, 4) == 0 ? MemorySpace::Psum : MemorySpace::Sbuf;
}

TEST(Elementwise, TensorTensor) {
  TileTester tester(11);
  for (int round = 0; round < 250; ++round) {
    const Shape shape = randomShape(tester);
    Instruction instruction;
    instruction.opcode = Opcode::TensorTensor;
    instruction.op0 = kArithmetic[tester.random() % std::size(kArithmetic)];
    const bool psum = randomSpace(tester, shape.n) == MemorySpace::Psum;
    instruction.tiles[0] =
        randomTile(tester, randomDtype(tester), shape.partitions, shape.start, shape.n, area(0), kArea, false);
    instruction.tiles[1] = randomTile(tester, randomDtype(tester), shape.partitions, shape.start, shape.n,
                                      psum ? 0 : area(1), kArea, true, psum ? MemorySpace::Psum : MemorySpace::Sbuf);
    instruction.tiles[2] =
        randomTile(tester, randomDtype(tester), shape.partitions, shape.start, shape.n, area(2), kArea, true);
    tester.fill(instruction.tiles[0]);
    tester.fill(instruction.tiles[1]);
    tester.fill(instruction.tiles[2]);
    const std::vector<float> a = tester.read(instruction.tiles[1]), b = tester.read(instruction.tiles[2]);
    std::vector<float> values(a.size());
    for (size_t i = 0; i < a.size(); ++i)
      values[i] = alu(instruction.op0, a[i], b[i]);
    std::vector<uint8_t> expected = tester.snapshot();
    const TileTester::Result result = tester.run(instruction, Engine::Vector, int(tester.pick(1, 3)));
    ASSERT_TRUE(result.ok) << result.message;
    expectValues(tester, expected, instruction.tiles[0], values);
    ASSERT_TRUE(tester.equals(expected)) << "round " << round << " op " << isa::toString(instruction.op0);
  }
}

TEST(Elementwise, TensorScalar) {
  TileTester tester(12);
  for (int round = 0; round < 250; ++round) {
    const Shape shape = randomShape(tester, 1500);
    Instruction instruction;
    instruction.opcode = Opcode::TensorScalar;
    const auto pickOp = [&] {
      return tester.pick(0, 3) ? kArithmetic[tester.random() % std::size(kArithmetic)]
                               : kUnary[tester.random() % std::size(kUnary)];
    };
    instruction.op0 = pickOp();
    instruction.op1 = tester.pick(0, 2) ? pickOp() : AluOp::Bypass;
    const auto isUnary = [](AluOp op) { return isa::aluOpInfo(op).unary; };
    instruction.reverse0 = tester.pick(0, 1) && instruction.op0 != AluOp::Bypass && !isUnary(instruction.op0);
    instruction.reverse1 = tester.pick(0, 1) && instruction.op1 != AluOp::Bypass && !isUnary(instruction.op1);
    instruction.tiles[0] =
        randomTile(tester, randomDtype(tester), shape.partitions, shape.start, shape.n, area(0), kArea, false);
    instruction.tiles[1] =
        randomTile(tester, randomDtype(tester), shape.partitions, shape.start, shape.n, area(1), kArea, true);
    tester.fill(instruction.tiles[0]);
    tester.fill(instruction.tiles[1]);
    Scalars s0 = randomScalar(tester, shape, area(3)), s1 = randomScalar(tester, shape, area(4));
    if (instruction.op0 != AluOp::Bypass && !isUnary(instruction.op0))
      instruction.scalars[0] = s0.operand;
    if (instruction.op1 != AluOp::Bypass && !isUnary(instruction.op1))
      instruction.scalars[1] = s1.operand;
    const std::vector<float> a = tester.read(instruction.tiles[1]);
    std::vector<float> values(a.size());
    for (size_t i = 0; i < a.size(); ++i) {
      const size_t p = i / size_t(shape.n);
      const float x = s0.values[p], y = s1.values[p];
      const float first = instruction.reverse0 ? alu(instruction.op0, x, a[i]) : alu(instruction.op0, a[i], x);
      values[i] = instruction.reverse1 ? alu(instruction.op1, y, first) : alu(instruction.op1, first, y);
    }
    std::vector<uint8_t> expected = tester.snapshot();
    const TileTester::Result result = tester.run(instruction, Engine::Vector, int(tester.pick(1, 3)));
    ASSERT_TRUE(result.ok) << result.message;
    expectValues(tester, expected, instruction.tiles[0], values);
    ASSERT_TRUE(tester.equals(expected)) << "round " << round << " ops " << isa::toString(instruction.op0) << " "
                                         << isa::toString(instruction.op1);
  }
}

TEST(Elementwise, ScalarTensorTensor) {
  TileTester tester(13);
  for (int round = 0; round < 60; ++round) {
    const Shape shape = randomShape(tester);
    Instruction instruction;
    instruction.opcode = Opcode::ScalarTensorTensor;
    instruction.op0 = kArithmetic[tester.random() % (std::size(kArithmetic) - 1)];
    instruction.op1 = kArithmetic[tester.random() % (std::size(kArithmetic) - 1)];
    instruction.reverse0 = tester.pick(0, 1);
    instruction.reverse1 = tester.pick(0, 1);
    for (int i = 0; i < 3; ++i) {
      instruction.tiles[i] =
          randomTile(tester, randomDtype(tester), shape.partitions, shape.start, shape.n, area(i), kArea, i > 0);
      tester.fill(instruction.tiles[i]);
    }
    const Scalars s = randomScalar(tester, shape, area(3));
    instruction.scalars[0] = s.operand;
    const std::vector<float> a = tester.read(instruction.tiles[1]), b = tester.read(instruction.tiles[2]);
    std::vector<float> values(a.size());
    for (size_t i = 0; i < a.size(); ++i) {
      const float x = s.values[i / size_t(shape.n)];
      const float first = instruction.reverse0 ? alu(instruction.op0, x, a[i]) : alu(instruction.op0, a[i], x);
      values[i] = instruction.reverse1 ? alu(instruction.op1, b[i], first) : alu(instruction.op1, first, b[i]);
    }
    std::vector<uint8_t> expected = tester.snapshot();
    const TileTester::Result result = tester.run(instruction, Engine::Vector);
    ASSERT_TRUE(result.ok) << result.message;
    expectValues(tester, expected, instruction.tiles[0], values);
    ASSERT_TRUE(tester.equals(expected)) << "round " << round;
  }
}

TEST(Elementwise, CopyAndCast) {
  TileTester tester(14);
  for (int round = 0; round < 60; ++round) {
    const Shape shape = randomShape(tester);
    Instruction instruction;
    instruction.opcode = Opcode::TensorCopy;
    const Dtype from = randomDtype(tester);
    const Dtype to = tester.pick(0, 2) == 0 ? from : randomDtype(tester);
    instruction.tiles[0] = randomTile(tester, to, shape.partitions, shape.start, shape.n, area(0), kArea, false);
    instruction.tiles[1] = randomTile(tester, from, shape.partitions, shape.start, shape.n, area(1), kArea, true);
    tester.fill(instruction.tiles[0]);
    tester.fill(instruction.tiles[1]);
    std::vector<uint8_t> expected = tester.snapshot();
    std::vector<float> values = tester.read(instruction.tiles[1]);
    std::vector<uint64_t> bits;
    forElements(instruction.tiles[1], [&](int p, int64_t offset, int64_t) {
      uint64_t raw = 0;
      std::memcpy(&raw, tester.at(instruction.tiles[1], p, offset), isa::dtypeBytes(from));
      bits.push_back(raw);
    });
    const TileTester::Result result = tester.run(instruction, Engine::Vector);
    ASSERT_TRUE(result.ok) << result.message;
    if (from == to) { // bit exact, NaN payloads included
      size_t i = 0;
      forElements(instruction.tiles[0], [&](int p, int64_t offset, int64_t) {
        tester.expect(expected, instruction.tiles[0], p, offset, bits[i++]);
      });
    } else {
      expectValues(tester, expected, instruction.tiles[0], values);
    }
    ASSERT_TRUE(tester.equals(expected)) << "round " << round << " " << isa::toString(from) << " " << isa::toString(to);
  }
}

TEST(Elementwise, CopyPredicated) {
  TileTester tester(15);
  for (int round = 0; round < 60; ++round) {
    const Shape shape = randomShape(tester);
    Instruction instruction;
    instruction.opcode = Opcode::TensorCopyPredicated;
    instruction.reverse0 = tester.pick(0, 1);
    const Dtype dtype = randomDtype(tester);
    const Dtype flags = tester.oneOf({Dtype::U8, Dtype::I8, Dtype::U16, Dtype::I16, Dtype::U32, Dtype::I32});
    instruction.tiles[0] = randomTile(tester, dtype, shape.partitions, shape.start, shape.n, area(0), kArea, false);
    instruction.tiles[1] = randomTile(tester, dtype, shape.partitions, shape.start, shape.n, area(1), kArea, true);
    instruction.tiles[2] = randomTile(tester, flags, shape.partitions, shape.start, shape.n, area(2), kArea, true);
    for (int i = 0; i < 3; ++i)
      tester.fill(instruction.tiles[i]);
    forElements(instruction.tiles[2], [&](int p, int64_t offset, int64_t) {
      if (tester.pick(0, 1))
        std::memset(tester.at(instruction.tiles[2], p, offset), 0, isa::dtypeBytes(flags));
    });
    std::vector<uint8_t> expected = tester.snapshot();
    std::vector<uint64_t> source, predicate;
    forElements(instruction.tiles[1], [&](int p, int64_t offset, int64_t) {
      uint64_t raw = 0;
      std::memcpy(&raw, tester.at(instruction.tiles[1], p, offset), isa::dtypeBytes(dtype));
      source.push_back(raw);
    });
    forElements(instruction.tiles[2], [&](int p, int64_t offset, int64_t) {
      uint64_t raw = 0;
      std::memcpy(&raw, tester.at(instruction.tiles[2], p, offset), isa::dtypeBytes(flags));
      predicate.push_back(raw);
    });
    const TileTester::Result result = tester.run(instruction, Engine::Vector);
    ASSERT_TRUE(result.ok) << result.message;
    size_t i = 0;
    forElements(instruction.tiles[0], [&](int p, int64_t offset, int64_t) {
      if ((predicate[i] != 0) != instruction.reverse0)
        tester.expect(expected, instruction.tiles[0], p, offset, source[i]);
      ++i;
    });
    ASSERT_TRUE(tester.equals(expected)) << "round " << round;
  }
}

TEST(Elementwise, Memset) {
  TileTester tester(16);
  for (int round = 0; round < 60; ++round) {
    const Shape shape = randomShape(tester);
    const Dtype dtype = randomDtype(tester);
    Instruction instruction;
    instruction.opcode = Opcode::Memset;
    instruction.tiles[0] = randomTile(tester, dtype, shape.partitions, shape.start, shape.n, area(0), kArea, false);
    const float value = tester.oneOf({0.0f, 1.0f, -INFINITY, 3.3f, NAN});
    const uint32_t word = tester.oneOf({0u, 1u, 0xffffffffu, 0x80000001u});
    const bool isFloat = isa::isFloatDtype(dtype);
    instruction.scalars[0] = isFloat ? ScalarOperand::constant(value) : ScalarOperand::constantBits(word);
    std::vector<uint8_t> expected = tester.snapshot();
    const TileTester::Result result = tester.run(instruction, tester.pick(0, 1) ? Engine::Vector : Engine::Gpsimd);
    ASSERT_TRUE(result.ok) << result.message;
    if (isFloat)
      expectValues(tester, expected, instruction.tiles[0],
                   std::vector<float>(size_t(shape.partitions) * shape.n, value));
    else
      forElements(instruction.tiles[0], [&](int p, int64_t offset, int64_t) {
        tester.expect(expected, instruction.tiles[0], p, offset, word);
      });
    ASSERT_TRUE(tester.equals(expected)) << "round " << round;
  }
}

TEST(Elementwise, RangeSelectIotaAffineSelect) {
  TileTester tester(17);
  for (int round = 0; round < 60; ++round) {
    const Shape shape = randomShape(tester);
    Instruction range;
    range.opcode = Opcode::RangeSelect;
    range.op0 = AluOp::GreaterEqual;
    range.op1 = AluOp::Less;
    range.immediate = int32_t(tester.pick(0, 100));
    range.tiles[0] =
        randomTile(tester, randomDtype(tester), shape.partitions, shape.start, shape.n, area(0), kArea, false);
    range.tiles[1] = randomTile(tester, Dtype::F32, shape.partitions, shape.start, shape.n, area(1), kArea, true);
    tester.fill(range.tiles[1]);
    const TilePattern bounds = rowTile(Dtype::F32, shape.partitions, 1, area(3), shape.start);
    std::vector<float> low, high;
    for (int p = 0; p < shape.partitions; ++p)
      low.push_back(float(tester.pick(0, 200)));
    tester.writeRaw(bounds, low);
    range.scalars[0] = ScalarOperand::vector(MemorySpace::Sbuf, area(3));
    range.scalars[1] = ScalarOperand::constant(300);
    const std::vector<float> source = tester.read(range.tiles[1]);
    std::vector<float> values(source.size());
    for (size_t i = 0; i < source.size(); ++i) {
      const float k = float(range.immediate + int(i % size_t(shape.n)));
      values[i] = k >= low[i / size_t(shape.n)] && k < 300 ? source[i] : -3.4028235e38f;
    }
    std::vector<uint8_t> expected = tester.snapshot();
    TileTester::Result result = tester.run(range, Engine::Vector);
    ASSERT_TRUE(result.ok) << result.message;
    expectValues(tester, expected, range.tiles[0], values);
    ASSERT_TRUE(tester.equals(expected)) << "range_select round " << round;

    Instruction iota;
    iota.opcode = Opcode::Iota;
    iota.tiles[0] =
        randomTile(tester, randomDtype(tester), shape.partitions, shape.start, shape.n, area(0), kArea, false);
    for (int64_t &immediate : iota.immediates)
      immediate = tester.pick(-1000, 1000);
    if (round % 5 == 0)
      iota.immediates[0] = 2147483000; // wraps
    Instruction select = iota;
    std::vector<int32_t> index;
    for (int p = 0; p < shape.partitions; ++p)
      for (int64_t i = 0; i < shape.n; ++i) {
        int64_t rest = i, value = iota.immediates[0] + p * iota.immediates[1];
        for (int d = 3; d >= 0; --d) {
          value += rest % iota.tiles[0].count[d] * iota.immediates[2 + d];
          rest /= iota.tiles[0].count[d];
        }
        index.push_back(int32_t(uint32_t(value)));
      }
    expected = tester.snapshot();
    result = tester.run(iota, Engine::Gpsimd);
    ASSERT_TRUE(result.ok) << result.message;
    const Dtype dtype = iota.tiles[0].dtype;
    size_t i = 0;
    forElements(iota.tiles[0], [&](int p, int64_t offset, int64_t) {
      const uint64_t bits =
          dtype == Dtype::I32 || dtype == Dtype::U32 ? uint32_t(index[i]) : elementBits(dtype, float(index[i]));
      tester.expect(expected, iota.tiles[0], p, offset, bits);
      ++i;
    });
    ASSERT_TRUE(tester.equals(expected)) << "iota round " << round << " " << isa::toString(dtype);

    select.opcode = Opcode::AffineSelect;
    select.op0 = tester.oneOf({AluOp::Equal, AluOp::GreaterEqual, AluOp::Less});
    select.tiles[1] =
        randomTile(tester, randomDtype(tester), shape.partitions, shape.start, shape.n, area(1), kArea, true);
    select.scalars[0] = ScalarOperand::constant(-7.5f);
    tester.fill(select.tiles[1]);
    const std::vector<float> chosen = tester.read(select.tiles[1]);
    values.resize(chosen.size());
    for (size_t k = 0; k < chosen.size(); ++k) {
      const bool holds = select.op0 == AluOp::Equal          ? index[k] == 0
                         : select.op0 == AluOp::GreaterEqual ? index[k] >= 0
                                                             : index[k] < 0;
      values[k] = holds ? chosen[k] : -7.5f;
    }
    expected = tester.snapshot();
    result = tester.run(select, Engine::Gpsimd);
    ASSERT_TRUE(result.ok) << result.message;
    expectValues(tester, expected, select.tiles[0], values);
    ASSERT_TRUE(tester.equals(expected)) << "affine_select round " << round;
  }
}

TEST(Elementwise, Scan) {
  TileTester tester(18);
  for (int round = 0; round < 60; ++round) {
    const Shape shape = randomShape(tester, 300);
    Instruction instruction;
    instruction.opcode = Opcode::TensorTensorScan;
    instruction.op0 = tester.oneOf({AluOp::Multiply, AluOp::Add, AluOp::Maximum, AluOp::Subtract});
    instruction.op1 = tester.oneOf({AluOp::Add, AluOp::Minimum, AluOp::Subtract});
    instruction.reverse0 = tester.pick(0, 1);
    instruction.reverse1 = tester.pick(0, 1);
    for (int i = 0; i < 3; ++i) {
      instruction.tiles[i] =
          randomTile(tester, randomDtype(tester), shape.partitions, shape.start, shape.n, area(i), kArea, i > 0);
      tester.fill(instruction.tiles[i], 0.5, false);
    }
    const Scalars s = randomScalar(tester, shape, area(3));
    instruction.scalars[0] = s.operand;
    const std::vector<float> a = tester.read(instruction.tiles[1]), b = tester.read(instruction.tiles[2]);
    std::vector<float> values(a.size());
    for (int p = 0; p < shape.partitions; ++p) {
      float state = s.values[p];
      for (int i = 0; i < shape.n; ++i) {
        const size_t k = size_t(p) * shape.n + i;
        const float first =
            instruction.reverse0 ? alu(instruction.op0, state, a[k]) : alu(instruction.op0, a[k], state);
        state = instruction.reverse1 ? alu(instruction.op1, b[k], first) : alu(instruction.op1, first, b[k]);
        values[k] = state;
      }
    }
    std::vector<uint8_t> expected = tester.snapshot();
    const TileTester::Result result = tester.run(instruction, Engine::Vector, int(tester.pick(1, 3)));
    ASSERT_TRUE(result.ok) << result.message;
    expectValues(tester, expected, instruction.tiles[0], values);
    ASSERT_TRUE(tester.equals(expected)) << "round " << round;
  }
}

} // namespace
} // namespace neuroncore::emulator::test

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TileTester.h"

namespace neuroncore::emulator::test {
namespace {

Instruction loadStationary(const TilePattern &tile) {
  Instruction instruction;
  instruction.opcode = Opcode::LoadStationary;
  instruction.tiles[0] = tile;
  return instruction;
}

/// Every output is one chain of fused operations over k, on top of the old value when accumulating.
TEST(Matmul, BitsOfTheSequentialChain) {
  TileTester tester(51);
  for (int round = 0; round < 80; ++round) {
    const bool fp32 = tester.pick(0, 1);
    const Dtype stationaryType =
        fp32 ? Dtype::F32 : tester.oneOf({Dtype::Bf16, Dtype::F16, Dtype::F8e4m3, Dtype::F8e5m2});
    const Dtype movingType = fp32 ? Dtype::F32 : tester.oneOf({Dtype::Bf16, Dtype::Bf16, Dtype::F16, Dtype::F8e4m3});
    const int k = tester.pick(0, 1) ? 128 : int(tester.pick(1, 128));
    const int m = tester.pick(0, 2) ? int(tester.pick(1, 128)) : int(tester.pick(1, 9));
    const int n = tester.pick(0, 2) ? int(tester.pick(1, 512)) : 512;
    const TilePattern stationary = randomTile(tester, stationaryType, k, 0, m, 0, 8192, false);
    const TilePattern moving = randomTile(tester, movingType, k, 0, n, 8192, 32768, false);
    tester.fill(stationary, 1.0, round % 7 == 0);
    tester.fill(moving, 1.0, round % 7 == 0);
    TilePattern out = rowTile(Dtype::F32, m, n, uint32_t(tester.pick(0, 7)) * 2048, 0, MemorySpace::Psum);
    if (n % 2 == 0 && tester.pick(0, 3) == 0) { // a transposed output
      out.count[2] = 2;
      out.step[2] = 1;
      out.count[3] = uint16_t(n / 2);
      out.step[3] = 2;
    }
    tester.fill(out, 1.0, false);
    const std::vector<float> a = tester.read(stationary), b = tester.read(moving), old = tester.read(out);
    ASSERT_TRUE(tester.run(loadStationary(stationary), Engine::Tensor).ok);
    Instruction multiply;
    multiply.opcode = Opcode::Matmul;
    multiply.accumulate = tester.pick(0, 1);
    multiply.tiles[0] = out;
    multiply.tiles[1] = moving;
    std::vector<uint8_t> expected = tester.snapshot();
    const TileTester::Result run = tester.run(multiply, Engine::Tensor, int(tester.pick(1, 3)));
    ASSERT_TRUE(run.ok) << run.message;
    size_t i = 0;
    forElements(out, [&](int row, int64_t offset, int64_t column) {
      float sum = multiply.accumulate ? old[i] : 0.0f;
      for (int kk = 0; kk < k; ++kk)
        sum = std::fmaf(a[size_t(kk) * m + row], b[size_t(kk) * n + column], sum);
      uint64_t bits = std::bit_cast<uint32_t>(sum);
      if (std::isnan(sum)) {
        uint32_t got;
        std::memcpy(&got, tester.at(out, row, offset), 4);
        if (std::isnan(std::bit_cast<float>(got)))
          bits = got;
      }
      tester.expect(expected, out, row, offset, bits);
      ++i;
    });
    ASSERT_TRUE(tester.equals(expected)) << round << " k " << k << " m " << m << " n " << n;
  }
}

TEST(Matmul, TransposeMovesBits) {
  TileTester tester(52);
  for (int round = 0; round < 30; ++round) {
    const Dtype dtype = tester.oneOf({Dtype::F32, Dtype::Bf16, Dtype::F16});
    const int k = tester.pick(0, 1) ? 128 : int(tester.pick(1, 128)),
              m = tester.pick(0, 1) ? 128 : int(tester.pick(1, 128));
    const TilePattern stationary = rowTile(dtype, k, m, 0), identity = rowTile(dtype, k, k, 8192);
    tester.fill(stationary);
    std::vector<float> eye(size_t(k) * k);
    for (int i = 0; i < k; ++i)
      eye[size_t(i) * k + i] = 1;
    size_t e = 0;
    forElements(identity, [&](int p, int64_t offset, int64_t) {
      const uint64_t bits = elementBits(dtype, eye[e++]);
      std::memcpy(tester.at(identity, p, offset), &bits, isa::dtypeBytes(dtype));
    });
    ASSERT_TRUE(tester.run(loadStationary(stationary), Engine::Tensor).ok);
    Instruction transpose;
    transpose.opcode = Opcode::Matmul;
    transpose.isTranspose = true;
    transpose.tiles[0] = rowTile(dtype, m, k, 2048, 0, MemorySpace::Psum);
    transpose.tiles[1] = identity;
    std::vector<uint8_t> expected = tester.snapshot();
    const TileTester::Result run = tester.run(transpose, Engine::Tensor, int(tester.pick(1, 2)));
    ASSERT_TRUE(run.ok) << run.message;
    forElements(transpose.tiles[0], [&](int row, int64_t offset, int64_t column) {
      uint64_t bits = 0;
      std::memcpy(&bits, tester.at(stationary, int(column), row * isa::dtypeBytes(dtype)), isa::dtypeBytes(dtype));
      tester.expect(expected, transpose.tiles[0], row, offset, bits);
    });
    ASSERT_TRUE(tester.equals(expected)) << round;
  }
}

TEST(Matmul, StationaryMustMatch) {
  TileTester tester(53);
  Instruction multiply;
  multiply.opcode = Opcode::Matmul;
  multiply.tiles[0] = rowTile(Dtype::F32, 16, 8, 0, 0, MemorySpace::Psum);
  multiply.tiles[1] = rowTile(Dtype::F32, 32, 8, 0);
  TileTester::Result run = tester.run(multiply, Engine::Tensor);
  EXPECT_FALSE(run.ok);
  EXPECT_NE(run.message.find("none is loaded"), std::string::npos) << run.message;
  ASSERT_TRUE(tester.run(loadStationary(rowTile(Dtype::F32, 32, 17, 64)), Engine::Tensor).ok);
  run = tester.run(multiply, Engine::Tensor);
  EXPECT_FALSE(run.ok);
  EXPECT_NE(run.message.find("M = 17"), std::string::npos) << run.message;
}

} // namespace
} // namespace neuroncore::emulator::test

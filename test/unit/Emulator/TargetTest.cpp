// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The same bits on every CPU target that this machine can run.

#include <random>

#include "hwy/targets.h"

#include "TileTester.h"

namespace neuroncore::emulator::test {
namespace {

class Targets : public ::testing::Test {
protected:
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }

  /// Runs `compute` on each target and compares the results with those of the first.
  void compare(const char *what, const std::function<std::vector<float>()> &compute) {
    std::vector<uint32_t> first;
    int count = 0;
    for (int64_t targets = all_; targets != 0; targets &= targets - 1) {
      hwy::SetSupportedTargetsForTest(targets & -targets);
      hwy::GetChosenTarget().Update(targets & -targets);
      const std::vector<float> values = compute();
      std::vector<uint32_t> bits(values.size());
      for (size_t i = 0; i < values.size(); ++i)
        bits[i] = std::isnan(values[i]) ? 0x7fc00000u : std::bit_cast<uint32_t>(values[i]);
      if (count++ == 0)
        first = bits;
      else
        for (size_t i = 0; i < bits.size(); ++i)
          ASSERT_EQ(bits[i], first[i]) << what << " on " << hwy::TargetName(targets & -targets) << " at " << i << ": "
                                       << values[i];
    }
  }

  const int64_t all_ = hwy::SupportedTargets() & HWY_TARGETS;
};

std::vector<float> inputs(size_t n) {
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal(0, 6);
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i)
    values[i] = i % 3 ? normal(random) : std::bit_cast<float>(uint32_t(random()));
  return values;
}

TEST_F(Targets, FunctionsHaveOneResult) {
  const std::vector<float> in = inputs(50021);
  for (int f = 0; f < kNumActivations; ++f) {
    if (!functionTable().activation[f])
      continue;
    compare(std::string(isa::toString(isa::ActivationFunction(f))).c_str(), [&] {
      std::vector<float> out(in.size());
      const float scale = 0.7f, bias = 0.01f;
      activationRows(isa::ActivationFunction(f), 1, int64_t(in.size()), {in.data(), 0}, {&scale, 0, 0}, {&bias, 0, 0},
                     {out.data(), 0});
      return out;
    });
  }
  for (int f = 0; f < 64; ++f) {
    if (!functionTable().floatUnary[f])
      continue;
    compare("float function", [&] {
      std::vector<float> out(in.size());
      functionTable().floatUnary[f](int64_t(in.size()), in.data(), out.data());
      return out;
    });
  }
}

TEST_F(Targets, ReductionsHaveOneResult) {
  const std::vector<float> in = inputs(5000);
  for (int op = 0; op < kNumReduceOps; ++op)
    compare("reduction", [&] {
      std::vector<float> out;
      for (int64_t n : {1, 5, 63, 64, 65, 200, 1000, 4999}) {
        float value;
        reduceTable().rows[op][0](1, n, {in.data(), 0}, &value);
        out.push_back(value);
      }
      return out;
    });
}

TEST_F(Targets, OperatorsAndConversionsHaveOneResult) {
  const std::vector<float> a = inputs(4001), b = inputs(4777);
  for (int op = 0; op < kNumAluOps; ++op)
    if (elementwiseTable().hasForm[op])
      compare("operator", [&] {
        std::vector<float> out(a.size());
        tensorTensorF32(isa::AluOp(op), 1, int64_t(a.size()), {a.data(), 0}, {b.data() + 7, 0}, {out.data(), 0});
        return out;
      });
  for (int dtype = 0; dtype < kNumDtypes; ++dtype)
    if (convertTable().store[dtype])
      compare("conversion", [&] {
        std::vector<uint8_t> raw(a.size() * 8);
        std::vector<float> out(a.size());
        convertTable().store[dtype](int64_t(a.size()), a.data(), raw.data());
        convertTable().load[dtype](int64_t(a.size()), raw.data(), out.data());
        return out;
      });
}

TEST_F(Targets, MatmulHasOneResult) {
  const std::vector<float> a = inputs(128 * 96), b = inputs(128 * 512);
  const int k = 128, m = 37, n = 51;
  compare("matmul", [&] {
    const MatmulTable &table = matmulTable();
    const int block = table.blockRows, width = table.panelColumns;
    std::vector<float> packed(size_t((m + block - 1) / block * block) * k), out(size_t(m) * n);
    table.packStationary[int(Storage::F32)](k, m, {a.data(), 96 * 4}, packed.data());
    for (int kk = 0; kk < k; ++kk)
      for (int row = 0; row < m; ++row)
        EXPECT_EQ(std::bit_cast<uint32_t>(packed[size_t(row / block) * k * block + size_t(kk) * block + row % block]),
                  std::bit_cast<uint32_t>(a[size_t(kk) * 96 + row]));
    for (int column = 0; column < n; column += width) {
      const int columns = std::min(width, n - column);
      std::vector<float> panel(size_t(k) * width);
      for (int kk = 0; kk < k; ++kk)
        std::copy_n(b.data() + size_t(kk) * 512 + column, columns, panel.data() + size_t(kk) * width);
      table.panel(k, m, columns, packed.data(), panel.data(), false, {out.data() + column, n * 4});
    }
    return out;
  });
}

/// Every size of element, whole squares and remainders; nothing beyond the rows is written.
TEST_F(Targets, TransposesMoveEveryElement) {
  std::mt19937_64 random(5);
  const std::vector<float> source = inputs(40000);
  const auto *from = reinterpret_cast<const uint8_t *>(source.data());
  for (int64_t targets = all_; targets != 0; targets &= targets - 1) {
    hwy::SetSupportedTargetsForTest(targets & -targets);
    hwy::GetChosenTarget().Update(targets & -targets);
    for (int bytes : {1, 2, 4, 8})
      for (int64_t rows : {1, 3, 4, 16, 17, 64, 70})
        for (int64_t columns : {1, 2, 8, 16, 31, 48, 65, 100}) {
          const int64_t fromStep = (rows + int64_t(random() % 3)) * bytes;
          const int64_t toStep = (columns + int64_t(random() % 5)) * bytes;
          std::vector<uint8_t> to(size_t(rows * toStep + 64), 0xa5), expected = to;
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < columns; ++c)
              std::memcpy(expected.data() + r * toStep + c * bytes, from + c * fromStep + r * bytes, size_t(bytes));
          transposeTable().ofBytes(bytes)(rows, columns, from, fromStep, to.data(), toStep);
          ASSERT_EQ(to, expected) << hwy::TargetName(targets & -targets) << ": " << rows << " x " << columns << " of "
                                  << bytes << " bytes";
        }
  }
}

TEST_F(Targets, SeveralTargetsWereCompared) {
  if ((all_ & (all_ - 1)) == 0)
    GTEST_SKIP() << "this machine runs one target only";
  EXPECT_NE(all_ & (all_ - 1), 0);
}

} // namespace
} // namespace neuroncore::emulator::test

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <bit>
#include <random>

#include "TileTester.h"

namespace neuroncore::emulator::test {
namespace {

constexpr Dtype kAllDtypes[] = {Dtype::F32,    Dtype::Bf16, Dtype::F16, Dtype::F8e4m3, Dtype::F8e4m3fn,
                                Dtype::F8e5m2, Dtype::I8,   Dtype::U8,  Dtype::I16,    Dtype::U16,
                                Dtype::I32,    Dtype::U32,  Dtype::I64, Dtype::U64,    Dtype::F64};

TEST(Convert, LoadsEveryNarrowValue) {
  for (Dtype dtype : kAllDtypes) {
    const int bytes = isa::dtypeBytes(dtype);
    if (bytes > 2)
      continue;
    const int codes = 1 << (8 * bytes);
    std::vector<uint8_t> memory(size_t(codes) * bytes);
    for (int code = 0; code < codes; ++code)
      std::memcpy(memory.data() + size_t(code) * bytes, &code, bytes);
    std::vector<float> values(codes);
    convertTable().load[int(dtype)](codes, memory.data(), values.data());
    for (int code = 0; code < codes; ++code) {
      const double expected = elementValue(dtype, memory.data() + size_t(code) * bytes);
      if (std::isnan(expected))
        EXPECT_TRUE(std::isnan(values[code])) << isa::toString(dtype) << " " << code;
      else
        ASSERT_EQ(double(values[code]), expected) << isa::toString(dtype) << " " << code;
    }
  }
}

TEST(Convert, StoresRoundToNearestEvenAndSaturate) {
  std::mt19937_64 random(7);
  std::vector<float> inputs = {
      0.0f,          -0.0f,         1.0f,          0.5f,          1.5f,          2.5f,           -0.5f,
      -1.5f,         127.5f,        128.0f,        -128.5f,       -129.0f,       255.5f,         256.0f,
      65504.0f,      65519.0f,      65520.0f,      2147483520.0f, 2147483648.0f, -2147483648.0f, -2147483904.0f,
      4294967040.0f, 4294967296.0f, 9.2233715e18f, 9.2233720e18f, 1.8446744e19f, INFINITY,       -INFINITY,
      NAN,           -NAN,          240.0f,        248.0f,        247.9f,        448.0f,         464.0f,
      463.9f,        57344.0f,      61440.0f,      0x1p-126f,     0x1p-149f,     0x1p-24f,       0x1p-25f,
      0x1.8p-24f,    0x1p-9f,       0x1p-10f,      0x1.8p-10f,    0x1p-16f,      0x1p-17f};
  for (int i = 0; i < 3000; ++i)
    inputs.push_back(std::bit_cast<float>(uint32_t(random())));
  for (int i = 0; i < 3000; ++i)
    inputs.push_back(float(std::ldexp(double(int32_t(random())) / 2147483648.0, int(random() % 44) - 26)));
  for (Dtype dtype : kAllDtypes) {
    const int bytes = isa::dtypeBytes(dtype);
    // The exhaustive search of the reference is slow for f16.
    const size_t count = dtype == Dtype::F16 ? 700 : inputs.size();
    for (size_t shift : {size_t(0), size_t(3)}) { // vector and tail positions
      std::vector<uint8_t> memory((count + 8) * bytes, 0xee);
      convertTable().store[int(dtype)](int64_t(count - shift), inputs.data() + shift, memory.data());
      for (size_t i = 0; i + shift < count; ++i) {
        const float value = inputs[i + shift];
        uint64_t got = 0;
        std::memcpy(&got, memory.data() + i * bytes, bytes);
        if (std::isnan(value) && isa::isFloatDtype(dtype)) {
          EXPECT_TRUE(std::isnan(elementValue(dtype, memory.data() + i * bytes)));
          continue;
        }
        const uint64_t mask = bytes == 8 ? ~0ull : (1ull << (8 * bytes)) - 1;
        const uint64_t expected = elementBits(dtype, value) & mask;
        if (std::isnan(elementValue(dtype, reinterpret_cast<const uint8_t *>(&expected))))
          EXPECT_TRUE(std::isnan(elementValue(dtype, memory.data() + i * bytes))) << value;
        else
          ASSERT_EQ(got, expected) << isa::toString(dtype) << " of " << value << " (" << i << ")";
      }
      // Nothing behind the last element.
      for (size_t i = (count - shift) * bytes; i < memory.size(); ++i)
        ASSERT_EQ(memory[i], 0xee) << isa::toString(dtype);
    }
  }
}

TEST(Convert, Bf16RoundTripsAndKeepsNan) {
  for (uint32_t code = 0; code < 65536; ++code) {
    const uint16_t bits = uint16_t(code);
    const float value = loadAsFloat(Dtype::Bf16, reinterpret_cast<const uint8_t *>(&bits));
    uint16_t back;
    storeFromFloat(Dtype::Bf16, value, reinterpret_cast<uint8_t *>(&back));
    const bool isNan = (code & 0x7fff) > 0x7f80;
    EXPECT_EQ(back, isNan ? (bits | 0x40) : bits);
  }
}

} // namespace
} // namespace neuroncore::emulator::test

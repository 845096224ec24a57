// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs single compute instructions on a memory image and compares every byte of SBUF and PSUM with a reference that
// follows the definition of access patterns element by element.

#ifndef NEURON_TEST_UNIT_EMULATOR_TILETESTER_H
#define NEURON_TEST_UNIT_EMULATOR_TILETESTER_H

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "lib/Emulator/Machine.h"
#include "lib/Emulator/Ops/Ops.h"
#include "neuron/Isa/Instruction.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Isa/Verify.h"
#include "neuron/Support/Text.h"
#include "neuron/Target/MachineModel.h"

namespace neuroncore::emulator::test {

using isa::Dtype;
using isa::Engine;
using isa::Instruction;
using isa::MemorySpace;
using isa::Opcode;
using isa::TilePattern;

inline const target::MachineModel &trn2() { return *target::MachineModel::builtin("trn2"); }

// ---------------------------------------------------------------------------------------------------------------------
// Scalar conversions, written independently of lib/Emulator.
// ---------------------------------------------------------------------------------------------------------------------

/// Value of a small float from its definition: sign, exponent, mantissa.
inline double decodeSmall(uint32_t bits, int exponentBits, int mantissaBits, bool finite) {
  const int bias = (1 << (exponentBits - 1)) - 1;
  const int exponent = int(bits >> mantissaBits & ((1u << exponentBits) - 1));
  const int mantissa = int(bits & ((1u << mantissaBits) - 1));
  const double sign = bits >> (exponentBits + mantissaBits) & 1 ? -1 : 1;
  const int top = (1 << exponentBits) - 1;
  if (!finite && exponent == top)
    return mantissa ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  if (finite && exponent == top && mantissa == (1 << mantissaBits) - 1)
    return std::nan("");
  if (exponent == 0)
    return sign * std::ldexp(double(mantissa), 1 - bias - mantissaBits);
  return sign * std::ldexp(1.0 + std::ldexp(double(mantissa), -mantissaBits), exponent - bias);
}

inline double elementValue(Dtype dtype, const uint8_t *p) {
  uint64_t bits = 0;
  std::memcpy(&bits, p, isa::dtypeBytes(dtype));
  switch (dtype) {
  case Dtype::F32:
    return std::bit_cast<float>(uint32_t(bits));
  case Dtype::Bf16:
    return std::bit_cast<float>(uint32_t(bits) << 16);
  case Dtype::F16:
    return decodeSmall(uint32_t(bits), 5, 10, false);
  case Dtype::F8e4m3:
    return decodeSmall(uint32_t(bits), 4, 3, false);
  case Dtype::F8e4m3fn:
    return decodeSmall(uint32_t(bits), 4, 3, true);
  case Dtype::F8e5m2:
    return decodeSmall(uint32_t(bits), 5, 2, false);
  case Dtype::I8:
    return int8_t(bits);
  case Dtype::U8:
    return uint8_t(bits);
  case Dtype::I16:
    return int16_t(bits);
  case Dtype::U16:
    return uint16_t(bits);
  case Dtype::I32:
    return int32_t(bits);
  case Dtype::U32:
    return uint32_t(bits);
  case Dtype::I64:
    return double(int64_t(bits));
  case Dtype::U64:
    return double(bits);
  default:
    return std::bit_cast<double>(bits);
  }
}

/// Values of all encodings without sign that rounding may choose, ascending; where a NaN or infinity lies, the next
/// larger number would be.
inline const std::vector<double> &smallMagnitudes(int exponentBits, int mantissaBits, bool finite) {
  static std::map<std::tuple<int, int, bool>, std::vector<double>> tables;
  std::vector<double> &table = tables[{exponentBits, mantissaBits, finite}];
  const int beyond = (1 << exponentBits) - 1 - ((1 << (exponentBits - 1)) - 1);
  if (!table.empty())
    return table;
  for (uint32_t code = 0; code < 1u << (exponentBits + mantissaBits); ++code) {
    double candidate = decodeSmall(code, exponentBits, mantissaBits, finite);
    if (std::isnan(candidate)) {
      if (!finite)
        break;
      candidate = std::ldexp(1.0 + std::ldexp(double(code & ((1u << mantissaBits) - 1)), -mantissaBits), beyond);
    } else if (std::isinf(candidate)) {
      candidate = std::ldexp(1.0, beyond);
    }
    table.push_back(candidate);
  }
  return table;
}

/// Nearest small float among all encodings: ties to the even encoding, overflow as IEEE rounding defines it.
inline uint32_t encodeSmall(double value, int exponentBits, int mantissaBits, bool finite) {
  const int bits = 1 + exponentBits + mantissaBits;
  const uint32_t signBit = std::signbit(value) ? 1u << (bits - 1) : 0;
  if (std::isnan(value))
    return signBit | ((1u << (bits - 1)) - 1);
  const double magnitude = std::fmin(std::fabs(value), 1e6); // 1e6 overflows all of them
  const std::vector<double> &table = smallMagnitudes(exponentBits, mantissaBits, finite);
  const auto above = std::lower_bound(table.begin(), table.end(), magnitude);
  if (above == table.end())
    return signBit | uint32_t(table.size() - 1);
  uint32_t code = uint32_t(above - table.begin());
  if (code > 0) {
    const double up = table[code] - magnitude, down = magnitude - table[code - 1];
    if (down < up || (down == up && code % 2 == 1))
      --code;
  }
  return signBit | code;
}

template <typename T> uint64_t roundSaturate(float value) {
  if (std::isnan(value))
    return 0;
  const long double rounded = std::nearbyint((long double)value);
  if (rounded < (long double)std::numeric_limits<T>::min())
    return uint64_t(std::numeric_limits<T>::min());
  if (rounded > (long double)std::numeric_limits<T>::max())
    return uint64_t(std::numeric_limits<T>::max());
  return uint64_t(T(rounded));
}

/// Bits of `value` in `dtype` as an engine writes it.
inline uint64_t elementBits(Dtype dtype, float value) {
  switch (dtype) {
  case Dtype::F32:
    return std::bit_cast<uint32_t>(value);
  case Dtype::Bf16: {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    if (std::isnan(value))
      return bits >> 16 | 0x40;
    const uint32_t low = bits & 0xffff, high = bits >> 16;
    return uint16_t(high + (low > 0x8000 || (low == 0x8000 && (high & 1)) ? 1 : 0));
  }
  case Dtype::F16:
    return encodeSmall(value, 5, 10, false);
  case Dtype::F8e4m3:
    return encodeSmall(value, 4, 3, false);
  case Dtype::F8e4m3fn:
    return encodeSmall(value, 4, 3, true);
  case Dtype::F8e5m2:
    return encodeSmall(value, 5, 2, false);
  case Dtype::I8:
    return roundSaturate<int8_t>(value);
  case Dtype::U8:
    return roundSaturate<uint8_t>(value);
  case Dtype::I16:
    return roundSaturate<int16_t>(value);
  case Dtype::U16:
    return roundSaturate<uint16_t>(value);
  case Dtype::I32:
    return roundSaturate<int32_t>(value);
  case Dtype::U32:
    return roundSaturate<uint32_t>(value);
  case Dtype::I64:
    return roundSaturate<int64_t>(value);
  case Dtype::U64:
    return roundSaturate<uint64_t>(value);
  default:
    return std::bit_cast<uint64_t>(double(value));
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Memory
// ---------------------------------------------------------------------------------------------------------------------

/// Calls visit(partition, byte offset, position) for each element, partition by partition in row-major order.
inline void forElements(const TilePattern &tile, const std::function<void(int, int64_t, int64_t)> &visit) {
  const int bytes = isa::dtypeBytes(tile.dtype);
  for (int p = 0; p < tile.numPartitions; ++p) {
    int64_t position = 0;
    for (int a = 0; a < tile.count[0]; ++a)
      for (int b = 0; b < tile.count[1]; ++b)
        for (int c = 0; c < tile.count[2]; ++c)
          for (int d = 0; d < tile.count[3]; ++d)
            visit(p,
                  int64_t(tile.byteOffset) + int64_t(bytes) * (int64_t(a) * tile.step[0] + int64_t(b) * tile.step[1] +
                                                               int64_t(c) * tile.step[2] + int64_t(d) * tile.step[3]),
                  position++);
  }
}

class TileTester {
public:
  explicit TileTester(uint64_t seed = 1) : random(seed) {
    // Less SBUF than the machine has: all of it is compared after each instruction.
    layout_ = {100 * 1024, trn2().memory().psumBytesPerPartition};
    image_ = std::move(*MemoryImage::create(layout_));
    machine_ = std::make_unique<Machine>(*image_);
  }

  std::mt19937_64 random;
  Machine &machine() { return *machine_; }
  const ImageLayout &layout() const { return layout_; }

  uint8_t *at(MemorySpace space, int partition, int64_t offset) {
    return image_->base() + layout_.offset(space, partition, offset);
  }
  uint8_t *at(const TilePattern &tile, int partition, int64_t offset) {
    return at(tile.space, tile.startPartition + partition, offset);
  }

  /// Fills the tile with values that a dtype can hold, some of them special.
  void fill(const TilePattern &tile, double scale = 2.0, bool specials = true) {
    std::normal_distribution<double> normal(0, scale);
    forElements(tile, [&](int p, int64_t offset, int64_t) {
      uint64_t bits = random();
      if (isa::isFloatDtype(tile.dtype)) {
        float value = float(normal(random));
        if (specials && random() % 29 == 0) {
          const float choices[] = {0.0f,    -0.0f, INFINITY, -INFINITY, NAN,  1e-41f,   -3e-39f,
                                   3.4e38f, 0.5f,  1.5f,     -2.5f,     1.0f, 65504.0f, 1e-7f};
          value = choices[random() % std::size(choices)];
        }
        bits = tile.dtype == Dtype::F64 ? std::bit_cast<uint64_t>(double(value)) : elementBits(tile.dtype, value);
      } else if (random() % 2) {
        bits = uint64_t(int64_t(int8_t(bits)));
      }
      std::memcpy(at(tile, p, offset), &bits, isa::dtypeBytes(tile.dtype));
    });
  }

  std::vector<float> read(const TilePattern &tile) {
    std::vector<float> values;
    forElements(tile, [&](int p, int64_t offset, int64_t) {
      values.push_back(float(elementValue(tile.dtype, at(tile, p, offset))));
    });
    return values;
  }
  template <typename T> std::vector<T> readRaw(const TilePattern &tile) {
    std::vector<T> values;
    forElements(tile, [&](int p, int64_t offset, int64_t) {
      T value;
      std::memcpy(&value, at(tile, p, offset), sizeof(T));
      values.push_back(value);
    });
    return values;
  }
  template <typename T> void writeRaw(const TilePattern &tile, const std::vector<T> &values) {
    size_t i = 0;
    forElements(tile,
                [&](int p, int64_t offset, int64_t) { std::memcpy(at(tile, p, offset), &values[i++], sizeof(T)); });
  }

  struct Result {
    bool ok = true;
    ErrorKind kind = ErrorKind::Internal;
    std::string message;
  };
  /// Verifies, decodes and runs; `parts` divides the work as threads would.
  Result run(const Instruction &instruction, Engine engine, int parts = 1) {
    if (Status status = isa::verifyInstruction(trn2(), engine, instruction); !status)
      return {false, status.error().kind(), "verify: " + status.error().message()};
    DecodeContext context;
    context.layout = layout_;
    context.engine = engine;
    TileOpOrError op = decodeTileOp(instruction, context);
    if (!op)
      return {false, op.error().kind(), "decode: " + op.error().message()};
    auto worker = std::make_unique<Worker>();
    const int alignment = (*op)->unitAlignment();
    const int groups = ((*op)->units() + alignment - 1) / alignment;
    for (int i = 0; i < parts; ++i) {
      const int begin = std::min((*op)->units(), groups * i / parts * alignment);
      const int end = std::min((*op)->units(), groups * (i + 1) / parts * alignment);
      if (begin < end)
        (*op)->run(*machine_, *worker, begin, end);
    }
    return {!worker->failed, worker->kind, worker->message};
  }

  std::vector<uint8_t> snapshot() {
    return std::vector<uint8_t>(image_->base(), image_->base() + layout_.totalBytes());
  }
  /// All of memory, padding included, equals `expected`.
  ::testing::AssertionResult equals(const std::vector<uint8_t> &expected) {
    if (std::memcmp(expected.data(), image_->base(), expected.size()) == 0)
      return ::testing::AssertionSuccess();
    for (size_t i = 0; i < expected.size(); ++i)
      if (expected[i] != image_->base()[i])
        return ::testing::AssertionFailure()
               << "first difference at image offset " << i << " (partition " << i / layout_.sbufStride() << ", byte "
               << i % layout_.sbufStride() << "): expected " << int(expected[i]) << " but got "
               << int(image_->base()[i]);
    return ::testing::AssertionSuccess();
  }
  /// Writes bits into a snapshot.
  void expect(std::vector<uint8_t> &snapshot, const TilePattern &tile, int partition, int64_t offset, uint64_t bits) {
    std::memcpy(snapshot.data() + layout_.offset(tile.space, tile.startPartition + partition, offset), &bits,
                isa::dtypeBytes(tile.dtype));
  }

  int64_t pick(int64_t low, int64_t high) { return low + int64_t(random() % uint64_t(high - low + 1)); }
  template <typename T> T oneOf(std::initializer_list<T> values) { return values.begin()[random() % values.size()]; }

private:
  ImageLayout layout_;
  std::unique_ptr<MemoryImage> image_;
  std::unique_ptr<Machine> machine_;
};

/// A contiguous row tile.
inline TilePattern rowTile(Dtype dtype, int partitions, int n, uint32_t byteOffset, int start = 0,
                           MemorySpace space = MemorySpace::Sbuf) {
  TilePattern tile;
  tile.space = space;
  tile.dtype = dtype;
  tile.startPartition = uint8_t(start);
  tile.numPartitions = uint8_t(partitions);
  tile.byteOffset = byteOffset;
  tile.count[3] = uint16_t(n);
  return tile;
}

/// A random pattern of `n` elements per partition that stays within [byteOffset, byteOffset + budget).
inline TilePattern randomTile(TileTester &tester, Dtype dtype, int partitions, int start, int n, uint32_t byteOffset,
                              int64_t budget, bool allowBroadcast, MemorySpace space = MemorySpace::Sbuf) {
  TilePattern tile = rowTile(dtype, partitions, n, byteOffset, start, space);
  const int bytes = isa::dtypeBytes(dtype);
  const int kind = int(tester.pick(0, 5));
  if (kind == 1) { // a step
    const int step = int(tester.pick(2, 5));
    if (int64_t(n) * step * bytes <= budget)
      tile.step[3] = int16_t(step);
  } else if (kind == 2 && allowBroadcast) {
    tile.step[3] = 0;
  } else if (kind >= 3) { // two or three dimensions, possibly with gaps or transposed
    for (int inner : {int(tester.pick(2, 64)), 16, 4, 2}) {
      if (n % inner != 0 || n == inner)
        continue;
      const int outer = n / inner;
      if (kind == 3) {
        const int gap = int(tester.pick(0, 7));
        if (int64_t(outer) * (inner + gap) * bytes > budget || inner + gap > 32767)
          continue;
        tile.count[2] = uint16_t(outer);
        tile.step[2] = int16_t(inner + gap);
        tile.count[3] = uint16_t(inner);
      } else if (kind == 4) {
        if (outer > 32767)
          continue;
        tile.count[2] = uint16_t(outer);
        tile.step[2] = 1;
        tile.count[3] = uint16_t(inner);
        tile.step[3] = int16_t(outer);
      } else if (allowBroadcast) {
        tile.count[2] = uint16_t(outer);
        tile.step[2] = tester.pick(0, 1) ? 0 : 1;
        tile.count[3] = uint16_t(inner);
        tile.step[3] = tile.step[2] == 0 ? 1 : 0;
      } else {
        continue;
      }
      break;
    }
  }
  return tile;
}

/// Distance in units in the last place of `expected` (as a float).
inline double ulpDistance(float got, long double expected) {
  if (std::isnan(got) || std::isnan(double(expected)))
    return std::isnan(got) && std::isnan(double(expected)) ? 0 : 1e30;
  const float nearest = float(expected);
  if (std::isinf(got) || std::isinf(nearest))
    return got == nearest ? 0 : 1e30;
  int exponent;
  std::frexp(double(expected), &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::fabs(double((long double)got - expected)) / unit;
}

} // namespace neuroncore::emulator::test

#endif // NEURON_TEST_UNIT_EMULATOR_TILETESTER_H

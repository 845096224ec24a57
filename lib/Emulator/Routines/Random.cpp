// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// philox (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; Philox4x32 with ten rounds) and
// iota64.

#include <algorithm>

#include "lib/Emulator/Routines/Random.h"
#include "lib/Emulator/Routines/Routines.h"

namespace neuroncore::emulator {

void philoxBlocks(uint64_t firstCounter, uint64_t highCounter, uint64_t key, int64_t blocks, uint32_t *words) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  constexpr int64_t kBatch = 16;
  for (int64_t first = 0; first < blocks; first += kBatch) {
    // A batch side by side; the last one may compute more blocks than it stores.
    uint32_t c[4][kBatch];
    for (int64_t i = 0; i < kBatch; ++i) {
      const uint64_t low = firstCounter + uint64_t(first + i);
      c[0][i] = uint32_t(low);
      c[1][i] = uint32_t(low >> 32);
      c[2][i] = uint32_t(highCounter);
      c[3][i] = uint32_t(highCounter >> 32);
    }
    uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
    for (int round = 0; round < 10; ++round) {
      for (int64_t i = 0; i < kBatch; ++i) {
        const uint64_t p0 = uint64_t(kMultiplier0) * c[0][i];
        const uint64_t p1 = uint64_t(kMultiplier1) * c[2][i];
        const uint32_t n0 = uint32_t(p1 >> 32) ^ c[1][i] ^ k0;
        const uint32_t n2 = uint32_t(p0 >> 32) ^ c[3][i] ^ k1;
        c[0][i] = n0;
        c[1][i] = uint32_t(p1);
        c[2][i] = n2;
        c[3][i] = uint32_t(p0);
      }
      k0 += kWeyl0;
      k1 += kWeyl1;
    }
    const int64_t count = std::min(kBatch, blocks - first);
    for (int64_t i = 0; i < count; ++i)
      for (int w = 0; w < 4; ++w)
        words[(first + i) * 4 + w] = c[w][i];
  }
}

namespace {

using isa::Dtype;
using isa::PhiloxFunction;

/// Elements of a chunk start at a multiple of four in the generator, so that pairs and blocks stay whole.
constexpr int64_t kWords = kRoutineChunk;

/// In place: uniform words to standard normal values, two by two.
void boxMuller(int64_t n, const uint32_t *words, float *out, float *temporary) {
  const FunctionTable &table = functionTable();
  const int64_t pairs = n / 2;
  float *radius = temporary, *angle = temporary + pairs;
  for (int64_t i = 0; i < pairs; ++i) {
    radius[i] = float((words[2 * i] >> 8) + 1) * 0x1p-24f; // (0, 1]
    angle[i] = float(words[2 * i + 1] >> 8) * 0x1p-24f * 6.28318530717958647692f;
  }
  table.floatUnary[int(isa::FloatUnaryFunction::Log)](pairs, radius, radius);
  for (int64_t i = 0; i < pairs; ++i)
    radius[i] *= -2.0f;
  table.floatUnary[int(isa::FloatUnaryFunction::Sqrt)](pairs, radius, radius);
  float *sine = out + 0, *cosine = out + pairs;
  table.floatUnary[int(isa::FloatUnaryFunction::Sin)](pairs, angle, sine);
  table.floatUnary[int(isa::FloatUnaryFunction::Cos)](pairs, angle, cosine);
  for (int64_t i = 0; i < pairs; ++i) {
    angle[i] = radius[i] * sine[i];
    radius[i] *= cosine[i];
  }
  for (int64_t i = 0; i < pairs; ++i) {
    out[2 * i] = radius[i];
    out[2 * i + 1] = angle[i];
  }
}

class PhiloxOp : public TileOp {
public:
  PhiloxOp(const RoutineOperands &operands)
      : dst_(operands.dst), state_(operands.src0), start_(operands.src1), function_(PhiloxFunction(operands.function)) {
    units_ = dst_.partitions;
    nanoseconds_ = workOf(dst_, function_ == PhiloxFunction::Normal ? 6.0 : 4.0);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    // A bits64 element takes half a block, every other one a quarter.
    const int64_t perBlock = function_ == PhiloxFunction::Bits64 ? 2 : 4;
    uint32_t *words = reinterpret_cast<uint32_t *>(worker.stage[0]);
    float *values = worker.stage[1];
    for (int64_t row = begin; row < end; ++row) {
      int64_t state[2], start;
      loadTyped(state_, machine.base, row, 0, 2, state);
      loadTyped(start_, machine.base, row, 0, 1, &start);
      for (int64_t c0 = 0; c0 < dst_.n;) {
        const uint64_t element = uint64_t(start) + uint64_t(c0);
        const int64_t skip = int64_t(element % perBlock);
        const int64_t capacity = kWords / 4 * perBlock - skip;
        const int64_t n = std::min(capacity, dst_.n - c0);
        const int64_t blocks = (skip + n + perBlock - 1) / perBlock;
        philoxBlocks(element / perBlock, uint64_t(state[1]), uint64_t(state[0]), blocks, words);
        store(machine, row, c0, n, skip, blocks, words, values, worker);
        c0 += n;
      }
    }
  }

private:
  void store(Machine &machine, int64_t row, int64_t c0, int64_t n, int64_t skip, int64_t blocks, const uint32_t *words,
             float *values, Worker &worker) const {
    switch (function_) {
    case PhiloxFunction::Bits:
      storeTyped(dst_, machine.base, row, c0, n, words + skip);
      return;
    case PhiloxFunction::Bits64:
      // Little endian: the first word of a pair is the low half.
      storeTyped(dst_, machine.base, row, c0, n, reinterpret_cast<const uint64_t *>(words) + skip);
      return;
    case PhiloxFunction::Uniform:
      for (int64_t i = 0; i < n; ++i)
        values[i] = float(words[skip + i] >> 8) * 0x1p-24f;
      storeRange(dst_, dst_.row(machine.base, row), c0, n, values);
      return;
    case PhiloxFunction::Normal:
      boxMuller(blocks * 4, words, values, worker.stage[2]);
      storeRange(dst_, dst_.row(machine.base, row), c0, n, values + skip);
      return;
    }
  }

  Operand dst_, state_, start_;
  PhiloxFunction function_;
};

class Iota64Op : public TileOp {
public:
  Iota64Op(const RoutineOperands &operands) : dst_(operands.dst), immediates_(operands.immediates) {
    inner_ = operands.dstTile.count[3];
    outer_ = operands.dstTile.count[2];
    units_ = dst_.partitions;
    nanoseconds_ = workOf(dst_, 0.8);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    int64_t *values = reinterpret_cast<int64_t *>(worker.stage[0]);
    for (int64_t row = begin; row < end; ++row)
      for (int64_t c0 = 0; c0 < dst_.n; c0 += kRoutineChunk) {
        const int64_t n = std::min(kRoutineChunk, dst_.n - c0);
        for (int64_t i = 0; i < n; ++i) {
          const uint64_t element = uint64_t(c0 + i);
          values[i] = int64_t(uint64_t(immediates_[0]) + uint64_t(row) * uint64_t(immediates_[1]) +
                              element / inner_ % outer_ * uint64_t(immediates_[2]) +
                              element % inner_ * uint64_t(immediates_[3]));
        }
        storeTyped(dst_, machine.base, row, c0, n, values);
      }
  }

private:
  Operand dst_;
  std::array<int64_t, 4> immediates_;
  uint64_t inner_, outer_;
};

} // namespace

TileOpOrError decodePhilox(const RoutineOperands &operands) {
  if (operands.src0.dtype != Dtype::I64 || operands.src0.n != 2)
    return unsupported("expected src0 to hold (seed, offset) as two i64 per partition");
  if (operands.src1.dtype != Dtype::I64 || operands.src1.n != 1)
    return unsupported("expected src1 to hold the first element's index as one i64 per partition");
  if (operands.src0.partitions != operands.dst.partitions || operands.src1.partitions != operands.dst.partitions)
    return unsupported(cat("expected src0 and src1 to have ", operands.dst.partitions, " partitions but got ",
                           operands.src0.partitions, " and ", operands.src1.partitions));
  const auto function = PhiloxFunction(operands.function);
  const Dtype dtype = operands.dst.dtype;
  if (function == PhiloxFunction::Bits && dtype != Dtype::I32 && dtype != Dtype::U32)
    return unsupported(cat("bits: expected an i32 destination but got ", isa::toString(dtype)));
  if (function == PhiloxFunction::Bits64 && dtype != Dtype::I64 && dtype != Dtype::U64)
    return unsupported(cat("bits64: expected an i64 destination but got ", isa::toString(dtype)));
  if ((function == PhiloxFunction::Uniform || function == PhiloxFunction::Normal) && !isa::isFloatDtype(dtype))
    return unsupported(cat(isa::toString(function), ": expected a float destination but got ", isa::toString(dtype)));
  return TileOpOrError(std::make_unique<PhiloxOp>(operands));
}

TileOpOrError decodeIota64(const RoutineOperands &operands) {
  if (operands.dst.dtype != Dtype::I64 && operands.dst.dtype != Dtype::U64)
    return unsupported(cat("expected an i64 destination but got ", isa::toString(operands.dst.dtype)));
  if (operands.dstTile.count[0] != 1 || operands.dstTile.count[1] != 1)
    return unsupported("only the two innermost free dimensions have steps; the outer ones must have one element");
  return TileOpOrError(std::make_unique<Iota64Op>(operands));
}

} // namespace neuroncore::emulator

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tensor_copy, tensor_copy_predicated, memset, range_select, iota, affine_select, tensor_tensor_scan.

#include <algorithm>
#include <cstring>

#include "lib/Emulator/Ops/Ops.h"
#include "lib/Emulator/Sequencer.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Support/Text.h"

namespace neuroncore::emulator {
namespace {

using isa::AluOp;
using isa::Dtype;
using isa::Instruction;

int64_t estimate(const Operand &operand, double nsPerElement) {
  return int64_t(double(operand.partitions) * double(operand.n) * nsPerElement);
}

// ---------------------------------------------------------------------------------------------------------------------
// tensor_copy
// ---------------------------------------------------------------------------------------------------------------------

/// Equal dtypes: the bits move, whatever they mean.
class RawCopyOp : public TileOp {
public:
  RawCopyOp(const Operand &out, const Operand &in) : out_(out), in_(in) {
    units_ = out_.partitions;
    nanoseconds_ = estimate(out_, 0.04 * out_.bytes);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    const int64_t rowBytes = out_.n * out_.bytes;
    const bool contiguous = out_.isContiguous() && in_.isContiguous();
    for (int64_t row = begin; row < end; ++row) {
      const uint8_t *from = in_.row(machine.base, row);
      uint8_t *to = out_.row(machine.base, row);
      if (contiguous) {
        std::memmove(to, from, rowBytes);
        continue;
      }
      uint8_t *buffer = reinterpret_cast<uint8_t *>(worker.stage);
      const int64_t chunk = kStageElements * int64_t(sizeof(float)) / out_.bytes;
      for (int64_t c0 = 0; c0 < out_.n; c0 += chunk) {
        const int64_t columns = std::min(chunk, out_.n - c0);
        loadRaw(in_, from, c0, columns, buffer);
        storeRaw(out_, to, c0, columns, buffer);
      }
    }
  }

private:
  Operand out_, in_;
};

/// Through fp32; contiguous fp32 and bf16 in one pass.
class CastCopyOp : public TileOp {
public:
  CastCopyOp(const Operand &out, const Operand &in) : out_(out), in_(in) {
    const Operand *operands[] = {&in_, &out_};
    plan_ = planBlocks(operands, true);
    Storage from = Storage::F32, to = Storage::F32;
    if (plan_.inPlace[0])
      storageOf(in_.dtype, from);
    if (plan_.inPlace[1])
      storageOf(out_.dtype, to);
    kernel_ = elementwiseTable().pair[0][0][int(from)][int(to)];
    units_ = out_.partitions;
    nanoseconds_ = estimate(out_, 0.2);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    static constexpr float kZero = 0;
    const Operand *inputs[] = {&in_};
    forBlocks(plan_, inputs, out_, machine, worker, begin, end,
              [&](int64_t rows, int64_t columns, const ConstRows *in, MutableRows out, int64_t) {
                const RowScalars none = {&kZero, 0, 0};
                if (plan_.flat)
                  kernel_(1, rows * columns, in[0], none, none, out);
                else
                  kernel_(rows, columns, in[0], none, none, out);
              });
  }

private:
  Operand out_, in_;
  BlockPlan plan_;
  TensorScalarKernel kernel_;
};

/// 0/1 bytes from predicate elements of any integer width.
void loadPredicate(const Operand &operand, const uint8_t *row, int64_t first, int64_t n, uint8_t *raw, uint8_t *flags) {
  loadRaw(operand, row, first, n, raw);
  switch (operand.bytes) {
  case 1:
    for (int64_t i = 0; i < n; ++i)
      flags[i] = raw[i] != 0;
    break;
  case 2:
    for (int64_t i = 0; i < n; ++i)
      flags[i] = (raw[2 * i] | raw[2 * i + 1]) != 0;
    break;
  default:
    for (int64_t i = 0; i < n; ++i) {
      uint32_t value;
      std::memcpy(&value, raw + 4 * i, 4);
      flags[i] = value != 0;
    }
  }
}

template <typename T> void blend(int64_t n, const uint8_t *flags, uint8_t wanted, const uint8_t *from, uint8_t *to) {
  const T *in = reinterpret_cast<const T *>(from);
  T *out = reinterpret_cast<T *>(to);
  for (int64_t i = 0; i < n; ++i)
    out[i] = flags[i] == wanted ? in[i] : out[i];
}

class CopyPredicatedOp : public TileOp {
public:
  CopyPredicatedOp(const Instruction &instruction, const DecodeContext &context)
      : out_(instruction.tiles[0], context.layout), in_(instruction.tiles[1], context.layout),
        predicate_(instruction.tiles[2], context.layout), wanted_(instruction.reverse0 ? 0 : 1) {
    units_ = out_.partitions;
    nanoseconds_ = estimate(out_, 0.6);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    uint8_t *from = reinterpret_cast<uint8_t *>(worker.stage[0]);
    uint8_t *to = reinterpret_cast<uint8_t *>(worker.stage[1]);
    uint8_t *raw = reinterpret_cast<uint8_t *>(worker.stage[2]);
    uint8_t *flags = reinterpret_cast<uint8_t *>(worker.stage[3]);
    const int64_t chunk = kStageElements / 2; // 8-byte elements fit a buffer
    for (int64_t row = begin; row < end; ++row)
      for (int64_t c0 = 0; c0 < out_.n; c0 += chunk) {
        const int64_t columns = std::min(chunk, out_.n - c0);
        loadPredicate(predicate_, predicate_.row(machine.base, row), c0, columns, raw, flags);
        loadRaw(in_, in_.row(machine.base, row), c0, columns, from);
        loadRaw(out_, out_.row(machine.base, row), c0, columns, to);
        switch (out_.bytes) {
        case 1:
          blend<uint8_t>(columns, flags, wanted_, from, to);
          break;
        case 2:
          blend<uint16_t>(columns, flags, wanted_, from, to);
          break;
        case 4:
          blend<uint32_t>(columns, flags, wanted_, from, to);
          break;
        default:
          blend<uint64_t>(columns, flags, wanted_, from, to);
        }
        storeRaw(out_, out_.row(machine.base, row), c0, columns, to);
      }
  }

private:
  Operand out_, in_, predicate_;
  uint8_t wanted_;
};

// ---------------------------------------------------------------------------------------------------------------------
// memset
// ---------------------------------------------------------------------------------------------------------------------

class MemsetOp : public TileOp {
public:
  MemsetOp(const Instruction &instruction, const DecodeContext &context) : out_(instruction.tiles[0], context.layout) {
    // Float dtypes take the fp32 value, integers the raw bits (sign extended to 64 bits).
    const isa::ScalarOperand &scalar = instruction.scalars[0];
    if (isa::isFloatDtype(out_.dtype)) {
      storeFromFloat(out_.dtype, scalar.asFloat(), element_);
    } else {
      const int64_t value = int32_t(scalar.bits);
      const uint64_t bits = out_.dtype == Dtype::U64 ? uint64_t(scalar.bits) : uint64_t(value);
      std::memcpy(element_, &bits, 8);
    }
    units_ = out_.partitions;
    nanoseconds_ = estimate(out_, 0.03 * out_.bytes);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    // One filled buffer, then copies.
    uint8_t *buffer = reinterpret_cast<uint8_t *>(worker.stage);
    const int64_t chunk = std::min<int64_t>(out_.n, kStageElements * int64_t(sizeof(float)) / out_.bytes);
    for (int64_t i = 0; i < chunk; ++i)
      std::memcpy(buffer + i * out_.bytes, element_, out_.bytes);
    for (int64_t row = begin; row < end; ++row)
      for (int64_t c0 = 0; c0 < out_.n; c0 += chunk)
        storeRaw(out_, out_.row(machine.base, row), c0, std::min(chunk, out_.n - c0), buffer);
  }

private:
  Operand out_;
  uint8_t element_[8] = {};
};

// ---------------------------------------------------------------------------------------------------------------------
// range_select, iota, affine_select
// ---------------------------------------------------------------------------------------------------------------------

bool compareFloats(AluOp op, float a, float b) {
  switch (op) {
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
  default:
    return a < b;
  }
}

class RangeSelectOp : public TileOp {
public:
  RangeSelectOp(const Instruction &instruction, const DecodeContext &context)
      : out_(instruction.tiles[0], context.layout), in_(instruction.tiles[1], context.layout),
        bound0_(instruction.scalars[0], instruction.tiles[1], context.layout),
        bound1_(instruction.scalars[1], instruction.tiles[1], context.layout), op0_(instruction.op0),
        op1_(instruction.op1), start_(instruction.immediate) {
    units_ = out_.partitions;
    nanoseconds_ = estimate(out_, 1.0);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    float *values = worker.stage[0];
    for (int64_t row = begin; row < end; ++row) {
      const float bound0 = bound0_.rows(machine.base, row).at(0), bound1 = bound1_.rows(machine.base, row).at(0);
      for (int64_t c0 = 0; c0 < out_.n; c0 += kStageElements) {
        const int64_t columns = std::min<int64_t>(kStageElements, out_.n - c0);
        loadRange(in_, in_.row(machine.base, row), c0, columns, values);
        for (int64_t i = 0; i < columns; ++i) {
          const float k = float(start_ + c0 + i);
          if (!compareFloats(op0_, k, bound0) || !compareFloats(op1_, k, bound1))
            values[i] = -3.4028235e38f;
        }
        storeRange(out_, out_.row(machine.base, row), c0, columns, values);
      }
    }
  }

private:
  Operand out_, in_;
  ScalarRef bound0_, bound1_;
  AluOp op0_, op1_;
  int64_t start_;
};

/// offset + p * channelMultiplier + sum(i_k * step_k), 32-bit wrap.
class AffineIndex {
public:
  AffineIndex(const Instruction &instruction)
      : offset_(int32_t(instruction.immediates[0])), channelMultiplier_(int32_t(instruction.immediates[1])) {
    const isa::TilePattern &tile = instruction.tiles[0];
    const int64_t steps[4] = {instruction.immediates[2], instruction.immediates[3], instruction.immediates[4],
                              instruction.immediates[5]};
    for (int i = 0; i < 4; ++i) {
      count_[i] = tile.count[i];
      step_[i] = int32_t(steps[i]);
    }
  }

  /// Values of elements [first, first + n) of partition `row`.
  void fill(int64_t row, int64_t first, int64_t n, int32_t *to) const {
    int64_t index[4];
    int64_t rest = first;
    for (int i = 3; i >= 0; --i) {
      index[i] = rest % count_[i];
      rest /= count_[i];
    }
    const uint32_t start = uint32_t(offset_) + uint32_t(row) * uint32_t(channelMultiplier_);
    int64_t done = 0;
    while (done < n) {
      uint32_t value = start;
      for (int i = 0; i < 4; ++i)
        value += uint32_t(index[i]) * uint32_t(step_[i]);
      const int64_t run = std::min(n - done, count_[3] - index[3]);
      for (int64_t i = 0; i < run; ++i)
        to[done + i] = int32_t(value + uint32_t(i) * uint32_t(step_[3]));
      done += run;
      index[3] = 0;
      for (int i = 2; i >= 0; --i) {
        if (++index[i] < count_[i])
          break;
        index[i] = 0;
      }
    }
  }

private:
  int32_t offset_, channelMultiplier_;
  int64_t count_[4];
  int32_t step_[4];
};

class IotaOp : public TileOp {
public:
  IotaOp(const Instruction &instruction, const DecodeContext &context)
      : out_(instruction.tiles[0], context.layout), index_(instruction) {
    units_ = out_.partitions;
    nanoseconds_ = estimate(out_, 0.4);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    int32_t *values = reinterpret_cast<int32_t *>(worker.stage[0]);
    float *floats = worker.stage[1];
    for (int64_t row = begin; row < end; ++row)
      for (int64_t c0 = 0; c0 < out_.n; c0 += kStageElements / 2) {
        const int64_t columns = std::min<int64_t>(kStageElements / 2, out_.n - c0);
        index_.fill(row, c0, columns, values);
        uint8_t *to = out_.row(machine.base, row);
        if (out_.dtype == Dtype::I32 || out_.dtype == Dtype::U32) {
          storeRaw(out_, to, c0, columns, reinterpret_cast<const uint8_t *>(values));
        } else if (out_.bytes == 8 && out_.dtype != Dtype::F64) {
          int64_t *wide = reinterpret_cast<int64_t *>(worker.stage[2]);
          std::copy(values, values + columns, wide);
          storeRaw(out_, to, c0, columns, reinterpret_cast<const uint8_t *>(wide));
        } else {
          std::copy(values, values + columns, floats);
          storeRange(out_, to, c0, columns, floats);
        }
      }
  }

private:
  Operand out_;
  AffineIndex index_;
};

class AffineSelectOp : public TileOp {
public:
  AffineSelectOp(const Instruction &instruction, const DecodeContext &context)
      : out_(instruction.tiles[0], context.layout), in_(instruction.tiles[1], context.layout), index_(instruction),
        onFalse_(instruction.scalars[0], instruction.tiles[1], context.layout), op_(instruction.op0) {
    units_ = out_.partitions;
    nanoseconds_ = estimate(out_, 0.8);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    int32_t *index = reinterpret_cast<int32_t *>(worker.stage[0]);
    float *values = worker.stage[1];
    for (int64_t row = begin; row < end; ++row) {
      const float onFalse = onFalse_.rows(machine.base, row).at(0);
      for (int64_t c0 = 0; c0 < out_.n; c0 += kStageElements) {
        const int64_t columns = std::min<int64_t>(kStageElements, out_.n - c0);
        index_.fill(row, c0, columns, index);
        loadRange(in_, in_.row(machine.base, row), c0, columns, values);
        for (int64_t i = 0; i < columns; ++i)
          if (!compareRegisters(op_, index[i], 0))
            values[i] = onFalse;
        storeRange(out_, out_.row(machine.base, row), c0, columns, values);
      }
    }
  }

private:
  Operand out_, in_;
  AffineIndex index_;
  ScalarRef onFalse_;
  AluOp op_;
};

// ---------------------------------------------------------------------------------------------------------------------
// tensor_tensor_scan
// ---------------------------------------------------------------------------------------------------------------------

/// s_i = (src0_i op0 s) op1 src1_i. Serial along the row, so rows are taken in groups that run side by side.
class ScanOp : public TileOp {
public:
  ScanOp(const Instruction &instruction, const DecodeContext &context)
      : out_(instruction.tiles[0], context.layout), a_(instruction.tiles[1], context.layout),
        b_(instruction.tiles[2], context.layout),
        initial_(instruction.scalars[0], instruction.tiles[1], context.layout), reverse0_(instruction.reverse0),
        reverse1_(instruction.reverse1), first_(instruction.op0), second_(instruction.op1) {
    units_ = out_.partitions;
    nanoseconds_ = estimate(out_, 3.0);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    constexpr int64_t kGroup = 32;
    constexpr int64_t kColumns = kStageElements / kGroup;
    for (int64_t r0 = begin; r0 < end; r0 += kGroup) {
      const int64_t rows = std::min<int64_t>(kGroup, end - r0);
      float *state = worker.stage[3];
      for (int64_t r = 0; r < rows; ++r)
        state[r] = initial_.rows(machine.base, r0 + r).at(0);
      for (int64_t c0 = 0; c0 < out_.n; c0 += kColumns) {
        const int64_t columns = std::min(kColumns, out_.n - c0);
        loadTransposed(a_, machine.base, r0, rows, c0, columns, worker.stage[0], worker.stage[4]);
        loadTransposed(b_, machine.base, r0, rows, c0, columns, worker.stage[1], worker.stage[4]);
        float *results = worker.stage[2];
        for (int64_t c = 0; c < columns; ++c) {
          const ConstRows x = {worker.stage[0] + c * rows, 0}, y = {worker.stage[1] + c * rows, 0};
          const ConstRows s = {state, 0};
          tensorTensorF32(first_, 1, rows, reverse0_ ? s : x, reverse0_ ? x : s, {worker.stage[5], 0});
          const ConstRows t = {worker.stage[5], 0};
          tensorTensorF32(second_, 1, rows, reverse1_ ? y : t, reverse1_ ? t : y, {state, 0});
          std::copy(state, state + rows, results + c * rows);
        }
        float *rowMajor = worker.stage[4];
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < columns; ++c)
            rowMajor[r * columns + c] = results[c * rows + r];
        storeBlock(out_, machine.base, r0, rows, c0, columns, rowMajor);
      }
    }
  }

private:
  static void loadTransposed(const Operand &operand, const uint8_t *base, int64_t r0, int64_t rows, int64_t c0,
                             int64_t columns, float *to, float *temporary) {
    loadBlock(operand, base, r0, rows, c0, columns, temporary);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        to[c * rows + r] = temporary[r * columns + c];
  }

  Operand out_, a_, b_;
  ScalarRef initial_;
  bool reverse0_, reverse1_;
  AluOp first_, second_;
};

} // namespace

TileOpOrError decodeCopy(const Instruction &instruction, const DecodeContext &context) {
  const Operand out(instruction.tiles[0], context.layout), in(instruction.tiles[1], context.layout);
  if (out.dtype == in.dtype)
    return TileOpOrError(std::make_unique<RawCopyOp>(out, in));
  return TileOpOrError(std::make_unique<CastCopyOp>(out, in));
}

TileOpOrError decodeCopyPredicated(const Instruction &instruction, const DecodeContext &context) {
  return TileOpOrError(std::make_unique<CopyPredicatedOp>(instruction, context));
}

TileOpOrError decodeMemset(const Instruction &instruction, const DecodeContext &context) {
  return TileOpOrError(std::make_unique<MemsetOp>(instruction, context));
}

TileOpOrError decodeRangeSelect(const Instruction &instruction, const DecodeContext &context) {
  return TileOpOrError(std::make_unique<RangeSelectOp>(instruction, context));
}

TileOpOrError decodeIota(const Instruction &instruction, const DecodeContext &context) {
  return TileOpOrError(std::make_unique<IotaOp>(instruction, context));
}

TileOpOrError decodeAffineSelect(const Instruction &instruction, const DecodeContext &context) {
  return TileOpOrError(std::make_unique<AffineSelectOp>(instruction, context));
}

TileOpOrError decodeScan(const Instruction &instruction, const DecodeContext &context) {
  const ElementwiseTable &table = elementwiseTable();
  if (!table.hasForm[int(instruction.op0)] || !table.hasForm[int(instruction.op1)])
    return unsupported(cat("tensor_tensor_scan has no fp32 form of ", isa::toString(instruction.op0), " and ",
                           isa::toString(instruction.op1)));
  return TileOpOrError(std::make_unique<ScanOp>(instruction, context));
}

} // namespace neuroncore::emulator

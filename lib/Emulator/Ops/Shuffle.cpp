// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The vector engine's transpose, shuffle and search: transpose, stream_shuffle, max8, find_index8.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lib/Emulator/Ops/Ops.h"
#include "neuron/Support/Text.h"

namespace neuroncore::emulator {
namespace {

using isa::Instruction;

constexpr int kBlock = 32;

/// Units are pairs of a 32-partition group; blocks keep their place, so groups are independent.
class TransposeOp : public TileOp {
public:
  TransposeOp(const Instruction &instruction, const DecodeContext &context)
      : out_(instruction.tiles[0], context.layout), in_(instruction.tiles[1], context.layout) {
    units_ = out_.partitions;
    alignment_ = kBlock;
    nanoseconds_ = int64_t(double(out_.partitions) * double(out_.n) * 0.3);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    const int bytes = out_.bytes;
    // Blocks go through buffers, so that source and destination may be one tile.
    uint8_t *source = reinterpret_cast<uint8_t *>(worker.stage[0]);
    uint8_t *target = reinterpret_cast<uint8_t *>(worker.stage[2]);
    const int64_t rowBytes = kBlock * bytes;
    for (int64_t row = begin; row < end; row += kBlock)
      for (int64_t column = 0; column < out_.n; column += kBlock) {
        for (int r = 0; r < kBlock; ++r)
          loadRaw(in_, in_.row(machine.base, row + r), column, kBlock, source + r * rowBytes);
        transposeTable().ofBytes(bytes)(kBlock, kBlock, source, rowBytes, target, rowBytes);
        for (int r = 0; r < kBlock; ++r)
          storeRaw(out_, out_.row(machine.base, row + r), column, kBlock, target + r * rowBytes);
      }
  }

private:
  Operand out_, in_;
};

class StreamShuffleOp : public TileOp {
public:
  StreamShuffleOp(const Instruction &instruction, const DecodeContext &context)
      : out_(instruction.tiles[0], context.layout), in_(instruction.tiles[1], context.layout) {
    for (int i = 0; i < kBlock; ++i)
      mask_[i] = uint8_t(uint64_t(instruction.immediates[i / 8]) >> (8 * (i % 8)));
    units_ = out_.partitions;
    alignment_ = kBlock;
    nanoseconds_ = int64_t(double(out_.partitions) * double(out_.n) * 0.05 * out_.bytes);
  }

  Status check() const {
    for (int row = 0; row < out_.partitions; ++row) {
      const int source = row / kBlock * kBlock + mask_[row % kBlock];
      if (mask_[row % kBlock] != 255 && source >= in_.partitions)
        return unsupported(cat("stream_shuffle reads partition ", source, " of a tile of ", in_.partitions,
                               " partitions; widen the tile or set the mask entry to 255"));
    }
    return Status::success();
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    // A quadrant is gathered first: the tile may be shuffled in place.
    const int64_t rowBytes = out_.n * out_.bytes;
    uint8_t *buffer = worker.scratchBytes(size_t(rowBytes) * kBlock);
    for (int64_t quadrant = begin; quadrant < end; quadrant += kBlock) {
      const int64_t rows = std::min<int64_t>(kBlock, end - quadrant);
      for (int64_t i = 0; i < rows; ++i)
        if (mask_[i] != 255)
          loadRaw(in_, in_.row(machine.base, quadrant + mask_[i]), 0, out_.n, buffer + i * rowBytes);
      for (int64_t i = 0; i < rows; ++i)
        if (mask_[i] != 255)
          storeRaw(out_, out_.row(machine.base, quadrant + i), 0, out_.n, buffer + i * rowBytes);
    }
  }

private:
  Operand out_, in_;
  uint8_t mask_[kBlock];
};

/// Order of max8: NaN before everything, then descending.
bool comesBefore(float a, float b) { return std::isnan(a) ? !std::isnan(b) : a > b; }

class Max8Op : public TileOp {
public:
  Max8Op(const Instruction &instruction, const DecodeContext &context)
      : out_(instruction.tiles[0], context.layout), in_(instruction.tiles[1], context.layout) {
    units_ = out_.partitions;
    nanoseconds_ = int64_t(double(in_.partitions) * double(in_.n) * 0.8);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    float *values = worker.stage[0];
    for (int64_t row = begin; row < end; ++row) {
      float top[8];
      int count = 0;
      for (int64_t c0 = 0; c0 < in_.n; c0 += kStageElements) {
        const int64_t columns = std::min<int64_t>(kStageElements, in_.n - c0);
        loadRange(in_, in_.row(machine.base, row), c0, columns, values);
        for (int64_t i = 0; i < columns; ++i) {
          if (count == 8 && !comesBefore(values[i], top[7]))
            continue;
          int place = count < 8 ? count++ : 7;
          for (; place > 0 && comesBefore(values[i], top[place - 1]); --place)
            top[place] = top[place - 1];
          top[place] = values[i];
        }
      }
      storeRange(out_, out_.row(machine.base, row), 0, 8, top);
    }
  }

private:
  Operand out_, in_;
};

/// The k-th occurrence of a value goes to its k-th slot. NaN finds NaN, so that max8 and find_index8 agree.
class FindIndex8Op : public TileOp {
public:
  FindIndex8Op(const Instruction &instruction, const DecodeContext &context)
      : out_(instruction.tiles[0], context.layout), in_(instruction.tiles[1], context.layout),
        values_(instruction.tiles[2], context.layout) {
    units_ = out_.partitions;
    nanoseconds_ = int64_t(double(in_.partitions) * double(in_.n) * 2.0);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    float *row = worker.stage[0];
    for (int64_t p = begin; p < end; ++p) {
      float wanted[8];
      uint32_t index[8];
      bool open[8];
      loadRange(values_, values_.row(machine.base, p), 0, 8, wanted);
      std::fill_n(open, 8, true);
      std::fill_n(index, 8, ~0u);
      int left = 8;
      for (int64_t c0 = 0; c0 < in_.n && left > 0; c0 += kStageElements) {
        const int64_t columns = std::min<int64_t>(kStageElements, in_.n - c0);
        loadRange(in_, in_.row(machine.base, p), c0, columns, row);
        for (int64_t i = 0; i < columns && left > 0; ++i)
          for (int k = 0; k < 8; ++k)
            if (open[k] && (row[i] == wanted[k] || (std::isnan(row[i]) && std::isnan(wanted[k])))) {
              open[k] = false;
              index[k] = uint32_t(c0 + i);
              --left;
              break;
            }
      }
      uint16_t narrow[8];
      for (int k = 0; k < 8; ++k)
        narrow[k] = uint16_t(index[k]);
      storeRaw(out_, out_.row(machine.base, p), 0, 8,
               out_.bytes == 2 ? reinterpret_cast<const uint8_t *>(narrow) : reinterpret_cast<const uint8_t *>(index));
    }
  }

private:
  Operand out_, in_, values_;
};

} // namespace

TileOpOrError decodeTranspose(const Instruction &instruction, const DecodeContext &context) {
  return TileOpOrError(std::make_unique<TransposeOp>(instruction, context));
}

TileOpOrError decodeStreamShuffle(const Instruction &instruction, const DecodeContext &context) {
  auto op = std::make_unique<StreamShuffleOp>(instruction, context);
  if (Status status = op->check(); !status)
    return status.error();
  return TileOpOrError(std::move(op));
}

TileOpOrError decodeMax8(const Instruction &instruction, const DecodeContext &context) {
  return TileOpOrError(std::make_unique<Max8Op>(instruction, context));
}

TileOpOrError decodeFindIndex8(const Instruction &instruction, const DecodeContext &context) {
  return TileOpOrError(std::make_unique<FindIndex8Op>(instruction, context));
}

} // namespace neuroncore::emulator

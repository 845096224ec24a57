// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands of compute instructions, resolved when a program is loaded: access patterns in canonical form (adjacent
// dimensions merged), with offsets into the image. Blocks of an operand that a kernel cannot read in place are staged
// through small fp32 buffers.

#ifndef NEURON_LIB_EMULATOR_OPERAND_H
#define NEURON_LIB_EMULATOR_OPERAND_H

#include <array>
#include <cstdint>

#include "lib/Emulator/Kernels/Kernels.h"
#include "lib/Emulator/Machine.h"

namespace neuroncore::emulator {

/// Dimensions of an access pattern, outermost first; steps in bytes.
struct Pattern {
  int numDims = 0;
  std::array<int64_t, 6> count = {};
  std::array<int64_t, 6> step = {};

  void add(int64_t dimCount, int64_t dimStep) {
    count[numDims] = dimCount;
    step[numDims++] = dimStep;
  }
  int64_t elements() const {
    int64_t n = 1;
    for (int i = 0; i < numDims; ++i)
      n *= count[i];
    return n;
  }
  /// Drops dimensions of one element and merges neighbours that one dimension describes; at least one dimension is
  /// left.
  void canonicalise(int64_t elementBytes);
  /// Byte offset of element `index` in row-major order.
  int64_t offsetOf(int64_t index) const;
  bool isSame(const Pattern &other) const;
};

/// Free dimensions [first, last) of a tile pattern.
Pattern freePattern(const isa::TilePattern &tile, int first, int last);

struct Operand {
  int64_t offset = 0; // of partition 0 of the tile, from the image's base
  int64_t stride = 0; // from one partition to the next
  isa::Dtype dtype = isa::Dtype::None;
  int bytes = 0; // of an element
  int partitions = 0;
  int startPartition = 0;
  int64_t n = 0; // elements per partition
  Pattern free;

  Operand() = default;
  Operand(const isa::TilePattern &tile, const ImageLayout &image);

  bool present() const { return bytes != 0; }
  bool isContiguous() const { return free.numDims == 1 && (free.step[0] == bytes || n == 1); }
  /// One value per partition, repeated.
  bool isRowConstant() const { return free.numDims == 1 && free.step[0] == 0 && n > 1; }
  /// Innermost elements at one distance.
  int64_t innerCount() const { return free.count[free.numDims - 1]; }
  int64_t innerStep() const { return free.step[free.numDims - 1]; }

  uint8_t *row(uint8_t *base, int64_t partition) const { return base + offset + partition * stride; }
  /// The same elements in the same order.
  bool isSame(const Operand &other) const {
    return offset == other.offset && stride == other.stride && dtype == other.dtype && partitions == other.partitions &&
           free.isSame(other.free);
  }
};

/// Whether a kernel may write contiguous rows of `out` while it reads those of `in` from left to right: they are apart,
/// or element i of one is element i of the other.
bool mayWriteWhileReading(const Operand &out, const Operand &in);

/// True for the element types that kernels read and write in place.
bool storageOf(isa::Dtype dtype, Storage &storage);

/// fp32 values of elements [first, first + n) of a row that starts at `row`.
void loadRange(const Operand &operand, const uint8_t *row, int64_t first, int64_t n, float *to);
void storeRange(const Operand &operand, uint8_t *row, int64_t first, int64_t n, const float *from);
/// A block of rows [r0, r0 + rows) and columns [c0, c0 + cols), row-major and without gaps in `to`.
void loadBlock(const Operand &operand, const uint8_t *base, int64_t r0, int64_t rows, int64_t c0, int64_t cols,
               float *to);
void storeBlock(const Operand &operand, uint8_t *base, int64_t r0, int64_t rows, int64_t c0, int64_t cols,
                const float *from);

/// The same without conversion: elements of operand.bytes bytes.
void loadRaw(const Operand &operand, const uint8_t *row, int64_t first, int64_t n, uint8_t *to);
void storeRaw(const Operand &operand, uint8_t *row, int64_t first, int64_t n, const uint8_t *from);

/// How a tile with several operands is cut into blocks (element-wise instructions: all operands have the same number of
/// elements per partition).
struct BlockPlan {
  int64_t run = 0;     // blocks do not cross multiples of this column
  int64_t columns = 0; // of a full block
  int64_t rows = 0;    // of a full block; 0: all at once
  /// In place, as kernel storage; staged otherwise.
  std::array<bool, 4> inPlace = {};
  /// All operands are staged, so a block is one long row.
  bool flat = false;
};

/// `operands`: inputs and output; `allowBf16`: the kernel can read and write bf16 in place.
BlockPlan planBlocks(std::span<const Operand *const> operands, bool allowBf16);

/// The scalar operands of an instruction: a constant, or one value per partition of the first source tile.
struct ScalarRef {
  bool isVector = false;
  float value = 0;
  uint32_t bits = 0;
  int64_t offset = 0;
  int64_t stride = 0;

  ScalarRef() = default;
  ScalarRef(const isa::ScalarOperand &scalar, const isa::TilePattern &firstSource, const ImageLayout &image);
  /// For rows starting at partition `row`.
  RowScalars rows(const uint8_t *base, int64_t row) const {
    if (!isVector)
      return {&value, 0, 0};
    return {base + offset + row * stride, stride, 0};
  }
  uint32_t bitsAt(const uint8_t *base, int64_t row) const {
    if (!isVector)
      return bits;
    uint32_t v;
    __builtin_memcpy(&v, base + offset + row * stride, sizeof(v));
    return v;
  }
};

} // namespace neuroncore::emulator

#endif // NEURON_LIB_EMULATOR_OPERAND_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Emulator/Operand.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

namespace neuroncore::emulator {

using isa::Dtype;
using isa::kMaxFreeDims;

void Pattern::canonicalise(int64_t elementBytes) {
  int out = 0;
  for (int i = 0; i < numDims; ++i) {
    if (count[i] == 1)
      continue;
    if (out > 0 && step[out - 1] == count[i] * step[i]) {
      count[out - 1] *= count[i];
      step[out - 1] = step[i];
      continue;
    }
    count[out] = count[i];
    step[out++] = step[i];
  }
  if (out == 0) {
    count[0] = 1;
    step[0] = elementBytes;
    out = 1;
  }
  numDims = out;
}

int64_t Pattern::offsetOf(int64_t index) const {
  int64_t offset = 0;
  for (int i = numDims - 1; i > 0; --i) {
    offset += index % count[i] * step[i];
    index /= count[i];
  }
  return offset + index * step[0];
}

bool Pattern::isSame(const Pattern &other) const {
  return numDims == other.numDims && std::equal(count.begin(), count.begin() + numDims, other.count.begin()) &&
         std::equal(step.begin(), step.begin() + numDims, other.step.begin());
}

Pattern freePattern(const isa::TilePattern &tile, int first, int last) {
  const int bytes = isa::dtypeBytes(tile.dtype);
  Pattern pattern;
  for (int i = first; i < last; ++i)
    pattern.add(tile.count[i], int64_t(tile.step[i]) * bytes);
  pattern.canonicalise(bytes);
  return pattern;
}

Operand::Operand(const isa::TilePattern &tile, const ImageLayout &image)
    : offset(image.offset(tile.space, tile.startPartition, tile.byteOffset)), stride(image.stride(tile.space)),
      dtype(tile.dtype), bytes(isa::dtypeBytes(tile.dtype)), partitions(tile.numPartitions),
      startPartition(tile.startPartition), n(tile.elementsPerPartition()), free(freePattern(tile, 0, kMaxFreeDims)) {}

bool mayWriteWhileReading(const Operand &out, const Operand &in) {
  if (out.offset == in.offset && out.bytes == in.bytes)
    return true;
  // Rows are in the same order, so only the places within a partition count.
  const int64_t outBegin = out.offset % out.stride, inBegin = in.offset % in.stride;
  return out.stride != in.stride || outBegin + out.n * out.bytes <= inBegin || inBegin + in.n * in.bytes <= outBegin;
}

bool storageOf(Dtype dtype, Storage &storage) {
  if (dtype == Dtype::F32)
    storage = Storage::F32;
  else if (dtype == Dtype::Bf16)
    storage = Storage::Bf16;
  else
    return false;
  return true;
}

namespace {

/// Calls visit(offset, step, run, position) for the runs of equally spaced elements that make up [first, first + n).
template <class Visit> void forRuns(const Operand &operand, int64_t first, int64_t n, Visit visit) {
  const Pattern &free = operand.free;
  const int64_t innerCount = operand.innerCount();
  const int64_t innerStep = operand.innerStep();
  int64_t done = 0;
  if (free.numDims == 1) {
    visit(first * innerStep, innerStep, n, int64_t(0));
    return;
  }
  // Odometer over the outer dimensions.
  std::array<int64_t, 6> index = {};
  int64_t rest = first / innerCount;
  int64_t inner = first % innerCount;
  int64_t offset = 0;
  for (int i = free.numDims - 2; i >= 0; --i) {
    index[i] = i == 0 ? rest : rest % free.count[i];
    rest /= free.count[i];
    offset += index[i] * free.step[i];
  }
  while (done < n) {
    const int64_t run = std::min(n - done, innerCount - inner);
    visit(offset + inner * innerStep, innerStep, run, done);
    done += run;
    inner = 0;
    for (int i = free.numDims - 2; i >= 0; --i) {
      offset += free.step[i];
      if (++index[i] < free.count[i] || i == 0)
        break;
      offset -= index[i] * free.step[i];
      index[i] = 0;
    }
  }
}

template <typename T> void gather(const uint8_t *from, int64_t step, int64_t n, uint8_t *to) {
  for (int64_t i = 0; i < n; ++i)
    std::memcpy(to + i * sizeof(T), from + i * step, sizeof(T));
}

template <typename T> void scatter(const uint8_t *from, int64_t step, int64_t n, uint8_t *to) {
  for (int64_t i = 0; i < n; ++i)
    std::memcpy(to + i * step, from + i * sizeof(T), sizeof(T));
}

void gatherBytes(int bytes, const uint8_t *from, int64_t step, int64_t n, uint8_t *to) {
  if (step == bytes) {
    std::memcpy(to, from, n * bytes);
    return;
  }
  switch (bytes) {
  case 1:
    return gather<uint8_t>(from, step, n, to);
  case 2:
    return gather<uint16_t>(from, step, n, to);
  case 4:
    return gather<uint32_t>(from, step, n, to);
  default:
    return gather<uint64_t>(from, step, n, to);
  }
}

void scatterBytes(int bytes, const uint8_t *from, int64_t step, int64_t n, uint8_t *to) {
  if (step == bytes) {
    std::memcpy(to, from, n * bytes);
    return;
  }
  switch (bytes) {
  case 1:
    return scatter<uint8_t>(from, step, n, to);
  case 2:
    return scatter<uint16_t>(from, step, n, to);
  case 4:
    return scatter<uint32_t>(from, step, n, to);
  default:
    return scatter<uint64_t>(from, step, n, to);
  }
}

} // namespace

void loadRange(const Operand &operand, const uint8_t *row, int64_t first, int64_t n, float *to) {
  const LoadKernel load = convertTable().load[int(operand.dtype)];
  const int bytes = operand.bytes;
  forRuns(operand, first, n, [&](int64_t offset, int64_t step, int64_t run, int64_t position) {
    const uint8_t *from = row + offset;
    float *out = to + position;
    if (step == bytes) {
      load(run, from, out);
    } else if (step == 0) {
      load(1, from, out);
      std::fill(out + 1, out + run, out[0]);
    } else if (operand.dtype == Dtype::F32) {
      gather<uint32_t>(from, step, run, reinterpret_cast<uint8_t *>(out));
    } else {
      // Bring the raw elements together first: one conversion call per run.
      alignas(8) uint8_t raw[128 * 8];
      for (int64_t i = 0; i < run; i += 128) {
        const int64_t count = std::min<int64_t>(128, run - i);
        gatherBytes(bytes, from + i * step, step, count, raw);
        load(count, raw, out + i);
      }
    }
  });
}

void storeRange(const Operand &operand, uint8_t *row, int64_t first, int64_t n, const float *from) {
  const StoreKernel store = convertTable().store[int(operand.dtype)];
  const int bytes = operand.bytes;
  forRuns(operand, first, n, [&](int64_t offset, int64_t step, int64_t run, int64_t position) {
    uint8_t *to = row + offset;
    const float *in = from + position;
    if (step == bytes) {
      store(run, in, to);
    } else if (operand.dtype == Dtype::F32) {
      scatter<uint32_t>(reinterpret_cast<const uint8_t *>(in), step, run, to);
    } else {
      alignas(8) uint8_t raw[128 * 8];
      for (int64_t i = 0; i < run; i += 128) {
        const int64_t count = std::min<int64_t>(128, run - i);
        store(count, in + i, raw);
        scatterBytes(bytes, raw, step, count, to + i * step);
      }
    }
  });
}

void loadBlock(const Operand &operand, const uint8_t *base, int64_t r0, int64_t rows, int64_t c0, int64_t cols,
               float *to) {
  const uint8_t *row = base + operand.offset + r0 * operand.stride;
  if (operand.n == 1 && operand.dtype == Dtype::F32) {
    for (int64_t r = 0; r < rows; ++r)
      std::memcpy(to + r, row + r * operand.stride, sizeof(float));
    return;
  }
  if (operand.isContiguous()) {
    const LoadKernel load = convertTable().load[int(operand.dtype)];
    for (int64_t r = 0; r < rows; ++r)
      load(cols, row + r * operand.stride + c0 * operand.bytes, to + r * cols);
    return;
  }
  for (int64_t r = 0; r < rows; ++r)
    loadRange(operand, row + r * operand.stride, c0, cols, to + r * cols);
}

void storeBlock(const Operand &operand, uint8_t *base, int64_t r0, int64_t rows, int64_t c0, int64_t cols,
                const float *from) {
  uint8_t *row = base + operand.offset + r0 * operand.stride;
  if (operand.n == 1 && operand.dtype == Dtype::F32) {
    for (int64_t r = 0; r < rows; ++r)
      std::memcpy(row + r * operand.stride, from + r, sizeof(float));
    return;
  }
  if (operand.isContiguous()) {
    const StoreKernel store = convertTable().store[int(operand.dtype)];
    for (int64_t r = 0; r < rows; ++r)
      store(cols, from + r * cols, row + r * operand.stride + c0 * operand.bytes);
    return;
  }
  for (int64_t r = 0; r < rows; ++r)
    storeRange(operand, row + r * operand.stride, c0, cols, from + r * cols);
}

void loadRaw(const Operand &operand, const uint8_t *row, int64_t first, int64_t n, uint8_t *to) {
  forRuns(operand, first, n, [&](int64_t offset, int64_t step, int64_t run, int64_t position) {
    gatherBytes(operand.bytes, row + offset, step, run, to + position * operand.bytes);
  });
}

void storeRaw(const Operand &operand, uint8_t *row, int64_t first, int64_t n, const uint8_t *from) {
  forRuns(operand, first, n, [&](int64_t offset, int64_t step, int64_t run, int64_t position) {
    scatterBytes(operand.bytes, from + position * operand.bytes, step, run, row + offset);
  });
}

BlockPlan planBlocks(std::span<const Operand *const> operands, bool allowBf16) {
  constexpr int64_t kSmallRow = 8;  // shorter rows waste the vector width
  constexpr int64_t kShortRun = 16; // shorter runs are gathered
  BlockPlan plan;
  const int64_t n = operands[0]->n;
  // The longest run in which every operand is one-dimensional.
  int64_t run = n;
  for (const Operand *operand : operands)
    if (operand->free.numDims > 1)
      run = std::gcd(run, operand->innerCount());
  const bool useRuns = run >= kShortRun;
  bool anyStaged = false;
  bool allStaged = true;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand &operand = *operands[i];
    Storage storage;
    const bool type = storageOf(operand.dtype, storage) && (storage == Storage::F32 || allowBf16);
    const bool oneRun = useRuns || operand.free.numDims == 1;
    plan.inPlace[i] = type && oneRun && operand.innerStep() == operand.bytes && n >= kSmallRow;
    anyStaged |= !plan.inPlace[i];
    allStaged &= !plan.inPlace[i];
  }
  plan.run = useRuns ? run : n;
  plan.columns = plan.run;
  if (anyStaged) {
    plan.columns = std::min<int64_t>(plan.columns, kStageElements);
    plan.rows = std::max<int64_t>(1, kStageElements / plan.columns);
  }
  plan.flat = allStaged;
  return plan;
}

ScalarRef::ScalarRef(const isa::ScalarOperand &scalar, const isa::TilePattern &firstSource, const ImageLayout &image)
    : isVector(scalar.kind == isa::ScalarOperand::Kind::Vector), value(scalar.asFloat()), bits(scalar.bits) {
  if (!isVector)
    return;
  offset = image.offset(scalar.space, firstSource.startPartition, scalar.byteOffset);
  stride = image.stride(scalar.space);
}

} // namespace neuroncore::emulator

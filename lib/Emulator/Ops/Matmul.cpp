// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// load_stationary and matmul. The stationary is copied once per load into the kernel's packing; the moving operand is
// converted panel by panel, so one kernel serves all dtypes and access patterns. bf16 and smaller types convert to fp32
// exactly, hence products are exact and only the sums round.

#include "lib/Emulator/Ops/Matmul.h"

#include <algorithm>
#include <cstring>

#include "neuron/Support/Text.h"

namespace neuroncore::emulator {

using isa::Instruction;

// ---------------------------------------------------------------------------------------------------------------------
// load_stationary
// ---------------------------------------------------------------------------------------------------------------------

LoadStationaryOp::LoadStationaryOp(const Instruction &instruction, const DecodeContext &context)
    : in_(instruction.tiles[0], context.layout), packed_(context.needsPacked), raw_(context.needsRaw) {
  nanoseconds_ = int64_t(double(in_.partitions) * double(in_.n) * 0.5);
}

void LoadStationaryOp::prepare(Stationary &stationary) const {
  stationary.k = in_.partitions;
  stationary.m = int(in_.n);
  stationary.dtype = in_.dtype;
  stationary.hasPacked = packed_;
  stationary.hasRaw = raw_;
  const int64_t blockRows = matmulTable().blockRows;
  if (packed_)
    stationary.packed.resize(size_t((in_.n + blockRows - 1) / blockRows * blockRows * in_.partitions) + 16);
}

int LoadStationaryOp::groups() const { return int((in_.n + kGroupColumns - 1) / kGroupColumns); }

void LoadStationaryOp::run(Machine &machine, Worker &worker, int, int) const {
  Stationary &stationary = machine.stationary;
  prepare(stationary);
  if (packed_)
    pack(stationary, machine, worker, 0, groups());
  if (raw_) {
    stationary.raw.resize(size_t(in_.partitions) * in_.n * in_.bytes);
    for (int64_t row = 0; row < in_.partitions; ++row)
      loadRaw(in_, in_.row(machine.base, row), 0, in_.n, stationary.raw.data() + row * in_.n * in_.bytes);
  }
}

void LoadStationaryOp::pack(Stationary &stationary, const Machine &machine, Worker &worker, int firstGroup,
                            int lastGroup) const {
  const int64_t k = in_.partitions, first = int64_t(firstGroup) * kGroupColumns;
  const int64_t columns = std::min<int64_t>(in_.n, int64_t(lastGroup) * kGroupColumns) - first;
  // Whole blocks of rows: a group has a multiple of them.
  float *packed = stationary.packed.data() + first * k;
  Storage storage;
  if (storageOf(in_.dtype, storage) && in_.isContiguous()) {
    matmulTable().packStationary[int(storage)](k, columns, {in_.row(machine.base, 0) + first * in_.bytes, in_.stride},
                                               packed);
    return;
  }
  float *values = reinterpret_cast<float *>(worker.scratchBytes(size_t(k * columns) * sizeof(float)));
  loadBlock(in_, machine.base, 0, k, first, columns, values);
  matmulTable().packStationary[int(Storage::F32)](k, columns, {values, columns * int64_t(sizeof(float))}, packed);
}

// ---------------------------------------------------------------------------------------------------------------------
// matmul
// ---------------------------------------------------------------------------------------------------------------------

MatmulOp::MatmulOp(const Instruction &instruction, const DecodeContext &context)
    : out_(instruction.tiles[0], context.layout), moving_(instruction.tiles[1], context.layout),
      accumulate_(instruction.accumulate) {
  const MatmulTable &table = matmulTable();
  units_ = int((out_.n + table.panelColumns - 1) / table.panelColumns);
  nanoseconds_ = int64_t(double(out_.partitions) * double(moving_.partitions) * double(out_.n) * 0.03);
  outInPlace_ = out_.dtype == isa::Dtype::F32 && out_.isContiguous();
  Storage storage;
  movingInPlace_ = storageOf(moving_.dtype, storage) && moving_.isContiguous();
  storage_ = movingInPlace_ ? storage : Storage::F32;
  isNarrow_ = outInPlace_ && movingInPlace_ && out_.partitions <= table.blockRows;
  outBegin_ = instruction.tiles[0].byteOffset;
  outEnd_ = outBegin_ + out_.bytes;
  for (int i = 0; i < out_.free.numDims; ++i) {
    const int64_t extent = (out_.free.count[i] - 1) * out_.free.step[i];
    (extent < 0 ? outBegin_ : outEnd_) += extent;
  }
}

/// Where panel `panel` begins. A last panel of a single vector would leave most of the kernel's registers unused: it
/// takes one from its neighbour.
int64_t MatmulOp::firstColumn(int panel) const {
  const MatmulTable &table = matmulTable();
  const int64_t lanes = table.lanes, panelVectors = table.panelColumns / lanes;
  if (panel >= units_)
    return out_.n;
  const int64_t vectors = (out_.n + lanes - 1) / lanes;
  const bool takesOne = panel != 0 && panel == units_ - 1 && vectors - panel * panelVectors == 1 && panelVectors > 2;
  return (panel * panelVectors - (takesOne ? 1 : 0)) * lanes;
}

bool MatmulOp::sharesPanels(const MatmulOp &other) const {
  return !isNarrow_ && !other.isNarrow_ && moving_.isSame(other.moving_);
}

bool MatmulOp::dividesWith(const MatmulOp &other) const {
  if (outEnd_ <= other.outBegin_ || other.outEnd_ <= outBegin_)
    return true;
  const int first = out_.startPartition, otherFirst = other.out_.startPartition;
  if (first + out_.partitions <= otherFirst || otherFirst + other.out_.partitions <= first)
    return true;
  return outBegin_ == other.outBegin_ && out_.dtype == other.out_.dtype && out_.free.isSame(other.out_.free);
}

size_t MatmulOp::panelFloats(int count) const {
  // For scattered results one panel of them.
  return size_t(int64_t(count) * moving_.partitions + (outInPlace_ ? 0 : out_.partitions)) *
         size_t(matmulTable().panelColumns);
}

void MatmulOp::run(Machine &machine, Worker &worker, int begin, int end) const {
  const Stationary &stationary = machine.stationary;
  if (!matches(stationary)) {
    worker.fail(ErrorKind::InvalidInput,
                cat("matmul_c1, matmul_c2: expected a stationary of K = ", moving_.partitions,
                    " and M = ", out_.partitions, " but ",
                    stationary.k == 0 ? std::string("none is loaded")
                                      : cat("the loaded one has K = ", stationary.k, " and M = ", stationary.m)));
    return;
  }
  if (isNarrow_) {
    multiplyNarrow(stationary, machine, begin, end);
    return;
  }
  float *panels = reinterpret_cast<float *>(worker.scratchBytes(panelFloats(1) * sizeof(float)));
  for (int panel = begin; panel < end; ++panel) {
    pack(machine, panel, panel + 1, panels);
    multiply(stationary, machine, panel, panel + 1, panels);
  }
}

void MatmulOp::multiplyNarrow(const Stationary &stationary, const Machine &machine, int firstPanel,
                              int lastPanel) const {
  const int64_t first = firstColumn(firstPanel), last = firstColumn(lastPanel);
  const ConstRows moving = {moving_.row(machine.base, 0) + first * moving_.bytes, moving_.stride};
  const MutableRows out = {out_.row(machine.base, 0) + first * int64_t(sizeof(float)), out_.stride};
  matmulTable().narrow[int(storage_)](stationary.k, stationary.m, last - first, stationary.packed.data(), moving,
                                      accumulate_, out);
}

void MatmulOp::multiply(const Stationary &stationary, const Machine &machine, int firstPanel, int lastPanel,
                        float *panels) const {
  const MatmulTable &table = matmulTable();
  const int64_t k = stationary.k, m = stationary.m, width = table.panelColumns;
  const float *packed = stationary.packed.data();
  float *results = panels + (lastPanel - firstPanel) * k * width;
  for (int panel = firstPanel; panel < lastPanel; ++panel, panels += k * width) {
    const int64_t column = firstColumn(panel), columns = firstColumn(panel + 1) - column;
    if (outInPlace_) {
      const MutableRows out = {out_.row(machine.base, 0) + column * int64_t(sizeof(float)), out_.stride};
      table.panel(k, m, columns, packed, panels, accumulate_, out);
      continue;
    }
    if (accumulate_)
      for (int64_t row = 0; row < m; ++row)
        loadRange(out_, out_.row(machine.base, row), column, columns, results + row * width);
    table.panel(k, m, columns, packed, panels, accumulate_, {results, width * int64_t(sizeof(float))});
    for (int64_t row = 0; row < m; ++row)
      storeRange(out_, out_.row(machine.base, row), column, columns, results + row * width);
  }
}

void MatmulOp::pack(const Machine &machine, int firstPanel, int lastPanel, float *panels) const {
  const int64_t k = moving_.partitions, width = matmulTable().panelColumns;
  for (int panel = firstPanel; panel < lastPanel; ++panel, panels += k * width) {
    const int64_t column = firstColumn(panel), columns = firstColumn(panel + 1) - column;
    const uint8_t *from = moving_.row(machine.base, 0) + column * moving_.bytes;
    if (movingInPlace_) {
      matmulTable().packPanel[int(storage_)](k, columns, {from, moving_.stride}, panels);
      continue;
    }
    if (moving_.isContiguous()) {
      const LoadKernel load = convertTable().load[int(moving_.dtype)];
      for (int64_t row = 0; row < k; ++row)
        load(columns, from + row * moving_.stride, panels + row * width);
    } else {
      for (int64_t row = 0; row < k; ++row)
        loadRange(moving_, moving_.row(machine.base, row), column, columns, panels + row * width);
    }
    if (columns < width)
      for (int64_t row = 0; row < k; ++row)
        std::fill(panels + row * width + columns, panels + (row + 1) * width, 0.0f);
  }
}

namespace {

/// dst[m, k] has the bits of stationary[k, m]. The hardware passes the stationary through the array against an
/// identity; here the moving operand is only required to have the identity's shape.
class MatmulTransposeOp : public TileOp {
public:
  MatmulTransposeOp(const Instruction &instruction, const DecodeContext &context)
      : out_(instruction.tiles[0], context.layout), moving_(instruction.tiles[1], context.layout) {
    units_ = out_.partitions;
    alignment_ = 16;
    nanoseconds_ = int64_t(double(out_.partitions) * double(out_.n) * 0.2);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    const Stationary &stationary = machine.stationary;
    if (stationary.k != moving_.partitions || stationary.m != out_.partitions || !stationary.hasRaw ||
        out_.n != stationary.k || stationary.dtype != out_.dtype) {
      worker.fail(ErrorKind::InvalidInput,
                  cat("matmul_c7: expected a stationary of K = ", out_.n, ", M = ", out_.partitions, " and dtype ",
                      isa::toString(out_.dtype), " but ",
                      stationary.k == 0 ? std::string("none is loaded")
                                        : cat("the loaded one has K = ", stationary.k, ", M = ", stationary.m,
                                              " and dtype ", isa::toString(stationary.dtype))));
      return;
    }
    if (out_.bytes == 4)
      transpose<uint32_t>(machine, worker, begin, end);
    else
      transpose<uint16_t>(machine, worker, begin, end);
  }

private:
  template <typename T> void transpose(Machine &machine, Worker &worker, int begin, int end) const {
    const Stationary &stationary = machine.stationary;
    const int64_t k = stationary.k, m = stationary.m;
    const T *from = reinterpret_cast<const T *>(stationary.raw.data());
    const TransposeKernel kernel = transposeTable().ofBytes(sizeof(T));
    const int64_t fromStep = m * int64_t(sizeof(T));
    if (out_.isContiguous()) {
      kernel(end - begin, k, from + begin, fromStep, out_.row(machine.base, begin), out_.stride);
      return;
    }
    constexpr int64_t kTile = 64 / sizeof(T);
    T *buffer = reinterpret_cast<T *>(worker.scratchBytes(size_t(kTile * k) * sizeof(T)));
    for (int64_t m0 = begin; m0 < end; m0 += kTile) {
      const int64_t rows = std::min<int64_t>(kTile, end - m0);
      kernel(rows, k, from + m0, fromStep, buffer, k * int64_t(sizeof(T)));
      for (int64_t r = 0; r < rows; ++r)
        storeRaw(out_, out_.row(machine.base, m0 + r), 0, k, reinterpret_cast<const uint8_t *>(buffer + r * k));
    }
  }

  Operand out_, moving_;
};

} // namespace

TileOpOrError decodeLoadStationary(const Instruction &instruction, const DecodeContext &context) {
  return TileOpOrError(std::make_unique<LoadStationaryOp>(instruction, context));
}

TileOpOrError decodeMatmul(const Instruction &instruction, const DecodeContext &context) {
  if (instruction.isTranspose)
    return TileOpOrError(std::make_unique<MatmulTransposeOp>(instruction, context));
  return TileOpOrError(std::make_unique<MatmulOp>(instruction, context));
}

} // namespace neuroncore::emulator

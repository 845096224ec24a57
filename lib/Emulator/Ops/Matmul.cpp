// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// load_stationary and matmul. The stationary is copied once per load into the kernel's packing; the moving operand is
// converted panel by panel, so one kernel serves all dtypes and access patterns. bf16 and smaller types convert to fp32
// exactly, hence products are exact and only the sums round.

#include <algorithm>
#include <cstring>

#include "lib/Emulator/Ops/Ops.h"
#include "neuron/Support/Text.h"

namespace neuroncore::emulator {
namespace {

using isa::Instruction;

class LoadStationaryOp : public TileOp {
public:
  LoadStationaryOp(const Instruction &instruction, const DecodeContext &context)
      : in_(instruction.tiles[0], context.layout), packed_(context.needsPacked), raw_(context.needsRaw) {}

  void run(Machine &machine, Worker &worker, int, int) const override {
    Stationary &stationary = machine.stationary;
    stationary.k = in_.partitions;
    stationary.m = int(in_.n);
    stationary.dtype = in_.dtype;
    stationary.hasPacked = packed_;
    stationary.hasRaw = raw_;
    if (packed_)
      pack(machine, worker);
    if (raw_) {
      stationary.raw.resize(size_t(in_.partitions) * in_.n * in_.bytes);
      for (int64_t row = 0; row < in_.partitions; ++row)
        loadRaw(in_, in_.row(machine.base, row), 0, in_.n, stationary.raw.data() + row * in_.n * in_.bytes);
    }
  }

private:
  void pack(Machine &machine, Worker &worker) const {
    const int blockRows = matmulTable().blockRows;
    const int64_t k = in_.partitions, m = in_.n;
    const int64_t blocks = (m + blockRows - 1) / blockRows;
    std::vector<float> &packed = machine.stationary.packed;
    packed.resize(size_t(blocks * k * blockRows) + 16);
    Storage storage;
    if (storageOf(in_.dtype, storage) && in_.isContiguous()) {
      matmulTable().packStationary[int(storage)](k, m, {in_.row(machine.base, 0), in_.stride}, packed.data());
      return;
    }
    float *values = reinterpret_cast<float *>(worker.scratchBytes(size_t(k * m) * sizeof(float)));
    loadBlock(in_, machine.base, 0, k, 0, m, values);
    matmulTable().packStationary[int(Storage::F32)](k, m, {values, m * int64_t(sizeof(float))}, packed.data());
  }

  Operand in_;
  bool packed_, raw_;
};

class MatmulOp : public TileOp {
public:
  MatmulOp(const Instruction &instruction, const DecodeContext &context)
      : out_(instruction.tiles[0], context.layout), moving_(instruction.tiles[1], context.layout),
        accumulate_(instruction.accumulate) {
    units_ = int(out_.n);
    alignment_ = matmulTable().panelColumns;
    nanoseconds_ = int64_t(double(out_.partitions) * double(moving_.partitions) * double(out_.n) * 0.03);
    outInPlace_ = out_.dtype == isa::Dtype::F32 && out_.isContiguous();
    Storage storage;
    movingInPlace_ = storageOf(moving_.dtype, storage) && moving_.isContiguous();
    storage_ = movingInPlace_ ? storage : Storage::F32;
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    const Stationary &stationary = machine.stationary;
    if (stationary.k != moving_.partitions || stationary.m != out_.partitions || !stationary.hasPacked) {
      worker.fail(ErrorKind::InvalidInput,
                  cat("matmul_c1, matmul_c2: expected a stationary of K = ", moving_.partitions,
                      " and M = ", out_.partitions, " but ",
                      stationary.k == 0 ? std::string("none is loaded")
                                        : cat("the loaded one has K = ", stationary.k, " and M = ", stationary.m)));
      return;
    }
    const MatmulTable &table = matmulTable();
    const int64_t k = stationary.k, m = stationary.m;
    const float *packed = stationary.packed.data();
    if (outInPlace_ && movingInPlace_ && m <= table.blockRows) {
      const ConstRows moving = {moving_.row(machine.base, 0) + begin * moving_.bytes, moving_.stride};
      const MutableRows out = {out_.row(machine.base, 0) + begin * int64_t(sizeof(float)), out_.stride};
      table.narrow[int(storage_)](k, m, end - begin, packed, moving, accumulate_, out);
      return;
    }
    const int64_t width = table.panelColumns;
    // The panel, then (for scattered outputs) one panel of results.
    float *panel = reinterpret_cast<float *>(worker.scratchBytes((k + m) * width * sizeof(float)));
    float *results = panel + k * width;
    for (int64_t column = begin; column < end; column += width) {
      const int64_t columns = std::min(width, end - column);
      loadPanel(machine, worker, column, columns, width, panel);
      if (outInPlace_) {
        const MutableRows out = {out_.row(machine.base, 0) + column * int64_t(sizeof(float)), out_.stride};
        table.panel(k, m, columns, packed, panel, accumulate_, out);
        continue;
      }
      if (accumulate_)
        for (int64_t row = 0; row < m; ++row)
          loadRange(out_, out_.row(machine.base, row), column, columns, results + row * width);
      table.panel(k, m, columns, packed, panel, accumulate_, {results, width * int64_t(sizeof(float))});
      for (int64_t row = 0; row < m; ++row)
        storeRange(out_, out_.row(machine.base, row), column, columns, results + row * width);
    }
  }

private:
  void loadPanel(Machine &machine, Worker &worker, int64_t column, int64_t columns, int64_t width, float *panel) const {
    const int64_t k = moving_.partitions;
    if (movingInPlace_ && columns == width) {
      matmulTable().packPanel[int(storage_)](k, {moving_.row(machine.base, 0) + column * moving_.bytes, moving_.stride},
                                             panel);
      return;
    }
    if (moving_.isContiguous()) {
      const LoadKernel load = convertTable().load[int(moving_.dtype)];
      const uint8_t *from = moving_.row(machine.base, 0) + column * moving_.bytes;
      for (int64_t row = 0; row < k; ++row)
        load(columns, from + row * moving_.stride, panel + row * width);
    } else {
      for (int64_t row = 0; row < k; ++row)
        loadRange(moving_, moving_.row(machine.base, row), column, columns, panel + row * width);
    }
    if (columns < width)
      for (int64_t row = 0; row < k; ++row)
        std::fill(panel + row * width + columns, panel + (row + 1) * width, 0.0f);
  }

  Operand out_, moving_;
  bool accumulate_;
  bool outInPlace_ = false, movingInPlace_ = false;
  Storage storage_ = Storage::F32;
};

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

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tensor_reduce, bn_stats, bn_aggr.

#include <algorithm>

#include "lib/Emulator/Ops/Ops.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Support/Text.h"

namespace neuroncore::emulator {
namespace {

using isa::Instruction;

class TensorReduceOp : public TileOp {
public:
  TensorReduceOp(const Instruction &instruction, const DecodeContext &context, ReduceOp op)
      : out_(instruction.tiles[0], context.layout), in_(instruction.tiles[1], context.layout), op_(op),
        negate_(instruction.negate) {
    const isa::TilePattern &source = instruction.tiles[1];
    const int split = isa::kMaxFreeDims - instruction.axes;
    kept_ = freePattern(source, 0, split);
    // The reduced dimensions as an operand of their own; its rows are the kept elements.
    reduced_ = in_;
    reduced_.free = freePattern(source, split, isa::kMaxFreeDims);
    reduced_.n = reduced_.free.elements();
    Storage storage;
    inPlace_ = storageOf(in_.dtype, storage) && reduced_.isContiguous();
    storage_ = inPlace_ ? storage : Storage::F32;
    // Kept elements side by side in memory: one vector lane each, if the row to reduce fits the partials.
    acrossLanes_ = !inPlace_ && reduced_.free.numDims == 1 && reduced_.n <= kReductionPartials && kept_.numDims == 1 &&
                   kept_.step[0] == in_.bytes && kept_.count[0] >= 8;
    units_ = out_.partitions;
    nanoseconds_ = int64_t(double(in_.partitions) * (double(in_.n) * 0.15 + double(out_.n) * 10.0));
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    const ReduceTable &table = reduceTable();
    const int op = int(op_);
    if (inPlace_ && out_.n == 1) {
      // One row per partition.
      float results[kPartitions];
      table.rows[op][int(storage_)](end - begin, reduced_.n, {in_.row(machine.base, begin), in_.stride}, results);
      finish(results, end - begin);
      storeBlock(out_, machine.base, begin, end - begin, 0, 1, results);
      return;
    }
    for (int64_t row = begin; row < end; ++row) {
      const uint8_t *from = in_.row(machine.base, row);
      float *results = worker.stage[1];
      for (int64_t k0 = 0; k0 < out_.n; k0 += kStageElements) {
        const int64_t kept = std::min<int64_t>(kStageElements, out_.n - k0);
        if (acrossLanes_)
          reduceAcrossLanes(from, k0, kept, results, worker);
        else if (inPlace_ && kept_.numDims == 1)
          table.rows[op][int(storage_)](kept, reduced_.n, {from + k0 * kept_.step[0], kept_.step[0]}, results);
        else
          for (int64_t k = 0; k < kept; ++k)
            results[k] = reduceOne(from + kept_.offsetOf(k0 + k), worker);
        finish(results, kept);
        storeRange(out_, out_.row(machine.base, row), k0, kept, results);
      }
    }
  }

private:
  float reduceOne(const uint8_t *row, Worker &worker) const {
    const ReduceTable &table = reduceTable();
    const int op = int(op_);
    if (inPlace_) {
      float result;
      table.rows[op][int(storage_)](1, reduced_.n, {row, 0}, &result);
      return result;
    }
    std::fill_n(worker.partials, kReductionPartials, reduceIdentity(op_));
    for (int64_t c0 = 0; c0 < reduced_.n; c0 += kStageElements) {
      const int64_t columns = std::min<int64_t>(kStageElements, reduced_.n - c0);
      loadRange(reduced_, row, c0, columns, worker.stage[0]);
      table.accumulate[op](columns, worker.stage[0], worker.partials);
    }
    return table.finish[op](worker.partials);
  }

  /// The tree over the partials, for many kept elements at once: partial i is element i of each row.
  void reduceAcrossLanes(const uint8_t *from, int64_t k0, int64_t kept, float *results, Worker &worker) const {
    const LoadKernel load = convertTable().load[int(in_.dtype)];
    constexpr int64_t kWidth = 64;
    float *partials = reinterpret_cast<float *>(worker.scratchBytes(kReductionPartials * kWidth * sizeof(float)));
    const isa::AluOp combine = combineOp();
    for (int64_t k = 0; k < kept; k += kWidth) {
      const int64_t width = std::min(kWidth, kept - k);
      const uint8_t *column = from + (k0 + k) * in_.bytes;
      const int64_t n = reduced_.n;
      for (int64_t i = 0; i < n; ++i) {
        float *partial = partials + i * kWidth;
        load(width, column + i * reduced_.free.step[0], partial);
        if (isLogical())
          for (int64_t w = 0; w < width; ++w)
            partial[w] = partial[w] != 0 ? 1.0f : 0.0f;
      }
      const float identity = reduceIdentity(op_);
      std::fill(partials + n * kWidth, partials + kReductionPartials * kWidth, identity);
      // Element i joins the identity first, as in the row kernels.
      for (int64_t i = 0; i < n && op_ == ReduceOp::Add; ++i)
        for (int64_t w = 0; w < width; ++w)
          partials[i * kWidth + w] += identity;
      for (int64_t half = kReductionPartials / 2; half >= 1; half /= 2)
        tensorTensorF32(combine, half, width, {partials, kWidth * 4}, {partials + half * kWidth, kWidth * 4},
                        {partials, kWidth * 4});
      std::copy(partials, partials + width, results + k);
    }
  }

  bool isLogical() const {
    return op_ == ReduceOp::LogicalAnd || op_ == ReduceOp::LogicalOr || op_ == ReduceOp::LogicalXor;
  }
  isa::AluOp combineOp() const {
    switch (op_) {
    case ReduceOp::Add:
      return isa::AluOp::Add;
    case ReduceOp::Multiply:
      return isa::AluOp::Multiply;
    case ReduceOp::Maximum:
      return isa::AluOp::Maximum;
    case ReduceOp::Minimum:
      return isa::AluOp::Minimum;
    case ReduceOp::LogicalAnd:
      return isa::AluOp::LogicalAnd;
    case ReduceOp::LogicalOr:
      return isa::AluOp::LogicalOr;
    case ReduceOp::LogicalXor:
      return isa::AluOp::LogicalXor;
    }
    return isa::AluOp::Add;
  }

  void finish(float *results, int64_t n) const {
    if (negate_)
      for (int64_t i = 0; i < n; ++i)
        results[i] = -results[i];
  }

  Operand out_, in_, reduced_;
  Pattern kept_;
  ReduceOp op_;
  bool negate_;
  bool inPlace_ = false, acrossLanes_ = false;
  Storage storage_ = Storage::F32;
};

/// (count, mean, variance * count) of the even, then of the odd elements; two passes, fp32.
class BnStatsOp : public TileOp {
public:
  BnStatsOp(const Instruction &instruction, const DecodeContext &context)
      : out_(instruction.tiles[0], context.layout), in_(instruction.tiles[1], context.layout) {
    units_ = out_.partitions;
    inPlace_ = storageOf(in_.dtype, storage_) && in_.isContiguous();
    nanoseconds_ = int64_t(double(in_.partitions) * (double(in_.n) * 0.15 + 20.0));
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    constexpr int64_t kResults = isa::kStatisticsResults;
    const ReduceTable &table = reduceTable();
    float results[kPartitions * kResults];
    if (inPlace_) {
      table.moments[int(storage_)](end - begin, in_.n, {in_.row(machine.base, begin), in_.stride}, results);
    } else {
      for (int64_t row = begin; row < end; ++row) {
        loadRange(in_, in_.row(machine.base, row), 0, in_.n, worker.stage[0]);
        table.moments[int(Storage::F32)](1, in_.n, {worker.stage[0], 0}, results + kResults * (row - begin));
      }
    }
    storeBlock(out_, machine.base, begin, end - begin, 0, kResults, results);
  }

private:
  Operand out_, in_;
  Storage storage_ = Storage::F32;
  bool inPlace_ = false;
};

/// Merges (count, mean, variance * count) triples in order.
class BnAggrOp : public TileOp {
public:
  BnAggrOp(const Instruction &instruction, const DecodeContext &context)
      : out_(instruction.tiles[0], context.layout), in_(instruction.tiles[1], context.layout) {
    units_ = out_.partitions;
    nanoseconds_ = int64_t(double(in_.partitions) * double(in_.n) * 1.0);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    constexpr int64_t kTriples = kStageElements / 3;
    float *triples = worker.stage[0];
    for (int64_t row = begin; row < end; ++row) {
      float count = 0, mean = 0, squares = 0;
      for (int64_t c0 = 0; c0 < in_.n; c0 += 3 * kTriples) {
        const int64_t columns = std::min<int64_t>(3 * kTriples, in_.n - c0);
        loadRange(in_, in_.row(machine.base, row), c0, columns, triples);
        for (int64_t i = 0; i < columns; i += 3) {
          const float n = triples[i];
          if (n == 0)
            continue;
          const float total = count + n;
          const float delta = triples[i + 1] - mean;
          mean += delta * (n / total);
          squares += triples[i + 2] + delta * delta * (count * n / total);
          count = total;
        }
      }
      const float results[2] = {mean, squares / count};
      storeRange(out_, out_.row(machine.base, row), 0, 2, results);
    }
  }

private:
  Operand out_, in_;
};

} // namespace

TileOpOrError decodeTensorReduce(const Instruction &instruction, const DecodeContext &context) {
  if (isa::aluOpInfo(instruction.op0).cls == isa::AluClass::Bitvec)
    return decodeBitvecReduce(instruction, context);
  ReduceOp op;
  if (!reduceOpOf(instruction.op0, op))
    return unsupported(cat("tensor_reduce cannot reduce with ", isa::toString(instruction.op0)));
  return TileOpOrError(std::make_unique<TensorReduceOp>(instruction, context, op));
}

TileOpOrError decodeBnStats(const Instruction &instruction, const DecodeContext &context) {
  return TileOpOrError(std::make_unique<BnStatsOp>(instruction, context));
}

TileOpOrError decodeBnAggr(const Instruction &instruction, const DecodeContext &context) {
  return TileOpOrError(std::make_unique<BnAggrOp>(instruction, context));
}

} // namespace neuroncore::emulator

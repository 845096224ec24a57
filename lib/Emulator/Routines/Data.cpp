// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Routines that select, move and search: select, gather, scatter, sort, arg_reduce.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lib/Emulator/Routines/Routines.h"
#include "neuron/Isa/RejectedIndex.h"

namespace neuroncore::emulator {
namespace {

using isa::ArgReduceFunction;
using isa::Dtype;
using isa::ScatterFunction;

// ---------------------------------------------------------------------------------------------------------------------
// select
// ---------------------------------------------------------------------------------------------------------------------

template <typename T> void choose(int64_t n, const uint8_t *flags, const uint8_t *a, const uint8_t *b, uint8_t *out) {
  const T *x = reinterpret_cast<const T *>(a), *y = reinterpret_cast<const T *>(b);
  T *z = reinterpret_cast<T *>(out);
  for (int64_t i = 0; i < n; ++i)
    z[i] = flags[i] ? x[i] : y[i];
}

class SelectOp : public TileOp {
public:
  SelectOp(const RoutineOperands &operands)
      : dst_(operands.dst), predicate_(operands.src0), a_(operands.src1), b_(operands.src2) {
    units_ = dst_.partitions;
    nanoseconds_ = workOf(dst_, 0.6);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    uint8_t *flags = reinterpret_cast<uint8_t *>(worker.stage[0]);
    uint8_t *x = reinterpret_cast<uint8_t *>(worker.stage[1]);
    uint8_t *y = reinterpret_cast<uint8_t *>(worker.stage[2]);
    uint8_t *z = reinterpret_cast<uint8_t *>(worker.stage[3]);
    for (int64_t row = begin; row < end; ++row)
      for (int64_t c0 = 0; c0 < dst_.n; c0 += kRoutineChunk) {
        const int64_t n = std::min(kRoutineChunk, dst_.n - c0);
        loadTyped(predicate_, machine.base, row, c0, n, flags);
        loadTyped(a_, machine.base, row, c0, n, x);
        loadTyped(b_, machine.base, row, c0, n, y);
        switch (dst_.bytes) {
        case 1:
          choose<uint8_t>(n, flags, x, y, z);
          break;
        case 2:
          choose<uint16_t>(n, flags, x, y, z);
          break;
        case 4:
          choose<uint32_t>(n, flags, x, y, z);
          break;
        default:
          choose<uint64_t>(n, flags, x, y, z);
        }
        storeTyped(dst_, machine.base, row, c0, n, z);
      }
  }

private:
  Operand dst_, predicate_, a_, b_;
};

// ---------------------------------------------------------------------------------------------------------------------
// gather and scatter inside a partition
// ---------------------------------------------------------------------------------------------------------------------

void failIndex(Worker &worker, int64_t index, int64_t n, int partition) {
  worker.failIndex(index, cat(isa::RejectedIndex::of(index).text(), " (partition ", partition,
                              ") is out of bounds: expected 0 <= index < ", n));
}

class GatherOp : public TileOp {
public:
  GatherOp(const RoutineOperands &operands) : dst_(operands.dst), src_(operands.src0), index_(operands.src1) {
    units_ = dst_.partitions;
    nanoseconds_ = workOf(dst_, 3.0);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    int64_t *index = reinterpret_cast<int64_t *>(worker.stage[0]);
    uint8_t *out = reinterpret_cast<uint8_t *>(worker.stage[1]);
    const int bytes = dst_.bytes;
    for (int64_t row = begin; row < end; ++row) {
      const uint8_t *source = src_.row(machine.base, row);
      for (int64_t c0 = 0; c0 < dst_.n; c0 += kRoutineChunk) {
        const int64_t n = std::min(kRoutineChunk, dst_.n - c0);
        loadIndices(index_, machine.base, row, c0, n, index, worker);
        for (int64_t i = 0; i < n; ++i) {
          if (index[i] < 0 || index[i] >= src_.n)
            return failIndex(worker, index[i], src_.n, src_.startPartition + int(row));
          std::memcpy(out + i * bytes, source + src_.free.offsetOf(index[i]), bytes);
        }
        storeTyped(dst_, machine.base, row, c0, n, out);
      }
    }
  }

private:
  Operand dst_, src_, index_;
};

template <typename T, bool kIsFloat> class ScatterOp : public TileOp {
public:
  ScatterOp(const RoutineOperands &operands)
      : dst_(operands.dst), src_(operands.src0), index_(operands.src1), function_(ScatterFunction(operands.function)) {
    units_ = dst_.partitions;
    nanoseconds_ = workOf(src_, 4.0);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    int64_t *index = reinterpret_cast<int64_t *>(worker.stage[0]);
    T *values = reinterpret_cast<T *>(worker.stage[1]);
    for (int64_t row = begin; row < end; ++row) {
      uint8_t *target = dst_.row(machine.base, row);
      for (int64_t c0 = 0; c0 < src_.n; c0 += kRoutineChunk) {
        const int64_t n = std::min(kRoutineChunk, src_.n - c0);
        loadIndices(index_, machine.base, row, c0, n, index, worker);
        loadTyped(src_, machine.base, row, c0, n, values);
        for (int64_t i = 0; i < n; ++i) {
          if (index[i] < 0 || index[i] >= dst_.n)
            return failIndex(worker, index[i], dst_.n, dst_.startPartition + int(row));
          uint8_t *element = target + dst_.free.offsetOf(index[i]);
          T old;
          std::memcpy(&old, element, sizeof(T));
          const T result = combine(old, values[i]);
          std::memcpy(element, &result, sizeof(T));
        }
      }
    }
  }

private:
  T combine(T old, T value) const {
    if (function_ == ScatterFunction::Store)
      return value;
    if constexpr (kIsFloat) {
      // fp32 arithmetic, one rounding to the element type.
      const float a = loadAsFloat(dst_.dtype, reinterpret_cast<const uint8_t *>(&old));
      const float b = loadAsFloat(dst_.dtype, reinterpret_cast<const uint8_t *>(&value));
      float result = 0;
      switch (function_) {
      case ScatterFunction::Add:
        result = a + b;
        break;
      case ScatterFunction::Multiply:
        result = a * b;
        break;
      case ScatterFunction::Maximum:
        result = b > a || b != b ? b : a;
        break;
      default:
        result = b < a || b != b ? b : a;
      }
      T bits;
      storeFromFloat(dst_.dtype, result, reinterpret_cast<uint8_t *>(&bits));
      return bits;
    } else {
      switch (function_) {
      case ScatterFunction::Add:
        return wrapAdd(old, value);
      case ScatterFunction::Multiply:
        return wrapMultiply(old, value);
      case ScatterFunction::Maximum:
        return std::max(old, value);
      default:
        return std::min(old, value);
      }
    }
  }

  Operand dst_, src_, index_;
  ScatterFunction function_;
};

// ---------------------------------------------------------------------------------------------------------------------
// sort
// ---------------------------------------------------------------------------------------------------------------------

/// NaN is larger than everything and equal to NaN.
template <typename T> bool sortsBefore(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a < b || (b != b && a == a);
  else
    return a < b;
}

/// T is float for the float dtypes of at most 32 bits: widening keeps their order and equality.
template <typename T> class SortOp : public TileOp {
public:
  SortOp(const RoutineOperands &operands, bool descending)
      : dst_(operands.dst), src_(operands.src0), indices_(operands.dst1), descending_(descending),
        length_(operands.src0Tile.count[isa::kMaxFreeDims - 1]) {
    units_ = dst_.partitions;
    nanoseconds_ = workOf(dst_, 60.0);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    const size_t valueBytes = (size_t(length_) * sizeof(T) + 63) / 64 * 64;
    uint8_t *memory = worker.scratchBytes(valueBytes + size_t(length_) * (sizeof(int64_t) + src_.bytes) + 128);
    T *values = reinterpret_cast<T *>(memory);
    int64_t *order = reinterpret_cast<int64_t *>(memory + valueBytes);
    uint8_t *raw = memory + valueBytes + size_t(length_) * sizeof(int64_t);
    for (int64_t row = begin; row < end; ++row)
      for (int64_t first = 0; first < src_.n; first += length_) {
        const uint8_t *from = src_.row(machine.base, row);
        if constexpr (std::is_same_v<T, float>)
          loadRange(src_, from, first, length_, values);
        else
          loadTyped(src_, machine.base, row, first, length_, values);
        loadRaw(src_, from, first, length_, raw);
        std::iota(order, order + length_, int64_t(0));
        if (descending_)
          std::stable_sort(order, order + length_,
                           [&](int64_t a, int64_t b) { return sortsBefore(values[b], values[a]); });
        else
          std::stable_sort(order, order + length_,
                           [&](int64_t a, int64_t b) { return sortsBefore(values[a], values[b]); });
        // The elements themselves move: bits are kept.
        for (int64_t i = 0; i < length_; ++i)
          storeRaw(dst_, dst_.row(machine.base, row), first + i, 1, raw + order[i] * src_.bytes);
        if (indices_.present())
          storeTyped(indices_, machine.base, row, first, length_, order);
      }
  }

private:
  Operand dst_, src_, indices_;
  bool descending_;
  int64_t length_;
};

// ---------------------------------------------------------------------------------------------------------------------
// arg_reduce
// ---------------------------------------------------------------------------------------------------------------------

template <typename T> class ArgReduceOp : public TileOp {
public:
  ArgReduceOp(const RoutineOperands &operands, int64_t reduced)
      : dst_(operands.dst), src_(operands.src0), value_(operands.dst1),
        maximum_(ArgReduceFunction(operands.function) == ArgReduceFunction::Maximum), reduced_(reduced),
        offset_(operands.immediates[1]) {
    units_ = dst_.partitions;
    nanoseconds_ = workOf(src_, 1.5);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    T *in = reinterpret_cast<T *>(worker.stage[0]);
    for (int64_t row = begin; row < end; ++row)
      for (int64_t kept = 0; kept < dst_.n; ++kept) {
        int64_t best = 0;
        T bestValue = 0;
        for (int64_t c0 = 0; c0 < reduced_; c0 += kRoutineChunk) {
          const int64_t n = std::min(kRoutineChunk, reduced_ - c0);
          if constexpr (std::is_same_v<T, float>)
            loadRange(src_, src_.row(machine.base, row), kept * reduced_ + c0, n, in);
          else
            loadTyped(src_, machine.base, row, kept * reduced_ + c0, n, in);
          for (int64_t i = 0; i < n; ++i)
            if (c0 + i == 0 || isBetter(in[i], bestValue)) {
              best = c0 + i;
              bestValue = in[i];
            }
        }
        const int64_t index = best + offset_;
        storeTyped(dst_, machine.base, row, kept, 1, &index);
        if (value_.present()) {
          uint8_t raw[8];
          loadRaw(src_, src_.row(machine.base, row), kept * reduced_ + best, 1, raw);
          storeRaw(value_, value_.row(machine.base, row), kept, 1, raw);
        }
      }
  }

private:
  /// The first NaN wins, then the first extreme value.
  bool isBetter(T candidate, T best) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (best != best)
        return false;
      if (candidate != candidate)
        return true;
    }
    return maximum_ ? candidate > best : candidate < best;
  }

  Operand dst_, src_, value_;
  bool maximum_;
  int64_t reduced_, offset_;
};

template <class Make> TileOpOrError withOrdered(Dtype dtype, const char *routine, Make &&make) {
  if (dtype == Dtype::F64)
    return make(double());
  if (isa::isFloatDtype(dtype))
    return make(float());
  return withInteger(dtype, routine, make);
}

} // namespace

TileOpOrError decodeSelect(const RoutineOperands &operands) {
  if (operands.src0.bytes != 1)
    return unsupported(cat("expected a u8 predicate but got ", isa::toString(operands.src0.dtype)));
  if (operands.src1.dtype != operands.dst.dtype || operands.src2.dtype != operands.dst.dtype)
    return unsupported(cat("expected operands of dtype ", isa::toString(operands.dst.dtype), " but got ",
                           isa::toString(operands.src1.dtype), " and ", isa::toString(operands.src2.dtype)));
  return TileOpOrError(std::make_unique<SelectOp>(operands));
}

namespace {
Status checkIndexed(const RoutineOperands &operands) {
  if (operands.src0.dtype != operands.dst.dtype)
    return unsupported(cat("expected src0 of dtype ", isa::toString(operands.dst.dtype), " but got ",
                           isa::toString(operands.src0.dtype)));
  if (!isa::isIntegerDtype(operands.src1.dtype))
    return unsupported(cat("expected integer indices but got ", isa::toString(operands.src1.dtype)));
  return Status::success();
}
} // namespace

TileOpOrError decodeGather(const RoutineOperands &operands) {
  if (Status status = checkIndexed(operands); !status)
    return status.error();
  if (operands.src1.n != operands.dst.n)
    return unsupported(cat("expected ", operands.dst.n, " indices per partition but got ", operands.src1.n));
  return TileOpOrError(std::make_unique<GatherOp>(operands));
}

TileOpOrError decodeScatter(const RoutineOperands &operands) {
  if (Status status = checkIndexed(operands); !status)
    return status.error();
  if (operands.src1.n != operands.src0.n)
    return unsupported(cat("expected ", operands.src0.n, " indices per partition but got ", operands.src1.n));
  if (isa::isIntegerDtype(operands.dst.dtype))
    return withInteger(operands.dst.dtype, "scatter", [&](auto tag) -> TileOpOrError {
      return TileOpOrError(std::make_unique<ScatterOp<decltype(tag), false>>(operands));
    });
  switch (operands.dst.bytes) {
  case 1:
    return TileOpOrError(std::make_unique<ScatterOp<uint8_t, true>>(operands));
  case 2:
    return TileOpOrError(std::make_unique<ScatterOp<uint16_t, true>>(operands));
  case 4:
    return TileOpOrError(std::make_unique<ScatterOp<uint32_t, true>>(operands));
  default:
    return unsupported("f64 elements are not supported");
  }
}

TileOpOrError decodeSort(const RoutineOperands &operands) {
  if (operands.src0.dtype != operands.dst.dtype)
    return unsupported(cat("expected dst of dtype ", isa::toString(operands.src0.dtype), " but got ",
                           isa::toString(operands.dst.dtype)));
  if (operands.dst1.present() && (operands.dst1.dtype != Dtype::I64 || operands.dst1.n != operands.dst.n))
    return unsupported("expected indices of dtype i64, one per element");
  const bool descending = operands.function == uint8_t(isa::SortFunction::Descending);
  return withOrdered(operands.src0.dtype, "sort", [&](auto tag) -> TileOpOrError {
    return TileOpOrError(std::make_unique<SortOp<decltype(tag)>>(operands, descending));
  });
}

TileOpOrError decodeArgReduce(const RoutineOperands &operands) {
  const int64_t axes = operands.immediates[0];
  if (axes < 1 || axes > isa::kMaxFreeDims)
    return unsupported(cat("expected 1 to ", isa::kMaxFreeDims, " reduced dimensions but got ", axes));
  const int64_t reduced = trailingElements(operands.src0Tile, axes);
  if (operands.dst.dtype != Dtype::I64)
    return unsupported(cat("expected an i64 destination but got ", isa::toString(operands.dst.dtype)));
  if (operands.dst.n * reduced != operands.src0.n)
    return unsupported(
        cat("expected ", operands.src0.n / reduced, " elements per partition of dst but got ", operands.dst.n));
  if (operands.dst1.present() && (operands.dst1.dtype != operands.src0.dtype || operands.dst1.n != operands.dst.n))
    return unsupported("expected values of src0's dtype, one per index");
  return withOrdered(operands.src0.dtype, "arg_reduce", [&](auto tag) -> TileOpOrError {
    return TileOpOrError(std::make_unique<ArgReduceOp<decltype(tag)>>(operands, reduced));
  });
}

} // namespace neuroncore::emulator

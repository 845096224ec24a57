// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// scan and partition_reduce: running reductions along the free axis, and reductions over the partitions (partition 0
// first).

#include <algorithm>
#include <cmath>

#include "lib/Emulator/Routines/Routines.h"

namespace neuroncore::emulator {
namespace {

using isa::Dtype;
using isa::PartitionReduceFunction;
using isa::ScanFunction;

float logAddExp(float a, float b) {
  if (std::isinf(a) && a == b)
    return a;
  if (a != a || b != b)
    return a + b;
  return float(std::fmax(double(a), double(b)) + std::log1p(std::exp(-std::fabs(double(a) - double(b)))));
}

float combineFloat(ScanFunction f, float a, float b) {
  switch (f) {
  case ScanFunction::Add:
    return a + b;
  case ScanFunction::Multiply:
    return a * b;
  case ScanFunction::Maximum:
    return b > a || b != b ? b : a;
  case ScanFunction::Minimum:
    return b < a || b != b ? b : a;
  case ScanFunction::Logaddexp:
    return logAddExp(a, b);
  }
  return a;
}

template <typename T> T combineInteger(ScanFunction f, T a, T b) {
  switch (f) {
  case ScanFunction::Add:
    return wrapAdd(a, b);
  case ScanFunction::Multiply:
    return wrapMultiply(a, b);
  case ScanFunction::Maximum:
    return std::max(a, b);
  default:
    return std::min(a, b);
  }
}

/// T is float for float dtypes. A row is the last free dimension; each starts anew.
template <typename From, typename T> class ScanRoutineOp : public TileOp {
public:
  ScanRoutineOp(const RoutineOperands &operands)
      : dst_(operands.dst), src_(operands.src0), initial_(operands.src1), function_(ScanFunction(operands.function)),
        length_(operands.src0Tile.count[isa::kMaxFreeDims - 1]) {
    units_ = dst_.partitions;
    nanoseconds_ = workOf(dst_, function_ == ScanFunction::Logaddexp ? 40.0 : 2.0);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t first = 0; first < src_.n; first += length_) {
        T state = T();
        // A sum starts from zero, so that it is never -0.
        bool started = initial_.present() || function_ == ScanFunction::Add;
        if (initial_.present())
          state = initialValue(machine, row, initial_.n == 1 ? 0 : first / length_);
        for (int64_t c0 = 0; c0 < length_; c0 += kRoutineChunk) {
          const int64_t n = std::min(kRoutineChunk, length_ - c0);
          scanChunk(machine, worker, row, first + c0, n, state, started);
        }
      }
  }

private:
  T initialValue(Machine &machine, int64_t row, int64_t element) const {
    T value;
    if constexpr (std::is_same_v<T, float>)
      loadRange(initial_, initial_.row(machine.base, row), element, 1, &value);
    else
      loadTyped(initial_, machine.base, row, element, 1, &value);
    return value;
  }

  void scanChunk(Machine &machine, Worker &worker, int64_t row, int64_t first, int64_t n, T &state,
                 bool &started) const {
    T *out = reinterpret_cast<T *>(worker.stage[1]);
    if constexpr (std::is_same_v<T, float>) {
      loadRange(src_, src_.row(machine.base, row), first, n, out);
      for (int64_t i = 0; i < n; ++i) {
        state = started ? combineFloat(function_, state, out[i]) : out[i];
        started = true;
        out[i] = state;
      }
      storeRange(dst_, dst_.row(machine.base, row), first, n, out);
    } else {
      From *in = reinterpret_cast<From *>(worker.stage[0]);
      loadTyped(src_, machine.base, row, first, n, in);
      for (int64_t i = 0; i < n; ++i) {
        state = started ? combineInteger(function_, state, T(in[i])) : T(in[i]);
        started = true;
        out[i] = state;
      }
      storeTyped(dst_, machine.base, row, first, n, out);
    }
  }

  Operand dst_, src_, initial_;
  ScanFunction function_;
  int64_t length_;
};

/// Columns are the units: each is reduced over all partitions by one thread.
template <typename From, typename T> class PartitionReduceOp : public TileOp {
public:
  PartitionReduceOp(const RoutineOperands &operands)
      : dst_(operands.dst), src_(operands.src0), function_(PartitionReduceFunction(operands.function)) {
    units_ = int(std::min<int64_t>(dst_.n, INT32_MAX));
    alignment_ = 64;
    nanoseconds_ = workOf(src_, 0.6);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    T *result = reinterpret_cast<T *>(worker.stage[0]);
    T *values = reinterpret_cast<T *>(worker.stage[1]);
    for (int64_t c0 = begin; c0 < end; c0 += kRoutineChunk) {
      const int64_t n = std::min<int64_t>(kRoutineChunk, end - c0);
      load(machine, worker, 0, c0, n, result);
      if (isLogical())
        for (int64_t i = 0; i < n; ++i)
          result[i] = result[i] != T(0) ? T(1) : T(0);
      for (int64_t row = 1; row < src_.partitions; ++row) {
        load(machine, worker, row, c0, n, values);
        for (int64_t i = 0; i < n; ++i)
          result[i] = combine(result[i], values[i]);
      }
      if constexpr (std::is_same_v<T, float>)
        storeRange(dst_, dst_.row(machine.base, 0), c0, n, result);
      else
        storeTyped(dst_, machine.base, 0, c0, n, result);
    }
  }

private:
  bool isLogical() const {
    return function_ == PartitionReduceFunction::LogicalAnd || function_ == PartitionReduceFunction::LogicalOr;
  }

  void load(Machine &machine, Worker &worker, int64_t row, int64_t first, int64_t n, T *to) const {
    if constexpr (std::is_same_v<T, float>) {
      loadRange(src_, src_.row(machine.base, row), first, n, to);
    } else if constexpr (std::is_same_v<T, From>) {
      loadTyped(src_, machine.base, row, first, n, to);
    } else {
      From *raw = reinterpret_cast<From *>(worker.stage[2]);
      loadTyped(src_, machine.base, row, first, n, raw);
      for (int64_t i = 0; i < n; ++i)
        to[i] = T(raw[i]);
    }
  }

  T combine(T a, T b) const {
    switch (function_) {
    case PartitionReduceFunction::LogicalAnd:
      return a != T(0) && b != T(0) ? T(1) : T(0);
    case PartitionReduceFunction::LogicalOr:
      return a != T(0) || b != T(0) ? T(1) : T(0);
    default:
      break;
    }
    if constexpr (std::is_same_v<T, float>) {
      switch (function_) {
      case PartitionReduceFunction::Multiply:
        return a * b;
      case PartitionReduceFunction::Maximum:
        return b > a || b != b ? b : a;
      case PartitionReduceFunction::Minimum:
        return b < a || b != b ? b : a;
      default:
        return a + b;
      }
    } else {
      switch (function_) {
      case PartitionReduceFunction::Multiply:
        return wrapMultiply(a, b);
      case PartitionReduceFunction::Maximum:
        return std::max(a, b);
      case PartitionReduceFunction::Minimum:
        return std::min(a, b);
      case PartitionReduceFunction::BitwiseAnd:
        return T(a & b);
      case PartitionReduceFunction::BitwiseOr:
        return T(a | b);
      case PartitionReduceFunction::BitwiseXor:
        return T(a ^ b);
      default:
        return wrapAdd(a, b);
      }
    }
  }

  Operand dst_, src_;
  PartitionReduceFunction function_;
};

/// make(From(), To()): float pairs as (float, float), integer pairs as themselves; mixed pairs are refused.
template <class Make>
TileOpOrError withTypes(const Operand &src, const Operand &dst, const char *routine, Make &&make) {
  const bool floats = isa::isFloatDtype(src.dtype) && isa::isFloatDtype(dst.dtype);
  if (src.dtype == Dtype::F64 || dst.dtype == Dtype::F64)
    return unsupported(cat(routine, ": f64 is not supported"));
  if (floats)
    return make(float(), float());
  return withInteger(src.dtype, routine, [&](auto from) {
    return withInteger(dst.dtype, routine, [&](auto to) -> TileOpOrError { return make(from, to); });
  });
}

} // namespace

TileOpOrError decodeScanRoutine(const RoutineOperands &operands) {
  if (operands.dst.n != operands.src0.n)
    return unsupported(cat("expected ", operands.src0.n, " elements per partition of dst but got ", operands.dst.n));
  const int64_t rows = operands.src0.n / operands.src0Tile.count[isa::kMaxFreeDims - 1];
  if (operands.src1.present() && operands.src1.n != 1 && operands.src1.n != rows)
    return unsupported(cat("expected 1 or ", rows, " initial values per partition but got ", operands.src1.n));
  const bool isFloat = isa::isFloatDtype(operands.dst.dtype);
  if (operands.src1.present() &&
      (isFloat ? !isa::isFloatDtype(operands.src1.dtype) : operands.src1.dtype != operands.dst.dtype))
    return unsupported(cat("expected initial values of dtype ", isa::toString(operands.dst.dtype), " but got ",
                           isa::toString(operands.src1.dtype)));
  if (!isFloat && ScanFunction(operands.function) == ScanFunction::Logaddexp)
    return unsupported("logaddexp needs float operands");
  return withTypes(operands.src0, operands.dst, "scan", [&](auto from, auto to) -> TileOpOrError {
    return TileOpOrError(std::make_unique<ScanRoutineOp<decltype(from), decltype(to)>>(operands));
  });
}

TileOpOrError decodePartitionReduce(const RoutineOperands &operands) {
  if (operands.dst.partitions != 1 || operands.dst.n != operands.src0.n)
    return unsupported(cat("expected dst of one partition with ", operands.src0.n, " elements but got ",
                           operands.dst.partitions, " partitions with ", operands.dst.n));
  const auto function = PartitionReduceFunction(operands.function);
  const bool bitwise = function == PartitionReduceFunction::BitwiseAnd ||
                       function == PartitionReduceFunction::BitwiseOr ||
                       function == PartitionReduceFunction::BitwiseXor;
  if (bitwise && isa::isFloatDtype(operands.dst.dtype))
    return unsupported(cat(isa::toString(function), " needs integer operands"));
  return withTypes(operands.src0, operands.dst, "partition_reduce", [&](auto from, auto to) -> TileOpOrError {
    return TileOpOrError(std::make_unique<PartitionReduceOp<decltype(from), decltype(to)>>(operands));
  });
}

} // namespace neuroncore::emulator

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// int_binary, int_compare, int_unary, int_reduce: exact integer arithmetic of 8 to 64 bits, with wrap-around.

#include <algorithm>
#include <limits>

#include "lib/Emulator/Routines/Routines.h"

namespace neuroncore::emulator {
namespace {

using isa::IntBinaryFunction;
using isa::IntCompareFunction;
using isa::IntReduceFunction;
using isa::IntUnaryFunction;

template <typename T> bool isMinusOne(T value) {
  if constexpr (std::is_signed_v<T>)
    return value == T(-1);
  else
    return false;
}

// The divisor is not zero. Division of the smallest value by -1 wraps.
template <typename T> T truncDivide(T a, T b) { return isMinusOne(b) ? wrapSubtract(T(0), a) : T(a / b); }
template <typename T> T truncRemainder(T a, T b) { return isMinusOne(b) ? T(0) : T(a % b); }
template <typename T> T floorDivide(T a, T b) {
  const T quotient = truncDivide(a, b);
  if constexpr (std::is_signed_v<T>)
    if (truncRemainder(a, b) != 0 && (a < 0) != (b < 0))
      return T(quotient - 1);
  return quotient;
}
template <typename T> T floorRemainder(T a, T b) {
  const T rest = truncRemainder(a, b);
  if constexpr (std::is_signed_v<T>)
    if (rest != 0 && (rest < 0) != (b < 0))
      return T(rest + b);
  return rest;
}

template <typename T> T integerPower(T base, T exponent) {
  if constexpr (std::is_signed_v<T>)
    if (exponent < 0) {
      if (base == 1)
        return 1;
      if (base == T(-1))
        return exponent % 2 == 0 ? T(1) : T(-1);
      return 0;
    }
  T result = 1;
  for (Unsigned<T> rest = Unsigned<T>(exponent); rest != 0; rest = Unsigned<T>(rest >> 1)) {
    if (rest & 1)
      result = wrapMultiply(result, base);
    base = wrapMultiply(base, base);
  }
  return result;
}

template <typename T> constexpr int kBits = int(sizeof(T) * 8);
template <typename T> T shiftLeft(T a, T b) {
  return Unsigned<T>(b) < kBits<T> ? T(uint64_t(Unsigned<T>(a)) << b) : T(0);
}
template <typename T> T shiftRightLogical(T a, T b) {
  return Unsigned<T>(b) < kBits<T> ? T(Unsigned<T>(a) >> b) : T(0);
}
template <typename T> T shiftRightArithmetic(T a, T b) {
  if (Unsigned<T>(b) < kBits<T>)
    return T(a >> b);
  return std::is_signed_v<T> && a < T(0) ? T(~T(0)) : T(0);
}

template <typename T, class F> bool mapElements(int64_t n, const T *a, const T *b, T *out, F f) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = f(a[i], b[i]);
  return true;
}

/// False when a divisor is zero.
template <typename T, class F> bool mapDivisions(int64_t n, const T *a, const T *b, T *out, F f) {
  for (int64_t i = 0; i < n; ++i) {
    if (b[i] == 0)
      return false;
    out[i] = f(a[i], b[i]);
  }
  return true;
}

template <typename T> bool integerBinary(IntBinaryFunction f, int64_t n, const T *a, const T *b, T *out) {
  switch (f) {
  case IntBinaryFunction::Add:
    return mapElements(n, a, b, out, wrapAdd<T>);
  case IntBinaryFunction::Subtract:
    return mapElements(n, a, b, out, wrapSubtract<T>);
  case IntBinaryFunction::Multiply:
    return mapElements(n, a, b, out, wrapMultiply<T>);
  case IntBinaryFunction::FloorDivide:
    return mapDivisions(n, a, b, out, floorDivide<T>);
  case IntBinaryFunction::TruncDivide:
    return mapDivisions(n, a, b, out, truncDivide<T>);
  case IntBinaryFunction::Remainder:
    return mapDivisions(n, a, b, out, floorRemainder<T>);
  case IntBinaryFunction::Fmod:
    return mapDivisions(n, a, b, out, truncRemainder<T>);
  case IntBinaryFunction::Maximum:
    return mapElements(n, a, b, out, [](T x, T y) { return std::max(x, y); });
  case IntBinaryFunction::Minimum:
    return mapElements(n, a, b, out, [](T x, T y) { return std::min(x, y); });
  case IntBinaryFunction::BitwiseAnd:
    return mapElements(n, a, b, out, [](T x, T y) { return T(x & y); });
  case IntBinaryFunction::BitwiseOr:
    return mapElements(n, a, b, out, [](T x, T y) { return T(x | y); });
  case IntBinaryFunction::BitwiseXor:
    return mapElements(n, a, b, out, [](T x, T y) { return T(x ^ y); });
  case IntBinaryFunction::ShiftLeft:
    return mapElements(n, a, b, out, shiftLeft<T>);
  case IntBinaryFunction::ShiftRightArithmetic:
    return mapElements(n, a, b, out, shiftRightArithmetic<T>);
  case IntBinaryFunction::ShiftRightLogical:
    return mapElements(n, a, b, out, shiftRightLogical<T>);
  case IntBinaryFunction::Power:
    return mapElements(n, a, b, out, integerPower<T>);
  }
  return true;
}

template <typename T> void integerCompare(IntCompareFunction f, int64_t n, const T *a, const T *b, uint8_t *out) {
  const auto map = [&](auto compare) {
    for (int64_t i = 0; i < n; ++i)
      out[i] = compare(a[i], b[i]);
  };
  switch (f) {
  case IntCompareFunction::Equal:
    return map([](T x, T y) { return x == y; });
  case IntCompareFunction::NotEqual:
    return map([](T x, T y) { return x != y; });
  case IntCompareFunction::Less:
    return map([](T x, T y) { return x < y; });
  case IntCompareFunction::LessEqual:
    return map([](T x, T y) { return x <= y; });
  case IntCompareFunction::Greater:
    return map([](T x, T y) { return x > y; });
  case IntCompareFunction::GreaterEqual:
    return map([](T x, T y) { return x >= y; });
  }
}

template <typename T> void integerUnary(IntUnaryFunction f, int64_t n, const T *a, T *out) {
  const auto map = [&](auto function) {
    for (int64_t i = 0; i < n; ++i)
      out[i] = function(a[i]);
  };
  switch (f) {
  case IntUnaryFunction::Negate:
    return map([](T x) { return wrapSubtract(T(0), x); });
  case IntUnaryFunction::Abs:
    return map([](T x) { return std::is_signed_v<T> && x < T(0) ? wrapSubtract(T(0), x) : x; });
  case IntUnaryFunction::Sign:
    return map([](T x) { return T((x > T(0)) - (std::is_signed_v<T> && x < T(0))); });
  case IntUnaryFunction::BitwiseNot:
    return map([](T x) { return T(~x); });
  case IntUnaryFunction::Square:
    return map([](T x) { return wrapMultiply(x, x); });
  case IntUnaryFunction::Relu:
    return map([](T x) { return std::max(x, T(0)); });
  }
}

template <typename T> class IntBinaryOp : public TileOp {
public:
  IntBinaryOp(const RoutineOperands &operands)
      : dst_(operands.dst), a_(operands.src0), b_(operands.src1), function_(IntBinaryFunction(operands.function)) {
    units_ = dst_.partitions;
    nanoseconds_ = workOf(dst_, 1.0);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    T *x = reinterpret_cast<T *>(worker.stage[0]);
    T *y = reinterpret_cast<T *>(worker.stage[1]);
    T *z = reinterpret_cast<T *>(worker.stage[2]);
    for (int64_t row = begin; row < end; ++row)
      for (int64_t c0 = 0; c0 < dst_.n; c0 += kRoutineChunk) {
        const int64_t n = std::min(kRoutineChunk, dst_.n - c0);
        loadTyped(a_, machine.base, row, c0, n, x);
        loadTyped(b_, machine.base, row, c0, n, y);
        if (!integerBinary(function_, n, x, y, z)) {
          worker.fail(ErrorKind::Numerical, "integer division by zero");
          return;
        }
        storeTyped(dst_, machine.base, row, c0, n, z);
      }
  }

private:
  Operand dst_, a_, b_;
  IntBinaryFunction function_;
};

template <typename T> class IntCompareOp : public TileOp {
public:
  IntCompareOp(const RoutineOperands &operands)
      : dst_(operands.dst), a_(operands.src0), b_(operands.src1), function_(IntCompareFunction(operands.function)) {
    units_ = dst_.partitions;
    nanoseconds_ = workOf(dst_, 0.6);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    T *x = reinterpret_cast<T *>(worker.stage[0]);
    T *y = reinterpret_cast<T *>(worker.stage[1]);
    uint8_t *z = reinterpret_cast<uint8_t *>(worker.stage[2]);
    for (int64_t row = begin; row < end; ++row)
      for (int64_t c0 = 0; c0 < dst_.n; c0 += kRoutineChunk) {
        const int64_t n = std::min(kRoutineChunk, dst_.n - c0);
        loadTyped(a_, machine.base, row, c0, n, x);
        loadTyped(b_, machine.base, row, c0, n, y);
        integerCompare(function_, n, x, y, z);
        storeTyped(dst_, machine.base, row, c0, n, z);
      }
  }

private:
  Operand dst_, a_, b_;
  IntCompareFunction function_;
};

template <typename T> class IntUnaryOp : public TileOp {
public:
  IntUnaryOp(const RoutineOperands &operands)
      : dst_(operands.dst), a_(operands.src0), function_(IntUnaryFunction(operands.function)) {
    units_ = dst_.partitions;
    nanoseconds_ = workOf(dst_, 0.5);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    T *x = reinterpret_cast<T *>(worker.stage[0]);
    T *z = reinterpret_cast<T *>(worker.stage[1]);
    for (int64_t row = begin; row < end; ++row)
      for (int64_t c0 = 0; c0 < dst_.n; c0 += kRoutineChunk) {
        const int64_t n = std::min(kRoutineChunk, dst_.n - c0);
        loadTyped(a_, machine.base, row, c0, n, x);
        integerUnary(function_, n, x, z);
        storeTyped(dst_, machine.base, row, c0, n, z);
      }
  }

private:
  Operand dst_, a_;
  IntUnaryFunction function_;
};

/// Accumulates in To, the destination's type.
template <typename From, typename To> class IntReduceOp : public TileOp {
public:
  IntReduceOp(const RoutineOperands &operands, int64_t reduced)
      : dst_(operands.dst), src_(operands.src0), function_(IntReduceFunction(operands.function)), reduced_(reduced) {
    units_ = dst_.partitions;
    nanoseconds_ = workOf(src_, 0.8);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    From *in = reinterpret_cast<From *>(worker.stage[0]);
    for (int64_t row = begin; row < end; ++row)
      for (int64_t kept = 0; kept < dst_.n; ++kept) {
        To result = identity();
        for (int64_t c0 = 0; c0 < reduced_; c0 += kRoutineChunk) {
          const int64_t n = std::min(kRoutineChunk, reduced_ - c0);
          loadTyped(src_, machine.base, row, kept * reduced_ + c0, n, in);
          result = accumulate(result, in, n);
        }
        storeTyped(dst_, machine.base, row, kept, 1, &result);
      }
  }

private:
  To identity() const {
    switch (function_) {
    case IntReduceFunction::Multiply:
      return 1;
    case IntReduceFunction::Maximum:
      return std::numeric_limits<To>::min();
    case IntReduceFunction::Minimum:
      return std::numeric_limits<To>::max();
    case IntReduceFunction::BitwiseAnd:
      return To(~To(0));
    default:
      return 0;
    }
  }

  To accumulate(To result, const From *in, int64_t n) const {
    const auto fold = [&](auto f) {
      for (int64_t i = 0; i < n; ++i)
        result = f(result, To(in[i]));
      return result;
    };
    switch (function_) {
    case IntReduceFunction::Add:
      return fold(wrapAdd<To>);
    case IntReduceFunction::Multiply:
      return fold(wrapMultiply<To>);
    case IntReduceFunction::Maximum:
      return fold([](To a, To b) { return std::max(a, b); });
    case IntReduceFunction::Minimum:
      return fold([](To a, To b) { return std::min(a, b); });
    case IntReduceFunction::BitwiseAnd:
      return fold([](To a, To b) { return To(a & b); });
    case IntReduceFunction::BitwiseOr:
      return fold([](To a, To b) { return To(a | b); });
    case IntReduceFunction::BitwiseXor:
      return fold([](To a, To b) { return To(a ^ b); });
    }
    return result;
  }

  Operand dst_, src_;
  IntReduceFunction function_;
  int64_t reduced_;
};

TileOpOrError requireOneDtype(const Operand &a, const Operand &b) {
  return unsupported(cat("expected one dtype but got ", isa::toString(a.dtype), " and ", isa::toString(b.dtype)));
}

} // namespace

TileOpOrError decodeIntBinary(const RoutineOperands &operands) {
  if (operands.src0.dtype != operands.dst.dtype)
    return requireOneDtype(operands.dst, operands.src0);
  if (operands.src1.dtype != operands.dst.dtype)
    return requireOneDtype(operands.dst, operands.src1);
  return withInteger(operands.dst.dtype, "int_binary", [&](auto tag) -> TileOpOrError {
    return TileOpOrError(std::make_unique<IntBinaryOp<decltype(tag)>>(operands));
  });
}

TileOpOrError decodeIntCompare(const RoutineOperands &operands) {
  if (operands.src1.dtype != operands.src0.dtype)
    return requireOneDtype(operands.src0, operands.src1);
  if (operands.dst.bytes != 1 || isa::isFloatDtype(operands.dst.dtype))
    return unsupported(cat("expected a u8 destination but got ", isa::toString(operands.dst.dtype)));
  return withInteger(operands.src0.dtype, "int_compare", [&](auto tag) -> TileOpOrError {
    return TileOpOrError(std::make_unique<IntCompareOp<decltype(tag)>>(operands));
  });
}

TileOpOrError decodeIntUnary(const RoutineOperands &operands) {
  if (operands.src0.dtype != operands.dst.dtype)
    return requireOneDtype(operands.dst, operands.src0);
  return withInteger(operands.dst.dtype, "int_unary", [&](auto tag) -> TileOpOrError {
    return TileOpOrError(std::make_unique<IntUnaryOp<decltype(tag)>>(operands));
  });
}

TileOpOrError decodeIntReduce(const RoutineOperands &operands) {
  const int64_t axes = operands.immediates[0];
  if (axes < 1 || axes > isa::kMaxFreeDims)
    return unsupported(cat("expected 1 to ", isa::kMaxFreeDims, " reduced dimensions but got ", axes));
  const int64_t reduced = trailingElements(operands.src0Tile, axes);
  if (operands.dst.n * reduced != operands.src0.n)
    return unsupported(
        cat("expected ", operands.src0.n / reduced, " elements per partition of dst but got ", operands.dst.n));
  return withInteger(operands.src0.dtype, "int_reduce", [&](auto from) {
    return withInteger(operands.dst.dtype, "int_reduce", [&](auto to) -> TileOpOrError {
      return TileOpOrError(std::make_unique<IntReduceOp<decltype(from), decltype(to)>>(operands, reduced));
    });
  });
}

} // namespace neuroncore::emulator

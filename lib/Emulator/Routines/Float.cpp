// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// float_unary and float_binary: fp32 functions over the full range. Frequent ones have a vector form
// (Kernels/Activation.cpp); the others are computed in double and rounded once.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "lib/Emulator/Routines/Routines.h"

namespace neuroncore::emulator {
namespace {

using isa::Dtype;
using isa::FloatBinaryFunction;
using isa::FloatUnaryFunction;

constexpr double kPi = 3.14159265358979323846;

double unaryInDouble(FloatUnaryFunction f, double x) {
  switch (f) {
  case FloatUnaryFunction::Log1p:
    return std::log1p(x);
  case FloatUnaryFunction::Expm1:
    return std::expm1(x);
  case FloatUnaryFunction::Tan:
    return std::tan(x);
  case FloatUnaryFunction::Asin:
    return std::asin(x);
  case FloatUnaryFunction::Acos:
    return std::acos(x);
  case FloatUnaryFunction::Sinh:
    return std::sinh(x);
  case FloatUnaryFunction::Cosh:
    return std::cosh(x);
  case FloatUnaryFunction::Asinh:
    return std::asinh(x);
  case FloatUnaryFunction::Acosh:
    return std::acosh(x);
  case FloatUnaryFunction::Atanh:
    return std::atanh(x);
  case FloatUnaryFunction::Erfinv:
    return special::inverseErf(x);
  case FloatUnaryFunction::Lgamma:
    return special::logGamma(x);
  case FloatUnaryFunction::Digamma:
    return special::digamma(x);
  case FloatUnaryFunction::I0:
    // As PyTorch: infinity divided by infinity on the way.
    return std::isinf(x) ? std::numeric_limits<double>::quiet_NaN() : special::besselI0(x);
  case FloatUnaryFunction::I1:
    return std::isinf(x) ? std::numeric_limits<double>::quiet_NaN() : special::besselI1(x);
  case FloatUnaryFunction::Ndtri:
    return special::inverseNormal(x);
  case FloatUnaryFunction::LogNdtr:
    return special::logNormal(x);
  case FloatUnaryFunction::Sinc:
    return x == 0 ? 1 : std::sin(kPi * x) / (kPi * x);
  case FloatUnaryFunction::Logit:
    return std::log(x / (1 - x));
  default:
    return std::numeric_limits<double>::quiet_NaN();
  }
}

bool hasScalarForm(FloatUnaryFunction f) {
  switch (f) {
  case FloatUnaryFunction::Log1p:
  case FloatUnaryFunction::Expm1:
  case FloatUnaryFunction::Tan:
  case FloatUnaryFunction::Asin:
  case FloatUnaryFunction::Acos:
  case FloatUnaryFunction::Sinh:
  case FloatUnaryFunction::Cosh:
  case FloatUnaryFunction::Asinh:
  case FloatUnaryFunction::Acosh:
  case FloatUnaryFunction::Atanh:
  case FloatUnaryFunction::Erfinv:
  case FloatUnaryFunction::Lgamma:
  case FloatUnaryFunction::Digamma:
  case FloatUnaryFunction::I0:
  case FloatUnaryFunction::I1:
  case FloatUnaryFunction::Ndtri:
  case FloatUnaryFunction::LogNdtr:
  case FloatUnaryFunction::Sinc:
  case FloatUnaryFunction::Logit:
    return true;
  default:
    return false;
  }
}

/// Largest finite value of a float dtype, for nan_to_num.
float largestOf(Dtype dtype) {
  switch (dtype) {
  case Dtype::Bf16:
    return 0x1.fep+127f;
  case Dtype::F16:
    return 65504.0f;
  default:
    return std::numeric_limits<float>::max();
  }
}

class FloatUnaryOp : public TileOp {
public:
  FloatUnaryOp(const RoutineOperands &operands)
      : dst_(operands.dst), src_(operands.src0), function_(FloatUnaryFunction(operands.function)),
        kernel_(functionTable().floatUnary[operands.function]), largest_(largestOf(src_.dtype)) {
    units_ = dst_.partitions;
    nanoseconds_ = workOf(dst_, kernel_ ? 0.8 : 25.0);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    const int64_t columns = std::min<int64_t>(kStageElements, dst_.n);
    const int64_t step = std::max<int64_t>(1, kStageElements / columns);
    float *in = worker.stage[0];
    float *out = worker.stage[1];
    for (int64_t row = begin; row < end; row += step) {
      const int64_t rows = std::min<int64_t>(step, end - row);
      for (int64_t c0 = 0; c0 < dst_.n; c0 += columns) {
        const int64_t count = std::min(columns, dst_.n - c0);
        loadBlock(src_, machine.base, row, rows, c0, count, in);
        compute(rows * count, in, out);
        storeBlock(dst_, machine.base, row, rows, c0, count, out);
      }
    }
  }

private:
  void compute(int64_t n, const float *in, float *out) const {
    if (kernel_) {
      kernel_(n, in, out);
      if (function_ == FloatUnaryFunction::NanToNum)
        for (int64_t i = 0; i < n; ++i)
          out[i] = std::clamp(out[i], -largest_, largest_);
      return;
    }
    for (int64_t i = 0; i < n; ++i)
      out[i] = float(unaryInDouble(function_, in[i]));
  }

  Operand dst_, src_;
  FloatUnaryFunction function_;
  FunctionKernel kernel_;
  float largest_;
};

// ---------------------------------------------------------------------------------------------------------------------
// Two operands
// ---------------------------------------------------------------------------------------------------------------------

float floorDivide(float a, float b) {
  if (b == 0)
    return a / b;
  const float mod = std::fmod(a, b);
  float quotient = (a - mod) / b;
  if (mod != 0 && (b < 0) != (mod < 0))
    quotient -= 1;
  if (quotient == 0)
    return std::copysign(0.0f, a / b);
  float rounded = std::floor(quotient);
  if (quotient - rounded > 0.5f)
    rounded += 1;
  return rounded;
}

float remainderOf(float a, float b) {
  float mod = std::fmod(a, b);
  if (mod != 0 && (b < 0) != (mod < 0))
    mod += b;
  return mod;
}

double logAddExp(double a, double b) {
  if (std::isinf(a) && a == b)
    return a;
  return std::fmax(a, b) + std::log1p(std::exp(-std::fabs(a - b))) + (a != a || b != b ? a + b : 0.0);
}

double logAddExp2(double a, double b) {
  constexpr double kLn2 = 0.693147180559945309417;
  if (std::isinf(a) && a == b)
    return a;
  return std::fmax(a, b) + std::log1p(std::exp2(-std::fabs(a - b))) / kLn2 + (a != a || b != b ? a + b : 0.0);
}

/// The next value after `a` towards `b` among the values of a 16-bit dtype, both given as fp32.
float nextAfter16(Dtype dtype, float a, float b) {
  if (a != a || b != b)
    return a + b;
  if (a == b)
    return b;
  uint16_t bits;
  storeFromFloat(dtype, a, reinterpret_cast<uint8_t *>(&bits));
  if (a == 0)
    bits = b > 0 ? 0x0001 : 0x8001;
  else
    bits = uint16_t((a < b) == (a > 0) ? bits + 1 : bits - 1);
  return loadAsFloat(dtype, reinterpret_cast<const uint8_t *>(&bits));
}

float binary(FloatBinaryFunction f, float a, float b) {
  switch (f) {
  case FloatBinaryFunction::Fmod:
    return std::fmod(a, b);
  case FloatBinaryFunction::Remainder:
    return remainderOf(a, b);
  case FloatBinaryFunction::FloorDivide:
    return floorDivide(a, b);
  case FloatBinaryFunction::TruncDivide:
    return std::trunc(a / b);
  case FloatBinaryFunction::Power:
    return float(std::pow(double(a), double(b)));
  case FloatBinaryFunction::Atan2:
    return float(std::atan2(double(a), double(b)));
  case FloatBinaryFunction::Hypot:
    return float(std::hypot(double(a), double(b)));
  case FloatBinaryFunction::Copysign:
    return std::copysign(a, b);
  case FloatBinaryFunction::Nextafter:
    return std::nextafter(a, b);
  case FloatBinaryFunction::Xlogy:
    return b != b ? b : a == 0 ? 0.0f : float(double(a) * std::log(double(b)));
  case FloatBinaryFunction::Logaddexp:
    return float(logAddExp(a, b));
  case FloatBinaryFunction::Logaddexp2:
    return float(logAddExp2(a, b));
  case FloatBinaryFunction::Fmax:
    return std::fmax(a, b);
  case FloatBinaryFunction::Fmin:
    return std::fmin(a, b);
  case FloatBinaryFunction::Ldexp:
    // torch.ldexp multiplies by the rounded power of two.
    return a * float(std::exp2(double(b)));
  case FloatBinaryFunction::Xlog1py:
    return b != b ? b : a == 0 ? 0.0f : float(double(a) * std::log1p(double(b)));
  case FloatBinaryFunction::Zeta:
    return float(special::hurwitzZeta(a, b));
  case FloatBinaryFunction::Igamma:
    return float(special::gammaP(a, b));
  case FloatBinaryFunction::Igammac:
    return float(special::gammaQ(a, b));
  }
  return std::numeric_limits<float>::quiet_NaN();
}

class FloatBinaryOp : public TileOp {
public:
  FloatBinaryOp(const RoutineOperands &operands)
      : dst_(operands.dst), a_(operands.src0), b_(operands.src1), function_(FloatBinaryFunction(operands.function)) {
    units_ = dst_.partitions;
    nanoseconds_ = workOf(dst_, 25.0);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    float *x = worker.stage[0], *y = worker.stage[1], *z = worker.stage[2];
    const bool narrowStep =
        function_ == FloatBinaryFunction::Nextafter && (dst_.dtype == Dtype::Bf16 || dst_.dtype == Dtype::F16);
    for (int64_t row = begin; row < end; ++row)
      for (int64_t c0 = 0; c0 < dst_.n; c0 += kStageElements) {
        const int64_t n = std::min<int64_t>(kStageElements, dst_.n - c0);
        loadRange(a_, a_.row(machine.base, row), c0, n, x);
        loadRange(b_, b_.row(machine.base, row), c0, n, y);
        for (int64_t i = 0; i < n; ++i)
          z[i] = narrowStep ? nextAfter16(dst_.dtype, x[i], y[i]) : binary(function_, x[i], y[i]);
        storeRange(dst_, dst_.row(machine.base, row), c0, n, z);
      }
  }

private:
  Operand dst_, a_, b_;
  FloatBinaryFunction function_;
};

Status requireFloats(std::initializer_list<const Operand *> operands) {
  for (const Operand *operand : operands)
    if (operand->dtype != Dtype::F32 && operand->dtype != Dtype::Bf16 && operand->dtype != Dtype::F16)
      return unsupported(cat("expected f32, bf16 or f16 operands but got ", isa::toString(operand->dtype)));
  return Status::success();
}

} // namespace

TileOpOrError decodeFloatUnary(const RoutineOperands &operands) {
  // Predicates may write any dtype (u8 for torch.bool).
  if (Status status = requireFloats({&operands.src0}); !status)
    return status.error();
  const auto function = FloatUnaryFunction(operands.function);
  if (!functionTable().floatUnary[operands.function] && !hasScalarForm(function))
    return unsupported(cat("function ", isa::toString(function), " has no implementation"));
  return TileOpOrError(std::make_unique<FloatUnaryOp>(operands));
}

TileOpOrError decodeFloatBinary(const RoutineOperands &operands) {
  if (Status status = requireFloats({&operands.src0, &operands.src1, &operands.dst}); !status)
    return status.error();
  return TileOpOrError(std::make_unique<FloatBinaryOp>(operands));
}

} // namespace neuroncore::emulator

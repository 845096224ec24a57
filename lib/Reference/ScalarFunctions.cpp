// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Reference/ScalarFunctions.h"

#include <array>
#include <cmath>
#include <numbers>

#include "llvm/ADT/APFloat.h"

using namespace mlir;
using namespace mlir::neuron;
using namespace mlir::neuron::reference;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kPi = std::numbers::pi;

/// Inverse of the normal distribution: a bracketing start, then Newton steps on erfc, which keeps the tails.
double ndtri(double p) {
  if (std::isnan(p) || p < 0 || p > 1)
    return kNaN;
  if (p == 0 || p == 1)
    return p == 0 ? -kInfinity : kInfinity;
  double low = -40, high = 40;
  auto distribution = [](double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); };
  for (int i = 0; i < 200; ++i) {
    double middle = 0.5 * (low + high);
    // For the upper half compare complements, which are exact there.
    bool below = p < 0.5 ? distribution(middle) < p : distribution(-middle) > 1 - p;
    (below ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

double erfinv(double x) {
  if (std::isnan(x) || x < -1 || x > 1)
    return kNaN;
  if (std::abs(x) == 1)
    return x * kInfinity;
  if (x == 0)
    return x;
  double low = 0, high = 10, magnitude = std::abs(x);
  for (int i = 0; i < 200; ++i) {
    double middle = 0.5 * (low + high);
    bool below = magnitude < 0.5 ? std::erf(middle) < magnitude : std::erfc(middle) > 1 - magnitude;
    (below ? low : high) = middle;
  }
  return std::copysign(0.5 * (low + high), x);
}

double logNdtr(double x) {
  if (x > -5)
    return std::log(0.5 * std::erfc(-x / std::numbers::sqrt2));
  // Continued fraction of Mills' ratio: the tail has no representable probability.
  double fraction = 0;
  for (int k = 60; k >= 1; --k)
    fraction = k / (-x + fraction);
  return -0.5 * x * x - 0.5 * std::log(2 * kPi) - std::log(-x + fraction);
}

double digamma(double x) {
  if (x == 0)
    return std::copysign(kInfinity, -x);
  if (std::isinf(x))
    return x > 0 ? x : kNaN;
  if (x < 0) {
    if (x == std::floor(x))
      return kNaN;
    double whole;
    double part = std::modf(x, &whole);
    return digamma(1 - x) - kPi / std::tan(kPi * part);
  }
  double result = 0;
  while (x < 20) {
    result -= 1 / x;
    x += 1;
  }
  double inverse = 1 / (x * x);
  double series =
      inverse * (1.0 / 12 - inverse * (1.0 / 120 - inverse * (1.0 / 252 - inverse * (1.0 / 240 - inverse / 132))));
  return result + std::log(x) - 0.5 / x - series;
}

double besselI(int order, double x) {
  if (std::isnan(x))
    return x;
  double magnitude = std::abs(x);
  if (std::isinf(x)) // inf * 0 in the asymptotic form
    return kNaN;
  if (magnitude > 700)
    return order == 1 && x < 0 ? -kInfinity : kInfinity;
  double value = std::cyl_bessel_i(order, magnitude);
  return order == 1 && x < 0 ? -value : value;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }

} // namespace

double mlir::neuron::reference::unaryFloat(UnaryFunction function, float value) {
  double x = value;
  switch (function) {
  case UnaryFunction::Abs:
    return std::abs(x);
  case UnaryFunction::Neg:
    return -x;
  case UnaryFunction::Sign:
    return (x > 0) - (x < 0);
  case UnaryFunction::Square:
    return value * value;
  case UnaryFunction::Sqrt:
    return std::sqrt(x);
  case UnaryFunction::Rsqrt:
    return 1 / std::sqrt(x);
  case UnaryFunction::Reciprocal:
    return 1 / x;
  case UnaryFunction::Exp:
    return std::exp(x);
  case UnaryFunction::Exp2:
    return std::exp2(x);
  case UnaryFunction::Expm1:
    return std::expm1(x);
  case UnaryFunction::Log:
    return std::log(x);
  case UnaryFunction::Log2:
    return std::log2(x);
  case UnaryFunction::Log10:
    return std::log10(x);
  case UnaryFunction::Log1p:
    return std::log1p(x);
  case UnaryFunction::Sin:
    return std::sin(x);
  case UnaryFunction::Cos:
    return std::cos(x);
  case UnaryFunction::Tan:
    return std::tan(x);
  case UnaryFunction::Asin:
    return std::asin(x);
  case UnaryFunction::Acos:
    return std::acos(x);
  case UnaryFunction::Atan:
    return std::atan(x);
  case UnaryFunction::Sinh:
    return std::sinh(x);
  case UnaryFunction::Cosh:
    return std::cosh(x);
  case UnaryFunction::Tanh:
    return std::tanh(x);
  case UnaryFunction::Asinh:
    return std::asinh(x);
  case UnaryFunction::Acosh:
    return std::acosh(x);
  case UnaryFunction::Atanh:
    return std::atanh(x);
  case UnaryFunction::Erf:
    return std::erf(x);
  case UnaryFunction::Erfc:
    return std::erfc(x);
  case UnaryFunction::Erfinv:
    return erfinv(x);
  case UnaryFunction::Sigmoid:
    return sigmoid(x);
  case UnaryFunction::Relu:
    return x < 0 ? 0.0 : x;
  case UnaryFunction::Gelu:
    return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
  case UnaryFunction::GeluTanh:
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x)));
  case UnaryFunction::Silu:
    return x / (1 + std::exp(-x));
  case UnaryFunction::Softplus:
    return softplus(x);
  case UnaryFunction::Mish:
    return x * std::tanh(std::log1p(std::exp(x)));
  case UnaryFunction::Floor:
    return std::floor(x);
  case UnaryFunction::Ceil:
    return std::ceil(x);
  case UnaryFunction::Round:
    return std::nearbyint(x);
  case UnaryFunction::Trunc:
    return std::trunc(x);
  case UnaryFunction::Frac:
    return x - std::trunc(x);
  case UnaryFunction::Lgamma:
    return std::lgamma(x);
  case UnaryFunction::Digamma:
    return digamma(x);
  case UnaryFunction::Sinc:
    return x == 0 ? 1.0 : std::sin(double(float(kPi) * value)) / double(float(kPi) * value);
  case UnaryFunction::I0:
    return besselI(0, x);
  case UnaryFunction::I1:
    return besselI(1, x);
  case UnaryFunction::Ndtri:
    return ndtri(x);
  case UnaryFunction::LogNdtr:
    return logNdtr(x);
  case UnaryFunction::Copy:
    return x;
  case UnaryFunction::Not:
    return x == 0;
  case UnaryFunction::Isnan:
  case UnaryFunction::Isinf:
  case UnaryFunction::Isfinite:
  case UnaryFunction::Signbit:
    return classify(function, value);
  }
  return kNaN;
}

bool mlir::neuron::reference::classify(UnaryFunction function, float x) {
  switch (function) {
  case UnaryFunction::Isnan:
    return std::isnan(x);
  case UnaryFunction::Isinf:
    return std::isinf(x);
  case UnaryFunction::Isfinite:
    return std::isfinite(x);
  default:
    return std::signbit(x);
  }
}

int64_t mlir::neuron::reference::unaryInteger(UnaryFunction function, Type element, int64_t x) {
  switch (function) {
  case UnaryFunction::Abs:
    return x < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(x)) : x;
  case UnaryFunction::Neg:
    return static_cast<int64_t>(-static_cast<uint64_t>(x));
  case UnaryFunction::Sign:
    return (x > 0) - (x < 0);
  case UnaryFunction::Square:
    return static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(x));
  case UnaryFunction::Relu:
    return std::max<int64_t>(x, 0);
  case UnaryFunction::Not:
    return element.isInteger(1) ? !x : ~x;
  case UnaryFunction::Signbit:
    return x < 0;
  case UnaryFunction::Isfinite:
    return 1;
  case UnaryFunction::Isnan:
  case UnaryFunction::Isinf:
    return 0;
  default: // Copy and rounding
    return x;
  }
}

//===--------------------------------------------------------------------------------------------------------------===//
// Two operands
//===--------------------------------------------------------------------------------------------------------------===//

static double floorDivide(float a, float b) {
  if (b == 0)
    return a / b;
  float remainder = std::fmod(a, b);
  float quotient = (a - remainder) / b;
  if (remainder != 0 && (b < 0) != (remainder < 0))
    quotient -= 1;
  if (quotient == 0)
    return std::copysign(0.0f, a / b);
  float floor = std::floor(quotient);
  return quotient - floor > 0.5f ? floor + 1 : floor;
}

static double remainderOf(float a, float b) {
  float remainder = std::fmod(a, b);
  return remainder != 0 && (b < 0) != (remainder < 0) ? remainder + b : remainder;
}

static double logAddExp(double a, double b, bool base2) {
  if (std::isinf(a) && a == b)
    return a;
  double larger = std::max(a, b), distance = std::abs(a - b);
  if (std::isnan(a) || std::isnan(b))
    return kNaN;
  return base2 ? larger + std::log2(1 + std::exp2(-distance)) : larger + std::log1p(std::exp(-distance));
}

/// The neighbour in the element type.
static double nextAfter(Type element, float a, float b) {
  if (std::isnan(a) || std::isnan(b))
    return kNaN;
  if (a == b)
    return b;
  llvm::APFloat value(a);
  bool losesInfo;
  value.convert(cast<FloatType>(element).getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  value.next(/*nextDown=*/b < a);
  return value.convertToDouble();
}

double mlir::neuron::reference::binaryFloat(BinaryFunction function, Type element, float a, float b) {
  switch (function) {
  case BinaryFunction::Add:
    return a + b;
  case BinaryFunction::Sub:
    return a - b;
  case BinaryFunction::Mul:
    return a * b;
  case BinaryFunction::Div:
    return a / b;
  case BinaryFunction::FloorDiv:
    return floorDivide(a, b);
  case BinaryFunction::TruncDiv:
    return std::trunc(a / b);
  case BinaryFunction::Remainder:
    return remainderOf(a, b);
  case BinaryFunction::Fmod:
    return std::fmod(a, b);
  case BinaryFunction::Pow:
    return std::pow(static_cast<double>(a), static_cast<double>(b));
  case BinaryFunction::Max:
    return std::isnan(a) || std::isnan(b) ? kNaN : std::max(a, b);
  case BinaryFunction::Min:
    return std::isnan(a) || std::isnan(b) ? kNaN : std::min(a, b);
  case BinaryFunction::Fmax:
    return std::fmax(a, b);
  case BinaryFunction::Fmin:
    return std::fmin(a, b);
  case BinaryFunction::Atan2:
    return std::atan2(static_cast<double>(a), static_cast<double>(b));
  case BinaryFunction::Hypot:
    return std::hypot(static_cast<double>(a), static_cast<double>(b));
  case BinaryFunction::Copysign:
    return std::copysign(a, b);
  case BinaryFunction::Nextafter:
    return nextAfter(element, a, b);
  case BinaryFunction::Xlogy:
    return std::isnan(b) ? kNaN : a == 0 ? 0 : a * std::log(static_cast<double>(b));
  case BinaryFunction::Xlog1py:
    return std::isnan(b) ? kNaN : a == 0 ? 0 : a * std::log1p(static_cast<double>(b));
  case BinaryFunction::Logaddexp:
    return logAddExp(a, b, false);
  case BinaryFunction::Logaddexp2:
    return logAddExp(a, b, true);
  case BinaryFunction::Ldexp:
    return a * std::exp2(static_cast<double>(b));
  default:
    return kNaN; // bitwise functions: the verifier refuses floats
  }
}

static std::optional<int64_t> divide(BinaryFunction function, int64_t a, int64_t b) {
  if (b == 0)
    return std::nullopt;
  // The one quotient that overflows wraps.
  if (b == -1)
    return function == BinaryFunction::Remainder || function == BinaryFunction::Fmod
               ? 0
               : static_cast<int64_t>(-static_cast<uint64_t>(a));
  int64_t quotient = a / b, remainder = a % b;
  bool rounds = remainder != 0 && (remainder < 0) != (b < 0);
  switch (function) {
  case BinaryFunction::FloorDiv:
    return quotient - rounds;
  case BinaryFunction::Remainder:
    return remainder + (rounds ? b : 0);
  case BinaryFunction::Fmod:
    return remainder;
  default:
    return quotient;
  }
}

static int64_t integerPower(int64_t base, int64_t exponent) {
  if (exponent < 0)
    return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (; exponent; exponent >>= 1, factor *= factor)
    if (exponent & 1)
      result *= factor;
  return static_cast<int64_t>(result);
}

static int64_t shift(BinaryFunction function, Type element, int64_t a, int64_t b) {
  int64_t width = element.getIntOrFloatBitWidth();
  bool tooFar = b < 0 || b >= width;
  if (function == BinaryFunction::ShiftLeft)
    return tooFar ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
  if (function == BinaryFunction::ShiftRightArithmetic)
    return a >> (tooFar ? width - 1 : b);
  uint64_t bits = static_cast<uint64_t>(a);
  if (width < 64)
    bits &= (uint64_t(1) << width) - 1;
  return tooFar ? 0 : static_cast<int64_t>(bits >> b);
}

std::optional<int64_t> mlir::neuron::reference::binaryInteger(BinaryFunction function, Type element, int64_t a,
                                                              int64_t b) {
  switch (function) {
  case BinaryFunction::Add:
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  case BinaryFunction::Sub:
    return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  case BinaryFunction::Mul:
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  case BinaryFunction::Div:
  case BinaryFunction::TruncDiv:
  case BinaryFunction::FloorDiv:
  case BinaryFunction::Remainder:
  case BinaryFunction::Fmod:
    return divide(function, a, b);
  case BinaryFunction::Pow:
    return integerPower(a, b);
  case BinaryFunction::Max:
  case BinaryFunction::Fmax:
    return std::max(a, b);
  case BinaryFunction::Min:
  case BinaryFunction::Fmin:
    return std::min(a, b);
  case BinaryFunction::And:
    return a & b;
  case BinaryFunction::Or:
    return a | b;
  case BinaryFunction::Xor:
    return a ^ b;
  default:
    return shift(function, element, a, b);
  }
}

//===--------------------------------------------------------------------------------------------------------------===//
// Random numbers
//===--------------------------------------------------------------------------------------------------------------===//

static std::array<uint32_t, 4> philoxBlock(uint64_t seed, uint64_t high, uint64_t low) {
  std::array<uint32_t, 4> c = {uint32_t(low), uint32_t(low >> 32), uint32_t(high), uint32_t(high >> 32)};
  uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t(0xD2511F53) * c[0], p1 = uint64_t(0xCD9E8D57) * c[2];
    c = {uint32_t(p1 >> 32) ^ c[1] ^ k0, uint32_t(p1), uint32_t(p0 >> 32) ^ c[3] ^ k1, uint32_t(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

uint32_t mlir::neuron::reference::philoxWord(uint64_t seed, uint64_t offset, uint64_t element) {
  return philoxBlock(seed, offset, element / 4)[element % 4];
}

double mlir::neuron::reference::philoxFloat(RandomDistribution distribution, uint64_t seed, uint64_t offset,
                                            uint64_t element) {
  if (distribution == RandomDistribution::Uniform)
    return (philoxWord(seed, offset, element) >> 8) * 0x1p-24;
  std::array<uint32_t, 4> block = philoxBlock(seed, offset, element / 4);
  unsigned pair = element % 4 / 2 * 2;
  // In (0, 1], so that the logarithm is finite.
  double radius = std::sqrt(-2 * std::log(((block[pair] >> 8) + 1) * 0x1p-24));
  double angle = 2 * kPi * ((block[pair + 1] >> 8) * 0x1p-24);
  return radius * (element % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Special functions in double, from their textbook series and expansions; results are rounded to fp32, so 1e-10
// relative is plenty. Values at poles and outside the domain are those of CPU PyTorch.

#include <cmath>
#include <limits>

#include "lib/Emulator/Routines/Routines.h"

namespace neuroncore::emulator::special {

namespace {
constexpr double kPi = 3.14159265358979323846;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
} // namespace

double digamma(double x) {
  if (x == 0)
    return std::copysign(kInfinity, -x);
  if (std::isnan(x) || x == -kInfinity)
    return kNan;
  double result = 0;
  if (x < 0) {
    if (x == std::floor(x))
      return kNan;
    // Reflection: psi(1 - x) - psi(x) = pi cot(pi x)
    return digamma(1 - x) - kPi / std::tan(kPi * (x - std::floor(x)));
  }
  while (x < 10) {
    result -= 1 / x;
    x += 1;
  }
  const double y = 1 / (x * x);
  // Asymptotic expansion with the Bernoulli numbers.
  const double series =
      y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132 - y * (691.0 / 32760))))));
  return result + std::log(x) - 0.5 / x - series;
}

double logGamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

double besselI0(double x) {
  x = std::fabs(x);
  if (std::isnan(x))
    return x;
  if (x > 100)
    return kInfinity; // beyond fp32
  const double quarter = x * x / 4;
  double term = 1, sum = 1;
  for (int k = 1; term > sum * 1e-17; ++k) {
    term *= quarter / (double(k) * k);
    sum += term;
  }
  return sum;
}

double besselI1(double x) {
  const double a = std::fabs(x);
  if (std::isnan(x))
    return x;
  if (a > 100)
    return std::copysign(kInfinity, x);
  const double quarter = a * a / 4;
  double term = a / 2, sum = term;
  for (int k = 1; term > sum * 1e-17; ++k) {
    term *= quarter / (double(k) * (k + 1));
    sum += term;
  }
  return std::copysign(sum, x);
}

namespace {

/// z > 0 with erfc(z) = q for q in (0, 1], by Halley's method on the logarithm-like scale of the tail.
double inverseErfcTail(double q) {
  // Start: erfc(z) ~ exp(-z^2) / (z sqrt(pi)) for small q, linear near 1.
  double z = q > 0.5 ? (1 - q) * std::sqrt(kPi) / 2 : std::sqrt(std::fmax(-std::log(q * std::sqrt(kPi)), 0.1));
  if (q <= 0.5)
    z = std::sqrt(std::fmax(-std::log(q * std::sqrt(kPi) * z), 0.05));
  for (int i = 0; i < 40; ++i) {
    const double value = std::erfc(z);
    // f = log(erfc(z) / q): nearly quadratic in z, so Newton steps do not overshoot in the tail.
    const double slope = -2 / std::sqrt(kPi) * std::exp(-z * z) / value;
    const double step = std::log(value / q) / slope;
    z -= step;
    if (std::fabs(step) < 1e-15 * std::fmax(std::fabs(z), 1e-300))
      break;
  }
  return z;
}

} // namespace

double inverseErf(double y) {
  if (std::isnan(y) || std::fabs(y) > 1)
    return kNan;
  if (y == 0)
    return y;
  if (std::fabs(y) == 1)
    return std::copysign(kInfinity, y);
  const double a = std::fabs(y);
  double z;
  if (a < 0.5) {
    z = a * std::sqrt(kPi) / 2;
    for (int i = 0; i < 40; ++i) {
      const double step = (std::erf(z) - a) / (2 / std::sqrt(kPi) * std::exp(-z * z));
      z -= step;
      if (std::fabs(step) < 1e-15 * z)
        break;
    }
  } else {
    z = inverseErfcTail(1 - a);
  }
  return std::copysign(z, y);
}

double inverseNormal(double p) {
  if (std::isnan(p) || p < 0 || p > 1)
    return kNan;
  if (p == 0)
    return -kInfinity;
  if (p == 1)
    return kInfinity;
  if (p == 0.5)
    return 0;
  if (p < 0.25)
    return -std::sqrt(2.0) * inverseErfcTail(2 * p);
  return std::sqrt(2.0) * inverseErf(2 * p - 1);
}

double logNormal(double x) {
  if (std::isnan(x))
    return x;
  if (x > 5)
    return std::log1p(-0.5 * std::erfc(x / std::sqrt(2.0)));
  if (x > -30)
    return std::log(0.5 * std::erfc(-x / std::sqrt(2.0)));
  if (x == -kInfinity)
    return -kInfinity;
  const double y = 1 / (x * x);
  const double series = -y * (1 - y * (3 - y * (15 - y * 105)));
  return -x * x / 2 - std::log(-x) - 0.5 * std::log(2 * kPi) + std::log1p(series);
}

double hurwitzZeta(double s, double q) {
  if (std::isnan(s) || std::isnan(q))
    return kNan;
  if (s == 1)
    return kInfinity;
  if (s < 1)
    return kNan;
  if (q <= 0) {
    if (q == std::floor(q))
      return kInfinity;
    if (s != std::floor(s))
      return kNan;
  }
  // Euler-Maclaurin after the first terms.
  double sum = 0;
  double a = q;
  int terms = 0;
  while (a <= 9 || terms < 9) {
    const double term = std::pow(a, -s);
    sum += term;
    if (a > 0 && std::fabs(term) < 1e-17 * std::fabs(sum))
      return sum;
    a += 1;
    ++terms;
  }
  const double power = std::pow(a, -s);
  sum += power * a / (s - 1) + 0.5 * power;
  // B_2k / (2k)!
  const double coefficients[] = {
      1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160, -691.0 / 1307674368000.0, 1.0 / 74724249600.0};
  double factor = s, scale = power / a;
  for (int k = 0; k < 7; ++k) {
    const double term = coefficients[k] * factor * scale;
    sum += term;
    if (std::fabs(term) < 1e-17 * std::fabs(sum))
      break;
    factor *= (s + 2 * k + 1) * (s + 2 * k + 2);
    scale /= a * a;
  }
  return sum;
}

namespace {

/// exp(-x) x^a / gamma(a), without overflow.
double gammaPrefix(double a, double x) {
  const double exponent = a * std::log(x) - x - logGamma(a);
  return exponent < -745 ? 0 : std::exp(exponent);
}

double gammaSeries(double a, double x) {
  double term = 1 / a, sum = term;
  for (double n = a + 1; term > sum * 1e-17; n += 1) {
    term *= x / n;
    sum += term;
  }
  return sum * gammaPrefix(a, x);
}

double gammaFraction(double a, double x) {
  // Lentz's method on the continued fraction of the upper function.
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a;
  double c = 1 / kTiny, d = 1 / b, h = d;
  for (int i = 1; i < 100000; ++i) {
    const double an = -double(i) * (i - a);
    b += 2;
    d = an * d + b;
    if (std::fabs(d) < kTiny)
      d = kTiny;
    c = b + an / c;
    if (std::fabs(c) < kTiny)
      c = kTiny;
    d = 1 / d;
    const double delta = d * c;
    h *= delta;
    if (std::fabs(delta - 1) < 1e-15)
      break;
  }
  return h * gammaPrefix(a, x);
}

} // namespace

double gammaP(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || a < 0 || x < 0)
    return kNan;
  if (a == 0)
    return x > 0 ? 1 : kNan;
  if (x == 0)
    return 0;
  if (std::isinf(a))
    return std::isinf(x) ? kNan : 0;
  if (std::isinf(x))
    return 1;
  return x < a + 1 ? gammaSeries(a, x) : 1 - gammaFraction(a, x);
}

double gammaQ(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || a < 0 || x < 0)
    return kNan;
  if (a == 0)
    return x > 0 ? 0 : kNan;
  if (x == 0)
    return 1;
  if (std::isinf(a))
    return std::isinf(x) ? kNan : 1;
  if (std::isinf(x))
    return 0;
  return x < a + 1 ? 1 - gammaSeries(a, x) : gammaFraction(a, x);
}

} // namespace neuroncore::emulator::special

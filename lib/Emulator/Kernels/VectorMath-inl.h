// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fp32 functions on Highway vectors. The rule that all of them follow: the same bits on every target. So every fused
// multiply-add is written as fusedMultiplyAdd (exact also where the machine has none), nothing else may be contracted
// (-ffp-contract=off), and no function depends on the number of lanes. Polynomials are our own Chebyshev fits; each
// function states its error over all fp32 inputs, measured against a wider type (test/unit/Emulator).

#if defined(NEURON_EMULATOR_VECTORMATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef NEURON_EMULATOR_VECTORMATH_INL_H
#undef NEURON_EMULATOR_VECTORMATH_INL_H
#else
#define NEURON_EMULATOR_VECTORMATH_INL_H
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace neuroncore::emulator {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using IntTag = hn::RebindToSigned<FloatTag>;
using UintTag = hn::RebindToUnsigned<FloatTag>;
using Half16Tag = hn::Rebind<uint16_t, FloatTag>;
using Vector = hn::Vec<FloatTag>;
using IntVector = hn::Vec<IntTag>;

inline constexpr FloatTag floatTag;
inline constexpr IntTag intTag;
inline constexpr UintTag uintTag;

HWY_INLINE Vector constant(float value) { return hn::Set(floatTag, value); }

// ---------------------------------------------------------------------------------------------------------------------
// Fused multiply-add
// ---------------------------------------------------------------------------------------------------------------------

#undef NEURON_EXACT_FMA
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX2
#define NEURON_EXACT_FMA 0
#else
#define NEURON_EXACT_FMA 1
#endif

#if !NEURON_EXACT_FMA
/// a * b + c with one rounding, through double: the product is exact there, and the sum is rounded to odd, which makes
/// the second rounding (to float) the only one that counts.
template <class DoubleVector> HWY_INLINE DoubleVector multiplyAddOdd(DoubleVector a, DoubleVector b, DoubleVector c) {
  const hn::DFromV<DoubleVector> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto product = hn::Mul(a, b);
  const auto sum = hn::Add(product, c);
  const auto part = hn::Sub(sum, product);
  const auto error = hn::Add(hn::Sub(product, hn::Sub(sum, part)), hn::Sub(c, part));
  const auto bits = hn::BitCast(di, sum);
  const auto isOdd = hn::MaskFromVec(hn::BitCast(d, hn::Sub(hn::Zero(di), hn::And(bits, hn::Set(di, int64_t(1))))));
  const auto zero = hn::Zero(d);
  const auto inexact = hn::Or(hn::Gt(error, zero), hn::Lt(error, zero));
  // One step away from zero when the error has the sum's sign, one step towards zero otherwise.
  const auto away = hn::Gt(hn::Mul(error, hn::CopySign(hn::Set(d, 1.0), sum)), zero);
  const auto step = hn::IfThenElse(hn::RebindMask(di, away), hn::Set(di, int64_t(1)), hn::Set(di, int64_t(-1)));
  const auto moved = hn::BitCast(d, hn::Add(bits, step));
  return hn::IfThenElse(hn::AndNot(isOdd, inexact), moved, sum);
}
#endif

/// a * b + c, rounded once.
HWY_INLINE Vector fusedMultiplyAdd(Vector a, Vector b, Vector c) {
#if NEURON_EXACT_FMA
  return hn::MulAdd(a, b, c);
#else
  const hn::Half<FloatTag> half;
  const hn::Rebind<double, decltype(half)> wide;
  const auto low =
      multiplyAddOdd(hn::PromoteTo(wide, hn::LowerHalf(half, a)), hn::PromoteTo(wide, hn::LowerHalf(half, b)),
                     hn::PromoteTo(wide, hn::LowerHalf(half, c)));
  const auto high =
      multiplyAddOdd(hn::PromoteTo(wide, hn::UpperHalf(half, a)), hn::PromoteTo(wide, hn::UpperHalf(half, b)),
                     hn::PromoteTo(wide, hn::UpperHalf(half, c)));
  return hn::Combine(floatTag, hn::DemoteTo(half, high), hn::DemoteTo(half, low));
#endif
}

/// c - a * b, rounded once.
HWY_INLINE Vector fusedNegMultiplyAdd(Vector a, Vector b, Vector c) {
#if NEURON_EXACT_FMA
  return hn::NegMulAdd(a, b, c);
#else
  return fusedMultiplyAdd(hn::Neg(a), b, c);
#endif
}

/// a * b - c, rounded once.
HWY_INLINE Vector fusedMultiplySubtract(Vector a, Vector b, Vector c) {
#if NEURON_EXACT_FMA
  return hn::MulSub(a, b, c);
#else
  return fusedMultiplyAdd(a, b, hn::Neg(c));
#endif
}

/// c[0] + x (c[1] + x (c[2] + ...))
template <size_t N> HWY_INLINE Vector polynomial(Vector x, const float (&c)[N]) {
  Vector result = constant(c[N - 1]);
  for (size_t i = N - 1; i-- > 0;)
    result = fusedMultiplyAdd(result, x, constant(c[i]));
  return result;
}

// ---------------------------------------------------------------------------------------------------------------------
// Comparisons with the NaN rules of the instruction set
// ---------------------------------------------------------------------------------------------------------------------

/// Highway's Ne is an ordered comparison on some targets: false when an operand is NaN.
HWY_INLINE hn::Mask<FloatTag> notEqual(Vector a, Vector b) { return hn::Not(hn::Eq(a, b)); }

HWY_INLINE Vector boolean(hn::Mask<FloatTag> mask) { return hn::IfThenElseZero(mask, constant(1.0f)); }

/// NaN if either operand is; the first of equal operands (-0 and +0 are equal).
HWY_INLINE Vector maximum(Vector a, Vector b) { return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a); }

HWY_INLINE Vector minimum(Vector a, Vector b) { return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a); }

// ---------------------------------------------------------------------------------------------------------------------
// exp and its relatives
// ---------------------------------------------------------------------------------------------------------------------

/// 2^n * x for integral n in [-252, 254], rounded once.
HWY_INLINE Vector scaleByPowerOfTwo(Vector x, Vector n) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  return Vector{_mm512_scalef_ps(x.raw, n.raw)};
#else
  // In two steps, of which only the last one can round.
  const IntVector exponent = hn::ConvertTo(intTag, n);
  const IntVector first = hn::ShiftRight<1>(exponent);
  const IntVector second = hn::Sub(exponent, first);
  const IntVector bias = hn::Set(intTag, 127);
  const Vector a = hn::BitCast(floatTag, hn::ShiftLeft<23>(hn::Add(first, bias)));
  const Vector b = hn::BitCast(floatTag, hn::ShiftLeft<23>(hn::Add(second, bias)));
  return hn::Mul(hn::Mul(x, a), b);
#endif
}

/// exp(high + low), |low| small against |high|. 0.6 ulp.
HWY_INLINE Vector expOfSum(Vector high, Vector low) {
  // Beyond these bounds the result is 0 or infinity, and n stays in the range of scaleByPowerOfTwo.
  const Vector x = hn::Min(hn::Max(high, constant(-105.0f)), constant(89.5f));
  const Vector n = hn::Round(hn::Mul(x, constant(0x1.715476p+0f)));
  Vector r = fusedNegMultiplyAdd(n, constant(0x1.62e43p-1f), x);
  const Vector rest = fusedNegMultiplyAdd(n, constant(-0x1.05c61p-29f), low);
  r = hn::Add(r, rest);
  const float p[] = {0x1.000000p-1f, 0x1.555556p-3f, 0x1.5554e8p-5f, 0x1.1110e0p-7f, 0x1.6d444ap-10f, 0x1.a125f6p-13f};
  // 1 + r without its rounding error, then the small terms.
  const Vector head = hn::Add(constant(1.0f), r);
  const Vector lost = hn::Sub(r, hn::Sub(head, constant(1.0f)));
  const Vector tail = fusedMultiplyAdd(hn::Mul(r, r), polynomial(r, p), lost);
  const Vector y = scaleByPowerOfTwo(hn::Add(head, tail), n);
  return hn::IfThenElse(hn::IsNaN(high), high, y);
}

HWY_INLINE Vector exp(Vector x) { return expOfSum(x, hn::Zero(floatTag)); }

/// numerator / (1 + exp(-(high + low))). 1.6 ulp.
HWY_INLINE Vector timesSigmoid(Vector numerator, Vector high, Vector low) {
  // Far on the negative side the denominator would overflow, and 1 is lost in it long before.
  const auto far = hn::Lt(high, constant(-80.0f));
  const Vector e = expOfSum(hn::IfThenElse(far, high, hn::Neg(high)), hn::IfThenElse(far, low, hn::Neg(low)));
  return hn::IfThenElse(far, hn::Mul(numerator, e), hn::Div(numerator, hn::Add(constant(1.0f), e)));
}

HWY_INLINE Vector sigmoid(Vector x) { return timesSigmoid(constant(1.0f), x, hn::Zero(floatTag)); }

/// 1.4 ulp.
HWY_INLINE Vector tanh(Vector x) {
  const Vector a = hn::Abs(x);
  const Vector square = hn::Mul(x, x);
  const float p[] = {-0x1.555556p-2f, 0x1.1110e8p-3f, -0x1.ba0816p-5f, 0x1.649e5ep-6f, -0x1.1121c4p-7f, 0x1.2b3d96p-9f};
  const Vector small = fusedMultiplyAdd(hn::Mul(square, polynomial(square, p)), x, x);
  const Vector e = exp(hn::Add(hn::Min(a, constant(20.0f)), hn::Min(a, constant(20.0f))));
  const Vector large = hn::Sub(constant(1.0f), hn::Div(constant(2.0f), hn::Add(e, constant(1.0f))));
  const Vector y = hn::CopySign(hn::IfThenElse(hn::Lt(a, constant(0.625f)), small, large), x);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

// ---------------------------------------------------------------------------------------------------------------------
// log and its relatives
// ---------------------------------------------------------------------------------------------------------------------

/// log(m * 2^e) for m - 1 = f in [sqrt(1/2) - 1, sqrt(2) - 1], plus `extra`.
HWY_INLINE Vector logOfParts(Vector f, Vector e, Vector extra) {
  const float q[] = {0x1.555556p-2f,  -0x1.fffff2p-3f, 0x1.9999a8p-3f,  -0x1.555c62p-3f, 0x1.249690p-3f,
                     -0x1.fdf8f6p-4f, 0x1.c41808p-4f,  -0x1.b4245ap-4f, 0x1.af7b02p-4f,  -0x1.fc01bep-5f};
  const Vector square = hn::Mul(f, f);
  Vector tail = hn::Mul(hn::Mul(square, f), polynomial(f, q));
  tail = fusedMultiplyAdd(e, constant(-0x1.05c61p-29f), hn::Add(tail, extra));
  tail = fusedNegMultiplyAdd(constant(0.5f), square, tail);
  // f - f^2/2 + ... first, then the large part.
  const Vector sum = hn::Add(f, tail);
  return fusedMultiplyAdd(e, constant(0x1.62e43p-1f), sum);
}

/// Splits x > 0 into f and e as logOfParts wants them; subnormals included.
HWY_INLINE void splitForLog(Vector x, Vector &f, Vector &e) {
  const auto isSmall = hn::Lt(x, constant(0x1p-126f));
  const Vector scaled = hn::IfThenElse(isSmall, hn::Mul(x, constant(0x1p24f)), x);
  const IntVector bits = hn::BitCast(intTag, scaled);
  // The exponent such that the mantissa lies in [sqrt(1/2), sqrt(2)).
  const IntVector offset = hn::Sub(bits, hn::Set(intTag, 0x3f3504f3));
  const IntVector exponent = hn::ShiftRight<23>(offset);
  const Vector m = hn::BitCast(floatTag, hn::Sub(bits, hn::ShiftLeft<23>(exponent)));
  f = hn::Sub(m, constant(1.0f));
  e = hn::ConvertTo(floatTag, exponent);
  e = hn::IfThenElse(isSmall, hn::Sub(e, constant(24.0f)), e);
}

/// 0.9 ulp.
HWY_INLINE Vector log(Vector x) {
  Vector f, e;
  splitForLog(x, f, e);
  Vector y = logOfParts(f, e, hn::Zero(floatTag));
  const Vector infinity = constant(__builtin_inff());
  y = hn::IfThenElse(hn::Eq(x, infinity), infinity, y);
  y = hn::IfThenElse(hn::Eq(x, hn::Zero(floatTag)), hn::Neg(infinity), y);
  y = hn::IfThenElse(hn::Lt(x, hn::Zero(floatTag)), constant(__builtin_nanf("")), y);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

/// log(1 + y) for y in [0, 1]. 1 ulp.
HWY_INLINE Vector log1pUnit(Vector y) {
  const float p[] = {0x1.000000p+0f, -0x1.fffffep-2f, 0x1.5554d8p-2f, -0x1.ffed12p-3f,
                     0x1.98da7ap-3f, -0x1.50ca34p-3f, 0x1.1280b8p-3f, -0x1.9cf362p-4f,
                     0x1.041b9ep-4f, -0x1.e83edep-6f, 0x1.247964p-7f, -0x1.485b92p-10f};
  // y + y * (p - 1): the correction is small against y, so its rounding does not matter.
  Vector correction = constant(p[11]);
  for (int i = 10; i >= 1; --i)
    correction = fusedMultiplyAdd(correction, y, constant(p[i]));
  return fusedMultiplyAdd(hn::Mul(y, y), correction, y);
}

/// log(1 + exp(x)). 2 ulp.
HWY_INLINE Vector softplus(Vector x) {
  const Vector tail = log1pUnit(exp(hn::Neg(hn::Abs(x))));
  const Vector y = hn::Add(hn::Max(x, hn::Zero(floatTag)), tail);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

// ---------------------------------------------------------------------------------------------------------------------
// Error function and the normal distribution
// ---------------------------------------------------------------------------------------------------------------------

/// exp(z^2) * erfc(z) for z = 2 a / c >= 0 as the product of two factors: u = 2c / (a + c), correctly rounded but for a
/// hair, and a polynomial in t = 1 - u. The factor u takes the decay, so the polynomial has nothing to cancel.
HWY_INLINE void scaledErfc(Vector a, float c, Vector &u, Vector &g) {
  const Vector top = constant(2 * c);
  const Vector sum = hn::Add(a, constant(c));
  const Vector part = hn::Sub(sum, a);
  const Vector lost = hn::Add(hn::Sub(a, hn::Sub(sum, part)), hn::Sub(constant(c), part));
  const Vector quotient = hn::Div(top, sum);
  const Vector rest = fusedNegMultiplyAdd(quotient, lost, fusedNegMultiplyAdd(quotient, sum, top));
  u = fusedMultiplyAdd(rest, hn::Mul(quotient, constant(0.5f / c)), quotient);
  const Vector t = hn::Sub(constant(1.0f), u);
  const float p[] = {0x1.058672p-2f,   -0x1.5fd388p-3f, 0x1.1e2dd8p-4f,  -0x1.2a86e2p-7f,
                     -0x1.605920p-8f,  0x1.a82ddap-10f, 0x1.9143bap-11f, -0x1.afb2e6p-13f,
                     -0x1.343c4ap-13f, 0x1.4ab930p-17f, 0x1.0d163ep-16f};
  g = polynomial(t, p);
}

/// a * b * c * d, rounded about once.
HWY_INLINE Vector product(Vector a, Vector b, Vector c, Vector d) {
  const Vector ab = hn::Mul(a, b);
  const Vector abLow = fusedMultiplySubtract(a, b, ab);
  const Vector abc = hn::Mul(ab, c);
  const Vector abcLow = fusedMultiplyAdd(abLow, c, fusedMultiplySubtract(ab, c, abc));
  return fusedMultiplyAdd(abc, d, hn::Mul(abcLow, d));
}

/// exp(-z^2) with the rounding error of the square taken along.
HWY_INLINE Vector expOfMinusSquare(Vector z) {
  const Vector square = hn::Mul(z, z);
  const Vector rest = fusedMultiplySubtract(z, z, square);
  return expOfSum(hn::Neg(square), hn::Neg(rest));
}

/// erfc(z) for z >= 0. 4 ulp, 2.5 in [0, 4].
HWY_INLINE Vector erfcPositive(Vector z) {
  const Vector clamped = hn::Min(z, constant(10.2f));
  Vector u, g;
  scaledErfc(clamped, 2.0f, u, g);
  return product(constant(1.0f), g, u, expOfMinusSquare(clamped));
}

/// erf(z) for |z| < 0.85.
HWY_INLINE Vector erfSmall(Vector z) {
  // 2/sqrt(pi) - 1 is exact enough in one float to keep z + z * (...) near one ulp.
  const float p[] = {0x1.06eba8p-3f, -0x1.812746p-2f,  0x1.ce2f1ep-4f,  -0x1.b82c3ap-6f,
                     0x1.564d30p-8f, -0x1.becd46p-11f, 0x1.e706fap-14f, -0x1.6df90ep-17f};
  return fusedMultiplyAdd(z, polynomial(hn::Mul(z, z), p), z);
}

/// 1.3 ulp.
HWY_INLINE Vector erf(Vector x) {
  const Vector a = hn::Abs(x);
  const Vector large = hn::CopySign(hn::Sub(constant(1.0f), erfcPositive(hn::Min(a, constant(6.0f)))), x);
  const Vector y = hn::IfThenElse(hn::Lt(a, constant(0.84375f)), erfSmall(x), large);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

/// y * P(X <= x) for a standard normal X, with full relative accuracy on both sides.
HWY_INLINE Vector timesNormalProbability(Vector y, Vector x) {
  // P(X > |x|) = erfc(|x| / sqrt(2)) / 2, and exp(-a^2 / 2) needs a^2 to twice the precision.
  const Vector a = hn::Min(hn::Abs(x), constant(14.4f));
  const Vector half = hn::Mul(a, constant(0.5f));
  const Vector square = hn::Mul(a, half);
  const Vector e = expOfSum(hn::Neg(square), hn::Neg(fusedMultiplySubtract(a, half, square)));
  Vector u, g;
  scaledErfc(a, 2.82842712f, u, g);
  const Vector halfU = hn::Mul(constant(0.5f), u);
  const Vector negative = product(y, g, halfU, e);
  const Vector positive = hn::Mul(y, fusedNegMultiplyAdd(hn::Mul(g, halfU), e, constant(1.0f)));
  const Vector inner =
      hn::Mul(y, fusedMultiplyAdd(constant(0.5f), erfSmall(hn::Mul(x, constant(0x1.6a09e6p-1f))), constant(0.5f)));
  const auto isInner = hn::And(hn::Gt(x, constant(-0.6f)), hn::Lt(x, constant(1.15f)));
  return hn::IfThenElse(isInner, inner, hn::IfThenElse(hn::Lt(x, hn::Zero(floatTag)), negative, positive));
}

/// NaN for NaN and, as in PyTorch, for -infinity, where these functions are -infinity times zero.
HWY_INLINE Vector withoutMinusInfinity(Vector x, Vector y) {
  const Vector nan = hn::IfThenElse(hn::Eq(x, constant(-std::numeric_limits<float>::infinity())),
                                    constant(std::numeric_limits<float>::quiet_NaN()), y);
  return hn::IfThenElse(hn::IsNaN(x), x, nan);
}

/// x * P(X <= x). 2.5 ulp for x > -0.6, 3.4 below while the probability is a normal number.
HWY_INLINE Vector gelu(Vector x) {
  const Vector y = timesNormalProbability(x, x);
  const Vector limited = hn::IfThenElse(hn::Lt(x, constant(-15.0f)), constant(-0.0f), y);
  return withoutMinusInfinity(x, limited);
}

/// x * sigmoid(2u) = x (1 + tanh(u)) / 2 with u = sqrt(2/pi) (x + 0.044715 x^3), u in twice the precision.
HWY_INLINE Vector geluTanh(Vector x) {
  const Vector a = constant(0x1.988454p+0f), aLow = constant(-0x1.857936p-25f);
  const Vector b = constant(0x1.2444f2p-4f), bLow = constant(0x1.49b16ap-29f);
  const Vector c = hn::Min(hn::Max(x, constant(-12.0f)), constant(12.0f));
  const Vector square = hn::Mul(c, c);
  const Vector squareLow = fusedMultiplySubtract(c, c, square);
  const Vector product = hn::Mul(b, square);
  Vector productLow = fusedMultiplySubtract(b, square, product);
  productLow = fusedMultiplyAdd(b, squareLow, productLow);
  productLow = fusedMultiplyAdd(bLow, square, productLow);
  const Vector sum = hn::Add(a, product);
  const Vector part = hn::Sub(sum, a);
  Vector sumLow = hn::Add(hn::Sub(a, hn::Sub(sum, part)), hn::Sub(product, part));
  sumLow = hn::Add(sumLow, hn::Add(productLow, aLow));
  const Vector high = hn::Mul(c, sum);
  const Vector low = fusedMultiplyAdd(c, sumLow, fusedMultiplySubtract(c, sum, high));
  Vector y = timesSigmoid(x, high, low);
  y = hn::IfThenElse(hn::Lt(x, constant(-12.0f)), constant(-0.0f), y);
  y = hn::IfThenElse(hn::Gt(x, constant(12.0f)), x, y);
  return withoutMinusInfinity(x, y);
}

/// Derivative of gelu: P(X <= x) + x * density(x).
HWY_INLINE Vector geluDerivative(Vector x) {
  const Vector probability = timesNormalProbability(constant(1.0f), x);
  const Vector c = hn::Min(hn::Max(x, constant(-15.0f)), constant(15.0f));
  const Vector half = hn::Mul(c, constant(0.5f));
  const Vector square = hn::Mul(c, half);
  const Vector density =
      hn::Mul(constant(0x1.988454p-2f), expOfSum(hn::Neg(square), hn::Neg(fusedMultiplySubtract(c, half, square))));
  const Vector y = fusedMultiplyAdd(c, density, probability);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

// ---------------------------------------------------------------------------------------------------------------------
// Functions built from sigmoid and exp
// ---------------------------------------------------------------------------------------------------------------------

/// x * sigmoid(x). 1.7 ulp while sigmoid(x) is a normal number.
HWY_INLINE Vector silu(Vector x) {
  const Vector y = timesSigmoid(x, x, hn::Zero(floatTag));
  const Vector limited = hn::IfThenElse(hn::Lt(x, constant(-120.0f)), constant(-0.0f), y);
  return withoutMinusInfinity(x, limited);
}

/// sigmoid(x) (1 + x (1 - sigmoid(x))), as a quotient of polynomials in e = exp(-|x|).
HWY_INLINE Vector siluDerivative(Vector x) {
  const Vector c = hn::Min(hn::Max(x, constant(-120.0f)), constant(120.0f));
  const auto negative = hn::Lt(c, hn::Zero(floatTag));
  const Vector e = exp(hn::Neg(hn::Abs(c)));
  const Vector denominator = hn::Add(constant(1.0f), e);
  const Vector lost = hn::Sub(e, hn::Sub(denominator, constant(1.0f)));
  // x < 0: e (1 + e + x) / (1 + e)^2; x >= 0: (1 + e + x e) / (1 + e)^2
  const Vector factor = hn::IfThenElse(negative, e, constant(1.0f));
  const Vector sum =
      hn::Add(hn::IfThenElse(negative, hn::Add(denominator, c), fusedMultiplyAdd(c, e, denominator)), lost);
  // 1 / (1 + e)^2 with the rounding error of 1 + e taken out.
  const Vector inverse = hn::Div(constant(1.0f), denominator);
  const Vector corrected = fusedNegMultiplyAdd(
      hn::Sub(fusedMultiplySubtract(inverse, denominator, constant(1.0f)), hn::Neg(hn::Mul(inverse, lost))), inverse,
      inverse);
  const Vector y = product(factor, sum, corrected, corrected);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

/// x * tanh(softplus(x)), as a quotient of polynomials in exp(-|x|). 2.5 ulp.
HWY_INLINE Vector mish(Vector x) {
  const auto negative = hn::Lt(x, hn::Zero(floatTag));
  const Vector e = exp(hn::Neg(hn::Abs(x)));
  const Vector two = constant(2.0f);
  // x < 0: e (e + 2) / (e (e + 2) + 2); x >= 0: (1 + 2e) / (1 + 2e + 2e^2)
  const Vector top =
      hn::IfThenElse(negative, fusedMultiplyAdd(e, e, hn::Add(e, e)), fusedMultiplyAdd(two, e, constant(1.0f)));
  const Vector rest = hn::IfThenElse(negative, two, hn::Mul(two, hn::Mul(e, e)));
  // The quotient and the product with one rounding between them.
  const Vector denominator = hn::Add(top, rest);
  const Vector inverse = hn::Div(constant(1.0f), denominator);
  const Vector high = hn::Mul(x, top);
  const Vector low = fusedMultiplySubtract(x, top, high);
  const Vector quotient = hn::Mul(high, inverse);
  const Vector remainder = hn::Add(fusedNegMultiplyAdd(quotient, denominator, high), low);
  // The remainder of -0.0 is +0.0, and so would be their sum.
  Vector y = hn::CopySign(fusedMultiplyAdd(remainder, inverse, quotient), x);
  y = hn::IfThenElse(hn::Gt(x, constant(30.0f)), x, y);
  const Vector limited = hn::IfThenElse(hn::Lt(x, constant(-120.0f)), constant(-0.0f), y);
  return withoutMinusInfinity(x, limited);
}

HWY_INLINE Vector erfDerivative(Vector x) {
  const Vector c = hn::Min(hn::Abs(x), constant(11.0f));
  const Vector y = hn::Mul(constant(0x1.20dd76p+0f), expOfMinusSquare(c));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

/// -1, 0 or 1; 0 for NaN, as torch.sign.
HWY_INLINE Vector sign(Vector x) {
  const Vector zero = hn::Zero(floatTag);
  return hn::Sub(boolean(hn::Gt(x, zero)), boolean(hn::Lt(x, zero)));
}

// ---------------------------------------------------------------------------------------------------------------------
// Trigonometric functions
// ---------------------------------------------------------------------------------------------------------------------

/// sin(r) for |r| <= pi/4.
HWY_INLINE Vector sinKernel(Vector r, Vector square) {
  const float p[] = {-0x1.555556p-3f, 0x1.11110ep-7f, -0x1.a01366p-13f, 0x1.6da8ecp-19f};
  return fusedMultiplyAdd(hn::Mul(square, r), polynomial(square, p), r);
}

/// cos(r) for |r| <= pi/4.
HWY_INLINE Vector cosKernel(Vector square) {
  const float p[] = {0x1.555556p-5f, -0x1.6c16c0p-10f, 0x1.a01598p-16f, -0x1.251636p-22f};
  const Vector half = hn::Mul(square, constant(0.5f));
  const Vector head = hn::Sub(constant(1.0f), half);
  const Vector rest = hn::Sub(hn::Sub(constant(1.0f), head), half);
  return hn::Add(head, fusedMultiplyAdd(hn::Mul(square, square), polynomial(square, p), rest));
}

/// Bound of |x| up to which sinCos is accurate; callers compute larger arguments otherwise.
inline constexpr float kMaxTrigonometricArgument = 32768.0f;

/// sin(x) (shift 0) or cos(x) (shift 1) for |x| <= kMaxTrigonometricArgument. 1.6 ulp.
HWY_INLINE Vector sinCos(Vector x, int shift) {
  const Vector n = hn::Round(hn::Mul(x, constant(0x1.45f306p-1f)));
  // Three parts of pi/2; the products are exact inside the fused operations, and r keeps 24 good bits near multiples.
  Vector r = fusedNegMultiplyAdd(n, constant(0x1.921fb6p+0f), x);
  const Vector lowProduct = hn::Mul(n, constant(-0x1.777a5cp-25f));
  const Vector high = hn::Sub(r, lowProduct);
  Vector low = hn::Sub(hn::Sub(r, high), lowProduct);
  low = hn::Sub(low, fusedMultiplySubtract(n, constant(-0x1.777a5cp-25f), lowProduct));
  low = fusedNegMultiplyAdd(n, constant(-0x1.ee59dap-50f), low);
  r = hn::Add(high, low);
  const Vector rest = hn::Add(hn::Sub(high, r), low);
  const Vector square = hn::Mul(r, r);
  const Vector s = hn::Add(sinKernel(r, square), rest);
  const Vector c = fusedNegMultiplyAdd(r, rest, cosKernel(square));
  const IntVector quadrant = hn::Add(hn::ConvertTo(intTag, n), hn::Set(intTag, shift));
  const auto useCos = hn::RebindMask(floatTag, hn::Ne(hn::And(quadrant, hn::Set(intTag, 1)), hn::Zero(intTag)));
  const Vector y = hn::IfThenElse(useCos, c, s);
  const IntVector signBit = hn::ShiftLeft<30>(hn::And(quadrant, hn::Set(intTag, 2)));
  const Vector result = hn::Xor(y, hn::BitCast(floatTag, signBit));
  return shift == 0 ? hn::IfThenElse(hn::Eq(x, hn::Zero(floatTag)), x, result) : result; // sin(-0) is -0
}

/// 1.9 ulp.
HWY_INLINE Vector arctan(Vector x) {
  const Vector a = hn::Abs(x);
  const Vector one = constant(1.0f);
  const auto large = hn::Gt(a, constant(2.414213562f));  // tan(3 pi / 8)
  const auto middle = hn::Gt(a, constant(0.414213562f)); // tan(pi / 8)
  const Vector numerator = hn::IfThenElse(large, constant(-1.0f), hn::IfThenElse(middle, hn::Sub(a, one), a));
  const Vector denominator = hn::IfThenElse(large, a, hn::IfThenElse(middle, hn::Add(a, one), one));
  const Vector t = hn::Div(numerator, denominator);
  const Vector base = hn::IfThenElse(large, constant(0x1.921fb6p+0f),
                                     hn::IfThenElse(middle, constant(0x1.921fb6p-1f), hn::Zero(floatTag)));
  const Vector baseLow = hn::IfThenElse(large, constant(-0x1.777a5cp-25f),
                                        hn::IfThenElse(middle, constant(-0x1.777a5cp-26f), hn::Zero(floatTag)));
  const Vector square = hn::Mul(t, t);
  const float p[] = {-0x1.555556p-2f, 0x1.999978p-3f, -0x1.24897cp-3f, 0x1.c56552p-4f, -0x1.609f3ap-4f, 0x1.9a3fc8p-5f};
  const Vector tail = fusedMultiplyAdd(hn::Mul(square, t), polynomial(square, p), baseLow);
  const Vector y = hn::Add(base, hn::Add(t, tail));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(y, x));
}

// ---------------------------------------------------------------------------------------------------------------------
// Loading and storing rows. `T` is the element in memory: float, or uint16_t for bf16.
// ---------------------------------------------------------------------------------------------------------------------

HWY_INLINE Vector loadVector(const float *from) { return hn::LoadU(floatTag, from); }

HWY_INLINE Vector loadVector(const uint16_t *from) {
  const Half16Tag half;
  return hn::BitCast(floatTag, hn::ShiftLeft<16>(hn::PromoteTo(uintTag, hn::LoadU(half, from))));
}

/// Round to nearest even; a NaN stays a NaN, made quiet.
HWY_INLINE hn::Vec<Half16Tag> roundToBf16(Vector v) {
  const auto bits = hn::BitCast(uintTag, v);
  const auto lsb = hn::And(hn::ShiftRight<16>(bits), hn::Set(uintTag, 1u));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(lsb, hn::Set(uintTag, 0x7fffu))));
  const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(uintTag, 0x40u));
  const auto isNan = hn::RebindMask(uintTag, hn::IsNaN(v));
  const auto result = hn::IfThenElse(isNan, quiet, rounded);
  return hn::DemoteTo(Half16Tag(), hn::BitCast(intTag, result));
}

HWY_INLINE void storeVector(Vector v, float *to) { hn::StoreU(v, floatTag, to); }

HWY_INLINE void storeVector(Vector v, uint16_t *to) { hn::StoreU(roundToBf16(v), Half16Tag(), to); }

/// The first `count` elements of `v`; nothing behind them is touched.
template <typename T> HWY_INLINE void storePartial(Vector v, T *to, size_t count) {
  T buffer[hn::MaxLanes(floatTag)];
  storeVector(v, buffer);
  std::memcpy(to, buffer, count * sizeof(T));
}

HWY_INLINE void prefetchRow(const void *row, int64_t bytes) {
  const char *line = static_cast<const char *>(row);
  for (int64_t i = 0; i < bytes; i += 64)
    __builtin_prefetch(line + i, 0, 3);
}

HWY_INLINE void prefetchRowForWrite(const void *row, int64_t bytes) {
  const char *line = static_cast<const char *>(row);
  for (int64_t i = 0; i < bytes; i += 64)
    __builtin_prefetch(line + i, 1, 3);
}

/// Rows of one tile are a partition apart, where hardware prefetchers do not reach: short rows are fetched two ahead.
inline constexpr int kPrefetchRows = 2;
inline constexpr int64_t kPrefetchBytes = 2048;

} // namespace HWY_NAMESPACE
} // namespace neuroncore::emulator
HWY_AFTER_NAMESPACE();

#endif // per-target include guard

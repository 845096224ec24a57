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

/// 2^n * x for integral n in [-252, 254], in two steps so that only the last one can round.
HWY_INLINE Vector scaleByPowerOfTwo(Vector x, IntVector n) {
  const IntVector first = hn::ShiftRight<1>(n);
  const IntVector second = hn::Sub(n, first);
  const IntVector bias = hn::Set(intTag, 127);
  const Vector a = hn::BitCast(floatTag, hn::ShiftLeft<23>(hn::Add(first, bias)));
  const Vector b = hn::BitCast(floatTag, hn::ShiftLeft<23>(hn::Add(second, bias)));
  return hn::Mul(hn::Mul(x, a), b);
}

/// exp(high + low), |low| small against |high|. 0.9 ulp.
HWY_INLINE Vector expOfSum(Vector high, Vector low) {
  // Beyond these bounds the result is 0 or infinity, and n stays in the range of scaleByPowerOfTwo.
  const Vector x = hn::Min(hn::Max(high, constant(-105.0f)), constant(89.5f));
  const Vector n = hn::Round(hn::Mul(x, constant(0x1.715476p+0f)));
  Vector r = fusedNegMultiplyAdd(n, constant(0x1.62e43p-1f), x);
  r = fusedNegMultiplyAdd(n, constant(-0x1.05c61p-29f), r);
  r = hn::Add(r, low);
  const float p[] = {0x1.000000p-1f, 0x1.555556p-3f, 0x1.5554e8p-5f, 0x1.1110e0p-7f, 0x1.6d444ap-10f, 0x1.a125f6p-13f};
  const Vector tail = fusedMultiplyAdd(hn::Mul(r, r), polynomial(r, p), r);
  const Vector y = scaleByPowerOfTwo(hn::Add(constant(1.0f), tail), hn::ConvertTo(intTag, n));
  return hn::IfThenElse(hn::IsNaN(high), high, y);
}

HWY_INLINE Vector exp(Vector x) { return expOfSum(x, hn::Zero(floatTag)); }

/// 1 / (1 + exp(-(high + low))). 2.2 ulp.
HWY_INLINE Vector sigmoidOfSum(Vector high, Vector low) {
  // exp of a non-positive argument only: no overflow, and full relative accuracy on both sides.
  const auto negative = hn::Lt(high, hn::Zero(floatTag));
  const Vector e = expOfSum(hn::IfThenElse(negative, high, hn::Neg(high)), hn::IfThenElse(negative, low, hn::Neg(low)));
  const Vector numerator = hn::IfThenElse(negative, e, constant(1.0f));
  return hn::Div(numerator, hn::Add(constant(1.0f), e));
}

HWY_INLINE Vector sigmoid(Vector x) { return sigmoidOfSum(x, hn::Zero(floatTag)); }

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

/// exp(z^2) * erfc(z) for z >= 0, as a polynomial in t = (z - 3) / (z + 3).
HWY_INLINE Vector scaledErfc(Vector z) {
  const Vector t = hn::Div(hn::Sub(z, constant(3.0f)), hn::Add(z, constant(3.0f)));
  const float p[] = {0x1.6e9828p-3f,   -0x1.4e102cp-2f, 0x1.f6ff22p-3f, -0x1.336fdep-3f,
                     0x1.258adep-4f,   -0x1.8fafbap-6f, 0x1.17d2fap-8f, 0x1.78ae00p-11f,
                     -0x1.37f9fcp-11f, 0x1.a3d162p-16f, 0x1.c49388p-15f};
  return polynomial(t, p);
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
  return hn::Mul(scaledErfc(clamped), expOfMinusSquare(clamped));
}

/// 1.3 ulp.
HWY_INLINE Vector erf(Vector x) {
  const Vector a = hn::Abs(x);
  const Vector square = hn::Mul(x, x);
  // 2/sqrt(pi) - 1 is exact enough in one float to keep x + x * (...) near one ulp.
  const float p[] = {0x1.06eba8p-3f, -0x1.812746p-2f,  0x1.ce2f1ep-4f,  -0x1.b82c3ap-6f,
                     0x1.564d30p-8f, -0x1.becd46p-11f, 0x1.e706fap-14f, -0x1.6df90ep-17f};
  const Vector small = fusedMultiplyAdd(x, polynomial(square, p), x);
  const Vector large = hn::CopySign(hn::Sub(constant(1.0f), erfcPositive(hn::Min(a, constant(6.0f)))), x);
  const Vector y = hn::IfThenElse(hn::Lt(a, constant(0.84375f)), small, large);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

/// Probability that a standard normal value exceeds |x|: erfc(|x| / sqrt(2)) / 2.
HWY_INLINE Vector normalTail(Vector x) {
  const Vector a = hn::Min(hn::Abs(x), constant(14.4f));
  const Vector z = hn::Mul(a, constant(0x1.6a09e6p-1f));
  // exp(-a^2 / 2) needs a^2 to twice the precision; z is only good for the slowly varying factor.
  const Vector half = hn::Mul(a, constant(0.5f));
  const Vector square = hn::Mul(a, half);
  const Vector rest = fusedMultiplySubtract(a, half, square);
  const Vector e = expOfSum(hn::Neg(square), hn::Neg(rest));
  return hn::Mul(constant(0.5f), hn::Mul(scaledErfc(z), e));
}

/// x * P(X <= x), from the tail on the negative side: no cancellation. 2.5 ulp while the tail is a normal number.
HWY_INLINE Vector gelu(Vector x) {
  const Vector tail = normalTail(x);
  const auto negative = hn::Lt(x, hn::Zero(floatTag));
  const Vector y = hn::Mul(x, hn::IfThenElse(negative, tail, hn::Sub(constant(1.0f), tail)));
  // -infinity times zero
  const Vector limited = hn::IfThenElse(hn::Lt(x, constant(-15.0f)), constant(-0.0f), y);
  return hn::IfThenElse(hn::IsNaN(x), x, limited);
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
  Vector y = hn::Mul(x, sigmoidOfSum(high, low));
  y = hn::IfThenElse(hn::Lt(x, constant(-12.0f)), constant(-0.0f), y);
  y = hn::IfThenElse(hn::Gt(x, constant(12.0f)), x, y);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

/// Derivative of gelu: P(X <= x) + x * density(x).
HWY_INLINE Vector geluDerivative(Vector x) {
  const Vector tail = normalTail(x);
  const auto negative = hn::Lt(x, hn::Zero(floatTag));
  const Vector probability = hn::IfThenElse(negative, tail, hn::Sub(constant(1.0f), tail));
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

/// x * sigmoid(x). 2.4 ulp while sigmoid(x) is a normal number.
HWY_INLINE Vector silu(Vector x) {
  const Vector y = hn::Mul(x, sigmoid(x));
  const Vector limited = hn::IfThenElse(hn::Lt(x, constant(-120.0f)), constant(-0.0f), y);
  return hn::IfThenElse(hn::IsNaN(x), x, limited);
}

/// sigmoid(x) (1 + x (1 - sigmoid(x))), as a quotient of polynomials in e = exp(-|x|).
HWY_INLINE Vector siluDerivative(Vector x) {
  const Vector c = hn::Min(hn::Max(x, constant(-120.0f)), constant(120.0f));
  const auto negative = hn::Lt(c, hn::Zero(floatTag));
  const Vector e = exp(hn::Neg(hn::Abs(c)));
  const Vector denominator = hn::Add(constant(1.0f), e);
  // x < 0: e (1 + e + x) / (1 + e)^2; x >= 0: (1 + e + x e) / (1 + e)^2
  const Vector top = hn::IfThenElse(negative, hn::Mul(e, hn::Add(denominator, c)), fusedMultiplyAdd(c, e, denominator));
  const Vector y = hn::Div(hn::Div(top, denominator), denominator);
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
  const Vector y = hn::Mul(x, hn::Div(top, hn::Add(top, rest)));
  const Vector limited = hn::IfThenElse(hn::Lt(x, constant(-120.0f)), constant(-0.0f), y);
  return hn::IfThenElse(hn::IsNaN(x), x, limited);
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

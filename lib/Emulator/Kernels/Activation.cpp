// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Activation functions of the scalar engine (with their documented input ranges) and the full-range functions of the
// float_unary GpSimd routine.

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/Emulator/Kernels/Activation.cpp"
#include "hwy/foreach_target.h" // IWYU pragma: keep

#include "hwy/highway.h"

#include "lib/Emulator/Kernels/Kernels.h"
#include "lib/Emulator/Kernels/VectorMath-inl.h"
#include "neuron/Isa/InstructionTable.h"

HWY_BEFORE_NAMESPACE();
namespace neuroncore::emulator {
namespace HWY_NAMESPACE {

using isa::ActivationFunction;
using isa::FloatUnaryFunction;

HWY_INLINE Vector notANumber() { return constant(__builtin_nanf("")); }
HWY_INLINE Vector infinity() { return constant(__builtin_inff()); }
HWY_INLINE Vector zero() { return hn::Zero(floatTag); }
HWY_INLINE Vector one() { return constant(1.0f); }

/// Result for an argument beyond sinCos, lane by lane through the C library.
template <class F> HWY_NOINLINE Vector lanewise(Vector x, Vector y, F function) {
  float in[hn::MaxLanes(floatTag)], out[hn::MaxLanes(floatTag)];
  hn::StoreU(x, floatTag, in);
  hn::StoreU(y, floatTag, out);
  for (size_t i = 0; i < hn::Lanes(floatTag); ++i)
    if (!(std::fabs(in[i]) <= kMaxTrigonometricArgument))
      out[i] = float(function(double(in[i])));
  return hn::LoadU(floatTag, out);
}

HWY_INLINE Vector anySin(Vector x) {
  const Vector y = sinCos(x, 0);
  if (HWY_UNLIKELY(!hn::AllTrue(floatTag, hn::Le(hn::Abs(x), constant(kMaxTrigonometricArgument)))))
    return lanewise(x, y, static_cast<double (*)(double)>(std::sin));
  return y;
}

HWY_INLINE Vector anyCos(Vector x) {
  const Vector y = sinCos(x, 1);
  if (HWY_UNLIKELY(!hn::AllTrue(floatTag, hn::Le(hn::Abs(x), constant(kMaxTrigonometricArgument)))))
    return lanewise(x, y, static_cast<double (*)(double)>(std::cos));
  return y;
}

HWY_INLINE Vector log2(Vector x) {
  Vector f, e;
  splitForLog(x, f, e);
  const Vector m = logOfParts(f, zero(), zero());
  Vector y = hn::Add(e, fusedMultiplyAdd(m, constant(0x1.715476p+0f), hn::Mul(m, constant(0x1.4ae0c0p-26f))));
  y = hn::IfThenElse(hn::Eq(x, infinity()), infinity(), y);
  y = hn::IfThenElse(hn::Eq(x, zero()), hn::Neg(infinity()), y);
  y = hn::IfThenElse(hn::Lt(x, zero()), notANumber(), y);
  return hn::IfThenElse(hn::Ne(x, x), x, y);
}

HWY_INLINE Vector log10(Vector x) {
  Vector f, e;
  splitForLog(x, f, e);
  const Vector m = logOfParts(f, zero(), zero());
  Vector tail = fusedMultiplyAdd(m, constant(-0x1.5b235ep-27f), hn::Mul(e, constant(-0x1.ec10c0p-27f)));
  tail = fusedMultiplyAdd(m, constant(0x1.bcb7b2p-2f), tail);
  Vector y = fusedMultiplyAdd(e, constant(0x1.344136p-2f), tail);
  y = hn::IfThenElse(hn::Eq(x, infinity()), infinity(), y);
  y = hn::IfThenElse(hn::Eq(x, zero()), hn::Neg(infinity()), y);
  y = hn::IfThenElse(hn::Lt(x, zero()), notANumber(), y);
  return hn::IfThenElse(hn::Ne(x, x), x, y);
}

HWY_INLINE Vector exp2(Vector x) {
  const Vector c = hn::Min(hn::Max(x, constant(-151.0f)), constant(129.0f));
  const Vector n = hn::Round(c);
  const Vector r = hn::Sub(c, n);
  const Vector high = hn::Mul(r, constant(0x1.62e43p-1f));
  const Vector low = fusedMultiplyAdd(r, constant(-0x1.05c61p-29f),
                                      fusedMultiplySubtract(r, constant(0x1.62e43p-1f), high));
  // exp of the small remainder, then the exact power of two.
  const Vector y = scaleByPowerOfTwo(expOfSum(high, low), hn::ConvertTo(intTag, n));
  return hn::IfThenElse(hn::Ne(x, x), x, y);
}

HWY_INLINE Vector erfc(Vector x) {
  const Vector positive = erfcPositive(hn::Abs(x));
  const Vector y = hn::IfThenElse(hn::Lt(x, zero()), hn::Sub(constant(2.0f), positive), positive);
  return hn::IfThenElse(hn::Ne(x, x), x, y);
}

HWY_INLINE Vector fraction(Vector x) {
  const Vector y = hn::Sub(x, hn::Trunc(x));
  return y; // infinity - infinity is NaN, as torch.frac
}

HWY_INLINE Vector nanToNum(Vector x) {
  const Vector largest = constant(0x1.fffffep+127f);
  const Vector limited = hn::Min(hn::Max(x, hn::Neg(largest)), largest);
  return hn::IfThenElse(hn::Ne(x, x), zero(), limited);
}

// ---------------------------------------------------------------------------------------------------------------------
// Functors
// ---------------------------------------------------------------------------------------------------------------------

#define NEURON_FUNCTION(NAME, EXPRESSION)                                                                              \
  struct NAME {                                                                                                        \
    static HWY_INLINE Vector apply(Vector x) { return EXPRESSION; }                                                    \
  }
NEURON_FUNCTION(CopyFunction, x);
NEURON_FUNCTION(SquareFunction, hn::Mul(x, x));
NEURON_FUNCTION(ReluFunction, maximum(x, zero()));
NEURON_FUNCTION(AbsFunction, hn::Abs(x));
NEURON_FUNCTION(SignFunction, sign(x));
NEURON_FUNCTION(ExpFunction, exp(x));
NEURON_FUNCTION(LogFunction, log(x));
NEURON_FUNCTION(SigmoidFunction, sigmoid(x));
NEURON_FUNCTION(TanhFunction, tanh(x));
NEURON_FUNCTION(SiluFunction, silu(x));
NEURON_FUNCTION(GeluFunction, gelu(x));
NEURON_FUNCTION(GeluTanhFunction, geluTanh(x));
NEURON_FUNCTION(ErfFunction, erf(x));
NEURON_FUNCTION(SoftplusFunction, softplus(x));
NEURON_FUNCTION(MishFunction, mish(x));
NEURON_FUNCTION(BoundedSinFunction, sinCos(x, 0));
NEURON_FUNCTION(ArctanFunction, arctan(x));
NEURON_FUNCTION(SqrtFunction, hn::Sqrt(x));
NEURON_FUNCTION(RsqrtFunction, hn::Div(one(), hn::Sqrt(x)));
NEURON_FUNCTION(ReciprocalFunction, hn::Div(one(), x));
NEURON_FUNCTION(GeluDerivativeFunction, geluDerivative(x));
NEURON_FUNCTION(SiluDerivativeFunction, siluDerivative(x));
NEURON_FUNCTION(ErfDerivativeFunction, erfDerivative(x));
NEURON_FUNCTION(SinFunction, anySin(x));
NEURON_FUNCTION(CosFunction, anyCos(x));
NEURON_FUNCTION(Log2Function, log2(x));
NEURON_FUNCTION(Log10Function, log10(x));
NEURON_FUNCTION(Exp2Function, exp2(x));
NEURON_FUNCTION(ErfcFunction, erfc(x));
NEURON_FUNCTION(FloorFunction, hn::Floor(x));
NEURON_FUNCTION(CeilFunction, hn::Ceil(x));
NEURON_FUNCTION(TruncFunction, hn::Trunc(x));
NEURON_FUNCTION(RoundFunction, hn::Round(x));
NEURON_FUNCTION(FractionFunction, fraction(x));
NEURON_FUNCTION(IsNanFunction, boolean(hn::Ne(x, x)));
NEURON_FUNCTION(IsInfFunction, boolean(hn::Eq(hn::Abs(x), infinity())));
NEURON_FUNCTION(IsFiniteFunction, boolean(hn::Lt(hn::Abs(x), infinity())));
NEURON_FUNCTION(SignBitFunction, boolean(hn::Lt(hn::CopySign(one(), x), zero())));
NEURON_FUNCTION(NanToNumFunction, nanToNum(x));
#undef NEURON_FUNCTION

/// The documented input range of a function; outside it the documentation calls the result invalid, here it is NaN.
template <ActivationFunction Which, class F> struct InRange {
  static inline float low, high;
  static inline bool ofMagnitude;
  static HWY_INLINE Vector apply(Vector x) {
    const Vector checked = ofMagnitude ? hn::Abs(x) : x;
    const auto inside = hn::And(hn::Ge(checked, constant(low)), hn::Le(checked, constant(high)));
    return hn::IfThenElse(inside, F::apply(x), notANumber());
  }
};

template <class F>
void activationRows(int64_t rows, int64_t n, ConstRows a, RowScalars scale, RowScalars bias, MutableRows out) {
  const int64_t lanes = hn::Lanes(floatTag);
  const bool prefetch = n * int64_t(sizeof(float)) <= kPrefetchBytes;
  for (int64_t r = 0; r < rows; ++r) {
    const float *pa = reinterpret_cast<const float *>(static_cast<const char *>(a.base) + r * a.stride);
    float *po = reinterpret_cast<float *>(static_cast<char *>(out.base) + r * out.stride);
    if (prefetch && r + kPrefetchRows < rows) {
      prefetchRow(reinterpret_cast<const char *>(pa) + kPrefetchRows * a.stride, n * sizeof(float));
      prefetchRowForWrite(reinterpret_cast<const char *>(po) + kPrefetchRows * out.stride, n * sizeof(float));
    }
    const Vector s = constant(scale.at(r));
    const Vector b = constant(bias.at(r));
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes)
      storeVector(F::apply(fusedMultiplyAdd(loadVector(pa + i), s, b)), po + i);
    if (i < n)
      storePartial(F::apply(fusedMultiplyAdd(loadVector(pa + i), s, b)), po + i, n - i);
  }
}

template <ActivationFunction Which, class F> void addFunction(ActivationTable &table) {
  const isa::ActivationInfo &info = isa::activationInfo(Which);
  if (!info.hasRange) {
    table.apply[int(Which)] = activationRows<F>;
    return;
  }
  using Ranged = InRange<Which, F>;
  Ranged::low = float(info.low);
  Ranged::high = float(info.high);
  Ranged::ofMagnitude = info.rangeOfMagnitude;
  table.apply[int(Which)] = activationRows<Ranged>;
}

ActivationTable makeActivationTable() {
  ActivationTable table = {};
  addFunction<ActivationFunction::Copy, CopyFunction>(table);
  addFunction<ActivationFunction::Square, SquareFunction>(table);
  addFunction<ActivationFunction::Relu, ReluFunction>(table);
  addFunction<ActivationFunction::Abs, AbsFunction>(table);
  addFunction<ActivationFunction::Sign, SignFunction>(table);
  addFunction<ActivationFunction::Exp, ExpFunction>(table);
  addFunction<ActivationFunction::Log, LogFunction>(table);
  addFunction<ActivationFunction::Sigmoid, SigmoidFunction>(table);
  addFunction<ActivationFunction::Tanh, TanhFunction>(table);
  addFunction<ActivationFunction::Silu, SiluFunction>(table);
  addFunction<ActivationFunction::Gelu, GeluFunction>(table);
  addFunction<ActivationFunction::GeluApprxTanh, GeluTanhFunction>(table);
  addFunction<ActivationFunction::Erf, ErfFunction>(table);
  addFunction<ActivationFunction::Softplus, SoftplusFunction>(table);
  addFunction<ActivationFunction::Mish, MishFunction>(table);
  addFunction<ActivationFunction::Sin, BoundedSinFunction>(table);
  addFunction<ActivationFunction::Arctan, ArctanFunction>(table);
  addFunction<ActivationFunction::Sqrt, SqrtFunction>(table);
  addFunction<ActivationFunction::Rsqrt, RsqrtFunction>(table);
  addFunction<ActivationFunction::Reciprocal, ReciprocalFunction>(table);
  addFunction<ActivationFunction::GeluDx, GeluDerivativeFunction>(table);
  addFunction<ActivationFunction::SiluDx, SiluDerivativeFunction>(table);
  addFunction<ActivationFunction::ErfDx, ErfDerivativeFunction>(table);
  return table;
}

const ActivationTable *activationTableOfTarget() {
  static const ActivationTable table = makeActivationTable();
  return &table;
}

template <class F> void floatFunction(int64_t n, const float *in, float *out) {
  const int64_t lanes = hn::Lanes(floatTag);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    storeVector(F::apply(loadVector(in + i)), out + i);
  if (i < n) {
    float buffer[hn::MaxLanes(floatTag)] = {};
    std::memcpy(buffer, in + i, (n - i) * sizeof(float));
    storePartial(F::apply(loadVector(buffer)), out + i, n - i);
  }
}

FloatFunctionTable makeFloatFunctionTable() {
  FloatFunctionTable table = {};
  auto set = [&](FloatUnaryFunction which, FloatFunctionKernel kernel) { table.apply[int(which)] = kernel; };
  set(FloatUnaryFunction::Log, floatFunction<LogFunction>);
  set(FloatUnaryFunction::Log2, floatFunction<Log2Function>);
  set(FloatUnaryFunction::Log10, floatFunction<Log10Function>);
  set(FloatUnaryFunction::Exp2, floatFunction<Exp2Function>);
  set(FloatUnaryFunction::Sin, floatFunction<SinFunction>);
  set(FloatUnaryFunction::Cos, floatFunction<CosFunction>);
  set(FloatUnaryFunction::Atan, floatFunction<ArctanFunction>);
  set(FloatUnaryFunction::Tanh, floatFunction<TanhFunction>);
  set(FloatUnaryFunction::Erf, floatFunction<ErfFunction>);
  set(FloatUnaryFunction::Erfc, floatFunction<ErfcFunction>);
  set(FloatUnaryFunction::Floor, floatFunction<FloorFunction>);
  set(FloatUnaryFunction::Ceil, floatFunction<CeilFunction>);
  set(FloatUnaryFunction::Trunc, floatFunction<TruncFunction>);
  set(FloatUnaryFunction::Round, floatFunction<RoundFunction>);
  set(FloatUnaryFunction::Frac, floatFunction<FractionFunction>);
  set(FloatUnaryFunction::Exp, floatFunction<ExpFunction>);
  set(FloatUnaryFunction::Sqrt, floatFunction<SqrtFunction>);
  set(FloatUnaryFunction::Rsqrt, floatFunction<RsqrtFunction>);
  set(FloatUnaryFunction::Sign, floatFunction<SignFunction>);
  set(FloatUnaryFunction::Isnan, floatFunction<IsNanFunction>);
  set(FloatUnaryFunction::Isinf, floatFunction<IsInfFunction>);
  set(FloatUnaryFunction::Isfinite, floatFunction<IsFiniteFunction>);
  set(FloatUnaryFunction::Signbit, floatFunction<SignBitFunction>);
  set(FloatUnaryFunction::NanToNum, floatFunction<NanToNumFunction>);
  set(FloatUnaryFunction::Softplus, floatFunction<SoftplusFunction>);
  set(FloatUnaryFunction::Sigmoid, floatFunction<SigmoidFunction>);
  set(FloatUnaryFunction::Gelu, floatFunction<GeluFunction>);
  set(FloatUnaryFunction::GeluApprxTanh, floatFunction<GeluTanhFunction>);
  return table;
}

const FloatFunctionTable *floatFunctionTableOfTarget() {
  static const FloatFunctionTable table = makeFloatFunctionTable();
  return &table;
}

} // namespace HWY_NAMESPACE
} // namespace neuroncore::emulator
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace neuroncore::emulator {

HWY_EXPORT(activationTableOfTarget);
const ActivationTable &activationTable() { return *HWY_DYNAMIC_DISPATCH(activationTableOfTarget)(); }

HWY_EXPORT(floatFunctionTableOfTarget);
const FloatFunctionTable &floatFunctionTable() { return *HWY_DYNAMIC_DISPATCH(floatFunctionTableOfTarget)(); }

} // namespace neuroncore::emulator
#endif // HWY_ONCE

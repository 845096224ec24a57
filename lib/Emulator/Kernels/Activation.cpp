// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Activation functions of the scalar engine (with their documented input ranges) and the full-range functions of the
// float_unary GpSimd routine.

#include <algorithm>
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
  return hn::IfThenElse(hn::IsNaN(x), x, y);
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
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

HWY_INLINE Vector exp2(Vector x) {
  const Vector c = hn::Min(hn::Max(x, constant(-151.0f)), constant(129.0f));
  const Vector n = hn::Round(c);
  const Vector r = hn::Sub(c, n);
  const Vector high = hn::Mul(r, constant(0x1.62e43p-1f));
  const Vector low =
      fusedMultiplyAdd(r, constant(-0x1.05c61p-29f), fusedMultiplySubtract(r, constant(0x1.62e43p-1f), high));
  // exp of the small remainder, then the exact power of two.
  const Vector y = scaleByPowerOfTwo(expOfSum(high, low), n);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

HWY_INLINE Vector erfc(Vector x) {
  const Vector positive = erfcPositive(hn::Abs(x));
  const Vector y = hn::IfThenElse(hn::Lt(x, zero()), hn::Sub(constant(2.0f), positive), positive);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

HWY_INLINE Vector fraction(Vector x) {
  const Vector y = hn::Sub(x, hn::Trunc(x));
  return y; // infinity - infinity is NaN, as torch.frac
}

HWY_INLINE Vector nanToNum(Vector x) {
  const Vector largest = constant(0x1.fffffep+127f);
  const Vector limited = hn::Min(hn::Max(x, hn::Neg(largest)), largest);
  return hn::IfThenElse(hn::IsNaN(x), zero(), limited);
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
NEURON_FUNCTION(IsNanFunction, boolean(hn::IsNaN(x)));
NEURON_FUNCTION(IsInfFunction, boolean(hn::Eq(hn::Abs(x), infinity())));
NEURON_FUNCTION(IsFiniteFunction, boolean(hn::Lt(hn::Abs(x), infinity())));
NEURON_FUNCTION(SignBitFunction, boolean(hn::Lt(hn::CopySign(one(), x), zero())));
NEURON_FUNCTION(NanToNumFunction, nanToNum(x));
#undef NEURON_FUNCTION

template <class F> void applyFunction(int64_t n, const float *in, float *out) {
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

/// See ActivationKernel.
template <class F, class In, class Out, bool kSums>
void activationRow(int64_t n, const In *in, float scale, float bias, Out *out, float *partials) {
  const int64_t lanes = hn::Lanes(floatTag);
  const Vector s = constant(scale), b = constant(bias);
  const auto add = [&](Vector v, int64_t i) {
    float *partial = partials + i % kReductionPartials;
    hn::StoreU(hn::Add(hn::LoadU(floatTag, partial), v), floatTag, partial);
  };
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const Vector v0 = F::apply(fusedMultiplyAdd(loadVector(in + i), s, b));
    const Vector v1 = F::apply(fusedMultiplyAdd(loadVector(in + i + lanes), s, b));
    if constexpr (kSums) {
      add(v0, i);
      add(v1, i + lanes);
    }
    storeVector(v0, out + i);
    storeVector(v1, out + i + lanes);
  }
  for (; i < n; i += lanes) {
    const Vector v = F::apply(fusedMultiplyAdd(loadVector(in + i), s, b));
    const int64_t count = n - i < lanes ? n - i : lanes;
    if constexpr (kSums) {
      float values[hn::MaxLanes(floatTag)];
      hn::StoreU(v, floatTag, values);
      for (int64_t j = 0; j < count; ++j)
        partials[(i + j) % kReductionPartials] += values[j];
    }
    storePartial(v, out + i, size_t(count));
  }
}

template <class F, class In, class Out>
void fusedActivation(int64_t n, const void *in, float scale, float bias, void *out, float *partials) {
  if (partials)
    activationRow<F, In, Out, true>(n, static_cast<const In *>(in), scale, bias, static_cast<Out *>(out), partials);
  else
    activationRow<F, In, Out, false>(n, static_cast<const In *>(in), scale, bias, static_cast<Out *>(out), nullptr);
}

template <class F> void addFusedActivation(FunctionTable &table, ActivationFunction which) {
  table.fusedActivation[int(which)][0][0] = fusedActivation<F, float, float>;
  table.fusedActivation[int(which)][0][1] = fusedActivation<F, float, uint16_t>;
  table.fusedActivation[int(which)][1][0] = fusedActivation<F, uint16_t, float>;
  table.fusedActivation[int(which)][1][1] = fusedActivation<F, uint16_t, uint16_t>;
}

void scaleAndAdd(int64_t n, const float *a, float scale, float bias, float *to) {
  const int64_t lanes = hn::Lanes(floatTag);
  const Vector s = constant(scale), b = constant(bias);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    storeVector(fusedMultiplyAdd(loadVector(a + i), s, b), to + i);
  if (i < n)
    storePartial(fusedMultiplyAdd(loadVector(a + i), s, b), to + i, n - i);
}

void limitRange(int64_t n, const float *arguments, float low, float high, bool ofMagnitude, float *values) {
  for (int64_t i = 0; i < n; ++i) {
    const float x = ofMagnitude ? std::fabs(arguments[i]) : arguments[i];
    values[i] = x >= low && x <= high ? values[i] : __builtin_nanf("");
  }
}

FunctionTable makeFunctionTable() {
  FunctionTable table = {};
  table.scaleAndAdd = scaleAndAdd;
  table.limitRange = limitRange;
  const auto activation = [&](ActivationFunction which, FunctionKernel kernel) {
    table.activation[int(which)] = kernel;
  };
  activation(ActivationFunction::Copy, applyFunction<CopyFunction>);
  activation(ActivationFunction::Square, applyFunction<SquareFunction>);
  activation(ActivationFunction::Relu, applyFunction<ReluFunction>);
  activation(ActivationFunction::Abs, applyFunction<AbsFunction>);
  activation(ActivationFunction::Sign, applyFunction<SignFunction>);
  activation(ActivationFunction::Exp, applyFunction<ExpFunction>);
  activation(ActivationFunction::Log, applyFunction<LogFunction>);
  activation(ActivationFunction::Sigmoid, applyFunction<SigmoidFunction>);
  activation(ActivationFunction::Tanh, applyFunction<TanhFunction>);
  activation(ActivationFunction::Silu, applyFunction<SiluFunction>);
  activation(ActivationFunction::Gelu, applyFunction<GeluFunction>);
  activation(ActivationFunction::GeluApprxTanh, applyFunction<GeluTanhFunction>);
  activation(ActivationFunction::Erf, applyFunction<ErfFunction>);
  activation(ActivationFunction::Softplus, applyFunction<SoftplusFunction>);
  activation(ActivationFunction::Mish, applyFunction<MishFunction>);
  activation(ActivationFunction::Sin, applyFunction<SinFunction>);
  activation(ActivationFunction::Arctan, applyFunction<ArctanFunction>);
  activation(ActivationFunction::Sqrt, applyFunction<SqrtFunction>);
  activation(ActivationFunction::Rsqrt, applyFunction<RsqrtFunction>);
  activation(ActivationFunction::Reciprocal, applyFunction<ReciprocalFunction>);
  activation(ActivationFunction::GeluDx, applyFunction<GeluDerivativeFunction>);
  activation(ActivationFunction::SiluDx, applyFunction<SiluDerivativeFunction>);
  activation(ActivationFunction::ErfDx, applyFunction<ErfDerivativeFunction>);
  // Only functions without a documented range.
  addFusedActivation<CopyFunction>(table, ActivationFunction::Copy);
  addFusedActivation<SquareFunction>(table, ActivationFunction::Square);
  addFusedActivation<ReluFunction>(table, ActivationFunction::Relu);
  addFusedActivation<ExpFunction>(table, ActivationFunction::Exp);
  const auto unary = [&](FloatUnaryFunction which, FunctionKernel kernel) { table.floatUnary[int(which)] = kernel; };
  unary(FloatUnaryFunction::Log, applyFunction<LogFunction>);
  unary(FloatUnaryFunction::Log2, applyFunction<Log2Function>);
  unary(FloatUnaryFunction::Log10, applyFunction<Log10Function>);
  unary(FloatUnaryFunction::Exp2, applyFunction<Exp2Function>);
  unary(FloatUnaryFunction::Sin, applyFunction<SinFunction>);
  unary(FloatUnaryFunction::Cos, applyFunction<CosFunction>);
  unary(FloatUnaryFunction::Atan, applyFunction<ArctanFunction>);
  unary(FloatUnaryFunction::Tanh, applyFunction<TanhFunction>);
  unary(FloatUnaryFunction::Erf, applyFunction<ErfFunction>);
  unary(FloatUnaryFunction::Erfc, applyFunction<ErfcFunction>);
  unary(FloatUnaryFunction::Floor, applyFunction<FloorFunction>);
  unary(FloatUnaryFunction::Ceil, applyFunction<CeilFunction>);
  unary(FloatUnaryFunction::Trunc, applyFunction<TruncFunction>);
  unary(FloatUnaryFunction::Round, applyFunction<RoundFunction>);
  unary(FloatUnaryFunction::Frac, applyFunction<FractionFunction>);
  unary(FloatUnaryFunction::Exp, applyFunction<ExpFunction>);
  unary(FloatUnaryFunction::Sqrt, applyFunction<SqrtFunction>);
  unary(FloatUnaryFunction::Rsqrt, applyFunction<RsqrtFunction>);
  unary(FloatUnaryFunction::Sign, applyFunction<SignFunction>);
  unary(FloatUnaryFunction::Isnan, applyFunction<IsNanFunction>);
  unary(FloatUnaryFunction::Isinf, applyFunction<IsInfFunction>);
  unary(FloatUnaryFunction::Isfinite, applyFunction<IsFiniteFunction>);
  unary(FloatUnaryFunction::Signbit, applyFunction<SignBitFunction>);
  unary(FloatUnaryFunction::NanToNum, applyFunction<NanToNumFunction>);
  unary(FloatUnaryFunction::Softplus, applyFunction<SoftplusFunction>);
  unary(FloatUnaryFunction::Sigmoid, applyFunction<SigmoidFunction>);
  unary(FloatUnaryFunction::Gelu, applyFunction<GeluFunction>);
  unary(FloatUnaryFunction::GeluApprxTanh, applyFunction<GeluTanhFunction>);
  return table;
}

const FunctionTable *functionTableOfTarget() {
  static const FunctionTable table = makeFunctionTable();
  return &table;
}

} // namespace HWY_NAMESPACE
} // namespace neuroncore::emulator
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace neuroncore::emulator {

HWY_EXPORT(functionTableOfTarget);
const FunctionTable &functionTable() { return *HWY_DYNAMIC_DISPATCH(functionTableOfTarget)(); }

void activationRows(isa::ActivationFunction function, int64_t rows, int64_t n, ConstRows a, RowScalars scale,
                    RowScalars bias, MutableRows out) {
  // The arguments stay in the first-level cache; short rows share a call.
  constexpr int64_t kArguments = 512;
  alignas(64) float arguments[kArguments + 16];
  const FunctionTable &table = functionTable();
  const FunctionKernel kernel = table.activation[int(function)];
  const isa::ActivationInfo &info = isa::activationInfo(function);
  const float low = float(info.low), high = float(info.high);
  const auto inRow = [&](int64_t r) {
    return reinterpret_cast<const float *>(static_cast<const char *>(a.base) + r * a.stride);
  };
  const auto outRow = [&](int64_t r) {
    return reinterpret_cast<float *>(static_cast<char *>(out.base) + r * out.stride);
  };
  if (n >= 64) {
    for (int64_t r = 0; r < rows; ++r) {
      const float *from = inRow(r);
      float *to = outRow(r);
      const float s = scale.at(r), b = bias.at(r);
      for (int64_t i = 0; i < n; i += kArguments) {
        const int64_t count = std::min(kArguments, n - i);
        table.scaleAndAdd(count, from + i, s, b, arguments);
        kernel(count, arguments, to + i);
        if (info.hasRange)
          table.limitRange(count, arguments, low, high, info.rangeOfMagnitude, to + i);
      }
    }
    return;
  }
  alignas(64) float values[kArguments + 16];
  const int64_t step = kArguments / n;
  for (int64_t r0 = 0; r0 < rows; r0 += step) {
    const int64_t count = std::min(step, rows - r0);
    for (int64_t r = 0; r < count; ++r)
      table.scaleAndAdd(n, inRow(r0 + r), scale.at(r0 + r), bias.at(r0 + r), arguments + r * n);
    kernel(count * n, arguments, values);
    if (info.hasRange)
      table.limitRange(count * n, arguments, low, high, info.rangeOfMagnitude, values);
    for (int64_t r = 0; r < count; ++r)
      std::memcpy(outRow(r0 + r), values + r * n, size_t(n) * sizeof(float));
  }
}

} // namespace neuroncore::emulator
#endif // HWY_ONCE

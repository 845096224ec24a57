// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversions between fp32 and the other element types. Into 16 and 8-bit floats: round to nearest even, overflow to
// infinity (f8e4m3fn, which has none: to NaN). Into integers: round to nearest even, saturate, NaN gives 0.

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/Emulator/Kernels/Convert.cpp"
#include "hwy/foreach_target.h" // IWYU pragma: keep

#include "hwy/highway.h"

#include "lib/Emulator/Kernels/Kernels.h"
#include "lib/Emulator/Kernels/VectorMath-inl.h"

#ifndef NEURON_EMULATOR_CONVERT_SCALAR
#define NEURON_EMULATOR_CONVERT_SCALAR
namespace neuroncore::emulator {
namespace {

using isa::Dtype;

/// A binary float of `kExponent` exponent and `kMantissa` mantissa bits, IEEE style except that f8e4m3fn has no
/// infinities (its top exponent holds numbers, all ones is NaN).
template <int kExponent, int kMantissa, bool kFinite> struct SmallFloat {
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr uint32_t kExponentMask = (1u << kExponent) - 1;
  static constexpr uint32_t kMantissaMask = (1u << kMantissa) - 1;

  static float decode(uint32_t bits) {
    const uint32_t sign = bits >> (kExponent + kMantissa) & 1;
    const uint32_t exponent = bits >> kMantissa & kExponentMask;
    const uint32_t mantissa = bits & kMantissaMask;
    float value;
    if (exponent == 0) {
      value = std::ldexp(float(mantissa), 1 - kBias - kMantissa);
    } else if (kFinite ? (exponent == kExponentMask && mantissa == kMantissaMask) : exponent == kExponentMask) {
      if (kFinite || mantissa != 0)
        return std::bit_cast<float>(sign << 31 | 0x7fc00000u | (kFinite ? 0 : mantissa << (23 - kMantissa)));
      value = std::numeric_limits<float>::infinity();
    } else {
      return std::bit_cast<float>(sign << 31 | (exponent + 127 - kBias) << 23 | mantissa << (23 - kMantissa));
    }
    return sign ? -value : value;
  }

  static uint32_t encode(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t sign = bits >> 31 << (kExponent + kMantissa);
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
      if (kFinite)
        return sign | kExponentMask << kMantissa | kMantissaMask;
      return sign | kExponentMask << kMantissa | 1u << (kMantissa - 1) |
             (magnitude >> (23 - kMantissa) & kMantissaMask);
    }
    const int exponent = int(magnitude >> 23) - 127 + kBias;
    uint32_t result;
    if (exponent >= 1) {
      // Rounding may carry into the exponent, which is what it should do.
      const uint32_t rebased = magnitude - (uint32_t(127 - kBias) << 23);
      const uint32_t half = (1u << (22 - kMantissa)) - 1 + (rebased >> (23 - kMantissa) & 1);
      result = (rebased + half) >> (23 - kMantissa);
    } else {
      // Subnormal: an integer multiple of the smallest step.
      result = uint32_t(std::nearbyint(std::ldexp(std::fabs(value), kBias - 1 + kMantissa)));
    }
    const uint32_t largest =
        kFinite ? (kExponentMask << kMantissa | (kMantissaMask - 1)) : (kExponentMask << kMantissa) - 1;
    if (result > largest)
      result = kFinite ? (kExponentMask << kMantissa | kMantissaMask) : kExponentMask << kMantissa;
    return sign | result;
  }
};

using Float16 = SmallFloat<5, 10, false>;
using Float8e4m3 = SmallFloat<4, 3, false>;
using Float8e4m3fn = SmallFloat<4, 3, true>;
using Float8e5m2 = SmallFloat<5, 2, false>;

template <typename T> T roundSaturated(float value) {
  if (value != value)
    return 0;
  const float rounded = std::nearbyint(value);
  // The bounds as floats: the upper one may round up to a power of two, which is itself out of range.
  if (rounded >= std::ldexp(1.0f, std::numeric_limits<T>::digits))
    return std::numeric_limits<T>::max();
  if (rounded <= float(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  return T(rounded);
}

float bf16ToFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

uint16_t floatToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value != value)
    return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <typename T> T readAs(const uint8_t *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
template <typename T> void writeAs(uint8_t *to, T value) { std::memcpy(to, &value, sizeof(T)); }

template <Dtype kDtype> float loadOne(const uint8_t *from) {
  if constexpr (kDtype == Dtype::F32)
    return readAs<float>(from);
  else if constexpr (kDtype == Dtype::Bf16)
    return bf16ToFloat(readAs<uint16_t>(from));
  else if constexpr (kDtype == Dtype::F16)
    return Float16::decode(readAs<uint16_t>(from));
  else if constexpr (kDtype == Dtype::F8e4m3)
    return Float8e4m3::decode(*from);
  else if constexpr (kDtype == Dtype::F8e4m3fn)
    return Float8e4m3fn::decode(*from);
  else if constexpr (kDtype == Dtype::F8e5m2)
    return Float8e5m2::decode(*from);
  else if constexpr (kDtype == Dtype::I8)
    return float(readAs<int8_t>(from));
  else if constexpr (kDtype == Dtype::U8)
    return float(*from);
  else if constexpr (kDtype == Dtype::I16)
    return float(readAs<int16_t>(from));
  else if constexpr (kDtype == Dtype::U16)
    return float(readAs<uint16_t>(from));
  else if constexpr (kDtype == Dtype::I32)
    return float(readAs<int32_t>(from));
  else if constexpr (kDtype == Dtype::U32)
    return float(readAs<uint32_t>(from));
  else if constexpr (kDtype == Dtype::I64)
    return float(readAs<int64_t>(from));
  else if constexpr (kDtype == Dtype::U64)
    return float(readAs<uint64_t>(from));
  else
    return float(readAs<double>(from));
}

template <Dtype kDtype> void storeOne(float value, uint8_t *to) {
  if constexpr (kDtype == Dtype::F32)
    writeAs(to, value);
  else if constexpr (kDtype == Dtype::Bf16)
    writeAs(to, floatToBf16(value));
  else if constexpr (kDtype == Dtype::F16)
    writeAs(to, uint16_t(Float16::encode(value)));
  else if constexpr (kDtype == Dtype::F8e4m3)
    *to = uint8_t(Float8e4m3::encode(value));
  else if constexpr (kDtype == Dtype::F8e4m3fn)
    *to = uint8_t(Float8e4m3fn::encode(value));
  else if constexpr (kDtype == Dtype::F8e5m2)
    *to = uint8_t(Float8e5m2::encode(value));
  else if constexpr (kDtype == Dtype::I8)
    writeAs(to, roundSaturated<int8_t>(value));
  else if constexpr (kDtype == Dtype::U8)
    *to = roundSaturated<uint8_t>(value);
  else if constexpr (kDtype == Dtype::I16)
    writeAs(to, roundSaturated<int16_t>(value));
  else if constexpr (kDtype == Dtype::U16)
    writeAs(to, roundSaturated<uint16_t>(value));
  else if constexpr (kDtype == Dtype::I32)
    writeAs(to, roundSaturated<int32_t>(value));
  else if constexpr (kDtype == Dtype::U32)
    writeAs(to, roundSaturated<uint32_t>(value));
  else if constexpr (kDtype == Dtype::I64)
    writeAs(to, roundSaturated<int64_t>(value));
  else if constexpr (kDtype == Dtype::U64)
    writeAs(to, roundSaturated<uint64_t>(value));
  else
    writeAs(to, double(value));
}

} // namespace
} // namespace neuroncore::emulator
#endif // NEURON_EMULATOR_CONVERT_SCALAR

HWY_BEFORE_NAMESPACE();
namespace neuroncore::emulator {
namespace HWY_NAMESPACE {

constexpr int bytesOf(Dtype dtype) {
  switch (dtype) {
  case Dtype::F8e4m3:
  case Dtype::F8e4m3fn:
  case Dtype::F8e5m2:
  case Dtype::I8:
  case Dtype::U8:
    return 1;
  case Dtype::Bf16:
  case Dtype::F16:
  case Dtype::I16:
  case Dtype::U16:
    return 2;
  case Dtype::I64:
  case Dtype::U64:
  case Dtype::F64:
    return 8;
  default:
    return 4;
  }
}

template <Dtype kDtype> void loadScalar(int64_t n, const uint8_t *from, float *to) {
  for (int64_t i = 0; i < n; ++i)
    to[i] = loadOne<kDtype>(from + i * bytesOf(kDtype));
}

template <Dtype kDtype> void storeScalar(int64_t n, const float *from, uint8_t *to) {
  for (int64_t i = 0; i < n; ++i)
    storeOne<kDtype>(from[i], to + i * bytesOf(kDtype));
}

void loadF32(int64_t n, const uint8_t *from, float *to) { std::memcpy(to, from, n * sizeof(float)); }
void storeF32(int64_t n, const float *from, uint8_t *to) { std::memcpy(to, from, n * sizeof(float)); }

/// Eight-bit floats by table.
template <Dtype kDtype> void loadFloat8(int64_t n, const uint8_t *from, float *to) {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> values;
    for (int i = 0; i < 256; ++i) {
      const uint8_t byte = uint8_t(i);
      values[i] = loadOne<kDtype>(&byte);
    }
    return values;
  }();
  for (int64_t i = 0; i < n; ++i)
    to[i] = table[from[i]];
}

/// Runs a vector loop over whole vectors and the scalar form over the rest.
template <Dtype kDtype, class Step> void loadVectors(int64_t n, const uint8_t *from, float *to) {
  const int64_t lanes = hn::Lanes(floatTag);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(Step::load(from + i * bytesOf(kDtype)), floatTag, to + i);
  loadScalar<kDtype>(n - i, from + i * bytesOf(kDtype), to + i);
}

template <Dtype kDtype, class Step> void storeVectors(int64_t n, const float *from, uint8_t *to) {
  const int64_t lanes = hn::Lanes(floatTag);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    Step::store(hn::LoadU(floatTag, from + i), to + i * bytesOf(kDtype));
  storeScalar<kDtype>(n - i, from + i, to + i * bytesOf(kDtype));
}

struct Bf16Step {
  static HWY_INLINE Vector load(const uint8_t *from) { return loadVector(reinterpret_cast<const uint16_t *>(from)); }
  static HWY_INLINE void store(Vector v, uint8_t *to) { storeVector(v, reinterpret_cast<uint16_t *>(to)); }
};

template <typename T> struct IntegerStep {
  static HWY_INLINE Vector load(const uint8_t *from) {
    const hn::Rebind<T, FloatTag> narrow;
    const auto v = hn::LoadU(narrow, reinterpret_cast<const T *>(from));
    if constexpr (sizeof(T) == 4)
      return hn::ConvertTo(floatTag, v);
    else
      return hn::ConvertTo(floatTag, hn::PromoteTo(intTag, v));
  }
  static HWY_INLINE void store(Vector v, uint8_t *to) {
    const Vector low = constant(float(std::numeric_limits<T>::min()));
    // Clamping first makes the rounded value fit; 2^31 is the one bound that is no int32.
    const Vector high = constant(float(std::numeric_limits<T>::max()));
    const Vector clean = hn::IfThenElse(hn::IsNaN(v), hn::Zero(floatTag), v);
    IntVector rounded = hn::NearestInt(hn::Min(hn::Max(clean, low), high));
    if constexpr (sizeof(T) == 4) {
      const auto overflow = hn::RebindMask(intTag, hn::Ge(clean, constant(2147483648.0f)));
      rounded = hn::IfThenElse(overflow, hn::Set(intTag, std::numeric_limits<int32_t>::max()), rounded);
      hn::StoreU(rounded, intTag, reinterpret_cast<int32_t *>(to));
    } else {
      const hn::Rebind<T, FloatTag> narrow;
      hn::StoreU(hn::DemoteTo(narrow, rounded), narrow, reinterpret_cast<T *>(to));
    }
  }
};

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
/// The CPU's conversion: exact, subnormals included; NaNs as SmallFloat has them.
struct Float16Step {
  static HWY_INLINE Vector load(const uint8_t *from) {
    const hn::Rebind<hwy::float16_t, FloatTag> half;
    return hn::PromoteTo(floatTag, hn::LoadU(half, reinterpret_cast<const hwy::float16_t *>(from)));
  }
  static HWY_INLINE void store(Vector v, uint8_t *to) {
    const hn::Rebind<hwy::float16_t, FloatTag> half;
    hn::StoreU(hn::DemoteTo(half, v), half, reinterpret_cast<hwy::float16_t *>(to));
  }
};
#endif

template <Dtype kDtype, class Step> void addVectors(ConvertTable &table) {
  table.load[int(kDtype)] = loadVectors<kDtype, Step>;
  table.store[int(kDtype)] = storeVectors<kDtype, Step>;
}

template <Dtype kDtype> void addScalar(ConvertTable &table) {
  table.load[int(kDtype)] = loadScalar<kDtype>;
  table.store[int(kDtype)] = storeScalar<kDtype>;
}

ConvertTable makeConvertTable() {
  ConvertTable table = {};
  addScalar<Dtype::F16>(table);
  addScalar<Dtype::F8e4m3>(table);
  addScalar<Dtype::F8e4m3fn>(table);
  addScalar<Dtype::F8e5m2>(table);
  addScalar<Dtype::U32>(table);
  addScalar<Dtype::I64>(table);
  addScalar<Dtype::U64>(table);
  addScalar<Dtype::F64>(table);
  table.load[int(Dtype::F32)] = loadF32;
  table.store[int(Dtype::F32)] = storeF32;
  table.load[int(Dtype::F8e4m3)] = loadFloat8<Dtype::F8e4m3>;
  table.load[int(Dtype::F8e4m3fn)] = loadFloat8<Dtype::F8e4m3fn>;
  table.load[int(Dtype::F8e5m2)] = loadFloat8<Dtype::F8e5m2>;
  addVectors<Dtype::Bf16, Bf16Step>(table);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  addVectors<Dtype::F16, Float16Step>(table);
#endif
  addVectors<Dtype::I8, IntegerStep<int8_t>>(table);
  addVectors<Dtype::U8, IntegerStep<uint8_t>>(table);
  addVectors<Dtype::I16, IntegerStep<int16_t>>(table);
  addVectors<Dtype::U16, IntegerStep<uint16_t>>(table);
  addVectors<Dtype::I32, IntegerStep<int32_t>>(table);
  return table;
}

const ConvertTable *convertTableOfTarget() {
  static const ConvertTable table = makeConvertTable();
  return &table;
}

} // namespace HWY_NAMESPACE
} // namespace neuroncore::emulator
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace neuroncore::emulator {

HWY_EXPORT(convertTableOfTarget);
const ConvertTable &convertTable() { return *HWY_DYNAMIC_DISPATCH(convertTableOfTarget)(); }

float loadAsFloat(isa::Dtype dtype, const uint8_t *from) {
  float value;
  convertTable().load[int(dtype)](1, from, &value);
  return value;
}

void storeFromFloat(isa::Dtype dtype, float value, uint8_t *to) { convertTable().store[int(dtype)](1, &value, to); }

} // namespace neuroncore::emulator
#endif // HWY_ONCE

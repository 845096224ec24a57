// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions along the free axis, in the emulator's fixed order of 64 partials (Kernels.h).

#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/Emulator/Kernels/Reduce.cpp"
#include "hwy/foreach_target.h" // IWYU pragma: keep

#include "hwy/highway.h"

#include "lib/Emulator/Kernels/Kernels.h"
#include "lib/Emulator/Kernels/VectorMath-inl.h"

HWY_BEFORE_NAMESPACE();
namespace neuroncore::emulator {
namespace HWY_NAMESPACE {

HWY_INLINE hn::Mask<FloatTag> isTrue(Vector x) { return notEqual(x, hn::Zero(floatTag)); }

// element(x) is what the reduction sees of an element; combine is the (associative up to rounding) operation.
struct AddReduction {
  static constexpr ReduceOp kOp = ReduceOp::Add;
  static HWY_INLINE Vector element(Vector x) { return x; }
  static HWY_INLINE Vector combine(Vector a, Vector b) { return hn::Add(a, b); }
};
struct MultiplyReduction {
  static constexpr ReduceOp kOp = ReduceOp::Multiply;
  static HWY_INLINE Vector element(Vector x) { return x; }
  static HWY_INLINE Vector combine(Vector a, Vector b) { return hn::Mul(a, b); }
};
struct MaximumReduction {
  static constexpr ReduceOp kOp = ReduceOp::Maximum;
  static HWY_INLINE Vector element(Vector x) { return x; }
  static HWY_INLINE Vector combine(Vector a, Vector b) { return maximum(a, b); }
};
struct MinimumReduction {
  static constexpr ReduceOp kOp = ReduceOp::Minimum;
  static HWY_INLINE Vector element(Vector x) { return x; }
  static HWY_INLINE Vector combine(Vector a, Vector b) { return minimum(a, b); }
};
struct AndReduction {
  static constexpr ReduceOp kOp = ReduceOp::LogicalAnd;
  static HWY_INLINE Vector element(Vector x) { return boolean(isTrue(x)); }
  static HWY_INLINE Vector combine(Vector a, Vector b) { return hn::Mul(a, b); }
};
struct OrReduction {
  static constexpr ReduceOp kOp = ReduceOp::LogicalOr;
  static HWY_INLINE Vector element(Vector x) { return boolean(isTrue(x)); }
  static HWY_INLINE Vector combine(Vector a, Vector b) { return hn::Max(a, b); }
};
struct XorReduction {
  static constexpr ReduceOp kOp = ReduceOp::LogicalXor;
  static HWY_INLINE Vector element(Vector x) { return boolean(isTrue(x)); }
  static HWY_INLINE Vector combine(Vector a, Vector b) { return hn::Abs(hn::Sub(a, b)); }
};

inline constexpr size_t kMaxAccumulators = kReductionPartials / 4; // at least four lanes on every target

/// Adds one row, element 0 to partial 0.
template <class R, class T> HWY_INLINE void accumulateRow(int64_t n, const T *HWY_RESTRICT row, Vector *accumulators) {
  const int64_t lanes = hn::Lanes(floatTag);
  const int count = int(kReductionPartials / lanes);
  int64_t i = 0;
#if HWY_TARGET == HWY_AVX2
  // Eight named accumulators stay in registers.
  if (n >= kReductionPartials) {
    Vector a0 = accumulators[0], a1 = accumulators[1], a2 = accumulators[2], a3 = accumulators[3];
    Vector a4 = accumulators[4], a5 = accumulators[5], a6 = accumulators[6], a7 = accumulators[7];
    for (; i + kReductionPartials <= n; i += kReductionPartials) {
      a0 = R::combine(a0, R::element(loadVector(row + i)));
      a1 = R::combine(a1, R::element(loadVector(row + i + 8)));
      a2 = R::combine(a2, R::element(loadVector(row + i + 16)));
      a3 = R::combine(a3, R::element(loadVector(row + i + 24)));
      a4 = R::combine(a4, R::element(loadVector(row + i + 32)));
      a5 = R::combine(a5, R::element(loadVector(row + i + 40)));
      a6 = R::combine(a6, R::element(loadVector(row + i + 48)));
      a7 = R::combine(a7, R::element(loadVector(row + i + 56)));
    }
    accumulators[0] = a0, accumulators[1] = a1, accumulators[2] = a2, accumulators[3] = a3;
    accumulators[4] = a4, accumulators[5] = a5, accumulators[6] = a6, accumulators[7] = a7;
  }
#else
  for (; i + kReductionPartials <= n; i += kReductionPartials)
    for (int k = 0; k < count; ++k)
      accumulators[k] = R::combine(accumulators[k], R::element(loadVector(row + i + k * lanes)));
#endif
  for (int k = 0; k < count && i < n; ++k, i += lanes) {
    const Vector next = R::combine(accumulators[k], R::element(loadVector(row + i)));
    if (i + lanes <= n)
      accumulators[k] = next;
    else
      accumulators[k] = hn::IfThenElse(hn::FirstN(floatTag, size_t(n - i)), next, accumulators[k]);
  }
}

/// The binary tree over the 64 partials, until `left` of them are left.
template <class R> HWY_INLINE void foldPartials(Vector *accumulators, int left) {
  const int lanes = int(hn::Lanes(floatTag));
  int width = kReductionPartials / 2;
  for (; width >= lanes; width /= 2)
    for (int k = 0; k < width / lanes; ++k)
      accumulators[k] = R::combine(accumulators[k], accumulators[k + width / lanes]);
  for (; width >= left; width /= 2) {
    // s[i] with s[i + width]: shift the upper half down; the lanes above `width` are not used again.
    float shifted[2 * hn::MaxLanes(floatTag)] = {};
    hn::StoreU(accumulators[0], floatTag, shifted);
    accumulators[0] = R::combine(accumulators[0], hn::LoadU(floatTag, shifted + width));
  }
}

template <class R> HWY_INLINE float finishRow(Vector *accumulators) {
  foldPartials<R>(accumulators, 1);
  return hn::GetLane(accumulators[0]);
}

/// Two passes, so that nothing cancels: the sums, then the squares around the means.
template <class T> void momentsOfRows(int64_t rows, int64_t n, ConstRows a, float *out) {
  const int64_t lanes = hn::Lanes(floatTag);
  const int count = int(kReductionPartials / lanes);
  const float counts[2] = {float((n + 1) / 2), float(n / 2)};
  for (int64_t r = 0; r < rows; ++r) {
    const T *row = reinterpret_cast<const T *>(static_cast<const char *>(a.base) + r * a.stride);
    Vector accumulators[kMaxAccumulators];
    float both[hn::MaxLanes(floatTag)];
    for (int k = 0; k < count; ++k)
      accumulators[k] = hn::Zero(floatTag);
    accumulateRow<AddReduction>(n, row, accumulators);
    foldPartials<AddReduction>(accumulators, 2);
    hn::StoreU(accumulators[0], floatTag, both);
    const float means[2] = {both[0] / counts[0], n > 1 ? both[1] / counts[1] : 0.0f};

    // Even lanes hold even elements on every target.
    const Vector mean = hn::OddEven(constant(means[1]), constant(means[0]));
    for (int k = 0; k < count; ++k)
      accumulators[k] = hn::Zero(floatTag);
    int k = 0;
    for (int64_t i = 0; i < n; i += lanes, k = k + 1 == count ? 0 : k + 1) {
      Vector difference = hn::Sub(loadVector(row + i), mean);
      if (i + lanes > n)
        difference = hn::IfThenElseZero(hn::FirstN(floatTag, size_t(n - i)), difference);
      accumulators[k] = hn::MulAdd(difference, difference, accumulators[k]);
    }
    foldPartials<AddReduction>(accumulators, 2);
    hn::StoreU(accumulators[0], floatTag, both);
    for (int parity = 0; parity < 2; ++parity) {
      out[6 * r + 3 * parity] = counts[parity];
      out[6 * r + 3 * parity + 1] = means[parity];
      out[6 * r + 3 * parity + 2] = both[parity];
    }
  }
}

template <class R, class T> void reduceRows(int64_t rows, int64_t n, ConstRows a, float *out) {
  const int count = int(kReductionPartials / hn::Lanes(floatTag));
  const Vector identity = constant(reduceIdentity(R::kOp));
  const bool prefetch = n * int64_t(sizeof(T)) <= kPrefetchBytes;
  for (int64_t r = 0; r < rows; ++r) {
    const T *row = reinterpret_cast<const T *>(static_cast<const char *>(a.base) + r * a.stride);
    if (prefetch && r + kPrefetchRows < rows)
      prefetchRow(reinterpret_cast<const char *>(row) + kPrefetchRows * a.stride, n * sizeof(T));
    Vector accumulators[kMaxAccumulators];
    for (int k = 0; k < count; ++k)
      accumulators[k] = identity;
    accumulateRow<R>(n, row, accumulators);
    out[r] = finishRow<R>(accumulators);
  }
}

template <class R> void accumulatePartials(int64_t n, const float *a, float *partials) {
  const int lanes = int(hn::Lanes(floatTag));
  const int count = kReductionPartials / lanes;
  Vector accumulators[kMaxAccumulators];
  for (int k = 0; k < count; ++k)
    accumulators[k] = hn::LoadU(floatTag, partials + k * lanes);
  accumulateRow<R>(n, a, accumulators);
  for (int k = 0; k < count; ++k)
    hn::StoreU(accumulators[k], floatTag, partials + k * lanes);
}

template <class R> float finishPartials(const float *partials) {
  const int lanes = int(hn::Lanes(floatTag));
  Vector accumulators[kMaxAccumulators];
  for (int k = 0; k < kReductionPartials / lanes; ++k)
    accumulators[k] = hn::LoadU(floatTag, partials + k * lanes);
  return finishRow<R>(accumulators);
}

template <class R> void addReduction(ReduceTable &table) {
  const int i = int(R::kOp);
  table.rows[i][0] = reduceRows<R, float>;
  table.rows[i][1] = reduceRows<R, uint16_t>;
  table.accumulate[i] = accumulatePartials<R>;
  table.finish[i] = finishPartials<R>;
}

ReduceTable makeReduceTable() {
  ReduceTable table = {};
  addReduction<AddReduction>(table);
  addReduction<MultiplyReduction>(table);
  addReduction<MaximumReduction>(table);
  addReduction<MinimumReduction>(table);
  addReduction<AndReduction>(table);
  addReduction<OrReduction>(table);
  addReduction<XorReduction>(table);
  table.moments[0] = momentsOfRows<float>;
  table.moments[1] = momentsOfRows<uint16_t>;
  return table;
}

const ReduceTable *reduceTableOfTarget() {
  static const ReduceTable table = makeReduceTable();
  return &table;
}

} // namespace HWY_NAMESPACE
} // namespace neuroncore::emulator
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace neuroncore::emulator {

HWY_EXPORT(reduceTableOfTarget);
const ReduceTable &reduceTable() { return *HWY_DYNAMIC_DISPATCH(reduceTableOfTarget)(); }

float reduceIdentity(ReduceOp op) {
  switch (op) {
  case ReduceOp::Add:
  case ReduceOp::LogicalOr:
  case ReduceOp::LogicalXor:
    return 0.0f;
  case ReduceOp::Multiply:
  case ReduceOp::LogicalAnd:
    return 1.0f;
  case ReduceOp::Maximum:
    return -__builtin_inff();
  case ReduceOp::Minimum:
    return __builtin_inff();
  }
  return 0.0f;
}

bool reduceOpOf(isa::AluOp op, ReduceOp &result) {
  switch (op) {
  case isa::AluOp::Add:
    result = ReduceOp::Add;
    return true;
  case isa::AluOp::Multiply:
    result = ReduceOp::Multiply;
    return true;
  case isa::AluOp::Maximum:
    result = ReduceOp::Maximum;
    return true;
  case isa::AluOp::Minimum:
    result = ReduceOp::Minimum;
    return true;
  case isa::AluOp::LogicalAnd:
    result = ReduceOp::LogicalAnd;
    return true;
  case isa::AluOp::LogicalOr:
    result = ReduceOp::LogicalOr;
    return true;
  case isa::AluOp::LogicalXor:
    result = ReduceOp::LogicalXor;
    return true;
  default:
    return false;
  }
}

float reduceCombine(ReduceOp op, float a, float b) {
  switch (op) {
  case ReduceOp::Add:
    return a + b;
  case ReduceOp::Multiply:
    return a * b;
  case ReduceOp::Maximum:
    return b > a || b != b ? b : a;
  case ReduceOp::Minimum:
    return b < a || b != b ? b : a;
  case ReduceOp::LogicalAnd:
    return a != 0 && b != 0 ? 1.0f : 0.0f;
  case ReduceOp::LogicalOr:
    return a != 0 || b != 0 ? 1.0f : 0.0f;
  case ReduceOp::LogicalXor:
    return (a != 0) != (b != 0) ? 1.0f : 0.0f;
  }
  return a;
}

} // namespace neuroncore::emulator
#endif // HWY_ONCE

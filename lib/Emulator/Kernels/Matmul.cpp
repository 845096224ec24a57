// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tensor engine's multiply: an outer-product kernel whose block of outputs stays in registers. Every output is one
// chain of fused operations over k, so its bits depend neither on the blocking nor on the CPU.

#include <algorithm>
#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/Emulator/Kernels/Matmul.cpp"
#include "hwy/foreach_target.h" // IWYU pragma: keep

#include "hwy/highway.h"

#include "lib/Emulator/Kernels/Kernels.h"
#include "lib/Emulator/Kernels/VectorMath-inl.h"

HWY_BEFORE_NAMESPACE();
namespace neuroncore::emulator {
namespace HWY_NAMESPACE {

// 32 vector registers hold 8 x 3 outputs, 16 hold 4 x 3.
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3
inline constexpr int kBlockRows = 4;
#else
inline constexpr int kBlockRows = 8;
#endif
inline constexpr int kBlockVectors = 3;

HWY_INLINE float *outputRow(MutableRows out, int64_t row) {
  return reinterpret_cast<float *>(static_cast<char *>(out.base) + row * out.stride);
}

/// `rows` x (vectors * lanes) outputs; the last vector has `lastCount` columns. Row k of the moving operand starts at
/// moving + k * stride (bytes).
template <int kRows, int kVectors, class T>
HWY_INLINE void multiplyBlock(int64_t k, int64_t rows, int64_t lastCount, const float *HWY_RESTRICT packed,
                              const T *HWY_RESTRICT moving, int64_t stride, bool accumulate, MutableRows out,
                              int64_t column) {
  const int64_t lanes = hn::Lanes(floatTag);
  Vector sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v)
      sums[r][v] =
          accumulate && r < rows ? hn::LoadU(floatTag, outputRow(out, r) + column + v * lanes) : hn::Zero(floatTag);
  for (int64_t i = 0; i < k; ++i) {
    const T *row = reinterpret_cast<const T *>(reinterpret_cast<const char *>(moving) + i * stride);
    Vector b[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v)
      b[v] = loadVector(row + v * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Vector a = constant(packed[i * kBlockRows + r]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v)
        sums[r][v] = fusedMultiplyAdd(a, b[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    if (r >= rows)
      continue;
    float *to = outputRow(out, r) + column;
#pragma GCC unroll 8
    for (int v = 0; v + 1 < kVectors; ++v)
      hn::StoreU(sums[r][v], floatTag, to + v * lanes);
    if (lastCount == lanes)
      hn::StoreU(sums[r][kVectors - 1], floatTag, to + (kVectors - 1) * lanes);
    else
      storePartial(sums[r][kVectors - 1], to + (kVectors - 1) * lanes, size_t(lastCount));
  }
}

template <class T> void packStationary(int64_t k, int64_t m, ConstRows stationary, float *packed) {
  // The columns of one cache line at a time: few places are written at once, and each of them in order.
  constexpr int64_t kLineBlocks = std::max<int64_t>(1, 16 / kBlockRows);
  constexpr int64_t kAhead = 16;
  constexpr hn::CappedTag<float, kBlockRows> tag;
  const hn::Rebind<uint32_t, decltype(tag)> wide;
  const hn::Rebind<uint16_t, decltype(tag)> narrow;
  const int64_t lanes = hn::Lanes(tag);
  const int64_t wholeBlocks = m / kBlockRows;
  for (int64_t first = 0; first < wholeBlocks; first += kLineBlocks) {
    const int64_t last = std::min(first + kLineBlocks, wholeBlocks);
    for (int64_t i = 0; i < k; ++i) {
      const T *row = reinterpret_cast<const T *>(static_cast<const char *>(stationary.base) + i * stationary.stride);
      if (i + kAhead < k)
        __builtin_prefetch(reinterpret_cast<const char *>(row + first * kBlockRows) + kAhead * stationary.stride);
      else
        __builtin_prefetch(static_cast<const char *>(stationary.base) + (i + kAhead - k) * stationary.stride +
                           last * kBlockRows * int64_t(sizeof(T)));
      for (int64_t block = first; block < last; ++block)
        for (int64_t column = 0; column < kBlockRows; column += lanes) {
          const T *from = row + block * kBlockRows + column;
          float *to = packed + (block * k + i) * kBlockRows + column;
          if constexpr (sizeof(T) == sizeof(float))
            hn::StoreU(hn::LoadU(tag, from), tag, to);
          else
            hn::StoreU(hn::BitCast(tag, hn::ShiftLeft<16>(hn::PromoteTo(wide, hn::LoadU(narrow, from)))), tag, to);
        }
    }
  }
  const int64_t rest = m - wholeBlocks * kBlockRows;
  if (rest == 0)
    return;
  for (int64_t i = 0; i < k; ++i) {
    const T *row = reinterpret_cast<const T *>(static_cast<const char *>(stationary.base) + i * stationary.stride);
    float *to = packed + (wholeBlocks * k + i) * kBlockRows;
    for (int64_t column = 0; column < kBlockRows; ++column) {
      if (column >= rest)
        to[column] = 0;
      else if constexpr (sizeof(T) == sizeof(float))
        to[column] = row[wholeBlocks * kBlockRows + column];
      else
        to[column] = std::bit_cast<float>(uint32_t(row[wholeBlocks * kBlockRows + column]) << 16);
    }
  }
}

template <class T, int kVectors> void packVectors(int64_t k, ConstRows moving, float *panel) {
  const int64_t lanes = hn::Lanes(floatTag);
  const int64_t bytes = kVectors * lanes * int64_t(sizeof(T));
  for (int64_t i = 0; i < k; ++i) {
    const T *row = reinterpret_cast<const T *>(static_cast<const char *>(moving.base) + i * moving.stride);
    // The next panel, which is needed in some microseconds.
    for (int64_t byte = 0; byte < bytes; byte += 64)
      __builtin_prefetch(reinterpret_cast<const char *>(row) + bytes + byte, 0, 2);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v)
      hn::StoreU(loadVector(row + v * lanes), floatTag, panel + (i * kBlockVectors + v) * lanes);
  }
}

template <class T> void packPanel(int64_t k, int64_t n, ConstRows moving, float *panel) {
  const int64_t lanes = hn::Lanes(floatTag);
  if (n > 2 * lanes)
    packVectors<T, 3>(k, moving, panel);
  else if (n > lanes)
    packVectors<T, 2>(k, moving, panel);
  else
    packVectors<T, 1>(k, moving, panel);
}

void multiplyPanel(int64_t k, int64_t m, int64_t n, const float *packed, const float *panel, bool accumulate,
                   MutableRows out) {
  const int64_t lanes = hn::Lanes(floatTag);
  const int64_t vectors = (n + lanes - 1) / lanes;
  const int64_t lastCount = n - (vectors - 1) * lanes;
  const int64_t stride = kBlockVectors * lanes * int64_t(sizeof(float));
  for (int64_t row = 0; row < m; row += kBlockRows) {
    const MutableRows block = {static_cast<char *>(out.base) + row * out.stride, out.stride};
    const int64_t rows = m - row;
    const float *a = packed + row * k;
    // The outputs of the next block arrive while this one is computed.
    for (int64_t next = kBlockRows; next < std::min<int64_t>(2 * kBlockRows, rows); ++next)
      prefetchRowForWrite(outputRow(block, next), n * int64_t(sizeof(float)));
    if (vectors == 3)
      multiplyBlock<kBlockRows, 3>(k, rows, lastCount, a, panel, stride, accumulate, block, 0);
    else if (vectors == 2)
      multiplyBlock<kBlockRows, 2>(k, rows, lastCount, a, panel, stride, accumulate, block, 0);
    else
      multiplyBlock<kBlockRows, 1>(k, rows, lastCount, a, panel, stride, accumulate, block, 0);
  }
}

template <int kRows, int kVectors, class T>
void multiplyInPlace(int64_t k, int64_t m, int64_t n, const float *packed, ConstRows moving, bool accumulate,
                     MutableRows out) {
  const int64_t lanes = hn::Lanes(floatTag);
  const T *base = static_cast<const T *>(moving.base);
  int64_t column = 0;
  for (; column + kVectors * lanes <= n; column += kVectors * lanes)
    multiplyBlock<kRows, kVectors>(k, m, lanes, packed, base + column, moving.stride, accumulate, out, column);
  for (; column < n; column += lanes)
    multiplyBlock<kRows, 1>(k, m, n - column < lanes ? n - column : lanes, packed, base + column, moving.stride,
                            accumulate, out, column);
}

/// Few output rows: the moving operand is used once, so it is read where it lies.
template <class T>
void multiplyNarrow(int64_t k, int64_t m, int64_t n, const float *packed, ConstRows moving, bool accumulate,
                    MutableRows out) {
  if (m == 1)
    multiplyInPlace<1, 8, T>(k, m, n, packed, moving, accumulate, out);
  else if (m == 2)
    multiplyInPlace<2, 4, T>(k, m, n, packed, moving, accumulate, out);
  else
    multiplyInPlace<kBlockRows, kBlockVectors, T>(k, m, n, packed, moving, accumulate, out);
}

MatmulTable makeMatmulTable() {
  MatmulTable table = {};
  table.blockRows = kBlockRows;
  table.panelColumns = int(kBlockVectors * hn::Lanes(floatTag));
  table.lanes = int(hn::Lanes(floatTag));
  table.panel = multiplyPanel;
  table.packStationary[0] = packStationary<float>;
  table.packStationary[1] = packStationary<uint16_t>;
  table.packPanel[0] = packPanel<float>;
  table.packPanel[1] = packPanel<uint16_t>;
  table.narrow[0] = multiplyNarrow<float>;
  table.narrow[1] = multiplyNarrow<uint16_t>;
  return table;
}

const MatmulTable *matmulTableOfTarget() {
  static const MatmulTable table = makeMatmulTable();
  return &table;
}

} // namespace HWY_NAMESPACE
} // namespace neuroncore::emulator
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace neuroncore::emulator {

HWY_EXPORT(matmulTableOfTarget);
const MatmulTable &matmulTable() { return *HWY_DYNAMIC_DISPATCH(matmulTableOfTarget)(); }

} // namespace neuroncore::emulator
#endif // HWY_ONCE

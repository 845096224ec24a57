// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Transposes of elements of 1, 2, 4 and 8 bytes: squares of 16 bytes a side are turned in registers, and the squares of
// one cache line follow each other, so that every line of both sides is used up while it is in the first-level cache.
// Rows of the source are far apart (a power of two for most weights), where the host's own prefetching does not help.

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/Emulator/Kernels/Transpose.cpp"
#include "hwy/foreach_target.h" // IWYU pragma: keep

#include "hwy/highway.h"

#include "lib/Emulator/Kernels/Kernels.h"

HWY_BEFORE_NAMESPACE();
namespace neuroncore::emulator {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// One square of kSide x kSide elements. Interleaving the halves of a sequence log2(n) times reverses the roles of row
/// and column.
template <typename T> HWY_INLINE void transposeSquare(const char *from, int64_t fromStep, char *to, int64_t toStep) {
  constexpr hn::FixedTag<T, 16 / sizeof(T)> tag;
  constexpr int kSide = int(16 / sizeof(T));
  hn::Vec<decltype(tag)> lines[kSide], turned[kSide];
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i)
    lines[i] = hn::LoadU(tag, reinterpret_cast<const T *>(from + i * fromStep));
#pragma GCC unroll 4
  for (int stage = 1; stage < kSide; stage *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kSide / 2; ++i) {
      turned[2 * i] = hn::InterleaveLower(tag, lines[i], lines[i + kSide / 2]);
      turned[2 * i + 1] = hn::InterleaveUpper(tag, lines[i], lines[i + kSide / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kSide; ++i)
      lines[i] = turned[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i)
    hn::StoreU(lines[i], tag, reinterpret_cast<T *>(to + i * toStep));
}

template <typename T>
HWY_INLINE void transposeElements(int64_t rows, int64_t columns, const char *from, int64_t fromStep, char *to,
                                  int64_t toStep) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      std::memcpy(to + r * toStep + c * int64_t(sizeof(T)), from + c * fromStep + r * int64_t(sizeof(T)), sizeof(T));
}

template <typename T>
void transpose(int64_t rows, int64_t columns, const void *source, int64_t fromStep, void *destination, int64_t toStep) {
  constexpr int64_t kBytes = sizeof(T), kSide = 16 / kBytes, kLine = 64 / kBytes;
  const char *from = static_cast<const char *>(source);
  char *to = static_cast<char *>(destination);
  const int64_t wholeRows = rows - rows % kSide, wholeColumns = columns - columns % kSide;
  // Blocks that fill whole cache lines of both sides, along the lines of the source. Both sides of the next block are
  // on their way: neighbours are a row apart, where no hardware looks ahead, and a line that is only written has to
  // arrive all the same.
  for (int64_t c0 = 0; c0 < wholeColumns; c0 += kLine) {
    const int64_t c1 = std::min(c0 + kLine, wholeColumns);
    for (int64_t r0 = 0; r0 < wholeRows; r0 += kLine) {
      const int64_t r1 = std::min(r0 + kLine, wholeRows);
      const bool wraps = r1 == wholeRows;
      const int64_t nextRow = wraps ? 0 : r1, nextColumn = wraps ? c1 : c0;
      const int64_t nextRowEnd = std::min(nextRow + kLine, wholeRows);
      const int64_t nextColumnEnd = std::min(nextColumn + kLine, wholeColumns);
      if (nextColumn < nextColumnEnd) {
        for (int64_t c = nextColumn; c < nextColumnEnd; ++c)
          __builtin_prefetch(from + c * fromStep + nextRow * kBytes, 0, 3);
        for (int64_t r = nextRow; r < nextRowEnd; ++r)
          __builtin_prefetch(to + r * toStep + nextColumn * kBytes, 1, 3);
      }
      for (int64_t r = r0; r < r1; r += kSide)
        for (int64_t c = c0; c < c1; c += kSide)
          transposeSquare<T>(from + c * fromStep + r * kBytes, fromStep, to + r * toStep + c * kBytes, toStep);
    }
  }
  transposeElements<T>(wholeRows, columns - wholeColumns, from + wholeColumns * fromStep, fromStep,
                       to + wholeColumns * kBytes, toStep);
  transposeElements<T>(rows - wholeRows, columns, from + wholeRows * kBytes, fromStep, to + wholeRows * toStep, toStep);
}

const TransposeTable *transposeTableOfTarget() {
  static const TransposeTable table = {
      {transpose<uint8_t>, transpose<uint16_t>, transpose<uint32_t>, transpose<uint64_t>}};
  return &table;
}

} // namespace HWY_NAMESPACE
} // namespace neuroncore::emulator
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace neuroncore::emulator {

HWY_EXPORT(transposeTableOfTarget);
const TransposeTable &transposeTable() { return *HWY_DYNAMIC_DISPATCH(transposeTableOfTarget)(); }

} // namespace neuroncore::emulator
#endif // HWY_ONCE

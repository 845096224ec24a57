// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GpSimd routines: what gpsimd_call does. Element semantics are those of CPU PyTorch for the operands' dtypes.

#ifndef NEURON_LIB_EMULATOR_ROUTINES_ROUTINES_H
#define NEURON_LIB_EMULATOR_ROUTINES_ROUTINES_H

#include <array>
#include <cstring>
#include <type_traits>

#include "lib/Emulator/Ops/Ops.h"
#include "neuron/Support/Text.h"

namespace neuroncore::emulator {

/// Operands of a call, by their place in the instruction.
struct RoutineOperands {
  Operand dst, src0, src1, src2, src3, dst1;
  /// Last free dimensions of dst and src0, as the routine table means them.
  isa::TilePattern dstTile, src0Tile;
  uint8_t function = 0;
  std::array<int64_t, 4> immediates = {};

  RoutineOperands(const isa::Instruction &instruction, const DecodeContext &context);
};

using RoutineDecoder = TileOpOrError (*)(const RoutineOperands &operands);

TileOpOrError decodeCastRoutine(const RoutineOperands &operands);
TileOpOrError decodeIntBinary(const RoutineOperands &operands);
TileOpOrError decodeIntCompare(const RoutineOperands &operands);
TileOpOrError decodeIntUnary(const RoutineOperands &operands);
TileOpOrError decodeFloatUnary(const RoutineOperands &operands);
TileOpOrError decodeFloatBinary(const RoutineOperands &operands);
TileOpOrError decodeSelect(const RoutineOperands &operands);
TileOpOrError decodeIntReduce(const RoutineOperands &operands);
TileOpOrError decodeArgReduce(const RoutineOperands &operands);
TileOpOrError decodePartitionReduce(const RoutineOperands &operands);
TileOpOrError decodePhilox(const RoutineOperands &operands);
TileOpOrError decodeIota64(const RoutineOperands &operands);
TileOpOrError decodeGather(const RoutineOperands &operands);
TileOpOrError decodeScanRoutine(const RoutineOperands &operands);
TileOpOrError decodeSort(const RoutineOperands &operands);
TileOpOrError decodeScatter(const RoutineOperands &operands);

/// Elements that fit a staging buffer whatever their width.
inline constexpr int64_t kRoutineChunk = kStageElements / 2;

inline int64_t workOf(const Operand &operand, double nsPerElement) {
  return int64_t(double(operand.partitions) * double(operand.n) * nsPerElement);
}

/// Product of the last `axes` free dimensions.
int64_t trailingElements(const isa::TilePattern &tile, int64_t axes);

/// A row chunk as elements of type T, raw bits.
template <typename T>
void loadTyped(const Operand &operand, const uint8_t *base, int64_t row, int64_t first, int64_t n, T *to) {
  loadRaw(operand, base + operand.offset + row * operand.stride, first, n, reinterpret_cast<uint8_t *>(to));
}
template <typename T>
void storeTyped(const Operand &operand, uint8_t *base, int64_t row, int64_t first, int64_t n, const T *from) {
  storeRaw(operand, base + operand.offset + row * operand.stride, first, n, reinterpret_cast<const uint8_t *>(from));
}

/// Calls make(T()) with the integer type of `dtype`.
template <class Make> TileOpOrError withInteger(isa::Dtype dtype, const char *routine, Make &&make) {
  using isa::Dtype;
  switch (dtype) {
  case Dtype::I8:
    return make(int8_t());
  case Dtype::U8:
    return make(uint8_t());
  case Dtype::I16:
    return make(int16_t());
  case Dtype::U16:
    return make(uint16_t());
  case Dtype::I32:
    return make(int32_t());
  case Dtype::U32:
    return make(uint32_t());
  case Dtype::I64:
    return make(int64_t());
  case Dtype::U64:
    return make(uint64_t());
  default:
    return unsupported(cat(routine, ": expected an integer dtype but got ", isa::toString(dtype)));
  }
}

/// Index values of any integer dtype, as 64 bits.
void loadIndices(const Operand &operand, const uint8_t *base, int64_t row, int64_t first, int64_t n, int64_t *to,
                 Worker &worker);

// Integer arithmetic with wrap-around, shared by several routines.
template <typename T> using Unsigned = std::make_unsigned_t<T>;
template <typename T> T wrapAdd(T a, T b) { return T(Unsigned<T>(a) + Unsigned<T>(b)); }
template <typename T> T wrapSubtract(T a, T b) { return T(Unsigned<T>(a) - Unsigned<T>(b)); }
template <typename T> T wrapMultiply(T a, T b) { return T(uint64_t(Unsigned<T>(a)) * uint64_t(Unsigned<T>(b))); }

/// Scalar functions in double (SpecialFunctions.cpp).
namespace special {
double digamma(double x);
double logGamma(double x);
double besselI0(double x);
double besselI1(double x);
double inverseErf(double y);
/// Inverse of the normal distribution function.
double inverseNormal(double p);
double logNormal(double x);
double hurwitzZeta(double s, double q);
/// Regularised lower and upper incomplete gamma functions.
double gammaP(double a, double x);
double gammaQ(double a, double x);
} // namespace special

} // namespace neuroncore::emulator

#endif // NEURON_LIB_EMULATOR_ROUTINES_ROUTINES_H

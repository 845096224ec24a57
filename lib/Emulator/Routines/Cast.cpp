// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cast routine: torch.Tensor.to between any two dtypes.

#include <algorithm>
#include <cmath>

#include "lib/Emulator/Routines/Routines.h"

namespace neuroncore::emulator {
namespace {

using isa::CastFunction;
using isa::Dtype;

/// Truncation towards zero; out of range and NaN give the smallest value, as the x86 conversion does.
int32_t truncate32(double value) { return value > -2147483649.0 && value < 2147483648.0 ? int32_t(value) : INT32_MIN; }
int64_t truncate64(double value) { return value >= -0x1p63 && value < 0x1p63 ? int64_t(value) : INT64_MIN; }

/// From a float or double. CPU PyTorch goes through 32 bits for the 8 and 16-bit types (u8: through 64), and wraps.
template <typename To, typename From> To fromFloating(From value) {
  if constexpr (std::is_floating_point_v<To>)
    return To(value);
  else if constexpr (sizeof(To) == 8)
    return std::is_signed_v<To> || !(value >= From(0x1p63)) ? To(truncate64(value))
                                                            : To(truncate64(value - From(0x1p63))) + (To(1) << 63);
  else if constexpr (std::is_same_v<To, uint8_t> || std::is_same_v<To, uint32_t>)
    return To(truncate64(value));
  else
    return To(truncate32(value));
}

template <typename To, typename From> To convertElement(From value) {
  if constexpr (std::is_floating_point_v<From>)
    return fromFloating<To>(value);
  else
    return To(value);
}

/// Floats narrower than 32 bits travel as float; everything else as itself.
template <typename From, typename To> class CastOp : public TileOp {
public:
  CastOp(const Operand &dst, const Operand &src, bool toBool) : dst_(dst), src_(src), toBool_(toBool) {
    units_ = dst_.partitions;
    nanoseconds_ = workOf(dst_, 0.6);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    From *in = reinterpret_cast<From *>(worker.stage[0]);
    To *out = reinterpret_cast<To *>(worker.stage[1]);
    for (int64_t row = begin; row < end; ++row)
      for (int64_t c0 = 0; c0 < dst_.n; c0 += kRoutineChunk) {
        const int64_t n = std::min(kRoutineChunk, dst_.n - c0);
        if constexpr (std::is_same_v<From, float>)
          loadRange(src_, src_.row(machine.base, row), c0, n, in);
        else
          loadTyped(src_, machine.base, row, c0, n, in);
        if (toBool_)
          for (int64_t i = 0; i < n; ++i)
            out[i] = To(in[i] != From(0) ? 1 : 0);
        else
          for (int64_t i = 0; i < n; ++i)
            out[i] = convertElement<To>(in[i]);
        if constexpr (std::is_same_v<To, float>)
          storeRange(dst_, dst_.row(machine.base, row), c0, n, out);
        else
          storeTyped(dst_, machine.base, row, c0, n, out);
      }
  }

private:
  Operand dst_, src_;
  bool toBool_;
};

template <class Make> TileOpOrError withAny(Dtype dtype, Make &&make) {
  if (dtype == Dtype::F64)
    return make(double());
  if (isa::isFloatDtype(dtype))
    return make(float());
  return withInteger(dtype, "cast", make);
}

} // namespace

TileOpOrError decodeCastRoutine(const RoutineOperands &operands) {
  const bool toBool = operands.function == uint8_t(CastFunction::Bool);
  return withAny(operands.src0.dtype, [&](auto from) {
    return withAny(operands.dst.dtype, [&](auto to) -> TileOpOrError {
      return TileOpOrError(std::make_unique<CastOp<decltype(from), decltype(to)>>(operands.dst, operands.src0, toBool));
    });
  });
}

} // namespace neuroncore::emulator

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What does not pass through fp32: exact 32-bit arithmetic of GpSimd, and bitvec operators on raw integers. Shifts by a
// negative amount or by the width or more give 0 (arithmetic right shift: the sign), as CPU PyTorch.

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "lib/Emulator/Ops/Ops.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Support/Text.h"

namespace neuroncore::emulator {
namespace {

using isa::AluOp;
using isa::Dtype;
using isa::Instruction;

constexpr int64_t kChunk = kStageElements / 2; // 8-byte elements fit a staging buffer

template <typename T> using Binary = void (*)(int64_t n, const T *a, const T *b, T *out);

template <typename T, class F> void apply(int64_t n, const T *a, const T *b, T *out) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = F::template apply<T>(a[i], b[i]);
}

template <typename T> using Bits = std::make_unsigned_t<T>;

struct And {
  template <typename T> static T apply(T a, T b) { return a & b; }
};
struct Or {
  template <typename T> static T apply(T a, T b) { return a | b; }
};
struct Xor {
  template <typename T> static T apply(T a, T b) { return a ^ b; }
};
struct Not {
  template <typename T> static T apply(T a, T) { return ~a; }
};
struct ShiftLeft {
  template <typename T> static T apply(T a, T b) {
    return Bits<T>(b) < sizeof(T) * 8 ? T(uint64_t(Bits<T>(a)) << b) : T(0);
  }
};
struct ShiftRightLogical {
  template <typename T> static T apply(T a, T b) { return Bits<T>(b) < sizeof(T) * 8 ? T(Bits<T>(a) >> b) : T(0); }
};
struct ShiftRightArithmetic {
  template <typename T> static T apply(T a, T b) {
    const int shift = Bits<T>(b) < sizeof(T) * 8 ? int(b) : int(sizeof(T) * 8 - 1);
    return std::is_signed_v<T> ? T(a >> shift) : (Bits<T>(b) < sizeof(T) * 8 ? T(a >> shift) : T(0));
  }
};
struct First {
  template <typename T> static T apply(T a, T) { return a; }
};
struct Add {
  template <typename T> static T apply(T a, T b) { return T(Bits<T>(a) + Bits<T>(b)); }
};
struct Subtract {
  template <typename T> static T apply(T a, T b) { return T(Bits<T>(a) - Bits<T>(b)); }
};
struct Multiply {
  template <typename T> static T apply(T a, T b) { return T(Bits<T>(a) * Bits<T>(b)); }
};
struct Maximum {
  template <typename T> static T apply(T a, T b) { return std::max(a, b); }
};
struct Minimum {
  template <typename T> static T apply(T a, T b) { return std::min(a, b); }
};
template <typename T> T magnitude(T a) {
  if constexpr (std::is_signed_v<T>)
    return a < 0 ? T(Bits<T>(0) - Bits<T>(a)) : a;
  else
    return a;
}
struct AbsMax {
  template <typename T> static T apply(T a, T b) { return std::max(magnitude(a), magnitude(b)); }
};
struct AbsMin {
  template <typename T> static T apply(T a, T b) { return std::min(magnitude(a), magnitude(b)); }
};
struct LogicalAnd {
  template <typename T> static T apply(T a, T b) { return a != 0 && b != 0; }
};
struct LogicalOr {
  template <typename T> static T apply(T a, T b) { return a != 0 || b != 0; }
};
struct LogicalXor {
  template <typename T> static T apply(T a, T b) { return (a != 0) != (b != 0); }
};
struct Equal {
  template <typename T> static T apply(T a, T b) { return a == b; }
};
struct NotEqual {
  template <typename T> static T apply(T a, T b) { return a != b; }
};
struct GreaterEqual {
  template <typename T> static T apply(T a, T b) { return a >= b; }
};
struct Greater {
  template <typename T> static T apply(T a, T b) { return a > b; }
};
struct LessEqual {
  template <typename T> static T apply(T a, T b) { return a <= b; }
};
struct Less {
  template <typename T> static T apply(T a, T b) { return a < b; }
};
struct Abs {
  template <typename T> static T apply(T a, T) { return magnitude(a); }
};
struct Square {
  template <typename T> static T apply(T a, T) { return T(Bits<T>(a) * Bits<T>(a)); }
};
struct Relu {
  template <typename T> static T apply(T a, T) { return std::max<T>(a, 0); }
};

template <typename T> Binary<T> bitvecKernel(AluOp op) {
  switch (op) {
  case AluOp::Bypass:
    return apply<T, First>;
  case AluOp::BitwiseAnd:
    return apply<T, And>;
  case AluOp::BitwiseOr:
    return apply<T, Or>;
  case AluOp::BitwiseXor:
    return apply<T, Xor>;
  case AluOp::BitwiseNot:
    return apply<T, Not>;
  case AluOp::ShiftLeft:
    return apply<T, ShiftLeft>;
  case AluOp::ShiftRightLogical:
    return apply<T, ShiftRightLogical>;
  case AluOp::ShiftRightArithmetic:
    return apply<T, ShiftRightArithmetic>;
  default:
    return nullptr;
  }
}

template <typename T> Binary<T> wordKernel(AluOp op) {
  switch (op) {
  case AluOp::Add:
    return apply<T, Add>;
  case AluOp::Subtract:
    return apply<T, Subtract>;
  case AluOp::Multiply:
    return apply<T, Multiply>;
  case AluOp::Maximum:
    return apply<T, Maximum>;
  case AluOp::Minimum:
    return apply<T, Minimum>;
  case AluOp::AbsMax:
    return apply<T, AbsMax>;
  case AluOp::AbsMin:
    return apply<T, AbsMin>;
  case AluOp::LogicalAnd:
    return apply<T, LogicalAnd>;
  case AluOp::LogicalOr:
    return apply<T, LogicalOr>;
  case AluOp::LogicalXor:
    return apply<T, LogicalXor>;
  case AluOp::Equal:
    return apply<T, Equal>;
  case AluOp::NotEqual:
    return apply<T, NotEqual>;
  case AluOp::GreaterEqual:
    return apply<T, GreaterEqual>;
  case AluOp::Greater:
    return apply<T, Greater>;
  case AluOp::LessEqual:
    return apply<T, LessEqual>;
  case AluOp::Less:
    return apply<T, Less>;
  case AluOp::Abs:
    return apply<T, Abs>;
  case AluOp::Square:
    return apply<T, Square>;
  case AluOp::Relu:
    return apply<T, Relu>;
  default:
    return bitvecKernel<T>(op);
  }
}

/// out = a op b on integers of one type.
template <typename T> class IntegerBinaryOp : public TileOp {
public:
  IntegerBinaryOp(const Operand &out, const Operand &a, const Operand &b, Binary<T> kernel)
      : out_(out), a_(a), b_(b), kernel_(kernel) {
    units_ = out_.partitions;
    nanoseconds_ = int64_t(0.4 * double(out_.partitions) * double(out_.n));
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    T *x = reinterpret_cast<T *>(worker.stage[0]);
    T *y = reinterpret_cast<T *>(worker.stage[1]);
    T *z = reinterpret_cast<T *>(worker.stage[2]);
    for (int64_t row = begin; row < end; ++row)
      for (int64_t c0 = 0; c0 < out_.n; c0 += kChunk) {
        const int64_t columns = std::min(kChunk, out_.n - c0);
        loadRaw(a_, a_.row(machine.base, row), c0, columns, reinterpret_cast<uint8_t *>(x));
        loadRaw(b_, b_.row(machine.base, row), c0, columns, reinterpret_cast<uint8_t *>(y));
        kernel_(columns, x, y, z);
        storeRaw(out_, out_.row(machine.base, row), c0, columns, reinterpret_cast<const uint8_t *>(z));
      }
  }

private:
  Operand out_, a_, b_;
  Binary<T> kernel_;
};

/// out = (in op0 s0) op1 s1; the scalars are the low bits of 32-bit words.
template <typename T> class BitvecScalarOp : public TileOp {
public:
  BitvecScalarOp(const Instruction &instruction, const DecodeContext &context, Binary<T> first, Binary<T> second)
      : out_(instruction.tiles[0], context.layout), in_(instruction.tiles[1], context.layout),
        scalar0_(instruction.scalars[0], instruction.tiles[1], context.layout),
        scalar1_(instruction.scalars[1], instruction.tiles[1], context.layout), reverse0_(instruction.reverse0),
        reverse1_(instruction.reverse1), first_(first), second_(second) {
    units_ = out_.partitions;
    nanoseconds_ = int64_t(0.5 * double(out_.partitions) * double(out_.n));
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    T *x = reinterpret_cast<T *>(worker.stage[0]);
    T *s0 = reinterpret_cast<T *>(worker.stage[1]);
    T *s1 = reinterpret_cast<T *>(worker.stage[2]);
    const int64_t width = std::min(kChunk, out_.n);
    for (int64_t row = begin; row < end; ++row) {
      std::fill(s0, s0 + width, T(int32_t(scalar0_.bitsAt(machine.base, row))));
      std::fill(s1, s1 + width, T(int32_t(scalar1_.bitsAt(machine.base, row))));
      for (int64_t c0 = 0; c0 < out_.n; c0 += kChunk) {
        const int64_t columns = std::min(kChunk, out_.n - c0);
        loadRaw(in_, in_.row(machine.base, row), c0, columns, reinterpret_cast<uint8_t *>(x));
        first_(columns, reverse0_ ? s0 : x, reverse0_ ? x : s0, x);
        second_(columns, reverse1_ ? s1 : x, reverse1_ ? x : s1, x);
        storeRaw(out_, out_.row(machine.base, row), c0, columns, reinterpret_cast<const uint8_t *>(x));
      }
    }
  }

private:
  Operand out_, in_;
  ScalarRef scalar0_, scalar1_;
  bool reverse0_, reverse1_;
  Binary<T> first_, second_;
};

/// Bitwise reduction over the last free dimensions.
template <typename T> class BitvecReduceOp : public TileOp {
public:
  BitvecReduceOp(const Instruction &instruction, const DecodeContext &context)
      : out_(instruction.tiles[0], context.layout), in_(instruction.tiles[1], context.layout), op_(instruction.op0) {
    reduced_ = 1;
    for (int i = isa::kMaxFreeDims - instruction.axes; i < isa::kMaxFreeDims; ++i)
      reduced_ *= instruction.tiles[1].count[i];
    units_ = out_.partitions;
    nanoseconds_ = int64_t(1.0 * double(in_.partitions) * double(in_.n));
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    T *x = reinterpret_cast<T *>(worker.stage[0]);
    for (int64_t row = begin; row < end; ++row)
      for (int64_t kept = 0; kept < out_.n; ++kept) {
        T result = op_ == AluOp::BitwiseAnd ? T(~T(0)) : T(0);
        for (int64_t c0 = 0; c0 < reduced_; c0 += kChunk) {
          const int64_t columns = std::min(kChunk, reduced_ - c0);
          loadRaw(in_, in_.row(machine.base, row), kept * reduced_ + c0, columns, reinterpret_cast<uint8_t *>(x));
          for (int64_t i = 0; i < columns; ++i) {
            if (op_ == AluOp::BitwiseAnd)
              result &= x[i];
            else if (op_ == AluOp::BitwiseOr)
              result |= x[i];
            else
              result ^= x[i];
          }
        }
        storeRaw(out_, out_.row(machine.base, row), kept, 1, reinterpret_cast<const uint8_t *>(&result));
      }
  }

private:
  Operand out_, in_;
  AluOp op_;
  int64_t reduced_;
};

/// Calls make<T>() for the integer type of `dtype`.
template <class Make> TileOpOrError withIntegerType(Dtype dtype, Make &&make) {
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
    return unsupported(cat("expected an integer dtype but got ", isa::toString(dtype)));
  }
}

Error noOperator(AluOp op, const char *what) {
  return unsupported(cat(what, " has no operator ", isa::toString(op), "; use gpsimd_call"));
}

} // namespace

TileOpOrError decodeIntegerTensorTensor(const Instruction &instruction, const DecodeContext &context) {
  const Operand out(instruction.tiles[0], context.layout), a(instruction.tiles[1], context.layout),
      b(instruction.tiles[2], context.layout);
  // Signedness of the sources decides order and sign.
  const Dtype type = a.dtype == Dtype::U32 && b.dtype == Dtype::U32 ? Dtype::U32 : Dtype::I32;
  return withIntegerType(type, [&](auto tag) -> TileOpOrError {
    using T = decltype(tag);
    const Binary<T> kernel = wordKernel<T>(instruction.op0);
    if (!kernel)
      return noOperator(instruction.op0, "tensor_tensor on 32-bit integers");
    return TileOpOrError(std::make_unique<IntegerBinaryOp<T>>(out, a, b, kernel));
  });
}

TileOpOrError decodeBitvecTensorTensor(const Instruction &instruction, const DecodeContext &context) {
  const Operand out(instruction.tiles[0], context.layout), a(instruction.tiles[1], context.layout),
      b(instruction.tiles[2], context.layout);
  if (out.dtype != a.dtype || (b.dtype != a.dtype && instruction.op0 != AluOp::BitwiseNot))
    return unsupported(cat("bitvec tensor_tensor needs one dtype but got ", isa::toString(out.dtype), ", ",
                           isa::toString(a.dtype), " and ", isa::toString(b.dtype)));
  return withIntegerType(a.dtype, [&](auto tag) -> TileOpOrError {
    using T = decltype(tag);
    const Binary<T> kernel = bitvecKernel<T>(instruction.op0);
    if (!kernel)
      return noOperator(instruction.op0, "bitvec tensor_tensor");
    return TileOpOrError(std::make_unique<IntegerBinaryOp<T>>(out, a, b, kernel));
  });
}

TileOpOrError decodeBitvecTensorScalar(const Instruction &instruction, const DecodeContext &context) {
  const Dtype type = instruction.tiles[1].dtype;
  if (instruction.tiles[0].dtype != type)
    return unsupported(cat("bitvec tensor_scalar needs one dtype but got ", isa::toString(instruction.tiles[0].dtype),
                           " and ", isa::toString(type)));
  return withIntegerType(type, [&](auto tag) -> TileOpOrError {
    using T = decltype(tag);
    const Binary<T> first = bitvecKernel<T>(instruction.op0), second = bitvecKernel<T>(instruction.op1);
    if (!first || !second)
      return noOperator(first ? instruction.op1 : instruction.op0, "bitvec tensor_scalar");
    return TileOpOrError(std::make_unique<BitvecScalarOp<T>>(instruction, context, first, second));
  });
}

TileOpOrError decodeBitvecReduce(const Instruction &instruction, const DecodeContext &context) {
  const Dtype type = instruction.tiles[1].dtype;
  if (instruction.tiles[0].dtype != type)
    return unsupported(cat("bitvec tensor_reduce needs one dtype but got ", isa::toString(instruction.tiles[0].dtype),
                           " and ", isa::toString(type)));
  if (instruction.op0 != AluOp::BitwiseAnd && instruction.op0 != AluOp::BitwiseOr &&
      instruction.op0 != AluOp::BitwiseXor)
    return noOperator(instruction.op0, "tensor_reduce");
  return withIntegerType(type, [&](auto tag) -> TileOpOrError {
    using T = decltype(tag);
    return TileOpOrError(std::make_unique<BitvecReduceOp<T>>(instruction, context));
  });
}

} // namespace neuroncore::emulator

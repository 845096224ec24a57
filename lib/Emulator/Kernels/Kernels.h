// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tile kernels: loops over rows of a tile, one table per CPU target, chosen once when a program is loaded. They
// know nothing of instructions. A row starts at base + r * stride (bytes); its n elements are contiguous. Kernels may
// read up to 64 bytes past the end of an SBUF or PSUM row, and never write past it. Element types are fp32 and bf16;
// everything else is staged through fp32 (Staging.h).

#ifndef NEURON_LIB_EMULATOR_KERNELS_KERNELS_H
#define NEURON_LIB_EMULATOR_KERNELS_KERNELS_H

#include <cstdint>

#include "neuron/Isa/Instruction.h"

namespace neuroncore::emulator {

/// Element types that the fused kernels read and write in place.
enum class Storage : uint8_t { F32 = 0, Bf16 = 1 };
inline constexpr int kNumStorages = 2;

inline constexpr int kNumAluOps = 40;
inline constexpr int kNumActivations = 32;
inline constexpr int kNumDtypes = 20;

struct ConstRows {
  const void *base = nullptr;
  int64_t stride = 0;
};
struct MutableRows {
  void *base = nullptr;
  int64_t stride = 0;
};
/// One fp32 value per row; stride 0 for a constant. `flip` is XORed into the bits (0x80000000 negates).
struct RowScalars {
  const void *base = nullptr;
  int64_t stride = 0;
  uint32_t flip = 0;
  float at(int64_t row) const {
    uint32_t bits;
    __builtin_memcpy(&bits, static_cast<const char *>(base) + row * stride, sizeof(bits));
    return __builtin_bit_cast(float, bits ^ flip);
  }
};

// ---------------------------------------------------------------------------------------------------------------------
// Element-wise
// ---------------------------------------------------------------------------------------------------------------------

using TensorTensorKernel = void (*)(int64_t rows, int64_t n, ConstRows a, ConstRows b, MutableRows out);
using TensorScalarKernel = void (*)(int64_t rows, int64_t n, ConstRows a, RowScalars s0, RowScalars s1,
                                    MutableRows out);

using ScalarTensorTensorKernel = void (*)(int64_t rows, int64_t n, ConstRows a, RowScalars s, ConstRows b,
                                          MutableRows out);

struct ElementwiseTable {
  /// [op][a][b][out]: frequent operators, and power on fp32; null otherwise.
  TensorTensorKernel tensorTensor[kNumAluOps][kNumStorages][kNumStorages][kNumStorages];
  /// Two scalar operators in one pass: [pair index of op0][pair index of op1][in][out], see pairIndex; null where there
  /// is none. Each operator alone (the second a bypass) has all storages.
  static constexpr int kPairOperators = 8;
  TensorScalarKernel pair[kPairOperators][kPairOperators][kNumStorages][kNumStorages];
  /// (a op0 scalar) op1 b in one pass: [op0: 0 add, 1 multiply][op1: 0 add, 1 subtract, 2 reversed subtract, 3
  /// multiply][a][b][out].
  ScalarTensorTensorKernel scalarTensorTensor[2][4][kNumStorages][kNumStorages][kNumStorages];
  TensorScalarKernel powerScalar[2]; // [reverse]
  /// The other fp32 operators.
  void (*anyTensorTensor)(isa::AluOp op, int64_t rows, int64_t n, ConstRows a, ConstRows b, MutableRows out);
  void (*anyTensorScalar)(isa::AluOp op, bool reverse, int64_t rows, int64_t n, ConstRows a, RowScalars s,
                          MutableRows out);
  /// Whether an operator has a fp32 form at all.
  bool hasForm[kNumAluOps];
};
const ElementwiseTable &elementwiseTable();

/// Any operator that has a form, on fp32 rows.
void tensorTensorF32(isa::AluOp op, int64_t rows, int64_t n, ConstRows a, ConstRows b, MutableRows out);
void tensorScalarF32(isa::AluOp op, bool reverse, int64_t rows, int64_t n, ConstRows a, RowScalars s, MutableRows out);

/// Position of an operator in ElementwiseTable::pair, or -1. `negate` says that the scalar changes its sign (a - s is
/// a + -s).
int pairIndex(isa::AluOp op, bool reverse, bool &negate);

// ---------------------------------------------------------------------------------------------------------------------
// Activation functions
// ---------------------------------------------------------------------------------------------------------------------

/// out = f(in), fp32, full range; in and out may be the same.
using FunctionKernel = void (*)(int64_t n, const float *in, float *out);

/// out = f(in * scale + bias) along one row of [in][out] storage. If `partials` is not null, element i of the fp32
/// result is added to partials[i mod 64].
using ActivationKernel = void (*)(int64_t n, const void *in, float scale, float bias, void *out, float *partials);

struct FunctionTable {
  /// By isa::ActivationFunction, without the documented input ranges.
  FunctionKernel activation[kNumActivations];
  /// Frequent cheap functions in one pass over memory; null for the others.
  ActivationKernel fusedActivation[kNumActivations][kNumStorages][kNumStorages];
  /// By isa::FloatUnaryFunction; null: no vector form.
  FunctionKernel floatUnary[64];
  /// to[i] = a[i] * scale + bias, rounded once. A bias of -0 adds nothing.
  void (*scaleAndAdd)(int64_t n, const float *a, float scale, float bias, float *to);
  /// values[i] = NaN where the argument (or its magnitude) is outside [low, high].
  void (*limitRange)(int64_t n, const float *arguments, float low, float high, bool ofMagnitude, float *values);
};
const FunctionTable &functionTable();

/// out = f(a * scale + bias) on fp32 rows, NaN outside the documented range of f.
void activationRows(isa::ActivationFunction function, int64_t rows, int64_t n, ConstRows a, RowScalars scale,
                    RowScalars bias, MutableRows out);

// ---------------------------------------------------------------------------------------------------------------------
// Reductions. Element i of a row belongs to partial i mod 64; the partials are added in a binary tree (s[i] + s[i +
// 32], then + 16, ... + 1), so the result does not depend on the vector width.
// ---------------------------------------------------------------------------------------------------------------------

inline constexpr int kReductionPartials = 64;

enum class ReduceOp : uint8_t { Add, Multiply, Maximum, Minimum, LogicalAnd, LogicalOr, LogicalXor };
inline constexpr int kNumReduceOps = 7;

struct ReduceTable {
  /// Whole rows: out[r] = reduction of row r.
  void (*rows[kNumReduceOps][kNumStorages])(int64_t rows, int64_t n, ConstRows a, float *out);
  /// Partials of one row over several calls; `n` is a multiple of 64 in all calls but the last.
  void (*accumulate[kNumReduceOps])(int64_t n, const float *a, float *partials);
  float (*finish[kNumReduceOps])(const float *partials);
  /// (count, mean, sum of squares around the mean) of the even, then of the odd elements of each row: six values per
  /// row. The tree over the partials ends with one for each.
  void (*moments[kNumStorages])(int64_t rows, int64_t n, ConstRows a, float *out);
};
const ReduceTable &reduceTable();
float reduceIdentity(ReduceOp op);
/// False when `op` is not a fp32 reduction.
bool reduceOpOf(isa::AluOp op, ReduceOp &result);
/// op(a, b) as the reductions compute it.
float reduceCombine(ReduceOp op, float a, float b);

// ---------------------------------------------------------------------------------------------------------------------
// Conversions between fp32 and memory. Exact ranges: nothing outside the n elements is read or written.
// ---------------------------------------------------------------------------------------------------------------------

using LoadKernel = void (*)(int64_t n, const uint8_t *from, float *to);
using StoreKernel = void (*)(int64_t n, const float *from, uint8_t *to);
struct ConvertTable {
  LoadKernel load[kNumDtypes]; // by isa::Dtype
  StoreKernel store[kNumDtypes];
};
const ConvertTable &convertTable();

/// One value; the same results as the tables.
float loadAsFloat(isa::Dtype dtype, const uint8_t *from);
void storeFromFloat(isa::Dtype dtype, float value, uint8_t *to);

// ---------------------------------------------------------------------------------------------------------------------
// Transposes: element [r][c] of the destination is element [c][r] of the source; the elements of a row are contiguous
// on both sides, rows are any number of bytes apart. Exact ranges, no overlap.
// ---------------------------------------------------------------------------------------------------------------------

/// `rows` and `columns` of the destination.
using TransposeKernel = void (*)(int64_t rows, int64_t columns, const void *from, int64_t fromStep, void *to,
                                 int64_t toStep);
struct TransposeTable {
  TransposeKernel bySize[4]; // elements of 1, 2, 4, 8 bytes
  TransposeKernel ofBytes(int bytes) const { return bySize[bytes == 8 ? 3 : bytes / 2]; }
};
const TransposeTable &transposeTable();

// ---------------------------------------------------------------------------------------------------------------------
// Matrix multiplication: out[m][n] (=|+=) sum over k of a[k][m] * b[k][n], k in order, one fused operation each.
// ---------------------------------------------------------------------------------------------------------------------

struct MatmulTable {
  /// Rows of the packed stationary that one pass takes.
  int blockRows;
  /// Columns of the moving operand that one packed panel holds.
  int panelColumns;
  /// Columns of one vector, of which a panel has several.
  int lanes;
  /// `packed`: [m / blockRows][k][blockRows], rows beyond m zero. `panel`: [k][panelColumns], fp32. Columns [0, n) of
  /// the panel are used. Output row m starts at out.base + m * out.stride.
  void (*panel)(int64_t k, int64_t m, int64_t n, const float *packed, const float *panel, bool accumulate,
                MutableRows out);
  /// Columns [0, m) of k rows into `packed`.
  void (*packStationary[kNumStorages])(int64_t k, int64_t m, ConstRows stationary, float *packed);
  /// A panel from n columns of k rows. Whole vectors are read; what lies beyond n meets no result.
  void (*packPanel[kNumStorages])(int64_t k, int64_t n, ConstRows moving, float *panel);
  /// The moving operand in place, for few output rows (m <= blockRows): columns [0, n), any n.
  void (*narrow[kNumStorages])(int64_t k, int64_t m, int64_t n, const float *packed, ConstRows moving, bool accumulate,
                               MutableRows out);
};
const MatmulTable &matmulTable();

} // namespace neuroncore::emulator

#endif // NEURON_LIB_EMULATOR_KERNELS_KERNELS_H

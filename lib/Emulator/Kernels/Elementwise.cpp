// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ALU operators of the vector engine over rows: tensor op tensor, tensor op scalar, and pairs of scalar operators
// in one pass over memory.

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/Emulator/Kernels/Elementwise.cpp"
#include "hwy/foreach_target.h" // IWYU pragma: keep

#include "hwy/highway.h"

#include "lib/Emulator/Kernels/Kernels.h"
#include "lib/Emulator/Kernels/VectorMath-inl.h"

HWY_BEFORE_NAMESPACE();
namespace neuroncore::emulator {
namespace HWY_NAMESPACE {

using isa::AluOp;

// One functor per operator: apply(a, b) with a the element and b the second operand.
#define NEURON_OPERATOR(NAME, EXPRESSION)                                                                              \
  struct NAME {                                                                                                        \
    static HWY_INLINE Vector apply(Vector a, Vector b) { return EXPRESSION; }                                          \
  }
NEURON_OPERATOR(Bypass, a);
NEURON_OPERATOR(Add, hn::Add(a, b));
NEURON_OPERATOR(Subtract, hn::Sub(a, b));
NEURON_OPERATOR(Multiply, hn::Mul(a, b));
NEURON_OPERATOR(Divide, hn::Div(a, b));
NEURON_OPERATOR(Maximum, maximum(a, b));
NEURON_OPERATOR(Minimum, minimum(a, b));
NEURON_OPERATOR(AbsMax, maximum(hn::Abs(a), hn::Abs(b)));
NEURON_OPERATOR(AbsMin, minimum(hn::Abs(a), hn::Abs(b)));
NEURON_OPERATOR(LogicalAnd, boolean(hn::And(notEqual(a, hn::Zero(floatTag)), notEqual(b, hn::Zero(floatTag)))));
NEURON_OPERATOR(LogicalOr, boolean(hn::Or(notEqual(a, hn::Zero(floatTag)), notEqual(b, hn::Zero(floatTag)))));
NEURON_OPERATOR(LogicalXor, boolean(hn::Xor(notEqual(a, hn::Zero(floatTag)), notEqual(b, hn::Zero(floatTag)))));
NEURON_OPERATOR(Equal, boolean(hn::Eq(a, b)));
NEURON_OPERATOR(NotEqual, boolean(notEqual(a, b)));
NEURON_OPERATOR(GreaterEqual, boolean(hn::Ge(a, b)));
NEURON_OPERATOR(Greater, boolean(hn::Gt(a, b)));
NEURON_OPERATOR(LessEqual, boolean(hn::Le(a, b)));
NEURON_OPERATOR(Less, boolean(hn::Lt(a, b)));
NEURON_OPERATOR(AbsoluteValue, hn::Abs(a));
NEURON_OPERATOR(Square, hn::Mul(a, a));
NEURON_OPERATOR(Relu, maximum(a, hn::Zero(floatTag)));
NEURON_OPERATOR(Rsqrt, hn::Div(constant(1.0f), hn::Sqrt(a)));
NEURON_OPERATOR(Reciprocal, hn::Div(constant(1.0f), a));
#undef NEURON_OPERATOR

template <class Op> struct Reversed {
  static HWY_INLINE Vector apply(Vector a, Vector b) { return Op::apply(b, a); }
};

template <class Op, class A, class B, class O>
void tensorTensor(int64_t rows, int64_t n, ConstRows a, ConstRows b, MutableRows out) {
  const int64_t lanes = hn::Lanes(floatTag);
  const bool prefetch = n * int64_t(sizeof(float)) <= kPrefetchBytes;
  for (int64_t r = 0; r < rows; ++r) {
    const A *HWY_RESTRICT pa = reinterpret_cast<const A *>(static_cast<const char *>(a.base) + r * a.stride);
    const B *HWY_RESTRICT pb = reinterpret_cast<const B *>(static_cast<const char *>(b.base) + r * b.stride);
    // Not restrict: the output may be one of the inputs.
    O *po = reinterpret_cast<O *>(static_cast<char *>(out.base) + r * out.stride);
    if (prefetch && r + kPrefetchRows < rows) {
      prefetchRow(reinterpret_cast<const char *>(pa) + kPrefetchRows * a.stride, n * sizeof(A));
      prefetchRow(reinterpret_cast<const char *>(pb) + kPrefetchRows * b.stride, n * sizeof(B));
      prefetchRowForWrite(reinterpret_cast<const char *>(po) + kPrefetchRows * out.stride, n * sizeof(O));
    }
    int64_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
      const Vector v0 = Op::apply(loadVector(pa + i), loadVector(pb + i));
      const Vector v1 = Op::apply(loadVector(pa + i + lanes), loadVector(pb + i + lanes));
      storeVector(v0, po + i);
      storeVector(v1, po + i + lanes);
    }
    for (; i + lanes <= n; i += lanes)
      storeVector(Op::apply(loadVector(pa + i), loadVector(pb + i)), po + i);
    if (i < n)
      storePartial(Op::apply(loadVector(pa + i), loadVector(pb + i)), po + i, n - i);
  }
}

template <class Op0, class Op1, class A, class O>
void tensorScalar(int64_t rows, int64_t n, ConstRows a, RowScalars s0, RowScalars s1, MutableRows out) {
  const int64_t lanes = hn::Lanes(floatTag);
  const bool prefetch = n * int64_t(sizeof(float)) <= kPrefetchBytes;
  for (int64_t r = 0; r < rows; ++r) {
    const A *pa = reinterpret_cast<const A *>(static_cast<const char *>(a.base) + r * a.stride);
    O *po = reinterpret_cast<O *>(static_cast<char *>(out.base) + r * out.stride);
    if (prefetch && r + kPrefetchRows < rows) {
      prefetchRow(reinterpret_cast<const char *>(pa) + kPrefetchRows * a.stride, n * sizeof(A));
      prefetchRowForWrite(reinterpret_cast<const char *>(po) + kPrefetchRows * out.stride, n * sizeof(O));
    }
    const Vector x0 = constant(s0.at(r));
    const Vector x1 = constant(s1.at(r));
    int64_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
      const Vector v0 = Op1::apply(Op0::apply(loadVector(pa + i), x0), x1);
      const Vector v1 = Op1::apply(Op0::apply(loadVector(pa + i + lanes), x0), x1);
      storeVector(v0, po + i);
      storeVector(v1, po + i + lanes);
    }
    for (; i + lanes <= n; i += lanes)
      storeVector(Op1::apply(Op0::apply(loadVector(pa + i), x0), x1), po + i);
    if (i < n)
      storePartial(Op1::apply(Op0::apply(loadVector(pa + i), x0), x1), po + i, n - i);
  }
}

template <class Op0, class Op1, class A, class B, class O>
void scalarTensorTensor(int64_t rows, int64_t n, ConstRows a, RowScalars s, ConstRows b, MutableRows out) {
  const int64_t lanes = hn::Lanes(floatTag);
  for (int64_t r = 0; r < rows; ++r) {
    const A *pa = reinterpret_cast<const A *>(static_cast<const char *>(a.base) + r * a.stride);
    const B *pb = reinterpret_cast<const B *>(static_cast<const char *>(b.base) + r * b.stride);
    O *po = reinterpret_cast<O *>(static_cast<char *>(out.base) + r * out.stride);
    const Vector x = constant(s.at(r));
    int64_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
      const Vector v0 = Op1::apply(Op0::apply(loadVector(pa + i), x), loadVector(pb + i));
      const Vector v1 = Op1::apply(Op0::apply(loadVector(pa + i + lanes), x), loadVector(pb + i + lanes));
      storeVector(v0, po + i);
      storeVector(v1, po + i + lanes);
    }
    for (; i + lanes <= n; i += lanes)
      storeVector(Op1::apply(Op0::apply(loadVector(pa + i), x), loadVector(pb + i)), po + i);
    if (i < n)
      storePartial(Op1::apply(Op0::apply(loadVector(pa + i), x), loadVector(pb + i)), po + i, n - i);
  }
}

/// pow as in C, through double: correctly rounded but for rare ties.
void powerRows(int64_t rows, int64_t n, ConstRows a, ConstRows b, MutableRows out) {
  for (int64_t r = 0; r < rows; ++r) {
    const float *pa = reinterpret_cast<const float *>(static_cast<const char *>(a.base) + r * a.stride);
    const float *pb = reinterpret_cast<const float *>(static_cast<const char *>(b.base) + r * b.stride);
    float *po = reinterpret_cast<float *>(static_cast<char *>(out.base) + r * out.stride);
    for (int64_t i = 0; i < n; ++i)
      po[i] = float(std::pow(double(pa[i]), double(pb[i])));
  }
}

template <bool Reverse>
void powerScalarRows(int64_t rows, int64_t n, ConstRows a, RowScalars s0, RowScalars, MutableRows out) {
  for (int64_t r = 0; r < rows; ++r) {
    const float *pa = reinterpret_cast<const float *>(static_cast<const char *>(a.base) + r * a.stride);
    float *po = reinterpret_cast<float *>(static_cast<char *>(out.base) + r * out.stride);
    const double s = s0.at(r);
    for (int64_t i = 0; i < n; ++i)
      po[i] = float(Reverse ? std::pow(s, double(pa[i])) : std::pow(double(pa[i]), s));
  }
}

/// Operators that are not frequent enough for kernels of their own: one loop, the operator chosen per group of vectors.
template <bool kReverse> HWY_INLINE Vector applyAny(AluOp op, Vector x, Vector y) {
  const Vector a = kReverse ? y : x, b = kReverse ? x : y;
  switch (op) {
  case AluOp::Bypass:
    return a;
  case AluOp::Add:
    return Add::apply(a, b);
  case AluOp::Subtract:
    return Subtract::apply(a, b);
  case AluOp::Multiply:
    return Multiply::apply(a, b);
  case AluOp::Divide:
    return Divide::apply(a, b);
  case AluOp::Maximum:
    return Maximum::apply(a, b);
  case AluOp::Minimum:
    return Minimum::apply(a, b);
  case AluOp::AbsMax:
    return AbsMax::apply(a, b);
  case AluOp::AbsMin:
    return AbsMin::apply(a, b);
  case AluOp::LogicalAnd:
    return LogicalAnd::apply(a, b);
  case AluOp::LogicalOr:
    return LogicalOr::apply(a, b);
  case AluOp::LogicalXor:
    return LogicalXor::apply(a, b);
  case AluOp::Equal:
    return Equal::apply(a, b);
  case AluOp::NotEqual:
    return NotEqual::apply(a, b);
  case AluOp::GreaterEqual:
    return GreaterEqual::apply(a, b);
  case AluOp::Greater:
    return Greater::apply(a, b);
  case AluOp::LessEqual:
    return LessEqual::apply(a, b);
  case AluOp::Less:
    return Less::apply(a, b);
  case AluOp::Abs:
    return AbsoluteValue::apply(x, y);
  case AluOp::Square:
    return Square::apply(x, y);
  case AluOp::Relu:
    return Relu::apply(x, y);
  case AluOp::Rsqrt:
    return Rsqrt::apply(x, y);
  default:
    return Reciprocal::apply(x, y);
  }
}

bool hasForm(AluOp op) { return op <= AluOp::Less || (op >= AluOp::Abs && op <= AluOp::Reciprocal); }

template <bool kReverse> HWY_NOINLINE void anyGroup(AluOp op, Vector a0, Vector a1, Vector b0, Vector b1, float *to) {
  storeVector(applyAny<kReverse>(op, a0, b0), to);
  storeVector(applyAny<kReverse>(op, a1, b1), to + hn::Lanes(floatTag));
}

void anyTensorTensor(AluOp op, int64_t rows, int64_t n, ConstRows a, ConstRows b, MutableRows out) {
  const int64_t lanes = hn::Lanes(floatTag);
  for (int64_t r = 0; r < rows; ++r) {
    const float *pa = reinterpret_cast<const float *>(static_cast<const char *>(a.base) + r * a.stride);
    const float *pb = reinterpret_cast<const float *>(static_cast<const char *>(b.base) + r * b.stride);
    float *po = reinterpret_cast<float *>(static_cast<char *>(out.base) + r * out.stride);
    int64_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes)
      anyGroup<false>(op, loadVector(pa + i), loadVector(pa + i + lanes), loadVector(pb + i),
                      loadVector(pb + i + lanes), po + i);
    for (; i < n; i += lanes) {
      float pair[2 * hn::MaxLanes(floatTag)];
      anyGroup<false>(op, loadVector(pa + i), loadVector(pa + i), loadVector(pb + i), loadVector(pb + i), pair);
      std::memcpy(po + i, pair, size_t(n - i < lanes ? n - i : lanes) * sizeof(float));
    }
  }
}

void anyTensorScalar(AluOp op, bool reverse, int64_t rows, int64_t n, ConstRows a, RowScalars s0, MutableRows out) {
  const int64_t lanes = hn::Lanes(floatTag);
  const auto group = reverse ? anyGroup<true> : anyGroup<false>;
  for (int64_t r = 0; r < rows; ++r) {
    const float *pa = reinterpret_cast<const float *>(static_cast<const char *>(a.base) + r * a.stride);
    float *po = reinterpret_cast<float *>(static_cast<char *>(out.base) + r * out.stride);
    const Vector x = constant(s0.at(r));
    int64_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes)
      group(op, loadVector(pa + i), loadVector(pa + i + lanes), x, x, po + i);
    for (; i < n; i += lanes) {
      float pair[2 * hn::MaxLanes(floatTag)];
      group(op, loadVector(pa + i), loadVector(pa + i), x, x, pair);
      std::memcpy(po + i, pair, size_t(n - i < lanes ? n - i : lanes) * sizeof(float));
    }
  }
}

/// Frequent operators read and write bf16 in place.
template <class Op> void addFused(ElementwiseTable &table, AluOp op) {
  const int i = int(op);
  table.tensorTensor[i][0][0][0] = tensorTensor<Op, float, float, float>;
  table.tensorTensor[i][0][0][1] = tensorTensor<Op, float, float, uint16_t>;
  table.tensorTensor[i][0][1][0] = tensorTensor<Op, float, uint16_t, float>;
  table.tensorTensor[i][0][1][1] = tensorTensor<Op, float, uint16_t, uint16_t>;
  table.tensorTensor[i][1][0][0] = tensorTensor<Op, uint16_t, float, float>;
  table.tensorTensor[i][1][0][1] = tensorTensor<Op, uint16_t, float, uint16_t>;
  table.tensorTensor[i][1][1][0] = tensorTensor<Op, uint16_t, uint16_t, float>;
  table.tensorTensor[i][1][1][1] = tensorTensor<Op, uint16_t, uint16_t, uint16_t>;
}

template <class Op0, class Op1> void addPair(ElementwiseTable &table, int first, int second) {
  table.pair[first][second][0][0] = tensorScalar<Op0, Op1, float, float>;
  table.pair[first][second][1][1] = tensorScalar<Op0, Op1, uint16_t, uint16_t>;
}

template <class Op0, class Op1, class A, class B>
void addScalarTensor(ScalarTensorTensorKernel (&kernels)[kNumStorages]) {
  kernels[0] = scalarTensorTensor<Op0, Op1, A, B, float>;
  kernels[1] = scalarTensorTensor<Op0, Op1, A, B, uint16_t>;
}

template <class Op0, class Op1>
void addScalarTensors(ScalarTensorTensorKernel (&kernels)[kNumStorages][kNumStorages][kNumStorages]) {
  addScalarTensor<Op0, Op1, float, float>(kernels[0][0]);
  addScalarTensor<Op0, Op1, float, uint16_t>(kernels[0][1]);
  addScalarTensor<Op0, Op1, uint16_t, float>(kernels[1][0]);
  addScalarTensor<Op0, Op1, uint16_t, uint16_t>(kernels[1][1]);
}

template <class Op0> void addScalarTensorOperators(ElementwiseTable &table, int first) {
  addScalarTensors<Op0, Add>(table.scalarTensorTensor[first][0]);
  addScalarTensors<Op0, Subtract>(table.scalarTensorTensor[first][1]);
  addScalarTensors<Op0, Reversed<Subtract>>(table.scalarTensorTensor[first][2]);
  addScalarTensors<Op0, Multiply>(table.scalarTensorTensor[first][3]);
}

/// One operator alone, between all storages.
template <class Op> void addSingle(ElementwiseTable &table, int index) {
  addPair<Op, Bypass>(table, index, 0);
  table.pair[index][0][0][1] = tensorScalar<Op, Bypass, float, uint16_t>;
  table.pair[index][0][1][0] = tensorScalar<Op, Bypass, uint16_t, float>;
}

/// The order is that of pairIndex. Mixed types have kernels for single operators only.
template <class Op0> void addPairs(ElementwiseTable &table, int first) {
  addSingle<Op0>(table, first);
  addPair<Op0, Add>(table, first, 1);
  addPair<Op0, Reversed<Subtract>>(table, first, 2);
  addPair<Op0, Multiply>(table, first, 3);
  addPair<Op0, Maximum>(table, first, 4);
  addPair<Op0, Minimum>(table, first, 5);
}

ElementwiseTable makeElementwiseTable() {
  ElementwiseTable table = {};
  addFused<Add>(table, AluOp::Add);
  addFused<Subtract>(table, AluOp::Subtract);
  addFused<Multiply>(table, AluOp::Multiply);
  addFused<Maximum>(table, AluOp::Maximum);
  addFused<Minimum>(table, AluOp::Minimum);
  addFused<Divide>(table, AluOp::Divide);
  table.tensorTensor[int(AluOp::Power)][0][0][0] = powerRows;
  // A leading bypass is not here, except alone: the caller moves the second operator to the front.
  addSingle<Bypass>(table, 0);
  addPairs<Add>(table, 1);
  addPairs<Reversed<Subtract>>(table, 2);
  addPairs<Multiply>(table, 3);
  addPairs<Maximum>(table, 4);
  addPairs<Minimum>(table, 5);
  addSingle<Divide>(table, 6);
  addSingle<Reversed<Divide>>(table, 7);
  addScalarTensorOperators<Add>(table, 0);
  addScalarTensorOperators<Multiply>(table, 1);
  table.anyTensorTensor = anyTensorTensor;
  table.anyTensorScalar = anyTensorScalar;
  table.powerScalar[0] = powerScalarRows<false>;
  table.powerScalar[1] = powerScalarRows<true>;
  for (int op = 0; op < kNumAluOps; ++op)
    table.hasForm[op] = op == int(AluOp::Power) || hasForm(AluOp(op));
  return table;
}

const ElementwiseTable *elementwiseTableOfTarget() {
  static const ElementwiseTable table = makeElementwiseTable();
  return &table;
}

} // namespace HWY_NAMESPACE
} // namespace neuroncore::emulator
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace neuroncore::emulator {

HWY_EXPORT(elementwiseTableOfTarget);
const ElementwiseTable &elementwiseTable() { return *HWY_DYNAMIC_DISPATCH(elementwiseTableOfTarget)(); }

void tensorTensorF32(isa::AluOp op, int64_t rows, int64_t n, ConstRows a, ConstRows b, MutableRows out) {
  const ElementwiseTable &table = elementwiseTable();
  if (const TensorTensorKernel kernel = table.tensorTensor[int(op)][0][0][0])
    kernel(rows, n, a, b, out);
  else
    table.anyTensorTensor(op, rows, n, a, b, out);
}

void tensorScalarF32(isa::AluOp op, bool reverse, int64_t rows, int64_t n, ConstRows a, RowScalars s, MutableRows out) {
  const ElementwiseTable &table = elementwiseTable();
  bool negate;
  if (op == isa::AluOp::Power) {
    table.powerScalar[reverse](rows, n, a, s, s, out);
  } else if (const int index = pairIndex(op, reverse, negate); index > 0) {
    s.flip ^= negate ? 0x80000000u : 0;
    table.pair[index][0][0][0](rows, n, a, s, s, out);
  } else {
    table.anyTensorScalar(op, reverse, rows, n, a, s, out);
  }
}

int pairIndex(isa::AluOp op, bool reverse, bool &negate) {
  negate = false;
  switch (op) {
  case isa::AluOp::Bypass:
    return reverse ? -1 : 0;
  case isa::AluOp::Add:
    return 1;
  case isa::AluOp::Subtract:
    negate = !reverse;
    return reverse ? 2 : 1;
  case isa::AluOp::Multiply:
    return 3;
  case isa::AluOp::Divide:
    return reverse ? 7 : 6;
  case isa::AluOp::Maximum: // reversed differs in the sign of an equal zero and in which NaN
    return reverse ? -1 : 4;
  case isa::AluOp::Minimum:
    return reverse ? -1 : 5;
  default:
    return -1;
  }
}

} // namespace neuroncore::emulator
#endif // HWY_ONCE

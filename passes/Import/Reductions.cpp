// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions, scans and softmax. A float reduction of 16-bit values accumulates in f32 by the dialect's definition;
// expressions around it are computed in f32 and rounded once, as CPU PyTorch does.

#include <cmath>

#include "passes/Import/Arithmetic.h"

using namespace mlir;
using namespace mlir::neuron;
using Predicate = ComparePredicate;

namespace {

/// Where an overload has its dims and keepdim; -1: all dimensions, dropped.
struct Positions {
  int dims = -1;
  int keepdim = -1;
};

Shape dimensions(NodeImporter &b, Value x, Positions at) {
  return at.dims < 0 ? b.allDimensions(x) : b.dimensionsOrAll(at.dims, b.rank(x));
}

bool keeps(NodeImporter &b, Positions at) { return at.keepdim >= 0 && b.boolean(at.keepdim); }

/// Reduction in the recorded result type (dtype= and integer promotion are in it).
template <ReduceKind kind, int dimsAt, int keepdimAt> void reduction(NodeImporter &b) {
  Value x = b.castTo(b.tensor(0), b.resultElement(0));
  Shape dims = dimensions(b, x, {dimsAt, keepdimAt});
  b.result(b.keepOrDrop(b.reduce(kind, x, dims), dims, keeps(b, {dimsAt, keepdimAt})));
}

/// Whether an extremum over `dims` exists; an error otherwise. Not every meta kernel of PyTorch asks.
bool expectExtremum(NodeImporter &b, Value x, ArrayRef<int64_t> dims) {
  if (NodeImporter::reducedSize(x, dims) != 0)
    return true;
  b.error("expected at least one element to reduce but got a dimension of size 0");
  return false;
}

/// Maximum and minimum keep the operand's type.
template <ReduceKind kind, int dimsAt, int keepdimAt> void extremum(NodeImporter &b) {
  Value x = b.tensor(0);
  Shape dims = dimensions(b, x, {dimsAt, keepdimAt});
  if (!expectExtremum(b, x, dims))
    return;
  ReduceKind used = !b.isBool(b.element(x)) ? kind : kind == ReduceKind::Max ? ReduceKind::Or : ReduceKind::And;
  b.result(b.keepOrDrop(b.reduce(used, x, dims), dims, keeps(b, {dimsAt, keepdimAt})));
}

template <int dimsAt, int keepdimAt> void mean(NodeImporter &b) {
  Value x = b.castTo(b.castTo(b.tensor(0), b.resultElement(0)), b.f32());
  Shape dims = dimensions(b, x, {dimsAt, keepdimAt});
  b.result(b.keepOrDrop(b.mean(x, dims), dims, keeps(b, {dimsAt, keepdimAt})));
}

void nansum(NodeImporter &b) {
  Value x = b.tensor(0);
  if (b.isFloat(b.element(x)))
    x = b.select(b.isNan(x), 0.0, x);
  x = b.castTo(x, b.resultElement(0));
  Shape dims = dimensions(b, x, {1, 2});
  b.result(b.keepOrDrop(b.sum(x, dims), dims, b.boolean(2)));
}

template <ReduceKind kind, int dimsAt, int keepdimAt> void logicalReduction(NodeImporter &b) {
  Value x = b.truth(b.tensor(0));
  Shape dims = dimensions(b, x, {dimsAt, keepdimAt});
  // Unlike elsewhere, an empty list means no dimension.
  if (dimsAt >= 0 && !b.isNone(dimsAt) && b.integers(dimsAt).empty())
    dims.clear();
  b.result(b.keepOrDrop(b.reduce(kind, x, dims), dims, keeps(b, {dimsAt, keepdimAt})));
}

/// argmax and argmin: without a dimension, over the flattened tensor.
template <ReduceKind kind> void argReduction(NodeImporter &b) {
  Value x = b.tensor(0);
  Shape dims = b.isNone(1) ? b.allDimensions(x) : b.dimensionsOrAll(1, b.rank(x));
  if (!expectExtremum(b, x, dims))
    return;
  b.result(b.keepOrDrop(b.argReduce(kind, x, dims), dims, b.boolean(2)));
}

/// (values, indices) along one dimension.
template <ReduceKind kind> void extremumWithIndex(NodeImporter &b) {
  Value x = b.tensor(0);
  Shape dims;
  if (int64_t dim = b.dimension(1, b.rank(x)); b.rank(x) != 0)
    dims.push_back(dim);
  if (!expectExtremum(b, x, dims))
    return;
  ReduceKind used = !b.isBool(b.element(x)) ? kind : kind == ReduceKind::Max ? ReduceKind::Or : ReduceKind::And;
  // The order of bool is that of integers.
  Value ordered = b.isBool(b.element(x)) ? b.castTo(x, b.i8()) : x;
  bool keep = b.boolean(2);
  b.result(0, b.keepOrDrop(b.reduce(used, x, dims), dims, keep));
  b.result(1, b.keepOrDrop(b.argReduce(kind, ordered, dims), dims, keep));
}

/// (min, max); dim is optional.
template <int dimAt, int keepdimAt> void minimumAndMaximum(NodeImporter &b) {
  Value x = b.tensor(0);
  bool isBool = b.isBool(b.element(x));
  Shape dims = dimAt < 0 || b.isNone(dimAt) ? b.allDimensions(x) : b.dimensionsOrAll(dimAt, b.rank(x));
  if (!expectExtremum(b, x, dims))
    return;
  bool keep = keepdimAt >= 0 && b.boolean(keepdimAt);
  b.result(0, b.keepOrDrop(b.reduce(isBool ? ReduceKind::And : ReduceKind::Min, x, dims), dims, keep));
  b.result(1, b.keepOrDrop(b.reduce(isBool ? ReduceKind::Or : ReduceKind::Max, x, dims), dims, keep));
}

template <bool root, bool withMean> void variance(NodeImporter &b) {
  Value x = b.castTo(b.tensor(0), b.f32());
  Shape dims = dimensions(b, x, {1, 3});
  double correction = b.isNone(2) ? 1 : b.knownNumber(2).asDouble();
  Moments found = moments(b, x, dims, correction);
  Value spread = root ? b.unary(UnaryFunction::Sqrt, found.variance) : found.variance;
  bool keep = b.boolean(3);
  b.result(0, b.keepOrDrop(spread, dims, keep));
  if (withMean)
    b.result(1, b.keepOrDrop(found.mean, dims, keep));
}

void logSumExp(NodeImporter &b) {
  Value x = b.castTo(b.tensor(0), b.f32());
  Shape dims = dimensions(b, x, {1, 2});
  Value largest = b.reduce(ReduceKind::Max, x, dims);
  // An infinite maximum would make inf - inf.
  if (NodeImporter::reducedSize(x, dims) != 0)
    largest = b.select(b.unary(UnaryFunction::Isinf, largest), 0.0, largest);
  else
    largest = b.constant(b.f32(), 0, b.shape(largest));
  Value total = b.sum(b.unary(UnaryFunction::Exp, b.sub(x, largest)), dims);
  b.result(b.keepOrDrop(b.add(b.unary(UnaryFunction::Log, total), largest), dims, b.boolean(2)));
}

/// (sum |x|^p)^(1/p) and its limits.
Value vectorNorm(NodeImporter &b, Value x, double order, ArrayRef<int64_t> dims) {
  Value magnitude = b.unary(UnaryFunction::Abs, x);
  if (order == kInfinity)
    return b.reduce(ReduceKind::Max, magnitude, dims);
  if (order == -kInfinity)
    return b.reduce(ReduceKind::Min, magnitude, dims);
  if (order == 0)
    return b.sum(b.castTo(b.truth(x), b.f32()), dims);
  if (order == 1)
    return b.sum(magnitude, dims);
  if (order == 2)
    return b.unary(UnaryFunction::Sqrt, b.sum(b.unary(UnaryFunction::Square, x), dims));
  Value total = b.sum(power(b, magnitude, Number::of(order)), dims);
  return power(b, total, Number::of(1 / order));
}

/// Positions of p, dims, keepdim, dtype; -1 where the overload has none.
template <int orderAt, int dimsAt, int keepdimAt, int dtypeAt> void norm(NodeImporter &b) {
  Value x = b.tensor(0);
  if (dtypeAt >= 0)
    x = b.castTo(x, b.elementOr(dtypeAt, b.element(x)));
  x = b.castTo(x, b.f32());
  Shape dims = dimensions(b, x, {dimsAt, keepdimAt});
  double order = b.isNone(orderAt) ? 2 : b.knownNumber(orderAt).asDouble();
  if (NodeImporter::reducedSize(x, dims) == 0 && std::isinf(order))
    return b.error("expected at least one element for a norm of infinite order");
  b.result(b.keepOrDrop(vectorNorm(b, x, order, dims), dims, keeps(b, {dimsAt, keepdimAt})));
}

void distance(NodeImporter &b) {
  Value difference = b.sub(b.castTo(b.tensor(0), b.f32()), b.castTo(b.tensor(1), b.f32()));
  Shape dims = b.allDimensions(difference);
  b.result(b.dropDimensions(vectorNorm(b, difference, b.knownNumber(2).asDouble(), dims), dims));
}

template <bool hasDims> void countNonzero(NodeImporter &b) {
  Value x = b.castTo(b.truth(b.tensor(0)), b.i64());
  Shape dims = hasDims       ? b.dimensionsOrAll(1, b.rank(x))
               : b.isNone(1) ? b.allDimensions(x)
                             : b.dimensionsOrAll(1, b.rank(x));
  b.result(b.dropDimensions(b.sum(x, dims), dims));
}

void trace(NodeImporter &b) {
  Value x = b.castTo(b.tensor(0), b.resultElement(0));
  if (b.rank(x) != 2)
    return b.error("expected a matrix but got rank " + Twine(b.rank(x)));
  int64_t rows = b.shape(x)[0], columns = b.shape(x)[1], count = std::min(rows, columns);
  Value diagonal = b.asStrided(x, {count}, {columns + 1}, 0);
  b.result(b.dropDimensions(b.sum(diagonal, {0}), {0}));
}

template <ReduceKind kind> void scan(NodeImporter &b) {
  Value x = b.castTo(b.tensor(0), b.resultElement(0));
  b.result(b.scan(kind, x, b.dimension(1, b.rank(x))));
}

Shape oneDimension(NodeImporter &b, Value x, unsigned i) {
  int64_t dim = b.dimension(i, b.rank(x));
  return b.rank(x) == 0 ? Shape() : Shape{dim};
}

/// dtype= (or half_to_float) is in the recorded result type. Only dtype= makes floats of integers.
void softmaxOf(NodeImporter &b) {
  if (!b.requireFloat(b.resultElement(0)))
    return;
  Value x = b.castTo(b.tensor(0), b.f32());
  b.result(softmax(b, x, oneDimension(b, x, 1)));
}

void logSoftmaxOf(NodeImporter &b) {
  if (!b.requireFloat(b.resultElement(0)))
    return;
  Value x = b.castTo(b.tensor(0), b.f32());
  b.result(logSoftmax(b, x, oneDimension(b, x, 1)));
}

/// Rows of -inf only give zeros.
void safeSoftmax(NodeImporter &b) {
  Value x = b.castTo(b.tensor(0), b.f32());
  Shape dims = oneDimension(b, x, 1);
  Value masked = b.reduce(ReduceKind::And, b.compare(Predicate::Eq, x, -kInfinity), dims);
  b.result(b.select(masked, 0.0, softmax(b, x, dims)));
}

/// Whether each element is among the tested ones: every pair is compared.
void isIn(NodeImporter &b) {
  Operand elements = b.operand(0), tested = b.operand(1);
  Type type = b.promote({elements, tested});
  Value column = b.operandAs(elements, type), row = b.operandAs(tested, type);
  column = b.reshape(column, {b.numElements(column), 1});
  row = b.reshape(row, {1, b.numElements(row)});
  Value found = b.reduce(ReduceKind::Or, b.compare(ComparePredicate::Eq, column, row), {1});
  if (b.boolean(3))
    found = b.logicalNot(found);
  if (b.expectElements(found, b.resultShape(0)))
    b.result(b.reshape(found, b.resultShape(0)));
}

constexpr Registration kImporters[] = {
    {"aten.sum.default", "Td", reduction<ReduceKind::Sum, -1, -1>},
    {"aten.sum.dim_IntList", "TlBd", reduction<ReduceKind::Sum, 1, 2>},
    {"aten.prod.default", "Td", reduction<ReduceKind::Prod, -1, -1>},
    {"aten.prod.dim_int", "TIBd", reduction<ReduceKind::Prod, 1, 2>},
    {"aten.mean.default", "Td", mean<-1, -1>},
    {"aten.mean.dim", "TlBd", mean<1, 2>},
    {"aten.nansum.default", "TlBd", nansum},
    {"aten.amax.default", "TLB", extremum<ReduceKind::Max, 1, 2>},
    {"aten.amin.default", "TLB", extremum<ReduceKind::Min, 1, 2>},
    {"aten.max.default", "T", extremum<ReduceKind::Max, -1, -1>},
    {"aten.min.default", "T", extremum<ReduceKind::Min, -1, -1>},
    {"aten.max.dim", "TIB", extremumWithIndex<ReduceKind::Max>},
    {"aten.min.dim", "TIB", extremumWithIndex<ReduceKind::Min>},
    {"aten.aminmax.default", "TiB", minimumAndMaximum<1, 2>},
    {"aten.argmax.default", "TiB", argReduction<ReduceKind::Max>},
    {"aten.argmin.default", "TiB", argReduction<ReduceKind::Min>},
    {"aten.any.default", "T", logicalReduction<ReduceKind::Or, -1, -1>},
    {"aten.any.dim", "TIB", logicalReduction<ReduceKind::Or, 1, 2>},
    {"aten.any.dims", "TlB", logicalReduction<ReduceKind::Or, 1, 2>},
    {"aten.all.default", "T", logicalReduction<ReduceKind::And, -1, -1>},
    {"aten.all.dim", "TIB", logicalReduction<ReduceKind::And, 1, 2>},
    {"aten.all.dims", "TlB", logicalReduction<ReduceKind::And, 1, 2>},
    {"aten._is_all_true.default", "T", logicalReduction<ReduceKind::And, -1, -1>},
    {"aten._is_any_true.default", "T", logicalReduction<ReduceKind::Or, -1, -1>},
    {"aten.var.correction", "Rls!B", variance<false, false>},
    {"aten.std.correction", "Rls!B", variance<true, false>},
    {"aten.var_mean.correction", "Rls!B", variance<false, true>},
    {"aten.std_mean.correction", "Rls!B", variance<true, true>},
    {"aten.logsumexp.default", "TLB", logSumExp},
    {"aten.linalg_vector_norm.default", "TS!lBd", norm<1, 2, 3, 4>},
    {"aten.norm.Scalar", "TS!", norm<1, -1, -1, -1>},
    {"aten.norm.ScalarOpt_dim", "Ts!LB", norm<1, 2, 3, -1>},
    {"aten.norm.ScalarOpt_dim_dtype", "Ts!LBD", norm<1, 2, 3, 4>},
    {"aten.norm.ScalarOpt_dtype", "Ts!D", norm<1, -1, -1, 2>},
    {"aten.dist.default", "TTS!", distance},
    {"aten.count_nonzero.default", "Ti", countNonzero<false>},
    {"aten.count_nonzero.dim_IntList", "TL", countNonzero<true>},
    {"aten.isin.Tensor_Tensor", "TTBB", isIn},
    {"aten.isin.Tensor_Scalar", "TSBB", isIn},
    {"aten.isin.Scalar_Tensor", "STBB", isIn},
    {"aten.trace.default", "T", trace},
    {"aten.cumsum.default", "TId", scan<ReduceKind::Sum>},
    {"aten.cumprod.default", "TId", scan<ReduceKind::Prod>},
    {"aten._softmax.default", "TIB", softmaxOf},
    {"aten.softmax.int", "TId", softmaxOf},
    {"aten._log_softmax.default", "TIB", logSoftmaxOf},
    {"aten.log_softmax.int", "TId", logSoftmaxOf},
    {"aten._safe_softmax.default", "TId", safeSoftmax},
};

} // namespace

ArrayRef<Registration> mlir::neuron::reductionImporters() { return kImporters; }

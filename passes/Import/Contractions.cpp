// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products: views around neuron.contract. Products with an epilogue come out of the contraction in f32 and round
// once after it.

#include "passes/Import/Arithmetic.h"

using namespace mlir;
using namespace mlir::neuron;

namespace {

/// [m, k] x [k, n] with leading batch dimension 1.
Value matrixProduct(NodeImporter &b, Value lhs, Value rhs, Type element) {
  if (b.rank(lhs) != 2 || b.rank(rhs) != 2) {
    b.error("expected two matrices but got ranks " + Twine(b.rank(lhs)) + " and " + Twine(b.rank(rhs)));
    return lhs;
  }
  Value product = b.contract(b.unsqueeze(lhs, 0), b.unsqueeze(rhs, 0), element);
  return b.rank(product) == 3 ? b.dropDimensions(product, {0}) : product;
}

/// The type a product takes before beta * self + alpha * product.
Type accumulatorType(NodeImporter &b, Value lhs) { return b.computeType(b.element(lhs)); }

/// beta * self + alpha * product; self is not read when beta is 0.
Value epilogue(NodeImporter &b, Value self, Value product, const Number &beta, const Number &alpha) {
  Type type = b.element(product);
  if (!alpha.is(1))
    product = b.mul(product, b.numberAs(alpha, type));
  if (beta.is(0))
    return product;
  Value addend = b.castTo(self, type);
  if (!beta.is(1)) {
    Value factor = b.numberAs(beta, type);
    addend = b.mul(addend, factor);
    if (!beta.isKnown())
      addend = b.select(b.compare(ComparePredicate::Eq, factor, 0.0), 0.0, addend);
  }
  return b.add(addend, product);
}

void mm(NodeImporter &b) { b.result(matrixProduct(b, b.tensor(0), b.tensor(1), b.resultElement(0))); }

void bmm(NodeImporter &b) { b.result(b.contract(b.tensor(0), b.tensor(1), b.resultElement(0))); }

/// Positions of beta and alpha follow the tensors (and out_dtype where there is one).
template <unsigned betaAt> void addmm(NodeImporter &b) {
  Value product = matrixProduct(b, b.tensor(1), b.tensor(2), accumulatorType(b, b.tensor(1)));
  b.result(epilogue(b, b.tensor(0), product, b.number(betaAt), b.number(betaAt + 1)));
}

template <unsigned betaAt> void baddbmm(NodeImporter &b) {
  Value product = b.contract(b.tensor(1), b.tensor(2), accumulatorType(b, b.tensor(1)));
  b.result(epilogue(b, b.tensor(0), product, b.number(betaAt), b.number(betaAt + 1)));
}

void addbmm(NodeImporter &b) {
  // The sum over the batch is part of the contraction: [m, batch * k] x [batch * k, n].
  Value lhs = b.tensor(1), rhs = b.tensor(2);
  if (b.rank(lhs) != 3 || b.rank(rhs) != 3 || b.shape(lhs)[0] != b.shape(rhs)[0] || b.shape(lhs)[2] != b.shape(rhs)[1])
    return b.error("expected two batches of matrices with a common inner size");
  Shape left(b.shape(lhs)), right(b.shape(rhs));
  Value flatLeft = b.reshape(b.transpose(lhs, {1, 0, 2}), {left[1], left[0] * left[2]});
  Value flatRight = b.reshape(rhs, {right[0] * right[1], right[2]});
  Value product = matrixProduct(b, flatLeft, flatRight, accumulatorType(b, lhs));
  b.result(epilogue(b, b.tensor(0), product, b.number(3), b.number(4)));
}

Value matrixVector(NodeImporter &b, Value matrix, Value vector, Type element) {
  if (b.rank(matrix) != 2 || b.rank(vector) != 1) {
    b.error("expected a matrix and a vector but got ranks " + Twine(b.rank(matrix)) + " and " + Twine(b.rank(vector)));
    return vector;
  }
  Value product = matrixProduct(b, matrix, b.unsqueeze(vector, 1), element);
  return b.rank(product) == 2 && b.shape(product)[1] == 1 ? b.dropDimensions(product, {1}) : product;
}

void mv(NodeImporter &b) { b.result(matrixVector(b, b.tensor(0), b.tensor(1), b.resultElement(0))); }

void addmv(NodeImporter &b) {
  Value product = matrixVector(b, b.tensor(1), b.tensor(2), accumulatorType(b, b.tensor(1)));
  b.result(epilogue(b, b.tensor(0), product, b.number(3), b.number(4)));
}

void dot(NodeImporter &b) {
  Value lhs = b.tensor(0), rhs = b.tensor(1);
  if (b.rank(lhs) != 1 || b.rank(rhs) != 1)
    return b.error("expected two vectors but got ranks " + Twine(b.rank(lhs)) + " and " + Twine(b.rank(rhs)));
  Value product = matrixProduct(b, b.unsqueeze(lhs, 0), b.unsqueeze(rhs, 1), b.resultElement(0));
  if (b.numElements(product) == 1)
    b.result(b.reshape(product, {}));
}

/// Outer product: elementwise, not a contraction.
void addr(NodeImporter &b) {
  Value self = b.tensor(0), x = b.tensor(1), y = b.tensor(2);
  if (b.rank(x) != 1 || b.rank(y) != 1)
    return b.error("expected two vectors but got ranks " + Twine(b.rank(x)) + " and " + Twine(b.rank(y)));
  Type type = b.computeType(b.promote({{self, {}}, {x, {}}, {y, {}}}));
  Value product = b.mul(b.castTo(b.unsqueeze(x, 1), type), b.castTo(y, type));
  b.result(epilogue(b, self, product, b.number(3), b.number(4)));
}

/// x [..., in] by weight [out, in], plus bias.
void linear(NodeImporter &b) {
  Value x = b.tensor(0), weight = b.tensor(1);
  if (b.rank(x) == 0 || b.rank(weight) == 0 || b.rank(weight) > 2)
    return b.error("expected an input of at least one dimension and a weight of one or two");
  int64_t inner = b.shape(x).back(), rows = 1;
  for (int64_t size : b.shape(x).drop_back())
    rows *= size;
  bool isVector = b.rank(weight) == 1;
  Value matrix = isVector ? b.unsqueeze(weight, 0) : weight;
  std::optional<Value> bias = b.optionalTensor(2);
  Type element = bias ? accumulatorType(b, x) : b.resultElement(0);
  Value product = matrixProduct(b, b.reshape(x, {rows, inner}), b.transpose(matrix, {1, 0}), element);
  if (bias)
    product = b.add(product, b.castTo(*bias, element));
  if (b.expectElements(product, b.resultShape(0)))
    b.result(b.reshape(product, b.resultShape(0)));
}

/// One number for all, or one per row or column: [m, 1] and [1, n].
Value scaleOf(NodeImporter &b, unsigned i) {
  Value scale = b.castTo(b.tensor(i), b.f32());
  return b.numElements(scale) == 1 ? b.reshape(scale, {}) : scale;
}

/// (self, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum) of 8-bit floats, which bf16 holds
/// exactly.
void scaledMm(NodeImporter &b) {
  if (!b.isNone(5))
    return b.error("expected no scale_result; scale the result after the product");
  Value lhs = b.tensor(0), rhs = b.tensor(1), scaleA = scaleOf(b, 2), scaleB = scaleOf(b, 3);
  for (Value operand : {lhs, rhs})
    if (!b.isFloat(b.element(operand)) || b.element(operand).getIntOrFloatBitWidth() != 8)
      return b.error("expected matrices of an 8-bit float type");
  if (b.rank(lhs) != 2 || b.rank(rhs) != 2)
    return b.error("expected two matrices but got ranks " + Twine(b.rank(lhs)) + " and " + Twine(b.rank(rhs)));
  auto fits = [&](Value scale, int64_t rows, int64_t columns) {
    return b.rank(scale) == 0 || (b.rank(scale) == 2 && b.shape(scale)[0] == rows && b.shape(scale)[1] == columns);
  };
  if (!fits(scaleA, b.shape(lhs)[0], 1) || !fits(scaleB, 1, b.shape(rhs)[1]))
    return b.error(
        "expected one scale for each tensor, or one for each row of the first and each column of the second");
  Type exact = BFloat16Type::get(lhs.getContext());
  Value product = matrixProduct(b, b.castTo(lhs, exact), b.castTo(rhs, exact), b.f32());
  product = b.mul(b.mul(product, scaleA), scaleB);
  if (std::optional<Value> bias = b.optionalTensor(4))
    product = b.add(product, b.castTo(*bias, b.f32()));
  b.result(product);
}

/// (self, mat2, offs, bias, out_dtype): a product per matrix of mat2, of the rows of self up to the next offset.
void groupedMm(NodeImporter &b) {
  Value lhs = b.tensor(0), rhs = b.tensor(1);
  if (!b.isNone(3))
    return b.error("expected no bias; add it after the product");
  if (b.isNone(2) && b.rank(lhs) == 3 && b.rank(rhs) == 3)
    return b.result(b.contract(lhs, rhs, b.resultElement(0)));
  if (b.isNone(2) || b.rank(lhs) != 2 || b.rank(rhs) != 3 || b.rank(b.tensor(2)) != 1 ||
      b.shape(b.tensor(2))[0] != b.shape(rhs)[0] || b.shape(lhs)[1] != b.shape(rhs)[1])
    return b.error("expected a matrix and one matrix per offset, or two batches of matrices without offsets");
  // Every group of all rows; what belongs to other groups is left out of the sum.
  int64_t groups = b.shape(rhs)[0], rows = b.shape(lhs)[0];
  Value product = b.contract(b.broadcastTo(lhs, {groups, rows, b.shape(lhs)[1]}), rhs, b.f32());
  Value row = b.castTo(b.coordinate(3, 1, rows), b.i32());
  Value end = b.reshape(b.castTo(b.tensor(2), b.i32()), {groups, 1, 1});
  Value begin = b.constantInteger(b.i32(), 0, {1, 1, 1});
  if (groups > 1)
    begin = b.concat({begin, b.sliceDimension(end, 0, 0, groups - 1)}, 0);
  Value belongs = b.logicalAnd(b.compare(ComparePredicate::Ge, row, begin), b.compare(ComparePredicate::Lt, row, end));
  b.result(b.dropDimensions(b.sum(b.select(belongs, product, 0.0), {0}), {0}));
}

constexpr Registration kImporters[] = {
    {"aten._grouped_mm.default", "TTttd", groupedMm},
    {"aten._scaled_mm.default", "TTTTttdB", scaledMm},
    {"aten.mm.default", "TT", mm},
    {"aten.mm.dtype", "TTD", mm},
    {"aten.bmm.default", "TT", bmm},
    {"aten.bmm.dtype", "TTD", bmm},
    {"aten.addmm.default", "TTTSS", addmm<3>},
    {"aten.addmm.dtype", "TTTDSS", addmm<4>},
    {"aten.baddbmm.default", "TTTSS", baddbmm<3>},
    {"aten.baddbmm.dtype", "TTTDSS", baddbmm<4>},
    {"aten.addbmm.default", "TTTSS", addbmm},
    {"aten.mv.default", "TT", mv},
    {"aten.addmv.default", "TTTSS", addmv},
    {"aten.dot.default", "TT", dot},
    {"aten.vdot.default", "TT", dot},
    {"aten.addr.default", "TTTSS", addr},
    {"aten.linear.default", "TTt", linear},
};

} // namespace

ArrayRef<Registration> mlir::neuron::contractionImporters() { return kImporters; }

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Backward operators of activations, softmax, dropout and views. Those of normalizations and losses stand with them.

#include <cmath>
#include <numbers>

#include "passes/Import/Arithmetic.h"

using namespace mlir;
using namespace mlir::neuron;
using Predicate = ComparePredicate;

namespace {

Value wide(NodeImporter &b, unsigned i) { return b.castTo(b.tensor(i), b.f32()); }

Value absolute(NodeImporter &b, Value x) { return b.unary(UnaryFunction::Abs, x); }

/// The gradient where `pass` holds, else 0.
void gated(NodeImporter &b, Value pass, Value grad) { b.result(b.select(pass, grad, 0.0)); }

//===--------------------------------------------------------------------------------------------------------------===//
// Activations
//===--------------------------------------------------------------------------------------------------------------===//

void sigmoidBackward(NodeImporter &b) {
  Value grad = wide(b, 0), y = wide(b, 1);
  b.result(b.mul(b.mul(grad, b.sub(1.0, y)), y));
}

void tanhBackward(NodeImporter &b) {
  Value grad = wide(b, 0), y = wide(b, 1);
  b.result(b.mul(grad, b.sub(1.0, b.unary(UnaryFunction::Square, y))));
}

void thresholdBackward(NodeImporter &b) {
  Value x = b.tensor(1), grad = b.castTo(b.tensor(0), b.resultElement(0));
  Value closed = b.compare(Predicate::Le, x, b.operandAs(2, b.element(x)));
  b.result(b.select(closed, b.constantInteger(b.element(grad), 0), grad));
}

void geluBackward(NodeImporter &b) {
  Value grad = wide(b, 0), x = wide(b, 1), square = b.unary(UnaryFunction::Square, x);
  if (b.text(2) == "none") {
    Value cdf = b.mul(b.add(b.unary(UnaryFunction::Erf, b.mul(x, std::numbers::sqrt2 / 2)), 1.0), 0.5);
    Value pdf = b.mul(b.unary(UnaryFunction::Exp, b.mul(square, -0.5)), std::numbers::inv_sqrtpi / std::numbers::sqrt2);
    return b.result(b.mul(grad, b.add(cdf, b.mul(x, pdf))));
  }
  const double beta = std::sqrt(2 / std::numbers::pi), kappa = 0.044715;
  Value inner = b.mul(b.add(x, b.mul(b.mul(square, x), kappa)), beta);
  Value t = b.unary(UnaryFunction::Tanh, inner);
  Value left = b.mul(b.add(t, 1.0), 0.5);
  Value innerSlope = b.mul(b.add(b.mul(square, 3 * kappa), 1.0), beta);
  Value right = b.mul(b.mul(b.mul(x, 0.5), b.sub(1.0, b.unary(UnaryFunction::Square, t))), innerSlope);
  b.result(b.mul(grad, b.add(left, right)));
}

void siluBackward(NodeImporter &b) {
  Value grad = wide(b, 0), x = wide(b, 1), s = b.unary(UnaryFunction::Sigmoid, x);
  b.result(b.mul(b.mul(grad, s), b.add(b.mul(x, b.sub(1.0, s)), 1.0)));
}

void mishBackward(NodeImporter &b) {
  Value grad = wide(b, 0), x = wide(b, 1), s = b.unary(UnaryFunction::Sigmoid, x);
  Value t = b.unary(UnaryFunction::Tanh, b.unary(UnaryFunction::Softplus, x));
  Value slope = b.mul(b.mul(x, s), b.sub(1.0, b.unary(UnaryFunction::Square, t)));
  b.result(b.mul(grad, b.add(t, slope)));
}

/// (grad, alpha, scale, input_scale, is_result, self_or_result).
void eluBackward(NodeImporter &b) {
  Value grad = wide(b, 0), x = wide(b, 5);
  Value scale = b.operandAs(2, b.f32()), inputScale = b.operandAs(3, b.f32());
  Value coefficient = b.mul(b.operandAs(1, b.f32()), scale);
  Value negative = b.boolean(4) ? b.mul(b.mul(grad, inputScale), b.add(x, coefficient))
                                : b.mul(b.mul(b.mul(grad, inputScale), coefficient),
                                        b.unary(UnaryFunction::Exp, b.mul(x, inputScale)));
  b.result(b.select(b.compare(Predicate::Le, x, 0.0), negative, b.mul(grad, scale)));
}

void leakyReluBackward(NodeImporter &b) {
  Value grad = wide(b, 0), x = wide(b, 1);
  b.result(b.select(b.compare(Predicate::Gt, x, 0.0), grad, b.mul(grad, b.operandAs(2, b.f32()))));
}

/// (grad, self, weight) -> gradients of both.
void preluBackward(NodeImporter &b) {
  Value grad = wide(b, 0), x = wide(b, 1), weight = wide(b, 2), positive = b.compare(Predicate::Gt, x, 0.0);
  b.result(0, b.select(positive, grad, b.mul(weight, grad)));
  if (b.hasResult(1))
    b.result(1, b.sumTo(b.select(positive, 0.0, b.mul(x, grad)), b.resultShape(1)));
}

void hardtanhBackward(NodeImporter &b) {
  Value grad = wide(b, 0), x = wide(b, 1);
  Value closed = b.logicalOr(b.compare(Predicate::Le, x, b.operandAs(2, b.f32())),
                             b.compare(Predicate::Ge, x, b.operandAs(3, b.f32())));
  b.result(b.select(closed, 0.0, grad));
}

void hardsigmoidBackward(NodeImporter &b) {
  Value grad = wide(b, 0), x = wide(b, 1);
  Value open = b.logicalAnd(b.compare(Predicate::Gt, x, -3.0), b.compare(Predicate::Lt, x, 3.0));
  gated(b, open, b.div(grad, 6.0));
}

void hardswishBackward(NodeImporter &b) {
  Value grad = wide(b, 0), x = wide(b, 1);
  Value middle = b.mul(grad, b.add(b.div(x, 3.0), 0.5));
  Value upper = b.select(b.compare(Predicate::Lt, x, 3.0), middle, grad);
  b.result(b.select(b.compare(Predicate::Le, x, -3.0), 0.0, upper));
}

void softplusBackward(NodeImporter &b) {
  Value grad = wide(b, 0), scaled = b.mul(wide(b, 1), b.operandAs(2, b.f32()));
  Value z = b.unary(UnaryFunction::Exp, scaled);
  Value linear = b.compare(Predicate::Gt, scaled, b.operandAs(3, b.f32()));
  b.result(b.select(linear, grad, b.div(b.mul(grad, z), b.add(z, 1.0))));
}

/// hardshrink and softshrink.
void shrinkBackward(NodeImporter &b) {
  Value grad = wide(b, 0), x = wide(b, 1), lambda = b.operandAs(2, b.f32());
  Value closed = b.logicalAnd(b.compare(Predicate::Ge, x, b.unary(UnaryFunction::Neg, lambda)),
                              b.compare(Predicate::Le, x, lambda));
  b.result(b.select(closed, 0.0, grad));
}

void logitBackward(NodeImporter &b) {
  Value grad = wide(b, 0), x = wide(b, 1), slope = b.div(grad, b.mul(x, b.sub(1.0, x)));
  double eps = b.isNone(2) ? 0 : b.floating(2);
  Value outside = b.logicalOr(b.compare(Predicate::Lt, x, eps), b.compare(Predicate::Gt, x, 1 - eps));
  b.result(b.select(outside, b.isNone(2) ? kNaN : 0.0, slope));
}

void logSigmoidBackward(NodeImporter &b) {
  Value grad = wide(b, 0), x = wide(b, 1), isNegative = b.compare(Predicate::Lt, x, 0.0);
  Value z = b.unary(UnaryFunction::Exp, b.unary(UnaryFunction::Neg, absolute(b, x)));
  Value part = b.div(z, b.add(z, 1.0));
  b.result(b.mul(grad, b.select(isNegative, b.sub(1.0, part), part)));
}

void gluBackward(NodeImporter &b) {
  Value grad = wide(b, 0), x = wide(b, 1);
  int64_t dim = b.dimension(2, b.rank(x));
  if (b.rank(x) == 0 || b.shape(x)[dim] % 2 != 0)
    return b.error("expected an even size of the halved dimension");
  int64_t half = b.shape(x)[dim] / 2;
  Value value = b.sliceDimension(x, dim, 0, half);
  Value gate = b.unary(UnaryFunction::Sigmoid, b.sliceDimension(x, dim, half, half));
  Value gated = b.mul(grad, gate);
  b.result(b.concat({gated, b.mul(b.mul(gated, value), b.sub(1.0, gate))}, dim));
}

//===--------------------------------------------------------------------------------------------------------------===//
// Softmax and dropout
//===--------------------------------------------------------------------------------------------------------------===//

Shape oneDimension(NodeImporter &b, Value x, unsigned i) {
  int64_t dim = b.dimension(i, b.rank(x));
  return b.rank(x) == 0 ? Shape() : Shape{dim};
}

void softmaxBackward(NodeImporter &b) {
  Value grad = wide(b, 0), y = wide(b, 1);
  b.result(b.mul(b.sub(grad, b.sum(b.mul(grad, y), oneDimension(b, y, 2))), y));
}

void logSoftmaxBackward(NodeImporter &b) {
  Value grad = wide(b, 0), y = wide(b, 1);
  b.result(b.sub(grad, b.mul(b.unary(UnaryFunction::Exp, y), b.sum(grad, oneDimension(b, y, 2)))));
}

void maskedScale(NodeImporter &b) { b.result(b.mul(b.mul(wide(b, 0), b.castTo(b.tensor(1), b.f32())), b.floating(2))); }

//===--------------------------------------------------------------------------------------------------------------===//
// Views: the gradient lies in a region of zeros
//===--------------------------------------------------------------------------------------------------------------===//

Value zeros(NodeImporter &b, Value grad) { return b.constantInteger(b.element(grad), 0, b.resultShape(0)); }

/// (grad, input_sizes, dim, start, end, step).
void sliceBackward(NodeImporter &b) {
  Value grad = b.tensor(0), whole = zeros(b, grad);
  int64_t dim = b.dimension(2, b.rank(whole));
  if (b.rank(whole) == 0)
    return b.error("expected at least one dimension");
  SliceBounds bounds = sliceBounds(b, b.shape(whole)[dim], 3);
  Shape region(b.shape(whole)), starts(b.rank(whole), 0), steps(b.rank(whole), 1);
  region[dim] = bounds.size;
  starts[dim] = bounds.start;
  steps[dim] = bounds.step;
  b.result(b.insert(b.broadcastTo(grad, region), whole, starts, steps));
}

/// (grad, input_sizes, dim, index).
void selectBackward(NodeImporter &b) {
  Value grad = b.tensor(0), whole = zeros(b, grad);
  int64_t dim = b.dimension(2, b.rank(whole)), index = b.integer(3);
  if (b.rank(whole) == 0 || index < -b.shape(whole)[dim] || index >= b.shape(whole)[dim])
    return b.error("expected an index within the selected dimension but got " + Twine(index));
  Shape region(b.shape(whole)), starts(b.rank(whole), 0), steps(b.rank(whole), 1);
  region[dim] = 1;
  starts[dim] = index + (index < 0 ? b.shape(whole)[dim] : 0);
  if (b.expectElements(grad, region))
    b.result(b.insert(b.reshape(grad, region), whole, starts, steps));
}

/// (grad, input_sizes, offset, dim1, dim2).
void diagonalBackward(NodeImporter &b) {
  Value grad = b.tensor(0);
  b.result(scatterDiagonal(b, zeros(b, grad), grad, b.integer(2), b.integer(3), b.integer(4)));
}

/// (grad, input_sizes, dim, size, step): the part of each window that starts at a multiple of `step` fits between two
/// window starts, so the windows are cut into such parts, each part laid out along the dimension, and the parts added.
void unfoldBackward(NodeImporter &b) {
  Value grad = wide(b, 0);
  Shape shape = b.resultShape(0);
  int64_t rank = shape.size(), dim = b.dimension(2, rank), size = b.integer(3), step = b.integer(4);
  constexpr int64_t kMaxParts = 64;
  if (shape.empty() || size <= 0 || step <= 0 || size > shape[dim] || (size - 1) / step >= kMaxParts)
    return b.error("expected windows within the dimension, of at most " + Twine(kMaxParts) + " steps");
  int64_t windows = (shape[dim] - size) / step + 1;
  Shape expected = shape;
  expected[dim] = windows;
  expected.push_back(size);
  if (b.shape(grad) != ArrayRef<int64_t>(expected))
    return b.error("expected a gradient of the windows' shape");
  // The positions in a window next to the windows.
  Shape permutation = b.allDimensions(grad);
  permutation.pop_back();
  permutation.insert(permutation.begin() + dim + 1, rank);
  Value moved = b.transpose(grad, permutation), total;
  for (int64_t begin = 0; begin < size; begin += step) {
    int64_t length = std::min(step, size - begin);
    Value part = b.sliceDimension(moved, dim + 1, begin, length);
    if (length < step) {
      Shape gap(b.shape(part));
      gap[dim + 1] = step - length;
      part = b.concat({part, b.constant(b.f32(), 0, gap)}, dim + 1);
    }
    Shape merged = shape, starts(rank, 0);
    merged[dim] = windows * step;
    starts[dim] = begin;
    part = b.reshape(part, merged);
    part = b.sliceDimension(part, dim, 0, std::min(windows * step, shape[dim] - begin));
    Value spread = b.insert(part, b.constant(b.f32(), 0, shape), starts, Shape(rank, 1));
    total = total ? b.add(total, spread) : spread;
  }
  b.result(total);
}

constexpr Registration kImporters[] = {
    {"aten.sigmoid_backward.default", "TT", sigmoidBackward},
    {"aten.tanh_backward.default", "TT", tanhBackward},
    {"aten.threshold_backward.default", "TTS", thresholdBackward},
    {"aten.gelu_backward.default", "TTN", geluBackward},
    {"aten.silu_backward.default", "TT", siluBackward},
    {"aten.mish_backward.default", "TT", mishBackward},
    {"aten.elu_backward.default", "TSSSBT", eluBackward},
    {"aten.leaky_relu_backward.default", "TTSB", leakyReluBackward},
    {"aten._prelu_kernel_backward.default", "TTT", preluBackward},
    {"aten.hardtanh_backward.default", "TTSS", hardtanhBackward},
    {"aten.hardsigmoid_backward.default", "TT", hardsigmoidBackward},
    {"aten.hardswish_backward.default", "TT", hardswishBackward},
    {"aten.softplus_backward.default", "TTSS", softplusBackward},
    {"aten.hardshrink_backward.default", "TTS", shrinkBackward},
    {"aten.softshrink_backward.default", "TTS", shrinkBackward},
    {"aten.logit_backward.default", "TTf", logitBackward},
    {"aten.log_sigmoid_backward.default", "TTT", logSigmoidBackward},
    {"aten.glu_backward.default", "TTI", gluBackward},
    {"aten._softmax_backward_data.default", "TTID", softmaxBackward},
    {"aten._log_softmax_backward_data.default", "TTID", logSoftmaxBackward},
    {"aten.native_dropout_backward.default", "TTF", maskedScale},
    {"aten._masked_scale.default", "TTF", maskedScale},
    {"aten.slice_backward.default", "TLIIII", sliceBackward},
    {"aten.select_backward.default", "TLII", selectBackward},
    {"aten.diagonal_backward.default", "TLIII", diagonalBackward},
    {"aten.unfold_backward.default", "TLIII", unfoldBackward},
};

} // namespace

ArrayRef<Registration> mlir::neuron::backwardImporters() { return kImporters; }

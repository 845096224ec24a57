// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Activation functions. Expressions of several operations compute in f32 and round once, as one CPU kernel does.

#include "passes/Import/Arithmetic.h"

using namespace mlir;
using namespace mlir::neuron;
using Predicate = ComparePredicate;

namespace {

template <UnaryFunction function> void activation(NodeImporter &b) {
  Value x = b.tensor(0);
  b.result(b.unary(function, b.castTo(x, b.promoteToFloat(b.element(x)))));
}

Value wide(NodeImporter &b, unsigned i) {
  Value x = b.tensor(i);
  return b.castTo(x, b.computeType(b.element(x)));
}

void relu(NodeImporter &b) {
  Value x = b.tensor(0);
  bool cannotBeNegative = b.element(x).isUnsignedInteger() || b.isBool(b.element(x));
  b.result(cannotBeNegative ? x : b.unary(UnaryFunction::Relu, x));
}

void gelu(NodeImporter &b) {
  StringRef form = b.text(1);
  if (form != "none" && form != "tanh")
    return b.error("expected approximate 'none' or 'tanh' but got '" + form + "'");
  b.result(b.unary(form == "tanh" ? UnaryFunction::GeluTanh : UnaryFunction::Gelu, b.tensor(0)));
}

void hardtanh(NodeImporter &b) {
  Value x = b.tensor(0);
  b.result(clamp(b, x, b.operandAs(1, b.element(x)), b.operandAs(2, b.element(x))));
}

void relu6(NodeImporter &b) {
  Value x = b.tensor(0);
  b.result(clamp(b, x, b.constant(b.element(x), 0), b.constant(b.element(x), 6)));
}

Value reluSix(NodeImporter &b, Value x) {
  return clamp(b, b.add(x, 3.0), b.constant(b.f32(), 0), b.constant(b.f32(), 6));
}

void hardsigmoid(NodeImporter &b) { b.result(b.div(reluSix(b, wide(b, 0)), 6.0)); }

void hardswish(NodeImporter &b) {
  Value x = wide(b, 0);
  b.result(b.div(b.mul(x, reluSix(b, x)), 6.0));
}

/// x > 0 ? x * scale : expm1(x * inputScale) * alpha * scale.
void expLinear(NodeImporter &b, Value alphaTimesScale, Value scale, Value inputScale) {
  Value x = wide(b, 0);
  Value negative = b.mul(b.unary(UnaryFunction::Expm1, b.mul(x, inputScale)), alphaTimesScale);
  b.result(b.select(b.compare(Predicate::Le, x, 0.0), negative, b.mul(x, scale)));
}

void elu(NodeImporter &b) {
  Value alpha = b.operandAs(1, b.f32()), scale = b.operandAs(2, b.f32());
  expLinear(b, b.mul(alpha, scale), scale, b.operandAs(3, b.f32()));
}

void selu(NodeImporter &b) {
  constexpr double alpha = 1.6732632423543772848170429916717, scale = 1.0507009873554804934193349852946;
  expLinear(b, b.constant(b.f32(), alpha * scale), b.constant(b.f32(), scale), b.constant(b.f32(), 1));
}

void celu(NodeImporter &b) {
  Number alpha = b.number(1);
  Value inverse = alpha.isKnown() ? b.constant(b.f32(), 1 / alpha.asDouble()) : b.div(1.0, b.numberAs(alpha, b.f32()));
  expLinear(b, b.numberAs(alpha, b.f32()), b.constant(b.f32(), 1), inverse);
}

void leakyRelu(NodeImporter &b) {
  Value x = wide(b, 0);
  b.result(b.select(b.compare(Predicate::Gt, x, 0.0), x, b.mul(x, b.operandAs(1, b.f32()))));
}

void prelu(NodeImporter &b) {
  Value x = wide(b, 0);
  b.result(b.select(b.compare(Predicate::Gt, x, 0.0), x, b.mul(x, wide(b, 1))));
}

void softplus(NodeImporter &b) {
  Number beta = b.number(1), threshold = b.number(2);
  if (beta.is(1) && threshold.is(20))
    return b.result(b.unary(UnaryFunction::Softplus, b.tensor(0)));
  Value x = wide(b, 0), scale = b.numberAs(beta, b.f32()), scaled = b.mul(x, scale);
  Value value = b.div(b.unary(UnaryFunction::Softplus, scaled), scale);
  b.result(b.select(b.compare(Predicate::Gt, scaled, b.numberAs(threshold, b.f32())), x, value));
}

void threshold(NodeImporter &b) {
  Value x = b.tensor(0);
  Type element = b.element(x);
  b.result(b.select(b.compare(Predicate::Le, x, b.operandAs(1, element)), b.operandAs(2, element), x));
}

void hardshrink(NodeImporter &b) {
  Value x = b.tensor(0), lambda = b.operandAs(1, b.element(x));
  Value inside = b.logicalAnd(b.compare(Predicate::Ge, x, b.unary(UnaryFunction::Neg, lambda)),
                              b.compare(Predicate::Le, x, lambda));
  b.result(b.select(inside, 0.0, x));
}

void softshrink(NodeImporter &b) {
  Value x = wide(b, 0), lambda = b.operandAs(1, b.f32());
  Value below =
      b.select(b.compare(Predicate::Lt, x, b.unary(UnaryFunction::Neg, lambda)), b.add(x, lambda), b.mul(x, 0.0));
  b.result(b.select(b.compare(Predicate::Gt, x, lambda), b.sub(x, lambda), below));
}

/// (output, buffer): the buffer holds exp(-|x|) for the backward pass where the caller wants it.
void logSigmoidForward(NodeImporter &b) {
  Value x = wide(b, 0);
  b.result(0, logSigmoid(b, x));
  if (!b.hasResult(1))
    return;
  Shape buffer = b.resultShape(1);
  bool isEmpty = llvm::is_contained(buffer, 0);
  b.result(1, isEmpty ? b.constant(b.resultElement(1), 0, buffer)
                      : b.unary(UnaryFunction::Exp, b.unary(UnaryFunction::Neg, b.unary(UnaryFunction::Abs, x))));
}

void logSigmoidOnly(NodeImporter &b) { b.result(logSigmoid(b, wide(b, 0))); }

void glu(NodeImporter &b) {
  Value x = wide(b, 0);
  int64_t dim = b.dimension(1, b.rank(x));
  if (b.rank(x) == 0 || b.shape(x)[dim] % 2 != 0)
    return b.error("expected an even size of the halved dimension");
  int64_t half = b.shape(x)[dim] / 2;
  Value gate = b.unary(UnaryFunction::Sigmoid, b.sliceDimension(x, dim, half, half));
  b.result(b.mul(b.sliceDimension(x, dim, 0, half), gate));
}

constexpr Registration kImporters[] = {
    {"aten.relu.default", "T", relu},
    {"aten.relu6.default", "T", relu6},
    {"aten.sigmoid.default", "T", activation<UnaryFunction::Sigmoid>},
    {"aten.tanh.default", "T", activation<UnaryFunction::Tanh>},
    {"aten.silu.default", "R", activation<UnaryFunction::Silu>},
    {"aten.mish.default", "R", activation<UnaryFunction::Mish>},
    {"aten.gelu.default", "RN", gelu},
    {"aten.hardtanh.default", "TSS", hardtanh},
    {"aten.hardsigmoid.default", "R", hardsigmoid},
    {"aten.hardswish.default", "R", hardswish},
    {"aten.elu.default", "RSSS", elu},
    {"aten.selu.default", "R", selu},
    {"aten.celu.default", "RS", celu},
    {"aten.leaky_relu.default", "RS", leakyRelu},
    {"aten._prelu_kernel.default", "RR", prelu},
    {"aten.softplus.default", "RSS", softplus},
    {"aten.threshold.default", "TSS", threshold},
    {"aten.hardshrink.default", "RS", hardshrink},
    {"aten.softshrink.default", "RS", softshrink},
    {"aten.log_sigmoid_forward.default", "R", logSigmoidForward},
    {"aten.log_sigmoid.default", "R", logSigmoidOnly},
    {"aten.glu.default", "RI", glu},
};

} // namespace

ArrayRef<Registration> mlir::neuron::activationImporters() { return kImporters; }

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random numbers. Every draw takes one increment of the generator's offset, in the order of the nodes, so that a
// graph's values do not depend on how it is compiled. Draws are in f32 and round once.

#include <cmath>
#include <numbers>

#include "passes/Import/Arithmetic.h"

using namespace mlir;
using namespace mlir::neuron;
using Predicate = ComparePredicate;

namespace {

Value uniformF32(NodeImporter &b, ArrayRef<int64_t> shape) { return b.uniform(b.f32(), shape); }

Value normalF32(NodeImporter &b, ArrayRef<int64_t> shape) { return b.random(RandomDistribution::Normal, shape); }

void rand(NodeImporter &b) { b.result(b.uniform(b.resultElement(0), b.resultShape(0))); }
void randn(NodeImporter &b) { b.result(normalF32(b, b.resultShape(0))); }

/// Whole numbers in [low, low + range): 32 random bits, or 63 for wide ranges, modulo the range.
Value integers(NodeImporter &b, ArrayRef<int64_t> shape, int64_t low, int64_t high) {
  uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  if (high <= low || range > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    b.error("expected a range of 1 to 2^63 - 1 numbers but got [" + Twine(low) + ", " + Twine(high) + ")");
    return b.constantInteger(b.i64(), 0, shape);
  }
  auto word = [&] {
    Value bits = b.castTo(b.random(RandomDistribution::Bits, shape), b.i64());
    return b.binary(BinaryFunction::And, bits, b.constantInteger(b.i64(), 0xffffffff));
  };
  Value bits = word();
  if (range > (uint64_t(1) << 32)) {
    Value upper = b.binary(BinaryFunction::ShiftLeft, word(), b.constantInteger(b.i64(), 32));
    bits = b.binary(BinaryFunction::And, b.binary(BinaryFunction::Or, upper, bits),
                    b.constantInteger(b.i64(), std::numeric_limits<int64_t>::max()));
  }
  Value offset = b.binary(BinaryFunction::Remainder, bits, b.constantInteger(b.i64(), static_cast<int64_t>(range)));
  return b.add(offset, b.constantInteger(b.i64(), low));
}

template <int highAt> void randint(NodeImporter &b) { b.result(integers(b, b.resultShape(0), 0, b.integer(highAt))); }

template <int lowAt> void randintLow(NodeImporter &b) {
  b.result(integers(b, b.resultShape(0), b.integer(lowAt), b.integer(lowAt + 1)));
}

/// All whole numbers from 0 that the dtype holds exactly.
void randomAny(NodeImporter &b) {
  Type element = b.resultElement(0);
  int64_t high = std::numeric_limits<int64_t>::max();
  if (auto type = dyn_cast<FloatType>(element))
    high = (int64_t(1) << APFloat::semanticsPrecision(type.getFloatSemantics())) + 1;
  else if (unsigned width = element.getIntOrFloatBitWidth(); width < 64)
    high = int64_t(1) << (width == 1 || element.isUnsignedInteger() ? width : width - 1);
  b.result(integers(b, b.resultShape(0), 0, high));
}

void randomFrom(NodeImporter &b) {
  if (b.isNone(2))
    return b.error("expected an upper bound; random_ over the whole range of a dtype is not supported");
  randintLow<1>(b);
}

void uniformBetween(NodeImporter &b) {
  double from = b.floating(1), to = b.floating(2);
  // A 16-bit draw has the bits of its dtype, as rand.
  Value draw = b.castTo(b.uniform(b.resultElement(0), b.resultShape(0)), b.f32());
  b.result(b.add(b.mul(draw, to - from), from));
}

/// mean + std * draw; positions of the two, either a number or a tensor.
template <int meanAt, int stdAt> void normal(NodeImporter &b) {
  Value draw = normalF32(b, b.resultShape(0));
  b.result(b.add(b.mul(draw, b.operandAs(stdAt, b.f32())), b.operandAs(meanAt, b.f32())));
}

void logNormal(NodeImporter &b) {
  Value draw = normalF32(b, b.resultShape(0));
  b.result(b.unary(UnaryFunction::Exp, b.add(b.mul(draw, b.floating(2)), b.floating(1))));
}

void exponential(NodeImporter &b) {
  Value positive = b.sub(1.0, uniformF32(b, b.resultShape(0)));
  b.result(b.div(b.unary(UnaryFunction::Neg, b.unary(UnaryFunction::Log, positive)), b.floating(1)));
}

void cauchy(NodeImporter &b) {
  Value centred = b.mul(b.sub(uniformF32(b, b.resultShape(0)), 0.5), std::numbers::pi);
  b.result(b.add(b.mul(b.unary(UnaryFunction::Tan, centred), b.floating(2)), b.floating(1)));
}

/// Trials up to the first success, from 1.
void geometric(NodeImporter &b) {
  double p = b.floating(1);
  if (!(p > 0 && p < 1))
    return b.error("expected a probability within (0, 1)");
  Value positive = b.sub(1.0, uniformF32(b, b.resultShape(0)));
  Value trials = b.unary(UnaryFunction::Ceil, b.div(b.unary(UnaryFunction::Log, positive), std::log1p(-p)));
  b.result(b.binary(BinaryFunction::Max, trials, 1.0));
}

/// The probability is the tensor itself or argument `probabilityAt`.
template <int probabilityAt> void bernoulli(NodeImporter &b) {
  Value probability = b.operandAs(probabilityAt, b.f32());
  b.result(b.compare(Predicate::Lt, uniformF32(b, b.resultShape(0)), probability));
}

/// (input, p, train) -> (output, mask).
void dropout(NodeImporter &b) {
  Value x = b.castTo(b.tensor(0), b.f32());
  double p = b.floating(1);
  bool trains = b.isNone(2) || b.boolean(2);
  if (!trains || p == 0 || p == 1) {
    bool keeps = !trains || p == 0;
    b.result(0, keeps ? x : b.constant(b.f32(), 0, b.shape(x)));
    return b.result(1, b.constantInteger(b.i1(), keeps, b.shape(x)));
  }
  Value mask = b.compare(Predicate::Lt, uniformF32(b, b.shape(x)), 1 - p);
  b.result(0, b.mul(b.mul(x, b.castTo(mask, b.f32())), 1 / (1 - p)));
  b.result(1, mask);
}

constexpr Registration kImporters[] = {
    {"aten.rand.default", "Ld__b", rand},
    {"aten.rand.generator", "L_d__b", rand},
    {"aten.rand_like.default", "Td__b_", rand},
    {"aten.rand_like.generator", "T_d__b_", rand},
    {"aten.randn.default", "Ld__b", randn},
    {"aten.randn.generator", "L_d__b", randn},
    {"aten.randn_like.default", "Td__b_", randn},
    {"aten.randn_like.generator", "T_d__b_", randn},
    {"aten.randint.default", "ILd__b", randint<0>},
    {"aten.randint.generator", "IL_d__b", randint<0>},
    {"aten.randint.low", "IILd__b", randintLow<0>},
    {"aten.randint.low_generator", "IIL_d__b", randintLow<0>},
    {"aten.randint_like.default", "TId__b_", randint<1>},
    {"aten.randint_like.generator", "TI_d__b_", randint<1>},
    {"aten.randint_like.low_dtype", "TIId__b_", randintLow<1>},
    {"aten.randint_like.low_generator_dtype", "TII_d__b_", randintLow<1>},
    {"aten.random.default", "T_", randomAny},
    {"aten.random.to", "TI_", randint<1>},
    {"aten.random.from", "TIi_", randomFrom},
    {"aten.uniform.default", "TFF_", uniformBetween},
    {"aten.normal_functional.default", "TFF_", normal<1, 2>},
    {"aten.normal.Tensor_Tensor", "TT_", normal<0, 1>},
    {"aten.normal.Tensor_float", "TF_", normal<0, 1>},
    {"aten.normal.float_Tensor", "FT_", normal<0, 1>},
    {"aten.normal.float_float", "FFL_d__b", normal<0, 1>},
    {"aten.log_normal.default", "TFF_", logNormal},
    {"aten.exponential.default", "TF_", exponential},
    {"aten.cauchy.default", "TFF_", cauchy},
    {"aten.geometric.default", "TF_", geometric},
    {"aten.bernoulli.default", "T_", bernoulli<0>},
    {"aten.bernoulli.p", "TF_", bernoulli<1>},
    {"aten.bernoulli.Tensor", "TT_", bernoulli<1>},
    {"aten.native_dropout.default", "TFb", dropout},
};

} // namespace

ArrayRef<Registration> mlir::neuron::randomImporters() { return kImporters; }

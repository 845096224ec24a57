// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic, comparisons, logic, selection and conversion.

#include <cmath>
#include <numbers>

#include "passes/Import/Arithmetic.h"

using namespace mlir;
using namespace mlir::neuron;
using Predicate = ComparePredicate;

namespace {

//===--------------------------------------------------------------------------------------------------------------===//
// One operand
//===--------------------------------------------------------------------------------------------------------------===//

/// Float functions: integers become f32 first.
template <UnaryFunction function> void floatUnary(NodeImporter &b) {
  Value x = b.tensor(0);
  b.result(b.unary(function, b.castTo(x, b.promoteToFloat(b.element(x)))));
}

/// Functions of every element type.
template <UnaryFunction function> void anyUnary(NodeImporter &b) { b.result(b.unary(function, b.tensor(0))); }

/// Rounding: the identity on integers.
template <UnaryFunction function> void rounding(NodeImporter &b) {
  Value x = b.tensor(0);
  b.result(b.isFloat(b.element(x)) ? b.unary(function, x) : x);
}

/// Classification: false for every integer.
template <UnaryFunction function, bool ofInteger = false> void classification(NodeImporter &b) {
  Value x = b.tensor(0);
  b.result(b.isFloat(b.element(x)) ? b.unary(function, x) : b.constantInteger(b.i1(), ofInteger, b.shape(x)));
}

void identity(NodeImporter &b) { b.result(b.tensor(0)); }

void sign(NodeImporter &b) {
  Value x = b.tensor(0);
  b.result(b.isBool(b.element(x)) ? x : b.unary(UnaryFunction::Sign, x));
}

void absolute(NodeImporter &b) {
  Value x = b.tensor(0);
  b.result(b.element(x).isUnsignedInteger() || b.isBool(b.element(x)) ? x : b.unary(UnaryFunction::Abs, x));
}

void signbit(NodeImporter &b) {
  Value x = b.tensor(0);
  Type element = b.element(x);
  if (b.isFloat(element))
    return b.result(b.unary(UnaryFunction::Signbit, x));
  b.result(b.compare(Predicate::Lt, x, b.constantInteger(element, 0)));
}

template <bool negative> void isOneInfinity(NodeImporter &b) {
  Value x = b.tensor(0);
  if (!b.isFloat(b.element(x)))
    return b.result(b.constantInteger(b.i1(), 0, b.shape(x)));
  b.result(b.compare(Predicate::Eq, x, negative ? -kInfinity : kInfinity));
}

void logicalNot(NodeImporter &b) {
  Value x = b.tensor(0);
  b.result(b.compare(Predicate::Eq, x, b.constantInteger(b.element(x), 0)));
}

/// x times a constant of f32 precision.
template <int numerator, int denominator> void scaleByPi(NodeImporter &b) {
  Value x = b.tensor(0);
  double factor = numerator == 1 ? std::numbers::pi / denominator : numerator / std::numbers::pi;
  Type type = b.promoteToFloat(b.element(x));
  b.result(arithmetic(b, BinaryFunction::Mul, {x, {}}, {nullptr, Number::of(factor)}, type));
}

void angle(NodeImporter &b) {
  Value x = b.castTo(b.tensor(0), b.f32());
  Value value = b.select(b.compare(Predicate::Lt, x, 0.0), std::numbers::pi, b.constant(b.f32(), 0));
  b.result(b.select(b.isNan(x), x, value));
}

void roundDecimals(NodeImporter &b) {
  Value x = b.tensor(0);
  int64_t decimals = b.integer(1);
  if (!b.isFloat(b.element(x)))
    return b.result(x);
  if (decimals == 0)
    return b.result(b.unary(UnaryFunction::Round, x));
  Value wide = b.castTo(x, b.f32());
  double scale = std::pow(10.0, std::abs(static_cast<double>(decimals)));
  bool scaleUp = decimals > 0;
  Value scaled = b.unary(UnaryFunction::Round, scaleUp ? b.mul(wide, scale) : b.div(wide, scale));
  b.result(scaleUp ? b.div(scaled, scale) : b.mul(scaled, scale));
}

void nanToNum(NodeImporter &b) {
  Value x = b.tensor(0);
  auto type = dyn_cast<FloatType>(b.element(x));
  if (!type)
    return b.result(x);
  double largest = APFloat::getLargest(type.getFloatSemantics()).convertToDouble();
  double nan = b.isNone(1) ? 0 : b.floating(1);
  double positive = b.isNone(2) ? largest : b.floating(2), negative = b.isNone(3) ? -largest : b.floating(3);
  Value value = b.select(b.isNan(x), nan, x);
  value = b.select(b.compare(Predicate::Eq, x, kInfinity), positive, value);
  b.result(b.select(b.compare(Predicate::Eq, x, -kInfinity), negative, value));
}

void logit(NodeImporter &b) {
  Value x = b.tensor(0);
  Type type = b.promoteToFloat(b.element(x));
  x = b.castTo(x, type);
  if (!b.isNone(1)) {
    // The bounds round to the dtype, as eager's do.
    double eps = b.floating(1);
    x = clamp(b, x, b.constant(type, eps), b.constant(type, 1 - eps));
  }
  x = b.castTo(x, b.f32());
  b.result(b.unary(UnaryFunction::Log, b.div(x, b.sub(1.0, x))));
}

/// -x log(x) for x > 0, 0 at 0, -inf below.
void entropy(NodeImporter &b) {
  Value x = b.castTo(b.tensor(0), b.f32());
  Value inside = b.unary(UnaryFunction::Neg, b.mul(x, b.unary(UnaryFunction::Log, x)));
  Value other = b.select(b.compare(Predicate::Eq, x, 0.0), 0.0, b.constant(b.f32(), -kInfinity));
  b.result(b.select(b.logicalOr(b.compare(Predicate::Gt, x, 0.0), b.isNan(x)), inside, other));
}

//===--------------------------------------------------------------------------------------------------------------===//
// Two operands
//===--------------------------------------------------------------------------------------------------------------===//

void add(NodeImporter &b) { b.result(scaledAdd(b, b.operand(0), b.operand(1), b.number(2), /*subtract=*/false)); }

/// Difference of the operands at two argument positions; of a bool there is none.
template <unsigned lhs, unsigned rhs> void subtract(NodeImporter &b) {
  for (unsigned i : {lhs, rhs})
    if (Operand operand = b.operand(i);
        operand.isTensor() ? b.isBool(b.element(operand.tensor)) : operand.number.kind == Number::Kind::Boolean)
      return b.error("unsupported dtype bool; use logical_not or bitwise_xor, or convert to another dtype first");
  b.result(scaledAdd(b, b.operand(lhs), b.operand(rhs), b.number(2), /*subtract=*/true));
}

void multiply(NodeImporter &b) {
  Operand x = b.operand(0), y = b.operand(1);
  Type type = b.promote({x, y});
  if (b.isBool(type))
    return b.result(b.logicalAnd(b.operandAs(x, type), b.operandAs(y, type)));
  b.result(arithmetic(b, BinaryFunction::Mul, x, y, type));
}

void trueDivide(NodeImporter &b) {
  Operand x = b.operand(0), y = b.operand(1);
  b.result(arithmetic(b, BinaryFunction::Div, x, y, b.promoteToFloat(b.promote({x, y}))));
}

void roundedDivide(NodeImporter &b, BinaryFunction function) {
  Operand x = b.operand(0), y = b.operand(1);
  Type type = b.promote({x, y});
  if (b.isBool(type))
    return b.error("unsupported dtype bool; convert to an integer or float dtype first");
  if (b.isInteger(type) || function == BinaryFunction::Remainder || function == BinaryFunction::Fmod)
    return b.result(b.binary(function, b.operandAs(x, type), b.operandAs(y, type)));
  if (function == BinaryFunction::FloorDiv)
    return b.result(arithmetic(b, function, x, y, type));
  // By a number or a tensor of rank 0 in f32; by a tensor, the quotient rounds to the dtype before it is truncated.
  if (!y.isTensor() || b.rank(y.tensor) == 0)
    return b.result(b.binary(function, b.operandAs(x, b.f32()), b.operandAs(y, b.f32())));
  b.result(b.unary(UnaryFunction::Trunc, b.binary(BinaryFunction::Div, b.operandAs(x, type), b.operandAs(y, type))));
}

void divideMode(NodeImporter &b) {
  if (b.isNone(2))
    return trueDivide(b);
  StringRef mode = b.text(2);
  if (mode != "floor" && mode != "trunc")
    return b.error("expected rounding_mode None, 'floor' or 'trunc' but got '" + mode + "'");
  roundedDivide(b, mode == "floor" ? BinaryFunction::FloorDiv : BinaryFunction::TruncDiv);
}

template <BinaryFunction function> void division(NodeImporter &b) { roundedDivide(b, function); }

/// Functions on the promoted type; a bool form where there is one.
template <BinaryFunction function, BinaryFunction ofBool = function> void promoted(NodeImporter &b) {
  Operand x = b.operand(0), y = b.operand(1);
  Type type = b.promote({x, y});
  b.result(b.binary(b.isBool(type) ? ofBool : function, b.operandAs(x, type), b.operandAs(y, type)));
}

/// Functions on the promoted type that PyTorch has for floats only.
template <BinaryFunction function> void promotedFloat(NodeImporter &b) {
  if (b.requireFloat(b.promote({b.operand(0), b.operand(1)})))
    promoted<function>(b);
}

/// Float functions: integers become f32 first.
template <BinaryFunction function> void floatBinary(NodeImporter &b) {
  Operand x = b.operand(0), y = b.operand(1);
  Type type = b.promoteToFloat(b.promote({x, y}));
  b.result(b.binary(function, b.operandAs(x, type), b.operandAs(y, type)));
}

void ldexp(NodeImporter &b) {
  Value x = b.castTo(b.tensor(0), b.f32()), exponent = b.castTo(b.tensor(1), b.f32());
  b.result(b.mul(x, b.unary(UnaryFunction::Exp2, exponent)));
}

void shiftRight(NodeImporter &b) {
  Operand x = b.operand(0), y = b.operand(1);
  Type type = b.promote({x, y});
  bool isUnsigned = type.isUnsignedInteger() || b.isBool(type);
  b.result(b.binary(isUnsigned ? BinaryFunction::ShiftRightLogical : BinaryFunction::ShiftRightArithmetic,
                    b.operandAs(x, type), b.operandAs(y, type)));
}

void powTensors(NodeImporter &b) {
  Operand x = b.operand(0), y = b.operand(1);
  Type type = b.promote({x, y});
  if (b.isBool(type))
    return b.error("unsupported dtype bool; convert to an integer or float dtype first");
  if (!y.isTensor() && x.isTensor())
    return b.result(power(b, b.castTo(x.tensor, type), y.number));
  b.result(arithmetic(b, BinaryFunction::Pow, x, y, type));
}

template <Predicate predicate> void comparison(NodeImporter &b) {
  Operand x = b.operand(0), y = b.operand(1);
  Type type = b.promote({x, y});
  b.result(b.compare(predicate, b.operandAs(x, type), b.operandAs(y, type)));
}

template <BinaryFunction function> void logical(NodeImporter &b) {
  b.result(b.binary(function, b.truth(b.tensor(0)), b.truth(b.tensor(1))));
}

void heaviside(NodeImporter &b) {
  Value x = b.tensor(0);
  Value positive = b.compare(Predicate::Gt, x, 0.0);
  Value one = b.constant(b.element(x), 1), zero = b.constant(b.element(x), 0);
  Value values = b.castTo(b.tensor(1), b.element(x));
  b.result(b.select(b.compare(Predicate::Eq, x, 0.0), values, b.select(positive, one, zero)));
}

//===--------------------------------------------------------------------------------------------------------------===//
// Three operands and conversions
//===--------------------------------------------------------------------------------------------------------------===//

/// clamp, clamp_min, clamp_max and their tensor forms: bounds at argument positions, -1 for none.
template <int lower, int upper> void clampTo(NodeImporter &b) {
  SmallVector<Operand> operands = {b.operand(0)};
  for (int i : {lower, upper})
    if (i >= 0 && !b.isNone(i))
      operands.push_back(b.operand(i));
  Type type = b.promote(operands);
  if (operands.size() == 1)
    return b.error("expected at least one of min and max");
  auto bound = [&](int i) -> std::optional<Value> {
    return i < 0 || b.isNone(i) ? std::nullopt : std::optional<Value>(b.operandAs(i, type));
  };
  b.result(clamp(b, b.operandAs(operands[0], type), bound(lower), bound(upper)));
}

void where(NodeImporter &b) {
  Operand x = b.operand(1), y = b.operand(2);
  Type type = b.promote({x, y});
  b.result(b.select(b.truth(b.tensor(0)), b.operandAs(x, type), b.operandAs(y, type)));
}

void maskedFill(NodeImporter &b) {
  Value x = b.tensor(0);
  b.result(b.select(b.truth(b.tensor(1)), b.operandAs(2, b.element(x)), x));
}

void lerp(NodeImporter &b) {
  Value start = b.castTo(b.tensor(0), b.f32()), end = b.castTo(b.tensor(1), b.f32());
  Value weight = b.operandAs(2, b.f32()), difference = b.sub(end, start);
  // Exact at both ends.
  Value low = b.add(start, b.mul(weight, difference));
  Value high = b.sub(end, b.mul(difference, b.sub(1.0, weight)));
  b.result(b.select(b.compare(Predicate::Lt, b.unary(UnaryFunction::Abs, weight), 0.5), low, high));
}

/// a * b + c, rounded in between as the CPU rounds without the instruction.
void multiplyAdd(NodeImporter &b) {
  Type type = b.computeType(b.resultElement(0));
  b.result(b.add(b.mul(b.operandAs(0, type), b.operandAs(1, type)), b.operandAs(2, type)));
}

template <BinaryFunction function> void addScaled(NodeImporter &b) {
  Operand x = b.operand(0), y = b.operand(1), z = b.operand(2);
  Type type = b.computeType(b.promote({x, y, z}));
  if (function == BinaryFunction::Div && !b.requireFloat(type))
    return;
  Value scaled = b.operandAs(y, type);
  if (Number scale = b.number(3); !scale.is(1))
    scaled = b.mul(scaled, b.numberAs(scale, type));
  b.result(b.add(b.operandAs(x, type), b.binary(function, scaled, b.operandAs(z, type))));
}

/// Conversions: the result's recorded dtype says to what.
void convert(NodeImporter &b) {
  Operand x = b.operand(0);
  b.result(x.isTensor() ? x.tensor : b.numberAs(x.number, b.resultElement(0)));
}

/// copy(self, src): the source in the destination's dtype and shape.
void copyInto(NodeImporter &b) {
  Value source = b.operandAs(1, b.element(b.tensor(0)));
  b.result(b.broadcastTo(source, b.shape(b.tensor(0))));
}

constexpr Registration kImporters[] = {
    {"aten.abs.default", "T", absolute},
    {"aten.neg.default", "T", anyUnary<UnaryFunction::Neg>},
    {"aten.sign.default", "T", sign},
    {"aten.sgn.default", "T", sign},
    {"aten.square.default", "T", anyUnary<UnaryFunction::Square>},
    {"aten.positive.default", "T", identity},
    {"aten.sqrt.default", "T", floatUnary<UnaryFunction::Sqrt>},
    {"aten.rsqrt.default", "T", floatUnary<UnaryFunction::Rsqrt>},
    {"aten.reciprocal.default", "T", floatUnary<UnaryFunction::Reciprocal>},
    {"aten.exp.default", "T", floatUnary<UnaryFunction::Exp>},
    {"aten.exp2.default", "T", floatUnary<UnaryFunction::Exp2>},
    {"aten.expm1.default", "T", floatUnary<UnaryFunction::Expm1>},
    {"aten.log.default", "T", floatUnary<UnaryFunction::Log>},
    {"aten.log2.default", "T", floatUnary<UnaryFunction::Log2>},
    {"aten.log10.default", "T", floatUnary<UnaryFunction::Log10>},
    {"aten.log1p.default", "T", floatUnary<UnaryFunction::Log1p>},
    {"aten.sin.default", "T", floatUnary<UnaryFunction::Sin>},
    {"aten.cos.default", "T", floatUnary<UnaryFunction::Cos>},
    {"aten.tan.default", "T", floatUnary<UnaryFunction::Tan>},
    {"aten.asin.default", "T", floatUnary<UnaryFunction::Asin>},
    {"aten.acos.default", "T", floatUnary<UnaryFunction::Acos>},
    {"aten.atan.default", "T", floatUnary<UnaryFunction::Atan>},
    {"aten.sinh.default", "T", floatUnary<UnaryFunction::Sinh>},
    {"aten.cosh.default", "T", floatUnary<UnaryFunction::Cosh>},
    {"aten.asinh.default", "T", floatUnary<UnaryFunction::Asinh>},
    {"aten.acosh.default", "T", floatUnary<UnaryFunction::Acosh>},
    {"aten.atanh.default", "T", floatUnary<UnaryFunction::Atanh>},
    {"aten.erf.default", "T", floatUnary<UnaryFunction::Erf>},
    {"aten.erfc.default", "T", floatUnary<UnaryFunction::Erfc>},
    {"aten.erfinv.default", "T", floatUnary<UnaryFunction::Erfinv>},
    {"aten.lgamma.default", "T", floatUnary<UnaryFunction::Lgamma>},
    {"aten.digamma.default", "T", floatUnary<UnaryFunction::Digamma>},
    {"aten.sinc.default", "T", floatUnary<UnaryFunction::Sinc>},
    {"aten.i0.default", "T", floatUnary<UnaryFunction::I0>},
    {"aten.special_i1.default", "T", floatUnary<UnaryFunction::I1>},
    {"aten.special_ndtri.default", "T", floatUnary<UnaryFunction::Ndtri>},
    {"aten.special_log_ndtr.default", "T", floatUnary<UnaryFunction::LogNdtr>},
    {"aten.special_entr.default", "T", entropy},
    {"aten.logit.default", "Tf", logit},
    {"aten.angle.default", "T", angle},
    {"aten.deg2rad.default", "T", scaleByPi<1, 180>},
    {"aten.rad2deg.default", "T", scaleByPi<180, 1>},
    {"aten.floor.default", "T", rounding<UnaryFunction::Floor>},
    {"aten.ceil.default", "T", rounding<UnaryFunction::Ceil>},
    {"aten.round.default", "T", rounding<UnaryFunction::Round>},
    {"aten.round.decimals", "TI", roundDecimals},
    {"aten.trunc.default", "T", rounding<UnaryFunction::Trunc>},
    {"aten.frac.default", "R", anyUnary<UnaryFunction::Frac>},
    {"aten.nan_to_num.default", "Tfff", nanToNum},
    {"aten.isnan.default", "T", classification<UnaryFunction::Isnan>},
    {"aten.isinf.default", "T", classification<UnaryFunction::Isinf>},
    {"aten.isfinite.default", "T", classification<UnaryFunction::Isfinite, true>},
    {"aten.isposinf.default", "T", isOneInfinity<false>},
    {"aten.isneginf.default", "T", isOneInfinity<true>},
    {"aten.signbit.default", "T", signbit},
    {"aten.logical_not.default", "T", logicalNot},
    {"aten.bitwise_not.default", "T", anyUnary<UnaryFunction::Not>},

    {"aten.add.Tensor", "TTS", add},
    {"aten.add.Scalar", "TSS", add},
    {"aten.sub.Tensor", "TTS", subtract<0, 1>},
    {"aten.sub.Scalar", "TSS", subtract<0, 1>},
    {"aten.rsub.Tensor", "TTS", subtract<1, 0>},
    {"aten.rsub.Scalar", "TSS", subtract<1, 0>},
    {"aten.mul.Tensor", "TT", multiply},
    {"aten.mul.Scalar", "TS", multiply},
    {"aten.div.Tensor", "TT", trueDivide},
    {"aten.div.Scalar", "TS", trueDivide},
    {"aten.div.Tensor_mode", "TTn", divideMode},
    {"aten.div.Scalar_mode", "TSn", divideMode},
    {"aten.true_divide.Tensor", "TT", trueDivide},
    {"aten.floor_divide.default", "TT", division<BinaryFunction::FloorDiv>},
    {"aten.floor_divide.Scalar", "TS", division<BinaryFunction::FloorDiv>},
    {"aten.remainder.Tensor", "TT", division<BinaryFunction::Remainder>},
    {"aten.remainder.Scalar", "TS", division<BinaryFunction::Remainder>},
    {"aten.remainder.Scalar_Tensor", "ST", division<BinaryFunction::Remainder>},
    {"aten.fmod.Tensor", "TT", division<BinaryFunction::Fmod>},
    {"aten.fmod.Scalar", "TS", division<BinaryFunction::Fmod>},
    {"aten.pow.Tensor_Tensor", "TT", powTensors},
    {"aten.pow.Tensor_Scalar", "TS", powTensors},
    {"aten.pow.Scalar", "ST", powTensors},
    {"aten.maximum.default", "TT", promoted<BinaryFunction::Max, BinaryFunction::Or>},
    {"aten.minimum.default", "TT", promoted<BinaryFunction::Min, BinaryFunction::And>},
    {"aten.fmax.default", "TT", promoted<BinaryFunction::Fmax, BinaryFunction::Or>},
    {"aten.fmin.default", "TT", promoted<BinaryFunction::Fmin, BinaryFunction::And>},
    {"aten.atan2.default", "TT", floatBinary<BinaryFunction::Atan2>},
    {"aten.hypot.default", "TT", promotedFloat<BinaryFunction::Hypot>},
    {"aten.copysign.Tensor", "TT", floatBinary<BinaryFunction::Copysign>},
    {"aten.copysign.Scalar", "TS", floatBinary<BinaryFunction::Copysign>},
    {"aten.nextafter.default", "TT", promotedFloat<BinaryFunction::Nextafter>},
    {"aten.xlogy.Tensor", "TT", floatBinary<BinaryFunction::Xlogy>},
    {"aten.xlogy.Scalar_Self", "ST", floatBinary<BinaryFunction::Xlogy>},
    {"aten.xlogy.Scalar_Other", "TS", floatBinary<BinaryFunction::Xlogy>},
    {"aten.special_xlog1py.default", "TT", floatBinary<BinaryFunction::Xlog1py>},
    {"aten.special_xlog1py.self_scalar", "ST", floatBinary<BinaryFunction::Xlog1py>},
    {"aten.special_xlog1py.other_scalar", "TS", floatBinary<BinaryFunction::Xlog1py>},
    {"aten.logaddexp.default", "TT", promotedFloat<BinaryFunction::Logaddexp>},
    {"aten.logaddexp2.default", "TT", promotedFloat<BinaryFunction::Logaddexp2>},
    {"aten.ldexp.Tensor", "TT", ldexp},
    {"aten.heaviside.default", "TT", heaviside},
    {"aten.bitwise_and.Tensor", "TT", promoted<BinaryFunction::And>},
    {"aten.bitwise_and.Scalar", "TS", promoted<BinaryFunction::And>},
    {"aten.bitwise_and.Scalar_Tensor", "ST", promoted<BinaryFunction::And>},
    {"aten.bitwise_or.Tensor", "TT", promoted<BinaryFunction::Or>},
    {"aten.bitwise_or.Scalar", "TS", promoted<BinaryFunction::Or>},
    {"aten.bitwise_or.Scalar_Tensor", "ST", promoted<BinaryFunction::Or>},
    {"aten.bitwise_xor.Tensor", "TT", promoted<BinaryFunction::Xor>},
    {"aten.bitwise_xor.Scalar", "TS", promoted<BinaryFunction::Xor>},
    {"aten.bitwise_xor.Scalar_Tensor", "ST", promoted<BinaryFunction::Xor>},
    {"aten.bitwise_left_shift.Tensor", "TT", promoted<BinaryFunction::ShiftLeft>},
    {"aten.bitwise_left_shift.Tensor_Scalar", "TS", promoted<BinaryFunction::ShiftLeft>},
    {"aten.bitwise_left_shift.Scalar_Tensor", "ST", promoted<BinaryFunction::ShiftLeft>},
    {"aten.__lshift__.Scalar", "TS", promoted<BinaryFunction::ShiftLeft>},
    {"aten.__lshift__.Tensor", "TT", promoted<BinaryFunction::ShiftLeft>},
    {"aten.bitwise_right_shift.Tensor", "TT", shiftRight},
    {"aten.bitwise_right_shift.Tensor_Scalar", "TS", shiftRight},
    {"aten.bitwise_right_shift.Scalar_Tensor", "ST", shiftRight},
    {"aten.__rshift__.Scalar", "TS", shiftRight},
    {"aten.__rshift__.Tensor", "TT", shiftRight},
    {"aten.logical_and.default", "TT", logical<BinaryFunction::And>},
    {"aten.logical_or.default", "TT", logical<BinaryFunction::Or>},
    {"aten.logical_xor.default", "TT", logical<BinaryFunction::Xor>},
    {"aten.eq.Tensor", "TT", comparison<Predicate::Eq>},
    {"aten.eq.Scalar", "TS", comparison<Predicate::Eq>},
    {"aten.ne.Tensor", "TT", comparison<Predicate::Ne>},
    {"aten.ne.Scalar", "TS", comparison<Predicate::Ne>},
    {"aten.lt.Tensor", "TT", comparison<Predicate::Lt>},
    {"aten.lt.Scalar", "TS", comparison<Predicate::Lt>},
    {"aten.le.Tensor", "TT", comparison<Predicate::Le>},
    {"aten.le.Scalar", "TS", comparison<Predicate::Le>},
    {"aten.gt.Tensor", "TT", comparison<Predicate::Gt>},
    {"aten.gt.Scalar", "TS", comparison<Predicate::Gt>},
    {"aten.ge.Tensor", "TT", comparison<Predicate::Ge>},
    {"aten.ge.Scalar", "TS", comparison<Predicate::Ge>},

    {"aten.clamp.default", "Tss", clampTo<1, 2>},
    {"aten.clamp.Tensor", "Ttt", clampTo<1, 2>},
    {"aten.clamp_min.default", "TS", clampTo<1, -1>},
    {"aten.clamp_min.Tensor", "TT", clampTo<1, -1>},
    {"aten.clamp_max.default", "TS", clampTo<-1, 1>},
    {"aten.clamp_max.Tensor", "TT", clampTo<-1, 1>},
    {"aten.where.self", "TTT", where},
    {"aten.where.ScalarSelf", "TST", where},
    {"aten.where.ScalarOther", "TTS", where},
    {"aten.where.Scalar", "TSS", where},
    {"aten.masked_fill.Scalar", "TTS", maskedFill},
    {"aten.masked_fill.Tensor", "TTT", maskedFill},
    {"aten.lerp.Scalar", "RRS", lerp},
    {"aten.lerp.Tensor", "RRR", lerp},
    {"aten.addcmul.default", "TTTS", addScaled<BinaryFunction::Mul>},
    {"aten.addcdiv.default", "TTTS", addScaled<BinaryFunction::Div>},

    {"aten._to_copy.default", "Td__bB_", convert},
    {"aten.to.dtype", "TDBB_", convert},
    {"aten.to.dtype_layout", "Td__bBB_", convert},
    {"aten.type_as.default", "TT", convert},
    {"prims.convert_element_type.default", "TD", convert},
    {"prims.fma.default", "TTT", multiplyAdd},
    {"aten.clone.default", "T_", identity},
    {"aten.contiguous.default", "T_", identity},
    {"aten.lift.default", "T", identity},
    {"aten.lift_fresh_copy.default", "T", identity},
    {"aten.copy.default", "TTB", copyInto},
};

} // namespace

ArrayRef<Registration> mlir::neuron::elementwiseImporters() { return kImporters; }

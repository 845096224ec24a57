// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementwise operations on floats. Arithmetic is f32 inside every instruction; keeping an intermediate in f32 instead
// of rounding it to a 16-bit graph type is allowed (design 3.4).

#include "passes/Select/KernelSelector.h"

using namespace mlir;
using namespace mlir::neuron;
namespace isa = ::neuroncore::isa;

namespace {

/// Functions of the scalar engine that are valid for every input.
std::optional<isa::ActivationFunction> activationOf(UnaryFunction function) {
  using F = isa::ActivationFunction;
  switch (function) {
  case UnaryFunction::Square:
    return F::Square;
  case UnaryFunction::Exp:
    return F::Exp;
  case UnaryFunction::Sigmoid:
    return F::Sigmoid;
  case UnaryFunction::Tanh:
    return F::Tanh;
  case UnaryFunction::Silu:
    return F::Silu;
  case UnaryFunction::Gelu:
    return F::Gelu;
  case UnaryFunction::GeluTanh:
    return F::GeluApprxTanh;
  case UnaryFunction::Erf:
    return F::Erf;
  case UnaryFunction::Softplus:
    return F::Softplus;
  case UnaryFunction::Mish:
    return F::Mish;
  default:
    return std::nullopt;
  }
}

std::optional<isa::FloatUnaryFunction> routineOf(UnaryFunction function) {
  using F = isa::FloatUnaryFunction;
  switch (function) {
  case UnaryFunction::Sign:
    return F::Sign;
  case UnaryFunction::Sqrt:
    return F::Sqrt;
  case UnaryFunction::Rsqrt:
    return F::Rsqrt;
  case UnaryFunction::Exp2:
    return F::Exp2;
  case UnaryFunction::Expm1:
    return F::Expm1;
  case UnaryFunction::Log:
    return F::Log;
  case UnaryFunction::Log2:
    return F::Log2;
  case UnaryFunction::Log10:
    return F::Log10;
  case UnaryFunction::Log1p:
    return F::Log1p;
  case UnaryFunction::Sin:
    return F::Sin;
  case UnaryFunction::Cos:
    return F::Cos;
  case UnaryFunction::Tan:
    return F::Tan;
  case UnaryFunction::Asin:
    return F::Asin;
  case UnaryFunction::Acos:
    return F::Acos;
  case UnaryFunction::Atan:
    return F::Atan;
  case UnaryFunction::Sinh:
    return F::Sinh;
  case UnaryFunction::Cosh:
    return F::Cosh;
  case UnaryFunction::Asinh:
    return F::Asinh;
  case UnaryFunction::Acosh:
    return F::Acosh;
  case UnaryFunction::Atanh:
    return F::Atanh;
  case UnaryFunction::Erfc:
    return F::Erfc;
  case UnaryFunction::Erfinv:
    return F::Erfinv;
  case UnaryFunction::Floor:
    return F::Floor;
  case UnaryFunction::Ceil:
    return F::Ceil;
  case UnaryFunction::Round:
    return F::Round;
  case UnaryFunction::Trunc:
    return F::Trunc;
  case UnaryFunction::Frac:
    return F::Frac;
  case UnaryFunction::Lgamma:
    return F::Lgamma;
  case UnaryFunction::Digamma:
    return F::Digamma;
  case UnaryFunction::Isinf:
    return F::Isinf;
  case UnaryFunction::Isfinite:
    return F::Isfinite;
  case UnaryFunction::Signbit:
    return F::Signbit;
  case UnaryFunction::Sinc:
    return F::Sinc;
  case UnaryFunction::I0:
    return F::I0;
  case UnaryFunction::I1:
    return F::I1;
  case UnaryFunction::Ndtri:
    return F::Ndtri;
  case UnaryFunction::LogNdtr:
    return F::LogNdtr;
  default:
    return std::nullopt;
  }
}

std::optional<isa::FloatBinaryFunction> routineOf(BinaryFunction function) {
  using F = isa::FloatBinaryFunction;
  switch (function) {
  case BinaryFunction::FloorDiv:
    return F::FloorDivide;
  case BinaryFunction::TruncDiv:
    return F::TruncDivide;
  case BinaryFunction::Remainder:
    return F::Remainder;
  case BinaryFunction::Fmod:
    return F::Fmod;
  case BinaryFunction::Pow:
    return F::Power;
  case BinaryFunction::Fmax:
    return F::Fmax;
  case BinaryFunction::Fmin:
    return F::Fmin;
  case BinaryFunction::Atan2:
    return F::Atan2;
  case BinaryFunction::Hypot:
    return F::Hypot;
  case BinaryFunction::Copysign:
    return F::Copysign;
  case BinaryFunction::Nextafter:
    return F::Nextafter;
  case BinaryFunction::Xlogy:
    return F::Xlogy;
  case BinaryFunction::Xlog1py:
    return F::Xlog1py;
  case BinaryFunction::Logaddexp:
    return F::Logaddexp;
  case BinaryFunction::Logaddexp2:
    return F::Logaddexp2;
  case BinaryFunction::Ldexp:
    return F::Ldexp;
  default:
    return std::nullopt;
  }
}

isa::AluOp aluOfPredicate(ComparePredicate predicate) {
  switch (predicate) {
  case ComparePredicate::Eq:
    return isa::AluOp::Equal;
  case ComparePredicate::Ne:
    return isa::AluOp::NotEqual;
  case ComparePredicate::Lt:
    return isa::AluOp::Less;
  case ComparePredicate::Le:
    return isa::AluOp::LessEqual;
  case ComparePredicate::Gt:
    return isa::AluOp::Greater;
  case ComparePredicate::Ge:
    return isa::AluOp::GreaterEqual;
  }
  llvm_unreachable("predicate outside its enumeration");
}

} // namespace

std::optional<isa::AluOp> KernelSelector::aluOf(BinaryFunction function) const {
  switch (function) {
  case BinaryFunction::Add:
    return AluOp::Add;
  case BinaryFunction::Sub:
    return AluOp::Subtract;
  case BinaryFunction::Mul:
    return AluOp::Multiply;
  case BinaryFunction::Div:
    return AluOp::Divide;
  case BinaryFunction::Max:
    return AluOp::Maximum;
  case BinaryFunction::Min:
    return AluOp::Minimum;
  default:
    return std::nullopt;
  }
}

//===--------------------------------------------------------------------------------------------------------------===//
// Deferral
//===--------------------------------------------------------------------------------------------------------------===//

Operation *KernelSelector::onlyPendingUser(Value result) const {
  Operation *only = nullptr;
  for (OpOperand &use : result.getUses()) {
    if (done.contains(use.getOwner()))
      continue;
    if (only)
      return nullptr;
    only = use.getOwner();
  }
  return only;
}

/// A float binary with a scalar operand whose only user, in the same block, is an elementwise operation or a reduction.
bool KernelSelector::canDefer(Operation *op) const {
  Operation *user = op->getNumResults() == 1 ? onlyPendingUser(op->getResult(0)) : nullptr;
  if (!user || user->getBlock() != op->getBlock())
    return false;
  auto binary = dyn_cast<BinaryOp>(op);
  if (!binary || !isa<FloatType>(typeOf(binary.getLhs()).getElementType()) || !aluOf(binary.getFunction()))
    return false;
  bool lhsScalar = isScalarLike(binary.getLhs()), rhsScalar = isScalarLike(binary.getRhs());
  if (!lhsScalar && !rhsScalar)
    return false;
  // The result has the shape of the operand that varies.
  Value varying = rhsScalar ? binary.getLhs() : binary.getRhs();
  if (typeOf(varying).getShape() != typeOf(op->getResult(0)).getShape())
    return false;
  if (!isa<UnaryOp, BinaryOp, CompareOp>(user))
    return false;
  // The user works on floats and has the same shape: a value that is repeated is computed once.
  return isa<FloatType>(typeOf(user->getOperand(0)).getElementType()) &&
         typeOf(user->getResult(0)).getShape() == typeOf(op->getResult(0)).getShape();
}

FailureOr<std::optional<KernelSelector::Step>> KernelSelector::asStep(Operation *op, Value &inner) {
  auto binary = dyn_cast_or_null<BinaryOp>(op);
  if (!binary || !deferred.contains(op))
    return std::optional<Step>();
  Step step;
  step.op = *aluOf(binary.getFunction());
  bool scalarOnRight =
      isScalarLike(binary.getRhs()) && typeOf(binary.getLhs()).getShape() == typeOf(binary.getResult()).getShape();
  Value scalarValue = scalarOnRight ? binary.getRhs() : binary.getLhs();
  inner = scalarOnRight ? binary.getLhs() : binary.getRhs();
  step.reverse = !scalarOnRight;
  FailureOr<std::optional<ScalarRef>> ref = scalar(scalarValue);
  if (failed(ref))
    return failure();
  step.scalar = **ref;
  if (step.reverse &&
      (step.op == AluOp::Add || step.op == AluOp::Multiply || step.op == AluOp::Maximum || step.op == AluOp::Minimum))
    step.reverse = false;
  return std::optional<Step>(step);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Facts about values
//===--------------------------------------------------------------------------------------------------------------===//

/// Proves value >= 0 or NaN, never -0-dependent: for functions that are only defined there.
bool KernelSelector::isNonNegative(Value value, int depth) const {
  if (depth > 8)
    return false;
  if (std::optional<double> splat = getSplatConstant(value))
    return *splat >= 0 && !std::signbit(*splat);
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto unary = dyn_cast<UnaryOp>(op)) {
    switch (unary.getFunction()) {
    case UnaryFunction::Square:
    case UnaryFunction::Abs:
    case UnaryFunction::Exp:
    case UnaryFunction::Sigmoid:
      return true;
    default:
      return false;
    }
  }
  if (auto binary = dyn_cast<BinaryOp>(op)) {
    bool lhs = isNonNegative(binary.getLhs(), depth + 1), rhs = isNonNegative(binary.getRhs(), depth + 1);
    switch (binary.getFunction()) {
    case BinaryFunction::Add:
    case BinaryFunction::Div:
      return lhs && rhs;
    case BinaryFunction::Mul:
      return (lhs && rhs) || binary.getLhs() == binary.getRhs();
    case BinaryFunction::Max:
      return lhs || rhs;
    default:
      return false;
    }
  }
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return (reduce.getKind() == ReduceKind::Sum || reduce.getKind() == ReduceKind::Max ||
            reduce.getKind() == ReduceKind::Min) &&
           isNonNegative(reduce.getOperand(), depth + 1);
  if (auto accumulate = dyn_cast<AccumulateOp>(op))
    return accumulate.getKind() == ReduceKind::Sum && isNonNegative(accumulate.getValue(), depth + 1);
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    unsigned index = cast<OpResult>(value).getResultNumber();
    auto accumulate = loop.getBody()->getTerminator()->getOperand(index).getDefiningOp<AccumulateOp>();
    return accumulate && accumulate.getKind() == ReduceKind::Sum &&
           accumulate.getAccumulator() == loop.getRegionIterArg(index) &&
           isNonNegative(loop.getInitArgs()[index], depth + 1) && isNonNegative(accumulate.getValue(), depth + 1);
  }
  if (isa<CastOp>(op) || isView(op))
    return isa<FloatType>(typeOf(op->getOperand(0)).getElementType()) && isNonNegative(op->getOperand(0), depth + 1);
  return false;
}

/// A sum over all free dimensions of `value` in the same block, which the instruction that computes `value` can
/// produce. A bfloat16 value that is only summed is added up before it is rounded (its range is that of f32, so nothing
/// overflows that eager would not): the sum is nearer to the exact one than eager's.
ReduceOp KernelSelector::rowSumUser(Value value) const {
  if (typeOf(value).getElementType().isBF16())
    for (Operation *user : value.getUsers())
      if (auto widened = dyn_cast<CastOp>(user);
          widened && widened.getResult().hasOneUse() && widened->getBlock() == value.getParentBlock())
        value = widened.getResult();
  for (Operation *user : value.getUsers()) {
    auto reduce = dyn_cast<ReduceOp>(user);
    if (!reduce || reduce.getKind() != ReduceKind::Sum || reduce->getBlock() != value.getParentBlock() ||
        !typeOf(reduce.getResult()).getElementType().isF32() || !isColumnShape(reduce.getResult()) ||
        isColumnShape(value) || llvm::is_contained(reduce.getDims(), 0) || findRowMoments(reduce))
      continue;
    return reduce;
  }
  return {};
}

void KernelSelector::defineRowSum(ReduceOp rowSum, Value summed, const TileRef &sum) {
  define(rowSum.getResult(), sum);
  done.insert(rowSum);
  if (rowSum.getOperand() != summed)
    done.insert(rowSum.getOperand().getDefiningOp());
}

FailureOr<ScalarRef> KernelSelector::negated(Location loc, const ScalarRef &scalar) {
  if (scalar.constant)
    return ScalarRef{-*scalar.constant, {}};
  TileRef &column = negatedColumns[{scalar.vector.buffer, scalar.vector.byteOffset}];
  if (column && column.partitions >= scalar.vector.partitions) {
    TileRef known = column;
    known.partitions = scalar.vector.partitions;
    return ScalarRef{std::nullopt, known};
  }
  column = allocate(scalar.vector.partitions, scalar.vector.counts, builder.getF32Type());
  writer.tensorScalar(loc, column, scalar.vector, {AluOp::Multiply, {-1.0f, {}}});
  return ScalarRef{std::nullopt, column};
}

/// value = inner * scale + bias, looking through deferred operations.
FailureOr<TileRef> KernelSelector::peelAffine(Value value, ScalarRef &scale, ScalarRef &bias) {
  scale.constant = 1.0f;
  bias.constant = -0.0f; // adding it keeps the sign of a zero
  Value inner = value;
  Operation *outer = value.getDefiningOp();
  Value next;
  auto peek = [&](Operation *op) { return op && deferred.contains(op) ? dyn_cast<BinaryOp>(op) : BinaryOp(); };
  if (BinaryOp binary = peek(outer);
      binary && (binary.getFunction() == BinaryFunction::Add || binary.getFunction() == BinaryFunction::Sub)) {
    FailureOr<std::optional<Step>> step = asStep(binary, next);
    if (failed(step))
      return failure();
    deferred.erase(outer);
    if (binary.getFunction() == BinaryFunction::Add) {
      bias = (*step)->scalar;
    } else if (!(*step)->reverse) {
      FailureOr<ScalarRef> minus = negated(binary.getLoc(), (*step)->scalar);
      if (failed(minus))
        return failure();
      bias = *minus;
    } else {
      // scalar - x: the factor is taken, so a product inside stays separate.
      bias = (*step)->scalar;
      scale.constant = -1.0f;
      return tile(next);
    }
    inner = next;
    outer = inner.getDefiningOp();
  }
  if (BinaryOp binary = peek(outer); binary && binary.getFunction() == BinaryFunction::Mul) {
    FailureOr<std::optional<Step>> step = asStep(binary, next);
    if (failed(step))
      return failure();
    deferred.erase(outer);
    scale = (*step)->scalar;
    if (!scale.constant)
      scale.constant.reset();
    inner = next;
  }
  return tile(inner);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Unary
//===--------------------------------------------------------------------------------------------------------------===//

LogicalResult KernelSelector::floatRoutine(Operation *op, isa::Routine routine, uint8_t function) {
  Value result = op->getResult(0);
  int64_t partitions = typeOf(result).getDimSize(0);
  SmallVector<TileRef> sources;
  for (Value operand : op->getOperands()) {
    FailureOr<TileRef> ref = exactTile(operand);
    if (failed(ref))
      return failure();
    TileRef source = inSbuf(op->getLoc(), *ref);
    source.partitions = partitions;
    sources.push_back(source);
  }
  Value stored = storedResult(result);
  TileRef dst = allocateFor(stored);
  dst.counts.assign(freeShape(result).begin(), freeShape(result).end());
  writer.routine(op->getLoc(), routine, function, dst, sources, freeShape(result));
  define(result, dst);
  if (stored != result) {
    define(stored, dst);
    done.insert(stored.getDefiningOp());
  }
  return success();
}

LogicalResult KernelSelector::selectFloatUnary(UnaryOp op) {
  Location loc = op.getLoc();
  Value result = op.getResult();
  UnaryFunction function = op.getFunction();
  Value stored = storedResult(result);
  auto finish = [&](const TileRef &dst) {
    define(result, dst);
    if (stored != result) {
      define(stored, dst);
      done.insert(stored.getDefiningOp());
    }
    return success();
  };
  // Functions of the vector engine's operators.
  auto oneStep = [&](Step first, Step second = Step()) -> LogicalResult {
    Value inner;
    FailureOr<std::optional<Step>> before = asStep(op.getOperand().getDefiningOp(), inner);
    if (failed(before))
      return failure();
    Value source = op.getOperand();
    if (*before && second.op == AluOp::Bypass) {
      deferred.erase(op.getOperand().getDefiningOp());
      source = inner;
      second = first;
      first = **before;
    }
    FailureOr<TileRef> src = tile(source);
    if (failed(src))
      return failure();
    TileRef dst = allocateFor(stored);
    src->partitions = dst.partitions;
    writer.tensorScalar(loc, dst, *src, first, second);
    return finish(dst);
  };
  switch (function) {
  case UnaryFunction::Abs:
    return oneStep({AluOp::Abs, {}});
  case UnaryFunction::Neg:
    return oneStep({AluOp::Multiply, {-1.0f, {}}});
  case UnaryFunction::Relu:
    return oneStep({AluOp::Maximum, {0.0f, {}}});
  case UnaryFunction::Reciprocal:
    return oneStep({AluOp::Divide, {1.0f, {}}, /*reverse=*/true});
  case UnaryFunction::Sqrt:
  case UnaryFunction::Rsqrt:
    // The power operator differs from the square root for negative operands only.
    if (isNonNegative(op.getOperand()))
      return oneStep({AluOp::Power, {function == UnaryFunction::Sqrt ? 0.5f : -0.5f, {}}});
    break;
  case UnaryFunction::Isnan: {
    FailureOr<TileRef> src = tile(op.getOperand());
    if (failed(src))
      return failure();
    TileRef dst = allocateFor(result);
    src->partitions = dst.partitions;
    // One operand at most is read from PSUM.
    if (src->space() == MemorySpace::Psum)
      src = inSbuf(loc, *src);
    writer.tensorTensor(loc, dst, *src, *src, AluOp::NotEqual);
    return finish(dst);
  }
  case UnaryFunction::Copy: {
    FailureOr<TileRef> src = tile(op.getOperand());
    if (failed(src))
      return failure();
    // A copy that only moves data needs no instruction, unless it frees PSUM.
    return finish(inSbuf(loc, *src));
  }
  default:
    break;
  }
  if (std::optional<isa::ActivationFunction> activation = activationOf(function)) {
    ScalarRef scale, bias;
    FailureOr<TileRef> src = peelAffine(op.getOperand(), scale, bias);
    if (failed(src))
      return failure();
    ReduceOp rowSum = rowSumUser(result);
    if (!rowSum && stored != result)
      rowSum = rowSumUser(stored);
    TileRef sum;
    if (rowSum)
      sum = allocateFor(rowSum.getResult());
    bool onlySum = rowSum && result.hasOneUse() && stored == result;
    TileRef dst = onlySum ? scratch(typeOf(result).getDimSize(0), freeShape(result), /*ofScalarEngine=*/true)
                          : allocateFor(stored);
    src->partitions = dst.partitions;
    if (model.generation() < 3 && bias.constant) {
      // Constants as a bias came with the third generation; before it they are a column.
      ScalarRef column{std::nullopt, constantColumn(loc, builder.getF32FloatAttr(*bias.constant))};
      column.vector.partitions = dst.partitions;
      bias = column;
    }
    writer.activation(loc, dst, *src, *activation, scale, bias, sum);
    if (rowSum)
      defineRowSum(rowSum, stored, sum);
    return onlySum ? success() : finish(dst);
  }
  if (std::optional<isa::FloatUnaryFunction> routine = routineOf(function))
    return floatRoutine(op, isa::Routine::FloatUnary, static_cast<uint8_t>(*routine));
  return unsupported(op, "function " + stringifyUnaryFunction(function) + " of floats");
}

//===--------------------------------------------------------------------------------------------------------------===//
// Binary, compare, select, cast
//===--------------------------------------------------------------------------------------------------------------===//

LogicalResult KernelSelector::selectFloatBinary(BinaryOp op) {
  Location loc = op.getLoc();
  Value result = op.getResult();
  std::optional<AluOp> alu = aluOf(op.getFunction());
  // A constant exponent: the vector engine's power operator.
  bool constantPower = op.getFunction() == BinaryFunction::Pow && getSplatConstant(op.getRhs());
  if (constantPower)
    alu = AluOp::Power;
  if (!alu) {
    if (std::optional<isa::FloatBinaryFunction> routine = routineOf(op.getFunction()))
      return floatRoutine(op, isa::Routine::FloatBinary, static_cast<uint8_t>(*routine));
    return unsupported(op, "function " + stringifyBinaryFunction(op.getFunction()) + " of floats");
  }
  Value stored = storedResult(result);
  auto finish = [&](const TileRef &dst) {
    define(result, dst);
    if (stored != result) {
      define(stored, dst);
      done.insert(stored.getDefiningOp());
    }
    return success();
  };
  ArrayRef<int64_t> shape = typeOf(result).getShape();
  int64_t partitions = shape[0];
  auto isVarying = [&](Value value) {
    return typeOf(value).getShape().drop_front() == shape.drop_front() && !getSplatConstant(value);
  };
  // One operand is a scalar: a tensor_scalar, together with a deferred operation before it.
  auto withScalar = [&](Value varying, Value scalarValue, bool reverse) -> LogicalResult {
    FailureOr<std::optional<ScalarRef>> ref = scalar(scalarValue);
    if (failed(ref))
      return failure();
    Step step{*alu, **ref, reverse};
    if (*alu == AluOp::Subtract && !reverse && !step.scalar.constant && !isColumnShape(varying)) {
      // x - s is x + (-s), which the scalar engine can do as well.
      FailureOr<ScalarRef> minus = negated(loc, step.scalar);
      if (failed(minus))
        return failure();
      step = {AluOp::Add, *minus, false};
    }
    if (reverse && (*alu == AluOp::Add || *alu == AluOp::Multiply || *alu == AluOp::Maximum || *alu == AluOp::Minimum))
      step.reverse = false;
    Value inner;
    FailureOr<std::optional<Step>> before = asStep(varying.getDefiningOp(), inner);
    if (failed(before))
      return failure();
    Step first = step, second;
    if (*before) {
      Operation *difference = varying.getDefiningOp();
      deferred.erase(difference);
      varying = inner;
      first = **before;
      second = step;
      if (centredRows.contains(difference) && second.op == AluOp::Multiply) {
        // (x - mean) * s as x * s + (-mean * s), which the scalar engine can do as well.
        TileRef shift = allocate(partitions, {1}, builder.getF32Type());
        writer.tensorScalar(loc, shift, first.scalar.vector, {AluOp::Multiply, second.scalar},
                            {AluOp::Multiply, {-1.0f, {}}});
        first = second;
        second = {AluOp::Add, {std::nullopt, shift}};
      }
    }
    FailureOr<TileRef> src = tile(varying);
    if (failed(src))
      return failure();
    src->partitions = partitions;
    // A sum over the rows of the result comes out of the same instruction.
    ReduceOp rowSum = rowSumUser(result);
    if (rowSum && second.op == AluOp::Bypass) {
      TileRef sum = allocateFor(rowSum.getResult());
      TileRef dst =
          result.hasOneUse() ? scratch(partitions, freeShape(result), /*ofScalarEngine=*/false) : allocateFor(result);
      writer.tensorScalarReduce(loc, dst, *src, first, AluOp::Add, sum);
      defineRowSum(rowSum, result, sum);
      if (!result.hasOneUse())
        define(result, dst);
      return success();
    }
    TileRef dst = allocateFor(stored);
    writer.tensorScalar(loc, dst, *src, first, second);
    return finish(dst);
  };
  if (isScalarLike(op.getRhs()) && (isVarying(op.getLhs()) || isScalarLike(op.getLhs())) &&
      typeOf(op.getLhs()).getDimSize(0) == partitions)
    return withScalar(op.getLhs(), op.getRhs(), false);
  if (isScalarLike(op.getLhs()) && isVarying(op.getRhs()) && typeOf(op.getRhs()).getDimSize(0) == partitions)
    return withScalar(op.getRhs(), op.getLhs(), true);

  // Two tiles; a deferred operation on one of them may join when that is not slower.
  auto join = [&](Value with, Value other, bool reverse) -> FailureOr<bool> {
    Operation *candidate = with.getDefiningOp();
    if (!candidate || !deferred.contains(candidate) || typeOf(other).getShape() != shape)
      return false;
    auto is16Bit = [&](Value value) { return typeOf(value).getElementType().getIntOrFloatBitWidth() == 16; };
    if (is16Bit(result) && is16Bit(other) && is16Bit(with))
      return false; // two instructions in 16-bit mode are faster than one in f32 mode
    // Two deferred operations are one instruction; the third would make it two slower ones.
    for (Value operand : candidate->getOperands())
      if (Operation *before = operand.getDefiningOp(); before && deferred.contains(before))
        return false;
    Value inner;
    FailureOr<std::optional<Step>> step = asStep(candidate, inner);
    if (failed(step))
      return failure();
    deferred.erase(candidate);
    FailureOr<TileRef> lhs = tile(inner);
    if (failed(lhs))
      return failure();
    FailureOr<TileRef> rhs = tile(other);
    if (failed(rhs))
      return failure();
    lhs->partitions = rhs->partitions = partitions;
    if (lhs->space() == MemorySpace::Psum && rhs->space() == MemorySpace::Psum)
      rhs = inSbuf(loc, *rhs);
    TileRef dst = allocateFor(stored);
    writer.scalarTensorTensor(loc, dst, *lhs, **step, *rhs, *alu, reverse);
    (void)finish(dst);
    return true;
  };
  bool commutes = *alu == AluOp::Add || *alu == AluOp::Multiply || *alu == AluOp::Maximum || *alu == AluOp::Minimum;
  FailureOr<bool> joined = join(op.getLhs(), op.getRhs(), false);
  if (failed(joined))
    return failure();
  if (*joined)
    return success();
  joined = join(op.getRhs(), op.getLhs(), !commutes);
  if (failed(joined))
    return failure();
  if (*joined)
    return success();
  FailureOr<TileRef> lhs = tile(op.getLhs());
  if (failed(lhs))
    return failure();
  FailureOr<TileRef> rhs = tile(op.getRhs());
  if (failed(rhs))
    return failure();
  lhs->partitions = rhs->partitions = partitions;
  if (lhs->space() == MemorySpace::Psum && rhs->space() == MemorySpace::Psum)
    rhs = inSbuf(loc, *rhs);
  TileRef dst = allocateFor(stored);
  writer.tensorTensor(loc, dst, *lhs, *rhs, *alu);
  return finish(dst);
}

LogicalResult KernelSelector::selectCompare(CompareOp op) {
  Location loc = op.getLoc();
  int64_t partitions = typeOf(op.getResult()).getDimSize(0);
  AluOp alu = aluOfPredicate(op.getPredicate());
  TileRef dst;
  auto withScalar = [&](Value varying, Value scalarValue, bool reverse) -> LogicalResult {
    FailureOr<std::optional<ScalarRef>> ref = scalar(scalarValue);
    if (failed(ref))
      return failure();
    FailureOr<TileRef> src = tile(varying);
    if (failed(src))
      return failure();
    src->partitions = partitions;
    dst = allocateFor(op.getResult());
    writer.tensorScalar(loc, dst, *src, {alu, **ref, reverse});
    define(op.getResult(), dst);
    return success();
  };
  bool lhsFull = typeOf(op.getLhs()).getShape() == typeOf(op.getResult()).getShape();
  bool rhsFull = typeOf(op.getRhs()).getShape() == typeOf(op.getResult()).getShape();
  if (isScalarLike(op.getRhs()) && lhsFull)
    return withScalar(op.getLhs(), op.getRhs(), false);
  if (isScalarLike(op.getLhs()) && rhsFull)
    return withScalar(op.getRhs(), op.getLhs(), true);
  FailureOr<TileRef> lhs = tile(op.getLhs());
  if (failed(lhs))
    return failure();
  FailureOr<TileRef> rhs = tile(op.getRhs());
  if (failed(rhs))
    return failure();
  lhs->partitions = rhs->partitions = partitions;
  if (lhs->space() == MemorySpace::Psum && rhs->space() == MemorySpace::Psum)
    rhs = inSbuf(loc, *rhs);
  dst = allocateFor(op.getResult());
  writer.tensorTensor(loc, dst, *lhs, *rhs, alu);
  define(op.getResult(), dst);
  return success();
}

/// dst = on_false, then the elements with a true condition are overwritten. Bits are kept, NaN included.
LogicalResult KernelSelector::selectSelect(SelectOp op) {
  Location loc = op.getLoc();
  Value result = op.getResult();
  int64_t partitions = typeOf(result).getDimSize(0);
  FailureOr<TileRef> condition = exactTile(op.getCondition());
  FailureOr<TileRef> onTrue = exactTile(op.getOnTrue());
  FailureOr<TileRef> onFalse = exactTile(op.getOnFalse());
  if (failed(condition) || failed(onTrue) || failed(onFalse))
    return failure();
  condition->partitions = onTrue->partitions = onFalse->partitions = partitions;
  TileRef dst = allocateFor(result);
  define(result, dst);
  if (elementBytes(typeOf(result).getElementType()) == 8) {
    writer.routine(loc, isa::Routine::Select, 0, dst, {*condition, *onTrue, *onFalse}, freeShape(result));
    return success();
  }
  writer.tensorCopy(loc, dst, *onFalse);
  writer.copyPredicated(loc, dst, *onTrue, *condition);
  return success();
}

LogicalResult KernelSelector::selectFloatCast(CastOp op) {
  FailureOr<TileRef> src = tile(op.getOperand());
  if (failed(src))
    return failure();
  Type from = typeOf(op.getOperand()).getElementType(), to = typeOf(op.getResult()).getElementType();
  // Widening is exact: instructions convert when they read.
  bool exact = to.isF32() || from == to;
  if (exact) {
    define(op.getResult(), *src);
    return success();
  }
  TileRef dst = allocateFor(op.getResult());
  src->partitions = dst.partitions;
  writer.tensorCopy(op.getLoc(), dst, *src);
  define(op.getResult(), dst);
  return success();
}

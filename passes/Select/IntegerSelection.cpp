// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integers, bool, conversions that involve them, index and random numbers. The vector engine computes in f32, which is
// exact for 8-bit values and bool only; 32-bit arithmetic is GpSimd's own, everything else a GpSimd routine.

#include "passes/Select/KernelSelector.h"

using namespace mlir;
using namespace mlir::neuron;
namespace isa = ::neuroncore::isa;

namespace {

std::optional<isa::IntBinaryFunction> routineOf(BinaryFunction function) {
  using F = isa::IntBinaryFunction;
  switch (function) {
  case BinaryFunction::Add:
    return F::Add;
  case BinaryFunction::Sub:
    return F::Subtract;
  case BinaryFunction::Mul:
    return F::Multiply;
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
  case BinaryFunction::Max:
  case BinaryFunction::Fmax:
    return F::Maximum;
  case BinaryFunction::Min:
  case BinaryFunction::Fmin:
    return F::Minimum;
  case BinaryFunction::And:
    return F::BitwiseAnd;
  case BinaryFunction::Or:
    return F::BitwiseOr;
  case BinaryFunction::Xor:
    return F::BitwiseXor;
  case BinaryFunction::ShiftLeft:
    return F::ShiftLeft;
  case BinaryFunction::ShiftRightArithmetic:
    return F::ShiftRightArithmetic;
  case BinaryFunction::ShiftRightLogical:
    return F::ShiftRightLogical;
  default:
    return std::nullopt;
  }
}

isa::IntCompareFunction routineOf(ComparePredicate predicate) {
  using F = isa::IntCompareFunction;
  switch (predicate) {
  case ComparePredicate::Eq:
    return F::Equal;
  case ComparePredicate::Ne:
    return F::NotEqual;
  case ComparePredicate::Lt:
    return F::Less;
  case ComparePredicate::Le:
    return F::LessEqual;
  case ComparePredicate::Gt:
    return F::Greater;
  case ComparePredicate::Ge:
    return F::GreaterEqual;
  }
  llvm_unreachable("predicate outside its enumeration");
}

/// Exact in the f32 arithmetic of the vector engine: bool and 8-bit values.
bool isSmall(Type type) { return type.getIntOrFloatBitWidth() <= 8; }

} // namespace

LogicalResult KernelSelector::selectIntegerUnary(UnaryOp op) {
  Value result = op.getResult();
  Type element = typeOf(op.getOperand()).getElementType();
  FailureOr<TileRef> operand = exactTile(op.getOperand());
  if (failed(operand))
    return failure();
  using F = isa::IntUnaryFunction;
  F function;
  switch (op.getFunction()) {
  case UnaryFunction::Copy:
    define(result, *operand);
    return success();
  case UnaryFunction::Not:
    if (element.isInteger(1)) {
      TileRef dst = allocateFor(result);
      operand->partitions = dst.partitions;
      writer.tensorScalarBits(op.getLoc(), dst, *operand, AluOp::BitwiseXor, 1);
      define(result, dst);
      return success();
    }
    function = F::BitwiseNot;
    break;
  case UnaryFunction::Neg:
    function = F::Negate;
    break;
  case UnaryFunction::Abs:
    function = F::Abs;
    break;
  case UnaryFunction::Sign:
    function = F::Sign;
    break;
  case UnaryFunction::Square:
    function = F::Square;
    break;
  case UnaryFunction::Relu:
    function = F::Relu;
    break;
  default:
    return unsupported(op, "function " + stringifyUnaryFunction(op.getFunction()) + " of integers");
  }
  TileRef dst = allocateFor(result);
  TileRef src = inSbuf(op.getLoc(), *operand);
  src.partitions = dst.partitions;
  writer.routine(op.getLoc(), isa::Routine::IntUnary, static_cast<uint8_t>(function), dst, {src}, freeShape(result));
  define(result, dst);
  return success();
}

LogicalResult KernelSelector::selectIntegerBinary(BinaryOp op) {
  Value result = op.getResult();
  Type element = typeOf(result).getElementType();
  FailureOr<TileRef> lhs = exactTile(op.getLhs()), rhs = exactTile(op.getRhs());
  if (failed(lhs) || failed(rhs))
    return failure();
  TileRef dst = allocateFor(result);
  lhs->partitions = rhs->partitions = dst.partitions;
  define(result, dst);
  BinaryFunction function = op.getFunction();
  bool isBitwise = function == BinaryFunction::And || function == BinaryFunction::Or || function == BinaryFunction::Xor;
  if (isBitwise && elementBytes(element) <= 4) {
    AluOp alu = function == BinaryFunction::And  ? AluOp::BitwiseAnd
                : function == BinaryFunction::Or ? AluOp::BitwiseOr
                                                 : AluOp::BitwiseXor;
    writer.tensorTensor(op.getLoc(), dst, *lhs, *rhs, alu);
    return success();
  }
  TileRef a = inSbuf(op.getLoc(), *lhs), b = inSbuf(op.getLoc(), *rhs);
  if (element.isInteger(32)) {
    std::optional<AluOp> alu = aluOf(function);
    if (alu && *alu != AluOp::Divide) {
      writer.tensorTensor(op.getLoc(), dst, a, b, *alu, /*onGpsimd=*/true);
      return success();
    }
  }
  std::optional<isa::IntBinaryFunction> routine = routineOf(function);
  if (!routine)
    return unsupported(op, "function " + stringifyBinaryFunction(function) + " of integers");
  writer.routine(op.getLoc(), isa::Routine::IntBinary, static_cast<uint8_t>(*routine), dst, {a, b}, freeShape(result));
  return success();
}

LogicalResult KernelSelector::selectIntegerCompare(CompareOp op) {
  Value result = op.getResult();
  FailureOr<TileRef> lhs = exactTile(op.getLhs()), rhs = exactTile(op.getRhs());
  if (failed(lhs) || failed(rhs))
    return failure();
  TileRef dst = allocateFor(result);
  lhs->partitions = rhs->partitions = dst.partitions;
  define(result, dst);
  if (isSmall(typeOf(op.getLhs()).getElementType())) {
    static constexpr AluOp kOps[] = {AluOp::Equal,     AluOp::NotEqual, AluOp::Less,
                                     AluOp::LessEqual, AluOp::Greater,  AluOp::GreaterEqual};
    writer.tensorTensor(op.getLoc(), dst, *lhs, *rhs, kOps[static_cast<int>(op.getPredicate())]);
    return success();
  }
  writer.routine(op.getLoc(), isa::Routine::IntCompare, static_cast<uint8_t>(routineOf(op.getPredicate())), dst,
                 {inSbuf(op.getLoc(), *lhs), inSbuf(op.getLoc(), *rhs)}, freeShape(result));
  return success();
}

LogicalResult KernelSelector::selectIntegerCast(CastOp op) {
  Location loc = op.getLoc();
  Value result = op.getResult();
  Type from = typeOf(op.getOperand()).getElementType(), to = typeOf(result).getElementType();
  if (to.isInteger(1)) {
    FailureOr<TileRef> src = isa<FloatType>(from) ? tile(op.getOperand()) : exactTile(op.getOperand());
    if (failed(src))
      return failure();
    TileRef dst = allocateFor(result);
    src->partitions = dst.partitions;
    define(result, dst);
    if (isa<FloatType>(from) || isSmall(from) || from.isInteger(16)) {
      writer.tensorScalar(loc, dst, *src, {AluOp::NotEqual, {0.0f, {}}});
      return success();
    }
    writer.routine(loc, isa::Routine::Cast, static_cast<uint8_t>(isa::CastFunction::Bool), dst, {inSbuf(loc, *src)},
                   freeShape(result));
    return success();
  }
  // Up to 32 bits to a float: instructions convert when they read, rounding to nearest even once.
  if (to.isF32() && elementBytes(from) <= 4) {
    FailureOr<TileRef> src = exactTile(op.getOperand());
    if (failed(src))
      return failure();
    define(result, *src);
    return success();
  }
  FailureOr<TileRef> src = exactTile(op.getOperand());
  if (failed(src))
    return failure();
  TileRef dst = allocateFor(result);
  src->partitions = dst.partitions;
  define(result, dst);
  // bool and 8-bit values are exact in every wider type.
  if (isSmall(from) && (isa<FloatType>(to) || (elementBytes(to) <= 4 && elementBytes(to) > elementBytes(from)))) {
    writer.tensorCopy(loc, dst, *src);
    return success();
  }
  writer.routine(loc, isa::Routine::Cast, static_cast<uint8_t>(isa::CastFunction::Convert), dst, {inSbuf(loc, *src)},
                 freeShape(result));
  return success();
}

//===--------------------------------------------------------------------------------------------------------------===//
// Index and random numbers
//===--------------------------------------------------------------------------------------------------------------===//

LogicalResult KernelSelector::selectIota(IotaOp op) {
  Value result = op.getResult();
  TileRef dst = allocateFor(result);
  ArrayRef<int64_t> steps = op.getSteps();
  if (typeOf(result).getElementType().isInteger(64)) {
    SmallVector<int64_t> free;
    for (auto [d, size] : llvm::enumerate(freeShape(result)))
      if (size != 1)
        free.push_back(steps[d + 1]);
    if (free.size() > 2)
      return unsupported(op, "64-bit indices along more than two free dimensions");
    int64_t outer = free.size() == 2 ? free[0] : 0, inner = free.empty() ? 0 : free.back();
    writer.routine(op.getLoc(), isa::Routine::Iota64, 0, dst, {}, {},
                   {static_cast<int64_t>(op.getOffset()), steps[0], outer, inner});
  } else {
    writer.iota(op.getLoc(), dst, op.getOffset(), steps[0], steps.drop_front());
  }
  define(result, dst);
  return success();
}

LogicalResult KernelSelector::selectRandom(RandomOp op) {
  Location loc = op.getLoc();
  Value result = op.getResult();
  FailureOr<TileRef> state = exactTile(op.getState());
  if (failed(state))
    return failure();
  TileRef counter = *state;
  if (op.getIncrement() != 0) {
    // The offset of this operation: state offset + increment, in the second word pair.
    counter = allocate(state->partitions, state->counts, builder.getI64Type());
    writer.tensorCopy(loc, counter, *state);
    auto type = RankedTensorType::get({1, 1}, builder.getI64Type());
    OpBuilder::InsertionGuard guard(builder);
    Value step = ConstantOp::create(
        builder, loc, type,
        cast<ElementsAttr>(DenseElementsAttr::get(type, Attribute(builder.getI64IntegerAttr(op.getIncrement())))));
    FailureOr<TileRef> increment = constantTile(step);
    step.getDefiningOp()->erase();
    if (failed(increment))
      return failure();
    TileRef offset = counter;
    offset.byteOffset += 8;
    offset.counts.assign(1, 1);
    offset.steps.assign(1, 1);
    increment->partitions = offset.partitions;
    increment->counts = offset.counts;
    writer.routine(loc, isa::Routine::IntBinary, static_cast<uint8_t>(isa::IntBinaryFunction::Add), offset,
                   {offset, *increment}, offset.counts);
  }
  FailureOr<TileRef> index = exactTile(op.getIndex());
  if (failed(index))
    return failure();
  // The routine numbers elements row-major along the free axis from the index of its first element.
  int64_t expected = 1;
  for (size_t d = freeShape(result).size(); d-- > 0;) {
    if (freeShape(result)[d] != 1 && op.getIndexSteps()[d + 1] != expected)
      return unsupported(op, "a random tile whose elements are not numbered consecutively");
    expected *= freeShape(result)[d];
  }
  using F = isa::PhiloxFunction;
  bool wide = typeOf(result).getElementType().isInteger(64);
  F function = op.getDistribution() == RandomDistribution::Bits      ? (wide ? F::Bits64 : F::Bits)
               : op.getDistribution() == RandomDistribution::Uniform ? F::Uniform
                                                                     : F::Normal;
  TileRef dst = allocateFor(result);
  counter.partitions = index->partitions = dst.partitions;
  writer.routine(loc, isa::Routine::Philox, static_cast<uint8_t>(function), dst, {counter, *index}, {});
  define(result, dst);
  return success();
}

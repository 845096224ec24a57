// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers, builders and syntax of the neuron operations. Folders are in NeuronFolders.cpp.

#include "dialects/Neuron/NeuronOps.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace mlir::neuron;

namespace {

RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Checks that `operands` broadcast to the result's shape (same rank, size 1 repeats).
LogicalResult verifyBroadcast(Operation *op, RankedTensorType result) {
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    RankedTensorType type = tensorType(operand);
    if (type.getRank() != result.getRank())
      return op->emitOpError() << "expected operand " << index << " to have rank " << result.getRank() << " but got "
                               << type;
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (type.getDimSize(d) != result.getDimSize(d) && type.getDimSize(d) != 1)
        return op->emitOpError() << "expected operand " << index << " to have size " << result.getDimSize(d)
                                 << " or 1 in dimension " << d << " but got " << type.getDimSize(d);
  }
  return success();
}

LogicalResult expectElement(Operation *op, StringRef what, Type type, Type expected) {
  if (type != expected)
    return op->emitOpError() << "expected " << what << " of element type " << expected << " but got " << type;
  return success();
}

LogicalResult verifyDims(Operation *op, ArrayRef<int64_t> dims, int64_t rank) {
  int64_t previous = -1;
  for (int64_t d : dims) {
    if (d <= previous || d >= rank)
      return op->emitOpError() << "expected dims to ascend within [0, " << rank << ") but got " << d << " after "
                               << previous;
    previous = d;
  }
  return success();
}

/// Shape of a reduction that keeps its dimensions.
LogicalResult verifyReducedShape(Operation *op, RankedTensorType operand, RankedTensorType result,
                                 ArrayRef<int64_t> dims) {
  if (failed(verifyDims(op, dims, operand.getRank())))
    return failure();
  if (result.getRank() != operand.getRank())
    return op->emitOpError() << "expected a result of rank " << operand.getRank() << " but got " << result;
  for (int64_t d = 0; d < operand.getRank(); ++d) {
    int64_t expected = llvm::is_contained(dims, d) ? 1 : operand.getDimSize(d);
    if (result.getDimSize(d) != expected)
      return op->emitOpError() << "expected size " << expected << " in result dimension " << d << " but got "
                               << result.getDimSize(d);
  }
  return success();
}

/// Every element of the strided box lies in [0, size).
LogicalResult verifyReach(Operation *op, int64_t offset, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides,
                          int64_t size) {
  int64_t low = offset, high = offset;
  for (auto [count, stride] : llvm::zip(sizes, strides)) {
    if (count == 0)
      return success();
    (stride < 0 ? low : high) += (count - 1) * stride;
  }
  if (low < 0 || high >= size)
    return op->emitOpError() << "expected elements within [0, " << size << ") but got [" << low << ", " << high << "]";
  return success();
}

} // namespace

//===--------------------------------------------------------------------------------------------------------------===//
// Sources
//===--------------------------------------------------------------------------------------------------------------===//

void ConstantOp::build(OpBuilder &builder, OperationState &state, RankedTensorType type, double splat) {
  Type element = type.getElementType();
  Attribute value;
  if (isa<FloatType>(element))
    value = builder.getFloatAttr(element, splat);
  else if (element.isInteger(1)) // true for 0.5 too
    value = builder.getBoolAttr(splat != 0);
  else
    value = builder.getIntegerAttr(element, static_cast<int64_t>(splat));
  build(builder, state, type, cast<ElementsAttr>(DenseElementsAttr::get(type, value)));
}

std::optional<double> ConstantOp::getSplat() {
  auto dense = dyn_cast<DenseElementsAttr>(getValue());
  if (!dense || !dense.isSplat())
    return std::nullopt;
  Type element = dense.getElementType();
  if (isa<FloatType>(element))
    return dense.getSplatValue<APFloat>().convertToDouble();
  APInt bits = dense.getSplatValue<APInt>();
  bool isUnsigned = element.isInteger(1) || element.isUnsignedInteger();
  int64_t value = isUnsigned ? static_cast<int64_t>(bits.getZExtValue()) : bits.getSExtValue();
  double converted = static_cast<double>(value);
  if (std::abs(converted) > 9007199254740992.0)
    return std::nullopt;
  return converted;
}

std::optional<double> mlir::neuron::getSplatConstant(Value value) {
  while (Operation *definition = value.getDefiningOp()) {
    if (auto constant = dyn_cast<ConstantOp>(definition))
      return constant.getSplat();
    // A view of equal elements has that element everywhere.
    if (!isView(definition))
      return std::nullopt;
    value = definition->getOperand(0);
  }
  return std::nullopt;
}

LogicalResult IotaOp::verify() {
  if (static_cast<int64_t>(getSteps().size()) != getType().getRank())
    return emitOpError() << "expected " << getType().getRank() << " steps but got " << getSteps().size();
  Type element = getType().getElementType();
  if (!element.isF32() && (element.isInteger(1) || !isa<IntegerType>(element)))
    return emitOpError() << "iota_c1: expected an integer or f32 element type but got " << element;
  // Values reach past 64 bits before the range is known.
  __int128 low = static_cast<int64_t>(getOffset()), high = low;
  for (auto [size, step] : llvm::zip(getType().getShape(), getSteps())) {
    if (size == 0)
      return success();
    (step < 0 ? low : high) += static_cast<__int128>(step) * (size - 1);
  }
  unsigned bits = element.isF32() ? 24 : element.getIntOrFloatBitWidth() - !element.isUnsignedInteger();
  __int128 end = static_cast<__int128>(1) << bits;
  __int128 least = element.isUnsignedInteger() ? 0 : -end, most = element.isF32() ? end : end - 1;
  if (low < least || high > most) {
    auto text = [](__int128 value) {
      return llvm::toString(APInt(128, {uint64_t(value), uint64_t(value >> 64)}), 10, true);
    };
    return emitOpError() << "iota_c1: expected values within [" << text(least) << ", " << text(most) << "] but got ["
                         << text(low) << ", " << text(high) << "]";
  }
  return success();
}

LogicalResult RandomOp::verify() {
  if (static_cast<int64_t>(getIndexSteps().size()) != cast<RankedTensorType>(getType()).getRank())
    return emitOpError() << "expected one index step per dimension but got " << getIndexSteps().size();
  if (!tensorType(getState()).getElementType().isInteger(64))
    return emitOpError() << "expected an i64 state but got " << getState().getType();
  return success();
}

//===--------------------------------------------------------------------------------------------------------------===//
// Elementwise
//===--------------------------------------------------------------------------------------------------------------===//

static bool producesBool(UnaryFunction function) {
  switch (function) {
  case UnaryFunction::Isnan:
  case UnaryFunction::Isinf:
  case UnaryFunction::Isfinite:
  case UnaryFunction::Signbit:
    return true;
  default:
    return false;
  }
}

LogicalResult UnaryOp::verify() {
  RankedTensorType type = cast<RankedTensorType>(getType());
  if (failed(verifyBroadcast(*this, type)))
    return failure();
  Type operand = tensorType(getOperand()).getElementType();
  return expectElement(*this, "a result", type.getElementType(),
                       producesBool(getFunction()) ? IntegerType::get(getContext(), 1) : operand);
}

LogicalResult BinaryOp::verify() {
  RankedTensorType type = cast<RankedTensorType>(getType());
  if (failed(verifyBroadcast(*this, type)))
    return failure();
  Type element = type.getElementType();
  if (failed(expectElement(*this, "lhs", tensorType(getLhs()).getElementType(), element)) ||
      failed(expectElement(*this, "rhs", tensorType(getRhs()).getElementType(), element)))
    return failure();
  switch (getFunction()) {
  case BinaryFunction::And:
  case BinaryFunction::Or:
  case BinaryFunction::Xor:
  case BinaryFunction::ShiftLeft:
  case BinaryFunction::ShiftRightArithmetic:
  case BinaryFunction::ShiftRightLogical:
    if (!isIntegerElement(element))
      return emitOpError() << "expected integer operands but got " << element;
    return success();
  default:
    return success();
  }
}

LogicalResult CompareOp::verify() {
  RankedTensorType type = cast<RankedTensorType>(getType());
  if (failed(verifyBroadcast(*this, type)))
    return failure();
  if (failed(expectElement(*this, "a result", type.getElementType(), IntegerType::get(getContext(), 1))))
    return failure();
  return expectElement(*this, "rhs", tensorType(getRhs()).getElementType(), tensorType(getLhs()).getElementType());
}

LogicalResult SelectOp::verify() {
  RankedTensorType type = cast<RankedTensorType>(getType());
  if (failed(verifyBroadcast(*this, type)))
    return failure();
  if (failed(expectElement(*this, "a condition", tensorType(getCondition()).getElementType(),
                           IntegerType::get(getContext(), 1))))
    return failure();
  if (failed(expectElement(*this, "on_true", tensorType(getOnTrue()).getElementType(), type.getElementType())))
    return failure();
  return expectElement(*this, "on_false", tensorType(getOnFalse()).getElementType(), type.getElementType());
}

LogicalResult CastOp::verify() { return verifyBroadcast(*this, cast<RankedTensorType>(getType())); }

//===--------------------------------------------------------------------------------------------------------------===//
// Reductions
//===--------------------------------------------------------------------------------------------------------------===//

LogicalResult ReduceOp::verify() {
  return verifyReducedShape(*this, tensorType(getOperand()), cast<RankedTensorType>(getType()), getDims());
}

LogicalResult ArgReduceOp::verify() {
  RankedTensorType type = cast<RankedTensorType>(getType());
  if (getKind() != ReduceKind::Max && getKind() != ReduceKind::Min)
    return emitOpError() << "expected kind max or min but got " << stringifyReduceKind(getKind());
  if (!type.getElementType().isInteger(64))
    return emitOpError() << "expected an i64 result but got " << type;
  return verifyReducedShape(*this, tensorType(getOperand()), type, getDims());
}

LogicalResult ScanOp::verify() {
  RankedTensorType operand = tensorType(getOperand());
  if (operand.getShape() != cast<RankedTensorType>(getType()).getShape())
    return emitOpError() << "expected the operand's shape but got " << getType();
  int64_t dim = getDim();
  if (dim < 0 || dim >= operand.getRank())
    return emitOpError() << "expected dim within [0, " << operand.getRank() << ") but got " << dim;
  return success();
}

//===--------------------------------------------------------------------------------------------------------------===//
// Views
//===--------------------------------------------------------------------------------------------------------------===//

template <typename OpTy> static LogicalResult verifyViewElement(OpTy op) {
  return expectElement(op, "a result", cast<RankedTensorType>(op.getType()).getElementType(),
                       tensorType(op.getOperand()).getElementType());
}

LogicalResult ReshapeOp::verify() {
  if (failed(verifyViewElement(*this)))
    return failure();
  int64_t operand = tensorType(getOperand()).getNumElements();
  int64_t result = cast<RankedTensorType>(getType()).getNumElements();
  if (operand != result)
    return emitOpError() << "expected " << operand << " elements but got " << result;
  return success();
}

LogicalResult TransposeOp::verify() {
  if (failed(verifyViewElement(*this)))
    return failure();
  RankedTensorType operand = tensorType(getOperand()), result = cast<RankedTensorType>(getType());
  ArrayRef<int64_t> permutation = getPermutation();
  if (static_cast<int64_t>(permutation.size()) != operand.getRank() || result.getRank() != operand.getRank())
    return emitOpError() << "expected a permutation of " << operand.getRank() << " dimensions but got "
                         << permutation.size();
  SmallVector<bool> seen(permutation.size(), false);
  for (auto [k, d] : llvm::enumerate(permutation)) {
    if (d < 0 || d >= operand.getRank() || seen[d])
      return emitOpError() << "expected a permutation but got dimension " << d << " at " << k;
    seen[d] = true;
    if (result.getDimSize(k) != operand.getDimSize(d))
      return emitOpError() << "expected size " << operand.getDimSize(d) << " in result dimension " << k << " but got "
                           << result.getDimSize(k);
  }
  return success();
}

LogicalResult BroadcastOp::verify() {
  if (failed(verifyViewElement(*this)))
    return failure();
  return verifyBroadcast(*this, cast<RankedTensorType>(getType()));
}

LogicalResult SliceOp::verify() {
  if (failed(verifyViewElement(*this)))
    return failure();
  RankedTensorType operand = tensorType(getOperand()), result = cast<RankedTensorType>(getType());
  int64_t rank = operand.getRank();
  if (result.getRank() != rank || static_cast<int64_t>(getStarts().size()) != rank ||
      static_cast<int64_t>(getSteps().size()) != rank)
    return emitOpError() << "expected " << rank << " starts, steps and result dimensions";
  for (int64_t d = 0; d < rank; ++d)
    if (failed(verifyReach(*this, getStarts()[d], result.getDimSize(d), getSteps()[d], operand.getDimSize(d))))
      return failure();
  return success();
}

LogicalResult AsStridedOp::verify() {
  if (failed(verifyViewElement(*this)))
    return failure();
  RankedTensorType result = cast<RankedTensorType>(getType());
  if (static_cast<int64_t>(getStrides().size()) != result.getRank())
    return emitOpError() << "expected " << result.getRank() << " strides but got " << getStrides().size();
  return verifyReach(*this, getOffset(), result.getShape(), getStrides(), tensorType(getOperand()).getNumElements());
}

//===--------------------------------------------------------------------------------------------------------------===//
// Assembly of tensors, contraction
//===--------------------------------------------------------------------------------------------------------------===//

LogicalResult ConcatOp::verify() {
  RankedTensorType result = cast<RankedTensorType>(getType());
  int64_t dim = getDim(), total = 0;
  if (dim < 0 || dim >= result.getRank())
    return emitOpError() << "expected dim within [0, " << result.getRank() << ") but got " << dim;
  for (Value operand : getOperands()) {
    RankedTensorType type = tensorType(operand);
    if (failed(expectElement(*this, "operands", type.getElementType(), result.getElementType())))
      return failure();
    if (type.getRank() != result.getRank())
      return emitOpError() << "expected operands of rank " << result.getRank() << " but got " << type;
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (d != dim && type.getDimSize(d) != result.getDimSize(d))
        return emitOpError() << "expected size " << result.getDimSize(d) << " in dimension " << d << " but got "
                             << type.getDimSize(d);
    total += type.getDimSize(dim);
  }
  if (total != result.getDimSize(dim))
    return emitOpError() << "expected size " << total << " in result dimension " << dim << " but got "
                         << result.getDimSize(dim);
  return success();
}

LogicalResult InsertOp::verify() {
  RankedTensorType source = tensorType(getSource()), destination = tensorType(getDestination());
  if (destination != getType())
    return emitOpError() << "expected the destination's type " << destination << " but got " << getType();
  if (failed(expectElement(*this, "a source", source.getElementType(), destination.getElementType())))
    return failure();
  int64_t rank = destination.getRank();
  if (source.getRank() != rank || static_cast<int64_t>(getStarts().size()) != rank ||
      static_cast<int64_t>(getSteps().size()) != rank)
    return emitOpError() << "expected " << rank << " starts, steps and source dimensions";
  for (int64_t d = 0; d < rank; ++d)
    if (failed(verifyReach(*this, getStarts()[d], source.getDimSize(d), getSteps()[d], destination.getDimSize(d))))
      return failure();
  return success();
}

LogicalResult ContractOp::verify() {
  RankedTensorType lhs = tensorType(getLhs()), rhs = tensorType(getRhs()), result = cast<RankedTensorType>(getType());
  if (lhs.getRank() != 3 || rhs.getRank() != 3 || result.getRank() != 3)
    return emitOpError() << "expected [batch, m, k] x [batch, k, n] -> [batch, m, n] but got ranks " << lhs.getRank()
                         << ", " << rhs.getRank() << ", " << result.getRank();
  if (failed(expectElement(*this, "rhs", rhs.getElementType(), lhs.getElementType())))
    return failure();
  if (lhs.getDimSize(0) != rhs.getDimSize(0) || lhs.getDimSize(0) != result.getDimSize(0))
    return emitOpError() << "expected one batch size but got " << lhs.getDimSize(0) << ", " << rhs.getDimSize(0) << ", "
                         << result.getDimSize(0);
  if (lhs.getDimSize(2) != rhs.getDimSize(1))
    return emitOpError() << "expected one k but got " << lhs.getDimSize(2) << " and " << rhs.getDimSize(1);
  if (lhs.getDimSize(1) != result.getDimSize(1) || rhs.getDimSize(2) != result.getDimSize(2))
    return emitOpError() << "expected result [" << lhs.getDimSize(1) << ", " << rhs.getDimSize(2) << "] but got ["
                         << result.getDimSize(1) << ", " << result.getDimSize(2) << "]";
  return success();
}

//===--------------------------------------------------------------------------------------------------------------===//
// Kernels
//===--------------------------------------------------------------------------------------------------------------===//

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &state) {
  StringAttr name;
  SmallVector<OpAsmParser::UnresolvedOperand> inputs;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Type> inputTypes, resultTypes;
  if (parser.parseSymbolName(name, getSymNameAttrName(state.name), state.attributes) || parser.parseLParen())
    return failure();
  if (failed(parser.parseOptionalRParen())) {
    do {
      OpAsmParser::Argument argument;
      if (parser.parseArgument(argument) || parser.parseEqual() || parser.parseOperand(inputs.emplace_back()) ||
          parser.parseColonType(inputTypes.emplace_back()))
        return failure();
      argument.type = inputTypes.back();
      arguments.push_back(argument);
    } while (succeeded(parser.parseOptionalComma()));
    if (parser.parseRParen())
      return failure();
  }
  if (parser.parseOptionalArrowTypeList(resultTypes) || parser.parseOptionalAttrDictWithKeyword(state.attributes) ||
      parser.parseRegion(*state.addRegion(), arguments) ||
      parser.resolveOperands(inputs, inputTypes, parser.getCurrentLocation(), state.operands))
    return failure();
  state.addTypes(resultTypes);
  OpBuilder builder(parser.getContext());
  // `{}` parses to a region without a block.
  if (state.regions.front()->empty())
    state.regions.front()->emplaceBlock();
  Block &body = state.regions.front()->front();
  if (body.empty() || !body.back().hasTrait<OpTrait::IsTerminator>()) {
    builder.setInsertionPointToEnd(&body);
    YieldOp::create(builder, state.location);
  }
  return success();
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(';
  llvm::interleaveComma(llvm::zip(getBody().getArguments(), getInputs()), printer, [&](auto pair) {
    auto [argument, input] = pair;
    printer << argument << " = " << input << " : " << input.getType();
  });
  printer << ')';
  printer.printOptionalArrowTypeList(getResultTypes());
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {getSymNameAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/getNumResults() != 0);
}

LogicalResult KernelOp::verify() {
  Block &body = getBody().front();
  if (!llvm::equal(body.getArgumentTypes(), getInputs().getTypes()))
    return emitOpError() << "expected one region argument per input, of its type";
  auto yield = dyn_cast<YieldOp>(body.getTerminator());
  if (!yield || !llvm::equal(yield.getOperandTypes(), getResultTypes()))
    return emitOpError() << "expected neuron.yield of the result types";
  if (getInputs().empty() && getNumResults() == 0)
    return success();
  // Tensor form: the region sees only its arguments.
  WalkResult walk = getBody().walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (operand.getParentRegion() != &getBody() && !getBody().isAncestor(operand.getParentRegion())) {
        op->emitOpError() << "expected operands defined inside the kernel";
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(*this, getCalleeAttr());
  if (!callee || callee->isAncestor(*this))
    return emitOpError() << "call_c1: expected another function of the module but got @" << getCallee();
  if (!llvm::equal(callee.getArgumentTypes(), getOperandTypes()) ||
      !llvm::equal(callee.getResultTypes(), getResultTypes()))
    return emitOpError() << "call_c1: expected operands and results of the types of @" << getCallee() << ", which is "
                         << callee.getFunctionType();
  bool isTiled = llvm::any_of(getOperandTypes(), llvm::IsaPred<MemRefType>);
  if (isTiled)
    return success();
  if (!getStrides() || getStrides()->size() != getNumOperands())
    return emitOpError() << "call_c2: expected the strides of " << getNumOperands() << " operands";
  for (unsigned i = 0; i < getNumOperands(); ++i)
    if ((*getStrides())[i] != callee.getArgAttr(i, attribute::kStrides))
      return emitOpError() << "call_c2: expected operand " << i << " to be read with the strides "
                           << callee.getArgAttr(i, attribute::kStrides) << " of @" << getCallee() << " but got "
                           << (*getStrides())[i];
  if (getReplaced() && getReplaced()->size() != getNumResults())
    return emitOpError() << "call_c3: expected one replaced operand or -1 for each of " << getNumResults()
                         << " results but got " << getReplaced()->size();
  for (unsigned k = 0; k < getNumResults(); ++k) {
    auto alias = callee.getResultAttrOfType<IntegerAttr>(k, attribute::kAliasOf);
    if (getReplacedBy(k) != (alias ? alias.getInt() : -1))
      return emitOpError() << "call_c3: expected result " << k << " to replace operand "
                           << (alias ? alias.getInt() : -1) << " as in @" << getCallee() << " but got "
                           << getReplacedBy(k);
  }
  return success();
}

//===--------------------------------------------------------------------------------------------------------------===//
// Tiles
//===--------------------------------------------------------------------------------------------------------------===//

/// A buffer without a memory space is in HBM.
static LogicalResult verifyInHbm(Operation *op, Value buffer) {
  auto space = dyn_cast_or_null<MemorySpaceAttr>(cast<MemRefType>(buffer.getType()).getMemorySpace());
  if (space && space.getValue() != MemorySpace::Hbm)
    return op->emitOpError() << "expected a buffer in hbm but got " << buffer.getType();
  return success();
}

template <typename OpTy> static LogicalResult verifyHbmAccess(OpTy op, RankedTensorType tile, bool isStore) {
  if (failed(verifyInHbm(op, op.getBuffer())))
    return failure();
  if (op.getIvs().size() != op.getIvStrides().size())
    return op.emitOpError() << "expected one stride per loop counter but got " << op.getIvStrides().size() << " for "
                            << op.getIvs().size();
  if (static_cast<int64_t>(op.getStrides().size()) != tile.getRank())
    return op.emitOpError() << "expected " << tile.getRank() << " strides but got " << op.getStrides().size();
  if (tile.getElementType() != cast<MemRefType>(op.getBuffer().getType()).getElementType())
    return op.emitOpError() << "expected the buffer's element type but got " << tile;
  if (isStore)
    for (auto [size, stride] : llvm::zip(tile.getShape(), op.getStrides()))
      if (stride == 0 && size != 1)
        return op.emitOpError() << "expected a stride in each dimension but got 0 for size " << size;
  return success();
}

LogicalResult LoadOp::verify() { return verifyHbmAccess(*this, cast<RankedTensorType>(getType()), false); }
LogicalResult StoreOp::verify() { return verifyHbmAccess(*this, tensorType(getTile()), true); }

void LoadOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getBufferMutable(), SideEffects::DefaultResource::get());
}

void StoreOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), &getBufferMutable(), SideEffects::DefaultResource::get());
}

LogicalResult HbmCopyOp::verify() {
  if (failed(verifyInHbm(*this, getSource())) || failed(verifyInHbm(*this, getDestination())))
    return failure();
  if (getSourceIvs().size() != getSourceIvStrides().size() ||
      getDestinationIvs().size() != getDestinationIvStrides().size())
    return emitOpError() << "expected one stride per loop counter";
  if (getSizes().size() != getSourceStrides().size() || getSizes().size() != getDestinationStrides().size())
    return emitOpError() << "expected one stride per size on both sides";
  if (cast<MemRefType>(getSource().getType()).getElementType() !=
      cast<MemRefType>(getDestination().getType()).getElementType())
    return emitOpError() << "expected one element type but got " << getSource().getType() << " and "
                         << getDestination().getType();
  return success();
}

LogicalResult TileMatmulOp::verify() {
  RankedTensorType stationary = tensorType(getStationary()), moving = tensorType(getMoving());
  RankedTensorType result = cast<RankedTensorType>(getType());
  int64_t rank = stationary.getRank();
  if ((rank != 2 && rank != 3) || moving.getRank() != rank || result.getRank() != 2 ||
      stationary.getShape().drop_back() != moving.getShape().drop_back() ||
      stationary.getShape().back() != result.getDimSize(0) || moving.getShape().back() != result.getDimSize(1))
    return emitOpError() << "expected [k, m] x [k, n] -> [m, n] or [k, t, m] x [k, t, n] -> [m, n] but got "
                         << stationary << ", " << moving << " and " << result;
  return success();
}

LogicalResult TileTransposeOp::verify() {
  RankedTensorType operand = tensorType(getOperand()), result = cast<RankedTensorType>(getType());
  if (operand.getRank() != 2 || result.getRank() != 3 || result.getElementType() != operand.getElementType() ||
      result.getDimSize(2) != operand.getDimSize(0) ||
      result.getDimSize(0) * result.getDimSize(1) != operand.getDimSize(1))
    return emitOpError() << "expected [m, t * k] -> [k, t, m] but got " << operand << " and " << result;
  return success();
}

LogicalResult AccumulateOp::verify() {
  RankedTensorType accumulator = tensorType(getAccumulator()), value = tensorType(getValue());
  if (getType() != accumulator)
    return emitOpError() << "expected the accumulator's type " << accumulator << " but got " << getType();
  if (value.getRank() != accumulator.getRank() || value.getElementType() != accumulator.getElementType())
    return emitOpError() << "expected a value like " << accumulator << " but got " << value;
  for (int64_t d = 0; d < value.getRank(); ++d)
    if (value.getDimSize(d) > accumulator.getDimSize(d))
      return emitOpError() << "expected at most size " << accumulator.getDimSize(d) << " in dimension " << d
                           << " but got " << value.getDimSize(d);
  return success();
}

#define GET_OP_CLASSES
#include "dialects/Neuron/NeuronOps.cpp.inc"

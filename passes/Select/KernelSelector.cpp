// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks, loops, buffers and views. What lives through the whole kernel (constants, vectors of ones, scratch) is
// written to the start of the kernel.

#include "passes/Select/KernelSelector.h"
#include "dialects/Neuron/NeuronViews.h"

#include "llvm/ADT/ScopeExit.h"

#include <bit>

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::neuron;
namespace isa = ::neuroncore::isa;

LogicalResult KernelSelector::unsupported(Operation *op, const Twine &why) {
  return op->emitError() << "no instructions for " << op->getName() << ": " << why;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Buffers
//===--------------------------------------------------------------------------------------------------------------===//

TileRef KernelSelector::allocate(int64_t partitions, ArrayRef<int64_t> shape, Type element, MemorySpace space) {
  int64_t elements = 1;
  TileRef ref;
  ref.element = element;
  ref.partitions = partitions;
  ref.counts.assign(shape.begin(), shape.end());
  ref.steps.resize(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    ref.steps[d] = elements;
    elements *= shape[d];
  }
  int64_t bytes = llvm::alignTo(elements * elementBytes(element), 4);
  auto type = nisa::getOnChipType(builder.getContext(), space, partitions, bytes);
  ref.buffer = nisa::AllocOp::create(builder, builder.getUnknownLoc(), type, IntegerAttr(), IntegerAttr());
  if (space == MemorySpace::Psum)
    ref.buffer.getDefiningOp<nisa::AllocOp>().setAlignment(
        std::min<int64_t>(model.memory().psumBankBytes, llvm::PowerOf2Ceil(bytes)));
  else if (elementBytes(element) == 8)
    ref.buffer.getDefiningOp<nisa::AllocOp>().setAlignment(8);
  return ref;
}

TileRef KernelSelector::allocateFor(Value value, MemorySpace space) {
  if (auto it = replaced.find(value); it != replaced.end() && space == MemorySpace::Sbuf)
    return it->second;
  return allocate(typeOf(value).getDimSize(0), freeShape(value), typeOf(value).getElementType(), space);
}

/// A buffer for results that nobody reads; one per kernel and size.
TileRef KernelSelector::scratch(int64_t partitions, ArrayRef<int64_t> shape, bool ofScalarEngine) {
  // Nobody reads it: the narrowest type will do.
  Type element = builder.getIntegerType(8, /*isSigned=*/false);
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  // PSUM is free in a kernel without products; SBUF is what limits how many iterations are under way.
  bool inPsum = ofScalarEngine && !usesPsum && elements * 4 <= model.memory().psumBytesPerPartition;
  TileRef &all = scratchTiles[{inPsum, elements}];
  if (!all) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(prologueEnd);
    all = allocate(model.memory().partitions, {elements}, element, inPsum ? MemorySpace::Psum : MemorySpace::Sbuf);
  }
  TileRef ref = all;
  ref.partitions = partitions;
  ref.counts.assign(shape.begin(), shape.end());
  ref.steps.resize(shape.size());
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    ref.steps[d] = step;
    step *= shape[d];
  }
  return ref;
}

TileRef KernelSelector::inSbuf(Location loc, const TileRef &ref) {
  if (ref.space() == MemorySpace::Sbuf)
    return ref;
  TileRef copy = allocate(ref.partitions, ref.counts, ref.element);
  writer.tensorCopy(loc, copy, ref);
  return copy;
}

bool KernelSelector::isColumnShape(Value value) const {
  return llvm::all_of(freeShape(value), [](int64_t size) { return size == 1; });
}

bool KernelSelector::isScalarLike(Value value) const { return isColumnShape(value); }

/// One column of the value in every partition, made once per kernel.
TileRef KernelSelector::constantColumn(Location loc, TypedAttr value) {
  Type element = value.getType();
  TileRef &column = constantTiles[{value, 0}];
  if (!column) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(prologueEnd);
    column = allocate(model.memory().partitions, {1}, element);
    int64_t bytes = elementBytes(element);
    if (bytes == 8) {
      APInt bits = cast<IntegerAttr>(value).getValue();
      for (int half = 0; half < 2; ++half) {
        TileRef word = column;
        word.element = builder.getI32Type();
        word.byteOffset += 4 * half;
        writer.memset(loc, word, static_cast<uint32_t>(bits.extractBitsAsZExtValue(32, 32 * half)));
      }
    } else if (isa<FloatType>(element)) {
      writer.memset(loc, column, static_cast<float>(cast<FloatAttr>(value).getValueAsDouble()));
    } else {
      writer.memset(loc, column, static_cast<uint32_t>(cast<IntegerAttr>(value).getValue().getZExtValue()));
    }
  }
  return column;
}

FailureOr<TileRef> KernelSelector::constantTile(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  auto dense = cast<DenseElementsAttr>(constant.getValue());
  if (!dense.isSplat())
    return constant.emitError() << "expected a splat constant in a tile";
  RankedTensorType type = typeOf(value);
  auto splat = cast<TypedAttr>(dense.getSplatValue<Attribute>());
  TileRef column = constantColumn(value.getLoc(), splat);
  TileRef ref = column;
  ref.partitions = type.getDimSize(0);
  ref.counts.assign(type.getRank() - 1, 1);
  ref.steps.assign(type.getRank() - 1, 1);
  // A constant of full shape repeats as well.
  for (auto [d, size] : llvm::enumerate(type.getShape().drop_front())) {
    ref.counts[d] = size;
    ref.steps[d] = size == 1 ? 1 : 0;
  }
  return ref;
}

FailureOr<TileRef> KernelSelector::tile(Value value) {
  if (auto it = refs.find(value); it != refs.end())
    return it->second;
  Operation *definition = value.getDefiningOp();
  if (isa_and_nonnull<ConstantOp>(definition))
    return constantTile(value);
  if (definition && deferred.contains(definition)) {
    deferred.erase(definition);
    if (failed(selectOp(definition)))
      return failure();
    if (auto it = refs.find(value); it != refs.end())
      return it->second;
  }
  if (definition && isView(definition)) {
    if (failed(selectView(definition)))
      return failure();
    return refs.find(value)->second;
  }
  emitError(value.getLoc()) << "internal: a tile value was not selected";
  return failure();
}

FailureOr<TileRef> KernelSelector::exactTile(Value value) {
  FailureOr<TileRef> ref = tile(value);
  if (failed(ref) || ref->element == typeOf(value).getElementType())
    return ref;
  TileRef converted = allocate(ref->partitions, ref->counts, typeOf(value).getElementType());
  writer.tensorCopy(value.getLoc(), converted, *ref);
  define(value, converted);
  return converted;
}

FailureOr<std::optional<ScalarRef>> KernelSelector::scalar(Value value) {
  if (std::optional<double> splat = getSplatConstant(value))
    return std::optional<ScalarRef>(ScalarRef{static_cast<float>(*splat), {}});
  if (!isColumnShape(value))
    return std::optional<ScalarRef>();
  FailureOr<TileRef> ref = tile(value);
  if (failed(ref))
    return failure();
  if (!ref->element.isF32() || ref->space() != MemorySpace::Sbuf) {
    TileRef column = allocate(ref->partitions, ref->counts, builder.getF32Type());
    writer.tensorCopy(value.getLoc(), column, *ref);
    // Keep the f32 copy for other users when that is the value's own type.
    if (typeOf(value).getElementType().isF32())
      define(value, column);
    return std::optional<ScalarRef>(ScalarRef{std::nullopt, column});
  }
  return std::optional<ScalarRef>(ScalarRef{std::nullopt, *ref});
}

/// A result whose only use is a conversion to a narrower float is written with that type at once.
Value KernelSelector::storedResult(Value result) const {
  if (!result.hasOneUse() || !isa<FloatType>(typeOf(result).getElementType()))
    return result;
  auto cast = dyn_cast<CastOp>(*result.user_begin());
  if (!cast || cast->getBlock() != result.getParentBlock())
    return result;
  Type target = typeOf(cast.getResult()).getElementType();
  if (!isa<FloatType>(target) ||
      target.getIntOrFloatBitWidth() >= typeOf(result).getElementType().getIntOrFloatBitWidth())
    return result;
  return cast.getResult();
}

//===--------------------------------------------------------------------------------------------------------------===//
// Blocks and loops
//===--------------------------------------------------------------------------------------------------------------===//

void KernelSelector::flush() { balanceEngines(builder, model, writer.take()); }

LogicalResult KernelSelector::run(KernelOp kernel, nisa::KernelOp target) {
  Block &body = target.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(&body);
  // Marks where the prologue ends; removed at the end.
  prologueEnd = nisa::AllocOp::create(builder, kernel.getLoc(),
                                      nisa::getOnChipType(builder.getContext(), MemorySpace::Sbuf, 1, 4), IntegerAttr(),
                                      IntegerAttr());
  kernel.walk([&](Operation *op) {
    auto reduce = dyn_cast<ReduceOp>(op);
    usesPsum |= isa<TileMatmulOp, TileTransposeOp>(op) || (reduce && llvm::is_contained(reduce.getDims(), 0));
  });
  if (failed(selectBlock(kernel.getBody().front())))
    return failure();
  prologueEnd->erase();
  return success();
}

LogicalResult KernelSelector::selectBlock(Block &block) {
  auto outerColumns = negatedColumns;
  llvm::scope_exit restore([&] { negatedColumns = std::move(outerColumns); });
  for (Operation &op : block.without_terminator()) {
    if (done.contains(&op) || isa<arith::ConstantOp, ConstantOp>(op))
      continue;
    if (canDefer(&op) || isAccumulatedSum(&op)) {
      deferred.insert(&op);
      continue;
    }
    if (failed(selectOp(&op)))
      return failure();
  }
  return success();
}

LogicalResult KernelSelector::selectOp(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return selectLoop(loop);
  if (auto load = dyn_cast<LoadOp>(op))
    return selectLoad(load);
  if (auto store = dyn_cast<StoreOp>(op))
    return selectStore(store);
  if (auto copy = dyn_cast<HbmCopyOp>(op))
    return selectHbmCopy(copy);
  if (auto load = dyn_cast<IndexedLoadOp>(op))
    return selectIndexedLoad(load);
  if (auto store = dyn_cast<IndexedStoreOp>(op))
    return selectIndexedStore(store);
  if (auto transpose = dyn_cast<TileTransposeOp>(op))
    return selectTileTranspose(transpose);
  if (isView(op))
    return selectView(op);
  if (auto unary = dyn_cast<UnaryOp>(op))
    return isa<FloatType>(typeOf(unary.getOperand()).getElementType()) ? selectFloatUnary(unary)
                                                                       : selectIntegerUnary(unary);
  if (auto binary = dyn_cast<BinaryOp>(op))
    return isa<FloatType>(typeOf(binary.getLhs()).getElementType()) ? selectFloatBinary(binary)
                                                                    : selectIntegerBinary(binary);
  if (auto compare = dyn_cast<CompareOp>(op))
    return isa<FloatType>(typeOf(compare.getLhs()).getElementType()) ? selectCompare(compare)
                                                                     : selectIntegerCompare(compare);
  if (auto select = dyn_cast<SelectOp>(op))
    return selectSelect(select);
  if (auto cast = dyn_cast<CastOp>(op)) {
    bool fromFloat = isa<FloatType>(typeOf(cast.getOperand()).getElementType());
    bool toFloat = isa<FloatType>(typeOf(cast.getResult()).getElementType());
    return fromFloat && toFloat ? selectFloatCast(cast) : selectIntegerCast(cast);
  }
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return selectReduce(reduce);
  if (auto argReduce = dyn_cast<ArgReduceOp>(op))
    return selectArgReduce(argReduce);
  if (auto scan = dyn_cast<ScanOp>(op))
    return selectScan(scan);
  if (auto accumulate = dyn_cast<AccumulateOp>(op))
    return selectAccumulate(accumulate);
  if (auto iota = dyn_cast<IotaOp>(op))
    return selectIota(iota);
  if (auto random = dyn_cast<RandomOp>(op))
    return selectRandom(random);
  if (auto matmul = dyn_cast<TileMatmulOp>(op))
    return selectTileMatmul(matmul);
  return unsupported(op, "unknown tile operation");
}

/// All users of `value`, and of what may be computed together with them, come before `end`.
static bool usesEndBefore(Value value, Operation *end, int depth = 3) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (user == end)
      return true;
    if (user->getBlock() != end->getBlock() || !user->isBeforeInBlock(end))
      return false;
    return depth == 0 ||
           llvm::all_of(user->getResults(), [&](Value result) { return usesEndBefore(result, end, depth - 1); });
  });
}

/// `next` is computed from `old` by one instruction, element by element, and nobody reads `old` after it.
static bool isUpdate(Value old, Value next) {
  auto isArithmetic = [&](Operation *op) {
    auto binary = dyn_cast_or_null<BinaryOp>(op);
    return binary && binary.getType() == old.getType() &&
           llvm::is_contained({BinaryFunction::Add, BinaryFunction::Mul, BinaryFunction::Max}, binary.getFunction());
  };
  Operation *update = next.getDefiningOp();
  if (!isArithmetic(update) || !next.hasOneUse() || !cast<RankedTensorType>(old.getType()).getElementType().isF32())
    return false;
  Value operand = update->getOperand(0);
  if (operand == old)
    return usesEndBefore(old, update);
  // A product that is added to.
  return isArithmetic(operand.getDefiningOp()) && operand.hasOneUse() &&
         operand.getDefiningOp()->getOperand(0) == old && operand.getDefiningOp()->getBlock() == update->getBlock() &&
         old.hasOneUse();
}

/// Values that a loop carries live in one buffer each, updated in place.
LogicalResult KernelSelector::selectLoop(scf::ForOp loop) {
  SmallVector<TileRef> carried;
  for (auto [initial, argument, result] : llvm::zip(loop.getInitArgs(), loop.getRegionIterArgs(), loop.getResults())) {
    TileRef ref;
    bool inPsum = accumulatesInPsum(argument);
    auto constant = initial.getDefiningOp<ConstantOp>();
    if (constant && inPsum) {
      ref = allocateFor(initial, MemorySpace::Psum);
      if (failed(startPsumAccumulator(loop.getLoc(), ref)))
        return failure();
    } else {
      FailureOr<TileRef> value = exactTile(initial);
      if (failed(value))
        return failure();
      // The initial value may be needed elsewhere; a buffer that is already an accumulator goes on as one.
      // So is one that a loop around this one carries.
      bool owned = !constant && initial.hasOneUse() &&
                   (isa_and_nonnull<scf::ForOp, AccumulateOp, TileMatmulOp>(initial.getDefiningOp()) ||
                    (inPsum && isa<BlockArgument>(initial)));
      if (owned) {
        ref = *value;
      } else {
        ref = allocateFor(initial);
        writer.tensorCopy(loop.getLoc(), ref, *value);
      }
    }
    define(argument, ref);
    define(result, ref);
    carried.push_back(std::move(ref));
  }
  flush();
  std::optional<int64_t> trips = getConstantIntValue(loop.getUpperBound());
  OperationState state(loop.getLoc(), nisa::LoopOp::getOperationName());
  state.addAttribute("trips", builder.getI64IntegerAttr(*trips));
  state.addRegion();
  auto target = cast<nisa::LoopOp>(builder.create(state));
  Block &body = target.getCopies().front().emplaceBlock();
  loopCounters[loop.getInductionVar()] = body.addArgument(builder.getIndexType(), loop.getLoc());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&body);
  for (auto [argument, yielded, ref] :
       llvm::zip(loop.getRegionIterArgs(), loop.getBody()->getTerminator()->getOperands(), carried))
    if (ref.space() == MemorySpace::Sbuf && isUpdate(argument, yielded))
      replaced[yielded] = ref;
  if (failed(selectBlock(*loop.getBody())))
    return failure();
  for (auto [yielded, ref] : llvm::zip(loop.getBody()->getTerminator()->getOperands(), carried)) {
    FailureOr<TileRef> value = exactTile(yielded);
    if (failed(value))
      return failure();
    if (value->buffer != ref.buffer)
      writer.tensorCopy(loop.getLoc(), ref, *value);
  }
  flush();
  return success();
}

//===--------------------------------------------------------------------------------------------------------------===//
// Views of tiles
//===--------------------------------------------------------------------------------------------------------------===//

LogicalResult KernelSelector::selectView(Operation *op) {
  FailureOr<TileRef> operand = tile(op->getOperand(0));
  if (failed(operand))
    return failure();
  TileRef ref = *operand;
  Value result = op->getResult(0);
  if (auto slice = dyn_cast<SliceOp>(op)) {
    for (auto [d, start] : llvm::enumerate(slice.getStarts().drop_front())) {
      ref.byteOffset += start * ref.steps[d] * elementBytes(ref.element);
      ref.steps[d] *= slice.getSteps()[d + 1];
      ref.counts[d] = freeShape(result)[d];
    }
    if (slice.getStarts()[0] != 0 || slice.getSteps()[0] != 1)
      return unsupported(op, "a slice of partitions that does not start at the first");
    ref.partitions = typeOf(result).getDimSize(0);
  } else if (auto strided = dyn_cast<AsStridedOp>(op)) {
    // Steps within the last dimension, or from row to row of another one; the tile may lie in another order.
    SmallVector<int64_t> declared = contiguousStrides(typeOf(op->getOperand(0)).getShape());
    int64_t row = ref.counts.back(), last = ref.steps.back();
    SmallVector<int64_t, 4> steps;
    for (auto [d, stride] : llvm::enumerate(strided.getStrides().drop_front())) {
      auto found = llvm::find(ArrayRef(declared).drop_front(), stride);
      if (std::abs(stride) < row || freeShape(result)[d] == 1)
        steps.push_back(stride * last);
      else if (found != declared.end())
        steps.push_back(ref.steps[found - declared.begin() - 1]);
      else
        return unsupported(op, "elements that do not lie in the rows of a tile");
    }
    if (strided.getStrides()[0] != declared[0] || static_cast<int64_t>(strided.getOffset()) >= row)
      return unsupported(op, "elements that do not lie in the row of their partition");
    ref.byteOffset += strided.getOffset() * last * elementBytes(ref.element);
    ref.steps = std::move(steps);
    ref.counts.assign(freeShape(result).begin(), freeShape(result).end());
    ref.partitions = typeOf(result).getDimSize(0);
  } else if (isa<BroadcastOp>(op)) {
    for (auto [d, size] : llvm::enumerate(freeShape(result)))
      if (ref.counts[d] != size) {
        ref.counts[d] = size;
        ref.steps[d] = 0;
      }
    if (int64_t partitions = typeOf(result).getDimSize(0); partitions != ref.partitions) {
      if (!getSplatConstant(op->getOperand(0)))
        return unsupported(op, "a value of one partition repeated over partitions");
      ref.partitions = partitions;
    }
  } else {
    return unsupported(op, "a view that tiles do not have");
  }
  define(result, std::move(ref));
  return success();
}

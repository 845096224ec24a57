// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loop nest is generated level by level. At each level: reads that first become possible there, operations before
// the next loop, accumulation of reductions that live there, the next loop (its full tiles as one scf.for, then the
// partial tile, then what a split left over, as straight-line code), results of reductions that the loop has ended,
// operations on them, stores. Values are found through scopes that mirror the levels, so whatever does not depend on a
// loop is computed outside of it.

#include "passes/Tile/TileGenerator.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::neuron;

static DimMask bit(unsigned dim) { return DimMask(1) << dim; }

TileGenerator::TileGenerator(OpBuilder &builder, const TilePlan &plan, BufferFn bufferOf)
    : builder(builder), plan(plan), bufferOf(bufferOf) {
  for (auto [d, size] : llvm::enumerate(plan.space.sizes)) {
    Range range;
    bool looped = llvm::is_contained(plan.nest, d);
    range.extent = looped ? plan.tile[d] : size;
    ranges.push_back(range);
  }
  for (const HbmAccess &read : plan.space.reads) {
    unsigned found = classRead.size();
    for (auto [index, other] : llvm::enumerate(classRead))
      if (other->buffer == read.buffer && other->offset == read.offset && other->strides == read.strides)
        found = index;
    if (found == classRead.size())
      classRead.push_back(&read);
    readClass[read.read] = found;
  }
}

int64_t TileGenerator::tileDim(unsigned dim) const { return 1 + (llvm::find(plan.free, dim) - plan.free.begin()); }

SmallVector<int64_t> TileGenerator::fullShape(int64_t partitions, DimMask mask) const {
  SmallVector<int64_t> shape = {partitions};
  for (unsigned d : plan.free)
    shape.push_back(mask & bit(d) ? ranges[d].extent : 1);
  return shape;
}

bool TileGenerator::endsPartition(Operation *op) const {
  return plan.partition >= 0 && (space().reduced.lookup(op) & bit(plan.partition));
}

bool TileGenerator::endsLoop(Operation *op) const {
  return isAccumulating(op) && (space().reduced.lookup(op) & plan.loopMask());
}

bool TileGenerator::indexFits32(Operation *op) const {
  const IndexFunction &index = space().indices.find(op)->second;
  __int128 low = index.offset, high = index.offset;
  for (auto [d, coefficient] : llvm::enumerate(index.coefficients)) {
    int64_t size = space().sizes[d] + (int(d) == plan.splitOuter && plan.leftover ? 1 : 0);
    (coefficient < 0 ? low : high) += __int128(coefficient) * (size - 1);
  }
  return low > INT32_MIN && high < INT32_MAX;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Values
//===--------------------------------------------------------------------------------------------------------------===//

Value TileGenerator::lookup(const void *key) const {
  for (const Scope &scope : llvm::reverse(scopes))
    if (auto it = scope.find(key); it != scope.end())
      return it->second;
  return {};
}

Value TileGenerator::constant(Location loc, ArrayRef<int64_t> shape, Type element, double value) {
  return ConstantOp::create(builder, loc, tileType(shape, element), value);
}

Value TileGenerator::resizeSplat(ConstantOp constant, ArrayRef<int64_t> shape) {
  auto type = tileType(shape, typeOf(constant.getResult()).getElementType());
  return ConstantOp::create(builder, constant.getLoc(), type,
                            cast<ElementsAttr>(cast<DenseElementsAttr>(constant.getValue()).resizeSplat(type)));
}

Value TileGenerator::load(const HbmAccess &access, int64_t partitions) {
  Location loc = access.read->getOwner()->getLoc();
  DimMask spanDims = plan.spans.empty() ? 0 : plan.spans[space().findRead(*access.read) - space().reads.data()];
  SmallVector<int64_t> extents = llvm::map_to_vector(ranges, [](const Range &range) { return range.extent; });
  TilePlan::Span span = TilePlan::spanOf(access, spanDims, extents);
  SmallVector<int64_t> shape = {partitions}, strides = {plan.partition < 0 ? 0 : access.strides[plan.partition]};
  for (unsigned d : plan.free) {
    if (spanDims & bit(d))
      continue;
    shape.push_back(access.strides[d] != 0 ? ranges[d].extent : 1);
    strides.push_back(access.strides[d]);
  }
  if (spanDims) {
    shape.push_back(span.length);
    strides.push_back(1);
  }
  TileAddress address{access.offset + span.low, {}, {}};
  for (auto [range, stride] : llvm::zip_equal(ranges, access.strides))
    address.add(range, stride);
  Type element = cast<RankedTensorType>(access.buffer.getType()).getElementType();
  Value tile = LoadOp::create(builder, loc, tileType(shape, element), bufferOf(access.buffer), address.ivs,
                              address.offset, address.ivStrides, strides);
  if (!spanDims)
    return tile;
  // The elements that are needed, among those that were loaded.
  SmallVector<int64_t> steps = contiguousStrides(shape);
  SmallVector<int64_t> viewShape = {partitions}, viewSteps = {steps.front()};
  size_t outer = 1;
  for (unsigned d : plan.free) {
    bool inSpan = spanDims & bit(d);
    viewShape.push_back(access.strides[d] != 0 ? ranges[d].extent : 1);
    viewSteps.push_back(inSpan ? access.strides[d] : steps[outer]);
    outer += !inSpan;
  }
  return AsStridedOp::create(builder, loc, tileType(viewShape, element), tile, -span.low, viewSteps);
}

/// A tile that does not depend on the partition may have been made for more partitions than are needed here.
Value TileGenerator::firstPartitions(Value tile, int64_t partitions) {
  RankedTensorType type = typeOf(tile);
  if (type.getDimSize(0) <= partitions)
    return tile;
  SmallVector<int64_t> shape(type.getShape()), starts(type.getRank(), 0), steps(type.getRank(), 1);
  shape[0] = partitions;
  return SliceOp::create(builder, tile.getLoc(), tileType(shape, type.getElementType()), tile, starts, steps);
}

Value TileGenerator::expand(Value tile, ArrayRef<int64_t> shape) {
  if (typeOf(tile).getShape() == shape)
    return tile;
  return BroadcastOp::create(builder, tile.getLoc(), tileType(shape, typeOf(tile).getElementType()), tile);
}

Value TileGenerator::tileOf(OpOperand &operand, int64_t partitions) {
  if (const HbmAccess *read = space().findRead(operand)) {
    unsigned index = readClass.lookup(&operand);
    const void *key = classRead[index];
    Value tile = lookup(key);
    if (!tile) {
      tile = load(*read, partitions);
      scopes.back()[key] = tile;
    }
    return firstPartitions(tile, partitions);
  }
  Operation *producer = viewSource(operand.get()).getDefiningOp();
  Value tile = lookup(producer);
  if (!tile) {
    evaluate(producer);
    tile = lookup(producer);
  }
  return firstPartitions(tile, partitions);
}

/// The operand of something that is not computed element by element: of a constant, too, there is one in each
/// partition, because only constants can be repeated over partitions later.
Value TileGenerator::onPartitions(OpOperand &operand, int64_t partitions) {
  Value tile = tileOf(operand, partitions);
  auto splat = tile.getDefiningOp<ConstantOp>();
  if (!splat || typeOf(tile).getDimSize(0) == partitions)
    return tile;
  SmallVector<int64_t> shape(typeOf(tile).getShape());
  shape[0] = partitions;
  return resizeSplat(splat, shape);
}

void TileGenerator::evaluate(Operation *op) {
  if (lookup(op))
    return;
  const TilePlan::Place place = plan.places.lookup(op);
  int64_t count = place.singlePartition ? 1 : partitions();
  Value result;
  if (auto splat = dyn_cast<ConstantOp>(op)) {
    result = resizeSplat(splat, SmallVector<int64_t>(1 + plan.free.size(), 1));
  } else if (isElementwise(op)) {
    result = evaluateElementwise(op, count);
  } else if (auto reduce = dyn_cast<ReduceOp>(op)) {
    // Reductions that end loops or partitions are put into scope by finishAccumulators and emitAccumulation.
    assert(!isAccumulating(op) && "accumulated value used before its loop has ended");
    result = reduceFree(reduce, onPartitions(op->getOpOperand(0), count), space().reduced.lookup(op),
                        typeOf(reduce.getResult()).getElementType());
  } else if (auto argReduce = dyn_cast<ArgReduceOp>(op)) {
    DimMask ended = space().reduced.lookup(op);
    Value operand = onPartitions(op->getOpOperand(0), count);
    operand = expand(operand, fullShape(typeOf(operand).getDimSize(0), space().maskOf(op->getOpOperand(0)) | ended));
    SmallVector<int64_t> shape(typeOf(operand).getShape()), dims;
    for (unsigned d : plan.free)
      if (ended & bit(d)) {
        dims.push_back(tileDim(d));
        shape[tileDim(d)] = 1;
      }
    result = ArgReduceOp::create(builder, op->getLoc(), tileType(shape, builder.getI64Type()), argReduce.getKind(),
                                 operand, dims);
  } else if (auto scan = dyn_cast<ScanOp>(op)) {
    DimMask along = space().reduced.lookup(op);
    Value operand = onPartitions(op->getOpOperand(0), count);
    operand = expand(operand, fullShape(typeOf(operand).getDimSize(0), space().maskOf(scan.getResult()) | along));
    int64_t dim = along ? tileDim(llvm::countr_zero(along)) : 1;
    if (!along)
      result = CastOp::create(builder, op->getLoc(),
                              tileType(typeOf(operand).getShape(), typeOf(scan.getResult()).getElementType()), operand);
    else
      result = ScanOp::create(builder, op->getLoc(),
                              tileType(typeOf(operand).getShape(), typeOf(scan.getResult()).getElementType()),
                              scan.getKind(), operand, dim);
  } else if (auto iota = dyn_cast<IotaOp>(op)) {
    result = evaluateIota(iota);
  } else {
    result = evaluateRandom(cast<RandomOp>(op));
  }
  scopes.back()[op] = result;
}

Value TileGenerator::evaluateElementwise(Operation *op, int64_t count) {
  SmallVector<Value> operands;
  SmallVector<int64_t> shape(1 + plan.free.size(), 1);
  for (OpOperand &operand : op->getOpOperands()) {
    Value tile = tileOf(operand, count);
    for (auto [d, size] : llvm::enumerate(typeOf(tile).getShape()))
      shape[d] = std::max(shape[d], size);
    operands.push_back(tile);
  }
  // An operation on constants alone still has a value in each partition.
  if (llvm::all_of(operands, [](Value v) { return v.getDefiningOp<ConstantOp>() != nullptr; })) {
    shape[0] = count;
    for (Value &operand : operands) {
      SmallVector<int64_t> all(typeOf(operand).getShape());
      all[0] = count;
      operand = resizeSplat(operand.getDefiningOp<ConstantOp>(), all);
    }
  }
  Operation *clone = builder.clone(*op);
  clone->setOperands(operands);
  Value result = clone->getResult(0);
  result.setType(tileType(shape, typeOf(op->getResult(0)).getElementType()));
  return result;
}

Value TileGenerator::evaluateIota(IotaOp op) {
  Location loc = op.getLoc();
  const IndexFunction &index = space().indices.find(op)->second;
  Type element = typeOf(op.getResult()).getElementType();
  Type indexType = indexFits32(op) ? builder.getI32Type() : builder.getI64Type();
  DimMask own = 0;
  SmallVector<int64_t> steps = {0};
  for (unsigned d : plan.free) {
    steps.push_back(index.coefficients[d]);
    own |= index.coefficients[d] != 0 ? bit(d) : 0;
  }
  SmallVector<int64_t> shape = fullShape(partitions(), own);
  Value value;
  if (Value base = bases.lookup(op)) {
    value = firstPartitions(base, partitions());
    if (own) {
      Value inner = IotaOp::create(builder, loc, tileType(shape, indexType), 0, steps);
      value = BinaryOp::create(builder, loc, tileType(shape, indexType), BinaryFunction::Add, inner, value);
    }
  } else {
    int64_t offset = index.offset;
    for (auto [d, range] : llvm::enumerate(ranges))
      offset += index.coefficients[d] * range.start;
    steps[0] = plan.partition < 0 ? 0 : index.coefficients[plan.partition];
    value = IotaOp::create(builder, loc, tileType(shape, indexType), offset, steps);
  }
  if (element != indexType)
    value = CastOp::create(builder, loc, tileType(shape, element), value);
  return value;
}

Value TileGenerator::evaluateRandom(RandomOp op) {
  Location loc = op.getLoc();
  const IndexFunction &index = space().indices.find(op)->second;
  SmallVector<int64_t> steps = {0};
  DimMask own = 0;
  for (unsigned d : plan.free) {
    steps.push_back(index.coefficients[d]);
    own |= index.coefficients[d] != 0 ? bit(d) : 0;
  }
  SmallVector<int64_t> column(1 + plan.free.size(), 1);
  column[0] = partitions();
  Value base = bases.lookup(op);
  if (base) {
    base = firstPartitions(base, partitions());
  } else {
    SmallVector<int64_t> baseSteps(column.size(), 0);
    baseSteps[0] = plan.partition < 0 ? 0 : index.coefficients[plan.partition];
    int64_t offset = index.offset;
    for (auto [d, range] : llvm::enumerate(ranges))
      offset += index.coefficients[d] * range.start;
    base = IotaOp::create(builder, loc, tileType(column, builder.getI64Type()), offset, baseSteps);
  }
  if (!typeOf(base).getElementType().isInteger(64))
    base = CastOp::create(builder, loc, tileType(column, builder.getI64Type()), base);
  // (seed, offset) is one number pair for all elements; it is loaded into every partition.
  SmallVector<int64_t> stateShape(column);
  stateShape.back() = 2;
  const HbmAccess &access = *space().findRead(op->getOpOperand(0));
  const void *key = &access;
  Value state = lookup(key);
  if (!state) {
    SmallVector<int64_t> strides(stateShape.size(), 0);
    strides.back() = 1;
    stateShape[0] = plan.partition < 0 ? 1 : plan.tile[plan.partition];
    state = LoadOp::create(builder, loc, tileType(stateShape, builder.getI64Type()), bufferOf(access.buffer),
                           ValueRange(), access.offset, ArrayRef<int64_t>(), strides);
    scopes.back()[key] = state;
  }
  state = firstPartitions(state, partitions());
  return RandomOp::create(builder, loc, tileType(fullShape(partitions(), own), typeOf(op.getResult()).getElementType()),
                          op.getDistribution(), state, op.getIncrement(), 0, steps, base);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Reductions
//===--------------------------------------------------------------------------------------------------------------===//

Type TileGenerator::accumulatorElement(ReduceOp op) const {
  Type element = typeOf(op.getResult()).getElementType();
  bool sums = op.getKind() == ReduceKind::Sum || op.getKind() == ReduceKind::Prod;
  return isa<FloatType>(element) && sums ? Type(Float32Type::get(op.getContext())) : element;
}

/// A float sum over the partitions that keeps free dimensions is a matrix product with a vector of ones.
bool TileGenerator::sumsOnTensorEngine(ReduceOp op) const {
  if (op.getKind() != ReduceKind::Sum || !endsPartition(op) || !isa<FloatType>(accumulatorElement(op)))
    return false;
  DimMask kept = space().maskOf(op.getResult()) & plan.freeMask();
  return kept != 0;
}

/// Combines the free dimensions of `ended`, keeping them with size 1.
Value TileGenerator::reduceFree(ReduceOp op, Value operand, DimMask ended, Type element) {
  DimMask mask = space().maskOf(op->getOpOperand(0)) | ended;
  operand = expand(operand, fullShape(typeOf(operand).getDimSize(0), mask));
  SmallVector<int64_t> shape(typeOf(operand).getShape()), dims;
  for (unsigned d : plan.free)
    if (ended & bit(d)) {
      dims.push_back(tileDim(d));
      shape[tileDim(d)] = 1;
    }
  llvm::sort(dims);
  if (dims.empty())
    return typeOf(operand).getElementType() == element
               ? operand
               : CastOp::create(builder, op.getLoc(), tileType(shape, element), operand).getResult();
  return ReduceOp::create(builder, op.getLoc(), tileType(shape, element), op.getKind(), operand, dims);
}

Value TileGenerator::neutral(ReduceOp op, ArrayRef<int64_t> shape, Type element) {
  RankedTensorType type = tileType(shape, element);
  auto splat = [&](Attribute value) -> Value {
    return ConstantOp::create(builder, op.getLoc(), type, cast<ElementsAttr>(DenseElementsAttr::get(type, value)));
  };
  if (auto floatType = dyn_cast<FloatType>(element)) {
    const llvm::fltSemantics &semantics = floatType.getFloatSemantics();
    switch (op.getKind()) {
    case ReduceKind::Prod:
      return splat(builder.getFloatAttr(element, 1.0));
    case ReduceKind::Max:
      return splat(builder.getFloatAttr(element, APFloat::getInf(semantics, true)));
    case ReduceKind::Min:
      return splat(builder.getFloatAttr(element, APFloat::getInf(semantics, false)));
    default:
      return splat(builder.getFloatAttr(element, 0.0));
    }
  }
  unsigned width = element.getIntOrFloatBitWidth();
  bool isUnsigned = element.isUnsignedInteger() || element.isInteger(1);
  APInt value(width, 0);
  switch (op.getKind()) {
  case ReduceKind::Prod:
    value = APInt(width, 1);
    break;
  case ReduceKind::Max:
    value = isUnsigned ? APInt::getMinValue(width) : APInt::getSignedMinValue(width);
    break;
  case ReduceKind::Min:
    value = isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width);
    break;
  case ReduceKind::And:
    value = APInt::getAllOnes(width);
    break;
  default:
    break;
  }
  return splat(builder.getIntegerAttr(element, value));
}

SmallVector<Operation *> TileGenerator::activeAccumulators(unsigned level) const {
  SmallVector<Operation *> active;
  for (Operation *op : space().ops()) {
    if (!isa<ReduceOp>(op) || !endsLoop(op))
      continue;
    const TilePlan::Place place = plan.places.lookup(op);
    if (place.level <= level && level < place.home)
      active.push_back(op);
  }
  return active;
}

SmallVector<Operation *> TileGenerator::activeBases(unsigned level) const {
  SmallVector<Operation *> active;
  for (Operation *op : space().ops())
    if (auto it = space().indices.find(op); it != space().indices.end() && bases.contains(op))
      if (it->second.coefficients[plan.nest[level]] != 0)
        active.push_back(op);
  return active;
}

void TileGenerator::startAccumulators(unsigned level) {
  for (Operation *op : space().ops()) {
    if (!isa<ReduceOp>(op) || !endsLoop(op) || plan.places.lookup(op).level != level)
      continue;
    auto reduce = cast<ReduceOp>(op);
    int64_t count = partitions();
    // The partition dimension itself may be among the loops that follow.
    if (plan.partition >= 0 && llvm::is_contained(ArrayRef(plan.nest).drop_front(level), unsigned(plan.partition)))
      count = plan.tile[plan.partition];
    if (sumsOnTensorEngine(reduce) || plan.places.lookup(op).singlePartition != endsPartition(op))
      count = 1;
    SmallVector<int64_t> shape = fullShape(count, space().maskOf(reduce.getResult()));
    accumulators[op] = neutral(reduce, shape, accumulatorElement(reduce));
  }
}

void TileGenerator::emitAccumulation(Operation *op) {
  auto reduce = cast<ReduceOp>(op);
  Location loc = op->getLoc();
  DimMask ended = space().reduced.lookup(op);
  Type element = accumulatorElement(reduce);
  int64_t count = partitions();
  Value operand = tileOf(op->getOpOperand(0), count);
  Value partial;
  if (sumsOnTensorEngine(reduce)) {
    // Free dimensions that end as well are combined first.
    DimMask freeEnded = ended & plan.freeMask();
    if (freeEnded)
      operand = reduceFree(reduce, operand, freeEnded, element);
    operand = expand(operand, fullShape(count, space().maskOf(reduce.getResult()) & plan.freeMask()));
    SmallVector<int64_t> shape(typeOf(operand).getShape());
    shape[0] = 1;
    partial = ReduceOp::create(builder, loc, tileType(shape, element), reduce.getKind(), operand, ArrayRef<int64_t>{0});
  } else {
    if (typeOf(operand).getDimSize(0) != count && endsPartition(op)) {
      SmallVector<int64_t> shape(typeOf(operand).getShape());
      shape[0] = count;
      operand = expand(operand, shape);
    }
    partial = reduceFree(reduce, operand, ended & plan.freeMask(), element);
    partial = expand(partial, fullShape(typeOf(partial).getDimSize(0), space().maskOf(reduce.getResult())));
  }
  if (endsLoop(op)) {
    accumulators[op] = AccumulateOp::create(builder, loc, reduce.getKind(), accumulators[op], partial);
    return;
  }
  // No loop ends here: the partitions are combined at once.
  if (!sumsOnTensorEngine(reduce)) {
    SmallVector<int64_t> shape(typeOf(partial).getShape());
    shape[0] = 1;
    partial = ReduceOp::create(builder, loc, tileType(shape, element), reduce.getKind(), partial, ArrayRef<int64_t>{0});
  }
  Type result = typeOf(reduce.getResult()).getElementType();
  if (result != element)
    partial = CastOp::create(builder, loc, tileType(typeOf(partial).getShape(), result), partial);
  scopes.back()[op] = partial;
}

void TileGenerator::finishAccumulators(unsigned level) {
  for (Operation *op : space().ops()) {
    if (!isa<ReduceOp>(op) || !endsLoop(op) || plan.places.lookup(op).level != level)
      continue;
    auto reduce = cast<ReduceOp>(op);
    Value value = accumulators[op];
    Type element = accumulatorElement(reduce), result = typeOf(reduce.getResult()).getElementType();
    if (endsPartition(op) && !sumsOnTensorEngine(reduce)) {
      SmallVector<int64_t> shape(typeOf(value).getShape());
      shape[0] = 1;
      value = ReduceOp::create(builder, op->getLoc(), tileType(shape, element), reduce.getKind(), value,
                               ArrayRef<int64_t>{0});
    }
    if (result != element)
      value = CastOp::create(builder, op->getLoc(), tileType(typeOf(value).getShape(), result), value);
    scopes.back()[op] = value;
  }
}

//===--------------------------------------------------------------------------------------------------------------===//
// Levels
//===--------------------------------------------------------------------------------------------------------------===//

void TileGenerator::emitReads(unsigned level) {
  for (const HbmAccess *access : classRead) {
    if (plan.levelOf(*access) != level || isa<RandomOp>(access->read->getOwner()) || lookup(access))
      continue;
    // What does not depend on the partitions serves all tiles of the loops inside, the largest included.
    int64_t count = partitions();
    if (plan.partition >= 0 && llvm::is_contained(ArrayRef(plan.nest).drop_front(level), unsigned(plan.partition)))
      count = plan.tile[plan.partition];
    bool onlyOne = llvm::all_of(space().reads, [&](const HbmAccess &read) {
      return classRead[readClass.lookup(read.read)] != access ||
             plan.places.lookup(read.read->getOwner()).singlePartition;
    });
    // Operands of a reduction over partitions are read in every partition.
    scopes.back()[access] = load(*access, onlyOne && !isa<ReduceOp>(access->read->getOwner()) ? 1 : count);
  }
}

void TileGenerator::emitStores(unsigned level) {
  for (auto [write, storeLevel] : llvm::zip_equal(space().writes, plan.storeLevels)) {
    if (storeLevel != level)
      continue;
    Operation *producer = write.written.getDefiningOp();
    Value tile = lookup(producer);
    // A value that does not depend on the partition is stored once.
    bool onPartitions = plan.partition >= 0 && write.strides[plan.partition] != 0;
    tile = firstPartitions(tile, onPartitions ? partitions() : 1);
    SmallVector<int64_t> shape = {onPartitions ? partitions() : 1};
    SmallVector<int64_t> strides = {onPartitions ? write.strides[plan.partition] : 0};
    for (unsigned d : plan.free) {
      shape.push_back(write.strides[d] != 0 ? ranges[d].extent : 1);
      strides.push_back(write.strides[d]);
    }
    if (auto splat = tile.getDefiningOp<ConstantOp>()) {
      // A constant is written where it is needed, in every partition.
      tile = resizeSplat(splat, shape);
    }
    tile = expand(tile, shape);
    TileAddress address{write.offset, {}, {}};
    for (auto [range, stride] : llvm::zip_equal(ranges, write.strides))
      address.add(range, stride);
    StoreOp::create(builder, producer->getLoc(), tile, bufferOf(write.written), address.ivs, address.offset,
                    address.ivStrides, strides);
  }
}

/// Moves the running indices past `count` elements of `dim`.
void TileGenerator::advanceBases(unsigned dim, int64_t count) {
  for (Operation *op : space().ops()) {
    auto it = space().indices.find(op);
    if (it == space().indices.end() || !bases.contains(op) || it->second.coefficients[dim] == 0)
      continue;
    Value base = bases[op];
    SmallVector<int64_t> one(typeOf(base).getRank(), 1);
    Type element = typeOf(base).getElementType();
    RankedTensorType type = tileType(one, element);
    Value step = ConstantOp::create(
        builder, op->getLoc(), type,
        cast<ElementsAttr>(DenseElementsAttr::get(
            type, Attribute(builder.getIntegerAttr(element, it->second.coefficients[dim] * count)))));
    bases[op] = BinaryOp::create(builder, op->getLoc(), base.getType(), BinaryFunction::Add, base, step);
  }
}

void TileGenerator::emitRange(unsigned level, Range range) {
  unsigned dim = plan.nest[level];
  Range saved = ranges[dim];
  ranges[dim] = range;
  emitLevel(level + 1);
  ranges[dim] = saved;
}

void TileGenerator::emitLoops(unsigned level) {
  unsigned dim = plan.nest[level];
  int64_t size = space().sizes[dim], tile = plan.tile[dim], full = size / tile;
  Location loc = builder.getUnknownLoc();
  startAccumulators(level);
  if (full == 1) {
    emitRange(level, {0, tile, Value(), 0});
    advanceBases(dim, tile);
  } else if (full > 1) {
    SmallVector<Operation *> carriedOps = activeAccumulators(level), carriedBases = activeBases(level);
    SmallVector<Value> initial;
    for (Operation *op : carriedOps)
      initial.push_back(accumulators[op]);
    for (Operation *op : carriedBases)
      initial.push_back(bases[op]);
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0), one = arith::ConstantIndexOp::create(builder, loc, 1);
    Value trips = arith::ConstantIndexOp::create(builder, loc, full);
    auto loop = scf::ForOp::create(builder, loc, zero, trips, one, initial);
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(loop.getBody());
      ValueRange carried = loop.getRegionIterArgs();
      for (auto [index, op] : llvm::enumerate(carriedOps))
        accumulators[op] = carried[index];
      for (auto [index, op] : llvm::enumerate(carriedBases))
        bases[op] = carried[carriedOps.size() + index];
      emitRange(level, {0, tile, loop.getInductionVar(), tile});
      advanceBases(dim, tile);
      SmallVector<Value> next;
      for (Operation *op : carriedOps)
        next.push_back(accumulators[op]);
      for (Operation *op : carriedBases)
        next.push_back(bases[op]);
      if (loop.getBody()->empty() || !loop.getBody()->back().hasTrait<OpTrait::IsTerminator>())
        scf::YieldOp::create(builder, loc, next);
      else
        loop.getBody()->getTerminator()->setOperands(next);
    }
    for (auto [index, op] : llvm::enumerate(carriedOps))
      accumulators[op] = loop.getResult(index);
    for (auto [index, op] : llvm::enumerate(carriedBases))
      bases[op] = loop.getResult(carriedOps.size() + index);
  }
  if (int64_t rest = size % tile) {
    emitRange(level, {full * tile, rest, Value(), 0});
    advanceBases(dim, rest);
  }
  if (int(dim) == plan.splitOuter && plan.leftover) {
    Range saved = ranges[plan.splitInner];
    ranges[plan.splitInner] = {0, plan.leftover, Value(), 0};
    emitRange(level, {size, 1, Value(), 0});
    ranges[plan.splitInner] = saved;
  }
}

void TileGenerator::emitLevel(unsigned level) {
  scopes.emplace_back();
  llvm::DenseMap<Operation *, Value> savedBases = bases;
  emitReads(level);
  for (Operation *op : space().ops()) {
    const TilePlan::Place place = plan.places.lookup(op);
    if (isa<ReduceOp>(op) && place.accumulates) {
      if (endsLoop(op) ? place.home == level : place.level == level && !place.post)
        emitAccumulation(op);
    } else if (place.level == level && !place.post) {
      evaluate(op);
    }
  }
  if (level < plan.nest.size()) {
    emitLoops(level);
    finishAccumulators(level);
    for (Operation *op : space().ops()) {
      const TilePlan::Place place = plan.places.lookup(op);
      if (place.level != level || !place.post)
        continue;
      if (isa<ReduceOp>(op) && place.accumulates) {
        if (!endsLoop(op))
          emitAccumulation(op);
      } else {
        evaluate(op);
      }
    }
  }
  emitStores(level);
  bases = std::move(savedBases);
  scopes.pop_back();
}

void TileGenerator::run() {
  // Index functions that some loop moves start with the index of the first tile.
  scopes.emplace_back();
  for (Operation *op : space().ops()) {
    auto it = space().indices.find(op);
    if (it == space().indices.end() || isa<ArgReduceOp>(op))
      continue;
    bool moves = llvm::any_of(plan.nest, [&](unsigned d) { return it->second.coefficients[d] != 0; });
    if (!moves)
      continue;
    SmallVector<int64_t> shape(1 + plan.free.size(), 1), steps(1 + plan.free.size(), 0);
    if (plan.partition >= 0) {
      shape[0] = plan.tile[plan.partition];
      steps[0] = it->second.coefficients[plan.partition];
    }
    Type element = indexFits32(op) ? builder.getI32Type() : builder.getI64Type();
    bases[op] = IotaOp::create(builder, op->getLoc(), tileType(shape, element), it->second.offset, steps);
  }
  emitLevel(0);
  scopes.pop_back();
}

void TileGenerator::beginPlaces(ArrayRef<Range> first) {
  assert(plan.nest.empty() && "the caller has made the loops");
  ranges.assign(first.begin(), first.end());
  scopes.emplace_back();
  if (plan.partition < 0)
    return;
  for (const HbmAccess *access : classRead)
    if (access->strides[plan.partition] == 0)
      scopes.back()[access] = load(*access, partitions());
  for (Operation *op : space().ops())
    if (!(space().maskOf(op->getResult(0)) & bit(plan.partition)))
      evaluate(op);
}

void TileGenerator::runAt(ArrayRef<Range> place, Value buffer, Value tile) {
  ranges.assign(place.begin(), place.end());
  scopes.emplace_back();
  for (const HbmAccess *access : classRead)
    if (access->buffer == buffer)
      scopes.back()[access] = tile;
  emitLevel(0);
  scopes.pop_back();
}

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads, stores and copies between HBM buffers. A transfer falls apart into pieces that are contiguous on both sides,
// so the order in which a tile lies in SBUF decides what it costs: a load may keep the order of its source, which
// instructions then walk with steps; it may be transposed on its way; a store may be preceded by a copy that puts the
// tile in order.

#include "lib/Analysis/TilePlan.h"
#include "neuron/Isa/Cost.h"
#include "passes/Select/KernelSelector.h"

using namespace mlir;
using namespace mlir::neuron;
namespace isa = ::neuroncore::isa;

namespace {

/// The HBM side of a transfer over `sizes` with strides in elements; neighbouring dimensions that one step walks merge,
/// but the last one stays apart if it is a `row` of its own.
isa::HbmPattern hbmPattern(Type element, int64_t offset, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides,
                           bool row = false) {
  isa::HbmPattern pattern;
  int64_t bytes = elementBytes(element);
  pattern.dtype = nisa::toDtype(element);
  pattern.byteOffset = offset * bytes;
  SmallVector<std::pair<int64_t, int64_t>> dims; // step in bytes, count
  for (auto [d, size, stride] : llvm::enumerate(sizes, strides)) {
    if (size == 1)
      continue;
    if (!(row && d + 1 == sizes.size()) && !dims.empty() && dims.back().first == stride * bytes * size &&
        dims.back().second * size <= UINT32_MAX) {
      dims.back() = {stride * bytes, dims.back().second * size};
      continue;
    }
    dims.push_back({stride * bytes, size});
  }
  if (dims.empty())
    dims.push_back({bytes, 1});
  for (size_t d = 0; d < dims.size(); ++d) {
    pattern.step[isa::kMaxHbmDims - dims.size() + d] = dims[d].first;
    pattern.count[isa::kMaxHbmDims - dims.size() + d] = dims[d].second;
  }
  return pattern;
}

template <typename OpTy> nisa::HbmTerms termsOf(OpTy op, const llvm::DenseMap<Value, Value> &counters) {
  nisa::HbmTerms terms;
  int64_t bytes = elementBytes(cast<MemRefType>(op.getBuffer().getType()).getElementType());
  for (auto [iv, stride] : llvm::zip(op.getIvs(), op.getIvStrides())) {
    terms.ivs.push_back(counters.lookup(iv));
    terms.strides.push_back(stride * bytes);
  }
  return terms;
}

/// The free dimensions of a tile in the order of the addresses that their strides reach, outermost first.
SmallVector<int64_t> addressOrder(ArrayRef<int64_t> shape, ArrayRef<int64_t> strides) {
  auto stride = [&](int64_t d) { return shape[d] == 1 || strides[d] == 0 ? INT64_MAX : std::abs(strides[d]); };
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(shape.size()));
  llvm::stable_sort(order, [&](int64_t a, int64_t b) { return stride(a) > stride(b); });
  return order;
}

SmallVector<int64_t> inOrder(ArrayRef<int64_t> values, ArrayRef<int64_t> order) {
  return llvm::map_to_vector(order, [&](int64_t d) { return values[d]; });
}

/// The pattern of a tile with its dimensions in another order.
TileRef withOrder(const TileRef &ref, ArrayRef<int64_t> order) {
  TileRef result = ref;
  result.counts.assign(inOrder(ref.counts, order));
  result.steps.assign(inOrder(ref.steps, order));
  return result;
}

/// A contiguous tile whose dimensions lie in memory in the order `order`.
TileRef laidOut(const TileRef &ref, ArrayRef<int64_t> order) {
  TileRef result = ref;
  int64_t step = 1;
  for (int64_t d : llvm::reverse(order)) {
    result.steps[d] = step;
    step *= ref.counts[d];
  }
  return result;
}

/// Instructions can walk the tile in any order: steps are 16-bit, and 64-bit elements take one dimension for their
/// words.
bool isWalkable(const TileRef &ref) {
  int64_t dims = elementBytes(ref.element) == 8;
  for (auto [count, step] : llvm::zip(ref.counts, ref.steps)) {
    dims += count != 1;
    if (count != 1 && step * (elementBytes(ref.element) == 8 ? 2 : 1) > INT16_MAX)
      return false;
  }
  return dims <= isa::kMaxFreeDims;
}

} // namespace

int64_t KernelSelector::transferPs(const TileRef &tile, const isa::HbmPattern &pattern, bool isLoad,
                                   bool transposes) const {
  auto [engine, code, tiles, scalars, occupancy] = writer.transfer();
  if (transposes)
    code.opcode = isa::Opcode::DmaTranspose;
  code.tiles[isLoad ? 0 : 1] = tile.pattern();
  code.tiles[isLoad ? 1 : 0].space = isa::MemorySpace::Hbm;
  code.hbm[isLoad ? 1 : 0] = pattern;
  return isa::dmaCost(model, engine, code).dataPs();
}

LogicalResult KernelSelector::selectLoad(LoadOp op) {
  TileRef ref = allocateFor(op.getResult());
  RankedTensorType type = typeOf(op.getResult());
  ArrayRef<int64_t> shape = type.getShape(), strides = op.getStrides();
  Type element = type.getElementType();
  auto pattern = [&](ArrayRef<int64_t> order) {
    SmallVector<int64_t> sizes = {shape[0]}, steps = {strides[0]};
    llvm::append_range(sizes, inOrder(shape.drop_front(), order));
    llvm::append_range(steps, inOrder(strides.drop_front(), order));
    return hbmPattern(element, op.getOffset(), sizes, steps);
  };
  // As the tile is declared, in the order of the source, or with the source's rows across the partitions.
  SmallVector<int64_t> declared = llvm::to_vector(llvm::seq<int64_t>(shape.size() - 1));
  SmallVector<int64_t> order = declared;
  bool transposes = false;
  int64_t best = transferPs(ref, pattern(declared), /*isLoad=*/true);
  SmallVector<int64_t> natural = addressOrder(shape.drop_front(), strides.drop_front());
  if (TileRef own = laidOut(ref, natural); natural != declared && isWalkable(own)) {
    int64_t time = transferPs(withOrder(own, natural), pattern(natural), /*isLoad=*/true);
    if (double(time) < kWorthwhilePart * double(best)) {
      best = time;
      order = natural;
    }
  }
  isa::HbmPattern rows;
  int64_t bytes = elementBytes(element);
  if (model.generation() >= 3 && strides[0] == 1 && shape[0] * bytes >= isa::kShortestTransposedRow &&
      ref.elementsPerPartition() > 1 && (bytes == 2 || bytes == 4)) {
    SmallVector<int64_t> sizes(shape.drop_front()), steps(strides.drop_front());
    sizes.push_back(shape[0]);
    steps.push_back(strides[0]);
    rows = hbmPattern(element, op.getOffset(), sizes, steps, /*row=*/true);
    int64_t time = transferPs(ref, rows, /*isLoad=*/true, /*transposes=*/true);
    transposes = double(time) < kWorthwhilePart * double(best);
  }
  if (transposes) {
    writer.dma(op.getLoc(), ref, op.getBuffer(), rows, termsOf(op, loopCounters), /*isLoad=*/true, /*transposes=*/true);
  } else {
    ref = laidOut(ref, order);
    writer.dma(op.getLoc(), withOrder(ref, order), op.getBuffer(), pattern(order), termsOf(op, loopCounters),
               /*isLoad=*/true);
  }
  define(op.getResult(), ref);
  return success();
}

LogicalResult KernelSelector::selectStore(StoreOp op) {
  FailureOr<TileRef> value = exactTile(op.getTile());
  if (failed(value))
    return failure();
  TileRef ref = inSbuf(op.getLoc(), *value);
  RankedTensorType type = typeOf(op.getTile());
  ArrayRef<int64_t> shape = type.getShape(), strides = op.getStrides();
  // The stored shape may repeat what the tile holds once.
  ref.counts.assign(shape.begin() + 1, shape.end());
  for (auto [d, size] : llvm::enumerate(ref.counts))
    if (value->counts[d] == 1 && size != 1)
      ref.steps[d] = 0;
  SmallVector<int64_t> order = addressOrder(shape.drop_front(), strides.drop_front());
  SmallVector<int64_t> sizes = {shape[0]}, steps = {strides[0]};
  llvm::append_range(sizes, inOrder(shape.drop_front(), order));
  llvm::append_range(steps, inOrder(strides.drop_front(), order));
  isa::HbmPattern pattern = hbmPattern(type.getElementType(), op.getOffset(), sizes, steps);
  TileRef source = withOrder(ref, order);
  TileRef ordered = laidOut(ref, order);
  // One more instruction is worth it when elements would be stored one by one.
  if (ordered.steps != ref.steps && isWalkable(ordered) && isWalkable(ref) &&
      transferPs(source, pattern, /*isLoad=*/false) >
          2 * transferPs(withOrder(ordered, order), pattern, /*isLoad=*/false)) {
    TileRef copy = allocate(ref.partitions, inOrder(ref.counts, order), ref.element);
    ordered.buffer = copy.buffer;
    ordered.byteOffset = 0;
    ordered.startPartition = 0;
    writer.tensorCopy(op.getLoc(), ordered, ref);
    source = withOrder(ordered, order);
  }
  writer.dma(op.getLoc(), source, op.getBuffer(), pattern, termsOf(op, loopCounters), /*isLoad=*/false);
  return success();
}

LogicalResult KernelSelector::selectHbmCopy(HbmCopyOp op) {
  Type element = cast<MemRefType>(op.getSource().getType()).getElementType();
  int64_t bytes = elementBytes(element);
  auto [engine, code, tiles, scalars, occupancy] = writer.transfer();
  code.hbm[0] = hbmPattern(element, op.getDestinationOffset(), op.getSizes(), op.getDestinationStrides());
  code.hbm[1] = hbmPattern(element, op.getSourceOffset(), op.getSizes(), op.getSourceStrides());
  nisa::HbmTerms destination, source;
  for (auto [iv, stride] : llvm::zip(op.getDestinationIvs(), op.getDestinationIvStrides())) {
    destination.ivs.push_back(loopCounters.lookup(iv));
    destination.strides.push_back(stride * bytes);
  }
  for (auto [iv, stride] : llvm::zip(op.getSourceIvs(), op.getSourceIvStrides())) {
    source.ivs.push_back(loopCounters.lookup(iv));
    source.strides.push_back(stride * bytes);
  }
  nisa::createInstruction(builder, op.getLoc(), engine, code, {op.getDestination(), op.getSource()}, {}, destination,
                          source);
  return success();
}

/// The HBM side of an indexed transfer: the outermost dimension is the index's, however few rows there are.
static isa::HbmPattern indexedPattern(Type element, int64_t offset, ArrayRef<int64_t> sizes,
                                      ArrayRef<int64_t> strides) {
  isa::HbmPattern pattern = hbmPattern(element, offset, sizes.drop_front(), strides.drop_front());
  pattern.step[0] = strides.front() * elementBytes(element);
  pattern.count[0] = sizes.front();
  return pattern;
}

LogicalResult KernelSelector::selectIndexedLoad(IndexedLoadOp op) {
  FailureOr<TileRef> index = exactTile(op.getIndex());
  if (failed(index))
    return failure();
  TileRef rows = inSbuf(op.getLoc(), *index), ref = allocateFor(op.getResult());
  auto type = typeOf(op.getResult());
  writer.dma(op.getLoc(), ref, op.getBuffer(),
             indexedPattern(type.getElementType(), op.getOffset(), type.getShape(), op.getStrides()),
             termsOf(op, loopCounters), /*isLoad=*/true, /*transposes=*/false, rows);
  define(op.getResult(), ref);
  return success();
}

LogicalResult KernelSelector::selectIndexedStore(IndexedStoreOp op) {
  FailureOr<TileRef> index = exactTile(op.getIndex()), value = exactTile(op.getTile());
  if (failed(index) || failed(value))
    return failure();
  TileRef rows = inSbuf(op.getLoc(), *index), ref = inSbuf(op.getLoc(), *value);
  auto type = typeOf(op.getTile());
  writer.dma(op.getLoc(), ref, op.getBuffer(),
             indexedPattern(type.getElementType(), op.getOffset(), type.getShape(), op.getStrides()),
             termsOf(op, loopCounters), /*isLoad=*/false, /*transposes=*/false, rows);
  return success();
}

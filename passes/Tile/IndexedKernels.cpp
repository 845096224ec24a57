// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One partition per index: blocks of 128 rows, each in pieces that fit on chip. A row is what the other dimensions
// hold, wherever it lies in memory.

#include "passes/Tile/IndexedKernels.h"

#include "neuron/Isa/Instruction.h"

using namespace mlir;
using namespace mlir::neuron;
using ::neuroncore::target::MachineModel;

namespace {

/// Shares of SBUF that pieces leave to the other tiles of a body and to the copies of it under way.
constexpr int64_t kPieceShare = 16;

/// A dimension of the rows, with its strides on both sides.
struct RowDim {
  int64_t size;
  int64_t indexed;  // stride in the buffer that the index addresses
  int64_t straight; // stride in the buffer whose rows are in order
};

class RowMover {
public:
  RowMover(OpBuilder &builder, Location loc, const HbmTensor &indexed, const HbmTensor &straight,
           const HbmTensor &index, int64_t dim, const MachineModel &model)
      : builder(builder), loc(loc), indexed(indexed), straight(straight), index(index), dim(dim) {
    element = cast<MemRefType>(indexed.buffer.getType()).getElementType();
    for (size_t d = 0; d < indexed.layout.sizes.size(); ++d)
      if (static_cast<int64_t>(d) != dim && indexed.layout.sizes[d] != 1)
        dims.push_back({indexed.layout.sizes[d], indexed.layout.strides[d], straight.layout.strides[d]});
    // The innermost dimension of the tile is the closest one in memory.
    llvm::stable_sort(dims, [](const RowDim &a, const RowDim &b) { return a.indexed > b.indexed; });
    SmallVector<RowDim> merged;
    for (const RowDim &d : dims) {
      if (!merged.empty() && merged.back().indexed == d.indexed * d.size &&
          merged.back().straight == d.straight * d.size)
        merged.back() = {merged.back().size * d.size, d.indexed, d.straight};
      else
        merged.push_back(d);
    }
    dims = merged;
    int64_t room = model.memory().sbufUsableBytesPerPartition / kPieceShare / elementBytes(element);
    // A pattern over HBM has one dimension for the index; one over SBUF steps over at most 2^15 elements.
    room = std::min<int64_t>(room, 16384);
    int free = ::neuroncore::isa::kMaxFreeDims;
    for (const RowDim &d : llvm::reverse(dims)) {
      int64_t size = free > 0 ? std::min(d.size, std::max<int64_t>(room, 1)) : 1;
      pieces.push_back(size);
      room = size < d.size ? 1 : room / size;
      free -= size != 1;
    }
    std::reverse(pieces.begin(), pieces.end());
    // With one row the stride is never walked, but has to lead past the end for any other index.
    rows = indexed.layout.sizes[dim];
    int64_t elements = cast<MemRefType>(indexed.buffer.getType()).getDimSize(0);
    rowStride = rows == 1 ? elements : indexed.layout.strides[dim];
    // Counted from the last element of the last row, row `rows` must be outside of the buffer.
    int64_t last = indexed.layout.offset + (rows - 1) * rowStride;
    bool walksForward = rowStride > 0;
    for (const RowDim &d : dims) {
      last += (d.size - 1) * d.indexed;
      walksForward &= d.indexed > 0;
    }
    coversBuffer = walksForward && last == elements - 1;
  }

  /// Whether an index outside of the rows leads outside of the buffer, where the transfer reports it.
  bool checksIndex() const { return coversBuffer; }

  /// Calls `move` for each piece of rows, with the block's index.
  void run(llvm::function_ref<void()> move) {
    forEachTile(builder, loc, index.layout.sizes[0], ScatterOp::kBlock, [&](TileRange block) {
      rowRange = block;
      TileAddress address{index.layout.offset, {}, {}};
      address.add(block, index.layout.strides[0]);
      Type type = cast<MemRefType>(index.buffer.getType()).getElementType();
      indexTile =
          LoadOp::create(builder, loc, RankedTensorType::get({block.extent, 1}, type), index.buffer, address.ivs,
                         address.offset, address.ivStrides, ArrayRef<int64_t>{index.layout.strides[0], 1});
      ranges.clear();
      runPieces(move);
    });
  }

  Value loadIndexed() {
    auto [address, strides] = indexedAddress();
    return IndexedLoadOp::create(builder, loc, tileType(), indexed.buffer, indexTile, address.ivs, address.offset,
                                 address.ivStrides, strides, rows);
  }
  void storeIndexed(Value tile) {
    auto [address, strides] = indexedAddress();
    IndexedStoreOp::create(builder, loc, tile, indexed.buffer, indexTile, address.ivs, address.offset,
                           address.ivStrides, strides, rows);
  }
  Value load() {
    auto [address, strides] = straightAddress();
    return LoadOp::create(builder, loc, tileType(), straight.buffer, address.ivs, address.offset, address.ivStrides,
                          strides);
  }
  void store(Value tile) {
    auto [address, strides] = straightAddress();
    StoreOp::create(builder, loc, tile, straight.buffer, address.ivs, address.offset, address.ivStrides, strides);
  }

private:
  void runPieces(llvm::function_ref<void()> move) {
    size_t d = ranges.size();
    if (d == dims.size())
      return move();
    forEachTile(builder, loc, dims[d].size, pieces[d], [&](TileRange range) {
      ranges.push_back(range);
      runPieces(move);
      ranges.pop_back();
    });
  }

  RankedTensorType tileType() {
    SmallVector<int64_t> shape = {rowRange.extent};
    for (auto [range, piece] : llvm::zip_equal(ranges, pieces))
      if (piece != 1)
        shape.push_back(range.extent);
    if (shape.size() == 1)
      shape.push_back(1);
    return RankedTensorType::get(shape, element);
  }

  std::pair<TileAddress, SmallVector<int64_t>> addressOf(TileAddress address, int64_t partitionStride, bool ofIndexed) {
    SmallVector<int64_t> strides = {partitionStride};
    for (auto [range, piece, d] : llvm::zip_equal(ranges, pieces, dims)) {
      int64_t stride = ofIndexed ? d.indexed : d.straight;
      address.add(range, stride);
      if (piece != 1)
        strides.push_back(stride);
    }
    if (strides.size() == 1)
      strides.push_back(1);
    return {std::move(address), std::move(strides)};
  }

  std::pair<TileAddress, SmallVector<int64_t>> indexedAddress() {
    return addressOf({indexed.layout.offset, {}, {}}, rowStride, true);
  }

  std::pair<TileAddress, SmallVector<int64_t>> straightAddress() {
    TileAddress address{straight.layout.offset, {}, {}};
    address.add(rowRange, straight.layout.strides[dim]);
    return addressOf(std::move(address), straight.layout.strides[dim], false);
  }

  OpBuilder &builder;
  Location loc;
  const HbmTensor &indexed, &straight, &index;
  int64_t dim;
  Type element;
  SmallVector<RowDim> dims;
  SmallVector<int64_t> pieces;
  int64_t rows = 0, rowStride = 0;
  bool coversBuffer = false;
  // The current piece.
  TileRange rowRange;
  SmallVector<TileRange> ranges;
  Value indexTile;
};

LogicalResult refuseUnchecked(Operation *op) {
  return op->emitError() << "internal: expected an index outside the rows to lead outside the buffer";
}

} // namespace

LogicalResult mlir::neuron::emitGather(OpBuilder &builder, GatherOp op, const HbmTensor &source, const HbmTensor &index,
                                       const HbmTensor &result, const MachineModel &model) {
  RowMover mover(builder, op.getLoc(), source, result, index, op.getDim(), model);
  if (!mover.checksIndex())
    return refuseUnchecked(op);
  mover.run([&] { mover.store(mover.loadIndexed()); });
  return success();
}

LogicalResult mlir::neuron::emitScatter(OpBuilder &builder, ScatterOp op, const HbmTensor &source,
                                        const HbmTensor &index, const HbmTensor &result, const MachineModel &model) {
  RowMover mover(builder, op.getLoc(), result, source, index, op.getDim(), model);
  if (!mover.checksIndex())
    return refuseUnchecked(op);
  mover.run([&] {
    Value rows = mover.load();
    if (op.getAccumulate()) {
      Value old = mover.loadIndexed();
      bool isBool = cast<RankedTensorType>(rows.getType()).getElementType().isInteger(1);
      rows = BinaryOp::create(builder, op.getLoc(), rows.getType(), isBool ? BinaryFunction::Or : BinaryFunction::Add,
                              old, rows);
    }
    mover.storeIndexed(rows);
  });
  return success();
}

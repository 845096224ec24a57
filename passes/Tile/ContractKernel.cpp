// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products on the tensor engine: loops over batch, blocks of rows and blocks of columns. A block of the result
// stays in PSUM while chunks of k are loaded and multiplied; the first chunk starts the sums, a loop adds the others.
// What is computed from the product is computed block by block as well (ContractPlan.h says how blocks are chosen).

#include "passes/Tile/SpecialKernels.h"

using namespace mlir;
using namespace mlir::neuron;

namespace {

using Segment = TileRange;

/// A block of the product, as tiles of rows, and where it lies.
using FinishFn = llvm::function_ref<void(ArrayRef<Value> tiles, Segment batch, Segment rows, Segment columns)>;

class ContractEmitter {
public:
  ContractEmitter(OpBuilder &builder, Location loc, const HbmTensor &lhs, const HbmTensor &rhs,
                  const ContractPlan &plan, const ::neuroncore::target::MachineModel &model, FinishFn finish)
      : b(builder), loc(loc), lhs(lhs), rhs(rhs), plan(plan), finish(finish) {
    partitions = model.tensorEngine().rows;
    elementType = cast<MemRefType>(lhs.buffer.getType()).getElementType();
  }

  void run() {
    forEachTile(b, loc, lhs.layout.sizes[0], 1, [&](Segment batch) {
      forEachTile(b, loc, lhs.layout.sizes[1], plan.rows, [&](Segment rows) {
        forEachTile(b, loc, rhs.layout.sizes[2], plan.columns,
                    [&](Segment columns) { emitBlock(batch, rows, columns); });
      });
    });
  }

private:
  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }

  /// The tile [first, second] of two dimensions of the tensor; with `tiles` > 0 the first is cut into pieces that run
  /// side by side along the free axis: [first / tiles, tiles, second].
  Value load(const HbmTensor &tensor, Segment batch, Segment first, unsigned firstDim, int64_t tiles, Segment second,
             unsigned secondDim) {
    TileAddress address{tensor.layout.offset, {}, {}};
    address.add(batch, tensor.layout.strides[0]);
    address.add(first, tensor.layout.strides[firstDim]);
    address.add(second, tensor.layout.strides[secondDim]);
    int64_t firstStride = tensor.layout.strides[firstDim], secondStride = tensor.layout.strides[secondDim];
    SmallVector<int64_t> shape = {first.extent, second.extent}, strides = {firstStride, secondStride};
    if (tiles) {
      shape = {first.extent / tiles, tiles, second.extent};
      strides = {firstStride, firstStride * (first.extent / tiles), secondStride};
    }
    auto type = RankedTensorType::get(shape, elementType);
    return LoadOp::create(b, loc, type, tensor.buffer, address.ivs, address.offset, address.ivStrides, strides);
  }

  /// [other, k] as [k, 1, other].
  Value transpose(Value tile) {
    auto type = cast<RankedTensorType>(tile.getType());
    auto transposed = RankedTensorType::get({type.getDimSize(1), 1, type.getDimSize(0)}, type.getElementType());
    return TileTransposeOp::create(b, loc, transposed, tile);
  }

  Value slice(Value tile, ArrayRef<int64_t> starts, ArrayRef<int64_t> shape) {
    return sliceTile(b, loc, tile, starts, shape);
  }

  /// What the accumulators of a block of rows become when products over `depth` are added; all null: the products start
  /// them.
  void multiply(Segment batch, Segment rows, Segment columns, Segment depth, MutableArrayRef<Value> accumulators) {
    int64_t whole = depth.extent / partitions * partitions, rest = depth.extent - whole;
    if (whole)
      multiplyTiles(batch, rows, columns, depth.part(0, whole), whole / partitions, accumulators);
    if (rest)
      multiplyTiles(batch, rows, columns, depth.part(whole, rest), 1, accumulators);
  }

  void multiplyTiles(Segment batch, Segment rows, Segment columns, Segment depth, int64_t tiles,
                     MutableArrayRef<Value> accumulators) {
    bool whole = plan.lhs != OperandOrder::TensorEngineTranspose && plan.rhs != OperandOrder::TensorEngineTranspose;
    if (whole) {
      Value left = load(lhs, batch, depth, 2, tiles, rows, 1), right = load(rhs, batch, depth, 1, tiles, columns, 2);
      int64_t k = depth.extent / tiles;
      for (auto [r, accumulator] : llvm::enumerate(accumulators)) {
        int64_t start = int64_t(r) * partitions, extent = std::min(partitions, rows.extent - start);
        add(accumulator, slice(left, {0, 0, start}, {k, tiles, extent}), right);
      }
      return;
    }
    // Tile by tile, so that each transposed one is used at once.
    int64_t k = depth.extent / tiles;
    SmallVector<Value> leftRows;
    Value leftAll, rightAll;
    if (plan.lhs == OperandOrder::TensorEngineTranspose) {
      for (size_t r = 0; r < accumulators.size(); ++r) {
        int64_t start = int64_t(r) * partitions, extent = std::min(partitions, rows.extent - start);
        leftRows.push_back(load(lhs, batch, rows.part(start, extent), 1, 0, depth, 2));
      }
    } else {
      leftAll = load(lhs, batch, depth, 2, tiles, rows, 1);
    }
    if (plan.rhs == OperandOrder::TensorEngineTranspose)
      rightAll = load(rhs, batch, columns, 2, 0, depth, 1);
    else
      rightAll = load(rhs, batch, depth, 1, tiles, columns, 2);
    for (int64_t t = 0; t < tiles; ++t) {
      Value right = plan.rhs == OperandOrder::TensorEngineTranspose
                        ? transpose(slice(rightAll, {0, t * k}, {columns.extent, k}))
                        : slice(rightAll, {0, t, 0}, {k, 1, columns.extent});
      for (auto [r, accumulator] : llvm::enumerate(accumulators)) {
        int64_t start = int64_t(r) * partitions, extent = std::min(partitions, rows.extent - start);
        Value left = leftAll ? slice(leftAll, {0, t, start}, {k, 1, extent})
                             : transpose(slice(leftRows[r], {0, t * k}, {extent, k}));
        add(accumulator, left, right);
      }
    }
  }

  void add(Value &accumulator, Value stationary, Value moving) {
    int64_t m = cast<RankedTensorType>(stationary.getType()).getShape().back();
    int64_t n = cast<RankedTensorType>(moving.getType()).getShape().back();
    auto type = RankedTensorType::get({m, n}, b.getF32Type());
    Value product = TileMatmulOp::create(b, loc, type, stationary, moving);
    accumulator =
        accumulator ? AccumulateOp::create(b, loc, ReduceKind::Sum, accumulator, product).getResult() : product;
  }

  void emitBlock(Segment batch, Segment rows, Segment columns) {
    int64_t depth = lhs.layout.sizes[2], whole = depth / plan.depth, rest = depth % plan.depth;
    SmallVector<Value> accumulators(llvm::divideCeil(rows.extent, partitions));
    if (whole)
      multiply(batch, rows, columns, {0, plan.depth, Value(), 0}, accumulators);
    if (whole == 2)
      multiply(batch, rows, columns, {plan.depth, plan.depth, Value(), 0}, accumulators);
    if (whole > 2) {
      auto loop = scf::ForOp::create(b, loc, index(0), index(whole - 1), index(1), accumulators);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      SmallVector<Value> carried(loop.getRegionIterArgs());
      multiply(batch, rows, columns, {plan.depth, plan.depth, loop.getInductionVar(), plan.depth}, carried);
      scf::YieldOp::create(b, loc, carried);
      accumulators.assign(loop.getResults().begin(), loop.getResults().end());
    }
    if (rest)
      multiply(batch, rows, columns, {whole * plan.depth, rest, Value(), 0}, accumulators);
    finish(accumulators, batch, rows, columns);
  }

  OpBuilder &b;
  Location loc;
  const HbmTensor &lhs, &rhs;
  const ContractPlan &plan;
  FinishFn finish;
  int64_t partitions;
  Type elementType;
};

} // namespace

void mlir::neuron::emitContract(OpBuilder &builder, ContractOp op, const ContractKernelPlan &plan, const HbmTensor &lhs,
                                const HbmTensor &rhs, const HbmTensor &product, TileGenerator::BufferFn bufferOf,
                                const ::neuroncore::target::MachineModel &model) {
  Type element = cast<RankedTensorType>(op.getType()).getElementType();
  auto store = [&](Value tile, ArrayRef<Segment> segments) {
    TileAddress address{product.layout.offset, {}, {}};
    for (auto [segment, stride] : llvm::zip(segments, product.layout.strides))
      address.add(segment, stride);
    StoreOp::create(builder, op.getLoc(), tile, product.buffer, address.ivs, address.offset, address.ivStrides,
                    ArrayRef<int64_t>(product.layout.strides).drop_front());
  };
  auto finish = [&](ArrayRef<Value> tiles, Segment batch, Segment rows, Segment columns) {
    bool hasEpilogue = !plan.epilogue.space.ops().empty();
    TileGenerator generator(builder, plan.epilogue, bufferOf);
    int64_t start = 0;
    for (Value tile : tiles) {
      auto type = cast<RankedTensorType>(tile.getType());
      const Segment segments[] = {batch, rows.part(start, type.getDimSize(0)), columns};
      start += type.getDimSize(0);
      SmallVector<Segment> place(plan.epilogue.space.numDims());
      const int dims[] = {plan.batchDim, plan.rowDim, plan.columnDim};
      for (auto [segment, dim] : llvm::zip(segments, dims))
        if (dim >= 0)
          place[dim] = segment;
      if (hasEpilogue && tile == tiles.front())
        generator.beginPlaces(place);
      if (element != type.getElementType())
        tile = CastOp::create(builder, op.getLoc(), RankedTensorType::get(type.getShape(), element), tile);
      if (product.buffer)
        store(tile, segments);
      if (hasEpilogue)
        generator.runAt(place, op.getResult(), tile);
    }
    if (hasEpilogue)
      generator.endPlaces();
  };
  ContractEmitter(builder, op.getLoc(), lhs, rhs, plan.blocks, model, finish).run();
}

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Tile/TileLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::neuron;

void TileAddress::add(const TileRange &range, int64_t stride) {
  offset += range.start * stride;
  if (range.iv && stride != 0) {
    ivs.push_back(range.iv);
    ivStrides.push_back(range.step * stride);
  }
}

void mlir::neuron::forEachTile(OpBuilder &builder, Location loc, int64_t size, int64_t tile,
                               llvm::function_ref<void(TileRange)> body) {
  int64_t whole = size / tile;
  if (whole == 1) {
    body({0, tile, Value(), 0});
  } else if (whole > 1) {
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0), one = arith::ConstantIndexOp::create(builder, loc, 1);
    Value trips = arith::ConstantIndexOp::create(builder, loc, whole);
    auto loop = scf::ForOp::create(builder, loc, zero, trips, one);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(loop.getBody()->getTerminator());
    body({0, tile, loop.getInductionVar(), tile});
  }
  if (int64_t rest = size % tile)
    body({whole * tile, rest, Value(), 0});
}

Value mlir::neuron::sliceTile(OpBuilder &builder, Location loc, Value tile, ArrayRef<int64_t> starts,
                              ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(tile.getType());
  if (type.getShape() == shape)
    return tile;
  SmallVector<int64_t> steps(shape.size(), 1);
  return SliceOp::create(builder, loc, RankedTensorType::get(shape, type.getElementType()), tile, starts, steps);
}

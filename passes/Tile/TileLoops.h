// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every generator of tiles needs: parts of dimensions, loops over them, addresses in HBM, boxes of a tile.

#ifndef PASSES_TILE_TILELOOPS_H
#define PASSES_TILE_TILELOOPS_H

#include "dialects/Neuron/NeuronOps.h"

namespace mlir::neuron {

/// What a dimension covers at one place: start + iv * step + [0, extent).
struct TileRange {
  int64_t start = 0;
  int64_t extent = 1;
  Value iv; // null: one place
  int64_t step = 0;

  /// [start + offset, start + offset + size).
  TileRange part(int64_t offset, int64_t size) const { return {start + offset, size, iv, step}; }
};

/// The address of a tile in a buffer, in elements.
struct TileAddress {
  int64_t offset = 0;
  SmallVector<Value> ivs;
  SmallVector<int64_t> ivStrides;

  void add(const TileRange &range, int64_t stride);
};

/// Whole tiles of a dimension as one loop, the rest as straight-line code.
void forEachTile(OpBuilder &builder, Location loc, int64_t size, int64_t tile,
                 llvm::function_ref<void(TileRange)> body);

/// The box of `shape` at `starts`; the tile itself when that is all of it.
Value sliceTile(OpBuilder &builder, Location loc, Value tile, ArrayRef<int64_t> starts, ArrayRef<int64_t> shape);

} // namespace mlir::neuron

#endif // PASSES_TILE_TILELOOPS_H

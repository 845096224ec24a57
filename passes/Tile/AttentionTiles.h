// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What attention and its gradient share: heads, tiles in HBM, scores.

#ifndef PASSES_TILE_ATTENTIONTILES_H
#define PASSES_TILE_ATTENTIONTILES_H

#include "passes/Tile/SpecialKernels.h"

namespace mlir::neuron {

class AttentionTiles {
protected:
  using Segment = TileRange;
  /// Where the loops over batch, group and head of the group are.
  struct Head {
    Segment batch, group, head;
  };

  /// `query`, `key` and `value` are those of the attention.
  AttentionTiles(OpBuilder &builder, Location loc, const HbmTensor &query, const HbmTensor &key, const HbmTensor &value,
                 const HbmTensor &mask, double scale, bool causal, const ::neuroncore::target::MachineModel &model);

  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  void forEach(int64_t size, int64_t tile, llvm::function_ref<void(Segment)> body) {
    forEachTile(b, loc, size, tile, body);
  }
  /// Groups of heads that share keys and values; `at.head` is left alone.
  void forEachGroup(llvm::function_ref<void()> body);
  void forEachHead(llvm::function_ref<void()> body);

  static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
  RankedTensorType f32(ArrayRef<int64_t> shape) { return RankedTensorType::get(shape, b.getF32Type()); }
  Value constant(ArrayRef<int64_t> shape, double value) { return ConstantOp::create(b, loc, f32(shape), value); }
  Value binary(BinaryFunction function, Value lhs, Value rhs);
  Value scaled(Value value, double factor) {
    return binary(BinaryFunction::Mul, value, constant({typeOf(value).getDimSize(0), 1}, factor));
  }
  /// exp(value * scale + exponent)
  Value exponential(Value value, double scale, Value exponent) {
    Value sum = binary(BinaryFunction::Add, scaled(value, scale), exponent);
    return UnaryOp::create(b, loc, sum.getType(), UnaryFunction::Exp, sum);
  }
  Value slice(Value tile, ArrayRef<int64_t> starts, ArrayRef<int64_t> shape) {
    return sliceTile(b, loc, tile, starts, shape);
  }
  Value castTo(Value value, Type type) {
    return typeOf(value).getElementType() == type
               ? value
               : CastOp::create(b, loc, RankedTensorType::get(typeOf(value).getShape(), type), value).getResult();
  }

  /// The position of the current head; `shared`: of its group, in tensors of keys and values.
  TileAddress placeOfHead(const HbmTensor &tensor, bool shared);
  Value load(const HbmTensor &tensor, const TileAddress &place, ArrayRef<int64_t> shape, ArrayRef<int64_t> strides);
  void store(Value tile, const HbmTensor &tensor, const TileAddress &place, ArrayRef<int64_t> strides) {
    StoreOp::create(b, loc, tile, tensor.buffer, place.ivs, place.offset, place.ivStrides, strides);
  }
  /// Rows with their elements on the partitions, in equal pieces: [size / pieces, pieces, rows].
  Value loadTransposed(const HbmTensor &tensor, bool shared, Segment segment);
  /// Rows of the current head on the partitions: [rows, size].
  Value loadRows(const HbmTensor &tensor, bool shared, Segment segment);
  void storeRows(Value tile, const HbmTensor &tensor, bool shared, Segment segment);

  /// Makes `triangle`: 0 where a row sees a key of its own diagonal tile, elsewhere a number that makes every
  /// exponential 0; and `identity`, with which the tensor engine adds a triangle to scores.
  void makeTriangle();
  /// The scores of a tile of rows and some keys; multiplied with `factor()` they are exponents. The last `diagonal` of
  /// the keys belong to the rows' diagonal tile.
  Value scores(Value query, Value keyTile, Segment tileRows, Segment tileKeys, int64_t diagonal);
  double factor() const { return mask.buffer ? 1 : scale; }

  /// Splits columns into tiles of the partitions that leave PSUM together, `most` at a time: start, size of a tile and
  /// number of tiles.
  void forEachPiece(int64_t width, llvm::function_ref<void(int64_t start, int64_t size, int64_t count)> body);

  OpBuilder &b;
  Location loc;
  const HbmTensor &mask;
  Type element;
  int64_t partitions, batches, groups, headsPerGroup, rows, depth, keys, valueDepth;
  double scale;
  bool causal;
  Value triangle, identity;
  Head at;
};

} // namespace mlir::neuron

#endif // PASSES_TILE_ATTENTIONTILES_H

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

  /// `op` is neuron.attention or its gradient, `tensors` what belongs to it.
  template <typename OpTy, typename Tensors>
  AttentionTiles(OpBuilder &builder, OpTy op, const Tensors &tensors, const ::neuroncore::target::MachineModel &model)
      : b(builder), loc(op.getLoc()), mask(tensors.mask), state(tensors.state), index(tensors.index),
        scale(op.getScale().convertToDouble()), causal(op.getCausal()) {
    setSizes(tensors.query, tensors.key, tensors.value, model);
    if (op.getFill())
      setFill(op.getFill()->convertToDouble());
    if (op.getDropout())
      kept = 1 - op.getDropout()->convertToDouble();
  }

  Value indexConstant(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  void forEach(int64_t size, int64_t tile, llvm::function_ref<void(Segment)> body) {
    forEachTile(b, loc, size, tile, body);
  }
  /// Groups of heads that share keys and values; `at.head` is left alone.
  void forEachGroup(llvm::function_ref<void()> body);
  void forEachHead(llvm::function_ref<void()> body);

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
  /// One number of each row of the current head: [rows, 1].
  Value loadColumn(const HbmTensor &tensor, Segment segment);
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
  /// exponential 0; and `identity`, with which the tensor engine adds a triangle to scores where there is no mask.
  void makeTriangle();
  /// The scores of a tile of rows and some keys; multiplied with `factor()` they are exponents. The last `diagonal` of
  /// the keys belong to the rows' diagonal tile.
  Value scores(Value query, Value keyTile, Segment tileRows, Segment tileKeys, int64_t diagonal);
  double factor() const { return mask.buffer && !fill ? 1 : scale; }

  bool drops() const { return state.buffer != nullptr; }
  /// Makes `randomState`.
  void loadRandomState();
  /// `number` [rows, 1] of i64, `count` further.
  Value advanced(Value number, int64_t count);
  /// 1 where dropout keeps a weight, 0 where not. `number`: those of the elements `offset` before the first.
  Value keptWeights(Value number, int64_t offset, int64_t width);

  /// Splits columns into tiles of the partitions that leave PSUM together, `most` at a time: start, size of a tile and
  /// number of tiles.
  void forEachPiece(int64_t width, llvm::function_ref<void(int64_t start, int64_t size, int64_t count)> body);

  OpBuilder &b;
  Location loc;
  const HbmTensor &mask, &state, &index;
  Type element;
  int64_t partitions, batches, groups, headsPerGroup, rows, depth, keys, valueDepth;
  double scale;
  std::optional<double> fill; // what a mask of i1 puts in the place of a score, before it is scaled
  bool causal;
  double kept = 1; // the share of weights that dropout keeps
  Value triangle, identity, randomState;
  Head at;

private:
  void setSizes(const HbmTensor &query, const HbmTensor &key, const HbmTensor &value,
                const ::neuroncore::target::MachineModel &model);
  void setFill(double value);
};

} // namespace mlir::neuron

#endif // PASSES_TILE_ATTENTIONTILES_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Tile/AttentionTiles.h"

#include <cmath>
#include <limits>

#include "dialects/Neuron/NeuronAttentionOps.h"

using namespace mlir;
using namespace mlir::neuron;

/// Added to scores that a row must not see. Finite, because the tensor engine multiplies it with 0 as well; exact in
/// bfloat16.
static constexpr double kHidden = -0x1.fep127;
/// Transposed tiles that leave PSUM together, in bytes of a partition.
static constexpr int64_t kTurnedBytes = 1024;

void AttentionTiles::setSizes(const HbmTensor &query, const HbmTensor &key, const HbmTensor &value,
                              const ::neuroncore::target::MachineModel &model) {
  partitions = model.tensorEngine().rows;
  element = cast<MemRefType>(query.buffer.getType()).getElementType();
  ArrayRef<int64_t> q = query.layout.sizes, k = key.layout.sizes;
  batches = q[0];
  groups = k[1];
  headsPerGroup = q[1] / k[1];
  rows = q[2];
  depth = q[3];
  keys = k[2];
  valueDepth = value.layout.sizes[3];
}

/// What is finite stays so: a row that sees nothing else has equal weights.
void AttentionTiles::setFill(double value) {
  constexpr double least = std::numeric_limits<float>::lowest();
  fill = std::isinf(value) ? value : std::clamp(value / scale, least, -least);
}

void AttentionTiles::forEachGroup(llvm::function_ref<void()> body) {
  forEach(batches, 1, [&](Segment batch) {
    forEach(groups, 1, [&](Segment group) {
      at.batch = batch;
      at.group = group;
      body();
    });
  });
}

void AttentionTiles::forEachHead(llvm::function_ref<void()> body) {
  forEachGroup([&] {
    forEach(headsPerGroup, 1, [&](Segment head) {
      at.head = head;
      body();
    });
  });
}

Value AttentionTiles::binary(BinaryFunction function, Value lhs, Value rhs) {
  SmallVector<int64_t> shape(typeOf(lhs).getShape());
  for (auto [d, size] : llvm::enumerate(typeOf(rhs).getShape()))
    shape[d] = std::max(shape[d], size);
  return BinaryOp::create(b, loc, f32(shape), function, lhs, rhs);
}

TileAddress AttentionTiles::placeOfHead(const HbmTensor &tensor, bool shared) {
  TileAddress place;
  place.offset = tensor.layout.offset;
  auto stride = [&](unsigned d) { return tensor.layout.sizes[d] == 1 ? 0 : tensor.layout.strides[d]; };
  place.add(at.batch, stride(0));
  if (shared) {
    place.add(at.group, stride(1));
  } else {
    place.add({at.group.start * headsPerGroup, 1, at.group.iv, at.group.step * headsPerGroup}, stride(1));
    place.add(at.head, stride(1));
  }
  return place;
}

Value AttentionTiles::load(const HbmTensor &tensor, const TileAddress &place, ArrayRef<int64_t> shape,
                           ArrayRef<int64_t> strides) {
  Type type = cast<MemRefType>(tensor.buffer.getType()).getElementType();
  return LoadOp::create(b, loc, RankedTensorType::get(shape, type), tensor.buffer, place.ivs, place.offset,
                        place.ivStrides, strides);
}

Value AttentionTiles::loadColumn(const HbmTensor &tensor, Segment segment) {
  TileAddress place = placeOfHead(tensor, /*shared=*/false);
  place.add(segment, tensor.layout.strides[2]);
  return load(tensor, place, {segment.extent, 1}, {tensor.layout.strides[2], 1});
}

Value AttentionTiles::loadTransposed(const HbmTensor &tensor, bool shared, Segment segment) {
  TileAddress place = placeOfHead(tensor, shared);
  int64_t rowStride = tensor.layout.strides[2], stride = tensor.layout.strides[3];
  place.add(segment, rowStride);
  int64_t size = tensor.layout.sizes[3], pieces = llvm::divideCeil(size, partitions), piece = size / pieces;
  return load(tensor, place, {piece, pieces, segment.extent}, {stride, stride * piece, rowStride});
}

Value AttentionTiles::loadRows(const HbmTensor &tensor, bool shared, Segment segment) {
  TileAddress place = placeOfHead(tensor, shared);
  place.add(segment, tensor.layout.strides[2]);
  return load(tensor, place, {segment.extent, tensor.layout.sizes[3]},
              {tensor.layout.strides[2], tensor.layout.strides[3]});
}

void AttentionTiles::storeRows(Value tile, const HbmTensor &tensor, bool shared, Segment segment) {
  TileAddress place = placeOfHead(tensor, shared);
  place.add(segment, tensor.layout.strides[2]);
  store(tile, tensor, place, {tensor.layout.strides[2], tensor.layout.strides[3]});
}

/// bfloat16 whatever the operands are, for its range.
void AttentionTiles::makeTriangle() {
  int64_t size = std::min(partitions, std::max(rows, keys));
  Value row = IotaOp::create(b, loc, f32({size, 1}), 0, ArrayRef<int64_t>{1, 0});
  Value column = IotaOp::create(b, loc, f32({size, size}), 0, ArrayRef<int64_t>{0, 1});
  auto choose = [&](ComparePredicate predicate, double yes, double no) -> Value {
    Value chosen =
        CompareOp::create(b, loc, RankedTensorType::get({size, size}, b.getI1Type()), predicate, column, row);
    return SelectOp::create(b, loc, f32({size, size}), chosen, constant({size, 1}, yes), constant({size, 1}, no));
  };
  // A mask may hold numbers as low as what hides, which the vector engine adds afterwards.
  if (mask.buffer) {
    triangle = choose(ComparePredicate::Le, 0, -std::numeric_limits<double>::infinity());
    return;
  }
  triangle = castTo(choose(ComparePredicate::Le, 0, kHidden), b.getBF16Type());
  identity = castTo(choose(ComparePredicate::Eq, 1, 0), b.getBF16Type());
}

Value AttentionTiles::scores(Value query, Value keyTile, Segment tileRows, Segment tileKeys, int64_t diagonal) {
  int64_t count = tileRows.extent, width = tileKeys.extent;
  Value tile = TileMatmulOp::create(b, loc, f32({count, width}), query, keyTile);
  auto addToLast = [&](Value hidden) {
    auto sum = AccumulateOp::create(b, loc, ReduceKind::Sum, tile, hidden);
    sum->setAttr(attribute::kColumn, b.getI64IntegerAttr(width - diagonal));
    return sum.getResult();
  };
  if (!mask.buffer) {
    // The tensor engine adds the triangle to the last columns.
    if (diagonal)
      tile = addToLast(TileMatmulOp::create(b, loc, f32({count, diagonal}), slice(identity, {0, 0}, {count, count}),
                                            slice(triangle, {0, 0}, {count, diagonal})));
    return tile;
  }
  TileAddress place = placeOfHead(mask, /*shared=*/false);
  int64_t rowStride = mask.layout.sizes[2] == 1 ? 0 : mask.layout.strides[2];
  place.add(tileRows, rowStride);
  place.add(tileKeys, mask.layout.strides[3]);
  Value added = load(mask, place, {count, width}, {rowStride, mask.layout.strides[3]});
  if (fill)
    tile = SelectOp::create(b, loc, tile.getType(), added, tile, constant({count, 1}, *fill));
  else
    tile = binary(BinaryFunction::Add, scaled(tile, scale), added);
  return diagonal ? addToLast(slice(triangle, {0, 0}, {count, diagonal})) : tile;
}

void AttentionTiles::loadRandomState() {
  TileAddress place;
  place.offset = state.layout.offset;
  randomState = load(state, place, {std::min(partitions, rows), 2}, {0, state.layout.strides[0]});
}

Value AttentionTiles::advanced(Value number, int64_t count) {
  if (count == 0)
    return number;
  RankedTensorType type = typeOf(number);
  Value step = ConstantOp::create(
      b, loc, type, cast<ElementsAttr>(DenseElementsAttr::get(type, Attribute(b.getI64IntegerAttr(count)))));
  return BinaryOp::create(b, loc, type, BinaryFunction::Add, number, step);
}

Value AttentionTiles::keptWeights(Value number, int64_t offset, int64_t width) {
  int64_t count = typeOf(number).getDimSize(0);
  number = advanced(number, offset);
  Value uniform =
      RandomOp::create(b, loc, f32({count, width}), RandomDistribution::Uniform, slice(randomState, {0, 0}, {count, 2}),
                       /*increment=*/0, /*index_offset=*/0, ArrayRef<int64_t>{0, 1}, number);
  auto type = RankedTensorType::get({count, width}, b.getI1Type());
  return castTo(CompareOp::create(b, loc, type, ComparePredicate::Lt, uniform, constant({count, 1}, kept)),
                b.getF32Type());
}

void AttentionTiles::forEachPiece(int64_t width,
                                  llvm::function_ref<void(int64_t start, int64_t size, int64_t count)> body) {
  const int64_t most = kTurnedBytes / (partitions * elementBytes(element));
  int64_t start = 0;
  for (int64_t whole = width / partitions; whole > 0;) {
    int64_t count = std::min(whole, most);
    body(start, partitions, count);
    start += count * partitions;
    whole -= count;
  }
  if (start < width)
    body(start, width - start, 1);
}

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradient of attention in two passes over pairs of a tile of rows and a block of keys, each of which computes its
// scores anew, so that neither weights nor partial sums are ever in HBM: one pass holds the sums of query rows and
// walks the keys they see, the other holds the sums of keys and values and walks the rows (of all heads of their group)
// that see them. Sums stay in PSUM, always in the same order. For heads that do not fit on chip
// (AttentionBackwardPipeline.cpp).
//
// Rows are on the partitions of scores, weights = exp(factor * scores - logsumexp) and slopes = weights * (gradient *
// transpose(value) - delta): as they are, the tensor engine multiplies their transposes with rows of queries and
// gradients. For the gradient of the queries slopes are transposed.

#include <limits>

#include "passes/Tile/AttentionTiles.h"

using namespace mlir;
using namespace mlir::neuron;

namespace {

/// Keys whose scores are computed together: a PSUM bank.
constexpr int64_t kBlockTiles = 4;
/// Tiles of rows that share what is loaded of keys and values in the pass over keys.
constexpr int64_t kRowTiles = 4;
/// Sums of keys and values may take half of PSUM.
constexpr int64_t kSumBytes = 8192;

class AttentionBackwardEmitter : AttentionTiles {
public:
  AttentionBackwardEmitter(OpBuilder &builder, AttentionBackwardOp op, const AttentionBackwardTensors &tensors,
                           const ::neuroncore::target::MachineModel &model)
      : AttentionTiles(builder, op, tensors, model), tensors(tensors) {}

  void run() {
    if (causal)
      makeTriangle();
    if (drops())
      loadRandomState();
    if (tensors.queryGradient.buffer)
      sumQueries();
    if (tensors.keyGradient.buffer || tensors.valueGradient.buffer)
      sumKeys();
  }

private:
  /// What belongs to a tile of rows.
  struct Rows {
    Segment segment;
    Value query, gradient;  // [size / pieces, pieces, rows]
    Value exponent, delta;  // [rows, 1]; exponents are relative to the former
    Value queries, outputs; // rows of query and gradient; null when nobody multiplies with them
    Value number;           // with dropout: of the row's first element
  };
  /// What belongs to a block of keys.
  struct Keys {
    Segment segment;
    Value key, value; // [size / pieces, pieces, keys]
  };
  struct Pair {
    Value weights, slopes; // [rows, keys]
  };

  Rows loadRowTile(Segment segment, bool forKeys) {
    Rows result;
    result.segment = segment;
    result.query = loadTransposed(tensors.query, /*shared=*/false, segment);
    result.gradient = loadTransposed(tensors.gradient, /*shared=*/false, segment);
    // Finite, so that a row that sees no key adds it to -infinity.
    result.exponent = scaled(binary(BinaryFunction::Max, loadColumn(tensors.logsumexp, segment),
                                    constant({segment.extent, 1}, std::numeric_limits<float>::lowest())),
                             -1);
    result.delta = loadColumn(tensors.delta, segment);
    if (drops())
      result.number = loadColumn(tensors.index, segment);
    if (forKeys && tensors.keyGradient.buffer)
      result.queries = loadRows(tensors.query, /*shared=*/false, segment);
    if (forKeys && tensors.valueGradient.buffer)
      result.outputs = loadRows(tensors.gradient, /*shared=*/false, segment);
    return result;
  }

  Keys loadKeys(Segment segment) {
    return {segment, loadTransposed(tensors.key, /*shared=*/true, segment),
            loadTransposed(tensors.value, /*shared=*/true, segment)};
  }

  /// The first `width` keys of a block.
  Value firstKeys(Value tile, int64_t width) {
    return slice(tile, {0, 0, 0}, {typeOf(tile).getDimSize(0), typeOf(tile).getDimSize(1), width});
  }

  /// Weights and slopes of a tile of rows and the first `width` keys of a block, the last `diagonal` of them in the
  /// rows' diagonal tile.
  Pair pairOf(const Rows &tile, const Keys &block, int64_t width, int64_t diagonal, bool needsSlopes) {
    Pair pair;
    Value score = scores(tile.query, firstKeys(block.key, width), tile.segment, block.segment.part(0, width), diagonal);
    pair.weights = castTo(exponential(score, factor(), tile.exponent), element);
    Value keeps = drops() ? keptWeights(tile.number, block.segment.start, width) : Value();
    if (needsSlopes) {
      Value products =
          TileMatmulOp::create(b, loc, f32({tile.segment.extent, width}), tile.gradient, firstKeys(block.value, width));
      if (keeps)
        products = scaled(binary(BinaryFunction::Mul, products, keeps), 1 / kept);
      Value slopes = binary(BinaryFunction::Mul, binary(BinaryFunction::Sub, products, tile.delta),
                            castTo(pair.weights, b.getF32Type()));
      pair.slopes = castTo(slopes, element);
    }
    if (keeps)
      pair.weights = castTo(binary(BinaryFunction::Mul, castTo(pair.weights, b.getF32Type()), keeps), element);
    return pair;
  }

  /// The product may have fewer rows than the sum: then it adds to the first ones.
  void add(Value &sum, RankedTensorType sumType, Value stationary, Value moving) {
    auto type = f32({typeOf(stationary).getShape().back(), typeOf(moving).getShape().back()});
    Value product = TileMatmulOp::create(b, loc, type, stationary, moving);
    if (!sum && type != sumType)
      sum = constant(sumType.getShape(), 0.0);
    sum = sum ? AccumulateOp::create(b, loc, ReduceKind::Sum, sum, product).getResult() : product;
  }

  /// A loop that adds to sums. What has no value yet starts with 0.
  void loopOver(int64_t trips, int64_t step, MutableArrayRef<Value> sums, ArrayRef<RankedTensorType> types,
                llvm::function_ref<void(Segment)> body) {
    if (trips == 0)
      return;
    if (trips == 1)
      return body({0, step, Value(), 0});
    for (auto [sum, type] : llvm::zip(sums, types))
      if (!sum)
        sum = constant(type.getShape(), 0.0);
    auto loop = scf::ForOp::create(b, loc, indexConstant(0), indexConstant(trips), indexConstant(1), ValueRange(sums));
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      llvm::copy(loop.getRegionIterArgs(), sums.begin());
      body({0, step, loop.getInductionVar(), step});
      scf::YieldOp::create(b, loc, ValueRange(sums));
    }
    llvm::copy(loop.getResults(), sums.begin());
  }

  //===------------------------------------------------------------------------------------------------------------===//
  // Rows that walk over keys
  //===------------------------------------------------------------------------------------------------------------===//

  void sumQueries() {
    int64_t step = kRowTiles * partitions;
    if (!causal)
      return forEachHead([&] { forEach(rows, step, [&](Segment segment) { sumQueriesOf(segment); }); });
    // Each group of rows sees a number of keys of its own.
    for (int64_t start = 0; start < rows; start += step)
      forEachHead([&] { sumQueriesOf({start, std::min(step, rows - start), Value(), 0}); });
  }

  void sumQueriesOf(Segment group) {
    SmallVector<Rows> tiles;
    SmallVector<RankedTensorType> types;
    for (int64_t start = 0; start < group.extent; start += partitions) {
      int64_t count = std::min(partitions, group.extent - start);
      tiles.push_back(loadRowTile(group.part(start, count), /*forKeys=*/false));
      types.push_back(f32({count, depth}));
    }
    SmallVector<Value> sums(tiles.size());
    const int64_t step = kBlockTiles * partitions;
    // Random numbers are found from a key that is known here.
    int64_t seen = causal ? std::min(keys, group.start) : keys, trips = drops() ? 0 : seen / step;
    int64_t end = causal ? std::min(keys, group.start + group.extent) : keys;
    auto meet = [&](Segment segment) {
      Keys block = loadKeys(segment);
      Value wholeRows, lastRows;
      loadKeyRows(segment, wholeRows, lastRows);
      struct Seen {
        size_t tile;
        int64_t width;
        Pair pair;
      };
      auto multiply = [&](const Seen &part) {
        int64_t count = tiles[part.tile].segment.extent;
        forEachPiece(part.width, [&](int64_t start, int64_t size, int64_t pieces) {
          Value turned = TileTransposeOp::create(b, loc, RankedTensorType::get({size, pieces, count}, element),
                                                 slice(part.pair.slopes, {0, start}, {count, size * pieces}));
          bool isWhole = start / partitions + pieces <= segment.extent / partitions;
          add(sums[part.tile], types[part.tile], turned,
              slice(isWhole ? wholeRows : lastRows, {0, isWhole ? start / partitions : 0, 0}, {size, pieces, depth}));
        });
      };
      SmallVector<Seen> seen;
      for (auto [number, tile] : llvm::enumerate(tiles)) {
        int64_t width = segment.extent, diagonal = 0;
        if (causal && !segment.iv) {
          width = std::min({width, keys - segment.start, tile.segment.start + tile.segment.extent - segment.start});
          if (width <= 0)
            continue;
          if (tile.segment.start >= segment.start)
            diagonal = std::max<int64_t>(segment.start + width - tile.segment.start, 0);
        }
        seen.push_back({number, width, {}});
        seen.back().pair = pairOf(tile, block, width, diagonal, /*needsSlopes=*/true);
        // The scores of the next tile are multiplied before the tensor engine waits for the slopes of this one.
        if (seen.size() > 1)
          multiply(seen.end()[-2]);
      }
      if (!seen.empty())
        multiply(seen.back());
    };
    loopOver(trips, step, sums, types, meet);
    for (int64_t start = trips * step; start < end; start += step)
      meet({start, std::min(step, end - start), Value(), 0});
    for (auto [tile, sum] : llvm::zip(tiles, sums))
      storeRows(castTo(scaled(sum, scale), element), tensors.queryGradient, /*shared=*/false, tile.segment);
  }

  /// Rows of keys: [partitions, whole tiles, depth] and what is left, [rest, 1, depth].
  void loadKeyRows(Segment segment, Value &whole, Value &last) {
    const StridedLayout &layout = tensors.key.layout;
    int64_t tiles = segment.extent / partitions, rest = segment.extent % partitions;
    TileAddress place = placeOfHead(tensors.key, /*shared=*/true);
    place.add(segment, layout.strides[2]);
    if (tiles)
      whole = load(tensors.key, place, {partitions, tiles, depth},
                   {layout.strides[2], layout.strides[2] * partitions, layout.strides[3]});
    if (rest) {
      place.offset += tiles * partitions * layout.strides[2];
      last = load(tensors.key, place, {rest, 1, depth}, {layout.strides[2], 0, layout.strides[3]});
    }
  }

  //===------------------------------------------------------------------------------------------------------------===//
  // Keys that walk over rows
  //===------------------------------------------------------------------------------------------------------------===//

  void sumKeys() {
    auto bytes = [](int64_t columns) { return int64_t(llvm::PowerOf2Ceil(columns * 4)); };
    int64_t tiles = std::clamp<int64_t>(kSumBytes / (bytes(depth) + bytes(valueDepth)), 1, kBlockTiles);
    int64_t step = tiles * partitions;
    if (!causal && !drops())
      return forEachGroup([&] { forEach(keys, step, [&](Segment segment) { sumKeysOf(segment); }); });
    // Each block of keys is seen by a number of rows of its own.
    for (int64_t start = 0; start < keys; start += step)
      forEachGroup([&] { sumKeysOf({start, std::min(step, keys - start), Value(), 0}); });
  }

  void sumKeysOf(Segment segment) {
    Keys block = loadKeys(segment);
    int64_t tiles = llvm::divideCeil(segment.extent, partitions);
    auto extentOf = [&](int64_t tile) { return std::min(partitions, segment.extent - tile * partitions); };
    // Sums of each tile of keys: first all of keys, then all of values.
    SmallVector<RankedTensorType> types;
    const bool forKeys(tensors.keyGradient.buffer), forValues(tensors.valueGradient.buffer);
    for (int64_t t = 0; forKeys && t < tiles; ++t)
      types.push_back(f32({extentOf(t), depth}));
    for (int64_t t = 0; forValues && t < tiles; ++t)
      types.push_back(f32({extentOf(t), valueDepth}));
    SmallVector<Value> sums(types.size());
    auto meet = [&](Segment rowSegment, int64_t width, int64_t diagonal) {
      Rows tile = loadRowTile(rowSegment, /*forKeys=*/true);
      Pair pair = pairOf(tile, block, width, diagonal, forKeys);
      auto addTo = [&](size_t first, Value left, Value right) {
        for (int64_t t = 0, start = 0; start < width; ++t, start += partitions)
          add(sums[first + t], types[first + t],
              slice(left, {0, start}, {rowSegment.extent, std::min(partitions, width - start)}), right);
      };
      if (forValues)
        addTo(sums.size() - tiles, pair.weights, tile.outputs);
      if (forKeys)
        addTo(0, pair.slopes, tile.queries);
    };
    loopOver(headsPerGroup, 1, sums, types, [&](Segment head) {
      at.head = head;
      int64_t next = 0;
      if (causal) {
        // Rows whose diagonal tile is in the block.
        int64_t end = std::min(rows, segment.start + segment.extent);
        for (next = segment.start; next < end; next += partitions) {
          int64_t count = std::min(partitions, rows - next);
          int64_t width = std::min(segment.extent, next + count - segment.start);
          meet({next, count, Value(), 0}, width, segment.start + width - next);
        }
        next = std::min(next, rows);
      }
      int64_t trips = (rows - next) / partitions;
      loopOver(trips, partitions, sums, types, [&](Segment rowSegment) {
        rowSegment.start += next;
        meet(rowSegment, segment.extent, 0);
      });
      next += trips * partitions;
      if (next < rows)
        meet({next, rows - next, Value(), 0}, segment.extent, 0);
    });
    auto finish = [&](ArrayRef<Value> own, const HbmTensor &tensor, double factor) {
      for (int64_t t = 0; t < tiles; ++t) {
        Value sum = own[t] ? own[t] : constant({extentOf(t), tensor.layout.sizes[3]}, 0.0);
        storeRows(castTo(scaled(sum, factor), element), tensor, /*shared=*/true,
                  segment.part(t * partitions, extentOf(t)));
      }
    };
    if (forKeys)
      finish(ArrayRef(sums).take_front(tiles), tensors.keyGradient, scale);
    if (forValues)
      finish(ArrayRef(sums).take_back(tiles), tensors.valueGradient, 1 / kept);
  }

  const AttentionBackwardTensors &tensors;
};

} // namespace

void mlir::neuron::emitAttentionBackward(OpBuilder &builder, AttentionBackwardOp op,
                                         const AttentionBackwardTensors &tensors,
                                         const ::neuroncore::target::MachineModel &model) {
  if (!emitAttentionBackwardPipeline(builder, op, tensors, model))
    AttentionBackwardEmitter(builder, op, tensors, model).run();
}

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradient of attention in one pass over pairs of a tile of rows and a block of keys, for heads whose rows fit on
// chip: five products for each pair. A block of keys meets all tiles of rows that see it. Its own sums stay in PSUM
// meanwhile; those of the rows are in SBUF, because every block adds to them.
//
// Pairs are written as a pipeline, as in the forward direction: engines execute in order, so the tensor engine computes
// the scores of pairs to come before it needs weights and slopes of those before.

#include <deque>
#include <limits>

#include "passes/Tile/AttentionTiles.h"

using namespace mlir;
using namespace mlir::neuron;

namespace {

/// Keys whose scores are computed together: a PSUM bank.
constexpr int64_t kBlockTiles = 4;
/// Sums of keys and values take a quarter of PSUM: scores, products with values and transposes need the rest.
constexpr int64_t kSumBytes = 4096;
/// Pairs of a head in straight-line code.
constexpr int64_t kMostPairs = 160;
/// What rows, blocks and sums of a head may take of each partition.
constexpr int64_t kMostBytes = 100 * 1024;

class BackwardPipeline : AttentionTiles {
public:
  BackwardPipeline(OpBuilder &builder, AttentionBackwardOp op, const AttentionBackwardTensors &tensors,
                   const ::neuroncore::target::MachineModel &model)
      : AttentionTiles(builder, op, tensors, model), tensors(tensors), forKeys(tensors.keyGradient.buffer),
        forValues(tensors.valueGradient.buffer) {
    auto bytes = [](int64_t columns) { return int64_t(llvm::PowerOf2Ceil(columns * 4)); };
    blockKeys = partitions * std::clamp<int64_t>(kSumBytes / (bytes(depth) + bytes(valueDepth)), 1, kBlockTiles);
    blocks = llvm::divideCeil(keys, blockKeys);
    rowTiles = llvm::divideCeil(rows, partitions);
  }

  bool fits() const {
    if (!tensors.queryGradient.buffer)
      return false;
    const int64_t bytes = elementBytes(element), pieces = llvm::divideCeil(depth, partitions),
                  valuePieces = llvm::divideCeil(valueDepth, partitions);
    int64_t ofRows = (rows * (pieces + valuePieces) + rowTiles * (depth + valueDepth)) * bytes + rowTiles * depth * 4;
    int64_t ofBlock = (blockKeys * (pieces + valuePieces) + blockKeys / partitions * depth) * bytes;
    int64_t ofSums = headsPerGroup > 1 ? llvm::divideCeil(keys, partitions) * (depth + valueDepth) * 4 : 0;
    return ofRows + 3 * ofBlock + ofSums <= kMostBytes && (walksInLoop() ? rowTiles : pairs()) <= kMostPairs;
  }

  void run() {
    if (causal)
      makeTriangle();
    if (drops())
      loadRandomState();
    forEachGroup([&] {
      SmallVector<Value> sums;
      if (headsPerGroup == 1) {
        at.head = Segment();
        meetAll(sums);
        return;
      }
      SmallVector<RankedTensorType> types;
      for (int64_t start = 0; start < keys; start += partitions) {
        int64_t count = std::min(partitions, keys - start);
        if (forKeys)
          types.push_back(f32({count, depth}));
        if (forValues)
          types.push_back(f32({count, valueDepth}));
      }
      for (RankedTensorType type : types)
        sums.push_back(constant(type.getShape(), 0.0));
      loop(headsPerGroup, sums, [&](Value head) {
        at.head = {0, 1, head, 1};
        meetAll(sums);
      });
      auto next = sums.begin();
      for (int64_t start = 0; start < keys; start += partitions) {
        Segment segment{start, std::min(partitions, keys - start), Value(), 0};
        if (forKeys)
          storeSum(*next++, tensors.keyGradient, segment, scale);
        if (forValues)
          storeSum(*next++, tensors.valueGradient, segment, 1 / kept);
      }
    });
  }

private:
  /// Whether blocks of keys are walked in a loop: all alike, with sums of their own.
  bool walksInLoop() const { return !causal && !drops() && headsPerGroup == 1 && keys / blockKeys > 1; }
  int64_t pairs() const {
    int64_t count = 0;
    for (int64_t block = 0; block < blocks; ++block)
      for (int64_t tile = 0; tile < rowTiles; ++tile)
        count += !causal || block * blockKeys <= tile * partitions;
    return count;
  }

  struct Rows {
    Segment segment;
    Value query, gradient;  // [size / pieces, pieces, rows]; null until they are needed
    Value exponent, delta;  // [rows, 1]; exponents are relative to the former
    Value queries, outputs; // rows of query and gradient
    Value number;           // with dropout: of the row's first element
    Value sum;              // null: 0
    int64_t pairsLeft = 0;
  };
  struct Block {
    Segment segment;
    Value key, value;                    // [size / pieces, pieces, keys]; null until they are needed
    Value wholeRows, lastRows;           // of the keys: [partitions, tiles, depth], [rest, 1, depth]
    SmallVector<Value> ofKeys, ofValues; // sums of each tile; null: 0
    int64_t pairsLeft = 0;
  };
  struct Pair {
    Rows *rows;
    Block *block;
    int64_t width, diagonal;
    Value scores, products, keeps, weights, slopes;
    SmallVector<Value> turned;
  };

  //===------------------------------------------------------------------------------------------------------------===//
  // Steps
  //===------------------------------------------------------------------------------------------------------------===//

  void emitPairs(MutableArrayRef<Pair> pairs, MutableArrayRef<Value> groupSums) {
    constexpr size_t kSlopes = 1, kSums = 2, kQueries = 3;
    for (size_t i = 0; i < pairs.size() + kQueries; ++i) {
      auto pairAt = [&](size_t lag) { return i >= lag && i - lag < pairs.size() ? &pairs[i - lag] : nullptr; };
      if (Pair *pair = pairAt(0))
        multiply(*pair);
      if (Pair *pair = pairAt(kSlopes))
        findSlopes(*pair);
      if (Pair *pair = pairAt(kSums))
        addToKeys(*pair, groupSums);
      if (Pair *pair = pairAt(kQueries))
        addToQueries(*pair);
    }
  }

  void loadPair(Rows &tile, Block &block) {
    if (!tile.query) {
      tile.query = loadTransposed(tensors.query, /*shared=*/false, tile.segment);
      tile.gradient = loadTransposed(tensors.gradient, /*shared=*/false, tile.segment);
      // Finite, so that a row that sees no key adds it to -infinity.
      tile.exponent = scaled(binary(BinaryFunction::Max, loadColumn(tensors.logsumexp, tile.segment),
                                    constant({tile.segment.extent, 1}, std::numeric_limits<float>::lowest())),
                             -1);
      tile.delta = loadColumn(tensors.delta, tile.segment);
      if (forKeys)
        tile.queries = loadRows(tensors.query, /*shared=*/false, tile.segment);
      if (forValues)
        tile.outputs = loadRows(tensors.gradient, /*shared=*/false, tile.segment);
      if (drops())
        tile.number = loadColumn(tensors.index, tile.segment);
    }
    if (!block.key) {
      block.key = loadTransposed(tensors.key, /*shared=*/true, block.segment);
      block.value = loadTransposed(tensors.value, /*shared=*/true, block.segment);
      std::tie(block.wholeRows, block.lastRows) = loadTiles(tensors.key, block.segment);
    }
  }

  /// The first `width` keys of a block.
  Value firstKeys(Value tile, int64_t width) {
    return slice(tile, {0, 0, 0}, {typeOf(tile).getDimSize(0), typeOf(tile).getDimSize(1), width});
  }

  void multiply(Pair &pair) {
    loadPair(*pair.rows, *pair.block);
    pair.scores = scores(pair.rows->query, firstKeys(pair.block->key, pair.width), pair.rows->segment,
                         pair.block->segment.part(0, pair.width), pair.diagonal);
    pair.products = TileMatmulOp::create(b, loc, f32({pair.rows->segment.extent, pair.width}), pair.rows->gradient,
                                         firstKeys(pair.block->value, pair.width));
    if (drops())
      pair.keeps = keptWeights(pair.rows->number, pair.block->segment.start, pair.width);
  }

  void findSlopes(Pair &pair) {
    pair.weights = castTo(exponential(pair.scores, factor(), pair.rows->exponent), element);
    Value weights = castTo(pair.weights, b.getF32Type()), products = pair.products;
    if (pair.keeps)
      products = scaled(binary(BinaryFunction::Mul, products, pair.keeps), 1 / kept);
    pair.slopes =
        castTo(binary(BinaryFunction::Mul, binary(BinaryFunction::Sub, products, pair.rows->delta), weights), element);
    if (pair.keeps)
      pair.weights = castTo(binary(BinaryFunction::Mul, weights, pair.keeps), element);
  }

  void addToKeys(Pair &pair, MutableArrayRef<Value> groupSums) {
    int64_t count = pair.rows->segment.extent;
    forEachPiece(pair.width, [&](int64_t start, int64_t size, int64_t pieces) {
      pair.turned.push_back(TileTransposeOp::create(b, loc, RankedTensorType::get({size, pieces, count}, element),
                                                    slice(pair.slopes, {0, start}, {count, size * pieces})));
    });
    auto addTo = [&](SmallVector<Value> &sums, Value left, Value right) {
      for (int64_t t = 0, start = 0; start < pair.width; ++t, start += partitions) {
        int64_t size = std::min(partitions, pair.width - start);
        int64_t whole = std::min(partitions, pair.block->segment.extent - start);
        add(sums[t], f32({whole, typeOf(right).getShape().back()}), slice(left, {0, start}, {count, size}), right);
      }
    };
    if (forValues)
      addTo(pair.block->ofValues, pair.weights, pair.rows->outputs);
    if (forKeys)
      addTo(pair.block->ofKeys, pair.slopes, pair.rows->queries);
    if (--pair.block->pairsLeft == 0)
      finish(*pair.block, groupSums);
  }

  void addToQueries(Pair &pair) {
    Value product;
    auto type = f32({pair.rows->segment.extent, depth});
    auto next = pair.turned.begin();
    forEachPiece(pair.width, [&](int64_t start, int64_t size, int64_t pieces) {
      bool isWhole = start / partitions + pieces <= pair.block->segment.extent / partitions;
      Value keyRows = isWhole ? pair.block->wholeRows : pair.block->lastRows;
      add(product, type, *next++, slice(keyRows, {0, isWhole ? start / partitions : 0, 0}, {size, pieces, depth}));
    });
    Value &sum = pair.rows->sum;
    sum = sum ? binary(BinaryFunction::Add, sum, product)
              : UnaryOp::create(b, loc, type, UnaryFunction::Copy, product).getResult();
    if (--pair.rows->pairsLeft == 0)
      storeRows(castTo(scaled(sum, scale), element), tensors.queryGradient, /*shared=*/false, pair.rows->segment);
  }

  /// The product may have fewer rows than the sum: then it adds to the first ones.
  void add(Value &sum, RankedTensorType sumType, Value stationary, Value moving) {
    auto type = f32({typeOf(stationary).getShape().back(), typeOf(moving).getShape().back()});
    Value product = TileMatmulOp::create(b, loc, type, stationary, moving);
    if (!sum && type != sumType)
      sum = constant(sumType.getShape(), 0.0);
    sum = sum ? AccumulateOp::create(b, loc, ReduceKind::Sum, sum, product).getResult() : product;
  }

  /// Rows of keys or values: [partitions, whole tiles, size] and what is left, [rest, 1, size].
  std::pair<Value, Value> loadTiles(const HbmTensor &tensor, Segment segment) {
    const StridedLayout &layout = tensor.layout;
    int64_t tiles = segment.extent / partitions, rest = segment.extent % partitions, size = layout.sizes[3];
    TileAddress place = placeOfHead(tensor, /*shared=*/true);
    place.add(segment, layout.strides[2]);
    Value whole, last;
    if (tiles)
      whole = load(tensor, place, {partitions, tiles, size},
                   {layout.strides[2], layout.strides[2] * partitions, layout.strides[3]});
    if (rest) {
      place.offset += tiles * partitions * layout.strides[2];
      last = load(tensor, place, {rest, 1, size}, {layout.strides[2], 0, layout.strides[3]});
    }
    return {whole, last};
  }

  void storeSum(Value sum, const HbmTensor &tensor, Segment segment, double factor) {
    if (!sum)
      sum = constant({segment.extent, tensor.layout.sizes[3]}, 0.0);
    storeRows(castTo(scaled(sum, factor), element), tensor, /*shared=*/true, segment);
  }

  /// Stores the sums of a block, or adds them to those of the group.
  void finish(Block &block, MutableArrayRef<Value> groupSums) {
    size_t perTile = size_t(forKeys) + size_t(forValues);
    for (size_t t = 0; t < block.ofKeys.size(); ++t) {
      Segment segment =
          block.segment.part(t * partitions, std::min<int64_t>(partitions, block.segment.extent - t * partitions));
      size_t next = perTile * (block.segment.start / partitions + t);
      auto give = [&](Value sum, const HbmTensor &tensor, double factor) {
        if (groupSums.empty())
          storeSum(sum, tensor, segment, factor);
        else if (sum)
          groupSums[next] = binary(BinaryFunction::Add, groupSums[next], sum);
        ++next;
      };
      if (forKeys)
        give(block.ofKeys[t], tensors.keyGradient, scale);
      if (forValues)
        give(block.ofValues[t], tensors.valueGradient, 1 / kept);
    }
  }

  //===------------------------------------------------------------------------------------------------------------===//
  // Heads
  //===------------------------------------------------------------------------------------------------------------===//

  /// A loop that carries `values`.
  void loop(int64_t trips, MutableArrayRef<Value> values, llvm::function_ref<void(Value)> body) {
    auto loop =
        scf::ForOp::create(b, loc, indexConstant(0), indexConstant(trips), indexConstant(1), ValueRange(values));
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      llvm::copy(loop.getRegionIterArgs(), values.begin());
      body(loop.getInductionVar());
      scf::YieldOp::create(b, loc, ValueRange(values));
    }
    llvm::copy(loop.getResults(), values.begin());
  }

  /// Everything of the current head. `groupSums`: where sums of keys and values go, or empty.
  void meetAll(MutableArrayRef<Value> groupSums) {
    std::deque<Rows> tiles;
    for (int64_t start = 0; start < rows; start += partitions) {
      tiles.emplace_back();
      tiles.back().segment = {start, std::min(partitions, rows - start), Value(), 0};
    }
    int64_t first = 0;
    if (walksInLoop()) {
      first = keys / blockKeys;
      SmallVector<Value> sums;
      for (Rows &tile : tiles)
        sums.push_back(constant({tile.segment.extent, depth}, 0.0));
      // Rows are loaded once, before the loop.
      Block none;
      none.key = sums.front();
      for (Rows &tile : tiles) {
        loadPair(tile, none);
        tile.pairsLeft = -1; // not stored within
      }
      loop(first, sums, [&](Value iv) {
        for (auto [tile, sum] : llvm::zip(tiles, sums))
          tile.sum = sum;
        meet(tiles, {{0, blockKeys, iv, blockKeys}}, groupSums);
        for (auto [tile, sum] : llvm::zip(tiles, sums))
          sum = tile.sum;
      });
      for (auto [tile, sum] : llvm::zip(tiles, sums)) {
        tile.sum = sum;
        tile.pairsLeft = 0;
      }
    }
    SmallVector<Segment> segments;
    for (int64_t start = first * blockKeys; start < keys; start += blockKeys)
      segments.push_back({start, std::min(blockKeys, keys - start), Value(), 0});
    meet(tiles, segments, groupSums);
    if (segments.empty())
      for (Rows &tile : tiles)
        storeRows(castTo(scaled(tile.sum, scale), element), tensors.queryGradient, /*shared=*/false, tile.segment);
  }

  void meet(std::deque<Rows> &tiles, ArrayRef<Segment> segments, MutableArrayRef<Value> groupSums) {
    std::deque<Block> met;
    SmallVector<Pair, 0> pairs;
    for (Segment segment : segments) {
      Block &block = met.emplace_back();
      block.segment = segment;
      block.ofKeys.resize(llvm::divideCeil(segment.extent, partitions));
      block.ofValues.resize(block.ofKeys.size());
      for (Rows &tile : tiles) {
        int64_t width = segment.extent, diagonal = 0;
        if (causal) {
          width = std::min(width, tile.segment.start + tile.segment.extent - segment.start);
          if (width <= 0)
            continue;
          if (tile.segment.start >= segment.start)
            diagonal = std::max<int64_t>(segment.start + width - tile.segment.start, 0);
        }
        pairs.push_back({&tile, &block, width, diagonal, {}, {}, {}, {}, {}, {}});
        ++tile.pairsLeft;
        ++block.pairsLeft;
      }
    }
    emitPairs(pairs, groupSums);
    // Keys that nobody sees.
    for (Block &block : met)
      if (!block.key)
        finish(block, groupSums);
  }

  const AttentionBackwardTensors &tensors;
  const bool forKeys, forValues;
  int64_t blockKeys, blocks, rowTiles;
};

} // namespace

bool mlir::neuron::emitAttentionBackwardPipeline(OpBuilder &builder, AttentionBackwardOp op,
                                                 const AttentionBackwardTensors &tensors,
                                                 const ::neuroncore::target::MachineModel &model) {
  BackwardPipeline pipeline(builder, op, tensors, model);
  if (!pipeline.fits())
    return false;
  pipeline.run();
  return true;
}

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention block by block: a group of query rows (up to kRowTiles tiles of 128) meets the keys in blocks. Each tile of
// rows keeps the largest score so far, the sum of the exponentials relative to it and the weighted sum of values; a
// block that brings a larger score rescales them. Scores exist only as tiles in PSUM.
//
// With `causal` the groups are straight-line code, because each has its own number of blocks: blocks that all rows see
// (many of them in a loop), then those that the diagonal runs through, of which each tile of rows takes the keys up to
// its diagonal tile; to that a triangle is added. Keys that no row of a tile sees are not computed.

#include <deque>
#include <limits>

#include "passes/Tile/AttentionTiles.h"

using namespace mlir;
using namespace mlir::neuron;

namespace {

/// Query tiles that share what is loaded of keys and values.
constexpr int64_t kRowTiles = 16;
/// Scores of one tile of rows at a time: two PSUM banks.
constexpr int64_t kBlockKeys = 1024;
/// Blocks in the body of a loop over keys: between iterations the pipeline of steps runs empty.
constexpr int64_t kLoopBlocks = 2;
/// Groups of rows of a head that share one pipeline.
constexpr int64_t kStraightGroups = 2;

class AttentionEmitter : AttentionTiles {
public:
  AttentionEmitter(OpBuilder &builder, AttentionOp op, const AttentionTensors &tensors,
                   const ::neuroncore::target::MachineModel &model)
      : AttentionTiles(builder, op, tensors, model), tensors(tensors), strict(op.getStrict()) {}

  void run() {
    if (causal)
      makeTriangle();
    if (drops())
      loadRandomState();
    int64_t step = kRowTiles * partitions;
    if (!causal)
      return forEachHead([&] { forEach(rows, step, [&](Segment segment) { emitGroups({segment}); }); });
    SmallVector<TileRange> groups;
    for (int64_t start = 0; start < rows; start += step)
      groups.push_back({start, std::min(step, rows - start), Value(), 0});
    if (int64_t(groups.size()) <= kStraightGroups)
      return forEachHead([&] { emitGroups(groups); });
    for (const TileRange &group : groups)
      forEachHead([&] { emitGroups({group}); });
  }

private:
  /// Keys and values on chip.
  struct Block {
    Segment segment;
    Value keys;       // [depth / tiles, tiles, n]
    Value values;     // [partitions, n / partitions, valueDepth]; null when there are fewer keys
    Value lastValues; // [n % partitions, 1, valueDepth]; null when none are left
  };
  /// What a tile of rows sees of a block.
  struct Part {
    const Block *block;
    int64_t offset, width; // in keys; the offset is a multiple of `partitions`
    int64_t diagonal;      // how many of them, the last, belong to the diagonal tile
  };

  Block loadBlock(Segment segment) {
    Block block;
    block.segment = segment;
    block.keys = loadTransposed(tensors.key, /*shared=*/true, segment);
    int64_t keyStride = tensors.value.layout.strides[2], depthStride = tensors.value.layout.strides[3];
    int64_t whole = segment.extent / partitions, rest = segment.extent % partitions;
    TileAddress place = placeOfHead(tensors.value, /*shared=*/true);
    place.add(segment, keyStride);
    if (whole)
      block.values =
          load(tensors.value, place, {partitions, whole, valueDepth}, {keyStride, keyStride * partitions, depthStride});
    if (rest) {
      place.offset += whole * partitions * keyStride;
      block.lastValues = load(tensors.value, place, {rest, 1, valueDepth}, {keyStride, 0, depthStride});
    }
    return block;
  }

  //===------------------------------------------------------------------------------------------------------------===//
  // Steps
  //===------------------------------------------------------------------------------------------------------------===//

  /// 128 queries at most, and what is known of them so far.
  struct RowTile {
    Segment rows;
    Value query;    // null until it is needed
    Value exponent; // the largest score so far times -factor(): what exponents are relative to
    Value sum, output;
    Value number; // with dropout: that of the element of each query and key `numbered`
    int64_t numbered = 0;
  };

  /// One tile of rows meets part of a block of keys. Engines execute in order, so steps are written as a pipeline:
  /// while the scores of one step are multiplied, the largest score of the step before is looked for, and so on.
  struct Step {
    RowTile *tile;
    Part part;
    bool isLast;      // of its tile of rows
    int64_t keyStart; // of the block, if it is loaded when the first step needs it
    Value scores, exponent, weights, correction, normalized;
    SmallVector<Value> turned;
  };

  void emitSteps(MutableArrayRef<Step> steps) {
    // The vector engine looks for the next largest score before it takes weights out of PSUM: exponentials wait for the
    // former. What the tensor engine needs was computed at least two steps ago.
    constexpr size_t kExponentials = 1, kTransposes = 3, kProducts = 4, kQuotients = 5, kStores = 7;
    for (size_t i = 0; i < steps.size() + kStores; ++i) {
      auto stage = [&](size_t lag, void (AttentionEmitter::*function)(Step &)) {
        if (i >= lag && i - lag < steps.size())
          (this->*function)(steps[i - lag]);
      };
      stage(0, &AttentionEmitter::multiplyKeys);
      stage(kExponentials, &AttentionEmitter::findLargest);
      stage(kTransposes, &AttentionEmitter::turnWeights);
      stage(kExponentials, &AttentionEmitter::exponentiate);
      stage(kProducts, &AttentionEmitter::multiplyValues);
      stage(kQuotients, &AttentionEmitter::normalize);
      stage(kStores, &AttentionEmitter::storeStep);
    }
  }

  void loadQuery(RowTile &tile) {
    if (tile.query)
      return;
    tile.query = loadTransposed(tensors.query, /*shared=*/false, tile.rows);
    if (drops())
      tile.number = loadColumn(tensors.index, tile.rows);
  }

  void multiplyKeys(Step &step) {
    if (!step.part.block)
      step.part.block = blockAt(step.keyStart);
    loadQuery(*step.tile);
    const Part &part = step.part;
    int64_t pieces = typeOf(part.block->keys).getDimSize(1), piece = typeOf(part.block->keys).getDimSize(0);
    step.scores = scores(step.tile->query, slice(part.block->keys, {0, 0, part.offset}, {piece, pieces, part.width}),
                         step.tile->rows, part.block->segment.part(part.offset, part.width), part.diagonal);
  }

  void findLargest(Step &step) {
    RowTile &tile = *step.tile;
    Value largest =
        ReduceOp::create(b, loc, f32({tile.rows.extent, 1}), ReduceKind::Max, step.scores, ArrayRef<int64_t>{1});
    Value exponent = binary(BinaryFunction::Min, scaled(largest, -factor()), tile.exponent);
    // The first block has nothing to rescale.
    if (!tile.exponent.getDefiningOp<ConstantOp>())
      step.correction = exponential(tile.exponent, -1, exponent);
    tile.exponent = exponent;
    step.exponent = exponent;
  }

  void exponentiate(Step &step) {
    RowTile &tile = *step.tile;
    // The sum is over the weights that are multiplied, which are rounded to the operands' type.
    step.weights = castTo(exponential(step.scores, factor(), step.exponent), element);
    Value total = ReduceOp::create(b, loc, f32({tile.rows.extent, 1}), ReduceKind::Sum,
                                   castTo(step.weights, b.getF32Type()), ArrayRef<int64_t>{1});
    tile.sum = step.correction
                   ? binary(BinaryFunction::Add, binary(BinaryFunction::Mul, tile.sum, step.correction), total)
                   : total;
    if (drops()) {
      const Segment &segment = step.part.block->segment;
      Value keeps = keptWeights(tile.number, segment.start + step.part.offset - tile.numbered, step.part.width);
      step.weights = castTo(binary(BinaryFunction::Mul, castTo(step.weights, b.getF32Type()), keeps), element);
    }
  }

  void turnWeights(Step &step) {
    int64_t rows = step.tile->rows.extent;
    forEachPiece(step.part.width, [&](int64_t start, int64_t size, int64_t count) {
      step.turned.push_back(TileTransposeOp::create(b, loc, RankedTensorType::get({size, count, rows}, element),
                                                    slice(step.weights, {0, start}, {rows, size * count})));
    });
  }

  void multiplyValues(Step &step) {
    RowTile &tile = *step.tile;
    const Part &part = step.part;
    Value product;
    auto next = step.turned.begin();
    forEachPiece(part.width, [&](int64_t start, int64_t size, int64_t count) {
      int64_t first = (part.offset + start) / partitions;
      // A part may end within a tile of its block.
      bool isLast = !part.block->values || first >= typeOf(part.block->values).getDimSize(1);
      Value value = slice(isLast ? part.block->lastValues : part.block->values, {0, isLast ? 0 : first, 0},
                          {size, count, valueDepth});
      Value weighted = TileMatmulOp::create(b, loc, f32({tile.rows.extent, valueDepth}), *next++, value);
      product = product ? AccumulateOp::create(b, loc, ReduceKind::Sum, product, weighted).getResult() : weighted;
    });
    // What starts a sum leaves PSUM, which holds no more than a few of them.
    tile.output = step.correction
                      ? binary(BinaryFunction::Add, binary(BinaryFunction::Mul, tile.output, step.correction), product)
                      : UnaryOp::create(b, loc, product.getType(), UnaryFunction::Copy, product).getResult();
  }

  void normalize(Step &step) {
    if (step.isLast && tensors.result.buffer)
      step.normalized = quotient(*step.tile);
  }

  void storeStep(Step &step) {
    if (!step.isLast)
      return;
    if (step.normalized)
      storeRows(step.normalized, tensors.result, /*shared=*/false, step.tile->rows);
    if (tensors.logsumexp.buffer)
      storeLogarithm(*step.tile, UnaryOp::create(b, loc, step.tile->sum.getType(), UnaryFunction::Log, step.tile->sum));
  }

  //===------------------------------------------------------------------------------------------------------------===//
  // Groups of rows
  //===------------------------------------------------------------------------------------------------------------===//

  /// A row that sees no key has no weights; its sum is 0 and so is its result, or NaN with `strict`.
  Value quotient(const RowTile &tile) {
    Value sum = tile.sum;
    if (!strict)
      sum = binary(BinaryFunction::Max, sum, constant({tile.rows.extent, 1}, std::numeric_limits<float>::min()));
    if (drops())
      sum = scaled(sum, kept);
    return castTo(binary(BinaryFunction::Div, tile.output, sum), element);
  }

  void storeLogarithm(const RowTile &tile, Value logarithm) {
    TileAddress place = placeOfHead(tensors.logsumexp, /*shared=*/false);
    place.add(tile.rows, tensors.logsumexp.layout.strides[2]);
    store(binary(BinaryFunction::Sub, logarithm, tile.exponent), tensors.logsumexp, place,
          {tensors.logsumexp.layout.strides[2], 1});
  }

  SmallVector<RowTile, 0> tilesOf(Segment group) {
    SmallVector<RowTile, 0> tiles;
    for (int64_t start = 0; start < group.extent; start += partitions) {
      int64_t count = std::min(partitions, group.extent - start);
      // Finite, so that a row that sees no key adds it to -infinity.
      tiles.push_back({group.part(start, count), Value(), constant({count, 1}, std::numeric_limits<float>::max()),
                       constant({count, 1}, 0.0), constant({count, valueDepth}, 0.0), Value()});
    }
    return tiles;
  }

  /// The block at a key that is no loop's, loaded once per head.
  const Block *blockAt(int64_t start) {
    std::unique_ptr<Block> &block = blocks[start];
    if (!block)
      block = std::make_unique<Block>(loadBlock({start, std::min(kBlockKeys, keys - start), Value(), 0}));
    return block.get();
  }

  /// What the tiles see of keys [from, to), block by block.
  void addSteps(SmallVectorImpl<Step> &steps, MutableArrayRef<RowTile> tiles, int64_t from, int64_t to) {
    for (int64_t start = from; start < to; start += kBlockKeys) {
      int64_t width = std::min(kBlockKeys, to - start);
      for (RowTile &tile : tiles) {
        // With `causal`: keys before the tile's first row, and the diagonal tile.
        int64_t end = causal ? std::min(keys, tile.rows.start + tile.rows.extent) : keys;
        int64_t seen = std::min(width, end - start);
        if (seen <= 0)
          continue;
        int64_t diagonal =
            causal && tile.rows.start >= start ? std::max<int64_t>(start + seen - tile.rows.start, 0) : 0;
        steps.push_back({&tile, {nullptr, 0, seen, diagonal}, start + seen == end, start, {}, {}, {}, {}, {}, {}});
      }
    }
  }

  /// Groups of rows that are all in straight-line code become one pipeline.
  void emitGroups(ArrayRef<Segment> groups) {
    blocks.clear();
    std::deque<SmallVector<RowTile, 0>> tiles; // stay where they are
    SmallVector<Step, 0> steps;
    for (Segment group : groups) {
      MutableArrayRef<RowTile> own = tiles.emplace_back(tilesOf(group));
      // Keys that all rows of the group see in whole blocks.
      int64_t seen = causal ? std::min(keys, group.start) : keys;
      int64_t end = causal ? std::min(keys, group.start + group.extent) : keys;
      int64_t looped = 0, trips = seen / (kLoopBlocks * kBlockKeys);
      if (trips > 1) {
        looped = trips * kLoopBlocks * kBlockKeys;
        meetBlocks(own, trips);
      }
      addSteps(steps, own, looped, end);
      if (looped == end)
        finish(own);
    }
    emitSteps(steps);
  }

  /// Keys [0, trips * kLoopBlocks * kBlockKeys) in a loop that carries what is known of the rows.
  void meetBlocks(MutableArrayRef<RowTile> tiles, int64_t trips) {
    SmallVector<Value> carried;
    for (RowTile &tile : tiles) {
      loadQuery(tile);
      llvm::append_range(carried, ArrayRef<Value>{tile.exponent, tile.sum, tile.output});
    }
    if (drops())
      for (RowTile &tile : tiles)
        carried.push_back(tile.number);
    auto loop = scf::ForOp::create(b, loc, indexConstant(0), indexConstant(trips), indexConstant(1), carried);
    auto take = [&](ValueRange values) {
      for (auto [t, tile] : llvm::enumerate(tiles)) {
        tile.exponent = values[3 * t];
        tile.sum = values[3 * t + 1];
        tile.output = values[3 * t + 2];
        if (drops())
          tile.number = values[3 * tiles.size() + t];
      }
    };
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      take(loop.getRegionIterArgs());
      std::deque<Block> loaded;
      SmallVector<Step, 0> steps;
      for (int64_t part = 0; part < kLoopBlocks; ++part) {
        const Block &block = loaded.emplace_back(
            loadBlock({part * kBlockKeys, kBlockKeys, loop.getInductionVar(), kLoopBlocks * kBlockKeys}));
        for (RowTile &tile : tiles)
          steps.push_back({&tile, {&block, 0, kBlockKeys, 0}, /*isLast=*/false, 0, {}, {}, {}, {}, {}, {}});
      }
      emitSteps(steps);
      SmallVector<Value> next;
      for (RowTile &tile : tiles)
        llvm::append_range(next, ArrayRef<Value>{tile.exponent, tile.sum, tile.output});
      if (drops())
        for (RowTile &tile : tiles)
          next.push_back(advanced(tile.number, kLoopBlocks * kBlockKeys));
      scf::YieldOp::create(b, loc, next);
    }
    take(loop.getResults());
    for (RowTile &tile : tiles)
      tile.numbered = trips * kLoopBlocks * kBlockKeys;
  }

  /// Operation by operation over all tiles, so that no engine waits for the chain of one tile.
  void finish(ArrayRef<RowTile> tiles) {
    if (tensors.result.buffer) {
      SmallVector<Value> outputs;
      for (const RowTile &tile : tiles)
        outputs.push_back(quotient(tile));
      for (auto [tile, output] : llvm::zip(tiles, outputs))
        storeRows(output, tensors.result, /*shared=*/false, tile.rows);
    }
    if (tensors.logsumexp.buffer) {
      SmallVector<Value> logarithms;
      for (const RowTile &tile : tiles)
        logarithms.push_back(UnaryOp::create(b, loc, tile.sum.getType(), UnaryFunction::Log, tile.sum));
      for (auto [tile, logarithm] : llvm::zip(tiles, logarithms))
        storeLogarithm(tile, logarithm);
    }
  }

  const AttentionTensors &tensors;
  const bool strict;
  llvm::DenseMap<int64_t, std::unique_ptr<Block>> blocks; // of the current head
};

} // namespace

void mlir::neuron::emitAttention(OpBuilder &builder, AttentionOp op, const AttentionTensors &tensors,
                                 const ::neuroncore::target::MachineModel &model) {
  AttentionEmitter(builder, op, tensors, model).run();
}

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

#include "dialects/Neuron/NeuronAttentionOps.h"
#include "passes/Tile/SpecialKernels.h"

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
/// Added to scores that a row must not see. Finite, because the tensor engine multiplies it with 0 as well; exact in
/// bfloat16.
constexpr double kHidden = -0x1.fep127;
/// Transposed weights that leave PSUM together, in bytes of a partition.
constexpr int64_t kTurnedBytes = 1024;

class AttentionEmitter {
public:
  AttentionEmitter(OpBuilder &builder, AttentionOp op, const AttentionTensors &tensors,
                   const ::neuroncore::target::MachineModel &model)
      : b(builder), loc(op.getLoc()), tensors(tensors) {
    partitions = model.tensorEngine().rows;
    element = cast<MemRefType>(tensors.query.buffer.getType()).getElementType();
    ArrayRef<int64_t> q = tensors.query.layout.sizes, k = tensors.key.layout.sizes;
    batches = q[0];
    groups = k[1];
    headsPerGroup = q[1] / k[1];
    rows = q[2];
    depth = q[3];
    keys = k[2];
    valueDepth = tensors.value.layout.sizes[3];
    // Deep heads are cut into equal pieces that fit on the partitions.
    depthTiles = llvm::divideCeil(depth, partitions);
    scale = op.getScale().convertToDouble();
    causal = op.getCausal();
  }

  void run() {
    if (causal)
      makeTriangle();
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
  using Segment = TileRange;
  /// Where the loops over batch, group and head of the group are.
  struct Head {
    Segment batch, group, head;
  };

  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }

  void forEach(int64_t size, int64_t tile, llvm::function_ref<void(Segment)> body) {
    forEachTile(b, loc, size, tile, body);
  }

  void forEachHead(llvm::function_ref<void()> body) {
    forEach(batches, 1, [&](Segment batch) {
      forEach(groups, 1, [&](Segment group) {
        forEach(headsPerGroup, 1, [&](Segment head) {
          at = {batch, group, head};
          body();
        });
      });
    });
  }

  static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
  RankedTensorType f32(ArrayRef<int64_t> shape) { return RankedTensorType::get(shape, b.getF32Type()); }
  Value constant(ArrayRef<int64_t> shape, double value) { return ConstantOp::create(b, loc, f32(shape), value); }
  Value binary(BinaryFunction function, Value lhs, Value rhs) {
    SmallVector<int64_t> shape(typeOf(lhs).getShape());
    for (auto [d, size] : llvm::enumerate(typeOf(rhs).getShape()))
      shape[d] = std::max(shape[d], size);
    return BinaryOp::create(b, loc, f32(shape), function, lhs, rhs);
  }
  Value scaled(Value value, double factor) {
    return binary(BinaryFunction::Mul, value, constant({typeOf(value).getDimSize(0), 1}, factor));
  }
  Value slice(Value tile, ArrayRef<int64_t> starts, ArrayRef<int64_t> shape) {
    return sliceTile(b, loc, tile, starts, shape);
  }
  Value castTo(Value value, Type type) {
    return typeOf(value).getElementType() == type
               ? value
               : CastOp::create(b, loc, RankedTensorType::get(typeOf(value).getShape(), type), value).getResult();
  }

  //===------------------------------------------------------------------------------------------------------------===//
  // Memory
  //===------------------------------------------------------------------------------------------------------------===//

  /// The position of the current head; `shared`: of its group, in tensors of keys and values.
  TileAddress placeOfHead(const HbmTensor &tensor, bool shared) {
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

  Value load(const HbmTensor &tensor, const TileAddress &place, ArrayRef<int64_t> shape, ArrayRef<int64_t> strides) {
    Type type = cast<MemRefType>(tensor.buffer.getType()).getElementType();
    return LoadOp::create(b, loc, RankedTensorType::get(shape, type), tensor.buffer, place.ivs, place.offset,
                          place.ivStrides, strides);
  }

  void store(Value tile, const HbmTensor &tensor, const TileAddress &place, ArrayRef<int64_t> strides) {
    StoreOp::create(b, loc, tile, tensor.buffer, place.ivs, place.offset, place.ivStrides, strides);
  }

  /// Rows of query or key with the depth on the partitions: [depth / tiles, tiles, rows].
  Value loadTransposed(const HbmTensor &tensor, bool shared, Segment segment) {
    TileAddress place = placeOfHead(tensor, shared);
    int64_t rowStride = tensor.layout.strides[2], depthStride = tensor.layout.strides[3];
    place.add(segment, rowStride);
    int64_t piece = depth / depthTiles;
    return load(tensor, place, {piece, depthTiles, segment.extent}, {depthStride, depthStride * piece, rowStride});
  }

  //===------------------------------------------------------------------------------------------------------------===//
  // Scores
  //===------------------------------------------------------------------------------------------------------------===//

  /// triangle: 0 where a row sees a key of its own diagonal tile, elsewhere a number that makes every exponential 0;
  /// identity: with it the tensor engine adds a triangle to scores. bfloat16 whatever the operands are, for its range.
  void makeTriangle() {
    int64_t size = std::min(partitions, std::max(rows, keys));
    Value row = IotaOp::create(b, loc, f32({size, 1}), 0, ArrayRef<int64_t>{1, 0});
    Value column = IotaOp::create(b, loc, f32({size, size}), 0, ArrayRef<int64_t>{0, 1});
    auto choose = [&](ComparePredicate predicate, double yes, double no) {
      Value chosen =
          CompareOp::create(b, loc, RankedTensorType::get({size, size}, b.getI1Type()), predicate, column, row);
      return castTo(
          SelectOp::create(b, loc, f32({size, size}), chosen, constant({size, 1}, yes), constant({size, 1}, no)),
          b.getBF16Type());
    };
    triangle = choose(ComparePredicate::Le, 0, kHidden);
    identity = choose(ComparePredicate::Eq, 1, 0);
  }

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

  /// The scores of a tile of rows; multiplied with `factor()` they are exponents.
  Value scores(Value query, Segment tileRows, const Part &part) {
    int64_t count = tileRows.extent;
    Value keyTile = slice(part.block->keys, {0, 0, part.offset}, {depth / depthTiles, depthTiles, part.width});
    Value tile = TileMatmulOp::create(b, loc, f32({count, part.width}), query, keyTile);
    if (part.diagonal) {
      // The tensor engine adds the triangle to the last columns.
      Value hidden = TileMatmulOp::create(b, loc, f32({count, part.diagonal}), slice(identity, {0, 0}, {count, count}),
                                          slice(triangle, {0, 0}, {count, part.diagonal}));
      auto sum = AccumulateOp::create(b, loc, ReduceKind::Sum, tile, hidden);
      sum->setAttr(attribute::kColumn, b.getI64IntegerAttr(part.width - part.diagonal));
      tile = sum;
    }
    if (tensors.mask.buffer) {
      const StridedLayout &layout = tensors.mask.layout;
      TileAddress place = placeOfHead(tensors.mask, /*shared=*/false);
      int64_t rowStride = layout.sizes[2] == 1 ? 0 : layout.strides[2];
      place.add(tileRows, rowStride);
      place.add(part.block->segment, layout.strides[3]);
      place.offset += part.offset * layout.strides[3];
      Value mask = load(tensors.mask, place, {count, part.width}, {rowStride, layout.strides[3]});
      tile = binary(BinaryFunction::Add, scaled(tile, scale), mask);
    }
    return tile;
  }

  double factor() const { return tensors.mask.buffer ? 1 : scale; }

  //===------------------------------------------------------------------------------------------------------------===//
  // Steps
  //===------------------------------------------------------------------------------------------------------------===//

  /// 128 queries at most, and what is known of them so far.
  struct RowTile {
    Segment rows;
    Value query;    // null until it is needed
    Value exponent; // the largest score so far times -factor(): what exponents are relative to
    Value sum, output;
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
      stage(kStores, &AttentionEmitter::storeRows);
    }
  }

  void multiplyKeys(Step &step) {
    if (!step.part.block)
      step.part.block = blockAt(step.keyStart);
    if (!step.tile->query)
      step.tile->query = loadTransposed(tensors.query, /*shared=*/false, step.tile->rows);
    step.scores = scores(step.tile->query, step.tile->rows, step.part);
  }

  Value exponential(Value value, double scale, Value exponent) {
    Value sum = binary(BinaryFunction::Add, scaled(value, scale), exponent);
    return UnaryOp::create(b, loc, sum.getType(), UnaryFunction::Exp, sum);
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
  }

  /// Keys of a part on the partitions, in pieces that leave PSUM together: start, size of a tile and number of tiles.
  void forEachPiece(const Part &part, llvm::function_ref<void(int64_t start, int64_t size, int64_t count)> body) {
    const int64_t most = kTurnedBytes / (partitions * elementBytes(element));
    int64_t start = 0;
    for (int64_t whole = part.width / partitions; whole > 0;) {
      int64_t count = std::min(whole, most);
      body(start, partitions, count);
      start += count * partitions;
      whole -= count;
    }
    if (start < part.width)
      body(start, part.width - start, 1);
  }

  void turnWeights(Step &step) {
    int64_t rows = step.tile->rows.extent;
    forEachPiece(step.part, [&](int64_t start, int64_t size, int64_t count) {
      step.turned.push_back(TileTransposeOp::create(b, loc, RankedTensorType::get({size, count, rows}, element),
                                                    slice(step.weights, {0, start}, {rows, size * count})));
    });
  }

  void multiplyValues(Step &step) {
    RowTile &tile = *step.tile;
    const Part &part = step.part;
    Value product;
    auto next = step.turned.begin();
    forEachPiece(part, [&](int64_t start, int64_t size, int64_t count) {
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

  void storeRows(Step &step) {
    if (!step.isLast)
      return;
    if (step.normalized)
      storeResult(*step.tile, step.normalized);
    if (tensors.logsumexp.buffer)
      storeLogarithm(*step.tile, UnaryOp::create(b, loc, step.tile->sum.getType(), UnaryFunction::Log, step.tile->sum));
  }

  //===------------------------------------------------------------------------------------------------------------===//
  // Groups of rows
  //===------------------------------------------------------------------------------------------------------------===//

  /// A row that sees no key has no weights; its sum is 0 and so is its result.
  Value quotient(const RowTile &tile) {
    Value sum =
        binary(BinaryFunction::Max, tile.sum, constant({tile.rows.extent, 1}, std::numeric_limits<float>::min()));
    return castTo(binary(BinaryFunction::Div, tile.output, sum), element);
  }

  void storeResult(const RowTile &tile, Value value) {
    TileAddress place = placeOfHead(tensors.result, /*shared=*/false);
    place.add(tile.rows, tensors.result.layout.strides[2]);
    store(value, tensors.result, place, {tensors.result.layout.strides[2], tensors.result.layout.strides[3]});
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
                       constant({count, 1}, 0.0), constant({count, valueDepth}, 0.0)});
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
      tile.query = loadTransposed(tensors.query, /*shared=*/false, tile.rows);
      llvm::append_range(carried, ArrayRef<Value>{tile.exponent, tile.sum, tile.output});
    }
    auto loop = scf::ForOp::create(b, loc, index(0), index(trips), index(1), carried);
    auto take = [&](ValueRange values) {
      for (auto [t, tile] : llvm::enumerate(tiles)) {
        tile.exponent = values[3 * t];
        tile.sum = values[3 * t + 1];
        tile.output = values[3 * t + 2];
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
      scf::YieldOp::create(b, loc, next);
    }
    take(loop.getResults());
  }

  /// Operation by operation over all tiles, so that no engine waits for the chain of one tile.
  void finish(ArrayRef<RowTile> tiles) {
    if (tensors.result.buffer) {
      SmallVector<Value> outputs;
      for (const RowTile &tile : tiles)
        outputs.push_back(quotient(tile));
      for (auto [tile, output] : llvm::zip(tiles, outputs))
        storeResult(tile, output);
    }
    if (tensors.logsumexp.buffer) {
      SmallVector<Value> logarithms;
      for (const RowTile &tile : tiles)
        logarithms.push_back(UnaryOp::create(b, loc, tile.sum.getType(), UnaryFunction::Log, tile.sum));
      for (auto [tile, logarithm] : llvm::zip(tiles, logarithms))
        storeLogarithm(tile, logarithm);
    }
  }

  OpBuilder &b;
  Location loc;
  const AttentionTensors &tensors;
  Type element;
  int64_t partitions, batches, groups, headsPerGroup, rows, depth, keys, valueDepth, depthTiles;
  double scale;
  bool causal;
  Value triangle, identity;
  Head at;
  llvm::DenseMap<int64_t, std::unique_ptr<Block>> blocks; // of the current head
};

} // namespace

void mlir::neuron::emitAttention(OpBuilder &builder, AttentionOp op, const AttentionTensors &tensors,
                                 const ::neuroncore::target::MachineModel &model) {
  AttentionEmitter(builder, op, tensors, model).run();
}

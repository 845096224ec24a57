// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention block by block: a group of query rows (up to kRowTiles tiles of 128) meets the keys in blocks. Each tile of
// rows keeps the largest score so far, the sum of the exponentials relative to it and the weighted sum of values; a
// block that brings a larger score rescales them. Scores exist only as tiles in PSUM.
//
// With `causal` the groups are straight-line code, because each has its own number of blocks: blocks that all rows see
// in a loop, then those that the diagonal runs through, of which each tile of rows takes the keys before its own and
// its diagonal tile; to that a triangle of -infinity is added. Keys that no row of a tile sees are not computed.

#include <deque>
#include <limits>

#include "passes/Tile/SpecialKernels.h"

using namespace mlir;
using namespace mlir::neuron;

namespace {

/// Query tiles that share what is loaded of keys and values.
constexpr int64_t kRowTiles = 16;
/// Scores of one tile of rows at a time: two PSUM banks.
constexpr int64_t kBlockKeys = 1024;

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
      triangle = makeTriangle();
    int64_t step = kRowTiles * partitions;
    if (causal) {
      for (int64_t start = 0; start < rows; start += step)
        forEachHead([&] { emitGroup({start, std::min(step, rows - start), Value(), 0}); });
      return;
    }
    forEachHead([&] { forEach(rows, step, [&](Segment segment) { emitGroup(segment); }); });
  }

private:
  using Segment = TileRange;
  /// Where the loops over batch, group and head of the group are.
  struct Head {
    Segment batch, group, head;
  };
  struct State {
    Value maximum, sum, output;
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

  /// 0 where a row sees a key of its own diagonal tile, -infinity where it does not.
  Value makeTriangle() {
    int64_t size = std::min(partitions, std::max(rows, keys));
    Value row = IotaOp::create(b, loc, f32({size, 1}), 0, ArrayRef<int64_t>{1, 0});
    Value column = IotaOp::create(b, loc, f32({size, size}), 0, ArrayRef<int64_t>{0, 1});
    Value seen = CompareOp::create(b, loc, RankedTensorType::get({size, size}, b.getI1Type()), ComparePredicate::Le,
                                   column, row);
    return SelectOp::create(b, loc, f32({size, size}), seen, constant({size, 1}, 0.0),
                            constant({size, 1}, -std::numeric_limits<double>::infinity()));
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
    bool diagonal;
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
    if (part.diagonal)
      tile = binary(BinaryFunction::Add, tile, slice(triangle, {0, 0}, {count, part.width}));
    return tile;
  }

  double factor() const { return tensors.mask.buffer ? 1 : scale; }

  //===------------------------------------------------------------------------------------------------------------===//
  // Steps
  //===------------------------------------------------------------------------------------------------------------===//

  /// One tile of rows meets blocks of keys. Engines execute in order, so steps are written as a pipeline: while one
  /// step's scores are multiplied, the exponentials of the step before are computed, and the values of earlier ones are
  /// added.
  struct Step {
    State *state;
    Value query;
    Segment rows;
    SmallVector<Part> parts;
    SmallVector<Value> scores, weights, turned;
    Value correction;
  };

  void emitSteps(MutableArrayRef<Step> steps) {
    // Weights rest for a step before they are transposed: else the engine that takes them out of PSUM waits for them
    // before it looks for the next largest score.
    constexpr size_t kExponentials = 1, kTransposes = 3, kProducts = 4;
    for (size_t i = 0; i < steps.size() + kProducts; ++i) {
      auto stage = [&](size_t lag, void (AttentionEmitter::*function)(Step &)) {
        if (i >= lag && i - lag < steps.size())
          (this->*function)(steps[i - lag]);
      };
      stage(0, &AttentionEmitter::multiplyKeys);
      stage(kTransposes, &AttentionEmitter::turnWeights);
      stage(kExponentials, &AttentionEmitter::exponentiate);
      stage(kProducts, &AttentionEmitter::multiplyValues);
    }
  }

  void multiplyKeys(Step &step) {
    for (const Part &part : step.parts)
      step.scores.push_back(scores(step.query, step.rows, part));
  }

  void exponentiate(Step &step) {
    State &state = *step.state;
    int64_t count = step.rows.extent;
    Value largest;
    for (Value tile : step.scores) {
      Value one = ReduceOp::create(b, loc, f32({count, 1}), ReduceKind::Max, tile, ArrayRef<int64_t>{1});
      largest = largest ? binary(BinaryFunction::Max, largest, one) : one;
    }
    Value maximum = binary(BinaryFunction::Max, state.maximum, largest);
    Value bias = scaled(maximum, -factor());
    auto exponential = [&](Value value) {
      Value exponent = binary(BinaryFunction::Add, scaled(value, factor()), bias);
      return UnaryOp::create(b, loc, exponent.getType(), UnaryFunction::Exp, exponent).getResult();
    };
    // The first block has nothing to rescale.
    Value sum;
    if (!state.maximum.getDefiningOp<ConstantOp>()) {
      step.correction = exponential(state.maximum);
      sum = binary(BinaryFunction::Mul, state.sum, step.correction);
    }
    for (Value tile : step.scores) {
      // The sum is over the weights that are multiplied, which are rounded to the operands' type.
      Value weights = castTo(exponential(tile), element);
      Value total = ReduceOp::create(b, loc, f32({count, 1}), ReduceKind::Sum, castTo(weights, b.getF32Type()),
                                     ArrayRef<int64_t>{1});
      sum = sum ? binary(BinaryFunction::Add, sum, total) : total;
      step.weights.push_back(weights);
    }
    // What a loop carries is computed once more, so that it can be updated in place after its last use.
    state.maximum = isa<BlockArgument>(state.maximum) ? binary(BinaryFunction::Max, state.maximum, largest) : maximum;
    state.sum = sum;
  }

  /// Keys of a part on the partitions: start and size of each tile.
  void forEachKeyTile(const Part &part, llvm::function_ref<void(int64_t start, int64_t size)> body) {
    for (int64_t start = 0; start < part.width; start += partitions)
      body(start, std::min(partitions, part.width - start));
  }

  void turnWeights(Step &step) {
    int64_t count = step.rows.extent;
    for (size_t i = 0; i < step.parts.size(); ++i)
      forEachKeyTile(step.parts[i], [&](int64_t start, int64_t size) {
        step.turned.push_back(TileTransposeOp::create(b, loc, RankedTensorType::get({size, 1, count}, element),
                                                      slice(step.weights[i], {0, start}, {count, size})));
      });
  }

  void multiplyValues(Step &step) {
    State &state = *step.state;
    Value product;
    auto next = step.turned.begin();
    for (const Part &part : step.parts)
      forEachKeyTile(part, [&](int64_t start, int64_t size) {
        int64_t tile = (part.offset + start) / partitions;
        // A part may end within a tile of its block.
        bool isLast = !part.block->values || tile >= typeOf(part.block->values).getDimSize(1);
        Value value = slice(isLast ? part.block->lastValues : part.block->values, {0, isLast ? 0 : tile, 0},
                            {size, 1, valueDepth});
        Value weighted = TileMatmulOp::create(b, loc, f32({step.rows.extent, valueDepth}), *next++, value);
        product = product ? AccumulateOp::create(b, loc, ReduceKind::Sum, product, weighted).getResult() : weighted;
      });
    // What starts a sum leaves PSUM, which holds no more than a few of them.
    state.output =
        step.correction
            ? binary(BinaryFunction::Add, binary(BinaryFunction::Mul, state.output, step.correction), product)
            : UnaryOp::create(b, loc, product.getType(), UnaryFunction::Copy, product).getResult();
  }

  //===------------------------------------------------------------------------------------------------------------===//
  // Groups of rows
  //===------------------------------------------------------------------------------------------------------------===//

  void emitGroup(Segment group) {
    int64_t tiles = llvm::divideCeil(group.extent, partitions);
    Value queries = loadTransposed(tensors.query, /*shared=*/false, group);
    SmallVector<State> states;
    SmallVector<Value> queryTiles;
    SmallVector<Segment> tileRows;
    for (int64_t t = 0; t < tiles; ++t) {
      int64_t start = t * partitions, count = std::min(partitions, group.extent - start);
      tileRows.push_back({group.start + start, count, group.iv, group.step});
      queryTiles.push_back(slice(queries, {0, 0, start}, {depth / depthTiles, depthTiles, count}));
      // Finite, so that a row that sees no key subtracts it from -infinity.
      states.push_back({constant({count, 1}, std::numeric_limits<float>::lowest()), constant({count, 1}, 0.0),
                        constant({count, valueDepth}, 0.0)});
    }
    // Keys that all rows of the group see in whole blocks.
    int64_t seen = causal ? std::min(keys, group.start) : keys;
    int64_t whole = seen / kBlockKeys;
    meetBlocks(states, queryTiles, tileRows, whole);
    int64_t end = causal ? std::min(keys, group.start + group.extent) : keys;
    std::deque<Block> blocks; // stay where they are
    SmallVector<Step, 0> steps;
    for (int64_t start = whole * kBlockKeys; start < end; start += kBlockKeys) {
      int64_t width = std::min(kBlockKeys, end - start);
      const Block &block = blocks.emplace_back(loadBlock({start, width, Value(), 0}));
      for (int64_t t = 0; t < tiles; ++t) {
        // With `causal`: keys before the tile's first row, and the diagonal tile.
        int64_t before = causal ? std::clamp<int64_t>(tileRows[t].start - start, 0, width) : width;
        Step step{&states[t], queryTiles[t], tileRows[t], {}, {}, {}, {}, {}};
        if (before > 0)
          step.parts.push_back({&block, 0, before, /*diagonal=*/false});
        if (causal && tileRows[t].start >= start && before < width)
          step.parts.push_back({&block, before, std::min(tileRows[t].extent, width - before), /*diagonal=*/true});
        if (!step.parts.empty())
          steps.push_back(std::move(step));
      }
    }
    emitSteps(steps);
    finish(states, tileRows);
  }

  void meetBlocks(MutableArrayRef<State> states, ArrayRef<Value> queries, ArrayRef<Segment> tileRows, int64_t count) {
    auto meetAll = [&](Segment segment) {
      Block block = loadBlock(segment);
      SmallVector<Step, 0> steps;
      for (size_t t = 0; t < states.size(); ++t)
        steps.push_back({&states[t], queries[t], tileRows[t], {{&block, 0, kBlockKeys, false}}, {}, {}, {}, {}});
      emitSteps(steps);
    };
    if (count == 1)
      return meetAll({0, kBlockKeys, Value(), 0});
    if (count == 0)
      return;
    SmallVector<Value> carried;
    for (State &state : states)
      llvm::append_range(carried, ArrayRef<Value>{state.maximum, state.sum, state.output});
    auto loop = scf::ForOp::create(b, loc, index(0), index(count), index(1), carried);
    auto take = [&](ValueRange values) {
      for (auto [t, state] : llvm::enumerate(states))
        state = {values[3 * t], values[3 * t + 1], values[3 * t + 2]};
    };
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      take(loop.getRegionIterArgs());
      meetAll({0, kBlockKeys, loop.getInductionVar(), kBlockKeys});
      SmallVector<Value> next;
      for (State &state : states)
        llvm::append_range(next, ArrayRef<Value>{state.maximum, state.sum, state.output});
      scf::YieldOp::create(b, loc, next);
    }
    take(loop.getResults());
  }

  /// Operation by operation over all tiles, so that no engine waits for the chain of one tile.
  void finish(ArrayRef<State> states, ArrayRef<Segment> tileRows) {
    if (tensors.result.buffer) {
      SmallVector<Value> sums, outputs;
      // A row that sees no key has no weights; its sum is 0 and so is its result.
      for (const State &state : states)
        sums.push_back(binary(BinaryFunction::Max, state.sum,
                              constant({typeOf(state.sum).getDimSize(0), 1}, std::numeric_limits<float>::min())));
      for (auto [state, sum] : llvm::zip(states, sums))
        outputs.push_back(castTo(binary(BinaryFunction::Div, state.output, sum), element));
      for (auto [output, rows] : llvm::zip(outputs, tileRows)) {
        TileAddress place = placeOfHead(tensors.result, /*shared=*/false);
        place.add(rows, tensors.result.layout.strides[2]);
        store(output, tensors.result, place, {tensors.result.layout.strides[2], tensors.result.layout.strides[3]});
      }
    }
    if (tensors.logsumexp.buffer) {
      SmallVector<Value> logarithms, all;
      for (const State &state : states)
        logarithms.push_back(UnaryOp::create(b, loc, state.sum.getType(), UnaryFunction::Log, state.sum));
      for (auto [state, logarithm] : llvm::zip(states, logarithms))
        all.push_back(binary(BinaryFunction::Add, scaled(state.maximum, factor()), logarithm));
      for (auto [value, rows] : llvm::zip(all, tileRows)) {
        TileAddress place = placeOfHead(tensors.logsumexp, /*shared=*/false);
        place.add(rows, tensors.logsumexp.layout.strides[2]);
        store(value, tensors.logsumexp, place, {tensors.logsumexp.layout.strides[2], 1});
      }
    }
  }

  OpBuilder &b;
  Location loc;
  const AttentionTensors &tensors;
  Type element;
  int64_t partitions, batches, groups, headsPerGroup, rows, depth, keys, valueDepth, depthTiles;
  double scale;
  bool causal;
  Value triangle;
  Head at;
};

} // namespace

void mlir::neuron::emitAttention(OpBuilder &builder, AttentionOp op, const AttentionTensors &tensors,
                                 const ::neuroncore::target::MachineModel &model) {
  AttentionEmitter(builder, op, tensors, model).run();
}

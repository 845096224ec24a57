// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products on the tensor engine: loops over batch, row tiles (128), column tiles (512) and k tiles (128), the
// products of one output tile accumulated in PSUM. An operand whose k is not its slowest dimension in memory is loaded in
// its own order and transposed by the tensor engine.

#include "passes/Tile/SpecialKernels.h"

using namespace mlir;
using namespace mlir::neuron;

namespace {

struct Segment {
  int64_t start, extent;
  Value iv; // null: one tile
  int64_t step;
};

class ContractEmitter {
public:
  ContractEmitter(OpBuilder &builder, ContractOp op, const HbmTensor &lhs, const HbmTensor &rhs,
                  const HbmTensor &result, const ::neuroncore::target::MachineModel &model)
      : b(builder), loc(op.getLoc()), lhs(lhs), rhs(rhs), result(result) {
    partitions = model.tensorEngine().rows;
    maxMoving = std::min<int64_t>(model.tensorEngine().maxMovingFree, 512);
    elementType = cast<MemRefType>(lhs.buffer.getType()).getElementType();
    resultType = cast<MemRefType>(result.buffer.getType()).getElementType();
  }

  void run() {
    forEach(lhs.layout.sizes[0], 1, {}, [&](Segment batch, Value) {
      forEach(lhs.layout.sizes[1], partitions, {}, [&](Segment m, Value) {
        forEach(rhs.layout.sizes[2], maxMoving, {}, [&](Segment n, Value) { emitTile(batch, m, n); return Value(); });
        return Value();
      });
      return Value();
    });
  }

private:
  using Body = llvm::function_ref<Value(Segment, Value carried)>;

  /// Full tiles as one loop, the rest as straight-line code; `carried` passes through when given.
  Value forEach(int64_t size, int64_t tile, Value carried, Body body) {
    int64_t full = size / tile;
    if (full == 1) {
      carried = body({0, tile, Value(), 0}, carried);
    } else if (full > 1) {
      Value zero = arith::ConstantIndexOp::create(b, loc, 0), one = arith::ConstantIndexOp::create(b, loc, 1);
      Value trips = arith::ConstantIndexOp::create(b, loc, full);
      auto loop = scf::ForOp::create(b, loc, zero, trips, one, carried ? ValueRange(carried) : ValueRange());
      OpBuilder::InsertionGuard guard(b);
      bool hasTerminator = !loop.getBody()->empty();
      if (hasTerminator)
        b.setInsertionPoint(loop.getBody()->getTerminator());
      else
        b.setInsertionPointToStart(loop.getBody());
      Value next = body({0, tile, loop.getInductionVar(), tile}, carried ? Value(loop.getRegionIterArg(0)) : Value());
      if (carried) {
        if (!hasTerminator)
          scf::YieldOp::create(b, loc, next);
        else
          loop.getBody()->getTerminator()->setOperands(next);
        carried = loop.getResult(0);
      } else if (!hasTerminator) {
        scf::YieldOp::create(b, loc);
      }
    }
    if (int64_t rest = size % tile)
      carried = body({full * tile, rest, Value(), 0}, carried);
    return carried;
  }

  /// The tile [rows of dimension r, columns of dimension c] of a batch.
  Value load(const HbmTensor &tensor, Segment batch, Segment rows, unsigned r, Segment columns, unsigned c) {
    SmallVector<Value> ivs;
    SmallVector<int64_t> ivStrides;
    int64_t offset = tensor.layout.offset;
    auto add = [&](const Segment &segment, unsigned dim) {
      int64_t stride = tensor.layout.strides[dim];
      offset += segment.start * stride;
      if (segment.iv && stride != 0) {
        ivs.push_back(segment.iv);
        ivStrides.push_back(segment.step * stride);
      }
    };
    add(batch, 0);
    add(rows, r);
    add(columns, c);
    auto type = RankedTensorType::get({rows.extent, columns.extent}, elementType);
    return LoadOp::create(b, loc, type, tensor.buffer, ivs, offset, ivStrides,
                          ArrayRef<int64_t>{tensor.layout.strides[r], tensor.layout.strides[c]});
  }

  Value transpose(Value tile) {
    auto type = cast<RankedTensorType>(tile.getType());
    auto transposed = RankedTensorType::get({type.getDimSize(1), type.getDimSize(0)}, type.getElementType());
    return TransposeOp::create(b, loc, transposed, tile, ArrayRef<int64_t>{1, 0});
  }

  /// [k, columns of dimension `other`] with k on the partitions.
  Value loadWithK(const HbmTensor &tensor, Segment batch, Segment k, unsigned kDim, Segment other, unsigned otherDim) {
    int64_t kStride = std::abs(tensor.layout.strides[kDim]), otherStride = std::abs(tensor.layout.strides[otherDim]);
    bool kIsInner = kStride < otherStride && kStride != 0 && k.extent > 1;
    int64_t bytes = elementBytes(elementType);
    if (!kIsInner || (bytes != 2 && bytes != 4))
      return load(tensor, batch, k, kDim, other, otherDim);
    if (other.extent <= partitions)
      return transpose(load(tensor, batch, other, otherDim, k, kDim));
    return Value();
  }

  void emitTile(Segment batch, Segment m, Segment n) {
    auto accumulatorType = RankedTensorType::get({m.extent, n.extent}, b.getF32Type());
    Value accumulator = ConstantOp::create(b, loc, accumulatorType, 0.0);
    accumulator = forEach(lhs.layout.sizes[2], partitions, accumulator, [&](Segment k, Value carried) {
      Value stationary = loadWithK(lhs, batch, k, 2, m, 1);
      Value moving = loadWithK(rhs, batch, k, 1, n, 2);
      if (moving) {
        Value product = TileMatmulOp::create(b, loc, accumulatorType, stationary, moving);
        return AccumulateOp::create(b, loc, ReduceKind::Sum, carried, product).getResult();
      }
      llvm_unreachable("columns are tiled to at most one transpose");
    });
    if (resultType != accumulatorType.getElementType())
      accumulator = CastOp::create(b, loc, RankedTensorType::get(accumulatorType.getShape(), resultType), accumulator);
    store(accumulator, batch, m, n);
  }

  void store(Value tile, Segment batch, Segment m, Segment n) {
    SmallVector<Value> ivs;
    SmallVector<int64_t> ivStrides;
    int64_t offset = result.layout.offset;
    const Segment segments[] = {batch, m, n};
    for (auto [dim, segment] : llvm::enumerate(segments)) {
      int64_t stride = result.layout.strides[dim];
      offset += segment.start * stride;
      if (segment.iv) {
        ivs.push_back(segment.iv);
        ivStrides.push_back(segment.step * stride);
      }
    }
    StoreOp::create(b, loc, tile, result.buffer, ivs, offset, ivStrides,
                    ArrayRef<int64_t>{result.layout.strides[1], result.layout.strides[2]});
  }

public:
  /// Columns of one tile: a transposed rhs is loaded with its columns on partitions.
  void limitColumns() {
    int64_t kStride = std::abs(rhs.layout.strides[1]), nStride = std::abs(rhs.layout.strides[2]);
    int64_t bytes = elementBytes(elementType);
    if (kStride < nStride && kStride != 0 && (bytes == 2 || bytes == 4))
      maxMoving = partitions;
  }

private:
  OpBuilder &b;
  Location loc;
  const HbmTensor &lhs, &rhs, &result;
  int64_t partitions, maxMoving;
  Type elementType, resultType;
};

} // namespace

LogicalResult mlir::neuron::emitContract(OpBuilder &builder, ContractOp op, const HbmTensor &lhs, const HbmTensor &rhs,
                                         const HbmTensor &result, const ::neuroncore::target::MachineModel &model) {
  if (!isa<FloatType>(cast<RankedTensorType>(op.getLhs().getType()).getElementType()))
    return op.emitOpError() << "expected float operands but got " << op.getLhs().getType();
  ContractEmitter emitter(builder, op, lhs, rhs, result, model);
  emitter.limitColumns();
  emitter.run();
  return success();
}

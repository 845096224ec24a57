// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/Neuron/NeuronIndexingOps.h"

#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace mlir::neuron;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// `rows` is `whole` with `count` elements in dimension `dim`.
static LogicalResult verifyRows(Operation *op, StringRef constraint, StringRef what, RankedTensorType rows,
                                RankedTensorType whole, int64_t dim, int64_t count) {
  if (dim < 0 || dim >= whole.getRank())
    return op->emitOpError() << "expected dim within [0, " << whole.getRank() << ") but got " << dim;
  SmallVector<int64_t> shape(whole.getShape());
  shape[dim] = count;
  RankedTensorType expected = whole.clone(shape);
  if (rows != expected)
    return op->emitOpError() << constraint << ": expected " << what << " of type " << expected << " but got " << rows;
  return success();
}

LogicalResult GatherOp::verify() {
  return verifyRows(*this, "gather_c1", "a result", cast<RankedTensorType>(getType()), tensorType(getSource()),
                    getDim(), tensorType(getIndex()).getDimSize(0));
}

LogicalResult ScatterOp::verify() {
  RankedTensorType destination = tensorType(getDestination());
  if (destination != getType())
    return emitOpError() << "expected the destination's type " << destination << " but got " << getType();
  return verifyRows(*this, "scatter_c1", "a source", tensorType(getSource()), destination, getDim(),
                    tensorType(getIndex()).getDimSize(0));
}

template <typename OpTy> static LogicalResult verifyIndexedAccess(OpTy op, RankedTensorType tile) {
  auto buffer = cast<MemRefType>(op.getBuffer().getType());
  auto space = dyn_cast_or_null<MemorySpaceAttr>(buffer.getMemorySpace());
  if (space && space.getValue() != MemorySpace::Hbm)
    return op.emitOpError() << "expected a buffer in hbm but got " << buffer;
  if (op.getIvs().size() != op.getIvStrides().size())
    return op.emitOpError() << "expected one stride per loop counter but got " << op.getIvStrides().size() << " for "
                            << op.getIvs().size();
  if (static_cast<int64_t>(op.getStrides().size()) != tile.getRank() || tile.getRank() == 0)
    return op.emitOpError() << "expected one stride per dimension of " << tile << " but got " << op.getStrides().size();
  if (tile.getElementType() != buffer.getElementType())
    return op.emitOpError() << "expected the buffer's element type but got " << tile;
  RankedTensorType index = tensorType(op.getIndex());
  if (!index.getElementType().isInteger(32) && !index.getElementType().isInteger(64))
    return op.emitOpError() << "expected an index of i32 or i64 but got " << index;
  if (index.getRank() == 0 || index.getDimSize(0) != tile.getDimSize(0) ||
      index.getNumElements() != index.getDimSize(0))
    return op.emitOpError() << "expected an index with one element for each of " << tile.getDimSize(0)
                            << " partitions but got " << index;
  if (op.getRows() < 1 || op.getStrides()[0] < 1)
    return op.emitOpError() << "expected at least one row and a positive row stride but got " << op.getRows() << " and "
                            << op.getStrides()[0];
  return success();
}

LogicalResult IndexedLoadOp::verify() { return verifyIndexedAccess(*this, cast<RankedTensorType>(getType())); }

LogicalResult IndexedStoreOp::verify() {
  RankedTensorType tile = tensorType(getTile());
  for (auto [size, stride] : llvm::zip(tile.getShape(), getStrides()))
    if (stride == 0 && size != 1)
      return emitOpError() << "expected a stride in each dimension but got 0 for size " << size;
  return verifyIndexedAccess(*this, tile);
}

void IndexedLoadOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getBufferMutable(), SideEffects::DefaultResource::get());
}

void IndexedStoreOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), &getBufferMutable(), SideEffects::DefaultResource::get());
}

#define GET_OP_CLASSES
#include "dialects/Neuron/NeuronIndexingOps.cpp.inc"

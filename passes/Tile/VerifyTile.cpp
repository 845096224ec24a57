// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/Neuron/NeuronIndexingOps.h"
#include "passes/Tile/Passes.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "neuron/Isa/Instruction.h"

namespace mlir::neuron {
#define GEN_PASS_DEF_VERIFYTILEPASS
#include "passes/Tile/Passes.h.inc"
} // namespace mlir::neuron

using namespace mlir;
using namespace mlir::neuron;

namespace {

/// Number of iterations of the loop that `iv` counts.
int64_t tripsOf(Value iv) {
  auto loop = cast<scf::ForOp>(cast<BlockArgument>(iv).getOwner()->getParentOp());
  return *getConstantIntValue(loop.getUpperBound());
}

LogicalResult verifyAccess(Operation *op, Value buffer, ValueRange ivs, int64_t offset, ArrayRef<int64_t> ivStrides,
                           ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  int64_t low = offset, high = offset;
  for (auto [iv, stride] : llvm::zip(ivs, ivStrides))
    (stride < 0 ? low : high) += stride * (tripsOf(iv) - 1);
  for (auto [size, stride] : llvm::zip(sizes, strides))
    (stride < 0 ? low : high) += stride * (size - 1);
  int64_t elements = cast<MemRefType>(buffer.getType()).getDimSize(0);
  if (low < 0 || high >= elements)
    return op->emitOpError() << "tile contract t5: expected elements within [0, " << elements << ") but got [" << low
                             << ", " << high << "]";
  return success();
}

/// The first dimension of the tile walks to any of the rows.
template <typename OpTy> LogicalResult verifyIndexedAccess(OpTy op, Type tile) {
  SmallVector<int64_t> sizes(cast<RankedTensorType>(tile).getShape());
  sizes[0] = op.getRows();
  return verifyAccess(op, op.getBuffer(), op.getIvs(), op.getOffset(), op.getIvStrides(), sizes, op.getStrides());
}

struct VerifyTilePass : neuron::impl::VerifyTilePassBase<VerifyTilePass> {
  LogicalResult verifyTile(Operation *op, Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return success();
    if (tensor.getRank() < 1 || tensor.getRank() > 1 + ::neuroncore::isa::kMaxFreeDims || tensor.getDimSize(0) > 128)
      return op->emitOpError() << "tile contract t3: expected at most 128 partitions and 4 free dimensions but got "
                               << tensor;
    return success();
  }

  LogicalResult verify(func::FuncOp function) {
    for (Type type : function.getArgumentTypes()) {
      auto buffer = dyn_cast<MemRefType>(type);
      if (!buffer || buffer.getRank() != 1)
        return function.emitOpError() << "tile contract t1: expected HBM buffers of rank 1 but got " << type;
    }
    if (function.getNumResults() != 0)
      return function.emitOpError() << "tile contract t1: expected no results but got " << function.getNumResults();
    for (Operation &op : function.getBody().front()) {
      if (!isa<KernelOp, CallOp, memref::AllocOp, func::ReturnOp>(op))
        return op.emitOpError() << "tile contract t2: expected kernels, calls and buffers only";
      if (auto kernel = dyn_cast<KernelOp>(op); kernel && (!kernel.getInputs().empty() || kernel.getNumResults() != 0))
        return op.emitOpError() << "tile contract t2: expected a kernel without inputs and results";
    }
    WalkResult walk = function.walk([&](Operation *op) {
      if (auto loop = dyn_cast<scf::ForOp>(op)) {
        std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound()),
                               upper = getConstantIntValue(loop.getUpperBound()),
                               step = getConstantIntValue(loop.getStep());
        if (lower != 0 || !upper || step != 1) {
          loop.emitOpError() << "tile contract t4: expected constant bounds from 0 in steps of 1";
          return WalkResult::interrupt();
        }
      }
      for (Type type : op->getResultTypes())
        if (failed(verifyTile(op, type)))
          return WalkResult::interrupt();
      LogicalResult access = success();
      if (auto load = dyn_cast<LoadOp>(op))
        access = verifyAccess(op, load.getBuffer(), load.getIvs(), load.getOffset(), load.getIvStrides(),
                              cast<RankedTensorType>(load.getType()).getShape(), load.getStrides());
      if (auto store = dyn_cast<StoreOp>(op))
        access = verifyAccess(op, store.getBuffer(), store.getIvs(), store.getOffset(), store.getIvStrides(),
                              cast<RankedTensorType>(store.getTile().getType()).getShape(), store.getStrides());
      if (auto load = dyn_cast<IndexedLoadOp>(op))
        access = verifyIndexedAccess(load, load.getType());
      if (auto store = dyn_cast<IndexedStoreOp>(op))
        access = verifyIndexedAccess(store, store.getTile().getType());
      if (auto copy = dyn_cast<HbmCopyOp>(op)) {
        access = verifyAccess(op, copy.getSource(), copy.getSourceIvs(), copy.getSourceOffset(),
                              copy.getSourceIvStrides(), copy.getSizes(), copy.getSourceStrides());
        if (succeeded(access))
          access = verifyAccess(op, copy.getDestination(), copy.getDestinationIvs(), copy.getDestinationOffset(),
                                copy.getDestinationIvStrides(), copy.getSizes(), copy.getDestinationStrides());
      }
      return failed(access) ? WalkResult::interrupt() : WalkResult::advance();
    });
    return failure(walk.wasInterrupted());
  }

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(verify(function)))
        return signalPassFailure();
  }
};

} // namespace

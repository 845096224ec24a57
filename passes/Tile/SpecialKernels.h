// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that are not loops over one iteration space: movement between HBM buffers, products, attention.

#ifndef PASSES_TILE_SPECIALKERNELS_H
#define PASSES_TILE_SPECIALKERNELS_H

#include "dialects/Neuron/NeuronAttentionOps.h"
#include "lib/Analysis/ContractPlan.h"
#include "passes/Tile/TileGenerator.h"

namespace mlir::neuron {

/// A tensor in HBM: buffer and layout (elements).
struct HbmTensor {
  Value buffer;
  StridedLayout layout;
};

/// dst = src, dimension by dimension (equal sizes), as few HBM to HBM transfers as possible.
void emitCopy(OpBuilder &builder, Location loc, const HbmTensor &source, const HbmTensor &destination);

/// result = operands joined along the dimension. Those without a buffer lie in the result already.
void emitConcat(OpBuilder &builder, ConcatOp op, ArrayRef<HbmTensor> operands, const HbmTensor &result);

/// Writes source at its place in `result`, which already holds the destination.
void emitInsert(OpBuilder &builder, InsertOp op, const HbmTensor &source, const HbmTensor &result);

/// lhs[b, m, k] times rhs[b, k, n], and what `plan` computes from the product. `bufferOf`: the HBM buffer of a value
/// that is read or stored; `product`: where the product itself is stored, without a buffer if it is not.
void emitContract(OpBuilder &builder, ContractOp op, const ContractKernelPlan &plan, const HbmTensor &lhs,
                  const HbmTensor &rhs, const HbmTensor &product, TileGenerator::BufferFn bufferOf,
                  const ::neuroncore::target::MachineModel &model);

/// Operands of attention; `mask`, `state`, `index` and `logsumexp` have no buffer when there is none.
struct AttentionTensors {
  HbmTensor query, key, value, mask, state, index, result, logsumexp;
};

/// Query rows against blocks of keys, with running maxima and sums.
void emitAttention(OpBuilder &builder, AttentionOp op, const AttentionTensors &tensors,
                   const ::neuroncore::target::MachineModel &model);

/// Operands and results of the gradient of attention; what there is not, or nobody wants, has no buffer.
struct AttentionBackwardTensors {
  HbmTensor gradient, query, key, value, mask, state, index, logsumexp, delta, queryGradient, keyGradient,
      valueGradient;
};

/// One pass over pairs of rows and keys; false when a head does not fit on chip or its code would be too long.
bool emitAttentionBackwardPipeline(OpBuilder &builder, AttentionBackwardOp op, const AttentionBackwardTensors &tensors,
                                   const ::neuroncore::target::MachineModel &model);

/// Sums of query rows over blocks of keys, and of keys over tiles of rows.
void emitAttentionBackward(OpBuilder &builder, AttentionBackwardOp op, const AttentionBackwardTensors &tensors,
                           const ::neuroncore::target::MachineModel &model);

} // namespace mlir::neuron

#endif // PASSES_TILE_SPECIALKERNELS_H

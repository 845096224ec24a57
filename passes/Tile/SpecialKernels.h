// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that are not loops over one iteration space: movement between HBM buffers and contractions.

#ifndef PASSES_TILE_SPECIALKERNELS_H
#define PASSES_TILE_SPECIALKERNELS_H

#include "dialects/Neuron/NeuronViews.h"
#include "neuron/Target/MachineModel.h"

namespace mlir::neuron {

/// A tensor in HBM: buffer and layout (elements).
struct HbmTensor {
  Value buffer;
  StridedLayout layout;
};

/// dst = src, dimension by dimension (equal sizes), as few HBM to HBM transfers as possible.
void emitCopy(OpBuilder &builder, Location loc, const HbmTensor &source, const HbmTensor &destination);

/// result = operands joined along the dimension.
void emitConcat(OpBuilder &builder, ConcatOp op, ArrayRef<HbmTensor> operands, const HbmTensor &result);

/// result = destination with source written at its place; nothing is copied from a destination that is the result itself.
void emitInsert(OpBuilder &builder, InsertOp op, const HbmTensor &source, const HbmTensor &destination,
                const HbmTensor &result);

/// result[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n].
LogicalResult emitContract(OpBuilder &builder, ContractOp op, const HbmTensor &lhs, const HbmTensor &rhs,
                           const HbmTensor &result, const ::neuroncore::target::MachineModel &model);

} // namespace mlir::neuron

#endif // PASSES_TILE_SPECIALKERNELS_H

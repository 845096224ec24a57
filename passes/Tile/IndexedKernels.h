// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that move rows to and from places that an index tensor names.

#ifndef PASSES_TILE_INDEXEDKERNELS_H
#define PASSES_TILE_INDEXEDKERNELS_H

#include "dialects/Neuron/NeuronIndexingOps.h"
#include "passes/Tile/SpecialKernels.h"

namespace mlir::neuron {

/// result = source with the indexed rows of the operation's dimension.
LogicalResult emitGather(OpBuilder &builder, GatherOp op, const HbmTensor &source, const HbmTensor &index,
                         const HbmTensor &result, const ::neuroncore::target::MachineModel &model);

/// Writes (or adds) the rows of source to those of `result`, which already holds the destination.
LogicalResult emitScatter(OpBuilder &builder, ScatterOp op, const HbmTensor &source, const HbmTensor &index,
                          const HbmTensor &result, const ::neuroncore::target::MachineModel &model);

} // namespace mlir::neuron

#endif // PASSES_TILE_INDEXEDKERNELS_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef PASSES_KERNELS_LONGROWS_H
#define PASSES_KERNELS_LONGROWS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "dialects/Neuron/NeuronOps.h"
#include "neuron/Target/MachineModel.h"

namespace mlir::neuron {

/// Scans and index reductions need whole rows on chip. Those with longer rows become operations that do not: a scan of
/// blocks and of their totals, and the smallest index at which the extreme element lies. Sums of exponentials relative
/// to the largest element (softmax, cross-entropy) read longer rows once, block by block.
void splitLongRows(func::FuncOp function, const ::neuroncore::target::MachineModel &model);

} // namespace mlir::neuron

#endif // PASSES_KERNELS_LONGROWS_H

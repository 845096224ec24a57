// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef PASSES_KERNELS_SEPARATECASTS_H
#define PASSES_KERNELS_SEPARATECASTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "dialects/Neuron/NeuronOps.h"

namespace mlir::neuron {

/// Gives each operation that computes with a widened 16-bit value a conversion of its own, behind the views.
/// Instructions widen what they read, so that such a conversion belongs to whichever kernel its user is in, and what
/// lies between kernels is the narrow value. Returns these conversions.
llvm::DenseSet<Operation *> separateCasts(func::FuncOp function);

} // namespace mlir::neuron

#endif // PASSES_KERNELS_SEPARATECASTS_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef PASSES_KERNELS_ORDERSCATTERS_H
#define PASSES_KERNELS_ORDERSCATTERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::neuron {

/// Makes the rows of each scatter such that the order inside of a block does not matter (`blocked`). Rows of a block
/// move at once, on several DMA engines, so rows with equal indices must be equal: the last one of them, or their sum.
void orderScatters(func::FuncOp function);

} // namespace mlir::neuron

#endif // PASSES_KERNELS_ORDERSCATTERS_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef PASSES_KERNELS_NARROWASSEMBLY_H
#define PASSES_KERNELS_NARROWASSEMBLY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::neuron {

/// Concatenations and insertions store their parts where they belong. Where parts alternate every few bytes, each of
/// these pieces would be a transfer's; such results are computed instead: each element is selected from the parts by
/// its index, in a kernel with whatever else is computed.
void selectNarrowParts(func::FuncOp function);

} // namespace mlir::neuron

#endif // PASSES_KERNELS_NARROWASSEMBLY_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef PASSES_GRAPH_PASSES_H
#define PASSES_GRAPH_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include "dialects/Neuron/NeuronOps.h"

namespace mlir::neuron {

#define GEN_PASS_DECL
#include "passes/Graph/Passes.h.inc"

/// Imported operations in, simplified ones out; ends with VerifyGraph.
void buildGraphPipeline(OpPassManager &pm);

#define GEN_PASS_REGISTRATION
#include "passes/Graph/Passes.h.inc"

} // namespace mlir::neuron

#endif // PASSES_GRAPH_PASSES_H

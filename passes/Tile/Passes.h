// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef PASSES_TILE_PASSES_H
#define PASSES_TILE_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include "dialects/Neuron/NeuronOps.h"

namespace mlir::neuron {

#define GEN_PASS_DECL
#include "passes/Tile/Passes.h.inc"

struct TilePipelineOptions {
  std::string target = "trn2";
};

/// Kernels on tensors in, loops over tiles out; ends with VerifyTile.
void buildTilePipeline(OpPassManager &pm, const TilePipelineOptions &options);

#define GEN_PASS_REGISTRATION
#include "passes/Tile/Passes.h.inc"

} // namespace mlir::neuron

#endif // PASSES_TILE_PASSES_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef PASSES_SELECT_PASSES_H
#define PASSES_SELECT_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include "dialects/NISA/NISADialect.h"
#include "dialects/Neuron/NeuronOps.h"

namespace mlir::neuron {

#define GEN_PASS_DECL
#include "passes/Select/Passes.h.inc"

struct SelectPipelineOptions {
  std::string target = "trn2";
};

/// Tiled kernels in, instructions on unplaced buffers out; ends with VerifySelect.
void buildSelectPipeline(OpPassManager &pm, const SelectPipelineOptions &options);

#define GEN_PASS_REGISTRATION
#include "passes/Select/Passes.h.inc"

} // namespace mlir::neuron

#endif // PASSES_SELECT_PASSES_H

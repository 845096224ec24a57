// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef PASSES_KERNELS_PASSES_H
#define PASSES_KERNELS_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include "dialects/Neuron/NeuronOps.h"

namespace mlir::neuron {

#define GEN_PASS_DECL
#include "passes/Kernels/Passes.h.inc"

struct KernelsPipelineOptions {
  std::string target = "trn2";
  bool explain = false;
};

/// Graph of operations in, kernels out; ends with VerifyKernels.
void buildKernelsPipeline(OpPassManager &pm, const KernelsPipelineOptions &options);

#define GEN_PASS_REGISTRATION
#include "passes/Kernels/Passes.h.inc"

} // namespace mlir::neuron

#endif // PASSES_KERNELS_PASSES_H

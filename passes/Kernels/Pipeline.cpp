// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Kernels/Passes.h"

using namespace mlir;

void mlir::neuron::buildKernelsPipeline(OpPassManager &pm, const KernelsPipelineOptions &options) {
  FormKernelsPassOptions form;
  form.target = options.target;
  form.explain = options.explain;
  pm.addNestedPass<func::FuncOp>(createFormKernelsPass(form));
  pm.addNestedPass<func::FuncOp>(createVerifyKernelsPass());
}

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Transforms/Passes.h"

#include "passes/Graph/Passes.h"

using namespace mlir;

void mlir::neuron::buildGraphPipeline(OpPassManager &pm) {
  // Equal operations first, so that patterns see one x in x * x.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addNestedPass<func::FuncOp>(createSimplifyGraphPass());
  // Simplification makes equal and dead operations; whether somebody else looks at scores is asked without them.
  pm.addPass(createCSEPass());
  pm.addNestedPass<func::FuncOp>(createFormAttentionPass());
  // What attention was made of is dead now.
  pm.addPass(createCSEPass());
  pm.addPass(createCanonicalizerPass());
  pm.addNestedPass<func::FuncOp>(createVerifyGraphPass());
}

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/Neuron/NeuronIndexingOps.h"
#include "dialects/Neuron/NeuronViews.h"
#include "passes/Kernels/Passes.h"

namespace mlir::neuron {
#define GEN_PASS_DEF_VERIFYKERNELSPASS
#include "passes/Kernels/Passes.h.inc"
} // namespace mlir::neuron

using namespace mlir;
using namespace mlir::neuron;

namespace {

struct VerifyKernelsPass : neuron::impl::VerifyKernelsPassBase<VerifyKernelsPass> {
  void runOnOperation() override {
    for (Operation &op : getOperation().getBody().front()) {
      if (auto kernel = dyn_cast<KernelOp>(op)) {
        WalkResult scatters = kernel.walk([](ScatterOp scatter) {
          if (scatter.getBlocked())
            return WalkResult::advance();
          scatter.emitOpError() << "kernels contract k4: expected blocks in which order does not matter";
          return WalkResult::interrupt();
        });
        if (scatters.wasInterrupted())
          return signalPassFailure();
        for (Value input : kernel.getInputs())
          if (Operation *definition = input.getDefiningOp(); definition && !isa<KernelOp, ConstantOp>(definition)) {
            kernel.emitOpError() << "kernels contract k2: expected inputs to be arguments, constants or kernel results";
            return signalPassFailure();
          }
        continue;
      }
      if (auto ret = dyn_cast<func::ReturnOp>(op)) {
        for (Value value : ret.getOperands())
          if (!viewSource(value).getDefiningOp<KernelOp>() &&
              cast<RankedTensorType>(value.getType()).getNumElements() != 0) {
            ret.emitOpError() << "kernels contract k3: expected results to come from kernels";
            return signalPassFailure();
          }
        continue;
      }
      if (!isView(&op) && !isa<ConstantOp>(op)) {
        op.emitOpError() << "kernels contract k1: expected kernels, constants and views only";
        return signalPassFailure();
      }
    }
  }
};

} // namespace

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "neuron/Support/Interrupt.h"
#include "neuron/Support/Progress.h"
#include "passes/Select/KernelSelector.h"
#include "passes/Select/Passes.h"

namespace mlir::neuron {
#define GEN_PASS_DEF_SELECTINSTRUCTIONSPASS
#include "passes/Select/Passes.h.inc"
} // namespace mlir::neuron

using namespace mlir;
using namespace mlir::neuron;

namespace {

struct SelectInstructionsPass : neuron::impl::SelectInstructionsPassBase<SelectInstructionsPass> {
  using SelectInstructionsPassBase::SelectInstructionsPassBase;

  void runOnOperation() override {
    const auto *model = ::neuroncore::target::MachineModel::builtin(target);
    if (!model) {
      getOperation().emitError() << "expected target trn1, trn2 or trn3 but got " << target;
      return signalPassFailure();
    }
    SmallVector<KernelOp> kernels;
    getOperation().walk([&](KernelOp kernel) { kernels.push_back(kernel); });
    for (auto [number, kernel] : llvm::enumerate(kernels)) {
      ::neuroncore::reportStep("kernel", number, kernels.size());
      if (::neuroncore::interruptRequested())
        return signalPassFailure();
      OpBuilder builder(kernel);
      auto selected = nisa::KernelOp::create(builder, kernel.getLoc(), kernel.getSymNameAttr());
      if (failed(KernelSelector(builder, *model).run(kernel, selected)))
        return signalPassFailure();
      kernel.erase();
    }
  }
};

} // namespace

void mlir::neuron::buildSelectPipeline(OpPassManager &pm, const SelectPipelineOptions &options) {
  SelectInstructionsPassOptions select;
  select.target = options.target;
  pm.addPass(createSelectInstructionsPass(select));
  VerifySelectPassOptions verify;
  verify.target = options.target;
  pm.addPass(createVerifySelectPass(verify));
}

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "neuron/Isa/Verify.h"
#include "neuron/Target/MachineModel.h"
#include "passes/Select/Passes.h"

namespace mlir::neuron {
#define GEN_PASS_DEF_VERIFYSELECTPASS
#include "passes/Select/Passes.h.inc"
} // namespace mlir::neuron

using namespace mlir;
using namespace mlir::neuron;

namespace {

struct VerifySelectPass : neuron::impl::VerifySelectPassBase<VerifySelectPass> {
  using VerifySelectPassBase::VerifySelectPassBase;

  void runOnOperation() override {
    const auto *model = ::neuroncore::target::MachineModel::builtin(target);
    if (!model) {
      getOperation().emitError() << "expected target trn1, trn2 or trn3 but got " << target;
      return signalPassFailure();
    }
    WalkResult walk = getOperation().walk([&](Operation *op) {
      if (isa_and_nonnull<neuron::NeuronDialect>(op->getDialect()) && !isa<CallOp>(op)) {
        op->emitOpError() << "select contract s1: expected instructions only";
        return WalkResult::interrupt();
      }
      if (!nisa::isInstruction(op))
        return WalkResult::advance();
      ::neuroncore::Status status =
          ::neuroncore::isa::verifyInstruction(*model, nisa::getEngine(op), nisa::getCode(op));
      if (!status) {
        op->emitOpError() << "select contract s2: " << status.error().message();
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace

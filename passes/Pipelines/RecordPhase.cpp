// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include "dialects/Neuron/NeuronDialect.h"
#include "passes/Pipelines/Phases.h"

namespace mlir::neuron {
#define GEN_PASS_DEF_RECORDPHASEPASS
#include "passes/Pipelines/Passes.h.inc"
} // namespace mlir::neuron

using namespace mlir;
using namespace mlir::neuron;

namespace {

struct RecordPhasePass : neuron::impl::RecordPhasePassBase<RecordPhasePass> {
  using RecordPhasePassBase::RecordPhasePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!parsePhase(phase)) {
      module.emitError() << "expected the name of a phase but got '" << phase << "'";
      return signalPassFailure();
    }
    Builder builder(module.getContext());
    module->setAttr(attribute::kPhase, builder.getStringAttr(phase.getValue()));
    module->setAttr(attribute::kTarget, builder.getStringAttr(target.getValue()));
  }
};

} // namespace

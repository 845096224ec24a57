// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/NISA/NISAProgram.h"
#include "neuron/Schedule/Synchronisation.h"
#include "passes/Schedule/Passes.h"

namespace mlir::neuron {
#define GEN_PASS_DEF_SYNCHRONISEPASS
#include "passes/Schedule/Passes.h.inc"
} // namespace mlir::neuron

using namespace mlir;
using namespace mlir::neuron;
namespace schedule = ::neuroncore::schedule;

namespace {

struct SynchronisePass : neuron::impl::SynchronisePassBase<SynchronisePass> {
  void annotate(const schedule::Sequence &sequence, ArrayRef<Operation *> ops) {
    Builder b(&getContext());
    for (const schedule::Node &node : sequence) {
      if (const auto *loop = std::get_if<std::unique_ptr<schedule::Loop>>(&node)) {
        for (const schedule::Sequence &copy : (*loop)->copies)
          annotate(copy, ops);
        continue;
      }
      const auto &instruction = std::get<schedule::Instruction>(node);
      if (instruction.tag < 0)
        continue;
      Operation *op = ops[instruction.tag];
      SmallVector<Attribute> waits;
      for (const schedule::SymbolicWait &wait : instruction.waits)
        waits.push_back(nisa::WaitAttr::get(&getContext(), wait.counter == schedule::SymbolicWait::Counter::DmaSite,
                                            wait.index, wait.kernelsBack, wait.armedAfterFirstPass, wait.anchor,
                                            wait.immediate));
      if (!waits.empty())
        op->setAttr(nisa::attribute::kWaits, b.getArrayAttr(waits));
      if (instruction.dmaSite >= 0)
        op->setAttr(nisa::attribute::kDmaSite, b.getI64IntegerAttr(instruction.dmaSite));
    }
  }

  void runOnOperation() override {
    for (func::FuncOp function : nisa::findPrograms(getOperation())) {
      FailureOr<nisa::ProgramView> view = nisa::buildProgram(function);
      if (failed(view))
        return signalPassFailure();
      for (schedule::StructuredProgram &unit : view->units) {
        ::neuroncore::Status status = schedule::synchronise(unit);
        if (!status) {
          function.emitError() << "synchronisation: " << status.error().message();
          return signalPassFailure();
        }
        for (const schedule::Kernel &kernel : unit.kernels)
          annotate(kernel.body, view->instructions);
      }
    }
  }
};

} // namespace

void mlir::neuron::buildSchedulePipeline(OpPassManager &pm, const SchedulePipelineOptions &options) {
  // Who triggers a transfer decides what may run beside it, so it comes before copies are counted.
  AssignTransfersPassOptions transfers;
  transfers.target = options.target;
  pm.addPass(createAssignTransfersPass(transfers));
  RotateLoopsPassOptions rotate;
  rotate.target = options.target;
  pm.addPass(createRotateLoopsPass(rotate));
  AllocateBuffersPassOptions allocate;
  allocate.target = options.target;
  pm.addPass(createAllocateBuffersPass(allocate));
  PipelineLoopsPassOptions pipeline;
  pipeline.target = options.target;
  pm.addPass(createPipelineLoopsPass(pipeline));
  pm.addPass(createSynchronisePass());
  VerifySchedulePassOptions verify;
  verify.target = options.target;
  pm.addPass(createVerifySchedulePass(verify));
}

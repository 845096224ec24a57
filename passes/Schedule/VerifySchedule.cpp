// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/NISA/NISAProgram.h"
#include "neuron/Isa/Verify.h"
#include "neuron/Target/MachineModel.h"
#include "passes/Schedule/Passes.h"

namespace mlir::neuron {
#define GEN_PASS_DEF_VERIFYSCHEDULEPASS
#include "passes/Schedule/Passes.h.inc"
} // namespace mlir::neuron

using namespace mlir;
using namespace mlir::neuron;
namespace schedule = ::neuroncore::schedule;

namespace {

struct VerifySchedulePass : neuron::impl::VerifySchedulePassBase<VerifySchedulePass> {
  using VerifySchedulePassBase::VerifySchedulePassBase;

  LogicalResult verifySequence(const schedule::Sequence &sequence, ArrayRef<Operation *> ops,
                               const ::neuroncore::target::MachineModel &model) {
    for (const schedule::Node &node : sequence) {
      if (const auto *loop = std::get_if<std::unique_ptr<schedule::Loop>>(&node)) {
        for (const schedule::Sequence &copy : (*loop)->copies)
          if (failed(verifySequence(copy, ops, model)))
            return failure();
        continue;
      }
      const auto &instruction = std::get<schedule::Instruction>(node);
      ::neuroncore::Status status = ::neuroncore::isa::verifyInstruction(model, instruction.engine, instruction.code);
      if (!status)
        return ops[instruction.tag]->emitOpError() << "schedule contract c2: " << status.error().message();
    }
    return success();
  }

  void runOnOperation() override {
    const auto *model = ::neuroncore::target::MachineModel::builtin(target);
    if (!model) {
      getOperation().emitError() << "expected target trn1, trn2 or trn3 but got " << target;
      return signalPassFailure();
    }
    WalkResult walk = getOperation().walk([&](Operation *op) {
      if (auto alloc = dyn_cast<nisa::AllocOp>(op)) {
        bool psum = nisa::getSpace(alloc.getResult()) == MemorySpace::Psum;
        int64_t capacity = psum ? model->memory().psumBytesPerPartition : model->memory().sbufUsableBytesPerPartition;
        int64_t bytes = cast<MemRefType>(alloc.getType()).getDimSize(1);
        if (!alloc.getAddress() || int64_t(*alloc.getAddress()) + bytes > capacity) {
          alloc.emitOpError() << "schedule contract c1: expected an address below " << capacity - bytes;
          return WalkResult::interrupt();
        }
      }
      if (auto loop = dyn_cast<nisa::LoopOp>(op))
        for (Region &copy : loop.getCopies()) {
          auto names = [](Region &region) {
            return llvm::map_range(region.front(), [](Operation &o) { return o.getName(); });
          };
          if (!llvm::equal(names(copy), names(loop.getCopies().front()))) {
            loop.emitOpError() << "schedule contract c3: expected copies with the same instructions";
            return WalkResult::interrupt();
          }
        }
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    for (func::FuncOp function : nisa::findPrograms(getOperation())) {
      FailureOr<nisa::ProgramView> view = nisa::buildProgram(function);
      if (failed(view))
        return signalPassFailure();
      for (const schedule::StructuredProgram &unit : view->units)
        for (const schedule::Kernel &kernel : unit.kernels)
          if (failed(verifySequence(kernel.body, view->instructions, *model)))
            return signalPassFailure();
    }
  }
};

} // namespace

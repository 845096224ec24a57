// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef PASSES_SCHEDULE_PASSES_H
#define PASSES_SCHEDULE_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include "dialects/NISA/NISADialect.h"

namespace mlir::neuron {

#define GEN_PASS_DECL
#include "passes/Schedule/Passes.h.inc"

struct SchedulePipelineOptions {
  std::string target = "trn2";
};

/// Instructions on unplaced buffers in, a placed and synchronised program out; ends with VerifySchedule.
void buildSchedulePipeline(OpPassManager &pm, const SchedulePipelineOptions &options);

#define GEN_PASS_REGISTRATION
#include "passes/Schedule/Passes.h.inc"

} // namespace mlir::neuron

#endif // PASSES_SCHEDULE_PASSES_H

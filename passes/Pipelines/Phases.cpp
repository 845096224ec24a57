// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Pipelines/Phases.h"

#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"

#include "passes/Graph/Passes.h"
#include "passes/Kernels/Passes.h"
#include "passes/Schedule/Passes.h"
#include "passes/Select/Passes.h"
#include "passes/Tile/Passes.h"

using namespace mlir;
using namespace mlir::neuron;

std::optional<Phase> mlir::neuron::parsePhase(StringRef name) {
  for (const PhaseInfo &info : kPhases)
    if (info.name == name)
      return info.phase;
  return std::nullopt;
}

StringRef mlir::neuron::phaseName(Phase phase) { return kPhases[static_cast<int>(phase)].name; }

void mlir::neuron::buildPhase(OpPassManager &pm, Phase phase, const PipelineOptions &options) {
  switch (phase) {
  case Phase::Import:
  case Phase::Emit:
    return;
  case Phase::Graph:
    buildGraphPipeline(pm);
    break;
  case Phase::Kernels:
    buildKernelsPipeline(pm, {options.target, options.explainFusion});
    break;
  case Phase::Tile:
    buildTilePipeline(pm, {options.target});
    break;
  case Phase::Select:
    buildSelectPipeline(pm, {options.target});
    break;
  case Phase::Schedule:
    buildSchedulePipeline(pm, {options.target});
    break;
  }
  pm.addPass(createRecordPhasePass({phaseName(phase).str(), options.target}));
}

void mlir::neuron::buildEntryCheck(OpPassManager &pm, Phase phase, const PipelineOptions &options) {
  switch (phase) {
  case Phase::Import:
    return;
  case Phase::Graph: // imported graphs keep the same contract as simplified ones
  case Phase::Kernels:
    pm.addNestedPass<func::FuncOp>(createVerifyGraphPass());
    return;
  case Phase::Tile:
    pm.addNestedPass<func::FuncOp>(createVerifyKernelsPass());
    return;
  case Phase::Select:
    pm.addPass(createVerifyTilePass());
    return;
  case Phase::Emit:
  case Phase::Schedule:
    pm.addPass(createVerifySelectPass({options.target}));
    if (phase == Phase::Emit)
      pm.addPass(createVerifySchedulePass({options.target}));
    return;
  }
}

namespace {

struct CommandLineOptions : PassPipelineOptions<CommandLineOptions> {
  Option<std::string> target{*this, "target", llvm::cl::desc("trn1, trn2 or trn3"), llvm::cl::init("trn2")};
  Option<bool> explainFusion{*this, "explain-fusion", llvm::cl::desc("leave the fusion report in the IR"),
                             llvm::cl::init(false)};
  PipelineOptions get() const { return {target, explainFusion}; }
};

} // namespace

void mlir::neuron::registerPipelines() {
  for (const PhaseInfo &info : kPhases) {
    if (info.phase == Phase::Import || info.phase == Phase::Emit)
      continue;
    Phase phase = info.phase;
    PassPipelineRegistration<CommandLineOptions>(
        ("neuron-" + info.name + "-pipeline").str(), info.sentence,
        [phase](OpPassManager &pm, const CommandLineOptions &options) { buildPhase(pm, phase, options.get()); });
  }
  PassPipelineRegistration<CommandLineOptions>("neuron-pipeline", "all phases from graph to schedule",
                                               [](OpPassManager &pm, const CommandLineOptions &options) {
                                                 for (const PhaseInfo &info : kPhases)
                                                   buildPhase(pm, info.phase, options.get());
                                               });
}

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The phases of a compilation, named once. Flags that stop, resume, dump or time use this list.

#ifndef PASSES_PIPELINES_PHASES_H
#define PASSES_PIPELINES_PHASES_H

#include <optional>
#include <string>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::neuron {

#define GEN_PASS_DECL
#include "passes/Pipelines/Passes.h.inc"

enum class Phase { Import, Graph, Kernels, Tile, Select, Schedule, Emit };

struct PhaseInfo {
  Phase phase;
  llvm::StringLiteral name;
  llvm::StringLiteral sentence;
};

inline constexpr PhaseInfo kPhases[] = {
    {Phase::Import, "import", "read an ATen graph into neuron operations on whole tensors"},
    {Phase::Graph, "graph", "simplify operations, views and constants"},
    {Phase::Kernels, "kernels", "group operations into kernels"},
    {Phase::Tile, "tile", "turn kernels into loops over tiles of HBM buffers"},
    {Phase::Select, "select", "turn tile operations into instructions on SBUF and PSUM buffers"},
    {Phase::Schedule, "schedule", "choose queues, copies, addresses and waits"},
    {Phase::Emit, "emit", "project the program onto five instruction streams and write a NEFF"},
};

std::optional<Phase> parsePhase(llvm::StringRef name);
llvm::StringRef phaseName(Phase phase);

struct PipelineOptions {
  std::string target = "trn2";
  /// Leave the fusion report in the IR (neuron.fusion_report).
  bool explainFusion = false;
};

/// The passes of one phase; nothing for Import and Emit, which are not passes.
void buildPhase(OpPassManager &pm, Phase phase, const PipelineOptions &options);

/// Checks the contract of what enters `phase`, which ended the phase before: for IR that comes from a file.
void buildEntryCheck(OpPassManager &pm, Phase phase, const PipelineOptions &options);

/// Registers `neuron-<phase>-pipeline` for every phase of passes, and `neuron-pipeline` for all of them.
void registerPipelines();

#define GEN_PASS_REGISTRATION
#include "passes/Pipelines/Passes.h.inc"

} // namespace mlir::neuron

#endif // PASSES_PIPELINES_PHASES_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef NEURON_PIPELINES_PASSES_TD
#define NEURON_PIPELINES_PASSES_TD

include "mlir/Pass/PassBase.td"

def RecordPhasePass : Pass<"neuron-record-phase", "::mlir::ModuleOp"> {
  let summary = "record in the module which phase it has finished, and for which target";
  let description = [{
    Changes: sets neuron.phase and neuron.target of the module, so that a dump says where it can be resumed. Every phase
    ends with this pass, also in `neuron-opt`, whose output can therefore be resumed as well.

    Requires: nothing. Guarantees: nothing else changes.

    Fails when: the phase has no such name.

    Example: with `phase=tile target=trn2`, `module @rows` becomes
    `module @rows attributes {neuron.phase = "tile", neuron.target = "trn2"}`.
  }];
  let options = [Option<"phase", "phase", "std::string", "", "name of the finished phase">,
                 Option<"target", "target", "std::string", "\"trn2\"", "trn1, trn2 or trn3">];
}

#endif // NEURON_PIPELINES_PASSES_TD

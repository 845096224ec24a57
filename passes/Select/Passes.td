// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef NEURON_SELECT_PASSES_TD
#define NEURON_SELECT_PASSES_TD

include "mlir/Pass/PassBase.td"

def SelectInstructionsPass : Pass<"neuron-select-instructions", "::mlir::ModuleOp"> {
  let summary = "turn tile operations into instructions on buffers";
  let description = [{
    Changes: each tiled kernel becomes a `nisa.kernel`; each tile gets a buffer in SBUF or PSUM (without an address yet); one
    or several tile operations become one instruction where the instruction set allows (an activation with scale, bias and
    row sum; two operators with scalars; conversions on the way in and out); where several engines can execute an instruction,
    the one that keeps the busiest engine of the loop least busy.

    Requires: the contract of the tile phase.

    Guarantees: VerifySelect.

    Fails when: a tile operation has no instruction (the message names operation and types).

    Example:
    ```
    %s = neuron.binary <sub> %x, %m : 128x64, 128x1     %e = nisa.alloc ...
    %e = neuron.unary <exp> %s                      ->  nisa.activation scalar(%e ..., %x ..., %r ...)
    %r = neuron.reduce <sum> %e dims [1]                  scalars(1.0, %minus_m ...) fields {function = "exp", ...}
    ```
  }];
  let dependentDialects = ["::mlir::nisa::NISADialect", "::mlir::neuron::NeuronDialect"];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"trn2\"", "target whose costs choose engines">,
  ];
}

def VerifySelectPass : Pass<"neuron-select-verify", "::mlir::ModuleOp"> {
  let summary = "check the contract at the end of the select phase";
  let description = [{
    Changes: nothing. Requires: nothing.

    Guarantees: (s1) computation is nisa instructions inside nisa.kernel and nisa.loop; (s2) every instruction keeps the
    limits of the instruction set and of the target, as far as they do not depend on addresses.

    Fails when: a clause is broken; the message names the clause and the numbered limit.

    Example: a `neuron.load` in a nisa.kernel breaks s1.
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"trn2\"", "target whose limits hold">,
  ];
}

#endif // NEURON_SELECT_PASSES_TD

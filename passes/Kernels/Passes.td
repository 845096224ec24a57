// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef NEURON_KERNELS_PASSES_TD
#define NEURON_KERNELS_PASSES_TD

include "mlir/Pass/PassBase.td"

def FormKernelsPass : Pass<"neuron-kernels-form", "::mlir::func::FuncOp"> {
  let summary = "group operations into kernels";
  let description = [{
    Changes: every computation moves into a `neuron.kernel`; what is left in the function are kernels, dense constants and
    views of the results. Operations join the kernel of their producers when one iteration space holds them all, the tiles
    fit on chip and the estimated time does not grow; views between them become part of the space, views of buffers become
    addresses. Index reductions and scans over rows that do not fit on chip are rewritten into ones that do (LongRows.h),
    scatters into ones whose rows may move in any order within a block (OrderScatters.h).

    Requires: the contract of the graph phase (VerifyGraph).

    Guarantees: VerifyKernels.

    Fails when: nothing; an operation that fuses with no other gets a kernel of its own.

    Example:
    ```
    %a = neuron.binary <mul> %x, %x : ...          %k = neuron.kernel @kernel0(%b = %x : tensor<4x8xf32>)
    %s = neuron.reduce <sum> %a dims [1] : ...  ->     -> tensor<4x1xf32> { %a = ... %s = ... neuron.yield %s }
    return %s                                      return %k
    ```
  }];
  let dependentDialects = ["::mlir::neuron::NeuronDialect"];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"trn2\"", "target whose memory and costs bound fusion">,
    Option<"explain", "explain", "bool", /*default=*/"false",
           "leave a report in the function attribute neuron.fusion_report">,
    Option<"maxOps", "max-ops", "unsigned", /*default=*/"256", "operations in one kernel at most">,
  ];
}

def VerifyKernelsPass : Pass<"neuron-kernels-verify", "::mlir::func::FuncOp"> {
  let summary = "check the contract at the end of the kernels phase";
  let description = [{
    Changes: nothing. Requires: nothing.

    Guarantees: (k1) the function holds kernels, dense constants, views of kernel results and a return only; (k2) a kernel's
    inputs are function arguments, constants or kernel results; (k3) each returned value is a kernel result, a view of one, or has
    no elements; (k4) scatters are `blocked`.

    Fails when: a clause is broken; the message names the clause.

    Example: a `neuron.binary` directly in the function breaks k1.
  }];
}

#endif // NEURON_KERNELS_PASSES_TD

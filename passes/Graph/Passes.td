// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef NEURON_GRAPH_PASSES_TD
#define NEURON_GRAPH_PASSES_TD

include "mlir/Pass/PassBase.td"

def SimplifyGraphPass : Pass<"neuron-graph-simplify", "::mlir::func::FuncOp"> {
  let summary = "rewrite operations into cheaper ones with the same results";
  let description = [{
    Changes: (1) an operand broadcast that the elementwise operation repeats anyway is dropped; (2) an elementwise operation
    all of whose operands repeat a dimension is computed once and its result broadcast; (3) x * x becomes square and a
    division by a power of two a multiplication; (4) conversions fold where no rounding is lost; (5) writes that replace
    everything and concatenations of one part disappear, as do parts without elements. Everything here keeps results
    bit-identical: what rounds differently is not done.

    Requires: functions of neuron operations on whole tensors.

    Guarantees: no elementwise operation repeats a dimension in all of its operands.

    Fails when: nothing.

    Example:
    ```
    %a = neuron.broadcast %x : tensor<4x1xf32> -> tensor<4x8xf32>
    %b = neuron.unary <exp> %a : tensor<4x8xf32> -> tensor<4x8xf32>
    ```
    becomes
    ```
    %a = neuron.unary <exp> %x : tensor<4x1xf32> -> tensor<4x1xf32>
    %b = neuron.broadcast %a : tensor<4x1xf32> -> tensor<4x8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::neuron::NeuronDialect"];
}

def VerifyGraphPass : Pass<"neuron-graph-verify", "::mlir::func::FuncOp"> {
  let summary = "check the contract at the end of the graph phase";
  let description = [{
    Changes: nothing. Requires: nothing.

    Guarantees: (g1) the function has one block of whole-tensor neuron operations and a return; (g2) every tensor has a static
    shape of at most 8 dimensions; (g3) arguments and results of the function carry neuron.name and neuron.strides, one stride per
    dimension; (g4) elements of a result do not overlap in memory; (g5) neuron.alias_of names an argument of the result's type, each at
    most once.

    Fails when: a clause is broken; the message names the clause.

    Example: an `arith.addf` in the function breaks g1.
  }];
}

#endif // NEURON_GRAPH_PASSES_TD

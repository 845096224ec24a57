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
    everything and concatenations of one part disappear, as do parts without elements; (6) an elementwise operation on a
    concatenation of at most 4 values that nothing else uses becomes one on each of them, if parts of its other operands
    are in memory, small, or computed for it alone (a value that is computed can be stored where the whole lies, one that
    is only joined has to be moved). Everything here keeps results bit-identical: what rounds differently is not done.

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

def FormAttentionPass : Pass<"neuron-graph-form-attention", "::mlir::func::FuncOp"> {
  let summary = "make attention that is spelt out in products and a softmax one operation";
  let description = [{
    Changes: a product of values with softmax(scores) becomes neuron.attention, where scores are a product of queries and keys
    times constants, plus masks, with constants in the place of some (masked_fill, where). Conversions between float types on
    the way are dropped: scores and weights are not rounded in between, so 16-bit results are nearer to exact ones. A mask that
    is known to be causal becomes the flag; keys and values that are repeated for heads of a group are read once per group.

    Requires: equal operations are one (CSE), softmax in the form that importers give it.

    Guarantees: what was rewritten had no other user of scores or weights (else both exist anyway), its rows see a softmax over
    the keys, its types are those of neuron.attention without rounding an operand, and a row of a softmax without a score is NaN
    as before. Masks keep their meaning for rows that see nothing: finite numbers in the place of scores stay.

    Fails when: nothing; what does not fit stays as it is: deep heads, scales that are not constant or not positive, scores that
    are changed by anything else (a cap by tanh, dropout of weights), masks that are added to replaced scores unless those are
    out of reach.

    Example:
    ```
    %s = neuron.contract %q, %kt : tensor<8x5x4xf32>, tensor<8x4x7xf32> -> tensor<8x5x7xf32>
    %m = neuron.reduce <max> %s dims [2] : tensor<8x5x7xf32> -> tensor<8x5x1xf32>
    %d = neuron.binary <sub> %s, %m : tensor<8x5x7xf32>, tensor<8x5x1xf32> -> tensor<8x5x7xf32>
    %e = neuron.unary <exp> %d : tensor<8x5x7xf32> -> tensor<8x5x7xf32>
    %t = neuron.reduce <sum> %e dims [2] : tensor<8x5x7xf32> -> tensor<8x5x1xf32>
    %w = neuron.binary <div> %e, %t : tensor<8x5x7xf32>, tensor<8x5x1xf32> -> tensor<8x5x7xf32>
    %o = neuron.contract %w, %v : tensor<8x5x7xf32>, tensor<8x7x6xf32> -> tensor<8x5x6xf32>
    ```
    becomes
    ```
    %o, %l = neuron.attention %q4, %k4, %v4 scale 1.0 strict : tensor<1x8x5x4xf32>, ... -> tensor<1x8x5x6xf32>, ...
    ```
    with reshapes (and a transpose of the keys) around it.
  }];
  let dependentDialects = ["::mlir::neuron::NeuronDialect"];
  let statistics = [Statistic<"formed", "formed", "attentions made of products and a softmax">];
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

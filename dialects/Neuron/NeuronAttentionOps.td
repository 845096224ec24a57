// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradient of neuron.attention.

#ifndef NEURON_ATTENTION_OPS_TD
#define NEURON_ATTENTION_OPS_TD

include "dialects/Neuron/NeuronOps.td"

def Neuron_AttentionBackwardOp : Neuron_PureOp<"attention_backward"> {
  let summary = "gradients of neuron.attention's operands, without the matrix of all scores in memory";
  let description = [{
    `gradient` is that of the result, [batch, head, q, e]; query, key, value and mask are the operands of the attention and
    `logsumexp` its second result. `delta` [batch, head, q] in f32 is the sum over e of gradient times result. With
    weights = exp(scale * query * transpose(key) + mask - logsumexp) and
    slopes = weights * (gradient * transpose(value) - delta):

    query gradient = scale * slopes * key, key gradient = scale * transpose(slopes) * query (summed over the heads of a group),
    value gradient = transpose(weights) * gradient (likewise).

    Weights and slopes are rounded to the operands' type before they are multiplied; products accumulate in f32. Keys that a
    query does not see (score -infinity, or after it with `causal`) contribute nothing.
  }];
  let arguments = (ins Neuron_Tensor:$gradient, Neuron_Tensor:$query, Neuron_Tensor:$key, Neuron_Tensor:$value,
      Optional<Neuron_Tensor>:$mask, Neuron_Tensor:$logsumexp, Neuron_Tensor:$delta, F64Attr:$scale, UnitAttr:$causal);
  let results = (outs Neuron_Tensor:$queryGradient, Neuron_Tensor:$keyGradient, Neuron_Tensor:$valueGradient);
  let assemblyFormat = [{
    $gradient `,` $query `,` $key `,` $value (`mask` $mask^)? `sums` $logsumexp `,` $delta `scale` $scale
    (`causal` $causal^)? attr-dict `:` type($gradient) `,` type($query) `,` type($key) `,` type($value)
    (`mask` type($mask)^)? `sums` type($logsumexp) `,` type($delta) `->` type($queryGradient) `,` type($keyGradient) `,`
    type($valueGradient)
  }];
  let hasVerifier = 1;
}

#endif // NEURON_ATTENTION_OPS_TD

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention and its gradient.

#ifndef NEURON_ATTENTION_OPS_TD
#define NEURON_ATTENTION_OPS_TD

include "dialects/Neuron/NeuronOps.td"

def Neuron_AttentionOp : Neuron_PureOp<"attention", [AttrSizedOperandSegments]> {
  let summary = "softmax(query * transpose(key) * scale + mask) * value, without the matrix of all scores in memory";
  let description = [{
    query [batch, head, q, d], key [batch, group, k, d], value [batch, group, k, e] of one float type, with heads a multiple
    of groups (a group's heads follow one another). A mask [1 or batch, 1 or head, 1 or q, k] of f32 is added to the scaled
    scores; where a mask of i1 is false, the scaled score is `fill` instead. `causal`: query i sees keys 0 to i. A query that
    sees no key (all of its scores are -infinity) gives 0; with `strict` NaN, as softmax does. Products accumulate in f32; the
    weights are rounded to the operands' type before they are multiplied by `value`. `scale` is positive.
    With `dropout` p, each weight is 0 with probability p and divided by 1 - p otherwise: it stays if the uniform number of
    its element (neuron.random with `state`; `index` [batch, head, q] in i64 numbers the first key of each query) is below
    1 - p. The sums are those of all weights.
    Results: [batch, head, q, e] of the operands' type, and the logarithm of the sum of the exponentials of each query's
    scores, [batch, head, q] in f32.
  }];
  let arguments = (ins Neuron_Tensor:$query, Neuron_Tensor:$key, Neuron_Tensor:$value, Optional<Neuron_Tensor>:$mask,
                       Optional<Neuron_Tensor>:$state, Optional<Neuron_Tensor>:$index, F64Attr:$scale,
                       OptionalAttr<F64Attr>:$fill, OptionalAttr<F64Attr>:$dropout, UnitAttr:$causal, UnitAttr:$strict);
  let results = (outs Neuron_Tensor:$result, Neuron_Tensor:$logsumexp);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` $mask^)? (`fill` $fill^)? `scale` $scale (`causal` $causal^)? (`strict` $strict^)?
    (`dropout` $dropout^ `random` $state `,` $index)? attr-dict `:` type($query) `,` type($key) `,` type($value)
    (`mask` type($mask)^)? (`random` type($state)^ `,` type($index))? `->` type($result) `,` type($logsumexp)
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1; // keys and values repeated for each head of a group are not repeated
}

def Neuron_AttentionBackwardOp : Neuron_PureOp<"attention_backward", [AttrSizedOperandSegments]> {
  let summary = "gradients of neuron.attention's operands, without the matrix of all scores in memory";
  let description = [{
    `gradient` is that of the result, [batch, head, q, e]; query, key, value and mask are the operands of the attention and
    `logsumexp` its second result. `delta` [batch, head, q] in f32 is the sum over e of gradient times result. With
    weights = exp(scale * query * transpose(key) + mask - logsumexp) (a mask of i1 as in neuron.attention) and
    slopes = weights * (gradient * transpose(value) - delta):

    query gradient = scale * slopes * key, key gradient = scale * transpose(slopes) * query (summed over the heads of a group),
    value gradient = transpose(weights) * gradient (likewise).

    With `dropout` (as in neuron.attention), weights in the value gradient and gradient * transpose(value) in the slopes are 0
    where a weight was, and divided by 1 - p elsewhere.

    Weights and slopes are rounded to the operands' type before they are multiplied; products accumulate in f32. Keys that a
    query does not see (score -infinity, or after it with `causal`) contribute nothing.
  }];
  let arguments = (ins Neuron_Tensor:$gradient, Neuron_Tensor:$query, Neuron_Tensor:$key, Neuron_Tensor:$value,
      Optional<Neuron_Tensor>:$mask, Neuron_Tensor:$logsumexp, Neuron_Tensor:$delta, Optional<Neuron_Tensor>:$state,
      Optional<Neuron_Tensor>:$index, F64Attr:$scale, OptionalAttr<F64Attr>:$fill, OptionalAttr<F64Attr>:$dropout,
      UnitAttr:$causal);
  let results = (outs Neuron_Tensor:$queryGradient, Neuron_Tensor:$keyGradient, Neuron_Tensor:$valueGradient);
  let assemblyFormat = [{
    $gradient `,` $query `,` $key `,` $value (`mask` $mask^)? (`fill` $fill^)? `sums` $logsumexp `,` $delta `scale` $scale
    (`causal` $causal^)? (`dropout` $dropout^ `random` $state `,` $index)? attr-dict `:` type($gradient) `,` type($query) `,` type($key) `,` type($value)
    (`mask` type($mask)^)? `sums` type($logsumexp) `,` type($delta) (`random` type($state)^ `,` type($index))? `->` type($queryGradient) `,` type($keyGradient) `,`
    type($valueGradient)
  }];
  let hasVerifier = 1;
}

#endif // NEURON_ATTENTION_OPS_TD

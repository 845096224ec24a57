# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Cases of attention. PyTorch has no CPU kernel of these overloads; the references are the definition and its gradient."""

from __future__ import annotations

import math

import torch
from cases import REFERENCES, cases
from generators import F32, make

PLAIN = {"edges": False, "scale": 1.0}
#: Batch, heads, groups, queries, keys, depth, depth of the values.
SIZES = (
    (2, 2, 2, 5, 7, 8, 8),
    (1, 4, 2, 6, 6, 4, 3),
    (1, 2, 1, 1, 9, 16, 16),
    (1, 1, 1, 3, 1, 5, 2),
    (1, 2, 2, 4, 4, 260, 8),
)


def _weights(query, key, bias, causal, scale):
    """Scores and the logarithm of the sum of their exponentials, of each query, in double."""
    repeats = query.shape[1] // key.shape[1]
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query.double() @ key.double().repeat_interleave(repeats, 1).transpose(-1, -2) * scale
    if bias is not None:
        scores = scores.masked_fill(~bias, -math.inf) if bias.dtype == torch.bool else scores + bias.double()
    if causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -math.inf)
    return scores.softmax(-1).nan_to_num(0.0), scores.logsumexp(-1)


def _attention(query, key, value, bias=None, dropout=0.0, causal=False, debug_mask=False, *, scale=None):
    weights, sums = _weights(query, key, bias, causal, scale)
    out = weights @ value.double().repeat_interleave(query.shape[1] // value.shape[1], 1)
    return out.to(query.dtype), sums.float(), *[None] * 7


def _attention_backward(grad, query, key, value, bias, mask, out, sums, *rest, scale=None):
    causal = rest[5]
    repeats = query.shape[1] // key.shape[1]
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    weights, _ = _weights(query, key, bias, causal, scale)
    grad, wide_value = grad.double(), value.double().repeat_interleave(repeats, 1)
    slopes = weights * (grad @ wide_value.transpose(-1, -2) - (grad * out.double()).sum(-1, keepdim=True)) * factor

    def by_group(gradient):
        return gradient.unflatten(1, (-1, repeats)).sum(2)

    return (
        (slopes @ key.double().repeat_interleave(repeats, 1)).to(query.dtype),
        by_group(slopes.transpose(-1, -2) @ query.double()).to(key.dtype),
        by_group(weights.transpose(-1, -2) @ grad).to(value.dtype),
        None,
    )


REFERENCES["aten._scaled_dot_product_fused_attention_overrideable.default"] = _attention
REFERENCES["aten._scaled_dot_product_fused_attention_overrideable_backward.default"] = _attention_backward


def _calls():
    # In 16 bits weights are rounded before they are multiplied: test_products.py compares those relative to their size.
    for batch, heads, groups, queries, keys, depth, value_depth in SIZES:
        operands = (
            make(F32, (batch, heads, queries, depth), **PLAIN),
            make(F32, (batch, groups, keys, depth), **PLAIN),
            make(F32, (batch, groups, keys, value_depth), **PLAIN),
        )
        yield operands, None, False, None
        yield operands, None, True, 0.25
        yield operands, torch.rand(queries, keys) > 0.3, False, None
        yield operands, make(F32, (batch, 1, queries, keys), **PLAIN), False, None


@cases("aten._scaled_dot_product_fused_attention_overrideable.default")
def _forward():
    for operands, bias, causal, scale in _calls():
        yield (*operands, bias, 0.0, causal, False), {"scale": scale}


@cases("aten._scaled_dot_product_fused_attention_overrideable_backward.default")
def _backward():
    for operands, bias, causal, scale in _calls():
        if bias is not None and bias.dtype == torch.bool:
            bias = bias | torch.eye(*bias.shape, dtype=torch.bool)
        out, sums, *_ = _attention(*operands, bias, 0.0, causal, scale=scale)
        grad = make(out.dtype, tuple(out.shape), **PLAIN)
        lengths = (operands[0].shape[2], operands[1].shape[2])
        rest = (None, None, *lengths, 0.0, causal, None, None)
        yield (grad, *operands, bias, [True, True, True, False], out, sums, *rest), {"scale": scale}

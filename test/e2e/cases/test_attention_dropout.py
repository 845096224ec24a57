# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Dropout inside of attention: which weights it drops, and that the gradient drops the same."""

from __future__ import annotations

import math
import re

import pytest
import torch
import torch.nn.functional as F
from checking import BF16, F16, F32, compile, sample


def attention(causal=False, groups=False):
    def function(query, key, value, p: float = 0.25):
        return F.scaled_dot_product_attention(query, key, value, dropout_p=p, is_causal=causal, enable_gqa=groups)

    return function


def written(causal=False, groups=False):
    """The same with dropout of a tensor of all weights, whose elements draw the same numbers."""

    def function(query, key, value, p: float = 0.25):
        if groups:
            repeats = query.shape[1] // key.shape[1]
            key, value = key.repeat_interleave(repeats, 1), value.repeat_interleave(repeats, 1)
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        if causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
            scores = scores.masked_fill(later, -math.inf)
        return F.dropout(scores.float().softmax(-1), p).to(value.dtype) @ value

    return function


def run(function, tensors, seed=3, **options):
    """The result and the gradients of a weighted sum of it."""
    device = [tensor.to("neuron").requires_grad_() for tensor in tensors]
    torch.manual_seed(seed)
    result = compile(function, **options)(*device)
    (result.float() * torch.linspace(0.5, 1.5, result.numel(), device="neuron").reshape(result.shape)).sum().backward()
    return [result.detach().cpu(), *(tensor.grad.cpu() for tensor in device)]


CASES = {
    "plain": ({}, (2, 2, 40, 30, 16), None),
    "causal": ({"causal": True}, (1, 2, 150, 150, 32), None),
    "groups": ({"causal": True, "groups": True}, (2, 4, 20, 20, 8), 2),
    "several blocks": ({}, (1, 1, 130, 2100, 16), None),
    "loop over blocks": ({}, (1, 2, 20, 4200, 8), None),
    "deep heads": ({}, (1, 2, 20, 30, 300), None),
}


@pytest.mark.parametrize(
    "name, dtype",
    [*((name, dtype) for name in CASES for dtype in (F32, BF16)), ("causal", F16)],
    ids=lambda value: str(value).removeprefix("torch."),
)
def test_same_as_dropout_of_weights(name, dtype):
    options, (batch, heads, queries, keys, depth), groups = CASES[name]
    own = [sample(dtype, batch, heads, queries, depth)]
    own += [sample(dtype, batch, groups or heads, keys, depth) for _ in range(2)]
    found, wanted = run(attention(**options), own), run(written(**options), own)
    for what, one, other in zip(("result", "query", "key", "value"), found, wanted, strict=True):
        tolerance = {F32: 2e-5, BF16: 2e-2, F16: 4e-3}[dtype] * max(1.0, other.float().abs().max().item())
        torch.testing.assert_close(
            one.float(), other.float(), rtol=0, atol=tolerance, msg=lambda m, w=what: f"{w}: {m}"
        )


def test_distribution(tmp_path):
    """The values are a matrix of ones on the diagonal: the result is the weights."""
    keys, p = 256, 0.3
    query, key = sample(F32, 2, 4, 128, 16), sample(F32, 2, 4, keys, 16)
    value = torch.eye(keys).expand(2, 4, keys, keys)
    device = [tensor.to("neuron") for tensor in (query, key, value)]
    function = compile(attention(), options={"compiler_workdir": str(tmp_path)})
    torch.manual_seed(5)
    first, second = (function(*device, p).cpu() for _ in range(2))
    torch.manual_seed(5)
    assert torch.equal(first, function(*device, p).cpu())
    (text,) = (path.read_text() for path in tmp_path.rglob("1-graph.mlir"))
    assert len(re.findall(r"= neuron\.attention .* dropout 3\.000000e-01 ", text)) == 1
    weights = (query @ key.transpose(-1, -2) / 4).softmax(-1)
    kept = first != 0
    torch.testing.assert_close(first[kept], (weights / (1 - p))[kept], rtol=1e-4, atol=1e-7)

    def assert_share(found, share, count):
        assert abs(found - share) < 5 * math.sqrt(share * (1 - share) / count), (found, share)

    assert_share(kept.float().mean().item(), 1 - p, kept.numel())
    for dim in range(4):  # every batch, head, query and key
        others = [d for d in range(4) if d != dim]
        for share in kept.float().mean(others).tolist():
            assert_share(share, 1 - p, kept.numel() / kept.shape[dim])
    # Independent of the next call, of the next head, query and key.
    both = (1 - p) ** 2
    for a, b in (
        (kept, second != 0),
        (kept[:, :-1], kept[:, 1:]),
        (kept[:, :, :-1], kept[:, :, 1:]),
        (kept[..., :-1], kept[..., 1:]),
    ):
        assert_share((a & b).float().mean().item(), both, a.numel())


def test_without_training():
    """Nothing is dropped, or everything."""
    own = [sample(F32, 1, 2, 20, 8).to("neuron") for _ in range(3)]
    torch.testing.assert_close(compile(attention())(*own, 0.0), attention()(*own, 0.0))
    assert compile(attention())(*own, 1.0).eq(0).all()

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Attention whose heads share keys and values, as decoders write it: repeated for each head, with one query for each head
when a sequence grows; and results that are stored with heads and rows exchanged."""

from __future__ import annotations

import re

import pytest
import torch
import torch.nn.functional as F
from checking import BF16, F16, F32, compile, sample

BATCH, HEADS, DEPTH = 2, 6, 16


def repeated(x, heads=HEADS):
    """Each group for its heads, which follow one another."""
    batch, groups, rows, depth = x.shape
    return x[:, :, None].expand(batch, groups, heads // groups, rows, depth).reshape(batch, heads, rows, depth)


def as_a_whole(x):
    """Head h has group h % groups."""
    return x.repeat(1, HEADS // x.shape[1], 1, 1)


def joined(x):
    """[batch, rows, heads * depth]"""
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


def decoder(query, key, value, mask=None):
    return joined(F.scaled_dot_product_attention(query, repeated(key), repeated(value), mask))


def causal(query, key, value):
    return joined(F.scaled_dot_product_attention(query, repeated(key), repeated(value), is_causal=True))


def expanded(query, key, value):
    """One group: no reshape merges it."""
    heads = query.shape[1]
    return F.scaled_dot_product_attention(query, key.expand(-1, heads, -1, -1), value.expand(-1, heads, -1, -1))


def whole(query, key, value):
    return F.scaled_dot_product_attention(query, as_a_whole(key), as_a_whole(value))


def only_keys(query, key, value):
    return F.scaled_dot_product_attention(query, repeated(key), value)


def used_again(query, key, value):
    """What is stored with heads and rows exchanged is needed as it is, too."""
    result = F.scaled_dot_product_attention(query, repeated(key), repeated(value))
    return joined(result), result * 2


def depth_first(query, key, value):
    return F.scaled_dot_product_attention(query, repeated(key), repeated(value)).permute(3, 1, 0, 2).contiguous()


def cached(query, key, value, cache_key, cache_value, position):
    """A step of generation: the caches are written in place and a mask hides what is not there yet."""
    cache_key.index_copy_(2, position, key)
    cache_value.index_copy_(2, position, value)
    seen = torch.arange(cache_key.shape[2], device=query.device) <= position
    return decoder(query, cache_key, cache_value, seen[None, None, None])


def tensors(dtype, queries, keys, groups, *masks):
    q, k, v = (sample(dtype, BATCH, n, rows, DEPTH) for n, rows in ((HEADS, queries), (groups, keys), (groups, keys)))
    return q, k, v, *masks


def seen(*shape):
    mask = torch.rand(shape) < 0.7
    mask[..., 0] = True
    return mask


#: Function, arguments, and the number of groups that the attention should be left with.
def cases_of(dtype):
    return {
        "prefill": (causal, tensors(dtype, 30, 30, 2), 2),
        "other lengths": (decoder, tensors(dtype, 7, 300, 3), 3),
        "one query": (decoder, tensors(dtype, 1, 200, 2), 2),
        "one query, many keys": (decoder, tensors(dtype, 1, 2500, 3), 3),
        "one query, mask": (decoder, tensors(dtype, 1, 40, 2, seen(BATCH, 1, 1, 40)), 2),
        "one query, mask of heads": (decoder, tensors(dtype, 1, 40, 2, seen(BATCH, HEADS, 1, 40)), 2),
        "one query, added mask of heads": (decoder, tensors(dtype, 1, 40, 3, sample(dtype, 1, HEADS, 1, 40)), 3),
        "one query, nothing seen": (decoder, tensors(dtype, 1, 40, 2, torch.zeros(1, 1, 1, 40, dtype=torch.bool)), 2),
        "one causal query": (causal, tensors(dtype, 1, 40, 2), 2),
        "one group": (decoder, tensors(dtype, 5, 40, 1), 1),
        "one group expanded": (expanded, tensors(dtype, 1, 40, 1), 1),
        "a group for each head": (decoder, tensors(dtype, 1, 40, HEADS), HEADS),
        "repeated as a whole": (whole, tensors(dtype, 9, 40, 2), HEADS),
        "only keys repeated": (
            only_keys,
            (*tensors(dtype, 9, 40, 2)[:2], sample(dtype, BATCH, HEADS, 40, DEPTH)),
            HEADS,
        ),
        "used again": (used_again, tensors(dtype, 9, 40, 2), 2),
        "depth first": (depth_first, tensors(dtype, 9, 40, 2), 2),
    }


def groups_of(directory):
    """The second dimension of the keys of each attention in the program."""
    (path,) = directory.rglob("*graph.mlir")
    found = re.findall(r"= neuron\.attention .*? : tensor<[^>]*>, tensor<\d+x(\d+)x", path.read_text())
    return [int(groups) for groups in found]


def strides_of(tensor):
    """Those that mean something: one query lies as it comes."""
    return [stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size != 1]


@pytest.mark.parametrize("dtype", (F32, BF16, F16), ids=("float32", "bfloat16", "float16"))
def test_heads_share_groups(dtype, tmp_path):
    torch.manual_seed(11)
    problems = []
    for number, (name, (function, arguments, groups)) in enumerate(cases_of(dtype).items()):
        directory = tmp_path / str(number)
        with torch.no_grad():
            own = compile(function, options={"compiler_workdir": str(directory)})(*(a.to("neuron") for a in arguments))
            wanted = function(*(a.float() if a.is_floating_point() else a for a in arguments))
        if groups_of(directory) != [groups]:
            problems.append(f"{name}: expected one attention of {groups} groups but got {groups_of(directory)}")
        if not isinstance(own, tuple):
            own, wanted = (own,), (wanted,)
        for one, other in zip(own, wanted, strict=True):
            tolerance = {F32: 2e-5, BF16: 2e-2, F16: 3e-3}[dtype] * max(other.abs().max().item(), 1.0)
            if one.dtype != dtype or strides_of(one) != strides_of(other):
                problems.append(f"{name}: {one.dtype} {one.stride()}, expected {dtype} {other.stride()}")
            if not torch.allclose(one.cpu().float(), other, rtol=0, atol=tolerance):
                problems.append(f"{name}: {(one.cpu().float() - other).abs().max()} off")
    assert not problems, "\n".join(problems)


def test_gradients_of_grouped_attention():
    torch.manual_seed(12)
    for function, queries in ((decoder, 9), (decoder, 1), (causal, 30), (used_again, 9)):
        host = [t.requires_grad_() for t in tensors(F32, queries, 30, 2)]
        device = [t.detach().to("neuron").requires_grad_() for t in host]
        for run, own in ((function, host), (compile(function), device)):
            results = run(*own)
            sum(
                (r * torch.linspace(0.5, 1.5, r.numel(), device=r.device).reshape(r.shape)).sum()
                for r in (results if isinstance(results, tuple) else (results,))
            ).backward()
        for wanted, own in zip(host, device, strict=True):
            torch.testing.assert_close(own.grad.cpu(), wanted.grad, rtol=1e-4, atol=2e-4)


def test_generation_with_shared_groups():
    torch.manual_seed(13)
    host = [torch.zeros(BATCH, 2, 20, DEPTH) for _ in range(2)]
    device = [cache.to("neuron") for cache in host]
    step = compile(cached)
    for position in range(3):
        new = tensors(F32, 1, 1, 2)
        where = torch.tensor([position])
        with torch.no_grad():
            wanted = cached(*new, *host, where)
            own = step(*(t.to("neuron") for t in new), *device, where.to("neuron"))
        torch.testing.assert_close(own.cpu(), wanted, rtol=1e-5, atol=1e-5)
    for one, other in zip(device, host, strict=True):
        assert torch.equal(one.cpu(), other)

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Attention spelt out in products and a softmax: the compiler makes it one operation where it may, and is right where it
may not."""

from __future__ import annotations

import math
import re

import pytest
import torch
import torch.nn.functional as F
from checking import BF16, F16, F32, compile, inf, moved, sample

BATCH, HEADS, GROUPS, DEPTH = 2, 4, 2, 16
#: Relative and absolute, where eager rounds in between and the compiler does not.
ROUNDED_IN_BETWEEN = (0.1, 0.05)
DTYPES = pytest.mark.parametrize("dtype", (F32, BF16, F16), ids=("float32", "bfloat16", "float16"))
#: Out of reach of scores; a power of two, so that bfloat16 does not round it. float16 has no such number.
LOW = -(2.0**100)


def weigh(scores, value):
    return scores.softmax(-1) @ value


def scores_of(query, key):
    return query @ key.transpose(-2, -1)


def later(query, key):
    """True where a key is after the query."""
    return torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).triu(1)


def repeated(x):
    batch, groups, rows, depth = x.shape
    return x[:, :, None].expand(batch, groups, HEADS // GROUPS, rows, depth).reshape(batch, HEADS, rows, depth)


def plain(q, k, v):
    return weigh(scores_of(q, k) / math.sqrt(DEPTH), v)


def unscaled(q, k, v):
    return weigh(scores_of(q, k), v)


def scaled_query(q, k, v):
    return weigh(scores_of(q * DEPTH**-0.5, k), v)


def scaled_both(q, k, v):
    return weigh(scores_of(q * DEPTH**-0.25, k * DEPTH**-0.25), v)


def eager_model(q, k, v, mask):
    """As model libraries write it: an added mask, a softmax in 32 bit."""
    weights = torch.matmul(q, k.transpose(2, 3)) * DEPTH**-0.5
    weights = weights + mask[:, :, :, : k.shape[-2]]
    weights = F.softmax(weights, dim=-1, dtype=torch.float32).to(q.dtype)
    weights = F.dropout(weights, p=0.1, training=False)
    return torch.matmul(weights, v).transpose(1, 2).contiguous()


def grouped(q, k, v, mask):
    return eager_model(q, repeated(k), repeated(v), mask)


def grouped_view(q, k, v):
    batch, heads, rows, depth = q.shape
    q = q.view(batch, GROUPS, heads // GROUPS, rows, depth)
    return weigh(q @ k.unsqueeze(2).transpose(-1, -2) * 0.25, v.unsqueeze(2)).reshape(batch, heads, rows, depth)


def interleaved(q, k, v):
    repeats = HEADS // GROUPS
    return plain(q, k.repeat_interleave(repeats, 1), v.repeat_interleave(repeats, 1))


def tiled(q, k, v):
    """Groups repeated as a whole: head h has group h % GROUPS."""
    return plain(q, k.repeat(1, HEADS // GROUPS, 1, 1), v.repeat(1, HEADS // GROUPS, 1, 1))


def causal(q, k, v):
    return weigh((scores_of(q, k) / math.sqrt(DEPTH)).masked_fill(later(q, k), -inf), v)


def causal_least(q, k, v):
    scores = scores_of(q, k) / math.sqrt(DEPTH)
    seen = torch.tril(torch.ones(q.shape[-2], k.shape[-2], device=q.device))
    return weigh(scores.masked_fill(seen == 0, torch.finfo(scores.dtype).min), v)


def causal_added(q, k, v):
    hidden = torch.full((q.shape[-2], k.shape[-2]), -inf, device=q.device, dtype=q.dtype).triu(1)
    return weigh(scores_of(q, k) * 0.25 + hidden, v)


def causal_positions(q, k, v):
    rows, columns = torch.arange(q.shape[-2], device=q.device), torch.arange(k.shape[-2], device=q.device)
    seen = columns[None, :] <= rows[:, None]
    return weigh(torch.where(seen, scores_of(q, k) * 0.25, torch.finfo(q.dtype).min), v)


def causal_mild(q, k, v):
    """What is hidden still has weight."""
    return weigh(scores_of(q, k).masked_fill(later(q, k), -2.0), v)


def strictly_causal(q, k, v):
    """The first query sees nothing: NaN."""
    seen = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril(-1)
    return weigh((scores_of(q, k) * 0.25).masked_fill(~seen, -inf), v)


def filled(value):
    return lambda q, k, v, mask: weigh((scores_of(q, k) / math.sqrt(DEPTH)).masked_fill(mask == 0, value), v)


def filled_then_scaled(q, k, v, mask):
    return weigh(scores_of(q, k).masked_fill(mask, -4.0) * 0.25, v)


def chosen(q, k, v, mask):
    return weigh(torch.where(mask, scores_of(q, k) * 0.25, torch.finfo(q.dtype).min), v)


def causal_and_padding(q, k, v, mask):
    scores = (scores_of(q, k) * 0.25).masked_fill(later(q, k), -inf)
    return weigh(scores + mask, v)


def low_twice(q, k, v, mask):
    """Rows that see nothing look at what only one of the masks hides."""
    scores = (scores_of(q, k) * 0.25).masked_fill(later(q, k), LOW)
    return weigh(scores + mask, v)


def fill_then_bias(q, k, v, mask):
    return weigh(scores_of(q, k).masked_fill(later(q, k), -3.0) + mask, v)


def einsum(q, k, v):
    weights = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(DEPTH)
    return torch.einsum("bhqk,bhkd->bhqd", weights.softmax(-1), v)


def einsum_by_position(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    weights = torch.einsum("bqhd,bkhd->bhqk", q, k) * 0.25
    return torch.einsum("bhqk,bkhd->bqhd", weights.softmax(-1), v)


def batched(q, k, v, mask):
    """One leading dimension for all heads, and baddbmm."""
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    mask = mask.expand(BATCH, HEADS, q.shape[1], k.shape[1]).flatten(0, 1)
    return torch.bmm(torch.baddbmm(mask, q, k.transpose(1, 2), beta=0.5, alpha=0.25).softmax(-1), v)


def single(q, k, v):
    q, k, v = q[0, 0], k[0, 0], v[0, 0]
    return torch.softmax(q @ k.t() * 0.25, 1) @ v


def by_hand(q, k, v):
    scores = scores_of(q, k) * 0.25
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    return (weights / weights.sum(-1, keepdim=True)) @ v


def wide_softmax(q, k, v):
    """All of it in 32 bit, but for the values."""
    return (q.float() @ k.float().transpose(-1, -2) * 0.25).softmax(-1).to(v.dtype) @ v


def wide_values(q, k, v):
    return ((q @ k.transpose(-1, -2) * 0.25).float().softmax(-1) @ v.float()).to(q.dtype)


def kept(q, k, v):
    weights = (scores_of(q, k) * 0.25).softmax(-1)
    return weights @ v, weights


def scores_kept(q, k, v):
    scores = scores_of(q, k) * 0.25
    return weigh(scores, v), scores.sum(-1)


def over_queries(q, k, v):
    """Each key shares itself among queries."""
    return (scores_of(q, k) * 0.25).softmax(-2) @ v


def over_heads(q, k, v):
    return (scores_of(q, k) * 0.25).softmax(1) @ v


def negative_scale(q, k, v):
    return weigh(scores_of(q, k) * -0.25, v)


def capped(q, k, v):
    return weigh(5.0 * torch.tanh(scores_of(q, k) / 20.0), v)


def weights_scaled(q, k, v):
    return (scores_of(q, k) * 0.25).softmax(-1) * 0.5 @ v


def gated(q, k, v, mask):
    return ((scores_of(q, k) * 0.25).softmax(-1) * mask) @ v


def three(dtype, rows=20, keys=20, groups=HEADS, depth=DEPTH):
    return (sample(dtype, BATCH, HEADS, rows, depth), *(sample(dtype, BATCH, groups, keys, depth) for _ in range(2)))


def padding(keys=20, value=-inf, dtype=F32):
    """The second sequence has keys that nobody sees; with a row of its own."""
    mask = torch.zeros(BATCH, 1, 1, keys)
    mask[1, :, :, :7] = value
    return mask.to(dtype)


def some(rows=20, keys=20, empty_row=False):
    mask = torch.rand(BATCH, 1, rows, keys) > 0.4
    mask[..., 0] = True
    if empty_row:
        mask[0, 0, 3] = False
    return mask


def cases_of(dtype):
    """Name, function, arguments, whether it becomes one operation."""
    square, wide = three(dtype), three(dtype, 37, 150)
    grouped_ones = three(dtype, groups=GROUPS)
    least = torch.finfo(dtype).min
    return {
        "plain": (plain, wide, True),
        "unscaled": (unscaled, square, True),
        "scaled query": (scaled_query, square, True),
        "scaled query and key": (scaled_both, square, True),
        "model library": (eager_model, (*wide, sample(dtype, BATCH, 1, 37, 150)), True),
        "model library, padding": (eager_model, (*square, padding(value=least, dtype=dtype)), True),
        "model library, nothing seen": (
            eager_model,
            (*square, torch.full((BATCH, 1, 20, 20), -inf, dtype=dtype)),
            True,
        ),
        "groups": (grouped, (*grouped_ones, sample(dtype, BATCH, 1, 20, 20)), True),
        "groups by view": (grouped_view, grouped_ones, True),
        "groups by repeat_interleave": (interleaved, grouped_ones, True),
        "groups by repeat": (tiled, grouped_ones, True),
        "causal": (causal, square, True),
        "causal, more keys": (causal, wide, True),
        "causal by the least number": (causal_least, square, True),
        "causal, added": (causal_added, square, True),
        "causal by positions": (causal_positions, square, True),
        "causal, mild": (causal_mild, square, True),
        "strictly causal": (strictly_causal, square, True),
        "masked_fill -1e9": (filled(-1e9 if dtype != F16 else -1e4), (*square, some(empty_row=True)), True),
        "masked_fill -infinity": (filled(-inf), (*square, some(empty_row=True)), True),
        "masked_fill -5": (filled(-5.0), (*square, some(empty_row=True)), True),
        "masked_fill, then scaled": (filled_then_scaled, (*square, some()), True),
        "where": (chosen, (*square, some(empty_row=True)), True),
        "causal and padding": (
            causal_and_padding,
            (*square, padding(value=-inf if dtype == F16 else least, dtype=dtype)),
            True,
        ),
        "fill, then bias": (fill_then_bias, (*square, sample(dtype, 20, 20)), False),
        "einsum": (einsum, square, True),
        "einsum by position": (einsum_by_position, wide, True),
        "baddbmm": (batched, (*square, sample(dtype, BATCH, 1, 20, 20)), True),
        "two dimensions": (single, square, True),
        "softmax by hand": (by_hand, square, True),
        "softmax in 32 bit": (wide_softmax, square, True),
        "values in 32 bit": (wide_values, square, dtype == F32),
        "weights returned": (kept, square, False),
        "scores used": (scores_kept, square, False),
        "softmax over queries": (over_queries, square, False),
        "softmax over heads": (over_heads, square, False),
        "negative scale": (negative_scale, square, False),
        "cap": (capped, square, False),
        "scaled weights": (weights_scaled, square, False),
        "gated weights": (gated, (*square, sample(dtype, BATCH, 1, 20, 20)), False),
        "deep heads": (plain, three(dtype, depth=300), False),
    } | ({} if dtype == F16 else {"low number twice": (low_twice, (*square, padding(value=LOW, dtype=dtype)), True)})


def formed(directory) -> int:
    """Attentions in the graph of the only function compiled into `directory`."""
    (text,) = (path.read_text() for path in directory.rglob("1-graph.mlir"))
    return len(re.findall(r"= neuron\.attention ", text))


def rounded_like(function, arguments):
    """In 32 bit, from the same numbers."""
    wide = [a.float() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in arguments]
    return function(*wide)


@DTYPES
def test_written_attention(dtype, tmp_path):
    """Results against the computation in 32 bit, where eager rounds in between; and against eager."""
    torch.manual_seed(7)
    problems = []
    for number, (name, (function, arguments, is_one)) in enumerate(cases_of(dtype).items()):
        directory = tmp_path / str(number)
        got = compile(function, options={"compiler_workdir": str(directory)})(*moved(arguments, "neuron"))
        exact, eager = rounded_like(function, arguments), function(*arguments)
        if (formed(directory) == 1) != is_one:
            problems.append(f"{name}: expected {int(is_one)} attention but got {formed(directory)}")
        many = isinstance(got, tuple)
        for own, wanted, rounded in zip(*((x if many else (x,)) for x in (got, exact, eager)), strict=True):
            own = own.cpu()
            largest = wanted.float().nan_to_num().abs().max().item()
            tolerance = {F32: 2e-5, BF16: 2e-2, F16: 3e-3}[dtype] * max(largest, 1.0)
            if not torch.allclose(own.float(), wanted.float(), rtol=0, atol=tolerance, equal_nan=True):
                problems.append(f"{name}: {(own.float() - wanted.float()).abs().max()} off from 32 bit")
            relative, absolute = (0, tolerance) if dtype == F32 else ROUNDED_IN_BETWEEN
            if not torch.allclose(own.float(), rounded.float(), rtol=relative, atol=absolute, equal_nan=True):
                problems.append(f"{name}: {(own.float() - rounded.float()).abs().max()} off from eager")
    assert not problems, "\n".join(problems)


def test_gradients_of_written_attention():
    """Where a graph keeps the weights for its gradient, results and gradients stay as they are."""
    torch.manual_seed(8)
    for function in (plain, causal, einsum):
        host = [tensor.requires_grad_() for tensor in three(F32)]
        device = moved(host, "neuron")
        for run, arguments in ((function, host), (compile(function), device)):
            run(*arguments).square().sum().backward()
        for own, wanted in zip(device, host, strict=True):
            torch.testing.assert_close(own.grad.cpu(), wanted.grad, rtol=1e-5, atol=2e-5)

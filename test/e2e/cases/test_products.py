# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Matrix products of all orders and sizes, what is fused into them, and attention."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from checking import BF16, F16, F32, case, check_all, check_gradients, compile, gradients, moved, sample

# Of the largest value: sums of up to some thousand products in f32, rounded once.
TOLERANCES = {F32: 2e-5, BF16: 2e-2, F16: 3e-3}
#: Rows, depth, columns: one, less than a tile, whole tiles, several blocks and chunks with something left of each.
SIZES = (
    (1, 1, 1),
    (4, 8, 5),
    (128, 128, 128),
    (300, 257, 700),
    (1, 512, 1000),
    (129, 3000, 65),
    (1030, 640, 130),
    (40, 2600, 1100),
)


def products(dtype, *cases_of):
    """Cases compared relative to their largest value."""
    result = []
    for name, function, *arguments in cases_of:
        largest = function(*arguments).float().abs().max().item()
        result.append(case(name, function, *arguments, rtol=0, atol=TOLERANCES[dtype] * max(largest, 1.0)))
    return result


@pytest.mark.parametrize("dtype", (F32, BF16, F16), ids=("float32", "bfloat16", "float16"))
def test_orders(dtype):
    """Row by row and column by column, either side."""
    found = []
    for m, k, n in SIZES:
        a, b = sample(dtype, m, k), sample(dtype, k, n)
        at, bt = sample(dtype, k, m), sample(dtype, n, k)
        found += products(
            dtype,
            (f"{m} {k} {n}", torch.matmul, a, b),
            (f"{m} {k} {n} rhs transposed", lambda a, b: a @ b.t(), a, bt),
            (f"{m} {k} {n} lhs transposed", lambda a, b: a.t() @ b, at, b),
        )
    check_all(found, batch=6)


@pytest.mark.parametrize("dtype", (F32, BF16), ids=("float32", "bfloat16"))
def test_epilogues(dtype):
    """What follows a product element by element is computed on its blocks."""
    x, w, bias = sample(dtype, 2, 100, 256), sample(dtype, 300, 256, scale=0.1), sample(dtype, 300)
    a, b = sample(dtype, 2, 3, 70, 64), sample(dtype, 2, 3, 90, 64)
    found = products(
        dtype,
        ("bias", F.linear, x, w, bias),
        ("gelu", lambda x, w, b: F.gelu(F.linear(x, w, b)), x, w, bias),
        ("residual", lambda x, w, r: F.linear(x, w) + r, x, w, sample(dtype, 2, 100, 300)),
        ("product kept", lambda x, w, b: torch.cat([(y := F.linear(x, w)), y + b]), x, w, bias),
        ("mask", lambda a, b, m: a @ b.transpose(-1, -2) * 0.125 + m, a, b, sample(dtype, 70, 90)),
        ("softmax", lambda a, b: torch.softmax(a @ b.transpose(-1, -2) * 0.125, -1), a, b),
        ("column of each head", lambda a, b, c: a @ b.transpose(-1, -2) * c, a, b, sample(dtype, 3, 1, 1)),
        ("transposed result", lambda x, w: F.linear(x, w).transpose(1, 2).contiguous() + 1, x, w),
        ("addmm", lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2.0), bias, x[0], w.t().contiguous()),
    )
    check_all(found, batch=4)


def attention(**options):
    return lambda *tensors: F.scaled_dot_product_attention(*tensors, **options)


def masked(query, key, value, mask):
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


def by_position(query, key, value):
    """Heads after positions, as models lay them out."""
    turned = (tensor.transpose(1, 2) for tensor in (query, key, value))
    return F.scaled_dot_product_attention(*turned, is_causal=True).transpose(1, 2).flatten(2)


def attention_cases(dtype):
    def three(batch, heads, queries, keys, depth, groups=None):
        shapes = ((heads, queries), (groups or heads, keys), (groups or heads, keys))
        return [sample(dtype, batch, h, rows, depth) for h, rows in shapes]

    blocked = torch.rand(50, 77) > 0.3
    blocked[3] = False
    return products(
        dtype,
        ("plain", attention(), *three(2, 4, 100, 77, 64)),
        ("several blocks", attention(), *three(1, 1, 300, 2300, 32)),
        ("causal", attention(is_causal=True), *three(2, 2, 100, 100, 64)),
        ("causal, several blocks", attention(is_causal=True), *three(1, 1, 2200, 2200, 16)),
        ("causal, more keys", attention(is_causal=True), *three(1, 2, 60, 200, 64)),
        ("causal, more queries", attention(is_causal=True), *three(1, 2, 300, 140, 64)),
        ("boolean mask with an empty row", masked, *three(2, 2, 50, 77, 64), blocked),
        ("float mask", masked, *three(2, 2, 50, 77, 64), sample(dtype, 2, 1, 50, 77)),
        ("groups", attention(is_causal=True, enable_gqa=True), *three(2, 4, 50, 50, 64, groups=2)),
        ("one query", attention(), *three(2, 4, 1, 130, 64)),
        ("scale", attention(scale=0.3), *three(1, 2, 50, 50, 64)),
        ("negative scale", attention(scale=-0.3), *three(1, 2, 50, 50, 64)),
        ("deep heads", attention(), *three(1, 2, 50, 50, 192)),
        ("deeper heads", attention(), *three(1, 2, 50, 50, 300)),
        ("deep heads, several blocks", attention(is_causal=True), *three(1, 1, 2100, 2100, 256)),
        ("deep values", attention(), *three(1, 1, 2100, 1100, 64)[:2], sample(dtype, 1, 1, 1100, 512)),
        ("by position", by_position, *(sample(dtype, 2, 50, 4, 64) for _ in range(3))),
        ("large scores", attention(), *(50 * t for t in three(1, 2, 50, 60, 64)[:2]), sample(dtype, 1, 2, 60, 64)),
    )


@pytest.mark.parametrize("dtype", (F32, BF16, F16), ids=("float32", "bfloat16", "float16"))
def test_attention(dtype):
    check_all(attention_cases(dtype), batch=4)


@pytest.mark.parametrize(
    "name",
    (
        "plain",
        "causal",
        "groups",
        "by position",
        "causal, more keys",
        "causal, more queries",
        "float mask",
        "deep heads",
    ),
)
def test_gradients_of_attention(name):
    found = {c.label: c for c in attention_cases(F32)}[name]
    check_gradients(found.function, *(tensor.requires_grad_() for tensor in found.arguments))


@pytest.mark.parametrize("dtype", (BF16, F16), ids=("bfloat16", "float16"))
def test_gradients_of_attention_in_16_bits(dtype):
    """Against the computation in 32 bit from the same numbers, and against eager, which rounds in other places."""
    cases = {c.label: c for c in attention_cases(dtype)}
    problems = []
    for name in ("plain", "causal", "causal, more queries", "groups", "float mask", "boolean mask", "several blocks"):
        found = cases.get(name, cases["plain"])
        function, tensors = found.function, [tensor.clone() for tensor in found.arguments]
        if name == "boolean mask":
            function, tensors = masked, [*tensors, torch.rand(100, 77) > 0.3]
        leaves = [tensor.requires_grad_() for tensor in tensors[:3]]
        wide = [tensor.detach().float().requires_grad_() for tensor in leaves]
        others = tensors[3:]
        wide_others = [other.float() if other.is_floating_point() else other for other in others]
        own = gradients(compile(function), [moved(tensor, "neuron") for tensor in (*leaves, *others)])
        exact, eager = gradients(function, [*wide, *wide_others]), gradients(function, [*leaves, *others])
        for what, result, wanted, rounded in zip(("result", "query", "key", "value"), own, exact, eager, strict=True):
            largest = max(wanted.abs().max().item(), 1.0)
            for reference, factor in ((wanted, 1), (rounded, 2)):
                error = (result.detach().cpu().float() - reference.detach().float()).abs().max().item()
                if error > factor * TOLERANCES[dtype] * largest:
                    problems.append(f"{name}, {what}: {error} off, largest {largest}")
    assert not problems, "\n".join(problems)


ROWS = {
    "layer norm": lambda p, w: F.layer_norm(p, p.shape[-1:], w, w),
    "rms norm": lambda p, w: F.rms_norm(p, p.shape[-1:], w),
    "softmax": lambda p, w: p.softmax(-1),
    "largest": lambda p, w: p.amax(-1),
    "sum and product": lambda p, w: (p, p.sum(-1, keepdim=True)),
    "residual and norm": lambda p, w: (p + w, F.layer_norm(p + w, p.shape[-1:])),
    "columns": lambda p, w: p.sum(-2),
    "all": lambda p, w: p.sum(),
    "halves of rows": lambda p, w: p.unflatten(-1, (2, -1)).amax(-1),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_a_product_are_reduced(name):
    """In the product's kernel where its rows are whole, whatever the sizes."""
    cases = []
    for dtype, tolerance in ((F32, 2e-5), (BF16, 2e-2)):
        for rows, depth, columns in ((1, 64, 8), (130, 96, 512), (300, 200, 1030), (5, 32, 4608)):
            a, b, w = (
                sample(dtype, rows, depth),
                sample(dtype, depth, columns, scale=depth**-0.5),
                sample(dtype, columns),
            )
            function = lambda a, b, w: ROWS[name](a @ b, w)  # noqa: E731
            cases.append(case(f"{dtype} {rows} {columns}", function, a, b, w, rtol=tolerance, atol=tolerance * 4))
    check_all(cases, eager=False)

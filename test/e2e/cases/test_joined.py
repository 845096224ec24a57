# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Computed values that are joined: each may be computed where the whole lies, and what follows may be computed before."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from checking import ALL_DTYPES, BF16, F16, F32, I32, case, check_all, compile, sample

IDS = {"ids": lambda value: str(value).removeprefix("torch.")}


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def rotary(q, k, cos, sin):
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def rotary_of_positions(q, frequencies):
    angles = torch.arange(q.shape[-2], device=q.device)[:, None] * frequencies
    angles = torch.cat((angles, angles), -1)
    return q * angles.cos() + rotate_half(q) * angles.sin()


def interleaved(q, cos, sin):
    """Rotary embedding of neighbours."""
    turned = torch.stack((-q[..., 1::2], q[..., ::2]), -1).flatten(-2)
    return q * cos + turned * sin


def partly_rotary(q, cos, sin):
    width = cos.shape[-1]
    return torch.cat((q[..., :width] * cos + rotate_half(q[..., :width]) * sin, q[..., width:]), -1)


@pytest.mark.parametrize("dtype", (F32, BF16, F16), **IDS)
def test_rotary_embedding(dtype):
    angles = torch.randn(1, 1, 20, 16)
    cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
    q, k = sample(dtype, 2, 4, 20, 16), sample(dtype, 2, 2, 20, 16)
    by_row = sample(dtype, 2, 20, 4, 16).transpose(1, 2)
    # Products are rounded in between by eager, not by the compiler.
    rounded = {} if dtype == F32 else {"rtol": 2e-2, "atol": 2e-2}
    check_all(
        [
            case("two", rotary, q, k, cos, sin, **rounded),
            case("by row", rotary, by_row, k, cos, sin, **rounded),
            case("one row", rotary, q[:, :, :1], k[:, :, :1], cos[:, :, :1], sin[:, :, :1], **rounded),
            case("neighbours", interleaved, q, cos, sin, **rounded),
            case("partly", partly_rotary, q, cos[..., :8], sin[..., :8], **rounded),
            case("one", lambda q, c, s: q * c + rotate_half(q) * s, q, cos, sin, **rounded),
        ]
    )
    if dtype == F32:
        check_all([case("of positions", rotary_of_positions, q, torch.rand(8), rtol=1e-5, atol=1e-5)])


@pytest.mark.parametrize("dtype", ALL_DTYPES, **IDS)
def test_computed_parts(dtype):
    x, y, z = sample(dtype, 5, 6), sample(dtype, 5, 6), sample(dtype, 1, 6)

    def plus(a, b):
        return torch.maximum(a, b)

    check_all(
        [
            case("rows", lambda x, y: torch.cat([plus(x, y), torch.minimum(x, y)]), x, y),
            case("columns", lambda x, y: torch.cat([plus(x, y), torch.minimum(x, y), x], 1), x, y),
            case("followed", lambda x, y: plus(torch.cat([plus(x, y), x], 1), torch.cat([y, y], 1)), x, y),
            case("broadcast row", lambda x, y, z: plus(torch.cat([plus(x, y), x]), z), x, y, z),
            case("broadcast column", lambda x, y: plus(torch.cat([x, y], 1), x[:, :1]), x, y),
            case("widened", lambda x, z: torch.cat([plus(x[:1], z), plus(z, z)], 1)[:, :, None] == x[0, 0], x, z),
            case("same twice", lambda x, y: torch.cat([plus(x, y)] * 2, 1), x, y),
            case("same twice, followed", lambda x, y: plus(torch.cat([plus(x, y)] * 2, 1), torch.cat([x, y], 1)), x, y),
            case("part returned", lambda x, y: (lambda p: (p, torch.cat([p, x])))(plus(x, y)), x, y),
            case("view of part returned", lambda x, y: (lambda p: (p[1:], torch.cat([p, x])))(plus(x, y)), x, y),
            case("part used", lambda x, y: (lambda p: (torch.minimum(p, x), torch.cat([p, x])))(plus(x, y)), x, y),
            case("whole used twice", lambda x, y: (lambda c: (plus(c, c), c.T))(torch.cat([plus(x, y), x])), x, y),
            case("transposed parts", lambda x, y: torch.cat([plus(x, y).T, torch.minimum(x, y).T], 1), x, y),
            case("transposed whole", lambda x, y: plus(torch.cat([plus(x, y), x]).T, torch.cat([y, y]).T), x, y),
            case("stacked", lambda x, y: torch.stack([plus(x, y), torch.minimum(x, y)], 1), x, y),
            case("stacked last", lambda x, y: torch.stack([plus(x, y), torch.minimum(x, y)], -1), x, y),
            case(
                "reshaped", lambda x, y: torch.cat([plus(x, y).reshape(3, 10), torch.minimum(x, y).view(3, 10)]), x, y
            ),
            case(
                "nested", lambda x, y: torch.cat([torch.cat([plus(x, y), x], 1), torch.cat([y, plus(y, x)], 1)]), x, y
            ),
            case("nested, followed", lambda x, y: plus(torch.cat([torch.cat([plus(x, y), x]), y]), x[:1]), x, y),
            case("flattened", lambda x, y: plus(torch.cat([plus(x, y), x], 1).reshape(-1), y.reshape(-1)[:1]), x, y),
            case("sliced", lambda x, y: plus(torch.cat([plus(x, y), x], 1)[:, 3:9], x), x, y),
            case(
                "selected",
                lambda x, y: torch.where(torch.cat([x > y, y > x]), torch.cat([x, y]), torch.cat([y, x])),
                x,
                y,
            ),
            case("empty part", lambda x, y: plus(torch.cat([x[:, :0], plus(x, y)], 1), y), x, y),
            case("one part", lambda x, y: plus(torch.cat([plus(x, y)]), y), x, y),
            case("many parts", lambda x, y: plus(torch.cat([plus(x[i : i + 1], y) for i in range(5)]), y[:1]), x, y),
            case("reduced parts", lambda x, y: torch.cat([x.amax(1, keepdim=True), y.amin(1, keepdim=True)], 1), x, y),
            case("reduced whole", lambda x, y: torch.cat([plus(x, y), x], 1).amax(1), x, y),
            case("written over", lambda x, y: x.copy_(torch.cat([plus(x, y)[:2], torch.minimum(x, y)[:3]])), x, y),
            case("written over itself", lambda x, y: x.copy_(torch.cat([plus(x, y)[3:], plus(y, x)[:3]])), x, y),
            case("written behind", lambda x, y: (torch.cat([plus(x, y), x]), x.copy_(y))[0], x, y),
            case("filled", lambda x, y: torch.cat([plus(x, y), torch.zeros_like(x), torch.ones_like(y)], 1), x, y),
        ]
    )


@pytest.mark.parametrize("dtype", (F32, I32), **IDS)
def test_parts_of_many_tiles(dtype):
    """Beyond 128 rows."""
    x, y = sample(dtype, 300, 70), sample(dtype, 300, 50)
    check_all(
        [
            case("columns", lambda x, y: torch.cat([x + 1, y * 2], 1) * 3, x, y),
            case("rows", lambda x, y: torch.cat([x[:, :50] + 1, y * 2]) * 3, x, y),
            case("long rows", lambda x, y: torch.cat([x.reshape(1, -1) + 1, y.reshape(1, -1) * 2], 1) * 3, x, y),
        ]
    )


def test_attention_and_products_joined():
    q = sample(F32, 2, 3, 10, 8)
    w = sample(F32, 8, 8)
    tolerance = {"rtol": 1e-4, "atol": 1e-4}

    def heads(q, w):
        own = F.scaled_dot_product_attention(q, q, q)
        return torch.cat([F.scaled_dot_product_attention(q, q * 2, q), q * 2, own], -1)

    def products(q, w):
        return torch.cat([q @ w, (q @ w).relu(), q], -1) + 1

    def normalized(q, w):
        return torch.cat([F.softmax(q, -1), F.layer_norm(q, (8,))], 1) * w[0]

    check_all([case(f.__name__, f, q, w, **tolerance) for f in (heads, products, normalized)])


def test_gradients():
    host = [sample(F32, 2, 4, 10, 8).requires_grad_() for _ in range(2)]
    angles = torch.randn(1, 1, 10, 8)
    device = [t.detach().to("neuron").requires_grad_() for t in host]
    results = rotary(*host, angles.cos(), angles.sin())
    own = compile(rotary)(*device, angles.cos().to("neuron"), angles.sin().to("neuron"))
    for one, other in zip(own, results, strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-5, atol=1e-5)
    for parts in (results, own):
        (parts[0].square().sum() + parts[1].exp().sum()).backward()
    for one, other in zip(device, host, strict=True):
        torch.testing.assert_close(one.grad.cpu(), other.grad, rtol=1e-4, atol=1e-4)

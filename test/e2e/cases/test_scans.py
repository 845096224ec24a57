# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""cumsum and cumprod along every dimension, and what is built of them."""

from __future__ import annotations

import pytest
import torch
from checking import (
    BF16,
    BOOL,
    F16,
    F32,
    FLOATS,
    I32,
    I64,
    INTEGERS,
    case,
    check,
    check_all,
    check_gradients,
    inf,
    nan,
    sample,
)

IDS = {"ids": lambda value: str(value).removeprefix("torch.")}
LOOSE = {F32: {"rtol": 1e-5, "atol": 1e-4}, BF16: {"rtol": 2e-2, "atol": 5e-2}, F16: {"rtol": 2e-3, "atol": 5e-3}}


@pytest.mark.parametrize(
    "shape", ((1,), (7,), (3000,), (5, 6), (130, 3), (3, 700), (2, 3, 4), (2, 1, 3, 2, 2)), ids=str
)
def test_every_dimension(shape):
    """Scans along each dimension, of views too."""
    x = sample(F32, *shape)
    y = torch.rand(shape) + 0.5
    cases = []
    for dim in range(-1, len(shape) - 1):
        cases += [
            case(f"sum {dim}", lambda t, d=dim: t.cumsum(d), x, rtol=1e-5, atol=2e-4),
            case(f"product {dim}", lambda t, d=dim: t.cumprod(d), y if shape[dim] < 100 else y * 0 + 1, rtol=1e-4),
            case(f"flipped {dim}", lambda t, d=dim: t.flip(d).cumsum(d).flip(d), x, rtol=1e-5, atol=2e-4),
            case(f"shifted {dim}", lambda t, d=dim: t.cumsum(d) - t, x, rtol=1e-5, atol=2e-4),
        ]
    if len(shape) > 1:
        cases.append(case("transposed", lambda t: t.transpose(0, 1).cumsum(0), x, rtol=1e-5, atol=2e-4))
        cases.append(case("strided", lambda t: t[1::2].cumsum(-1), x, rtol=1e-5, atol=2e-4))
    check_all(cases)


def test_flattened_arguments():
    """The dimension that is scanned has no stride of its own in an argument that is not contiguous."""
    x, y = sample(F32, 65, 257).t(), sample(F32, 40, 60)[:, ::2]
    check_all(
        [
            case("transposed", lambda t: t.reshape(-1).cumsum(0), x, rtol=1e-5, atol=1e-3),
            case("with steps", lambda t: t.flatten().cumsum(0), y, rtol=1e-5, atol=1e-3),
            case("in pieces", lambda t: t.reshape(24, 50).cumsum(1), y, rtol=1e-5, atol=1e-3),
        ]
    )


@pytest.mark.parametrize("dtype", (*INTEGERS, BOOL), **IDS)
def test_integers_are_exact(dtype):
    """Scans of integers and bool are int64, and wrap only there."""
    x = sample(dtype, 5, 200)
    check_all(
        [
            case("sum", lambda t: (t.cumsum(0), t.cumsum(1)), x),
            case("product", lambda t: (t.cumprod(0), t.cumprod(1)), x),
            case("dtype", lambda t: (t.cumsum(1, dtype=I32), t.cumsum(1, dtype=F32), t.cumprod(0, dtype=I64)), x),
            case("of a mask", lambda t: ((t > 0).cumsum(1) - 1) * (t > 0), x),
        ]
    )


@pytest.mark.parametrize("dtype", FLOATS, **IDS)
def test_sixteen_bits_and_special_values(dtype):
    """NaN and infinities spread to what follows; 16-bit scans round each element once."""
    x = torch.tensor([[1.0, 2.0, nan, 3.0], [1.0, inf, 2.0, -inf], [-0.0, 0.0, -0.0, 1.0], [0.0, 1.0, -1.0, inf]]).to(
        dtype
    )
    y = sample(dtype, 4, 60)
    check_all(
        [
            case("special", lambda t: (t.cumsum(0), t.cumsum(1), t.cumprod(1)), x),
            case("sum", lambda t: (t.cumsum(0), t.cumsum(1)), y, **LOOSE[dtype]),
            case("product", lambda t: t.cumprod(1), y.abs().clamp(0.9, 1.1), rtol=0.2 if dtype != F32 else 1e-5),
            case("wide", lambda t: t.cumsum(1, dtype=F32), y, rtol=1e-5, atol=1e-4),
        ]
    )


def test_ranks_and_empty_dimensions():
    """Rank 0, dimensions of size 0 and 1."""
    check_all(
        [
            case("rank 0", lambda t: (t.cumsum(0), t.cumprod(-1)), torch.tensor(2.5)),
            case("empty", lambda t: (t.cumsum(0), t.cumsum(1), t.cumprod(1)), torch.zeros(3, 0)),
            case("one", lambda t: (t.cumsum(1), t.cumprod(0)), torch.randn(1, 1)),
        ]
    )


def test_same_as_a_triangular_sum():
    """A scan fused into a larger program (iree-org/iree#23381)."""
    x, w = sample(F32, 6, 5), sample(F32, 6, 5)
    check(lambda t, w: (t.cumsum(0) * w).tanh(), x, w, rtol=1e-5, atol=1e-5)
    check(lambda t, w: ((t * 2).cumsum(1) + w).softmax(1).cumsum(0), x, w, rtol=1e-5, atol=1e-5)
    check(lambda t, w: t.cumsum(0).cumsum(1).amax(0) - w.cumsum(0)[-1], x, w, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dim", (0, 1, -1))
def test_gradients(dim):
    """The backward of a scan is a scan from the end (iree-org/iree#23381)."""
    x, w = torch.randn(6, 5, requires_grad=True), torch.randn(6, 5)
    check_gradients(lambda t, w: (t.cumsum(dim) * w).tanh(), x, w)
    y = (torch.rand(4, 5) + 0.5).requires_grad_()
    check_gradients(lambda t: t.cumsum(dim).square(), y)


@pytest.mark.parametrize("length", [40000, 50001, 300000])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_long_rows_are_rounded_once(dtype, length):
    """Rows that do not fit are scanned in blocks, whose totals keep their digits in 16-bit types too."""
    x = torch.randn(length).to(dtype)
    want = x.double().cumsum(0)
    got = torch.compile(lambda t: t.cumsum(0), backend="neuron", fullgraph=True)(x.to("neuron")).cpu()
    assert got.dtype == dtype
    unit = torch.finfo(dtype).eps / 2
    assert ((got.double() - want).abs() <= unit * want.abs() * 1.01 + 2e-3).all()


@pytest.mark.parametrize("shape", [(3, 40), (130, 700), (2, 1500, 8), (5000, 3)], ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_zeros_and_special_values(dtype, shape):
    """Running sums start from +0, so they are never -0; a NaN or an inf reaches what comes after it in its row only."""
    zeros = torch.where(torch.rand(shape) < 0.5, 0.0, -0.0).to(dtype)
    special = (torch.randn(shape) * 0.1).to(dtype)
    special[0, 1], special[1, 0], special[1, 2] = float("nan"), float("inf"), -0.0
    for dim in range(len(shape)):
        for x in (zeros, special):
            # The CPU adds up in double precision.
            atol = 1e-5 if dtype == F32 else None
            check(lambda t, dim=dim: (t.cumsum(dim), t.cumprod(dim)), x, atol=atol)

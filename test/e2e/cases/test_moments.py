# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Mean and variance of rows: one instruction finds both from pieces of up to 512 elements."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from checking import check
from tolerances import tolerance

# Around the pieces of 512, even and odd, and rows of which the scalar engine makes three passes.
LENGTHS = (3, 7, 384, 511, 512, 513, 1023, 1024, 1025, 1537, 4100)


def _by_hand(x):
    centred = x - x.mean(-1, keepdim=True)
    return centred / centred.square().mean(-1, keepdim=True).sqrt()


FUNCTIONS = {
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "weight": lambda x: F.layer_norm(x, x.shape[-1:], x[0].abs() + 0.5),
    "weight and bias": lambda x: F.layer_norm(x, x.shape[-1:], x[0].abs() + 0.5, x[1]),
    "residual": lambda x: F.layer_norm(x + x.flip(0), x.shape[-1:], x[0].abs() + 0.5, x[1]),
    "computed rows": lambda x: F.layer_norm(torch.sigmoid(x), x.shape[-1:]),
    "statistics": lambda x: torch.native_layer_norm(x.float(), x.shape[-1:], None, None, 1e-5),
    "var": lambda x: x.float().var(-1),
    "var_mean": lambda x: torch.var_mean(x.float(), -1, correction=0),
    "by hand": lambda x: _by_hand(x.float()),
    "group_norm": lambda x: F.group_norm(x[:, None], 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_rows(name, length, dtype):
    x = torch.randn(130, length)
    x[:, ::2] += 4  # no row is nearly constant, which would make noise of rounding
    rtol, atol = tolerance("aten.native_layer_norm.default", dtype)
    check(FUNCTIONS[name], x.to(dtype), rtol=rtol, atol=atol)


@pytest.mark.parametrize("length", [384, 700, 1025])
def test_rows_far_from_zero(length):
    """The variance is taken around the mean of each piece, so it keeps its digits where the mean is large."""
    x = torch.randn(40, length) + 1000
    x[:, : length // 2] -= 5  # pieces whose means differ
    want = x.double().var(-1).float()
    got = torch.compile(lambda t: t.var(-1), backend="neuron", fullgraph=True)(x.to("neuron")).cpu()
    torch.testing.assert_close(got, want, rtol=1e-4, atol=0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e18])
def test_special_values(value):
    """A row with one of them is the CPU's, and the other rows do not notice."""
    x = torch.randn(130, 600)
    x[7, 511] = value
    x[8] = 0.0
    x[9] = 2.5
    rtol, atol = tolerance("aten.native_layer_norm.default", x.dtype)
    check(lambda t: (F.layer_norm(t, (600,)), t.var(-1)), x, rtol=rtol, atol=atol)


def test_rows_of_two():
    check(lambda t: (t.var(-1), torch.var_mean(t, -1, correction=0)), torch.randn(130, 2))

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Tensors larger than what is on chip at once: loops, rows that do not fit, constants and repeated rows stored everywhere."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from checking import BF16, F32, I32, I64, case, check, check_all, nan, sample


def test_index_of_an_extreme_in_long_rows():
    """argmax and argmin of more elements than fit in a row: first of equal ones, NaN wins, any dtype."""
    x, rows = torch.randn(300000), torch.randn(3, 70001)
    with_nan = x.clone()
    with_nan[200001], with_nan[250000] = nan, nan
    check_all(
        [
            case("all", lambda x: (x.argmax(), x.argmin()), x),
            case("nan", lambda x: (x.argmax(), x.argmin()), with_nan),
            case("ties", lambda x: (x.argmax(), x.argmin()), torch.randint(-5, 5, (200000,))),
            case("rows", lambda x: (x.argmax(1), x.argmin(1, keepdim=True)), rows),
            case("values too", lambda x: torch.max(x, 1), rows),
            case("bf16", lambda x: x.argmax(), x.to(BF16)),
            case("all of three dimensions", lambda x: x.argmax(), sample(F32, 2, 100, 1000)),
        ]
    )


def test_scans_of_long_rows():
    integers = torch.randint(-5, 5, (200000,))
    check_all(
        [
            case("integers", lambda x: x.cumsum(0), integers),
            case("int32", lambda x: x.cumsum(0), integers.to(I32)),
            case("bool", lambda x: x.cumsum(0), integers > 0),
            case("rows", lambda x: x.cumsum(1), torch.randint(0, 9, (3, 70001), dtype=I64)),
            case("columns", lambda x: x.cumsum(0), torch.randint(0, 9, (70001, 3), dtype=I64)),
            case("whole blocks", lambda x: x.cumsum(0), torch.randint(0, 9, (2048 * 16,), dtype=I64)),
        ]
    )


def test_float_scans_of_long_rows():
    x = torch.randn(100000)
    got = torch.compile(lambda x: (x.cumsum(0), (1 + x * 1e-3).cumprod(0)), backend="neuron", fullgraph=True)(
        x.to("neuron")
    )
    for actual, expected in zip(got, (x.double().cumsum(0), (1 + x.double() * 1e-3).cumprod(0)), strict=True):
        torch.testing.assert_close(actual.cpu().double(), expected, rtol=1e-4, atol=1e-3)


def test_sums_of_more_columns_than_fit_together():
    """Rows that are on chip whole for one result, summed over their columns for another."""
    x = torch.randn(1300, 5000)
    check(lambda t: (t.argmax(1), F.log_softmax(t, 0)), x, rtol=1e-5, atol=1e-5)
    check(lambda t: (t.softmax(1), t.sum(0)), x, rtol=1e-5, atol=1e-3)


def test_constants_and_repeated_values_reach_every_tile():
    x = torch.randn(3000, 3)
    check_all(
        [
            case("full", lambda x: torch.full((3000, 700), 2.0, device=x.device) + x[:, :1] * 0, x),
            case("constant alone", lambda x: torch.full((3000, 700), 2.0, device=x.device), x),
            case("row", lambda x: x.amax(0, keepdim=True).expand(3000, 3).clone(), x),
            case("column", lambda x: x.amax(1, keepdim=True).expand(3000, 700).clone(), x),
            case("sum of nothing", lambda x: x[:0].sum(0).expand(5, 3) + torch.zeros(5, 1, device=x.device), x),
        ]
    )


ROWS = {
    "rms": lambda x, w, b: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w,
    "rms_norm": lambda x, w, b: F.rms_norm(x, (x.shape[1],), w),
    "layer_norm": lambda x, w, b: F.layer_norm(x, (x.shape[1],), w, b),
    "softmax": lambda x, w, b: F.softmax(x * w, -1),
    "log_softmax": lambda x, w, b: F.log_softmax(x, -1),
    "residual": lambda x, w, b: (x + b, F.rms_norm(x + b, (x.shape[1],), w)),
    "gate": lambda x, w, b: F.silu(F.layer_norm(x, (x.shape[1],), w, b)) * x,
    "columns": lambda x, w, b: ((x * w).amax(0), (x > 0).sum(0)),
}


@pytest.mark.parametrize("dtype", [F32, BF16], ids=["f32", "bf16"])
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("shape", [(1300, 2048), (640, 8192), (777, 1000)], ids=str)
def test_rows_in_pipelined_loops(shape, name, dtype):
    """Bodies with several copies and stages, and columns shared between engines, against CPU."""
    x, w, b = torch.randn(shape).to(dtype), torch.rand(shape[1]).to(dtype), torch.randn(shape[1]).to(dtype)
    torch._dynamo.reset()
    expected = ROWS[name](x, w, b)
    got = torch.compile(ROWS[name], backend="neuron", fullgraph=True)(*[t.to("neuron") for t in (x, w, b)])
    if not isinstance(expected, tuple):
        expected, got = (expected,), (got,)
    for want, have in zip(expected, got, strict=True):
        assert have.dtype == want.dtype and have.stride() == want.stride()
        if not want.is_floating_point():
            assert torch.equal(have.cpu(), want)
            continue
        tolerance = 2e-2 if dtype is BF16 else 2e-5
        torch.testing.assert_close(have.cpu(), want, rtol=tolerance, atol=tolerance * want.abs().max().item() / 4)

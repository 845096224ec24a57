# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Reductions: dimensions, empty ones, ties, NaN, accumulation, sizes around a tile."""

from __future__ import annotations

import itertools

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
    check_sweep,
    inf,
    nan,
    sample,
)

IDS = {"ids": lambda value: str(value).removeprefix("torch.")}
# The order of a sum.
SUM = {"rtol": 1e-5, "atol": 1e-5}

FLOAT_REDUCTIONS = {
    "sum": torch.sum,
    "mean": torch.mean,
    "amax": torch.amax,
    "amin": torch.amin,
    "logsumexp": torch.logsumexp,
    "var": torch.var,
    "std": lambda x, dim, keepdim: torch.std(x, dim, correction=0, keepdim=keepdim),
    "norm": lambda x, dim, keepdim: torch.linalg.vector_norm(x, 2, dim, keepdim),
    "norm1": lambda x, dim, keepdim: torch.linalg.vector_norm(x, 1, dim, keepdim),
    "norm3": lambda x, dim, keepdim: torch.linalg.vector_norm(x, 3, dim, keepdim),
    "norm inf": lambda x, dim, keepdim: torch.linalg.vector_norm(x, inf, dim, keepdim),
    "norm -inf": lambda x, dim, keepdim: torch.linalg.vector_norm(x, -inf, dim, keepdim),
    "norm 0": lambda x, dim, keepdim: torch.linalg.vector_norm(x, 0, dim, keepdim),
    "nansum": torch.nansum,
    "any": torch.any,
    "all": torch.all,
}


@pytest.mark.parametrize("name", FLOAT_REDUCTIONS)
def test_every_set_of_dimensions(name):
    """Any set of the dimensions of rank 4, kept or dropped, in any of the float dtypes."""
    x = sample(F32, 3, 4, 2, 5)
    cases = []
    function = FLOAT_REDUCTIONS[name]
    for size in range(1, 5):
        for dims in itertools.combinations(range(4), size):
            keepdim = sum(dims) % 2 == 0
            cases.append(case(f"{dims} {keepdim}", lambda x, d=dims, k=keepdim: function(x, d, k), x, **SUM))
    cases.append(case("negative", lambda x: FLOAT_REDUCTIONS[name](x, (-1, 0), True), x, **SUM))
    for dtype in (BF16, F16):
        cases.append(
            case(f"{dtype}", lambda x: FLOAT_REDUCTIONS[name](x, (1, 3), False), x.to(dtype), rtol=1e-2, atol=1e-2)
        )
    check_sweep(cases)


@pytest.mark.parametrize("rows", (31, 32, 33, 127, 128, 129, 200, 257))
def test_number_of_rows_does_not_matter(rows):
    """Means of rows and sums of columns one below, at and above a tile (torch-spyre/torch-spyre#3804)."""
    x = torch.zeros(rows, 96)
    x[:, :48] = 1
    y = sample(F32, rows, 33)
    check_all(
        [
            case("halves", lambda t: (t.mean(-1, keepdim=True), t.sum(0), t.mean(), t.sum(-1)), x),
            case(
                "random",
                lambda t: (t.mean(-1), t.sum(0), t.amax(0), t.amin(1), t.var(0), t.argmax(0), t.argmin(1)),
                y,
                **SUM,
            ),
            case("middle", lambda t: t.reshape(rows, 3, 11).sum(1), y, **SUM),
        ]
    )


@pytest.mark.parametrize("columns", (1, 2, 511, 512, 513, 2047, 2048, 2049, 5000))
def test_length_of_rows_does_not_matter(columns):
    """Rows shorter and longer than a tile, in each direction, for sums, extremes and indices."""
    x = sample(F32, 5, columns)
    options = {"rtol": 1e-5, "atol": 1e-4}
    check_all(
        [
            case("rows", lambda t: (t.sum(1), t.mean(1), t.amax(1), t.argmax(1), t.argmin(1), t.max(1)), x, **options),
            case("columns", lambda t: (t.sum(0), t.amax(0), t.argmin(0), t.all(0)), x, **options),
            case("all", lambda t: (t.sum(), t.amax(), t.argmax(), t.any(), t.norm()), x, **options),
            case("bf16", lambda t: (t.sum(1), t.amax(1), t.argmax(1)), x.bfloat16(), rtol=1e-2, atol=1e-1),
        ]
    )


def test_operand_larger_than_on_chip_memory():
    """A reduction over more than the on-chip memory holds (aws-neuron/aws-neuron-sdk#1118)."""
    x = torch.randn(7000, 1100)
    check(lambda t: (t.relu().amax(0), t.mean(-1)), x, eager=False, rtol=1e-4, atol=1e-4)


def test_sixteen_bit_sums_accumulate_in_f32():
    """4096 halves of 40: beyond 65504 only if the result has 16 bits (torch-spyre/torch-spyre#2849)."""
    x = torch.full((4, 4096), 40.0)
    check_all(
        [
            case("f16", lambda t: (t.sum(dtype=F32), t.mean(-1, dtype=F32), t.sum(-1), t.mean()), x.half(), rtol=1e-3),
            case("bf16", lambda t: (t.sum(), t.mean(), t.sum(-1), t.sum(0, dtype=F32)), x.bfloat16(), rtol=1e-2),
            # 4096 ones would stop at 256 in bf16 arithmetic.
            case("ones", lambda t: (t.sum(-1), t.cumsum(-1)[:, -1]), torch.ones(3, 4096, dtype=BF16), rtol=0, atol=0),
            case("of integers", lambda t: (t.sum(dtype=F32), t.sum(-1, dtype=BF16)), torch.ones(3, 400, dtype=I32)),
        ]
    )


@pytest.mark.parametrize("dtype", (*FLOATS, *INTEGERS), **IDS)
def test_indices_of_ties(dtype):
    """argmax and argmin return the first of equal values; indices are int64, exact beyond 256 (tenstorrent/tt-metal#8662)."""
    flat = torch.zeros(3, 1030)
    flat[0, 1025] = flat[1, 257] = flat[2, 1029] = 1
    ties = torch.tensor([[2, 5, 5, 1, 1, 5], [1, 1, 1, 1, 1, 1], [3, 2, 1, 1, 2, 3]])
    cases = []
    for x in (flat, ties, -flat if dtype.is_signed else flat, ties.repeat(1, 200), ties.repeat(100, 1)):
        x = x.to(dtype)
        cases += [
            case("arg", lambda t: (t.argmax(-1), t.argmax(), t.argmin(0), t.argmin(), t.argmax(0, keepdim=True)), x),
            case("with values", lambda t: (t.max(-1), t.min(0), t.max(0), t.min(-1, keepdim=True)), x),
        ]
    check_all(cases)


def test_index_after_softmax():
    """argmax of a flat bf16 softmax is the first element (pytorch/xla#2525)."""
    for dtype in FLOATS:
        check(lambda t: t.softmax(-1).max(-1), torch.zeros(2, 300, dtype=dtype), rtol=1e-2, atol=1e-2)
        check(lambda t: (t.softmax(-1).argmax(-1), t.log_softmax(0).argmin(0)), sample(dtype, 5, 70, scale=3.0))


@pytest.mark.parametrize("dtype", FLOATS, **IDS)
def test_nan_in_reductions(dtype):
    """NaN is the maximum and the minimum, at its first position; sums are NaN, nansum leaves it out."""
    x = sample(dtype, 4, 40)
    x[0, 3] = x[0, 7] = x[2, 39] = nan
    x[1, 5] = inf
    x[3, 2], x[3, 8] = inf, -inf
    options = {"rtol": 1e-2, "atol": 1e-2} if dtype != F32 else SUM
    check_all(
        [
            case("extremes", lambda t: (t.amax(1), t.amin(1), t.amax(), t.amin(0), t.aminmax()), x),
            case("indices", lambda t: (t.argmax(1), t.argmin(1), t.argmax(), t.argmin(0), t.max(1), t.min(0)), x),
            case(
                "sums",
                lambda t: (t.sum(1), t.mean(1), t.sum(0), t.nansum(1), t.prod(1)),
                x,
                rtol=options["rtol"],
                atol=0.2,
            ),
            case("moments", lambda t: (t.var(1), t.std(0), t.norm(dim=1), t.norm(p=inf, dim=1)), x, **options),
            case("logsumexp", lambda t: (t.logsumexp(1), t.softmax(1), t.log_softmax(1)), x, **options),
            case("logic", lambda t: (t.any(1), t.all(1), t.isnan().any(), t.count_nonzero(1)), x),
        ]
    )


def test_infinite_and_zero_extremes():
    """Rows of only -inf, of signed zeros, of one element."""
    x = torch.tensor([[-inf, -inf, -inf], [0.0, -0.0, 0.0], [-0.0, -0.0, -0.0], [inf, -inf, 1.0]])
    check_all(
        [
            case("extremes", lambda t: (t.amax(1), t.amin(1), t.argmax(1), t.argmin(1)), x, signed_zero=False),
            case("logsumexp", lambda t: (t.logsumexp(1), t.logsumexp(0)), x, **SUM),
            case("sums", lambda t: (t.sum(1), t.sum(0), t.prod(1)), x[1:3], signed_zero=False),
            case(
                "single",
                lambda t: (t.amax(0), t.sum(0), t.var(0), t.var(0, correction=0), t.mean(0)),
                x[3:],
                signed_zero=False,
            ),
        ]
    )


@pytest.mark.parametrize("shape, dim", (((0,), 0), ((3, 0), 1), ((0, 3), 0), ((2, 0, 4), 1)), ids=str)
def test_empty_reductions(shape, dim):
    """Nothing sums to 0, multiplies to 1, any is false and all true; means and moments are NaN, extremes an error."""
    x = torch.zeros(shape)
    check_all(
        [
            case("sums", lambda t: (t.sum(dim), t.prod(dim), t.sum(), t.prod(), t.nansum(dim), t.norm(dim=dim)), x),
            case(
                "means",
                lambda t: (
                    t.mean(dim),
                    t.mean(),
                    t.var(dim),
                    t.std(dim),
                    t.var_mean(dim) if hasattr(t, "var_mean") else t.var(dim),
                ),
                x,
            ),
            case("logic", lambda t: (t.any(dim), t.all(dim), t.any(), t.all(), t.count_nonzero()), x),
            case("logsumexp", lambda t: t.logsumexp(dim), x),
            case("integers", lambda t: (t.sum(dim), t.prod(dim), t.any(dim), t.all(dim)), x.to(I64)),
            case("scans", lambda t: (t.cumsum(dim), t.cumprod(dim)), x),
        ]
    )
    for function in (lambda t: t.amax(dim), lambda t: t.argmax(dim), lambda t: t.max(dim), lambda t: t.amin()):
        with pytest.raises((IndexError, RuntimeError)) as expected:
            function(x)
        with pytest.raises((IndexError, RuntimeError)) as actual:
            function(x.to("neuron"))
        assert str(actual.value).split("\n")[0] == str(expected.value).split("\n")[0]


def test_rank_zero():
    """A tensor of rank 0 has one dimension to reduce, or none."""
    cases = []
    for x in (torch.tensor(2.5), torch.tensor(-3), torch.tensor(0.0)):
        cases.append(
            case(
                f"{x.dtype}",
                lambda t: (
                    t.sum(),
                    t.sum(0),
                    t.prod(),
                    t.amax(),
                    t.amin(-1),
                    t.argmax(),
                    t.argmin(0),
                    t.any(),
                    t.all(0),
                    t.max(0),
                    t.min(-1),
                    t.cumsum(0),
                    t.cumprod(-1),
                ),
                x,
            )
        )
    cases.append(
        case(
            "float",
            lambda t: (t.mean(), t.norm(), t.logsumexp(0), t.softmax(0), t.log_softmax(-1), t.var(correction=0)),
            torch.tensor(2.5),
        )
    )
    check_all(cases)


def test_moments():
    """Variances with each correction, of far offsets and of constant rows (pytorch twins of aws-neuron/aws-neuron-sdk#404)."""
    x = sample(F32, 6, 50)
    options = {"rtol": 1e-4, "atol": 1e-5}
    check_all(
        [
            case(
                "corrections", lambda t: tuple(t.var(1, correction=c) for c in (0, 1, 2, 0.5, 49, 50, 60)), x, **options
            ),
            case(
                "std",
                lambda t: (t.std(), t.std(0), t.std(1, keepdim=True), torch.std_mean(t, 1), torch.var_mean(t, 0)),
                x,
                **options,
            ),
            case("unbiased", lambda t: (t.var(1, unbiased=False), t.std(unbiased=True), t.var((0, 1))), x, **options),
            case("offset", lambda t: (t.var(1), t.std(0)), x * 30 + 100, rtol=1e-3, atol=1e-3),
            case("constant", lambda t: (t.var(1), t.std(1)), torch.full((3, 40), 0.1), atol=1e-12, rtol=0),
            case("bf16", lambda t: (t.var(1), t.std(0)), x.bfloat16(), rtol=1e-2, atol=1e-3),
        ]
    )


def test_norms_do_not_overflow_where_eager_does_not():
    """Large, small and mixed magnitudes in norms and logsumexp."""
    x = torch.tensor([[1e15, -1e15, 1.0], [1e-15, 2e-15, 0.0], [3.0, 4.0, 0.0]])
    check_all(
        [
            case(
                "norms",
                lambda t: (
                    t.norm(dim=1),
                    t.norm(p=1, dim=1),
                    t.norm(p=3, dim=1),
                    t.norm(p=0.5, dim=1),
                    t.norm(p=-1, dim=1),
                ),
                x,
                rtol=1e-5,
                atol=0,
            ),
            case(
                "logsumexp",
                lambda t: t.logsumexp(1),
                torch.tensor([[1e4, 1e4 - 1], [-1e4, -1e4 - 1], [88.0, 89.0]]),
                rtol=1e-6,
            ),
            case(
                "f16",
                lambda t: (t.norm(dim=1), t.float().norm(dim=0)),
                torch.tensor([[300.0, 400.0], [1e-4, 2e-4]]).half(),
                rtol=1e-2,
            ),
        ]
    )


def test_reduction_of_views():
    """Transposed, strided, flipped, expanded and offset operands."""
    x = sample(F32, 12, 20)
    views = {
        "transposed": lambda t: t.T,
        "strided": lambda t: t[1::2, ::3],
        "flipped": lambda t: t.flip(1),
        "expanded": lambda t: t[:, :1].expand(12, 20),
        "expanded rows": lambda t: t[:1].expand(12, 20),
        "new dimension": lambda t: t[None, :, None].expand(3, 12, 2, 20),
        "diagonal": lambda t: t.diagonal(1),
        "permuted": lambda t: t.reshape(3, 4, 20).permute(2, 0, 1),
    }
    check_all(
        [
            case(
                name,
                lambda t, v=view: (v(t).sum(), v(t).sum(0), v(t).amax(-1), v(t).argmax(-1), v(t).mean(0)),
                x,
                **SUM,
            )
            for name, view in views.items()
        ]
    )


def test_reduced_operands_broadcast():
    """A reduced operand with a constant tensor and a full one (torch-spyre/torch-spyre#1303)."""
    x, y = sample(F32, 2, 3, 70), sample(F32, 2, 3, 70)
    check_all(
        [
            case("mean", lambda x, y: x.mean(-1, keepdim=True) + torch.zeros_like(x) + y, x, y, **SUM),
            case(
                "two directions",
                lambda x, y: x.mean(-1, keepdim=True) + y.mean(1, keepdim=True) * torch.ones_like(x),
                x,
                y,
                **SUM,
            ),
            case("chain", lambda x, y: (x - x.amax(-1, keepdim=True)) / y.abs().sum(-2, keepdim=True), x, y, **SUM),
            case("outer", lambda x, y: x.sum((0, 1))[None, :] * y.sum(-1).reshape(-1, 1), x, y, rtol=1e-4, atol=1e-4),
        ]
    )


@pytest.mark.parametrize("dtype", (*FLOATS, I64, BOOL), **IDS)
def test_products_and_logic(dtype):
    """prod, any, all and count_nonzero over each direction."""
    x = sample(dtype, 3, 5, 7)
    check_all(
        [
            case(
                "prod",
                lambda t: (t.prod(), t.prod(0), t.prod(1), t.prod(2, keepdim=True)),
                x % 3 if dtype == I64 else x,
                rtol=2e-2 if dtype != F32 else 1e-4,
                atol=1e-3,
            ),
            case(
                "logic", lambda t: (t.any(), t.all(), t.any(0), t.all(1), t.any((0, 2)), t.all((1, 2), keepdim=True)), x
            ),
            case("count", lambda t: (t.count_nonzero(), t.count_nonzero(1), t.count_nonzero((0, 2))), x),
            case("equality", lambda t: ((t == t[:1]).all(-1), (t != 0).sum(0), (t == 0).any()), x),
        ]
    )

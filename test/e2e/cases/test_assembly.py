# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Tensors put together: cat, stack, pad, scatters of regions, triangles, ranges, masks in place of indices."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from checking import ALL_DTYPES, BF16, BOOL, F16, F32, I8, I32, I64, U8, case, check, check_all, inf, nan, sample

IDS = {"ids": lambda value: str(value).removeprefix("torch.")}


@pytest.mark.parametrize("dtype", ALL_DTYPES, **IDS)
def test_cat_and_stack(dtype):
    """Along each dimension, of different sizes, of views, of the same tensor, of nothing."""
    x, y = sample(dtype, 3, 4), sample(dtype, 3, 7)
    check_all(
        [
            case(
                "cat", lambda x, y: (torch.cat([x, y], 1), torch.cat([x, x]), torch.cat([y[:, :4], x, y[:, 3:]])), x, y
            ),
            case("negative", lambda x, y: torch.cat([x, y, x], -1), x, y),
            case("views", lambda x, y: torch.cat([x.T, y.T[1::2], y.T.flip(0)]), x, y),
            case("stack", lambda x: (torch.stack([x, x]), torch.stack([x, x * 1, x], 1), torch.stack([x, x], -1)), x),
            case(
                "nothing", lambda x: (torch.cat([x[:0], x]), torch.cat([x, x[:, :0]], 1), torch.cat([x[:0], x[:0]])), x
            ),
            case("legacy empty", lambda x: torch.cat([torch.zeros(0, dtype=x.dtype, device=x.device), x]), x),
            case("many", lambda x: torch.cat([x[i % 3 : i % 3 + 1] for i in range(40)]), x),
            case(
                "hstack",
                lambda x, y: (
                    torch.hstack([x, y]),
                    torch.vstack([x, x]),
                    torch.dstack([x, x]),
                    torch.column_stack([x, y]),
                ),
                x,
                y,
            ),
        ]
    )


def test_cat_crosses_tile_limits():
    """Parts of 1, 127, 128, 129 rows; long rows; a part used again afterwards."""
    parts = [sample(F32, rows, 5) for rows in (1, 127, 128, 129)]
    wide = [sample(F32, 3, columns) for columns in (1, 511, 513, 2049)]
    check_all(
        [
            case("rows", lambda *p: torch.cat(p), *parts),
            case("columns", lambda *p: torch.cat(p, 1), *wide),
            case(
                "used again", lambda *p: torch.cat([p[1] * 2, p[2]]).sum(0) + p[1].sum(0), *parts, rtol=1e-5, atol=1e-4
            ),
            case("reduced", lambda *p: torch.cat([t + 1 for t in p], 1).softmax(1), *wide, rtol=1e-5),
        ]
    )


@pytest.mark.parametrize("dtype", ALL_DTYPES, **IDS)
def test_padding(dtype):
    """Constant padding on every side, negative padding crops; the value is converted like a fill."""
    x = sample(dtype, 3, 4, 5)
    value = True if dtype == BOOL else 3 if not dtype.is_floating_point else 0.1
    check_all(
        [
            case("last", lambda t: F.pad(t, (1, 2), value=value), x),
            case("two", lambda t: F.pad(t, (0, 3, 2, 0), value=value), x),
            case("three", lambda t: F.pad(t, (1, 1, 1, 1, 1, 1)), x),
            case("crop", lambda t: (F.pad(t, (-1, 2), value=value), F.pad(t, (-1, -1, -1, 0))), x),
            case("nothing", lambda t: F.pad(t, (0, 0)), x),
            case("of a view", lambda t: F.pad(t.transpose(0, 2)[1:], (2, 0), value=value), x),
            case("then reduced", lambda t: F.pad(t, (1, 1)).sum(-1), x.float()),
        ]
    )


def test_padding_with_special_numbers():
    """-inf, NaN and -0.0 as padding, before a maximum."""
    x = sample(F32, 3, 5)
    check_all(
        [
            case("-inf", lambda t: (F.pad(t, (1, 1), value=-inf), F.pad(t, (1, 1), value=-inf).amax(1)), x),
            case("NaN", lambda t: F.pad(t, (0, 0, 1, 0), value=nan), x),
            case("-0.0", lambda t: F.pad(t, (1, 0), value=-0.0), x),
        ]
    )


def test_circular_padding():
    """Padding that wraps around is assembled of slices."""
    check(lambda t: F.pad(t, (2, 1), mode="circular"), sample(F32, 2, 3, 6))


@pytest.mark.parametrize("dtype", (F32, BF16, I64, I8, BOOL), **IDS)
def test_scatters_of_regions(dtype):
    """slice_scatter, select_scatter, diagonal_scatter and as_strided_scatter: copies with a part replaced."""
    x = sample(dtype, 6, 8)
    y = sample(dtype, 6, 8)
    check_all(
        [
            case("slice rows", lambda t, s: torch.slice_scatter(t, s[:3], 0, 1, 4), x, y),
            case("slice step", lambda t, s: torch.slice_scatter(t, s[:, :3], 1, 1, 7, 2), x, y),
            case("slice open", lambda t, s: torch.slice_scatter(t, s[:2], 0, -2), x, y),
            case("slice all", lambda t, s: torch.slice_scatter(t, s), x, y),
            case("slice none", lambda t, s: torch.slice_scatter(t, s[:0], 0, 3, 3), x, y),
            case(
                "select",
                lambda t, s: (torch.select_scatter(t, s[0], 0, 2), torch.select_scatter(t, s[:, 0], 1, -1)),
                x,
                y,
            ),
            case(
                "diagonal",
                lambda t, s: (torch.diagonal_scatter(t, s[0, :6]), torch.diagonal_scatter(t, s[0, :4], -2)),
                x,
                y,
            ),
            case("strided", lambda t, s: torch.as_strided_scatter(t, s[:2, :3], (2, 3), (16, 2), 1), x, y),
            case(
                "nested", lambda t, s: torch.slice_scatter(t, torch.select_scatter(t[1:4], s[0], 0, 1), 0, 1, 4), x, y
            ),
        ]
    )


@pytest.mark.parametrize("diagonal", (-7, -2, -1, 0, 1, 3, 9))
def test_triangles(diagonal):
    """tril and triu of each shape and dtype; what is cut is zero even if it was NaN."""
    x = sample(F32, 5, 7)
    x[0, 6] = nan
    x[4, 0] = inf
    check_all(
        [
            case("lower", lambda t: t.tril(diagonal), x),
            case("upper", lambda t: t.triu(diagonal), x),
            case("batch", lambda t: (t.tril(diagonal), t.triu(diagonal)), sample(F32, 2, 3, 140, 5)),
            case("integers", lambda t: (t.tril(diagonal), t.triu(diagonal)), sample(I64, 4, 4)),
            case("bool", lambda t: torch.ones(5, 5, dtype=BOOL, device=t.device).tril(diagonal), x),
            case("mask", lambda t: t.masked_fill(torch.ones_like(t).triu(diagonal).bool(), -1.0), x),
        ]
    )


@pytest.mark.parametrize("dtype", (F32, BF16, F16, I64, I32, I8, U8), **IDS)
def test_ranges(dtype):
    """arange, linspace, full and eye, with steps, negative ends and results beyond a tile."""
    x = sample(F32, 3)

    def ranges(t):
        options = {"dtype": dtype, "device": t.device}
        results = [
            torch.arange(7, **options),
            torch.arange(2, 100, 7, **options),
            torch.full((3, 2), 5, **options),
            torch.eye(3, 5, **options),
        ]
        results += [torch.zeros(2, 3, **options), torch.ones(200, 3, **options), torch.full((), 3, **options)]
        if dtype.is_signed:
            results += [torch.arange(5, -4, -2, **options), torch.arange(-3, 3, **options)]
        if dtype.is_floating_point:
            results += [torch.arange(0, 2, 0.25, **options), torch.arange(1.5, -1, -0.5, **options)]
        return results

    def wide(t):
        options = {"dtype": dtype, "device": t.device}
        return torch.arange(3000, **options) if dtype in (F32, I64, I32) else torch.zeros(3000, **options)

    check_all([case("ranges", ranges, x), case("wide", wide, x)])


def test_ranges_in_floats():
    """arange of f32 with fractional steps, and of integers beyond 2^32."""
    check_all(
        [
            case(
                "steps",
                lambda t: (torch.arange(0, 1, 0.1, device=t.device), torch.arange(10, 0, -0.3, device=t.device)),
                torch.zeros(1),
            ),
            case("large integers", lambda t: torch.arange(2**40, 2**40 + 5, device=t.device), torch.zeros(1)),
        ]
    )


@pytest.mark.parametrize("how", ("eager", "compiled"))
def test_linspace(how):
    """Ends are exact, points as eager's (iree-org/iree#11924)."""
    check_all(
        [
            case(
                "fused",
                lambda t: torch.linspace(0, 1, 7, device=t.device) * t + torch.arange(7.0, device=t.device),
                torch.tensor(3.0),
            ),
            case(
                "points",
                lambda t: (
                    torch.linspace(-3, 5, 100, device=t.device),
                    torch.linspace(1, 0, 3, device=t.device),
                    torch.linspace(2, 9, 1, device=t.device),
                ),
                torch.zeros(1),
            ),
        ],
        eager=how == "eager",
        compiled=how == "compiled",
    )


def test_masks():
    """where and masked_fill with masks that broadcast, numbers and tensors of rank 0."""
    x, y = sample(F32, 4, 6), sample(F32, 4, 6)
    mask, row, column = sample(BOOL, 4, 6), sample(BOOL, 6), sample(BOOL, 4, 1)
    check_all(
        [
            case("tensors", torch.where, mask, x, y),
            case(
                "broadcast mask",
                lambda m, c, x, y: (torch.where(m, x, y), torch.where(c, x, y), torch.where(m & c, x, y)),
                row,
                column,
                x,
                y,
            ),
            case("broadcast values", lambda m, x: torch.where(m, x[:1], x[:, :1]), mask, x),
            case(
                "numbers",
                lambda m, x: (
                    torch.where(m, x, 0.0),
                    torch.where(m, 1.5, x),
                    torch.where(m, 1.0, 0.0),
                    torch.where(m, 1, 2),
                ),
                mask,
                x,
            ),
            case("rank 0", lambda m, x: (torch.where(m, x, x[0, 0]), x.masked_fill(m, x.amax())), mask, x),
            case("fill", lambda m, x: (x.masked_fill(m, -inf), x.masked_fill(~m, 0), x.masked_fill_(m, 7)), row, x),
            case(
                "mixed dtypes",
                lambda m, x: (
                    torch.where(m, x, x.to(BF16)),
                    torch.where(m, x.to(I64), x.to(I32)),
                    torch.where(m, x.to(I64), 0.5),
                ),
                mask,
                x,
            ),
            case(
                "where of where",
                lambda m, c, x, y: torch.where(c, torch.where(m, x, y), torch.where(m, y, x)),
                row,
                column,
                x,
                y,
            ),
        ]
    )


def test_assignments_by_position():
    """Assignments to slices, rows, elements and strided parts of a tensor made in the graph."""

    def assign(t):
        y = t.clone()
        y[1] = 0
        y[:, 2] = t[:, 0] * 2
        y[2:4, 3:] = t[:2, :3]
        y[::2, ::3] = -1.0
        y[-1, -1] = 100
        y[..., 1] += 1
        return y

    check(assign, sample(F32, 5, 6))
    check(assign, sample(I64, 5, 6))


def test_assignments_by_mask():
    """y[mask] = number and masked_fill_ on parts of a tensor."""

    def assign(t, m):
        y = t.clone()
        y[m] = -3.0
        y.masked_fill_(t > 1, 2.5)
        y[1:].masked_fill_(m[1:], 9)
        return y, torch.where(m, y, t)

    check(assign, sample(F32, 5, 6), sample(BOOL, 5, 6))


def test_repeated_elements():
    """repeat, repeat_interleave, tile and expand agree on which element comes where."""
    x = sample(F32, 3, 4)
    check_all(
        [
            case("repeat", lambda t: (t.repeat(2, 3), t.repeat(2, 1, 1), t.tile(3), t.repeat(0, 1)), x),
            case("interleave", lambda t: t[:, None].expand(3, 5, 4).reshape(15, 4), x),
            case("grouped heads", lambda t: t[:, :, None].expand(3, 4, 2).reshape(3, 8) * 2, x),
            case("outer", lambda t: t[:, :1] * t[:1], x),
            case("meshgrid", lambda t: torch.meshgrid(t[0], t[:, 0], indexing="ij"), x),
        ]
    )


def test_pixel_shuffles():
    """Reshapes with permutations, as image models use them."""
    x = sample(F32, 2, 12, 4, 6)
    check_all(
        [
            case("shuffle", lambda t: F.pixel_shuffle(t, 2), x),
            case("unshuffle", lambda t: F.pixel_unshuffle(t, 2), x),
            case("channels", lambda t: t.reshape(2, 3, 4, 4, 6).transpose(1, 2).reshape(2, 12, 4, 6), x),
            case("windows", lambda t: t.reshape(2, 12, 2, 2, 3, 2).permute(0, 2, 4, 3, 5, 1).reshape(-1, 4, 12), x),
        ]
    )

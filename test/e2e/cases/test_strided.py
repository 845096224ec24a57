# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Elements that lie apart in memory, overlapping windows, and parts that alternate every few bytes."""

from __future__ import annotations

import pytest
import torch
from checking import ALL_DTYPES, BF16, BOOL, F32, I64, case, check_all, check_gradients, sample

IDS = {"ids": lambda value: str(value).removeprefix("torch.")}


def again(t):
    """One operation on any dtype, so that something is computed from what was read."""
    return ~t if t.dtype == BOOL else t + t


APART = {
    "every second": lambda t: again(t[..., ::2]),
    "every second, shifted": lambda t: again(t[..., 1::2]),
    "every third row and second column": lambda t: again(t[:, 1::3, ::2]),
    "every seventh": lambda t: again(t[..., 3::7]),
    "mirrored": lambda t: again(t.flip(-1)),
    "mirrored in both": lambda t: again(t.flip(-2, -1)),
    "mirrored halves": lambda t: again(t.flip(-1)[..., ::2]),
    "mirrored and as it is": lambda t: t.flip(-1) & t if t.dtype == BOOL else t.flip(-1) - t,
    "pairs": lambda t: t[..., ::2] | t[..., 1::2] if t.dtype == BOOL else t[..., ::2] * t[..., 1::2],
    "windows of rows": lambda t: again(t.unfold(-1, 5, 2)),
    "windows": lambda t: again(t.unfold(-1, 3, 1).unfold(-2, 3, 1)),
    "windows with holes": lambda t: again(t.unfold(-1, 9, 4)[..., ::3]),
    "transposed": lambda t: again(t[..., ::2].transpose(-1, -2)),
    "largest of windows": lambda t: t.unfold(-1, 4, 3).amax(-1),
}


@pytest.mark.parametrize("name", APART)
def test_elements_that_lie_apart(name):
    cases = [
        case(f"{dtype} {shape}", APART[name], sample(dtype, *shape))
        for dtype in ALL_DTYPES
        for shape in ((3, 150, 64), (1, 12, 1030))
    ]
    check_all(cases[::2], compiled=False)
    check_all(cases, eager=False)


def test_arguments_with_holes():
    """What lies between the elements of an argument is read at most, and never changed."""
    cases = []
    for dtype in (F32, BF16, I64):
        whole = sample(dtype, 40, 96)
        cases += [
            case(f"{dtype} columns", again, whole[:, ::3]),
            case(f"{dtype} in place", lambda t: t.add_(1), whole[:, 1::2]),
            case(f"{dtype} by strides", again, whole.as_strided((7, 5, 4), (40, 3, 9), 11)),
            case(f"{dtype} two of one", lambda t: (t[:, ::2].add_(t[:, 1::2]), t), whole.clone()),
        ]
    check_all(cases)


ALTERNATING = {
    "stack of two": lambda a, b: torch.stack([a, b], -1),
    "interleaved": lambda a, b: torch.stack([a, again(b)], -1).flatten(-2),
    "stack of three": lambda a, b: torch.stack([a, b, again(a)], -1),
    "before the last": lambda a, b: torch.stack([a, b], -2),
    "short rows": lambda a, b: torch.stack([a[..., :3], b[..., :3]], -2),
    "nine": lambda a, b: torch.stack([a, b] * 4 + [a], -1),
    "columns joined": lambda a, b: torch.cat([a[..., :1], b[..., 2:3], a[..., 4:5]], -1),
    "inserted": lambda a, b: torch.cat([a, a], -1).slice_scatter(b, -1, 0, None, 2),
    "inserted behind": lambda a, b: torch.cat([a, a], -1).slice_scatter(b, -1, 1, None, 2),
    "every fourth": lambda a, b: a.slice_scatter(b[..., ::4], -1, 3, None, 4),
    "every second, not the last": lambda a, b: a.slice_scatter(b[..., 1::2], -1, 0, a.shape[-1] - 1, 2),
    "every 32nd": lambda a, b: a.slice_scatter(b[..., ::32], -1, 5, None, 32),
}


@pytest.mark.parametrize("name", ALTERNATING)
def test_parts_that_alternate(name):
    check_all(
        [
            case(str(dtype), ALTERNATING[name], sample(dtype, 3, 50, 64), sample(dtype, 3, 50, 64))
            for dtype in ALL_DTYPES
        ]
    )


def test_special_values_alternate():
    """Selection by index keeps every bit: NaN and infinities do not reach their neighbours."""
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 1e-40, 3e38, -1.0]).repeat(5, 4)
    for dtype in (F32, BF16, torch.float16):
        check_all(
            [case(str(dtype), lambda a, b: torch.stack([a, b], -1), x.to(dtype), x.flip(-1).contiguous().to(dtype))]
        )


def rotated(x, cos, sin):
    """A rotary embedding of neighbouring pairs."""
    first, second = x[..., ::2], x[..., 1::2]
    return torch.stack([first * cos - second * sin, first * sin + second * cos], -1).flatten(-2)


def test_rotary_embedding_of_pairs():
    angles = torch.randn(12, 8)
    x = torch.randn(2, 3, 12, 16)
    check_all([case("rotary embedding", rotated, x, angles.cos(), angles.sin())])
    check_gradients(rotated, x.requires_grad_(), angles.cos(), angles.sin())


def test_gradients_of_elements_that_lie_apart():
    for name in ("every second", "every third row and second column", "mirrored halves", "windows", "pairs"):
        check_gradients(APART[name], torch.randn(2, 12, 30, requires_grad=True))

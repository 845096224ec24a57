# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Tensors for cases: shapes, memory layouts and values that have broken compilers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch

F32, BF16, F16 = torch.float32, torch.bfloat16, torch.float16
I8, U8, I16, I32, I64, BOOL = torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool
FLOATS = (F32, BF16, F16)
INTS = (I64, I32, I16, I8, U8)

SHAPES = [(2, 3, 4), (), (1,), (0,), (37,), (3, 5), (2, 0, 3), (1, 2, 1, 3, 1, 2, 1, 2), (130, 3)]
# Pairs that broadcast.
PAIRS = [
    ((2, 3, 4), (2, 3, 4)),
    ((3, 1), (1, 4)),
    ((), (2, 3)),
    ((2, 3), ()),
    ((4,), (2, 1, 4)),
    ((), ()),
    ((0,), (1,)),
    ((2, 0, 3), (3,)),
    ((1, 2, 1, 3, 1, 2, 1, 2), (2, 1, 2)),
    ((37,), (37,)),
]

inf, nan = float("inf"), float("nan")
FLOAT_EDGES = [
    nan,
    inf,
    -inf,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    1e-40,
    -1e-40,
    3.0,
    -3.0,
    6.0,
    20.5,
    100.0,
    -100.0,
    16777217.0,
    3.3e38,
    -3.3e38,
    65504.0,
    1e-7,
]
# Finite and moderate: for functions that lose all precision elsewhere.
MILD_EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -3.0, nan, inf, -inf]


def int_edges(dtype: torch.dtype) -> list[int]:
    info = torch.iinfo(dtype)
    wide = [2**24 + 1, -(2**24) - 1, 2**31 - 1, -(2**31), 2**32 + 7, -(2**32) - 7, 2**53 + 1]
    return [info.min, info.max, 0, 1, 2, 3, 7, info.max - 1, *[v for v in wide if info.min <= v <= info.max]] + (
        [] if info.min == 0 else [-1, -2, -7]
    )


def fill(dtype: torch.dtype, shape, scale=2.0, edges=True, low=None, high=None) -> torch.Tensor:
    """Random values with edge values among them."""
    if dtype == BOOL:
        return torch.rand(shape) < 0.5
    if dtype.is_floating_point:
        x = torch.randn(shape) * scale if low is None else torch.rand(shape) * (high - low) + low
        choices = torch.tensor(edges if isinstance(edges, list) else FLOAT_EDGES)
    else:
        info = torch.iinfo(dtype)
        span = (max(info.min, -100), min(info.max, 100)) if low is None else (int(low), int(high))
        x = torch.randint(span[0], span[1] + 1, shape, dtype=I64)
        whole = [int(e) for e in edges if abs(e) < inf and info.min <= e <= info.max] if isinstance(edges, list) else []
        choices = torch.tensor(whole or int_edges(dtype), dtype=I64)
    if edges is not False and x.numel():
        mask = torch.rand(x.shape) < 0.4
        picks = choices[torch.randint(0, len(choices), x.shape)]
        x = torch.where(mask, picks, x)
    return x.to(dtype)


def layout(x: torch.Tensor, kind: int) -> torch.Tensor:
    """The same values with other strides."""
    kind %= 5
    if kind == 1 and x.dim() >= 2:
        order = list(range(x.dim()))[::-1]
        return x.permute(order).contiguous().permute(order)
    if kind == 2 and x.dim() >= 1:
        wide = torch.empty(*x.shape[:-1], x.shape[-1] * 2, dtype=x.dtype)
        view = wide[..., ::2]
        view.copy_(x)
        return view
    if kind == 3:
        flat = torch.empty(x.numel() + 3, dtype=x.dtype)
        view = flat[3:].view(x.shape)
        view.copy_(x)
        return view
    if kind == 4 and x.dim() >= 1 and x.numel():
        return x[:1].expand(x.shape)
    return x


_counter = itertools.count()


def make(dtype: torch.dtype, shape, **options) -> torch.Tensor:
    return layout(fill(dtype, shape, **options), next(_counter))


def spread(dtype: torch.dtype, shape, **options) -> torch.Tensor:
    """Never expanded: statistics of equal values only measure rounding."""
    return layout(fill(dtype, shape, **options), next(_counter) % 4)


def each(dtypes, shapes=SHAPES, **options) -> Iterator[torch.Tensor]:
    for shape in shapes:
        for dtype in dtypes:
            yield make(dtype, shape, **options)


# The dtype pairs of binary operators: equal ones, then promotions.
FLOAT_PAIRS = [(d, d) for d in FLOATS] + [(F32, BF16), (F16, BF16), (BF16, F32)]
INT_PAIRS = [(d, d) for d in INTS] + [(I8, U8), (I32, I64), (I64, I16), (U8, I16)]
MIXED_PAIRS = [(F32, I64), (I32, F32), (BF16, I64), (BOOL, F32), (F16, BOOL), (I64, BOOL), (BOOL, U8)]

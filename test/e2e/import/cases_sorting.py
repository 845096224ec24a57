# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Cases of sorting. Which of equal elements comes first is fixed for stable sorts only."""

from __future__ import annotations

import torch
from cases import REFERENCES, cases
from generators import BF16, BOOL, F16, F32, I8, I32, I64, U8, inf, make, nan

DTYPES = (F32, BF16, F16, I64, I32, I8, U8)
SHAPES = (((5,), 0), ((3, 7), -1), ((4, 3, 2), 1), ((), 0), ((2, 33), 1), ((1, 1), 0))


def _rows():
    for dtype in DTYPES:
        for shape, dim in SHAPES:
            yield make(dtype, shape, edges=False), dim
    for shape, dim in SHAPES:
        yield torch.randint(0, 3, shape).to(F32), dim
    yield torch.tensor([1.0, nan, inf, -inf, nan, 0.0, -inf, 2.0]), 0
    yield torch.tensor([-inf, -inf, -inf]), 0
    yield torch.tensor([2**40 + 1, 2**40, -(2**62), 2**62, 3]), 0


def _distinct(x, dim):
    rows = x.movedim(dim, -1).flatten(0, -2) if x.dim() > 1 else x.reshape(1, -1)
    return all(len(row.unique()) == len(row) for row in rows)


@cases("aten.sort.stable")
def _sort_stable():
    for x, dim in _rows():
        for descending in (False, True):
            yield (x,), {"stable": True, "dim": dim, "descending": descending}
    yield (make(BOOL, (3, 9)),), {"stable": True, "dim": 1}


# Without a promise of stability PyTorch gives one of the orders; ours is the stable one.
REFERENCES["aten.sort.default"] = lambda x, dim=-1, descending=False: torch.sort(
    x, stable=True, dim=dim, descending=descending
)


@cases("aten.sort.default")
def _sort():
    for x, dim in _rows():
        for descending in (False, True):
            yield (x, dim, descending), {}


def _first_of_sorted(x, k, dim=-1, largest=True, sorted=True):
    values, indices = torch.sort(x, stable=True, dim=dim, descending=largest)
    return (values.narrow(dim, 0, k), indices.narrow(dim, 0, k)) if x.dim() else (values, indices)


REFERENCES["aten.topk.default"] = _first_of_sorted


@cases("aten.topk.default")
def _topk():
    for x, dim in _rows():
        length = x.shape[dim] if x.dim() else 1
        for k in sorted({1, (length + 1) // 2, length}):
            yield (x, k, dim), {}
            yield (x, k, dim, False), {}
    # Found one after the other.
    for dtype in (F32, BF16, I32):
        yield (make(dtype, (3, 5000), edges=False), 6), {}
    yield (torch.full((2, 3000), -inf), 4), {}
    ties = torch.randint(0, 3, (2, 3000)).to(F32)
    ties[0, 7], ties[0, 2500] = nan, nan
    yield (ties, 5), {}


@cases("aten.kthvalue.default")
def _kthvalue():
    for x, dim in _rows():
        length = x.shape[dim] if x.dim() else 1
        if not _distinct(x, dim):
            continue
        for k in sorted({1, (length + 1) // 2, length}):
            yield (x, k, dim), {}
            yield (x, k, dim, True), {}

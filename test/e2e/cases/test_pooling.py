# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Pooling in one, two and three dimensions, with its gradients."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from checking import BF16, F16, F32, case, check_all, check_gradients, inf, nan, sample

MAX = {
    "1d": (F.max_pool1d, (2, 3, 17), {"kernel_size": 3, "stride": 2}),
    "1d dilated": (F.max_pool1d, (2, 3, 40), {"kernel_size": 3, "dilation": 4, "padding": 1}),
    "2d": (F.max_pool2d, (2, 5, 18, 22), {"kernel_size": 2}),
    "2d padded": (F.max_pool2d, (2, 5, 19, 23), {"kernel_size": 3, "stride": 2, "padding": 1}),
    "2d uneven": (F.max_pool2d, (1, 4, 20, 31), {"kernel_size": (3, 2), "stride": (1, 3), "padding": (1, 0)}),
    "2d rounded up": (F.max_pool2d, (2, 3, 18, 18), {"kernel_size": 3, "stride": 2, "ceil_mode": True}),
    "2d unbatched": (F.max_pool2d, (5, 18, 22), {"kernel_size": 2}),
    "3d": (F.max_pool3d, (1, 3, 8, 9, 10), {"kernel_size": 2, "stride": 2}),
}
AVERAGE = {
    "1d": (F.avg_pool1d, (2, 3, 17), {"kernel_size": 4, "stride": 2}),
    "2d": (F.avg_pool2d, (2, 5, 18, 22), {"kernel_size": 2}),
    "2d padded": (F.avg_pool2d, (2, 5, 19, 23), {"kernel_size": 3, "stride": 2, "padding": 1}),
    "2d padding not counted": (
        F.avg_pool2d,
        (2, 5, 19, 23),
        {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False},
    ),
    "2d divisor": (F.avg_pool2d, (2, 5, 18, 18), {"kernel_size": 3, "divisor_override": 7}),
    "3d": (F.avg_pool3d, (1, 3, 8, 9, 10), {"kernel_size": 2, "stride": 2}),
    "global": (F.adaptive_avg_pool2d, (2, 5, 14, 15), {"output_size": 1}),
}
POOLS = {f"max {name}": entry for name, entry in MAX.items()} | {f"average {n}": e for n, e in AVERAGE.items()}


@pytest.mark.parametrize("name", POOLS)
def test_pooling(name):
    function, shape, options = POOLS[name]
    # Eager adds the elements of a window in another order.
    check_all(
        [
            case(str(dtype), lambda t: function(t, **options), sample(dtype, *shape), rtol=tolerance, atol=1e-6)
            for dtype, tolerance in ((F32, 3e-6), (BF16, 8e-3), (F16, 1e-3))
            if dtype == F32 or name != "average 3d"  # which the CPU refuses
        ]
    )
    check_gradients(lambda t: function(t, **options), torch.randn(shape, requires_grad=True))


@pytest.mark.parametrize("name", MAX)
def test_positions_of_the_largest(name):
    """The first of equal elements, NaN above all; the padding is never chosen."""
    function, shape, options = MAX[name]
    x = torch.randint(-2, 3, shape).float()
    special = torch.where(torch.rand(shape) < 0.2, torch.tensor(nan), torch.full(shape, -inf))
    check_all(
        [
            case(n, lambda t: function(t, return_indices=True, **options), v)
            for n, v in (("ties", x), ("special", special))
        ]
    )

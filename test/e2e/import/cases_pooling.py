# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Cases of pooling."""

from __future__ import annotations

import torch
from cases import cases
from generators import F32, FLOATS, MILD_EDGES, inf, layout, make

# Input, kernel, stride, padding, dilation, whether the number of windows is rounded up.
WINDOWS = {
    2: [
        ((2, 3, 8, 7), [2], [], [0], [1], False),
        ((1, 3, 9, 8), [3], [2], [1], [1], False),
        ((3, 7, 8), [3, 2], [2, 3], [1, 0], [2, 1], True),
        ((2, 2, 5, 6), [4, 5], [1, 2], [2, 2], [1, 1], True),
        ((1, 2, 6, 7), [6, 7], [6, 7], [0], [1], False),
        ((1, 2, 3, 3), [1], [3], [0], [1], True),
        ((0, 2, 4, 4), [2], [2], [0], [1], False),
    ],
    3: [((1, 2, 4, 5, 3), [2, 3, 1], [1, 2, 1], [1, 1, 0], [1], False), ((2, 3, 4, 4), [2], [], [0], [1], True)],
}


def _inputs(rank: int):
    for position, (shape, *options) in enumerate(WINDOWS[rank]):
        for dtype in FLOATS:
            x = make(dtype, shape, edges=MILD_EDGES)
            # The CPU refuses some layouts of volumes.
            yield x if rank == 2 else x.contiguous(), options
        # Windows of equal elements, and of nothing above the padding.
        if rank == 2 and position in (1, 3):
            yield torch.zeros(shape), options
            yield torch.full(shape, -inf), options
            for kind in range(1, 5):
                yield layout(make(F32, shape, edges=MILD_EDGES), kind), options
            if len(shape) == 4:
                yield make(F32, shape, edges=MILD_EDGES).contiguous(memory_format=torch.channels_last), options


def _register(rank: int):
    operators = torch.ops.aten
    maximum = getattr(operators, f"max_pool{rank}d_with_indices")
    average = getattr(operators, f"avg_pool{rank}d")

    @cases(f"aten.max_pool{rank}d_with_indices.default")
    def _maximum():
        for x, options in _inputs(rank):
            yield (x, *options), {}

    @cases(f"aten.max_pool{rank}d_with_indices_backward.default")
    def _maximum_backward():
        for x, options in _inputs(rank):
            values, indices = maximum(x, *options)
            grad = make(x.dtype, values.shape, edges=False)
            kernel, stride, *rest = options
            yield (grad, x, kernel, stride or kernel, *rest, indices), {}

    @cases(f"aten.avg_pool{rank}d.default")
    def _average():
        for x, (kernel, stride, padding, _, ceil_mode) in _inputs(rank):
            for include, divisor in ((True, None), (False, None), (True, 3)):
                yield (x, kernel, stride, padding, ceil_mode, include, divisor), {}

    @cases(f"aten.avg_pool{rank}d_backward.default")
    def _average_backward():
        for x, (kernel, stride, padding, _, ceil_mode) in _inputs(rank):
            for include, divisor in ((True, None), (False, None), (True, 3)):
                options = kernel, stride or kernel, padding, ceil_mode, include, divisor
                yield (make(x.dtype, average(x.float(), *options).shape, edges=False), x, *options), {}


_register(2)
_register(3)

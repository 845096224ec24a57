# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Cases of convolutions."""

from __future__ import annotations

import torch
from cases import cases
from generators import F32, FLOATS, layout, make

PLAIN = {"edges": False, "scale": 1.0}
# Input, weight, stride, padding, dilation, groups.
WINDOWS = [
    ((2, 3, 9), (4, 3, 3), [1], [0], [1], 1),
    ((2, 3, 9), (4, 3, 3), [2], [1], [2], 1),
    ((2, 4, 9), (6, 2, 3), [2], [4], [1], 2),
    ((2, 3, 8, 7), (4, 3, 3, 2), [1, 1], [0, 0], [1, 1], 1),
    ((2, 3, 8, 7), (4, 3, 3, 2), [2, 3], [1, 2], [2, 1], 1),
    ((2, 4, 6, 6), (4, 1, 3, 3), [1, 1], [1, 1], [1, 1], 4),
    ((2, 3, 8, 8), (5, 3, 4, 4), [4, 4], [0, 0], [1, 1], 1),
    ((1, 3, 5, 5), (4, 3, 1, 1), [1, 1], [0, 0], [1, 1], 1),
    ((1, 3, 5, 5), (4, 3, 1, 1), [2, 2], [1, 1], [1, 1], 1),
    ((0, 3, 5, 5), (4, 3, 2, 2), [1, 1], [0, 0], [1, 1], 1),
    ((1, 2, 4, 5, 6), (3, 2, 2, 3, 2), [1, 2, 1], [1, 0, 1], [1, 1, 2], 1),
]
# The same with an output padding.
TRANSPOSED = [
    ((2, 3, 5), (3, 4, 3), [2], [1], [1], [1], 1),
    ((2, 4, 4, 5), (4, 2, 3, 2), [2, 3], [1, 0], [1, 2], [1, 0], 2),
    ((1, 3, 4, 4), (3, 2, 2, 2), [2, 2], [0, 0], [1, 1], [0, 0], 1),
    ((1, 3, 4, 4), (3, 2, 1, 1), [1, 1], [1, 1], [1, 1], [0, 0], 1),
    ((1, 2, 3, 3, 3), (2, 3, 2, 2, 2), [2, 1, 2], [0, 1, 0], [1, 1, 1], [1, 0, 0], 1),
]


def _calls():
    for x, weight, stride, padding, dilation, groups in WINDOWS:
        yield x, weight, weight[0], (stride, padding, dilation, False, [0] * len(stride), groups)
    for x, weight, stride, padding, dilation, output_padding, groups in TRANSPOSED:
        yield x, weight, weight[1] * groups, (stride, padding, dilation, True, output_padding, groups)


@cases("aten.convolution.default")
def _convolution():
    for dtype in FLOATS:
        for x, weight, channels, options in _calls():
            for bias in (None, make(dtype, (channels,), **PLAIN)):
                yield (make(dtype, x, **PLAIN), make(dtype, weight, **PLAIN), bias, *options), {}
    for kind in range(1, 5):
        x, weight, _, options = list(_calls())[4]
        yield (layout(make(F32, x, **PLAIN), kind), layout(make(F32, weight, **PLAIN), kind), None, *options), {}


@cases("aten.convolution_backward.default")
def _convolution_backward():
    for dtype in FLOATS:
        for x, weight, channels, options in _calls():
            x, weight = make(dtype, x, **PLAIN), make(dtype, weight, **PLAIN)
            grad = make(dtype, torch.ops.aten.convolution(x, weight, None, *options).shape, **PLAIN)
            for mask in ([True, True, True], [False, True, False]):
                yield (grad, x, weight, [channels], *options, mask), {}

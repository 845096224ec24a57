# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Convolutions (aws-neuron/aws-neuron-sdk#398, #1295): strides, padding, dilation, groups, transposed; gradients."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from checking import BF16, F32, case, check_all, check_gradients, sample

# Function, input, weight, channels of the bias.
CONVOLUTIONS = {
    "1d": (lambda x, w, b: F.conv1d(x, w, b, 2, 3, 2), (2, 3, 20), (4, 3, 5), 4),
    "2d": (lambda x, w, b: F.conv2d(x, w, b, (2, 1), (1, 2)), (2, 3, 9, 12), (4, 3, 3, 2), 4),
    "same": (lambda x, w, b: F.conv2d(x, w, b, padding="same", dilation=2), (1, 3, 9, 8), (4, 3, 3, 3), 4),
    "patches": (lambda x, w, b: F.conv2d(x, w, b, 8), (2, 3, 32, 32), (20, 3, 8, 8), 20),
    "points": (lambda x, w, b: F.conv2d(x, w, b), (2, 6, 5, 7), (8, 6, 1, 1), 8),
    "groups": (lambda x, w, b: F.conv2d(x, w, b, groups=2), (2, 4, 6, 6), (6, 2, 3, 3), 6),
    "depthwise": (lambda x, w, b: F.conv2d(x, w, b, padding=1, groups=4), (2, 4, 6, 6), (4, 1, 3, 3), 4),
    "depthwise 1d": (lambda x, w, b: F.conv1d(x, w, b, padding=3, groups=130), (2, 130, 33), (130, 1, 4), 130),
    "depthwise stepped": (
        lambda x, w, b: F.conv2d(x, w, b, (2, 3), (1, 0), (1, 2), 5),
        (2, 5, 11, 17),
        (5, 1, 3, 4),
        5,
    ),
    "two filters per channel": (lambda x, w, b: F.conv2d(x, w, b, groups=3), (2, 3, 6, 6), (6, 1, 3, 3), 6),
    "depthwise transposed": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1, groups=4),
        (2, 4, 7, 6),
        (4, 1, 3, 3),
        4,
    ),
    "depthwise 3d": (lambda x, w, b: F.conv3d(x, w, b, groups=2), (1, 2, 5, 6, 7), (2, 1, 3, 2, 3), 2),
    "3d": (lambda x, w, b: F.conv3d(x, w, b, 1, 1), (2, 3, 5, 6, 7), (4, 3, 3, 2, 3), 4),
    "transposed 1d": (lambda x, w, b: F.conv_transpose1d(x, w, b, 2, 1), (2, 3, 9), (3, 4, 4), 4),
    "transposed 2d": (lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1), (1, 3, 8, 6), (3, 2, 3, 3), 2),
}


@pytest.mark.parametrize("dtype", (F32, BF16), ids=("float32", "bfloat16"))
def test_convolutions(dtype):
    options = {"rtol": 1e-4, "atol": 1e-4} if dtype == F32 else {"rtol": 2e-2, "atol": 2e-2}
    cases = []
    for name, (function, x, weight, channels) in CONVOLUTIONS.items():
        arguments = [sample(dtype, *x), sample(dtype, *weight)]
        cases.append(case(name, function, *arguments, sample(dtype, channels), **options))
        cases.append(case(f"{name}, no bias", function, *arguments, None, **options))
    check_all(cases, batch=5)


def test_memory_formats():
    """Inputs in channels_last (where the CPU's results are too, and the device's are not) and with strides."""
    x, weight = sample(F32, 2, 3, 9, 8), sample(F32, 4, 3, 3, 3)
    last = x.contiguous(memory_format=torch.channels_last)
    options = {"rtol": 1e-4, "atol": 1e-4}
    check_all(
        [
            case("channels_last", lambda x, w: F.conv2d(x, w), last, weight, strides=False, **options),
            case("part", lambda x, w: F.conv2d(x[:, :, 1:, ::2], w), x, weight, **options),
            case("computed", lambda x, w: F.relu(F.conv2d(F.relu(x), w * 2)), x, weight, **options),
        ]
    )


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_gradients_of_convolutions(name):
    function, x, weight, channels = CONVOLUTIONS[name]
    arguments = [sample(F32, *shape).requires_grad_() for shape in (x, weight, (channels,))]
    check_gradients(function, *arguments, rtol=1e-3, atol=1e-3)

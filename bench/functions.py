# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The functions that are measured. "Naive" forms are written out in elementary operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

EPSILON = 1e-6


def naive_rms_norm(x, weight):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + EPSILON) * weight


def naive_softmax(x):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def naive_layer_norm(x, weight, bias):
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt((centred * centred).mean(-1, keepdim=True) + EPSILON) * weight + bias


def residual_rms_norm(x, residual, weight):
    """Two tensors in, two out: the sum is what the next block adds to."""
    total = x + residual
    return total, naive_rms_norm(total, weight)


def rms_norm(x, weight):
    return F.rms_norm(x, x.shape[-1:], weight, EPSILON)


def softmax(x):
    return F.softmax(x, -1)


def layer_norm(x, weight, bias):
    return F.layer_norm(x, x.shape[-1:], weight, bias, EPSILON)


def layer_norm_gelu(x, weight, bias):
    return F.gelu(layer_norm(x, weight, bias))


def elementwise_chain(x):
    """100 operators: eleven in each of nine rounds, each on the result of the one before, and a last addition."""
    y = x
    for k in range(9):
        y = y + 0.01 * k
        y = y * (1.0 + 0.001 * k)
        y = torch.sigmoid(y)
        y = y - 0.5
        y = torch.tanh(y)
        y = torch.maximum(y, x)
        y = y * x
        y = torch.relu(y)
        y = torch.abs(y)
        y = torch.exp(torch.neg(y))
    return y + x


@dataclass(frozen=True)
class Case:
    """A function, how many tensors of [rows, columns] it takes and how many weights of [columns] after them."""

    name: str
    function: Callable
    tensors: int
    weights: int
    outputs: int = 1

    def arguments(
        self, rows: int, columns: int, dtype: torch.dtype, device: str, fill: bool = True
    ) -> list[torch.Tensor]:
        """Normally distributed tensors, always the same; uninitialised ones without `fill`."""
        sizes = [(rows, columns)] * self.tensors + [(columns,)] * self.weights
        if not fill:
            return [torch.empty(size, dtype=dtype, device=device) for size in sizes]
        generator = torch.Generator().manual_seed(0)
        return [torch.randn(size, generator=generator).to(dtype).to(device) for size in sizes]

    def moved_bytes(self, rows: int, columns: int, dtype: torch.dtype) -> int:
        """Bytes of all inputs and outputs: the least that has to cross HBM."""
        return ((self.tensors + self.outputs) * rows + self.weights) * columns * dtype.itemsize


NAIVE_RMS_NORM = Case("naive RMSNorm", naive_rms_norm, 1, 1)
NAIVE_SOFTMAX = Case("naive softmax", naive_softmax, 1, 0)
NAIVE_LAYER_NORM = Case("naive layer norm", naive_layer_norm, 1, 2)
RESIDUAL_RMS_NORM = Case("residual + RMSNorm", residual_rms_norm, 2, 1, outputs=2)
RMS_NORM = Case("F.rms_norm", rms_norm, 1, 1)
SOFTMAX = Case("F.softmax", softmax, 1, 0)
LAYER_NORM = Case("F.layer_norm", layer_norm, 1, 2)
LAYER_NORM_GELU = Case("layer norm + gelu", layer_norm_gelu, 1, 2)
ELEMENTWISE_CHAIN = Case("100-operator chain", elementwise_chain, 1, 0)

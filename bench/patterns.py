# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""What patterns of models beside large products cost on the modelled device: section `pattern`.

Bound: bytes of inputs and outputs at the planning rate of the DMA engines, for convolutions also their operations at the
peak of the tensor engine. The bars hold what was reached; docs/Performance.md says what limits each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from measure import Row
from modelling import BF16, FP32, MachineModel, bounded_rows


@dataclass(frozen=True)
class Pattern:
    """A function of tensors of `sizes`, and of one with this number of labels, and the share of the bound to reach."""

    name: str
    function: Callable
    sizes: tuple[tuple[int, ...], ...]
    dtype: torch.dtype
    bar: float
    labels: int = 0
    flops: float = 0.0

    def arguments(self, device: str = "neuron") -> list[torch.Tensor]:
        tensors = [torch.empty(size, dtype=self.dtype, device=device) for size in self.sizes]
        return tensors + ([torch.empty(self.labels, dtype=torch.int64, device=device)] if self.labels else [])

    def bound(self, model: MachineModel) -> float:
        """Seconds."""
        arguments = self.arguments("meta")
        results = self.function(*arguments)
        tensors = [*arguments, *(results if isinstance(results, tuple) else (results,))]
        moved = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        return max(moved / model.planning_bytes_per_second(), self.flops / model.tensor_flops(self.dtype))


def _rotated_pairs(x, cos, sin):
    first, second = x[..., ::2], x[..., 1::2]
    return torch.stack([first * cos - second * sin, first * sin + second * cos], -1).flatten(-2)


def _assigned(x, y):
    z = torch.zeros_like(x)
    z[..., ::2] = y
    return z


def _residual_norm(x, weight, residual, scale):
    return F.layer_norm(F.linear(x, weight) + residual, scale.shape, scale)


def _convolution(
    name: str, batch: int, channels: int, side: int, filters: int, kernel: int, step: int, groups: int, bar
):
    padding = 0 if step == kernel else kernel // 2
    positions = ((side + 2 * padding - kernel) // step + 1) ** 2

    def function(x, weight):
        return F.conv2d(x, weight, stride=step, padding=padding, groups=groups)

    sizes = (batch, channels, side, side), (filters, channels // groups, kernel, kernel)
    flops = 2.0 * batch * positions * filters * (channels // groups) * kernel**2
    return Pattern(f"{name} {list(sizes[0])} bf16", function, sizes, BF16, bar, flops=flops)


PATTERNS = (
    Pattern("x.flip(-1) [2048, 2048] bf16", lambda x: x.flip(-1), ((2048, 2048),), BF16, 0.85),
    Pattern("x[..., ::2] + 1 [4096, 4096] fp32", lambda x: x[..., ::2] + 1, ((4096, 4096),), FP32, 0.85),
    Pattern(
        "stack of two, last dimension, [2048, 2048] bf16",
        lambda x, y: torch.stack([x, y], -1),
        ((2048, 2048),) * 2,
        BF16,
        0.45,
    ),
    Pattern(
        "rotary embedding of pairs [2, 32, 512, 128] bf16",
        _rotated_pairs,
        ((2, 32, 512, 128), (512, 64), (512, 64)),
        BF16,
        0.22,
    ),
    Pattern("z[..., ::2] = y [2048, 2048] bf16", _assigned, ((2048, 2048), (2048, 1024)), BF16, 0.50),
    Pattern("F.glu [2048, 8192] bf16", F.glu, ((2048, 8192),), BF16, 0.85),
    _convolution("patches of 16 x 16, 768 filters", 1, 3, 224, 768, 16, 16, 1, 0.13),
    _convolution("3 x 3, 64 filters", 4, 64, 56, 64, 3, 1, 1, 0.03),
    _convolution("7 x 7 in steps of 2, 64 filters", 8, 3, 224, 64, 7, 2, 1, 0.03),
    _convolution("3 x 3 per channel", 4, 64, 56, 64, 3, 1, 64, 0.02),
    Pattern(
        "causal conv1d per channel [2, 1536, 512] bf16",
        lambda x, w: F.conv1d(x, w, padding=3, groups=1536),
        ((2, 1536, 512), (1536, 1, 4)),
        BF16,
        0.10,
    ),
    Pattern(
        "max_pool2d, 3 in steps of 2, [4, 64, 112, 112] bf16",
        lambda x: F.max_pool2d(x, 3, 2, 1),
        ((4, 64, 112, 112),),
        BF16,
        0.06,
    ),
    Pattern("avg_pool2d, 2, [4, 64, 56, 56] bf16", lambda x: F.avg_pool2d(x, 2), ((4, 64, 56, 56),), BF16, 0.12),
    Pattern("softmax [128, 32000] bf16", lambda x: x.softmax(-1), ((128, 32000),), BF16, 0.40),
    Pattern("log_softmax [1024, 32000] fp32", lambda x: x.log_softmax(-1), ((1024, 32000),), FP32, 0.55),
    Pattern("logsumexp [1024, 50257] fp32", lambda x: x.logsumexp(-1), ((1024, 50257),), FP32, 0.80),
    Pattern("cross_entropy [1024, 32000] fp32", F.cross_entropy, ((1024, 32000),), FP32, 0.20, labels=1024),
    Pattern("cross_entropy [1024, 50257] fp32", F.cross_entropy, ((1024, 50257),), FP32, 0.23, labels=1024),
    Pattern(
        "linear + residual + layer norm, 128 x 3072 x 768 bf16",
        _residual_norm,
        ((128, 3072), (768, 3072), (128, 768), (768,)),
        BF16,
        0.5,
    ),
    Pattern(
        "residual + layer norm [4096, 768] bf16",
        lambda x, r, w, b: F.layer_norm(x + r, w.shape, w, b),
        ((4096, 768), (4096, 768), (768,), (768,)),
        BF16,
        0.45,
    ),
    Pattern(
        "layer norm without bias [4096, 3072] bf16",
        lambda x, w: F.layer_norm(x, w.shape, w),
        ((4096, 3072), (3072,)),
        BF16,
        0.8,
    ),
    Pattern(
        "group_norm of 32 groups [4, 64, 56, 56] bf16", lambda x: F.group_norm(x, 32), ((4, 64, 56, 56),), BF16, 0.4
    ),
    Pattern("cumsum along rows [2048, 2048] fp32", lambda x: x.cumsum(-1), ((2048, 2048),), FP32, 0.9),
    Pattern("cumsum along rows [2048, 2048] bf16", lambda x: x.cumsum(-1), ((2048, 2048),), BF16, 0.55),
    Pattern(
        "binary_cross_entropy_with_logits [4096, 4096] fp32",
        F.binary_cross_entropy_with_logits,
        ((4096, 4096),) * 2,
        FP32,
        0.5,
    ),
    Pattern("dropout [2048, 4096] bf16", lambda x: F.dropout(x, 0.1, True), ((2048, 4096),), BF16, 0.02),
)


def pattern_rows() -> list[Row]:
    """Modelled kernel time against the bound."""
    return bounded_rows("pattern", PATTERNS)

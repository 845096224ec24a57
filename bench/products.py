# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""What matrix products and attention cost on the modelled device: section `product`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from measure import Row
from modelling import BF16, FP32, MachineModel, bounded_rows


@dataclass(frozen=True)
class Product:
    """A function of tensors of `sizes`, the floating-point operations it needs and the share of the bound to reach."""

    name: str
    function: Callable
    sizes: tuple[tuple[int, ...], ...]
    dtype: torch.dtype
    #: 0: bound by what crosses HBM.
    flops: float
    result: int
    bar: float

    def arguments(self) -> list[torch.Tensor]:
        return [torch.empty(size, dtype=self.dtype, device="neuron") for size in self.sizes]

    def bound(self, model: MachineModel) -> float:
        """Seconds: the tensor engine at its peak, or bytes of inputs and outputs at the planning rate."""
        if self.flops:
            return self.flops / model.tensor_flops(self.dtype)
        elements = sum(torch.Size(size).numel() for size in self.sizes) + self.result
        return elements * self.dtype.itemsize / model.planning_bytes_per_second()


def _matmul(a, b):
    return a @ b


def _linear(x, weight):
    return F.linear(x, weight)


def _attention(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


def _token_attention(query, key, value):
    """One query for each head, which neighbours share keys and values with, as decoders repeat them."""

    def repeated(x):
        batch, groups, rows, depth = x.shape
        heads = query.shape[1]
        return x[:, :, None].expand(batch, groups, heads // groups, rows, depth).reshape(batch, heads, rows, depth)

    return F.scaled_dot_product_attention(query, repeated(key), repeated(value))


def _attention_gradient(gradient, query, key, value, out):
    sums = out[..., 0].float()  # any numbers of that size
    function = torch.ops.aten._scaled_dot_product_fused_attention_overrideable_backward
    lengths = query.shape[2], key.shape[2]
    wanted = [True, True, True, False]
    return function(gradient, query, key, value, None, wanted, out, sums, None, None, *lengths, 0.0, True, None, None)[
        :3
    ]


def _square(m: int, k: int, n: int, dtype: torch.dtype) -> Product:
    name = f"matmul [{m}, {k}] x [{k}, {n}] {'bf16' if dtype == BF16 else 'fp32'}"
    return Product(name, _matmul, ((m, k), (k, n)), dtype, 2.0 * m * k * n, m * n, 0.90)


def _skinny(rows: int, dtype: torch.dtype, transposed: bool) -> Product:
    kind = "nn.Linear" if transposed else "matmul"
    bar = 0.60 if dtype == FP32 else 0.65 if transposed else 0.80
    name = f"{kind}, {rows} rows, 4096 x 4096 {'bf16' if dtype == BF16 else 'fp32'}"
    function = _linear if transposed else _matmul
    return Product(name, function, ((rows, 4096), (4096, 4096)), dtype, 0, rows * 4096, bar)


def _causal(batch: int, heads: int, length: int, depth: int) -> Product:
    size = (batch, heads, length, depth)
    # Two products over the pairs of a query and a key that is not after it.
    flops = 4.0 * batch * heads * (length * (length + 1) / 2) * depth
    return Product(f"causal attention {list(size)} bf16", _attention, (size,) * 3, BF16, flops, 0, 0.40)


def _causal_gradient(batch: int, heads: int, length: int, depth: int) -> Product:
    size = (batch, heads, length, depth)
    # Five products where attention has two.
    flops = 10.0 * batch * heads * (length * (length + 1) / 2) * depth
    return Product(f"gradient of it {list(size)} bf16", _attention_gradient, (size,) * 5, BF16, flops, 0, 0.40)


def _token(heads: int, groups: int, keys: int, depth: int) -> Product:
    sizes = (1, heads, 1, depth), (1, groups, keys, depth), (1, groups, keys, depth)
    name = f"attention of a token, {heads} heads, {groups} groups, {keys} keys bf16"
    return Product(name, _token_attention, sizes, BF16, 0, heads * depth, 0.30)


PRODUCTS = (
    *(_square(4096, 4096, 4096, dtype) for dtype in (BF16, FP32)),
    *(_square(8192, 4096, 16384, dtype) for dtype in (BF16, FP32)),
    *(
        _skinny(rows, dtype, transposed)
        for rows in (1, 16, 64)
        for dtype in (BF16, FP32)
        for transposed in (False, True)
    ),
    _causal(2, 16, 4096, 128),
    _causal_gradient(2, 16, 4096, 128),
    _token(32, 8, 4096, 128),
)


def product_rows() -> list[Row]:
    """Modelled kernel time against the peak of the tensor engine, or against the HBM bound of few rows."""
    return bounded_rows("product", PRODUCTS)

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""How far results may lie from CPU PyTorch, in one place: (relative, absolute) per dtype, looser for named operators.

Integers and bool are exact. The default allows a few units in the last place of f32 and one of a 16-bit type, because
both sides compute in f32 and round once.
"""

from __future__ import annotations

import torch

DEFAULT = {
    torch.float32: (3e-6, 1e-6),
    torch.bfloat16: (8e-3, 1e-6),
    torch.float16: (1e-3, 1e-6),
    torch.float8_e4m3fn: (0.0, 0.0),
    torch.float8_e5m2: (0.0, 0.0),
}

# Operators (without namespace and overload) whose results depend on the order of a sum or cancel.
LOOSER: dict[str, dict[torch.dtype, tuple[float, float]]] = {}


def tolerance(op: str, dtype: torch.dtype) -> tuple[float, float]:
    """`op` like "aten.add.Tensor"."""
    if not dtype.is_floating_point:
        return (0.0, 0.0)
    name = op.split(".")[1]
    return LOOSER.get(name, {}).get(dtype, DEFAULT[dtype])

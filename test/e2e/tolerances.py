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

# Where eager computes in a 16-bit type step by step, results are compared with the f32 computation instead (by DEFAULT) and
# with eager only by this.
ROUNDED_IN_BETWEEN = (0.1, 0.05)

# Operators (without namespace and overload) whose results depend on the order of a sum or cancel.
_SUMS = {torch.float32: (1e-5, 2e-5), torch.bfloat16: (8e-3, 1e-4), torch.float16: (1e-3, 1e-4)}
LOOSER: dict[str, dict[torch.dtype, tuple[float, float]]] = (
    {
        name: _SUMS
        for name in """_scaled_mm _grouped_mm mm bmm addmm baddbmm addbmm mv addmv dot vdot linear native_layer_norm layer_norm
    native_layer_norm_backward _fused_rms_norm rms_norm _fused_rms_norm_backward native_group_norm
    native_group_norm_backward native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_functional
    _native_batch_norm_legit_no_training _batch_norm_no_update _batch_norm_with_update_functional
    native_batch_norm_backward batch_norm_backward convolution convolution_backward index_add index_put scatter_add put
    embedding_dense_backward""".split()
    }
    | {
        # At the end of a vector eager rounds alpha * other to the 16-bit type, elsewhere not.
        name: {torch.bfloat16: (8e-3, 3e-3), torch.float16: (1e-3, 3e-4)}
        for name in ("add", "add_", "sub", "sub_", "rsub")
    }
    | {
        # Eager clamps and divides in the 16-bit type.
        "logit": {torch.bfloat16: (3e-2, 1e-2), torch.float16: (1e-2, 1e-3)},
        "logit_": {torch.bfloat16: (3e-2, 1e-2), torch.float16: (1e-2, 1e-3)},
    }
)


def tolerance(op: str, dtype: torch.dtype) -> tuple[float, float]:
    """`op` like "aten.add.Tensor"."""
    if not dtype.is_floating_point:
        return (0.0, 0.0)
    name = op.split(".")[1]
    return LOOSER.get(name, {}).get(dtype, DEFAULT[dtype])

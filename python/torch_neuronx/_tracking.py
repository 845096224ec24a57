# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Which operators ran on the device and which on the CPU."""

from __future__ import annotations

from . import _C


def _expand(counts: list[tuple[str, int]]) -> list[str]:
    return [name for name, count in counts for _ in range(count)]


def get_executed_ops() -> list[str]:
    """Operators that ran on the device, one entry per invocation, grouped by operator in order of first use."""
    return _expand(_C.executed_operators())


def get_fallback_ops() -> list[str]:
    """Operators that ran on the CPU instead, one entry per invocation, grouped by operator in order of first use."""
    return _expand(_C.fallback_operators())


def clear_op_tracking() -> None:
    _C.clear_operator_tracking()

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Which ATen operators AOTAutograd takes apart. The compiler decomposes in C++, so only what it does not know at all is
left to PyTorch's own decompositions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_registered: dict[Any, Callable] = {}
_table: dict[Any, Callable] | None = None


def register_decomposition(op):
    """Decorator that adds a decomposition for an operator overload, or a list of them.

    Raises ValueError for an operator that already has one.
    """
    overloads = op if isinstance(op, (list, tuple)) else [op]

    def decorate(function: Callable) -> Callable:
        global _table
        for overload in overloads:
            if overload in _registered:
                raise ValueError(f"expected an operator without a registered decomposition but got {overload}")
        for overload in overloads:
            _registered[overload] = function
        _table = None
        return function

    return decorate


def table() -> dict[Any, Callable]:
    global _table
    if _table is None:
        from torch._decomp import core_aten_decompositions

        from .. import _eager
        from . import fused_cells

        supported = set(_eager.overloads())
        chosen = {op: function for op, function in core_aten_decompositions().items() if str(op) not in supported}
        chosen.update(fused_cells.decompositions())
        chosen.update(_registered)
        _table = chosen
    return dict(_table)

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Every elementwise overload that the compiler knows, from its own table: what PyTorch tags as pointwise, and the rest by
name. Arguments follow from the schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

# Elementwise without the tag.
UNTAGGED = """aten.floor_divide.default aten.floor_divide.Scalar aten.hardswish.default aten.hardswish_backward.default
    aten.elu_backward.default aten.leaky_relu_backward.default aten.hardtanh_backward.default
    aten.hardsigmoid_backward.default aten.hardshrink_backward.default aten.softplus_backward.default
    aten.softshrink_backward.default aten.mish_backward.default aten.log_sigmoid.default aten.log_sigmoid_forward.default
    aten.masked_fill.Tensor aten.where.Scalar aten.where.ScalarOther aten.where.ScalarSelf
    aten.isin.Tensor_Scalar aten.rsub.Tensor aten.fill.Scalar aten.fill.Tensor aten.zero.default aten.flip.default
    aten.tril.default aten.triu.default""".split()
# Their results are not functions of their tensors alone.
_EXCLUDED = {"aten.clone.default", "prims.convert_element_type.default", "aten.native_dropout_backward.default"}
# By name, where the default is none or has no effect.
_NUMBERS = {
    "min": -0.5,
    "max": 0.75,
    "lambd": 0.5,
    "threshold": 0.5,
    "value": 2,
    "weight": 0.25,
    "decimals": 1,
    "eps": 0.25,
    "negative_slope": 0.01,
    "alpha": 1,
    "scale": 1,
    "input_scale": 1,
    "beta": 1,
    "min_val": -1,
    "max_val": 1,
    "dims": [0],
    "rounding_mode": "floor",
    "is_result": False,
    "self_is_result": False,
}


def functional_overloads() -> list[str]:
    from torch_neuronx._eager import overloads

    names = []
    for name in overloads():
        operator = overload_of(name)
        if operator is None or name in _EXCLUDED:
            continue
        schema = operator._schema
        if schema.is_mutable or any(str(argument.type) == "List[Tensor]" for argument in schema.arguments):
            continue
        if torch.Tag.pointwise in operator.tags or name in UNTAGGED:
            names.append(name)
    return sorted(names)


def overload_of(name: str) -> Any:
    namespace, packet, overload = name.split(".", 2)
    return getattr(getattr(getattr(torch.ops, namespace), packet, None), overload, None)


def tensor_arguments(name: str) -> int:
    return sum(_is_tensor(argument) for argument in overload_of(name)._schema.arguments)


def _is_tensor(argument: Any) -> bool:
    return str(argument.type) in ("Tensor", "Optional[Tensor]")


def call_of(name: str) -> Callable:
    """A function of tensors; a tensor that stands for a condition becomes one."""
    operator = overload_of(name)
    plan: list[tuple[str, bool, Any]] = []
    for argument in operator._schema.arguments:
        if _is_tensor(argument):
            plan.append((argument.name, True, None))
        elif argument.name in _NUMBERS:
            plan.append((argument.name, False, _NUMBERS[argument.name]))
        elif not argument.has_default_value():
            plan.append((argument.name, False, 2))

    def call(*tensors: torch.Tensor) -> Any:
        rest = iter(tensors)
        arguments = {}
        for argument, is_tensor, value in plan:
            if is_tensor:
                value = next(rest)
                if argument in ("condition", "mask"):
                    value = value > 0
                if name == "aten.masked_fill.Tensor" and argument == "value":
                    value = value.flatten()[0]
                if name == "aten.fill.Tensor" and argument == "value":
                    value = value.flatten()[0]
            arguments[argument] = value
        return operator(**arguments)

    return call


def layouts(count: int, dtypes: Sequence[torch.dtype]) -> dict[str, list[torch.Tensor]]:
    """`count` tensors that broadcast to one shape, in the layouts that decide the strides of results."""

    def make(position: int, *shape: int) -> torch.Tensor:
        elements = torch.Size(shape).numel()
        dtype = dtypes[position % len(dtypes)]
        values = (torch.arange(elements) * 7 + 3 * position) % 11
        if dtype.is_floating_point:
            return ((values.float() - 5) / 4).to(dtype).reshape(shape)
        return (values % 5 + 1).to(dtype).reshape(shape)

    def each(build: Callable[[int], torch.Tensor]) -> list[torch.Tensor]:
        return [build(position) for position in range(count)]

    images = [
        make(position, 2, 3, 4, 5).to(memory_format=torch.channels_last)
        if position % 2 == 0
        else make(position, 2, 3, 4, 5)
        for position in range(count)
    ]
    return {
        "contiguous": each(lambda p: make(p, 3, 4)),
        "permuted": each(lambda p: make(p, 2, 3, 4).permute(2, 0, 1)),
        "channels_last": each(lambda p: make(p, 2, 3, 4, 5).to(memory_format=torch.channels_last)),
        "channels_last, then contiguous": images,
        "contiguous, then channels_last": [images[1 - p % 2] if count > 1 else images[0] for p in range(count)],
        "expanded": each(lambda p: make(p, 3, 1).expand(3, 4)),
        "steps": each(lambda p: make(p, 6, 8)[::2, ::2]),
        "steps of a permutation": each(lambda p: make(p, 8, 6).t()[::2, ::2]),
        "two orders": each(lambda p: make(p, 4, 3).t() if p % 2 == 0 else make(p, 3, 4)),
        "two orders, exchanged": each(lambda p: make(p, 3, 4) if p % 2 == 0 else make(p, 4, 3).t()),
        "broadcast to a permutation": each(
            lambda p: make(p, 4, 2, 3).permute(2, 0, 1) if p % 2 == 0 else make(p, 4, 2)
        ),
        "of lower rank": each(lambda p: make(p, 4, 3).t() if p == 0 else make(p, 4)),
        "of rank 0 first": each(lambda p: make(p) if p == 0 else make(p, 4, 3).t()),
        "of rank 0 last": each(lambda p: make(p, 4, 3).t() if p == 0 else make(p)),
        "rank 0": each(lambda p: make(p)),
        "size 1": each(lambda p: make(p, 3, 1, 4).permute(1, 2, 0)),
        "empty": each(lambda p: make(p, 4, 0, 3).permute(2, 0, 1)),
    }

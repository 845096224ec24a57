# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Eager mode's side of the compiler: the list of overloads, and one-node graphs."""

from __future__ import annotations

import os
from typing import Any

import torch

from . import _environment, _warnings

_OVERLOADS_FILE = os.path.join(os.path.dirname(__file__), "data", "overloads.txt")


def overload_table() -> list[tuple[str, list[int]]]:
    """Overloads the compiler lowers ("aten.mul.Tensor") and the positions of Scalars that are part of the program."""
    table = []
    with open(_OVERLOADS_FILE, encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if words and not words[0].startswith("#"):
                table.append((words[0], [int(word) for word in words[1].split(",")] if len(words) > 1 else []))
    return table


def overloads() -> list[str]:
    return [name for name, _ in overload_table()]


def register(extension) -> None:
    extension.register_eager_overloads(overload_table())
    extension.set_eager_compiler(compile_call)
    extension.set_warning_sink(_warnings.warn_user)
    extension.set_line_provider(_warnings.users_line)


def _with_values(argument: Any, values: list[Any], reference_type: type) -> Any:
    if isinstance(argument, reference_type):
        return values[argument.index]
    if isinstance(argument, list):
        return [_with_values(item, values, reference_type) for item in argument]
    return argument


def compile_call(**request):
    """Compiles one call. Returns a program, or text that says why the compiler does not support it."""
    try:
        return _compile_call(**request)
    except TypeError as error:
        # Python would take a TypeError out of `a * b` for "not implemented" and lose the message.
        raise RuntimeError(f"compiling {request['op']} failed: {error}") from error


def _compile_call(op: str, inputs, arguments, results, outputs):
    from . import _C, _compilation
    from ._graph import faults
    from ._graph.builder import UnsupportedGraph, add_conversion, graph_builder

    for kind, dtype, *_ in inputs:
        if kind == "tensor" and (dtype is torch.float64 or dtype.is_complex):
            return f"the device has no {str(dtype).removeprefix('torch.')}"
    try:
        builder = graph_builder(op, "eager")
        values: list[Any] = []
        for position, (kind, dtype, sizes, strides, wrapped) in enumerate(inputs):
            if kind == "tensor":
                values.append(builder.add_tensor_input(f"input{position}", dtype, sizes, strides))
            elif kind == "scalar":
                values.append(builder.add_scalar_input(f"scalar{position}", dtype, wrapped))
            else:
                values.append(builder.add_rng_state())
        node_arguments = [_with_values(argument, values, _C.InputReference) for argument in arguments]
        produced = builder.add_node(op, node_arguments, results)
        for result, dtype, strides, mutates in outputs:
            value = produced[result]
            node_dtype, sizes, _ = results[result]
            if node_dtype != dtype:
                value = add_conversion(builder, value, dtype, sizes, strides)
            builder.add_output(value, dtype, sizes, strides, mutates)
    except UnsupportedGraph as error:
        return str(error)

    options = _environment.compile_options()
    options["container"] = "memory"
    try:
        graph = builder.serialise()
        entry = _compilation.compile_graph(graph, options)
    except Exception as error:
        if _compilation.is_unsupported(error):
            # The operator is named where the reason is shown.
            lines = (getattr(error, "message", None) or str(error)).splitlines()
            return "; ".join(dict.fromkeys(line.split(f"{op}: ", 1)[-1] for line in lines))
        raise
    name = op.split(".", 2)[1]
    label = op.replace(".", "::", 1).removesuffix(".default")
    return _compilation.program_of(entry, label, f"neff:{name}", faults.notes_later(graph))

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Builds GraphDef messages from ATen calls: what the compiler's builder has to know about PyTorch."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from typing import Any

import torch

#: torch.dtype to neuron.graph.ScalarType (lib/Graph/graph_def.proto).
SCALAR_TYPES: dict[torch.dtype, int] = {
    dtype: number
    for number, dtype in enumerate(
        (
            torch.float32,
            torch.bfloat16,
            torch.float16,
            torch.float8_e4m3fn,
            torch.float8_e5m2,
            torch.float64,
            torch.int8,
            torch.uint8,
            torch.int16,
            torch.int32,
            torch.int64,
            torch.bool,
            torch.complex64,
            torch.uint16,
            torch.uint32,
            torch.uint64,
        ),
        start=1,
    )
}


class UnsupportedGraph(Exception):
    """The graph cannot be expressed; the message says what and what to do."""


def _kind(jit_type) -> tuple[str, str | None]:
    """(kind, kind of the list's elements) of a schema type, without Optional."""
    if jit_type.kind() == "OptionalType":
        jit_type = jit_type.getElementType()
    element = None
    if jit_type.kind() == "ListType":
        inner = jit_type.getElementType()
        if inner.kind() == "OptionalType":
            inner = inner.getElementType()
        element = inner.kind()
    return (jit_type.kind(), element)


@functools.cache
def schema_kinds(op: str) -> list[tuple[str, str | None]]:
    """Kinds of the schema arguments of "aten.mul.Tensor"."""
    namespace, name, overload = op.split(".", 2)
    schema = getattr(getattr(getattr(torch.ops, namespace), name), overload)._schema
    return [_kind(argument.real_type) for argument in schema.arguments]


_DESCRIBED = (torch.device, torch.layout, torch.memory_format, torch.Generator)


def _describe(value: Any) -> tuple[str, str]:
    """Field of an Argument, and its text, of a constant that is neither a number nor a text, a list or a dtype."""
    if isinstance(value, torch.device):
        return "device", value.type
    if isinstance(value, torch.layout):
        return "layout", str(value).removeprefix("torch.")
    if isinstance(value, torch.memory_format):
        return "memory_format", str(value).removeprefix("torch.")
    if isinstance(value, torch.Generator):
        # The graph reads the generator's state as an input.
        return "none", ""
    if isinstance(value, complex):
        raise UnsupportedGraph("complex numbers are not supported; split into real and imaginary parts")
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        raise UnsupportedGraph("a symbolic size reached the graph; compile with dynamic=False")
    raise UnsupportedGraph(f"expected a number but got {type(value).__name__}")


@functools.cache
def _module_and_conventions() -> tuple[Any, Any]:
    from .. import _compilation

    module = _compilation.compiler()
    return module, module.GraphConventions(
        scalar_types=SCALAR_TYPES,
        described_types=_DESCRIBED,
        describe=_describe,
        device_type=lambda text: torch.device(text).type,
        schema_kinds=schema_kinds,
        refusal=UnsupportedGraph,
    )


def graph_builder(name: str, kind: str):
    """An empty GraphBuilder of the compiler's module. `kind`: "inference", "forward", "backward" or "eager"."""
    module, conventions = _module_and_conventions()
    return module.GraphBuilder(name, kind, conventions)


def add_constant(builder, tensor: torch.Tensor):
    """The value of a tensor that is part of the program."""
    tensor = tensor.detach().cpu().contiguous()
    data = tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
    return builder.add_constant_data(tensor.dtype, tensor.shape, tensor.stride(), data)


def add_conversion(builder, value, dtype: torch.dtype, sizes: Sequence[int], strides: Sequence[int]):
    (converted,) = builder.add_node(
        "aten._to_copy.default", [value, dtype, None, None, None, False, None], [(dtype, sizes, strides)]
    )
    return converted


def content_hash(graph: bytes) -> bytes:
    """Digest of what a serialized graph computes: without locations and names."""
    content, _ = _module_and_conventions()[0].graph_content(graph)
    return hashlib.sha256(content).digest()


def parse(graph: bytes):
    """The message of a serialized graph. Importing protobuf takes longer than compiling a small graph, so this is for
    what is off the usual way."""
    from . import graph_def_pb2

    return graph_def_pb2.GraphDef.FromString(graph)

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Builds GraphDef messages from ATen calls."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from typing import Any

import torch

from . import graph_def_pb2 as pb

SCALAR_TYPES: dict[torch.dtype, int] = {
    torch.float32: pb.FLOAT32,
    torch.bfloat16: pb.BFLOAT16,
    torch.float16: pb.FLOAT16,
    torch.float8_e4m3fn: pb.FLOAT8_E4M3FN,
    torch.float8_e5m2: pb.FLOAT8_E5M2,
    torch.float64: pb.FLOAT64,
    torch.int8: pb.INT8,
    torch.uint8: pb.UINT8,
    torch.int16: pb.INT16,
    torch.int32: pb.INT32,
    torch.int64: pb.INT64,
    torch.bool: pb.BOOL,
    torch.complex64: pb.COMPLEX64,
    torch.uint16: pb.UINT16,
    torch.uint32: pb.UINT32,
    torch.uint64: pb.UINT64,
}


# lib/Graph: what a GraphDef may hold.
MAX_RANK = 8


class UnsupportedGraph(Exception):
    """The graph cannot be expressed; the message says what and what to do."""


class Value:
    """A value of the graph: a tensor or a run-time scalar."""

    __slots__ = ("number",)

    def __init__(self, number: int):
        self.number = number


def scalar_type(dtype: torch.dtype) -> int:
    try:
        return SCALAR_TYPES[dtype]
    except KeyError:
        raise UnsupportedGraph(
            f"dtype {dtype} is not supported; convert to one of "
            + ", ".join(str(known).removeprefix("torch.") for known in SCALAR_TYPES)
        ) from None


# (kind, kind of the list's elements) of a schema type, without Optional.
Kind = tuple[str, str | None]


def _kind(jit_type) -> Kind:
    if jit_type.kind() == "OptionalType":
        jit_type = jit_type.getElementType()
    element = None
    if jit_type.kind() == "ListType":
        inner = jit_type.getElementType()
        if inner.kind() == "OptionalType":
            inner = inner.getElementType()
        element = inner.kind()
    return (jit_type.kind(), element)


_schema_kinds: dict[str, list[Kind]] = {}


def schema_kinds(op: str) -> list[Kind]:
    """Kinds of the schema arguments of "aten.mul.Tensor"."""
    kinds = _schema_kinds.get(op)
    if kinds is None:
        namespace, name, overload = op.split(".", 2)
        schema = getattr(getattr(getattr(torch.ops, namespace), name), overload)._schema
        kinds = _schema_kinds[op] = [_kind(argument.real_type) for argument in schema.arguments]
    return kinds


def _encode_number(argument: pb.Argument, value: Any, wants_float: bool) -> None:
    if isinstance(value, bool):
        argument.boolean = value
    elif isinstance(value, int) and not wants_float:
        argument.integer = value
    elif isinstance(value, (int, float)):
        argument.floating = float(value)
    elif isinstance(value, complex):
        raise UnsupportedGraph("complex numbers are not supported; split into real and imaginary parts")
    elif isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        raise UnsupportedGraph("a symbolic size reached the graph; compile with dynamic=False")
    else:
        raise UnsupportedGraph(f"expected a number but got {type(value).__name__}")


_NUMBERS = frozenset((bool, int, float))
# What is in lists of most nodes, and is the same when it is equal and of one type.
_LISTED = frozenset((bool, int, str, type(None)))
_DOUBLE = struct.Struct("d")
# Stands for a value in what two nodes have in common.
_ANY_VALUE = object()


def _signature(arguments: Sequence[Any], operands: list[tuple[int, int]]) -> tuple | None:
    """What nodes must have in common for their arguments to differ in values only; the values go to `operands` with
    their positions. None for nodes that are encoded by themselves: with values or floats in lists."""
    parts: list[Any] = []
    for position, argument in enumerate(arguments):
        if type(argument) is Value:
            operands.append((position, argument.number))
            parts.append(_ANY_VALUE)
        elif type(argument) is list:
            types = tuple(map(type, argument))
            if not _LISTED.issuperset(types):
                return None
            parts += (types, *argument)
        elif type(argument) is float:
            # The bits: -0.0 and 0.0 are different arguments, and a NaN equals itself.
            parts += (float, _DOUBLE.pack(argument))
        else:
            # True, 1 and 1.0 are equal.
            parts += (type(argument), argument)
    return tuple(parts)


def _encode(argument: pb.Argument, value: Any, kind: str, element: str | None) -> None:
    if value is None:
        argument.none = True
    elif isinstance(value, Value):
        argument.value = value.number
    elif type(value) in _NUMBERS and kind != "ListType":
        _encode_number(argument, value, kind == "FloatType")
    elif isinstance(value, (list, tuple)):
        argument.list.SetInParent()
        inner = element or kind
        for item in value:
            _encode(argument.list.items.add(), item, inner, None)
    elif kind == "ListType":
        # A number where the schema has int[N] stands for N times that number; torch.ops fills it in before tracing,
        # so what remains is a list of one.
        argument.list.SetInParent()
        _encode(argument.list.items.add(), value, element or "IntType", None)
    elif isinstance(value, torch.dtype):
        argument.dtype = scalar_type(value)
    elif isinstance(value, torch.device):
        argument.device = value.type
    elif isinstance(value, torch.layout):
        argument.layout = str(value).removeprefix("torch.")
    elif isinstance(value, torch.memory_format):
        argument.memory_format = str(value).removeprefix("torch.")
    elif isinstance(value, str):
        if kind == "DeviceObjType":
            argument.device = torch.device(value).type
        else:
            argument.text = value
    elif isinstance(value, torch.Generator):
        # The graph reads the generator's state as an input.
        argument.none = True
    else:
        _encode_number(argument, value, kind == "FloatType")


class GraphBuilder:
    """Appends inputs, nodes and outputs; numbers the values."""

    def __init__(self, name: str, kind: str):
        self.graph = pb.GraphDef(version=1, name=name, kind=kind)
        self._next = 1
        # Types and nodes repeat from layer to layer.
        self._types: dict[tuple, pb.TensorType] = {}
        self._nodes: dict[tuple, pb.Node] = {}

    def _new_value(self) -> Value:
        value = Value(self._next)
        self._next += 1
        return value

    def fill_type(
        self, target: pb.TensorType, dtype: torch.dtype, sizes: Sequence[int], strides: Sequence[int]
    ) -> None:
        key = (dtype, tuple(sizes), tuple(strides))
        known = self._types.get(key)
        if known is not None:
            target.CopyFrom(known)
            return
        if len(sizes) > MAX_RANK:
            raise UnsupportedGraph(
                f"expected at most {MAX_RANK} dimensions but got {len(sizes)}; reshape the tensor to fewer"
            )
        target.dtype = scalar_type(dtype)
        target.sizes.extend(int(size) for size in sizes)
        target.strides.extend(int(stride) for stride in strides)
        self._types[key] = target

    def add_tensor_input(self, name: str, dtype: torch.dtype, sizes: Sequence[int], strides: Sequence[int]) -> Value:
        value = self._new_value()
        entry = self.graph.inputs.add()  # a tensor
        entry.value = value.number
        entry.name = name
        self.fill_type(entry.type, dtype, sizes, strides)
        return value

    def add_scalar_input(self, name: str, dtype: torch.dtype, wrapped_number: bool) -> Value:
        value = self._new_value()
        entry = self.graph.inputs.add(
            value=value.number, name=name, kind=pb.Input.SCALAR, wrapped_number=wrapped_number
        )
        entry.type.dtype = scalar_type(dtype)
        return value

    def add_rng_state(self) -> Value:
        value = self._new_value()
        entry = self.graph.inputs.add(value=value.number, name="rng_state", kind=pb.Input.RNG_STATE)
        self.fill_type(entry.type, torch.int64, (2,), (1,))
        return value

    def add_constant(self, tensor: torch.Tensor) -> Value:
        value = self._new_value()
        tensor = tensor.detach().cpu().contiguous()
        entry = self.graph.constants.add(value=value.number)
        self.fill_type(entry.type, tensor.dtype, tensor.shape, tensor.stride())
        entry.data = tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
        return value

    def add_node(
        self,
        op: str,
        arguments: Sequence[Any],
        results: Sequence[tuple[torch.dtype, Sequence[int], Sequence[int]] | None],
        name: str = "",
    ) -> list[Value | None]:
        """`arguments`: every schema argument, as a Value, a Python constant or a list of those. A result is
        (dtype, sizes, strides) or None."""
        operands: list[tuple[int, int]] = []
        signature = _signature(arguments, operands)
        if signature is not None and len(results) == 1 and results[0] is not None:
            dtype, sizes, strides = results[0]
            key = (op, signature, dtype, tuple(sizes), tuple(strides))
            known = self._nodes.get(key)
            if known is not None:
                node = self.graph.nodes.add()
                node.CopyFrom(known)
                node.name = name
                for position, number in operands:
                    node.arguments[position].value = number
                value = self._new_value()
                node.results[0] = value.number
                return [value]
        else:
            key = None
        node = self.graph.nodes.add(op=op, name=name)
        if key is not None:
            self._nodes[key] = node
        for value, (kind, element) in zip(arguments, schema_kinds(op), strict=True):
            _encode(node.arguments.add(), value, kind, element)
        values: list[Value | None] = []
        for result in results:
            entry = node.types.add()
            if result is None:
                node.results.append(0)
                values.append(None)
                continue
            value = self._new_value()
            node.results.append(value.number)
            self.fill_type(entry, *result)
            values.append(value)
        return values

    def add_conversion(self, value: Value, dtype: torch.dtype, sizes: Sequence[int], strides: Sequence[int]) -> Value:
        (converted,) = self.add_node(
            "aten._to_copy.default",
            [value, dtype, None, None, None, False, None],
            [(dtype, sizes, strides)],
        )
        return converted

    def add_output(
        self,
        value: Value | None,
        dtype: torch.dtype | None = None,
        sizes: Sequence[int] = (),
        strides: Sequence[int] = (),
        mutates_input: int = -1,
    ) -> None:
        """`mutates_input` is a position among the inputs, or -1 for a fresh tensor."""
        output = self.graph.outputs.add(value=value.number if value else 0, mutates_input=mutates_input + 1)
        if value is not None:
            self.fill_type(output.type, dtype, sizes, strides)

    def add_location(self, frames: Sequence[tuple[str, int, str, str]]) -> pb.NodeLocation:
        """A Python stack, outermost first: (file, line, function, text). The caller adds the positions of its nodes."""
        location = self.graph.locations.add()
        for file, line, function, text in frames:
            location.frames.add(file=file, line=line, function=function, text=text)
        return location


def content_hash(graph: pb.GraphDef) -> bytes:
    """Digest of what the graph computes: without locations and names."""
    bare = pb.GraphDef()
    bare.CopyFrom(graph)
    bare.ClearField("name")
    bare.ClearField("locations")
    for entry in (*bare.nodes, *bare.inputs):
        entry.name = ""
    return hashlib.sha256(bare.SerializeToString(deterministic=True)).digest()

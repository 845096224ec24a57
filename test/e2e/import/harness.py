# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""One ATen call as a graph: written to disk, evaluated by neuron-translate, compared with eager PyTorch on the CPU."""

from __future__ import annotations

import dataclasses
import pathlib
import subprocess
from typing import Any

import numpy as np
import torch
from tolerances import tolerance

SUPPORTED = {
    torch.float32,
    torch.bfloat16,
    torch.float16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.bool,
}


def overload(name: str) -> torch._ops.OpOverload:
    namespace, op, kind = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), op), kind)


def complete(schema: torch.FunctionSchema, args: tuple, kwargs: dict[str, Any]) -> list[Any]:
    """Every schema argument in order, defaults filled in."""
    values = list(args)
    for argument in schema.arguments[len(args) :]:
        values.append(kwargs[argument.name] if argument.name in kwargs else argument.default_value)
    return values


def flatten_results(results: Any) -> list[torch.Tensor | None]:
    if results is None or isinstance(results, torch.Tensor):
        return [results]
    flat: list[torch.Tensor | None] = []
    for result in results:
        flat.extend(flatten_results(result))
    return flat


def is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


@dataclasses.dataclass
class Call:
    """A call with its expected results."""

    op: str
    values: list[Any]
    expected: list[torch.Tensor | None]

    def describe(self) -> str:
        def text(value: Any) -> str:
            if isinstance(value, torch.Tensor):
                return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}{tuple(value.stride())}"
            if isinstance(value, (list, tuple)):
                return "[" + ", ".join(text(item) for item in value) + "]"
            return str(value)

        return f"{self.op}({', '.join(text(value) for value in self.values)})"


def build_graph(builder_module, call: Call, structural: set[int] | None):
    """The GraphDef and its input values. With `structural`, numbers of schema type Scalar become run-time inputs, except
    those at the positions it names."""
    builder = builder_module.GraphBuilder("case", "eager")
    schema = overload(call.op)._schema
    inputs: list[Any] = []

    def tensor_input(value: torch.Tensor):
        handle = builder.add_tensor_input(f"x{len(inputs)}", value.dtype, value.shape, value.stride())
        builder.graph.inputs[-1].type.storage_offset = value.storage_offset()
        inputs.append(value)
        return handle

    def encode(value: Any, is_scalar: bool):
        if isinstance(value, torch.Tensor):
            return tensor_input(value)
        if isinstance(value, (list, tuple)):
            return [encode(item, False) for item in value]
        if is_scalar and is_number(value):
            dtype = torch.bool if isinstance(value, bool) else torch.int64 if isinstance(value, int) else torch.float64
            handle = builder.add_scalar_input(f"s{len(inputs)}", dtype, False)
            inputs.append(value)
            return handle
        return value

    arguments = []
    for position, (argument, value) in enumerate(zip(schema.arguments, call.values, strict=True)):
        kind = argument.real_type
        kind = kind.getElementType() if kind.kind() == "OptionalType" else kind
        takes_number = kind.kind() == "NumberType" or (kind.kind() == "TensorType" and is_number(value))
        arguments.append(encode(value, structural is not None and takes_number and position not in structural))
    handles = builder.add_node(
        call.op, arguments, [(r.dtype, r.shape, r.stride()) if r is not None else None for r in call.expected]
    )
    for handle, result in zip(handles, call.expected, strict=True):
        if result is not None:
            builder.add_output(handle, result.dtype, result.shape, result.stride())
    return builder.graph, inputs


def to_numpy(value: Any) -> np.ndarray:
    if isinstance(value, bool):
        return np.array(value)
    if isinstance(value, int):
        return np.array(value, dtype=np.int64)
    if isinstance(value, float):
        return np.array(value, dtype=np.float64)
    value = value.detach().contiguous()
    if value.dtype == torch.bfloat16:
        value = value.view(torch.int16).numpy().view(np.uint16)
        return value
    if value.dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        return value.view(torch.uint8).numpy()
    return value.numpy()


DESCRIPTORS = {
    torch.float32: "<f4",
    torch.float16: "<f2",
    torch.bfloat16: "<u2",
    torch.float8_e4m3fn: "|u1",
    torch.float8_e5m2: "|u1",
    torch.int8: "|i1",
    torch.uint8: "|u1",
    torch.int16: "<i2",
    torch.int32: "<i4",
    torch.int64: "<i8",
    torch.bool: "|b1",
}


def from_numpy(array: np.ndarray, like: torch.Tensor) -> torch.Tensor:
    """The array as a tensor of like's dtype and shape; a result that repeats elements holds each once."""
    assert array.dtype.newbyteorder("<").str.lstrip("<|") == DESCRIPTORS[like.dtype].lstrip("<|"), (
        f"expected dtype {like.dtype} but got {array.dtype}"
    )
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    tensor = tensor.reshape(array.shape)
    if like.dtype == torch.bfloat16:
        tensor = tensor.view(torch.int16).view(torch.bfloat16) if tensor.dim() else tensor.reshape(1).view(
            torch.int16
        ).view(torch.bfloat16)[0]
    elif like.dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        tensor = tensor.reshape(-1).view(like.dtype).reshape(array.shape)
    return tensor.expand(like.shape)


def write_case(directory: pathlib.Path, graph, inputs: list[Any]) -> None:
    directory.mkdir(parents=True)
    (directory / "graph.pb").write_bytes(graph.SerializeToString(deterministic=True))
    for i, value in enumerate(inputs):
        np.save(directory / f"input{i}.npy", to_numpy(value))


def evaluate_batch(tool: str, directory: pathlib.Path, *flags: str) -> None:
    subprocess.run([tool, "--evaluate-batch", str(directory), *flags], check=True, timeout=600)


def failure_of(call: Call, directory: pathlib.Path) -> str | None:
    """What is wrong with an evaluated case, or None."""
    error = directory / "error.txt"
    if error.exists():
        return f"{call.describe()}: {error.read_text().strip()}"
    for k, expected in enumerate(call.expected):
        if expected is None:
            continue
        try:
            actual = from_numpy(np.load(directory / f"output{k}.npy"), expected)
            rtol, atol = tolerance(call.op, expected.dtype)
            wanted = expected
            if expected.dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
                actual, wanted = actual.float(), expected.float()
            torch.testing.assert_close(actual, wanted, rtol=rtol, atol=atol, equal_nan=True, check_stride=False)
        except AssertionError as problem:
            return f"{call.describe()} result {k}: {problem}\n  got  {summary(actual)}\n  want {summary(expected)}"
    return None


def summary(tensor: torch.Tensor) -> str:
    flat = tensor.detach().reshape(-1)
    return str(flat[:24].tolist())

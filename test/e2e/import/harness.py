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
from tolerances import ROUNDED_IN_BETWEEN, tolerance
from torch_neuronx._graph.builder import graph_builder

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
    # Results of the same call on f32 inputs, rounded to the expected dtypes; where that differs from `expected`, eager
    # rounds in between. Only for calls with 16-bit results.
    wide: list[torch.Tensor | None] | None = None

    def describe(self) -> str:
        def text(value: Any) -> str:
            if isinstance(value, torch.Tensor):
                return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}{tuple(value.stride())}"
            if isinstance(value, (list, tuple)):
                return "[" + ", ".join(text(item) for item in value) + "]"
            return str(value)

        return f"{self.op}({', '.join(text(value) for value in self.values)})"


class GraphOfCalls:
    """One GraphDef of independent calls and its input values. With `structural`, numbers of schema type Scalar become
    run-time inputs, except those at the argument positions it names."""

    def __init__(self, structural: set[int] | None = None):
        self._builder = graph_builder("calls", "eager")
        self._structural = structural
        self.inputs: list[Any] = []
        self.calls: list[Call] = []

    def _tensor_input(self, value: torch.Tensor):
        name = f"x{len(self.inputs)}"
        handle = self._builder.add_tensor_input(name, value.dtype, value.shape, value.stride(), value.storage_offset())
        self.inputs.append(value)
        return handle

    def _scalar_input(self, value: bool | int | float):
        dtype = torch.bool if isinstance(value, bool) else torch.int64 if isinstance(value, int) else torch.float64
        handle = self._builder.add_scalar_input(f"s{len(self.inputs)}", dtype, False)
        self.inputs.append(value)
        return handle

    def _encode(self, value: Any, is_scalar: bool):
        if isinstance(value, torch.Tensor):
            return self._tensor_input(value)
        if isinstance(value, (list, tuple)):
            return [self._encode(item, False) for item in value]
        return self._scalar_input(value) if is_scalar and is_number(value) else value

    def takes_run_time_scalar(self, call: Call) -> list[bool]:
        """For each argument: whether it is a number that becomes an input."""
        flags = []
        for position, (argument, value) in enumerate(
            zip(overload(call.op)._schema.arguments, call.values, strict=True)
        ):
            kind = argument.real_type
            kind = kind.getElementType() if kind.kind() == "OptionalType" else kind
            accepts = kind.kind() in ("NumberType", "TensorType") and is_number(value)
            flags.append(self._structural is not None and accepts and position not in self._structural)
        return flags

    def add(self, call: Call) -> None:
        flags = self.takes_run_time_scalar(call)
        arguments = [self._encode(value, flag) for value, flag in zip(call.values, flags, strict=True)]
        types = [(r.dtype, r.shape, r.stride()) if r is not None else None for r in call.expected]
        handles = self._builder.add_node(call.op, arguments, types)
        for handle, result in zip(handles, call.expected, strict=True):
            if result is not None:
                self._builder.add_output(handle, result.dtype, result.shape, result.stride())
        self.calls.append(call)

    def write(self, directory: pathlib.Path) -> None:
        directory.mkdir(parents=True)
        (directory / "graph.pb").write_bytes(self._builder.serialise())
        for i, value in enumerate(self.inputs):
            np.save(directory / f"input{i}.npy", to_numpy(value))

    def failures(self, directory: pathlib.Path) -> list[str]:
        """What is wrong with the results of an evaluated graph."""
        error = directory / "error.txt"
        if error.exists():
            return [f"{', '.join(call.describe() for call in self.calls)}: {error.read_text().strip()}"]
        found = []
        position = 0
        for call in self.calls:
            for k, expected in enumerate(call.expected):
                if expected is None:
                    continue
                array = np.load(directory / f"output{position}.npy")
                problem = difference(call.op, array, expected, call.wide[k] if call.wide else None)
                position += 1
                if problem:
                    found.append(f"{call.describe()} result {k}: {problem}")
        return found


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
        tensor = (
            tensor.view(torch.int16).view(torch.bfloat16)
            if tensor.dim()
            else tensor.reshape(1).view(torch.int16).view(torch.bfloat16)[0]
        )
    elif like.dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        tensor = tensor.reshape(-1).view(like.dtype).reshape(array.shape)
    return tensor.expand(like.shape)


def evaluate_batch(tool: str, directory: pathlib.Path, *flags: str) -> None:
    subprocess.run([tool, "--evaluate-batch", str(directory), *flags], check=True, timeout=600)


def is_close(actual, wanted, rtol, atol) -> bool:
    return torch.allclose(actual.float(), wanted.float(), rtol=rtol, atol=atol, equal_nan=True)


def difference(op: str, array: np.ndarray, expected: torch.Tensor, wide: torch.Tensor | None) -> str | None:
    """How a result differs from the expected one, or None."""
    try:
        actual = from_numpy(array, expected)
    except AssertionError as problem:
        return str(problem)
    rtol, atol = tolerance(op, expected.dtype)
    wanted = expected
    if expected.dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        actual, wanted = actual.float(), expected.float()
    if torch.equal(actual, wanted):
        return None
    if wide is not None and is_close(actual, wide, rtol, atol) and is_close(actual, wanted, *ROUNDED_IN_BETWEEN):
        return None
    try:
        torch.testing.assert_close(actual, wanted, rtol=rtol, atol=atol, equal_nan=True, check_stride=False)
    except AssertionError as problem:
        return f"{problem}\n  got  {summary(actual)}\n  want {summary(expected)}"
    return None


def summary(tensor: torch.Tensor) -> str:
    return str(tensor.detach().reshape(-1)[:24].tolist())

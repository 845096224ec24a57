# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Runs a function on the CPU, eagerly on the device and compiled, and compares everything a user can see.

Compared are values (NaN against NaN, the sign of zeros, integers exactly), dtypes, sizes, strides, and what became of the
arguments. Nothing may run on the CPU in the meantime.
"""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch_neuronx

F32, BF16, F16 = torch.float32, torch.bfloat16, torch.float16
I8, U8, I16, I32, I64, BOOL = torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool
FLOATS = (F32, BF16, F16)
INTEGERS = (I64, I32, I16, I8, U8)
ALL_DTYPES = (*FLOATS, *INTEGERS, BOOL)

inf, nan = float("inf"), float("nan")
# Values at which float functions turn.
EDGES = [
    nan,
    inf,
    -inf,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.0,
    -3.0,
    7.75,
    -7.75,
    100.0,
    -100.0,
    65504.0,
    -65504.0,
    1e-7,
    -1e-7,
]
# Rounding of one operation in f32, and of one in a 16-bit type.
TOLERANCES = {F32: (3e-6, 1e-6), BF16: (8e-3, 1e-6), F16: (1e-3, 1e-6)}


def float_edges(dtype: torch.dtype) -> torch.Tensor:
    info = torch.finfo(dtype)
    return torch.tensor([*EDGES, info.max, info.min, info.tiny, -info.tiny], dtype=dtype)


def integer_edges(dtype: torch.dtype) -> torch.Tensor:
    info = torch.iinfo(dtype)
    wide = [2**8, 2**24 + 1, -(2**24) - 1, 2**31 - 1, -(2**31), 2**31, 2**32 + 7, -(2**32) - 7, 2**53 + 1, -(2**53) - 1]
    values = [info.min, info.max, info.min + 1, info.max - 1, 0, 1, 2, 3, 7, 10, 100, -1, -2, -3, -7, -100, *wide]
    return torch.tensor([value for value in dict.fromkeys(values) if info.min <= value <= info.max], dtype=dtype)


def edges(dtype: torch.dtype) -> torch.Tensor:
    """A vector of values at which operations turn."""
    if dtype == BOOL:
        return torch.tensor([False, True, True, False])
    return float_edges(dtype) if dtype.is_floating_point else integer_edges(dtype)


def edge_pairs(dtype: torch.dtype, other: torch.dtype | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Every edge value against every other, as two vectors."""
    first, second = edges(dtype), edges(other or dtype)
    return first.repeat_interleave(len(second)), second.repeat(len(first))


def sample(dtype: torch.dtype, *shape: int, scale: float = 1.0) -> torch.Tensor:
    """Signed random values without edges."""
    if dtype == BOOL:
        return torch.rand(shape) < 0.5
    if dtype.is_floating_point:
        return (torch.randn(shape) * scale).to(dtype)
    return torch.randint(0 if dtype == U8 else -100, 101, shape).to(dtype)


@dataclasses.dataclass
class Case:
    """One function on CPU arguments; tensors among the arguments are moved to the device."""

    label: str
    function: Callable
    arguments: tuple
    rtol: float | None = None
    atol: float | None = None
    # Whether the sign of a zero is part of the result. Where it is not, eager's own kernels disagree about it.
    signed_zero: bool = True
    # Output strides are those of eager.
    strides: bool = True
    # What the CPU runs instead, where its own kernel is less exact than a rounded f32 one.
    reference: Callable | None = None


def case(label: str, function: Callable, *arguments: Any, **options: Any) -> Case:
    return Case(label, function, arguments, **options)


def moved(value: Any, device: str) -> Any:
    """A copy with the same strides and offset, on a storage of its own."""
    if isinstance(value, torch.Tensor):
        with torch.no_grad():
            storage = torch.as_strided(value, (_extent(value),), (1,), 0) if value.numel() else value.reshape(-1)
            copy = storage.clone().to(device).as_strided(value.shape, value.stride(), value.storage_offset())
        return copy.detach().requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(moved(item, device) for item in value)
    return value


def _extent(tensor: torch.Tensor) -> int:
    reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.storage_offset() + reach + 1


def flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [item for part in value for item in flat(part)]
    return [value]


def difference(got: Any, want: Any, case: Case) -> str | None:
    """How two results differ, or None."""
    if not isinstance(want, torch.Tensor):
        return (
            None
            if type(got) is type(want) and (got == want or got != got and want != want)
            else f"expected {want!r} but got {got!r}"
        )
    if not isinstance(got, torch.Tensor):
        return f"expected a tensor but got {got!r}"
    if got.device.type != "neuron":
        return f"expected a tensor on neuron but got one on {got.device}"
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"expected {want.dtype}{list(want.shape)} but got {got.dtype}{list(got.shape)}"
    got, want = got.detach(), want.detach()
    if case.strides and _strides(got) != _strides(want):
        return f"expected strides {want.stride()} but got {got.stride()} for shape {list(want.shape)}"
    got = got.cpu()
    if not want.dtype.is_floating_point:
        return None if torch.equal(got, want) else _summary(got, want, got != want)
    rtol, atol = TOLERANCES.get(want.dtype, (0.0, 0.0))
    rtol = rtol if case.rtol is None else case.rtol
    atol = atol if case.atol is None else case.atol
    close = torch.isclose(got.float(), want.float(), rtol=rtol, atol=atol, equal_nan=True)
    # A tolerance must not take inf for the largest number.
    close &= got.isinf() == want.isinf()
    if case.signed_zero:
        close &= ~((got == 0) & (want == 0) & (got.signbit() != want.signbit()))
    return None if bool(close.all()) else _summary(got, want, ~close)


def _strides(tensor: torch.Tensor) -> list[int]:
    """Strides that matter: not those of dimensions of size 1, none without elements."""
    if tensor.numel() == 0:
        return []
    return [stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size != 1]


def _summary(got: torch.Tensor, want: torch.Tensor, wrong: torch.Tensor) -> str:
    positions = wrong.nonzero()
    lines = [f"{len(positions)} of {want.numel()} elements differ"]
    for position in positions[:6]:
        index = tuple(position.tolist())
        lines.append(f"  at {list(index)}: expected {want[index].item()!r} but got {got[index].item()!r}")
    return "\n".join(lines)


def _reference(case: Case) -> tuple[list[Any], list[Any]]:
    arguments = [moved(argument, "cpu") for argument in case.arguments]
    return flat((case.reference or case.function)(*arguments)), flat(arguments)


def _compare(case: Case, got: list[Any], got_arguments: list[Any], how: str) -> list[str]:
    want, want_arguments = _reference(case)
    problems = []
    if len(got) != len(want):
        return [f"{case.label}, {how}: expected {len(want)} results but got {len(got)}"]
    for what, pairs in (
        ("result", zip(got, want, strict=True)),
        ("argument", zip(got_arguments, want_arguments, strict=True)),
    ):
        for number, (actual, expected) in enumerate(pairs):
            problem = difference(actual, expected, case)
            if problem:
                problems.append(f"{case.label}, {how}, {what} {number}: {problem}")
    return problems


def compile(function: Callable, **options: Any) -> Callable:
    """torch.compile for the device; the whole function unless the options say otherwise, each size for itself."""
    torch._dynamo.reset()
    options.setdefault("fullgraph", True)
    options.setdefault("dynamic", False)
    return torch.compile(function, backend="neuron", **options)


def run_eager(case: Case) -> list[str]:
    arguments = [moved(argument, "neuron") for argument in case.arguments]
    torch_neuronx.clear_op_tracking()
    try:
        got = flat(case.function(*arguments))
    except Exception as error:
        return [f"{case.label}, eager: {type(error).__name__}: {error}"]
    problems = _compare(case, got, flat(arguments), "eager")
    fallbacks = torch_neuronx.get_fallback_ops()
    if fallbacks:
        problems.append(f"{case.label}, eager: expected every operator on the device but {fallbacks} ran on the CPU")
    return problems


def run_compiled(cases: Sequence[Case]) -> list[str]:
    """All cases as one graph; when that fails to compile, each as its own."""
    arguments = [[moved(argument, "neuron") for argument in case.arguments] for case in cases]

    def together(arguments):
        return [case.function(*own) for case, own in zip(cases, arguments, strict=True)]

    try:
        results = compile(together)(arguments)
    except Exception as error:
        if len(cases) == 1:
            return [f"{cases[0].label}, compiled: {type(error).__name__}: {error}"]
        problems = [problem for case in cases for problem in run_compiled([case])]
        return problems or [f"{', '.join(case.label for case in cases)}, in one graph: {type(error).__name__}: {error}"]
    return [
        problem
        for case, result, own in zip(cases, results, arguments, strict=True)
        for problem in _compare(case, flat(result), flat(own), "compiled")
    ]


# Compile every case of a sweep, not every fourth.
LONG = os.environ.get("NEURON_CASES_LONG") == "1"


def check_sweep(cases: Sequence[Case]) -> None:
    """check_all for tables of similar cases: all of them eagerly, a quarter compiled unless NEURON_CASES_LONG=1."""
    check_all(cases, compiled=False)
    check_all(cases if LONG else cases[::4], eager=False)


def check_all(cases: Sequence[Case], eager: bool = True, compiled: bool = True, batch: int = 24) -> None:
    """Fails with every difference of every case."""
    assert cases, "expected at least one case"
    problems = []
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if eager:
            problems += [problem for case in cases for problem in run_eager(case)]
        if compiled:
            for start in range(0, len(cases), batch):
                problems += run_compiled(cases[start : start + batch])
    if problems:
        pytest.fail(f"{len(problems)} problems\n" + "\n".join(problems), pytrace=False)


def check(function: Callable, *arguments: Any, eager: bool = True, compiled: bool = True, **options: Any) -> None:
    check_all([Case("function", function, arguments, **options)], eager, compiled)


def gradients(function: Callable, arguments: Sequence[Any]) -> list[torch.Tensor | None]:
    """Results, then gradients of a weighted sum of the float results."""
    results = [result for result in flat(function(*arguments)) if isinstance(result, torch.Tensor)]
    total = None
    for result in results:
        if result.requires_grad:
            weights = torch.linspace(0.5, 1.5, result.numel()).reshape(result.shape).to(result.device)
            term = (result.float() * weights).sum()
            total = term if total is None else total + term
    assert total is not None, "expected a result that requires a gradient"
    total.backward()
    tensors = [argument for argument in flat(list(arguments)) if isinstance(argument, torch.Tensor)]
    return results + [tensor.grad for tensor in tensors if tensor.requires_grad]


def check_gradients(
    function: Callable,
    *arguments: Any,
    eager: bool = True,
    compiled: bool = True,
    rtol: float = 1e-5,
    atol: float = 1e-5,
) -> None:
    options = Case("function", function, arguments, rtol, atol, signed_zero=False, strides=False)
    want = gradients(function, [moved(argument, "cpu") for argument in arguments])
    problems = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for how, run in (("eager", function), ("compiled", compile(function))):
            if not (eager if how == "eager" else compiled):
                continue
            got = gradients(run, [moved(argument, "neuron") for argument in arguments])
            for number, (actual, expected) in enumerate(zip(got, want, strict=True)):
                if (actual is None) != (expected is None):
                    problems.append(f"{how}, value {number}: expected {expected} but got {actual}")
                elif expected is not None:
                    problem = difference(actual, expected, options)
                    problems += [f"{how}, value {number}: {problem}"] if problem else []
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Every elementwise overload of the compiler's table, eagerly: sizes, strides and dtypes of results, and the type of the
exception where the CPU refuses a dtype."""

from __future__ import annotations

import warnings

import pytest
import torch
from checking import BOOL, F16, F32, I16, I64, U8, flat, moved
from elementwise import call_of, functional_overloads, layouts, tensor_arguments

OVERLOADS = functional_overloads()
# Each case is a program of its own; compiled graphs have the strides that PyTorch's fake tensors say.
LAYOUTS = ("permuted", "two orders, exchanged")
# Core allocates their results before the device sees the call: row-major ones.
ROW_MAJOR = {f"aten.logical_{name}.default" for name in ("and", "or", "xor", "not")}
# The first dtypes that the CPU accepts, for results in a layout.
DTYPES = ((F32,), (I64,), (BOOL,))


# Where the device computes what the CPU refuses: these follow their functions of other dtypes.
ACCEPTED = {
    torch.int64: {"aten.silu_backward.default"},
    torch.int16: {"aten.silu_backward.default"},
    torch.uint8: {"aten.silu_backward.default"},
    torch.bool: {"aten.silu_backward.default", "topk", "kthvalue", "argmin", "argmin of a dimension"},
}


def outcome(function, *arguments):
    """What a user can see of the results but their values, or the type of the exception."""
    try:
        results = flat(function(*arguments))
    except Exception as error:
        return type(error)
    return [
        (item.dtype, tuple(item.shape), tuple(s for n, s in zip(item.shape, item.stride(), strict=True) if n != 1))
        if item.numel()
        else (item.dtype, tuple(item.shape))
        for item in results
        if isinstance(item, torch.Tensor)
    ]


def sweep(layout, mixtures):
    """(what, function, CPU arguments, outcome on the CPU) of every overload that works there."""
    cases = []
    for name in OVERLOADS:
        count, function = tensor_arguments(name), call_of(name)
        for dtypes in mixtures:
            if len(dtypes) > count:
                continue
            arguments = layouts(count, dtypes)[layout]
            expected = outcome(function, *arguments)
            if isinstance(expected, type):
                continue
            cases.append((f"{name} of {', '.join(map(str, dtypes))}", function, arguments, expected))
            if len(dtypes) == 1:
                break
    return cases


def check(cases):
    problems = []
    for what, function, arguments, expected in cases:
        got = outcome(function, *[moved(argument, "neuron") for argument in arguments])
        if got != expected and what.split()[0] not in ROW_MAJOR:
            problems.append(f"{what}: expected {expected} but got {got}")
    if problems:
        pytest.fail(f"{len(problems)} problems\n" + "\n".join(problems), pytrace=False)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout):
    check(sweep(layout, DTYPES))


REDUCTIONS = {
    name: getattr(torch, name)
    for name in """sum mean prod amax amin max min argmax argmin any all var std var_mean logsumexp nansum aminmax
        count_nonzero norm""".split()
} | {
    "sum of a dimension": lambda x: x.sum(0),
    "mean of a dimension": lambda x: x.mean(0),
    "prod of a dimension": lambda x: x.prod(0),
    "max of a dimension": lambda x: x.max(0),
    "argmin of a dimension": lambda x: x.argmin(1),
    "std of a dimension": lambda x: x.std(0),
    "logsumexp of a dimension": lambda x: x.logsumexp(0),
    "cumsum": lambda x: x.cumsum(0),
    "cumprod": lambda x: x.cumprod(0),
    "softmax": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(1),
    "sort": lambda x: x.sort(0),
    "topk": lambda x: x.topk(2),
    "kthvalue": lambda x: x.kthvalue(2),
    "median": lambda x: x.median(),
    "vector_norm": torch.linalg.vector_norm,
}


@pytest.mark.parametrize(
    "dtype", (F32, F16, I64, I16, U8, BOOL, torch.complex64), ids=lambda d: str(d).removeprefix("torch.")
)
def test_refused_dtypes(dtype):
    """Where the CPU raises, the device raises an exception of the same type."""
    functions = [(name, call_of(name), tensor_arguments(name)) for name in OVERLOADS]
    functions += [(name, function, 1) for name, function in REDUCTIONS.items()]
    problems, refused = [], 0
    for name, function, count in functions:
        if dtype == torch.complex64:
            arguments = [torch.ones(3, 4, dtype=dtype) for _ in range(count)]
        else:
            arguments = layouts(count, (dtype,))["contiguous"]
        expected = outcome(function, *arguments)
        # Of 16-bit types the device has more than the CPU.
        if dtype == F16 and not isinstance(outcome(function, *[argument.float() for argument in arguments]), type):
            continue
        if not isinstance(expected, type):
            continue
        refused += 1
        got = outcome(function, *[argument.to("neuron") for argument in arguments])
        if got is not expected and name not in ACCEPTED.get(dtype, ()):
            problems.append(f"{name}: expected {expected.__name__} but got {got}")
    assert refused or dtype == F32
    if problems:
        pytest.fail(f"{len(problems)} of {refused} problems\n" + "\n".join(problems), pytrace=False)

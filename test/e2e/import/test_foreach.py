# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Operators on lists of tensors, which the importer takes apart, against eager CPU PyTorch."""

from __future__ import annotations

import harness
import pytest
import torch
from conftest import list_overloads
from test_overloads import expected_results, run

SHAPES = ((3, 4), (5,), (), (2, 1, 3))


def tensors(low: float = -2.0) -> list[torch.Tensor]:
    return [torch.rand(shape) * (2.0 - low) + low for shape in SHAPES]


NUMBERS = [0.5, 2.0, 1.25, 3.0]
CALLS = (
    {
        "add.List": (tensors(), tensors(), 3),
        "add.Tensor": (tensors(), torch.tensor(1.5), 2),
        "add.Scalar": (tensors(), 0.75),
        "add.ScalarList": (tensors(), NUMBERS),
        "sub.List": (tensors(), tensors(), 0.5),
        "sub.Scalar": (tensors(), 2),
        "sub.ScalarList": (tensors(), NUMBERS),
        "mul.List": (tensors(), tensors()),
        "mul.Tensor": (tensors(), torch.tensor(-1.5)),
        "mul.Scalar": (tensors(), 1.5),
        "mul.ScalarList": (tensors(), NUMBERS),
        "div.List": (tensors(), tensors(0.5)),
        "div.Tensor": (tensors(), torch.tensor(3.0)),
        "div.Scalar": (tensors(), 3.0),
        "div.ScalarList": (tensors(), NUMBERS),
        "maximum.List": (tensors(), tensors()),
        "maximum.Scalar": (tensors(), 0.3),
        "maximum.ScalarList": (tensors(), NUMBERS),
        "minimum.List": (tensors(), tensors()),
        "minimum.Scalar": (tensors(), 0.3),
        "minimum.ScalarList": (tensors(), NUMBERS),
        "clamp_min.List": (tensors(), tensors()),
        "clamp_min.Scalar": (tensors(), 0.1),
        "clamp_min.ScalarList": (tensors(), NUMBERS),
        "clamp_max.List": (tensors(), tensors()),
        "clamp_max.Scalar": (tensors(), 0.1),
        "clamp_max.ScalarList": (tensors(), NUMBERS),
        "pow.List": (tensors(0.1), tensors()),
        "pow.Scalar": (tensors(0.1), 1.5),
        "pow.ScalarList": (tensors(0.1), NUMBERS),
        "pow.ScalarAndTensor": (2.0, tensors()),
        "addcmul.Scalar": (tensors(), tensors(), tensors(), 0.5),
        "addcmul.ScalarList": (tensors(), tensors(), tensors(), NUMBERS),
        "addcdiv.Scalar": (tensors(), tensors(), tensors(0.5), 0.5),
        "addcdiv.ScalarList": (tensors(), tensors(), tensors(0.5), NUMBERS),
        "lerp.List": (tensors(), tensors(), tensors(0.0)),
        "lerp.Scalar": (tensors(), tensors(), 0.3),
        "lerp.ScalarList": (tensors(), tensors(), NUMBERS),
        "norm.Scalar": (tensors(), 2, None),
        "max.default": (tensors(),),
        "clone.default": (tensors(),),
        "copy.default": (tensors(), tensors()),
        "zero.default": (tensors(),),
    }
    | {
        f"{name}.default": (tensors(0.1),)
        for name in """abs atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg
            reciprocal round rsqrt
    sigmoid sign sin sinh sqrt tan tanh trunc""".split()
    }
    | {f"{name}.default": ([value.sin() for value in tensors()],) for name in ("acos", "asin")}
)


def test_every_form_has_a_call():
    known = {entry["name"] for entry in list_overloads() if entry["subject"] == "Foreach"}
    assert known == {f"aten._foreach_{name}" for name in CALLS}


@pytest.mark.parametrize("name", CALLS)
def test_foreach(name, tool, tmp_path):
    op = f"aten._foreach_{name}"
    schema = harness.overload(op)._schema
    positional = sum(not argument.kwarg_only for argument in schema.arguments)
    values = CALLS[name]
    keywords = {
        argument.name: value
        for argument, value in zip(schema.arguments[positional:], values[positional:], strict=False)
    }
    complete = harness.complete(schema, values[:positional], keywords)
    expected = expected_results(op, schema, complete)
    assert expected is not None and len(expected) == len(SHAPES)
    graph = harness.GraphOfCalls()
    graph.add(harness.Call(op, complete, expected))
    run(graph, lambda: harness.GraphOfCalls(), tool, tmp_path)


def test_unknown_form_is_named_as_written(tool, tmp_path):
    """What has no operator of one tensor is refused under its own name."""
    graph = harness.GraphOfCalls()
    values = [tensors(), tensors(), tensors(), torch.tensor(NUMBERS)]
    graph.add(harness.Call("aten._foreach_addcdiv.Tensor", values, tensors()))
    graph.write(tmp_path / "graph")
    harness.evaluate_batch(tool, tmp_path)
    assert "aten._foreach_addcdiv.Tensor: unsupported operator" in (tmp_path / "graph" / "error.txt").read_text()

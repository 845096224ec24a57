# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Graphs of thousands of operators, given to the compiler without Dynamo, which would take minutes to trace them.

bench/ measures that the compiler's time follows their size.
"""

from __future__ import annotations

import pytest
import torch
from torch_neuronx import _C, _compilation, _environment
from torch_neuronx._graph.builder import graph_builder

pytestmark = pytest.mark.real

TYPE = (torch.float32, [40, 6], [6, 1])


class Recording:
    """Appends calls to a graph and computes them on the CPU at the same time."""

    def __init__(self, x: torch.Tensor):
        self.builder = graph_builder("large", "inference")
        self.x = (self.builder.add_tensor_input("x", *TYPE), x)

    def call(self, op: str, *arguments):
        namespace, name, overload = op.split(".")
        function = getattr(getattr(getattr(torch.ops, namespace), name), overload)
        graph_arguments = [a[0] if isinstance(a, tuple) else a for a in arguments]
        (value,) = self.builder.add_node(op, graph_arguments, [TYPE])
        values = [a[1] if isinstance(a, tuple) else a for a in arguments]
        positional = sum(not argument.kwarg_only for argument in function._schema.arguments)
        names = [argument.name for argument in function._schema.arguments]
        return value, function(*values[:positional], **dict(zip(names[positional:], values[positional:], strict=True)))


def deep_chain(graph: Recording, size: int):
    ops = ("aten.sin.default", "aten.neg.default", "aten.cos.default", "aten.tanh.default")
    value = graph.x
    for number in range(size):
        value = graph.call(ops[number % len(ops)], value)
    return [value]


def wide_tree(graph: Recording, size: int):
    values = [graph.call("aten.mul.Scalar", graph.x, number / size) for number in range(size // 2)]
    while len(values) > 1:
        values = [
            graph.call("aten.add.Tensor", *pair, 1) if len(pair) == 2 else pair[0]
            for pair in (values[i : i + 2] for i in range(0, len(values), 2))
        ]
    return values


def nested_residuals(graph: Recording, size: int):
    value, kept = graph.x, []
    for _ in range(size // 2):
        value = graph.call("aten.sin.default", value)
        kept.append(value)
    for earlier in reversed(kept):
        value = graph.call("aten.sub.Tensor", value, earlier, 1)
    return [value]


def many_results(graph: Recording, size: int):
    return [graph.call("aten.add.Scalar", graph.x, number, 1) for number in range(size)]


@pytest.mark.parametrize(
    ("make", "size"), [(deep_chain, 5000), (wide_tree, 4000), (nested_residuals, 1500), (many_results, 600)]
)
def test_values(make, size):
    torch.manual_seed(0)
    x = torch.randn(TYPE[1])
    graph = Recording(x)
    results = make(graph, size)
    for value, _ in results:
        graph.builder.add_output(value, *TYPE)
    assert graph.builder.node_count >= size - 1
    entry = _compilation.compile_graph(graph.builder.serialise(), _environment.compile_options())
    specification = {"dtype": TYPE[0], "sizes": TYPE[1], "strides": TYPE[2], "on_host": False}
    launch = _C.CompiledGraph(
        program=_compilation.program_of(entry, "large", "neff:large"),
        device=0,
        arguments=1,
        inputs=[{"argument": 0, "written": False, **specification}],
        outputs=[{"mutates_input": -1, **specification} for _ in results],
        results=[{"kind": "tensor", "index": index} for index in range(len(results))],
        correlation_depth=0,
        parameters=0,
    )
    for actual, (_, expected) in zip(launch([x.to("neuron")]), results, strict=True):
        torch.testing.assert_close(actual.cpu(), expected, rtol=1e-4, atol=1e-4)

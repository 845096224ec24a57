# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Section `operators`: what one operator of a large graph costs the compiler against one of a small graph."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import torch
from measure import Row, interleaved, progress, seconds
from torch_neuronx import _compilation
from torch_neuronx._graph.builder import graph_builder

SMALL, LARGE = 625, 5000
TILE = (torch.float32, [128, 64], [64, 1])
COLUMN = (torch.float32, [128, 1], [1, 1])


class Graph:
    """A graph of calls on [128, 64] tensors, made without Dynamo, which takes longer than the compiler."""

    def __init__(self) -> None:
        self.builder = graph_builder("operators", "inference")
        self.x = self.builder.add_tensor_input("x", *TILE)
        self.calls = 0

    def call(self, op: str, *arguments, result=TILE) -> Any:
        self.calls += 1
        return self.builder.add_node(op, arguments, [result])[0]

    def unary(self, value: Any) -> Any:
        ops = ("aten.sin.default", "aten.neg.default", "aten.tanh.default")
        return self.call(ops[self.calls % len(ops)], value)

    def scaled(self) -> Any:
        return self.call("aten.mul.Scalar", self.x, self.calls + 0.5)

    def sum(self, left: Any, right: Any) -> Any:
        return self.call("aten.add.Tensor", left, right, 1)


def chain(graph: Graph, size: int) -> list[Any]:
    value = graph.x
    while graph.calls < size:
        value = graph.unary(value)
    return [value]


def tree(graph: Graph, size: int) -> list[Any]:
    values = [graph.scaled() for _ in range(size // 2)]
    while len(values) > 1:
        rest = values[len(values) // 2 * 2 :]
        values = [graph.sum(a, b) for a, b in zip(values[::2], values[1::2], strict=False)] + rest
    return values


def running_sum(graph: Graph, size: int) -> list[Any]:
    total = graph.x
    while graph.calls < size:
        total = graph.sum(total, graph.scaled())
    return [total]


def nested_residuals(graph: Graph, size: int) -> list[Any]:
    value, kept = graph.x, []
    while graph.calls < size // 2:
        value = graph.unary(value)
        kept.append(value)
    for earlier in reversed(kept):
        value = graph.sum(value, earlier)
    return [value]


def centred_rows(graph: Graph, size: int) -> list[Any]:
    value = graph.x
    while graph.calls < size:
        mean = graph.call("aten.mean.dim", value, [1], True, None, result=COLUMN)
        value = graph.unary(graph.call("aten.sub.Tensor", value, mean, 1))
    return [value]


def many_results(graph: Graph, size: int) -> list[Any]:
    return [graph.scaled() for _ in range(size)]


SHAPES = (chain, tree, running_sum, nested_residuals, centred_rows, many_results)


def compile_seconds(make: Callable[[Graph, int], list[Any]], size: int) -> float:
    """GraphDef in, NEFF out."""
    graph = Graph()
    for value in make(graph, size):
        graph.builder.add_output(value, *TILE)
    content = graph.builder.serialise()
    options = json.dumps({"target": "trn2", "container": "memory"})
    started = time.perf_counter()
    _compilation.compiler().compile(content, options)
    return time.perf_counter() - started


def operator_rows(turns: int) -> list[Row]:
    rows = []
    compile_seconds(chain, 10)
    for make in SHAPES:
        name = make.__name__.replace("_", " ")
        progress(f"operators: {name}")
        pair = interleaved(
            lambda turn, make=make: compile_seconds(make, LARGE) / LARGE,
            lambda turn, make=make: compile_seconds(make, SMALL) / SMALL,
            turns,
        )
        rows.append(
            Row(
                "operators",
                f"{name}, per operator of {LARGE} against {SMALL}",
                seconds(pair.measured),
                seconds(pair.peer),
                pair.ratio,
                "<=",
                1.5,
            )
        )
    return rows

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Multiply-adds that a graph asks for, from the shapes of its contractions."""

from __future__ import annotations

import math


def model_flops(graph_def: bytes) -> int | None:
    """Twice the multiply-adds of the graph's matmuls and convolutions; None without a graph."""
    if not graph_def:
        return None
    from google.protobuf.message import DecodeError

    from .._protos import graph_def_pb2

    graph = graph_def_pb2.GraphDef()
    try:
        graph.ParseFromString(graph_def)
    except DecodeError:
        return None
    shapes = {entry.value: list(entry.type.sizes) for entry in (*graph.inputs, *graph.constants)}
    total = 0
    for node in graph.nodes:
        for value, kind in zip(node.results, node.types, strict=False):
            shapes[value] = list(kind.sizes)
        tensors = [shapes.get(a.value, []) if a.WhichOneof("kind") == "value" else [] for a in node.arguments]
        output = shapes.get(node.results[0], []) if node.results else []
        total += _of_node(node.op, tensors, output)
    return total


def _of_node(operation: str, tensors: list[list[int]], output: list[int]) -> int:
    name = operation.split(".")[1] if operation.count(".") else operation
    if name in ("mm", "bmm", "matmul", "linear", "mv", "dot") and tensors and tensors[0]:
        return 2 * math.prod(output) * tensors[0][-1]
    if name in ("addmm", "baddbmm", "addmv", "addbmm") and len(tensors) > 1 and tensors[1]:
        return 2 * math.prod(output) * tensors[1][-1]
    if name == "convolution" and len(tensors) > 1 and len(tensors[1]) > 1:
        return 2 * math.prod(output) * math.prod(tensors[1][1:])
    if "scaled_dot_product" in name and "backward" not in name and len(tensors) > 2 and len(tensors[1]) == 4:
        query, key, value = tensors[:3]
        return 2 * math.prod(query[:3]) * key[2] * (query[3] + value[3])
    return 0

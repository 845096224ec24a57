# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""A graph that keeps the compiler busy for seconds, for scripts that processes of their own run."""

#: Without Dynamo, which would take minutes to trace it.
BIG_GRAPH = """
import torch
from torch_neuronx._graph.builder import graph_builder

def big_graph(nodes):
    builder = graph_builder("big", "inference")
    shape = (torch.float32, [128, 64], [64, 1])
    value = builder.add_tensor_input("x", *shape)
    for number in range(nodes):
        op = ("aten.sin.default", "aten.neg.default", "aten.tanh.default")[number % 3]
        (value,) = builder.add_node(op, [value], [shape])
    builder.add_output(value, *shape)
    return builder.serialise()
"""

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Float arguments that vary from call to call.

Dynamo hands a Python float over as a float64 tensor of rank 0 on the CPU, and what the function computes from it as
operations on such tensors. Eager mode computes those in double precision on the host, and so does a compiled graph: the
results that device operations need become run-time numbers of the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node


def _is_number(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dim() == 0 and value.device.type == "cpu"


class HostNumbers:
    """The numbers of one graph. `concrete` gives the value of a size symbol."""

    def __init__(self, gm: GraphModule, concrete: Callable[[Any], Any]):
        self._concrete = concrete
        # Numbers of rank 0 on the CPU that follow from arguments, and tensors of rank 0 that follow from nothing.
        self.nodes: set[Node] = set()
        self.constants: set[Node] = set()
        # Those that the program takes, in the order of its parameters, and those that are results: (position, node).
        self.parameters: list[Node] = []
        self.results: list[tuple[int, Node]] = []
        self._placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
        # All of them lead from arguments, or to results.
        if not any(_is_number(node) for node in (*self._placeholders, *gm.graph.output_node().all_input_nodes)):
            return
        # Integers (of `s // 2`, say) stay here when only numbers follow from them: parameters and results are floats.
        elsewhere: set[Node] = set()
        while True:
            self._collect(gm, elsewhere)
            integers = {node for node in self.nodes if not node.meta["val"].dtype.is_floating_point}
            used = {node for node in integers if any(user not in self.nodes for user in node.users)}
            if not used:
                break
            elsewhere |= used

    def _collect(self, gm: GraphModule, elsewhere: set[Node]) -> None:
        self.nodes.clear()
        self.constants.clear()
        for node in gm.graph.nodes:
            if node in elsewhere or not _is_number(node):
                continue
            if node.op == "placeholder":
                if node.meta["val"].dtype == torch.float64 and node.users:
                    self.nodes.add(node)
            elif node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
                inputs = [item for item in node.all_input_nodes if not isinstance(item.meta.get("val"), torch.SymInt)]
                if all(item in self.nodes or item in self.constants for item in inputs) and not node.is_impure():
                    if not any(item in self.nodes for item in inputs):
                        self.constants.add(node)
                    else:
                        self.nodes.add(node)

    def function(self) -> Callable[[list[Any]], tuple[list[float], list[torch.Tensor]]] | None:
        """From the arguments of a call to the parameters and the results; None where there are none of either."""
        wanted = self.parameters + [node for _, node in self.results]
        if not wanted:
            return None
        graph = Graph()
        copies: dict[Node, Any] = {}

        def copy(node: Node) -> Any:
            if node not in copies:
                symbol = node.meta.get("val")
                copies[node] = (
                    self._concrete(symbol) if isinstance(symbol, torch.SymInt) else graph.node_copy(node, copy)
                )
            return copies[node]

        for node in self._placeholders:
            placeholder = graph.placeholder(node.name)
            if node in self.nodes:
                copies[node] = placeholder
        graph.output([copy(node) for node in wanted])
        compute = GraphModule(torch.nn.Module(), graph)
        count = len(self.parameters)

        def call(arguments: list[Any]) -> tuple[list[float], list[torch.Tensor]]:
            values = compute(*arguments)
            return [value.item() for value in values[:count]], values[count:]

        return call

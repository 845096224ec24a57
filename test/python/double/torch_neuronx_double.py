# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""A double of the compiler: its "NEFF" is the graph itself, as JSON that the runtime double interprets. Graphs are built
by the compiler's own builder."""

from __future__ import annotations

import base64
import importlib.machinery
import importlib.util
import json
import os
import sys
from dataclasses import dataclass


def _builder_module():
    folders = [os.path.join(folder, "torch_neuronx") for folder in sys.path]
    specification = importlib.machinery.PathFinder.find_spec("_compiler", folders)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


_builder = _builder_module()
Value, GraphBuilder, GraphConventions = _builder.Value, _builder.GraphBuilder, _builder.GraphConventions
CallEncoder, graph_content = _builder.CallEncoder, _builder.graph_content


class CompileError(RuntimeError):
    def __init__(self, message, code="NCC_EDBL001", op=None, node=None, frames=()):
        super().__init__(message)
        self.message = message
        self.code = code
        self.op = op
        self.node = node
        self.frames = list(frames)


class UnsupportedError(CompileError):
    pass


@dataclass
class CompiledGraph:
    neff: bytes
    metadata_json: str


compilations: list[str] = []


def _argument(argument):
    kind = argument.WhichOneof("kind")
    if kind == "list":
        return {"list": [_argument(item) for item in argument.list.items]}
    if kind == "floating":
        return {"floating": repr(argument.floating)}
    return {kind: getattr(argument, kind)}


def _type(message):
    return {"dtype": message.dtype, "sizes": list(message.sizes), "strides": list(message.strides)}


def supported_overloads():
    from torch_neuronx import _eager

    return _eager.overloads()


def _elements(message):
    count = 1
    for size in message.sizes:
        count *= size
    return count


def compile(graph_def: bytes, options_json: str) -> CompiledGraph:
    from torch_neuronx._graph import graph_def_pb2 as pb

    graph = pb.GraphDef()
    graph.ParseFromString(graph_def)
    options = json.loads(options_json)
    assert graph.version == 1 and options["target"] in ("trn1", "trn2", "trn3")
    refused = os.environ.get("NEURON_DOUBLE_UNSUPPORTED", "").split(",")
    broken = os.environ.get("NEURON_DOUBLE_BROKEN", "").split(",")
    for position, node in enumerate(graph.nodes):
        frames = [
            (frame.file, frame.line, frame.function, frame.text)
            for location in graph.locations
            if position in location.nodes
            for frame in location.frames
        ]
        if node.op in refused:
            raise UnsupportedError(f"{node.op} is refused", op=node.op, node=node.name, frames=frames)
        if node.op in broken:
            raise CompileError(f"{node.op} is broken", op=node.op, node=node.name, frames=frames)
    compilations.append(graph.name)
    kinds = {pb.Input.TENSOR: "tensor", pb.Input.SCALAR: "scalar", pb.Input.RNG_STATE: "rng_state"}
    body = {
        "name": graph.name or "graph",
        "inputs": [{"value": item.value, "kind": kinds[item.kind], **_type(item.type)} for item in graph.inputs],
        "constants": [
            {"value": item.value, **_type(item.type), "data": base64.b64encode(item.data).decode()}
            for item in graph.constants
        ],
        "nodes": [
            {
                "op": node.op,
                "args": [_argument(argument) for argument in node.arguments],
                "results": list(node.results),
                "work": sum(_elements(item) for item in node.types),
            }
            for node in graph.nodes
        ],
        "outputs": [
            {"value": item.value, "mutates": item.mutates_input, **_type(item.type)}
            for item in graph.outputs
            if item.value
        ],
    }
    inputs = []
    for position, item in enumerate(graph.inputs):
        if item.kind == pb.Input.TENSOR:
            inputs.append({"name": f"input{position}", "role": "tensor", "index": position})
        elif item.kind == pb.Input.RNG_STATE:
            inputs.append({"name": "rng_state", "role": "rng_state", "index": None})
    if any(item.kind == pb.Input.SCALAR for item in graph.inputs):
        inputs.append({"name": "parameters", "role": "parameters", "index": None})
    outputs = [
        {"name": f"output{position}", "alias_input": item.mutates_input - 1 if item.mutates_input else None}
        for position, item in enumerate(item for item in graph.outputs if item.value)
    ]
    uses_random = any(item.kind == pb.Input.RNG_STATE for item in graph.inputs)
    metadata = {"inputs": inputs, "outputs": outputs, "rng_increment": 4 if uses_random else 0, "kernels": 1}
    return CompiledGraph(json.dumps(body).encode(), json.dumps(metadata))

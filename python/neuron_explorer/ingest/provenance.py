# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""From an instruction's provenance record to kernel, FX node, module and Python line."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

# Frames of PyTorch's own Python code lead from the user's line to the operator.
_LIBRARY = re.compile(r"[/\\](?:site|dist)-packages[/\\]torch(?:_neuronx)?[/\\]")
# Larger files are not shown.
_MAX_SOURCE_BYTES = 2 << 20


@dataclass
class Node:
    """One node of the graph that was compiled."""

    index: int
    name: str
    operation: str
    module: str
    # Outermost first: (file, line, function).
    frames: list[tuple[str, int, str]] = field(default_factory=list)

    @property
    def location(self) -> str:
        """The innermost line outside of PyTorch's own code, as file:line: where the user wrote the operation."""
        if not self.frames:
            return ""
        own = next((frame for frame in reversed(self.frames) if not _LIBRARY.search(frame[0])), self.frames[-1])
        return f"{own[0]}:{own[1]}"


@dataclass
class Record:
    """What the instructions with one debug number come from."""

    kernel: str
    names: str
    nodes: list[int]


def parse_graph(text: bytes, modules: list[str]) -> list[Node]:
    """The nodes of a serialized GraphDef, with the paths of their modules; none when it cannot be read."""
    if not text:
        return []
    from google.protobuf.message import DecodeError

    from .._protos import graph_def_pb2

    graph = graph_def_pb2.GraphDef()
    try:
        graph.ParseFromString(text)
    except DecodeError:
        return []
    nodes = [
        Node(index, node.name, node.op, modules[index] if index < len(modules) else "")
        for index, node in enumerate(graph.nodes)
    ]
    for location in graph.locations:
        frames = [(frame.file, frame.line, frame.function) for frame in location.frames]
        for node in location.nodes:
            if node < len(nodes):
                nodes[node].frames = frames
    return nodes


class Repetitions:
    """Nodes of layers that are compiled once and run several times: records name those of the first repetition.

    Repetitions have equal operators, so that the nodes of the others lie at equal distances in the graph.
    """

    def __init__(self, nodes: list[Node], records: list[Record], runs: dict[int, list[int]]):
        """`runs`: by record, the runs of the program in which instructions of it executed, in order."""
        self._nodes = nodes
        self._runs = {record: sorted(numbers) for record, numbers in runs.items() if len(numbers) > 1}
        members: dict[tuple[int, ...], set[int]] = {}
        for record, numbers in self._runs.items():
            known = {node for node in records[record].nodes if node < len(nodes)}
            members.setdefault(tuple(numbers), set()).update(known)
        self._distances = {numbers: self._distance(found, len(numbers)) for numbers, found in members.items()}
        self._members = members

    @property
    def unknown(self) -> bool:
        return any(distance is None for distance in self._distances.values())

    def _distance(self, members: set[int], count: int) -> int | None:
        if not members:
            return 0
        last = max(members)
        for distance in range(1, (len(self._nodes) - 1 - last) // (count - 1) + 1):
            if all(
                self._nodes[node + repetition * distance].operation == self._nodes[node].operation
                for repetition in range(1, count)
                for node in members
            ):
                return distance
        return None

    def all_of(self, node: int) -> list[int]:
        """The node and those of the other repetitions that are compiled with it, whether it has instructions or not."""
        result = [node]
        for numbers, found in self._members.items():
            distance = self._distances[numbers]
            if distance and found and min(found) <= node < min(found) + distance:
                result += [node + repetition * distance for repetition in range(1, len(numbers))]
        return [index for index in dict.fromkeys(result) if index < len(self._nodes)]

    def nodes_of(self, record: int, nodes: list[int], run: int) -> list[int]:
        """The nodes of a record in a run; none when the repetition's nodes cannot be told."""
        numbers = self._runs.get(record)
        if numbers is None or run not in numbers:
            return nodes
        distance = self._distances[tuple(numbers)]
        if distance is None:
            return []
        return [node + numbers.index(run) * distance for node in nodes]


class Frames:
    """Tables of Python frames: each (frame, callers) once."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}
        self._functions: dict[str, int] = {}
        self._locations: dict[tuple[int, int, int], int] = {}
        self._frames: dict[tuple[int, int], int] = {}

    def add(self, frames: Iterable[tuple[str, int, str]]) -> list[int]:
        """Ids of the frames, innermost first."""
        parent = -1
        ids = []
        for file, line, function in frames:
            file_id = self._files.setdefault(file, len(self._files))
            function_id = self._functions.setdefault(function, len(self._functions))
            place = self._locations.setdefault((file_id, function_id, line), len(self._locations))
            parent = self._frames.setdefault((place, parent), len(self._frames))
            ids.append(parent)
        return ids[::-1]

    def tables(self) -> dict[str, dict[str, list]]:
        def texts(values: Iterable[Any]) -> list[str]:
            return [str(value) for value in values]

        return {
            "StackFrame": {
                "id": texts(range(len(self._frames))),
                "file_location_id": [place for place, _ in self._frames],
                "parent_frame_id": ["" if parent < 0 else str(parent) for _, parent in self._frames],
            },
            "StackFrameFileLocation": {
                "id": texts(range(len(self._locations))),
                "file_name_id": [file for file, _, _ in self._locations],
                "function_name_id": [function for _, function, _ in self._locations],
                "line_number": [line for _, _, line in self._locations],
            },
            "StackFrameFileName": {"id": texts(range(len(self._files))), "name": list(self._files)},
            "StackFrameFunctionName": {"id": texts(range(len(self._functions))), "name": list(self._functions)},
        }

    def sources(self, roots: Iterable[str] = ()) -> dict[str, list]:
        """The files that can be read here, directly or under one of `roots`."""
        paths, contents = [], []
        for path in self._files:
            candidates = [path, *(os.path.join(root, path.lstrip("/")) for root in roots)]
            candidates += [os.path.join(root, os.path.basename(path)) for root in roots]
            for candidate in candidates:
                try:
                    if not os.path.isfile(candidate) or os.path.getsize(candidate) > _MAX_SOURCE_BYTES:
                        continue
                    with open(candidate, encoding="utf-8") as file:
                        contents.append(file.read())
                except (OSError, UnicodeDecodeError):
                    continue
                paths.append(path)
                break
        return {"path": paths, "text": contents}


class Tree:
    """Modules, their operators: the rows of FrameworkNode, parents before children."""

    def __init__(self, root: str, nodes: list[Node]):
        self.names = [root]
        self.parents = [-1]
        self.leaf_of_node: dict[int, int] = {}
        self._positions = {(): 0}
        for node in nodes:
            path = tuple(part for part in node.module.split(".") if part)
            parent = self._module(path)
            self.leaf_of_node[node.index] = len(self.names)
            self.names.append(f"{self.names[parent]}/{node.name}")
            self.parents.append(parent)
        self._unknown: int | None = None

    def _module(self, path: tuple[str, ...]) -> int:
        if path not in self._positions:
            parent = self._module(path[:-1])
            self._positions[path] = len(self.names)
            self.names.append(f"{self.names[parent]}/{path[-1]}")
            self.parents.append(parent)
        return self._positions[path]

    @property
    def unknown(self) -> int:
        """The leaf of instructions without a node."""
        if self._unknown is None:
            self._unknown = len(self.names)
            self.names.append(f"{self.names[0]}/(no operator)")
            self.parents.append(0)
        return self._unknown

    def children(self) -> list[list[int]]:
        result: list[list[int]] = [[] for _ in self.names]
        for index, parent in enumerate(self.parents):
            if parent >= 0:
                result[parent].append(index)
        return result

    def columns(self) -> dict[str, list]:
        children = self.children()
        return {
            "id": list(range(len(self.names))),
            "node_name": self.names,
            "parent_name": ["" if parent < 0 else self.names[parent] for parent in self.parents],
            "children_names": [json.dumps([self.names[child] for child in row]) for row in children],
            "children_ids": [json.dumps(row) for row in children],
        }

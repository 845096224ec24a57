# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""What an execution says when an index is out of range. The device reports the instruction and the index; which range was
allowed, in what dimension and at which line of the user's, is known from the graph. One note per node that reads at indices
that are data: the operators of passes/Import/Indexing.cpp, and losses that pick a class."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

from .builder import parse

_INDEX_REMEDY = (
    "mend the index, or bound it before it is used (torch.clamp); nothing was read or written in its place, and results of "
    "this execution are not to be used"
)
_TARGET_REMEDY = (
    "mend the target, or give samples that are not to count the value of ignore_index; results of this execution are not to "
    "be used"
)

Dimensions = list[tuple[int, int]]


class _Sizes:
    """Sizes of the values of a graph."""

    def __init__(self, graph: Any):
        self.types: dict[int, Any] = {}
        for item in graph.inputs:
            self.types[item.value] = item.type
        for item in graph.constants:
            self.types[item.value] = item.type
        for node in graph.nodes:
            self.types.update(zip(node.results, node.types, strict=False))

    def of(self, node: Any, argument: int) -> list[int]:
        return list(self.types[node.arguments[argument].value].sizes)


def _dimension(sizes: _Sizes, node: Any) -> Dimensions:
    """(self, dim, ...)."""
    shape = sizes.of(node, 0) or [1]
    dimension = node.arguments[1].integer % len(shape)
    return [(dimension, shape[dimension])]


def _rows(sizes: _Sizes, node: Any) -> Dimensions:
    return [(0, sizes.of(node, 0)[0])]


def _gradient_rows(sizes: _Sizes, node: Any) -> Dimensions:
    return [(0, node.arguments[2].integer)]


def _elements(sizes: _Sizes, node: Any) -> Dimensions:
    count = 1
    for size in sizes.of(node, 0):
        count *= size
    return [(-1, count)]


def _indexed(sizes: _Sizes, node: Any) -> Dimensions:
    """(self, indices, ...): the dimensions that have an index."""
    shape = sizes.of(node, 0)
    return [
        (position, shape[position])
        for position, item in enumerate(node.arguments[1].list.items)
        if item.WhichOneof("kind") == "value" and position < len(shape)
    ]


def _classes(sizes: _Sizes, node: Any) -> Dimensions:
    shape = sizes.of(node, 0)
    dimension = 0 if len(shape) == 1 else 1
    return [(dimension, shape[dimension])]


# Operator: its indexed dimensions, whether negative indices count from the end, whether the CPU raises IndexError.
_OPERATORS: dict[str, tuple[Callable[[_Sizes, Any], Dimensions], bool, bool]] = {
    "aten.embedding.default": (_rows, False, True),
    "aten.embedding_dense_backward.default": (_gradient_rows, False, True),
    "aten.index_select.default": (_dimension, False, True),
    "aten.index_add.default": (_dimension, False, True),
    "aten.index_copy.default": (_dimension, False, True),
    "aten.index_fill.int_Scalar": (_dimension, True, True),
    "aten.index_fill.int_Tensor": (_dimension, True, True),
    "aten.gather.default": (_dimension, False, False),
    "aten.scatter.src": (_dimension, False, False),
    "aten.scatter.value": (_dimension, False, False),
    "aten.scatter_add.default": (_dimension, False, False),
    "aten.take.default": (_elements, True, True),
    "aten.put.default": (_elements, True, True),
    "aten.index.Tensor": (_indexed, True, True),
    "aten._unsafe_index.Tensor": (_indexed, True, True),
    "aten.index_put.default": (_indexed, True, True),
    "aten._index_put_impl.default": (_indexed, True, True),
}
_LOSSES: dict[str, tuple[Callable[[_Sizes, Any], Dimensions], bool, bool]] = {
    "aten.nll_loss_forward.default": (_classes, False, True),
    "aten.nll_loss2d_forward.default": (_classes, False, True),
}
_ALL = _OPERATORS | _LOSSES
_NAMES = re.compile(b"|".join(re.escape(name.encode()) for name in _ALL))


def _places(graph: Any) -> dict[int, str]:
    """The user's line of each node, as errors print it."""
    from .._dynamo.errors import users_frame

    places: dict[int, str] = {}
    for location in graph.locations:
        frames = [(frame.file, frame.line, frame.function, frame.text) for frame in location.frames]
        if not frames:
            continue
        file, line, function, source = users_frame(frames)
        text = f'  File "{file}", line {line}, in {function}' + (f"\n    {source}" if source else "")
        for node in location.nodes:
            places[node] = text
    return places


def notes_later(serialised: bytes, assertions: Mapping[int, str] | None = None) -> Callable[[], list] | None:
    """What makes the notes of a serialized graph when they are needed, or None if it reads at no such indices.
    `assertions`: nodes that stand for a condition of the user's, with what they say."""
    return functools.partial(_notes_of, serialised, assertions or {}) if _NAMES.search(serialised) else None


def _notes_of(serialised: bytes, assertions: Mapping[int, str]) -> list[dict[str, Any]]:
    graph = parse(serialised)
    positions = [position for position, node in enumerate(graph.nodes) if node.op in _ALL]
    sizes, places = _Sizes(graph), _places(graph)
    # Debug records find nodes by name, which a node may share with those that prepare its operands.
    same_name: dict[str, list[int]] = {}
    for position, node in enumerate(graph.nodes):
        same_name.setdefault(node.name, []).append(position)
    notes = []
    for position in positions:
        node = graph.nodes[position]
        dimensions_of, wraps, is_index_error = _ALL[node.op]
        condition = assertions.get(position, "")
        is_loss = node.op in _LOSSES
        note = {
            "op": "aten._assert_async.msg" if condition else node.op,
            "noun": "target" if is_loss else "index",
            "dimensions": dimensions_of(sizes, node),
            "wraps": wraps,
            "is_index_error": is_index_error and not condition,
            "place": places.get(position, ""),
            "remedy": "" if condition else _TARGET_REMEDY if is_loss else _INDEX_REMEDY,
            "condition": condition,
        }
        notes += [note | {"node": other} for other in (same_name[node.name] if node.name else [position])]
    return notes

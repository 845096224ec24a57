# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The text of the program at each phase.

The phases of the compiler come from compiling the captured graph once more; the last one, what was emitted, is the
disassembly of the NEFF itself.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import re
import sys
import tempfile
from typing import Any

from .statics import ENGINE_NAMES

EMITTED = "emit"
_MAX_TEXT_BYTES = 8 << 20
_LOCATION = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_REFERENCE = re.compile(r"loc\((#loc\d*)\)")
_NAME = re.compile(r'"((?:[^"\\]|\\.)*)"(?=[\]\(,)\s]|$)')


def load_compiler() -> Any | None:
    """torch_neuronx._compiler without importing torch_neuronx, which needs PyTorch."""
    name = "torch_neuronx._compiler"
    if name in sys.modules:
        return sys.modules[name]
    package = importlib.util.find_spec("torch_neuronx")
    for folder in package.submodule_search_locations or [] if package else []:
        for path in sorted(pathlib.Path(folder).glob("_compiler*.so")):
            specification = importlib.util.spec_from_file_location(name, path)
            if specification is None or specification.loader is None:
                continue
            module = importlib.util.module_from_spec(specification)
            try:
                specification.loader.exec_module(module)
            except ImportError:
                continue
            sys.modules[name] = module
            return module
    return None


def write_phases(data: Any) -> None:
    phases = _compiled(data)
    rows: dict[str, list] = {"phase": [], "line": [], "node_id": [], "engine": [], "pc": []}
    statics = data.statics
    nodes = {node.name: node.index for node in statics.nodes}
    for name, text in phases:
        for line, node in node_lines(text, nodes):
            # A layer that runs several times is one function of the text, with the names of its first run.
            for repeated in statics.repetitions.all_of(node):
                _locate(rows, name, line, statics.tree.leaf_of_node[repeated])
    text = _emitted(data, rows)
    if text:
        phases.append((EMITTED, text))
    data.write(
        "IrPhase",
        {
            "phase": [name for name, _ in phases],
            "text": [text for _, text in phases],
            "order": list(range(len(phases))),
        },
    )
    data.write("IrLocation", rows)


def _locate(rows: dict[str, list], phase: str, line: int, node: int, engine: str | None = None, pc: int | None = None):
    for name, value in (("phase", phase), ("line", line), ("node_id", int(node)), ("engine", engine), ("pc", pc)):
        rows[name].append(value)


def _emitted(data: Any, rows: dict[str, list]) -> str:
    """The streams as text; adds where each instruction that ran stands in it."""
    statics = data.statics
    leaves: dict[tuple[str, int], list[int]] = {}
    for row, leaf in zip(statics.rows, statics.leaves, strict=True):
        known = leaves.setdefault((row["stream"], row["pc"]), [])
        if leaf not in known:
            known.append(leaf)
    pieces = []
    found: dict[str, list] = {name: [] for name in rows}
    line = 0
    for stream, text in data.profile.streams():
        engine = ENGINE_NAMES[stream]
        pc = 0
        for content in text.splitlines():
            line += 1
            # Labels and braces stand at the margin.
            if content.startswith("  "):
                for leaf in leaves.get((stream, pc), ()):
                    _locate(found, EMITTED, line, leaf, engine, pc)
                pc += 1
        pieces.append(text)
        line += 1
    text = "\n".join(pieces)
    if len(text) > _MAX_TEXT_BYTES:
        data.warnings.append(("phases", f"the emitted streams have {len(text)} bytes of text and are left out"))
        return ""
    for name, values in found.items():
        rows[name] += values
    return text


def _compiled(data: Any) -> list[tuple[str, str]]:
    graph = data.profile.graph_def
    if not graph:
        return []
    compiler = load_compiler()
    if compiler is None:
        data.warnings.append(("phases", "the compiler is not installed: the program's phases are left out"))
        return []
    with tempfile.TemporaryDirectory() as folder:
        options = {"target": data.machine["target"], "dump_phases_to": folder}
        try:
            compiler.compile(graph, json.dumps(options))
        except Exception as error:  # what does not compile any more must not lose the profile
            data.warnings.append(("phases", f"the captured graph could not be compiled again: {error}"))
        return _read(folder)


def _read(folder: str) -> list[tuple[str, str]]:
    phases = []
    for root, _, files in os.walk(folder):
        for file in files:
            path = pathlib.Path(root) / file
            if path.suffix != ".mlir" or path.stat().st_size > _MAX_TEXT_BYTES:
                continue
            phases.append((path.name, path.stem, path.read_text(errors="replace")))
    # File names begin with the position of the phase.
    return [(re.sub(r"^\d+[-_.]?", "", stem), text) for _, stem, text in sorted(phases)]


def node_lines(text: str, nodes: dict[str, int]) -> list[tuple[int, int]]:
    """(line, node) for every line whose location names a node of the graph."""
    definitions: dict[str, str] = {}
    lines = text.splitlines()
    for line in lines:
        if match := _LOCATION.match(line):
            definitions[match[1]] = match[2]
    names: dict[str, frozenset[int]] = {}

    def resolve(alias: str, depth: int = 0) -> frozenset[int]:
        if alias not in names and depth < 64:
            body = definitions.get(alias, "")
            found = {nodes[name] for name in _NAME.findall(body) if name in nodes}
            # Only the parts of a fusion and what a name wraps are the operation's own; call sites are frames.
            if body.startswith(("fused", "#")) or not found:
                for inner in re.findall(r"#loc\d*", body) if not body.startswith(('"', "callsite")) else []:
                    found |= resolve(inner, depth + 1)
            names[alias] = frozenset(found)
        return names.get(alias, frozenset())

    result = []
    for number, line in enumerate(lines, 1):
        if line.startswith("#loc"):
            continue
        found: set[int] = set()
        for alias in _REFERENCE.findall(line):
            found |= resolve(alias)
        result += [(number, node) for node in sorted(found)]
    return result

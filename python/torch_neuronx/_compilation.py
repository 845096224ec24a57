# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""From GraphDef to a program: memory cache, disk cache, compiler."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import torch

from . import _cache, _environment
from ._graph.builder import content_hash, parse

_lock = threading.Lock()
_memory: dict[str, _cache.Entry] = {}
# The graph of each program and the modules of its nodes, for profiles: where an instruction comes from.
_graphs: dict[str, tuple[bytes, list[str]]] = {}
# Constants of more bytes are left out of them.
_MAX_GRAPH_BYTES = 1 << 20
_compiler_module: Any = None
_fingerprint: str | None = None
# Options that decide how a program is delivered rather than what it computes.
_DELIVERY_OPTIONS = frozenset({"dump_phases_to", "model_name"})


def compiler():
    """The compiler's extension module; imported at the first compilation because it is large."""
    global _compiler_module
    if _compiler_module is None:
        try:
            _compiler_module = importlib.import_module("torch_neuronx._compiler")
        except ImportError as error:
            raise RuntimeError(
                f"the compiler module torch_neuronx._compiler cannot be imported: {error}; build it with "
                "NEURON_COMPILER=ON or install the complete package"
            ) from error
    return _compiler_module


def is_compile_error(error: BaseException) -> bool:
    """Whether the compiler raised it (without importing the compiler to find out)."""
    return _compiler_module is not None and isinstance(error, _compiler_module.CompileError)


def is_unsupported(error: BaseException) -> bool:
    return _compiler_module is not None and isinstance(error, _compiler_module.UnsupportedError)


def _compiler_fingerprint() -> str:
    """Content hash of the compiler: a changed compiler must not find programs of the old one."""
    global _fingerprint
    if _fingerprint is not None:
        return _fingerprint
    loaded = sys.modules.get("torch_neuronx._compiler")
    path = getattr(loaded, "__file__", None)
    if path is None:
        specification = importlib.util.find_spec("torch_neuronx._compiler")
        path = specification.origin if specification else None
    if path is None or not os.path.isfile(path):
        _fingerprint = "unknown"
        return _fingerprint
    status = os.stat(path)
    identity = f"{os.path.realpath(path)}:{status.st_size}:{status.st_mtime_ns}"
    note = None
    directory = _environment.cache_directory()
    if directory is not None:
        note = os.path.join(directory, "compiler-" + hashlib.sha256(identity.encode()).hexdigest()[:16])
        try:
            with open(note) as file:
                text = file.read().strip()
            if len(text) == 64:
                _fingerprint = text
                return _fingerprint
        except OSError:
            pass
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    _fingerprint = digest.hexdigest()
    if note is not None:
        try:
            os.makedirs(os.path.dirname(note), mode=0o700, exist_ok=True)
            scratch = f"{note}.{os.getpid()}"
            with open(scratch, "w") as file:
                file.write(_fingerprint)
            os.replace(scratch, note)
        except OSError:
            pass
    return _fingerprint


def _key_parts(options: dict[str, Any]) -> dict[str, Any]:
    """What the key depends on beside the graph."""
    from ._build_information import VERSION

    return {
        "options": {name: value for name, value in options.items() if name not in _DELIVERY_OPTIONS},
        "compiler": _compiler_fingerprint(),
        "package": VERSION,
        "deterministic": torch.are_deterministic_algorithms_enabled(),
    }


def _key_of(graph_hash: bytes, parts: dict[str, Any]) -> str:
    digest = hashlib.sha256(graph_hash)
    digest.update(json.dumps(parts, sort_keys=True).encode())
    return digest.hexdigest()


def cache_key(graph: bytes, options: dict[str, Any]) -> str:
    return _key_of(content_hash(graph), _key_parts(options))


def _explanation(graph: bytes, key: str, graph_hash: bytes, parts: dict[str, Any], metadata: dict) -> bytes:
    """What neuron-compile --explain-cache compares, beside the graph. Constants by hash, since the graph that is kept
    may be without their content; the machine model for information, since it is part of the compiler."""
    record = {
        "key": key,
        "graph": graph_hash.hex(),
        "constants": [hashlib.sha256(data).hexdigest() for data in compiler().graph_content(graph)[1]],
        "machine_model": metadata.get("machine_model", ""),
        **parts,
    }
    return json.dumps(record, sort_keys=True, indent=1).encode() + b"\n"


def explanation(graph: bytes, options: dict[str, Any], entry: _cache.Entry) -> bytes:
    return _explanation(graph, entry.key, content_hash(graph), _key_parts(options), entry.metadata)


def compile_graph(graph: bytes, options: dict[str, Any], modules: list[str] | None = None) -> _cache.Entry:
    """The program of a serialized graph. `modules`: path of the module of each node. Raises the compiler's exceptions."""
    graph_hash, parts = content_hash(graph), _key_parts(options)
    key = _key_of(graph_hash, parts)
    # Files of the compiler's phases only come from a compilation.
    fresh = "dump_phases_to" in options
    with _lock:
        entry = None if fresh else _memory.get(key)
    if entry is not None:
        _cache.statistics["memory_hits"] += 1
        return entry
    entry = None if fresh else _cache.load(key)
    text = _without_large_constants(graph)
    if entry is None:
        _cache.statistics["misses"] += 1
        result = compiler().compile(graph, json.dumps(options, sort_keys=True))
        entry = _cache.store(
            key,
            bytes(result.neff),
            result.metadata_json,
            lambda metadata: {"graph.pb": text, "key.json": _explanation(graph, key, graph_hash, parts, metadata)},
        )
    _preserve(graph, entry, lambda: _explanation(graph, key, graph_hash, parts, entry.metadata))
    with _lock:
        entry = _memory.setdefault(key, entry)
        _graphs.setdefault(key, (text, modules or []))
    return entry


def _without_large_constants(graph: bytes) -> bytes:
    if len(graph) <= _MAX_GRAPH_BYTES:
        return graph
    message = parse(graph)
    for constant in message.constants:
        if len(constant.data) > 1024:
            constant.ClearField("data")
    return message.SerializeToString(deterministic=True)


def graph_of(key: str) -> tuple[bytes, list[str]] | None:
    """The serialized GraphDef of a program that this process compiled or loaded, with its Python frames, and the paths
    of its nodes' modules."""
    with _lock:
        return _graphs.get(key)


def program_of(entry: _cache.Entry, label: str, kernel_name: str, fault_notes: Callable[[], list] | None = None):
    """The launchable program of a cache entry; `fault_notes`: _graph/faults.py."""
    from . import _C

    metadata = entry.metadata
    inputs = [
        (item["name"], item["role"], -1 if item.get("index") is None else int(item["index"]))
        for item in metadata["inputs"]
    ]
    outputs = [
        (item["name"], -1 if item.get("alias_input") is None else int(item["alias_input"]))
        for item in metadata["outputs"]
    ]
    return _C.Program(
        neff=entry.neff,
        label=label,
        kernel_name=kernel_name,
        hash=entry.key,
        inputs=inputs,
        outputs=outputs,
        rng_increment=int(metadata.get("rng_increment", 0)),
        fault_notes=fault_notes,
    )


def neff_path(key: str) -> str | None:
    """Where the NEFF of a program is on disk, if it is."""
    with _lock:
        entry = _memory.get(key)
    return entry.path if entry else None


def clear_memory() -> None:
    with _lock:
        _memory.clear()
        _graphs.clear()


def _preserve(graph: bytes, entry: _cache.Entry, explain: Callable[[], bytes]) -> None:
    directory = _environment.debug_directory()
    if directory is None:
        return
    rank = os.environ.get("RANK", "0")
    from google.protobuf import text_format

    message = parse(graph)
    stem = f"{message.name or 'graph'}_{time.time_ns()}"

    for folder, name, content in (
        ("graph_def", stem + ".graphdef", graph),
        ("graph_def", stem + ".graphdef.txt", text_format.MessageToString(message).encode()),
        ("graph_def", stem + ".key.json", explain()),
        ("neff", stem + ".neff", entry.neff),
    ):
        target = os.path.join(directory, folder, f"proc_{rank}")
        os.makedirs(target, exist_ok=True)
        with open(os.path.join(target, name), "wb") as file:
            file.write(content)

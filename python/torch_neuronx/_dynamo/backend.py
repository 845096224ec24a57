# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The backend: graphs from Dynamo and AOTAutograd to launchable programs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule

from .. import _compilation, _environment, _loading, _warnings
from .._graph import faults
from .._graph.builder import parse
from . import metrics
from .errors import REMEDY, NeuronCompileError, NeuronUnsupportedError
from .lowering import Lowered, has_symbols, lower, place_of, symbol_values

_KINDS = {"forward": 1, "backward": 0, "inference": 0}
# Modes that PyTorch documents: accepted so that a script runs on several backends.
_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_model_name = "model_default"
_graph_counter = 0
_lock = threading.Lock()
_warned: set[str] = set()


def set_model_name(name: str) -> None:
    """Label of graphs compiled from now on, unless options={"model_name": ...} says otherwise."""
    global _model_name
    _model_name = str(name)


class BackendOptions:
    """torch.compile(options=...), checked."""

    KNOWN = ("compiler_workdir", "dynamic", "fallback_execution", "model_name")

    def __init__(self, options: dict[str, Any] | None):
        options = dict(options or {})
        unknown = sorted(set(options) - set(self.KNOWN))
        if unknown:
            raise ValueError(
                f"expected options among {', '.join(self.KNOWN)} but got {', '.join(map(repr, unknown))} "
                "for backend 'neuron'"
            )
        fallback = options.get("fallback_execution")
        self.fallback_execution = not _environment.fallback_execution_disabled() if fallback is None else bool(fallback)
        self.model_name = str(options.get("model_name") or _model_name)
        # Where the graph, the IR after each phase of the compiler and the NEFF are left.
        self.workdir = options.get("compiler_workdir")
        if self.workdir is not None:
            if not isinstance(self.workdir, (str, os.PathLike)):
                raise TypeError(
                    f"expected a path in option 'compiler_workdir' but got {self.workdir!r} for backend 'neuron'"
                )
            self.workdir = os.fspath(self.workdir)


def _warn_once(topic: str, message: str) -> None:
    with _lock:
        if topic in _warned:
            return
        _warned.add(topic)
    _warnings.warn_user(message)


def neuron_backend(
    gm: GraphModule,
    example_inputs: list[Any],
    *,
    options: dict[str, Any] | None = None,
    mode: str | None = None,
    **unknown: Any,
) -> Callable:
    """torch.compile(backend="neuron")."""
    _loading.require()
    if unknown:
        raise TypeError(f"expected the arguments options and mode but got {', '.join(sorted(unknown))}")
    if mode not in (None, "default"):
        if mode not in _MODES:
            raise ValueError(f"expected mode among {', '.join(_MODES)} but got {mode!r} for backend 'neuron'")
        _warn_once(f"mode {mode}", f"mode={mode!r} has no effect on backend 'neuron', which always uses 'default'")
    parsed = BackendOptions(options)

    from torch._dynamo.backends.common import aot_autograd

    from . import decompositions, partition

    def compiler_for(kind: str) -> Callable:
        def compile_fx(graph_module: GraphModule, fake_inputs: list[Any]) -> Callable:
            return _compile(graph_module, kind, parsed)

        return compile_fx

    return aot_autograd(
        fw_compiler=compiler_for("forward"),
        bw_compiler=compiler_for("backward"),
        inference_compiler=compiler_for("inference"),
        decompositions=decompositions.table(),
        partition_fn=partition.partition,
        keep_inference_input_mutations=True,
    )(gm, example_inputs)


def _compile(gm: GraphModule, kind: str, options: BackendOptions) -> Callable:
    try:
        if has_symbols(gm):
            return _specialising(gm, kind, options)
        return _compile_concrete(gm, kind, options, None)
    except NeuronCompileError as error:
        if not options.fallback_execution:
            raise
        return _run_eagerly(gm, error)


def _run_eagerly(gm: GraphModule, error: NeuronCompileError) -> Callable:
    from torch._functorch.aot_autograd import make_boxed_func

    _warnings.warn_user(f"a graph runs eagerly because it could not be compiled: {error}")
    return make_boxed_func(gm.forward)


def _specialising(gm: GraphModule, kind: str, options: BackendOptions) -> Callable:
    """Compiles once per tuple of concrete sizes; one Dynamo entry serves them all."""
    compiled: dict[tuple, Callable] = {}
    lock = threading.Lock()

    def call(arguments: list[Any]) -> list[Any]:
        key = tuple(
            tuple(argument.shape) + tuple(argument.stride()) if isinstance(argument, torch.Tensor) else argument
            for argument in arguments
        )
        graph = compiled.get(key)
        if graph is None:
            with lock:
                graph = compiled.get(key)
                if graph is None:
                    symbols = symbol_values(gm, arguments)
                    try:
                        graph = _compile_concrete(gm, kind, options, symbols)
                    except NeuronCompileError as error:
                        if not options.fallback_execution:
                            raise
                        graph = _run_eagerly(gm, error)
                    compiled[key] = graph
        return graph(arguments)

    call._boxed_call = True
    return call


def _compile_concrete(gm: GraphModule, kind: str, options: BackendOptions, symbols: dict[Any, int] | None) -> Callable:
    global _graph_counter
    with _lock:
        number = _graph_counter
        _graph_counter += 1
    started = time.perf_counter()
    name = f"{options.model_name}_{number}_{kind}"
    lowered = lower(gm, name, kind, symbols)
    _check_placement(lowered)
    program, entry = None, None
    if lowered.computed:
        serialised = lowered.graph.serialise()
        entry = _run_compiler(gm, lowered, serialised, options)
        notes = faults.notes_later(serialised, lowered.assertions)
        program = _compilation.program_of(entry, name, f"neff:{options.model_name}", notes)
    from .. import _C

    graph = _C.CompiledGraph(
        program=program,
        device=lowered.device,
        arguments=lowered.arguments,
        inputs=[vars(item) for item in lowered.inputs],
        outputs=[vars(item) for item in lowered.outputs],
        results=[vars(item) for item in lowered.results],
        correlation_depth=_KINDS[kind],
        parameters=len(lowered.numbers.parameters),
    )
    numbers_of = lowered.numbers.function()
    number_results = [position for position, _ in lowered.numbers.results]
    metrics.add(
        {
            "name": name,
            "kind": kind,
            "has_collectives": False,
            "nodes": lowered.graph.node_count,
            "kernels": entry.metadata.get("kernels") if entry else 0,
            "neff_hash": entry.key if entry else None,
            "neff_path": entry.path if entry else None,
            "compile_seconds": time.perf_counter() - started,
        }
    )

    offsets = [(item.argument, item.offset) for item in lowered.inputs if item.offset is not None]

    def call(arguments: list[Any]) -> list[Any]:
        for position, offset in offsets:
            got = arguments[position].storage_offset()
            if got != offset:
                raise RuntimeError(
                    f"{name}: expected argument {position} to begin at element {offset} of its storage, because "
                    f"as_strided counts from there, but got {got}; use slices instead, or torch._dynamo.reset() to compile "
                    "again"
                )
        if numbers_of is None:
            return graph(arguments)
        parameters, values = numbers_of(arguments)
        results = graph(arguments, parameters)
        for position, value in zip(number_results, values, strict=True):
            results[position] = value
        return results

    call._boxed_call = True
    return call


def _check_placement(lowered: Lowered) -> None:
    if not any(item.on_host for item in lowered.inputs):
        return
    positions = [item.argument for item in lowered.inputs if item.on_host]
    if _environment.cpu_autocopy_disabled():
        raise NeuronCompileError(
            f"expected arguments on neuron but got {len(positions)} on the CPU (positions {positions[:8]})",
            remedy="move them with .to('neuron'), or unset TORCH_NEURONX_DYNAMO_DISABLE_CPU_AUTOCOPY",
        )
    _warn_once(
        "cpu inputs",
        f"{len(positions)} argument(s) of a compiled graph are on the CPU and are copied to the device at every call; "
        "move them with .to('neuron')",
    )


def _run_compiler(gm: GraphModule, lowered: Lowered, graph: bytes, options: BackendOptions):
    compile_options = _environment.compile_options()
    folder = None
    if options.workdir is not None:
        folder = os.path.join(options.workdir, lowered.graph.name)
        compile_options["dump_phases_to"] = folder
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise type(error)(
                error.errno,
                f"expected a folder that can be written in option 'compiler_workdir' but got {error.strerror}",
                folder,
            ) from error
        _write(folder, "graph.pb", graph)
    compile_options["model_name"] = options.model_name
    try:
        entry = _compilation.compile_graph(graph, compile_options, lowered.modules)
        if folder is not None:
            _write(folder, "graph.neff", entry.neff)
            _write(folder, "key.json", _compilation.explanation(graph, compile_options, entry))
        return entry
    except Exception as error:
        if not _compilation.is_compile_error(error):
            raise
        kind = NeuronUnsupportedError if _compilation.is_unsupported(error) else NeuronCompileError
        node = getattr(error, "node", None)
        frames = [tuple(frame) for frame in getattr(error, "frames", None) or ()]
        # The graph knows the whole Python stack, the compiler's locations only files and lines.
        frames = _frames_of_node(graph, node) or frames
        if not frames:
            frames = next((place_of(other) for other in gm.graph.nodes if other.name == node), ())
        raise kind(
            getattr(error, "message", None) or str(error),
            code=getattr(error, "code", "") or "",
            op=getattr(error, "op", None),
            node=node,
            frames=frames,
            remedy=REMEDY if kind is NeuronUnsupportedError else "please report this graph as a bug",
        ) from error


def _write(folder: str, name: str, content: bytes) -> None:
    with open(os.path.join(folder, name), "wb") as file:
        file.write(content)


def _frames_of_node(serialised: bytes, name: str | None) -> list[tuple[str, int, str, str]]:
    graph = parse(serialised)
    position = next((position for position, node in enumerate(graph.nodes) if node.name == name), None)
    for location in graph.locations:
        if position in location.nodes:
            return [(frame.file, frame.line, frame.function, frame.text) for frame in location.frames]
    return []

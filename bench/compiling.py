# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""What compiling costs: sections `compile` (against Inductor) and `scaling` (large tensors against small ones)."""

from __future__ import annotations

import functools
import io
import statistics
import tarfile
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from unittest import mock

import torch
from functions import ELEMENTWISE_CHAIN, LAYER_NORM_GELU, NAIVE_RMS_NORM, SOFTMAX, Case
from measure import Row, interleaved, progress, seconds
from torch._subclasses.fake_tensor import FakeTensorMode
from torch_neuronx import _C
from torch_neuronx._dynamo import backend, metrics

CASES = (NAIVE_RMS_NORM, SOFTMAX, LAYER_NORM_GELU, ELEMENTWISE_CHAIN)
#: Of the graph, before the header of a NEFF ends and its archive begins.
NEFF_HEADER_BYTES = 1024


@dataclass
class Compilation:
    """One compilation without an execution. Times in seconds."""

    #: FX graph in, NEFF loaded on the device.
    backend: float = 0.0
    #: The call of torch.compile without the backend: Dynamo and AOTAutograd.
    front_end: float = 0.0
    program: object = field(default=None, repr=False)
    #: Compiles and loads the same graph once more and returns the seconds it took.
    again: Callable[[], float] = field(default=None, repr=False)


def compile_only(case: Case, rows: int, columns: int, dtype: torch.dtype) -> Compilation:
    """`compile_function` of a case at a size."""
    return compile_function(case.function, lambda: case.arguments(rows, columns, dtype, "neuron", fill=False))


def compile_function(function: Callable, make_arguments: Callable[[], list[torch.Tensor]]) -> Compilation:
    """Compiles for tensors that do not exist and loads the NEFF. The caches have to be off (run.py sees to it)."""
    result = Compilation()
    compile_graph = backend._compile

    def load(gm, kind, options) -> float:
        # Programs of earlier graphs must not be found in memory.
        backend._compilation.clear_memory()
        started = time.perf_counter()
        # Keeps the program alive until it is looked up.
        graph = compile_graph(gm, kind, options)
        record = metrics.records()[-1]
        result.program = _C.program_by_hash(record["neff_hash"])
        result.program.load(0)
        elapsed = time.perf_counter() - started
        del graph
        return elapsed

    def timed(gm, kind, options):
        result.again = functools.partial(load, gm, kind, options)
        result.backend = result.again()

        # The call that made Dynamo compile goes on with fake tensors.
        def run(arguments):
            return gm.forward(*arguments)

        run._boxed_call = True
        return run

    torch._dynamo.reset()
    with mock.patch.object(backend, "_compile", timed), FakeTensorMode(), torch.no_grad():
        arguments = make_arguments()
        compiled = torch.compile(function, backend="neuron", fullgraph=True, dynamic=False)
        started = time.perf_counter()
        compiled(*arguments)
        result.front_end = time.perf_counter() - started - result.backend
    return result


def instruction_bytes(neff: bytes) -> int:
    """Encoded instructions of all engines."""
    with tarfile.open(fileobj=io.BytesIO(neff[NEFF_HEADER_BYTES:]), mode="r:gz") as archive:
        return sum(member.size for member in archive if member.name.endswith(".bin"))


def inductor_compile(function: Callable, arguments: list[torch.Tensor]) -> float:
    """Seconds inside Inductor's compile_fx_inner on the CPU."""
    from torch._inductor.compile_fx import compile_fx, compile_fx_inner

    spent = 0.0

    def timed(*args, **kwargs):
        nonlocal spent
        started = time.perf_counter()
        try:
            return compile_fx_inner(*args, **kwargs)
        finally:
            spent += time.perf_counter() - started

    torch._dynamo.reset()
    with torch.no_grad():
        inductor = functools.partial(compile_fx, inner_compile=timed)
        torch.compile(function, backend=inductor, fullgraph=True, dynamic=False)(*arguments)
    return spent


def _inductor_case(case: Case, rows: int, columns: int, dtype: torch.dtype) -> float:
    return inductor_compile(case.function, case.arguments(rows, columns, dtype, "cpu", fill=False))


def compile_rows(turns: int) -> list[Row]:
    """Backend time per graph against Inductor's and against what Dynamo and AOTAutograd take.

    Inductor starts each time in an empty cache folder of its own in which only its precompiled header exists.
    """
    import torch._inductor.config
    from torch._inductor.utils import fresh_cache

    rows = []
    with (
        tempfile.TemporaryDirectory() as directory,
        fresh_cache(dir=directory),
        torch._inductor.config.patch(force_disable_caches=True),
    ):
        progress("compile: warming up both compilers")
        # What switching the caches off makes Dynamo say once per graph.
        warnings.filterwarnings("ignore", message="dynamo_pgo force disabled")
        _inductor_case(SOFTMAX, 64, 64, torch.float32)
        compile_only(SOFTMAX, 64, 64, torch.float32)
        for case in CASES:
            front_ends = []

            def ours(turn: int, case=case, front_ends=front_ends) -> float:
                compilation = compile_only(case, 1024 + turn, 1024, torch.float32)
                front_ends.append(compilation.front_end)
                return compilation.backend

            def theirs(turn: int, case=case) -> float:
                # Sizes differ from turn to turn, so that no cache can serve the graph.
                return _inductor_case(case, 1024 + turn, 1024, torch.float32)

            progress(f"compile: {case.name}")
            pair = interleaved(ours, theirs, turns)
            front_end = statistics.median(front_ends)
            rows.append(
                Row(
                    "compile",
                    f"{case.name}, backend vs Inductor",
                    seconds(pair.measured),
                    seconds(pair.peer),
                    1 / pair.ratio,
                    ">=",
                    50,
                    "times faster",
                )
            )
            rows.append(
                Row(
                    "compile",
                    f"{case.name}, backend vs Dynamo + AOTAutograd",
                    seconds(pair.measured),
                    seconds(front_end),
                    pair.measured / front_end,
                    "<=",
                    1,
                )
            )
    return rows


def scaling_rows(turns: int) -> list[Row]:
    """The same graph at [65536, 8192] and at [4096, 2048]. Nothing runs: the tensors are fake."""
    rows = []
    compile_only(SOFTMAX, 64, 64, torch.float32)
    for case in CASES:
        progress(f"scaling: {case.name}")
        large, small = (compile_only(case, *shape, torch.float32) for shape in ((65536, 8192), (4096, 2048)))
        sizes = {name: instruction_bytes(it.program.neff) for name, it in (("large", large), ("small", small))}
        pair = interleaved(lambda turn, it=large: it.again(), lambda turn, it=small: it.again(), turns)
        rows.append(
            Row(
                "scaling",
                f"{case.name}, instruction bytes",
                str(sizes["large"]),
                str(sizes["small"]),
                sizes["large"] / sizes["small"],
                "<=",
                1.2,
            )
        )
        rows.append(
            Row(
                "scaling",
                f"{case.name}, compile time",
                seconds(pair.measured),
                seconds(pair.peer),
                pair.ratio,
                "<=",
                1.2,
            )
        )
    return rows

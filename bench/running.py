# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""What running costs on this machine: sections `run` (emulation against eager CPU) and `calls` (cost per call)."""

from __future__ import annotations

import contextlib
import ctypes
import statistics
import time
from collections.abc import Callable, Iterator

import torch
from functions import LAYER_NORM, NAIVE_LAYER_NORM, NAIVE_RMS_NORM, NAIVE_SOFTMAX, SOFTMAX, Case
from measure import Row, interleaved, progress, seconds

ROWS, COLUMNS = 4096, 8192
NAIVE_BAR, FUSED_BAR = 0.7, 1.5
RUN_BARS = (
    (NAIVE_RMS_NORM, NAIVE_BAR),
    (NAIVE_SOFTMAX, NAIVE_BAR),
    (NAIVE_LAYER_NORM, NAIVE_BAR),
    (SOFTMAX, FUSED_BAR),
    (LAYER_NORM, FUSED_BAR),
)
#: Of a result against eager mode, relative to the largest magnitude: a wrong result is not worth timing.
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 2e-2}
EAGER_BAR_SECONDS = 12e-6
CALL_BAR = 1.5
CALLS = 400


def _timed(function: Callable[[], object]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


@contextlib.contextmanager
def retained_heap() -> Iterator[None]:
    """Keeps freed memory in the process, so that eager mode writes its results to pages that exist already.

    By default glibc maps large results afresh and the kernel clears every page of them, which costs eager mode more
    than the arithmetic.
    """
    trim_threshold, mmap_max = -1, -4  # glibc's malloc.h
    library = ctypes.CDLL(None)
    library.mallopt(mmap_max, 0)
    library.mallopt(trim_threshold, 2**31 - 1)
    try:
        yield
    finally:
        library.mallopt(mmap_max, 65536)
        library.mallopt(trim_threshold, 128 * 1024)
        library.malloc_trim(0)


def run_rows(turns: int) -> list[Row]:
    """One emulated execution on one host thread, waited for, against the same function in eager mode on the CPU.

    The bars are for eager mode as it is; afterwards each case is shown against eager mode with memory that is kept
    between calls (afterwards, because the heap does not shrink to what it was).
    """
    rows = [_run_row(case, dtype, turns, bar) for case, bar in RUN_BARS for dtype in TOLERANCE]
    with retained_heap():
        rows += [_run_row(case, dtype, turns, None) for case, _ in RUN_BARS for dtype in TOLERANCE]
    return rows


def _run_row(case: Case, dtype: torch.dtype, turns: int, bar: float | None) -> Row:
    name = f"{case.name} {'fp32' if dtype == torch.float32 else 'bf16'}"
    label = f"{name} vs eager CPU" + ("" if bar else ", heap retained")
    progress(f"run: {label}")
    host = case.arguments(ROWS, COLUMNS, dtype, "cpu")
    device = [argument.to("neuron") for argument in host]
    torch._dynamo.reset()
    compiled = torch.compile(case.function, backend="neuron", fullgraph=True, dynamic=False)

    def emulated():
        compiled(*device)
        torch.neuron.synchronize()

    def eager():
        case.function(*host)

    expected = case.function(*host).float()
    difference = (compiled(*device).cpu().float() - expected).abs().max() / expected.abs().max()
    if difference > TOLERANCE[dtype]:
        raise RuntimeError(f"{name}: the emulated result differs from eager mode by {difference:.3g}")
    del expected
    emulated()
    eager()
    pair = interleaved(lambda turn: _timed(emulated), lambda turn: _timed(eager), turns)
    return Row("run", label, seconds(pair.measured), seconds(pair.peer), pair.ratio, "<=" if bar else "", bar)


def _per_call(function: Callable[[], object], finish: Callable[[], object]) -> float:
    """Seconds per call of a batch; what the calls have enqueued is waited for outside of the time."""
    started = time.perf_counter()
    for _ in range(CALLS):
        function()
    elapsed = time.perf_counter() - started
    finish()
    return elapsed / CALLS


def call_rows(turns: int) -> list[Row]:
    """What the caller waits for: the enqueue of an eager operator, the call of a compiled function."""
    progress("calls: eager operator")
    x, y = torch.randn(8), torch.randn(8)
    nx, ny = x.to("neuron"), y.to("neuron")
    wait = torch.neuron.synchronize
    rows = []
    with torch.no_grad():
        for _ in range(20):
            torch.add(nx, ny)
        batches = [_per_call(lambda: torch.add(nx, ny), wait) for _ in range(turns)]
        host = [_per_call(lambda: torch.add(x, y), lambda: None) for _ in range(turns)]
        measured = statistics.median(batches)
        rows.append(
            Row(
                "calls",
                "enqueue of a cached eager operator, us",
                seconds(measured),
                f"{seconds(statistics.median(host))} (eager CPU)",
                measured * 1e6,
                "<=",
                EAGER_BAR_SECONDS * 1e6,
            )
        )

        progress("calls: compiled function")

        def function(a, b):
            return a * 2 + b

        torch._dynamo.reset()
        ours = torch.compile(function, backend="neuron", fullgraph=True, dynamic=False)
        theirs = torch.compile(function, backend="inductor", fullgraph=True, dynamic=False)
        for _ in range(20):
            ours(nx, ny)
            theirs(x, y)
        pair = interleaved(
            lambda turn: _per_call(lambda: ours(nx, ny), wait),
            lambda turn: _per_call(lambda: theirs(x, y), lambda: None),
            turns,
        )
        rows.append(
            Row(
                "calls",
                "call of a compiled function vs Inductor",
                seconds(pair.measured),
                seconds(pair.peer),
                pair.ratio,
                "<=",
                CALL_BAR,
            )
        )
    return rows

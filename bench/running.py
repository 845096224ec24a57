# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""What running costs on this machine: sections `run` (emulation against eager CPU) and `calls` (cost per call)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

from functions import LAYER_NORM, NAIVE_LAYER_NORM, NAIVE_RMS_NORM, NAIVE_SOFTMAX, SOFTMAX
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


def run_rows(turns: int) -> list[Row]:
    """One emulated execution on one host thread, waited for, against the same function in eager mode on the CPU."""
    rows = []
    for case, bar in RUN_BARS:
        for dtype in (torch.float32, torch.bfloat16):
            name = f"{case.name} {'fp32' if dtype == torch.float32 else 'bf16'}"
            progress(f"run: {name}")
            host = case.arguments(ROWS, COLUMNS, dtype, "cpu")
            device = [argument.to("neuron") for argument in host]
            torch._dynamo.reset()
            compiled = torch.compile(case.function, backend="neuron", fullgraph=True, dynamic=False)

            def emulated(compiled=compiled, device=device):
                compiled(*device)
                torch.neuron.synchronize()

            expected = case.function(*host).float()
            difference = (compiled(*device).cpu().float() - expected).abs().max() / expected.abs().max()
            if difference > TOLERANCE[dtype]:
                raise RuntimeError(f"{name}: the emulated result differs from eager mode by {difference:.3g}")
            del expected
            emulated()
            pair = interleaved(
                lambda turn, emulated=emulated: _timed(emulated),
                lambda turn, case=case, host=host: _timed(lambda: case.function(*host)),
                turns,
            )
            rows.append(
                Row("run", f"{name} vs eager CPU", seconds(pair.measured), seconds(pair.peer), pair.ratio, "<=", bar)
            )
            del host, device, emulated
    return rows


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

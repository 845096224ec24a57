# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The chain that sets the time of a profile, and what would change it."""

from __future__ import annotations

from typing import Any

import numpy
import pyarrow

# What-if: name, and how much faster which parts of the machine are.
SCENARIOS: tuple[tuple[str, dict[str, float]], ...] = (
    ("DMA twice as fast", {"dma_rate": 2}),
    ("DMA without latency", {"dma_latency": 1e9}),
    ("tensor engine twice as fast", {"tensor": 2}),
    ("vector engine twice as fast", {"vector": 2}),
    ("scalar engine twice as fast", {"scalar": 2}),
    ("GpSimd engine twice as fast", {"gpsimd": 2}),
    ("semaphores without latency", {"semaphores": 1e9}),
    ("all engines twice as fast", {"tensor": 2, "vector": 2, "scalar": 2, "gpsimd": 2, "sync": 2}),
    ("engines and DMA twice as fast", {"tensor": 2, "vector": 2, "scalar": 2, "gpsimd": 2, "sync": 2, "dma_rate": 2}),
)


def write_path(data: Any) -> None:
    from ..ingest.statics import ENGINES

    path = data.profile.critical_path()
    count = len(path["row"])
    if count == 0:
        return
    info = path["info"]
    engine = numpy.where(path["table"] == 1, len(ENGINES), data.statics.engine[info]).astype(numpy.int32)

    def text(codes: Any, values: list[str]) -> pyarrow.DictionaryArray:
        return pyarrow.DictionaryArray.from_arrays(pyarrow.array(codes.astype(numpy.int32)), pyarrow.array(values))

    from ..ingest.device import REASONS

    data.write(
        "CriticalPath",
        {
            "step": numpy.arange(count, dtype=numpy.int64),
            "table": text(path["table"], ["Instruction", "DmaPacketAggregated"]),
            "row_id": path["row"],
            "engine": text(engine, [*ENGINES, "DMA"]),
            "start_ts": path["start"],
            "end_ts": path["end"],
            "duration_ns": path["end"] - path["start"],
            "wait_reason": text(path["reason"], list(REASONS)),
            "kernel_name": data.statics.kernel.take(info),
        },
    )


def what_if(data: Any, factors: dict[str, float]) -> tuple[int, float]:
    """Time in ns with parts of the machine faster by these factors, and the speed-up."""
    before = data.profile.what_if({})
    after = data.profile.what_if(factors)
    return after // 1000, before / max(after, 1)


def write_what_if(data: Any) -> None:
    before = data.profile.what_if({})
    if abs(before - data.profile.kernel_ps) > 1000 and data.profile.kernel_ps <= before:
        # The capture began with activation tables loaded, which saves a load.
        data.warnings.append(
            ("what-if", f"what-if compares with a start without activation tables, {before // 1000} ns")
        )
    times = [data.profile.what_if(factors) for _, factors in SCENARIOS]
    data.write(
        "WhatIf",
        {
            "scenario": [name for name, _ in SCENARIOS],
            "total_time_ns": [time // 1000 for time in times],
            "speedup": [before / max(time, 1) for time in times],
        },
    )

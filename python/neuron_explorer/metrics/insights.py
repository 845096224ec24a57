# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Findings by fixed rules. Thresholds are the published ones where there are any, and named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

#: Transfers below this size keep the DMA engines from their rate: the target that the profiling documentation names.
SMALL_TRANSFER_BYTES = 32768

SEVERE, NOTABLE, INFORMATION = 3, 2, 1


@dataclass
class Insight:
    """`value` is what the summary says of `metric`, and `threshold` is on the same scale: no rule has a formula of its own."""

    severity: int
    title: str
    symptom: str
    suggestion: str
    metric: str
    value: float
    threshold: float


def write_insights(data: Any, summary: dict[str, Any]) -> None:
    found = sorted(find(summary), key=lambda insight: -insight.severity)
    data.write(
        "Insight",
        {
            name: [getattr(insight, name) for insight in found]
            for name in ("severity", "title", "symptom", "suggestion", "metric", "value", "threshold")
        },
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def find(values: dict[str, Any]) -> Iterator[Insight]:
    """What the metrics of a profile say; `values` is the row of Summary."""

    def get(name: str) -> float:
        return float(values.get(name) or 0)

    hardware, transposes = get("hardware_flops"), get("transpose_flops")
    if hardware > 0:
        share = transposes / hardware
        if share > 0.10:
            yield Insight(
                SEVERE if share > 0.3 else NOTABLE,
                "transposes take part of the tensor engine",
                f"{_percent(share)} of the executed flops are transposes",
                "keep operands in the layout that the matmul reads, or transpose during the transfer",
                "transpose_flops",
                transposes,
                0.10 * hardware,
            )
        active = get("tensor_engine_active_time_percent")
        use = get("mfu_inst_estimated_percent")
        # A few small products are not worth a remark.
        if active > 0.05 and use / active < 0.50:
            yield Insight(
                NOTABLE,
                "the tensor engine is busy with less than half of its rate",
                f"it is active for {_percent(active)} of the time and does {_percent(use)} of its peak",
                "use bfloat16 operands, moving tiles of 512 columns and all 128 rows",
                "mfu_inst_estimated_percent",
                use,
                0.50 * active,
            )
    reads = get("hbm_read_bytes")
    if reads > 0 and get("spill_reload_bytes") / reads > 0.25:
        share = get("spill_reload_bytes") / reads
        yield Insight(
            SEVERE if share > 0.6 else NOTABLE,
            "values go through device memory",
            f"{_percent(share)} of what is read from device memory was written there by the program itself",
            "let operators run as one kernel (--explain-fusion says why they do not), or work on smaller tiles",
            "spill_reload_bytes",
            get("spill_reload_bytes"),
            0.25 * reads,
        )
    transfers, average = get("dma_transfer_count"), get("dma_transfer_average_bytes")
    if transfers > 0 and average < SMALL_TRANSFER_BYTES:
        yield Insight(
            NOTABLE if get("dma_active_time_percent") > 0.5 else INFORMATION,
            "transfers are small",
            f"an average transfer has {average:.0f} bytes",
            f"move at least {SMALL_TRANSFER_BYTES} bytes at once, in contiguous pieces of 512 bytes or more",
            "dma_transfer_average_bytes",
            average,
            SMALL_TRANSFER_BYTES,
        )
    yield from _limits(values, get)


def _limits(values: dict[str, Any], get: Any) -> Iterator[Insight]:
    engines = {name: get(f"{name}_engine_active_time_percent") for name in ("tensor", "vector", "scalar", "gpsimd")}
    engines["DMA"] = get("dma_active_time_percent")
    limiter = max(engines, key=lambda name: engines[name])
    busy = engines[limiter]
    if get("total_active_time_percent") < 0.5:
        share = get("total_active_time_percent")
        yield Insight(
            NOTABLE,
            "the core idles",
            f"anything at all is active for {_percent(share)} of the time",
            "give a launch more work: larger batches, or operators compiled together",
            "total_active_time_percent",
            share,
            0.5,
        )
    elif busy > 0.8:
        yield Insight(
            INFORMATION,
            f"the {'DMA engines set' if limiter == 'DMA' else limiter + ' engine sets'} the time",
            f"busy for {_percent(busy)} of it; use of device memory {_percent(get('mbu_estimated_percent'))}",
            "fewer bytes: fuse operators, use 16-bit types"
            if limiter == "DMA"
            else f"move work off the {limiter} engine",
            "dma_active_time_percent" if limiter == "DMA" else f"{limiter}_engine_active_time_percent",
            busy,
            0.8,
        )
    else:
        yield Insight(
            NOTABLE,
            "no engine is busy most of the time",
            f"the busiest, {limiter}, is active for {_percent(busy)}: work waits for other work",
            "look at the critical path; smaller tiles or more buffers let engines overlap",
            "dma_active_time_percent" if limiter == "DMA" else f"{limiter}_engine_active_time_percent",
            busy,
            0.8,
        )
    intensity, ridge = values.get("mm_arithmetic_intensity"), get("peak_flops_bandwidth_ratio")
    if intensity and ridge and intensity < ridge and get("hardware_flops") > 0:
        yield Insight(
            INFORMATION,
            "the matmuls are bound by memory",
            f"{intensity:.1f} flops for a byte of device memory; the machine balances at {ridge:.1f}",
            "reuse what is loaded: larger tiles or batches",
            "mm_arithmetic_intensity",
            float(intensity),
            ridge,
        )

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Two or more device profiles side by side; the first is the base."""

from __future__ import annotations

import pathlib
from typing import Any

from .tables import one, rows

_METRICS = (
    "total_time",
    "total_active_time_percent",
    "mfu_estimated_percent",
    "hfu_estimated_percent",
    "mbu_estimated_percent",
    "hbm_read_bytes",
    "hbm_write_bytes",
    "spill_save_bytes",
    "spill_reload_bytes",
    "dma_transfer_count",
    "dma_transfer_average_bytes",
    "dma_active_time",
    "tensor_engine_active_time",
    "vector_engine_active_time",
    "scalar_engine_active_time",
    "gpsimd_engine_active_time",
    "sync_engine_active_time",
    "event_count",
)


def compare(devices: list[pathlib.Path]) -> dict[str, Any]:
    """Metrics, kernels and operators: a value for each profile, and its ratio to the base."""
    if len(devices) < 2:
        raise ValueError(f"expected at least two device profiles but got {len(devices)}")
    summaries = [one(device, "Summary") for device in devices]
    kernels = [
        {row["kernel_name"]: row["ns"] for row in rows(device, "KernelRoofline", _KERNELS)} for device in devices
    ]
    operators = [
        {row["name"]: row["ns"] for row in rows(device, "FrameworkInstruction", _OPERATORS)} for device in devices
    ]
    return {
        "profiles": [device.name for device in devices],
        "metrics": _side_by_side([{name: summary.get(name) for name in _METRICS} for summary in summaries]),
        "kernels_ns": _side_by_side(kernels),
        "operators_ns": _side_by_side(operators),
    }


_KERNELS = "SELECT kernel_name, sum(end_ts - start_ts) AS ns FROM {} GROUP BY kernel_name ORDER BY ns DESC"
_OPERATORS = (
    "SELECT split_part(framework_name, '/', -1) AS name, sum(end_ts - start_ts) AS ns "
    "FROM {} GROUP BY ALL ORDER BY ns DESC"
)


def _side_by_side(columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    result = []
    for name in dict.fromkeys(name for column in columns for name in column):
        values = [column.get(name) for column in columns]
        base = values[0]
        ratios = [value / base if base and value is not None else None for value in values]
        result.append({"name": name, "values": values, "ratios": ratios})
    return result


def as_text(comparison: dict[str, Any]) -> str:
    lines = ["base: " + comparison["profiles"][0]]
    lines += [f"   {position}: {name}" for position, name in enumerate(comparison["profiles"][1:], 1)]
    for title, key in (("metric", "metrics"), ("kernel, ns", "kernels_ns"), ("operator, ns", "operators_ns")):
        if not comparison[key]:
            continue
        lines.append("")
        lines.append(
            f"{title:44}"
            + "".join(f"{f'profile {i}':>16}" for i in range(len(comparison["profiles"])))
            + f"{'ratio':>9}"
        )
        for row in comparison[key]:
            values = "".join(f"{_number(value):>16}" for value in row["values"])
            ratios = "".join(f"{'' if ratio is None else f'{ratio:.3f}':>9}" for ratio in row["ratios"][1:])
            lines.append(f"{row['name'][:43]:44}{values}{ratios}")
    return "\n".join(lines) + "\n"


def _number(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)

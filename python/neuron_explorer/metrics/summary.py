# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Metrics of a whole device profile, by the published formulas (docs/Profiling.md has those that needed a decision).

Every "percent" is a share, 0..1. Peak and bandwidth are those of one core: the profile is of one core.
"""

from __future__ import annotations

from typing import Any

import numpy

from . import flops, intervals

# Not counted as execution: they set up or wait.
_SET_UP = {"NOP", "EVENT_SEMAPHORE", "SEMAPHORE_RANGE_CLEAR", "BRANCH", "REGISTER_ALU", "CALL", "RETURN", "END"}


def active_time(data: Any) -> dict[str, Any]:
    from ..ingest.statics import ENGINES

    starts, ends, engines = [], [], []
    for index, name in enumerate(ENGINES):
        start, end = _work_of(data, index)
        starts.append(start)
        ends.append(end)
        engines += [name] * len(start)
    start, end = _transfers(data)
    starts.append(start)
    ends.append(end)
    engines += ["DMA"] * len(start)
    start, end = numpy.concatenate(starts), numpy.concatenate(ends)
    return {
        "start_ts": start,
        "end_ts": end,
        "engine": engines,
        "pcore_idx": numpy.zeros(len(start), numpy.int64),
        "duration_ns": end - start,
    }


def _work_of(data: Any, engine: int) -> tuple[Any, Any]:
    chosen = (data.engine == engine) & data.is_work
    return intervals.union(data.start[chosen], data.end[chosen])


def _transfers(data: Any, chosen: Any = None) -> tuple[Any, Any]:
    start, end = data.dma_start, data.dma_end
    if chosen is not None:
        start, end = start[chosen], end[chosen]
    return intervals.union_of([(start, end)])


def opcodes(data: Any) -> dict[str, list]:
    from ..ingest.statics import ENGINES

    names = data.statics.opcode.values.to_pylist()
    code = data.statics.opcode.codes[data.info]
    group = data.engine.astype(numpy.int64) * len(names) + code
    duration = data.end - data.start
    count = numpy.bincount(group)
    time = numpy.bincount(group, weights=duration)
    rows: dict[str, list] = {
        "engine": [],
        "opcode": [],
        "instruction_count": [],
        "instruction_time_ns": [],
        "active_time_ns": [],
        "active_time_percent": [],
    }
    order = numpy.argsort(group, kind="stable")
    bounds = numpy.cumsum(count)
    for value in numpy.nonzero(count)[0]:
        chosen = order[bounds[value] - count[value] : bounds[value]]
        active = intervals.length(intervals.union(data.start[chosen], data.end[chosen]))
        rows["engine"].append(ENGINES[value // len(names)])
        rows["opcode"].append(names[value % len(names)])
        rows["instruction_count"].append(int(count[value]))
        rows["instruction_time_ns"].append(int(time[value]))
        rows["active_time_ns"].append(active)
        rows["active_time_percent"].append(active / data.total)
    return rows


def write_summary(data: Any) -> dict[str, Any]:
    """Writes Summary and returns its row."""
    from ..ingest.statics import ENGINES

    statics, machine, total = data.statics, data.machine, data.total
    values: dict[str, Any] = {
        "total_time": total / 1e9,
        "neuroncore_cycle_count": round(total * machine["sync_clock"]),
        "trace_count": 1,
        "event_count": len(data.start) + len(data.dma_start),
    }
    instruction_flops = statics.flops[data.info]
    is_transpose = statics.is_transpose[data.info]
    hardware, transposed = int(instruction_flops.sum()), int(instruction_flops[is_transpose].sum())
    adjusted = statics.adjusted[data.info]
    model = flops.model_flops(data.profile.graph_def)
    of, moved = data.dma_info, data.dma_bytes
    read, written = int(moved[statics.reads_hbm[of]].sum()), int(moved[statics.writes_hbm[of]].sum())
    peak, bandwidth = machine["peak_flops"], machine["hbm_gbps"] * 1e9
    seconds = total / 1e9
    traffic = read + written
    useful = hardware - transposed
    values |= {
        "model_flops": model,
        "hardware_flops": hardware,
        "transpose_flops": transposed,
        "adjusted_hardware_flops": int(adjusted.sum()),
        "adjusted_transpose_flops": int(adjusted[is_transpose].sum()),
        "mm_arithmetic_intensity": useful / traffic if traffic else None,
        "peak_flops_bandwidth_ratio": peak / bandwidth,
        "hbm_read_bytes": read,
        "hbm_write_bytes": written,
        "mbu_estimated_percent": traffic / seconds / bandwidth,
        "hfu_estimated_percent": hardware / (peak * seconds),
        "mfu_inst_estimated_percent": useful / (peak * seconds),
        "mfu_inst_max_achievable_estimated_percent": _achievable(useful, traffic, peak, bandwidth),
    }
    if model:
        values["mfu_hlo_estimated_percent"] = model / (peak * seconds)
        values["mfu_hlo_max_achievable_estimated_percent"] = _achievable(model, traffic, peak, bandwidth)
    chosen = "hlo" if model else "inst"
    values["mfu_estimated_percent"] = values[f"mfu_{chosen}_estimated_percent"]
    values["mfu_max_achievable_estimated_percent"] = values[f"mfu_{chosen}_max_achievable_estimated_percent"]
    _add_transfers(data, values)
    _add_bytes(data, values)
    everything = []
    for index, name in enumerate(ENGINES):
        work = _work_of(data, index)
        everything.append(work)
        mine = data.engine == index
        key = f"{name.lower()}_engine"
        active = intervals.length(work)
        values[f"{key}_active_time"] = active / 1e9
        values[f"{key}_active_time_percent"] = active / total
        values[f"{key}_instruction_time"] = int((data.end - data.start)[mine & data.is_work].sum()) / 1e9
        values[f"{key}_instruction_count"] = int(mine.sum())
    values["matmul_instruction_count"] = int(statics.is_matmul[data.info].sum())
    activates = numpy.array(["ACTIV" in row["opcode"] for row in statics.rows])[data.info]
    values["activate_instruction_count"] = int(activates.sum())
    values["activate_instruction_time"] = int((data.end - data.start)[activates].sum()) / 1e9
    everything.append(_transfers(data))
    active = intervals.length(intervals.union_of(everything))
    values["total_active_time"] = active / 1e9
    values["total_active_time_percent"] = active / total
    values["total_exec_time"] = _execution_time(data) / 1e9
    for name in ("cc_op", "cc_cores_instruction"):
        values[f"{name}_count"] = 0
        values[f"{name}_active_time"] = 0.0
        values[f"{name}_active_time_percent"] = 0.0
        values["cc_op_time" if name == "cc_op" else "cc_cores_instruction_time"] = 0.0
    values["total_row_count"] = values["event_count"]
    allowed = {column.name for column in _columns()}
    values = {name: value for name, value in values.items() if name in allowed}
    data.write("Summary", {name: [value] for name, value in values.items()})
    return values


def _columns() -> Any:
    from ..schema import tables

    return tables()["Summary"].columns


def _achievable(count: float, traffic: int, peak: float, bandwidth: float) -> float | None:
    return min(1.0, count / traffic / (peak / bandwidth)) if traffic else None


def _execution_time(data: Any) -> int:
    names = data.statics.opcode.values.to_pylist()
    set_up = numpy.array([name in _SET_UP for name in names], bool)
    chosen = ~set_up[data.statics.opcode.codes[data.info]] if len(data.info) else numpy.zeros(0, bool)
    starts = [part.min() for part in (data.start[chosen], data.dma_start) if len(part)]
    ends = [part.max() for part in (data.end[chosen], data.dma_end) if len(part)]
    return int(max(ends) - min(starts)) if starts else 0


def _add_transfers(data: Any, values: dict[str, Any]) -> None:
    statics, total = data.statics, data.total
    of, moved, rows = data.dma_info, data.dma_bytes, len(data.dma_start)
    blocks = int(data.dma_block.max()) + 1 if rows else 0
    size = int(moved.sum())
    active = intervals.length(_transfers(data))
    first = numpy.full(blocks, numpy.iinfo(numpy.int64).max)
    last = numpy.zeros(blocks, numpy.int64)
    numpy.minimum.at(first, data.dma_block, data.dma_start)
    numpy.maximum.at(last, data.dma_block, data.dma_end)
    values |= {
        "dma_active_cycles": round(active * data.machine["sync_clock"]),
        "dma_active_time": active / 1e9,
        "dma_active_time_percent": active / total,
        "dma_packet_time": int((data.dma_end - data.dma_start).sum()) / 1e9,
        "dma_transfer_time": int((last - first).sum()) / 1e9 if blocks else 0.0,
        "dma_transfer_count": blocks,
        "dma_transfer_total_bytes": size,
        "dma_transfer_average_bytes": size / blocks if blocks else 0.0,
        "dma_queue_count": len({row["queue"] for row in statics.rows if row["is_dma"]}),
    }
    software, hardware = statics.is_software[of], statics.is_hardware[of]
    for name, chosen in (
        ("static_dma", ~software & ~hardware),
        ("software_dynamic_dma", software),
        ("hardware_dynamic_dma", hardware),
    ):
        busy = intervals.length(_transfers(data, chosen))
        values[f"{name}_active_time"] = busy / 1e9
        values[f"{name}_active_time_percent"] = busy / total
        values[f"{name}_packet_count"] = int(chosen.sum())
        values[f"{name}_size"] = int(moved[chosen].sum())
        values[f"{name}_packet_percent"] = float(chosen.sum()) / rows if rows else 0.0
        values[f"{name}_size_percent"] = float(moved[chosen].sum()) / size if size else 0.0
    dynamic = software | hardware
    values["dynamic_dma_active_time_percent"] = intervals.length(_transfers(data, dynamic)) / total
    values["dynamic_dma_packet_percent"] = float(dynamic.sum()) / rows if rows else 0.0
    values["dynamic_dma_size_percent"] = float(moved[dynamic].sum()) / size if size else 0.0


def _add_bytes(data: Any, values: dict[str, Any]) -> None:
    statics = data.statics
    of, moved = data.dma_info, data.dma_bytes
    per_instruction = {
        name: int(statics.number(name)[data.info].sum())
        for name in ("sbuf_read_bytes", "sbuf_write_bytes", "psum_read_bytes", "psum_write_bytes")
    }
    values |= per_instruction
    moves = (statics.number("psum_read_bytes") > 0) & (statics.number("sbuf_write_bytes") > 0)
    values["psum_read_sbuf_write_count"] = int(moves[data.info].sum())
    values["psum_read_sbuf_write_bytes"] = int((statics.number("psum_read_bytes") * moves)[data.info].sum())
    values["spill_save_bytes"] = int(moved[statics.writes["scratch"][of]].sum())
    values["spill_reload_bytes"] = int(moved[statics.reads["scratch"][of]].sum())
    values["input_queue_bytes"] = int(moved[statics.reads["input"][of]].sum())
    values["output_queue_bytes"] = int(moved[statics.writes["output"][of]].sum())
    values["weight_queue_bytes"] = int(moved[statics.reads["weight"][of]].sum())
    size = {kind: 0 for kind in ("input", "output", "weight", "scratch")}
    for variable in statics.variables:
        size[variable["kind"]] += variable["bytes"]
    values["weight_size_bytes"] = size["weight"]
    values["inputs_and_weights_size_bytes"] = size["input"] + size["weight"]
    values["inputs_outputs_weights_size_bytes"] = size["input"] + size["weight"] + size["output"]
    bandwidth = data.machine["hbm_gbps"] * 1e9
    values["mbu_min_read_util_percent"] = values["inputs_and_weights_size_bytes"] / (data.total / 1e9) / bandwidth

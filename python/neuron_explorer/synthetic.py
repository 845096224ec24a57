# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Synthetic processed profiles: random, plausible, of any size, the same for the same seed. For tests and benchmarks.

python -m neuron_explorer.synthetic --events 1000000 OUT            a device profile
python -m neuron_explorer.synthetic --events 1000 --system 5000 OUT a system profile with one device profile
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from typing import Any

import numpy
import pyarrow

from .schema import schema_fields, write_profile_json, write_table

ENGINES = ("Tensor", "Vector", "Scalar", "GpSimd", "Sync")
_OPCODES = {
    "Tensor": ("MATMUL", "LDWEIGHTS", "TRANSPOSE"),
    "Vector": ("TENSOR_TENSOR", "TENSOR_SCALAR", "TENSOR_REDUCE", "BN_STATS"),
    "Scalar": ("ACTIVATE", "TENSOR_COPY", "ACT_TABLE_LOAD"),
    "GpSimd": ("IOTA", "TENSOR_TENSOR", "DMA_TRIGGER"),
    "Sync": ("DMA_TRIGGER", "EVENT_SEMAPHORE"),
}
_OPERATIONS = ("neuron.matmul", "neuron.binary<add>", "neuron.binary<mul>", "neuron.reduce<sum>", "neuron.unary<exp>")
_DMA_ENGINES = 16
_FILE = "model.py"


def _text(codes: Any, values: list[str]) -> pyarrow.DictionaryArray:
    return pyarrow.DictionaryArray.from_arrays(pyarrow.array(codes, pyarrow.int32()), pyarrow.array(values))


def _samples(times: Any, total: int, count: int) -> Any:
    return numpy.linspace(0, max(total, 1), max(2, min(count, max(2, len(times))))).astype(numpy.int64)


def write_device_profile(folder: pathlib.Path, events: int, seed: int = 0, name: str = "synthetic") -> dict[str, int]:
    """All device tables with about `events` instructions and transfers (at least 10); returns rows by table."""
    events = max(10, events)
    folder.mkdir(parents=True, exist_ok=True)
    random = numpy.random.default_rng(seed)
    transfers = events * 3 // 10
    instructions = events - transfers
    rows: dict[str, int] = {}

    def write(table: str, columns: dict[str, Any]) -> None:
        rows[table] = write_table(folder, table, columns)

    layers = max(2, min(64, events // 2000))
    nodes = _framework_nodes(layers)
    leaves = [node for node in nodes if not node["children"]]
    total = instructions * 45
    # One engine after the other, each in time order, as the real pipeline writes them.
    shares = random.dirichlet([3, 3, 3, 1, 2])
    counts = numpy.floor(shares * instructions).astype(int)
    counts[0] += instructions - counts.sum()
    engine = numpy.repeat(numpy.arange(5), counts)
    start = numpy.empty(instructions, numpy.int64)
    end = numpy.empty(instructions, numpy.int64)
    position = 0
    for count in counts:
        gaps = random.pareto(1.5, count) * 0.3
        lengths = random.lognormal(0.0, 0.8, count)
        scale = total / max((gaps + lengths).sum(), 1e-9)
        ends = numpy.cumsum(gaps + lengths) * scale
        chunk = slice(position, position + count)
        end[chunk] = ends.astype(numpy.int64)
        start[chunk] = (ends - lengths * scale).astype(numpy.int64)
        position += count
    end = numpy.maximum(end, start + 1)
    leaf = numpy.minimum(start * len(leaves) // max(total, 1), len(leaves) - 1)
    kernel = leaf // 2
    opcodes = sorted({opcode for names in _OPCODES.values() for opcode in names})
    opcode = numpy.empty(instructions, numpy.int32)
    for index, engine_name in enumerate(ENGINES):
        mask = engine == index
        choices = numpy.array([opcodes.index(value) for value in _OPCODES[engine_name]])
        opcode[mask] = random.choice(choices, int(mask.sum()))
    is_matmul = opcode == opcodes.index("MATMUL")
    flops = numpy.where(is_matmul, 2 * 128 * 128 * 512, 0).astype(numpy.int64)
    identifiers = numpy.arange(instructions, dtype=numpy.int64)
    operands = [f"dst=sbuf[0:128, {hex(4096 * i)} + 1*512] bf16, src=psum[0:128, {i % 8}]" for i in range(64)]
    operation_of_leaf = [_OPERATIONS[i % len(_OPERATIONS)] for i in range(len(leaves))]
    write(
        "Instruction",
        {
            "start_ts": start,
            "end_ts": end,
            "duration_ns": end - start,
            "engine": _text(engine, list(ENGINES)),
            "timeline_track": _text(engine, list(ENGINES)),
            "pcore_idx": numpy.zeros(instructions, numpy.int64),
            "opcode": _text(opcode, opcodes),
            "operands": _text(random.integers(0, len(operands), instructions), operands),
            "id": identifiers,
            "pc": identifiers % 4096,
            "bir_id": _text(leaf, [str(i) for i in range(len(leaves))]),
            "raw_bir_id": leaf,
            "bir_instruction_name": _text(opcode, [f"nisa.{value.lower()}" for value in opcodes]),
            "kernel_instruction_name": _text(kernel, [f"kernel{i}" for i in range(len(leaves) // 2 + 1)]),
            "evt_wait_time_ns": (random.random(instructions) < 0.2) * random.integers(1, 400, instructions),
            "hlo_name": _text(leaf, operation_of_leaf),
            "hlo_attrs": _text(leaf, [node["name"].rsplit("/", 1)[-1] for node in leaves]),
            "raw_framework_id": numpy.array([node["id"] for node in leaves])[leaf],
            "layer": _text(leaf, [node["parent"] for node in leaves]),
            "stack_frame_ids": _text(leaf, [f"{i % 40 + 1},0" for i in range(len(leaves))]),
            "nki_source_location": _text(leaf, [f"{_FILE}:{i % 40 + 2}" for i in range(len(leaves))]),
            "sbuf_read_bytes": random.integers(0, 1 << 18, instructions),
            "sbuf_write_bytes": random.integers(0, 1 << 17, instructions),
            "raw_flops": flops,
            "adjusted_flops": flops,
        },
    )
    _write_transfers(write, random, transfers, total, instructions, len(leaves))
    _write_semaphores_and_flow(write, random, start, end, total, instructions, transfers)
    _write_memory(write, random, total, events)
    _write_sums(write, folder, nodes, leaves, start, end, engine, flops, total, transfers)
    _write_catalogues(write, layers, total, instructions + transfers, name)
    return rows


def _framework_nodes(layers: int) -> list[dict]:
    nodes: list[dict] = [{"id": 0, "name": "model", "parent": "", "children": []}]

    def add(name: str, parent: dict) -> dict:
        node = {"id": len(nodes), "name": f"{parent['name']}/{name}", "parent": parent["name"], "children": []}
        nodes.append(node)
        parent["children"].append(node)
        return node

    for layer in range(layers):
        top = add(f"layers.{layer}", nodes[0])
        for module in ("self_attn", "mlp"):
            inner = add(module, top)
            for operation in ("mm", "add", "mul", "softmax"):
                add(f"{operation}_{len(nodes)}", inner)
    return nodes


def _write_transfers(write: Any, random: Any, count: int, total: int, instructions: int, leaves: int) -> None:
    if count == 0:
        return
    engine = numpy.sort(random.integers(0, _DMA_ENGINES, count))
    start = random.integers(0, max(total - 2000, 1), count)
    order = numpy.lexsort((start, engine))
    start = start[order]
    size = 2 ** random.integers(9, 17, count)
    end = start + 60 + size // 16
    into = random.random(count) < 0.6
    queue = random.integers(0, 6, count)
    queues = [f"q{name}IO{i}" for name in ("Sync", "GpSimd", "Scalar") for i in range(2)]
    write(
        "DmaPacketAggregated",
        {
            "start_ts": start,
            "end_ts": end,
            "duration_ns": end - start,
            "pcore_idx": numpy.zeros(count, numpy.int64),
            "block_id": numpy.arange(count, dtype=numpy.int32) // 4,
            "queue_idx": queue,
            "queue_name": _text(queue, queues),
            "queue_type": _text(queue % 3, ["input", "output", "data"]),
            "engine_idx": engine,
            "op": _text(numpy.zeros(count), ["copy"]),
            "variable": _text(queue, [f"input{i}" for i in range(6)]),
            "read_bytes": size,
            "write_bytes": size,
            "transfer_bytes": size,
            "throughput": size / (end - start) * 1e9,
            "source": _text(into, ["sbuf", "hbm"]),
            "dest": _text(into, ["hbm", "sbuf"]),
            "semaphore_id": _text(queue, [f"S[{i}]" for i in range(6)]),
            "read_sbuf_partitions": _text(into, ["0-127", ""]),
            "read_num_sbuf_partitions": numpy.where(into, 0, 128).astype(numpy.int32),
            "read_shape": _text(queue, [f"128x{64 << i}" for i in range(6)]),
            "read_offset": _text(queue, [str(i * 4096) for i in range(6)]),
            "read_steps": _text(queue, ["1"] * 6),
            "write_sbuf_partitions": _text(into, ["", "0-127"]),
            "write_num_sbuf_partitions": numpy.where(into, 128, 0).astype(numpy.int32),
            "write_shape": _text(queue, [f"128x{64 << i}" for i in range(6)]),
            "write_offset": _text(queue, [str(i * 4096) for i in range(6)]),
            "write_steps": _text(queue, ["1"] * 6),
            "modular_flow_function": _text(
                start * (leaves // 2) // max(total, 1), [f"kernel{i}" for i in range(leaves)]
            ),
            "trigger": random.integers(0, max(instructions, 1), count),
            "completion": end,
        },
    )
    write(
        "DmaQueuesInfo",
        {
            "name": queues,
            "type": ["input", "output", "data"] * 2,
            "pcore_idx": [0] * 6,
            "idx": list(range(6)),
            "engine_idx": [-1] * 6,
            "axi_port": [0] * 6,
            "dram_channel": [0] * 6,
        },
    )
    times = _samples(start, total, 4096)
    edges = numpy.concatenate([start, end])
    steps = numpy.concatenate([numpy.ones(count, numpy.int32), -numpy.ones(count, numpy.int32)])
    order = numpy.argsort(edges, kind="stable")
    write("PendingDma", {"timestamp": edges[order], "value": numpy.maximum(numpy.cumsum(steps[order]), 0)})
    moved = numpy.concatenate([[0], numpy.cumsum(size[numpy.argsort(end)])])
    reached = moved[numpy.searchsorted(numpy.sort(end), times)]
    rate = numpy.diff(reached, prepend=0) / max(total / len(times), 1) * 1e9
    for table in ("DmaUsage", "HbmUsage"):
        write(table, {"timestamp": times, "current_throughput": rate, "total_transfer_bytes": reached})


def _write_semaphores_and_flow(
    write: Any, random: Any, start: Any, end: Any, total: int, instructions: int, transfers: int
) -> None:
    count = instructions // 4
    chosen = numpy.sort(random.choice(instructions, count, replace=False)) if count else numpy.empty(0, int)
    semaphore = random.integers(0, 24, count)
    order = numpy.argsort(end[chosen], kind="stable")
    write(
        "SemaphoreUpdate",
        {
            "timestamp": end[chosen][order],
            "id": _text(semaphore[order], [f"S[{i}]" for i in range(24)]),
            "value": (numpy.arange(count) % 512).astype(numpy.int32),
            "update_source": _text(semaphore[order] % 6, ["Tensor", "Vector", "Scalar", "GpSimd", "Sync", "AXI"]),
            "update_operation_type": _text(numpy.zeros(count), ["sem_inc"]),
            "update_trigger_timing": _text(numpy.zeros(count), ["complete"]),
        },
    )
    # Edges go forward in time between engines.
    first = chosen[order]
    if len(first) > 1:
        source, target = first[:-1], first[1:]
        kept = start[target] >= end[source]
        source, target = source[kept], target[kept]
        write(
            "Flow",
            {
                "in_id": source,
                "out_id": target,
                "in_table": _text(numpy.zeros(len(source)), ["Instruction"]),
                "out_table": _text(numpy.zeros(len(source)), ["Instruction"]),
                "dependency_type": _text(numpy.zeros(len(source)), ["semaphore"]),
                "gap_time": start[target] - end[source],
            },
        )
        path = first[:: max(1, len(first) // 500)]
        write(
            "CriticalPath",
            {
                "step": numpy.arange(len(path)),
                "table": ["Instruction"] * len(path),
                "row_id": path,
                "engine": ["Tensor"] * len(path),
                "start_ts": start[path],
                "end_ts": end[path],
                "duration_ns": end[path] - start[path],
                "wait_reason": ["semaphore"] * len(path),
                "kernel_name": ["kernel0"] * len(path),
            },
        )


def _write_memory(write: Any, random: Any, total: int, events: int) -> None:
    count = max(8, min(20000, events // 20))
    start = numpy.sort(random.integers(0, max(total, 1), count))
    address = random.integers(0, 48, count) * 4096
    write(
        "SbufAllocation",
        {
            "start_ts": start,
            "end_ts": start + random.integers(200, 20000, count),
            "start_address": address,
            "end_address": address + 4096 * random.integers(1, 4, count),
            "partition": random.choice([0, 32, 64, 96], count),
            "op_source_type": _text(random.integers(0, 2, count), ["Instruction", "DMA"]),
            "opcode": _text(numpy.zeros(count), ["TENSOR_TENSOR"]),
            "tensor_name": _text(random.integers(0, 6, count), [f"input{i}" for i in range(6)]),
            "pcore_idx": numpy.zeros(count, numpy.int64),
        },
    )
    times = _samples(start, total, 4096)
    level = 0.5 + 0.4 * numpy.sin(numpy.linspace(0, 25, len(times)))
    write(
        "SbufUsage",
        {
            "timestamp": times,
            "avg_util_percent": level,
            **{f"partition_{p}_util_percent": level for p in (0, 32, 64, 96)},
        },
    )
    write(
        "PsumUsage",
        {
            "timestamp": times,
            "avg_util_percent": level / 2,
            **{f"bank_{bank}_util_percent": level * (bank + 1) / 8 for bank in range(8)},
        },
    )
    write(
        "Utilisation",
        {
            "timestamp": times,
            "mfu_instant": level * 0.6,
            "mfu_cumulative": numpy.full(len(times), 0.3),
            "hfu_instant": level * 0.7,
            "hfu_cumulative": numpy.full(len(times), 0.35),
        },
    )


def _write_sums(
    write: Any,
    folder: pathlib.Path,
    nodes: list[dict],
    leaves: list[dict],
    start: Any,
    end: Any,
    engine: Any,
    flops: Any,
    total: int,
    transfers: int,
) -> None:
    active: dict[str, list] = {"start_ts": [], "end_ts": [], "engine": [], "pcore_idx": [], "duration_ns": []}
    busy = {}
    for index, engine_name in enumerate(ENGINES):
        first, last = start[engine == index], end[engine == index]
        if not len(first):
            continue
        edge = numpy.concatenate([[True], first[1:] > last[:-1] + 40])
        begins, ends = first[edge], last[numpy.concatenate([edge[1:], [True]])]
        active["start_ts"].append(begins)
        active["end_ts"].append(ends)
        active["engine"] += [engine_name] * len(begins)
        active["pcore_idx"].append(numpy.zeros(len(begins), numpy.int64))
        active["duration_ns"].append(ends - begins)
        busy[engine_name] = int((last - first).sum())
    write("ActiveTime", {key: value if key == "engine" else numpy.concatenate(value) for key, value in active.items()})
    width = total // max(len(leaves), 1)
    interval = {}
    for index, node in enumerate(leaves):
        interval[node["id"]] = (index * width, (index + 1) * width)

    def span(node: dict) -> tuple[int, int]:
        if node["id"] not in interval:
            parts = [span(child) for child in node["children"]]
            interval[node["id"]] = (min(p[0] for p in parts), max(p[1] for p in parts))
        return interval[node["id"]]

    spans = [span(node) for node in nodes]
    write(
        "FrameworkNode",
        {
            "id": [node["id"] for node in nodes],
            "node_name": [node["name"] for node in nodes],
            "children_names": [json.dumps([child["name"] for child in node["children"]]) for node in nodes],
            "parent_name": [node["parent"] for node in nodes],
            "children_ids": [json.dumps([child["id"] for child in node["children"]]) for node in nodes],
            "start_ts": [first for first, _ in spans],
            "end_ts": [last for _, last in spans],
            "time_intervals": [json.dumps([list(value)]) for value in spans],
            "hfu": [0.35] * len(nodes),
            "mfu": [0.3] * len(nodes),
            "hbm_read_bytes": [(last - first) * 90 for first, last in spans],
            "hbm_write_bytes": [(last - first) * 30 for first, last in spans],
            "tensor_engine_instruction_count": [(last - first) // 100 for first, last in spans],
        },
    )
    write(
        "KernelRoofline",
        {
            "kernel_name": [f"kernel{i // 2}" for i in range(0, len(leaves), 2)],
            "start_ts": [i * width for i in range(0, len(leaves), 2)],
            "end_ts": [(i + 2) * width for i in range(0, len(leaves), 2)],
            "flops": [(1 + i % 7) * width * 8000 for i in range(0, len(leaves), 2)],
            "hbm_bytes": [width * (40 + 30 * (i % 5)) for i in range(0, len(leaves), 2)],
            "arithmetic_intensity": [(1 + i % 7) * 8000 / (40 + 30 * (i % 5)) for i in range(0, len(leaves), 2)],
            "flops_per_second": [(1 + i % 7) * 4000e9 for i in range(0, len(leaves), 2)],
            "limiter": [("Tensor", "DMA", "Vector")[i // 2 % 3] for i in range(0, len(leaves), 2)],
        },
    )
    hardware = int(flops.sum())
    seconds = total / 1e9
    summary: dict[str, Any] = {
        "total_time": seconds,
        "neuroncore_cycle_count": total * 12 // 10,
        "model_flops": hardware,
        "hardware_flops": hardware,
        "transpose_flops": hardware // 14,
        "mm_arithmetic_intensity": 213.7,
        "peak_flops_bandwidth_ratio": 109.8,
        "event_count": len(start) + transfers,
        "dma_transfer_count": transfers,
        "dma_active_time": seconds * 0.7,
        "dma_active_time_percent": 0.7,
        "dma_transfer_average_bytes": 22000.0,
        "hbm_read_bytes": transfers * 15000,
        "hbm_write_bytes": transfers * 7000,
        "spill_reload_bytes": transfers * 500,
        "spill_save_bytes": transfers * 400,
        "mbu_estimated_percent": 0.19,
        "mfu_estimated_percent": 0.31,
        "mfu_inst_estimated_percent": 0.31,
        "hfu_estimated_percent": 0.33,
        "total_exec_time": seconds,
        "total_active_time": seconds * 0.95,
        "total_active_time_percent": 0.95,
    }
    for index, engine_name in enumerate(ENGINES):
        key = engine_name.lower()
        summary[f"{key}_engine_active_time"] = busy.get(engine_name, 0) / 1e9
        summary[f"{key}_engine_active_time_percent"] = busy.get(engine_name, 0) / max(total, 1)
        summary[f"{key}_engine_instruction_time"] = busy.get(engine_name, 0) / 1e9
        summary[f"{key}_engine_instruction_count"] = int((engine == index).sum())
    write("Summary", {key: [value] for key, value in summary.items()})
    opcodes = [(name, opcode) for name in ENGINES for opcode in _OPCODES[name]]
    write(
        "OpcodeSummary",
        {
            "engine": [name for name, _ in opcodes],
            "opcode": [opcode for _, opcode in opcodes],
            "instruction_count": [int((engine == ENGINES.index(name)).sum()) // 3 for name, _ in opcodes],
            "instruction_time_ns": [busy.get(name, 0) // 3 for name, _ in opcodes],
            "active_time_ns": [busy.get(name, 0) // 3 for name, _ in opcodes],
            "active_time_percent": [busy.get(name, 0) / 3 / max(total, 1) for name, _ in opcodes],
        },
    )
    write(
        "WhatIf",
        {
            "scenario": ["dma x2", "tensor x2", "no semaphore latency"],
            "total_time_ns": [total * 8 // 10, total * 9 // 10, total],
            "speedup": [1.25, 1.11, 1.0],
        },
    )
    write(
        "Insight",
        {
            "severity": [3, 2],
            "title": ["transfers are small", "transposes take part of the tensor engine"],
            "symptom": ["an average transfer has 22000 bytes", "7.1 % of the flops are transposes"],
            "suggestion": ["move at least 32768 bytes at once", "keep operands in the layout of the matmul"],
            "metric": ["dma_transfer_average_bytes", "transpose_flops"],
            "value": [22000.0, 0.071],
            "threshold": [32768.0, 0.1],
        },
    )


def _write_catalogues(write: Any, layers: int, total: int, rows: int, name: str) -> None:
    write(
        "Metadata",
        {
            "profile_schema_version": ["7.4.0"],
            "ntff_version": [2],
            "num_physical_cores": [1],
            "vnc_enabled": [False],
            "first_hw_timestamp": [0],
            "last_hw_timestamp": [total],
            "first_ts": ["0"],
            "last_ts": [str(total)],
            "dma_ddr_bandwidth": [27e9],
            "num_dma_engines_per_neuroncore": [16],
            "hbm_ddr_bandwidth": [362e9],
            "tensor_engine_num_rows": [128],
            "tensor_engine_num_cols": [128],
            "tensor_engine_clock_freq": [2.4],
            "vector_engine_clock_freq": [0.96],
            "vector_engine_num_channels": [128],
            "scalar_engine_clock_freq": [1.4],
            "scalar_engine_num_channels": [128],
            "gpsimd_engine_clock_freq": [1.4],
            "gpsimd_engine_num_channels": [128],
            "neuroncore_clock_freq": [1.2],
            "ticks_per_nanosec": [1],
            "instance_type": ["trn2"],
            "profile_name": [name],
            "is_simulation": [True],
        },
    )
    write("NeffHeader", {"network_name": [name], "uuid": ["0" * 32], "hash": ["0" * 64]})
    write(
        "ExecutionInfo",
        {
            "execution_index": [0],
            "neff_name": [name],
            "execution_start_ts": [0],
            "execution_end_ts": [total],
            "num_subgraphs": [1],
            "row_count": [rows],
        },
    )
    write(
        "TensorInfo",
        {
            "variable_name": [f"input{i}" for i in range(6)],
            "type": ["input", "weight", "weight", "output", "scratch", "input"],
            "format": ["bfloat16"] * 6,
            "shape": [f"[128, {64 << i}]" for i in range(6)],
            "size": [128 * (64 << i) * 2 for i in range(6)],
            "node": list(range(6)),
        },
    )
    write(
        "StackFrame",
        {
            "id": [str(i) for i in range(41)],
            "file_location_id": list(range(41)),
            "parent_frame_id": [""] + ["0"] * 40,
        },
    )
    write(
        "StackFrameFileLocation",
        {
            "id": [str(i) for i in range(41)],
            "file_name_id": [0] * 41,
            "function_name_id": [0] + [1] * 40,
            "line_number": [1] + list(range(2, 42)),
        },
    )
    write("StackFrameFileName", {"id": ["0"], "name": [_FILE]})
    write("StackFrameFunctionName", {"id": ["0", "1"], "name": ["<module>", "forward"]})
    write(
        "SourceFile",
        {
            "path": [_FILE],
            "text": ["def forward(x, weight):\n" + "".join(f"    x = x @ weight[{i}]\n" for i in range(40))],
        },
    )
    phases = ("import", "graph", "kernels", "tile", "select", "schedule")
    write(
        "IrPhase",
        {
            "phase": list(phases),
            "text": ["\n".join(f"%{i} = {phase}.op{i} %{i - 1}" for i in range(1, 41)) + "\n" for phase in phases],
            "order": list(range(len(phases))),
        },
    )
    write(
        "IrLocation",
        {
            "phase": [phase for phase in phases for _ in range(40)],
            "line": [line for _ in phases for line in range(1, 41)],
            "node_id": [line for _ in phases for line in range(40)],
        },
    )
    write("Warning", {"message": ["synthetic data: random numbers, nothing ran"], "category": ["synthetic"]})
    write("SchemaFields", schema_fields())


def write_system_profile(folder: pathlib.Path, launches: int, seed: int = 0) -> None:
    """System tables with `launches` chains framework -> runtime -> hardware on two cores."""
    folder.mkdir(parents=True, exist_ok=True)
    random = numpy.random.default_rng(seed)
    origin = 1_700_000_000_000_000_000
    operators = ["aten::mul.Tensor", "aten::add.Tensor", "aten::mm", "aten::mean", "aten::rsqrt"]
    names: list[str] = []
    columns: dict[str, list] = {
        key: [] for key in ("start_ts", "end_ts", "trace_event_source", "thread_id", "nc_idx", "pcore_idx", "flow_id")
    }
    flows: list[tuple[int, int]] = []
    device_free = [origin, origin]
    for i in range(launches):
        host = origin + i * 40_000
        core = int(random.integers(0, 2))
        sequence, correlation, execution = str((core << 48) + i), str(i + 1), f"{core}:{i}"
        started = max(device_free[core], host + 15_000)
        device_free[core] = started + int(random.integers(9_000, 60_000))
        name = operators[int(random.integers(0, len(operators)))]
        rows = (
            (name, "framework", host, host + 22_000, 100, [correlation]),
            (name, "framework", host + 4_000, host + 12_000, -1, [correlation, sequence]),
            ("nrta_execute_schedule", "neuron_rt", host + 6_000, host + 10_000, 100, [sequence, execution]),
            ("nc_exec_running", "neuron_hw", started, device_free[core], 0, [execution]),
        )
        first = len(names)
        for event, source, start, end, thread, flow in rows:
            names.append(event)
            columns["start_ts"].append(start)
            columns["end_ts"].append(end)
            columns["trace_event_source"].append(source)
            columns["thread_id"].append(thread)
            columns["nc_idx"].append(None if source == "framework" else core)
            columns["pcore_idx"].append(core if source == "neuron_hw" else None)
            columns["flow_id"].append(flow)
        flows += [(first + k, first + k + 1) for k in range(3)]
    count = len(names)
    extra = [
        json.dumps({"exec_id": i // 4, "model_name": names[i - 3], "device_profile_name": "synthetic"})
        if i % 4 == 3
        else None
        for i in range(count)
    ]
    write_table(
        folder,
        "SystemProfileEvents",
        {
            "name": names,
            **columns,
            "duration_ns": [end - start for start, end in zip(columns["start_ts"], columns["end_ts"], strict=True)],
            "instance_id": ["i-synthetic"] * count,
            "process_id": [42] * count,
            "worker_gid": [0] * count,
            "framework_stream_id": ["0" if i % 4 == 1 else None for i in range(count)],
            "extra_attributes_json": extra,
        },
    )
    write_table(
        folder,
        "Flow",
        {
            "in_id": [a for a, _ in flows],
            "out_id": [b for _, b in flows],
            "in_table": ["SystemProfileEvents"] * len(flows),
            "out_table": ["SystemProfileEvents"] * len(flows),
            "dependency_type": ["flow"] * len(flows),
            "gap_time": [columns["start_ts"][b] - columns["end_ts"][a] for a, b in flows],
        },
    )
    last = max(columns["end_ts"], default=origin)
    write_table(
        folder,
        "SystemProfileMetadata",
        {
            "first_ts": [str(origin)],
            "last_ts": [str(last)],
            "first_ts_ns": [str(origin)],
            "last_ts_ns": [str(last)],
            "ntff_version": [2],
            "hbm_capacity_bytes": [24 << 30],
        },
    )
    times = numpy.arange(origin, last + 1, 20_000_000)
    write_table(
        folder,
        "CpuUsage",
        {
            "timestamp": numpy.repeat(times, 2),
            "util_percent": random.random(2 * len(times)),
            "cpu_id": ["0", "1"] * len(times),
            "instance_id": ["i-synthetic"] * (2 * len(times)),
        },
    )
    write_table(
        folder,
        "HostMemUsage",
        {
            "timestamp": times,
            "used_bytes": random.integers(8 << 30, 9 << 30, len(times)),
            "used_percent": random.random(len(times)) * 0.1 + 0.3,
            "instance_id": ["i-synthetic"] * len(times),
        },
    )
    write_table(folder, "SchemaFields", schema_fields())
    write_table(
        folder,
        "DeviceProfileList",
        {
            "device_profile_name": ["synthetic"],
            "instance_id": ["i-synthetic"],
            "process_id": [42],
            "nc_id": [0],
            "session_id": [1],
            "model_id": [0],
        },
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="neuron_explorer.synthetic", description=__doc__)
    parser.add_argument("output", type=pathlib.Path, metavar="OUT", help="folder of the profile")
    parser.add_argument("--events", type=int, default=10000, help="instructions and transfers (default: %(default)s)")
    parser.add_argument("--system", type=int, default=0, metavar="N", help="also a system profile with N launches")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    write_device_profile(options.output / "device" / "synthetic", options.events, options.seed)
    if options.system:
        write_system_profile(options.output, options.system, options.seed)
    write_profile_json(
        options.output,
        kind="system" if options.system else "device",
        device_profiles=["synthetic"],
        source="synthetic",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""One program of a capture: its NEFF and its timeline become the tables of a device profile."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy
import pyarrow

from .. import _decoder
from ..metrics import critical, hierarchy, insights, summary, usage
from ..schema import SCHEMA_VERSION, TableWriter, schema_fields, write_table
from . import ir
from .provenance import parse_graph
from .statics import ENGINES, Statics, queue_name

Progress = Callable[[float, str], None]

_ROWS_PER_BATCH = 1 << 20
# Lifetimes of on-chip memory are followed up to so many events.
_MAX_MEMORY_EVENTS = 2_000_000
REASONS = ("start", "order", "engine", "slot", "semaphore", "resource", "trigger", "queue", "dma")
_OPERATIONS = ("none", "sem_inc", "sem_dec", "sem_add_imm", "sem_sub_imm", "sem_wr_imm")
_STREAMS = ("Tensor", "Scalar", "GpSimd", "Vector", "Sync")
_TRANSFER, _TABLE_LOAD, _SEQUENCER = 1, 2, 3


class DeviceIngest:
    """Holds the decoded rows in nanoseconds while tables are written."""

    def __init__(self, neff: bytes, trace: bytes, folder: pathlib.Path, name: str, program_hash: str = ""):
        self.folder = folder
        self.name = name
        self.profile = _decoder.DeviceProfile(neff, trace, program_hash)
        self.neff_header = _decoder.neff_header(neff)
        self.machine = self.profile.machine()
        self.total = max(1, self.profile.kernel_ps // 1000)
        nodes = parse_graph(self.profile.graph_def, self.profile.modules)
        rows = self.profile.instructions()
        transfers = self.profile.transfers()
        executed = numpy.unique(numpy.concatenate([rows["info"], transfers["info"]])).tolist()
        self.statics = Statics(self.profile, nodes, self.profile.name or "model", executed)
        self.warnings: list[tuple[str, str]] = []
        if not nodes:
            self.warnings.append(("provenance", "the capture has no graph: rows have no module and no Python line"))
        if self.statics.has_unknown_repetitions:
            self.warnings.append(
                (
                    "provenance",
                    "a layer's repetitions could not be told apart: their rows have no module and no Python line",
                )
            )
        self.start, self.end = rows["start_ps"] // 1000, rows["end_ps"] // 1000
        self.wait = rows["wait_ps"] // 1000
        self.info, self.kind = rows["info"], rows["kind"]
        rows = transfers
        self.dma_start, self.dma_end = rows["start_ps"] // 1000, rows["end_ps"] // 1000
        self.dma_bytes, self.dma_info, self.dma_block = rows["bytes"], rows["info"], rows["block"]
        self.dma_engine, self.dma_trigger = rows["dma_engine"], rows["trigger"]
        self.engine = self.statics.engine[self.info]
        # What occupies a data path; the sync engine has none, so its triggers count.
        self.is_work = (self.kind != _SEQUENCER) | ((self.engine == ENGINES.index("Sync")) & self.is_dma_trigger())

    def is_dma_trigger(self) -> Any:
        return self.statics.is_dma[self.info]

    def by_trigger(self, weights: Any) -> Any:
        """Sums of transfers' numbers by the instruction that triggered them."""
        known = self.dma_trigger >= 0
        return numpy.bincount(self.dma_trigger[known], weights=weights[known], minlength=len(self.start)).astype(
            numpy.int64
        )

    def write(self, table: str, columns: dict[str, Any]) -> int:
        return write_table(self.folder, table, columns)


def ingest_device(
    neff: bytes,
    trace: bytes,
    folder: pathlib.Path,
    *,
    name: str,
    program_hash: str = "",
    core: int = 0,
    source_roots: Iterable[str] = (),
    with_phases: bool = True,
    progress: Progress = lambda fraction, text: None,
) -> list[str]:
    """Writes all tables of one device profile; returns the warnings."""
    progress(0.0, "decoding")
    folder.mkdir(parents=True, exist_ok=True)
    data = DeviceIngest(neff, trace, folder, name, program_hash)
    count = len(data.start) + len(data.dma_start)
    progress(0.15, f"{count} events")
    _write_instructions(data, progress)
    progress(0.5, "transfers")
    _write_transfers(data)
    progress(0.65, "semaphores and edges")
    _write_updates(data)
    _write_flow(data)
    progress(0.75, "critical path and what-if")
    critical.write_path(data)
    critical.write_what_if(data)
    progress(0.82, "usage over time")
    usage.write_series(data)
    if count <= _MAX_MEMORY_EVENTS:
        usage.write_memory(data)
    else:
        data.warnings.append(
            ("memory", f"lifetimes of on-chip memory are left out of profiles of more than {_MAX_MEMORY_EVENTS} events")
        )
    progress(0.9, "sums")
    hierarchy.write_nodes(data)
    hierarchy.write_kernels(data)
    _write_catalogues(data, core, source_roots)
    if with_phases:
        progress(0.95, "phases of the compiler")
        ir.write_phases(data)
    values = summary.write_summary(data)
    insights.write_insights(data, values)
    if data.warnings:
        data.write(
            "Warning",
            {"message": [text for _, text in data.warnings], "category": [kind for kind, _ in data.warnings]},
        )
    progress(1.0, "done")
    return [text for _, text in data.warnings]


def _write_instructions(data: DeviceIngest, progress: Progress) -> None:
    statics = data.statics
    rows = len(data.start)
    if rows == 0:
        return
    reads = numpy.where(statics.reads_hbm[data.dma_info], data.dma_bytes, 0)
    writes = numpy.where(statics.writes_hbm[data.dma_info], data.dma_bytes, 0)
    has_transfers = len(data.dma_start) > 0
    per_trigger: dict[str, Any] = {}
    if has_transfers:
        of = data.dma_info
        per_trigger = {
            "hbm_read_bytes": data.by_trigger(reads),
            "hbm_write_bytes": data.by_trigger(writes),
            "spill_save_bytes": data.by_trigger(numpy.where(statics.writes["scratch"][of], data.dma_bytes, 0)),
            "spill_reload_bytes": data.by_trigger(numpy.where(statics.reads["scratch"][of], data.dma_bytes, 0)),
            "input_queue_bytes": data.by_trigger(numpy.where(statics.reads["input"][of], data.dma_bytes, 0)),
            "output_queue_bytes": data.by_trigger(numpy.where(statics.writes["output"][of], data.dma_bytes, 0)),
            "weight_queue_bytes": data.by_trigger(numpy.where(statics.reads["weight"][of], data.dma_bytes, 0)),
        }
        first = numpy.full(rows, numpy.iinfo(numpy.int64).max)
        known = data.dma_trigger >= 0
        numpy.minimum.at(first, data.dma_trigger[known], data.dma_start[known])
        waited = numpy.maximum(first - data.end, 0)
    numbers = {
        name: statics.number(name)
        for name in ("pc", "sbuf_read_bytes", "sbuf_write_bytes", "psum_read_bytes", "psum_write_bytes", "debug_id")
    }
    moved = numpy.where(
        (numbers["psum_read_bytes"] > 0) & (numbers["sbuf_write_bytes"] > 0), numbers["psum_read_bytes"], 0
    )
    plain = numpy.where(statics.is_transpose, 0, statics.flops)
    transposed = numpy.where(statics.is_transpose, statics.flops, 0)
    adjusted = numpy.where(statics.is_transpose, 0, statics.adjusted)
    adjusted_transposed = numpy.where(statics.is_transpose, statics.adjusted, 0)
    engines = pyarrow.array(list(ENGINES))
    with TableWriter(data.folder, "Instruction") as writer:
        for begin in range(0, rows, _ROWS_PER_BATCH):
            chunk = slice(begin, min(rows, begin + _ROWS_PER_BATCH))
            info = data.info[chunk]
            start, end = data.start[chunk], data.end[chunk]
            pc = numbers["pc"][info]
            columns: dict[str, Any] = {
                "id": numpy.arange(chunk.start, chunk.stop, dtype=numpy.int64),
                "start_ts": start,
                "end_ts": end,
                "duration_ns": end - start,
                "engine": pyarrow.DictionaryArray.from_arrays(
                    pyarrow.array(data.engine[chunk], pyarrow.int32()), engines
                ),
                "timeline_track": statics.track.take(info),
                "pcore_idx": numpy.zeros(len(info), numpy.int64),
                "opcode": statics.opcode.take(info),
                "operands": statics.operands.take(info),
                "compiler_opcode": statics.opcode.take(info),
                "compiler_operands": statics.operands.take(info),
                "pc": pc,
                "compiler_pc": pc,
                "bir_id": statics.record.take(info),
                "raw_bir_id": numbers["debug_id"][info],
                "bir_instruction_name": statics.instruction_name.take(info),
                "kernel_instruction_name": statics.kernel.take(info),
                "evt_wait_time_ns": data.wait[chunk],
                "hlo_name": statics.operation.take(info),
                "hlo_attrs": statics.node_name.take(info),
                "raw_framework_id": statics.leaves[info],
                "layer": statics.layer.take(info),
                "stack_frame_ids": statics.stack.take(info),
                "nki_source_location": statics.location.take(info),
                "bir_debug_info_source_location": statics.location.take(info),
                "sbuf_read_bytes": numbers["sbuf_read_bytes"][info],
                "sbuf_write_bytes": numbers["sbuf_write_bytes"][info],
                "psum_read_bytes": numbers["psum_read_bytes"][info],
                "psum_write_bytes": numbers["psum_write_bytes"][info],
                "psum_read_sbuf_write_bytes": moved[info],
                "tensor_instruction_type": statics.tensor_type.take(info),
                "tensor_elements": plain[info] // 2,
                "raw_flops": plain[info],
                "adjusted_flops": adjusted[info],
                "tensor_elements_transpose": transposed[info] // 2,
                "flops_transpose": transposed[info],
                "adjusted_flops_transpose": adjusted_transposed[info],
                "scalar_activation_fn": statics.function.take(info),
            }
            if has_transfers:
                columns |= {name: values[chunk] for name, values in per_trigger.items()}
                triggers = statics.is_dma[info] & (first[chunk] < numpy.iinfo(numpy.int64).max)
                columns["dma_trigger_start_ts"] = pyarrow.array(start, mask=~triggers)
                columns["dma_trigger_end_ts"] = pyarrow.array(end, mask=~triggers)
                columns["dma_wait_time_ns"] = pyarrow.array(waited[chunk], mask=~triggers)
            writer.write(columns)
            progress(0.15 + 0.35 * chunk.stop / rows, f"{chunk.stop} of {rows} instructions")
    data.write("ActiveTime", summary.active_time(data))
    data.write("OpcodeSummary", summary.opcodes(data))


def _write_transfers(data: DeviceIngest) -> None:
    statics = data.statics
    rows = len(data.dma_start)
    if rows == 0:
        return
    side = statics.side
    partitions = {name: statics.number(f"num_{name}_partitions", numpy.int32) for name in ("source", "destination")}
    numbers = {"queue": statics.number("queue")}
    is_transpose = numpy.array(["transpose" in row["opcode"].lower() for row in statics.rows])
    completion = data.machine["dma_completion_ps"] // 1000
    with TableWriter(data.folder, "DmaPacketAggregated") as writer:
        for begin in range(0, rows, _ROWS_PER_BATCH):
            chunk = slice(begin, min(rows, begin + _ROWS_PER_BATCH))
            info = data.dma_info[chunk]
            start, end, moved = data.dma_start[chunk], data.dma_end[chunk], data.dma_bytes[chunk]
            trigger = data.dma_trigger[chunk]
            writer.write(
                {
                    "id": numpy.arange(chunk.start, chunk.stop, dtype=numpy.int64),
                    "start_ts": start,
                    "end_ts": end,
                    "duration_ns": end - start,
                    "pcore_idx": numpy.zeros(len(info), numpy.int64),
                    "block_id": data.dma_block[chunk],
                    "engine_idx": data.dma_engine[chunk].astype(numpy.int64),
                    "queue_idx": numbers["queue"][info],
                    "queue_name": statics.queue_name.take(info),
                    "queue_type": statics.queue_type.take(info),
                    "op": statics.dma_operation.take(info),
                    "variable": statics.variable.take(info),
                    "read_bytes": moved,
                    "write_bytes": moved,
                    "transfer_bytes": moved,
                    "throughput": moved / numpy.maximum(end - start, 1) * 1e9,
                    "source": side["source"].take(info),
                    "dest": side["destination"].take(info),
                    "semaphore_id": side["semaphore"].take(info),
                    "modular_flow_function": statics.kernel.take(info),
                    "read_sbuf_partitions": side["source_partitions"].take(info),
                    "read_num_sbuf_partitions": partitions["source"][info],
                    "read_shape": side["source_shape"].take(info),
                    "read_offset": side["source_offset"].take(info),
                    "read_steps": side["source_steps"].take(info),
                    "write_sbuf_partitions": side["destination_partitions"].take(info),
                    "write_num_sbuf_partitions": partitions["destination"][info],
                    "write_shape": side["destination_shape"].take(info),
                    "write_offset": side["destination_offset"].take(info),
                    "write_steps": side["destination_steps"].take(info),
                    "is_transpose_mode": is_transpose[info],
                    "trigger": pyarrow.array(trigger, mask=trigger < 0),
                    "completion": end + completion,
                }
            )
    used = {queue_name(row): row for row in statics.rows if row["is_dma"]}
    data.write(
        "DmaQueuesInfo",
        {
            "name": list(used),
            "type": [statics._queue_type(row) for row in used.values()],
            "pcore_idx": [0] * len(used),
            "idx": [row["queue"] for row in used.values()],
            "engine_idx": [-1] * len(used),
            "axi_port": [-1] * len(used),
            "dram_channel": [-1] * len(used),
        },
    )


def _write_updates(data: DeviceIngest) -> None:
    rows = data.profile.updates()
    if not len(rows["time"]):
        return
    sources = pyarrow.array([*_STREAMS, "AXI"])
    source = numpy.where(rows["stream"] < 0, len(_STREAMS), rows["stream"]).astype(numpy.int32)
    names = pyarrow.array([f"S[{i}]" for i in range(256)])
    data.write(
        "SemaphoreUpdate",
        {
            "timestamp": rows["time"],
            "id": pyarrow.DictionaryArray.from_arrays(pyarrow.array(rows["semaphore"].astype(numpy.int32)), names),
            "value": rows["value"],
            "update_source": pyarrow.DictionaryArray.from_arrays(pyarrow.array(source), sources),
            "update_operation_type": pyarrow.DictionaryArray.from_arrays(
                pyarrow.array(rows["op"].astype(numpy.int32)), pyarrow.array(list(_OPERATIONS))
            ),
            "update_trigger_timing": pyarrow.DictionaryArray.from_arrays(
                pyarrow.array(numpy.zeros(len(source), numpy.int32)), pyarrow.array(["complete"])
            ),
            "pcore_idx": numpy.zeros(len(source), numpy.int64),
            "row_id": pyarrow.array(rows["row"], mask=rows["row"] < 0),
        },
    )


def _write_flow(data: DeviceIngest) -> None:
    rows = data.profile.flows()
    tables = pyarrow.array(["Instruction", "DmaPacketAggregated"])
    count = len(rows["from"])
    if count == 0:
        return

    def text(codes: Any, values: Any) -> pyarrow.DictionaryArray:
        return pyarrow.DictionaryArray.from_arrays(pyarrow.array(codes.astype(numpy.int32)), values)

    with TableWriter(data.folder, "Flow") as writer:
        for begin in range(0, count, _ROWS_PER_BATCH):
            chunk = slice(begin, min(count, begin + _ROWS_PER_BATCH))
            writer.write(
                {
                    "in_id": rows["from"][chunk],
                    "out_id": rows["to"][chunk],
                    "in_table": text(rows["from_table"][chunk], tables),
                    "out_table": text(rows["to_table"][chunk], tables),
                    "dependency_type": text(rows["reason"][chunk], pyarrow.array(list(REASONS))),
                    "gap_time": rows["gap_ps"][chunk] // 1000,
                }
            )


def _write_catalogues(data: DeviceIngest, core: int, source_roots: Iterable[str]) -> None:
    machine = data.machine
    version = _decoder.version
    data.write(
        "Metadata",
        {
            "profile_schema_version": [SCHEMA_VERSION],
            "ntff_version": [2],
            "num_physical_cores": [1],
            "vnc_enabled": [False],
            "first_hw_timestamp": [0],
            "last_hw_timestamp": [data.total],
            "first_ts": ["0"],
            "last_ts": [str(data.total)],
            "dma_ddr_bandwidth": [machine["dma_gbps"] * 1e9],
            "num_dma_engines_per_neuroncore": [machine["dma_engines"]],
            "hbm_ddr_bandwidth": [machine["hbm_gbps"] * 1e9],
            "tensor_engine_num_rows": [machine["tensor_rows"]],
            "tensor_engine_num_cols": [machine["tensor_cols"]],
            "tensor_engine_clock_freq": [machine["tensor_clock"]],
            "vector_engine_clock_freq": [machine["vector_clock"]],
            "vector_engine_num_channels": [machine["partitions"]],
            "scalar_engine_clock_freq": [machine["scalar_clock"]],
            "scalar_engine_num_channels": [machine["partitions"]],
            "gpsimd_engine_clock_freq": [machine["gpsimd_clock"]],
            "gpsimd_engine_num_channels": [machine["partitions"]],
            "neuroncore_clock_freq": [machine["sync_clock"]],
            "ticks_per_nanosec": [1],
            "instance_type": [machine["target"]],
            "runtime_version": [version],
            "explorer_version": [version],
            "compiler_version": [data.profile.compiler_version],
            "neuroncore_idx": [core],
            "neuron_device_idx": [core // max(1, machine["cores_per_device"])],
            "profile_name": [data.name],
            "is_simulation": [True],
        },
    )
    header = data.neff_header
    data.write(
        "NeffHeader",
        {
            "network_name": [header["network_name"]],
            "uuid": [header["uuid"]],
            "hash": [data.profile.hash or header["hash"]],
            "header_size": [header["header_size"]],
            "data_size": [header["data_size"]],
            "package_version": [header["package_version"]],
            "build_version": [header["build_version"]],
            "neuroncore_count": [1],
            "logical_neuroncore_count": [1],
            "pcore_count_per_lnc": [1],
        },
    )
    data.write(
        "ExecutionInfo",
        {
            "execution_index": [0],
            "neff_name": [data.profile.label or data.profile.name],
            "execution_start_ts": [0],
            "execution_end_ts": [data.total],
            "num_subgraphs": [1],
            "row_count": [len(data.start) + len(data.dma_start)],
        },
    )
    _write_tensors(data)
    for table, columns in data.statics.frames.tables().items():
        data.write(table, columns)
    data.write("SourceFile", data.statics.frames.sources(source_roots))
    data.write("SchemaFields", schema_fields())


def _write_tensors(data: DeviceIngest) -> None:
    variables = data.statics.variables
    if not variables:
        return
    position = {variable["name"]: index for index, variable in enumerate(variables)}
    reads = numpy.array([position.get(row["read_variable"], -1) for row in data.statics.rows])
    to_sbuf = numpy.array([row["reads_hbm"] and not row["writes_hbm"] for row in data.statics.rows])
    size, count = numpy.zeros(len(variables), numpy.int64), numpy.zeros(len(variables), numpy.int64)
    if len(data.dma_info):
        chosen = to_sbuf[data.dma_info] & (reads[data.dma_info] >= 0)
        target = reads[data.dma_info[chosen]]
        numpy.add.at(size, target, data.dma_bytes[chosen])
        _, first = numpy.unique(data.dma_block[chosen], return_index=True)
        numpy.add.at(count, target[first], 1)
    data.write(
        "TensorInfo",
        {
            "variable_name": [variable["name"] for variable in variables],
            "type": [variable["kind"] for variable in variables],
            "format": [variable["dtype"] for variable in variables],
            "shape": [str(list(variable["shape"])) for variable in variables],
            "size": [variable["bytes"] for variable in variables],
            "node": list(range(len(variables))),
            "pcore_idx": [0] * len(variables),
            "load_to_sbuf_avg_size_bytes": (size // numpy.maximum(count, 1)),
            "load_to_sbuf_total_size_bytes": size,
            "load_to_sbuf_dma_count": count,
            "load_to_sbuf_repeat_factor": [
                float(total) / variable["bytes"] if variable["bytes"] else 0.0
                for total, variable in zip(size.tolist(), variables, strict=True)
            ],
        },
    )

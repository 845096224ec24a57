# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""What a timeline draws: a processed profile's events reduced to a few columns, as one Arrow stream.

`slices` holds a row per event:

    ts u32 (ns from the start of the profile), dur u32 (both f64 from 4.29 s on), name u16 (u32 from 65536 names on),
    color u16, row u32 (row number in the event's table), wait u32 (ns before the start; only where known)

Of a device profile they are sorted by (lane, drawn row, start): events of a lane that overlap have several rows. The
metadata holds how many rows each lane has and where each begins. Of a system profile they are sorted by (lane, start,
those without length, longest first) and a column `lane` (u16) says where each belongs, as the browser merges lanes.

`counters` holds a row per sample, sorted by (series, ts): series u16, ts f64, value f64.

Lanes, series and the strings behind the indices travel in the schema's metadata, key `explorer`. Doubles are exact to
2^53 ns = 104 days from the start of a profile; absolute Unix nanoseconds would not be. One record batch, because a
browser reads a column of several batches through a copy.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .metrics.insights import SMALL_TRANSFER_BYTES

FORMAT_VERSION = 2
ENGINES = ("Sync", "Tensor", "TensorMatrix", "Vector", "Scalar", "GpSimd")
# More samples of a series are reduced to the extremes of as many intervals: a screen has a few thousand columns.
MAX_SAMPLES = 131072
_WARNING_INTERVALS = 2000
# What a slice of a table is named after, first that is present; and what it is coloured by, for each choice of colours.
NAME_COLUMNS = {
    "Instruction": ("opcode",),
    "DmaPacketAggregated": ("variable", "op"),
    "DmaPacket": ("variable", "queue_name"),
    "SemaphoreUpdate": ("id",),
    "CcInstruction": ("description",),
    "CcOp": ("operation",),
    "Error": ("description",),
    "SystemProfileEvents": ("name",),
}
COLOR_COLUMNS = {
    "operator": ("hlo_name", "variable", "update_source", "operation", "name", "opcode", "description"),
    "opcode": ("opcode", "op", "queue_type", "update_operation_type", "operation", "name"),
    "layer": ("layer", "queue_name", "update_source", "name"),
    "kernel": ("kernel_instruction_name", "modular_flow_function", "update_source", "name"),
    "node": ("raw_framework_id", "queue_name", "update_source", "name"),
}
STRINGS = (
    "engine",
    "timeline_track",
    "opcode",
    "hlo_name",
    "layer",
    "kernel_instruction_name",
    "queue_name",
    "queue_type",
    "variable",
    "op",
    "id",
    "update_source",
    "update_operation_type",
    "description",
    "operation",
    "name",
    "instance_id",
    "trace_event_source",
    "framework_stream_id",
    "modular_flow_function",
)


def table_file(folder: Path, table: str) -> Path | None:
    path = folder / f"{table}.parquet"
    return path if path.is_file() else None


def read_columns(folder: Path, table: str, columns) -> pa.Table | None:
    """The columns that the table has; None if there is no such table or it has no row."""
    path = table_file(folder, table)
    if path is None:
        return None
    file = pq.ParquetFile(path)
    names = set(file.schema_arrow.names)
    if file.metadata.num_rows == 0:
        return None
    strings = [
        name
        for name in columns
        if name in STRINGS and name in names and pa.types.is_string(file.schema_arrow.field(name).type)
    ]
    return pq.read_table(path, columns=[name for name in columns if name in names], read_dictionary=strings)


def codes_of(column: pa.ChunkedArray) -> tuple[np.ndarray, list[str]]:
    """Index of each row's text among the distinct texts; -1 where there is none."""
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    array = column.unify_dictionaries().combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0)
    codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, [value if value is not None else "" for value in array.dictionary.to_pylist()]


def integers(table: pa.Table, name: str, default: int = 0) -> np.ndarray:
    if name not in table.column_names:
        return np.full(table.num_rows, default, np.int64)
    return table[name].cast(pa.int64()).fill_null(default).to_numpy()


class Texts:
    """Distinct texts of several tables under one numbering."""

    def __init__(self):
        self.values: list[str] = []
        self.index: dict[str, int] = {}

    def number(self, text: str) -> int:
        number = self.index.get(text)
        if number is None:
            number = self.index[text] = len(self.values)
            self.values.append(text)
        return number

    def map(self, table: pa.Table, columns) -> np.ndarray:
        """The number of each row's text: of the first of the columns that has one."""
        result = np.full(table.num_rows, -1, np.int64)
        for column in columns:
            if column not in table.column_names:
                continue
            codes, values = codes_of(table[column])
            # Empty texts count as missing, so that the next column is asked.
            numbers = np.array([self.number(value) if value else -1 for value in values] + [-1], np.int64)
            result = np.where(result < 0, numbers[codes], result)
            if (result >= 0).all():
                return result
        missing = result < 0
        if missing.any():
            result[missing] = self.number("(none)")
        return result


@dataclass
class Part:
    """Slices of one table; `lane` counts within the part's lanes."""

    table: str
    lanes: list[dict]
    lane: np.ndarray
    ts: np.ndarray
    end: np.ndarray
    data: pa.Table
    rows: np.ndarray | None = None
    wait: np.ndarray | None = None
    extra: dict = field(default_factory=dict)


def natural(text: str):
    return [int(piece) if piece.isdigit() else piece for piece in re.split(r"(\d+)", text)]


def _lane_part(folder, table, lane_columns, group, order=None, prefix="", start="start_ts", end="end_ts", always=()):
    """Slices of a table whose lanes are the texts of a column; `always` have a lane even when they have no slice."""
    colors = {name for choice in COLOR_COLUMNS.values() for name in choice}
    wanted = {start, end, "evt_wait_time_ns", *lane_columns, *NAME_COLUMNS[table], *colors}
    data = read_columns(folder, table, sorted(wanted))
    if data is None:
        return None
    texts = Texts()
    lane = texts.map(data, lane_columns)
    for text in always:
        texts.number(text)
    ranked = sorted(range(len(texts.values)), key=lambda i: (order or natural)(texts.values[i]))
    rank = np.empty(len(ranked), np.int64)
    rank[ranked] = np.arange(len(ranked))
    ts = integers(data, start)
    stop = integers(data, end) if end in data.column_names else ts
    wait = integers(data, "evt_wait_time_ns") if "evt_wait_time_ns" in data.column_names else None
    lanes = [{"label": prefix + texts.values[i], "group": group, "table": table} for i in ranked]
    return Part(table, lanes, rank[lane], ts, stop, data, wait=wait)


def _engine_order(name: str):
    stem = name.split(" ")[0]
    return (ENGINES.index(stem) if stem in ENGINES else len(ENGINES), natural(name))


def device_parts(folder: Path) -> list[Part]:
    """The tracks of profiling.md section 7.1 that are slices, from top to bottom."""
    parts = []
    errors = read_columns(folder, "Error", ("timestamp", "description", "type"))
    if errors is not None:
        ts = integers(errors, "timestamp")
        parts.append(
            Part(
                "Error",
                [{"label": "Errors", "group": "Errors", "table": "Error"}],
                np.zeros(len(ts), np.int64),
                ts,
                ts,
                errors,
            )
        )
    parts.append(
        _lane_part(folder, "Instruction", ("timeline_track", "engine"), "Engines", order=_engine_order, always=ENGINES)
    )
    parts.append(_lane_part(folder, "DmaPacketAggregated", ("queue_name",), "DMA queues"))
    # The packets where they are modelled, else each engine's share of the transfers.
    machine = read_columns(folder, "Metadata", ("num_dma_engines_per_neuroncore",))
    rings = (
        [str(i) for i in range(integers(machine, "num_dma_engines_per_neuroncore")[0])] if machine is not None else []
    )
    options = {"lane_columns": ("engine_idx",), "group": "DMA engines", "prefix": "DMA-E", "always": rings}
    parts.append(_lane_part(folder, "DmaPacket", **options) or _lane_part(folder, "DmaPacketAggregated", **options))
    parts.append(_lane_part(folder, "CcInstruction", ("core_idx",), "Collectives", prefix="CC-core_"))
    parts.append(_lane_part(folder, "CcOp", ("stream_id",), "Collectives", prefix="CC-stream_"))
    updates = read_columns(folder, "SemaphoreUpdate", ("timestamp", "id", "update_source", "update_operation_type"))
    if updates is not None:
        ts = integers(updates, "timestamp")
        parts.append(
            Part(
                "SemaphoreUpdate",
                [{"label": "Semaphore", "group": "Semaphores", "table": "SemaphoreUpdate"}],
                np.zeros(len(ts), np.int64),
                ts,
                ts,
                updates,
            )
        )
    return [part for part in parts if part is not None]


def system_parts(folder: Path) -> list[Part]:
    """One lane per distinct origin; the browser merges them by the chosen grouping."""
    keys = (
        "trace_event_source",
        "instance_id",
        "process_id",
        "thread_id",
        "nc_idx",
        "pcore_idx",
        "worker_gid",
        "framework_stream_id",
    )
    data = read_columns(folder, "SystemProfileEvents", ("start_ts", "end_ts", "name", *keys))
    if data is None:
        return []
    columns = []
    for key in keys:
        if key not in data.column_names:
            columns.append((np.full(data.num_rows, -1, np.int64), []))
        elif pa.types.is_dictionary(data[key].type) or pa.types.is_string(data[key].type):
            columns.append(codes_of(data[key]))
        else:
            columns.append((integers(data, key, -1), None))
    # The transfers have lanes of their own, whoever made them.
    names, name_texts = codes_of(data["name"])
    transfer_of = {"dmem_buf_copyin": 1, "dmem_buf_copyout": 2}
    transfers = np.array([transfer_of.get(text, 0) for text in name_texts] + [0], np.int64)[names]
    stacked = np.stack([codes for codes, _ in columns] + [transfers], axis=1)
    distinct, lane = np.unique(stacked, axis=0, return_inverse=True)
    lanes = []
    for combination in distinct.tolist():
        entry: dict = {"table": "SystemProfileEvents"}
        for key, (_, texts), value in zip(keys, columns, combination[:-1], strict=True):
            entry[key] = (
                (texts[value] if texts and value >= 0 else None)
                if texts is not None
                else (value if value >= 0 else None)
            )
        entry["transfer"] = (None, "host_to_device", "device_to_host")[combination[-1]]
        entry["label"] = entry["trace_event_source"] or ""
        entry["group"] = "System"
        lanes.append(entry)
    return [
        Part("SystemProfileEvents", lanes, lane.reshape(-1), integers(data, "start_ts"), integers(data, "end_ts"), data)
    ]


def parts_of(folder: Path, kind: str) -> list[Part]:
    return system_parts(folder) if kind == "system" else device_parts(folder)


def rows_of(ts: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Drawn row of each event of a lane (sorted by start): the first one that is free when the event starts."""
    row = np.zeros(len(ts), np.int64)
    rest = np.arange(len(ts))
    number = 0
    while len(rest):
        start, stop = ts[rest], end[rest]
        if (start[1:] >= stop[:-1]).all():
            row[rest] = number
            break
        # A row takes the first event that finds it free, then the next one that starts when that has ended, and so on.
        following = np.maximum(np.searchsorted(start, stop, "left"), np.arange(1, len(rest) + 1)).tolist()
        taken = []
        at = 0
        while at < len(rest):
            taken.append(at)
            at = following[at]
        chosen = np.zeros(len(rest), bool)
        chosen[taken] = True
        row[rest[chosen]] = number
        rest = rest[~chosen]
        number += 1
    return row


class Drawn:
    """The slices of a profile in the order in which they are drawn."""

    def __init__(self, folder: Path, kind: str):
        self.folder, self.kind = folder, kind
        self.parts = parts = parts_of(folder, kind)
        self.lanes: list[dict] = []
        shifted = []
        for part in parts:
            shifted.append(part.lane + len(self.lanes))
            self.lanes.extend(part.lanes)
        lane = np.concatenate(shifted) if shifted else np.zeros(0, np.int64)
        ts = np.concatenate([part.ts for part in parts]) if parts else np.zeros(0, np.int64)
        end = np.maximum(np.concatenate([part.end for part in parts]), ts) if parts else np.zeros(0, np.int64)
        sorted_already = bool(len(lane)) and bool(
            ((lane[1:] > lane[:-1]) | ((lane[1:] == lane[:-1]) & (ts[1:] > ts[:-1]))).all()
        )
        order = np.arange(len(lane)) if sorted_already else np.lexsort((-end, end > ts, ts, lane))
        self.rows = [1] * len(self.lanes)
        # First slice of each row, and one entry past the last.
        self.offsets = np.zeros(1, np.int64)
        if kind == "device":
            order = self._by_row(order, lane, ts, end)
        self.order, self.lane = order, lane[order]
        self.base = int(ts.min()) if kind == "system" and len(ts) else 0
        self.ts, self.end = ts[order] - self.base, end[order] - self.base
        self.last = max(int(self.end.max()) if len(end) else 0, 1)

    def _by_row(self, order, lane, ts, end) -> np.ndarray:
        bounds = np.searchsorted(lane[order], np.arange(len(self.lanes) + 1))
        counts = []
        for number in range(len(self.lanes)):
            members = order[bounds[number] : bounds[number + 1]]
            row = rows_of(ts[members], end[members])
            self.rows[number] = int(row.max()) + 1 if len(row) else 1
            counts.append(np.bincount(row, minlength=self.rows[number]))
            if self.rows[number] > 1:
                order[bounds[number] : bounds[number + 1]] = members[np.argsort(row, kind="stable")]
        self.offsets = np.concatenate([[0], np.cumsum(np.concatenate(counts))]) if counts else self.offsets
        return order

    def slices(self) -> bytes:
        parts, order = self.parts, self.order
        names = Texts()
        name = np.concatenate([names.map(p.data, NAME_COLUMNS[p.table]) for p in parts]) if parts else order
        color, colors = colors_of(parts, "operator")
        row = np.concatenate([np.arange(len(p.ts)) for p in parts]) if parts else order
        clock = np.uint32 if self.last < 2**32 else np.float64
        columns = {
            "ts": self.ts.astype(clock),
            "dur": (self.end - self.ts).astype(clock),
            "name": name[order].astype(np.uint16 if len(names.values) < 2**16 else np.uint32),
            "color": color[order].astype(np.uint16),
            "row": row[order].astype(np.uint32),
        }
        if self.kind == "system":
            columns["lane"] = self.lane.astype(np.uint16)
        if any(part.wait is not None for part in parts):
            wait = np.concatenate([p.wait if p.wait is not None else np.zeros(len(p.ts), np.int64) for p in parts])
            columns["wait"] = np.clip(wait[order], 0, 2**32 - 1).astype(np.uint32)
        described = {
            "kind": self.kind,
            "base": str(self.base),
            "end": self.last,
            "lanes": self.lanes,
            "names": names.values,
            "colors": colors,
        }
        if self.kind == "device":
            described |= {"rows": self.rows, "offsets": self.offsets.tolist()}
        return stream(pa.table(columns), described)

    def colors(self, by: str) -> bytes:
        """Other colours for the slices, in the same order."""
        color, values = colors_of(self.parts, by)
        nodes = read_columns(self.folder, "FrameworkNode", ("id", "node_name")) if by == "node" else None
        if nodes is not None:
            names = dict(zip(nodes["id"].to_pylist(), nodes["node_name"].to_pylist(), strict=True))
            values = [names.get(int(value), value) if value.isdigit() else value for value in values]
        return stream(pa.table({"color": color[self.order].astype(np.uint16)}), {"colors": values})


def colors_of(parts: list[Part], by: str) -> tuple[np.ndarray, list[str]]:
    texts = Texts()
    pieces = []
    for part in parts:
        numbers = texts.map(part.data, COLOR_COLUMNS[by])
        pieces.append(numbers)
    color = np.concatenate(pieces) if pieces else np.zeros(0, np.int64)
    values = texts.values
    if len(values) > 65535:
        # The index has 16 bits: what is rarest shares one entry.
        counts = np.bincount(color, minlength=len(values))
        kept = np.sort(np.argsort(-counts, kind="stable")[:65534])
        place = np.full(len(values), len(kept), np.int64)
        place[kept] = np.arange(len(kept))
        color = place[color]
        values = [values[i] for i in kept] + ["(others)"]
    return color, values


def stream(table: pa.Table, metadata: dict) -> bytes:
    described = json.dumps({"version": FORMAT_VERSION, **metadata}, separators=(",", ":"))
    table = table.replace_schema_metadata({"explorer": described}).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        # An empty table has no batch at all otherwise.
        for batch in table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]:
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def slices(folder: Path, kind: str) -> bytes:
    return Drawn(folder, kind).slices()


def colors(folder: Path, kind: str, by: str) -> bytes:
    return Drawn(folder, kind).colors(by)


@dataclass
class Series:
    label: str
    group: str
    unit: str
    style: str
    ts: np.ndarray
    value: np.ndarray
    stack: str = ""
    maximum: float | None = None
    hidden: bool = False


def thinned(ts: np.ndarray, value: np.ndarray, most: int = MAX_SAMPLES) -> tuple[np.ndarray, np.ndarray]:
    """At most that many samples, which keep the smallest and largest of each of equally many intervals."""
    if len(ts) <= most:
        return ts, value
    step = -(-len(ts) // (most // 2))
    starts = np.arange(0, len(ts), step)
    blocks = np.append(starts[1:], len(ts))
    picked = []
    for low, high in zip(starts.tolist(), blocks.tolist(), strict=True):
        window = value[low:high]
        picked.extend(sorted({low + int(window.argmin()), low + int(window.argmax())}))
    kept = np.array(picked)
    return ts[kept], value[kept]


def _sampled(folder, table, columns: list[tuple[str, str]], group, unit, style, scale=1.0, **more) -> list[Series]:
    data = read_columns(folder, table, ("timestamp", *[column for column, _ in columns]))
    if data is None:
        return []
    ts = integers(data, "timestamp")
    order = np.argsort(ts, kind="stable")
    result = []
    for column, label in columns:
        if column in data.column_names:
            values = data[column].cast(pa.float64()).fill_null(0).to_numpy() * scale
            result.append(Series(label, group, unit, style, ts[order], values[order], **more))
    return result


def utilisation(folder: Path) -> list[Series]:
    columns = [
        ("mfu_instant", "Estimated Instant MFU"),
        ("mfu_cumulative", "Estimated Cumulative MFU"),
        ("hfu_instant", "Estimated Instant HFU"),
        ("hfu_cumulative", "Estimated Cumulative HFU"),
    ]
    return _sampled(folder, "Utilisation", columns, "Utilisation", "%", "step", scale=100)


def _small_transfers(folder: Path) -> list[Series]:
    """The share of small ones among the transfers that start in each of equally many intervals, if there are any.

    A row is one engine's share of a transfer: the bytes of all shares decide, and together they count as one.
    """
    data = read_columns(folder, "DmaPacketAggregated", ("start_ts", "transfer_bytes", "block_id"))
    if data is None:
        return []
    start, moved, block = (integers(data, name) for name in ("start_ts", "transfer_bytes", "block_id"))
    moves = moved > 0
    start, moved, block = start[moves], moved[moves], block[moves]
    is_small = np.bincount(block, weights=moved)[block] < SMALL_TRANSFER_BYTES
    if not is_small.any():
        return []
    weight = 1 / np.bincount(block)[block]
    end = int(start.max()) + 1
    intervals = min(_WARNING_INTERVALS, end)
    at = start * intervals // end
    every = np.bincount(at, weights=weight, minlength=intervals)
    small = np.bincount(at, weights=weight * is_small, minlength=intervals)
    ts = -(-np.arange(intervals + 1, dtype=np.int64) * end // intervals)
    share = 100 * np.divide(small, every, out=np.zeros(intervals), where=every > 0)
    return [Series("Small DMA transfers", "DMA", "%", "warning", ts, np.append(share, 0.0), maximum=100)]


def device_series(folder: Path) -> list[Series]:
    result = []
    result += _sampled(
        folder,
        "SbufUsage",
        [("avg_util_percent", "State Buffer Usage")],
        "On-chip memory",
        "%",
        "area",
        scale=100,
        maximum=100,
    )
    result += _sampled(
        folder,
        "SbufUsage",
        [(f"partition_{p}_util_percent", f"State Buffer, partition {p}") for p in (0, 32, 64, 96)],
        "On-chip memory",
        "%",
        "area",
        scale=100,
        maximum=100,
        hidden=True,
    )
    result += _sampled(
        folder, "PsumUsage", [("avg_util_percent", "PSUM Usage")], "On-chip memory", "%", "area", scale=100, maximum=100
    )
    result += _sampled(
        folder,
        "PsumUsage",
        [(f"bank_{b}_util_percent", f"PSUM, bank {b}") for b in range(8)],
        "On-chip memory",
        "%",
        "area",
        scale=100,
        maximum=100,
        hidden=True,
    )
    throttle = read_columns(folder, "Throttle", ("timestamp", "k", "n"))
    if throttle is not None:
        ts = integers(throttle, "timestamp")
        limit = 100.0 * integers(throttle, "k") / np.maximum(integers(throttle, "n"), 1)
        result.append(Series("Throttling", "Throttling", "%", "step", ts, limit, maximum=100))
    result += _small_transfers(folder)
    result += _sampled(folder, "PendingDma", [("value", "Pending DMA Count")], "DMA", "", "step")
    for table, label in (("HbmUsage", "HBM Throughput"), ("DmaUsage", "DMA Throughput")):
        result += _sampled(folder, table, [("current_throughput", label)], "Throughput", "B/s", "step")
        # Mean rate since the start: what has been moved, over the time that has passed (in ns).
        totals = _sampled(folder, table, [("total_transfer_bytes", f"Cumulative {label}")], "Throughput", "B/s", "line")
        for series in totals:
            series.value = series.value * 1e9 / np.maximum(series.ts, 1)
        result += totals
    return result + utilisation(folder)


def system_series(folder: Path) -> list[Series]:
    result = []
    data = read_columns(
        folder, "SystemProfileHbmUsage", ("timestamp", "total_bytes", "device_idx", "hbm_idx", "instance_id")
    )
    if data is not None:
        ts, total = integers(data, "timestamp"), integers(data, "total_bytes")
        instances = data["instance_id"].to_pylist()
        devices, stacks = integers(data, "device_idx"), integers(data, "hbm_idx")
        labels = [f"{i}/ND:{d}/HBM:{h}/neuron_hbm_usage" for i, d, h in zip(instances, devices, stacks, strict=True)]
        result += _by_label(labels, ts, total.astype(float), "Device memory", "B", "area")
    result += _bandwidth(folder)
    data = read_columns(folder, "HostMemUsage", ("timestamp", "used_bytes", "instance_id"))
    if data is not None:
        labels = [f"{instance}/host_memory" for instance in data["instance_id"].to_pylist()]
        result += _by_label(
            labels, integers(data, "timestamp"), integers(data, "used_bytes").astype(float), "Host", "B", "area"
        )
    data = read_columns(folder, "CpuUsage", ("timestamp", "util_percent", "cpu_id", "instance_id"))
    if data is not None:
        pairs = zip(data["instance_id"].to_pylist(), data["cpu_id"].to_pylist(), strict=True)
        labels = [f"{instance}/CPU:{cpu}/host_cpu_util" for instance, cpu in pairs]
        values = 100 * data["util_percent"].cast(pa.float64()).fill_null(0).to_numpy()
        cpus = _by_label(labels, integers(data, "timestamp"), values, "CPU utilization", "%", "step")
        for series in cpus:
            series.maximum, series.hidden = 100, True
        result += cpus
    return result


def _by_label(labels, ts, values, group, unit, style) -> list[Series]:
    texts, inverse = np.unique(np.array(labels, dtype=object).astype(str), return_inverse=True)
    result = []
    for index in sorted(range(len(texts)), key=lambda i: natural(texts[i])):
        chosen = np.flatnonzero(inverse == index)
        chosen = chosen[np.argsort(ts[chosen], kind="stable")]
        result.append(Series(str(texts[index]), group, unit, style, ts[chosen], values[chosen]))
    return result


def _bandwidth(folder: Path) -> list[Series]:
    """Rate of the transfers between host and device: their bytes over the time that at least one of them took."""
    data = read_columns(
        folder, "SystemProfileEvents", ("name", "start_ts", "end_ts", "nc_idx", "instance_id", "extra_attributes_json")
    )
    if data is None or "extra_attributes_json" not in data.column_names:
        return []
    names, texts = codes_of(data["name"])
    directions = {"dmem_buf_copyin": "host_to_device", "dmem_buf_copyout": "device_to_host"}
    result: dict[str, list[tuple[int, float]]] = {}
    wanted = [index for index, text in enumerate(texts) if text in directions]
    for row in np.flatnonzero(np.isin(names, wanted)).tolist():
        try:
            size = float(json.loads(data["extra_attributes_json"][row].as_py() or "{}").get("size", 0))
        except (ValueError, TypeError, AttributeError):
            continue
        start, end = data["start_ts"][row].as_py(), data["end_ts"][row].as_py()
        if size <= 0 or end <= start:
            continue
        rate = size / ((end - start) * 1e-9)
        core = data["nc_idx"][row].as_py() if "nc_idx" in data.column_names else None
        label = (
            f"{data['instance_id'][row].as_py()}/NC:{core if core is not None else 0}/{directions[texts[names[row]]]}"
        )
        result.setdefault(f"{label}/transfer_bandwidth", []).extend([(start, rate), (end, -rate)])
    series = []
    for label in sorted(result, key=natural):
        changes = sorted(result[label])
        ts = np.array([t for t, _ in changes])
        value = np.maximum(np.cumsum([change for _, change in changes]), 0)
        series.append(Series(label, "Transfers", "B/s", "step", ts, value))
    return series


def described(series: Series) -> dict:
    return {
        "label": series.label,
        "group": series.group,
        "unit": series.unit,
        "style": series.style,
        "max": series.maximum,
        "hidden": series.hidden,
    }


def series_of(folder: Path, kind: str) -> tuple[int, list[Series]]:
    """All counters of a profile, and the moment that the drawn times count from."""
    return (system_base(folder), system_series(folder)) if kind == "system" else (0, device_series(folder))


def counter_stream(base: int, series: list[Series]) -> bytes:
    ts, value, number = [], [], []
    for index, entry in enumerate(series):
        moments, values = thinned(entry.ts, entry.value)
        ts.append(moments.astype(np.float64) if base == 0 else (moments - base).astype(np.float64))
        value.append(np.asarray(values, np.float64))
        number.append(np.full(len(moments), index, np.uint16))
    empty = np.zeros(0)
    table = pa.table(
        {
            "series": np.concatenate(number) if number else empty.astype(np.uint16),
            "ts": np.concatenate(ts) if ts else empty,
            "value": np.concatenate(value) if value else empty,
        }
    )
    return stream(table, {"series": [described(entry) for entry in series]})


def counters(folder: Path, kind: str) -> bytes:
    return counter_stream(*series_of(folder, kind))


def system_base(folder: Path) -> int:
    """Start of a system profile, which its drawn times count from."""
    data = read_columns(folder, "SystemProfileEvents", ("start_ts",))
    return int(integers(data, "start_ts").min()) if data is not None else 0

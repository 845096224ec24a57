# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Exports as Perfetto traces. Packets are written by the decoder module; this file decides about tracks and names."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy

from .. import _decoder
from ..schema import read_table
from ..tables import Profile, one, rows

_ENGINE_ORDER = ("Sync", "Tensor", "TensorMatrix", "Vector", "Scalar", "GpSimd")


class Trace:
    """Tracks and slices of one file."""

    def __init__(self) -> None:
        self._writer = _decoder.PerfettoWriter()
        self._next = 1
        self._groups: dict[tuple[str, ...], int] = {}
        self._ranks: dict[int, int] = {}

    def group(self, *path: str) -> int:
        """The track of a path, under the track of its parent."""
        if path not in self._groups:
            parent = self.group(*path[:-1]) if len(path) > 1 else 0
            self._groups[path] = self.track(path[-1], parent)
        return self._groups[path]

    def track(self, name: str, parent: int, unit: str = "") -> int:
        track, self._next = self._next, self._next + 1
        rank = self._ranks[parent] = self._ranks.get(parent, -1) + 1
        self._writer.track(track, parent, name, rank, unit)
        return track

    def slices(
        self,
        parent: int,
        name: str,
        start: Any,
        end: Any,
        codes: Any,
        names: list[str],
        out: Any = None,
        into: Any = None,
    ) -> None:
        """Slices of a lane. What overlaps goes to tracks of its own with the same name. `out` and `into`: flow ids that
        begin and end at a slice, 0 for none."""
        empty = numpy.zeros(len(start), numpy.uint64)
        out, into = (empty if flow is None else flow.astype(numpy.uint64) for flow in (out, into))
        row = _decoder.rows_without_overlap(start.astype(numpy.int64), end.astype(numpy.int64))
        iids = self._writer.intern(names)
        codes = numpy.asarray(iids, numpy.uint64)[codes]
        for level in range(int(row.max()) + 1 if len(row) else 0):
            chosen = row == level
            track = self.track(name, parent)
            self._writer.slices(
                track,
                *(
                    numpy.ascontiguousarray(column[chosen])
                    for column in (start.astype(numpy.int64), end.astype(numpy.int64), codes, out, into)
                ),
            )

    def counter(self, parent: int, name: str, unit: str, times: Any, values: Any) -> None:
        track = self.track(name, parent, unit or "count")
        self._writer.counter(track, times.astype(numpy.int64), values.astype(numpy.float64))

    def finish(self) -> bytes:
        return self._writer.finish()


def export_perfetto(profile: Profile, output: pathlib.Path) -> list[pathlib.Path]:
    """system_profile.pftrace and one file for each device profile."""
    output.mkdir(parents=True, exist_ok=True)
    written = []
    if profile.is_system:
        written.append(output / "system_profile.pftrace")
        written[-1].write_bytes(_system(profile.folder))
    models = {row["device_profile_name"]: row["model_id"] for row in rows(profile.folder, "DeviceProfileList")}
    for position, device in enumerate(profile.devices()):
        written.append(output / f"device_profile_model_{models.get(device.name, position)}.pftrace")
        written[-1].write_bytes(_device(device))
    return written


def _encoded(column: Any) -> tuple[Any, list[str]]:
    """Codes and names of a text column."""
    encoded = column.combine_chunks()
    if not hasattr(encoded, "indices"):
        encoded = encoded.dictionary_encode()
    names = [name if name is not None else "" for name in encoded.dictionary.to_pylist()] + ["?"]
    return encoded.indices.fill_null(len(names) - 1).to_numpy(zero_copy_only=False), names


def _device(folder: pathlib.Path) -> bytes:
    trace = Trace()
    name = one(folder, "ExecutionInfo").get("neff_name") or folder.name
    root = trace.group(f"{name} (modelled time)")
    instructions = read_table(folder, "Instruction", ["id", "start_ts", "end_ts", "timeline_track", "opcode"])
    transfers = read_table(folder, "DmaPacketAggregated", ["id", "start_ts", "end_ts", "engine_idx", "variable"])
    flows = read_table(folder, "Flow")
    outgoing, incoming = _flow_columns(flows, instructions, transfers)
    if instructions is not None:
        codes, names = _encoded(instructions["opcode"])
        lanes, lane_names = _encoded(instructions["timeline_track"])
        start, end = (instructions[column].to_numpy() for column in ("start_ts", "end_ts"))
        known = [lane for lane in _ENGINE_ORDER if lane in lane_names]
        for lane in known + [other for other in lane_names if other not in known]:
            chosen = lanes == lane_names.index(lane)
            if chosen.any():
                trace.slices(
                    root,
                    lane,
                    start[chosen],
                    end[chosen],
                    codes[chosen],
                    names,
                    outgoing[0][chosen],
                    incoming[0][chosen],
                )
    if transfers is not None:
        codes, names = _encoded(transfers["variable"])
        engines = transfers["engine_idx"].to_numpy()
        start, end = (transfers[column].to_numpy() for column in ("start_ts", "end_ts"))
        for engine in numpy.unique(engines):
            chosen = engines == engine
            trace.slices(
                root,
                f"DMA-E{engine}",
                start[chosen],
                end[chosen],
                codes[chosen],
                names,
                outgoing[1][chosen],
                incoming[1][chosen],
            )
    for table, column, label, unit in (
        ("PendingDma", "value", "Pending DMA Count", ""),
        ("HbmUsage", "current_throughput", "HBM Throughput", "B/s"),
        ("DmaUsage", "current_throughput", "DMA Throughput", "B/s"),
        ("SbufUsage", "avg_util_percent", "State Buffer Usage", ""),
        ("PsumUsage", "avg_util_percent", "PSUM Usage", ""),
        ("Utilisation", "mfu_instant", "Estimated Instant MFU", ""),
    ):
        series = read_table(folder, table, ["timestamp", column])
        if series is not None:
            trace.counter(root, label, unit, series["timestamp"].to_numpy(), series[column].to_numpy())
    return trace.finish()


def _flow_columns(flows: Any, instructions: Any, transfers: Any) -> tuple[list[Any], list[Any]]:
    """Flow ids by row: one id for each edge; a slice that begins several edges keeps the last."""
    sizes = [0 if table is None else len(table) for table in (instructions, transfers)]
    outgoing = [numpy.zeros(size, numpy.uint64) for size in sizes]
    incoming = [numpy.zeros(size, numpy.uint64) for size in sizes]
    if flows is None:
        return outgoing, incoming
    source, source_names = _encoded(flows["in_table"])
    target, target_names = _encoded(flows["out_table"])
    first, second = flows["in_id"].to_numpy(), flows["out_id"].to_numpy()
    # An edge's id is the row it starts from, so that all edges of a slice share one.
    offset = sizes[0]
    tables = ("Instruction", "DmaPacketAggregated")
    for index, table in enumerate(tables):
        if table in source_names:
            chosen = source == source_names.index(table)
            outgoing[index][first[chosen]] = first[chosen] + 1 + index * offset
    for index, table in enumerate(tables):
        if table not in target_names:
            continue
        chosen = target == target_names.index(table)
        shift = numpy.array([tables.index(name) * offset if name in tables else 0 for name in source_names])
        incoming[index][second[chosen]] = first[chosen] + 1 + shift[source[chosen]]
    return outgoing, incoming


def _system(folder: pathlib.Path) -> bytes:
    trace = Trace()
    table = read_table(folder, "SystemProfileEvents")
    if table is None:
        return trace.finish()
    events = table.select(
        ["instance_id", "process_id", "trace_event_source", "thread_id", "nc_idx", "pcore_idx", "framework_stream_id"]
    ).to_pylist()
    lanes: dict[tuple[str, ...], list[int]] = {}
    for position, row in enumerate(events):
        lanes.setdefault(lane_of(row), []).append(position)
    codes, names = _encoded(table["name"])
    start, end = table["start_ts"].to_numpy(), table["end_ts"].to_numpy()
    outgoing, incoming = (numpy.zeros(len(events), numpy.uint64) for _ in range(2))
    flows = read_table(folder, "Flow", ["in_id", "out_id"])
    if flows is not None:
        first, second = flows["in_id"].to_numpy(), flows["out_id"].to_numpy()
        outgoing[first] = first + 1
        incoming[second] = first + 1
    for path, positions in sorted(lanes.items()):
        chosen = numpy.array(positions)
        order = chosen[numpy.lexsort((-end[chosen], start[chosen]))]
        trace.slices(
            trace.group(*path[:-1]),
            path[-1],
            start[order],
            end[order],
            codes[order],
            names,
            outgoing[order],
            incoming[order],
        )
    return trace.finish()


def lane_of(row: dict[str, Any]) -> tuple[str, ...]:
    """instance / PID / subsystem / identifier, as the viewer's default grouping."""
    source = row["trace_event_source"]
    if source == "framework":
        stream = row["framework_stream_id"]
        last = f"Stream:{stream}" if stream is not None else f"TID:{row['thread_id']}"
    elif source == "neuron_hw":
        last = f"NC{row['nc_idx']}:{row['pcore_idx'] if row['pcore_idx'] is not None else row['nc_idx']}"
    else:
        last = f"NC:{row['nc_idx']}"
    return row["instance_id"], f"PID:{row['process_id']}", source, last

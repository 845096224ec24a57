# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""System tables: framework, runtime and device on one axis, linked by flow ids."""

from __future__ import annotations

import datetime
import json
import os
import pathlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from .. import _decoder
from .._protos import system_trace_pb2
from ..schema import schema_fields, write_table
from .session import Session, read_chrome_trace, read_message

_HBM_CATEGORIES = (
    "generic",
    "tensor_instructions",
    "scalar_instructions",
    "gpsimd_instructions",
    "io",
    "dram_spill",
    "weights",
    "profiler_buffers",
    "scalar_table",
    "vector_instructions",
    "sync_instructions",
    "shared_scratchpad",
    "tensors",
    "ucode_lib",
    "gpsimd_stdio",
    "collectives",
    "scratchpad",
    "dma_rings_runtime",
    "dma_rings_spill",
    "dma_rings_io",
    "dma_rings_collectives",
    "unknown",
)
# PyTorch's number of the PrivateUse1 device type in memory events.
_PRIVATEUSE1 = 20
# Events of the Chrome trace that ntrace.pb has with more detail.
_DEVICE_CATEGORIES = {"kernel", "gpu_memcpy", "gpu_memset", "privateuse1_runtime", "privateuse1_driver"}
HARDWARE = frozenset(
    ("nc_exec_running", "cc_running", "cc_exec_barrier", "numerical_err", "nrt_model_switch", "timestamp_sync_point")
)


class SystemTables:
    """Rows of all processes of a capture."""

    def __init__(self, keep: Callable[[str, str, int | None], bool] = lambda name, source, core: True):
        self._keep = keep
        self.events: list[dict[str, Any]] = []
        self.cpu: list[tuple] = []
        self.memory: list[tuple] = []
        self.hbm: list[tuple] = []
        self.target = ""
        self.warnings: list[tuple[str, str]] = []

    def add(self, session: Session, device_profiles: dict[tuple[int, str], str]) -> None:
        """`device_profiles`: names by core and hash."""
        self.target = session.information.target or self.target
        self._framework(session)
        self._runtime(session, device_profiles)
        self._samples(session)

    def _event(self, session: Session, name: str, source: str, start: int, end: int, **fields: Any) -> None:
        core = fields.get("nc_idx")
        if not self._keep(name, source, core):
            return
        self.events.append(
            {
                "name": name,
                "trace_event_source": source,
                "start_ts": start,
                "end_ts": max(end, start),
                "instance_id": session.instance,
                "process_id": session.process,
                "worker_gid": 0,
                "thread_id": 0,
                "nc_idx": None,
                "pcore_idx": None,
                "flow_id": [],
                "framework_stream_id": None,
                "extra": {},
                **fields,
            }
        )

    def _framework(self, session: Session) -> None:
        path = session.folder / "trace.json"
        if not path.exists():
            return
        trace = read_chrome_trace(path)
        base = int(trace.get("baseTimeNanoseconds", 0))
        has_runtime = (session.folder / "ntrace.pb").exists()
        launches: dict[Any, list[str]] = defaultdict(list)
        for event in trace["traceEvents"]:
            if isinstance(event, dict) and event.get("cat") == "privateuse1_runtime":
                arguments = event.get("args") or {}
                launches[arguments.get("External id")].append(str(arguments.get("correlation")))
        for event in trace["traceEvents"]:
            if not isinstance(event, dict):
                continue
            if event.get("name") == "[memory]":
                self._memory_event(session, event, base)
            if event.get("ph") != "X" or event.get("cat") == "Trace":
                continue
            category = event.get("cat") or ""
            if has_runtime and category in _DEVICE_CATEGORIES:
                continue
            try:
                start = base + round(float(event["ts"]) * 1000)
                end = start + round(float(event.get("dur", 0)) * 1000)
                thread = int(event.get("tid", 0))
            except (TypeError, ValueError, KeyError):
                continue
            arguments = event.get("args") or {}
            is_device = category in _DEVICE_CATEGORIES and category != "privateuse1_runtime"
            flow = [] if is_device else launches.get(arguments.get("External id"), [])
            if category == "privateuse1_runtime" or is_device:
                flow = [str(arguments["correlation"])] if "correlation" in arguments else []
            self._event(
                session,
                str(event.get("name", "")),
                "neuron_hw" if is_device else "framework",
                start,
                end,
                thread_id=thread,
                nc_idx=arguments.get("device") if is_device else None,
                flow_id=flow if category != "user_annotation" else [],
                extra={
                    "category": category,
                    **{key: value for key, value in arguments.items() if key != "correlation"},
                },
            )

    def _memory_event(self, session: Session, event: dict, base: int) -> None:
        arguments = event.get("args") or {}
        if arguments.get("Device Type") != _PRIVATEUSE1:
            return
        try:
            time = base + round(float(event["ts"]) * 1000)
            self.hbm.append((time, int(arguments["Total Allocated"]), int(arguments["Device Id"]), session.instance))
        except (TypeError, ValueError, KeyError):
            return

    def _runtime(self, session: Session, device_profiles: dict[tuple[int, str], str]) -> None:
        path = session.folder / "ntrace.pb"
        if not path.exists():
            return
        trace = read_message(path, system_trace_pb2.SystemTrace)
        if trace.dropped_events:
            self.warnings.append(
                ("loss", f"{trace.dropped_events} events were dropped: the ring was full; raise max_events_per_nc")
            )
        for event in trace.events:
            extra: dict[str, Any] = {"modelled": event.time_source == system_trace_pb2.MODELLED}
            if event.neff_hash:
                extra |= {
                    "exec_id": event.exec_id,
                    "model_name": event.model_name,
                    "neff_cache_key": event.neff_hash,
                    "kernel_ns": event.kernel_ns,
                    "fixed_overhead_ns": event.fixed_overhead_ns,
                }
                if event.source == "neuron_hw":
                    extra |= {
                        "device_core_idx": event.pcore_idx,
                        "nc_start_timestamp_ns": event.start_ns,
                        "nc_stop_timestamp_ns": event.end_ns,
                    }
                if (name := device_profiles.get((event.nc_idx, event.neff_hash))) is not None:
                    extra |= {"device_profile_name": name, "model_id": int(name.rpartition("_model_")[2])}
            else:
                extra["size"] = event.bytes
            if event.failed:
                extra["failed"] = True
            flow = list(event.flow_ids)
            if event.source == "framework" and len(flow) > 1:
                extra["nrt_sequence_id"] = flow[1]
            self._event(
                session,
                _launch_name(event, session.labels) if event.source == "framework" else event.name,
                event.source,
                event.start_ns,
                event.end_ns,
                thread_id=event.thread_id,
                nc_idx=event.nc_idx,
                pcore_idx=event.pcore_idx if event.source == "neuron_hw" else None,
                flow_id=flow,
                framework_stream_id=event.framework_stream_id if event.source == "framework" else None,
                extra=extra,
            )

    def _samples(self, session: Session) -> None:
        path = session.folder / "cpu_util.pb"
        if path.exists():
            for sample in read_message(path, system_trace_pb2.CpuUtilisation).samples:
                self.cpu.append((sample.timestamp_ns, sample.utilisation, str(sample.cpu), session.instance))
        path = session.folder / "host_mem.pb"
        if path.exists():
            total = _host_memory()
            for sample in read_message(path, system_trace_pb2.HostMemory).samples:
                self.memory.append(
                    (sample.timestamp_ns, sample.used_bytes, sample.used_bytes / total, session.instance)
                )

    def edges(self) -> list[tuple[int, int]]:
        """Pairs of rows (from, to) that share a flow id, from framework to device."""
        order = {"framework": 0, "neuron_rt": 2, "neuron_hw": 3}
        members: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
        for row, event in enumerate(self.events):
            level = order.get(event["trace_event_source"], 0) + (event["framework_stream_id"] is not None)
            for flow in event["flow_id"]:
                members[event["process_id"], flow].append((level, row))
        result = []
        for rows in members.values():
            rows.sort()
            for (level, row), (next_level, next_row) in zip(rows, rows[1:], strict=False):
                if next_level > level:
                    result.append((row, next_row))
        return sorted(set(result))

    def write(self, folder: pathlib.Path, profiles: Iterable[dict[str, Any]]) -> None:
        self.events.sort(key=lambda event: event["start_ts"])
        events = self.events
        columns = {
            name: [event[name] for event in events]
            for name in (
                "name",
                "start_ts",
                "end_ts",
                "trace_event_source",
                "instance_id",
                "process_id",
                "thread_id",
                "nc_idx",
                "pcore_idx",
                "worker_gid",
                "flow_id",
                "framework_stream_id",
            )
        }
        columns["duration_ns"] = [event["end_ts"] - event["start_ts"] for event in events]
        columns["extra_attributes_json"] = [
            json.dumps(event["extra"], default=str) if event["extra"] else None for event in events
        ]
        write_table(folder, "SystemProfileEvents", columns)
        edges = self.edges()
        write_table(
            folder,
            "Flow",
            {
                "in_id": [a for a, _ in edges],
                "out_id": [b for _, b in edges],
                "in_table": ["SystemProfileEvents"] * len(edges),
                "out_table": ["SystemProfileEvents"] * len(edges),
                "dependency_type": ["flow"] * len(edges),
                "gap_time": [events[b]["start_ts"] - events[a]["end_ts"] for a, b in edges],
            },
        )
        self._write_samples(folder)
        first = min((event["start_ts"] for event in events), default=0)
        last = max((event["end_ts"] for event in events), default=0)
        capacity = _decoder.machine(self.target)["hbm_capacity"] if self.target else 0
        write_table(
            folder,
            "SystemProfileMetadata",
            {
                "first_ts": [_readable(first)],
                "last_ts": [_readable(last)],
                "first_ts_ns": [str(first)],
                "last_ts_ns": [str(last)],
                "ntff_version": [2],
                "hbm_capacity_bytes": [int(capacity)],
            },
        )
        profiles = list(profiles)
        names = ("device_profile_name", "instance_id", "process_id", "nc_id", "session_id", "model_id")
        write_table(folder, "DeviceProfileList", {name: [row[name] for row in profiles] for name in names})
        if self.warnings:
            write_table(
                folder,
                "Warning",
                {"message": [text for _, text in self.warnings], "category": [kind for kind, _ in self.warnings]},
            )
        write_table(folder, "SchemaFields", schema_fields())

    def _write_samples(self, folder: pathlib.Path) -> None:
        def columns(rows: list[tuple], names: tuple[str, ...]) -> dict[str, list]:
            rows = sorted(rows, key=lambda row: row[0])
            return {name: [row[i] for row in rows] for i, name in enumerate(names)}

        write_table(folder, "CpuUsage", columns(self.cpu, ("timestamp", "util_percent", "cpu_id", "instance_id")))
        write_table(
            folder, "HostMemUsage", columns(self.memory, ("timestamp", "used_bytes", "used_percent", "instance_id"))
        )
        usage = columns(self.hbm, ("timestamp", "total_bytes", "device_idx", "instance_id"))
        count = len(usage["timestamp"])
        usage["hbm_idx"] = [0] * count
        for category in _HBM_CATEGORIES:
            usage[f"{category}_bytes"] = usage["total_bytes"] if category == "tensors" else [0] * count
        write_table(folder, "SystemProfileHbmUsage", usage)


def _launch_name(event: Any, labels: dict[str, str]) -> str:
    """What the framework launches: the overload of an operator, or the name of a compiled graph."""
    if not event.neff_hash:
        return event.name
    label = labels.get(event.neff_hash) or event.model_name.removeprefix("neff:")
    return f"aten::{label[5:]}" if label.startswith("aten.") else label


def _readable(nanoseconds: int) -> str:
    moment = datetime.datetime.fromtimestamp(nanoseconds // 1_000_000_000, datetime.UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{nanoseconds % 1_000_000_000:09d}Z"


def _host_memory() -> int:
    return max(1, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Writes the session folder of a capture."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import tempfile
import time
import warnings
from typing import Any

from neuron_explorer import _decoder

from .. import _C, _compilation
from . import device_trace_pb2, system_trace_pb2
from .config import NeuronConfig, NRTProfilerError, ProfileMode

NTFF_MAGIC = b"ONTFF\0\0\2"
TIME_STATEMENT = (
    "device times are modelled by a software NeuronCore, not measured; fixed overhead per execution is inferred"
)

_CALLS = {
    "execution": "nrta_execute_schedule",
    "host_to_device": "nrt_tensor_write",
    "device_to_host": "nrt_tensor_read",
    "device_to_device": "nrt_tensor_copy",
    "fill": "nrt_tensor_memset",
}
_HARDWARE_EVENTS = {
    "execution": "nc_exec_running",
    "host_to_device": "dmem_buf_copyin",
    "device_to_host": "dmem_buf_copyout",
    "device_to_device": "nrt_tensor_copy",
    "fill": "nrt_tensor_memset",
}


def instance_id() -> str:
    return "i-" + (re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname()) or "local")


def decimal_hash(neff_hash: str) -> int:
    """The number that names a NEFF in a session folder."""
    return int(neff_hash[:16], 16)


def _rename_trace(path: str) -> None:
    """Puts the name of a framework trace, its last entry, in the place of the path that it was written to."""
    written, name = (b'"traceName": ' + json.dumps(text).encode() for text in (path, os.path.basename(path)))
    with open(path, "r+b") as file:
        file.seek(max(os.path.getsize(path) - 2 * len(written) - 256, 0))
        position = file.tell()
        end = file.read().replace(written, name)
        file.seek(position)
        file.write(end)
        file.truncate()


class NeuronProfiler:
    """Writes what a capture with `config` recorded: NeuronProfiler(config).export_trace as on_trace_ready."""

    def __init__(self, neuron_config: NeuronConfig):
        if not isinstance(neuron_config, NeuronConfig):
            raise NRTProfilerError(f"expected a NeuronConfig but got {type(neuron_config).__name__}")
        self.config = neuron_config
        self._sessions = 0
        # The folder of the session written last.
        self.session_dir: str | None = None

    def export_trace(self, prof: Any) -> None:
        """Writes the framework trace and the files of the configured modes into a new session folder."""
        if _C.capture_active():
            raise NRTProfilerError("Profiler is already active")
        records = _C.last_capture()
        self._sessions += 1
        folder = os.path.join(self.config.profile_output_dir, f"{instance_id()}_pid_{os.getpid()}", str(time.time_ns()))
        try:
            os.makedirs(folder)
        except OSError as error:
            raise NRTProfilerError(
                f"expected a writable folder in profile_output_dir but got {self.config.profile_output_dir!r}: {error}"
            ) from error
        with tempfile.TemporaryDirectory() as scratch:
            # The exporter fails silently on some characters in a path.
            trace = os.path.join(scratch, "trace.json")
            prof.export_chrome_trace(trace)
            _rename_trace(trace)
            shutil.move(trace, os.path.join(folder, "trace.json"))
        information = system_trace_pb2.TraceInfo(
            version=1,
            producer="torch_neuronx",
            instance_id=instance_id(),
            process_id=os.getpid(),
            framework_trace="trace.json",
            modes=[mode.value for mode in self.config.modes],
            time_statement=TIME_STATEMENT,
        )
        if _C.is_initialised():
            information.target = _C.target_name()
        if records:
            information.start_ns = min(record["enqueue_start"] for record in records)
            information.end_ns = max(record["device_end"] for record in records)
        if ProfileMode.DEVICE in self.config.modes:
            self._write_device_files(folder, records, information)
        if ProfileMode.CPU_UTIL in self.config.modes:
            self._write_cpu_utilisation(folder, information)
        if ProfileMode.HOST_MEMORY in self.config.modes:
            self._write_host_memory(folder, information)
        if ProfileMode.RUNTIME in self.config.modes:
            information.system_trace = "ntrace.pb"
            system_trace = _system_trace(records)
            system_trace.dropped_events = _C.lost_records()
            if system_trace.dropped_events:
                warnings.warn(
                    f"the capture lost its {system_trace.dropped_events} oldest events: max_events_per_nc is "
                    f"{self.config.max_events_per_nc}",
                    RuntimeWarning,
                    stacklevel=2,
                )
            _write(os.path.join(folder, "ntrace.pb"), system_trace.SerializeToString(deterministic=True))
            # Last: a folder with an index is complete.
            _write(os.path.join(folder, "trace_info.pb"), information.SerializeToString(deterministic=True))
        self.session_dir = folder

    def _write_device_files(self, folder: str, records: list[dict], information: Any) -> None:
        executions = [record for record in records if record["kind"] == "execution"]
        for device in sorted({record["device"] for record in executions}):
            trace = device_trace_pb2.DeviceTrace(
                version=2,
                nc_idx=device,
                session=self._sessions,
                target=information.target,
                time_statement=TIME_STATEMENT,
            )
            hashes = dict.fromkeys(record["neff_hash"] for record in executions if record["device"] == device)
            for neff_hash in hashes:
                program = _C.program_by_hash(neff_hash)
                if program is None:
                    continue
                name = f"neff_{decimal_hash(neff_hash)}_vnc_{device}.neff"
                _write(os.path.join(folder, name), self._neff(neff_hash, program))
                information.neffs.add(file=name, hash=neff_hash, label=program.label)
                _add_timeline(trace, program, device)
            for record in executions:
                if record["device"] == device:
                    trace.executions.add(
                        exec_id=_execution_id(record),
                        neff_hash=record["neff_hash"],
                        start_ns=record["device_start"],
                        end_ns=record["device_end"],
                        kernel_ns=record["kernel_ns"],
                        fixed_overhead_ns=record["overhead_ns"],
                    )
            name = f"profile_nc_{device}_session_{self._sessions}.ntff"
            _write(os.path.join(folder, name), NTFF_MAGIC + trace.SerializeToString(deterministic=True))
            information.device_traces.add(file=name, nc_idx=device, neff_hashes=list(hashes))

    def _neff(self, neff_hash: str, program: Any) -> bytes:
        if self.config.neff_cache_dir is not None:
            path = os.path.join(self.config.neff_cache_dir, neff_hash[:2], neff_hash, "graph.neff")
            try:
                with open(path, "rb") as file:
                    return file.read()
            except OSError:
                pass
        return program.neff

    def _write_cpu_utilisation(self, folder: str, information: Any) -> None:
        message = system_trace_pb2.CpuUtilisation(version=1)
        for timestamp, cpu, utilisation in _C.cpu_samples():
            message.samples.add(timestamp_ns=timestamp, cpu=cpu, utilisation=utilisation)
        information.cpu_utilisation = "cpu_util.pb"
        _write(os.path.join(folder, "cpu_util.pb"), message.SerializeToString(deterministic=True))

    def _write_host_memory(self, folder: str, information: Any) -> None:
        message = system_trace_pb2.HostMemory(version=1)
        for timestamp, used, process in _C.host_memory_samples():
            message.samples.add(timestamp_ns=timestamp, used_bytes=used, process_bytes=process)
        information.host_memory = "host_mem.pb"
        _write(os.path.join(folder, "host_mem.pb"), message.SerializeToString(deterministic=True))


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


def _execution_id(record: dict) -> int:
    return record["sequence"] & ((1 << 48) - 1)


def _add_timeline(trace: Any, program: Any, device: int) -> None:
    timeline = trace.programs.add()
    try:
        timeline.ParseFromString(_decoder.program_trace(program.neff))
    except _decoder.ProfileError:
        # Its path depends on data: the executions are listed, without a timeline.
        timeline.summary_json = _C.model_summary(program, device)
    timeline.neff_hash = program.hash
    timeline.label = program.label
    graph = _compilation.graph_of(program.hash)
    if graph is not None:
        timeline.graph_def = graph[0]
        timeline.modules.extend(graph[1])


def _system_trace(records: list[dict]) -> Any:
    trace = system_trace_pb2.SystemTrace(version=1, instance_id=instance_id())
    process = os.getpid()

    def add(record: dict, name: str, source: str, start: int, end: int, flows: list[str], modelled: bool) -> None:
        event = trace.events.add(
            id=len(trace.events) + 1,
            name=name,
            start_ns=start,
            end_ns=end,
            time_source=system_trace_pb2.MODELLED if modelled else system_trace_pb2.HOST_CLOCK,
            source=source,
            process_id=process,
            thread_id=record["thread_id"],
            nc_idx=record["device"],
            pcore_idx=record["device"],
            flow_ids=flows,
            framework_stream_id=str(record["stream"]),
            failed=record["failed"],
        )
        if record["kind"] == "execution":
            event.exec_id = _execution_id(record)
            event.model_name = record["name"]
            event.neff_hash = record["neff_hash"]
            event.kernel_ns = record["kernel_ns"]
            event.fixed_overhead_ns = record["overhead_ns"]
        else:
            event.bytes = record["bytes"]

    for record in records:
        kind = record["kind"]
        # Keys of the chain: dispatch -> stream by the framework's correlation, stream -> runtime by the sequence number
        # of the queue, runtime -> hardware by the execution.
        correlation = str(record["correlation"])
        sequence = str(record["sequence"])
        execution = f"{record['device']}:{record['correlation']}"
        host = (record["enqueue_start"], record["enqueue_end"])
        device = (record["device_start"], record["device_end"])
        add(record, record["name"], "framework", *host, [correlation, sequence], False)
        add(record, _CALLS[kind], "neuron_rt", *host, [sequence, execution], False)
        add(record, _HARDWARE_EVENTS[kind], "neuron_hw", *device, [execution], True)
    return trace

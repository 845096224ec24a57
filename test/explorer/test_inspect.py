# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Captures that the runtime writes itself: by environment and by its C functions."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import textwrap

import duckdb
import pytest
from neuron_explorer import _decoder, cli, ingest

EAGER = """
import torch
x = torch.ones(64, 64, device="neuron")
for _ in range(5):
    x = x * 2 + x
print(x.cpu()[0, 0].item())
"""


def run_inspected(folder: pathlib.Path, **variables: str) -> subprocess.CompletedProcess:
    script = folder / "eager.py"
    script.write_text(EAGER)
    environment = {
        **os.environ,
        "NEURON_RT_INSPECT_ENABLE": "1",
        "NEURON_RT_INSPECT_OUTPUT_DIR": str(folder / "output"),
        **variables,
    }
    return subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def events(folder: pathlib.Path, query: str) -> list[tuple]:
    return duckdb.sql(query.format(f"'{folder}/SystemProfileEvents.parquet'")).fetchall()


def test_inspect_runs_a_program(tmp_path, monkeypatch):
    script = tmp_path / "eager.py"
    script.write_text(EAGER)
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    assert cli.main(["inspect", "-o", str(tmp_path / "output"), "--", sys.executable, str(script)]) == 0
    (session,) = {path.parent for path in (tmp_path / "output").rglob("trace_info.pb")}
    assert "_pid_" in session.name
    folder = ingest.ingest_session(session, tmp_path / "profile")
    # Two operators, five times each, in order and chained from the runtime to the device.
    counts = dict(events(folder, "SELECT name, count(*) FROM {} GROUP BY 1"))
    assert counts["nc_exec_running"] >= 10 and counts["nrta_execute_schedule"] == counts["nc_exec_running"]
    ((chained,),) = duckdb.sql(
        f"""SELECT count(*) FROM '{folder}/Flow.parquet' f
        JOIN '{folder}/SystemProfileEvents.parquet' a ON f.in_id = a.id
        JOIN '{folder}/SystemProfileEvents.parquet' b ON f.out_id = b.id
        WHERE a.name = 'nrta_execute_schedule' AND b.name = 'nc_exec_running'"""
    ).fetchall()
    assert chained == counts["nc_exec_running"]
    assert len(list((folder / "device").iterdir())) >= 2


def test_environment_filters_and_counts_loss(tmp_path):
    process = run_inspected(
        tmp_path,
        NEURON_RT_INSPECT_EVENT_FILTER_TYPE="^nrta_execute_schedule",
        NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC="4",
    )
    assert process.returncode == 0, process.stderr
    (session,) = {path.parent for path in tmp_path.rglob("trace_info.pb")}
    assert not list(session.glob("*.ntff"))
    folder = ingest.ingest_session(session, tmp_path / "profile")
    assert events(folder, "SELECT count(*) FROM {} WHERE name = 'nrta_execute_schedule'") == [(0,)]
    assert events(folder, "SELECT count(*) FROM {}") == [(4,)]
    warnings = json.loads((folder / "profile.json").read_text())["warnings"]
    assert any("events were dropped" in text for text in warnings)


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("NEURON_RT_INSPECT_DEVICE_PROFILE", "everything", "expected 0, 1, model or session but got 'everything'"),
        ("NEURON_RT_INSPECT_EVENT_FILTER_TYPE", "nothing", "unknown event type 'nothing'"),
        ("NEURON_RT_INSPECT_EVENT_FILTER_NC", "x", "NEURON_RT_INSPECT_EVENT_FILTER_NC"),
    ],
)
def test_wrong_settings_are_explained(tmp_path, variable, value, message):
    process = run_inspected(tmp_path, **{variable: value})
    assert process.returncode != 0 and message in process.stderr


# The runtime alone, as a C program would use it.
RUNTIME = """
import ctypes, json, pathlib, sys
nrt = ctypes.CDLL(sys.argv[1])
neff = pathlib.Path(sys.argv[2]).read_bytes()
nrt.open_neuron_last_error.restype = ctypes.c_char_p

def call(name, *arguments):
    status = getattr(nrt, name)(*arguments)
    assert status == 0, (name, status, nrt.open_neuron_last_error())

call("nrt_init", 1, b"", b"")
model = ctypes.c_void_p()
call("nrt_load", neff, ctypes.c_size_t(len(neff)), 0, 1, ctypes.byref(model))


class Information(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("target", ctypes.c_char_p), ("version", ctypes.c_char_p),
                ("metrics", ctypes.c_char_p), ("inputs", ctypes.c_uint32), ("outputs", ctypes.c_uint32)] + [
                (f"n{i}", ctypes.c_uint64) for i in range(4)]


information = Information()
call("open_neuron_model_info", model, ctypes.byref(information))
memory = [ctypes.c_void_p() for _ in range(information.inputs + information.outputs)]
for pointer in memory:
    call("open_neuron_memory_allocate", 0, ctypes.c_size_t(1 << 20), ctypes.byref(pointer))
inputs = (ctypes.c_void_p * information.inputs)(*memory[:information.inputs])
outputs = (ctypes.c_void_p * information.outputs)(*memory[information.inputs:])

def execute(times):
    for _ in range(times):
        call("open_neuron_enqueue", model, inputs, outputs, None, None, None)
    call("open_neuron_synchronize", 0)

config = ctypes.c_void_p()
call("nrt_sys_trace_config_allocate", ctypes.byref(config))
call("nrt_sys_trace_config_set_max_events_per_nc", config, ctypes.c_uint64(6))
call("nrt_sys_trace_start", config)
execute(5)
call("nrt_sys_trace_stop")
buffer, size = ctypes.c_void_p(), ctypes.c_size_t()
call("nrt_sys_trace_fetch_events", ctypes.byref(buffer), ctypes.byref(size), None)
first = json.loads(ctypes.string_at(buffer, size.value))
nrt.nrt_sys_trace_buffer_free(buffer)
call("nrt_sys_trace_fetch_events", ctypes.byref(buffer), ctypes.byref(size), None)
again = json.loads(ctypes.string_at(buffer, size.value))
call("nrt_profile_start", model, sys.argv[3].encode())
execute(2)
call("nrt_profile_stop", sys.argv[3].encode())
assert nrt.nrt_profile_stop(sys.argv[3].encode()) != 0
missing = nrt.open_neuron_last_error().decode()
settings = ctypes.c_void_p()
call("nrt_inspect_config_allocate", ctypes.byref(settings))
call("nrt_inspect_config_set_output_dir", settings, sys.argv[4].encode())
call("nrt_inspect_config_set_activity", settings, b"all", ctypes.c_bool(True))
refused = nrt.nrt_inspect_config_set_activity(settings, b"cpu_util", ctypes.c_bool(True))
call("nrt_inspect_begin_with_options", settings)
execute(3)
call("nrt_inspect_stop")
call("nrt_unload", model)
print(json.dumps({"first": first, "again": again, "missing": missing, "refused": refused}))
nrt.nrt_close()
"""


def test_c_functions(pair, tmp_path):
    package = importlib.util.find_spec("torch_neuronx").submodule_search_locations[0]
    library = pathlib.Path(package) / "lib" / "libnrt.so"
    script = tmp_path / "runtime.py"
    script.write_text(textwrap.dedent(RUNTIME))
    trace, output = tmp_path / "model.ntff", tmp_path / "output"
    process = subprocess.run(
        [sys.executable, str(script), str(library), str(pair[0]), str(trace), str(output)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert process.returncode == 0, process.stderr
    result = json.loads(process.stdout)
    events = result["first"]["events"]
    # Ten events of five executions went through a ring of six.
    assert len(events) == 2 * 6 and result["first"]["dropped_events"] == 4
    by_id: dict[int, list] = {}
    for event in events:
        by_id.setdefault(event["tracking_id"], []).append(event)
    for start, stop in by_id.values():
        assert (start["phase"], stop["phase"]) == ("start", "stop")
        assert start["timestamp_ns"] <= stop["timestamp_ns"]
    assert {"event_type", "nc_idx", "tracking_id", "phase", "timestamp_ns", "data"} == set(events[0])
    assert result["again"]["events"] == []
    assert "call nrt_profile_start first" in result["missing"] and result["refused"] != 0
    headers = _decoder.trace_headers(trace.read_bytes())
    assert len(headers["executions"]) == 2 and len(headers["programs"]) == 1
    folder = ingest.ingest_pair(pair[0], trace, tmp_path / "pair")
    assert (folder / "profile.json").exists()
    folder = ingest.ingest_session(output, tmp_path / "session")
    assert json.loads((folder / "profile.json").read_text())["kind"] == "system"
    (device,) = (folder / "device").iterdir()
    assert (device / "CriticalPath.parquet").exists()


def test_folder_that_cannot_be_written(tmp_path):
    """The program goes on; that there is no capture is said at its end."""
    process = run_inspected(tmp_path, NEURON_RT_INSPECT_OUTPUT_DIR=str(tmp_path / "eager.py" / "output"))
    assert process.returncode == 0
    assert "NEURON_RT_INSPECT_ENABLE" in process.stderr and "cannot create" in process.stderr
    assert "NEURON_RT_INSPECT_OUTPUT_DIR" in process.stderr

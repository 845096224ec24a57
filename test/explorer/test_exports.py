# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Exports, read back by others' code where there is some, and the command line."""

from __future__ import annotations

import collections
import csv
import json
import re
import shutil
import socket
import subprocess
import sys
import urllib.request

import pytest
from neuron_explorer import cli, schema
from neuron_explorer.compare import compare
from neuron_explorer.exports import files, perfetto
from neuron_explorer.tables import Profile

perfetto_schema = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")


def read_perfetto(path) -> tuple[dict, dict, set, set]:
    """Tracks, slices by track, and the flow ids that begin and end, checked for consistency on the way."""
    trace = perfetto_schema.Trace()
    trace.ParseFromString(path.read_bytes())
    names, tracks = {}, {}
    open_slices, slices = collections.defaultdict(list), collections.defaultdict(list)
    begun, ended = set(), set()
    for packet in trace.packet:
        for entry in packet.interned_data.event_names:
            names[entry.iid] = entry.name
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            assert descriptor.parent_uuid in tracks or descriptor.parent_uuid == 0
            tracks[descriptor.uuid] = descriptor
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        assert event.track_uuid in tracks
        if event.type == event.TYPE_SLICE_BEGIN:
            assert not open_slices[event.track_uuid], "slices of one track do not overlap"
            open_slices[event.track_uuid].append((names[event.name_iid], packet.timestamp))
            begun.update(event.flow_ids)
            ended.update(event.terminating_flow_ids)
        elif event.type == event.TYPE_SLICE_END:
            name, start = open_slices[event.track_uuid].pop()
            assert packet.timestamp >= start
            slices[event.track_uuid].append((name, start, packet.timestamp))
        else:
            assert event.type == event.TYPE_COUNTER
    assert not any(open_slices.values())
    return tracks, slices, begun, ended


def kernels_of(trace) -> list[dict]:
    events = json.loads(trace.read_text())["traceEvents"]
    return [event for event in events if event.get("cat") == "kernel"]


def test_framework_trace_in_pytorchs_own_analysis(capture):
    """It looks for the operator of each kernel by its external id, and fails without one."""
    analysis = pytest.importorskip("torch._inductor.analysis.profile_analysis")
    read = analysis.JsonProfile(str(capture / "trace.json"), dtype="float32")
    read.augment_trace()
    kernels = [event for event in read.events if event.get("cat") == "kernel"]
    assert len(kernels) == 4 and all("kernel_flop" in event["args"] for event in kernels)
    (product,) = (event for event in kernels if event["name"] == "neff:mm")
    assert product["args"]["kernel_flop"] == 2 * 64**3
    assert "NeuronCore" in str(read.report())


def test_framework_trace_in_holistic_trace_analysis(capture):
    pytest.importorskip("hta", reason="HolisticTraceAnalysis is not installed")
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_files={0: str(capture / "trace.json")})
    kinds, times = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=10)
    found = dict(zip(times["name"], times["sum (us)"], strict=True))
    names = collections.Counter(event["name"] for event in kernels_of(capture / "trace.json"))
    assert names
    for name, calls in names.items():
        time = sum(event["dur"] for event in kernels_of(capture / "trace.json") if event["name"] == name)
        # It rounds starts and ends to microseconds.
        assert time - 2 * calls < found[name] <= time
    assert "COMPUTATION" in set(kinds["kernel_type"])
    (idle, *_) = analysis.get_idle_time_breakdown(visualize=False)
    assert list(idle["stream"].unique()) == [0]


def test_perfetto_of_the_device(device, profile, tmp_path):
    written = perfetto.export_perfetto(Profile(profile), tmp_path)
    paths = [path for path in written if "device" in path.name]
    assert len(paths) == len(list((profile / "device").iterdir()))
    # Named by the model's number, which the device profile's name ends with.
    (path,) = (path for path in paths if path.stem.endswith(f"_{device.name.rpartition('_model_')[2]}"))
    tracks, slices, begun, ended = read_perfetto(path)
    names = {track.name for track in tracks.values()}
    assert {"TensorMatrix", "Vector", "DMA-E0", "HBM Throughput"} <= names
    count = schema.rows_of(device, "Instruction") + schema.rows_of(device, "DmaPacketAggregated")
    assert sum(map(len, slices.values())) == count
    assert ended and ended <= begun


def test_perfetto_of_the_system(profile, tmp_path):
    tracks, slices, begun, ended = read_perfetto(perfetto.export_perfetto(Profile(profile), tmp_path)[0])
    assert sum(map(len, slices.values())) == schema.rows_of(profile, "SystemProfileEvents")
    assert ended and ended <= begun
    by_name = {track.uuid: track for track in tracks.values()}

    def path(track):
        return [*path(by_name[track.parent_uuid]), track.name] if track.parent_uuid else [track.name]

    paths = {"/".join(path(track)) for track in tracks.values()}
    assert any("/neuron_hw/NC0:0" in text for text in paths), paths
    assert any("/neuron_rt/NC:0" in text for text in paths)
    assert any("/framework/TID:" in text for text in paths) and any("/framework/Stream:" in text for text in paths)


def test_json(profile, tmp_path):
    written = files.export_json(Profile(profile), tmp_path)
    system = json.loads(written[0].read_text())
    assert set(system) >= {"system_profile_metadata", "device_profile_list", "trace_event", "mem_usage", "cpu_util"}
    assert len(system["trace_event"]) == schema.rows_of(profile, "SystemProfileEvents")
    for path in written[1:]:
        content = json.loads(path.read_text())
        assert {"neff_node", "dma", "layer_summary", "profile_info", "summary"} <= set(content)
        assert len(content["summary"]) == 1


def test_csv(profile, device, tmp_path):
    files.export_csv(Profile(profile), tmp_path)
    with open(tmp_path / f"{device.name}.Instruction.csv") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[0] == "timeline_track"
    assert len(rows) == schema.rows_of(device, "Instruction")


def test_summaries(profile):
    blocks = json.loads(files.summary_json(Profile(profile)))
    assert sum(name.startswith("s_") for name in blocks) == 1
    device_blocks = [block for name, block in blocks.items() if name.startswith("n_")]
    assert device_blocks and all(block["total_time"] > 0 for block in device_blocks)
    assert "nothing was measured" in files.summary_text(Profile(profile))


def test_parquet_is_the_folder(profile, tmp_path):
    written = files.export_parquet(Profile(profile), tmp_path / "copy")
    assert len(written) == len(list(profile.rglob("*.parquet")))


def test_compare_with_itself_is_one(device):
    comparison = compare([device, device])
    ratios = {row["name"]: row["ratios"][1] for row in comparison["metrics"] if row["ratios"][1] is not None}
    assert ratios["total_time"] == 1.0 and set(ratios.values()) == {1.0}
    assert comparison["operators_ns"] and comparison["kernels_ns"]


def test_view_processes_once_and_keeps_what_people_added(capture, tmp_path, capsys):
    arguments = ["view", "-d", str(capture), "--data-path", str(tmp_path), "--display-name", "run", "--ingest-only"]
    assert cli.main(arguments) == 0
    folder = tmp_path / "profiles" / "run"
    description = json.loads((folder / "profile.json").read_text())
    (folder / "profile.json").write_text(json.dumps({**description, "tags": ["kept"]}))
    (folder / "annotations.json").write_text("[1]")
    assert cli.main(arguments) == 1
    assert "--force" in capsys.readouterr().err
    assert cli.main([*arguments, "--force"]) == 0
    assert json.loads((folder / "profile.json").read_text())["tags"] == ["kept"]
    assert (folder / "annotations.json").read_text() == "[1]"


def test_view_serves_a_session(capture, tmp_path):
    """The command itself: processes the folder, serves the app and the profile, and the second time only serves."""
    command = [
        sys.executable,
        "-m",
        "neuron_explorer",
        "view",
        str(capture),
        "--data-path",
        str(tmp_path),
        "--port",
        "0",
    ]
    for again in (False, True):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                address = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())[0]
                with urllib.request.urlopen(address, timeout=30) as page:
                    assert b'id="root"' in page.read()
                with urllib.request.urlopen(f"{address}api/profiles", timeout=30) as answer:
                    (listed,) = json.load(answer)["profiles"]
            finally:
                process.terminate()
                said = process.stderr.read()
        assert listed["status"] == "PROCESSED" and listed["devices"]
        assert listed["name"] == f"{capture.parent.name}_{capture.name}"
        assert ("was made from this folder before" in said) == again


def test_view_says_why_it_cannot_listen(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert cli.main(["view", "--data-path", str(tmp_path), "--port", str(port)]) == 1
    assert f"port {port} on 127.0.0.1 cannot be used" in capsys.readouterr().err


def test_view_of_a_pair_and_its_mistakes(pair, tmp_path, capsys):
    arguments = ["view", "-n", str(pair[0]), "-s", str(pair[1]), "--data-path", str(tmp_path)]
    assert cli.main([*arguments, "--output-format", "summary-json", "--output-file", str(tmp_path / "s.json")]) == 0
    assert json.loads((tmp_path / "s.json").read_text())
    assert cli.main(["view", "-n", str(pair[0]), "--data-path", str(tmp_path)]) == 1
    assert "expected a pair: -n NEFF and -s NTFF" in capsys.readouterr().err
    assert cli.main(["view", "-d", str(tmp_path / "none"), "--data-path", str(tmp_path)]) == 1
    assert "does not exist" in capsys.readouterr().err
    assert cli.main([*arguments, "--display-name", "../up"]) == 1
    assert "expected a profile name" in capsys.readouterr().err


def test_recommend(pair, capsys):
    assert cli.main(["recommend", "-n", str(pair[0]), "-s", str(pair[1])]) == 0
    text = capsys.readouterr().out
    assert text.startswith("# Recommendations") and "## What sets the time" in text and "DMA twice as fast" in text


def test_capture_runs_a_neff(pair, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copy(pair[0], "file.neff")
    assert cli.main(["capture", "--num-exec", "2", "--profile-nth-exec", "2", "--check-output-determinism"]) == 0
    assert (tmp_path / "profile.ntff").stat().st_size > 1000
    assert cli.main(["view", "-n", "file.neff", "-s", "profile.ntff", "--data-path", ".", "--ingest-only"]) == 0
    assert cli.main(["capture", "nothing", "file.neff"]) == 1
    assert "the NEFF has no input 'nothing'" in capsys.readouterr().err

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""torch.profiler with device times, NeuronConfig and the session folder."""

from __future__ import annotations

import glob
import json
import os
import threading

import pytest
import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch_neuronx.profiling import NeuronConfig, NeuronProfiler, NRTProfilerError, ProfileMode

BOTH = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
CAPTURE_OVERHEAD = 372.0  # us per execution under DEVICE capture


def rms_norm(x, w, eps=1e-6):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * w


@pytest.fixture
def data():
    return torch.randn(4, 512).bfloat16().to("neuron"), torch.ones(512).bfloat16().to("neuron")


def rows(prof, device_type=DeviceType.CPU):
    return {event.key: event for event in prof.key_averages() if event.device_type == device_type}


def device_rows(prof):
    """Operator rows with device time of their own."""
    return {key: event for key, event in rows(prof).items() if event.self_device_time_total > 0}


def footer(prof) -> float:
    return sum(event.self_device_time_total for event in rows(prof, DeviceType.PrivateUse1).values())


def test_eager_tutorial_function(data):
    rms_norm(*data)
    torch.neuron.synchronize()
    with profile(activities=BOTH, experimental_config=NeuronConfig()) as prof:
        rms_norm(*data)
        torch.neuron.synchronize()
    operators = device_rows(prof)
    assert {key: event.count for key, event in operators.items()} == {
        "aten::mul": 3,
        "aten::mean": 1,
        "aten::add": 1,
        "aten::rsqrt": 1,
    }
    total = sum(event.self_device_time_total for event in operators.values())
    assert total == pytest.approx(footer(prof))
    assert operators["aten::mul"].self_device_time_total == pytest.approx(total / 2, rel=0.1)
    assert total >= 6 * CAPTURE_OVERHEAD
    kernels = rows(prof, DeviceType.PrivateUse1)
    assert kernels["neff:mul"].count == 3
    # The scalar epsilon travels to the device.
    assert kernels["Memcpy HtoD (Scalar -> Device)"].count == 1


def test_fused_operator_is_one_row(data):
    torch.rms_norm(data[0], [512], data[1], 1e-6)
    torch.neuron.synchronize()
    with profile(activities=BOTH, experimental_config=NeuronConfig()) as prof:
        torch.rms_norm(data[0], [512], data[1], 1e-6)
        torch.neuron.synchronize()
    operators = device_rows(prof)
    assert list(operators) == ["aten::_fused_rms_norm"] and operators["aten::_fused_rms_norm"].count == 1
    assert CAPTURE_OVERHEAD <= footer(prof) < 2 * CAPTURE_OVERHEAD


def test_compiled_region_is_one_row(data):
    torch._dynamo.reset()
    function = torch.compile(rms_norm, backend="neuron", fullgraph=True)
    function(*data)
    torch.neuron.synchronize()
    with profile(activities=BOTH, experimental_config=NeuronConfig()) as prof:
        function(*data)
        torch.neuron.synchronize()
    operators = device_rows(prof)
    (name,) = operators
    assert name.startswith("Torch-Compiled Region") and operators[name].count == 1
    assert CAPTURE_OVERHEAD <= footer(prof) < 2 * CAPTURE_OVERHEAD


def test_compiled_training_rows():
    torch._dynamo.reset()
    module = torch.nn.Linear(8, 8).to("neuron")
    function = torch.compile(module, backend="neuron", fullgraph=True)
    batch = torch.randn(4, 8, device="neuron")
    for _ in range(2):
        function(batch).square().sum().backward()
    torch.neuron.synchronize()
    with profile(activities=BOTH) as prof:
        function(batch).square().sum().backward()
        torch.neuron.synchronize()
    operators = device_rows(prof)
    assert any(name.startswith("Torch-Compiled Region") for name in operators)
    assert "CompiledFunctionBackward" in operators
    assert "CompiledFunction" not in operators


def test_table_has_neuron_columns(data):
    with profile(activities=BOTH, profile_memory=True) as prof:
        data[0] * 2
        torch.neuron.synchronize()
    table = prof.key_averages().table(sort_by="self_privateuse1_time_total", row_limit=4)
    for title in (
        "Self NEURON",
        "Self NEURON %",
        "NEURON total",
        "NEURON time avg",
        "NEURON Mem",
        "Self NEURON time total",
    ):
        assert title in table


def test_default_activities_include_the_device(data):
    with profile() as prof:
        data[0] + data[0]
        torch.neuron.synchronize()
    assert device_rows(prof)["aten::add"].count == 1


def test_schedule_captures_the_active_step_only(data):
    captures = []
    with profile(
        activities=BOTH,
        experimental_config=NeuronConfig(),
        schedule=schedule(wait=2, warmup=1, active=1),
        on_trace_ready=lambda prof: captures.append(device_rows(prof)),
    ) as prof:
        for _ in range(4):
            rms_norm(*data)
            torch.neuron.synchronize()
            prof.step()
    (operators,) = captures
    assert operators["aten::mul"].count == 3
    assert "aten::mul" in device_rows(prof)


def test_schedule_with_repeat_and_no_synchronisation(data):
    counts = []
    with profile(
        activities=BOTH,
        schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
        on_trace_ready=lambda prof: counts.append(device_rows(prof)["aten::mul"].count),
    ) as prof:
        for _ in range(8):
            data[0] * data[1]
            data[0] * data[1]
            prof.step()
    assert counts == [4, 4]


def test_work_in_flight_at_the_start_is_left_out(run_python):
    process = run_python(
        """
        import torch
        from torch.profiler import profile
        tensor = torch.ones(8, device="neuron")
        tensor * 2
        torch.neuron.synchronize()
        for _ in range(50):
            tensor * 2
        with profile() as prof:
            tensor * 2
            tensor * 2
        events = prof.key_averages()
        print({e.key: e.count for e in events if e.key in ("neff:mul", "aten::mul")})
        """,
        NEURON_DOUBLE_DELAY_US="3000",
    )
    assert "'aten::mul': 2" in process.stdout and "'neff:mul': 2" in process.stdout


def test_cpu_only_capture(data):
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        data[0] * 2
    assert rows(prof)["aten::mul"].count == 1
    assert footer(prof) == 0


def test_device_only_capture(data):
    with profile(activities=[ProfilerActivity.PrivateUse1]) as prof:
        data[0] * 2
        torch.neuron.synchronize()
    assert rows(prof, DeviceType.PrivateUse1)["neff:mul"].count == 1


def test_without_synchronisation_stop_drains(data):
    with profile(activities=BOTH) as prof:
        for _ in range(20):
            data[0] * data[1]
    assert device_rows(prof)["aten::mul"].count == 20


def test_threads(data):
    def work():
        for _ in range(5):
            data[0] * data[1]

    config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    with profile(activities=BOTH, experimental_config=config) as prof:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        torch.neuron.synchronize()
    assert rows(prof)["aten::mul"].count == 15
    assert rows(prof, DeviceType.PrivateUse1)["neff:mul"].count == 15


def test_chrome_trace(tmp_path, data):
    other = torch.ones(4, device="neuron:1")
    with profile(activities=BOTH) as prof, record_function("my range"):
        data[0] * data[1]
        other + other
        data[0].cpu()
    path = str(tmp_path / "trace.json")
    prof.export_chrome_trace(path)
    with open(path) as file:
        trace = json.load(file)
    events = trace["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    assert {event["name"] for event in kernels} == {"neff:mul", "neff:add"}
    assert {event["pid"] for event in kernels} == {0, 1}
    for event in kernels:
        assert event["args"]["time"] == "modelled" and "External id" in event["args"]
        assert event["dur"] >= 3
    copies = [event for event in events if event.get("cat") == "gpu_memcpy"]
    assert any("DtoH" in event["name"] for event in copies)
    starts = {event["id"] for event in events if event.get("cat") == "ac2g" and event["ph"] == "s"}
    ends = {event["id"] for event in events if event.get("cat") == "ac2g" and event["ph"] == "f"}
    assert starts == ends and len(starts) >= 3
    names = {event["args"]["name"] for event in events if event.get("name") == "process_name"}
    assert {"neuron 0", "neuron 1"} <= names
    assert any(
        event["name"] == "nrta_execute_schedule" for event in events if event.get("cat") == "privateuse1_runtime"
    )


def test_device_times_are_inside_the_capture_and_ordered(data):
    with profile(activities=BOTH) as prof:
        for _ in range(5):
            data[0] * data[1]
        torch.neuron.synchronize()
    kernels = sorted(
        (event for event in prof.events() if event.name == "neff:mul"), key=lambda event: event.time_range.start
    )
    assert len(kernels) == 5
    for first, second in zip(kernels, kernels[1:], strict=False):
        assert first.time_range.end <= second.time_range.start + 0.01
    operators = [event for event in prof.events() if event.name == "aten::mul"]
    assert min(event.time_range.start for event in kernels) >= min(event.time_range.start for event in operators)


def test_correlation_can_be_switched_off(data):
    with profile(activities=BOTH, experimental_config=NeuronConfig(correlate_device_time=False)) as prof:
        data[0] * data[1]
        torch.neuron.synchronize()
    assert device_rows(prof) == {}
    assert rows(prof, DeviceType.PrivateUse1)["neff:mul"].count == 1


def test_overhead_depends_on_the_device_mode(data):
    data[0] * data[1]
    times = {}
    for modes in ([ProfileMode.RUNTIME], [ProfileMode.DEVICE]):
        with profile(activities=BOTH, experimental_config=NeuronConfig(modes=modes)) as prof:
            data[0] * data[1]
            torch.neuron.synchronize()
        times[modes[0]] = footer(prof)
    assert times[ProfileMode.DEVICE] - times[ProfileMode.RUNTIME] == pytest.approx(372.0 - 9.4, rel=0.01)


def test_core_filter(data):
    with profile(activities=BOTH, experimental_config=NeuronConfig(capture_enabled_for_nc="1")) as prof:
        data[0] * data[1]
        torch.neuron.synchronize()
    assert footer(prof) == 0


def test_event_limit(data):
    with profile(activities=BOTH, experimental_config=NeuronConfig(max_events_per_nc=3)) as prof:
        for _ in range(10):
            data[0] * data[1]
        torch.neuron.synchronize()
    assert rows(prof, DeviceType.PrivateUse1)["neff:mul"].count == 3


def test_config_validation(tmp_path):
    with pytest.raises(NRTProfilerError, match="ProfileMode"):
        NeuronConfig(modes=["device"])
    with pytest.raises(NRTProfilerError, match="max_events_per_nc"):
        NeuronConfig(max_events_per_nc=0)
    with pytest.raises(NRTProfilerError, match="capture_enabled_for_nc"):
        NeuronConfig(capture_enabled_for_nc="a-b")
    with pytest.raises(NRTProfilerError, match="NeuronConfig"):
        NeuronProfiler(object())
    config = NeuronConfig()
    assert config.modes == (ProfileMode.DEVICE, ProfileMode.RUNTIME)


@pytest.mark.parametrize("name", ["a=b", "a#b", "line\nbreak", "semi;colon:x", "100%", "ü"])
def test_hostile_output_directories(tmp_path, data, name):
    config = NeuronConfig(profile_output_dir=str(tmp_path / name))
    profiler = NeuronProfiler(config)
    with profile(activities=BOTH, experimental_config=config, on_trace_ready=profiler.export_trace):
        data[0] * data[1]
    with open(os.path.join(profiler.session_dir, "trace.json")) as file:
        assert json.load(file)["traceName"] == "trace.json"


def test_session_folder(tmp_path, data):
    from torch_neuronx.profiling import device_trace_pb2, system_trace_pb2
    from torch_neuronx.profiling.profiler import NTFF_MAGIC

    config = NeuronConfig(modes=list(ProfileMode), profile_output_dir=str(tmp_path), capture_enabled_for_nc="0")
    profiler = NeuronProfiler(config)
    with profile(
        activities=BOTH,
        experimental_config=config,
        record_shapes=False,
        on_trace_ready=profiler.export_trace,
        schedule=schedule(wait=2, warmup=1, active=1),
    ) as prof:
        for _ in range(4):
            rms_norm(*data)
            torch.neuron.synchronize()
            prof.step()
    (folder,) = glob.glob(f"{tmp_path}/i-*_pid_{os.getpid()}/*")
    assert folder == profiler.session_dir and os.path.basename(folder).isdigit()
    names = sorted(os.listdir(folder))
    assert {"trace.json", "ntrace.pb", "trace_info.pb", "cpu_util.pb", "host_mem.pb"} <= set(names)
    neffs = [name for name in names if name.endswith(".neff")]
    assert len(neffs) == 6  # three multiplications of different shapes, mean, add, rsqrt
    information = system_trace_pb2.TraceInfo.FromString(open(f"{folder}/trace_info.pb", "rb").read())
    assert sorted(item.file for item in information.neffs) == neffs
    assert "modelled" in information.time_statement and information.target.startswith("trn")
    (device_file,) = information.device_traces
    content = open(f"{folder}/{device_file.file}", "rb").read()
    assert content.startswith(NTFF_MAGIC)
    trace = device_trace_pb2.DeviceTrace.FromString(content[len(NTFF_MAGIC) :])
    assert len(trace.executions) == 6
    assert {item.neff_hash for item in trace.executions} == {item.hash for item in information.neffs}
    assert all(program.segments for program in trace.programs)
    system = system_trace_pb2.SystemTrace.FromString(open(f"{folder}/ntrace.pb", "rb").read())
    running = [event for event in system.events if event.name == "nc_exec_running"]
    assert len(running) == 6 and all(event.time_source == system_trace_pb2.MODELLED for event in running)
    scheduled = [event for event in system.events if event.name == "nrta_execute_schedule"]
    assert {flow for event in running for flow in event.flow_ids} <= {f for e in scheduled for f in e.flow_ids}
    memory = system_trace_pb2.HostMemory.FromString(open(f"{folder}/host_mem.pb", "rb").read())
    assert memory.samples and all(0 < s.process_bytes <= s.used_bytes * 10 for s in memory.samples)
    cpu = system_trace_pb2.CpuUtilisation.FromString(open(f"{folder}/cpu_util.pb", "rb").read())
    assert all(0 <= sample.utilisation <= 1 for sample in cpu.samples)


@pytest.mark.parametrize(
    "mode,expected",
    [
        (ProfileMode.DEVICE, {".neff", ".ntff"}),
        (ProfileMode.RUNTIME, {"ntrace.pb", "trace_info.pb"}),
        (ProfileMode.CPU_UTIL, {"cpu_util.pb"}),
        (ProfileMode.HOST_MEMORY, {"host_mem.pb"}),
    ],
)
def test_each_mode_writes_its_files(tmp_path, data, mode, expected):
    config = NeuronConfig(modes=[mode], profile_output_dir=str(tmp_path))
    profiler = NeuronProfiler(config)
    with profile(activities=BOTH, experimental_config=config, on_trace_ready=profiler.export_trace):
        data[0] * data[1]
    names = set(os.listdir(profiler.session_dir)) - {"trace.json"}
    kinds = {name if name.endswith(".pb") else os.path.splitext(name)[1] for name in names}
    assert kinds == expected


def test_unwritable_output_directory(tmp_path, data):
    (tmp_path / "file").write_text("")
    config = NeuronConfig(profile_output_dir=str(tmp_path / "file" / "out"))
    profiler = NeuronProfiler(config)
    with pytest.raises(NRTProfilerError, match="profile_output_dir"):
        with profile(activities=BOTH, experimental_config=config, on_trace_ready=profiler.export_trace):
            data[0] * data[1]


def test_legacy_profiler(data):
    with torch.autograd.profiler.profile(use_device="neuron", use_kineto=False) as prof:
        data[0] * data[1]
    assert any(event.key == "aten::mul" for event in prof.key_averages())


def test_many_sessions_do_not_drift(data):
    totals = []
    for _ in range(10):
        with profile(activities=BOTH) as prof:
            data[0] * data[1]
            torch.neuron.synchronize()
        totals.append(footer(prof))
    assert max(totals) == pytest.approx(min(totals), rel=1e-3)

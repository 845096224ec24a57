# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""What profiling costs: a capture beside a stock one, its export, and reading large traces."""

from __future__ import annotations

import gc
import glob
import os
import subprocess
import sys
import tempfile
import time

import torch
from measure import Row, interleaved, progress, seconds
from torch.profiler import ProfilerActivity, profile

_EVENTS = 10_000_000
_ACTIVITIES = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]

# In a process of its own, so that the peak of memory is that of reading.
_READ = """
import pathlib, resource, sys, time
from neuron_explorer import ingest
neff, trace, folder = map(pathlib.Path, sys.argv[1:])
begin = time.perf_counter()
ingest.ingest_pair(neff, trace, folder)
print(time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


class _Block(torch.nn.Module):
    """The work of a decoder's layer, small."""

    def __init__(self, size: int):
        super().__init__()
        self.norm = torch.nn.RMSNorm(size)
        self.qkv = torch.nn.Linear(size, 3 * size, bias=False)
        self.out = torch.nn.Linear(size, size, bias=False)
        self.gate = torch.nn.Linear(size, 4 * size, bias=False)
        self.down = torch.nn.Linear(4 * size, size, bias=False)

    def forward(self, x):
        batch, length, size = x.shape
        query, key, value = (
            part.view(batch, length, 4, size // 4).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1)
        )
        mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, size))
        return x + self.down(torch.nn.functional.silu(self.gate(x)))


def profiling_rows(turns: int) -> list[Row]:
    rows = [_overhead_row(turns)]
    rows.append(_export_row(turns))
    rows += _ingest_rows()
    return rows


def _step(model, x) -> None:
    for _ in range(20):
        x = model(x) * 0.5
    torch.neuron.synchronize()


def _overhead_row(turns: int) -> Row:
    """RUNTIME capture against stock torch.profiler on the same eager steps."""
    from torch_neuronx.profiling import NeuronConfig, ProfileMode

    progress("profile: overhead of a RUNTIME capture")
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.GELU()).to("neuron")
    x = torch.randn(128, 256).to("neuron")

    def captured(config) -> float:
        gc.collect()
        with torch.no_grad(), profile(activities=_ACTIVITIES, experimental_config=config):
            begin = time.perf_counter()
            _step(model, x)
            return time.perf_counter() - begin

    with torch.no_grad():
        _step(model, x)
    config = NeuronConfig(modes=[ProfileMode.RUNTIME])
    pair = interleaved(lambda turn: captured(config), lambda turn: captured(None), turns)
    return Row(
        "profile",
        "RUNTIME capture against stock torch.profiler",
        seconds(pair.measured),
        seconds(pair.peer),
        pair.ratio,
        "<=",
        1.1,
    )


def _export_row(turns: int) -> Row:
    """NeuronProfiler.export_trace of one step of a small decoder, every mode, against the 3 s that it may take."""
    from torch_neuronx.profiling import NeuronConfig, NeuronProfiler, ProfileMode

    progress("profile: export of one step")
    model = torch.nn.Sequential(*(_Block(256) for _ in range(4))).to("neuron")
    compiled = torch.compile(model, backend="neuron")
    x = torch.randn(1, 64, 256).to("neuron")
    times = []
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        config = NeuronConfig(modes=list(ProfileMode), profile_output_dir=folder)
        compiled(x)
        for _ in range(max(1, min(turns, 5))):
            profiler = NeuronProfiler(config)
            with profile(activities=_ACTIVITIES, experimental_config=config) as prof:
                compiled(x)
                torch.neuron.synchronize()
            begin = time.perf_counter()
            profiler.export_trace(prof)
            times.append(time.perf_counter() - begin)
    measured = sorted(times)[len(times) // 2]
    return Row("profile", "export of one step, 4 layers", seconds(measured), "3 s", measured / 3, "<=", 1.0)


def _ingest_rows() -> list[Row]:
    from neuron_explorer import _decoder

    progress(f"profile: reading {_EVENTS} events")
    function = torch.compile(lambda a, w: torch.softmax(a @ w, -1), backend="neuron")
    with tempfile.TemporaryDirectory() as folder:
        neff, trace = os.path.join(folder, "a.neff"), os.path.join(folder, "a.ntff")
        content = _captured_neff(function, folder)
        with open(neff, "wb") as file:
            file.write(content)
        with open(trace, "wb") as file:
            file.write(_decoder.unrolled_trace(content, _EVENTS))
        output = subprocess.run(
            [sys.executable, "-c", _READ, neff, trace, os.path.join(folder, "profile")],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
    elapsed, peak = float(output[0]), int(output[1])
    limit = 4 * 2**30
    return [
        Row("profile", "reading 10^7 events into tables", seconds(elapsed), "60 s", elapsed / 60, "<=", 1.0),
        Row("profile", "memory while reading them", f"{peak / 2**30:.2f} GiB", "4 GiB", peak / limit, "<=", 1.0),
    ]


def _captured_neff(function, folder: str) -> bytes:
    """The NEFF of the function, from the session folder of a capture."""
    from torch_neuronx.profiling import NeuronConfig, NeuronProfiler, ProfileMode

    config = NeuronConfig(modes=[ProfileMode.DEVICE, ProfileMode.RUNTIME], profile_output_dir=folder)
    with torch.no_grad(), profile(activities=_ACTIVITIES, experimental_config=config) as prof:
        function(torch.randn(128, 256).to("neuron"), torch.randn(256, 256).to("neuron"))
        torch.neuron.synchronize()
    NeuronProfiler(config).export_trace(prof)
    with open(max(glob.glob(f"{folder}/**/*.neff", recursive=True), key=os.path.getsize), "rb") as file:
        return file.read()

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Captures that the tests read: made once for all, by the real pipeline."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest
from neuron_explorer import _decoder, ingest, schema, synthetic

CAPTURE = """
import torch
from torch.profiler import ProfilerActivity, profile, record_function
from torch_neuronx.profiling import NeuronConfig, NeuronProfiler, ProfileMode


class Norm(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(size))

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * self.weight  # rms norm


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm(256)
        self.up = torch.nn.Linear(256, 512, bias=False)
        self.down = torch.nn.Linear(512, 256, bias=False)

    def forward(self, x):
        return x + self.down(torch.nn.functional.silu(self.up(self.norm(x))))


torch.manual_seed(0)
model = torch.nn.Sequential(*(Block() for _ in range(4))).to("neuron")
compiled = torch.compile(model, backend="neuron", fullgraph=True)
x = torch.randn(128, 256, device="neuron")
y = torch.randn(64, 64, device="neuron")
with torch.no_grad():
    compiled(x), y * y + y @ y
    torch.neuron.synchronize()
    config = NeuronConfig(modes=list(ProfileMode), profile_output_dir=OUTPUT)
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1],
        experimental_config=config,
        on_trace_ready=NeuronProfiler(config).export_trace,
        profile_memory=True,
        record_shapes=True,
    ):
        with record_function("the step"):
            compiled(x)
        y * y + y @ y
        torch.neuron.synchronize()
"""


@pytest.fixture(scope="session")
def capture(tmp_path_factory) -> pathlib.Path:
    """The session folder of a compiled model and three eager operators."""
    root = tmp_path_factory.mktemp("capture")
    script = root / "step.py"
    script.write_text(textwrap.dedent(CAPTURE).replace("OUTPUT", repr(str(root / "output"))))
    environment = {**os.environ, "TORCH_NEURONX_NEFF_CACHE_DIR": str(root / "cache")}
    subprocess.run([sys.executable, str(script)], check=True, env=environment, timeout=300)
    (folder,) = (path.parent for path in root.rglob("trace_info.pb"))
    return folder


@pytest.fixture(scope="session")
def profile(capture, tmp_path_factory) -> pathlib.Path:
    """The processed profile of the capture."""
    return ingest.ingest_session(capture, tmp_path_factory.mktemp("data") / "profiles" / "step")


@pytest.fixture(scope="session")
def device(profile) -> pathlib.Path:
    """The compiled model's device profile: the one with most rows."""
    return max((profile / "device").iterdir(), key=lambda path: schema.rows_of(path, "Instruction"))


@pytest.fixture(scope="session")
def pair(capture) -> tuple[pathlib.Path, pathlib.Path]:
    """The compiled model's NEFF, and the trace of the capture."""
    (trace,) = capture.glob("*.ntff")
    return max(capture.glob("*.neff"), key=lambda path: len(_decoder.neff_variables(path.read_bytes()))), trace


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory) -> pathlib.Path:
    """A data folder with synthetic profiles."""
    root = tmp_path_factory.mktemp("data")
    assert synthetic.main(["--events", "6000", str(root / "profiles" / "device")]) in (0, None)
    assert synthetic.main(["--events", "2000", "--system", "60", str(root / "profiles" / "system")]) in (0, None)
    return root

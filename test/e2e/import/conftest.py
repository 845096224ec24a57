# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest
import torch

torch.set_num_threads(1)  # the tensors are small, and machines that run tests are busy
torch.backends.mkldnn.enabled = False  # on some processors eager takes oneDNN's gelu, which is inf beyond 1.7e38
ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "test" / "e2e"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))


def translate_tool() -> str:
    """neuron-translate of NEURON_BIN_DIR, else the one on PATH."""
    directory = os.environ.get("NEURON_BIN_DIR")
    found = shutil.which("neuron-translate", path=directory) if directory else shutil.which("neuron-translate")
    if not found:
        raise FileNotFoundError("expected neuron-translate on PATH or in NEURON_BIN_DIR; build it first")
    return found


def list_overloads() -> list[dict]:
    lines = subprocess.run([translate_tool(), "--list-overloads"], check=True, capture_output=True, text=True).stdout
    result = []
    for line in lines.splitlines():
        name, signature, subject, base, structural = line.split("\t")
        result.append(
            {
                "name": name,
                "signature": signature,
                "subject": subject,
                "base": base,
                "structural": {int(position) for position in structural.split(",") if position},
            }
        )
    return result


@pytest.fixture(scope="session")
def tool():
    return translate_tool()


def pytest_generate_tests(metafunc):
    if "entry" in metafunc.fixturenames:
        entries = [entry for entry in list_overloads() if metafunc.module.wants(entry)]
        metafunc.parametrize("entry", entries, ids=[entry["name"] for entry in entries])

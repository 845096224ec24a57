# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Shared set-up. With NEURON_TEST_DOUBLE=1 the compiler is the double of double/ (the library path then has to lead to
the double's libnrt); otherwise the tests run against the package as it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
import warnings

import pytest

DOUBLE = os.environ.get("NEURON_TEST_DOUBLE") == "1"
# A private cache: results must not depend on what earlier runs compiled.
os.environ.setdefault("TORCH_NEURONX_NEFF_CACHE_DIR", tempfile.mkdtemp(prefix="neff-cache-"))
os.environ.setdefault("NEURON_RT_NUM_CORES", "2")

_DOUBLE_PREAMBLE = """
import sys, torch_neuronx_double
sys.modules["torch_neuronx._compiler"] = torch_neuronx_double
"""

if DOUBLE:
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "double"))
    import torch_neuronx_double

    sys.modules["torch_neuronx._compiler"] = torch_neuronx_double

import torch  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "double: needs the compiler double (faults injected into it)")
    config.addinivalue_line("markers", "real: needs the real compiler and emulator")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("double") and not DOUBLE:
            item.add_marker(pytest.mark.skip(reason="needs NEURON_TEST_DOUBLE=1"))
        if item.get_closest_marker("real") and DOUBLE:
            item.add_marker(pytest.mark.skip(reason="needs the real compiler"))


@pytest.fixture(autouse=True)
def _clean_state():
    import torch_neuronx

    torch.manual_seed(0)
    torch_neuronx.clear_op_tracking()
    yield
    torch.neuron.synchronize()


@pytest.fixture
def run_python(tmp_path):
    """Runs Python source in a new process and returns its completed process; fails the test unless it exits with 0."""

    def run(source: str, check: bool = True, preamble: bool = True, **environment: str):
        text = (_DOUBLE_PREAMBLE if DOUBLE and preamble else "") + textwrap.dedent(source)
        path = tmp_path / "script.py"
        path.write_text(text)
        variables = dict(os.environ)
        if DOUBLE:
            variables["PYTHONPATH"] = os.pathsep.join(
                [os.path.join(os.path.dirname(__file__), "double"), variables.get("PYTHONPATH", "")]
            )
        variables.update(environment)
        process = subprocess.run(
            [sys.executable, str(path)], env=variables, capture_output=True, text=True, timeout=300, cwd=tmp_path
        )
        if check:
            assert process.returncode == 0, process.stdout + process.stderr
        return process

    return run


@pytest.fixture
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def same(actual: torch.Tensor, expected: torch.Tensor, **tolerance) -> None:
    """Compares a device tensor with a CPU tensor: values, dtype, sizes and strides."""
    assert actual.device.type == "neuron"
    assert actual.stride() == expected.stride() or actual.numel() == 0
    torch.testing.assert_close(actual.cpu(), expected, **tolerance)

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Importing: order, environment, broken and mismatched installations."""

from __future__ import annotations

import os
import shutil

import pytest
import torch_neuronx


def test_import_of_the_package_first(run_python):
    process = run_python(
        """
        import os
        import torch_neuronx
        assert "TORCH_DEVICE_BACKEND_AUTOLOAD" not in os.environ
        import torch
        print((torch.ones(2, device="neuron") + 1).cpu().tolist(), torch_neuronx.__version__)
        """,
    )
    assert process.stdout.startswith("[2.0, 2.0]")


def test_autoload_can_be_switched_off(run_python):
    process = run_python(
        """
        import torch
        print(hasattr(torch, "neuron"))
        """,
        preamble=False,
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert process.stdout.strip() == "False"


@pytest.fixture
def copied_package(tmp_path):
    """A copy of the package and its metadata that a test may damage."""
    source = os.path.dirname(torch_neuronx.__file__)
    target = tmp_path / "site"
    shutil.copytree(source, target / "torch_neuronx", symlinks=False, ignore=shutil.ignore_patterns("__pycache__"))
    metadata = target / "open_torch_neuronx-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: open-torch-neuronx\nVersion: 0.1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[torch.backends]\ntorch_neuronx = torch_neuronx:_autoload\n"
        "[torch_dynamo_backends]\nneuron = torch_neuronx._dynamo.backend:neuron_backend\n"
    )
    return target


USE = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import torch
messages = [str(item.message) for item in caught if "torch_neuronx" in str(item.message)]
print(len(messages), messages)
print(torch.ones(2).sum().item())
try:
    torch.compile(lambda t: t + 1, backend="neuron")(torch.ones(2))
except Exception as error:
    print("compile:", error)
"""


@pytest.mark.parametrize("damage", ["no extension", "no library", "other version", "broken extension"])
def test_broken_installation_does_not_break_torch(run_python, copied_package, damage):
    package = copied_package / "torch_neuronx"
    (extension,) = package.glob("_C*.so")
    if damage == "no extension":
        extension.unlink()
    elif damage == "no library":
        (package / "lib" / "libtorch_neuron.so").unlink()
    elif damage == "broken extension":
        extension.write_bytes(b"not a library")
    else:
        information = package / "_build_information.py"
        text = information.read_text()
        information.unlink()
        information.write_text(text.replace('TORCH_VERSION = "2.13', 'TORCH_VERSION = "2.12'))
    process = run_python(USE, preamble=False, PYTHONPATH=str(copied_package))
    lines = process.stdout.splitlines()
    assert lines[0].startswith("1 ") and "not available" in lines[0]
    assert lines[1] == "2.0"
    assert "compile:" in process.stdout and "neuron" in lines[2]
    if damage == "other version":
        assert "expected PyTorch 2.12" in lines[0] and "reinstall" in lines[0]


def test_moved_package_works(run_python, copied_package):
    preserved = os.environ.get("LD_LIBRARY_PATH", "")
    process = run_python(
        """
        import torch, torch_neuronx
        print((torch.ones(2, device="neuron")).cpu().tolist(), torch_neuronx.__file__)
        """,
        preamble=False,
        PYTHONPATH=str(copied_package),
        LD_LIBRARY_PATH=preserved,
    )
    assert process.stdout.startswith("[1.0, 1.0]") or "fill_" in process.stderr
    assert str(copied_package) in process.stdout


def test_logical_cores_of_two_are_refused_by_name(run_python):
    process = run_python(
        """
        import torch
        torch.ones(2, device="neuron") + 1
        """,
        check=False,
        NEURON_LOGICAL_NC_CONFIG="2",
    )
    assert process.returncode != 0 and "NEURON_LOGICAL_NC_CONFIG" in process.stderr


def test_missing_compiler_says_so(run_python):
    process = run_python(
        """
        import sys
        sys.modules["torch_neuronx._compiler"] = None
        import torch
        try:
            torch.ones(2).to("neuron") + 1
        except RuntimeError as error:
            print(error)
        """,
        preamble=False,
    )
    assert "torch_neuronx._compiler cannot be imported" in process.stdout


def test_environment_flags(run_python):
    process = run_python(
        """
        import warnings
        from torch_neuronx import _environment
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert _environment.flag("NEURON_TEST_FLAG") is False
            assert _environment.flag("NEURON_TEST_FLAG") is False
        print(len(caught), caught[0].message)
        """,
        NEURON_TEST_FLAG="maybe",
    )
    assert process.stdout.startswith("1 expected 0 or 1 in NEURON_TEST_FLAG but got 'maybe'")

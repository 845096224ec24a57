# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Importing: order, environment, broken and mismatched installations."""

from __future__ import annotations

import os
import re
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
import importlib, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import torch
messages = [item for item in caught if "torch_neuronx" in str(item.message)]
assert len(messages) == 1 and messages[0].category is RuntimeWarning, caught
assert messages[0].filename == __file__, messages[0].filename
print("import:", str(messages[0].message).splitlines()[0])

# The rest of PyTorch works, seeds included.
torch.manual_seed(1)
assert torch.ones(2).sum().item() == 2.0
assert torch.compile(lambda t: t + 1, backend="eager")(torch.ones(2)).sum().item() == 4.0

def attempt(what, function):
    try:
        function()
    except Exception as error:
        print(f"{what}:", next(line for line in str(error).splitlines() if "torch_neuronx" in line))
    else:
        print(f"{what}: nothing was raised")

assert torch.device("neuron", 0).type == "neuron"
assert torch.neuron.is_available() is False and torch.neuron.device_count() == 0
attempt("factory", lambda: torch.ones(2, device="neuron"))
attempt("copy", lambda: torch.ones(2).to("neuron"))
attempt("module", lambda: torch.nn.Linear(2, 2).to("neuron"))
attempt("device module", lambda: torch.neuron.synchronize())
attempt("compile", lambda: torch.compile(lambda t: t + 1, backend="neuron")(torch.ones(2)))

import torch_neuronx
assert torch_neuronx.is_available() is False and not hasattr(torch_neuronx, "get_fallback_ops")
attempt("package", lambda: torch_neuronx.synchronize())
attempt("profiling", lambda: __import__("torch_neuronx.profiling"))
for submodule in ("neuron", "neuron.memory", "metrics", "neuron_dynamo_backend", "_C", "_compiler", "_dynamo.backend"):
    assert not hasattr(torch_neuronx, submodule)
    try:
        importlib.import_module("torch_neuronx." + submodule)
    except ImportError as error:
        attempt("submodule", lambda: (_ for _ in ()).throw(error))
try:
    from torch_neuronx import neuron
except ImportError as error:
    attempt("from", lambda: (_ for _ in ()).throw(error))
"""

FOREIGN_LIBRARY = next((p for p in ("/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6") if os.path.exists(p)), None)

# What is done to a copy of the package, and what the message must then name: the cause and the remedy.
DAMAGE = {
    "no extension": (r"_C\.cpython\S+\.so in \S+ but it is missing", "reinstall open-torch-neuronx"),
    "other python": (r"for Python 3\.\d+ but got _C\.cpython-27\.so", "reinstall open-torch-neuronx"),
    "broken extension": (r"_C\S+\.so: (file too short|invalid ELF header)", "reinstall open-torch-neuronx"),
    "foreign extension": (r"_C\S+|PyInit__C", "reinstall open-torch-neuronx"),
    "truncated extension": (
        r"expected \d+ bytes in \S+_C\S+\.so but got \d+: the file is truncated",
        "reinstall open-torch-neuronx",
    ),
    "truncated library": (r"expected \d+ bytes in \S+libtorch_neuron\.so but got \d+", "reinstall open-torch-neuronx"),
    "truncated compiler": (r"expected \d+ bytes in \S+_compiler\S+\.so but got \d+", "reinstall open-torch-neuronx"),
    "no library": (r"libtorch_neuron\.so: cannot open shared object", "reinstall open-torch-neuronx"),
    "foreign library": (r"\.so: undefined symbol", "reinstall open-torch-neuronx"),
    "other version": (r"expected PyTorch 2\.12\S+ .* but got 2\.13", "reinstall torch_neuronx for this PyTorch"),
    "no build information": (r"no build information", "install it with 'pip install .'"),
    "no device module": (r"ImportError|No module named|cannot import", "reinstall open-torch-neuronx"),
}


def _damage(package, damage):
    (extension,) = package.glob("_C*.so")
    library = package / "lib" / "libtorch_neuron.so"
    if damage == "no extension":
        extension.unlink()
    elif damage == "other python":
        extension.rename(package / "_C.cpython-27.so")
    elif damage == "broken extension":
        extension.write_bytes(b"not a library")
    elif damage.startswith("truncated"):
        (compiler,) = package.glob("_compiler*.so")
        file = {"extension": extension, "library": library, "compiler": compiler}[damage.split()[1]]
        os.truncate(file, file.stat().st_size * 2 // 3)
    elif damage == "foreign extension":
        shutil.copyfile(FOREIGN_LIBRARY, extension)
    elif damage == "no library":
        library.unlink()
    elif damage == "foreign library":
        shutil.copyfile(FOREIGN_LIBRARY, library)
    elif damage == "no build information":
        (package / "_build_information.py").unlink()
    elif damage == "no device module":
        shutil.rmtree(package / "neuron")
    else:
        information = package / "_build_information.py"
        text = information.read_text()
        information.unlink()
        information.write_text(text.replace('TORCH_VERSION = "2.13', 'TORCH_VERSION = "2.12'))


@pytest.mark.parametrize("damage", DAMAGE)
def test_broken_installation_says_why_and_does_not_break_torch(run_python, copied_package, damage):
    if "foreign" in damage and FOREIGN_LIBRARY is None:
        pytest.skip("needs a shared library of another package")
    _damage(copied_package / "torch_neuronx", damage)
    process = run_python(USE, preamble=False, PYTHONPATH=str(copied_package))
    lines = [tuple(line.split(": ", 1)) for line in process.stdout.splitlines()]
    assert [what for what, _ in lines] == [
        *("import", "factory", "copy", "module", "device module", "compile", "package", "profiling"),
        *["submodule"] * 7,
        "from",
    ]
    cause, remedy = DAMAGE[damage]
    for what, message in lines:
        assert "torch_neuronx is not available: " in message, what
        assert re.search(cause, message), (what, message)
        assert remedy in message, (what, message)


@pytest.mark.parametrize(
    "lost", ["_loading.py", "_unavailable.py", "_environment.py", "_eager.py", "data/overloads.txt"]
)
def test_loss_of_any_file_does_not_break_torch(run_python, copied_package, lost):
    """Also of those that would explain the loss."""
    package = copied_package / "torch_neuronx"
    (package / lost).unlink()
    if lost == "_unavailable.py":
        _damage(package, "no extension")
    process = run_python(
        """
        import warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import torch
        assert torch.ones(2).sum().item() == 2.0
        (message,) = [str(item.message) for item in caught if "torch_neuronx is not available" in str(item.message)]
        assert "reinstall open-torch-neuronx" in message, message
        try:
            import torch_neuronx
            torch_neuronx.synchronize()
        except Exception as error:
            print(type(error).__name__)
        """,
        preamble=False,
        PYTHONPATH=str(copied_package),
    )
    assert process.stdout.strip() in ("NotAvailableError", "RuntimeError", "ModuleNotFoundError")


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

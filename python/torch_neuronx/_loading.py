# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Brings the device up inside a PyTorch process, or says why it cannot.

A broken installation must not break `import torch`: every failure becomes one warning, and the reason is raised again
when the device or the backend is used.
"""

from __future__ import annotations

import atexit
import importlib.machinery
import os
import struct
import sys
import warnings

failure: str | None = None
_loaded = False
_REMEDY = "reinstall open-torch-neuronx in this environment (pip install --force-reinstall .)"


class _BrokenInstallation(RuntimeError):
    """A reason that is a sentence with its remedy already."""


def load() -> None:
    global failure, _loaded
    if _loaded or failure is not None:
        return
    try:
        _load()
        _loaded = True
    except Exception as error:
        failure = f"torch_neuronx is not available: {_explain(error)}"
        try:
            _install_unavailable_device()
            _install_unavailable_submodules()
        except ImportError:
            # The part that gives the reason again is damaged too: what is used later fails in its own way.
            pass
        warnings.warn(
            f"{failure}\nThe neuron device and torch.compile(backend='neuron') cannot be used; the rest of PyTorch can.",
            RuntimeWarning,
            stacklevel=_user_stacklevel(),
        )


def require() -> None:
    """Raises NotAvailableError, with the reason, if the package did not load."""
    if failure is not None:
        from ._unavailable import NotAvailableError

        raise NotAvailableError(failure)


def _explain(error: Exception) -> str:
    if isinstance(error, _BrokenInstallation):
        return str(error)
    text = str(error)
    if isinstance(error, ImportError):
        # The loader names the file that is missing, damaged or linked against something else.
        return f"{text}; the installation is incomplete, damaged or made for other libraries: {_REMEDY}"
    return f"{type(error).__name__}: {text}; {_REMEDY}"


def _user_stacklevel() -> int:
    """Frames between the warning and the user's `import torch`, so that it is shown at that line."""
    frame, level = sys._getframe(2), 2
    while frame is not None:
        # warnings.warn() does not count the frames of the import system.
        if not frame.f_code.co_filename.startswith("<frozen importlib"):
            package = str(frame.f_globals.get("__name__")).partition(".")[0]
            if package not in ("importlib", "torch", "torch_neuronx"):
                return level
            level += 1
        frame = frame.f_back
    return 2


def _install_unavailable_device() -> None:
    """Makes torch.neuron raise the reason of the failure instead of PyTorch's "no such module"."""
    torch = sys.modules.get("torch")
    if torch is None or hasattr(torch, "neuron"):
        return
    from ._unavailable import UnavailableDevice

    try:
        torch.utils.rename_privateuse1_backend("neuron")
    except Exception:
        # The name belongs to another extension, which torch.device("neuron") then does not mean either.
        return
    torch.neuron = sys.modules["torch.neuron"] = UnavailableDevice(failure)


def _install_unavailable_submodules() -> None:
    from ._unavailable import UnavailableSubmodules

    for name in [name for name in sys.modules if name.startswith(f"{__package__}.")]:
        # What has been loaded on the way to the failure is no use either.
        submodule = name.removeprefix(f"{__package__}.")
        if submodule not in ("_loading", "_unavailable"):
            del sys.modules[name]
            vars(sys.modules[__package__]).pop(submodule, None)
    sys.meta_path.insert(0, UnavailableSubmodules(failure))


def _import_torch():
    # Without this, PyTorch's autoload would import this half-initialised package again.
    name = "TORCH_DEVICE_BACKEND_AUTOLOAD"
    previous = os.environ.get(name)
    os.environ[name] = "0"
    try:
        import torch
    finally:
        if previous is None:
            del os.environ[name]
        else:
            os.environ[name] = previous
    return torch


def _check_versions(torch) -> None:
    try:
        from . import _build_information as built
    except ImportError as error:
        raise _BrokenInstallation(
            "the package has no build information; install it with 'pip install .' or put the build tree's python "
            "directory on PYTHONPATH"
        ) from error
    installed = torch.__version__
    if str(installed) != built.TORCH_VERSION or torch.version.git_version != built.TORCH_COMMIT:
        raise _BrokenInstallation(
            f"expected PyTorch {built.TORCH_VERSION} (commit {built.TORCH_COMMIT[:12]}), which the extension modules "
            f"were built against, but got {installed} (commit {str(torch.version.git_version)[:12]}); reinstall "
            f"torch_neuronx for this PyTorch, or install torch=={built.TORCH_VERSION.split('+')[0]}"
        )


def _check_extension() -> None:
    """Import errors of a missing module speak of circular imports; say what is there instead."""
    directory = os.path.dirname(__file__)
    found = sorted(name for name in os.listdir(directory) if name.startswith("_C.") and name.endswith(".so"))
    suffixes = importlib.machinery.EXTENSION_SUFFIXES
    if any(name == f"_C{suffix}" for name in found for suffix in suffixes):
        return
    version = ".".join(map(str, sys.version_info[:2]))
    if found:
        raise _BrokenInstallation(
            f"expected the extension module _C{suffixes[0]} for Python {version} but got {', '.join(found)} in "
            f"{directory}; {_REMEDY}"
        )
    raise _BrokenInstallation(
        f"expected the extension module _C{suffixes[0]} in {directory} but it is missing; {_REMEDY}"
    )


def _check_complete() -> None:
    """A library whose end is missing is mapped all the same, and kills the process where the missing part is read."""
    package = os.path.dirname(__file__)
    for directory in (package, os.path.join(package, "lib")):
        if not os.path.isdir(directory):
            continue
        for name in sorted(os.listdir(directory)):
            if not name.endswith(".so"):
                continue
            path = os.path.join(directory, name)
            with open(path, "rb") as file:
                header = file.read(64)
                present = os.fstat(file.fileno()).st_size
            # Section headers come last in an ELF file of 64 bits; what is none, the loader explains.
            if len(header) < 64 or header[:6] != b"\x7fELF\x02\x01":
                continue
            (start,) = struct.unpack_from("<Q", header, 0x28)
            size, count = struct.unpack_from("<HH", header, 0x3A)
            if present < start + size * count:
                raise _BrokenInstallation(
                    f"expected {start + size * count} bytes in {path} but got {present}: the file is truncated; {_REMEDY}"
                )


def _print_on_cpu(torch) -> None:
    """Formats device tensors from a copy on the CPU: the formatter computes with the tensor it prints, which would
    compile a dozen programs for a print. Core does the same for several device types, by name."""
    from torch import _tensor_str

    original = getattr(_tensor_str, "_tensor_str", None)
    if original is None:
        return

    def tensor_str(self, indent):
        if self.device.type == "neuron" and type(self) in (torch.Tensor, torch.nn.Parameter):
            self = self.detach().cpu()
        return original(self, indent)

    _tensor_str._tensor_str = tensor_str


def _load() -> None:
    torch = _import_torch()
    _check_versions(torch)
    _check_extension()
    _check_complete()
    torch.utils.rename_privateuse1_backend("neuron")
    # Static initialisers register the allocator, the guard, the hooks and the operators.
    from . import _C, neuron

    torch._register_device_module("neuron", neuron)
    torch.utils.generate_methods_for_privateuse1_backend(
        for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
    )
    _C.register_profiler(str(torch.__version__))
    # A program that ends, perhaps by Ctrl-C, does not wait for results that it will never read.
    atexit.register(_C.cancel_pending)
    _print_on_cpu(torch)
    from . import _eager

    _eager.register(_C)
    from ._dynamo import _selection

    _selection.install()

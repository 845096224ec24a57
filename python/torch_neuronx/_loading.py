# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Brings the device up inside a PyTorch process, or says why it cannot.

A broken installation must not break `import torch`: every failure becomes one warning, and the reason is raised again
when the device is used.
"""

from __future__ import annotations

import os
import warnings

failure: str | None = None
_loaded = False


def load() -> None:
    global failure, _loaded
    if _loaded or failure is not None:
        return
    try:
        _load()
        _loaded = True
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
        warnings.warn(
            f"torch_neuronx could not be loaded and the neuron device is not available: {failure}",
            RuntimeWarning,
            stacklevel=3,
        )


def require() -> None:
    """Raises the reason why the package did not load, if it did not."""
    if failure is not None:
        raise RuntimeError(f"torch_neuronx is not available: {failure}")


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
        raise RuntimeError(
            "the package has no build information; install it with 'pip install .' or put the build tree's python "
            "directory on PYTHONPATH"
        ) from error
    installed = torch.__version__
    if str(installed) != built.TORCH_VERSION or torch.version.git_version != built.TORCH_COMMIT:
        raise RuntimeError(
            f"expected PyTorch {built.TORCH_VERSION} (commit {built.TORCH_COMMIT[:12]}), which the extension modules "
            f"were built against, but got {installed} (commit {str(torch.version.git_version)[:12]}); reinstall "
            f"torch_neuronx for this PyTorch, or install torch=={built.TORCH_VERSION.split('+')[0]}"
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
    torch.utils.rename_privateuse1_backend("neuron")
    # Static initialisers register the allocator, the guard, the hooks and the operators.
    from . import _C, neuron

    torch._register_device_module("neuron", neuron)
    torch.utils.generate_methods_for_privateuse1_backend(
        for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
    )
    _C.register_profiler(str(torch.__version__))
    _print_on_cpu(torch)
    from . import _eager

    _eager.register(_C)
    from ._dynamo import _selection

    _selection.install()

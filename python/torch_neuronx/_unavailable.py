# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""torch.neuron when the package could not be loaded: no devices, and the reason in every error.

PyTorch looks the module up whenever a tensor is to be made on the device, and its own messages would name neither the
reason nor the remedy.
"""

from __future__ import annotations

import types
from typing import NoReturn


class NotAvailableError(RuntimeError, AttributeError):
    """The package could not be loaded. An AttributeError too, so that hasattr() stays a question."""


class NotAvailableImportError(ImportError, RuntimeError):
    """As above for a submodule: what `try: import ... except ImportError` expects."""


class UnavailableSubmodules:
    """A finder for sys.meta_path that gives the reason for every submodule which is not loaded: each would stumble over
    the same damage in its own way."""

    def __init__(self, reason: str):
        self._reason = reason

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        package, _, submodule = name.partition(".")
        if package == __package__ and submodule not in ("_loading", "_unavailable"):
            raise NotAvailableImportError(self._reason, name=name)


class UnavailableDevice(types.ModuleType):
    """The parts of a device module that answer without a device; all others raise NotAvailableError."""

    def __init__(self, reason: str):
        super().__init__("torch.neuron", f"The neuron device is not available: {reason}")
        self._reason = reason
        self.__file__ = __file__

    def _refuse(self, *arguments: object, **keywords: object) -> NoReturn:
        raise NotAvailableError(self._reason)

    def __getattr__(self, name: str):
        raise NotAvailableError(self._reason)

    # PyTorch calls this before the first tensor on a device is made.
    _lazy_init = _refuse

    def is_available(self) -> bool:
        return False

    def is_initialized(self) -> bool:
        return False

    def device_count(self) -> int:
        return 0

    # torch.manual_seed() seeds all devices, also those that are not there.
    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        pass

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The device module: torch.neuron."""

# What is imported here is the module's interface.
# ruff: noqa: F401

from __future__ import annotations

from typing import Any

import torch

from .. import _C
from .memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from .random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import Event, Stream, StreamContext, current_stream, default_stream, set_stream, stream


def is_available() -> bool:
    return _C.device_count() > 0


def device_count() -> int:
    """Number of visible devices. Does not start the runtime."""
    return _C.device_count()


def current_device() -> int:
    return _C.current_device()


def set_device(device: Any) -> None:
    """Makes a device current. Raises ValueError naming the valid range for an index that is none."""
    index = _index(device)
    if index is not None:
        _C.set_device(index)


class device:
    """Context manager that makes a device current."""

    def __init__(self, device: Any):
        self.idx = _index(device)
        self.prev_idx = -1

    def __enter__(self):
        self.prev_idx = _C.current_device()
        if self.idx is not None:
            _C.set_device(self.idx)
        return self

    def __exit__(self, *exception):
        _C.set_device(self.prev_idx)
        return False


class device_of(device):
    """Context manager that makes the device of a tensor current (no change for tensors elsewhere)."""

    def __init__(self, tensor):
        super().__init__(tensor.device.index if tensor.device.type == "neuron" else None)


class _DeviceProperties:
    def __init__(self, index: int):
        init()
        self.index = index
        self.target = _C.target_name()
        self.name = f"{self.target} NeuronCore (software)"
        self.total_memory = _C.device_memory_bytes()

    def __repr__(self):
        return (
            f"_DeviceProperties(name='{self.name}', index={self.index}, total_memory={self.total_memory // 2**20} MiB)"
        )


def get_device_properties(device: Any = None) -> _DeviceProperties:
    index = _index(device)
    return _DeviceProperties(current_device() if index is None else _C.checked_device(index))


def get_device_name(device: Any = None) -> str:
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> dict:
    return torch.accelerator.get_device_capability(device)


def synchronize(device: Any = None) -> None:
    """Waits for everything enqueued on a device; raises the error of the first execution that failed."""
    index = _index(device)
    if not _C.is_initialised() and not _C.is_in_bad_fork():
        return
    _C.synchronise(current_device() if index is None else index)


def init() -> None:
    """Starts the runtime; otherwise the first use of a device does."""
    _C.initialise()


_lazy_init = init


def is_initialized() -> bool:
    return _C.is_initialised() and not _C.is_in_bad_fork()


def _is_in_bad_fork() -> bool:
    return _C.is_in_bad_fork()


def is_bf16_supported() -> bool:
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.bfloat16, torch.float16]


def get_dynamo_metrics() -> list[dict]:
    """One record per graph that torch.compile(backend="neuron") has compiled."""
    from .._dynamo import metrics

    return metrics.records()


def reset_dynamo_metrics() -> None:
    from .._dynamo import metrics

    metrics.reset()


_generators: tuple | None = None


def __getattr__(name: str):
    if name == "_initialized":
        # torch.utils.checkpoint asks for it before it saves the state of the generators.
        return is_initialized()
    if name == "default_generators":
        global _generators
        if _generators is None:
            _generators = tuple(_C.default_generator(i) for i in range(device_count()))
        return _generators
    raise AttributeError(f"module 'torch.neuron' has no attribute {name!r}")


def _index(device: Any) -> int | None:
    """Index of what names a device; None for "the current one"."""
    if device is None:
        return None
    if isinstance(device, int):
        return None if device == -1 else device
    parsed = torch.device(device) if isinstance(device, str) else device
    if not isinstance(parsed, torch.device) or parsed.type != "neuron":
        raise ValueError(f"expected a neuron device but got {device!r}")
    return parsed.index


# Dynamo treats these as constants of a trace instead of trying to trace into the extension module.
for _function in (current_device, device_count, is_available, is_initialized, is_bf16_supported):
    _function._dynamo_marked_constant = True

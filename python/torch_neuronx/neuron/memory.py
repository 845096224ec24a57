# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Memory management of torch.neuron. All sizes are in bytes."""

from __future__ import annotations

from typing import Any

from .. import _C


def _device(device: Any) -> int:
    from . import _index

    index = _index(device)
    return _C.current_device() if index is None else _C.checked_device(index)


def empty_cache() -> None:
    """Gives cached memory that no tensor uses back to the runtime."""
    _C.empty_cache()


def memory_stats(device: Any = None) -> dict:
    """Statistics of the caching allocator, nested: memory_stats()["allocated_bytes"]["current"]."""
    return _C.memory_stats(_device(device))


def memory_allocated(device: Any = None) -> int:
    return memory_stats(device)["allocated_bytes"]["current"]


def max_memory_allocated(device: Any = None) -> int:
    return memory_stats(device)["allocated_bytes"]["peak"]


def memory_reserved(device: Any = None) -> int:
    return memory_stats(device)["reserved_bytes"]["current"]


def max_memory_reserved(device: Any = None) -> int:
    return memory_stats(device)["reserved_bytes"]["peak"]


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total memory of a device."""
    return _C.memory_info(_device(device))


def reset_peak_memory_stats(device: Any = None) -> None:
    _C.reset_peak_memory_stats(_device(device))


def reset_accumulated_memory_stats(device: Any = None) -> None:
    _C.reset_accumulated_memory_stats(_device(device))


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Bounds what the allocator reserves, as a fraction of the device's memory."""
    _C.set_memory_fraction(_device(device), float(fraction))


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The statistics as a table."""
    stats = memory_stats(device)
    rows = [("allocated", "allocated_bytes"), ("active", "active_bytes"), ("reserved", "reserved_bytes")]
    if not abbreviated:
        rows += [("requested", "requested_bytes"), ("inactive split", "inactive_split_bytes")]
    columns = ("current", "peak", "allocated", "freed")
    lines = [f"memory of neuron:{_device(device)} (MiB)"]
    lines.append(f"{'':16}" + "".join(f"{column:>12}" for column in columns))
    for title, key in rows:
        lines.append(f"{title:16}" + "".join(f"{stats[key][column] / 2**20:12.2f}" for column in columns))
    lines.append(f"out-of-memory errors: {stats['num_ooms']}, retries: {stats['num_alloc_retries']}")
    return "\n".join(lines)

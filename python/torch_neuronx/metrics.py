# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Counters of the package: compilations, cache hits, eager dispatch."""

from __future__ import annotations

_enabled = True


def set_enabled(enabled: bool) -> None:
    """Whether report() and get_counter_value() give values; counting itself costs nothing and never stops."""
    global _enabled
    _enabled = bool(enabled)


def is_enabled() -> bool:
    return _enabled


def _counters() -> dict[str, int]:
    from . import _C, _cache

    eager = _C.eager_statistics()
    return {
        "CompilationCache.InMemoryHits": _cache.statistics["memory_hits"] + eager["hits"],
        "CompilationCache.PersistentHits": _cache.statistics["disk_hits"],
        "CompilationCache.Misses": _cache.statistics["misses"],
        "CompilationCache.Damaged": _cache.statistics["damaged"],
        "CompilationCache.Writes": _cache.statistics["writes"],
        "Eager.Launches": eager["launches"],
        "Eager.KeyHits": eager["hits"],
        "Eager.KeyMisses": eager["misses"],
        "Fallback.Calls": sum(count for _, count in _C.fallback_operators()),
    }


_base: dict[str, int] = {}


def get_counter_value(name: str) -> int | None:
    """A counter since the last clear_all(); None for an unknown name or while metrics are off."""
    if not _enabled:
        return None
    counters = _counters()
    return counters[name] - _base.get(name, 0) if name in counters else None


def clear_all() -> None:
    _base.clear()
    _base.update(_counters())


def report() -> str:
    """All counters, one a line."""
    if not _enabled:
        return ""
    return "\n".join(f"{name}: {value - _base.get(name, 0)}" for name, value in sorted(_counters().items()))

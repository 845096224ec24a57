# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Streams of the timeline, kept in `.drawing/` beside the tables, as they follow from these alone."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from pathlib import Path

from . import drawing
from .overview import overview
from .profiles import ProfileStore

_guard = threading.Lock()
_locks: dict[Path, threading.Lock] = {}


def _digest(folder: Path) -> str:
    """Of what the streams are made from: changed tables make others."""
    state = "".join(f"{p.name}:{p.stat().st_mtime_ns}:{p.stat().st_size};" for p in sorted(folder.glob("*.parquet")))
    return hashlib.sha256(f"{drawing.FORMAT_VERSION}{state}".encode()).hexdigest()[:16]


def _write(folder: Path, stem: str, digest: str, data: bytes) -> None:
    cache = folder / ".drawing"
    cache.mkdir(exist_ok=True)
    for stale in cache.glob(f"{stem}-*.arrow"):
        stale.unlink(missing_ok=True)
    temporary = cache / f".{stem}.{secrets.token_hex(6)}"
    temporary.write_bytes(data)
    os.replace(temporary, cache / f"{stem}-{digest}.arrow")


def stream_file(folder: Path, kind: str, what: str, by: str = "operator") -> Path:
    """File of `slices`, `counters`, `overview` (of a device profile) or `colors` by a choice; made if it is not there."""
    stem = f"{what}-{by}" if what == "colors" else what
    digest = _digest(folder)
    path = folder / ".drawing" / f"{stem}-{digest}.arrow"
    if path.is_file():
        return path
    with _guard:
        lock = _locks.setdefault(folder, threading.Lock())
    # A page asks for several streams at once: the first one makes those that it needs.
    with lock:
        if path.is_file():
            return path
        drawn = drawing.Drawn(folder, kind)
        if what == "colors":
            _write(folder, stem, digest, drawn.colors(by))
            return path
        base, series = drawing.series_of(folder, kind)
        if kind == "device":
            _write(folder, "overview", digest, overview(drawn, series))
        _write(folder, "counters", digest, drawing.counter_stream(base, series))
        _write(folder, "slices", digest, drawn.slices())
    return path


def prepare(store: ProfileStore, name: str) -> None:
    """Makes the streams that the first page of a profile asks for, so that they are there when it does."""
    description = store.describe(name)
    device = "system" if description["has_system"] else next(iter(description["devices"]), None)
    if device is not None:
        stream_file(store.device_folder(name, device), "system" if device == "system" else "device", "slices")

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The NEFF cache on disk, shared by eager mode, compiled graphs and other processes.

An entry is a folder named by its key with the NEFF and its metadata. It appears by one rename, so readers never see
half of it; a checksum guards what they read, and a damaged entry is removed and compiled again. Beside them are the
graph and the parts of the key, which only neuron-compile --explain-cache reads.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import _environment, _warnings

NEFF_FILE = "graph.neff"
METADATA_FILE = "metadata.json"
_FORMAT = 1
_ABANDONED_SECONDS = 3600

_lock = threading.Lock()
_warned: set[str] = set()
statistics = {"memory_hits": 0, "disk_hits": 0, "misses": 0, "damaged": 0, "writes": 0}


@dataclass
class Entry:
    neff: bytes
    # Text of the compiler: inputs, outputs, rng_increment, ...
    metadata: dict
    key: str
    # The NEFF on disk; None when it could not be stored.
    path: str | None


def _warn_once(topic: str, message: str) -> None:
    with _lock:
        if topic in _warned:
            return
        _warned.add(topic)
    _warnings.warn_user(message, RuntimeWarning)


def _folder(directory: str, key: str) -> str:
    return os.path.join(directory, key[:2], key)


def _count(name: str) -> None:
    with _lock:
        statistics[name] += 1


def load(key: str) -> Entry | None:
    directory = _environment.cache_directory()
    if directory is None:
        return None
    folder = _folder(directory, key)
    try:
        with open(os.path.join(folder, METADATA_FILE), "rb") as file:
            envelope = json.loads(file.read())
        with open(os.path.join(folder, NEFF_FILE), "rb") as file:
            neff = file.read()
        if (
            envelope["format"] != _FORMAT
            or envelope["key"] != key
            or envelope["sha256"] != _digest(neff, envelope["metadata"])
        ):
            raise ValueError("checksum")
        metadata = json.loads(envelope["metadata"])
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError as error:
        _warn_once("read", f"the NEFF cache {directory} cannot be read and is not used: {error}")
        return None
    except (OSError, ValueError, KeyError, TypeError):
        _count("damaged")
        shutil.rmtree(folder, ignore_errors=True)
        return None
    _count("disk_hits")
    return Entry(neff, metadata, key, os.path.join(folder, NEFF_FILE))


def store(
    key: str, neff: bytes, metadata_json: str, explain: Callable[[dict[str, Any]], dict[str, bytes]] | None = None
) -> Entry:
    """`explain`: from the metadata to further files of the entry, by name; not called where nothing is written."""
    metadata = json.loads(metadata_json)
    entry = Entry(neff, metadata, key, None)
    directory = _environment.cache_directory()
    if directory is None:
        return entry
    folder = _folder(directory, key)
    parent = os.path.dirname(folder)
    scratch = None
    try:
        os.makedirs(parent, mode=0o700, exist_ok=True)
        _remove_abandoned(parent)
        scratch = tempfile.mkdtemp(prefix=f".{key[:8]}-", dir=parent)
        envelope = {"format": _FORMAT, "key": key, "sha256": _digest(neff, metadata_json), "metadata": metadata_json}
        for name, content in ((NEFF_FILE, neff), (METADATA_FILE, json.dumps(envelope).encode())):
            with open(os.path.join(scratch, name), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for name, content in (explain(metadata) if explain else {}).items():
            with open(os.path.join(scratch, name), "wb") as file:
                file.write(content)
        try:
            os.rename(scratch, folder)
        except OSError:
            if all(os.path.isfile(os.path.join(folder, name)) for name in (NEFF_FILE, METADATA_FILE)):
                # Another process has stored the same program in the meantime.
                shutil.rmtree(scratch, ignore_errors=True)
            else:
                # What is left of a damaged entry.
                shutil.rmtree(folder, ignore_errors=True)
                os.rename(scratch, folder)
    except OSError as error:
        _warn_once(
            "write",
            f"the NEFF cache {directory} cannot be written, so programs are compiled again in every process: {error}. "
            "Set TORCH_NEURONX_NEFF_CACHE_DIR to a writable folder, or TORCH_NEURONX_DISABLE_NEFF_CACHE=1",
        )
        return entry
    finally:
        # Also when an interrupt comes in between. After a rename there is nothing under this name.
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
    _count("writes")
    entry.path = os.path.join(folder, NEFF_FILE)
    return entry


def _remove_abandoned(parent: str) -> None:
    """Removes what processes left that were killed while they stored an entry; storing takes seconds at most."""
    with os.scandir(parent) as items:
        for item in items:
            try:
                if item.name.startswith(".") and time.time() - item.stat().st_mtime > _ABANDONED_SECONDS:
                    shutil.rmtree(item.path, ignore_errors=True)
            except FileNotFoundError:
                pass


def _digest(neff: bytes, metadata_json: str) -> str:
    digest = hashlib.sha256(metadata_json.encode())
    digest.update(neff)
    return digest.hexdigest()

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""One record per compiled graph."""

from __future__ import annotations

import threading
from typing import Any

_lock = threading.Lock()
_records: list[dict[str, Any]] = []


def add(record: dict[str, Any]) -> None:
    from torch._dynamo.utils import counters

    with _lock:
        record = {"graph_id": len(_records), **record}
        _records.append(record)
    counters["neuron"]["compiled_graphs"] += 1
    if record["has_collectives"]:
        counters["neuron"]["graphs_with_collectives"] += 1


def records() -> list[dict[str, Any]]:
    with _lock:
        return [dict(record) for record in _records]


def reset() -> None:
    with _lock:
        _records.clear()

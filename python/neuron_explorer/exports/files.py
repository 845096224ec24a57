# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Exports for other programs: Parquet, CSV, JSON, summaries."""

from __future__ import annotations

import hashlib
import json
import pathlib
import shutil
from typing import Any

from ..tables import Profile, connect, one, parquet, present, rows

_CSV_TABLES = ("Instruction", "DmaPacketAggregated", "SemaphoreUpdate", "ActiveTime", "CriticalPath", "KernelRoofline")
# Key of the JSON export, table.
_DEVICE_KEYS = (
    ("profile_info", "Metadata"),
    ("summary", "Summary"),
    ("neff_header", "NeffHeader"),
    ("neff_node", "Instruction"),
    ("dma", "DmaPacketAggregated"),
    ("layer_summary", "FrameworkNode"),
    ("opcode_summary", "OpcodeSummary"),
    ("semaphore", "SemaphoreUpdate"),
    ("flow", "Flow"),
    ("kernel_roofline", "KernelRoofline"),
    ("critical_path", "CriticalPath"),
    ("what_if", "WhatIf"),
    ("insight", "Insight"),
    ("tensor_info", "TensorInfo"),
    ("warning", "Warning"),
)
_SYSTEM_KEYS = (
    ("system_profile_metadata", "SystemProfileMetadata"),
    ("device_profile_list", "DeviceProfileList"),
    ("trace_event", "SystemProfileEvents"),
    ("flow", "Flow"),
    ("mem_usage", "HostMemUsage"),
    ("cpu_util", "CpuUsage"),
    ("hbm_usage", "SystemProfileHbmUsage"),
    ("warning", "Warning"),
)


def export_parquet(profile: Profile, output: pathlib.Path) -> list[pathlib.Path]:
    """The folder itself."""
    if output.resolve() != profile.folder.resolve():
        shutil.copytree(profile.folder, output, dirs_exist_ok=True)
    return sorted(output.rglob("*.parquet"))


def export_csv(profile: Profile, output: pathlib.Path) -> list[pathlib.Path]:
    """The large tables of each device profile, the lane in the first column."""
    written = []
    output.mkdir(parents=True, exist_ok=True)
    sources = [(path, path.name, _CSV_TABLES) for path in profile.devices()]
    if profile.is_system:
        sources.append((profile.folder, "", ("SystemProfileEvents", "Flow")))
    with connect() as connection:
        for folder, prefix, names in sources:
            for table in names:
                relation = parquet(folder, table)
                if relation is None:
                    continue
                target = output / (f"{prefix}.{table}.csv" if len(sources) > 1 and prefix else f"{table}.csv")
                columns = "* EXCLUDE (timeline_track)" if table == "Instruction" else "*"
                lane = {
                    "Instruction": "timeline_track",
                    "DmaPacketAggregated": "'DMA-E' || engine_idx AS timeline_track",
                    "SemaphoreUpdate": "'Semaphore' AS timeline_track",
                }.get(table)
                text = str(target).replace("'", "''")
                connection.execute(
                    f"COPY (SELECT {lane + ', ' if lane else ''}{columns} FROM {relation}) TO '{text}' (HEADER)"
                )
                written.append(target)
    return written


def export_json(profile: Profile, output: pathlib.Path) -> list[pathlib.Path]:
    """One file for the system, one for each device profile. Streams, so that large profiles fit."""
    output.mkdir(parents=True, exist_ok=True)
    written = []
    if profile.is_system:
        written.append(_write_json(profile.folder, output / "system_profile.json", _SYSTEM_KEYS))
    for device in profile.devices():
        name = "device_profile.json" if len(profile.devices()) == 1 else f"device_profile_{device.name}.json"
        written.append(_write_json(device, output / name, _DEVICE_KEYS))
    return written


def _write_json(folder: pathlib.Path, target: pathlib.Path, keys: tuple[tuple[str, str], ...]) -> pathlib.Path:
    with connect() as connection, open(target, "w") as file:
        file.write("{")
        first = True
        for key, table in keys:
            relation = parquet(folder, table)
            if relation is None:
                continue
            file.write(("" if first else ",\n") + json.dumps(key) + ": [")
            first = False
            cursor = connection.execute(f"SELECT to_json(t)::VARCHAR FROM {relation} AS t")
            separator = "\n"
            while batch := cursor.fetchmany(10000):
                file.write(separator + ",\n".join(row[0] for row in batch))
                separator = ",\n"
            file.write("]")
        file.write("}\n")
    return target


def summaries(profile: Profile) -> dict[str, dict[str, Any]]:
    """Metrics by block: s_<digest> of the system, n_<digest> of each device profile."""
    result: dict[str, dict[str, Any]] = {}
    if profile.is_system:
        events = rows(
            profile.folder,
            "SystemProfileEvents",
            "SELECT count(*) AS message_count, count(DISTINCT name) AS event_type_count, "
            "max(end_ts) - min(start_ts) AS total_duration_ns FROM {}",
        )
        result["s_" + _digest(profile.name)] = {"name": profile.name, **(events[0] if events else {})}
    for device in profile.devices():
        metrics = one(device, "Summary")
        metrics.pop("id", None)
        result["n_" + _digest(device.name)] = {
            "name": device.name,
            **{name: value for name, value in metrics.items() if value is not None},
        }
    return result


def _digest(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def summary_text(profile: Profile) -> str:
    lines = []
    for block, metrics in summaries(profile).items():
        lines.append(f"{block}:")
        lines += [f"  {name}: {value}" for name, value in metrics.items()]
        lines.append("")
    for device in profile.devices():
        found = rows(device, "Insight")
        if found:
            lines.append(f"insights of {device.name}:")
            lines += [f"  {row['title']}: {row['symptom']}; {row['suggestion']}" for row in found]
            lines.append("")
    lines.append("device times are modelled, nothing was measured on hardware")
    return "\n".join(lines) + "\n"


def summary_json(profile: Profile) -> str:
    return json.dumps(summaries(profile), indent=2, default=str) + "\n"


def sizes(profile: Profile) -> dict[str, int]:
    """Rows by table, for messages."""
    result: dict[str, int] = {}
    for folder in (profile.folder, *profile.devices()):
        for table in present(folder):
            count = rows(folder, table, "SELECT count(*) AS n FROM {}")[0]["n"]
            result[table] = result.get(table, 0) + count
    return result

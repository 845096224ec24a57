# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""What the views show beyond rows of tables: aggregates over instructions and transfers of one device profile.

Each function returns JSON. The single HTML file carries the results; the server computes them when a view opens.
"""

from __future__ import annotations

from pathlib import Path

from .query import QueryError, Tables

SUMS = (
    "raw_flops",
    "flops_transpose",
    "hbm_read_bytes",
    "hbm_write_bytes",
    "sbuf_read_bytes",
    "sbuf_write_bytes",
    "psum_read_bytes",
    "psum_write_bytes",
    "spill_save_bytes",
    "spill_reload_bytes",
)


def _has(tables: Tables, folder: Path, table: str) -> dict[str, str]:
    try:
        return tables.fields(folder, table)
    except QueryError:
        return {}


def _window(fields, start: int | None, end: int | None) -> tuple[str, str, list]:
    """Condition for touching the window, the time spent inside it, and the parameters of the condition."""
    if start is None or end is None:
        return "true", "end_ts - start_ts", []
    inside = f"least(end_ts, {int(end)}) - greatest(start_ts, {int(start)})"
    return "start_ts < ? AND end_ts > ?", f"greatest({inside}, 0)", [int(end), int(start)]


def statistics(
    tables: Tables, folder: Path, start: int | None = None, end: int | None = None, tracks: list[str] | None = None
) -> dict:
    """Per engine: instructions, their time, operations and bytes; per queue: transfers and bytes. Inside a window."""
    result: dict = {"start": start, "end": end, "engines": [], "queues": [], "opcodes": []}
    fields = _has(tables, folder, "Instruction")
    if fields:
        condition, inside, parameters = _window(fields, start, end)
        track = "coalesce(timeline_track, engine)" if "timeline_track" in fields else "engine"
        if tracks:
            condition += f" AND {track} IN (SELECT unnest(?::VARCHAR[]))"
            parameters.append(tracks)
        sums = "".join(f", sum({name}) AS {name}" for name in SUMS if name in fields)
        path = str(tables.file(folder, "Instruction"))
        result["engines"] = tables.records(
            f"SELECT {track} AS track, count(*) AS instructions, CAST(sum({inside}) AS BIGINT) AS time_ns{sums} "
            f"FROM read_parquet(?) WHERE {condition} GROUP BY track ORDER BY track",
            [path, *parameters],
        )
        result["opcodes"] = tables.records(
            f"SELECT engine, opcode, count(*) AS instructions, CAST(sum({inside}) AS BIGINT) AS time_ns, "
            f"CAST(median(end_ts - start_ts) AS DOUBLE) AS median_ns, max(end_ts - start_ts) AS longest_ns "
            f"FROM read_parquet(?) WHERE {condition} GROUP BY engine, opcode ORDER BY time_ns DESC LIMIT 100",
            [path, *parameters],
        )
    if _has(tables, folder, "DmaPacketAggregated"):
        condition, inside, parameters = _window(fields, start, end)
        if tracks:
            condition += " AND queue_name IN (SELECT unnest(?::VARCHAR[]))"
            parameters.append(tracks)
        result["queues"] = tables.records(
            f"SELECT queue_name AS track, count(*) AS transfers, CAST(sum({inside}) AS BIGINT) AS time_ns, "
            "CAST(sum(transfer_bytes) AS BIGINT) AS bytes, CAST(avg(transfer_bytes) AS DOUBLE) AS average_bytes "
            f"FROM read_parquet(?) WHERE {condition} GROUP BY track ORDER BY bytes DESC",
            [str(tables.file(folder, "DmaPacketAggregated")), *parameters],
        )
    return result


def operators(tables: Tables, folder: Path) -> dict:
    """A row per (layer, kernel, operator): counts and times per engine, operations, bytes, first and last moment."""
    fields = _has(tables, folder, "Instruction")
    if not fields:
        return {"rows": []}
    levels = {"layer": "layer", "kernel": "kernel_instruction_name", "operator": "hlo_name"}
    chosen = ", ".join(
        f"coalesce({column}, '') AS {name}" if column in fields else f"'' AS {name}" for name, column in levels.items()
    )
    engines = ("Tensor", "Vector", "Scalar", "GpSimd", "Sync")
    per_engine = "".join(
        f", count(*) FILTER (engine = '{e}') AS {e.lower()}_count, "
        f"CAST(coalesce(sum(end_ts - start_ts) FILTER (engine = '{e}'), 0) AS BIGINT) AS {e.lower()}_ns"
        for e in engines
    )
    sums = "".join(f", CAST(coalesce(sum({name}), 0) AS BIGINT) AS {name}" for name in SUMS if name in fields)
    frames = ", any_value(stack_frame_ids) AS stack_frame_ids" if "stack_frame_ids" in fields else ""
    rows = tables.records(
        f"SELECT {chosen}, count(*) AS instructions, CAST(sum(end_ts - start_ts) AS BIGINT) AS time_ns, "
        f"min(start_ts) AS start_ts, max(end_ts) AS end_ts{per_engine}{sums}{frames} "
        "FROM read_parquet(?) GROUP BY ALL_KEYS ORDER BY start_ts LIMIT 20000".replace("ALL_KEYS", "1, 2, 3"),
        [str(tables.file(folder, "Instruction"))],
    )
    return {"rows": rows}


def lines(tables: Tables, folder: Path) -> dict:
    """Instructions and their time for every source line that the profile knows, through the stack frames."""
    needed = ("Instruction", "StackFrame", "StackFrameFileLocation", "StackFrameFileName")
    if not all(_has(tables, folder, table) for table in needed):
        return {"rows": []}
    fields = _has(tables, folder, "Instruction")
    if "stack_frame_ids" not in fields:
        return {"rows": []}
    function = "NULL"
    join = ""
    if _has(tables, folder, "StackFrameFunctionName"):
        function, join = "f.name", "LEFT JOIN read_parquet($functions) f ON CAST(f.id AS BIGINT) = l.function_name_id"
    parameters = {
        "instructions": str(tables.file(folder, "Instruction")),
        "frames": str(tables.file(folder, "StackFrame")),
        "locations": str(tables.file(folder, "StackFrameFileLocation")),
        "files": str(tables.file(folder, "StackFrameFileName")),
    }
    if join:
        parameters["functions"] = str(tables.file(folder, "StackFrameFunctionName"))
    elements = "CAST(coalesce(sum(i.tensor_elements), 0) AS BIGINT)" if "tensor_elements" in fields else "0"
    rows = tables.records(
        "WITH i AS (SELECT *, unnest(regexp_extract_all(stack_frame_ids, '[0-9]+')) AS frame FROM "
        "read_parquet($instructions) WHERE stack_frame_ids IS NOT NULL) "
        f"SELECT n.name AS file, l.line_number AS line, {function} AS function, count(*) AS instructions, "
        f"CAST(sum(i.end_ts - i.start_ts) AS BIGINT) AS time_ns, {elements} AS tensor_elements, "
        "min(i.start_ts) AS start_ts, max(i.end_ts) AS end_ts, string_agg(DISTINCT i.frame, ',') AS frames "
        "FROM i JOIN read_parquet($frames) s ON CAST(s.id AS VARCHAR) = i.frame "
        "JOIN read_parquet($locations) l ON CAST(l.id AS BIGINT) = s.file_location_id "
        f"JOIN read_parquet($files) n ON CAST(n.id AS BIGINT) = l.file_name_id {join} "
        "GROUP BY 1, 2, 3 ORDER BY 1, 2",
        parameters,
    )
    return {"rows": rows}


def stack(tables: Tables, folder: Path, frames: str) -> list[dict]:
    """The frames of an instruction, innermost first, with their callers."""
    if not all(_has(tables, folder, table) for table in ("StackFrame", "StackFrameFileLocation", "StackFrameFileName")):
        return []
    names = {r["id"]: r["name"] for r in tables.rows(folder, "StackFrameFileName", 100000)}
    functions = {}
    if _has(tables, folder, "StackFrameFunctionName"):
        functions = {r["id"]: r["name"] for r in tables.rows(folder, "StackFrameFunctionName", 100000)}
    locations = {r["id"]: r for r in tables.rows(folder, "StackFrameFileLocation", 100000)}
    known = {r["id"]: r for r in tables.rows(folder, "StackFrame", 100000)}
    result, seen = [], set()
    for frame in [piece for piece in frames.replace(",", " ").replace("[", " ").replace("]", " ").split() if piece]:
        while frame in known and frame not in seen and len(result) < 200:
            seen.add(frame)
            entry = known[frame]
            place = locations.get(str(entry["file_location_id"]), {})
            result.append(
                {
                    "frame": frame,
                    "file": names.get(str(place.get("file_name_id")), ""),
                    "function": functions.get(str(place.get("function_name_id")), ""),
                    "line": place.get("line_number"),
                }
            )
            frame = str(entry.get("parent_frame_id") or "")
    return result


def events_of_frames(tables: Tables, folder: Path, frames: list[str], limit: int = 2000) -> list[dict]:
    """Instructions that came from one of the stack frames."""
    if "stack_frame_ids" not in _has(tables, folder, "Instruction"):
        return []
    return tables.records(
        "SELECT file_row_number AS row, id, engine, opcode, start_ts, end_ts FROM "
        "read_parquet(?, file_row_number=true) WHERE list_has_any(regexp_extract_all(stack_frame_ids, '[0-9]+'), "
        "?::VARCHAR[]) ORDER BY start_ts LIMIT ?",
        [str(tables.file(folder, "Instruction")), frames, limit],
    )


def allocations(tables: Tables, folder: Path, partition: int | None = None, limit: int = 50000) -> dict:
    """Rectangles of the memory view: addresses over time, in one partition."""
    fields = _has(tables, folder, "SbufAllocation")
    if not fields:
        return {"rows": [], "partitions": []}
    path = str(tables.file(folder, "SbufAllocation"))
    partitions = [
        r["partition"] for r in tables.records("SELECT DISTINCT partition FROM read_parquet(?) ORDER BY 1", [path])
    ]
    if partition is None:
        partition = partitions[0] if partitions else 0
    rows = tables.records(
        "SELECT file_row_number AS row, * EXCLUDE (file_row_number) FROM read_parquet(?, file_row_number=true) "
        "WHERE partition = ? ORDER BY start_ts LIMIT ?",
        [path, partition, limit],
    )
    return {"rows": rows, "partitions": partitions, "partition": partition}

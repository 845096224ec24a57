# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Questions about the tables of a processed profile, answered by DuckDB from the Parquet files.

Text of a user reaches DuckDB as bound parameters only; names of tables and columns are checked against the files. The
engine may read nothing outside the data folder and write nothing at all, and its settings are locked.
"""

from __future__ import annotations

import math
import re
import threading
from functools import lru_cache
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

TABLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
# Beyond this a number in JSON is not exact in JavaScript.
EXACT = 2**53


class QueryError(ValueError):
    """The question cannot be answered as it was put."""


@lru_cache(maxsize=4096)
def _fields(path: str, modified: int) -> tuple[tuple[str, str], ...]:
    schema = pq.read_schema(path)
    return tuple((field.name, str(field.type)) for field in schema)


def is_identifier(name: str) -> bool:
    return name == "id" or name.endswith("_id")


def to_json(value, identifier: bool = False):
    """A value as JSON carries it: identifiers and integers that a double cannot hold are text."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(value) if identifier or abs(value) >= EXACT else value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [to_json(item, identifier) for item in value]
    if isinstance(value, dict):
        return {str(key): to_json(item, identifier) for key, item in value.items()}
    return str(value)


class Tables:
    """The tables below a data folder."""

    def __init__(self, data_path: Path, memory_limit: str = "1GB", threads: int = 2):
        self.connection = duckdb.connect(config={"memory_limit": memory_limit, "threads": threads})
        # The order matters: what is set after the lock is refused.
        escaped = str(data_path.resolve()).replace("'", "''")
        for statement in (
            f"SET allowed_directories=['{escaped}/']",
            "SET autoinstall_known_extensions=false",
            "SET autoload_known_extensions=false",
            "SET enable_external_access=false",
            "SET lock_configuration=true",
        ):
            self.connection.execute(statement)
        self.lock = threading.Lock()

    def close(self):
        self.connection.close()

    def file(self, folder: Path, table: str) -> Path:
        if not TABLE_NAME.fullmatch(table):
            raise QueryError(f"expected the name of a table but got {table!r}")
        path = folder / f"{table}.parquet"
        if not path.is_file():
            raise QueryError(f"this profile has no table {table}")
        return path

    def fields(self, folder: Path, table: str) -> dict[str, str]:
        path = self.file(folder, table)
        return dict(_fields(str(path), path.stat().st_mtime_ns))

    def names(self, folder: Path) -> dict[str, int]:
        """The folder's tables and their numbers of rows."""
        return {path.stem: pq.read_metadata(path).num_rows for path in sorted(folder.glob("*.parquet"))}

    def column(self, folder: Path, table: str, name: str) -> str:
        if name not in self.fields(folder, table):
            raise QueryError(f"table {table} has no column {name!r}: it has {', '.join(self.fields(folder, table))}")
        return '"' + name.replace('"', '""') + '"'

    def execute(self, statement: str, parameters=()) -> tuple[list[str], list[tuple]]:
        with self.lock:
            cursor = self.connection.cursor()
        try:
            result = cursor.execute(statement, parameters)
            return [entry[0] for entry in result.description], result.fetchall()
        except duckdb.Error as error:
            raise QueryError(f"the tables of this profile cannot be read: {str(error).splitlines()[0]}") from error
        finally:
            cursor.close()

    def records(self, statement: str, parameters=()) -> list[dict]:
        names, rows = self.execute(statement, parameters)
        identifiers = [is_identifier(name) for name in names]
        return [
            {name: to_json(value, flag) for name, value, flag in zip(names, row, identifiers, strict=True)}
            for row in rows
        ]

    def rows(
        self,
        folder: Path,
        table: str,
        limit: int = 1000,
        offset: int = 0,
        order: str | None = None,
        descending: bool = False,
        columns: list[str] | None = None,
    ) -> list[dict]:
        path = self.file(folder, table)
        chosen = (
            ", ".join(self.column(folder, table, name) for name in columns)
            if columns
            else "* EXCLUDE (file_row_number)"
        )
        by = (
            f"{self.column(folder, table, order)} {'DESC' if descending else 'ASC'} NULLS LAST"
            if order
            else "file_row_number"
        )
        return self.records(
            f"SELECT file_row_number AS row, {chosen} FROM read_parquet(?, file_row_number=true) "
            f"ORDER BY {by} LIMIT ? OFFSET ?",
            [str(path), limit, offset],
        )

    def row(self, folder: Path, table: str, row: int) -> dict:
        found = self.records(
            "SELECT file_row_number AS row, * EXCLUDE (file_row_number) FROM read_parquet(?, file_row_number=true) "
            "WHERE file_row_number = ?",
            [str(self.file(folder, table)), row],
        )
        if not found:
            raise QueryError(f"table {table} has no row {row}")
        return found[0]

    def by_identifier(self, folder: Path, table: str, identifiers: list[int], columns=None) -> list[dict]:
        if not identifiers:
            return []
        path = self.file(folder, table)
        self.column(folder, table, "id")
        fields = self.fields(folder, table)
        chosen = [name for name in (columns or fields) if name in fields]
        quoted = ", ".join(self.column(folder, table, name) for name in chosen)
        return self.records(
            f"SELECT file_row_number AS row, {quoted} FROM read_parquet(?, file_row_number=true) "
            "WHERE id IN (SELECT unnest(?::BIGINT[]))",
            [str(path), identifiers],
        )

    def search(
        self, folder: Path, table: str, field: str, text: str, exact: bool = False, limit: int = 200, offset: int = 0
    ) -> dict:
        """Rows whose field holds the text, whatever its case; for numbers `a..b`, `>a`, `<a` or the number itself."""
        fields = self.fields(folder, table)
        column = self.column(folder, table, field)
        start = next((name for name in ("start_ts", "timestamp") if name in fields), None)
        order = start or "file_row_number"
        condition, parameters = self.condition(column, fields[field], text, exact)
        path = str(self.file(folder, table))
        source = "read_parquet(?, file_row_number=true)"
        _, count = self.execute(f"SELECT count(*) FROM {source} WHERE {condition}", [path, *parameters])
        rows = self.records(
            f"SELECT file_row_number AS row, * EXCLUDE (file_row_number) FROM {source} WHERE {condition} "
            f"ORDER BY {order} LIMIT ? OFFSET ?",
            [path, *parameters, limit, offset],
        )
        return {"count": count[0][0], "rows": rows}

    @staticmethod
    def condition(column: str, kind: str, text: str, exact: bool) -> tuple[str, list]:
        if kind.startswith(("int", "uint", "float", "double")):
            text = text.strip().replace("_", "").replace(",", "")
            number = r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
            if match := re.fullmatch(rf"({number})\s*\.\.\s*({number})", text):
                return f"{column} BETWEEN ? AND ?", [_number(match[1]), _number(match[2])]
            if match := re.fullmatch(rf"(>=|<=|>|<|=)?\s*({number})", text):
                return f"{column} {match[1] or '='} ?", [_number(match[2])]
            raise QueryError(f"expected a number, a range `a..b`, `>a` or `<a` but got {text!r}")
        if exact:
            return f"CAST({column} AS VARCHAR) = ?", [text]
        return f"contains(lower(CAST({column} AS VARCHAR)), lower(?))", [text]

    def links(self, folder: Path, table: str, identifier: int, limit: int = 64) -> dict:
        """The events that this one waits for and those that wait for it, with the rows that they are."""
        try:
            path = str(self.file(folder, "Flow"))
        except QueryError:
            return {"predecessors": [], "successors": []}
        result = {}
        for side, here, there in (("predecessors", "out", "in"), ("successors", "in", "out")):
            # An edge leads from `in` (the event that comes first) to `out` (the one that depends on it).
            edges = self.records(
                f"SELECT {there}_id AS id, {there}_table AS table_name, dependency_type, gap_time FROM read_parquet(?) "
                f"WHERE {here}_id = ? AND {here}_table = ? LIMIT ?",
                [path, identifier, table, limit],
            )
            result[side] = self._with_rows(folder, edges)
        return result

    def _with_rows(self, folder: Path, edges: list[dict]) -> list[dict]:
        wanted: dict[str, list[int]] = {}
        for edge in edges:
            wanted.setdefault(edge["table_name"], []).append(int(edge["id"]))
        columns = (
            "id",
            "name",
            "opcode",
            "variable",
            "op",
            "engine",
            "queue_name",
            "start_ts",
            "end_ts",
            "duration_ns",
            "compiler_pc",
            "pc",
            "trace_event_source",
            "flow_id",
            "operands",
            "hlo_name",
        )
        found = {}
        for table, identifiers in wanted.items():
            if TABLE_NAME.fullmatch(table or "") and (folder / f"{table}.parquet").is_file():
                for record in self.by_identifier(folder, table, identifiers, columns):
                    found[table, record["id"]] = record
        return [
            {**edge, **found[edge["table_name"], edge["id"]]}
            for edge in edges
            if (edge["table_name"], edge["id"]) in found
        ]

    def dependency_chain(self, folder: Path, row: int) -> dict:
        """Events of other sources that share a flow with this one: earlier sources upstream, later ones downstream."""
        event = self.row(folder, "SystemProfileEvents", row)
        linked = self.links(folder, "SystemProfileEvents", int(event["id"]))
        if linked["predecessors"] or linked["successors"]:
            return {"event": event, "upstream": linked["predecessors"], "downstream": linked["successors"]}
        flows = event.get("flow_id") or []
        if not flows:
            return {"event": event, "upstream": [], "downstream": []}
        others = self.records(
            "SELECT file_row_number AS row, id, name, start_ts, end_ts, duration_ns, trace_event_source, flow_id "
            "FROM read_parquet(?, file_row_number=true) "
            "WHERE list_has_any(flow_id, ?::VARCHAR[]) AND file_row_number <> ? "
            "ORDER BY start_ts LIMIT 200",
            [str(self.file(folder, "SystemProfileEvents")), [str(flow) for flow in flows], row],
        )
        order = {"framework": 0, "neuron_rt": 1, "neuron_hw": 2}

        def place(record):
            return order.get(record["trace_event_source"], 0), int(record["start_ts"])

        here = place(event)
        return {
            "event": event,
            "upstream": [record for record in others if place(record) < here],
            "downstream": [record for record in others if place(record) >= here],
        }


def _number(text: str):
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)

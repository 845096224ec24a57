# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""A processed profile for readers: its folder, its device profiles, its tables through DuckDB."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import duckdb

from .schema import tables as schema_tables


class Profile:
    def __init__(self, folder: pathlib.Path | str):
        self.folder = pathlib.Path(folder)
        path = self.folder / "profile.json"
        if not path.is_file():
            raise FileNotFoundError(
                f"expected a processed profile but {self.folder} has no profile.json: neuron-explorer view -d SESSION "
                "--ingest-only makes one"
            )
        self.description: dict[str, Any] = json.loads(path.read_text())
        self.name = self.description.get("name", self.folder.name)

    @property
    def is_system(self) -> bool:
        return self.description.get("kind") == "system"

    def devices(self) -> list[pathlib.Path]:
        root = self.folder / "device"
        return sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []


def connect() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET memory_limit='2GB'; SET threads=2; SET preserve_insertion_order=true")
    return connection


def parquet(folder: pathlib.Path, table: str) -> str | None:
    """The table as a relation of DuckDB's SQL, or None when the profile has no such data."""
    path = folder / f"{table}.parquet"
    return "read_parquet('" + str(path).replace("'", "''") + "')" if path.exists() else None


def present(folder: pathlib.Path) -> Iterator[str]:
    return (name for name in schema_tables() if (folder / f"{name}.parquet").exists())


def rows(folder: pathlib.Path, table: str, query: str = "SELECT * FROM {}") -> list[dict[str, Any]]:
    relation = parquet(folder, table)
    if relation is None:
        return []
    with connect() as connection:
        result = connection.execute(query.format(relation))
        names = [column[0] for column in result.description]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def one(folder: pathlib.Path, table: str) -> dict[str, Any]:
    found = rows(folder, table, "SELECT * FROM {} LIMIT 1")
    return found[0] if found else {}

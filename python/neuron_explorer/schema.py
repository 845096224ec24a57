# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The tables of a processed profile: names, types, units, descriptions (schema.toml) and how they are written."""

from __future__ import annotations

import json
import pathlib
import re
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy
import pyarrow
import pyarrow.parquet

# The vendor's published schema that names and types follow.
SCHEMA_VERSION = "7.4.0"

_TYPES = {
    "int64": pyarrow.int64(),
    "int32": pyarrow.int32(),
    "float64": pyarrow.float64(),
    "string": pyarrow.string(),
    "bool": pyarrow.bool_(),
    "list<string>": pyarrow.list_(pyarrow.string()),
    "list<int64>": pyarrow.list_(pyarrow.int64()),
}
_ENUMERATIONS = {
    "DmaQueueType": [
        "instruction",
        "input",
        "output",
        "data",
        "software_dynamic",
        "hardware_dynamic",
        "unknown",
    ],
    "ErrorType": ["Custom Notification", "Errors", "Warnings"],
    "PerformanceMode": ["2x", "4x"],
}
_COLUMN = re.compile(r"(\w+)(!?) ([a-z0-9]+(?:<string>|<int64>)?)(?:<(\w+)>)?(?: ([A-Za-z/]+))?: (.+)")


class SchemaError(ValueError):
    """A table does not have the columns that the schema asks for."""


@dataclass(frozen=True)
class Column:
    name: str
    type: pyarrow.DataType
    type_name: str
    required: bool
    unit: str
    description: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    name: str
    description: str
    columns: tuple[Column, ...]

    def arrow(self) -> pyarrow.Schema:
        return pyarrow.schema(
            [
                pyarrow.field(
                    column.name,
                    column.type,
                    nullable=not column.required,
                    metadata={"unit": column.unit, "description": column.description},
                )
                for column in self.columns
            ]
        )


@cache
def tables() -> dict[str, Table]:
    source = tomllib.loads(pathlib.Path(__file__).with_name("schema.toml").read_text())
    result = {}
    for name, content in source.items():
        columns = []
        for text in content["columns"]:
            match = _COLUMN.fullmatch(text)
            if match is None:
                raise SchemaError(f"schema.toml: expected 'name! type unit: description' but got {text!r}")
            column, required, kind, enumeration, unit, description = match.groups()
            columns.append(
                Column(
                    column,
                    _TYPES[kind],
                    kind,
                    bool(required),
                    unit or "",
                    description,
                    tuple(_ENUMERATIONS[enumeration]) if enumeration else (),
                )
            )
        result[name] = Table(name, content["description"], tuple(columns))
    return result


def schema_fields() -> dict[str, list]:
    """The schema as the columns of the table SchemaFields."""
    rows = [(table, column) for table in tables().values() for column in table.columns]
    return {
        "table_name": [table.name for table, _ in rows],
        "table_description": [table.description for table, _ in rows],
        "field_name": [column.name for _, column in rows],
        "field_description": [column.description for _, column in rows],
        "field_type": [column.type_name for _, column in rows],
        "field_required": [column.required for _, column in rows],
        "field_unit": [column.unit or None for _, column in rows],
        "field_enum_values": [",".join(column.values) or None for _, column in rows],
    }


def describe() -> str:
    """The schema as text for people (--show-profile-schema)."""
    lines = [f"profile schema {SCHEMA_VERSION}", ""]
    for table in tables().values():
        lines.append(f"{table.name}: {table.description}")
        for column in table.columns:
            unit = f" [{column.unit}]" if column.unit else ""
            required = "" if column.required else ", optional"
            lines.append(f"  {column.name} ({column.type_name}{required}){unit}: {column.description}")
        lines.append("")
    return "\n".join(lines)


class TableWriter:
    """Writes one table in batches; memory is that of one batch."""

    # Row groups small enough that the minimum and maximum of their times prune a window.
    ROWS_PER_GROUP = 131072

    def __init__(self, folder: pathlib.Path | str, name: str):
        if name not in tables():
            raise SchemaError(f"expected a table of the schema but got {name!r}")
        self.table = tables()[name]
        self.path = pathlib.Path(folder) / f"{name}.parquet"
        self.rows = 0
        self._writer: pyarrow.parquet.ParquetWriter | None = None

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def write(self, columns: Mapping[str, Any]) -> None:
        """Appends rows. Missing optional columns are null; a missing `id` continues the count."""
        batch = self._to_arrow(columns)
        if self._writer is None:
            self._writer = pyarrow.parquet.ParquetWriter(self.path, batch.schema, **_encoding(batch.schema))
        self._writer.write_table(batch, row_group_size=self.ROWS_PER_GROUP)
        self.rows += batch.num_rows

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _to_arrow(self, columns: Mapping[str, Any]) -> pyarrow.Table:
        unknown = set(columns) - {column.name for column in self.table.columns}
        if unknown:
            raise SchemaError(f"{self.table.name}: expected columns of the schema but got {sorted(unknown)}")
        rows = len(next(iter(columns.values()))) if columns else 0
        arrays, fields = [], []
        for column in self.table.columns:
            value = columns.get(column.name)
            if value is None and column.name == "id" and column.type == pyarrow.int64():
                value = numpy.arange(self.rows, self.rows + rows, dtype=numpy.int64)
            if value is None:
                if column.required:
                    raise SchemaError(f"{self.table.name}: expected column {column.name!r} but got none")
                array = pyarrow.nulls(rows, column.type)
            else:
                array = _array(value, column)
            if len(array) != rows:
                raise SchemaError(f"{self.table.name}.{column.name}: expected {rows} rows but got {len(array)}")
            if column.required and array.null_count:
                raise SchemaError(f"{self.table.name}.{column.name}: expected no nulls but got {array.null_count}")
            arrays.append(array)
            fields.append(
                pyarrow.field(
                    column.name, array.type, metadata={"unit": column.unit, "description": column.description}
                )
            )
        return pyarrow.table(arrays, schema=pyarrow.schema(fields))


def _array(value: Any, column: Column) -> Any:
    if isinstance(value, pyarrow.Array | pyarrow.ChunkedArray):
        if pyarrow.types.is_dictionary(value.type):
            if value.type.value_type != column.type:
                raise SchemaError(f"{column.name}: expected {column.type} but got {value.type}")
            return value
        return value if value.type == column.type else value.cast(column.type)
    return pyarrow.array(value, column.type)


def _encoding(schema: pyarrow.Schema) -> dict[str, Any]:
    """Dictionaries for text only: those of integers overflow and fall back (three times slower)."""
    texts = [field.name for field in schema if _is_text(field.type)]
    deltas = {field.name: "DELTA_BINARY_PACKED" for field in schema if pyarrow.types.is_integer(field.type)}
    return {
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": texts or False,
        "column_encoding": deltas or None,
    }


def _is_text(kind: pyarrow.DataType) -> bool:
    if pyarrow.types.is_dictionary(kind):
        return True
    return pyarrow.types.is_string(kind) or (pyarrow.types.is_list(kind) and pyarrow.types.is_string(kind.value_type))


def write_table(folder: pathlib.Path | str, name: str, columns: Mapping[str, Any]) -> int:
    """Writes a whole table and returns its number of rows. Without rows no file appears."""
    if not columns or len(next(iter(columns.values()))) == 0:
        return 0
    with TableWriter(folder, name) as writer:
        writer.write(columns)
    return writer.rows


def read_table(folder: pathlib.Path | str, name: str, columns: list[str] | None = None) -> pyarrow.Table | None:
    """The table, or None when the profile has no such data."""
    path = pathlib.Path(folder) / f"{name}.parquet"
    return pyarrow.parquet.read_table(path, columns=columns) if path.exists() else None


def rows_of(folder: pathlib.Path | str, name: str) -> int:
    path = pathlib.Path(folder) / f"{name}.parquet"
    return pyarrow.parquet.read_metadata(path).num_rows if path.exists() else 0


def write_profile_json(folder: pathlib.Path | str, **fields: Any) -> None:
    """The description of a processed profile. A folder that has it is complete."""
    content = {
        "name": pathlib.Path(folder).name,
        "kind": "device",
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "tags": [],
        "favourite": False,
        "source": None,
        "schema_version": SCHEMA_VERSION,
        "status": "PROCESSED",
        "warnings": [],
        "device_profiles": [],
        **fields,
    }
    path = pathlib.Path(folder) / "profile.json"
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=2) + "\n")
    temporary.replace(path)

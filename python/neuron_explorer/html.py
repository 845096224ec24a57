# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""One self-contained HTML file of a processed profile: the browser app with the profile's tables inside it.

Every block is gzip of an Arrow stream (or of JSON) as base64 in a script element of a type that browsers do not run.
The file opens from a disk, asks for nothing else and carries a content security policy that forbids it to.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from . import drawing
from .profiles import ProfileStore

CONTENTS_VERSION = 1
APP_FILE = Path(__file__).parent / "app" / "single" / "index.html"
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' blob:; style-src 'unsafe-inline'; img-src data: blob:; "
    "font-src data:; worker-src blob:; base-uri 'none'; form-action 'none'"
)
# Columns that repeat another one or that our profiles never fill.
REPEATED = ("compiler_opcode", "compiler_operands", "compiler_pc", "bir_id", "bir_debug_info_source_location")
# Left out, from first to last, of a file that would be larger than asked for: (table, column or None for all of it).
LEAST_NEEDED = (
    ("colors-layer", None),
    ("colors-opcode", None),
    ("SemaphoreUpdate", None),
    ("SchemaFields", None),
    ("PendingDma", None),
    ("ActiveTime", None),
    ("HbmUsage", None),
    ("DmaUsage", None),
    ("Utilisation", None),
    ("DmaPacketAggregated", "semaphore_id"),
    ("DmaPacketAggregated", "throughput"),
    ("Instruction", "operands"),
    ("colors-node", None),
    ("DmaPacketAggregated", None),
    ("Flow", None),
    ("Instruction", None),
)


class ExportError(ValueError):
    """The file cannot be written as it was asked for."""


def packed(data: bytes) -> str:
    # No time stamp: the same profile gives the same file. Level 9 takes eight times as long for 2.5 % less.
    return base64.b64encode(gzip.compress(data, compresslevel=6, mtime=0)).decode()


def table_stream(table: pa.Table) -> bytes:
    """The table with texts by number and without columns that hold nothing."""
    columns, fields = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        if column.null_count == len(column) or field.name in REPEATED:
            continue
        if pa.types.is_string(field.type):
            column = column.dictionary_encode()
        columns.append(column.combine_chunks() if column.num_chunks > 1 else column)
        fields.append(pa.field(field.name, column.type))
    table = pa.table(columns, schema=pa.schema(fields)).unify_dictionaries().combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


class Contents:
    """Blocks of the file by device and use."""

    def __init__(self):
        self.blocks: dict[tuple[str, str], str] = {}
        self.left_out: dict[str, list[str]] = {}

    def size(self) -> int:
        return sum(len(block) for block in self.blocks.values())

    def add_device(self, device: str, folder: Path, kind: str) -> None:
        self.blocks[device, "slices"] = packed(drawing.slices(folder, kind))
        self.blocks[device, "counters"] = packed(drawing.counters(folder, kind))
        for by in drawing.COLOR_COLUMNS if kind == "device" else ():
            self.blocks[device, f"colors-{by}"] = packed(drawing.colors(folder, kind, by))
        for path in sorted(folder.glob("*.parquet")):
            if pq.read_metadata(path).num_rows:
                self.blocks[device, path.stem] = packed(table_stream(pq.read_table(path)))

    def shrink(self, folders: dict[str, Path], limit: int) -> None:
        for table, column in LEAST_NEEDED:
            for device, folder in folders.items():
                if self.size() <= limit:
                    return
                if (device, table) not in self.blocks:
                    continue
                if column is None:
                    del self.blocks[device, table]
                    self.left_out.setdefault(device, []).append(table)
                    continue
                data = pq.read_table(folder / f"{table}.parquet")
                gone = [name.split(".")[1] for name in self.left_out.get(device, []) if name.startswith(f"{table}.")]
                kept = [name for name in data.column_names if name != column and name not in gone]
                self.blocks[device, table] = packed(table_stream(data.select(kept)))
                self.left_out.setdefault(device, []).append(f"{table}.{column}")
        if self.size() > limit:
            raise ExportError(
                f"the drawn events alone need {self.size()} bytes, more than the {limit} bytes that the file may have: "
                "allow more, or export a single device profile"
            )


def export_html(
    profile_dir: str | os.PathLike,
    output_file: str | os.PathLike,
    device: str | None = None,
    max_bytes: int | None = None,
) -> Path:
    """Writes the profile (or one of its device profiles) as a file that any browser opens, and returns its path.

    With `max_bytes` columns and tables that views need least are left out until the file fits; the page names them. The
    timeline is always complete.
    """
    from .server import views
    from .server.query import Tables

    if not APP_FILE.is_file():
        raise ExportError("the browser app is not built: run ./dev build in the source tree")
    folder = Path(profile_dir).resolve()
    if not folder.is_dir():
        raise ExportError(f"expected the folder of a processed profile but got {profile_dir}")
    store = ProfileStore(folder.parent.parent)
    if folder.parent != store.profiles.resolve():
        raise ExportError(f"expected a folder below {store.profiles} but got {folder}")
    description = store.describe(folder.name)
    names = (["system"] if description["has_system"] else []) + description["devices"]
    if device is not None:
        if device not in names:
            raise ExportError(f"expected one of {', '.join(names)} but got {device!r}")
        names = [device]
        description["has_system"] = device == "system"
        description["devices"] = [name for name in names if name != "system"]
    if not names:
        raise ExportError(f"profile {folder.name} holds no tables: its status is {description['status']}")
    folders = {name: store.device_folder(folder.name, name) for name in names}
    contents = Contents()
    for name in names:
        contents.add_device(name, folders[name], "system" if name == "system" else "device")
    app = APP_FILE.read_text()
    if max_bytes is not None:
        # What is not a block (the app, its policy, the description) takes part of the room.
        contents.shrink(folders, max_bytes - len(app.encode()) - 65536)
    tables = Tables(store.data_path)
    try:
        numbers = {key: number for number, key in enumerate(contents.blocks)}
        devices = {}
        for name in names:
            drawn = {use: n for (owner, use), n in numbers.items() if owner == name and _is_drawn(use)}
            held = {use: n for (owner, use), n in numbers.items() if owner == name and not _is_drawn(use)}
            aggregated = name != "system"
            devices[name] = {
                "drawn": drawn,
                "tables": held,
                "operators": views.operators(tables, folders[name])["rows"] if aggregated else [],
                "lines": views.lines(tables, folders[name])["rows"] if aggregated else [],
                "left_out": contents.left_out.get(name, []),
            }
        description["tables"] = tables.names(folders["system"]) if "system" in names else {}
        description["device_tables"] = {name: tables.names(folders[name]) for name in description["devices"]}
    finally:
        tables.close()
    for name in names:
        counts = description["tables"] if name == "system" else description["device_tables"][name]
        for table in contents.left_out.get(name, []):
            counts.pop(table, None)
        if left := contents.left_out.get(name):
            description["warnings"] = [
                *description["warnings"],
                f"left out of this file to keep it small: {', '.join(left)}",
            ]
    description["annotations"] = store.annotations(folder.name)
    index = {"version": CONTENTS_VERSION, "profile": description, "devices": devices}
    blocks = [_block("explorer-contents", packed(json.dumps(index, default=str).encode()))]
    blocks += [_block(f"explorer-{number}", contents.blocks[key]) for key, number in numbers.items()]
    page = _insert(app, "".join(blocks))
    target = Path(output_file)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    temporary.write_text(page)
    os.replace(temporary, target)
    return target


def _is_drawn(use: str) -> bool:
    return use in ("slices", "counters") or use.startswith("colors-")


def _block(identifier: str, text: str) -> str:
    return f'<script type="application/octet-stream" id="{identifier}">{text}</script>\n'


def _insert(app: str, blocks: str) -> str:
    """The page with the policy first and the blocks before the app. Nothing in the app's text is interpreted."""
    head, separator, rest = app.partition("<head>")
    if not separator or '<div id="root">' not in rest:
        raise ExportError(f"{APP_FILE} is not the browser app: build it again")
    before, root, after = rest.partition('<div id="root">')
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}" />'
    return "".join((head, separator, policy, before, blocks, root, after))

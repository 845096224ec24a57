# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The files of a capture: where they are, what they hold, and what is wrong with them."""

from __future__ import annotations

import json
import pathlib
import re
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import DecodeError

from .._protos import system_trace_pb2

VERSION = 1
# A frame of Chrome's trace format of more is not read.
_MAX_TRACE_BYTES = 4 << 30
_NTFF = re.compile(r"profile_nc_(\d+)_session_(\d+)\.ntff|(\d+)_instid_\d+_vnc_(\d+)\.ntff")
_NEFF = re.compile(r"neff_(\d+)(?:_vnc_(\d+))?\.neff")


class IngestError(ValueError):
    """Files that cannot be read or do not belong together; the text says which, and what to do."""


@dataclass
class Session:
    """One folder of one process."""

    folder: pathlib.Path
    information: Any
    neffs: dict[int, pathlib.Path] = field(default_factory=dict)  # by the number in the name
    traces: list[tuple[int, int, pathlib.Path]] = field(default_factory=list)  # core, session, file
    warnings: list[tuple[str, str]] = field(default_factory=list)
    # What the programs are called, by their full hash; known where a trace has them.
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def instance(self) -> str:
        return self.information.instance_id or "local"

    @property
    def process(self) -> int:
        return self.information.process_id


def decimal_hash(neff_hash: str) -> int:
    """The number that names a NEFF in a session folder."""
    try:
        return int(neff_hash[:16], 16)
    except ValueError:
        return 0


def find_sessions(path: pathlib.Path) -> list[Session]:
    """The sessions at `path`: itself, or those of the processes and times below it."""
    if not path.exists():
        raise IngestError(f"expected a folder of a capture but {path} does not exist")
    if not path.is_dir():
        raise IngestError(
            f"expected a folder of a capture but {path} is a file; a pair of files is given with -n and -s"
        )
    folders = sorted(
        {file.parent for pattern in ("*.pb", "*.ntff", "trace.json") for file in path.rglob(pattern) if file.is_file()}
    )
    sessions = [_open(folder) for folder in folders]
    if not sessions:
        found = sorted(file.name for file in path.iterdir())[:5]
        raise IngestError(
            f"expected trace_info.pb, ntrace.pb, trace.json or .ntff files under {path} but got "
            + (f"only {', '.join(found)}" if found else "an empty folder")
            + ": the capture may have failed, or another program has written this folder"
        )
    return sessions


def _open(folder: pathlib.Path) -> Session:
    path = folder / "trace_info.pb"
    session = Session(folder, system_trace_pb2.TraceInfo())
    if path.exists():
        session.information = read_message(path, system_trace_pb2.TraceInfo)
    else:
        session.warnings.append(
            ("index", f"{folder.name} has no trace_info.pb: the capture was interrupted or had no RUNTIME mode")
        )
        if match := re.match(r"(.+)_pid_(\d+)$", folder.parent.name) or re.match(r"(.+)_pid_(\d+)$", folder.name):
            session.information.instance_id, session.information.process_id = match[1], int(match[2])
    for file in sorted(folder.iterdir()):
        if match := _NEFF.fullmatch(file.name):
            session.neffs.setdefault(int(match[1]), file)
        elif match := _NTFF.fullmatch(file.name):
            session.traces.append((int(match[1] or match[4]), int(match[2] or 0), file))
    return session


def read_message(path: pathlib.Path, kind: Any) -> Any:
    """A protobuf of ours, of a version that we know."""
    message = kind()
    content = path.read_bytes()
    if not content:
        raise IngestError(f"{path.name} is empty: the capture was interrupted; capture again")
    try:
        message.ParseFromString(content)
    except DecodeError as error:
        raise IngestError(
            f"{path.name} is not a file of this project or is damaged ({len(content)} bytes): capture again; files of "
            "the vendor's tools cannot be read"
        ) from error
    if message.version != VERSION:
        raise IngestError(
            f"{path.name}: expected version {VERSION} but got {message.version}: the file is truncated, of another "
            "program or of another version of the package"
        )
    return message


def read_chrome_trace(path: pathlib.Path) -> dict[str, Any]:
    if path.stat().st_size > _MAX_TRACE_BYTES:
        raise IngestError(f"{path.name}: expected at most {_MAX_TRACE_BYTES} bytes but got {path.stat().st_size}")
    try:
        content = json.loads(path.read_text(errors="replace"))
    except ValueError as error:
        raise IngestError(f"{path.name} is truncated or not JSON: {error}") from error
    if isinstance(content, list):
        content = {"traceEvents": content}
    if not isinstance(content, dict) or not isinstance(content.get("traceEvents"), list):
        raise IngestError(f"{path.name}: expected a Chrome trace with traceEvents")
    return content

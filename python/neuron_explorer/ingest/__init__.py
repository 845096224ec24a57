# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""From the files of a capture to the tables of a processed profile."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from .. import _decoder
from ..schema import write_profile_json
from .device import Progress, ingest_device
from .session import IngestError, Session, decimal_hash, find_sessions
from .system import HARDWARE, SystemTables

__all__ = ["Filters", "IngestError", "ingest_pair", "ingest_session"]

# Programs of one session whose phases are shown: each is compiled once more.
_MAX_PHASE_PROGRAMS = 16


@dataclass
class Filters:
    """What of a capture becomes a profile."""

    cores: set[int] | None = None
    # Names, "hardware", "software"; "^name" leaves out.
    event_types: list[str] = field(default_factory=list)
    instances: set[str] | None = None
    device: bool = True
    system: bool = True

    def keep(self, name: str, source: str, core: int | None) -> bool:
        if self.cores is not None and core is not None and core not in self.cores:
            return False
        if source == "framework" or not self.event_types:
            return True

        def matches(pattern: str) -> bool:
            if pattern == "hardware":
                return source == "neuron_hw" or name in HARDWARE
            return source == "neuron_rt" if pattern == "software" else name == pattern

        wanted = [pattern for pattern in self.event_types if not pattern.startswith("^")]
        unwanted = [pattern[1:] for pattern in self.event_types if pattern.startswith("^")]
        return (not wanted or any(map(matches, wanted))) and not any(map(matches, unwanted))


def safe_name(text: str) -> str:
    """As the name of a folder."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text).strip("._")[:120] or "profile"


def ingest_pair(
    neff: pathlib.Path | str,
    ntff: pathlib.Path | str,
    folder: pathlib.Path | str,
    *,
    name: str | None = None,
    source_roots: Iterable[str] = (),
    progress: Progress = lambda fraction, text: None,
) -> pathlib.Path:
    """A device profile from a NEFF and the trace of one of its executions."""
    folder, neff, ntff = pathlib.Path(folder), pathlib.Path(neff), pathlib.Path(ntff)
    for path in (neff, ntff):
        if not path.is_file():
            raise IngestError(f"expected a file but {path} is none")
    name = name or safe_name(neff.stem)

    def build(target: pathlib.Path) -> dict[str, Any]:
        warnings = _device(
            neff.read_bytes(),
            ntff.read_bytes(),
            target / "device" / name,
            name=name,
            roots=source_roots,
            progress=progress,
            what=f"{neff.name} and {ntff.name}",
        )
        return {"kind": "device", "source": str(ntff.resolve().parent), "warnings": warnings, "device_profiles": [name]}

    return _publish(folder, build)


def _device(
    neff: bytes,
    ntff: bytes,
    folder: pathlib.Path,
    *,
    name: str,
    roots: Iterable[str],
    progress: Progress,
    what: str,
    program_hash: str = "",
    core: int = 0,
    with_phases: bool = True,
) -> list[str]:
    try:
        return ingest_device(
            neff,
            ntff,
            folder,
            name=name,
            program_hash=program_hash,
            core=core,
            source_roots=roots,
            with_phases=with_phases,
            progress=progress,
        )
    except _decoder.ProfileError as error:
        raise IngestError(f"{what}: {error}") from error


def _publish(folder: pathlib.Path, build: Callable[[pathlib.Path], dict[str, Any]]) -> pathlib.Path:
    """Builds beside `folder` and moves into place, so that nobody sees half a profile."""
    scratch = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        description = build(scratch)
        if folder.exists():
            description |= _kept(folder, scratch)
        write_profile_json(scratch, **{"name": folder.name, **description})
        if folder.exists():
            shutil.rmtree(folder)
        scratch.rename(folder)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    return folder


def _kept(old: pathlib.Path, new: pathlib.Path) -> dict[str, Any]:
    """What people added to a profile survives that it is processed again."""
    if (old / "annotations.json").exists():
        shutil.copy2(old / "annotations.json", new / "annotations.json")
    try:
        content = json.loads((old / "profile.json").read_text())
        return {key: content[key] for key in ("tags", "favourite") if key in content}
    except (OSError, ValueError):
        return {}


def ingest_session(
    source: pathlib.Path | str,
    folder: pathlib.Path | str,
    *,
    filters: Filters | None = None,
    source_roots: Iterable[str] = (),
    progress: Progress = lambda fraction, text: None,
) -> pathlib.Path:
    """A system profile, with the device profiles of its programs, from the folder of a capture."""
    source, folder, filters = pathlib.Path(source), pathlib.Path(folder), filters or Filters()
    sessions = find_sessions(source)
    if filters.instances is not None:
        sessions = [session for session in sessions if session.instance in filters.instances]

    def build(target: pathlib.Path) -> dict[str, Any]:
        tables = SystemTables(filters.keep)
        rows: list[dict[str, Any]] = []
        warnings: list[str] = []
        for position, session in enumerate(sessions):

            def part(fraction: float, text: str, position: int = position) -> None:
                progress((position + fraction) / len(sessions), text)

            profiles = _programs(session, target, rows, filters, source_roots, part) if filters.device else {}
            if filters.system:
                tables.add(session, profiles)
            tables.warnings += session.warnings
        warnings += [text for _, text in tables.warnings]
        tables.write(target, rows)
        return {
            "kind": "system",
            "source": str(source.resolve()),
            "warnings": warnings,
            "device_profiles": [row["device_profile_name"] for row in rows],
        }

    return _publish(folder, build)


def _programs(
    session: Session,
    target: pathlib.Path,
    rows: list[dict[str, Any]],
    filters: Filters,
    roots: Iterable[str],
    progress: Progress,
) -> dict[tuple[int, str], str]:
    """Device profiles of one session; returns their names by core and hash."""
    names: dict[tuple[int, str], str] = {}
    work = []
    for core, number, path in session.traces:
        if filters.cores is not None and core not in filters.cores:
            continue
        content = path.read_bytes()
        try:
            headers = _decoder.trace_headers(content)
        except _decoder.ProfileError as error:
            raise IngestError(f"{path.name}: {error}") from error
        work += [(core, number, path, content, program) for program in headers["programs"]]
    for position, (core, number, path, content, program) in enumerate(work):
        neff = session.neffs.get(decimal_hash(program["hash"]))
        if neff is None:
            session.warnings.append(
                (
                    "pair",
                    f"{path.name} has executions of '{program['label']}' but "
                    f"neff_{decimal_hash(program['hash'])}*.neff is "
                    "missing: its device profile is left out",
                )
            )
            continue
        model = len(rows)
        name = (
            f"{safe_name(program['label'])}_{session.instance}_pid_{session.process}_nc_{core}_session_{number}"
            f"_model_{model}"
        )
        session.warnings += [
            ("device", f"{name}: {text}")
            for text in _device(
                neff.read_bytes(),
                content,
                target / "device" / name,
                name=name,
                roots=roots,
                program_hash=program["hash"],
                core=core,
                with_phases=position < _MAX_PHASE_PROGRAMS,
                progress=lambda fraction, text, position=position: progress((position + fraction) / len(work), text),
                what=f"{neff.name} and {path.name}",
            )
        ]
        names[core, program["hash"]] = name
        session.labels[program["hash"]] = program["label"]
        rows.append(
            {
                "device_profile_name": name,
                "instance_id": session.instance,
                "process_id": session.process,
                "nc_id": core,
                "session_id": number,
                "model_id": model,
            }
        )
    return names

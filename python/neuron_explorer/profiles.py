# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The data folder: processed profiles, their descriptions, and files on their way in.

    <data>/profiles/<name>/profile.json      what the profile manager lists
    <data>/profiles/<name>/*.parquet         tables of a system profile
    <data>/profiles/<name>/device/<name>/    tables of each device profile
    <data>/uploads/<name>/                   files of an upload that has not been processed

Names come from a list of allowed characters, and every path is checked to lie inside the folder and to be no link.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import time
import unicodedata
from pathlib import Path

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,149}")
FOLDER = re.compile(r"[^\s/\\]{1,100}")
UPLOAD_SUFFIXES = (".neff", ".ntff", ".pb", ".json", ".py", ".txt", ".mlir")
STATES = ("UPLOADED", "PROCESSING", "PROCESSED", "ERROR_PROCESS_INCOMPLETE")


class ProfileError(ValueError):
    """A request that the data folder refuses; the text says why and what to do."""


def default_data_path() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "neuron-explorer"


def checked_name(name: str) -> str:
    if not NAME.fullmatch(name) or ".." in name:
        raise ProfileError(
            f"expected a profile name of 1 to 150 letters, digits and _.@+- that starts with a letter, digit or _, "
            f"but got {name!r}"
        )
    return name


def suggested_name(text: str) -> str:
    """A valid name as close to the text as possible."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    plain = re.sub(r"[^A-Za-z0-9_.@+-]+", "-", plain).strip("-.+@") or "profile"
    return re.sub(r"\.{2,}", ".", plain)[:150]


class ProfileStore:
    def __init__(self, data_path: str | os.PathLike | None = None):
        self.data_path = Path(data_path or default_data_path()).expanduser()
        self.profiles = self.data_path / "profiles"
        self.uploads = self.data_path / "uploads"
        self.profiles.mkdir(parents=True, exist_ok=True)
        self.root = self.data_path.resolve()
        self.lock = threading.RLock()

    def inside(self, path: Path) -> Path:
        """The path itself if neither it nor a folder above it, up to the data folder, leads elsewhere."""
        resolved = path.resolve()
        if not resolved.is_relative_to(self.root) or resolved != self.root / path.relative_to(self.data_path):
            raise ProfileError(f"{path.name} is a link or lies outside the data folder")
        return path

    def folder(self, name: str) -> Path:
        path = self.inside(self.profiles / checked_name(name))
        if not path.is_dir():
            raise ProfileError(f"no profile is called {name!r}")
        return path

    def device_folder(self, name: str, device: str) -> Path:
        """Folder of the tables: of the system profile for the device `system`, else of a device profile."""
        folder = self.folder(name)
        if device == "system":
            return folder
        if "/" in device or device in ("", ".", "..") or "\\" in device or "\0" in device:
            raise ProfileError(f"expected the name of a device profile but got {device!r}")
        path = self.inside(folder / "device" / device)
        if not path.is_dir():
            raise ProfileError(f"profile {name!r} has no device profile {device!r}")
        return path

    def describe(self, name: str) -> dict:
        folder = self.folder(name)
        try:
            description = json.loads((folder / "profile.json").read_text())
            if not isinstance(description, dict):
                raise ValueError("expected an object")
        except (OSError, ValueError) as error:
            description = {"status": "ERROR_PROCESS_INCOMPLETE", "warnings": [f"profile.json cannot be read: {error}"]}
        description["name"] = name
        description.setdefault("status", "PROCESSED")
        for key in ("tags", "warnings"):
            if not isinstance(description.get(key), list):
                description[key] = []
        description.setdefault("kind", "system" if (folder / "SystemProfileEvents.parquet").is_file() else "device")
        description["favourite"] = bool(description.get("favourite"))
        description["has_system"] = (folder / "SystemProfileEvents.parquet").is_file()
        devices = folder / "device"
        description["devices"] = (
            sorted(entry.name for entry in devices.iterdir() if entry.is_dir()) if devices.is_dir() else []
        )
        return description

    def list(self) -> list[dict]:
        found = []
        for entry in sorted(self.profiles.iterdir()):
            if entry.is_dir() and not entry.is_symlink() and NAME.fullmatch(entry.name):
                found.append(self.describe(entry.name))
        pending = self.uploads.iterdir() if self.uploads.is_dir() else ()
        known = {entry["name"] for entry in found}
        for entry in sorted(pending):
            if entry.is_dir() and NAME.fullmatch(entry.name) and entry.name not in known:
                found.append({
                    "name": entry.name, "kind": "", "status": "UPLOADED", "tags": [], "warnings": [], "devices": [],
                    "favourite": False, "has_system": False, "created": entry.stat().st_mtime,
                })  # fmt: skip
        return found

    def update(self, name: str, changes: dict) -> dict:
        """Changes what a user may change: tags, favourite, folder."""
        with self.lock:
            folder = self.folder(name)
            path = folder / "profile.json"
            description = json.loads(path.read_text()) if path.is_file() else {}
            unknown = set(changes) - {"tags", "favourite", "folder"}
            if unknown:
                raise ProfileError(f"expected tags, favourite or folder but got {', '.join(sorted(unknown))}")
            if "tags" in changes:
                tags = changes["tags"]
                if (
                    not isinstance(tags, list)
                    or len(tags) > 50
                    or not all(isinstance(t, str) and 0 < len(t) <= 50 for t in tags)
                ):
                    raise ProfileError("expected at most 50 tags of 1 to 50 characters")
                description["tags"] = sorted(set(tags))
            if "favourite" in changes:
                description["favourite"] = bool(changes["favourite"])
            if "folder" in changes:
                label = changes["folder"]
                if label and (not isinstance(label, str) or not FOLDER.fullmatch(label)):
                    raise ProfileError("expected a folder name of at most 100 characters without spaces or slashes")
                description["folder"] = label or None
            replace_text(path, json.dumps(description, indent=1))
            return self.describe(name)

    def delete(self, name: str) -> None:
        with self.lock:
            checked_name(name)
            found = False
            for parent in (self.profiles, self.uploads):
                path = self.inside(parent / name)
                if path.is_dir():
                    found = True
                    # Renamed first, so that a listing never meets half a profile.
                    doomed = parent / f".deleted-{name}-{time.monotonic_ns()}"
                    path.rename(doomed)
                    shutil.rmtree(doomed)
            if not found:
                raise ProfileError(f"no profile is called {name!r}")

    def upload_folder(self, name: str) -> Path:
        path = self.inside(self.uploads / checked_name(name))
        path.mkdir(parents=True, exist_ok=True)
        return path

    def upload_target(self, name: str, file: str) -> Path:
        """Where a file of an upload goes; its name may hold folders, as in a session folder."""
        pieces = file.split("/")
        if len(pieces) > 6 or not all(
            re.fullmatch(r"[A-Za-z0-9_@+=-][A-Za-z0-9_.@+=-]{0,199}", piece) for piece in pieces
        ):
            raise ProfileError(f"expected a file name of letters, digits and _.@+=- but got {file!r}")
        if not pieces[-1].endswith(UPLOAD_SUFFIXES):
            raise ProfileError(f"expected a file that ends in one of {' '.join(UPLOAD_SUFFIXES)} but got {file!r}")
        target = self.upload_folder(name).joinpath(*pieces)
        self.inside(target.parent)
        target.parent.mkdir(parents=True, exist_ok=True)
        return self.inside(target)

    def discard_upload(self, name: str) -> None:
        path = self.inside(self.uploads / checked_name(name))
        if path.is_dir():
            shutil.rmtree(path)

    def annotations(self, name: str) -> list:
        path = self.folder(name) / "annotations.json"
        try:
            found = json.loads(path.read_text())
            return found if isinstance(found, list) else []
        except (OSError, ValueError):
            return []

    def save_annotations(self, name: str, annotations: list) -> None:
        if not isinstance(annotations, list) or len(annotations) > 10000:
            raise ProfileError("expected at most 10000 annotations")
        replace_text(self.inside(self.folder(name) / "annotations.json"), json.dumps(annotations))


def check_magic(path: Path) -> None:
    """Refuses files that cannot be what their name says, before anything reads them."""
    with path.open("rb") as file:
        head = file.read(64)
    if not head:
        raise ProfileError(f"{path.name} is empty: the capture did not finish, or the copy was cut short")
    if path.suffix == ".json":
        if head.lstrip()[:1] not in (b"{", b"["):
            raise ProfileError(f"{path.name} is not JSON")
    elif path.suffix == ".neff" and path.stat().st_size < 1024:
        raise ProfileError(f"{path.name} is shorter than a NEFF's header of 1024 bytes")


def replace_text(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    temporary.write_text(text)
    os.replace(temporary, path)

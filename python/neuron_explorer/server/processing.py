# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Turns an upload into a profile in a process of its own: a file that breaks the reader cannot stop the server."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from ..profiles import ProfileError, ProfileStore, checked_name

TIME_LIMIT = 3600


def processing_command(folder: Path, data_path: Path, name: str) -> list[str]:
    """What processes a folder of files: the command line's own entry, so that both ways give the same profile."""
    command = [
        sys.executable,
        "-m",
        "neuron_explorer.cli",
        "view",
        "--ingest-only",
        "--force",
        "--data-path",
        str(data_path),
        "--display-name",
        name,
    ]
    neffs, traces = sorted(folder.rglob("*.neff")), sorted(folder.rglob("*.ntff"))
    if any(folder.rglob("trace_info.pb")) or any(folder.rglob("ntrace.pb")):
        return [*command, "--session-dir", str(folder)]
    if len(neffs) == 1 and len(traces) == 1:
        return [*command, "--neff", str(neffs[0]), "--session-file", str(traces[0])]
    if neffs and traces:
        return [*command, "--session-dir", str(folder)]
    raise ProfileError(
        f"expected a NEFF and an NTFF, or a session folder with trace_info.pb, but got {len(neffs)} .neff and "
        f"{len(traces)} .ntff files"
    )


class Processing:
    def __init__(self, store: ProfileStore):
        self.store = store
        self.lock = threading.Lock()
        self._states: dict[str, dict] = {}

    def state(self, name: str) -> dict | None:
        with self.lock:
            state = self._states.get(name)
            return dict(state) if state else None

    def states(self) -> dict[str, dict]:
        with self.lock:
            return {name: dict(state) for name, state in self._states.items()}

    def running(self, name: str) -> bool:
        return (self.state(name) or {}).get("status") == "PROCESSING"

    def forget(self, name: str) -> None:
        with self.lock:
            self._states.pop(name, None)

    def start(self, name: str, options: dict) -> None:
        folder = self.store.inside(self.store.uploads / checked_name(name))
        if not folder.is_dir():
            raise ProfileError(f"nothing has been uploaded as {name!r}")
        command = processing_command(folder, self.store.data_path, name)
        with self.lock:
            if self._states.get(name, {}).get("status") == "PROCESSING":
                raise ProfileError(f"profile {name!r} is being processed already")
            if sum(state["status"] == "PROCESSING" for state in self._states.values()) >= 2:
                raise ProfileError("two profiles are being processed: wait until one has ended")
            self._states[name] = {"status": "PROCESSING", "message": ""}
        threading.Thread(target=self._run, args=(name, command, options), daemon=True).start()

    def _run(self, name: str, command: list[str], options: dict) -> None:
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=TIME_LIMIT, stdin=subprocess.DEVNULL
            )
            failed = done.returncode != 0
            message = (done.stderr or done.stdout).strip()[-4000:]
        except subprocess.TimeoutExpired:
            failed, message = True, f"processing took longer than {TIME_LIMIT} s and was stopped"
        except OSError as error:
            failed, message = True, str(error)
        if failed:
            with self.lock:
                self._states[name] = {"status": "ERROR_PROCESS_INCOMPLETE", "message": message}
            return
        changes = {key: options[key] for key in ("tags", "folder") if options.get(key)}
        try:
            if changes:
                self.store.update(name, changes)
            self.store.discard_upload(name)
        except (ProfileError, OSError) as error:
            message = str(error)
        self.forget(name)

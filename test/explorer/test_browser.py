# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The browser app: its unit tests, and every view driven in headless Chromium against the server and the HTML file."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from neuron_explorer import _decoder, html, ingest, synthetic
from neuron_explorer._node import find_node
from neuron_explorer.server.app import APP_FOLDER, create_app
from test_server import TOKEN, Server

SOURCES = Path(__file__).resolve().parents[2] / "explorer"


NODE = find_node()
CHROMIUM = shutil.which("chromium")

needs_node = pytest.mark.skipif(
    NODE is None or not (SOURCES / "node_modules").is_dir(),
    reason="Node or the packages of explorer/ are not installed",
)


@needs_node
def test_units():
    done = subprocess.run(
        [NODE, SOURCES / "node_modules" / "vitest" / "vitest.mjs", "run", "--no-color"],
        cwd=SOURCES, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@needs_node
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.skipif(not (APP_FOLDER / "index.html").is_file(), reason="the browser app is not built")
def test_views(profile, capture, pair, tmp_path):
    """Every view on profiles of the real pipeline: a session (system and devices), and a NEFF with its trace."""
    # A folder of its own: the test writes tags and annotations.
    data = tmp_path / "data"
    shutil.copytree(profile, data / "profiles" / "whole")
    ingest.ingest_pair(*pair, data / "profiles" / "one")
    another = next(path for path in capture.glob("*.neff") if path != pair[0])
    _, foreign = _decoder.execute(another.read_bytes(), {})
    trace = pair[1].read_bytes()
    damaged = {
        "mismatched": (pair[0].read_bytes(), foreign, "do not belong together"),
        "truncated": (pair[0].read_bytes(), trace[: len(trace) // 2], "truncated or damaged"),
        "version": (pair[0].read_bytes(), trace[:7] + b"\x09" + trace[8:], "expected a device trace of version 2"),
    }
    uploads = []
    for name, (neff, ntff, message) in damaged.items():
        files = [tmp_path / f"{name}.neff", tmp_path / f"{name}.ntff"]
        for file, content in zip(files, (neff, ntff), strict=True):
            file.write_bytes(content)
        uploads.append({"name": name, "files": [str(file) for file in files], "message": message})
    # Enough events for an overview before them.
    synthetic.write_device_profile(data / "profiles" / "large" / "device" / "large", 60_000)
    server = Server(create_app(data, TOKEN))
    try:
        described = {name: server.get(f"/api/profiles/{name}") for name in ("one", "whole")}
        options = {
            "address": f"http://127.0.0.1:{server.port}",
            "token": TOKEN,
            "browser": CHROMIUM,
            "device": "one",
            "deviceProfile": described["one"]["devices"][0],
            "system": "whole",
            "large": "large",
            "systemDevice": next(name for name in described["whole"]["devices"] if name.startswith("model")),
            "operator": "aten::mul",
            "layer": "2.up",
            "sourceText": "self.up(self.norm(x))",
            "session": str(capture),
            "uploads": uploads,
            "html": str(html.export_html(data / "profiles" / "whole", tmp_path / "whole.html")),
            "pictures": os.environ.get("NEURON_EXPLORER_PICTURES", ""),
        }
        done = subprocess.run(
            [NODE, SOURCES / "test" / "browser.mjs", json.dumps(options)],
            cwd=SOURCES, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
    finally:
        server.close()
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    assert done.stdout.count("\nok ") + done.stdout.startswith("ok ") >= 24, done.stdout

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
from neuron_explorer import html, synthetic
from neuron_explorer.server.app import APP_FOLDER, create_app
from test_server import TOKEN, Server

SOURCES = Path(__file__).resolve().parents[2] / "explorer"
NODE = os.environ.get("NEURON_NODE") or shutil.which("node")
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


# Needs minutes of a quiet machine.
@pytest.mark.skipif(not os.environ.get("NEURON_EXPLORER_BROWSER"), reason="NEURON_EXPLORER_BROWSER is not set")
@needs_node
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.skipif(not (APP_FOLDER / "index.html").is_file(), reason="the browser app is not built")
def test_views(tmp_path):
    # A folder of its own: the test writes tags and annotations.
    data = tmp_path / "data"
    synthetic.main(["--events", "6000", str(data / "profiles" / "one")])
    synthetic.main(["--events", "2000", "--system", "60", str(data / "profiles" / "whole")])
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
            "systemDevice": described["whole"]["devices"][0],
            "operator": "aten::mul",
            "html": str(html.export_html(data / "profiles" / "one", tmp_path / "one.html")),
            "pictures": os.environ.get("NEURON_EXPLORER_PICTURES", ""),
        }
        done = subprocess.run(
            [NODE, SOURCES / "test" / "browser.mjs", json.dumps(options)],
            cwd=SOURCES, capture_output=True, text=True, timeout=900,
        )  # fmt: skip
    finally:
        server.close()
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    assert done.stdout.count("\nok ") + done.stdout.startswith("ok ") >= 20, done.stdout

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The Explorer in a browser: first paint, frame times, size of what is loaded, size of the HTML file."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from measure import Row, progress

SOURCES = Path(__file__).resolve().parents[1] / "explorer"
# Width, height, and the longest median time of a frame.
SIZES = ((1280, 800, 17.0), (3840, 2160, 34.0))
EVENTS = 1_000_000
HTML_EVENTS = 100_000


def explorer_rows():
    from neuron_explorer import html, synthetic
    from neuron_explorer._node import find_node
    from neuron_explorer.server.app import APP_FOLDER, create_app

    if not (APP_FOLDER / "index.html").is_file():
        progress("explorer: the browser app is not built")
        return
    size = sum(len(gzip.compress(p.read_bytes(), 9)) for p in APP_FOLDER.rglob("*") if p.is_file())
    yield Row("explorer", "browser app, gzip", f"{size / 1e6:.2f} MB", "", size / 1e6, "<=", 1.0, "MB")
    with tempfile.TemporaryDirectory(prefix="explorer-bench-") as folder:
        profiles = Path(folder) / "profiles"
        synthetic.main(["--events", str(HTML_EVENTS), str(profiles / "small")])
        path = html.export_html(profiles / "small", Path(folder) / "small.html", max_bytes=5_000_000)
        megabytes = path.stat().st_size / 1e6
        contents = f"HTML file of {HTML_EVENTS} events"
        yield Row("explorer", contents, f"{megabytes:.2f} MB", "", megabytes, "<=", 5.0, "MB; limit given")
        chromium, node = shutil.which("chromium"), find_node()
        if chromium is None or node is None or not (SOURCES / "node_modules").is_dir():
            progress("explorer: no Chromium or no Node packages, frame times are not measured")
            return
        synthetic.main(["--events", str(EVENTS), str(profiles / "large")])
        yield from _frames(create_app(folder), "large", chromium, node)


def _frames(application, profile: str, chromium: str, node: str):
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(application, port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    # As after `neuron-explorer view`, which prepares the profile that it opens.
    application.state.explorer.warm(profile)
    port = server.servers[0].sockets[0].getsockname()[1]
    options = {
        "address": f"http://127.0.0.1:{port}", "profile": profile, "browser": chromium, "frames": 40,
        "sizes": [[width, height] for width, height, _ in SIZES],
    }  # fmt: skip
    try:
        done = subprocess.run([node, SOURCES / "test" / "bench.mjs", json.dumps(options)], cwd=SOURCES, text=True,
                              capture_output=True, check=True, timeout=1200)  # fmt: skip
    finally:
        server.should_exit = True
        thread.join(10)
    for found, (width, height, bar) in zip(json.loads(done.stdout), SIZES, strict=True):
        name = f"{width}x{height}, {EVENTS} events"
        seconds = found["firstPaint"] / 1e3
        yield Row("explorer", f"first paint, {name}", f"{seconds:.2f} s", "", seconds, "<=", 2.0,
                  f"s; {found['paintWork'] / 1e3:.2f} s of processor time in the browser")  # fmt: skip
        everything = found["allEvents"] / 1e3
        yield Row("explorer", f"every event in the browser, {name}", f"{everything:.2f} s", "", everything, note="s")
        fill = found["fill"]
        for gesture, frame in found["frames"].items():
            measured = f"{frame['median']:.1f} ms"
            peer = f"{fill['median']:.1f} ms"
            yield Row("explorer", f"frame, {gesture}, {name}", measured, peer, frame["median"], "<=", bar,
                      f"ms; 95 %: {frame['high']:.0f}; {frame['work']:.0f} ms of processor time, all browser processes; "
                      f"peer: a frame that fills a canvas as large as the window, {fill['work']:.0f} ms; at rest "
                      f"{found['idle']:.1f} ms a frame")  # fmt: skip

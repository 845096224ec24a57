# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The single HTML file: complete, within its limit, and asking for nothing."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re

import pyarrow.ipc
import pytest
from neuron_explorer import html

pytestmark = pytest.mark.skipif(not html.APP_FILE.is_file(), reason="the browser app is not built")


def blocks_of(path):
    text = path.read_text()
    found = re.findall(r'<script type="application/octet-stream" id="([\w-]+)">([^<]*)</script>', text)
    return text, {name: gzip.decompress(base64.b64decode(block)) for name, block in found}


def test_holds_every_table(data_folder, tmp_path):
    text, blocks = blocks_of(html.export_html(data_folder / "profiles" / "system", tmp_path / "system.html"))
    contents = json.loads(blocks["explorer-contents"])
    described = contents["profile"]
    assert set(contents["devices"]) == {"system", *described["devices"]}
    for device, held in contents["devices"].items():
        counts = described["tables"] if device == "system" else described["device_tables"][device]
        assert set(held["tables"]) == {name for name, rows in counts.items() if rows}
        for name, number in held["tables"].items():
            table = pyarrow.ipc.open_stream(io.BytesIO(blocks[f"explorer-{number}"])).read_all()
            assert table.num_rows == counts[name]
    assert text.index("Content-Security-Policy") < text.index("<script")
    markup = re.sub(r"<(script|style)[^>]*>.*?</\1>", "", text, flags=re.DOTALL)
    assert not re.search(r'(?:src|href)="(?!data:|#)', markup)
    assert not re.search(r"<script[^>]* src=|<link[^>]*stylesheet", text[: text.index('id="root"')])


def test_same_profile_gives_the_same_file(data_folder, tmp_path):
    one = html.export_html(data_folder / "profiles" / "device", tmp_path / "a.html").read_bytes()
    assert one == html.export_html(data_folder / "profiles" / "device", tmp_path / "b.html").read_bytes()


def test_leaves_out_what_is_needed_least(data_folder, tmp_path):
    full = html.export_html(data_folder / "profiles" / "device", tmp_path / "full.html").stat().st_size
    limit = full - 100_000
    path = html.export_html(data_folder / "profiles" / "device", tmp_path / "small.html", max_bytes=limit)
    assert path.stat().st_size <= limit
    _, blocks = blocks_of(path)
    contents = json.loads(blocks["explorer-contents"])
    assert any("left out of this file" in warning for warning in contents["profile"]["warnings"])
    with pytest.raises(html.ExportError, match="the drawn events alone need"):
        html.export_html(data_folder / "profiles" / "device", tmp_path / "no.html", max_bytes=1000)


def test_refuses_what_is_no_profile(tmp_path):
    with pytest.raises(html.ExportError, match="expected the folder of a processed profile"):
        html.export_html(tmp_path / "nothing", tmp_path / "x.html")

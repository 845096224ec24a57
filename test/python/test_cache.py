# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The NEFF cache on disk."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import torch
from torch_neuronx import _cache
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    tensor = torch.arange(6.0).to("neuron")
    assert (tensor * 2).cpu().tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    assert (tensor + 1).cpu().tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
print("RESULT", _cache.statistics["disk_hits"], _cache.statistics["misses"], _cache.statistics["damaged"],
      sum("NEFF cache" in str(item.message) for item in caught))
"""


def result(process) -> tuple[int, int, int, int]:
    (line,) = [line for line in process.stdout.splitlines() if line.startswith("RESULT")]
    return tuple(int(word) for word in line.split()[1:])


def files(directory) -> list[str]:
    return sorted(
        os.path.join(root, name)
        for root, _, names in os.walk(directory)
        for name in names
        if name in ("graph.neff", "metadata.json")
    )


def test_second_process_hits(run_python, tmp_path):
    cache = str(tmp_path / "cache")
    assert result(run_python(PROGRAM, TORCH_NEURONX_NEFF_CACHE_DIR=cache)) == (0, 2, 0, 0)
    assert len(files(cache)) == 4
    assert result(run_python(PROGRAM, TORCH_NEURONX_NEFF_CACHE_DIR=cache)) == (2, 0, 0, 0)
    assert not [name for name in os.listdir(cache) if name.startswith(".")]


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "metadata", "missing"])
def test_damaged_entries_are_compiled_again(run_python, tmp_path, damage):
    cache = str(tmp_path / "cache")
    run_python(PROGRAM, TORCH_NEURONX_NEFF_CACHE_DIR=cache)
    for path in files(cache):
        is_neff = path.endswith("graph.neff")
        with open(path, "rb") as file:
            content = bytearray(file.read())
        if damage == "truncate" and is_neff:
            content = content[: len(content) // 2]
        elif damage == "flip" and is_neff:
            content[len(content) // 2] ^= 1
        elif damage == "empty" and is_neff:
            content = b""
        elif damage == "metadata" and not is_neff:
            content = content.replace(b"rng_increment", b"rng_decrement")
        elif damage == "missing" and is_neff:
            os.remove(path)
            continue
        with open(path, "wb") as file:
            file.write(content)
    hits, misses, damaged, warned = result(run_python(PROGRAM, TORCH_NEURONX_NEFF_CACHE_DIR=cache))
    assert (hits, misses, warned) == (0, 2, 0)
    assert damaged == (0 if damage == "missing" else 2)
    assert result(run_python(PROGRAM, TORCH_NEURONX_NEFF_CACHE_DIR=cache))[:2] == (2, 0)


def test_entries_say_what_their_key_was_made_of(run_python, tmp_path):
    """What neuron-compile --explain-cache reads: the graph, and parts that hash to the key of the folder."""
    script = """
import json, os
import torch
from torch_neuronx import _compilation
from torch_neuronx._graph.builder import content_hash, parse

def scaled(t, weight):
    return t * weight

work = os.environ["WORK"]
function = torch.compile(scaled, backend="neuron", options={"compiler_workdir": work})
function(torch.ones(3, device="neuron"), torch.ones(3, device="neuron"))
folders = [os.path.dirname(torch.neuron.get_dynamo_metrics()[-1]["neff_path"])]
folders += [os.path.join(work, name) for name in os.listdir(work)]
assert len(folders) == 2
for folder in folders:
    key = json.load(open(os.path.join(folder, "key.json")))
    serialised = open(os.path.join(folder, "graph.pb"), "rb").read()
    graph = parse(serialised)
    assert [node.op for node in graph.nodes] == ["aten.mul.Tensor"], graph
    assert graph.locations[0].frames[-1].function == "scaled"
    assert content_hash(serialised).hex() == key["graph"]
    parts = {name: key[name] for name in ("options", "compiler", "package", "deterministic")}
    assert _compilation._key_of(content_hash(serialised), parts) == key["key"]
    assert key["options"] == {"target": "trn2"} and len(key["machine_model"]) == 32, key
assert os.path.basename(folders[0]) == key["key"]
assert os.path.getsize(os.path.join(folders[1], "graph.neff")) > 0
print("done")
"""
    process = run_python(script, TORCH_NEURONX_NEFF_CACHE_DIR=str(tmp_path / "cache"), WORK=str(tmp_path / "work"))
    assert "done" in process.stdout


def test_unwritable_directory_warns_once(run_python, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    hits, misses, _, warned = result(run_python(PROGRAM, TORCH_NEURONX_NEFF_CACHE_DIR=str(blocked / "cache")))
    assert (hits, misses, warned) == (0, 2, 1)


def test_cache_can_be_disabled(run_python, tmp_path):
    cache = str(tmp_path / "cache")
    process = run_python(PROGRAM, TORCH_NEURONX_NEFF_CACHE_DIR=cache, TORCH_NEURONX_DISABLE_NEFF_CACHE="1")
    assert result(process) == (0, 2, 0, 0)
    assert not os.path.exists(cache)


def test_options_are_part_of_the_key(run_python, tmp_path):
    cache = str(tmp_path / "cache")
    run_python(PROGRAM, TORCH_NEURONX_NEFF_CACHE_DIR=cache, NEURON_PLATFORM_TARGET_OVERRIDE="trn2")
    other = run_python(PROGRAM, TORCH_NEURONX_NEFF_CACHE_DIR=cache, NEURON_PLATFORM_TARGET_OVERRIDE="trn1")
    assert result(other)[:2] == (0, 2)
    same = run_python(PROGRAM, TORCH_NEURONX_NEFF_CACHE_DIR=cache, NEURON_PLATFORM_TARGET_OVERRIDE="trn2")
    assert result(same)[:2] == (2, 0)
    wrong = run_python(PROGRAM, check=False, TORCH_NEURONX_NEFF_CACHE_DIR=cache, NEURON_PLATFORM_TARGET_OVERRIDE="trn9")
    assert wrong.returncode != 0 and "trn9" in wrong.stderr


def test_concurrent_processes(run_python, tmp_path):
    cache = str(tmp_path / "cache")
    run_python(PROGRAM, TORCH_NEURONX_NEFF_CACHE_DIR=str(tmp_path / "warm"))  # writes script.py
    environment = dict(os.environ, TORCH_NEURONX_NEFF_CACHE_DIR=cache)
    environment["PYTHONPATH"] = os.pathsep.join(
        [os.path.join(os.path.dirname(__file__), "double"), environment.get("PYTHONPATH", "")]
    )
    processes = [
        subprocess.Popen(
            [sys.executable, str(tmp_path / "script.py")], env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for process in processes:
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0 and "RESULT" in output
    assert len(files(cache)) == 4
    leftovers = [name for root, folders, _ in os.walk(cache) for name in folders if name.startswith(".")]
    assert leftovers == []


def test_artifacts_are_preserved_on_request(run_python, tmp_path):
    run_python(
        PROGRAM,
        TORCH_NEURONX_NEFF_CACHE_DIR=str(tmp_path / "cache"),
        TORCH_NEURONX_PRESERVE_COMPILATION_ARTIFACTS="1",
        TORCH_NEURONX_DEBUG_DIR=str(tmp_path / "debug"),
    )
    assert len(os.listdir(tmp_path / "debug" / "neff" / "proc_0")) == 2
    names = os.listdir(tmp_path / "debug" / "graph_def" / "proc_0")
    kinds = sorted(name.split(".", 3)[-1] for name in names)
    assert kinds == 2 * ["graphdef"] + 2 * ["graphdef.txt"] + 2 * ["key.json"]

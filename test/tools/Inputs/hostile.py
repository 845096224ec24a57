# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Foreign and hostile files against the tools: every one is an error with a message, soon and in little memory.

usage: hostile.py GOOD_NEFF GOOD_GRAPH DIRECTORY
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import pathlib
import resource
import struct
import subprocess
import sys
import tarfile

HEADER = 1024
# Address space of a tool: the compiler's libraries alone take a quarter of it.
MEMORY = 3 << 30
SECONDS = 120


def container(payload: bytes) -> bytes:
    """The payload in the header of the good file, with size and hash to match."""
    header = bytearray(good[:HEADER])
    struct.pack_into("<Q", header, 16, len(payload))
    header[172:188] = hashlib.md5(payload).digest()
    return bytes(header) + payload


def archive(members: list[tuple[str, bytes]], mode: str = "w:gz") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode, format=tarfile.GNU_FORMAT) as tar:
        for name, data in members:
            information = tarfile.TarInfo(name)
            information.size = len(data)
            tar.addfile(information, io.BytesIO(data))
    return buffer.getvalue()


def with_member(name: str, data: bytes) -> bytes:
    return container(archive([(n, data if n == name else d) for n, d in members]))


def with_numbers(name: str, value) -> bytes:
    """The member with every number above 3 replaced."""

    def changed(item):
        if isinstance(item, dict):
            return {key: changed(part) for key, part in item.items()}
        if isinstance(item, list):
            return [changed(part) for part in item]
        return value if type(item) is int and item > 3 else item

    (text,) = [data for member, data in members if member == name]
    return with_member(name, json.dumps(changed(json.loads(text))).encode())


def claims(size: int) -> bytes:
    """An archive whose only member says it has so many bytes."""
    information = tarfile.TarInfo("kelf-0.json")
    information.size = size
    return container(information.tobuf(tarfile.GNU_FORMAT) + bytes(1024))


def bomb(size: int) -> bytes:
    information = tarfile.TarInfo("kelf-0.json")
    information.size = size
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=1) as file:
        file.write(information.tobuf(tarfile.GNU_FORMAT))
        for _ in range(size >> 20):
            file.write(bytes(1 << 20))
    return container(buffer.getvalue())


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


good = pathlib.Path(sys.argv[1]).read_bytes()
graph = pathlib.Path(sys.argv[2]).read_bytes()
with tarfile.open(fileobj=io.BytesIO(good[HEADER:])) as tar:
    members = [(item.name, tar.extractfile(item).read()) for item in tar if item.isfile()]
folder = pathlib.Path(sys.argv[3])
folder.mkdir(exist_ok=True)

neffs = {
    "empty": b"",
    "zeros": bytes(1 << 20),
    "text": b"this is not a NEFF\n" * 200,
    "header-only": good[:HEADER],
    "half": good[: len(good) // 2],
    "cut": good[:-7],
    "noise": container(bytes(range(256)) * 20),
    "no-tar": container(gzip.compress(bytes(1 << 20))),
    "claims-terabyte": claims(1 << 40),
    "claims-all": claims((1 << 63) - 1),
    "bomb": bomb(1 << 30),
    "parent-path": container(archive([*members, ("../../outside", b"x")])),
    "absolute-path": container(archive([*members, ("/outside", b"x")])),
    "twice": container(archive([*members, members[0]])),
    "no-members": container(archive([])),
    "nested-lists": with_member("kelf-0.json", b"[" * 3_000_000),
    "nested-objects": with_member("sg00/def.json", b'{"a":' * 1_000_000),
    "no-json": with_member("sg00/def.json", b"{nope"),
    "other-vendor": good[:544] + struct.pack("<Q", 0x80) + good[552:],
    **{
        f"numbers-{label}": with_numbers("sg00/def.json", value)
        for label, value in {
            "huge": 1 << 62,
            "negative": -7,
            "beyond": 1 << 64,
            "real": 1e300,
            "text": "x",
            "none": None,
        }.items()
    },
}
streams = [(name, data) for name, data in members if name.endswith(".bin") and len(data) > 256]
name, data = max(streams, key=lambda item: len(item[1]))
for offset in range(0, 160, 8):
    neffs[f"stream-{offset}"] = with_member(
        name, data[:offset] + b"\xff\xff\xff\x7f\xff\xff\xff\x7f" + data[offset + 8 :]
    )

graphs = {
    "empty": b"",
    "zeros": bytes(1000),
    "text": b"this is not a graph\n" * 50,
    "half": graph[: len(graph) // 2],
    "cut": graph[:-1],
    "claims": varint(6 << 3 | 2) + varint(1 << 62),
    "a-million-nodes": varint(1 << 3) + varint(1) + field(6, b"") * 1_000_000,
    "deep": None,
    "large-tensor": graph.replace(varint(300), varint((1 << 62) + 44)),
    "neff": good,
}
deep = b""
for _ in range(3000):
    deep = field(1, field(6, deep)) if deep else field(1, b"")
graphs["deep"] = varint(1 << 3) + varint(1) + field(6, field(2, deep))

texts = {
    "empty.mlir": b"",
    "noise.mlir": bytes(range(256)) * 16,
    "text.mlir": b"module {" * 5000,
    "nested.mlir": b"module { func.func @main() { " + b"scf.if %0 { " * 20000,
    "types.mlir": b"func.func @f(%a: " + b"tensor<" * 50000,
    "sizes.mlir": b"func.func @f(%a: tensor<9999999999999999999999x2xf32>) { return }",
}


def limits() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


problems = []


def expect_error(what: str, *command: object) -> None:
    try:
        done = subprocess.run(
            [str(part) for part in command],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=SECONDS,
            preexec_fn=limits,
        )
    except subprocess.TimeoutExpired:
        problems.append(f"{what}: runs for more than {SECONDS} s")
        return
    text = (done.stdout + done.stderr).decode(errors="replace")
    if not 0 < done.returncode < 126 or not text.strip() or len(text) > 20000 or "PLEASE submit a bug report" in text:
        problems.append(f"{what}: exit code {done.returncode}, {len(text)} characters: {text[:300]}")


def write(name: str, content: bytes) -> pathlib.Path:
    path = folder / name
    path.write_bytes(content)
    return path


directory = folder / "directory"
directory.mkdir(exist_ok=True)
for label, content in neffs.items():
    file = write(f"{label}.neff", content)
    expect_error(f"neuron-run {label}", "neuron-run", file, "--random-inputs", 1)
    if label in ("bomb", "claims-all", "parent-path", "zeros", "half"):
        expect_error(f"neuron-translate {label}", "neuron-translate", "--print-graph", file)
        expect_error(f"neuron-packager {label}", "neuron-packager", "unpack", "-o", folder / "out", file)
for label, content in graphs.items():
    file = write(f"{label}.pb", content)
    expect_error(f"neuron-compile {label}", "neuron-compile", file, "-o", folder / "x.neff")
    if label in ("claims", "deep", "zeros"):
        expect_error(f"neuron-translate {label}.pb", "neuron-translate", "--import-graph", file)
for label, content in texts.items():
    file = write(label, content)
    for phase in ("kernels", "emit"):
        expect_error(
            f"neuron-compile {label} {phase}", "neuron-compile", file, "--compile-from", phase, "-o", folder / "x.neff"
        )
for missing in (directory, folder / "missing", "/proc/self/mem"):
    expect_error(f"neuron-run {missing}", "neuron-run", missing, "--random-inputs", 1)
    expect_error(f"neuron-compile {missing}", "neuron-compile", missing, "-o", folder / "x.neff")
    expect_error(f"neuron-translate {missing}", "neuron-translate", "--print-graph", missing)
    expect_error(f"neuron-packager {missing}", "neuron-packager", "info", missing)
assert not os.path.exists(folder.parent / "outside") and not os.path.exists("/outside")
print("\n".join(problems) or f"{len(neffs) + len(graphs) + len(texts)} files refused")
sys.exit(1 if problems else 0)

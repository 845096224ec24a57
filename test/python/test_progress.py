# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The line that shows how far a long compilation is."""

from __future__ import annotations

import pytest
from big_graph import BIG_GRAPH

pytestmark = pytest.mark.real

# Compilations with standard error on a terminal, whose text is kept. Sizes grow until one takes long enough.
ON_A_TERMINAL = (
    BIG_GRAPH
    + r"""
import functools, os, pty, re, signal, threading, time
from torch_neuronx import _compilation, _environment

os.environ["TORCH_NEURONX_DISABLE_NEFF_CACHE"] = "1"
os.environ["TERM"] = "xterm"
os.environ.pop("TORCH_NEURONX_PROGRESS", None)
terminal, standard_error = pty.openpty()
pipe = os.pipe()
ERASE = "\r\x1b[K"


graph = functools.cache(big_graph)


def compile(nodes):
    definition = graph(nodes)
    _compilation.clear_memory()
    started = time.monotonic()
    _compilation.compile_graph(definition, _environment.compile_options())
    return time.monotonic() - started


def shown(work, reader, writer, interrupt=False):
    # What the work writes to standard error, while it is `writer`. It may be interrupted at its first word.
    text, stop, kept = [], "<end>", os.dup(2)

    def read():
        while not "".join(text).endswith(stop):
            text.append(os.read(reader, 4096).decode())
            if interrupt and len(text) == 1:
                os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=read)
    thread.start()
    os.dup2(writer, 2)
    try:
        work()
    finally:
        os.dup2(kept, 2)
        os.write(writer, stop.encode())
        thread.join()
    return "".join(text).removesuffix(stop)


assert shown(lambda: compile(3), terminal, standard_error) == "", "a short compilation shows nothing"
size = 4000
while compile(size) < 1.5:
    size *= 2

text = shown(lambda: compile(size), terminal, standard_error)
assert text.startswith(ERASE) and text.endswith(ERASE) and "\n" not in text, text
lines = text.split(ERASE)[1:-1]
form = re.compile(r"neuron compiles: [a-z]+, ([a-z]+ \d+ of \d+, )?\d+\.\d s")
assert lines and all(map(form.fullmatch, lines)), lines
assert any(" of " in line for line in lines), lines
assert float(re.search(r"([0-9.]+) s$", lines[0])[1]) >= 1, lines[0]

os.environ["TORCH_NEURONX_PROGRESS"] = "0"
assert shown(lambda: compile(size), terminal, standard_error) == ""
del os.environ["TORCH_NEURONX_PROGRESS"]
assert shown(lambda: compile(size), *pipe) == "", "not a terminal"
os.environ["TORCH_NEURONX_PROGRESS"] = "1"
assert "neuron compiles: " in shown(lambda: compile(size), *pipe)
del os.environ["TORCH_NEURONX_PROGRESS"]


def interrupted():
    try:
        compile(3 * size)
    except KeyboardInterrupt:
        print("interrupted")


text = shown(interrupted, terminal, standard_error, interrupt=True)
assert "neuron compiles: " in text and text.endswith(ERASE), text
print("erased")
"""
)


def test_long_compilation_shows_a_line(run_python):
    assert run_python(ON_A_TERMINAL).stdout.split() == ["interrupted", "erased"]

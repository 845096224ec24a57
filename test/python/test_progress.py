# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The line that shows how far a long compilation or execution is."""

from __future__ import annotations

import os

import pytest
from big_graph import BIG_GRAPH

pytestmark = pytest.mark.real

# What work writes to standard error, while that is a terminal.
TERMINAL = r"""
import os, pty, re, signal, threading, time

os.environ["TORCH_NEURONX_DISABLE_NEFF_CACHE"] = "1"
os.environ["TERM"] = "xterm"
os.environ.pop("TORCH_NEURONX_PROGRESS", None)
terminal, standard_error = pty.openpty()
pipe = os.pipe()
ERASE = "\r\x1b[K"


def shown(work, reader=terminal, writer=standard_error, interrupt=False):
    # It may be interrupted at its first word.
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


def lines(text):
    # One after the other in the same place; nothing is left of them.
    assert text.startswith(ERASE) and text.endswith(ERASE) and "\n" not in text, text
    return text.split(ERASE)[1:-1]


def seconds(work):
    started = time.monotonic()
    work()
    return time.monotonic() - started
"""

# Sizes grow until a compilation takes long enough.
COMPILING = (
    TERMINAL
    + BIG_GRAPH
    + r"""
import functools
from torch_neuronx import _compilation, _environment

graph = functools.cache(big_graph)


def compile(nodes):
    definition = graph(nodes)
    _compilation.clear_memory()
    return seconds(lambda: _compilation.compile_graph(definition, _environment.compile_options()))


assert shown(lambda: compile(3)) == "", "a short compilation shows nothing"
size = 4000
while compile(size) < 1.5:
    size *= 2

found = lines(shown(lambda: compile(size)))
form = re.compile(r"neuron compiles: [a-z]+, ([a-z]+ \d+ of \d+, )?\d+\.\d s")
assert found and all(map(form.fullmatch, found)), found
assert any(" of " in line for line in found), found
assert float(re.search(r"([0-9.]+) s$", found[0])[1]) >= 1, found[0]

os.environ["TORCH_NEURONX_PROGRESS"] = "0"
assert shown(lambda: compile(size)) == ""
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


text = shown(interrupted, interrupt=True)
assert "neuron compiles: " in text and text.endswith(ERASE), text
print("erased")
"""
)


def test_long_compilation_shows_a_line(run_python):
    assert run_python(COMPILING).stdout.split() == ["interrupted", "erased"]


# The commands, on a graph that takes long enough to compile and as many executions as take long enough.
COMMANDS = (
    TERMINAL
    + BIG_GRAPH
    + r"""
import subprocess

folder = os.environ["NEURON_BIN_DIR"]


def command(name, *arguments):
    subprocess.run([os.path.join(folder, name), *arguments], check=True, stdout=subprocess.DEVNULL)


def compile(nodes):
    with open("graph.pb", "wb") as file:
        file.write(big_graph(nodes))
    return lambda: command("neuron-compile", "graph.pb", "-o", "graph.neff")


def execute(times):
    return lambda: command("neuron-run", "graph.neff", "--random-inputs", "1", "--repeat", str(times))


size = 4000
while seconds(compile(size)) < 2:
    size *= 2
found = lines(shown(compile(size)))
assert found and all(line.startswith("neuron compiles: ") for line in found), found

assert shown(execute(1)) == "", "a short execution shows nothing"
times = 50
while seconds(execute(times)) < 3:
    times *= 2
found = lines(shown(execute(times)))
form = re.compile(
    r"neuron-run executes: \d+ % of [0-9.]+( thousand| million)? instructions, (about \d+ s left, )?\d+\.\d s"
)
assert found and all(map(form.fullmatch, found)), found
shares = [int(re.search(r"(\d+) %", line)[1]) for line in found]
assert shares == sorted(shares) and 0 < shares[-1] <= 100, shares
assert "left" in found[-1], found[-1]
print("shown")
"""
)


def test_commands_show_a_line(run_python):
    if "NEURON_BIN_DIR" not in os.environ:
        pytest.skip("NEURON_BIN_DIR, the folder of the commands, is not set")
    assert run_python(COMMANDS).stdout.split() == ["shown"]


# Waits for executions that together take long enough.
WAITING = (
    TERMINAL
    + r"""
import torch

a = torch.randn(512, 512).to("neuron")


def multiply(times):
    for _ in range(times):
        a @ a
    torch.neuron.synchronize()


multiply(1)
assert shown(lambda: multiply(1)) == "", "a short wait shows nothing"
times = 10
while seconds(lambda: multiply(times)) < 2.5:
    times *= 2
found = lines(shown(lambda: multiply(times)))
form = re.compile(r"neuron:0 executes: (aten\.mm\.default(, [^,]+instructions)?, )?(\d+ more in the queue, )?\d+\.\d s")
assert found and all(map(form.fullmatch, found)), found
waiting = [int(number) for number in re.findall(r"(\d+) more", " ".join(found))]
assert waiting == sorted(waiting, reverse=True) and waiting[0] < times, waiting
assert "mm.default" in " ".join(found)
os.environ["TORCH_NEURONX_PROGRESS"] = "0"
assert shown(lambda: multiply(times)) == ""
print("shown")
"""
)


def test_long_waits_for_the_device_show_a_line(run_python):
    assert run_python(WAITING).stdout.split() == ["shown"]

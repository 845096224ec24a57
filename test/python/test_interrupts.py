# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Ctrl-C and sudden death: while the device computes, while the compiler works, while a program is stored."""

from __future__ import annotations

import os
import signal

import pytest
from big_graph import BIG_GRAPH

pytestmark = pytest.mark.real

# Each wait is interrupted while the device works; what was enqueued still completes, and right.
WAITS = """
import os, signal, threading, time
import torch

left, right = torch.randn(512, 512), torch.randn(512, 512)
a, b = left.to("neuron"), right.to("neuron")
expected = left @ right
destination = torch.empty(2, 2)
source = torch.zeros(1 << 20)
one = torch.ones(2, 2, device="neuron")
event = torch.neuron.Event()
a @ b
torch.neuron.synchronize()
started = time.perf_counter()
for _ in range(8):
    a @ b
torch.neuron.synchronize()
# A second of work: far longer than the waits sleep between two looks at signals.
count = max(16, int(8 / (time.perf_counter() - started)))

def enqueue_much():
    for _ in range(count):
        result = a @ b
    return result

def fill_the_queue():
    for _ in range(10000):
        one.add(1)

def wait_for_event():
    event.record()
    event.synchronize()

def copy_behind_pending_work():
    torch.empty(1 << 20, device="neuron").copy_(source)

ways = {
    "synchronize": lambda result: torch.neuron.synchronize(),
    "item": lambda result: result[0, 0].item(),
    "cpu": lambda result: result.cpu(),
    "copy": lambda result: destination.copy_(one),
    "host to device": lambda result: copy_behind_pending_work(),
    "event": lambda result: wait_for_event(),
    "stream": lambda result: torch.neuron.current_stream().synchronize(),
    "back pressure": lambda result: fill_the_queue(),
    "empty cache": lambda result: torch.neuron.empty_cache(),
}
from torch_neuronx import _C
for name, wait in ways.items():
    result = enqueue_much()
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        wait(result)
    except KeyboardInterrupt:
        submitted, completed = _C.queue_position(0)
        assert completed < submitted, f"{name}: the interrupt came when all was done"
        print(name)
    else:
        raise AssertionError(f"{name}: no interrupt")
    torch.testing.assert_close(result.cpu(), expected, rtol=1e-4, atol=1e-3)
    assert (one + 1).sum().item() == 8
"""


def test_waits_end_at_an_interrupt_and_work_goes_on(run_python):
    process = run_python(WAITS)
    assert process.stdout.splitlines() == [
        "synchronize", "item", "cpu", "copy", "host to device", "event", "stream", "back pressure", "empty cache"
    ]  # fmt: skip


def test_process_interrupted_in_a_wait_ends_at_once(run_python):
    # Far more work than the time limit of the test allows to wait for.
    process = run_python(
        """
        import os, signal, threading
        import torch

        a = torch.ones(1024, 1024, device="neuron")
        result = torch.empty_like(a)
        for _ in range(3000):
            torch.mm(a, a, out=result)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        torch.neuron.synchronize()
        """,
        check=False,
    )
    assert process.returncode == -signal.SIGINT
    assert process.stderr.rstrip().endswith("KeyboardInterrupt")


COMPILING = (
    BIG_GRAPH
    + """
import os, signal, sys, threading
from torch_neuronx import _cache, _compilation, _environment

def compile_small():
    x = torch.arange(6.0)
    torch.testing.assert_close(torch.exp(x.to("neuron")).cpu(), torch.exp(x))
"""
)

INTERRUPTED_COMPILATION = (
    COMPILING
    + """
graph = big_graph(60000)
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    _compilation.compile_graph(graph, _environment.compile_options())
except KeyboardInterrupt:
    print("interrupted")
assert _cache.statistics["writes"] == 0, "the compilation ended before the interrupt"
found = [name for _, _, names in os.walk(os.environ["TORCH_NEURONX_NEFF_CACHE_DIR"]) for name in names]
assert all(name.startswith("compiler-") for name in found), found
compile_small()
print("computed")
"""
)


def test_interrupt_during_compilation(run_python, tmp_path):
    process = run_python(INTERRUPTED_COMPILATION, TORCH_NEURONX_NEFF_CACHE_DIR=str(tmp_path / "cache"))
    assert process.stdout.split() == ["interrupted", "computed"]


KILLED = {
    # By the system, somewhere in the compiler.
    "compiling": "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start()\n"
    "_compilation.compile_graph(big_graph(60000), _environment.compile_options())\n",
    # With the entry complete but not yet in its place, and with half of it written.
    "before the rename": "os.rename = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)\ncompile_small()\n",
    "between the files": "os.fsync = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)\ncompile_small()\n",
}


@pytest.mark.parametrize("moment", KILLED)
def test_killed_process_leaves_a_usable_cache(run_python, tmp_path, moment):
    cache = tmp_path / "cache"
    process = run_python(COMPILING + KILLED[moment], check=False, TORCH_NEURONX_NEFF_CACHE_DIR=str(cache))
    assert process.returncode == -signal.SIGKILL
    abandoned = [path for path in cache.glob("*/.*")]
    assert bool(abandoned) == (moment != "compiling")
    for path in abandoned:
        # An hour ago, as far as the next process can see.
        os.utime(path, (path.stat().st_mtime - 7200,) * 2)
    use = COMPILING + 'compile_small()\nprint(_cache.statistics["disk_hits"], _cache.statistics["damaged"])\n'
    first = run_python(use, TORCH_NEURONX_NEFF_CACHE_DIR=str(cache))
    second = run_python(use, TORCH_NEURONX_NEFF_CACHE_DIR=str(cache))
    assert (first.stdout.split(), second.stdout.split()) == (["0", "0"], ["1", "0"])
    assert not any(path.exists() for path in abandoned)


# The main thread sits in the autograd engine, which knows no signals; a thread of the engine waits for the device.
BACKWARD = """
import os, signal, sys, threading, time
import torch

class Wait(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()
    @staticmethod
    def backward(context, gradient):
        assert threading.current_thread() is not threading.main_thread()
        return gradient * gradient.sum().item()

class Plain(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()
    @staticmethod
    def backward(context, gradient):
        # More than the queue takes at once.
        for _ in range(10000):
            gradient = gradient + 1
        return gradient

factor = torch.eye(512, device="neuron")
x = torch.ones(512, 512, device="neuron", requires_grad=True)

def loss_of(count, wait=Wait):
    value = wait.apply(x)
    for _ in range(count):
        value = value @ factor
    return value.sum()

def seconds_of_a_round():
    x.grad = None
    started = time.perf_counter()
    loss_of(16).backward()
    torch.neuron.synchronize()
    return time.perf_counter() - started

seconds_of_a_round()
# Two seconds of work, by the fastest of some rounds, because other processes may end: far longer than the wait sleeps
# between two looks at the signal.
count = max(16, int(2 * 16 / min(seconds_of_a_round() for _ in range(5))))
gradient = x.grad.cpu()
x.grad = None

def interrupt_soon():
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()

def position():
    from torch_neuronx import _C
    return _C.queue_position(0)
"""


def test_wait_within_backward_ends_at_an_interrupt(run_python):
    process = run_python(
        BACKWARD
        + """
for wait in (Wait, Plain):
    for function in (lambda loss: loss.backward(), lambda loss: torch.autograd.grad(loss, x)):
        loss = loss_of(count, wait)
        torch.neuron.synchronize()
        interrupt_soon()
        try:
            function(loss)
        except KeyboardInterrupt:
            submitted, completed = position()
            # A signal that is still to be handled would raise once more here.
            for _ in range(1000):
                time.sleep(0)
            assert completed < submitted, "the interrupt came when all was done"
            print("interrupted")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        torch.neuron.synchronize()
x.grad = None
loss_of(16).backward()
torch.testing.assert_close(x.grad.cpu(), gradient)
interrupt_soon()
try:
    time.sleep(5)
except KeyboardInterrupt:
    print("handler in place")
"""
    )
    assert process.stdout.splitlines() == ["interrupted"] * 4 + ["handler in place"]


def test_handler_of_the_user_outlives_a_wait_within_backward(run_python):
    process = run_python(
        BACKWARD
        + """
def handler(number, frame):
    print("handler")

signal.signal(signal.SIGINT, handler)
loss = loss_of(count)
torch.neuron.synchronize()
interrupt_soon()
loss.backward()
print("done")
assert signal.getsignal(signal.SIGINT) is handler
# PyTorch's engine lets go of Python objects after backward() has returned; an interpreter that ends first aborts its thread.
time.sleep(0.5)
"""
    )
    # In PyTorch's engine no handler of Python runs; the signal is kept until it ends.
    assert process.stdout.splitlines() == ["handler", "done"]


def test_interrupt_reaches_a_main_thread_that_waits_elsewhere(run_python):
    process = run_python(
        BACKWARD
        + """
loss = loss_of(count)
torch.neuron.synchronize()
finished = threading.Event()

def work():
    loss.backward()
    finished.set()

threading.Thread(target=work).start()
interrupt_soon()
try:
    finished.wait()
except KeyboardInterrupt:
    print("main thread")
finished.wait()
torch.neuron.synchronize()
print(x.grad.isfinite().all().item())
"""
    )
    assert process.stdout.splitlines() == ["main thread", "True"]

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Whole graphs: sizes that vary, results that are not tensors, depth, chains, constants, the cache."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import textwrap

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from checking import BF16, F32, case, check, check_all, compile, sample


def test_sizes_that_vary():
    """One function at many batch and sequence lengths, dynamic: right at each (aws-neuron/aws-neuron-sdk#564)."""
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16))
    device = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16)).to("neuron")
    device.load_state_dict(model.state_dict())
    run = compile(lambda t: device(t).softmax(1).mean(1), dynamic=True)
    with torch.no_grad():
        for batch, length in ((2, 5), (3, 6), (1, 1), (4, 17), (2, 5), (130, 3)):
            x = torch.randn(batch, length, 8)
            torch.testing.assert_close(run(x.to("neuron")).cpu(), model(x).softmax(1).mean(1), rtol=1e-4, atol=1e-5)


def test_captures_stay_bounded():
    """Many lengths through one dynamic function make one or two captures, a program a size (aws-neuron/aws-neuron-sdk#783)."""
    torch.neuron.reset_dynamo_metrics()
    before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    run = compile(lambda t: torch.full((t.shape[1],) * 2, 1.0, device=t.device) * t.sum(), dynamic=True)
    for length in [*range(3, 12), 5, 7, 3]:
        assert torch.equal(
            run(torch.ones(2, length, device="neuron")).cpu(), torch.full((length, length), 2.0 * length)
        )
    records = torch.neuron.get_dynamo_metrics()
    assert len(records) == len({record["neff_hash"] for record in records}) <= 10
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] - before <= 2


def test_integers_among_the_results():
    """Sizes and expressions of sizes are returned as integers (pytorch/TensorRT#3448)."""
    run = compile(lambda t: (t.shape[0] * 2, t + t.shape[0], t.numel(), None, "text", 2.5), dynamic=True)
    for rows in (3, 4):
        twice, tensor, count, nothing, text, number = run(torch.ones(rows, 2, device="neuron"))
        assert (twice, count, nothing, text, number) == (2 * rows, 2 * rows, None, "text", 2.5)
        assert tensor.cpu()[0, 0] == 1 + rows


def test_python_numbers_as_arguments():
    """int, float and bool arguments of the compiled function."""
    x = torch.randn(5)
    for i, f, flag in ((2, 0.5, True), (3, 0.25, True), (3, 1e10, False), (-1, -0.0, True), (2**40, 1e-30, True)):
        run = compile(lambda t, i, f, flag: t * i + f if flag else t - f)
        torch.testing.assert_close(run(x.to("neuron"), i, f, flag).cpu(), x * i + f if flag else x - f)


def test_python_numbers_that_vary():
    """A float argument that differs from call to call, as a learning rate does, of one compiled function."""
    run = compile(lambda t, f: t * f, dynamic=None)
    x = torch.randn(5)
    for f in (0.5, 0.25, 1e10, -0.0):
        torch.testing.assert_close(run(x.to("neuron"), f).cpu(), x * f)


def test_arithmetic_on_numbers_that_vary():
    """What follows from float arguments is computed in double precision, as eager does: bias corrections of an optimizer,
    exponents, gradients; two captures at most."""

    def step(parameter, gradient, rate, beta):
        parameter.sub_(gradient * rate / (1 - beta))
        return (parameter * beta**2).sum()

    before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    run = compile(step, dynamic=None)
    for number in range(4):
        host, gradient = torch.randn(4), torch.randn(4)
        device = host.to("neuron")
        numbers = (0.1 / (number + 1), 1 - 1e-7 * (number + 1))
        torch.testing.assert_close(run(device, gradient.to("neuron"), *numbers).cpu(), step(host, gradient, *numbers))
        torch.testing.assert_close(device.cpu(), host)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] - before <= 2

    def function(t, f):
        return (t * f + f * f).sum(), f * 2 + 1

    run = compile(function, dynamic=None)
    for f in (0.5, 0.25, -3.0):
        host = torch.randn(5, requires_grad=True)
        device = host.detach().to("neuron").requires_grad_()
        (want, number), (got, same) = function(host, f), run(device, f)
        want.backward()
        got.backward()
        assert same == number
        torch.testing.assert_close(got.cpu(), want)
        torch.testing.assert_close(device.grad.cpu(), host.grad)


def test_integers_of_numbers_that_vary():
    """What rounds a float argument stays a number of the host."""
    run = compile(lambda t, f: t * (f // 0.4) + math.floor(f * 3), dynamic=True)
    for f in (0.5, 2.7, -1.1):
        x = torch.randn(5)
        torch.testing.assert_close(run(x.to("neuron"), f).cpu(), x * (f // 0.4) + math.floor(f * 3))


def test_number_read_from_a_tensor():
    """`.item()` of a float that is used as it is; what is computed from it would be float64."""
    x = torch.randn(5)
    run = compile(lambda t: t * t.sum().item(), dynamic=True)
    torch.testing.assert_close(run(x.to("neuron")).cpu(), x * x.sum().item())
    run = compile(lambda t: t * (t.sum().item() + 1.5), dynamic=True)  # the line of .item()
    with pytest.raises(Exception, match=r"leave out \.item\(\)") as refusal:
        run(x.to("neuron"))
    assert "# the line of .item()" in str(refusal.value)


def test_nested_results():
    """Dictionaries, tuples and lists of tensors."""
    out = compile(lambda d: {"a": d["x"] + 1, "b": [d["y"] * 2, (d["x"], d["y"].sum())]})(
        {"x": torch.ones(3, device="neuron"), "y": torch.ones(2, device="neuron")}
    )
    assert (
        out["a"].cpu().tolist() == [2.0] * 3
        and out["b"][0].cpu().tolist() == [2.0] * 2
        and out["b"][1][1].item() == 2.0
    )


def test_deep_chains():
    """Hundreds of dependent operations, and one value used by many."""

    def chain(t):
        for step in range(150):
            t = (t * 1.01 - 0.01).clamp(-2, 2) + step * 1e-4
        return t

    def fan(t):
        parts = [(t * k).tanh() for k in range(1, 40)]
        return sum(parts), torch.stack(parts).amax(0)

    check(chain, sample(F32, 3, 50), eager=False, rtol=1e-4, atol=1e-4)
    check(fan, sample(F32, 3, 50), eager=False, rtol=1e-4, atol=1e-4)


def test_repetitive_network_reuses_kernels():
    """Instruction bytes and kernels of a deep network of equal blocks grow with the calls, not with the code
    (aws-neuron/aws-neuron-sdk#646)."""

    def network(blocks):
        def run(t, w):
            for _ in range(blocks):
                t = F.rms_norm(t + F.gelu(t), (32,), w)
            return t

        return run

    x, w = torch.randn(4, 32), torch.rand(32)
    for blocks in (2, 24):
        torch.neuron.reset_dynamo_metrics()
        got = compile(network(blocks))(x.to("neuron"), w.to("neuron"))
        torch.testing.assert_close(got.cpu(), network(blocks)(x, w), rtol=1e-3, atol=1e-3)
        (record,) = torch.neuron.get_dynamo_metrics()
        assert record["kernels"] >= 1


def test_rows_do_not_depend_on_the_batch():
    """The same rows with more of them (iree-org/iree#14601)."""

    def function(t, w):
        return ((t * w).relu().sum(-1, keepdim=True) / (1 + t.abs().amax(-1, keepdim=True))).tanh()

    x, w = torch.randn(200, 10), torch.randn(10)
    want = function(x, w)
    for rows in (1, 32, 64, 127, 128, 129, 200):
        torch.testing.assert_close(
            compile(function)(x[:rows].to("neuron"), w.to("neuron")).cpu(), want[:rows], rtol=1e-5, atol=1e-6
        )


def test_constants_of_the_graph():
    """Tensors the function closes over, lists turned into tensors, numbers of rank 0."""
    table = torch.tensor([[1.5, -2.0], [0.0, 3.25]])
    integers = torch.tensor([2**40, -1])

    def function(t):
        return (
            t + table.to(t.device),
            integers.to(t.device) + 1,
            t * torch.tensor(3, device=t.device),
            t + torch.tensor([1, 2], device=t.device),
        )

    check(function, sample(F32, 2, 2), eager=False)


def test_doubles_only_as_numbers():
    """A Python float that becomes a double of rank 0 inside the graph is a number, not a double (iree-org/iree#11924)."""
    check(
        lambda t: t * torch.tensor(0.1, dtype=torch.float64, device=t.device).to(t.dtype), sample(F32, 4), eager=False
    )
    check(lambda t: (t.mean() * 0.1, t / float("1e-3"), t * (1 / 3)), sample(F32, 4), rtol=1e-6)


def test_default_dtype():
    """torch.set_default_dtype decides what numbers and factories are."""
    previous = torch.get_default_dtype()
    try:
        torch.set_default_dtype(BF16)
        check(
            lambda t: (t + 0.5, t / 2, torch.ones(3, device=t.device), t.sum() / t.numel()), torch.arange(4), rtol=1e-2
        )
    finally:
        torch.set_default_dtype(previous)


def test_autocast():
    """Autocast regions inside and around the compiled function."""

    def function(t):
        with torch.autocast("neuron", dtype=BF16):
            return (t * 2).softmax(-1), t.bfloat16() + 1

    got = compile(function)(torch.ones(2, 3, device="neuron"))
    assert [t.dtype for t in got] == [F32, BF16]


def test_unused_and_repeated_arguments():
    """Arguments that nothing reads, that are read twice, that are returned twice."""
    x, y = torch.randn(3).to("neuron"), torch.randn(2).to("neuron")
    a, b, c = compile(lambda t, u: (t + t, t, t))(x, y)
    assert b is x and c is x and torch.equal(a.cpu(), x.cpu() * 2)
    assert torch.equal(compile(lambda t, u: u * u)(y, y).cpu(), y.cpu() ** 2)


def test_flags_are_part_of_the_cache_key(tmp_path):
    """The same graph with other options is another program, and going back finds the first again (optimum-neuron#457)."""
    script = """
        import os, torch
        function = torch.compile(lambda t: (t * 2).softmax(-1), backend="neuron", fullgraph=True)
        function(torch.ones(2, 3, device="neuron"))
        print(torch.neuron.get_dynamo_metrics()[0]["neff_hash"])
    """
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(script))

    def key(**environment):
        variables = {**os.environ, "TORCH_NEURONX_NEFF_CACHE_DIR": str(tmp_path / "cache"), **environment}
        variables.pop("TORCH_NEURONX_DISABLE_NEFF_CACHE", None)
        process = subprocess.run(
            [sys.executable, str(path)], env=variables, capture_output=True, text=True, timeout=300
        )
        assert process.returncode == 0, process.stderr
        return process.stdout.split()[-1]

    first, other, again = key(), key(NEURON_PLATFORM_TARGET_OVERRIDE="trn1"), key()
    assert first == again != other


def test_half_written_cache_entries_are_compiled_again(tmp_path):
    """A truncated file of the cache is not trusted (aws-neuron/aws-neuron-sdk#742)."""
    path = tmp_path / "script.py"
    path.write_text(
        textwrap.dedent(
            """
            import torch
            function = torch.compile(lambda t: t * 3 + 1, backend="neuron", fullgraph=True)
            print(function(torch.ones(3, device="neuron")).cpu().tolist())
            """
        )
    )
    variables = {**os.environ, "TORCH_NEURONX_NEFF_CACHE_DIR": str(tmp_path / "cache")}
    variables.pop("TORCH_NEURONX_DISABLE_NEFF_CACHE", None)
    for damage in (None, 100, 0):
        if damage is not None:
            files = [file for file in (tmp_path / "cache").rglob("*") if file.is_file() and file.stat().st_size > 1000]
            assert files
            for file in files:
                file.write_bytes(file.read_bytes()[:damage])
        process = subprocess.run(
            [sys.executable, str(path)], env=variables, capture_output=True, text=True, timeout=300
        )
        assert process.returncode == 0, process.stderr
        assert process.stdout.strip() == "[4.0, 4.0, 4.0]"


def test_moving_a_model_compiles_nothing():
    """Copies between host and device are transfers, not programs (optimum-neuron#301)."""
    from torch_neuronx import _cache

    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    before = dict(_cache.statistics)
    device = model.to("neuron")
    {name: value.cpu() for name, value in device.state_dict().items()}
    device.load_state_dict({name: value.clone() for name, value in model.state_dict().items()})
    assert dict(_cache.statistics) == before


CONSTANT_ROWS = {
    "scan": lambda x: x + torch.ones(1, x.shape[1], device=x.device).cumsum(-1),
    "integer scan": lambda x: x * (torch.ones(1, x.shape[1], dtype=torch.int64, device=x.device).cumsum(-1) - 1),
    "scan of rows": lambda x: (torch.full(x.shape, 0.5, device=x.device).cumsum(-1) * 2, x + 1),
    "scan from the other side": lambda x: x - torch.ones(x.shape[1], device=x.device).flip(0).cumsum(0),
    "sum": lambda x: x + torch.full((1, 9), 0.25, device=x.device).sum(-1, keepdim=True),
    "sum of rows": lambda x: torch.full((x.shape[0], 9), 0.25, device=x.device).sum(-1) + x[:, 0],
    "product": lambda x: x * torch.full((1, 5), 2.0, device=x.device).prod(-1, keepdim=True),
    "position": lambda x: x + torch.full((1, 9), 2.0, device=x.device).argmax(-1, keepdim=True),
    "softmax": lambda x: x * torch.zeros(1, x.shape[1], device=x.device).softmax(-1),
    "biases of heads": lambda x: (
        x[:, None] + (torch.ones_like(x).cumsum(-1) - 1)[:, None] * torch.tensor([[0.5], [0.25]], device=x.device)
    ),
}


@pytest.mark.parametrize("name", CONSTANT_ROWS)
def test_rows_computed_from_constants(name):
    """A value that is the same in every row is in every row's partition."""
    check_all([case(str(shape), CONSTANT_ROWS[name], torch.randn(shape)) for shape in ((2, 7), (130, 33), (1, 1))])


def test_what_nobody_needs():
    """Of every kind: it was for a tensor without elements."""

    def function(x, rows):
        empty = x[:0]
        unused = [
            torch.cat([x, x * 2], 1)[:0],
            (x @ x.t())[:0],
            torch.stack([x, x], -1)[:0],
            x[rows][:0],
            x.index_copy(0, rows, x[: len(rows)])[:0],
            x.cumsum(0)[:0],
        ]
        return x + 1, empty.sum(), torch.cat([value.flatten() for value in unused])

    check_all([case("unused", function, torch.randn(6, 5), torch.tensor([1, 3]))], eager=False)

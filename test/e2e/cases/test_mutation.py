# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Writes: into arguments, through views, to buffers of modules, with out=; what aliases what afterwards."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn as nn
from checking import ALL_DTYPES, BF16, F32, I64, case, check, check_all, compile, moved, sample

IDS = {"ids": lambda value: str(value).removeprefix("torch.")}


def test_argument_is_written_once():
    """`a += b` happens exactly once on the first call as on later ones, and b is not touched (pytorch/xla#5410)."""
    x, y = torch.zeros(3, device="neuron"), torch.ones(3, device="neuron")
    version = y._version
    function = compile(lambda a, b: a.add_(b))
    for count in range(1, 4):
        with torch.no_grad():
            function(x, y)
        assert x.cpu().tolist() == [count] * 3
    assert y._version == version and y.cpu().tolist() == [1.0] * 3


IN_PLACE = {
    "add_": lambda t, u: t.add_(u),
    "mul_ number": lambda t, u: t.mul_(3),
    "relu_": lambda t, u: t.relu_(),
    "copy_": lambda t, u: t.copy_(u),
    "fill_": lambda t, u: t.fill_(2),
    "zero_": lambda t, u: t.zero_(),
    "clamp_": lambda t, u: t.clamp_(-1, 1),
    "masked_fill_": lambda t, u: t.masked_fill_(u > 0, 5),
    "row": lambda t, u: t[1].copy_(u[0]),
    "rows": lambda t, u: t[1:3].mul_(2),
    "strided": lambda t, u: t[::2, 1::3].add_(1),
    "column": lambda t, u: t[:, 0].fill_(7),
    "transposed": lambda t, u: t.T[1:3].sub_(1),
    "diagonal": lambda t, u: t.diagonal().fill_(9),
    "reshaped": lambda t, u: t.view(-1)[3:9].zero_(),
    "of itself": lambda t, u: t.add_(t.T[:4, :4].sum() * 0 + t),
    "shift": lambda t, u: t[1:].copy_(t[:-1].clone()),
    "two writes": lambda t, u: (t[0].add_(1), t[:, 0].mul_(2)),
    "cumsum_": lambda t, u: t.cumsum_(0),
    "tril_": lambda t, u: t.tril_(),
    "swap": lambda t, u: (t.mul_(u), u.add_(t)),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_write_into_argument(name):
    """In-place operators on an argument and on views of it; results read before and after; every stride."""
    write = IN_PLACE[name]

    def function(t, u):
        before = t * 1
        write(t, u)
        return before, t + u, t.sum()

    x, y = sample(F32, 4, 6), sample(F32, 4, 6)
    wide = sample(F32, 8, 13)
    check_all(
        [
            case("contiguous", function, x, y, rtol=1e-5, atol=1e-5),
        ]
        + [
            # A compiled write makes a new value, whose strides may be those of the operator's functional form.
            case("strided", lambda t, u: function(t[::2, 1::2], u), wide, y, rtol=1e-5, atol=1e-5, strides=False),
            case(
                "transposed", lambda t, u: function(t.T, u), sample(F32, 6, 4), y, rtol=1e-5, atol=1e-5, strides=False
            ),
        ]
        * (name != "reshaped")
    )


@pytest.mark.parametrize("name", ("add_", "copy_", "strided", "column", "transposed", "diagonal"))
def test_write_into_strided_argument(name):
    """The argument itself is a view with strides and an offset: what lies between its elements stays."""
    for view in (lambda t: t[1::2, 2::2], lambda t: t.T[:4, :6], lambda t: t[:4, 3:9]):
        base = sample(F32, 10, 16)
        other = sample(F32, 4, 6)
        for run in (IN_PLACE[name], compile(IN_PLACE[name])):
            host, device = base.clone(), base.to("neuron")
            with torch.no_grad():
                IN_PLACE[name](view(host)[:4, :6], other)
                run(view(device)[:4, :6], other.to("neuron"))
            assert torch.equal(device.cpu(), host)


@pytest.mark.parametrize("dtype", ALL_DTYPES, **IDS)
def test_write_of_every_dtype(dtype):
    """Parts of a tensor of each dtype."""

    def function(t, u):
        t[1:, ::2] = u[1:, ::2]
        t[0, -1] = 1
        t[:, 1].copy_(u[:, 0])
        return t.clone()

    check(function, sample(dtype, 5, 7), sample(dtype, 5, 7))


def test_results_are_views_of_arguments():
    """A view of an argument stays one: a write outside shows (pytorch/xla#5430)."""
    x = torch.ones(2, 3, device="neuron")
    view, same, fresh = compile(lambda t: (t.view(-1), t, t * 2))(x)
    view.mul_(3)
    assert x.cpu().tolist() == [[3.0] * 3] * 2
    assert same.data_ptr() == x.data_ptr() and fresh.data_ptr() != x.data_ptr()


def test_results_alias_each_other_as_in_eager():
    """Two results that are views of one computed value share storage; equal values computed twice do not."""

    def function(t):
        base = t * 2
        return base[0], base.T, base, t + 1, t + 1

    x = torch.randn(3, 4)
    row, transposed, base, first, second = compile(function)(x.to("neuron"))
    base.fill_(5)
    assert row.cpu().tolist() == [5.0] * 4 and transposed.cpu().tolist() == [[5.0] * 3] * 4
    first.zero_()
    torch.testing.assert_close(second.cpu(), x + 1)


def test_arguments_that_alias_each_other():
    """Two arguments that share storage: a write through one shows in the other, whichever the compiler sees first."""

    def function(a, b):
        a.add_(1)
        return b * 2

    for views in (
        lambda t: (t, t),
        lambda t: (t[:3], t[2:]),
        lambda t: (t[1:], t),
        lambda t: (t.view(5), t.view(1, 5)),
    ):
        host, device = torch.arange(5.0), torch.arange(5.0).to("neuron")
        with torch.no_grad():
            want = function(*views(host))
            got = compile(function, fullgraph=False)(*views(device))
        torch.testing.assert_close(got.cpu(), want)
        torch.testing.assert_close(device.cpu(), host)


def test_buffers_of_modules_keep_their_state():
    """A registered buffer written at a position survives between calls (iree-org/iree-turbine#85)."""

    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("keys", torch.zeros(2, 8, 3))
            self.register_buffer("length", torch.zeros((), dtype=I64))

        def forward(self, new):
            self.keys[:, 2:4] = new
            self.keys.mul_(0.5)
            self.length.add_(2)
            return self.keys.sum(1)

    host, device = Cache(), Cache().to("neuron")
    run = compile(device)
    for _ in range(3):
        new = torch.randn(2, 2, 3)
        with torch.no_grad():
            torch.testing.assert_close(run(new.to("neuron")).cpu(), host(new))
    torch.testing.assert_close(device.keys.cpu(), host.keys)
    assert device.length.item() == host.length.item() == 6


def test_mutation_by_a_custom_operator():
    """An operator that declares its writes: later reads see them (pytorch/pytorch#127821)."""

    @torch.library.custom_op("neuron_cases::fill_with_two", mutates_args=("t",))
    def fill_with_two(t: torch.Tensor) -> None:
        t.fill_(2.0)

    def function(x):
        y = x * 1
        fill_with_two(y)
        return y * y + x

    x = torch.randn(4)
    torch.testing.assert_close(function(x.to("neuron")).cpu(), function(x))
    # Its body is opaque to the compiler, so that a graph with it is refused rather than run without the write.
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="fill_with_two"):
        compile(function)(x.to("neuron"))


def test_write_to_expanded_tensor():
    """Eager refuses in-place arithmetic on a tensor that repeats elements: so does the device (pytorch/pytorch#152425)."""
    for function in (
        lambda t: t.expand(3, 4).add_(1),
        lambda t: t.expand(3, 4).mul_(2),
        lambda t: t.expand(3, 4).copy_(t * 2 + torch.zeros(3, 4, device=t.device)),
    ):
        with pytest.raises(RuntimeError) as expected:
            function(torch.ones(4))
        with pytest.raises(RuntimeError) as actual:
            function(torch.ones(4, device="neuron"))
        assert str(actual.value).split("\n")[0] == str(expected.value).split("\n")[0]


def test_write_to_one_column_of_expanded_tensor():
    """A column of a row-expanded tensor has no repeats: a write is legal and changes the source (pytorch/pytorch#152425)."""

    def function(s):
        row = s[:, None].expand(-1, 3)
        row[:, 0].add_(5.0)
        return row * 1, s

    check(function, torch.tensor([1.0, 2.0]), compiled=False)


@pytest.mark.parametrize("name", ("add", "mul", "exp", "where", "sum", "cat", "clamp"))
def test_results_into_given_tensors(name):
    """out= writes into the tensor that is given, resizes an empty one, converts, refuses a narrower category."""
    functions = {
        "add": lambda t, out: torch.add(t, 1, out=out),
        "mul": lambda t, out: torch.mul(t, t, out=out),
        "exp": lambda t, out: torch.exp(t, out=out),
        "where": lambda t, out: torch.where(t > 0, t, t * 2, out=out),
        "sum": lambda t, out: torch.sum(t, 0, out=out),
        "cat": lambda t, out: torch.cat([t, t], out=out),
        "clamp": lambda t, out: torch.clamp(t, -1, 1, out=out),
    }
    function = functions[name]
    x = sample(F32, 4, 5)
    shape = function(x, torch.empty(0)).shape
    for make in (
        lambda: torch.empty(0),
        lambda: torch.zeros(shape),
        lambda: torch.zeros(*shape[:-1], shape[-1] * 2)[..., ::2],
        lambda: torch.zeros(shape[::-1]).T if len(shape) == 2 else torch.zeros(shape),
    ):
        host = make()
        device = moved(host, "neuron")
        function(x, host)
        result = function(x.to("neuron"), device)
        assert result is device and device.shape == host.shape and device.stride() == host.stride()
        torch.testing.assert_close(device.cpu(), host)
    for dtype in (BF16, I64):
        host, device = torch.zeros(shape, dtype=dtype), torch.zeros(shape, dtype=dtype, device="neuron")
        try:
            function(x, host)
        except (RuntimeError, TypeError):
            if dtype == I64:
                with pytest.raises((RuntimeError, TypeError)):
                    function(x.to("neuron"), device)
            continue
        function(x.to("neuron"), device)
        torch.testing.assert_close(device.cpu(), host, rtol=1e-2, atol=1e-2)


def test_optimizers_step_like_on_the_cpu():
    """SGD with momentum, Adam and AdamW, eager and compiled."""
    for factory in (
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
        lambda p: torch.optim.Adam(p, lr=0.05),
        lambda p: torch.optim.AdamW(p, lr=0.05),
    ):
        for compiled in (False, True):
            torch.manual_seed(0)
            host = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 2))
            device = copy.deepcopy(host).to("neuron")
            pairs = [(host, factory(host.parameters())), (device, factory(device.parameters()))]
            data = torch.randn(6, 5)
            for model, optimizer in pairs:
                step = compile(optimizer.step, fullgraph=False) if compiled and model is device else optimizer.step
                for _ in range(3):
                    optimizer.zero_grad()
                    model(data.to(next(model.parameters()).device)).square().sum().backward()
                    step()
            for a, b in zip(device.parameters(), host.parameters(), strict=True):
                torch.testing.assert_close(a.detach().cpu(), b.detach(), rtol=1e-4, atol=1e-5)

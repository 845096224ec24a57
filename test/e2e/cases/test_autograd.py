# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Gradients of everything in scope, eager and through a compiled joint graph, against the CPU."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from checking import BF16, F16, LONG, check_gradients, compile, sample


def parameter(*shape: int, scale: float = 1.0) -> torch.Tensor:
    return (torch.randn(shape) * scale).requires_grad_()


UNARY = (
    {
        name: getattr(torch, name)
        for name in """exp log1p sin cos tanh sigmoid square abs neg sqrt rsqrt reciprocal log erf atan asinh
            expm1 exp2 sinh cosh
    relu log2 log10 tan sinc""".split()
    }
    | {
        name: getattr(F, name)
        for name in """silu gelu softplus logsigmoid hardtanh hardsigmoid hardswish leaky_relu elu selu celu mish relu6 softsign
    hardshrink softshrink tanhshrink""".split()
    }
    | {
        "gelu tanh": lambda t: F.gelu(t, approximate="tanh"),
        "power": lambda t: t**3 + t**2.0,
        "power of number": lambda t: 2.0**t,
        "clamp": lambda t: t.clamp(-0.5, 1.0),
        "threshold": lambda t: F.threshold(t, 0.1, 5.0),
        "where": lambda t: torch.where(t > 0, t * 2, t.exp()),
        "masked_fill": lambda t: t.masked_fill(t > 0.5, 0.0) * t,
        "to bf16 and back": lambda t: (t.bfloat16() * 2).float(),
    }
)
POSITIVE = {"log1p", "sqrt", "rsqrt", "reciprocal", "log", "log2", "log10"}


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    """Derivatives of elementwise functions."""
    x = (torch.rand(4, 33) + 0.2 if name in POSITIVE else torch.randn(4, 33)).requires_grad_()
    check_gradients(UNARY[name], x, rtol=2e-5, atol=2e-5)


BINARY = {
    name: getattr(torch, name) for name in "add sub mul div maximum minimum atan2 hypot logaddexp fmax fmin".split()
} | {
    "remainder": lambda a, b: torch.remainder(a, b.abs() + 0.5),
    "pow": lambda a, b: (a.abs() + 0.1) ** b,
    "lerp": lambda a, b: torch.lerp(a, b, 0.3),
    "lerp weight": lambda a, b: torch.lerp(a, a * 2, b),
    "addcmul": lambda a, b: torch.addcmul(a, a, b, value=0.5),
    "addcdiv": lambda a, b: torch.addcdiv(a, a, b.abs() + 1, value=2.0),
    "where": lambda a, b: torch.where(a > b, a, b),
    "alpha": lambda a, b: torch.add(a, b, alpha=3),
}


@pytest.mark.parametrize("name", BINARY)
def test_binary_with_broadcasting(name):
    """Gradients of operands that broadcasting repeated are sums."""
    shapes = (((4, 5), (4, 5)), ((3, 1), (1, 4)), ((2, 3, 4), (4,)), ((5,), ()), ((130, 3), (1, 3)))
    # Compiled are two pairs of shapes for each function, all of them for every five functions.
    compiled = {(list(BINARY).index(name) + step) % len(shapes) for step in (0, 2)}
    for number, (first, second) in enumerate(shapes):
        check_gradients(
            BINARY[name],
            parameter(*first),
            parameter(*second),
            compiled=LONG or number in compiled,
            rtol=2e-5,
            atol=1e-4,
        )


REDUCTIONS = {
    "sum": lambda t: t.sum(1),
    "mean": lambda t: t.mean((0, 2), keepdim=True),
    "amax": lambda t: t.amax(1),
    "amin": lambda t: t.amin((0, 1)),
    "max of all": lambda t: t.max(),
    "prod": lambda t: t.prod(1),
    "var": lambda t: t.var(2),
    "std": lambda t: t.std((0, 1), correction=0),
    "var_mean": lambda t: torch.var_mean(t, 1),
    "norm": lambda t: t.norm(dim=1),
    "norm 1": lambda t: t.norm(p=1, dim=0),
    "norm 3": lambda t: t.norm(p=3, dim=2),
    "norm inf": lambda t: t.norm(p=float("inf"), dim=2),
    "logsumexp": lambda t: t.logsumexp(1),
    "softmax": lambda t: t.softmax(1) * torch.linspace(0, 1, t.shape[1], device=t.device)[:, None],
    "log_softmax": lambda t: t.log_softmax(2)[..., 1],
    "cumsum": lambda t: t.cumsum(1).square(),
    "normalize": lambda t: F.normalize(t, dim=1),
    "layer_norm": lambda t: F.layer_norm(t, t.shape[1:]),
    "rms_norm": lambda t: F.rms_norm(t, t.shape[-1:]),
    "group_norm": lambda t: F.group_norm(t, 2),
    "nansum": lambda t: t.nansum(0),
    "aminmax": lambda t: torch.aminmax(t, dim=1),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction(name):
    """Derivatives of reductions, normalisations and scans."""
    check_gradients(REDUCTIONS[name], parameter(3, 4, 5), rtol=1e-4, atol=1e-4)


# Their backward scatters by the index of an element.
BY_INDEX = {
    "max": lambda t: t.max(2).values,
    "min": lambda t: t.min(0).values,
    "cumprod": lambda t: (t + 3).cumprod(2),
}


@pytest.mark.parametrize("how", ("eager", "compiled"))
@pytest.mark.parametrize("name", BY_INDEX)
def test_gradient_by_index(name, how):
    """Derivatives of maxima that return an index, and of products with zeros."""
    check_gradients(
        BY_INDEX[name], parameter(3, 4, 5), eager=how == "eager", compiled=how == "compiled", rtol=1e-4, atol=1e-4
    )


def test_ties_share_the_gradient():
    """amax divides the gradient among equal maxima."""
    x = torch.tensor([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0]])
    for function in (
        lambda t: t.amax(1),
        lambda t: t.amin(1),
        lambda t: t.max(),
        lambda t: torch.maximum(t, t.flip(1)),
        lambda t: t.relu() + (t - 2).relu(),
        lambda t: (t - 2).abs(),
    ):
        check_gradients(function, x.clone().requires_grad_())


VIEWS = {
    "slice": lambda t: t[1:, ::2] * 2,
    "select": lambda t: t[2] * t[:, 1][:4].sum(),
    "transpose": lambda t: t.T * 3,
    "permute": lambda t: t.reshape(2, 2, 6).permute(2, 0, 1).sin(),
    "expand": lambda t: t[:, :1].expand(4, 5).exp(),
    "repeat": lambda t: t.repeat(2, 3).sin(),
    "cat": lambda t: torch.cat([t, t * 2, t[:1]], 0).sin(),
    "stack": lambda t: torch.stack([t, t.flip(0)], 1).sin(),
    "split": lambda t: t.split(4, 1)[0] * t.split([2, 4], 1)[1],
    "unbind": lambda t: t.unbind(0)[0] * t.unbind(0)[3],
    "pad": lambda t: F.pad(t, (1, 2, 0, 1), value=3.0).square(),
    "crop": lambda t: F.pad(t, (-1, 0)).square(),
    "flip and roll": lambda t: t.flip(1) * t.roll(1, 0),
    "triangle": lambda t: t.tril() * t.triu(1),
    "diagonal": lambda t: t.diagonal(1).exp(),
    "unfold": lambda t: t.unfold(1, 3, 2).sin(),
    "as_strided": lambda t: t.as_strided((3, 3), (6, 2), 1).sin(),
    "slice_scatter": lambda t: torch.slice_scatter(t.sin(), t[:, :2].cos(), 1, 2, 4),
    "select_scatter": lambda t: torch.select_scatter(t.sin(), t[0].cos(), 0, 1),
    "diagonal_scatter": lambda t: torch.diagonal_scatter(t.sin(), t[0, :4].cos()),
    "assignment": lambda t: assign(t),
    "squeeze": lambda t: t[:, None].squeeze(1).unsqueeze(-1).sin(),
    "meshgrid": lambda t: torch.meshgrid(t[0], t[:, 0], indexing="ij")[0] * 2,
    "rotary": lambda t: torch.cat([-t.chunk(2, -1)[1], t.chunk(2, -1)[0]], -1) * t.cos(),
}


def assign(t):
    y = t * 2
    y[1] = t[0]
    y[:, 2].mul_(t[:, 0])
    return y.sin()


@pytest.mark.parametrize("name", VIEWS)
def test_view(name):
    """Gradients through views, joins and writes."""
    check_gradients(VIEWS[name], parameter(4, 6), rtol=2e-5, atol=2e-5)


# Operators that ATen has for devices only: the CPU runs what they are made of.
FUSED = {
    "lstm_cell": (
        lambda x, h, a, b, c, d: torch.lstm_cell(x, (h, h.sin()), a, b, c, d),
        (16, 3),
        (16, 4),
        (16,),
        (16,),
    ),
    "lstm_cell, one result": (lambda x, h, *w: torch.lstm_cell(x, (h, h.cos()), *w)[1], (16, 3), (16, 4), (16,), (16,)),
    "gru_cell": (lambda x, h, a, b, c, d: torch.gru_cell(x, h, a, b, c, d), (12, 3), (12, 4), (12,), (12,)),
    "gru_cell without biases": (lambda x, h, a, b: torch.gru_cell(x, h, a, b), (12, 3), (12, 4)),
    "weight_norm": (lambda x, h, v, g: x @ torch._weight_norm(v, g, 0).t(), (4, 3), (4, 1)),
    "weight_norm of columns": (lambda x, h, v, g: x @ torch._weight_norm(v, g, 1), (3, 6), (1, 6)),
}


@pytest.mark.parametrize("name", FUSED)
def test_fused_operators(name):
    function, *shapes = FUSED[name]
    hidden = parameter(2, shapes[1][-1]) if "cell" in name else torch.zeros(1)
    check_gradients(function, parameter(2, 3), hidden, *(parameter(*shape) for shape in shapes), rtol=2e-5, atol=2e-5)


LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits")


@pytest.mark.parametrize("reduction", ("mean", "sum", "none"))
@pytest.mark.parametrize("name", LOSSES)
def test_loss(name, reduction):
    """Gradients of both operands of a loss."""
    check_gradients(
        lambda a, b: getattr(F, name)(a, b.sigmoid(), reduction=reduction),
        parameter(4, 5),
        parameter(4, 5),
        rtol=2e-5,
        atol=2e-5,
    )


@pytest.mark.parametrize("smoothing", (0.0, 0.1))
def test_cross_entropy(smoothing):
    """Labels that are ignored have no gradient."""
    labels = torch.tensor([0, 3, -100, 2, 1, -100])
    check_gradients(lambda t, y: F.cross_entropy(t, y, label_smoothing=smoothing), parameter(6, 4), labels)
    check_gradients(lambda t, y: F.cross_entropy(t, y, reduction="sum"), parameter(6, 4), labels)


def test_modules():
    """A training step of the usual layers, parameters' gradients included; running statistics once per step
    (aws-neuron/aws-neuron-sdk#588)."""
    torch.manual_seed(1)
    host = nn.Sequential(
        nn.Linear(6, 12),
        nn.GELU(),
        nn.LayerNorm(12),
        nn.Linear(12, 8),
        nn.BatchNorm1d(8),
        nn.SiLU(),
        nn.RMSNorm(8),
        nn.PReLU(),
        nn.Linear(8, 3),
    )
    data = torch.randn(10, 6)
    for run_compiled in (False, True):
        reference, device = copy.deepcopy(host), copy.deepcopy(host).to("neuron")
        run = compile(device) if run_compiled else device
        for _ in range(2):
            reference(data).square().sum().backward()
            run(data.to("neuron")).square().sum().backward()
        for (name, a), (_, b) in zip(device.named_parameters(), reference.named_parameters(), strict=True):
            torch.testing.assert_close(
                a.grad.cpu(), b.grad, rtol=1e-3, atol=1e-3, msg=lambda text, n=name: f"{n}: {text}"
            )
        for a, b in zip(device.buffers(), reference.buffers(), strict=True):
            torch.testing.assert_close(a.cpu(), b, rtol=1e-4, atol=1e-5)
        assert device[4].num_batches_tracked.item() == 2


@pytest.mark.parametrize("dtype", (BF16, F16), ids=str)
def test_sixteen_bits(dtype):
    """Gradients have the dtype of their tensors."""
    x = sample(dtype, 5, 40).requires_grad_()
    w = sample(dtype, 40).requires_grad_()
    check_gradients(lambda t, w: F.rms_norm(t, (40,), w).relu().float(), x, w, rtol=3e-2, atol=3e-2)
    check_gradients(lambda t, w: (t * w).softmax(-1).float(), x, w, rtol=3e-2, atol=3e-2)


def test_second_derivatives():
    """Gradients of gradients, eager."""
    results = []
    for device in ("cpu", "neuron"):
        torch.manual_seed(0)
        x = torch.randn(3, 4).to(device).requires_grad_()
        (first,) = torch.autograd.grad((x.tanh() * x.exp()).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), x)
        results.append(second.cpu())
    torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-4)


def test_no_gradient_where_there_is_none():
    """detach, integers and constants stop gradients; unused arguments get None."""
    check_gradients(lambda t, u: t.detach() * t + (t > 0).float(), parameter(4), parameter(3))
    check_gradients(lambda t: t.round() + t.floor() * 0 + t.sign(), parameter(5))


def test_gradient_at_special_points():
    """Derivatives at zero, at kinks, and NaN of 0 * inf, as on the CPU."""
    x = torch.tensor([0.0, -0.0, 1.0, -1.0, 6.0, 3.0, -3.0, 0.5])
    for function in (
        torch.sqrt,
        torch.abs,
        torch.relu,
        F.relu6,
        F.hardtanh,
        F.hardswish,
        F.elu,
        torch.sign,
        lambda t: t.clamp(-1, 1),
        lambda t: t.square().sum().sqrt(),
        lambda t: (t * 0).norm(),
        lambda t: torch.where(t > 0, t.log(), 0.0),
        lambda t: t.prod(),
    ):
        check_gradients(function, x.clone().requires_grad_())

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Autograd, modules, optimisers, autocast: the plumbing around the kernels."""

from __future__ import annotations

import copy

import pytest
import torch
import torch_neuronx
from conftest import same


def test_gradients_match_cpu():
    host = [torch.randn(4, 3, requires_grad=True), torch.randn(3, 5, requires_grad=True)]
    device = [tensor.detach().to("neuron").requires_grad_() for tensor in host]

    def loss(a, b):
        return ((a @ b).relu().softmax(-1) * torch.arange(5.0, device=a.device)).sum()

    loss(*host).backward()
    loss(*device).backward()
    for a, b in zip(device, host, strict=False):
        same(a.grad, b.grad)


def test_to_is_differentiable():
    host = torch.ones(3, requires_grad=True)
    (host.to("neuron") * 2).sum().backward()
    assert host.grad.tolist() == [2.0] * 3


def test_gradient_accumulation_and_views():
    weight = torch.ones(4, device="neuron", requires_grad=True)
    for _ in range(2):
        (weight[1:3] * 3).sum().backward()
    same(weight.grad, torch.tensor([0.0, 6.0, 6.0, 0.0]))


@pytest.mark.real
def test_gradients_of_parts():
    """The operators that only autograd calls have programs, and take indices on the CPU as those it differentiates."""
    for part in (
        lambda t: t[torch.tensor([[0, 2], [2, -1]])],
        lambda t: t[:, torch.tensor([1, 1])],
        lambda t: t.select(2, -1),
        lambda t: t[..., 1],
        lambda t: t.diagonal(0, 1, 2),
        lambda t: t.unfold(2, 2, 1),
    ):
        leaves = [torch.arange(24.0, device=device).view(3, 2, 4).requires_grad_() for device in ("cpu", "neuron")]
        for leaf in leaves:
            taken = part(leaf)
            (taken * torch.arange(1.0, taken.numel() + 1, device=leaf.device).view(taken.shape)).sum().backward()
        same(leaves[1].grad, leaves[0].grad)
    assert not torch_neuronx.get_fallback_ops()


def test_in_place_under_autograd():
    leaf = torch.ones(3, device="neuron", requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        leaf.add_(1)
    value = leaf * 2
    squared = value * value
    value.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        squared.sum().backward()


def test_backward_on_another_thread_misses_the_cache():
    # The backward of a new shape is compiled on the autograd thread.
    tensor = torch.randn(7, 11, device="neuron", requires_grad=True)
    tensor.tanh().sum().backward()
    assert tensor.grad.shape == (7, 11)


def test_double_backward():
    tensor = torch.tensor([0.5, 1.5], device="neuron", requires_grad=True)
    (gradient,) = torch.autograd.grad(tensor.pow(3).sum(), tensor, create_graph=True)
    gradient.sum().backward()
    same(tensor.grad, 6 * tensor.detach().cpu())


def test_hooks_and_checkpoint():
    seen = []
    tensor = torch.ones(2, device="neuron", requires_grad=True)
    tensor.register_hook(lambda gradient: seen.append(gradient.device.type))
    torch.utils.checkpoint.checkpoint(lambda t: (t * t).sum(), tensor, use_reentrant=False).backward()
    assert seen == ["neuron"]


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_training_matches_cpu(optimizer):
    torch.manual_seed(0)
    host = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2))
    device = copy.deepcopy(host).to("neuron")
    data = torch.randn(5, 6)
    options = {"momentum": 0.9} if optimizer == "SGD" else {}
    optimizers = [getattr(torch.optim, optimizer)(m.parameters(), lr=0.01, **options) for m in (host, device)]
    for _ in range(3):
        for module, step, place in ((host, optimizers[0], "cpu"), (device, optimizers[1], "neuron")):
            step.zero_grad()
            torch.nn.functional.mse_loss(module(data.to(place)), torch.ones(5, 2, device=place)).backward()
            step.step()
    for a, b in zip(device.parameters(), host.parameters(), strict=False):
        torch.testing.assert_close(a.detach().cpu(), b.detach(), atol=1e-5, rtol=1e-4)


def test_clip_and_scaler():
    module = torch.nn.Linear(3, 3).to("neuron")
    module(torch.ones(2, 3, device="neuron")).sum().backward()
    norm = torch.nn.utils.clip_grad_norm_(module.parameters(), 0.1)
    assert norm.device.type == "neuron"
    total = sum(parameter.grad.cpu().square().sum() for parameter in module.parameters()).sqrt()
    assert total <= 0.1001
    scaler = torch.amp.GradScaler("neuron")
    scaler.scale(module(torch.ones(2, 3, device="neuron")).sum()).backward()
    scaler.step(torch.optim.SGD(module.parameters(), lr=0.1))
    scaler.update()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(dtype):
    a, b = torch.randn(3, 4, device="neuron"), torch.randn(4, 2, device="neuron")
    with torch.autocast("neuron", dtype=dtype):
        product = a @ b
        assert product.dtype == dtype
        assert torch.nn.functional.linear(a, b.t()).dtype == dtype
        assert product.softmax(-1).dtype == torch.float32
        assert product.sum().dtype == torch.float32
        assert (product + a[:, :2]).dtype == torch.float32
        assert (a.double() @ b.double()).dtype == torch.float64
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            torch.nn.functional.binary_cross_entropy(a.sigmoid(), torch.rand(3, 4, device="neuron"))
        with torch.autocast("neuron", enabled=False):
            assert (a @ b).dtype == torch.float32
    assert (a @ b).dtype == torch.float32


def test_autocast_training():
    module = torch.nn.Linear(4, 4).to("neuron")
    with torch.autocast("neuron", dtype=torch.bfloat16):
        loss = module(torch.ones(2, 4, device="neuron")).float().sum()
    loss.backward()
    assert module.weight.grad.dtype == torch.float32


def test_functional_transforms():
    weight = torch.randn(3, 3)
    data = torch.randn(5, 3)

    def loss(w, x):
        return (w @ x).sin().sum()

    host = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weight, data)
    device = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weight.to("neuron"), data.to("neuron"))
    same(device, host, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "module", [torch.nn.LSTM(4, 5), torch.nn.GRU(4, 5), torch.nn.RNN(4, 5)], ids=lambda m: type(m).__name__
)
def test_recurrent_modules(module):
    host = copy.deepcopy(module)
    device = copy.deepcopy(module).to("neuron")
    data = torch.randn(3, 2, 4)
    expected, _ = host(data)
    actual, _ = device(data.to("neuron"))
    torch.testing.assert_close(actual.detach().cpu(), expected.detach(), rtol=1e-4, atol=1e-5)
    expected.sum().backward()
    actual.sum().backward()
    for a, b in zip(device.parameters(), host.parameters(), strict=False):
        torch.testing.assert_close(a.grad.cpu(), b.grad, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(training):
    host = torch.nn.BatchNorm2d(3)
    host.weight.data.uniform_(0.5, 1.5)
    device = copy.deepcopy(host).to("neuron")
    host.train(training), device.train(training)
    data = torch.randn(4, 3, 5, 5) * 2 + 1
    host_input = data.clone().requires_grad_()
    device_input = data.to("neuron").requires_grad_()
    expected, actual = host(host_input), device(device_input)
    torch.testing.assert_close(actual.detach().cpu(), expected.detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(device.running_mean.cpu(), host.running_mean)
    torch.testing.assert_close(device.running_var.cpu(), host.running_var)
    assert device.num_batches_tracked.item() == host.num_batches_tracked.item()
    expected.square().sum().backward()
    actual.square().sum().backward()
    torch.testing.assert_close(device_input.grad.cpu(), host_input.grad, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("layer", ["Conv1d", "Conv2d", "ConvTranspose2d"])
def test_convolutions(layer):
    torch.manual_seed(0)
    host = getattr(torch.nn, layer)(3, 4, 3, padding=1)
    device = copy.deepcopy(host).to("neuron")
    shape = (2, 3, 8) if layer == "Conv1d" else (2, 3, 8, 8)
    data = torch.randn(shape)
    expected = host(data)
    actual = device(data.to("neuron"))
    torch.testing.assert_close(actual.detach().cpu(), expected.detach(), rtol=1e-4, atol=1e-5)
    expected.sum().backward()
    actual.sum().backward()
    torch.testing.assert_close(device.weight.grad.cpu(), host.weight.grad, rtol=1e-3, atol=1e-3)


def test_attention():
    query = torch.randn(2, 4, 6, 8)
    for causal in (False, True):
        expected = torch.nn.functional.scaled_dot_product_attention(query, query, query, is_causal=causal)
        moved = query.to("neuron")
        actual = torch.nn.functional.scaled_dot_product_attention(moved, moved, moved, is_causal=causal)
        torch.testing.assert_close(actual.cpu(), expected, rtol=1e-4, atol=1e-5)


def test_transformer_layer():
    torch.manual_seed(0)
    host = torch.nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    device = copy.deepcopy(host).to("neuron")
    data = torch.randn(2, 5, 16)
    expected, actual = host(data), device(data.to("neuron"))
    torch.testing.assert_close(actual.detach().cpu(), expected.detach(), rtol=1e-4, atol=1e-5)
    expected.sum().backward()
    actual.sum().backward()
    for a, b in zip(device.parameters(), host.parameters(), strict=False):
        torch.testing.assert_close(a.grad.cpu(), b.grad, rtol=1e-3, atol=1e-4)


def test_embedding_training():
    host = torch.nn.Embedding(10, 4)
    device = copy.deepcopy(host).to("neuron")
    index = torch.tensor([[1, 2], [2, 9]])
    host(index).square().sum().backward()
    device(index.to("neuron")).square().sum().backward()
    torch.testing.assert_close(device.weight.grad.cpu(), host.weight.grad)

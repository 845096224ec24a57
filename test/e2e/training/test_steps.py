# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Training steps: gradients that accumulate, whole steps as one program, checkpointed activations."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(20, 16)
        self.norm = torch.nn.LayerNorm(16)
        self.inner = torch.nn.Linear(16, 32)
        self.outer = torch.nn.Linear(32, 20)

    def forward(self, tokens):
        x = self.norm(self.embedding(tokens))
        return self.outer(F.gelu(self.inner(x)))


def models() -> tuple[Model, Model]:
    torch.manual_seed(0)
    host = Model()
    return host, copy.deepcopy(host).to("neuron")


def batches(count: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    return [tuple(torch.randint(0, 20, (6, 5), generator=generator) for _ in range(2)) for _ in range(count)]


def loss_of(model, tokens, labels):
    return F.cross_entropy(model(tokens).flatten(0, 1), labels.flatten())


def compare(device: torch.nn.Module, host: torch.nn.Module, gradients: bool = True) -> None:
    for (name, got), want in zip(device.named_parameters(), host.parameters(), strict=True):
        torch.testing.assert_close(
            got.detach().cpu(), want.detach(), rtol=1e-4, atol=1e-5, msg=lambda m, n=name: f"{n}: {m}"
        )
        if gradients:
            assert (got.grad is None) == (want.grad is None)
            if want.grad is not None:
                torch.testing.assert_close(
                    got.grad.cpu(), want.grad, rtol=1e-4, atol=1e-5, msg=lambda m, n=name: f"{n}: {m}"
                )


def whole(function):
    return torch.compile(function, backend="neuron", fullgraph=True, dynamic=False)


@pytest.mark.parametrize("set_to_none", (True, False))
@pytest.mark.parametrize("compiled", (False, True), ids=("eager", "compiled"))
def test_gradient_accumulation(compiled, set_to_none):
    """Three micro-batches a step; the gradients between steps are gone, or zeros."""
    host, device = models()
    run = whole(device) if compiled else device
    optimisers = [torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (host, device)]
    for step in range(2):
        for tokens, labels in batches(6)[3 * step : 3 * step + 3]:
            (loss_of(host, tokens, labels) / 3).backward()
            (loss_of(run, tokens.to("neuron"), labels.to("neuron")) / 3).backward()
        compare(device, host)
        for optimiser in optimisers:
            optimiser.step()
            optimiser.zero_grad(set_to_none=set_to_none)
        compare(device, host)


def stock_step(model, optimiser):
    """The step of stock PyTorch, eager."""

    def step(tokens, labels):
        optimiser.zero_grad()
        loss = loss_of(model, tokens, labels)
        loss.backward()
        optimiser.step()
        return loss.detach()

    return step


def step_with_optimiser(model, optimiser):
    """Forward, loss, backward and torch.optim's own step. Gradients have memory before: a graph writes into it."""
    raw = type(optimiser).step.__wrapped__.__wrapped__
    parameters = list(model.parameters())
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)

    def step(tokens, labels):
        loss = loss_of(model, tokens, labels)
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad.copy_(gradient)
            raw(optimiser)
        return loss.detach()

    return step


def step_by_hand(model, optimiser):
    """loss.backward() inside of the function, and plain gradient descent."""

    def step(tokens, labels):
        for parameter in model.parameters():
            parameter.grad.zero_()
        loss = loss_of(model, tokens, labels)
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.sub_(parameter.grad, alpha=0.1)
        return loss.detach()

    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    return step


def step_functional(model, optimiser):
    """torch.func: parameters in, gradients out, and the update in place."""
    parameters = dict(model.named_parameters())

    def step(tokens, labels):
        def loss_of_parameters(values):
            logits = torch.func.functional_call(model, values, (tokens,))
            return F.cross_entropy(logits.flatten(0, 1), labels.flatten())

        with torch.no_grad():
            gradients, loss = torch.func.grad_and_value(loss_of_parameters)(
                {k: p.detach().clone() for k, p in parameters.items()}
            )
            for name, parameter in parameters.items():
                parameter.sub_(gradients[name], alpha=0.1)
        return loss

    return step


STEPS = {
    "sgd": (step_with_optimiser, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)),
    "adamw": (step_with_optimiser, lambda p: torch.optim.AdamW(p, lr=0.01)),
    "adamw_capturable": (step_with_optimiser, lambda p: torch.optim.AdamW(p, lr=0.01, capturable=p[0].is_neuron)),
    "backward_by_hand": (step_by_hand, lambda p: torch.optim.SGD(p, lr=0.1)),
    "functional": (step_functional, lambda p: torch.optim.SGD(p, lr=0.1)),
}


@pytest.mark.parametrize("kind", STEPS)
def test_whole_step_is_one_program(kind):
    make, optimiser = STEPS[kind]
    host, device = models()
    reference = stock_step(host, optimiser(list(host.parameters())))
    step = whole(make(device, optimiser(list(device.parameters()))))
    with torch._dynamo.config.patch(trace_autograd_ops=True):
        known = len(torch.neuron.get_dynamo_metrics())
        for number, (tokens, labels) in enumerate(batches(8)):
            want = reference(tokens, labels)
            got = step(tokens.to("neuron"), labels.to("neuron"))
            torch.testing.assert_close(got.cpu(), want, rtol=1e-4, atol=1e-5)
            if number == 1:
                # The first step makes the optimiser's state; the second is the program of all later ones.
                compiled = torch.neuron.get_dynamo_metrics()[known:]
                assert len(compiled) <= 2
                assert {record["kind"] for record in compiled} == {"inference"}
                known += len(compiled)
        assert len(torch.neuron.get_dynamo_metrics()) == known
    compare(device, host, gradients=False)


# ---------------------------------------------------------------------------------------------------------------------
# Checkpointed activations
# ---------------------------------------------------------------------------------------------------------------------


def block(x, first, second, rate):
    hidden = F.dropout(F.gelu(x @ first), rate, training=rate > 0)
    return x + hidden @ second


def blocks(x, first, second, rate, checkpointed):
    for _ in range(2):
        if checkpointed:
            x = checkpoint(block, x, first, second, rate, use_reentrant=False)
        else:
            x = block(x, first, second, rate)
    return x


def run_blocks(device, rate, checkpointed, compiled):
    torch._dynamo.reset()
    torch.manual_seed(3)
    leaves = [torch.randn(shape) * 0.2 for shape in ((40, 32), (32, 64), (64, 32))]
    leaves = [leaf.to(device).requires_grad_() for leaf in leaves]
    torch.manual_seed(7)
    y = (whole(blocks) if compiled else blocks)(*leaves, rate, checkpointed)
    y.pow(2).sum().backward()
    return [value.detach().cpu() for value in (y, *(leaf.grad for leaf in leaves))]


@pytest.mark.parametrize("compiled", (False, True), ids=("eager", "compiled"))
def test_checkpoint_against_the_cpu(compiled):
    for want, got in zip(run_blocks("cpu", 0.0, True, False), run_blocks("neuron", 0.0, True, compiled), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("compiled", (False, True), ids=("eager", "compiled"))
def test_checkpoint_drops_the_same_elements(compiled):
    """With dropout: the gradients are those without checkpoints and the same draws, which a second mask would not give."""
    want, got = (run_blocks("neuron", 0.3, checkpointed, compiled) for checkpointed in (False, True))
    for expected, actual in zip(want, got, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)
    eager = run_blocks("neuron", 0.3, False, False)
    torch.testing.assert_close(got[0], eager[0], rtol=1e-4, atol=1e-4)


def test_checkpoint_keeps_less():
    """The backward program reads fewer values: what it needs in between is computed again."""
    sizes = []
    for checkpointed in (False, True):
        known = len(torch.neuron.get_dynamo_metrics())
        run_blocks("neuron", 0.0, checkpointed, True)
        (backward,) = (m for m in torch.neuron.get_dynamo_metrics()[known:] if m["kind"] == "backward")
        sizes.append(backward["nodes"])
    assert sizes[1] > sizes[0]


def test_checkpoint_without_gradients():
    torch.manual_seed(3)
    leaves = [torch.randn(shape).to("neuron") for shape in ((40, 32), (32, 64), (64, 32))]
    with torch.no_grad():
        got = whole(blocks)(*leaves, 0.0, True)
        torch.testing.assert_close(got, blocks(*leaves, 0.0, True), rtol=1e-5, atol=1e-4)

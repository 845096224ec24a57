# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Twenty steps of optimisers, eager and compiled, against the CPU: parameters, state, and where the state lives."""

from __future__ import annotations

import pytest
import torch
import torch_neuronx

STEPS = 20
SHAPES = ((8, 16), (16,), (), (3, 5, 7))
SGD, Adam, AdamW = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW
OPTIMISERS = {
    "sgd": (SGD, {"lr": 0.1}),
    "sgd_momentum": (SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    "sgd_nesterov": (SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    "adam": (Adam, {"lr": 0.01, "weight_decay": 0.01}),
    "adam_amsgrad": (Adam, {"lr": 0.01, "amsgrad": True, "maximize": True}),
    "adamw": (AdamW, {"lr": 0.01}),
    "adamw_amsgrad": (AdamW, {"lr": 0.01, "amsgrad": True, "betas": (0.3, 0.99), "eps": 1e-4}),
}
FORMS = {
    "single": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
    "single_capturable": {"foreach": False, "capturable": True},
    "foreach_capturable": {"foreach": True, "capturable": True},
}


def forms(*names: str):
    return [
        pytest.param(kind, form, id=f"{kind}-{form}")
        for kind, (cls, _) in OPTIMISERS.items()
        for form in names
        if cls is not SGD or "capturable" not in form
    ]


def parameters(device: str, dtype: torch.dtype = torch.float32) -> list[torch.nn.Parameter]:
    torch.manual_seed(1)
    return [torch.nn.Parameter(torch.randn(shape).to(device, dtype)) for shape in SHAPES]


def compiled_step(optimiser: torch.optim.Optimizer):
    """The step as one graph. Two wrappers around it break graphs on purpose: hooks and the switch of the grad mode."""
    step = type(optimiser).step.__wrapped__.__wrapped__

    @torch.compile(backend="neuron", fullgraph=True)
    @torch.no_grad()
    def call():
        step(optimiser)

    return call


def train(optimiser, step, steps: int = STEPS, scheduler=None) -> None:
    owned = optimiser.param_groups[0]["params"]
    torch.manual_seed(2)
    for _ in range(steps):
        for parameter in owned:
            parameter.grad = torch.randn(parameter.shape).to(parameter.device, parameter.dtype)
        step()
        if scheduler is not None:
            scheduler.step()


def compare(actual: torch.optim.Optimizer, expected: torch.optim.Optimizer, **tolerance) -> None:
    tolerance = tolerance or {"rtol": 1e-5, "atol": 3e-6}
    for got, want in zip(actual.param_groups[0]["params"], expected.param_groups[0]["params"], strict=True):
        assert got.device.type == "neuron"
        torch.testing.assert_close(got.detach().cpu(), want.detach(), **tolerance)
        assert actual.state[got].keys() == expected.state[want].keys()
        for name, value in expected.state[want].items():
            if value is None:
                assert actual.state[got][name] is None
                continue
            if name != "step":
                assert actual.state[got][name].device.type == "neuron", name
            torch.testing.assert_close(
                actual.state[got][name].cpu(), value, **tolerance, msg=lambda m, n=name: f"{n}: {m}"
            )


@pytest.mark.parametrize(("kind", "form"), forms(*FORMS))
def test_eager(kind, form):
    cls, options = OPTIMISERS[kind]
    expected = cls(parameters("cpu"), **options)
    actual = cls(parameters("neuron"), **options, **FORMS[form])
    train(expected, expected.step)
    train(actual, actual.step)
    compare(actual, expected)


@pytest.mark.parametrize(("kind", "form"), forms("single", "foreach", "foreach_capturable"))
def test_compiled(kind, form):
    cls, options = OPTIMISERS[kind]
    expected = cls(parameters("cpu"), **options)
    actual = cls(parameters("neuron"), **options, **FORMS[form])
    before = len(torch.neuron.get_dynamo_metrics())
    train(expected, expected.step)
    train(actual, compiled_step(actual))
    compare(actual, expected)
    # One program for the first step, which makes the state, and one for the others, if they differ at all.
    assert 1 <= len(torch.neuron.get_dynamo_metrics()) - before <= 2


@pytest.mark.parametrize("kind", ("adam_amsgrad", "adamw_amsgrad"))
def test_fused_operator_in_a_graph(kind):
    """torch.optim keeps its fused forms out of graphs, and PyTorch cannot trace all of them; what it can trace compiles."""
    cls, options = OPTIMISERS[kind]
    expected = cls(parameters("cpu"), **options)
    train(expected, expected.step, 3)
    owned = parameters("neuron")
    first, second, largest = ([torch.zeros_like(p) for p in owned] for _ in range(3))
    steps = [torch.zeros((), device="neuron") for _ in owned]
    settings = cls([torch.nn.Parameter(torch.zeros(()))], **options).defaults
    operator = torch._fused_adamw_ if cls is AdamW else torch._fused_adam_

    @torch.compile(backend="neuron", fullgraph=True)
    @torch.no_grad()
    def step(gradients):
        torch._foreach_add_(steps, 1)
        operator(
            owned, gradients, first, second, largest, steps, lr=settings["lr"], beta1=settings["betas"][0],
            beta2=settings["betas"][1], weight_decay=settings["weight_decay"], eps=settings["eps"], amsgrad=True,
            maximize=settings["maximize"],
        )  # fmt: skip

    torch.manual_seed(2)
    for _ in range(3):
        gradients = [torch.randn(p.shape).to("neuron") for p in owned]
        kept = [g.clone() for g in gradients]
        step(gradients)
        assert all(torch.equal(g.cpu(), k.cpu()) for g, k in zip(gradients, kept, strict=True))
    for got, want in zip(owned, expected.param_groups[0]["params"], strict=True):
        torch.testing.assert_close(got.detach().cpu(), want.detach(), rtol=1e-5, atol=3e-6)


@pytest.mark.parametrize("form", ("foreach", "fused"))
def test_bfloat16(form):
    """Parameters and state of 16 bits. Both sides compute in float32, where they round is their own business."""
    expected = AdamW(parameters("cpu", torch.bfloat16), lr=0.01, fused=True)
    actual = AdamW(parameters("neuron", torch.bfloat16), lr=0.01, **FORMS[form])
    train(expected, expected.step)
    train(actual, actual.step)
    compare(actual, expected, rtol=3e-2, atol=3e-2)


@pytest.mark.parametrize("form", ("single", "foreach", "fused"))
@pytest.mark.parametrize("cls", (SGD, AdamW))
def test_learning_rate_schedule(cls, form):
    """Another rate is a run-time value: eager steps build no programs for it."""
    expected, actual = (cls(parameters(d), lr=0.1, **k) for d, k in (("cpu", {}), ("neuron", FORMS[form])))
    schedules = [torch.optim.lr_scheduler.CosineAnnealingLR(o, T_max=40) for o in (expected, actual)]
    train(expected, expected.step, 4, schedules[0])
    train(actual, actual.step, 4, schedules[1])
    torch_neuronx.metrics.clear_all()
    for p, q in zip(expected.param_groups[0]["params"], actual.param_groups[0]["params"], strict=True):
        p.grad, q.grad = torch.ones_like(p), torch.ones_like(q)
    torch_neuronx.metrics.clear_all()
    expected.step()
    actual.step()
    assert torch_neuronx.metrics.get_counter_value("Eager.KeyMisses") == 0
    compare(actual, expected)


@pytest.mark.parametrize("form", ("single_capturable", "foreach_capturable"))
def test_compiled_with_a_rate_in_a_tensor(form):
    """A rate on the device is an argument of the program: a schedule compiles nothing again."""
    expected = AdamW(parameters("cpu"), lr=0.01)
    actual = AdamW(parameters("neuron"), lr=torch.tensor(0.01, device="neuron"), **FORMS[form])
    step = compiled_step(actual)
    train(expected, expected.step, 2)
    train(actual, step, 2)
    before = len(torch.neuron.get_dynamo_metrics())
    for number in range(5):
        expected.param_groups[0]["lr"] = 0.01 * 0.5**number
        actual.param_groups[0]["lr"].fill_(0.01 * 0.5**number)
        train(expected, expected.step, 1)
        train(actual, step, 1)
    assert len(torch.neuron.get_dynamo_metrics()) == before
    compare(actual, expected)


@pytest.mark.parametrize("form", ("foreach", "fused"))
def test_one_program_for_the_list(form):
    """The lists of an optimiser are one launch, however long they are."""
    counts = []
    for repeats in (1, 3):
        owned = [p for _ in range(repeats) for p in parameters("neuron")]
        optimiser = AdamW(owned, lr=0.01, **FORMS[form])
        train(optimiser, optimiser.step, 2)
        gradients = [torch.ones_like(p) for p in owned]
        for p, gradient in zip(owned, gradients, strict=True):
            p.grad = gradient
        torch_neuronx.metrics.clear_all()
        optimiser.step()
        counts.append(torch_neuronx.metrics.get_counter_value("Eager.Launches"))
    assert counts[0] == counts[1]
    assert counts[0] == 2 or form == "foreach"  # the steps advance, then the step


def test_state_survives_saving(tmp_path):
    owned = parameters("neuron")
    optimiser = AdamW(owned, lr=0.01, fused=True)
    train(optimiser, optimiser.step, 3)
    torch.save(optimiser.state_dict(), tmp_path / "state")
    other = AdamW([torch.nn.Parameter(p.detach().clone()) for p in owned], lr=0.5, fused=True)
    other.load_state_dict(torch.load(tmp_path / "state"))
    train(optimiser, optimiser.step, 3)
    train(other, other.step, 3)
    for got, want in zip(other.param_groups[0]["params"], owned, strict=True):
        assert torch.equal(got.detach().cpu(), want.detach().cpu())


@pytest.mark.parametrize("norm", (2.0, 1.0, float("inf")))
@pytest.mark.parametrize("foreach", (False, True))
def test_clip_gradients(norm, foreach):
    results = []
    for device in ("cpu", "neuron"):
        owned = parameters(device)
        torch.manual_seed(3)
        for p in owned:
            p.grad = torch.randn(p.shape).to(device)
        total = torch.nn.utils.clip_grad_norm_(owned, 0.7, norm, foreach=foreach)
        results.append([total.cpu(), *(p.grad.cpu() for p in owned)])
    for want, got in zip(*results, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form", ("foreach", "fused"))
def test_gradient_scaler(form):
    """Scaled losses, with an overflow in the second of four steps, which is left out and halves the scale."""
    results = []
    for device in ("cpu", "neuron"):
        owned = parameters(device)
        optimiser = AdamW(
            owned, lr=0.01, fused=form == "fused" or device == "cpu", foreach=False if device == "cpu" else None
        )
        scaler = torch.amp.GradScaler(device, init_scale=1024.0, growth_interval=2)
        torch.manual_seed(4)
        for number in range(4):
            optimiser.zero_grad()
            data = [torch.randn(p.shape).to(device) for p in owned]
            loss = sum((p * d).sum() for p, d in zip(owned, data, strict=True))
            if number == 1:
                loss = loss * 3e38
            scaler.scale(loss).backward()
            scaler.step(optimiser)
            scaler.update()
        results.append([torch.tensor(scaler.get_scale()), *(p.detach().cpu() for p in owned)])
    # GradScaler inverts the scale in float64, which the device does not have.
    assert set(torch_neuronx.get_fallback_ops()) <= {"aten::copy_", "aten::reciprocal"}
    torch_neuronx.clear_op_tracking()
    for want, got in zip(*results, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=3e-6)


def test_lists_that_share_tensors():
    """Elements in order, as in a loop: the second element sees what the first wrote."""
    results = []
    for device in ("cpu", "neuron"):
        torch.manual_seed(5)
        a, b, c = (torch.randn(4, 3).to(device) for _ in range(3))
        torch._foreach_add_([a, a], 1.0)
        torch._foreach_mul_([a, b], [b, a])
        torch._foreach_add_([c[:3], c[1:]], [b[:3], a[1:]], alpha=2)
        torch._foreach_mul_([a, b], c[0, 0])
        torch._foreach_add_([a, b], [a, b])
        results.append([value.cpu() for value in (a, b, c, *torch._foreach_norm([a, b, c]))])
    for want, got in zip(*results, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-6)


def test_lists_of_wrong_lengths():
    a, b = torch.ones(3, device="neuron"), torch.ones(3, device="neuron")
    with pytest.raises(RuntimeError, match="same number|length"):
        torch._foreach_add_([a, b], [a])
    with pytest.raises(RuntimeError, match="broadcast|size"):
        torch._foreach_add_([a, b], [b, torch.ones(4, device="neuron")])

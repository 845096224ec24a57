# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""PyTorch's own machinery around graphs: torch.func, breaks, sizes that change, containers, threads, optimisers."""

from __future__ import annotations

import collections
import copy
import dataclasses
import io
import pickle
import threading

import pytest
import torch
import torch.nn.functional as F
import torch_neuronx
from checking import case, check_all, compile
from torch.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.utils.checkpoint import checkpoint

CLOSE = {"rtol": 1e-3, "atol": 1e-4}


@pytest.fixture
def x():
    return torch.randn(8, 16)


@pytest.fixture
def model():
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4))


@pytest.fixture(autouse=True)
def _nothing_runs_on_the_cpu():
    torch_neuronx.clear_op_tracking()
    yield
    assert not torch_neuronx.get_fallback_ops()


def assert_close(got, want):
    torch.testing.assert_close(got.cpu() if isinstance(got, torch.Tensor) else got, want, **CLOSE)


TRANSFORMS = {
    "grad": lambda x, w: grad(lambda t: (t.sin() ** 2).sum())(x),
    "grad_and_value": lambda x, w: grad_and_value(lambda w, x: F.mse_loss(x @ w, x))(w, x),
    "vjp": lambda x, w: vjp(lambda t: t.exp() * t, x)[1](torch.ones_like(x))[0],
    "jvp": lambda x, w: jvp(lambda t: t.sin() * t, (x,), (torch.ones_like(x),)),
    "vmap": lambda x, w: vmap(lambda row: row @ w)(x),
    "nested vmap": lambda x, w: vmap(vmap(lambda t: t * 2 + 1))(x),
    "softmax of rows": lambda x, w: vmap(lambda row: row.softmax(0))(x),
    "gradients per sample": lambda x, w: vmap(grad(lambda w, row: (row @ w).pow(2).sum()), in_dims=(None, 0))(w, x),
    "jacrev": lambda x, w: jacrev(lambda t: t.sin() * t.sum())(x[0]),
    "jacfwd": lambda x, w: jacfwd(lambda t: t.sin() * t.sum())(x[0]),
    "hessian": lambda x, w: hessian(lambda t: (t**3).sum())(x[0, :4]),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_function_transforms(name, x):
    # A sum of -0.0 only may have either sign.
    check_all([case(name, TRANSFORMS[name], x, torch.randn(16, 16), signed_zero=False, **CLOSE)])


def test_functional_call(x, model):
    doubled = {name: value.detach() * 2 for name, value in model.named_parameters()}
    moved = {name: value.to("neuron") for name, value in doubled.items()}
    got = functional_call(copy.deepcopy(model).to("neuron"), moved, (x.to("neuron"),))
    assert_close(got, functional_call(model, doubled, (x,)))


def broken(t):
    t = t * 2
    torch._dynamo.graph_break()
    return t.relu() + 1


def branching(t):
    if t.sum() > 0:
        return t + 1
    return t - 1


def reading(t):
    return t * t.sum().item()


@pytest.mark.parametrize("function", (broken, branching, reading))
def test_graph_breaks(function, x):
    compiled = compile(function, fullgraph=False)
    for value in (x, -x):
        assert_close(compiled(value.to("neuron")), function(value))


@pytest.mark.parametrize("dynamic", (None, True))
def test_sizes_that_change(dynamic):
    def function(t):
        return (t * 2).softmax(-1).cumsum(0)

    compiled = compile(function, dynamic=dynamic)
    for rows in (3, 5, 8, 1):
        value = torch.randn(rows, 7)
        assert_close(compiled(value.to("neuron")), function(value))


def test_marked_dynamic():
    compiled = compile(lambda t: t.reshape(-1) * 2, dynamic=None)
    first = torch.ones(5, 3).to("neuron")
    torch._dynamo.mark_dynamic(first, 0)
    assert_close(compiled(first), torch.full((15,), 2.0))
    assert_close(compiled(torch.ones(9, 3).to("neuron")), torch.full((27,), 2.0))


Pair = collections.namedtuple("Pair", "first second")


@dataclasses.dataclass
class Scaled:
    value: torch.Tensor
    factor: int


def test_containers(x):
    d = x.to("neuron")
    pair = compile(lambda t: Pair(t + 1, t * 2))(d)
    assert type(pair).__name__ == "Pair"
    assert_close(pair.second, x * 2)
    nested = compile(lambda *, a, b=2: {"sum": a + b, "none": None, "rest": (a * b, [a], 7)})(a=d)
    assert nested["none"] is None and nested["rest"][2] == 7
    assert_close(nested["rest"][0], x * 2)
    scaled = compile(lambda s: Scaled(s.value * s.factor, s.factor + 1))(Scaled(d, 3))
    assert scaled.factor == 4
    assert_close(scaled.value, x * 3)


def test_methods_closures_and_nested_compilation(x):
    class Scaling:
        factor = 3.0

        def scale(self, t):
            return t * self.factor

    scaling, weight = Scaling(), torch.randn(16, 16)
    compiled = compile(scaling.scale)
    assert_close(compiled(x.to("neuron")), x * 3)
    scaling.factor = 4.0
    assert_close(compiled(x.to("neuron")), x * 4)
    captured = weight.to("neuron")
    assert_close(compile(lambda t: t @ captured)(x.to("neuron")), x @ weight)
    inner = torch.compile(torch.sin, backend="neuron")
    assert_close(compile(lambda t: inner(t) + 1, fullgraph=False)(x.to("neuron")), x.sin() + 1)


def test_threads_share_a_compiled_function(x):
    compiled = compile(lambda t: (t @ t.t()).softmax(-1))
    results, errors = [None] * 4, []

    def call(i):
        try:
            results[i] = compiled((x + i).to("neuron")).cpu()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(len(results))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for i, result in enumerate(results):
        assert_close(result, ((x + i) @ (x + i).t()).softmax(-1))


def test_copies_of_tensors_and_modules(x, model):
    d = x.to("neuron")
    for other in (pickle.loads(pickle.dumps(d)), copy.deepcopy(d)):
        assert other.device == d.device
        assert_close(other, x)
    moved, file = copy.deepcopy(model).to("neuron"), io.BytesIO()
    torch.save(moved.state_dict(), file)
    file.seek(0)
    restored = copy.deepcopy(model)
    restored.load_state_dict(torch.load(file, map_location="cpu"))
    assert_close(restored(x), model(x))
    file = io.BytesIO()
    torch.save(moved, file)
    file.seek(0)
    assert_close(torch.load(file, weights_only=False)(d), model(x))


def test_exported_program(x, model):
    exported = torch.export.export(copy.deepcopy(model), (x,)).module().to("neuron")
    assert_close(compile(exported)(x.to("neuron")), model(x))


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16), ids=("bfloat16", "float16"))
def test_autocast(dtype, x, model):
    moved = copy.deepcopy(model).to("neuron")

    def loss(t):
        with torch.autocast("neuron", dtype=dtype):
            out = moved(t)
        assert out.dtype == dtype
        return out.float().sum()

    for function in (loss, compile(loss)):
        moved.zero_grad()
        got = function(x.to("neuron"))
        got.backward()
        torch.testing.assert_close(got.cpu(), model(x).sum(), rtol=5e-2, atol=0.2)
        assert all(parameter.grad.dtype == torch.float32 for parameter in moved.parameters())


OPTIMISERS = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    "Adam": {"lr": 0.01, "amsgrad": True},
    "AdamW": {"lr": 0.01},
    "Adagrad": {"lr": 0.01},
    "Adadelta": {"lr": 1.0},
    "Adamax": {"lr": 0.01},
    "NAdam": {"lr": 0.01},
    "RAdam": {"lr": 0.01},
    "RMSprop": {"lr": 0.01, "momentum": 0.9, "centered": True},
    "Rprop": {"lr": 0.01},
    "ASGD": {"lr": 0.01},
    "LBFGS": {"lr": 0.1, "max_iter": 3},
}


@pytest.mark.parametrize("foreach", (True, False), ids=("foreach", "loop"))
@pytest.mark.parametrize("name", OPTIMISERS)
def test_optimisers(name, foreach, x, model):
    """Three steps, with clipped gradients and a schedule."""
    options = OPTIMISERS[name] if name == "LBFGS" else {**OPTIMISERS[name], "foreach": foreach}
    trained = []
    for device in ("cpu", "neuron"):
        own, data = copy.deepcopy(model).to(device), x.to(device)
        optimiser = getattr(torch.optim, name)(own.parameters(), **options)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 5)

        def closure(own=own, data=data, optimiser=optimiser):
            optimiser.zero_grad()
            loss = own(data).pow(2).mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(own.parameters(), 0.5)
            return loss

        for _ in range(3):
            optimiser.step(closure)
            schedule.step()
        trained.append([parameter.detach() for parameter in own.parameters()])
    for got, want in zip(trained[1], trained[0], strict=True):
        assert_close(got, want)


def test_hooks_and_checkpoints(x, model):
    moved, seen = copy.deepcopy(model).to("neuron"), []
    moved[0].register_forward_hook(lambda *arguments: seen.append(arguments))
    want = x.clone().requires_grad_()
    model(want).sum().backward()
    d = x.to("neuron").requires_grad_()
    d.register_hook(lambda gradient: gradient * 2)
    moved(d).sum().backward()
    assert seen
    assert_close(d.grad, want.grad * 2)
    again = copy.deepcopy(model).to("neuron")

    def recomputed(t):
        return checkpoint(again, t, use_reentrant=False).sum()

    for function in (recomputed, compile(recomputed)):
        d = x.to("neuron").requires_grad_()
        function(d).backward()
        assert_close(d.grad, want.grad)


class CubeGradient(torch.autograd.Function):
    @staticmethod
    def forward(context, t):
        context.save_for_backward(t)
        return t * t

    @staticmethod
    def backward(context, gradient):
        (t,) = context.saved_tensors
        return 3 * gradient * t


def test_functions_with_a_gradient_of_their_own(x):
    def total(t):
        return CubeGradient.apply(t).sum()

    for function in (total, compile(total)):
        d = x.to("neuron").requires_grad_()
        function(d).backward()
        assert_close(d.grad, 3 * x)


def test_modes_of_one_compiled_function(x):
    compiled = compile(lambda t: t * 2 + 1)
    with torch.inference_mode():
        assert_close(compiled(x.to("neuron")), x * 2 + 1)
    with torch.no_grad():
        assert_close(compiled(x.to("neuron")), x * 2 + 1)
    d = x.to("neuron").requires_grad_()
    compiled(d).sum().backward()
    assert_close(d.grad, torch.full_like(x, 2))

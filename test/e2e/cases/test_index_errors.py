# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Indices and classes out of range: an error of the CPU's type that names the operator, the index, the range and the user's
line, eagerly and compiled; the device goes on afterwards."""

from __future__ import annotations

import linecache
import re

import pytest
import torch
import torch.nn.functional as F
from checking import compile

SHAPE = (6, 5)

# Name: the function; what of the index is wrong, by dimension and size; whether negative indices count from the end.
# Each function takes x of SHAPE and indices of two elements, the second of which is out of range.
OPERATORS = {
    "index": (lambda x, i: x[i], 0, 6, True),
    "index of the inner dimension": (lambda x, i: x[:, i], 1, 5, True),
    "index, first of two": (lambda x, i: x[i, torch.zeros_like(i)], 0, 6, True),
    "index, second of two": (lambda x, i: x[torch.zeros_like(i), i], 1, 5, True),
    "index that broadcasts": (lambda x, i: x[:3][i[:, None], torch.zeros_like(i)], 0, 3, True),
    "index of a part": (lambda x, i: x[1:4, 2:][i], 0, 3, True),
    "index_put": (lambda x, i: x.index_put((i,), x[0]), 0, 6, True),
    "index_put, two": (lambda x, i: x.index_put((torch.zeros_like(i), i), x[0, :2]), 1, 5, True),
    "index_put, accumulating": (lambda x, i: x.index_put((i,), x[0], accumulate=True), 0, 6, True),
    "index_fill": (lambda x, i: x.index_fill(1, i, 2.0), 1, 5, True),
    "index_fill, tensor": (lambda x, i: x.index_fill(0, i, x[0, 0].detach()), 0, 6, True),
    "take": (lambda x, i: x.take(i), -1, 30, True),
    "put": (lambda x, i: x.put(i, x[0, :2]), -1, 30, True),
    "embedding": (lambda x, i: F.embedding(i, x), 0, 6, False),
    "embedding, padded": (lambda x, i: F.embedding(i, x, padding_idx=1), 0, 6, False),
    "index_select": (lambda x, i: x.index_select(1, i), 1, 5, False),
    "index_add": (lambda x, i: x.index_add(0, i, x[:2]), 0, 6, False),
    "index_add, inner": (lambda x, i: x.index_add(-1, i, x[:, :2], alpha=2), 1, 5, False),
    "index_copy": (lambda x, i: x.index_copy(0, i, x[:2]), 0, 6, False),
    "gather": (lambda x, i: x.gather(0, i[:, None].expand(2, 3)), 0, 6, False),
    "gather, inner": (lambda x, i: x.gather(-1, i[None]), 1, 5, False),
    "scatter": (lambda x, i: x.scatter(0, i[:, None], x), 0, 6, False),
    "scatter, number": (lambda x, i: x.scatter(1, i[None], 3.0), 1, 5, False),
    "scatter_add": (lambda x, i: x.scatter_add(0, i[:, None].expand(2, 5), x[:2]), 0, 6, False),
}

# The type on the CPU depends on shapes and strides; here it is IndexError.
EITHER_TYPE = ("index_select", "index_add")

# Scores [N, classes, ...], and the shape of the classes; one sample of them is out of range.
LOSSES = {
    "cross_entropy": (lambda x, t: F.cross_entropy(x, t), (6, 5)),
    "cross_entropy, sum": (lambda x, t: F.cross_entropy(x, t, reduction="sum"), (6, 5)),
    "cross_entropy, none": (lambda x, t: F.cross_entropy(x, t, reduction="none"), (6, 5)),
    "cross_entropy, smooth": (lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1), (6, 5)),
    "cross_entropy, weights": (lambda x, t: F.cross_entropy(x, t, torch.ones_like(x[0]).detach()), (6, 5)),
    "cross_entropy, spatial": (lambda x, t: F.cross_entropy(x, t), (2, 5, 3, 4)),
    "cross_entropy, sequence": (lambda x, t: F.cross_entropy(x, t), (2, 5, 3)),
    "cross_entropy, one sample": (lambda x, t: F.cross_entropy(x, t), (5,)),
    "nll_loss": (lambda x, t: F.nll_loss(x, t), (6, 5)),
    "nll_loss, ignoring 1": (lambda x, t: F.nll_loss(x, t, ignore_index=1), (6, 5)),
}


def raised(function, *arguments):
    """The exception of a call, which may surface when its result is read."""
    try:
        result = function(*arguments)
        for item in result if isinstance(result, (list, tuple)) else [result]:
            item.cpu()
    except Exception as error:
        return error
    return None


def expect_message(error, function, noun, index, first, end, host):
    text = str(error)
    line = function.__code__.co_firstlineno
    assert type(error) is type(host) or any(name in text for name in EITHER_TYPE), (
        repr(error),
        repr(host),
    )
    assert isinstance(error, (IndexError, RuntimeError))
    assert re.search(
        rf"{noun} {index} is out of bounds for .*: expected {first} <= {noun} < {end} \(operator aten\.", text
    )
    assert f'File "{__file__}", line {line}, in ' in text, text
    assert linecache.getline(__file__, line).strip() in text, text


def expect_usable():
    assert torch.equal(
        torch.arange(4, device="neuron")[torch.tensor([3, -1], device="neuron")].cpu(), torch.tensor([3, 3])
    )


@pytest.mark.parametrize("compiled", (False, True), ids=("eager", "compiled"))
@pytest.mark.parametrize("name", OPERATORS)
def test_index_out_of_range(name, compiled):
    """Beyond the end, far beyond it, and negative; with and without a gradient."""
    function, dimension, size, wraps = OPERATORS[name]
    run = compile(function) if compiled else function
    x = torch.randn(SHAPE)
    for index in (size, size + 1000003, -size - 1 if wraps else -1, -(2**31) - 5, 2**40 + 1):
        indices = torch.tensor([0, index])
        host = raised(function, x, indices)
        assert host is not None
        error = raised(run, x.to("neuron"), indices.to("neuron"))
        expect_message(error, function, "index", index, -size if wraps else 0, size, host)
        assert ("dimension" in str(error)) == (dimension >= 0)
        if dimension >= 0:
            assert f"for dimension {dimension} with size {size}:" in str(error)
        expect_usable()
    # What is in range goes through the same program.
    indices = torch.tensor([0, -1 if wraps else size - 1])
    assert torch.equal(run(x.to("neuron"), indices.to("neuron")).cpu(), function(x, indices))


@pytest.mark.parametrize("compiled", (False, True), ids=("eager", "compiled"))
@pytest.mark.parametrize("name", ("index, second of two", "embedding", "gather", "scatter_add", "index_copy"))
def test_index_out_of_range_in_training(name, compiled):
    """The error is that of the forward pass, though it surfaces after the backward one."""
    function, _, size, wraps = OPERATORS[name]
    x = torch.randn(SHAPE)
    run = compile(function) if compiled else function

    def gradient(run, x, indices):
        x = x.detach().requires_grad_()
        run(x, indices).square().sum().backward()
        return x.grad

    bad = torch.tensor([0, size + 2])
    error = raised(gradient, run, x.to("neuron"), bad.to("neuron"))
    expect_message(error, function, "index", size + 2, -size if wraps else 0, size, raised(function, x, bad))
    expect_usable()
    good = torch.tensor([1, size - 1])
    expected = gradient(function, x, good)
    torch.testing.assert_close(gradient(run, x.to("neuron"), good.to("neuron")).cpu(), expected)


@pytest.mark.parametrize("compiled", (False, True), ids=("eager", "compiled"))
@pytest.mark.parametrize("name", LOSSES)
def test_class_out_of_range(name, compiled):
    """ignore_index counts as in range whatever it is, and other negative classes do not."""
    function, shape = LOSSES[name]
    run = compile(function) if compiled else function
    x = torch.randn(shape)
    classes = torch.randint(0, 5, shape[:1] + shape[2:] if len(shape) > 1 else ())

    def gradient(run, x, classes):
        x = x.detach().requires_grad_()
        loss = run(x, classes)
        loss.sum().backward()
        return loss, x.grad

    for wrong in (5, 9, -1, -101, 2**40):
        classes.view(-1)[-1] = wrong
        host = raised(function, x, classes)
        assert isinstance(host, IndexError)
        error = raised(gradient, run, x.to("neuron"), classes.to("neuron"))
        expect_message(error, function, "target", wrong, 0, 5, host)
        expect_usable()
    if "ignoring" not in name:
        classes.view(-1)[-1] = 2 if len(shape) == 1 else -100
    else:
        classes.view(-1)[-1] = 1
    for device, host in zip(
        gradient(run, x.to("neuron"), classes.to("neuron")), gradient(function, x, classes), strict=True
    ):
        torch.testing.assert_close(device.cpu(), host)


def test_every_class_ignored():
    """A mean over nothing is NaN and no error."""
    x, classes = torch.randn(3, 4), torch.full((3,), -100)
    assert F.cross_entropy(x.to("neuron"), classes.to("neuron")).isnan().item()
    assert torch.equal(F.nll_loss(x.to("neuron"), classes.to("neuron"), reduction="none").cpu(), torch.zeros(3))


def test_first_line_of_many():
    """Two operators of one compiled function that read at indices: the line is that of the one that failed."""

    def function(x, i, j):
        first = x[i] * 2
        second = torch.gather(first, 1, j)
        return second + 1

    run, x = compile(function), torch.randn(4, 5).to("neuron")
    good, bad = torch.tensor([[0, 1]]), torch.tensor([[0, 5]])
    text = str(raised(run, x, torch.tensor([4]).to("neuron"), good.to("neuron")))
    assert "index 4 is out of bounds for dimension 0 with size 4" in text and "first = x[i] * 2" in text
    text = str(raised(run, x, torch.tensor([3]).to("neuron"), bad.to("neuron")))
    assert (
        "index 5 is out of bounds for dimension 1 with size 5" in text and "second = torch.gather(first, 1, j)" in text
    )


def test_assertion_on_the_device():
    """A condition of the user's names its text and line."""

    def checked(scores, classes):
        torch._assert_async(((classes >= 0) & (classes < 4)).all(), "class out of range")
        return scores.sum()

    run, scores = compile(checked), torch.randn(3, 4).to("neuron")
    error = raised(run, scores, torch.tensor([0, 9, 2]).to("neuron"))
    assert type(error) is RuntimeError and "assertion failed: class out of range" in str(error)
    assert (
        "torch._assert_async(((classes >= 0)" in str(error) and "out of bounds" not in str(error).split("(device:")[0]
    )
    assert raised(run, scores, torch.tensor([0, 3, 2]).to("neuron")) is None

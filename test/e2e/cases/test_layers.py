# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Layers that repeat: compiled and stored once, and right however their operands, results and order differ."""

from __future__ import annotations

import copy
import json

import pytest
import torch
import torch.nn.functional as F
import torch_neuronx
from torch_neuronx import _C
from torch_neuronx._dynamo import metrics

SIZE = 48


def compile_and_run(function, *arguments):
    """Results of the compiled function on the device, and the number of kernels of its only program."""
    torch._dynamo.reset()
    before = len(metrics.records())
    moved = [argument.to("neuron") if isinstance(argument, torch.Tensor) else argument for argument in arguments]
    moved = [[item.to("neuron") for item in argument] if isinstance(argument, list) else argument for argument in moved]
    result = torch.compile(function, backend="neuron", fullgraph=True, dynamic=False)(*moved)
    records = metrics.records()[before:]
    assert len(records) == 1
    return result, records[0]["kernels"]


def check(function, *arguments, tolerance=1e-4):
    want = function(*arguments)
    got, kernels = compile_and_run(function, *arguments)
    single = isinstance(want, torch.Tensor)
    for actual, expected in zip([got] if single else got, [want] if single else want, strict=True):
        assert actual.dtype == expected.dtype and actual.stride() == expected.stride()
        torch.testing.assert_close(actual.cpu(), expected, rtol=tolerance, atol=tolerance)
    return kernels


def weights(count, *shape):
    generator = torch.Generator().manual_seed(count)
    return [torch.randn(*(shape or (SIZE, SIZE)), generator=generator) / SIZE**0.5 for _ in range(count)]


def chain(x, layers):
    for weight in layers:
        x = x + torch.tanh(x @ weight)
    return x


def test_code_does_not_grow_with_the_layers():
    x = torch.randn(70, SIZE)
    few, many = (check(chain, x, weights(count)) for count in (4, 9))
    assert few == many
    assert check(chain, x, weights(2)) > 1


def test_what_differs_from_layer_to_layer_is_not_shared():
    def function(x, layers):
        for number, weight in enumerate(layers):
            x = x + (number + 1) * torch.tanh(x @ weight)
        return x

    check(function, torch.randn(5, SIZE), weights(5))


def test_one_weight_for_all_layers():
    def function(x, weight):
        for _ in range(6):
            x = F.layer_norm(x + x @ weight, (SIZE,))
        return x

    check(function, torch.randn(5, SIZE), weights(1)[0])


def test_weights_in_any_order():
    def function(x, layers):
        for index in (3, 1, 1, 0, 2, 3):
            x = x + torch.tanh(x @ layers[index])
        return x

    check(function, torch.randn(5, SIZE), weights(4))


def test_first_input_is_also_a_weight():
    def function(x, layers):
        y = x
        for weight in (x, *layers):
            y = y + torch.tanh(y @ weight)
        return y

    check(function, torch.randn(SIZE, SIZE) / 7, weights(5))


def test_every_layer_has_a_result():
    def function(x, layers):
        states = []
        for weight in layers:
            x = torch.tanh(x @ weight)
            states.append(x)
        return states

    check(function, torch.randn(5, SIZE), weights(5))


def test_results_with_strides_of_the_caller():
    def function(x, layers):
        states = []
        for weight in layers:
            x = torch.tanh(x @ weight)
            states.append(x.t())
        return states

    check(function, torch.randn(5, SIZE), weights(5))


def test_operands_with_strides():
    check(chain, torch.randn(SIZE, 5).t(), [weight.t() for weight in weights(5)])
    check(
        chain, torch.randn(5, SIZE), [weight if number % 2 else weight.t() for number, weight in enumerate(weights(6))]
    )
    check(chain, torch.randn(5, SIZE), [weight[:, ::2] for weight in weights(5, SIZE, 2 * SIZE)])


def test_slices_of_one_stacked_weight():
    def function(x, stacked):
        return chain(x, stacked.unbind(0))

    check(function, torch.randn(5, SIZE), torch.stack(weights(5)))


def test_two_kinds_of_layers():
    def function(x, first, second):
        x = chain(x, first)
        for weight in second:
            x = F.gelu(x @ weight) - x
        return chain(x, second)

    check(function, torch.randn(5, SIZE), weights(4), weights(5))


def test_alternating_layers():
    def function(x, layers):
        for number, weight in enumerate(layers):
            x = torch.tanh(x @ weight) if number % 2 else F.gelu(x @ weight) + x
        return x

    check(function, torch.randn(5, SIZE), weights(9))


def test_a_mask_shared_by_all_layers():
    def function(x, layers):
        mask = torch.ones(5, 5, dtype=torch.bool, device=x.device).tril()
        for weight in layers:
            scores = (x @ weight @ x.t()).masked_fill(~mask, float("-inf"))
            x = x + scores.softmax(-1) @ x
        return x

    check(function, torch.randn(5, SIZE), weights(5))


def test_values_that_skip_layers():
    def function(x, layers):
        older, old = x, x
        for weight in layers:
            older, old, x = old, x, torch.tanh(x @ weight) + older
        return x

    check(function, torch.randn(5, SIZE), weights(6))


def test_exact_integers():
    def function(x, layers):
        for weight in layers:
            x = (x @ weight) % 1000003
        return x

    generator = torch.Generator().manual_seed(0)
    layers = [torch.randint(-1000, 1000, (9, 9), generator=generator, dtype=torch.int32) for _ in range(4)]
    check(function, torch.randint(-1000, 1000, (5, 9), generator=generator, dtype=torch.int32), layers, tolerance=0)


@pytest.mark.parametrize("size", (0, 1, 129))
def test_sizes(size):
    check(chain, torch.randn(size, SIZE), weights(4))


def check_caches(function, count, *, caches=None):
    """Runs a function of (x, layers, caches), which writes the caches, on both devices; compares results and caches.
    Returns the record of the program."""
    layers, x = weights(count), torch.randn(2, SIZE)
    caches = caches or weights(count, 8, SIZE)
    mine = [cache.to("neuron") for cache in caches]
    assert [cache.stride() for cache in mine] == [cache.stride() for cache in caches]
    torch._dynamo.reset()
    before = len(metrics.records())
    compiled = torch.compile(function, backend="neuron", fullgraph=True, dynamic=False)
    for _ in range(2):
        want = function(x, layers, caches)
        got = compiled(x.to("neuron"), [weight.to("neuron") for weight in layers], mine)
        for actual, expected in zip([*got, *mine], [*want, *caches], strict=True):
            torch.testing.assert_close(actual.cpu(), expected, rtol=1e-4, atol=1e-4)
    (record,) = metrics.records()[before:]
    return record


def test_mutated_caches():
    """Each layer writes rows of its cache in place."""

    def function(x, layers, caches):
        position = torch.tensor([3, 5], device=x.device)
        for weight, cache in zip(layers, caches, strict=True):
            cache.index_copy_(0, position, x)
            x = x + torch.tanh(cache[position] @ weight) + cache.sum(0)
        return (x,)

    assert check_caches(function, 4)["kernels"] == check_caches(function, 7)["kernels"]


def test_caches_that_change_everywhere():
    def function(x, layers, caches):
        for weight, cache in zip(layers, caches, strict=True):
            cache.mul_(0.5).add_(x.mean(0))
            x = torch.tanh(x @ weight + cache.amax(0))
        return (x,)

    assert check_caches(function, 5)["kernels"] == check_caches(function, 8)["kernels"]


def test_caches_are_not_copied():
    def function(x, layers, caches):
        position = torch.tensor([3, 5], device=x.device)
        for weight, cache in zip(layers, caches, strict=True):
            cache.index_copy_(0, position, x)
            x = torch.tanh((x + cache[4]) @ weight)
        return (x,)

    records = [check_caches(function, count, caches=weights(count, 4096, SIZE)) for count in (4, 7)]
    assert records[0]["kernels"] == records[1]["kernels"]
    summary = json.loads(_C.model_summary(_C.program_by_hash(records[1]["neff_hash"]), 0))
    moved = summary["dma"]["hbm_read_bytes"] + summary["dma"]["hbm_write_bytes"]
    assert moved < 4096 * SIZE * 4, "expected less than one cache to move"


def test_caches_written_twice_in_a_layer():
    def function(x, layers, caches):
        for weight, cache in zip(layers, caches, strict=True):
            cache[2:4] = x
            x = torch.tanh(x @ weight + cache.sum(0))
            cache[3:5] += x
        return (x,)

    check_caches(function, 4)


def test_caches_whose_old_content_is_needed_later():
    def function(x, layers, caches):
        total = 0
        before = [cache.clone() for cache in caches]
        for weight, cache in zip(layers, caches, strict=True):
            cache[2:4] = x
            x = torch.tanh(x @ weight + cache.sum(0))
        for old in before:
            total = total + old
        return x, total

    check_caches(function, 4)


def test_caches_that_are_results_too():
    def function(x, layers, caches):
        for weight, cache in zip(layers, caches, strict=True):
            cache[2:4] = x
            x = torch.tanh(x @ weight + cache.sum(0))
        return (x, *[cache + 0 for cache in caches], *[cache.clone() for cache in caches])

    check_caches(function, 4)


def test_one_cache_of_all_layers():
    def function(x, layers, caches):
        for weight in layers:
            caches[0][2:4] = x
            x = torch.tanh(x @ weight + caches[0].sum(0))
        return (x,)

    check_caches(function, 4, caches=weights(1, 8, SIZE))


def test_caches_of_the_next_layer():
    def function(x, layers, caches):
        for k, weight in enumerate(layers):
            following = caches[(k + 1) % len(caches)]
            following[2:4] += x
            x = torch.tanh(x @ weight + caches[k].sum(0))
        return (x,)

    check_caches(function, 5)


def test_caches_with_strides():
    def function(x, layers, caches):
        for weight, cache in zip(layers, caches, strict=True):
            cache[2:4] = x
            x = torch.tanh(x @ weight + cache.sum(0))
        return (x,)

    check_caches(function, 4, caches=[cache.t() for cache in weights(4, SIZE, 8)])


def test_caches_that_are_only_written():
    def function(x, layers, caches):
        for weight, cache in zip(layers, caches, strict=True):
            x = torch.tanh(x @ weight)
            cache.copy_(x.repeat(4, 1))
        return (x,)

    check_caches(function, 4)


def test_two_caches_in_each_layer():
    def function(x, layers, caches):
        for k, weight in enumerate(layers):
            keys, values = caches[2 * k], caches[2 * k + 1]
            keys[1:3], values[5:7] = x, x * 2
            x = torch.tanh(torch.softmax(x @ keys.t(), -1) @ values @ weight)
        return (x,)

    few, many = (check_caches(function, count, caches=weights(2 * count, 8, SIZE)) for count in (4, 6))
    assert few["kernels"] == many["kernels"]


class Stack(torch.nn.Module):
    def __init__(self, count: int, dropout: float = 0.0):
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(SIZE) for _ in range(count))
        self.layers = torch.nn.ModuleList(torch.nn.Linear(SIZE, SIZE) for _ in range(count))
        self.dropout = dropout

    def forward(self, x):
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = x + F.dropout(F.gelu(layer(norm(x))), self.dropout, self.training)
        return x


def test_gradients():
    torch.manual_seed(0)
    host = Stack(5)
    device = copy.deepcopy(host).to("neuron")
    x = torch.randn(7, SIZE)
    mine = x.to("neuron").requires_grad_()
    x.requires_grad_()
    torch._dynamo.reset()
    got = torch.compile(device, backend="neuron", fullgraph=True, dynamic=False)(mine)
    want = host(x)
    torch.testing.assert_close(got.detach().cpu(), want.detach(), rtol=1e-4, atol=1e-4)
    want.square().sum().backward()
    got.square().sum().backward()
    torch.testing.assert_close(mine.grad.cpu(), x.grad, rtol=1e-3, atol=1e-3)
    for (name, actual), expected in zip(device.named_parameters(), host.parameters(), strict=True):
        torch.testing.assert_close(
            actual.grad.cpu(), expected.grad, rtol=1e-3, atol=1e-3, msg=lambda text, of=name: f"{of}: {text}"
        )


def test_each_layer_drops_other_elements():
    def function(x, layers):
        masks = []
        for weight in layers:
            x = torch.tanh(x @ weight)
            masks.append(F.dropout(torch.ones_like(x), 0.5, True))
            x = x * masks[-1]
        return masks

    torch.neuron.manual_seed(5)
    masks, few = compile_and_run(function, torch.randn(33, SIZE), weights(5))
    masks = [mask.cpu() for mask in masks]
    # Each call has a kernel that advances the generator's state; the layers themselves are there once.
    assert compile_and_run(function, torch.randn(33, SIZE), weights(9))[1] <= few + 4
    torch.neuron.manual_seed(5)
    for mask in masks:
        drawn = F.dropout(torch.ones(33, SIZE, device="neuron"), 0.5, True)
        assert torch.equal(mask, drawn.cpu())
    for i, mask in enumerate(masks):
        assert set(mask.unique().tolist()) == {0.0, 2.0}
        assert all(not torch.equal(mask, other) for other in masks[i + 1 :])


def test_gradients_with_dropout():
    """Forward and backward agree on what each layer dropped: the gradient is that of the same draws made eagerly."""
    torch.manual_seed(0)
    stack = Stack(5, dropout=0.4).to("neuron")
    x = torch.randn(7, SIZE).to("neuron")
    torch._dynamo.reset()
    gradients = []
    for run in (torch.compile(stack, backend="neuron", fullgraph=True, dynamic=False), stack):
        torch.neuron.manual_seed(11)
        mine = x.clone().requires_grad_()
        run(mine).square().sum().backward()
        gradients.append([mine.grad.cpu(), *(parameter.grad.cpu() for parameter in stack.parameters())])
        stack.zero_grad()
    for actual, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-3)


def test_an_error_in_a_layer_names_the_line():
    def function(x, layers):
        for weight in layers:
            x = torch.linalg.cholesky(x @ weight)
        return x

    with pytest.raises(Exception, match="cholesky") as caught:
        compile_and_run(function, torch.randn(SIZE, SIZE), weights(5))
    assert "test_layers.py" in str(caught.value)


def test_layers_of_one_program_run_again():
    """The program keeps nothing from run to run, and profiles name the kernels of layers."""
    run = torch.compile(chain, backend="neuron", fullgraph=True, dynamic=False)
    layers = weights(6)
    mine = [weight.to("neuron") for weight in layers]
    for seed in range(3):
        x = torch.randn(5, SIZE, generator=torch.Generator().manual_seed(seed))
        torch.testing.assert_close(run(x.to("neuron"), mine).cpu(), chain(x, layers), rtol=1e-4, atol=1e-4)
    assert not torch_neuronx.get_fallback_ops()

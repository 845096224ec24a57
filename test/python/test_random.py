# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Random numbers: generators, state, reproduction."""

from __future__ import annotations

import pytest
import torch
import torch_neuronx


def draw() -> torch.Tensor:
    return torch.randn(100, device="neuron").cpu()


def test_manual_seed_reproduces():
    torch.manual_seed(3)
    first = draw()
    second = draw()
    assert not torch.equal(first, second)
    torch.manual_seed(3)
    assert torch.equal(draw(), first) and torch.equal(draw(), second)
    torch.neuron.manual_seed(3)
    assert torch.equal(draw(), first)


def test_state_can_be_saved():
    torch.manual_seed(5)
    draw()
    state = torch.neuron.get_rng_state()
    first = draw()
    torch.neuron.set_rng_state(state)
    assert torch.equal(draw(), first)
    with pytest.raises((TypeError, RuntimeError), match="RNG state"):
        torch.neuron.set_rng_state(torch.zeros(3, dtype=torch.uint8))
    with pytest.raises((TypeError, RuntimeError), match="ByteTensor"):
        torch.neuron.set_rng_state(torch.zeros(16))


def test_explicit_generator():
    generator = torch.Generator(device="neuron")
    generator.manual_seed(7)
    first = torch.randn(10, device="neuron", generator=generator).cpu()
    torch.manual_seed(0)
    draw()
    generator.manual_seed(7)
    assert torch.equal(torch.randn(10, device="neuron", generator=generator).cpu(), first)
    assert generator.initial_seed() == 7
    assert generator.device == torch.device("neuron", 0)
    copy = generator.clone_state() if hasattr(generator, "clone_state") else None
    if copy is not None:
        assert torch.equal(copy.get_state(), generator.get_state())
    with pytest.raises(RuntimeError, match="generator"):
        torch.randn(3, device="neuron", generator=torch.Generator())


def test_device_draws_do_not_touch_the_cpu_generator():
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    draw()
    torch.rand(3, device="neuron")
    torch.randperm(5, device="neuron")
    assert torch.equal(torch.rand(3), expected)


def test_generators_of_devices_are_independent():
    torch.manual_seed(2)
    first = torch.rand(5, device="neuron:0").cpu()
    second = torch.rand(5, device="neuron:1").cpu()
    assert torch.equal(first, second)  # same seed, own offsets
    assert len(torch.neuron.default_generators) == torch.neuron.device_count()


def test_fork_rng():
    torch.manual_seed(4)
    with torch.random.fork_rng(devices=[0], device_type="neuron"):
        draw()
    first = draw()
    torch.manual_seed(4)
    assert torch.equal(draw(), first)


def test_fallback_draws_from_our_generator():
    torch.manual_seed(9)
    first = torch.randperm(20, device="neuron").cpu()
    second = torch.randperm(20, device="neuron").cpu()
    assert not torch.equal(first, second)
    torch.manual_seed(9)
    assert torch.equal(torch.randperm(20, device="neuron").cpu(), first)
    assert first.sort().values.tolist() == list(range(20))


def test_seed_changes_the_sequence():
    torch.neuron.seed()
    first = draw()
    torch.neuron.seed()
    assert not torch.equal(draw(), first)
    assert isinstance(torch.neuron.initial_seed(), int)


def test_dropout_statistics():
    torch.manual_seed(0)
    layer = torch.nn.Dropout(0.25)
    result = layer(torch.ones(4000, device="neuron")).cpu()
    kept = (result != 0).float().mean().item()
    assert 0.7 < kept < 0.8
    assert torch.allclose(result[result != 0], torch.tensor(1 / 0.75))


def test_distributions():
    torch.manual_seed(0)
    normal = torch.empty(8000, device="neuron").normal_(2.0, 3.0).cpu()
    assert abs(normal.mean().item() - 2) < 0.15 and abs(normal.std().item() - 3) < 0.15
    uniform = torch.empty(8000, device="neuron").uniform_(-1, 3).cpu()
    assert uniform.min() >= -1 and uniform.max() < 3 and abs(uniform.mean().item() - 1) < 0.1
    assert "aten::normal_" in torch_neuronx.get_executed_ops()

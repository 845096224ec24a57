# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Random numbers: seeds, offsets, distributions, and dropout forward and backward."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from checking import BF16, BOOL, F16, F32, I8, I32, I64, U8, compile
from torch.utils.checkpoint import checkpoint

DRAWS = {
    "rand": lambda: torch.rand(50, 40, device="neuron"),
    "rand bf16": lambda: torch.rand(50, 40, device="neuron", dtype=BF16),
    "randn": lambda: torch.randn(50, 40, device="neuron"),
    "randint": lambda: torch.randint(-5, 1000, (50, 40), device="neuron"),
    "randint wide": lambda: torch.randint(0, 2**60, (50, 40), device="neuron"),
    "bernoulli": lambda: torch.bernoulli(torch.full((50, 40), 0.3, device="neuron")),
    "normal": lambda: torch.normal(2.0, 3.0, (50, 40), device="neuron"),
    "uniform_": lambda: torch.empty(50, 40, device="neuron").uniform_(-2, 5),
    "exponential_": lambda: torch.empty(50, 40, device="neuron").exponential_(2.0),
    "rand_like": lambda: torch.rand_like(torch.empty(40, 50, device="neuron").T),
    "dropout": lambda: F.dropout(torch.ones(50, 40, device="neuron"), 0.25),
}


@pytest.mark.parametrize("name", DRAWS)
def test_seed_decides_the_draw(name):
    """manual_seed repeats a draw, eager and compiled draw the same, each call draws anew."""
    draw = DRAWS[name]
    torch.manual_seed(7)
    first, second = draw().cpu(), draw().cpu()
    assert not torch.equal(first, second)
    torch.manual_seed(7)
    assert torch.equal(draw().cpu(), first)
    run = compile(draw)
    torch.manual_seed(7)
    assert torch.equal(run().cpu(), first) and torch.equal(run().cpu(), second)


def test_all_bits_of_the_seed_count():
    """Neighbouring seeds, and seeds that differ above 32 bits, give different streams (aws-neuron/aws-neuron-sdk#724)."""
    run = compile(lambda: torch.rand(64, device="neuron"))
    seeds = [
        0,
        1,
        2,
        10,
        11,
        2**31,
        2**32 - 1,
        2**32,
        2**32 + 1,
        2**32 + 10,
        10 * 2**32,
        11 * 2**32 - 1,
        2**63 - 1,
        -1,
        -10,
    ]
    draws = []
    for seed in seeds:
        torch.manual_seed(seed)
        draws.append(run().cpu())
    for i in range(len(seeds)):
        for j in range(i):
            # 64 numbers of 24 bits: two equal at the same place are as good as impossible.
            assert (draws[i] == draws[j]).sum() <= 1, (seeds[i], seeds[j])


def test_draws_of_one_graph_differ():
    """Several draws of one graph, equal in shape, are independent; so are the words of one draw."""
    a, b, c = (
        t.cpu()
        for t in compile(
            lambda: (
                torch.rand(300, device="neuron"),
                torch.rand(300, device="neuron"),
                torch.randn(300, device="neuron"),
            )
        )()
    )
    assert (a == b).sum() <= 1 and len(a.unique()) > 295
    for t in (torch.rand(130, 70, device="neuron"), torch.randn(3, 2000, device="neuron")):
        assert len(t.cpu().unique()) > 0.99 * t.numel()


@pytest.mark.parametrize("shape", ((7,), (3, 5), (129, 33), (2, 3, 4, 5), (), (0, 3)), ids=str)
def test_draw_depends_on_the_element_not_on_its_tile(shape):
    """The numbers of a shape are the first numbers of its flat draw, alone or fused."""
    count = torch.Size(shape).numel()
    torch.manual_seed(3)
    flat = torch.rand(count, device="neuron").cpu()
    torch.manual_seed(3)
    assert torch.equal(torch.rand(shape, device="neuron").cpu().reshape(-1), flat)
    torch.manual_seed(3)
    fused = compile(lambda t: torch.rand_like(t) * 2 + t)(torch.zeros(shape, device="neuron"))
    assert torch.equal(fused.cpu().reshape(-1), flat * 2)


@pytest.mark.parametrize("dtype", (F32, BF16, F16), ids=str)
def test_ranges_and_moments(dtype):
    """Uniform draws lie in [0, 1), moments are those of the distribution within five standard errors."""
    count = 20000
    uniform = torch.rand(count, device="neuron", dtype=dtype).cpu().double()
    assert uniform.min() >= 0 and uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 5 * (1 / 12 / count) ** 0.5
    normal = torch.randn(count, device="neuron", dtype=dtype).cpu().double()
    assert abs(normal.mean()) < 5 / count**0.5 and abs(normal.var() - 1) < 5 * (2 / count) ** 0.5
    ordered = normal.sort().values
    expected = torch.erfinv(2 * (torch.arange(count, dtype=torch.float64) + 0.5) / count - 1) * 2**0.5
    assert (ordered - expected)[200:-200].abs().max() < 0.1


@pytest.mark.parametrize("dtype", (I64, I32, I8, U8, F32), ids=str)
def test_integer_draws(dtype):
    """Bounds are kept, each number occurs."""
    low = 0 if dtype == U8 else -3
    values = torch.randint(low, 9, (5000,), device="neuron", dtype=dtype).cpu()
    assert sorted(values.unique().tolist()) == list(range(low, 9))
    assert torch.randint(4, 5, (10,), device="neuron", dtype=dtype).cpu().tolist() == [4] * 10


def test_bernoulli_extremes():
    """Probability 0 and 1 are certain; NaN and numbers outside are refused as in eager or never drawn."""
    for p, want in ((0.0, 0.0), (1.0, 1.0)):
        assert torch.bernoulli(torch.full((500,), p, device="neuron")).cpu().unique().tolist() == [want]
    assert F.dropout(torch.ones(100, device="neuron"), 0.0).cpu().tolist() == [1.0] * 100
    assert F.dropout(torch.ones(100, device="neuron"), 1.0).cpu().tolist() == [0.0] * 100
    mean = torch.bernoulli(torch.full((20000,), 0.3, device="neuron")).mean().item()
    assert abs(mean - 0.3) < 5 * (0.21 / 20000) ** 0.5


@pytest.mark.parametrize("how", ("eager", "compiled"))
@pytest.mark.parametrize("shape", ((8, 64), (3, 5, 7), (129, 33)), ids=str)
def test_dropout_backward_has_the_mask_of_forward(shape, how):
    """The gradient is 1 / (1 - p) where the result is not zero, and the share of zeros is p."""
    x = torch.ones(shape, device="neuron", requires_grad=True)
    function = lambda t: F.dropout(t, 0.4)  # noqa: E731
    y = (function if how == "eager" else compile(function))(x)
    y.sum().backward()
    assert torch.equal(x.grad.cpu(), y.detach().cpu())
    share = (y == 0).float().mean().item()
    assert abs(share - 0.4) < 5 * (0.24 / x.numel()) ** 0.5


@pytest.mark.parametrize("how", ("eager", "compiled"))
def test_recomputed_dropout_has_the_same_mask(how):
    """Checkpointing draws the mask again in backward: the same one, also of a transposed operand
    (pytorch/pytorch#198333)."""

    def function(t):
        return checkpoint(lambda u: F.dropout(u.transpose(1, 2).contiguous(), 0.5), t, use_reentrant=False)

    x = torch.ones(8, 64, 32, device="neuron", requires_grad=True)
    y = (function if how == "eager" else compile(function))(x)
    y.sum().backward()
    assert torch.equal(x.grad.cpu(), y.detach().cpu().transpose(1, 2))
    groups = y.detach().cpu().flatten().reshape(-1, 4) != 0
    assert 0.2 < (groups[:, :1] == groups[:, 1:]).float().mean() < 0.8


def test_in_place_draws_fill_views():
    """uniform_ and random_ on part of a tensor leave the rest alone."""
    t = torch.full((6, 8), -1.0, device="neuron")
    t[1::2, 2:5].uniform_(0, 1)
    host = t.cpu()
    inside = host[1::2, 2:5]
    assert ((inside >= 0) & (inside < 1)).all() and (host == -1).sum() == 48 - inside.numel()
    mask = torch.zeros(300, dtype=BOOL, device="neuron").bernoulli_(0.5)
    assert 60 < mask.sum().item() < 240


def test_generator_state_is_restored():
    """get_rng_state and set_rng_state around compiled draws; a generator of one's own does not move the default one."""
    run = compile(lambda: torch.randn(9, device="neuron"))
    torch.manual_seed(5)
    run()
    state = torch.neuron.get_rng_state()
    first = run().cpu()
    torch.neuron.set_rng_state(state)
    assert torch.equal(run().cpu(), first)
    torch.neuron.set_rng_state(state)
    torch.rand(5)
    assert torch.equal(run().cpu(), first)

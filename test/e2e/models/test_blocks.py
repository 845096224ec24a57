# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Blocks that transformers models do not show: mixing over patches, and experts chosen per token."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
import torch_neuronx
from torch import nn


class Mixer(nn.Module):
    """An MLP over patches, then one over channels."""

    def __init__(self, patches: int = 12, channels: int = 32):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(channels) for _ in range(2))
        self.over_patches = nn.Sequential(nn.Linear(patches, 24), nn.GELU(), nn.Linear(24, patches))
        self.over_channels = nn.Sequential(nn.Linear(channels, 64), nn.GELU(), nn.Linear(64, channels))

    def forward(self, x):
        x = x + self.over_patches(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        return x + self.over_channels(self.norms[1](x))


class Experts(nn.Module):
    """The two best of six experts per token, weighted by a softmax over the two."""

    def __init__(self, channels: int = 32, experts: int = 6, chosen: int = 2):
        super().__init__()
        self.router = nn.Linear(channels, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, channels, 48) * 0.2)
        self.down = nn.Parameter(torch.randn(experts, 48, channels) * 0.2)
        self.experts, self.chosen = experts, chosen

    def forward(self, x):
        weights, experts = self.router(x).topk(self.chosen, dim=-1)
        shares = F.one_hot(experts, self.experts).to(x.dtype) * weights.softmax(-1).unsqueeze(-1)
        hidden = F.silu(torch.einsum("btc,ech->bteh", x, self.up))
        return x + torch.einsum("bteh,ehc,bte->btc", hidden, self.down, shares.sum(2))


class SortedExperts(Experts):
    """The same by gathering: tokens sorted by expert, weights read by index, results added where they belong."""

    def forward(self, x):
        tokens = x.flatten(0, 1)
        weights, experts = self.router(tokens).topk(self.chosen, dim=-1)
        order = experts.flatten().argsort(stable=True)
        source = order // self.chosen
        chosen = experts.flatten()[order]
        hidden = F.silu(torch.bmm(tokens[source].unsqueeze(1), self.up[chosen]))
        result = torch.bmm(hidden, self.down[chosen]).squeeze(1) * weights.softmax(-1).flatten()[order].unsqueeze(1)
        return x + torch.zeros_like(tokens).index_add(0, source, result).view_as(x)


BLOCKS = {"mixer": Mixer, "experts": Experts, "sorted_experts": SortedExperts}


@pytest.mark.parametrize("compiled", (False, True), ids=("eager", "compiled"))
@pytest.mark.parametrize("name", BLOCKS)
def test_training(name, compiled):
    """Output and gradients, then the losses of ten steps."""
    torch._dynamo.reset()
    torch_neuronx.clear_op_tracking()
    torch.manual_seed(0)
    host = BLOCKS[name]()
    device = copy.deepcopy(host).to("neuron")
    run = torch.compile(device, backend="neuron", fullgraph=True, dynamic=False) if compiled else device
    data, target = torch.randn(2, 12, 32), torch.randn(2, 12, 32)
    optimisers = [torch.optim.SGD(m.parameters(), lr=0.05) for m in (host, device)]
    for step in range(10):
        losses = []
        for model, optimiser, place in ((host, optimisers[0], "cpu"), (run, optimisers[1], "neuron")):
            optimiser.zero_grad()
            loss = F.mse_loss(model(data.to(place)), target.to(place))
            loss.backward()
            losses.append(loss.item())
        assert losses[1] == pytest.approx(losses[0], rel=1e-4), step
        if step == 0:
            for (name_of, got), want in zip(device.named_parameters(), host.parameters(), strict=True):
                torch.testing.assert_close(
                    got.grad.cpu(), want.grad, rtol=1e-3, atol=1e-5, msg=lambda m, n=name_of: f"{n}: {m}"
                )
        for optimiser in optimisers:
            optimiser.step()
    assert not torch_neuronx.get_fallback_ops()


def test_one_hot_checks_its_classes():
    """A check of data inside of a graph: its violation is an error of the execution, not a row of zeros."""
    torch._dynamo.reset()
    encode = torch.compile(lambda x: F.one_hot(x, 4), backend="neuron", fullgraph=True)
    classes = torch.tensor([0, 3, 1])
    assert torch.equal(encode(classes.to("neuron")).cpu(), F.one_hot(classes, 4))
    with pytest.raises(RuntimeError, match="_assert_async"):
        encode(torch.tensor([0, 4, 1], device="neuron"))
        torch.neuron.synchronize()

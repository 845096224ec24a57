# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Views share storage with their base, in both directions."""

from __future__ import annotations

import pytest
import torch
import torch_neuronx
from conftest import same

VIEWS = {
    "view": lambda t: t.view(8, 3),
    "reshape": lambda t: t.reshape(2, 12),
    "t": lambda t: t.t(),
    "transpose": lambda t: t.transpose(0, 1),
    "permute": lambda t: t.permute(1, 0),
    "slice": lambda t: t[1:3],
    "strided slice": lambda t: t[:, ::2],
    "select": lambda t: t[2],
    "narrow": lambda t: t.narrow(1, 1, 3),
    "unsqueeze": lambda t: t.unsqueeze(1),
    "squeeze": lambda t: t.unsqueeze(0).squeeze(0),
    "diagonal": lambda t: t.diagonal(),
    "as_strided": lambda t: t.as_strided((2, 3), (6, 2), 1),
    "unfold": lambda t: t.unfold(1, 3, 3),
    "split": lambda t: t.split(2)[1],
    "chunk": lambda t: t.chunk(2, dim=1)[1],
    "unbind": lambda t: t.unbind()[3],
    "flatten": lambda t: t.flatten(),
    "view dtype": lambda t: t.view(torch.int32),
    "expand of select": lambda t: t[0:1].expand(1, 6),
    "movedim": lambda t: t.movedim(0, 1),
    "view_as": lambda t: t.view_as(torch.empty(6, 4)),
    "detach": lambda t: t.detach(),
}


@pytest.mark.parametrize("name", VIEWS)
def test_view(name, no_warnings):
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    device_base = base.to("neuron")
    view, device_view = VIEWS[name](base), VIEWS[name](device_base)
    same(device_view, view)
    assert device_view.untyped_storage().data_ptr() == device_base.untyped_storage().data_ptr()
    assert device_view.storage_offset() == view.storage_offset()
    # Through the view into the base ...
    view.mul_(2)
    device_view.mul_(2)
    same(device_base, base)
    # ... and back.
    base.add_(1)
    device_base.add_(1)
    same(device_view, view)
    assert torch_neuronx.get_fallback_ops() == []


def test_complex_views():
    base = torch.randn(3, 2)
    device = base.to("neuron")
    same(torch.view_as_real(torch.view_as_complex(device)), base)
    torch.view_as_real(torch.view_as_complex(device)).zero_()
    assert device.cpu().abs().sum() == 0


def test_view_errors_match_cpu():
    device, host = torch.zeros(4, 6, device="neuron"), torch.zeros(4, 6)
    for act in (
        lambda t: t.view(5, 5),
        lambda t: t.t().view(24),
        lambda t: t[7],
        lambda t: t.select(2, 0),
        lambda t: t.narrow(0, 3, 2),
        lambda t: t.transpose(0, 2),
    ):
        with pytest.raises((RuntimeError, IndexError)) as expected:
            act(host)
        with pytest.raises(type(expected.value)) as actual:
            act(device)
        assert str(actual.value) == str(expected.value)


def test_is_view_bookkeeping():
    base = torch.zeros(4, device="neuron")
    view = base[1:]
    assert view._base is base and view._is_view()
    version = base._version
    view.add_(1)
    assert base._version == version + 1

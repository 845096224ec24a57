# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Copies between host and devices: dtypes, layouts, order, errors."""

from __future__ import annotations

import pytest
import torch
import torch_neuronx
from conftest import same

DTYPES = [
    torch.float32,
    torch.bfloat16,
    torch.float16,
    torch.float64,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.bool,
]


def sample(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    values = torch.randn(shape) * 40
    if dtype == torch.bool:
        return values > 0
    return values.abs().to(dtype) if dtype == torch.uint8 else values.to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_round_trip(dtype):
    source = sample(dtype, 3, 5, 2)
    same(source.to("neuron"), source)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.complex64])
def test_round_trip_of_storage_dtypes(dtype):
    source = torch.randn(4, 4).to(dtype)
    back = source.to("neuron").cpu()
    assert torch.equal(back.view(torch.uint8), source.view(torch.uint8)) or torch.equal(
        torch.view_as_real(back), torch.view_as_real(source)
    )


@pytest.mark.parametrize("source_dtype", DTYPES)
@pytest.mark.parametrize("target_dtype", DTYPES)
def test_conversion_on_every_route(source_dtype, target_dtype):
    source = sample(source_dtype, 4, 3)
    if target_dtype == torch.uint8:
        source = source.abs() if source_dtype not in (torch.bool, torch.uint8) else source
    expected = source.to(target_dtype)
    same(source.to("neuron", target_dtype), expected)  # host to device
    torch.testing.assert_close(source.to("neuron").to("cpu", target_dtype), expected)  # device to host
    same(source.to("neuron").to(target_dtype), expected)  # on the device


LAYOUTS = {
    "contiguous": lambda t: t,
    "transposed": lambda t: t.transpose(0, 2),
    "sliced": lambda t: t[:, 1::2],
    "narrow": lambda t: t[..., :3],
    "channels": lambda t: t.permute(1, 2, 0),
}


@pytest.mark.parametrize("source_layout", LAYOUTS)
@pytest.mark.parametrize("target_layout", LAYOUTS)
def test_strided_copies(source_layout, target_layout):
    shape = (3, 3, 3) if source_layout in ("contiguous", "transposed", "channels") else None
    base = torch.randn(6, 6, 6)
    source = LAYOUTS[source_layout](base)
    target_base = torch.zeros(6, 6, 6)
    target = LAYOUTS[target_layout](target_base)
    size = [min(a, b) for a, b in zip(source.shape, target.shape, strict=False)]
    index = tuple(slice(0, n) for n in size)
    assert shape is None or len(shape) == 3
    expected = target_base.clone()
    LAYOUTS[target_layout](expected)[index].copy_(source[index])
    # host -> device, device -> device
    for origin in (source, LAYOUTS[source_layout](base.to("neuron"))):
        device_base = target_base.to("neuron")
        LAYOUTS[target_layout](device_base)[index].copy_(origin[index])
        same(device_base, expected)
    # device -> host
    host_base = target_base.clone()
    LAYOUTS[target_layout](host_base)[index].copy_(LAYOUTS[source_layout](base.to("neuron"))[index])
    assert torch.equal(host_base, expected)


def test_strided_views_come_back_with_their_strides():
    source = torch.randn(4, 6)
    assert torch.equal(source.to("neuron").t().cpu(), source.t())
    assert torch.equal(source.to("neuron")[:, ::2].cpu(), source[:, ::2])
    expanded = torch.randn(3, 1).to("neuron").expand(3, 4)
    assert expanded.cpu().shape == (3, 4)


def test_broadcasting_copy_and_its_errors():
    target = torch.zeros(3, 4, device="neuron")
    target.copy_(torch.arange(4.0))
    same(target, torch.arange(4.0).expand(3, 4).contiguous())
    for source in (torch.ones(3), torch.ones(3, device="neuron")):
        with pytest.raises(RuntimeError) as on_device:
            target.copy_(source)
        with pytest.raises(RuntimeError) as on_host:
            torch.zeros(3, 4).copy_(torch.ones(3))
        assert str(on_device.value) == str(on_host.value)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch.zeros(4, device="neuron").copy_(torch.ones(3, 4, device="neuron"))


def test_copy_between_devices():
    source = torch.randn(5, 3).to("neuron:0")
    target = source.t().to("neuron:1")
    assert target.device.index == 1
    same(target.contiguous(), source.cpu().t().contiguous())
    assert source.to("neuron:1", torch.float16).dtype == torch.float16


def test_copies_without_elements():
    empty = torch.empty(0, 4).to("neuron")
    assert empty.cpu().shape == (0, 4)
    torch.empty(0, 3, device="neuron").copy_(torch.empty(0, 3))
    assert empty.to(torch.int64).shape == (0, 4)


def test_host_writes_are_ordered_behind_pending_work(run_python):
    run_python(
        """
        import torch
        a = torch.ones(1000, device="neuron")
        b = a * 2                      # takes a while
        host = torch.full((1000,), 7.0)
        a.copy_(host)                  # must not overtake the multiplication
        host.fill_(9.0)                # and must have been read already
        c = a + 1
        assert b.cpu().eq(2).all() and c.cpu().eq(8).all() and a.cpu().eq(7).all()

        pinned = torch.full((1 << 20,), 3.0).pin_memory()
        d = torch.zeros(1 << 20, device="neuron")
        e = d + 1
        d.copy_(pinned, non_blocking=True)
        del pinned                     # the allocator must keep the block
        other = torch.full((1 << 20,), 5.0).pin_memory()
        assert d.cpu().eq(3).all() and e.cpu().eq(1).all()

        big = torch.full((1 << 20,), 4.0)
        f = d + 1
        d.copy_(big)
        big.zero_()
        assert d.cpu().eq(4).all() and f.cpu().eq(4).all()

        # Memory that is freed while work is pending is reused in order.
        x = torch.ones(1 << 16, device="neuron")
        y = x + 1
        del x
        z = torch.full((1 << 16,), 8.0).to("neuron")
        assert y.cpu().eq(2).all() and z.cpu().eq(8).all()
        """,
        NEURON_DOUBLE_DELAY_US="20000",
    )


def test_conjugate_and_negative_bits():
    source = torch.randn(4, dtype=torch.complex64)
    device = source.to("neuron")
    assert torch.equal(device.conj().cpu(), source.conj())
    assert torch.equal(device.conj().resolve_conj().cpu(), source.conj().resolve_conj())
    assert torch.equal(device.conj().imag.cpu(), source.conj().imag)
    target = torch.zeros(4, dtype=torch.complex64).to("neuron")
    target.conj().copy_(source)
    assert torch.equal(target.cpu(), source.conj().resolve_conj())
    negative = torch._neg_view(torch.arange(3.0).to("neuron"))
    assert torch.equal(negative.cpu(), -torch.arange(3.0))


def test_device_copies_do_not_fall_back():
    tensor = torch.randn(4, 6).to("neuron")
    torch_neuronx.clear_op_tracking()
    tensor.clone()
    tensor.t().contiguous()
    tensor.to(torch.bfloat16)
    assert torch_neuronx.get_fallback_ops() == []


def test_overlapping_destination_is_refused():
    target = torch.zeros(3, device="neuron").expand(4, 3)
    with pytest.raises(RuntimeError, match="single memory location"):
        target.copy_(torch.ones(4, 3))


def test_shifted_copy_within_one_tensor():
    expected = torch.arange(10.0)
    expected[1:] = expected[:-1].clone()
    tensor = torch.arange(10.0).to("neuron")
    try:
        tensor[1:] = tensor[:-1]
    except RuntimeError as error:
        # Core refuses partial overlap of dense tensors.
        assert "single memory location" in str(error)
    tensor = torch.arange(10.0).to("neuron")
    tensor[2::2] = tensor[0:8:2]
    reference = torch.arange(10.0)
    reference[2::2] = reference[0:8:2].clone()
    same(tensor, reference)

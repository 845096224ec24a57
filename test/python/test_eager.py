# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Eager dispatch: forms, the key, run-time scalars, errors, overlap, empty tensors."""

from __future__ import annotations

import pytest
import torch
import torch_neuronx
from conftest import same
from torch_neuronx import _C


def misses() -> int:
    return _C.eager_statistics()["misses"]


def launches() -> int:
    return _C.eager_statistics()["launches"]


def test_one_launch_per_operator():
    a, b = torch.randn(3, 4).to("neuron"), torch.randn(3, 4).to("neuron")
    torch.neuron.synchronize()
    torch_neuronx.clear_op_tracking()
    before = launches()
    a * b
    a + b
    (a * a).mean(-1, keepdim=True)
    assert launches() - before == 4
    assert sorted(set(torch_neuronx.get_executed_ops())) == ["aten::add", "aten::mean", "aten::mul"]
    assert torch_neuronx.get_executed_ops().count("aten::mul") == 2


def test_forms_give_the_same():
    a, b = torch.randn(3, 4), torch.randn(3, 4)
    expected = a.clone().mul_(b)
    x, y = a.to("neuron"), b.to("neuron")
    same(x * y, expected)
    out = torch.empty(3, 4, device="neuron")
    assert torch.mul(x, y, out=out) is out
    same(out, expected)
    identity = x
    assert x.mul_(y) is identity
    same(x, expected)
    strided = torch.zeros(3, 8, device="neuron")[:, ::2]
    torch.add(x, y, out=strided)
    torch.testing.assert_close(strided.cpu(), expected + b)


def test_scalars_never_recompile():
    tensor = torch.randn(5, 3).to("neuron")
    tensor * 1.25
    tensor.add_(0.5)
    torch.add(tensor, tensor, alpha=2.5)
    tensor.clamp(-0.5, 0.5)
    tensor.fill_(1.0)
    before = misses()
    host = tensor.cpu()
    for value in (0.1, -3.0, 1e-6, 7.5):
        same(tensor * value, host * value)
        same(torch.add(tensor, tensor, alpha=value), torch.add(host, host, alpha=value))
        same(tensor.clamp(-value * value, value * value), host.clamp(-value * value, value * value))
        same(tensor.clone().fill_(value), host.clone().fill_(value))
    assert misses() == before


def test_kinds_of_numbers_are_structural():
    integers = torch.arange(4).to("neuron")
    same(integers * 2, torch.arange(4) * 2)
    same(integers * 2.5, torch.arange(4) * 2.5)
    same(integers * True, torch.arange(4) * True)
    same(integers + (2**40 + 1), torch.arange(4) + (2**40 + 1))
    same(torch.ones(3, dtype=torch.bfloat16).to("neuron") + 1.0, torch.ones(3, dtype=torch.bfloat16) + 1.0)


def test_double_precision_numbers_are_exact():
    host = torch.tensor([1.0, 2.0], dtype=torch.float64)
    same(host.to("neuron") + 0.1, host + 0.1, rtol=0, atol=0)
    same(host.to("neuron") * 0.5, host * 0.5, rtol=0, atol=0)


def test_host_scalars_take_part():
    host, device = torch.randn(3, 2), None
    device = host.to("neuron")
    same(device * torch.tensor(2.5), host * torch.tensor(2.5))
    same(torch.tensor(2.5) * device, torch.tensor(2.5) * host)
    same(device.half() * torch.tensor(2.5), host.half() * torch.tensor(2.5))
    same(torch.where(device > 0, device, torch.tensor(0.0)), torch.where(host > 0, host, torch.tensor(0.0)))


def test_promotion_matches_cpu():
    values = {
        "f32": torch.randn(3),
        "bf16": torch.randn(3).bfloat16(),
        "f16": torch.randn(3).half(),
        "i32": torch.arange(3, dtype=torch.int32),
        "i64": torch.arange(3),
        "u8": torch.arange(3, dtype=torch.uint8),
        "bool": torch.tensor([True, False, True]),
        "0-dim f32": torch.tensor(1.5),
        "0-dim i64": torch.tensor(2),
    }
    for a in values.values():
        for b in values.values():
            same(a.to("neuron") + b.to("neuron"), a + b)


def test_layouts_follow_cpu():
    a = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    b = torch.randn(2, 3, 4, 5)
    for operation in (
        lambda x, y: x * 2,
        lambda x, y: x + y,
        lambda x, y: x.transpose(1, 2) * 3,
        lambda x, y: x.relu(),
    ):
        same(operation(a.to("neuron"), b.to("neuron")), operation(a, b))


ERRORS = {
    "broadcast": lambda d: torch.ones(3, device=d) + torch.ones(4, device=d),
    "matmul shapes": lambda d: torch.ones(2, 3, device=d) @ torch.ones(2, 3, device=d),
    "matmul dtypes": lambda d: torch.mm(torch.ones(2, 2, device=d), torch.ones(2, 2, device=d).double()),
    "in-place shape": lambda d: torch.ones(3, device=d).add_(torch.ones(2, 3, device=d)),
    "in-place dtype": lambda d: torch.ones(3, dtype=torch.int64, device=d).add_(torch.ones(3, device=d)),
    "in-place division of integers": lambda d: torch.ones(3, dtype=torch.int64, device=d).div_(2),
    "out dtype": lambda d: torch.add(
        torch.ones(3, device=d), torch.ones(3, device=d), out=torch.ones(3, dtype=torch.int64, device=d)
    ),
    "dimension": lambda d: torch.ones(3, 4, device=d).sum(5),
    "softmax dimension": lambda d: torch.ones(3, device=d).softmax(2),
    "cat sizes": lambda d: torch.cat([torch.ones(2, 3, device=d), torch.ones(2, 4, device=d)]),
    "bitwise on floats": lambda d: torch.ones(3, device=d) & torch.ones(3, device=d),
    "bool subtraction": lambda d: torch.tensor([True], device=d) - torch.tensor([True], device=d),
    "gather dtype": lambda d: torch.ones(3, device=d).gather(0, torch.ones(2, device=d)),
    "bmm shapes": lambda d: torch.bmm(torch.ones(2, 3, 4, device=d), torch.ones(3, 4, 5, device=d)),
    "layer norm shape": lambda d: torch.nn.functional.layer_norm(torch.ones(2, 3, device=d), [4]),
    "index dimension": lambda d: torch.ones(3, device=d).index_select(3, torch.zeros(1, dtype=torch.int64, device=d)),
    "internal overlap": lambda d: torch.ones(1, device=d).expand(3).add_(1),
    "partial overlap": lambda d: (lambda t: torch.add(t[:-1], 1, out=t[1:]))(torch.ones(5, device=d)),
    "mean of integers": lambda d: torch.ones(3, dtype=torch.int64, device=d).mean(),
    "argmax of nothing": lambda d: torch.ones(0, device=d).argmax(),
}


# The double's CPU kernels find these only when they run.
FOUND_BY_THE_COMPILER = {"bitwise on floats", "matmul dtypes"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.real) if name in FOUND_BY_THE_COMPILER else name for name in ERRORS]
)
def test_errors_match_cpu(name):
    with pytest.raises(Exception) as expected:
        ERRORS[name]("cpu")
    with pytest.raises(type(expected.value)) as actual:
        ERRORS[name]("neuron")
        torch.neuron.synchronize()
    first = str(expected.value).split("\n")[0]
    assert str(actual.value).split("\n")[0] == first, (str(actual.value), first)


def test_mixed_devices_are_refused():
    device, host = torch.ones(3, device="neuron"), torch.ones(3)
    for act in (lambda: device + host, lambda: host + device, lambda: device @ host, lambda: device.add_(host)):
        with pytest.raises(RuntimeError, match="same device.*(neuron:0.*cpu|cpu.*neuron:0)"):
            act()
    with pytest.raises(RuntimeError, match="same device.*neuron:0 and neuron:1"):
        device + torch.ones(3, device="neuron:1")


def test_host_indices_are_accepted():
    host = torch.randn(4, 3)
    device = host.to("neuron")
    index = torch.tensor([2, 0])
    same(device[index], host[index])
    same(device[index.to("neuron")], host[index])
    device[index] = 1.0
    host[index] = 1.0
    same(device, host)


def test_boolean_masks():
    host = torch.randn(4, 3)
    device = host.to("neuron")
    assert torch.equal(device[device > 0].cpu(), host[host > 0])
    device[device > 0] = 0.0
    host[host > 0] = 0.0
    same(device, host)


def test_aliased_arguments():
    host = torch.randn(4, 4)
    for act in (
        lambda t: t.mul_(t),
        lambda t: t.add_(t.t()),
        lambda t: t[::2].add_(t[1::2]),
        lambda t: torch.mul(t, t, out=t),
        lambda t: torch.add(t, t.t(), out=t),
        lambda t: torch.mm(t, t, out=t),
        lambda t: t[:, 0].copy_(t[0]),
    ):
        expected, actual = host.clone(), host.to("neuron")
        try:
            act(expected)
        except RuntimeError as error:
            with pytest.raises(RuntimeError, match=str(error)[:40]):
                act(actual)
            continue
        act(actual)
        # Reading what was already written would differ: CPU kernels are free to do that, we are not.
        reference = host.clone()
        frozen = host.clone()
        _apply_without_aliasing(act, reference, frozen)
        same(actual, reference, rtol=1e-5, atol=1e-6)


def _apply_without_aliasing(act, target, frozen):
    """The result when every argument is read before anything is written."""
    results = {
        "mul_": lambda: target.copy_(frozen * frozen),
    }
    name = act.__code__.co_names
    if "mm" in name:
        target.copy_(frozen @ frozen)
    elif "copy_" in name:
        target[:, 0] = frozen[0]
    elif "add_" in name and "t" in name:
        target.copy_(frozen + frozen.t())
    elif "add_" in name:
        target[::2] = frozen[::2] + frozen[1::2]
    elif "add" in name:
        target.copy_(frozen + frozen.t())
    else:
        results["mul_"]()


def test_out_is_resized():
    a = torch.ones(2, 3, device="neuron")
    out = torch.empty(0, device="neuron")
    torch.add(a, 1, out=out)
    assert out.shape == (2, 3)
    out = torch.empty(5, device="neuron")
    with pytest.warns(UserWarning, match="resized"):
        torch.add(a, 1, out=out)
    same(out, torch.full((2, 3), 2.0))
    out = torch.empty(2, 3, dtype=torch.float64, device="neuron")
    torch.add(a, 1, out=out)
    same(out, torch.full((2, 3), 2.0, dtype=torch.float64))


def test_several_results():
    host = torch.randn(4, 5)
    device = host.to("neuron")
    values, indices = device.max(1)
    expected = host.max(1)
    same(values, expected.values)
    same(indices, expected.indices)
    for a, b in zip(torch.var_mean(device, 0), torch.var_mean(host, 0), strict=False):
        same(a, b)
    out = (torch.empty(0, device="neuron"), torch.empty(0, dtype=torch.int64, device="neuron"))
    torch.max(device, 1, out=out)
    same(out[0], expected.values)
    for a, b in zip(torch.topk(device, 2), torch.topk(host, 2), strict=False):
        same(a, b)


def test_empty_tensors_launch_nothing():
    empty = torch.empty(0, 3, device="neuron")
    before = launches()
    assert (empty + 1).shape == (0, 3)
    assert (empty @ torch.ones(3, 2, device="neuron")).shape == (0, 2)
    assert empty.mul_(2).shape == (0, 3)
    torch.neuron.synchronize()
    assert launches() - before <= 1  # the ones()


def test_results_of_empty_reductions():
    empty, host = torch.empty(0, 3, device="neuron"), torch.empty(0, 3)
    same(empty.sum(0), host.sum(0))
    same(empty.prod(0), host.prod(0))
    assert empty.mean(0).cpu().isnan().all()
    same(torch.ones(2, 0, device="neuron") @ torch.ones(0, 3, device="neuron"), torch.zeros(2, 3))


def test_factories():
    same(torch.arange(5, device="neuron"), torch.arange(5))
    same(torch.arange(1, 2, 0.25, device="neuron"), torch.arange(1, 2, 0.25))
    same(torch.zeros(2, 3, device="neuron"), torch.zeros(2, 3))
    same(torch.full((2,), 7, device="neuron"), torch.full((2,), 7))
    same(torch.ones_like(torch.empty(2, device="neuron")), torch.ones(2))
    same(torch.eye(3, device="neuron"), torch.eye(3))
    same(torch.linspace(0, 1, 5, device="neuron"), torch.linspace(0, 1, 5))
    same(torch.tensor([1, 2], device="neuron"), torch.tensor([1, 2]))


def test_constant_algorithms_of_pow():
    host = torch.randn(4)
    for exponent in (2, 3, -1, 0.5, 0):
        torch.testing.assert_close(
            host.to("neuron").pow(exponent).cpu(), host.pow(exponent), equal_nan=True, rtol=1e-5, atol=1e-6
        )


def test_rms_norm_is_one_operator():
    data, weight = torch.randn(4, 16), torch.randn(16)
    moved = [data.to("neuron"), weight.to("neuron")]
    torch_neuronx.clear_op_tracking()
    before = launches()
    actual = torch.nn.functional.rms_norm(moved[0], [16], moved[1], 1e-6)
    assert launches() - before == 1
    assert torch_neuronx.get_executed_ops() == ["aten::_fused_rms_norm"]
    torch.testing.assert_close(
        actual.cpu(), torch.nn.functional.rms_norm(data, [16], weight, 1e-6), rtol=1e-4, atol=1e-5
    )


def test_rms_norm_gradient():
    host = torch.nn.RMSNorm(8)
    host.weight.data.uniform_(0.5, 1.5)
    device = torch.nn.RMSNorm(8).to("neuron")
    device.load_state_dict(host.state_dict())
    data = torch.randn(3, 8)
    inputs = [data.clone().requires_grad_(), data.to("neuron").requires_grad_()]
    host(inputs[0]).square().sum().backward()
    device(inputs[1]).square().sum().backward()
    torch.testing.assert_close(inputs[1].grad.cpu(), inputs[0].grad, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(device.weight.grad.cpu(), host.weight.grad, rtol=1e-4, atol=1e-5)


def test_foreach():
    host = [torch.randn(3), torch.randn(2, 2)]
    device = [tensor.to("neuron") for tensor in host]
    for a, b in zip(torch._foreach_add(device, 1.5), torch._foreach_add(host, 1.5), strict=False):
        same(a, b)
    torch._foreach_mul_(device, 2.0)
    torch._foreach_mul_(host, 2.0)
    for a, b in zip(device, host, strict=False):
        same(a, b)


def test_metrics():
    torch_neuronx.metrics.clear_all()
    tensor = torch.ones(3, 7, device="neuron")
    for _ in range(3):
        tensor + 1
    assert torch_neuronx.metrics.get_counter_value("Eager.KeyHits") >= 2
    assert torch_neuronx.metrics.get_counter_value("no such counter") is None
    assert "Eager.Launches" in torch_neuronx.metrics.report()
    torch_neuronx.metrics.set_enabled(False)
    try:
        assert not torch_neuronx.metrics.is_enabled() and torch_neuronx.metrics.report() == ""
    finally:
        torch_neuronx.metrics.set_enabled(True)


def test_threads():
    import threading

    errors = []

    def work(seed):
        try:
            torch.manual_seed(seed)
            for size in range(2, 12):
                host = torch.full((size, seed + 1), 2.0)
                assert torch.equal((host.to("neuron") * 3 + 1).cpu(), host * 3 + 1)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_registered_overloads_keep_their_derivatives():
    """A backend kernel for an implicit composite would silently cut the graph."""
    from torch_neuronx import _eager

    for name in _eager.overloads():
        namespace, base, overload = name.split(".")
        if namespace != "aten":
            continue
        qualified = f"aten::{base}" + ("" if overload == "default" else f".{overload}")
        has = torch._C._dispatch_has_kernel_for_dispatch_key
        if has(qualified, "PrivateUse1") and has(qualified, "CompositeImplicitAutograd"):
            assert has(qualified, "Autograd"), qualified

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""What the compiler does not know runs on the CPU: counted, announced once, never for views, and can be forbidden."""

from __future__ import annotations

import warnings

import pytest
import torch
import torch_neuronx
from conftest import same
from torch_neuronx import _C


def test_fallback_is_counted_and_correct():
    host = torch.tensor([3.0, 1.0, 2.0, 1.0])
    torch_neuronx.clear_op_tracking()
    same(torch.unique(host.to("neuron")), torch.unique(host))
    names = torch_neuronx.get_fallback_ops()
    assert names and all(name.startswith("aten::") for name in names)
    torch_neuronx.clear_op_tracking()
    assert torch_neuronx.get_fallback_ops() == []


def test_one_warning_per_operator(run_python):
    process = run_python(
        """
        import torch, warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tensor = torch.tensor([1.0, 2.0], device="neuron")
            for _ in range(3):
                torch.unique(tensor)
        messages = [str(item.message) for item in caught if "runs on the CPU" in str(item.message)]
        assert len(messages) == len(set(messages)) == 1, messages
        assert "get_fallback_ops" in messages[0]
        print("fine")
        """
    )
    assert "fine" in process.stdout


@pytest.mark.real
def test_warning_names_the_users_line(run_python):
    process = run_python(
        """
        import torch, warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.unique(torch.tensor([1.0, 2.0], device="neuron"))  # in a function of PyTorch's
            torch.ones(2, device="neuron").double() * 2  # float64
            loss = torch.linalg.det(torch.eye(3, device="neuron", requires_grad=True))
            loss.backward()  # on a thread of the autograd engine
        for item in caught:
            print(open(item.filename).readlines()[item.lineno - 1].strip(), "|", item.message)
        warnings.simplefilter("error")
        try:
            torch.nn.functional.adaptive_max_pool2d(torch.ones(1, 1, 4, 4, device="neuron"), 2)
        except UserWarning as error:
            print("raised |", error)
        """
    )
    lines = [line.split(" | ") for line in process.stdout.splitlines()]
    ending = "; torch_neuronx.get_fallback_ops() counts such calls"
    assert all(message.endswith(ending) and "/" not in message for _, message in lines)
    shown = [(place.split("# ")[-1], message.removesuffix(ending)) for place, message in lines]
    assert shown[0] == (
        "in a function of PyTorch's", "aten::_unique2 runs on the CPU: the compiler has no lowering for it"
    )  # fmt: skip
    assert ("float64", "aten::mul runs on the CPU: the device has no float64") in shown
    assert any(place == "on a thread of the autograd engine" for place, _ in shown)
    assert shown[-1][0] == "raised"


def test_fallback_can_be_forbidden(run_python):
    tensor = torch.tensor([1.0, 2.0], device="neuron")
    previous = _C.fallback_policy()
    _C.set_fallback_policy(True, False)
    try:
        with pytest.raises(RuntimeError, match="CPU fallback is disabled for aten::"):
            torch.unique(tensor)
    finally:
        _C.set_fallback_policy(*previous)
    run_python(
        """
        import torch
        tensor = torch.tensor([1.0, 2.0], device="neuron")
        try:
            torch.unique(tensor)
        except RuntimeError as error:
            assert "CPU fallback is disabled" in str(error)
        else:
            raise AssertionError
        """,
        TORCH_NEURONX_DISABLE_CPU_FALLBACK="1",
    )


@pytest.mark.double
def test_registered_but_refused(run_python):
    source = """
        import torch, torch_neuronx, warnings
        warnings.simplefilter("ignore")
        a = torch.tensor([1.0, 4.0], device="neuron")
        try:
            b = a.sqrt()
        except RuntimeError as error:
            print("refused:", error)
        else:
            assert b.cpu().tolist() == [1.0, 2.0]
            assert torch_neuronx.get_fallback_ops() == ["aten::sqrt"]
            assert a.sqrt().cpu().tolist() == [1.0, 2.0]  # the decision is cached
            print("fell back")
    """
    assert "fell back" in run_python(source, NEURON_DOUBLE_UNSUPPORTED="aten.sqrt.default").stdout
    process = run_python(
        source,
        NEURON_DOUBLE_UNSUPPORTED="aten.sqrt.default",
        TORCH_NEURONX_FALLBACK_ONLY_FOR_UNIMPLEMENTED_OPS="1",
    )
    assert "refused: CPU fallback is disabled for aten::sqrt" in process.stdout


@pytest.mark.double
def test_compiler_failure_is_not_a_fallback(run_python):
    process = run_python(
        """
        import torch, torch_neuronx
        a = torch.tensor([1.0, 4.0], device="neuron")
        try:
            a.sqrt()
        except RuntimeError as error:
            assert "broken" in str(error)
            assert torch_neuronx.get_fallback_ops() == []
            print("fine")
        """,
        NEURON_DOUBLE_BROKEN="aten.sqrt.default",
    )
    assert "fine" in process.stdout


def test_fallback_writes_in_place():
    host = torch.tensor([[4.0, 1.0], [2.0, 3.0]])
    device = host.to("neuron")
    same(device.index_fill_(0, torch.tensor([1], device="neuron"), 9.0), host.index_fill_(0, torch.tensor([1]), 9.0))
    out = torch.empty(0, device="neuron")
    torch.kthvalue(device, 1, out=(out, torch.empty(0, dtype=torch.int64, device="neuron")))
    same(out, torch.kthvalue(host, 1).values)


def test_user_errors_pass_through():
    with pytest.raises(Exception) as expected:
        torch.linalg.cholesky(torch.tensor([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(type(expected.value)), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.linalg.cholesky(torch.tensor([[1.0, 2.0], [2.0, 1.0]], device="neuron"))


def test_no_kernel_anywhere():
    with pytest.raises((NotImplementedError, RuntimeError), match="CPU fallback failed for|Could not run"):
        torch.ops.aten._cudnn_rnn_flatten_weight([torch.ones(2, device="neuron")], 1, 1, 0, 1, 0, 1, False, False)

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""torch_neuronx.explain_fusion."""

import pytest
import torch
import torch_neuronx

pytestmark = pytest.mark.real


def chain(x):
    return torch.softmax(torch.tanh(x) + 1, -1)


def transposed(x):
    return (torch.exp(x) + torch.exp(x).t()).sum()


def test_one_kernel_has_nothing_to_explain():
    (report,) = torch_neuronx.explain_fusion(chain, torch.randn(4, 5, device="neuron"))
    assert report.kernels == 1 and report.lines == []


def test_refusals_name_the_line_of_the_user():
    reports = torch_neuronx.explain_fusion(transposed, torch.randn(64, 64, device="neuron"))
    assert reports[0].kernels > 1
    assert any("test_explain.py" in line and "not fused" in line for line in reports[0].lines)
    assert str(reports).splitlines()[0].endswith("kernels")


def test_refused_graphs_raise():
    from torch_neuronx._dynamo.errors import NeuronCompileError

    with pytest.raises(Exception) as error:
        torch_neuronx.explain_fusion(lambda x: torch.linalg.inv(x), torch.randn(4, 4, device="neuron"))
    assert isinstance(error.value, NeuronCompileError) or "inv" in str(error.value)

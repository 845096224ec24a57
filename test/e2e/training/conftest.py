# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from __future__ import annotations

import pytest
import torch
import torch_neuronx

torch.set_num_threads(1)  # the models are small, and machines that run tests are busy


@pytest.fixture(autouse=True)
def _on_the_device_only():
    """Every test starts afresh, and nothing may run on the CPU in the meantime."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    torch_neuronx.clear_op_tracking()
    yield
    torch.neuron.synchronize()
    assert not torch_neuronx.get_fallback_ops()

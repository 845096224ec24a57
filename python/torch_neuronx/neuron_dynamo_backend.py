# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Public helpers of the torch.compile backend."""

from __future__ import annotations

from ._dynamo.backend import neuron_backend, set_model_name
from ._dynamo.decompositions import register_decomposition

__all__ = ["neuron_backend", "register_decomposition", "set_model_name"]

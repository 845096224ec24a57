# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from __future__ import annotations

import os
import pathlib
import sys
import tempfile

import pytest

# A private cache: results must not depend on what earlier runs compiled.
os.environ.setdefault("TORCH_NEURONX_NEFF_CACHE_DIR", tempfile.mkdtemp(prefix="neff-cache-"))
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import torch  # noqa: E402

torch.set_num_threads(1)  # the tensors are small, and machines that run tests are busy
# A test compiles one function for many arguments.
torch._dynamo.config.recompile_limit = 1000


@pytest.fixture(autouse=True)
def _clean_state():
    torch.manual_seed(0)
    yield
    torch.neuron.synchronize()

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Profiling: NeuronConfig for torch.profiler.profile(experimental_config=...), NeuronProfiler for the session folder.

All device times are modelled by the software NeuronCore; docs/Profiling.md lists the constants.
"""

from __future__ import annotations

from .. import _loading

_loading.require()

from .config import NeuronConfig, NRTProfilerError, ProfileMode  # noqa: E402
from .profiler import NeuronProfiler  # noqa: E402

__all__ = ["NRTProfilerError", "NeuronConfig", "NeuronProfiler", "ProfileMode"]

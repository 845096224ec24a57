# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""How torch.compile comes to our backend.

Automatic choice: torch.compile without `backend` uses ours for graphs with neuron tensors.

The default backend, Inductor, has no code generator for the device and fails on such graphs. PyTorch has no public hook
for this, so the default backend's wrapper class is extended; when its shape changes, the choice is simply not made and
backend="neuron" has to be named.
"""

from __future__ import annotations

import functools
import threading

import torch

_lookup = threading.Lock()


def install() -> None:
    _choose_by_device()
    _look_up_in_turn()


def _choose_by_device() -> None:
    wrapper = getattr(torch, "_TorchCompileInductorWrapper", None)
    # The function of the class, to be wrapped; not a question of whether it can be called.
    original = getattr(wrapper, "__call__", None)  # noqa: B004
    if original is None or getattr(original, "_neuron_selection", False):
        return

    def select(self, model_, inputs_):
        if any(isinstance(value, torch.Tensor) and value.device.type == "neuron" for value in inputs_):
            from .backend import neuron_backend

            return neuron_backend(model_, inputs_)
        return original(self, model_, inputs_)

    select._neuron_selection = True
    wrapper.__call__ = select


def _look_up_in_turn() -> None:
    """PyTorch registers the backend of an entry point when its name is first looked up, and fails with "duplicate name"
    if two threads do so at once."""
    wrapper = getattr(torch, "_TorchCompileWrapper", None)
    original = getattr(wrapper, "__init__", None)
    if original is None or getattr(original, "_neuron_lookup", False):
        return

    @functools.wraps(original)
    def initialise(self, *arguments, **keywords):
        with _lookup:
            original(self, *arguments, **keywords)

    initialise._neuron_lookup = True
    wrapper.__init__ = initialise

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Random number generators of torch.neuron: a Philox seed and offset per device."""

from __future__ import annotations

from typing import Any

import torch

from .. import _C


def _generator(device: Any):
    from . import _index, default_generators

    index = _index(device)
    return default_generators[_C.current_device() if index is None else _C.checked_device(index)]


def _all_generators():
    from . import default_generators

    return default_generators


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator."""
    _generator(None).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    for generator in _all_generators():
        generator.manual_seed(int(seed))


def seed() -> int:
    return _generator(None).seed()


def seed_all() -> None:
    value = None
    for generator in _all_generators():
        if value is None:
            value = generator.seed()
        else:
            generator.manual_seed(value)


def initial_seed(device: Any = None) -> int:
    return _generator(device).initial_seed()


def get_rng_state(device: Any = None) -> torch.Tensor:
    return _generator(device).get_state()


def set_rng_state(new_state: torch.Tensor, device: Any = None) -> None:
    _generator(device).set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    return [generator.get_state() for generator in _all_generators()]


def set_rng_state_all(new_states) -> None:
    for generator, state in zip(_all_generators(), new_states, strict=True):
        generator.set_state(state)

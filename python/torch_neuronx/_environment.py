# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Environment variables, in one place: names, types, defaults."""

from __future__ import annotations

import os
import warnings

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}
_warned: set[str] = set()


def flag(name: str, default: bool = False) -> bool:
    value = os.environ.get(name)
    if value is None:
        return default
    lowered = value.strip().lower()
    if lowered in _TRUE:
        return True
    if lowered in _FALSE:
        return False
    if name not in _warned:
        _warned.add(name)
        warnings.warn(
            f"expected 0 or 1 in {name} but got {value!r}; using {int(default)}", RuntimeWarning, stacklevel=2
        )
    return default


def text(name: str, default: str) -> str:
    return os.environ.get(name) or default


def cache_directory() -> str | None:
    """Where NEFFs are kept between processes; None when the cache is off."""
    if flag("TORCH_NEURONX_DISABLE_NEFF_CACHE"):
        return None
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return text("TORCH_NEURONX_NEFF_CACHE_DIR", os.path.join(base, "torch_neuronx", "neff"))


def debug_directory() -> str | None:
    """Where compilation artifacts are kept for reading; None unless they are to be preserved."""
    if not flag("TORCH_NEURONX_PRESERVE_COMPILATION_ARTIFACTS"):
        return None
    return text("TORCH_NEURONX_DEBUG_DIR", os.path.join(os.getcwd(), "neuron_backend"))


def target() -> str:
    """Chip to compile for: trn1, trn2 or trn3."""
    value = text("NEURON_PLATFORM_TARGET_OVERRIDE", "trn2").lower()
    target = {"gen2": "trn1", "gen3": "trn2", "gen4": "trn3"}.get(value, value)
    if target not in ("trn1", "trn2", "trn3"):
        raise ValueError(
            f"expected trn1, trn2, trn3 (or gen2, gen3, gen4) in NEURON_PLATFORM_TARGET_OVERRIDE but got {value!r}"
        )
    return target


def fallback_execution_disabled() -> bool:
    """Whether a compile failure raises; otherwise the graph runs eagerly."""
    return flag("TORCH_NEURONX_DISABLE_FALLBACK_EXECUTION", True)


def cpu_autocopy_disabled() -> bool:
    return flag("TORCH_NEURONX_DYNAMO_DISABLE_CPU_AUTOCOPY")


def retain_device_mode() -> bool:
    return flag("TORCH_NEURONX_RETAIN_DEVICE_MODE")


def compile_options() -> dict[str, object]:
    """Options of the environment that take part in every compilation."""
    options: dict[str, object] = {"target": target()}
    logical_cores = os.environ.get("NEURON_LOGICAL_NC_CONFIG") or os.environ.get("NEURON_RT_VIRTUAL_CORE_SIZE")
    if logical_cores not in (None, "", "1"):
        raise ValueError(
            f"expected one physical core per logical core but got {logical_cores!r} "
            "(NEURON_LOGICAL_NC_CONFIG, NEURON_RT_VIRTUAL_CORE_SIZE); other sizes are not supported"
        )
    return options

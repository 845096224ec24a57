# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""What a capture records."""

from __future__ import annotations

import enum
import os
import re
from collections.abc import Iterable
from urllib.parse import quote

from torch._C._profiler import _ExperimentalConfig


class NRTProfilerError(RuntimeError):
    """A capture could not be configured, started or written."""


class ProfileMode(enum.Enum):
    DEVICE = "DEVICE"
    """NEFFs and the device timeline of each; executions carry the fixed cost of a device capture."""
    RUNTIME = "RUNTIME"
    """The runtime's calls, transfers and executions: ntrace.pb, trace_info.pb."""
    CPU_UTIL = "CPU_UTIL"
    """Utilisation of every host CPU: cpu_util.pb."""
    HOST_MEMORY = "HOST_MEMORY"
    """Host memory in use: host_mem.pb."""


_CORE_LIST = re.compile(r"^\d+(-\d+)?(,\d+(-\d+)?)*$")


def _encode(value: object) -> str:
    # The text passes through a parser to which "=", "#" and newlines mean something (the first crashes it) and through
    # ours, to which ":" and ";" do.
    return quote(str(value), safe="/,.-_ ")


class NeuronConfig(_ExperimentalConfig):
    """Settings of a capture, for torch.profiler.profile(experimental_config=...).

    modes: which streams of data to record.
    max_events_per_nc: records kept per NeuronCore; the oldest are overwritten.
    capture_enabled_for_nc: cores to record, "0,2-5"; all by default.
    profile_output_dir: root of the session folders.
    neff_cache_dir: cache from which NEFFs are copied when the session is written, instead of from memory.
    precache_node_info: accepted for compatibility; the information costs nothing here.
    correlate_device_time: carry device durations into key_averages().
    Other keywords go to PyTorch's own experimental configuration.
    """

    def __init__(
        self,
        modes: Iterable[ProfileMode] | None = None,
        max_events_per_nc: int = 1_000_000,
        capture_enabled_for_nc: str | None = None,
        profile_output_dir: str | os.PathLike = "./output",
        neff_cache_dir: str | os.PathLike | None = None,
        precache_node_info: bool = True,
        correlate_device_time: bool = True,
        **stock,
    ):
        chosen = [ProfileMode.DEVICE, ProfileMode.RUNTIME] if modes is None else list(modes)
        for mode in chosen:
            if not isinstance(mode, ProfileMode):
                raise NRTProfilerError(
                    f"expected modes of type ProfileMode ({', '.join(item.name for item in ProfileMode)}) "
                    f"but got {mode!r}"
                )
        if not isinstance(max_events_per_nc, int) or max_events_per_nc < 1:
            raise NRTProfilerError(f"expected a positive number in max_events_per_nc but got {max_events_per_nc!r}")
        cores = "" if capture_enabled_for_nc is None else str(capture_enabled_for_nc).replace(" ", "")
        if cores and not _CORE_LIST.match(cores):
            raise NRTProfilerError(
                f"expected core numbers and ranges such as '0,2-5' in capture_enabled_for_nc but got "
                f"{capture_enabled_for_nc!r}"
            )
        if "custom_profiler_config" in stock:
            raise NRTProfilerError("expected no custom_profiler_config: NeuronConfig writes it")
        settings = {
            "modes": ",".join(mode.value for mode in chosen),
            "max_events_per_nc": max_events_per_nc,
            "capture_enabled_for_nc": cores,
            "profile_output_dir": os.fspath(profile_output_dir),
            "correlate_device_time": int(bool(correlate_device_time)),
        }
        text = ";".join(f"{name}:{_encode(value)}" for name, value in settings.items())
        super().__init__(custom_profiler_config=text, **stock)
        self.modes = tuple(chosen)
        self.max_events_per_nc = max_events_per_nc
        self.capture_enabled_for_nc = cores or None
        self.profile_output_dir = os.fspath(profile_output_dir)
        self.neff_cache_dir = None if neff_cache_dir is None else os.fspath(neff_cache_dir)
        self.precache_node_info = bool(precache_node_info)
        self.correlate_device_time = bool(correlate_device_time)

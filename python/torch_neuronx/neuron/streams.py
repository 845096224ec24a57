# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Streams and events of torch.neuron. A device has one in-order queue, which its streams share."""

from __future__ import annotations

from typing import Any

import torch

from .. import _C


def _device(device: Any) -> torch.device:
    from . import _index

    index = _index(device)
    return torch.device("neuron", _C.current_device() if index is None else _C.checked_device(index))


class Stream(torch.Stream):
    """An order of work on a device."""

    def __new__(cls, device: Any = None, priority: int = 0, **identity):
        if identity:
            return super().__new__(cls, priority=priority, **identity)
        return super().__new__(cls, device=_device(device), priority=priority)

    def __repr__(self):
        return f"torch.neuron.Stream(device={self.device}, stream_id={self.stream_id})"


class _EventType(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, torch.Event) and instance.device.type == "neuron"


class Event(metaclass=_EventType):
    """A mark in a stream. elapsed_time() gives modelled milliseconds.

    Constructs a torch.Event, because core compares event types exactly.
    """

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, device: Any = None):
        return torch.Event(device=_device(device), enable_timing=enable_timing, blocking=blocking)


class StreamContext:
    """Context manager that makes a stream current."""

    def __init__(self, stream: torch.Stream | None):
        self.stream = stream
        self.previous: torch.Stream | None = None

    def __enter__(self):
        if self.stream is not None:
            self.previous = current_stream(self.stream.device)
            set_stream(self.stream)
        return self.stream

    def __exit__(self, *exception):
        if self.previous is not None:
            set_stream(self.previous)
        return False


def stream(stream: torch.Stream | None) -> StreamContext:
    return StreamContext(stream)


def current_stream(device: Any = None) -> Stream:
    stream_id, device_index, device_type = _C.current_stream(_device(device).index)
    return Stream(stream_id=stream_id, device_index=device_index, device_type=device_type)


def default_stream(device: Any = None) -> Stream:
    target = _device(device)
    _, _, device_type = _C.current_stream(target.index)
    return Stream(stream_id=0, device_index=target.index, device_type=device_type)


def set_stream(stream: torch.Stream | None) -> None:
    if stream is not None:
        torch.accelerator.set_stream(stream)

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The user's own line, however deep in PyTorch they are: for warnings, and for errors of executions."""

from __future__ import annotations

import sys
import threading
import warnings


def _users_frame():
    """The innermost frame outside of PyTorch. The autograd engine's threads have none of their own: there, it is where the
    main thread calls `backward()`."""
    for frame in (sys._getframe(), sys._current_frames().get(threading.main_thread().ident)):
        while frame is not None:
            # Code that PyTorch generates belongs to no module.
            if frame.f_globals.get("__name__", "torch").partition(".")[0] not in ("torch", "torch_neuronx"):
                return frame
            frame = frame.f_back
    return None


def users_line() -> tuple[str, int, str] | None:
    frame = _users_frame()
    return (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name) if frame is not None else None


def warn_user(text: str, category: type[Warning] = UserWarning) -> None:
    frame = _users_frame()
    if frame is None:
        warnings.warn(text, category, stacklevel=1)
        return
    warnings.warn_explicit(
        text,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )

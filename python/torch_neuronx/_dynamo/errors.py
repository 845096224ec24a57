# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""What a user sees when a graph cannot be compiled: the operator, their own line, what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence

Frame = tuple[str, int, str, str]

# Dynamo traces into modules and functions of PyTorch: their lines say nothing to the user.
_PYTORCH = re.compile(r"[/\\](?:site|dist)-packages[/\\]torch(?:_neuronx)?[/\\]")


def users_frame(frames: Sequence[Frame]) -> Frame:
    """The innermost of some frames (outermost first) outside of PyTorch, or the innermost if all are within."""
    return next((frame for frame in reversed(frames) if not _PYTORCH.search(frame[0])), frames[-1])


class NeuronCompileError(RuntimeError):
    """A graph was refused or its compilation failed. Dynamo wraps it in BackendCompilerFailed.

    Attributes: code (of the error catalogue), op ("aten.mul.Tensor"), node (FX name), frames (outermost first).
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        op: str | None = None,
        node: str | None = None,
        frames: Sequence[Frame] = (),
        remedy: str = "",
    ):
        self.code = code
        self.op = op
        self.node = node
        self.frames = list(frames)
        self.remedy = remedy
        text = f"{code}: {message}" if code and not message.startswith(code) else message
        if op and op not in text:
            text += f" (operator {op})"
        if self.frames:
            file, line, function, source = users_frame(self.frames)
            text += f'\n  File "{file}", line {line}, in {function}'
            if source:
                text += f"\n    {source}"
        if remedy:
            text += f"\n{remedy}"
        super().__init__(text)


class NeuronUnsupportedError(NeuronCompileError):
    """The graph is understood but contains something that is not supported."""


REMEDY = (
    "move the operation out of the compiled function, replace it by supported operations, or set "
    "options={'fallback_execution': True} to run this graph eagerly"
)

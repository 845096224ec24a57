#!/usr/bin/env python3
# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Turn a text file into a C++ array initialiser, because a string literal of its size is not portable.

usage: embed.py INPUT OUTPUT
"""

import pathlib
import sys

data = pathlib.Path(sys.argv[1]).read_bytes()
lines = [", ".join(str(byte) for byte in data[i : i + 32]) for i in range(0, len(data), 32)]
pathlib.Path(sys.argv[2]).write_text(",\n".join(lines) + "\n")

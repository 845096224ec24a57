# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Make and compare .npy files.

usage: arrays.py make FILE DTYPE SIZE...         values that all float types hold exactly
       arrays.py compare ACTUAL EXPECTED         status 1 when shape, dtype or a value differs
"""

import sys

import numpy as np


def make(path: str, dtype: str, sizes: list[int]) -> None:
    count = int(np.prod(sizes))
    values = (np.arange(count) * 7919 % 257 - 128) / 64
    np.save(path, values.reshape(sizes).astype(dtype))


def compare(actual: str, expected: str) -> int:
    a, b = np.load(actual), np.load(expected)
    if a.shape != b.shape or a.dtype != b.dtype:
        print(f"expected {b.dtype}{list(b.shape)} but got {a.dtype}{list(a.shape)}")
        return 1
    error = np.max(np.abs(a.astype(np.float64) - b.astype(np.float64)) / np.maximum(1, np.abs(b)), initial=0)
    limit = 1e-5 if a.dtype.kind == "f" else 0
    if not error <= limit:
        print(f"expected values within {limit} but got a difference of {error}")
        return 1
    print(f"equal: {a.size} values")
    return 0


if sys.argv[1] == "make":
    make(sys.argv[2], sys.argv[3], [int(size) for size in sys.argv[4:]])
else:
    sys.exit(compare(sys.argv[2], sys.argv[3]))

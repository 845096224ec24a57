# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Cases of assignments by mask."""

from __future__ import annotations

from cases import ANY, cases
from generators import BOOL, make

# Shape of the tensor, dimensions before the mask, shape of the mask, shape of the values.
MASKED = [
    ((4, 5), 0, (4,), ()),
    ((4, 5), 0, (4,), (5,)),
    ((4, 5), 0, (4,), (1, 5)),
    ((4, 5), 0, (4, 5), ()),
    ((4, 5), 0, (4, 5), (1,)),
    ((4, 5), 1, (5,), ()),
    ((2, 3, 4), 0, (2, 3), (4,)),
    ((2, 3, 4), 1, (3,), (1, 4)),
    ((2, 3, 4), 1, (3, 4), (2, 1)),
    ((6,), 0, (6,), ()),
    ((), 0, (), ()),
    ((0, 3), 0, (0,), (3,)),
    ((130, 3), 0, (130,), (3,)),
]


def _index_put(*rest):
    def generate():
        for accumulate in (False, True):
            for shape, before, mask, values in MASKED:
                for dtype in ANY:
                    indices = [None] * before + [make(BOOL, mask)]
                    yield (make(dtype, shape), indices, make(dtype, values), accumulate, *rest), {}

    return generate


cases("aten.index_put.default")(_index_put())
cases("aten._index_put_impl.default")(_index_put(False))

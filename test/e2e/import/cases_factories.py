# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Cases of tensors made from nothing."""

from __future__ import annotations

import torch
from cases import ANY, REFERENCES, aten, cases, unary
from generators import BF16, BOOL, F32, I8, I32, I64, U8, each, inf, make

SIZES = ([2, 3], [], [0, 4], [1, 1, 2, 1, 1, 1, 1, 3])
cases(*aten("zeros ones"))(lambda: (((s,), {"dtype": d}) for s in SIZES for d in (*ANY, None)))
cases("aten.zeros.out", "aten.ones.out")(lambda: (((s,), {"out": torch.empty(s, dtype=d)}) for s in SIZES for d in ANY))
cases("aten._efficientzerotensor.default")(lambda: (((s,), {"dtype": F32}) for s in SIZES))
cases(*aten("zeros_like ones_like"))(
    lambda: (((x,), {"dtype": d}) for x in each((F32, I64)) for d in (None, BF16, BOOL))
)
cases(*aten("new_zeros new_ones"))(
    lambda: (((make(a, (2,)), s), {"dtype": d}) for s in SIZES for a in (F32, I64) for d in (None, BF16))
)
cases("aten.zero.default")(unary(ANY))


def _zeros_for_empty(reference):
    """Undefined contents are zeros here."""
    return lambda *args, **kwargs: torch.zeros_like(reference(*args, **kwargs))


cases("aten.empty.memory_format")(lambda: (((s,), {"dtype": d}) for s in SIZES for d in (F32, I64)))
cases("aten.empty_like.default")(lambda: (((x,), {}) for x in each((F32, I64, BOOL))))
cases("aten.empty_strided.default")(lambda: ((([2, 3], [1, 2]), {"dtype": d}) for d in (F32, I64)))
cases("aten.empty_permuted.default")(lambda: ((([2, 3], [1, 0]), {"dtype": d}) for d in (F32, I64)))
cases("aten.new_empty.default")(lambda: (((make(d, (2,)), s), {}) for s in SIZES for d in (F32, I64)))
cases("aten.new_empty_strided.default")(lambda: (((make(d, (2,)), [2, 3], [1, 2]), {}) for d in (F32, I64)))
for _name in (
    "empty.memory_format",
    "empty_like.default",
    "empty_strided.default",
    "empty_permuted.default",
    "new_empty.default",
    "new_empty_strided.default",
):
    _op, _kind = _name.split(".")
    REFERENCES["aten." + _name] = _zeros_for_empty(getattr(getattr(torch.ops.aten, _op), _kind))

VALUES = (2, 0.5, True, -inf, 2**40 + 1, 0)
cases("aten.full.default")(
    lambda: (((s, v), {"dtype": d}) for s in SIZES for v in VALUES[:4] for d in (F32, BF16, I64, None))
)
cases("aten.full.out")(
    lambda: (((s, v), {"out": torch.empty(s, dtype=d)}) for s in SIZES for v in VALUES[:3] for d in (F32, I64))
)
cases("aten.full_like.default")(lambda: (((x, v), {}) for x in each((F32, BF16, I64)) for v in (2, 0.5)))
cases("aten.new_full.default")(lambda: (((make(d, (2,)), s, v), {}) for s in SIZES for d in (F32, I64) for v in (2, 3)))
cases("aten.fill.Scalar")(
    lambda: (((x, v), {}) for x in each((F32, BF16, I64, BOOL), shapes=[(2, 3), ()]) for v in VALUES)
)
cases("aten.fill.Tensor")(lambda: (((x, make(d, (), edges=False)), {}) for x in each((F32, I64)) for d in (F32, I64)))
cases("aten.scalar_tensor.default")(
    lambda: (((v,), {"dtype": d}) for v in VALUES[:5] for d in (F32, I64, BOOL, None) if not (v == -inf and d == I64))
)
ENDS = ((7, {}), (0, {}), (2.5, {}), (5, {"dtype": F32}), (6, {"dtype": BF16}), (9, {"dtype": U8}))
cases("aten.arange.default")(lambda: (((e,), k) for e, k in ENDS))
cases("aten.arange.start")(lambda: (((1, e), k) for e, k in ENDS if e >= 1))
STEPS = ((0, 10, 3), (10, 0, -3), (0.5, 4, 0.25), (-1, 1, 0.1), (5, 5, 1), (2**40, 2**40 + 9, 2), (0, 1, 0.3))
cases("aten.arange.start_step")(lambda: (((*s,), {"dtype": d}) for s in STEPS for d in (None, F32)))
cases("aten.arange.out")(lambda: (((e,), {"out": torch.empty(e, dtype=d)}) for e in (0, 7) for d in (F32, I64)))
cases("aten.arange.start_out")(lambda: (((1, 8, 2), {"out": torch.empty(4, dtype=d)}) for d in (F32, I64, BF16)))
LINES = ((0, 1, 7), (-2.5, 3.5, 8), (5, -5, 11), (1, 2, 1), (0, 3, 0), (0, 1, 2))
cases("aten.linspace.default")(
    lambda: (
        *(((*s,), {"dtype": d}) for s in LINES for d in (None, F32, BF16)),
        *(((*s,), {"dtype": d}) for s in ((5, -5, 11), (0, 90, 4), (3, 9, 1), (7, 7, 5)) for d in (I64, I8)),
    )
)
cases("aten.linspace.out")(lambda: (((*s,), {"out": torch.empty(s[2])}) for s in LINES))
cases("aten.eye.default")(lambda: (((n,), {"dtype": d}) for n in (0, 1, 5) for d in (F32, I64, BOOL)))
cases("aten.eye.m")(lambda: (((n, m), {"dtype": d}) for n, m in ((2, 3), (3, 2), (0, 2)) for d in (F32, I64)))
cases("aten.eye.out")(lambda: (((n,), {"out": torch.empty(n, n)}) for n in (0, 1, 5)))
cases("aten.eye.m_out")(lambda: (((n, m), {"out": torch.empty(n, m)}) for n, m in ((2, 3), (3, 2))))
cases("aten.tril_indices.default", "aten.triu_indices.default")(
    lambda: (
        ((r, c, o), {"dtype": d})
        for r, c in ((3, 5), (5, 3), (0, 2), (4, 4))
        for o in (0, 1, -2, 9)
        for d in (I64, I32)
    )
)
cases("aten._assert_tensor_metadata.default")(lambda: [((make(F32, (2, 3)),), {})])

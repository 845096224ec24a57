# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Cases of matrix products."""

from __future__ import annotations

import torch
from cases import REFERENCES, cases
from generators import BF16, F16, F32, FLOATS, I8, I32, I64, U8, make, nan

# ---------------------------------------------------------------------------------------------------------------------
# Contractions
# ---------------------------------------------------------------------------------------------------------------------

MATRIX = {"edges": False, "scale": 1.0}
NUMERIC = (*FLOATS, I64, I32, I8, U8)
PRODUCTS = [((3, 5), (5, 4)), ((1, 7), (7, 1)), ((3, 0), (0, 4)), ((0, 3), (3, 2)), ((130, 33), (33, 5))]


def matrices(*shapes, dtypes=NUMERIC):
    for dtype in dtypes:
        yield tuple(make(dtype, shape, **MATRIX) for shape in shapes)


def scaled(args_list):
    for args in args_list:
        yield args, {}
        yield args, {"beta": 2, "alpha": 3}
        if args[0].is_floating_point():
            yield args, {"beta": 0.5, "alpha": -1.5}
            yield (torch.full_like(args[0], nan), *args[1:]), {"beta": 0}


cases("aten.mm.default")(lambda: ((args, {}) for a, b in PRODUCTS for args in matrices(a, b)))
cases("aten.bmm.default")(
    lambda: ((args, {}) for a, b in PRODUCTS for n in (2, 1, 0) for args in matrices((n, *a), (n, *b)))
)
cases("aten.addmm.default")(
    lambda: scaled(
        args for a, b in PRODUCTS for bias in ((b[1],), (a[0], 1), (), (a[0], b[1])) for args in matrices(bias, a, b)
    )
)
cases("aten.baddbmm.default")(
    lambda: scaled(
        args
        for a, b in PRODUCTS[:3]
        for bias in ((b[1],), (2, a[0], b[1]))
        for args in matrices(bias, (2, *a), (2, *b))
    )
)
cases("aten.addbmm.default")(
    lambda: scaled(args for a, b in PRODUCTS[:3] for args in matrices((a[0], b[1]), (2, *a), (2, *b)))
)
cases("aten.mv.default")(lambda: ((args, {}) for a, _ in PRODUCTS for args in matrices(a, (a[1],))))
cases("aten.addmv.default")(lambda: scaled(args for a, _ in PRODUCTS[:3] for args in matrices((a[0],), a, (a[1],))))
cases("aten.dot.default", "aten.vdot.default")(
    lambda: ((args, {}) for n in (5, 1, 0, 130) for args in matrices((n,), (n,)))
)
cases("aten.addr.default")(
    lambda: scaled(args for n, m in ((3, 4), (1, 1), (0, 2)) for args in matrices((n, m), (n,), (m,)))
)


@cases("aten.linear.default")
def _linear():
    for dtype in FLOATS:
        for shape in ((3, 5), (5,), (2, 3, 5), (0, 5)):
            for bias in (None, make(dtype, (4,), **MATRIX)):
                yield (make(dtype, shape, **MATRIX), make(dtype, (4, 5), **MATRIX), bias), {}


cases("aten.mm.dtype")(lambda: (((*args, F32), {}) for a, b in PRODUCTS for args in matrices(a, b, dtypes=(BF16, F16))))
cases("aten.bmm.dtype")(
    lambda: (((*args, F32), {}) for a, b in PRODUCTS for args in matrices((2, *a), (2, *b), dtypes=(BF16, F16)))
)
cases("aten.addmm.dtype")(
    lambda: (
        ((*args, F32), {"beta": 1, "alpha": 2})
        for a, b in PRODUCTS
        for args in matrices((b[1],), a, b, dtypes=(BF16, F16))
    )
)
cases("aten.baddbmm.dtype")(
    lambda: (
        ((*args, F32), {"beta": 1, "alpha": 2})
        for a, b in PRODUCTS
        for args in matrices((b[1],), (2, *a), (2, *b), dtypes=(BF16, F16))
    )
)
# These exist for accelerators only: the product in f32, as their documentation says.
REFERENCES["aten.mm.dtype"] = lambda a, b, d: a.to(d) @ b.to(d)
REFERENCES["aten.bmm.dtype"] = lambda a, b, d: a.to(d) @ b.to(d)
REFERENCES["aten.addmm.dtype"] = lambda c, a, b, d, beta, alpha: torch.addmm(
    c.to(d), a.to(d), b.to(d), beta=beta, alpha=alpha
)
REFERENCES["aten.baddbmm.dtype"] = lambda c, a, b, d, beta, alpha: torch.baddbmm(
    c.to(d), a.to(d), b.to(d), beta=beta, alpha=alpha
)


@cases("aten._scaled_mm.default")
def _scaled_mm():
    for kind in (torch.float8_e4m3fn, torch.float8_e5m2):
        lhs = make(F32, (16, 32), edges=False).contiguous().to(kind)
        rhs = make(F32, (48, 32), edges=False).contiguous().to(torch.float8_e4m3fn).t()
        for scales in ((torch.tensor(0.5), torch.tensor(1.5)), (torch.rand(16, 1) + 0.5, torch.rand(1, 48) + 0.5)):
            for out in (F32, torch.bfloat16):
                for bias in (None, torch.rand(48)):
                    yield (lhs, rhs, *scales, bias), {"out_dtype": out}


@cases("aten._grouped_mm.default")
def _grouped_mm():
    matrices = torch.randn(3, 16, 8).to(torch.bfloat16)
    yield (torch.randn(3, 5, 16).to(torch.bfloat16), matrices), {}
    for offsets in ([3, 3, 10], [0, 0, 10], [10, 10, 10], [2, 9, 10]):
        yield (torch.randn(10, 16).to(torch.bfloat16), matrices, torch.tensor(offsets, dtype=torch.int32)), {}

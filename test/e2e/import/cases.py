# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Calls for each registered overload: CASES maps its name to a generator of (args, kwargs).

In-place, out= and copying variants use the cases of what they are variants of. What PyTorch refuses is skipped, so the
generators may be generous.
"""

from __future__ import annotations

import itertools

import torch
import torch._inductor.inductor_prims  # defines prims.fma, which Dynamo makes of addcmul
from generators import (
    BF16,
    BOOL,
    F16,
    F32,
    FLOAT_PAIRS,
    FLOATS,
    I8,
    I16,
    I32,
    I64,
    INT_PAIRS,
    INTS,
    MILD_EDGES,
    MIXED_PAIRS,
    PAIRS,
    SHAPES,
    U8,
    each,
    inf,
    make,
    nan,
)

CASES: dict = {}
# What to call where PyTorch has no CPU kernel.
REFERENCES: dict = {}


def cases(*names: str):
    def register(generator):
        for name in names:
            assert name not in CASES, name
            CASES[name] = generator
        return generator

    return register


def aten(names: str, kind: str = "default") -> list[str]:
    return [f"aten.{name}.{kind}" for name in names.split()]


# ---------------------------------------------------------------------------------------------------------------------
# One operand
# ---------------------------------------------------------------------------------------------------------------------


def unary(dtypes, *rest, shapes=SHAPES, **options):
    def generate():
        for x in each(dtypes, shapes, **options):
            yield (x, *rest), {}

    return generate


ANY = (*FLOATS, *INTS, BOOL)
cases(*aten("abs neg sign sgn square positive floor ceil round trunc frac isnan isinf isposinf isneginf signbit"))(
    unary(ANY)
)
cases(*aten("logical_not bitwise_not isfinite sqrt rsqrt reciprocal relu angle"))(unary(ANY))
cases(*aten("exp exp2 expm1 log log2 log10 log1p sin cos asin acos atan asinh acosh atanh erf erfc"))(unary(ANY))
# Below the overflow of exp(x), where implementations differ.
cases(*aten("sinh cosh"))(unary(ANY, low=-80, high=80))
cases(*aten("sigmoid tanh deg2rad rad2deg sinc"))(unary(ANY))
cases(*aten("silu mish relu6 hardsigmoid hardswish selu log_sigmoid_forward log_sigmoid"))(unary(FLOATS))
cases(*aten("tan"))(unary(ANY, edges=MILD_EDGES))
cases(*aten("erfinv special_ndtri"))(unary((*FLOATS, I32, BOOL), low=-1.2, high=1.2, edges=[0.0, 1.0, -1.0, nan, 0.5]))
cases(*aten("lgamma digamma"))(unary((*FLOATS, I32), low=0.1, high=30.0, edges=[1.0, 2.0, nan, inf, 0.5]))
cases(*aten("i0 special_i1 special_log_ndtr special_entr"))(unary((*FLOATS, I32), edges=MILD_EDGES, low=-80, high=80))


@cases("aten.logit.default")
def _logit():
    for x in each((*FLOATS, I32), low=-0.2, high=1.2, edges=[0.0, 1.0, nan, 0.5]):
        for eps in (None, 0.1, 1e-6):
            yield (x, eps), {}


@cases("aten.round.decimals")
def _round_decimals():
    for decimals in (0, 2, -1, 1):
        for x in each((*FLOATS, I32), edges=MILD_EDGES, scale=40.0):
            yield (x,), {"decimals": decimals}


@cases("aten.nan_to_num.default")
def _nan_to_num():
    for x in each((*FLOATS, I32, BOOL)):
        yield (x,), {}
        yield (x, 2.5, 100.0, -7.0), {}
        yield (x, None, None, 1.0), {}


@cases("aten.gelu.default")
def _gelu():
    for approximate in ("none", "tanh"):
        for x in each(FLOATS):
            yield (x,), {"approximate": approximate}


@cases("aten.hardtanh.default")
def _hardtanh():
    for x in each((*FLOATS, I32)):
        yield (x,), {}
        yield (x, -2, 3), {}
        yield (x, 0.0, 6.0), {}


@cases("aten.elu.default")
def _elu():
    for x in each(FLOATS):
        yield (x,), {}
        yield (x, 0.5, 1.3, 0.7), {}


@cases("aten.celu.default")
def _celu():
    for x in each(FLOATS):
        yield (x,), {}
        yield (x, 0.7), {}


@cases("aten.leaky_relu.default", "aten.hardshrink.default", "aten.softshrink.default")
def _one_number():
    for x in each(FLOATS):
        yield (x,), {}
        yield (x, 0.3), {}


@cases("aten.softplus.default")
def _softplus():
    for x in each(FLOATS):
        yield (x,), {}
        yield (x, 2.0, 5.0), {}


@cases("aten.threshold.default")
def _threshold():
    for x in each((*FLOATS, I32, I64)):
        yield (x, 1, 7), {}
        yield (x, 0.5, -2.5), {}


@cases("aten._prelu_kernel.default")
def _prelu():
    for dtype in FLOATS:
        yield (make(dtype, (2, 3, 4)), make(dtype, (1, 3, 1), edges=MILD_EDGES)), {}
        yield (make(dtype, (2, 3)), make(dtype, (1, 1), edges=MILD_EDGES)), {}


@cases("aten.glu.default")
def _glu():
    for dtype in FLOATS:
        for shape, dim in (((4, 6), -1), ((4, 6), 0), ((2,), 0), ((2, 0, 4), 2)):
            yield (make(dtype, shape, edges=MILD_EDGES), dim), {}


# ---------------------------------------------------------------------------------------------------------------------
# Two operands
# ---------------------------------------------------------------------------------------------------------------------


def binary(dtype_pairs, pairs=PAIRS, numbers=(), right=None, left=None, **kwargs):
    """`numbers`: Python numbers as the right operand; `right`, `left`: options of the operands' values."""

    def generate():
        for i, (a, b) in enumerate(pairs):
            for x_dtype, y_dtype in dtype_pairs if i < 4 else dtype_pairs[:: 1 + i % 3]:
                yield (make(x_dtype, a, **(left or {})), make(y_dtype, b, **(right or {}))), kwargs
        for number in numbers:
            for dtype in dict.fromkeys(pair[0] for pair in dtype_pairs):
                yield (make(dtype, (2, 3, 4), **(left or {})), number), kwargs
                yield (make(dtype, (), **(left or {})), number), kwargs

    return generate


def scalar_right(dtypes, numbers, shapes=((2, 3, 4), (), (0,), (37,)), **kwargs):
    def generate():
        for number in numbers:
            for dtype in dtypes:
                for shape in shapes:
                    yield (make(dtype, shape), number), kwargs

    return generate


def scalar_left(dtypes, numbers, shapes=((2, 3, 4), (), (0,), (37,)), **kwargs):
    def generate():
        for args, options in scalar_right(dtypes, numbers, shapes, **kwargs)():
            yield args[::-1], options

    return generate


NUMBERS = (2, -3, 0.1, 1.5, True, 0, -0.0, nan, inf, 3.0)
ALL_PAIRS = FLOAT_PAIRS + INT_PAIRS + MIXED_PAIRS


@cases("aten.add.Tensor", "aten.sub.Tensor", "aten.rsub.Tensor")
def _add():
    yield from binary(ALL_PAIRS + [(BOOL, BOOL)], numbers=NUMBERS)()
    yield from binary(FLOAT_PAIRS + INT_PAIRS, pairs=PAIRS[:3], alpha=2)()
    yield from binary(
        FLOAT_PAIRS, pairs=PAIRS[:3], alpha=-0.3, left={"edges": MILD_EDGES}, right={"edges": MILD_EDGES}
    )()


@cases("aten.add.Scalar", "aten.sub.Scalar", "aten.rsub.Scalar")
def _add_scalar():
    yield from scalar_right(ANY, NUMBERS[:5])()
    yield from scalar_right(FLOATS, (0.1, 2), alpha=3)()


cases("aten.mul.Tensor", "aten.div.Tensor", "aten.true_divide.Tensor")(
    binary(ALL_PAIRS + [(BOOL, BOOL)], numbers=NUMBERS)
)
cases("aten.mul.Scalar", "aten.div.Scalar")(scalar_right(ANY, NUMBERS))
NONZERO = {"edges": [1, -1, 2, 3, 7, -7, 5, 100], "low": 1, "high": 100}
SMALL = {"scale": 30.0, "edges": [0.0, -0.0, 1.0, 7.0, -7.0, 2.1, 2.7, 3.3, -2.1, inf, -inf, nan, 0.7, 1e-3]}


@cases("aten.div.Tensor_mode")
def _div_mode():
    for mode in ("floor", "trunc", None):
        # Integer divisors first without zero: eager raises on it.
        yield from binary(
            [(d, d) for d in INTS] + [(I64, I32), (I8, U8)],
            right={"low": 1, "high": 100, "edges": [1, 2, 3, 7]},
            rounding_mode=mode,
            pairs=PAIRS[:5],
        )()
        yield from binary(FLOAT_PAIRS + [(F32, I64)], pairs=PAIRS[:5], left=SMALL, right=SMALL, rounding_mode=mode)()


@cases("aten.div.Scalar_mode")
def _div_scalar_mode():
    for mode in ("floor", "trunc", None):
        yield from scalar_right(INTS, (3, -7), rounding_mode=mode)()
        yield from scalar_right(FLOATS, (0.7, -3, 2), rounding_mode=mode, shapes=((2, 3, 4), ()))()


def _division():
    for low, high, edges in ((1, 100, [1, 2, 3, 7]), (-100, -1, [-1, -2, -3, -7])):
        dtypes = [d for d in INTS if low > 0 or d != U8]
        yield from binary([(d, d) for d in dtypes], right={"low": low, "high": high, "edges": edges}, pairs=PAIRS[:6])()
    yield from binary(
        [(I64, I32), (I8, I16), (U8, I8)], right={"low": 1, "high": 9, "edges": [1, 3]}, pairs=PAIRS[:3]
    )()
    yield from binary(FLOAT_PAIRS + [(F32, I64)], left=SMALL, right=SMALL, pairs=PAIRS[:6])()
    for number in (3, -7, 0.7):
        for x in itertools.chain(each(FLOATS, shapes=[(2, 3, 4), ()], **SMALL), each(INTS, shapes=[(2, 3, 4), ()])):
            yield (x, number), {}


cases("aten.floor_divide.default", "aten.remainder.Tensor", "aten.fmod.Tensor")(_division)
cases("aten.floor_divide.Scalar", "aten.remainder.Scalar", "aten.fmod.Scalar")(
    lambda: itertools.chain(
        scalar_right(INTS, (3, -7))(),
        (((x, n), {}) for n in (0.7, -3, 2.5) for x in each(FLOATS, shapes=[(2, 3, 4), (), (0,), (37,)], **SMALL)),
    )
)


@cases("aten.remainder.Scalar_Tensor")
def _remainder_left():
    for dtype in (*INTS, *FLOATS):
        yield (17, make(dtype, (3, 4), low=1, high=9, edges=[1, 3, 7])), {}
        yield (-17, make(dtype, (3, 4), low=1, high=9, edges=[1, 3, 7])), {}


POWERS = {"low": 0.1, "high": 5.0, "edges": [0.0, 1.0, 2.0, 0.5, 4.0]}


@cases("aten.pow.Tensor_Tensor")
def _pow():
    yield from binary(
        FLOAT_PAIRS, left=POWERS, right={"low": -3.0, "high": 3.0, "edges": [0.0, 1.0, 2.0, -1.0, 0.5, 3.0]}
    )()
    yield from binary(
        [(F32, F32)], left={"edges": MILD_EDGES}, right={"edges": [0.0, 2.0, 3.0, -1.0, inf, -inf, nan]}
    )()
    yield from binary(
        [(d, d) for d in INTS] + [(I64, I32), (F32, I64), (I32, F32)],
        left={"low": 0, "high": 9, "edges": [0, 1, 2]},
        right={"low": 0, "high": 5, "edges": [0, 1, 2, 3]},
    )()
    for dtype in (I32, I64, I8):
        yield (
            (make(dtype, (9,), low=-3, high=3, edges=[0, 1, -1]), make(dtype, (9,), low=-3, high=3, edges=[-1, -2])),
            {},
        )


@cases("aten.pow.Tensor_Scalar")
def _pow_scalar():
    for exponent in (2, 3, 0, 1, 0.5, -0.5, -1, -2, 2.0, 1.7, 4, -3, 0.0, nan, inf):
        # Eager takes roots of half by pow, of the other dtypes by sqrt: they differ at -inf and -0.
        odd = [] if exponent in (0.5, -0.5) else [-0.0, -inf]
        for x in each(FLOATS, shapes=[(2, 3, 4), (), (0,)], edges=[0.0, 1.0, -1.0, inf, nan, 2.0, *odd]):
            yield (x, exponent), {}
        for x in each((I64, I32, I8, U8), shapes=[(2, 3, 4), ()], low=0, high=9, edges=[0, 1, 2, 7]):
            yield (x, exponent), {}


@cases("aten.pow.Scalar")
def _pow_left():
    for base in (2, 0.5, 1, -2.0, 0):
        for x in each((*FLOATS, I64, I32), shapes=[(2, 3, 4), ()], low=0, high=5, edges=[0, 1, 2, 3]):
            yield (base, x), {}


cases("aten.maximum.default", "aten.minimum.default", "aten.fmax.default", "aten.fmin.default")(
    binary(ALL_PAIRS + [(BOOL, BOOL)])
)
cases("aten.atan2.default", "aten.copysign.Tensor", "aten.xlogy.Tensor", "aten.special_xlog1py.default")(
    binary(FLOAT_PAIRS + [(I32, I32), (I64, F32), (BOOL, F32)], numbers=(2, -0.0, 0.1))
)
cases("aten.hypot.default", "aten.logaddexp.default", "aten.logaddexp2.default", "aten.nextafter.default")(
    binary(FLOAT_PAIRS)
)
cases("aten.copysign.Scalar", "aten.xlogy.Scalar_Other", "aten.special_xlog1py.other_scalar")(
    scalar_right((*FLOATS, I32), (2, -0.0, 0.1, -1, nan))
)
cases("aten.xlogy.Scalar_Self", "aten.special_xlog1py.self_scalar")(scalar_left((*FLOATS, I32), (2, 0.0, 0.1, -1, nan)))
cases("aten.ldexp.Tensor")(
    binary(
        [(F32, I32), (F32, F32), (BF16, I64), (F16, F16), (I32, I32)], right={"low": -8, "high": 8, "edges": [0, 1, 2]}
    )
)
cases("aten.heaviside.default")(binary([(d, d) for d in (*FLOATS, I32, I64, U8)]))
BITS = INT_PAIRS + [(BOOL, BOOL), (I64, BOOL)]
BIT_NUMBERS = (3, -1, True, 0, 2**31, 2**40)
cases("aten.bitwise_and.Tensor", "aten.bitwise_or.Tensor", "aten.bitwise_xor.Tensor")(
    binary(BITS, numbers=BIT_NUMBERS[:4])
)
cases("aten.bitwise_and.Scalar", "aten.bitwise_or.Scalar", "aten.bitwise_xor.Scalar")(
    lambda: itertools.chain(scalar_right((*INTS, BOOL), BIT_NUMBERS[:4])(), scalar_right((I64,), BIT_NUMBERS)())
)
cases("aten.bitwise_and.Scalar_Tensor", "aten.bitwise_or.Scalar_Tensor", "aten.bitwise_xor.Scalar_Tensor")(
    scalar_left((I64, I32, I8, BOOL), BIT_NUMBERS[:4])
)
SHIFTS = {"low": 0, "high": 9, "edges": [0, 1, 7, 8, 15, 31, 33, 63, 64, -1, 100]}
SHIFT_PAIRS = [(d, d) for d in INTS] + [(I64, I32), (U8, I8)]
cases(
    "aten.bitwise_left_shift.Tensor",
    "aten.bitwise_right_shift.Tensor",
    "aten.__lshift__.Tensor",
    "aten.__rshift__.Tensor",
)(binary(SHIFT_PAIRS, right=SHIFTS))
cases(
    "aten.bitwise_left_shift.Tensor_Scalar",
    "aten.bitwise_right_shift.Tensor_Scalar",
    "aten.__lshift__.Scalar",
    "aten.__rshift__.Scalar",
)(scalar_right(INTS, (0, 1, 5, 31)))
cases("aten.bitwise_left_shift.Scalar_Tensor", "aten.bitwise_right_shift.Scalar_Tensor")(
    lambda: (((n, make(d, (3, 4), **SHIFTS)), {}) for n in (1, 100, -5) for d in (I64, I32, I8))
)
cases("aten.logical_and.default", "aten.logical_or.default", "aten.logical_xor.default")(
    binary(ALL_PAIRS + [(BOOL, BOOL)])
)
cases("aten.eq.Tensor", "aten.ne.Tensor", "aten.lt.Tensor", "aten.le.Tensor", "aten.gt.Tensor", "aten.ge.Tensor")(
    binary(ALL_PAIRS + [(BOOL, BOOL)])
)
cases("aten.eq.Scalar", "aten.ne.Scalar", "aten.lt.Scalar", "aten.le.Scalar", "aten.gt.Scalar", "aten.ge.Scalar")(
    scalar_right(ANY, (2, 0.5, 0.1, -1, True, nan, inf, 100))
)

# ---------------------------------------------------------------------------------------------------------------------
# Three operands, selection, conversion
# ---------------------------------------------------------------------------------------------------------------------


@cases("aten.clamp.default")
def _clamp():
    for low, high in ((-1, 2), (None, 0.5), (0.1, None), (2, -1), (nan, 1.0), (0, 3)):
        for x in each((*FLOATS, *INTS), shapes=[(2, 3, 4), (), (0,)]):
            yield (x, low, high), {}


@cases("aten.clamp.Tensor")
def _clamp_tensor():
    for dtypes in ((F32, F32, F32), (BF16, BF16, BF16), (I64, I64, I64), (U8, U8, U8), (F32, I64, F32)):
        yield tuple(make(d, (2, 3)) for d in dtypes), {}
        yield (make(dtypes[0], (2, 3)), make(dtypes[1], (3,)), None), {}
        yield (make(dtypes[0], (2, 3)), None, make(dtypes[2], ())), {}


cases("aten.clamp_min.default", "aten.clamp_max.default")(scalar_right((*FLOATS, *INTS), (0, 0.1, -1, nan)))
cases("aten.clamp_min.Tensor", "aten.clamp_max.Tensor")(binary([(d, d) for d in (*FLOATS, *INTS)] + [(F32, I64)]))


@cases("aten.where.self")
def _where():
    for a, b in PAIRS:
        for x, y in ((F32, F32), (BF16, BF16), (I64, I64), (BOOL, BOOL), (U8, U8), (F32, I64), (BF16, F32)):
            yield (make(BOOL, a), make(x, b), make(y, a)), {}
    yield (make(BOOL, (2, 3)), make(F32, ()), make(BF16, (2, 3))), {}
    yield (make(U8, (2, 3)), make(F32, (2, 3)), make(F32, (2, 3))), {}


@cases("aten.where.ScalarSelf")
def _where_left():
    for dtype in (F32, BF16, I64):
        for number in (0.5, 2):
            yield (make(BOOL, (2, 3)), number, make(dtype, (2, 3))), {}


@cases("aten.where.ScalarOther")
def _where_right():
    for dtype in (F32, BF16, I64):
        for number in (0.5, 2):
            yield (make(BOOL, (2, 3)), make(dtype, (2, 3)), number), {}


@cases("aten.where.Scalar")
def _where_numbers():
    for x, y in ((1.5, 2.5), (1, 2), (1, 2.5)):
        yield (make(BOOL, (2, 3)), x, y), {}


@cases("aten.masked_fill.Scalar")
def _masked_fill():
    for dtype in ANY:
        for number in (0, 1.5, -inf, 3):
            yield (make(dtype, (2, 3, 4)), make(BOOL, (3, 1)), number), {}
            yield (make(dtype, ()), make(BOOL, ()), number), {}


@cases("aten.masked_fill.Tensor")
def _masked_fill_tensor():
    for dtype in ANY:
        yield (make(dtype, (2, 3, 4)), make(BOOL, (3, 1)), make(dtype, ())), {}


@cases("aten.lerp.Scalar")
def _lerp():
    for weight in (0.3, 0.7, 0, 1, 2.5):
        for dtype in FLOATS:
            yield (make(dtype, (2, 3), edges=MILD_EDGES), make(dtype, (3,), edges=MILD_EDGES), weight), {}


@cases("aten.lerp.Tensor")
def _lerp_tensor():
    for dtype in FLOATS:
        for a, b in PAIRS[:6]:
            yield (
                (make(dtype, a, edges=MILD_EDGES), make(dtype, b, edges=MILD_EDGES), make(dtype, a, edges=MILD_EDGES)),
                {},
            )


@cases("aten.addcmul.default", "aten.addcdiv.default")
def _addcmul():
    for dtype in (*FLOATS, I32, I64):
        for value in (1, 2, 0.3):
            for a, b in PAIRS[:5]:
                yield (
                    (
                        make(dtype, a, edges=MILD_EDGES if dtype in FLOATS else True),
                        make(dtype, b, edges=MILD_EDGES if dtype in FLOATS else True),
                        make(dtype, a, edges=MILD_EDGES if dtype in FLOATS else True),
                    ),
                    {"value": value},
                )


# Rounded twice, as without the instruction; signs that do not cancel.
REFERENCES["prims.fma.default"] = lambda a, b, c: (
    (a * b + c) if a.dtype == F32 else (a.float() * b.float() + c.float()).to(a.dtype)
)


@cases("prims.fma.default")
def _fma():
    for dtype in FLOATS:
        for shape in ((3, 5), (), (0, 2)):
            yield tuple(make(dtype, shape, edges=False).abs() for _ in range(3)), {}


F8S = (torch.float8_e4m3fn, torch.float8_e5m2)
CONVERSIONS = [(a, b) for a in ANY for b in ANY]
# Values every pair of types converts in a defined way, then out-of-range ones between floats and to integers of x86.
INSIDE = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.99, 127.0, nan]


def conversions(make_args):
    def generate():
        for a, b in CONVERSIONS:
            edges = INSIDE if a in FLOATS and b not in FLOATS else True
            x = make(a, (37,), edges=edges) if edges is True else make(a, (37,), edges=edges, scale=20.0)
            if b == U8 and a in FLOATS:
                x = x.abs().nan_to_num(0)
            yield make_args(x, b)
            yield make_args(make(a, (), edges=[1.0] if a in FLOATS else [1]), b)
            yield make_args(make(a, (2, 0), edges=False), b)
        for b in INTS:
            yield make_args(torch.tensor([3e9, -3e9, 1e20, -1e20, inf, -inf, nan, 300.7, -300.7, 65536.5]), b)

    return generate


cases("aten._to_copy.default")(conversions(lambda x, d: ((x,), {"dtype": d})))
cases("aten.to.dtype_layout")(conversions(lambda x, d: ((x,), {"dtype": d})))
cases("aten.to.dtype")(conversions(lambda x, d: ((x, d), {})))
cases("aten.type_as.default")(conversions(lambda x, d: ((x, torch.zeros(1, dtype=d)), {})))
cases("prims.convert_element_type.default")(conversions(lambda x, d: ((x, d), {})))
cases(*aten("clone contiguous lift lift_fresh_copy alias detach lift_fresh"))(unary((*ANY,)))


@cases("aten.copy.default")
def _copy():
    for a, b in CONVERSIONS:
        yield (
            (
                make(a, (2, 3), edges=False),
                make(b, (3,), edges=False, scale=20.0).abs() if b != BOOL else make(b, (3,)),
            ),
            {},
        )
    yield (make(F32, (2, 3)), make(F32, ())), {}


# ---------------------------------------------------------------------------------------------------------------------
# Reductions
# ---------------------------------------------------------------------------------------------------------------------

TAME = {"edges": [0.0, 1.0, -1.0, 2.0]}
REDUCED = [(2, 3, 4), (), (1,), (0,), (37,), (3, 5), (2, 0, 3), (2, 1, 2, 1, 2, 1, 2, 3), (5, 130)]


def dims_of(rank: int):
    yield from ([0], [-1]) if rank < 2 else ([0], [-1], [0, 1], list(range(rank)), [rank - 1, 0])


def full_reduction(dtypes, **options):
    def generate():
        for shape in REDUCED:
            for dtype in dtypes:
                yield (make(dtype, shape, **(options if dtype in FLOATS else {})),), {}

    return generate


def dims_reduction(dtypes, keyword_dtype=False, empty_list=False, **options):
    def generate():
        for shape in REDUCED:
            for i, dtype in enumerate(dtypes):
                x = make(dtype, shape, **(options if dtype in FLOATS else {}))
                for k, dims in enumerate(dims_of(len(shape))):
                    yield (x, dims, (i + k) % 2 == 0), {}
                if empty_list:
                    yield (x, [], True), {}
                if keyword_dtype:
                    yield (x, [0], False), {"dtype": F32}
                    yield (x, None, True), {"dtype": I64 if dtype not in FLOATS else F32}

    return generate


SUMMABLE = (F32, BF16, F16, I64, I32, U8, BOOL)
cases("aten.sum.default", "aten.mean.default")(full_reduction(SUMMABLE, **TAME))
# Powers of two, so that no order of multiplication rounds.
EXACT = {"low": 1.0, "high": 1.0, "edges": [1.0, -1.0, 2.0, 0.5]}
cases("aten.prod.default")(full_reduction(SUMMABLE, **EXACT))
cases("aten.sum.dim_IntList", "aten.mean.dim")(dims_reduction(SUMMABLE, keyword_dtype=True, empty_list=True, **TAME))
cases("aten.nansum.default")(
    lambda: (
        ((make(d, s, edges=[nan, 1.0, 0.0]), [0] if s else None, k), {})
        for s in REDUCED
        for d in SUMMABLE
        for k in (True, False)
    )
)
cases("aten.amax.default", "aten.amin.default")(dims_reduction((*FLOATS, *INTS, BOOL), empty_list=True))
cases("aten.max.default", "aten.min.default", "aten.any.default", "aten.all.default")(full_reduction(ANY))
cases("aten._is_all_true.default", "aten._is_any_true.default")(full_reduction((BOOL,)))
cases("aten.any.dims", "aten.all.dims")(dims_reduction((F32, I64, BOOL, U8), empty_list=True))


def one_dim(dtypes, *rest, **options):
    def generate():
        for shape in REDUCED:
            for i, dtype in enumerate(dtypes):
                for dim in {0, -1}:
                    yield (make(dtype, shape, **(options if dtype in FLOATS else {})), dim, i % 2 == 0, *rest), {}

    return generate


cases("aten.max.dim", "aten.min.dim", "aten.any.dim", "aten.all.dim")(one_dim(ANY))
cases("aten.prod.dim_int")(one_dim(SUMMABLE, **EXACT))


@cases("aten.argmax.default", "aten.argmin.default")
def _arg():
    for shape in REDUCED:
        for i, dtype in enumerate((*FLOATS, *INTS)):
            for dim in (None, 0, -1):
                yield (make(dtype, shape), dim, i % 2 == 0), {}
    x = torch.zeros(3, 1030, dtype=BF16)
    x[0, 1025] = x[1, 257] = x[2, 1029] = 1
    yield (x, -1), {}
    yield (x,), {}


@cases("aten.aminmax.default")
def _aminmax():
    for shape in REDUCED:
        for dtype in (F32, BF16, I64, BOOL):
            for dim in (None, 0, -1):
                yield (make(dtype, shape),), {"dim": dim, "keepdim": dtype == F32}


@cases("aten.var.correction", "aten.std.correction", "aten.var_mean.correction", "aten.std_mean.correction")
def _var():
    for shape in REDUCED:
        for i, dtype in enumerate(FLOATS):
            x = make(dtype, shape, **TAME)
            for dims in (None, *dims_of(len(shape))):
                for correction in (None, 0, 1, 2.5):
                    yield (x, dims), {"correction": correction, "keepdim": i % 2 == 0}


@cases("aten.logsumexp.default")
def _logsumexp():
    yield from dims_reduction((*FLOATS, I64), **TAME)()
    for edges in ([inf, 1.0], [-inf], [nan, 1.0], [-inf, 1.0]):
        yield (make(F32, (6, 5), edges=edges), [1]), {}
    yield (torch.full((3, 4), -inf), [1]), {}


ORDERS = (2, 1, 0, inf, -inf, 3, 0.5, 2.5, -1)


@cases("aten.linalg_vector_norm.default")
def _vector_norm():
    for order in ORDERS:
        for dtype in FLOATS:
            for shape in ((3, 5), (), (4,), (2, 3, 4)):
                x = make(dtype, shape, **TAME)
                yield (x, order), {}
                yield (x, order, [-1] if shape else None, True), {}
    yield (make(F16, (3, 5), **TAME), 2, [0]), {"dtype": F32}
    yield (make(F32, (0, 5), edges=False), 2, [0]), {}


@cases("aten.norm.Scalar")
def _norm():
    for order in ORDERS:
        yield (make(F32, (3, 5), **TAME), order), {}


@cases("aten.norm.ScalarOpt_dim")
def _norm_dim():
    for order in (None, *ORDERS):
        for dtype in FLOATS:
            yield (make(dtype, (3, 5), **TAME), order, [1], dtype == F32), {}


@cases("aten.norm.ScalarOpt_dim_dtype")
def _norm_dim_dtype():
    for order in (None, 1, 2):
        yield (make(BF16, (3, 5), **TAME), order, [1], True), {"dtype": F32}


@cases("aten.norm.ScalarOpt_dtype")
def _norm_dtype():
    for order in (None, 1, 2):
        yield (make(BF16, (3, 5), **TAME), order), {"dtype": F32}


@cases("aten.dist.default")
def _dist():
    for order in (2, 1, 0, inf, 3):
        yield (make(F32, (3, 5), **TAME), make(F32, (5,), **TAME), order), {}


cases("aten.count_nonzero.default")(
    lambda: (((make(d, s), dim), {}) for s in REDUCED for d in ANY for dim in ((None, 0) if s else (None,)))
)
cases("aten.count_nonzero.dim_IntList")(
    lambda: (((make(d, s), dims), {}) for s in REDUCED if s for d in ANY for dims in dims_of(len(s)))
)
cases("aten.trace.default")(
    lambda: (((make(d, s, edges=False),), {}) for d in (F32, I64, U8, BF16) for s in ((3, 5), (5, 3), (0, 3), (4, 4)))
)
cases("aten.cumsum.default", "aten.cumprod.default")(
    lambda: (
        ((make(d, s, **(TAME if d in FLOATS else {})), dim), {}) for s in REDUCED for d in SUMMABLE for dim in {0, -1}
    )
)

ROWS = [(2, 3, 4), (), (1,), (0,), (37,), (3, 5), (2, 0, 3), (4, 130), (130, 3)]
MASKED = [0.0, 1.0, -inf, -1.0, 5.0]


def softmaxes(*rest):
    def generate():
        for shape in ROWS:
            for dtype in FLOATS:
                for dim in (-1, 0):
                    yield (make(dtype, shape, edges=MASKED), dim, *rest), {}
        yield (torch.full((2, 5), -inf), 1, *rest), {}
        yield (torch.tensor([[nan, 1.0], [inf, 2.0]]), 1, *rest), {}
        yield (torch.tensor([[300.0, -300.0, 299.0]], dtype=BF16), 1, *rest), {}

    return generate


cases("aten._softmax.default", "aten._log_softmax.default")(softmaxes(False))
cases("aten._safe_softmax.default")(softmaxes())


@cases("aten.softmax.int", "aten.log_softmax.int")
def _softmax_int():
    yield from softmaxes()()
    yield (make(BF16, (3, 4), edges=False), 1, F32), {}
    yield (make(I32, (3, 4), edges=False), 1, F32), {}


# Random draws are tested by their distribution in test_random.py.
RANDOM = {
    f"aten.{name}"
    for name in """rand.default rand.generator rand_like.default rand_like.generator randn.default randn.generator
    randn_like.default randn_like.generator randint.default randint.generator randint.low randint.low_generator
    randint_like.default randint_like.generator randint_like.low_dtype randint_like.low_generator_dtype random.default
    random.to random.from uniform.default normal_functional.default normal.Tensor_Tensor normal.Tensor_float
    normal.float_Tensor normal.float_float log_normal.default exponential.default cauchy.default geometric.default
    bernoulli.default bernoulli.p bernoulli.Tensor native_dropout.default""".split()
}


import cases_attention  # noqa: E402, F401  (the imports register more cases)
import cases_contractions  # noqa: E402, F401
import cases_convolutions  # noqa: E402, F401
import cases_factories  # noqa: E402, F401
import cases_indexing  # noqa: E402, F401
import cases_pooling  # noqa: E402, F401
import cases_sorting  # noqa: E402, F401
import cases_training  # noqa: E402, F401
import cases_views  # noqa: E402, F401

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Integers and bool, exactly: wrapping, signs of division, shifts, 64 bits."""

from __future__ import annotations

import pytest
import torch
from checking import (
    ALL_DTYPES,
    BOOL,
    F32,
    I8,
    I16,
    I32,
    I64,
    INTEGERS,
    U8,
    case,
    check,
    check_all,
    edge_pairs,
    edges,
    sample,
)

IDS = {"ids": lambda value: str(value).removeprefix("torch.")}


def without_zero(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Divisors that eager accepts: not 0, and not -1 under the smallest number, where C++ leaves the result open."""
    keep = b != 0
    if a.dtype != U8:
        keep &= ~((b == -1) & (a == torch.iinfo(a.dtype).min))
    return a[keep], b[keep]


@pytest.mark.parametrize("dtype", INTEGERS, **IDS)
def test_arithmetic_wraps(dtype):
    """Sums, products and negation modulo 2^bits."""
    a, b = edge_pairs(dtype)
    check_all(
        [
            case("tensors", lambda a, b: (a + b, a - b, a * b), a, b),
            case("unary", lambda a: (-a, a.abs(), a.square(), a.sign(), ~a, a.relu()), edges(dtype)),
            case("numbers", lambda a: (a + 100, a - 100, 5 - a, a * 77, a + -1, a * -1), edges(dtype)),
            case(
                "alpha",
                lambda a, b: (torch.add(a, b, alpha=3), torch.sub(a, b, alpha=7), torch.rsub(a, b, alpha=2)),
                a,
                b,
            ),
            case("powers", lambda a: (a**2, a**3, a**5, a**0, a**1), edges(dtype)),
            case("in place", lambda a, b: a.add_(b).mul_(3).sub_(b), a, b),
            case("addcmul", lambda a, b: torch.addcmul(a, a, b, value=3), a, b),
        ]
    )


@pytest.mark.parametrize("dtype", INTEGERS, **IDS)
def test_matrix_products_wrap(dtype):
    """Products of integer matrices modulo 2^bits, also beyond one tile."""
    scale = 2**33 if dtype == I64 else 3
    a, b, vector = (sample(dtype, *shape) * scale for shape in ((130, 33), (33, 5), (33,)))
    first, second = sample(dtype, 3, 4, 7) * scale, sample(dtype, 3, 7, 2) * scale
    check_all(
        [
            case("matrices", lambda a, b, v: (a @ b, torch.mv(a, v), torch.dot(v, v), b.T @ v), a, b, vector),
            case(
                "batches",
                lambda p, q: (p @ q, torch.addbmm(p[0, :, :2], p, q), torch.baddbmm(q[:, :1], p, q, beta=2, alpha=3)),
                first,
                second,
            ),
            case(
                "sums",
                lambda a, b, v: (torch.addmm(v[:5], a, b, beta=2, alpha=3), torch.addmv(a[:, 0], a, v)),
                a,
                b,
                vector,
            ),
            case("empty", lambda a, b: a[:, :0] @ b[:0], a, b),
        ]
    )


@pytest.mark.parametrize("dtype", INTEGERS, **IDS)
def test_order_and_bits(dtype):
    """Comparisons, extremes, bits and shifts of all edge values."""
    a, b = edge_pairs(dtype)
    bits = torch.iinfo(dtype).bits
    shifts = torch.arange(bits, dtype=dtype)
    x, s = edges(dtype).repeat_interleave(len(shifts)), shifts.repeat(len(edges(dtype)))
    check_all(
        [
            case("comparisons", lambda a, b: (a == b, a != b, a < b, a <= b, a > b, a >= b), a, b),
            case(
                "extremes",
                lambda a, b: (torch.maximum(a, b), torch.minimum(a, b), torch.fmax(a, b), torch.fmin(a, b)),
                a,
                b,
            ),
            case(
                "clamp", lambda a, b: (a.clamp(-3, 100), a.clamp_min(2), a.clamp_max(5), torch.clamp(a, b, b + 1)), a, b
            ),
            case("bits", lambda a, b: (a & b, a | b, a ^ b, a & 0x55, a | 1, a ^ 3), a, b),
            case("shifts", lambda x, s: (x << s, x >> s), x, s),
            case("shift by number", lambda x: (x << 3, x >> 1, x >> (bits - 1), x << (bits - 1)), edges(dtype)),
            case(
                "logic",
                lambda a, b: (a.logical_and(b), a.logical_or(b), a.logical_xor(b), a.logical_not(), a.bool()),
                a,
                b,
            ),
            case(
                "where",
                lambda a, b: (torch.where(a > b, a, b), torch.where(a > b, 7, b), a.masked_fill(a < b, 3)),
                a,
                b,
            ),
            case("signs", lambda a: (a.sgn(), a.signbit(), a.abs() > 0), edges(dtype)),
            case("rounding", lambda a: (a.floor(), a.ceil(), a.round(), a.trunc()), edges(dtype)),
        ]
    )


@pytest.mark.parametrize("dtype", INTEGERS, **IDS)
def test_division_signs(dtype):
    """Remainder has the sign of the divisor, fmod that of the dividend, floor and trunc to match (llvm/torch-mlir#3575)."""
    a, b = without_zero(*edge_pairs(dtype))
    small = torch.arange(0 if dtype == U8 else -9, 10).to(dtype)
    x, y = without_zero(small.repeat_interleave(len(small)), small.repeat(len(small)))
    cases = []
    for label, p, q in (("edges", a, b), ("small", x, y)):
        cases += [
            case(f"{label} remainder", torch.remainder, p, q),
            case(f"{label} fmod", torch.fmod, p, q),
            case(f"{label} floor", lambda p, q: torch.div(p, q, rounding_mode="floor"), p, q),
            case(f"{label} trunc", lambda p, q: torch.div(p, q, rounding_mode="trunc"), p, q),
            case(f"{label} floor_divide", lambda p, q: p // q, p, q),
        ]
    cases += [
        case("numbers", lambda p: (p % 3, p // 3, torch.fmod(p, 3), p % 7, p // 100), edges(dtype)),
        case("number by tensor", lambda q: (100 % q, 100 // q), edges(dtype)[edges(dtype) != 0]),
    ]
    if dtype != U8:
        keep = edges(dtype)[1:]
        cases.append(case("negative numbers", lambda p: (p % -3, p // -3, torch.fmod(p, -3), p // -1, p % -1), keep))
    check_all(cases)


@pytest.mark.parametrize("dtype", (*INTEGERS, BOOL), **IDS)
def test_float_functions_of_integers(dtype):
    """True division, reciprocal and roots of integers are f32 (aws-neuron/aws-neuron-sdk#650)."""
    n = edges(dtype) if dtype == BOOL else torch.tensor([1, 2, 3, 7, 4, 100], dtype=dtype)
    check_all(
        [
            case("division", lambda n: (n / 2, 1 / n, n / n, torch.true_divide(n, 3)), n),
            case(
                "functions", lambda n: (n.reciprocal(), n.rsqrt(), n.sqrt(), n.exp(), n.log(), n.sigmoid(), n.tanh()), n
            ),
            case("float number", lambda n: (n * 0.5, n + 1.5, n / 0.25, n == 1.5), n),
            case("mean", lambda n: n.float().mean(), n),
            case("to float", lambda n: (n.float(), n.half(), n.bfloat16()), n),
        ]
    )


def test_sixty_four_bits():
    """Words of int64 beyond 2^32 and 2^53: carries, products, comparisons in either word, shifts across words."""
    words = [0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**52, 2**53 + 1, 2**62, 2**63 - 1, 3 * 2**40 + 5]
    values = torch.tensor(words + [-word for word in words] + [-(2**63)])
    a, b = values.repeat_interleave(len(values)), values.repeat(len(values))
    c, d = without_zero(a, b)
    check_all(
        [
            case("ring", lambda a, b: (a + b, a - b, a * b, -a), a, b),
            case(
                "order",
                lambda a, b: (a < b, a <= b, a > b, a >= b, a == b, a != b, torch.maximum(a, b), torch.minimum(a, b)),
                a,
                b,
            ),
            case("bits", lambda a, b: (a & b, a | b, a ^ b, ~a), a, b),
            case(
                "shifts",
                lambda a: tuple(
                    f(a, s)
                    for s in (0, 1, 31, 32, 33, 63)
                    for f in (torch.bitwise_left_shift, torch.bitwise_right_shift)
                ),
                values,
            ),
            case(
                "division", lambda c, d: (c // d, c % d, torch.fmod(c, d), torch.div(c, d, rounding_mode="trunc")), c, d
            ),
            case(
                "numbers",
                lambda a: (a + 2**40, a * 2**33, a // 1000003, a % 1000003, a > 2**53, a == 2**53 + 1, a & (2**33 - 1)),
                values,
            ),
            case(
                "reduce",
                lambda a: (a.sum(), a.amax(), a.amin(), a.argmax(), a.argmin(), a.prod(), a.cumsum(0), a.cumprod(0)),
                values,
            ),
            case("narrow", lambda a: (a.to(I32), a.to(I16), a.to(I8), a.to(U8), a.to(BOOL)), values),
            case("float", lambda a: (a.float(), a.bfloat16(), a.half(), a / 3), values),
            case("where", lambda a, b: (torch.where(a > b, a, b), a.clamp(-(2**33), 2**40)), a, b),
        ]
    )


def test_counter_generator():
    """Shifts, xor and sums modulo 2^32 in a loop (iree-org/iree#24927)."""

    def rounds(key, x):
        mask = 0xFFFFFFFF
        for turn in (13, 15, 26, 6, 17, 29, 16, 24):
            key = (key + x) & mask
            x = (((x << turn) | (x >> (32 - turn))) & mask) ^ key
        return key, x

    check(rounds, torch.arange(5), torch.tensor([1, 2**31, 2**32 - 1, 7, 0]))
    check(rounds, torch.arange(300).reshape(3, 100) * 65537, torch.arange(300).reshape(3, 100) * 0x9E3779B1 % 2**32)


def test_hash_in_thirty_two_bits():
    """Wrapping int32 products and arithmetic shifts, as hash functions use them."""

    def mix(x):
        for multiplier in (0x45D9F3B, 0x119DE1F3):
            x = (x ^ (x >> 16)) * multiplier
        return x ^ (x >> 15)

    check(mix, torch.randint(-(2**31), 2**31, (257,)).to(I32))


def test_bool_arithmetic():
    """Sums of bool are or, products are and; with a number or another dtype bool is an integer."""
    a, b = torch.tensor([False, False, True, True]), torch.tensor([False, True, False, True])
    cases = [
        case("tensors", lambda a, b: (a + b, a * b, a & b, a | b, a ^ b, ~a, a == b, a < b, a >= b), a, b),
        case("extremes", lambda a, b: (torch.maximum(a, b), torch.minimum(a, b), a.amax(), b.amin()), a, b),
        case("numbers", lambda a: (a + 1, a * 2, 1 - a.int(), a + True, a * True, a + 0.5, a * 2.5), a),
        case("sums", lambda a: (a.sum(), a.cumsum(0), a.prod(), a.cumprod(0), a.float().mean(), a.count_nonzero()), a),
        case("logic", lambda a: (a.any(), a.all(), a.logical_not(), a.max(0), a.min(0), a.aminmax()), a),
        case("shift", lambda a: (a.int() << 3, a.to(U8) - 1, -a.to(U8)), b),
        case("accumulate", lambda a, b: torch.add(a, b, alpha=True), a, b),
    ]
    for dtype in ALL_DTYPES:
        x = torch.tensor([0, 1, 2, 3]).to(dtype)
        cases.append(case(f"with {dtype}", lambda a, x: (a + x, a * x, a == x, torch.where(a, x, 0), x * ~a), a, x))
    check_all(cases)


def test_what_eager_refuses_of_bool_is_refused():
    """Subtraction and negation of bool, and its index of a maximum, are not defined: the same error on the device."""
    a = torch.tensor([True, False])
    for function in (
        lambda t: t - t,
        lambda t: -t,
        lambda t: t - True,
        lambda t: 1 - t,
        lambda t: t.float() - t,
        lambda t: t.argmax(),
    ):
        with pytest.raises(RuntimeError) as expected:
            function(a)
        with pytest.raises(RuntimeError) as actual:
            function(a.to("neuron"))
        assert str(actual.value).split("\n")[0] == str(expected.value).split("\n")[0]


def test_division_by_integer_zero_is_an_error():
    """Integer division by zero raises on the CPU; on the device it is an error as well, at the latest when it is read."""
    a, zero = torch.tensor([4, 5], dtype=I32), torch.tensor([2, 0], dtype=I32)
    for function in (
        torch.floor_divide,
        torch.remainder,
        torch.fmod,
        lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    ):
        with pytest.raises(RuntimeError):
            function(a, zero)
        with pytest.raises(RuntimeError, match="(?i)division|zero"):
            function(a.to("neuron"), zero.to("neuron")).cpu()


@pytest.mark.parametrize("dtype", INTEGERS, **IDS)
def test_integer_reductions_widen(dtype):
    """sum, prod, cumsum and cumprod of narrow integers are int64 unless a dtype is asked for."""
    x = torch.full((3, 200), torch.iinfo(dtype).max, dtype=dtype)
    x[1] = torch.iinfo(dtype).min
    x[2] = torch.arange(200).to(dtype)
    check_all(
        [
            case("sums", lambda x: (x.sum(), x.sum(0), x.sum(1), x.sum(-1, keepdim=True), x.cumsum(1), x.cumsum(0)), x),
            case("products", lambda x: (x.prod(), x.prod(0), x.prod(1), x.cumprod(0), x.cumprod(1)), x),
            case(
                "same dtype",
                lambda x: (x.sum(dtype=dtype), x.sum(1, dtype=dtype), x.cumsum(0, dtype=dtype), x.prod(0, dtype=dtype)),
                x,
            ),
            case("as int32", lambda x: (x.sum(1, dtype=I32), x.cumsum(1, dtype=I32), x.prod(0, dtype=I32)), x),
            case("as float", lambda x: (x.sum(1, dtype=F32), x.mean(1, dtype=F32)), x.to(I16).to(dtype), rtol=1e-5),
            case("extremes", lambda x: (x.amax(0), x.amin(1), x.max(), x.min(), x.max(1), x.min(0), x.aminmax()), x),
            case("indices", lambda x: (x.argmax(), x.argmin(), x.argmax(1), x.argmin(0, keepdim=True)), x),
            case("logic", lambda x: (x.any(), x.all(), x.any(0), x.all(1), x.count_nonzero(), x.count_nonzero(1)), x),
        ]
    )


def test_wide_integer_sums_are_exact():
    """Integer sums do not pass through f32: rows whose partial sums exceed 2^24 and 2^53."""
    x = torch.randint(-(2**31), 2**31, (5, 300))
    y = torch.randint(-(2**53), 2**53, (130, 40))
    check_all(
        [
            case("int32", lambda x: (x.sum(), x.sum(1), x.sum(0), x.cumsum(1)), x.to(I32)),
            case("int32 wraps", lambda x: (x.sum(1, dtype=I32), x.cumsum(0, dtype=I32)), x.to(I32)),
            case("int64", lambda y: (y.sum(), y.sum(1), y.sum(0), y.cumsum(0), y.cumsum(1)), y),
            case("mask", lambda y: ((y > 0).sum(), (y > 0).sum(0), (y > 0).cumsum(1)), y),
            case("big steps", lambda x: (x * 16777259 + 3, x % 16777259, x // 65537), x),
        ]
    )


@pytest.mark.parametrize("dtype", INTEGERS, **IDS)
def test_integers_through_movement(dtype):
    """Moving integers changes no bit: views, concatenation, padding, selection, reshapes, flips."""
    x = edges(dtype)
    x = x[: len(x) // 2 * 2].reshape(2, -1)
    y = sample(dtype, *x.shape)
    check_all(
        [
            case("cat", lambda x, y: (torch.cat([x, y]), torch.cat([x, y], 1), torch.stack([x, y], -1)), x, y),
            case("flip", lambda x: (x.flip(0), x.flip(1), x.roll(1, 1), x.T.contiguous(), x.repeat(2, 3)), x),
            case(
                "pad",
                lambda x: (torch.nn.functional.pad(x, (1, 2), value=5), torch.nn.functional.pad(x, (0, 0, 1, 1))),
                x,
            ),
            case("triangle", lambda x: (x.tril(), x.triu(1), x.tril(-1)), x),
            case(
                "scatter",
                lambda x, y: (torch.slice_scatter(x, y[:, :1], 1, 1, 2), torch.select_scatter(x, y[0], 0, 1)),
                x,
                y,
            ),
            case("where", lambda x, y: torch.where(y > 5, x, y), x, y),
            case("full", lambda x: torch.full_like(x, torch.iinfo(dtype).max) - x, x),
        ]
    )

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""NaN, infinities, signed zeros, denormals and halfway cases in float operations."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from checking import F16, F32, FLOATS, case, check, check_all, edge_pairs, edges, inf, nan

IDS = {"ids": lambda value: str(value).removeprefix("torch.")}


@pytest.fixture(autouse=True)
def _own_kernels_of_eager(monkeypatch):
    """On some processors eager takes oneDNN's gelu, which is NaN at inf and inf beyond 1.7e38."""
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)


# Operators with one right result per value of f32 (or a few last places of it).
ELEMENTWISE = {
    name: getattr(torch, name)
    for name in """abs neg sign sgn floor ceil round trunc frac relu square sqrt rsqrt reciprocal isnan isinf
        isfinite isposinf isneginf
    signbit nan_to_num logical_not positive exp exp2 expm1 log log2 log10 log1p sigmoid tanh erf erfc sin cos atan asinh acosh
    sinh cosh asin acos atanh angle deg2rad rad2deg""".split()
} | {
    "silu": F.silu,
    "softsign": F.softsign,
    "relu6": F.relu6,
    "hardtanh": F.hardtanh,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "leaky_relu": F.leaky_relu,
    "elu": F.elu,
    "selu": F.selu,
    "celu": F.celu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "softplus": F.softplus,
    "logsigmoid": F.logsigmoid,
    "hardshrink": F.hardshrink,
    "softshrink": F.softshrink,
    "tanhshrink": F.tanhshrink,
    "threshold": lambda x: F.threshold(x, 0.5, -3.0),
    "mish": F.mish,
}


# Eager's own kernels give this zero either sign, by the position in the vector.
ZERO_OF_EITHER_SIGN = {"softshrink", "tanhshrink", "gelu"}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_function_at_its_edges(name):
    """Signed zeros, NaN and infinities go through every function as on the CPU (aws-neuron/aws-neuron-sdk#673)."""
    check_all(
        [
            case(str(dtype), ELEMENTWISE[name], edges(dtype), signed_zero=name not in ZERO_OF_EITHER_SIGN)
            for dtype in FLOATS
        ]
    )


ORDERED = {
    name: getattr(torch, name)
    for name in "maximum minimum fmax fmin eq ne lt le gt ge copysign heaviside atan2 xlogy nextafter".split()
}


@pytest.mark.parametrize("name", ORDERED)
def test_order_of_nan_and_zeros(name):
    """maximum and minimum pass NaN on, fmax and fmin drop it, comparisons are false for it (but `ne`)."""
    check_all(
        [
            # Which zero max(0, -0) returns is not defined; eager's choice depends on the vector width.
            case(str(dtype), ORDERED[name], *edge_pairs(dtype), signed_zero=name[-3:] not in ("max", "min", "mum"))
            for dtype in FLOATS
            if name != "nextafter" or dtype == F32
        ]
    )


ARITHMETIC = {
    name: getattr(torch, name)
    for name in "add sub mul div remainder fmod hypot logaddexp logaddexp2 floor_divide".split()
} | {
    "div_floor": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "div_trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
}


@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_of_edge_values(name):
    """inf - inf, 0 * inf, x / 0 and remainders by 0 and inf (pytorch/pytorch#188048, aws-neuron/aws-neuron-sdk#673)."""
    cases = []
    for dtype in FLOATS:
        a, b = edge_pairs(dtype)
        if name in ("fmod", "remainder"):
            # Eager's vectorised fmod gives NaN when the quotient overflows.
            keep = (b.abs() >= 1e-6) | (b == 0)
            a, b = a[keep], b[keep]
            keep = ~((a.abs() > 1e30) & (b.abs() < 1))
            a, b = a[keep], b[keep]
        # The sign of the zero of a rounded sum is left to the order of its terms.
        cases.append(case(str(dtype), ARITHMETIC[name], a, b, signed_zero=not name.startswith("logaddexp")))
    check_all(cases)


@pytest.mark.parametrize("dtype", FLOATS, **IDS)
def test_floor_division_just_below_an_integer(dtype):
    """Floor division follows fmod, not floor(a / b), which is one too high (pytorch/pytorch#197895)."""
    tenths = torch.arange(-60, 61) / 10
    a = tenths.repeat_interleave(20)
    b = torch.cat([torch.arange(1, 11) / 10, -torch.arange(1, 11) / 10]).repeat(len(tenths))
    a, b = a.to(dtype), b.to(dtype)
    check_all(
        [
            case("tensors", lambda a, b: torch.div(a, b, rounding_mode="floor"), a, b),
            case("operator", lambda a, b: a // b, a, b),
            case("number", lambda a: a // 0.1, a),
            case("negative number", lambda a: a // -0.7, a),
            case("by tensor of rank 0", lambda a, b: a // b, a, torch.tensor(0.3)),
            case("remainder by number", lambda a: (a % 0.7, torch.fmod(a, 0.7), a % -0.7), a),
            case("number by tensor", lambda b: (2.1 // b, 2.1 % b), b),
        ]
    )


def test_clamp_of_nan_and_crossed_bounds():
    """NaN stays NaN whichever bounds there are; with crossed bounds the upper one wins."""
    cases = []
    for dtype in FLOATS:
        x = edges(dtype)
        cases += [
            case(f"{dtype} both", lambda t: t.clamp(-1.5, 2.5), x),
            case(f"{dtype} lower", lambda t: t.clamp_min(0.5), x),
            case(f"{dtype} upper", lambda t: t.clamp_max(-0.5), x),
            case(f"{dtype} crossed", lambda t: t.clamp(2.0, -2.0), x),
            case(f"{dtype} infinite", lambda t: t.clamp(-inf, inf), x),
            case(f"{dtype} NaN bound", lambda t: t.clamp(min=nan), x),
            case(f"{dtype} tensors", lambda t, a, b: t.clamp(a, b), x, x.flip(0).contiguous(), torch.ones_like(x)),
            case(f"{dtype} in place", lambda t: t.clamp_(0.25, 100.0), x),
        ]
    check_all(cases)


def test_selection_keeps_bits():
    """where and masked_fill move values: NaN, infinities and the sign of zero survive, also in what is not chosen."""
    cases = []
    for dtype in FLOATS:
        x, y = edge_pairs(dtype)
        cases += [
            case(f"{dtype} where", lambda x, y: torch.where(x > y, x, y), x, y),
            case(f"{dtype} where number", lambda x: torch.where(x > 0, x, -0.0), x),
            case(f"{dtype} where not number", lambda x: torch.where(x > 0, nan, x), x),
            case(f"{dtype} masked_fill", lambda x, y: x.masked_fill(y > 0, -inf), x, y),
            case(f"{dtype} masked_fill NaN", lambda x, y: x.masked_fill(y != y, nan), x, y),
            case(f"{dtype} of bool", lambda x, y: torch.where((x > 0) & (y < 0) | x.isnan(), x, y), x, y),
        ]
    check_all(cases)


def test_arithmetic_is_not_simplified_away():
    """x - x is NaN for inf, x * 0 is not 0 for NaN, -0.0 + 0.0 is 0.0, and x + -0.0 keeps x."""
    cases = []
    for dtype in FLOATS:
        x = edges(dtype)
        cases += [
            case(f"{dtype} x - x", lambda x: x - x, x),
            case(f"{dtype} x * 0", lambda x: x * 0, x),
            case(f"{dtype} x * -0.0", lambda x: x * -0.0, x),
            case(f"{dtype} x + 0", lambda x: x + 0, x),
            case(f"{dtype} x + -0.0", lambda x: x + -0.0, x),
            case(f"{dtype} x - 0", lambda x: x - 0, x),
            case(f"{dtype} 0 - x", lambda x: 0 - x, x),
            case(f"{dtype} x * 1", lambda x: x * 1, x),
            case(f"{dtype} x * -1", lambda x: x * -1, x),
            case(f"{dtype} x * 2", lambda x: x * 2, x),
            case(f"{dtype} -(-x)", lambda x: -(-x), x),  # noqa: B002
            case(f"{dtype} x / x", lambda x: x / x, x),
            case(f"{dtype} 0 / x", lambda x: 0 / x, x),
            case(f"{dtype} 1 / x", lambda x: 1 / x, x),
            case(f"{dtype} x / 0", lambda x: x / 0, x),
            case(f"{dtype} x / inf", lambda x: x / inf, x),
            case(f"{dtype} x == x", lambda x: x == x, x),
            case(f"{dtype} not x < 0", lambda x: ~(x < 0), x),
            case(f"{dtype} relu of minus", lambda x: (-x).relu(), x),
            case(f"{dtype} abs of abs", lambda x: x.abs().abs(), x),
            case(f"{dtype} pow 0", lambda x: x**0, x),
            case(f"{dtype} 1 to the x", lambda x: 1.0**x, x),
            case(f"{dtype} root", lambda x: x**0.5, x),
        ]
    check_all(cases)


def test_chains_of_comparisons():
    """Comparisons as numbers and as masks of each other."""
    cases = []
    for dtype in FLOATS:
        x, y = edge_pairs(dtype)
        cases += [
            case(f"{dtype} count", lambda x, y: (x < y).to(torch.int32) + (x == y).to(torch.int32) + (x > y), x, y),
            case(f"{dtype} xor", lambda x, y: (x < y) ^ (y < x) ^ x.isnan(), x, y),
            case(f"{dtype} bool order", lambda x, y: (x < y) > (x == y), x, y),
            case(f"{dtype} times mask", lambda x, y: x * (x > y), x, y),
            case(f"{dtype} truth", lambda x, y: (x.logical_and(y), x.logical_or(y), x.logical_xor(y)), x, y),
            case(f"{dtype} to bool", lambda x: x.bool(), x),
        ]
    check_all(cases)


def test_powers():
    """Signs and NaN of powers: integer, half and negative exponents, zero and infinite bases."""
    cases = []
    for dtype in FLOATS:
        x, y = edge_pairs(dtype)
        cases.append(case(f"{dtype} tensors", torch.pow, x, y, rtol=2e-5 if dtype == F32 else None))
        for exponent in (2, 3, -1, -2, 0.5, -0.5, 1, 0, 4, 1.5, -3, 7, 0.25):
            cases.append(
                case(
                    f"{dtype} ** {exponent}",
                    lambda x, e=exponent: x**e,
                    edges(dtype),
                    rtol=2e-5 if dtype == F32 else None,
                )
            )
        cases.append(case(f"{dtype} 2 ** x", lambda x: 2**x, edges(dtype)))
        cases.append(case(f"{dtype} -2 ** x", lambda x: torch.pow(-2.0, x), edges(dtype)))
    check_all(cases)


def test_denormals_are_kept():
    """Denormals of f32 and f16 are numbers: not flushed by arithmetic, comparison or conversion."""
    tiny = torch.tensor([1e-40, -1e-40, 1.4e-45, -1.4e-45, 1.2e-38, -1.2e-38, 0.0, -0.0])
    half = torch.tensor([6e-8, -6e-8, 6e-5, -6e-5, 3e-7, 0.0, -0.0, 1.0]).half()
    brain = tiny.bfloat16()
    cases = []
    for x in (tiny, half, brain):
        cases += [
            case(f"{x.dtype} scale", lambda x: (x * 2, x / 2, x * 0.25, x + x, x - x), x),
            case(f"{x.dtype} compare", lambda x: (x > 0, x == 0, x != 0, x.bool(), x.sign()), x),
            case(f"{x.dtype} move", lambda x: (x.abs(), -x, x.relu(), torch.where(x > 0, x, 0.0), x.clamp_min(0)), x),
            case(f"{x.dtype} reduce", lambda x: (x.amax(), x.amin(), x.sum(), x.argmax()), x),
            case(f"{x.dtype} convert", lambda x: (x.float(), x.half(), x.bfloat16()), x),
        ]
    check_all(cases)


def test_halfway_cases_round_to_even():
    """Conversions to 16 bits and torch.round take the even neighbour (torch-spyre/torch-spyre#2847)."""
    brain = torch.arange(0x3F80, 0x3F80 + 64, dtype=torch.int32)
    # Exactly between two bf16 numbers, and one bit to either side.
    between = torch.cat([(brain << 16) + 0x8000, (brain << 16) + 0x7FFF, (brain << 16) + 0x8001]).view(F32)
    half = torch.arange(0x3F80, 0x3F80 + 64, dtype=torch.int32) << 13
    between_half = torch.cat([half + 0x1000, half + 0x0FFF, half + 0x1001]).view(F32)
    limits = torch.tensor(
        [65504.0, 65519.9, 65520.0, 65536.0, -65519.9, -65520.0, 3.3895e38, 3.4e38, -3.4e38, 2.98e-8, 2.9e-8, 8.9e-8]
    )
    cases = [
        case("bf16", lambda x: (x.bfloat16(), (-x).bfloat16()), between),
        case("f16", lambda x: (x.half(), (-x).half()), between_half),
        case("limits", lambda x: (x.half(), x.bfloat16(), x.half().bfloat16(), x.bfloat16().half()), limits),
        case("round", torch.round, torch.arange(-20, 21) / 2),
        case("round decimals", lambda x: (x.round(decimals=1), x.round(decimals=-1)), torch.arange(-50, 51) / 4),
        case("bf16 sum", lambda x: x + x.flip(0), between.bfloat16()),
        case("bf16 product", lambda x: x * x, between.bfloat16()),
        case("f16 product", lambda x: x * x, between_half.half()),
    ]
    check_all(cases)


def test_float16_overflow():
    """f16 results beyond 65504 are infinite; sums accumulate in f32 first (torch-spyre/torch-spyre#2849)."""
    x = torch.tensor([60000.0, -60000.0, 300.0, 1e-4]).half()
    check_all(
        [
            case("sum", lambda x: (x + x, x * x, x - -x, x.exp(), x.square()), x),
            case(
                "reduce", lambda x: (x[:1].repeat(3).sum(), x[:1].repeat(3).mean(), x[:1].repeat(3).sum(dtype=F32)), x
            ),
            case("number", lambda x: (x * 2.0, x + 1e5, x * 1e5, x - 70000.0, x / 1e-5), x),
        ]
    )


def test_numbers_beyond_float32():
    """Python numbers that f32 cannot hold: infinite or rounded as in eager, not reinterpreted."""
    cases = []
    for dtype in FLOATS:
        x = torch.tensor([1.0, -2.0, 0.0, 1e30 if dtype != F16 else 1e4], dtype=dtype)
        cases += [
            case(f"{dtype} huge", lambda x: (x * 1e300, x + 1e39, x - 1e300, x / 1e300), x),
            case(f"{dtype} tiny", lambda x: (x * 1e-300, x + 1e-50, x / 1e-300), x),
            case(f"{dtype} compare", lambda x: (x < 1e300, x > -1e300, x == 1e300), x),
            case(f"{dtype} compare fraction", lambda x: (x < 1.0000000001, x == 1.0000000001, x >= 0.9999999999), x),
            case(f"{dtype} integer", lambda x: (x + 2**40, x * (2**62 - 1), x < 2**60), x),
            case(f"{dtype} clamp", lambda x: x.clamp(-1e37, 1e38) if x.dtype != F16 else x.clamp(-6e4, 6e4), x),
            case(f"{dtype} fill", lambda x: torch.full_like(x, 0.1) * x, x),
        ]
    check_all(cases)


def test_nan_is_data():
    """A graph that makes NaN and infinities runs and returns them (aws-neuron/aws-neuron-sdk#673)."""
    check(lambda t: (t.log(), t / 0, (t * 0) / 0, (t - t) * inf), torch.tensor([-1.0, 0.0, 1.0, inf]))

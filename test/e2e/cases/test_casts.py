# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Conversions between all dtypes, alone and in chains."""

from __future__ import annotations

import itertools

import pytest
import torch
from checking import (
    ALL_DTYPES,
    BF16,
    BOOL,
    F16,
    F32,
    FLOATS,
    I8,
    I16,
    I32,
    I64,
    INTEGERS,
    U8,
    case,
    check,
    check_all,
    edges,
    inf,
    nan,
)

IDS = {"ids": lambda value: str(value).removeprefix("torch.")}


def convertible(source: torch.dtype, target: torch.dtype) -> torch.Tensor:
    """Edge values whose conversion C++ defines: a float that does not fit an integer has no result to agree on."""
    x = edges(source)
    if source.is_floating_point and not target.is_floating_point and target != BOOL:
        info = torch.iinfo(target)
        wide = x.double()
        x = x[wide.isfinite() & (wide.trunc() >= info.min) & (wide.trunc() <= info.max) & (wide.abs() < 2**62)]
    return x


@pytest.mark.parametrize("source", ALL_DTYPES, **IDS)
def test_every_conversion(source):
    """Each dtype to each other, edge values included."""
    check_all([case(f"to {target}", lambda x, t=target: x.to(t), convertible(source, target)) for target in ALL_DTYPES])


@pytest.mark.parametrize("dtype", FLOATS, **IDS)
def test_fractions_are_cut_towards_zero(dtype):
    """Floats to integers truncate, on both sides of zero and at the largest values."""
    x = torch.tensor([0.99, -0.99, 1.5, -1.5, 2.999, -2.999, 126.9, -127.9, 0.5, -0.5, 1e-7, -1e-7, 100.25, 63.5]).to(
        dtype
    )
    large = torch.tensor([2.0**31 - 128, -(2.0**31), 2.0**24 + 2, -(2.0**30)]).to(dtype if dtype != F16 else F32)
    huge = torch.tensor([2.0**62, -(2.0**63), 2.0**53, 2.0**40 + 2.0**20, -(2.0**33)]).to(
        dtype if dtype != F16 else F32
    )
    check_all(
        [
            case("narrow", lambda x: tuple(x.to(target) for target in INTEGERS if target != U8), x),
            case("unsigned", lambda x: x.abs().to(U8), x),
            case("int32", lambda x: (x.to(I32), x.to(I64)), large),
            case("int64", lambda x: x.to(I64), huge),
            case("bool", lambda x: x.to(BOOL), torch.cat([x, torch.tensor([nan, inf, -inf, 0.0, -0.0]).to(dtype)])),
        ]
    )


def test_integers_wrap_when_they_narrow():
    """int64 to int32, int16, int8 and uint8 keeps the low bits."""
    x = torch.tensor(
        [2**31, 2**32, 2**32 + 5, -(2**31) - 1, 255, 256, 257, -1, -128, -129, 32768, 65535, 65537, 2**63 - 1, -(2**63)]
    )
    check_all(
        [
            case("int64", lambda x: (x.to(I32), x.to(I16), x.to(I8), x.to(U8)), x),
            case("int32", lambda x: (x.to(I16), x.to(I8), x.to(U8)), x.to(I32)),
            case("int16", lambda x: (x.to(I8), x.to(U8)), x.to(I16)),
            case(
                "signed and unsigned",
                lambda x: (x.to(U8).to(I8), x.to(I8).to(U8), x.to(I8).to(I64), x.to(U8).to(I64)),
                x,
            ),
        ]
    )


def test_integers_round_when_they_become_floats():
    """Nearest even at the ends of the significand."""
    x = torch.tensor(
        [
            2**24 + 1,
            2**24 + 3,
            2**25 + 2,
            2**25 + 6,
            2**31 - 1,
            -(2**31),
            2**53 + 1,
            2**62 + 2**38,
            2**63 - 1,
            257,
            259,
            2049,
            2051,
            65519,
            65520,
            70000,
        ]
    )
    check_all(
        [
            case("int64", lambda x: (x.float(), x.half(), (x + 0.0), x * 1.0), x),
            case("int32", lambda x: (x.float(), x.half(), x.bfloat16()), x[(x < 2**31) & (x >= -(2**31))].to(I32)),
        ]
    )


def test_chains_keep_every_rounding():
    """f32 -> f16 -> bf16 -> int8 rounds at each step, alone or fused (torch-spyre/torch-spyre#2847)."""
    x = torch.randn(4, 70) * 60
    exact = {"rtol": 0, "atol": 0}
    check_all(
        [
            case("steps", lambda t: (t.half(), t.bfloat16(), t.half().bfloat16(), (t > 0).to(BF16)), x, **exact),
            case("to int8", lambda t: t.clamp(-127, 127).half().bfloat16().to(I8), x, **exact),
            case(
                "there and back",
                lambda t: (t.half().float(), t.bfloat16().float(), t.int().float(), t.bool().float()),
                x,
                **exact,
            ),
            case("through integers", lambda t: t.to(I16).to(BF16).to(I32).to(F16), x, **exact),
            case("through 16 bits", lambda t: (t.bfloat16().float() - t, t.half().float() - t), x, **exact),
            case(
                "compare after rounding",
                lambda t: (t.bfloat16() == t, t.half().float() == t, t.bfloat16() > t.half()),
                x,
            ),
            case(
                "bool and back", lambda t: (t.bool().to(I64) * 3, (t > 0).float() * t, (t > 0).to(U8) + 254), x, **exact
            ),
        ]
    )


def test_every_pair_of_conversions():
    """x.to(a).to(b) for all dtypes a and b, in one program."""
    x = torch.tensor([0.0, 1.0, 2.5, 3.75, 100.3, 127.0, 0.3])
    pairs = list(itertools.product(ALL_DTYPES, repeat=2))
    check_all([case(f"{a}, {b}", lambda x, a=a, b=b: x.to(a).to(b), x) for a, b in pairs], batch=len(pairs))


def test_conversion_forms():
    """to(dtype), type_as, float(), half() and a conversion to the own dtype, which is the tensor itself."""
    x, other = torch.randn(3, 5), torch.zeros(2, dtype=BF16)
    check(
        lambda x, o: (x.type_as(o), x.half(), x.double().float(), x.to(o.dtype, copy=True)),
        x,
        other,
        eager=False,
        compiled=False,
    )
    check(lambda x, o: (x.type_as(o), x.half(), x.bool(), x.int(), x.long(), x.short(), x.char(), x.to(o)), x, other)
    device = x.to("neuron")
    assert device.float() is device


def test_eight_bit_floats_convert():
    """float8 is a storage dtype: conversions round to nearest even, in both formats."""
    x = torch.cat([torch.randn(300) * 20, torch.tensor([0.0, -0.0, 448.0, -448.0, 1e-3, 2**-9, 17.0, 19.0])])
    for target in (torch.float8_e4m3fn, torch.float8_e5m2):
        want = x.to(target).float()
        got = x.to("neuron").to(target).float().cpu()
        torch.testing.assert_close(got, want, rtol=0, atol=0)
        from checking import compile

        torch.testing.assert_close(
            compile(lambda t, d=target: t.to(d).float())(x.to("neuron")).cpu(), want, rtol=0, atol=0
        )

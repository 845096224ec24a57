# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Which dtype a result has, and in which its operands are: tensors, tensors of rank 0, numbers."""

from __future__ import annotations

import itertools

import pytest
import torch
from checking import ALL_DTYPES, BF16, BOOL, F16, F32, FLOATS, I32, I64, INTEGERS, U8, case, check_all, check_sweep

IDS = {"ids": lambda value: str(value).removeprefix("torch.")}


def small(dtype: torch.dtype) -> torch.Tensor:
    return torch.tensor([0, 1, 2, 3, 100, 127]).to(dtype)


def operations(a, b):
    return a + b, a * b, a / (b + 1), a == b, a < b, torch.where(a > b, a, b), torch.maximum(a, b)


@pytest.mark.parametrize("dtype", ALL_DTYPES, **IDS)
def test_every_pair_of_dtypes(dtype):
    """Promotion of two tensors with dimensions, in either order."""
    # Another quarter of the pairs for each dtype.
    first = ALL_DTYPES.index(dtype)
    check_sweep(
        [case(str(other), operations, small(dtype), small(other)) for other in ALL_DTYPES[first:] + ALL_DTYPES[:first]]
    )


@pytest.mark.parametrize("dtype", ALL_DTYPES, **IDS)
def test_tensors_of_rank_zero(dtype):
    """A tensor of rank 0 counts only by its category; two of them promote as tensors do."""
    cases = []
    for other in ALL_DTYPES:
        zero_dim = torch.tensor(3).to(other)
        cases.append(case(f"{other} right", operations, small(dtype), zero_dim))
        cases.append(case(f"{other} left", operations, zero_dim, small(dtype)))
        cases.append(case(f"{other} both", operations, torch.tensor(2).to(dtype), zero_dim))
    check_sweep(cases)


@pytest.mark.parametrize("number", (True, 3, -2, 2.5), ids=str)
def test_numbers(number):
    """A number counts only by its category and takes the default dtype."""

    def with_number(a):
        results = [
            a + number,
            number + a,
            a * number,
            a / 4 * number,
            a == number,
            a < number,
            number < a,
            torch.where(a > 1, a, number),
        ]
        if not (isinstance(number, bool) or a.dtype == BOOL):
            results += [a - number, number - a]
        return results

    check_sweep(
        [case(str(dtype), with_number, small(dtype)) for dtype in ALL_DTYPES if not (dtype == U8 and number == -2)]
    )


@pytest.mark.parametrize("dtype", (BF16, F16), **IDS)
def test_inexact_numbers_with_sixteen_bits(dtype):
    """x * 2.1234 and x / 2.1234 take the number in f32, everything else rounds it to the dtype first, bit for bit."""
    # A multiple of the vector width: at the end of a vector eager rounds `alpha * y` once more.
    x = (torch.rand(512) * 6 + 0.1).to(dtype)
    number = 2.1234567
    zero_dim = torch.tensor(number)
    exact = {"rtol": 0, "atol": 0}
    check_all(
        [
            case("mul", lambda x: (x * number, number * x, x * zero_dim.to(x.device)), x, **exact),
            case("mul left", lambda x, z: (torch.mul(z, x), torch.mul(x, z)), x, zero_dim, **exact),
            case("div", lambda x, z: (x / number, number / x, x / z, z / x), x, zero_dim, **exact),
            case("add", lambda x, z: (x + number, number + x, x + z, z + x), x, zero_dim, **exact),
            case("sub", lambda x, z: (x - number, number - x, x - z, z - x), x, zero_dim, **exact),
            case("floor", lambda x, z: (x // number, number // x, x // z, z // x), x, zero_dim, **exact),
            case(
                "remainder", lambda x, z: (x % number, number % x, torch.fmod(x, number), x % z), x, zero_dim, **exact
            ),
            case(
                "alpha", lambda x, y: (torch.add(x, y, alpha=number), torch.sub(x, y, alpha=1.3)), x, x.flip(0), **exact
            ),
            case("compare", lambda x, z: (x < number, x == number, x >= z, z > x), x, zero_dim),
            case("clamp", lambda x, z: (x.clamp(0.3, number), x.clamp_min(z)), x, zero_dim, **exact),
            case("where", lambda x, z: (torch.where(x > 2, x, number), torch.where(x > 2, z, x)), x, zero_dim, **exact),
            case("fill", lambda x: (torch.full_like(x, number), x.masked_fill(x > 1, number)), x, **exact),
            case("addcmul", lambda x: torch.addcmul(x, x, x, value=number), x, **exact),
        ]
    )


def test_numbers_out_of_the_range_of_the_dtype():
    """Comparisons of narrow integers with numbers beyond their range, as eager rounds or refuses them."""
    x, y = small(I32) - 2, small(torch.int8)
    check_all(
        [
            case("float number", lambda x: (x < 1.5, x == 2.0, x > -0.5, x * 1e10, x + 1e-3), x),
            case("int8 with float", lambda y: (y + 1000.0, y < 1000.5, y * 0.1), y),
            case("int64 with float", lambda x: (x.long() * 0.1, x.long() + 2.0**60), x),
        ]
    )


def test_dtype_of_results_in_place():
    """An in-place result keeps its dtype; a float into an integer is refused as in eager."""
    cases = [
        case("float += int", lambda a, b: a.add_(b), small(F32), small(I64)),
        case("bf16 *= f32", lambda a, b: a.mul_(b), small(BF16), small(F32) / 3),
        case("int8 += int64", lambda a, b: a.add_(b), small(torch.int8), small(I64)),
        case("int64 += bool", lambda a, b: a.add_(b), small(I64), small(BOOL)),
        case("f16 /= int", lambda a, b: a.div_(b + 1), small(F16), small(I32)),
    ]
    check_all(cases)
    for a, b in itertools.product((small(I64), small(U8)), (small(F32), 0.5)):
        with pytest.raises(RuntimeError) as expected:
            a.add_(b)
        with pytest.raises(RuntimeError) as actual:
            a.to("neuron").add_(b.to("neuron") if isinstance(b, torch.Tensor) else b)
        assert str(actual.value).split("\n")[0] == str(expected.value).split("\n")[0]


def test_mixed_operands_of_cat_stack_and_where():
    """cat and stack promote like arithmetic does."""
    check_sweep(
        [
            case(
                f"{a} {b}",
                lambda x, y: (torch.cat([x, y]), torch.stack([x, y]), torch.where(x > y, x, y)),
                small(a),
                small(b),
            )
            for a, b in itertools.product(ALL_DTYPES, repeat=2)
            if a != b
        ]
    )


def test_reductions_and_functions_choose_their_dtype():
    """sum of int8 is int64, of bf16 bf16; mean and std of floats keep the dtype; float functions of integers are f32."""
    cases = [
        case(
            str(dtype),
            lambda x: (x.sum(), x.prod(), x.any(), x.amax(), x.exp(), x.cumsum(0), x.max(0)),
            small(dtype).clamp_max(3) if dtype != BOOL else small(dtype),
        )
        for dtype in (*INTEGERS, BOOL)
    ]
    cases += [
        case(
            str(dtype),
            lambda x: (x.sum(), x.mean(), x.std(), x.var(), x.norm(), x.softmax(0), x.logsumexp(0)),
            small(dtype),
            rtol=1e-2,
        )
        for dtype in FLOATS
    ]
    check_all(cases)

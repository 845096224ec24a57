# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Reads and writes at indices that are data: values, what repeats, what is out of range, whose memory is written."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from checking import BF16, BOOL, F32, I8, I32, I64, case, check, check_all, check_gradients, compile, inf, nan, sample

IDS = {"ids": lambda value: str(value).removeprefix("torch.")}


def picks(size: int, *shape: int, dtype: torch.dtype = I64) -> torch.Tensor:
    return torch.randint(0, size, shape, dtype=dtype)


@pytest.mark.parametrize("dtype", (F32, BF16, I64, I8, BOOL), **IDS)
def test_reads(dtype):
    """Rows, rows of inner dimensions, elements; several indices, negative ones (aws-neuron/aws-neuron-sdk#937)."""
    x, wide = sample(dtype, 4, 20, 3), sample(dtype, 20, 300)
    i, j = torch.tensor([3, -1, 0, 2, -4]), torch.tensor([3, -1, 0, 19, -20])
    check_all(
        [
            case("rows", lambda x, i: x[i], x, i),
            case("inner", lambda x, i: (x[:, i], x[:, :, i[1:4]]), x, i % 3),
            case("pairs", lambda x, i, j: x[i, j], x, i, j),
            case("apart", lambda x, i, j: x[i[:2, None], :, j[1:3] % 3], x, i, j),
            case("grid", lambda x, i, j: x[i[:, None], j], x, i, j),
            case("index_select", lambda x, i: x.index_select(1, i), x, picks(20, 7, dtype=I32)),
            case("gather", lambda x, i: torch.gather(x, 1, i), x, picks(20, 4, 7, 2)),
            case("take", lambda x, i: torch.take(x, i), x, picks(240, 5, 3)),
            case("take_along_dim", lambda x, i: torch.take_along_dim(x, i, 0), wide, picks(20, 2, 300)),
            case("many", lambda x, i: x[i], wide, picks(20, 300)),
            case("computed", lambda x, i: (x * x)[i + 1], wide if dtype != BOOL else wide.to(I32), picks(19, 5)),
            case("part", lambda x, i: x[2:, ::2][i], wide, picks(18, 4)),
            case("isin", lambda x, i: (torch.isin(i, i[:2]), torch.isin(i, 3), torch.isin(i, i, invert=True)), x, i),
            case("none", lambda x, i: x[i[:0]], wide, i),
        ]
    )


def test_embedding():
    """Indices of any shape and layout, in int64 and int32; a row of padding."""
    weight = sample(F32, 11, 6)
    check_all(
        [
            case("matrix", lambda i, w: F.embedding(i, w), picks(11, 2, 7), weight),
            case("int32", lambda i, w: F.embedding(i, w), picks(11, 3, dtype=I32), weight),
            case("scalar", lambda i, w: F.embedding(i, w), picks(11), weight),
            case("transposed", lambda i, w: F.embedding(i, w.T), picks(6, 4), weight),
            case("expanded", lambda i, w: F.embedding(i, w), picks(11, 1, 7).expand(3, 7), weight),
            case("bfloat16", lambda i, w: F.embedding(i, w, padding_idx=1), picks(11, 9), weight.to(BF16)),
            case("tied", lambda i, w: F.linear(F.embedding(i, w), w), picks(11, 9), weight, rtol=1e-5, atol=1e-5),
        ]
    )


@pytest.mark.parametrize("dtype", (F32, BF16, I64, BOOL), **IDS)
def test_writes(dtype):
    """index_put, index_copy, index_fill, scatter (aws-neuron/aws-neuron-sdk#790, #1381); of equal indices the last."""
    x, rows = sample(dtype, 20, 7), sample(dtype, 300, 7)
    i = torch.tensor([3, -1, 3, 0])
    columns = torch.stack([torch.randperm(7)[:3] for _ in range(5)])

    def assign(x, i, v):
        x[i] = v
        x[:, i[:2]] = v[:2, 0]
        return x.clone()

    check_all(
        [
            case("index_put", lambda x, i, v: x.index_put((i,), v[:4]), x, i, rows),
            case("one value", lambda x, i, v: x.index_put((i,), v[0, 0]), x, i, rows),
            case("pairs", lambda x, i, v: x.index_put((i, i + 2), v[:4, 0]), x, i, rows),
            case("many", lambda x, i, v: x.index_put((i,), v), x, picks(20, 300), rows),
            case("index_copy", lambda x, i, v: x.index_copy(0, i, v), x, picks(20, 300), rows),
            case("index_fill", lambda x, i: x.index_fill(1, i, 1), x, i),
            case("scatter", lambda x, i, v: x.scatter(1, i, v), x, columns, rows),
            case("scatter number", lambda x, i: x.scatter(0, i, 1), x, picks(20, 6, 3)),
            case("assignment", assign, x, i, rows[:4]),
        ]
    )


@pytest.mark.parametrize("dtype", (F32, BF16, I64, I8), **IDS)
def test_sums_at_indices(dtype):
    """Every occurrence of an index is added, within a block of rows and across blocks."""
    options = {"rtol": 1e-4, "atol": 1e-4} if dtype == F32 else {"rtol": 4e-2, "atol": 4e-2} if dtype == BF16 else {}
    x, rows, same = sample(dtype, 20, 7), sample(dtype, 300, 7), torch.zeros(300, dtype=I64)
    wide = sample(dtype, 20, 9)
    check_all(
        [
            case("index_add", lambda x, i, v: x.index_add(0, i, v), x, picks(20, 300), rows, **options),
            case("alpha", lambda x, i, v: x.index_add(1, i, v, alpha=2), x, picks(7, 9), wide, **options),
            case("one row", lambda x, i, v: x.index_add(0, i, v), x, same, rows, **options),
            case("index_put", lambda x, i, v: x.index_put((i,), v, True), x, picks(20, 300) - 20, rows, **options),
            case("scatter_add", lambda x, i, v: x.scatter_add(0, i, v), x, picks(20, 100, 6)[:20], rows, **options),
        ]
    )


def test_sums_of_what_is_not_finite():
    """inf and NaN stay in their rows; inf and -inf in one row are NaN."""
    values = torch.tensor([[1.0, 2.0], [inf, 1.0], [2.0, -inf], [nan, inf], [1.0, -inf], [-3.0, 3e38], [0.0, 3e38]])
    index = torch.tensor([0, 1, 1, 3, 3, 4, 4])
    check(lambda x, i, v: x.index_add(0, i, v), torch.zeros(5, 2), index, values, signed_zero=False)


CACHES = {
    "index_copy_": lambda cache, at, new: cache.index_copy_(2, at, new),
    "assignment": lambda cache, at, new: cache.__setitem__((slice(None), slice(None), at), new),
    "index_put_": lambda cache, at, new: cache.transpose(0, 2).index_put_((at,), new.transpose(0, 2)),
}


@pytest.mark.parametrize("name", CACHES)
@pytest.mark.parametrize("rows", (1, 3))
def test_cache_is_written_in_place(name, rows):
    """A key cache that grows step by step, and is read after each write."""
    write = CACHES[name]

    def step(cache, at, new):
        write(cache, at, new)
        return cache.sum(2)

    device, host = torch.zeros(2, 4, 32, 16, device="neuron"), torch.zeros(2, 4, 32, 16)
    address, function = device.data_ptr(), compile(step)
    with torch.no_grad():
        for begin in range(0, 9, rows):
            at, new = torch.arange(begin, begin + rows), torch.randn(2, 4, rows, 16)
            want = step(host, at, new)
            got = function(device, at.to("neuron"), new.to("neuron"))
            torch.testing.assert_close(got.cpu(), want, rtol=1e-5, atol=1e-5)
            assert torch.equal(device.cpu(), host)
    assert device.data_ptr() == address


def test_old_content_survives_a_write():
    """Reads of the tensor before, and of itself while it is written."""

    def function(x, i):
        before = x.sum(0)
        x[i] = x[:3] * 2
        return before, x[0].clone()

    check(function, sample(F32, 20, 7), torch.tensor([2, 0, 5]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ("embedding", "padding", "rows", "gather", "pairs", "index_copy"))
def test_gradients_by_index(name):
    """Each use of a row adds to its gradient."""
    functions = {
        "embedding": lambda w, i: F.embedding(i, w),
        "padding": lambda w, i: F.embedding(i, w, padding_idx=2),
        "rows": lambda w, i: w[i] * 2,
        "gather": lambda w, i: torch.gather(w, 0, i[:, :1].expand(-1, 6)),
        "pairs": lambda w, i: w[i[:, 0], i[:, 1] % 6],
        "index_copy": lambda w, i: (w * 1).index_copy(0, torch.arange(3, device=w.device), w[i[:3, 0]]),
    }
    check_gradients(functions[name], sample(F32, 11, 6).requires_grad_(), picks(11, 9, 3))


def test_padding_and_resizing_by_index():
    """What PyTorch decomposes into reads at computed indices."""
    image = sample(F32, 1, 3, 8, 6)
    options = {"rtol": 1e-4, "atol": 1e-4}
    check_all(
        [
            case("reflect", lambda t: F.pad(t, (2, 1), mode="reflect"), image[0], **options),
            case("replicate", lambda t: F.pad(t, (2, 1), mode="replicate"), image[0], **options),
            case("bicubic", lambda t: F.interpolate(t, scale_factor=2.0, mode="bicubic"), image, **options),
        ],
        eager=False,
    )


def test_write_into_a_part_of_a_product():
    """The whole product is computed, so its memory cannot be that of the part which is written to."""

    def function(x, y, index, values):
        part = (x @ y).reshape(-1)[:9].reshape(9, 1)
        return part.index_copy(0, index, values)

    arguments = (torch.randn(20, 7), torch.randn(7, 30), torch.tensor([3, 5]), torch.randn(2, 1))
    got = torch.compile(function, backend="neuron", fullgraph=True)(*(x.to("neuron") for x in arguments))
    torch.testing.assert_close(got.cpu(), function(*arguments))

# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Cases of reading and writing at indices that are data."""

from __future__ import annotations

import torch
from cases import cases
from generators import BF16, BOOL, F32, FLOATS, I8, I32, I64, U8, inf, layout, make, nan

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


SHORT = (F32, BF16, I64, I8, BOOL)


def index(size: int, *shape: int, dtype=I64, negative: bool = False, distinct: bool = False) -> torch.Tensor:
    """Indices below `size`, from -size on if negative ones count from the end."""
    if distinct:
        count = 1
        for extent in shape:
            count *= extent
        values = torch.randperm(size)[:count].reshape(shape)
    else:
        values = torch.randint(-size if negative else 0, size, shape) if size else torch.zeros(shape, dtype=I64)
    return values.to(dtype)


# Shape of the tensor; per leading dimension the shape of its index, or None.
ADVANCED = [
    ((7,), [(4,)]),
    ((7, 3), [(4,)]),
    ((7, 3), [()]),
    ((7, 3), [None, (5,)]),
    ((4, 5, 3), [None, (2, 3)]),
    ((4, 5, 3), [(6,), (6,)]),
    ((4, 5, 3), [(2, 1), (3,)]),
    ((4, 5, 3), [None, (2, 1), (3,)]),
    ((4, 5, 3), [(6,), None, (6,)]),
    ((4, 5, 3), [(3, 1), None, (2,)]),
    ((4, 5, 3), [(4,), (4,), (4,)]),
    ((3, 2, 4, 5), [None, (2,), (2,)]),
    ((3, 2, 4, 5), [(2,), None, (2,), None]),
    ((1, 3), [(5,)]),
    ((130, 3), [(200,)]),
    ((7, 3), [(0,)]),
    ((7, 0), [(4,)]),
]


def _indices(shape, indices, negative=True):
    return [
        None if size is None else index(extent, *size, dtype=I64, negative=negative)
        for extent, size in zip(shape, indices, strict=False)
    ]


@cases("aten.index.Tensor", "aten._unsafe_index.Tensor")
def _index():
    for shape, indices in ADVANCED:
        for dtype in SHORT:
            yield (make(dtype, shape), _indices(shape, indices)), {}
    for kind in range(1, 5):
        x = layout(make(F32, (4, 5, 3)), kind)
        yield (x, [None, index(5, 2, 3, negative=True)]), {}
        yield (x, [index(4, 3, 1), None, index(3, 2)]), {}


@cases("aten.index_select.default")
def _index_select():
    for dtype in SHORT:
        for index_dtype in (I64, I32):
            for dim in (0, 1, -1):
                for count in (3, 1, 0):
                    x = make(dtype, (4, 5, 3))
                    yield (x, dim, index(x.shape[dim], count, dtype=index_dtype)), {}
    yield (make(F32, (130, 7)), 0, index(130, 300)), {}
    yield (make(F32, (5,)), 0, index(5)), {}
    yield (make(F32, ()), 0, index(1)), {}
    for kind in range(1, 5):
        yield (layout(make(F32, (4, 5, 3)), kind), 1, index(5, 7)), {}


@cases("aten.embedding.default")
def _embedding():
    for dtype in (*FLOATS, I64):
        for shape in ((2, 7), (5,), (), (0,), (3, 1, 2)):
            for index_dtype in (I64, I32):
                yield (make(dtype, (11, 6)), index(11, *shape, dtype=index_dtype)), {}
    yield (make(F32, (11, 6)), layout(index(11, 4, 3), 1), 2), {}
    yield (layout(make(F32, (11, 6)), 1), layout(index(11, 4, 3), 4)), {}


# Shape of the tensor, of the index, dimension.
ELEMENTS = [
    ((5,), (7,), 0),
    ((4, 5), (4, 5), 1),
    ((4, 5), (3, 9), 1),
    ((4, 5), (6, 2), 0),
    ((4, 5), (4, 1), -1),
    ((3, 4, 5), (2, 6, 3), 1),
    ((), (), 0),
    ((4, 5), (0, 5), 1),
    ((130, 3), (130, 2), 1),
]


@cases("aten.gather.default")
def _gather():
    for dtype in SHORT:
        for shape, chosen, dim in ELEMENTS:
            yield (make(dtype, shape), dim, index(shape[dim] if shape else 1, *chosen)), {}
    yield (layout(make(F32, (4, 5)), 1), 1, layout(index(5, 4, 6), 1)), {}


@cases("aten.take.default")
def _take():
    for dtype in SHORT:
        for shape in ((4, 5), (7,), (2, 3, 2)):
            count = torch.Size(shape).numel()
            yield (make(dtype, shape), index(count, 3, 4, negative=True)), {}
            yield (make(dtype, shape), index(count)), {}


def _index_put(*rest):
    def generate():
        for accumulate in (False, True):
            for shape, before, mask, values in MASKED:
                for dtype in (F32, I64, BOOL):
                    indices = [None] * before + [make(BOOL, mask)]
                    yield (make(dtype, shape), indices, make(dtype, values), accumulate, *rest), {}
            for shape, indices in ADVANCED:
                for dtype in (F32, I64, BOOL):
                    chosen = _indices(shape, indices)
                    result = torch.empty(shape)[tuple(slice(None) if i is None else i for i in chosen)].shape
                    options = {"edges": False} if accumulate and dtype == F32 else {}
                    for values in (result, (1,) * len(result[-1:]), ()):
                        x, values = make(dtype, shape, **options), make(dtype, values, **options)
                        yield (x, chosen, values, accumulate, *rest), {}

    return generate


cases("aten.index_put.default")(_index_put())
cases("aten._index_put_impl.default")(_index_put(False))


@cases("aten.index_copy.default")
def _index_copy():
    for dtype in SHORT:
        for dim in (0, 1, -1):
            for count in (1, 3, 0):
                x = make(dtype, (4, 5, 3))
                rows = list(x.shape)
                rows[dim] = count
                yield (x, dim, index(x.shape[dim], count), make(dtype, rows)), {}
    yield (make(F32, (130, 3)), 0, index(130, 300), make(F32, (300, 3))), {}
    yield (make(F32, (5,)), 0, index(5), make(F32, ())), {}
    yield (layout(make(F32, (4, 5)), 1), 1, index(5, 2), layout(make(F32, (4, 2)), 1)), {}


@cases("aten.index_add.default")
def _index_add():
    for dtype in (*FLOATS, I64, I8):
        for dim in (0, 1):
            for count in (1, 9):
                for alpha in (1, 3):
                    rows = [4, 5]
                    rows[dim] = count
                    yield (
                        (
                            make(dtype, (4, 5), edges=False),
                            dim,
                            index((4, 5)[dim], count, dtype=I64),
                            make(dtype, rows, edges=False),
                        ),
                        {"alpha": alpha},
                    )
    yield (make(F32, (5, 3), edges=False), 0, index(5, 300), make(F32, (300, 3), edges=False)), {}
    # What is not finite stays in its row.
    yield (
        (
            torch.zeros(4, 2),
            0,
            torch.tensor([0, 1, 1, 3, 3]),
            torch.tensor([[1.0, 2.0], [inf, 1.0], [2.0, -inf], [nan, inf], [1.0, -inf]]),
        ),
        {},
    )


@cases("aten.index_fill.int_Scalar")
def _index_fill():
    for dtype in SHORT:
        for dim in (0, 1):
            yield (make(dtype, (4, 5)), dim, index((4, 5)[dim], 3, negative=True), 3), {}
    yield (make(F32, ()), 0, index(1), 2.5), {}


@cases("aten.index_fill.int_Tensor")
def _index_fill_tensor():
    for dtype in SHORT:
        yield (make(dtype, (4, 5)), 1, index(5, 3, negative=True), make(dtype, ())), {}


def _scatter(accumulate: bool):
    def generate():
        for dtype in (F32, I64, I8) if accumulate else SHORT:
            for shape, chosen, dim in ELEMENTS:
                options = {"edges": False} if accumulate else {}
                extent = shape[dim] if shape else 1
                wider = [size + 1 for size in chosen]
                yield (make(dtype, shape, **options), dim, index(extent, *chosen), make(dtype, wider, **options)), {}

    return generate


cases("aten.scatter.src")(_scatter(False))
cases("aten.scatter_add.default")(_scatter(True))


@cases("aten.scatter.value")
def _scatter_value():
    for dtype in SHORT:
        for shape, chosen, dim in ELEMENTS:
            yield (make(dtype, shape), dim, index(shape[dim] if shape else 1, *chosen), 2), {}


@cases("aten.put.default")
def _put():
    for accumulate in (False, True):
        for dtype in (F32, I64):
            yield (
                (
                    make(dtype, (4, 5), edges=False),
                    index(20, 3, 4, negative=True),
                    make(dtype, (3, 4), edges=False),
                    accumulate,
                ),
                {},
            )


@cases("aten.embedding_dense_backward.default")
def _embedding_backward():
    for dtype in FLOATS:
        for shape in ((2, 7), (5,), (3, 1, 2)):
            for padding in (-1, 3):
                for scaled in (False, True):
                    yield (make(dtype, (*shape, 4), edges=False), index(6, *shape), 6, padding, scaled), {}
    yield (make(F32, (300, 4), edges=False), index(6, 300, dtype=I32), 6, -1, False), {}


@cases("aten.isin.Tensor_Tensor")
def _isin():
    for dtype in (F32, I64, I32, U8):
        for tested in ((4,), (2, 3), (), (0,)):
            for shape in ((3, 5), (), (0,), (130,)):
                for invert in (False, True):
                    x, others = make(dtype, shape), make(dtype, tested)
                    yield (x, torch.cat([others.flatten()[:2], x.flatten()[:2]])), {"invert": invert}


@cases("aten.isin.Tensor_Scalar")
def _isin_number():
    for dtype in (F32, I64):
        yield (make(dtype, (3, 5)), 2), {}
        yield (make(dtype, (3, 5)), 1), {"invert": True}


@cases("aten.isin.Scalar_Tensor")
def _number_isin():
    for dtype in (F32, I64):
        yield (2, make(dtype, (3, 5))), {}

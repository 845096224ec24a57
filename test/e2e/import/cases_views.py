# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Cases of views, and of tensors put together from parts."""

from __future__ import annotations

from cases import cases
from generators import BF16, BOOL, F32, I32, I64, fill, layout, make


def on_each(*calls, dtypes=(F32, I64, BOOL)):
    """calls: (shape, args...)."""

    def generate():
        for shape, *rest in calls:
            for dtype in dtypes:
                for kind in range(5):
                    x = layout(fill(dtype, shape), kind)
                    yield (x, *rest), {}

    return generate


RESHAPES = [
    ((2, 3, 4), [6, 4]),
    ((2, 3, 4), [-1]),
    ((6,), [2, 3]),
    ((1,), []),
    ((), [1, 1]),
    ((0, 3), [3, 0]),
    ((24,), [1, 2, 1, 3, 1, 2, 1, 2]),
]
cases("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default")(on_each(*RESHAPES))
# Only of contiguous tensors: the strides are taken as given.
cases("aten._reshape_alias.default")(
    lambda: (
        ((layout(fill(d, s), k), n, t), {})
        for s, n, t in (((2, 3, 4), [6, 4], [4, 1]), ((6,), [2, 3], [3, 1]))
        for d in (F32, BOOL)
        for k in (0, 3)
    )
)
cases("aten.expand.default")(
    on_each(
        ((3, 1), [3, 4]),
        ((3, 1), [2, 3, 4]),
        ((), [2]),
        ((1,), [0]),
        ((3, 1), [-1, 5]),
        ((1, 2, 1), [2, 1, 3, 1, 2, 1, 2, 4]),
    )
)
cases("aten.permute.default")(
    on_each(((2, 3, 4), [2, 0, 1]), ((2, 3), [-1, 0]), ((), []), ((1, 2, 3, 1, 2, 1, 2, 1), [7, 1, 2, 0, 4, 5, 6, 3]))
)
cases("aten.transpose.int")(on_each(((2, 3, 4), 0, 2), ((2, 3), -1, -2), ((), 0, -1), ((2, 0, 3), 1, 2)))
cases("aten.t.default")(on_each(((2, 3),), ((4,),), ((),), ((0, 3),)))
cases("aten.slice.Tensor")(
    on_each(
        ((7, 3), 0, 1, 6, 2),
        ((7, 3), 1, None, None, 1),
        ((7,), 0, -3, 100, 1),
        ((7,), 0, 5, 2, 1),
        ((0, 3), 0, 0, 5, 3),
        ((2, 9), 1, 1, 9223372036854775807, 4),
        ((3, 4), -1, -100, -1, 2),
    )
)
cases("aten.select.int")(on_each(((2, 3, 4), 1, 2), ((2, 3, 4), -1, -1), ((3,), 0, 1), ((2, 0, 3), 0, 1)))
cases("aten.narrow.default")(on_each(((5, 3), 0, 1, 3), ((5, 3), 1, -2, 2), ((5,), 0, 5, 0)))
cases("aten.squeeze.default")(on_each(((1, 2, 1, 3),), ((),), ((1,),), ((0, 1),)))
cases("aten.squeeze.dim")(on_each(((1, 2, 1), 0), ((1, 2, 1), -1), ((1, 2), 1), ((), 0)))
cases("aten.squeeze.dims")(on_each(((1, 2, 1), [0, 2]), ((1, 2, 1), [-1, 1]), ((1, 2), []), ((), [0])))
cases("aten.unsqueeze.default")(on_each(((2, 3), 0), ((2, 3), -1), ((), 0), ((2,), 1)))


@cases("aten.as_strided.default")
def _as_strided():
    for dtype in (F32, I64):
        for kind in (0, 1, 3):
            x = layout(fill(dtype, (4, 6)), kind)
            base = x.storage_offset()
            for size, stride, offset in (
                ((2, 3), (6, 1), 2),
                ((5, 4), (2, 3), 0),
                ((4, 6), (1, 4), 0),
                ((3,), (0,), 5),
                ((), (), 7),
                ((0, 2), (1, 1), 0),
            ):
                yield (x, size, stride, base + offset), {}
            yield (x, (2, 2), (3, 1), None), {}


cases("aten.diagonal.default")(
    on_each(
        ((3, 5), 0, 0, 1),
        ((5, 3), 1, 0, 1),
        ((3, 5), -1, 0, 1),
        ((2, 3, 4), 0, 0, 2),
        ((2, 3, 4), 1, -1, 1),
        ((3, 3), 7, 0, 1),
    )
)
cases("aten.unfold.default")(
    on_each(((7,), 0, 3, 1), ((7, 4), 0, 3, 2), ((2, 8), 1, 2, 3), ((), 0, 1, 1), ((5, 2), 0, 5, 1))
)
cases("aten.split.Tensor")(on_each(((7, 3), 3, 0), ((7, 3), 2, 1), ((4,), 4, 0), ((0, 3), 2, 0), ((6, 2), 2, -2)))
cases("aten.split_with_sizes.default")(on_each(((7, 3), [3, 4], 0), ((2, 6), [1, 0, 5], 1)))
cases("aten.chunk.default")(on_each(((7, 3), 3, 0), ((2, 6), 2, -1)))
cases("aten.unbind.int")(on_each(((3, 4), 0), ((3, 4), -1), ((1,), 0), ((2, 0), 0)))
cases("aten.flip.default")(
    on_each(((3, 4), [0]), ((3, 4), [1, 0]), ((5,), [-1]), ((), []), ((0, 2), [0, 1]), ((2, 1, 3), []))
)
cases("aten.roll.default")(
    on_each(
        ((3, 4), [1], [0]),
        ((3, 4), [-2, 5], [1, 0]),
        ((7,), [3], []),
        ((2, 3), [4], []),
        ((0, 3), [2], [0]),
        ((), [1], []),
    )
)
cases("aten.repeat.default")(
    on_each(
        ((2, 3), [2, 2]),
        ((3,), [4, 2]),
        ((), [3]),
        ((2, 1, 2), [1, 1, 2]),
        ((2, 3), [0, 2]),
        ((), []),
        ((1, 2, 1, 2), [2, 1, 2, 2, 1, 2, 1, 2]),
    )
)
cases("aten.tril.default", "aten.triu.default")(
    on_each(
        ((4, 5), 0),
        ((5, 4), 1),
        ((4, 5), -2),
        ((2, 3, 3), 0),
        ((3, 3), 100),
        ((3, 3), -100),
        ((0, 3), 0),
        dtypes=(F32, BF16, I64, BOOL),
    )
)


@cases("aten.cat.default")
def _cat():
    for a in (F32, BF16, I64, BOOL):
        for b in (F32, I32):
            yield ([make(a, (2, 3)), make(b, (4, 3))], 0), {}
            yield ([make(a, (2, 3)), make(b, (2, 1)), make(a, (2, 0))], -1), {}
        yield ([make(a, (3,))], 0), {}
        yield ([make(a, (0,)), make(a, (2, 3))], 1), {}
        yield ([make(a, (0,)), make(a, (0,))], 0), {}


@cases("aten.stack.default")
def _stack():
    for dtype in (F32, I64, BOOL):
        for dim in (0, 1, -1):
            yield ([make(dtype, (2, 3)) for _ in range(3)], dim), {}
        yield ([make(dtype, ()), make(dtype, ())], 0), {}
    yield ([make(F32, (2,)), make(I64, (2,))], 0), {}


cases("aten.constant_pad_nd.default")(
    on_each(
        ((3, 4), [1, 2], 0.5),
        ((3, 4), [1, 0, 0, 2], 2),
        ((3, 4), [-1, 1], 0),
        ((5,), [-2, -1], 7),
        ((2, 3, 2), [1, 1, -1, 2, 0, 1], 0),
        ((0, 3), [1, 1, 2, 0], 1),
        dtypes=(F32, BF16, I64, BOOL),
    )
)


def scatters(make_args, dtypes=(F32, I64)):
    def generate():
        for dtype in dtypes:
            for kind in range(4):
                yield from ((args, {}) for args in make_args(dtype, kind))

    return generate


cases("aten.slice_scatter.default")(
    scatters(
        lambda d, k: [
            (layout(fill(d, (7, 3)), k), make(d, (3, 3)), 0, 1, 6, 2),
            (layout(fill(d, (4, 5)), k), make(d, (4, 2)), 1, -2, None, 1),
            (layout(fill(d, (4, 5)), k), make(d, (4, 5)), 1, None, None, 1),
            (layout(fill(d, (5,)), k), make(d, (0,)), 0, 3, 2, 1),
        ]
    )
)
cases("aten.select_scatter.default")(
    scatters(
        lambda d, k: [
            (layout(fill(d, (2, 3, 4)), k), make(d, (2, 4)), 1, -1),
            (layout(fill(d, (3,)), k), make(d, ()), 0, 1),
        ]
    )
)
cases("aten.diagonal_scatter.default")(
    scatters(
        lambda d, k: [
            (layout(fill(d, (4, 6)), k), make(d, (4,)), 1, 0, 1),
            (layout(fill(d, (3, 3)), k), make(d, (2,)), -1, 0, 1),
            (layout(fill(d, (5, 3)), k), make(d, (3,)), 0, 0, 1),
        ]
    )
)
cases("aten.as_strided_scatter.default")(
    scatters(
        lambda d, k: [
            (fill(d, (4, 6)), make(d, (2, 3)), (2, 3), (12, 2), 1),
            (fill(d, (4, 6)), make(d, (4, 2)), (4, 2), (6, 1), 3),
            (fill(d, (24,)), make(d, (3,)), (3,), (7,), 2),
            (fill(d, (4, 6)), make(d, ()), (), (), 5),
        ]
    )
)
cases("aten.diag_embed.default")(on_each(((3,), 0, -2, -1), ((2, 3), 1, 0, 2), ((2, 3), -1, -2, -1), ((0,), 0, -2, -1)))

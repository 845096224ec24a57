# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Random programs with products of every form, attention, convolutions, and reads and writes by index.

Operands have whatever shape they have; what an operation asks for is cut out of them (`fit`), so that products meet
views, elementwise operations and reductions on both sides.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from random_graphs import Builder, Program

SIZES = (1, 2, 3, 5, 8, 16, 31, 33, 64, 65, 127, 128, 129, 130, 200)


def fit(x: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """The first elements of x, again and again where there are too few."""
    count = torch.Size(shape).numel()
    flat = x.reshape(-1)
    if flat.numel() < count:
        flat = flat.repeat(-(-count // flat.numel()))
    return flat[:count].reshape(list(shape))


class ProductBuilder(Builder):
    def step(self) -> bool:
        kind = self.rng.choice(
            "matrix matrix batched batched broadcast linear vector einsum tensordot attention convolution rows rows elements "
            "accumulate other other other other".split()
        )
        return self.other() if kind == "other" else getattr(self, "step_" + kind)()

    def other(self) -> bool:
        kind = self.rng.choice("unary binary scalar reduce view view cast softmax norm cat clamp mutate".split())
        return getattr(self, "step_" + kind)()

    def floats(self, count: int) -> list[int] | None:
        """Values of one float type."""
        first = self.pick(lambda value: self.is_float(value) and value.tensor.numel() > 0)
        if first is None:
            return None
        numbers = [first]
        while len(numbers) < count:
            numbers.append(
                self.pick(lambda value: value.tensor.dtype == self.dtype(first) and value.tensor.numel() > 0)
            )
        return numbers

    def integers(self) -> int | None:
        integer = (torch.int64, torch.int32)
        return self.pick(lambda value: value.tensor.dtype in integer and value.exact and value.tensor.numel() > 0)

    def size(self) -> int:
        return self.rng.choice(SIZES)

    def product(self, text: str, function, shapes: Sequence[Sequence[int]], inner: int) -> bool:
        """`function` of operands of these shapes; scaled, so that values stay of one order."""
        numbers = self.floats(len(shapes))
        if numbers is None or any(torch.Size(shape).numel() > 60_000 for shape in shapes):
            return False
        scale = max(inner, 1) ** -0.5

        def call(*operands):
            return function(*[fit(x, shape) for x, shape in zip(operands, shapes, strict=True)]) * scale

        return self.add(f"{text} {[list(shape) for shape in shapes]}", call, tuple(numbers), False)

    def step_matrix(self) -> bool:
        m, k, n = self.size(), self.size(), self.size()
        kind = self.rng.choice(("mm", "mm", "mm_t", "addmm", "addmm_scaled", "matmul_t_t"))
        if kind == "mm":
            return self.product(kind, torch.mm, ((m, k), (k, n)), k)
        if kind == "mm_t":
            return self.product(kind, lambda a, b: a @ b.t(), ((m, k), (n, k)), k)
        if kind == "matmul_t_t":
            return self.product(kind, lambda a, b: a.t() @ b.t(), ((k, m), (n, k)), k)
        bias = self.rng.choice(((n,), (m, n), (1, n), (m, 1)))
        if kind == "addmm":
            return self.product(kind, torch.addmm, (bias, (m, k), (k, n)), k)
        return self.product(kind, lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), (bias, (m, k), (k, n)), k)

    def step_batched(self) -> bool:
        batch, m, k, n = self.rng.choice((1, 2, 3, 5)), self.size() // 2 + 1, self.size() // 2 + 1, self.size() // 2 + 1
        kind = self.rng.choice(("bmm", "bmm_t", "baddbmm", "addbmm"))
        pair = ((batch, m, k), (batch, k, n))
        if kind == "bmm":
            return self.product(kind, torch.bmm, pair, k)
        if kind == "bmm_t":
            return self.product(kind, lambda a, b: torch.bmm(a, b.mT), ((batch, m, k), (batch, n, k)), k)
        if kind == "baddbmm":
            return self.product(
                kind, lambda c, a, b: torch.baddbmm(c, a, b, beta=2, alpha=0.5), ((batch, m, n), *pair), k
            )
        return self.product(kind, torch.addbmm, ((m, n), *pair), k * batch)

    def step_broadcast(self) -> bool:
        m, k, n = (self.rng.choice((1, 2, 5, 16, 33)) for _ in range(3))
        left, right = self.rng.choice(
            (((2, 1, m, k), (3, k, n)), ((4, m, k), (k, n)), ((m, k), (2, 3, k, n)), ((1, 2, m, k), (3, 1, k, n)),
             ((3, m, k), (k,)), ((k,), (2, k, n)))
        )  # fmt: skip
        return self.product("matmul", torch.matmul, (left, right), k)

    def step_linear(self) -> bool:
        k, n = self.size(), self.size()
        leading = self.rng.choice(((7,), (2, 5), (130,), (), (2, 1, 3)))
        if self.rng.random() < 0.5:
            return self.product("linear", F.linear, ((*leading, k), (n, k)), k)
        activation = self.rng.choice((F.relu, F.gelu, torch.tanh, F.silu))
        return self.product(
            f"{activation.__name__} linear",
            lambda x, w, c: activation(F.linear(x, w, c)),
            ((*leading, k), (n, k), (n,)),
            k,
        )

    def step_vector(self) -> bool:
        m, k = self.size(), self.size()
        kind = self.rng.choice(("mv", "dot", "outer", "addmv", "addr"))
        if kind == "mv":
            return self.product(kind, torch.mv, ((m, k), (k,)), k)
        if kind == "dot":
            return self.product(kind, torch.dot, ((k,), (k,)), k)
        if kind == "outer":
            return self.product(kind, torch.outer, ((m,), (k,)), 1)
        if kind == "addmv":
            return self.product(kind, torch.addmv, ((m,), (m, k), (k,)), k)
        return self.product(kind, torch.addr, ((m, k), (m,), (k,)), 1)

    def step_einsum(self) -> bool:
        a, b, c, d = (self.rng.choice((1, 2, 3, 5, 8, 17)) for _ in range(4))
        size = {"a": a, "b": b, "c": c, "d": d}
        equation = self.rng.choice(
            ("ab,bc->ac", "abc,acd->abd", "abcd,acd->bd", "ab,cb->ca", "abc,abd->cd", "ab,ab->a", "abc,c->ab", "ab,c->abc",
             "abc->cab", "abc,dc->dab")
        )  # fmt: skip
        shapes = [tuple(size[letter] for letter in operand) for operand in equation.split("->")[0].split(",")]
        return self.product(f"einsum {equation}", lambda *x: torch.einsum(equation, *x), shapes, b * c)

    def step_tensordot(self) -> bool:
        a, b, c, d = (self.rng.choice((1, 2, 5, 9)) for _ in range(4))
        if self.rng.random() < 0.5:
            return self.product("tensordot 2", lambda x, y: torch.tensordot(x, y, 2), ((a, b, c), (b, c, d)), b * c)
        return self.product(
            "tensordot", lambda x, y: torch.tensordot(x, y, ([0, 2], [1, 0])), ((a, b, c), (c, a, d)), a * c
        )

    def step_attention(self) -> bool:
        rng = self.rng
        batch, heads, queries, keys, depth = (
            rng.choice((1, 2)),
            rng.choice((1, 2, 4)),
            self.size(),
            self.size(),
            rng.choice((4, 16, 33)),
        )
        groups = rng.choice([g for g in (1, 2, 4) if heads % g == 0])
        kind = rng.choice(("plain", "causal", "bias", "masked", "scaled"))
        if kind == "causal":
            keys = max(keys, queries)
        shapes = [(batch, heads, queries, depth), (batch, groups, keys, depth), (batch, groups, keys, depth)]
        grouped = groups != heads
        if kind in ("bias", "masked"):
            shapes.append(rng.choice(((queries, keys), (batch, 1, queries, keys))))

        def attention(q, k, v, mask=None):
            if kind == "masked":
                # No row without keys: its average means nothing.
                mask = (mask > 0) | (torch.arange(keys, device=mask.device) == 0)
            return F.scaled_dot_product_attention(
                q, k, v, mask, is_causal=kind == "causal", enable_gqa=grouped, scale=0.3 if kind == "scaled" else None
            )

        return self.product(f"attention {kind}", attention, shapes, 1)

    def step_convolution(self) -> bool:
        rng = self.rng
        groups = rng.choice((1, 1, 2))
        inputs, outputs = groups * rng.choice((1, 2, 3, 8)), groups * rng.choice((1, 2, 5))
        stride, padding, dilation = rng.choice((1, 2)), rng.choice((0, 1, 2)), rng.choice((1, 1, 2))
        if rng.random() < 0.5:
            length, kernel = rng.choice((9, 17, 40)), rng.choice((1, 3, 4))
            return self.product(
                f"conv1d s{stride} p{padding} d{dilation} g{groups}",
                lambda x, w, c: F.conv1d(x, w, c, stride, padding, dilation, groups),
                ((2, inputs, length), (outputs, inputs // groups, kernel), (outputs,)), inputs * kernel,
            )  # fmt: skip
        height, width, kernel = rng.choice((7, 12)), rng.choice((8, 11)), rng.choice((1, 2, 3))
        return self.product(
            f"conv2d s{stride} p{padding} d{dilation} g{groups}",
            lambda x, w: F.conv2d(x, w, None, stride, padding, dilation, groups),
            ((2, inputs, height, width), (outputs, inputs // groups, kernel, kernel)), inputs * kernel * kernel,
        )  # fmt: skip

    def step_rows(self) -> bool:
        """Rows by index: exact."""
        indices, source = self.integers(), self.pick(lambda value: self.is_float(value) and value.tensor.numel() > 0)
        if indices is None or source is None:
            return False
        rows, columns = self.rng.choice((2, 7, 40, 130)), self.rng.choice((1, 3, 16, 70))
        shape = self.rng.choice(((5,), (2, 3), (31,), (130,)))
        kind = self.rng.choice(("embedding", "index_select", "index", "index_columns"))
        functions = {
            "embedding": lambda x, i: F.embedding(i, x),
            "index_select": lambda x, i: torch.index_select(x, 0, i.reshape(-1)),
            "index": lambda x, i: x[i],
            "index_columns": lambda x, i: torch.index_select(x, 1, i.reshape(-1) % columns),
        }
        function = functions[kind]
        return self.add(
            f"{kind} [{rows}, {columns}] {list(shape)}",
            lambda x, i: function(fit(x, (rows, columns)), fit(i, shape).long() % rows),
            (source, indices), True,
        )  # fmt: skip

    def step_elements(self) -> bool:
        indices, source = self.integers(), self.pick(lambda value: self.is_float(value) and value.tensor.numel() > 0)
        if indices is None or source is None:
            return False
        rows, columns, dim = self.rng.choice((2, 7, 40)), self.rng.choice((1, 3, 16)), self.rng.randrange(2)
        shape = (rows, self.rng.choice((1, 5, 9))) if dim else (self.rng.choice((1, 5, 9)), columns)
        return self.add(
            f"gather {dim} [{rows}, {columns}] {list(shape)}",
            lambda x, i: torch.gather(fit(x, (rows, columns)), dim, fit(i, shape).long() % (rows, columns)[dim]),
            (source, indices), True,
        )  # fmt: skip

    def step_accumulate(self) -> bool:
        indices, numbers = self.integers(), self.floats(2)
        if indices is None or numbers is None:
            return False
        rows, columns, count = self.rng.choice((3, 9, 40)), self.rng.choice((1, 4, 16)), self.rng.choice((1, 6, 33))
        if self.rng.random() < 0.5:
            return self.add(
                f"scatter_add [{rows}, {columns}] {count}",
                lambda x, y, i: fit(x, (rows, columns)).scatter_add(
                    0, fit(i, (count, columns)).long() % rows, fit(y, (count, columns))),
                (*numbers, indices), False,
            )  # fmt: skip
        return self.add(
            f"index_add [{rows}, {columns}] {count}",
            lambda x, y, i: fit(x, (rows, columns)).index_add(0, fit(i, (count,)).long() % rows, fit(y, (count, columns))),
            (*numbers, indices), False,
        )  # fmt: skip


def random_product_program(seed: int) -> Program:
    rng = random.Random(seed * 6007 + 5)
    return ProductBuilder(seed * 31 + 17, rng.choice((2, 4, 6, 10))).build()

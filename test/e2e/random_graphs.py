# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Random programs over the compiler's scope of graphs.

A program is a list of steps over numbered values; it is built together with its CPU result, so that every step is legal.
`exact` values have one right bit pattern (inputs, integers, single-rounding float32 operations on exact values); only they
feed operations that jump (comparisons, rounding, index of a maximum), since elsewhere a last-bit difference is allowed.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable

import torch
import torch.nn.functional as F

# A program has up to sixteen steps, each of which may round once more than CPU eager does (or once less).
TOLERANCE = {torch.float32: 2e-4, torch.bfloat16: 6e-2, torch.float16: 1e-2}
FLOATS = (torch.float32, torch.float32, torch.bfloat16, torch.float16)
INTEGERS = (torch.int32, torch.int64, torch.int16, torch.int8, torch.uint8)


@dataclasses.dataclass
class Step:
    text: str
    function: Callable
    operands: tuple[int, ...]
    mutates: int | None = None


@dataclasses.dataclass
class Value:
    tensor: torch.Tensor
    exact: bool
    # Relative to the largest element: of the coarsest type that an inexact step of its history rounded to.
    tolerance: float = 0.0
    is_input: bool = False


class Program:
    """`run` executes the steps on any device; `inputs` are CPU tensors."""

    def __init__(self, inputs: list[torch.Tensor], steps: list[Step], outputs: list[int], values: list[Value]):
        self.inputs = inputs
        self.steps = steps
        self.outputs = outputs
        self.exact = [values[number].exact for number in outputs]
        self.tolerances = [values[number].tolerance for number in outputs]

    def run(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values = list(inputs)
        for step in self.steps:
            values.append(step.function(*[values[number] for number in step.operands]))
        return tuple(values[number] for number in self.outputs)

    def __str__(self) -> str:
        lines = []
        for number, tensor in enumerate(self.inputs):
            lines.append(f"v{number}: input {tensor.dtype} {list(tensor.shape)} strides {list(tensor.stride())}")
        for position, step in enumerate(self.steps):
            operands = ", ".join(f"v{number}" for number in step.operands)
            lines.append(f"v{len(self.inputs) + position} = {step.text}({operands})")
        lines.append("return " + ", ".join(f"v{number}" for number in self.outputs))
        return "\n".join(lines)


def large_shape(rng: random.Random) -> list[int]:
    """Enough rows for loops, with long or short rows."""
    columns = rng.choice((257, 1000, 1024, 2048, 4096, 5000))
    rows = rng.choice((300, 520, 777, 1024, 1300))
    return rng.choice(([rows, columns], [2, rows, columns // 2], [columns, rows], [rows * columns]))


def random_shape(rng: random.Random) -> list[int]:
    rank = rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4))
    sizes = (1, 2, 3, 5, 7, 8, 16, 31, 33, 64, 65, 127, 128, 129, 200, 257)
    shape = [rng.choice(sizes) for _ in range(rank)]
    while torch.Size(shape).numel() > 60000:
        shape[rng.randrange(rank)] = rng.choice((1, 2, 3))
    if rank and rng.random() < 0.03:
        shape[rng.randrange(rank)] = 0
    return shape


def random_tensor(rng: random.Random, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(rng.getrandbits(48))
    # Sometimes more memory than the tensor: other strides.
    layout = rng.random()
    padded = list(shape)
    if shape and layout < 0.15:
        padded[-1] = padded[-1] * 2 + 1
    if dtype.is_floating_point:
        tensor = torch.randn(padded, generator=generator) * rng.choice((1.0, 1.0, 3.0, 0.1))
    elif dtype == torch.bool:
        tensor = torch.randint(0, 2, padded, generator=generator)
    else:
        low, high = (0, 250) if dtype == torch.uint8 else (-120, 120)
        if dtype in (torch.int32, torch.int64) and rng.random() < 0.3:
            low, high = -(2**30), 2**30
        tensor = torch.randint(low, high, padded, generator=generator)
    tensor = tensor.to(dtype)
    if padded != list(shape):
        tensor = tensor[..., 1::2] if shape[-1] else tensor[..., :0]
    elif len(shape) >= 2 and layout > 0.85:
        first, second = rng.sample(range(len(shape)), 2)
        tensor = tensor.transpose(first, second).contiguous().transpose(first, second)
    return tensor


UNARY_SMOOTH = (
    "neg abs tanh sigmoid erf sin cos square atan exp2 expm1 asinh silu gelu gelu_tanh softplus relu mish leaky_relu elu "
    "hardswish hardsigmoid sinh"
).split()
UNARY_JUMPS = "floor ceil round trunc sign frac isnan logical_not".split()
UNARY_POSITIVE = "log sqrt rsqrt reciprocal log1p log2 log10".split()
BINARY_SMOOTH = "add sub mul maximum minimum hypot atan2".split()
BINARY_JUMPS = "fmod remainder floor_divide eq lt ge gt ne".split()
BINARY_INTEGER = "add sub mul maximum minimum bitwise_and bitwise_or bitwise_xor eq lt ge".split()
REDUCTIONS = "sum mean amax amin logsumexp var norm".split()


def unary(name: str) -> Callable:
    special = {
        "silu": F.silu,
        "gelu": F.gelu,
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
        "softplus": F.softplus,
        "mish": F.mish,
        "leaky_relu": F.leaky_relu,
        "elu": F.elu,
        "hardswish": F.hardswish,
        "hardsigmoid": F.hardsigmoid,
    }
    return special.get(name) or getattr(torch, name)


class Builder:
    def __init__(self, seed: int, steps: int):
        self.rng = random.Random(seed)
        self.values: list[Value] = []
        self.program_steps: list[Step] = []
        self.num_steps = steps
        self.largest = 200_000

    def pick(self, condition=lambda value: True) -> int | None:
        candidates = [number for number, value in enumerate(self.values) if condition(value)]
        if not candidates:
            return None
        # Later values are preferred, so that chains grow.
        return candidates[min(len(candidates) - 1, int(len(candidates) * self.rng.random() ** 0.6))]

    def add(self, text: str, function: Callable, operands: tuple[int, ...], exact: bool) -> bool:
        try:
            result = function(*[self.values[number].tensor for number in operands])
        except (RuntimeError, IndexError, ValueError, TypeError):
            return False
        if not isinstance(result, torch.Tensor) or result.numel() > self.largest or result.dim() > 6:
            return False
        if result.dtype in (torch.float64, torch.complex64):
            return False
        if result.is_floating_point() and result.numel():
            finite = result[torch.isfinite(result)]
            if finite.numel() and finite.abs().max() > 1e4:
                return False
        exact = exact and all(self.values[number].exact for number in operands)
        tolerance = max((self.values[number].tolerance for number in operands), default=0.0)
        if not exact:
            tolerance = max(tolerance, TOLERANCE.get(result.dtype, 0.0))
        self.values.append(Value(result, exact, tolerance))
        if self.is_noise(len(self.values) - 1):
            self.values.pop()
            return False
        self.program_steps.append(Step(text, function, operands))
        return True

    def is_float(self, value: Value) -> bool:
        return value.tensor.is_floating_point()

    def step(self) -> bool:
        rng = self.rng
        kind = rng.choice(
            "unary unary binary binary binary scalar jump integer reduce reduce view view view cast where softmax norm cat "
            "matmul arg cumsum positive clamp mutate".split()
        )
        return getattr(self, "step_" + kind)()

    def is_noise(self, number: int) -> bool:
        """Nothing but what cancellation has left: no digit of it can be compared."""
        value = self.values[number]
        return bool(
            not value.exact
            and value.tensor.is_floating_point()
            and value.tensor.numel()
            and not value.tensor.float().abs().max() > 1e-2
        )

    def step_unary(self) -> bool:
        number = self.pick(self.is_float)
        name = self.rng.choice(UNARY_SMOOTH)
        exact = name in ("neg", "abs", "relu") or (name == "square" and self.dtype(number) == torch.float32)
        return number is not None and self.add(name, unary(name), (number,), exact)

    def dtype(self, number: int | None) -> torch.dtype | None:
        return None if number is None else self.values[number].tensor.dtype

    def step_positive(self) -> bool:
        number = self.pick(self.is_float)
        name = self.rng.choice(UNARY_POSITIVE)
        function = getattr(torch, name)
        return number is not None and self.add(f"{name}(abs+0.5)", lambda x: function(x.abs() + 0.5), (number,), False)

    def partner(self, number: int, condition) -> int | None:
        shape = self.values[number].tensor.shape

        def fits(value: Value) -> bool:
            try:
                return condition(value) and torch.broadcast_shapes(shape, value.tensor.shape) is not None
            except RuntimeError:
                return False

        return self.pick(fits)

    def step_binary(self) -> bool:
        first = self.pick(self.is_float)
        if first is None:
            return False
        second = self.partner(first, self.is_float)
        name = self.rng.choice(BINARY_SMOOTH)
        exact = name in ("maximum", "minimum") or (
            name in ("add", "sub", "mul") and self.dtype(first) == self.dtype(second) == torch.float32
        )
        return second is not None and self.add(name, getattr(torch, name), (first, second), exact)

    def step_scalar(self) -> bool:
        number = self.pick()
        scalar = self.rng.choice((2, 3, -1, 0.5, 1.25, 0.0))
        name = self.rng.choice(("add", "sub", "mul", "rsub", "div"))
        if self.dtype(number) == torch.bool:
            return False
        exact = name in ("add", "sub", "mul", "rsub") and self.dtype(number) not in (torch.bfloat16, torch.float16)
        if name == "div":
            return self.add(f"div {scalar}", lambda x: x / (scalar or 2), (number,), False)
        function = getattr(torch, name)
        return self.add(f"{name} {scalar}", lambda x: function(x, scalar), (number,), exact)

    def step_jump(self) -> bool:
        first = self.pick(lambda value: self.is_float(value) and value.exact and value.tensor.dtype == torch.float32)
        if first is None:
            return False
        if self.rng.random() < 0.5:
            name = self.rng.choice(UNARY_JUMPS)
            return self.add(name, getattr(torch, name), (first,), True)
        second = self.partner(first, lambda value: self.is_float(value) and value.exact)
        name = self.rng.choice(BINARY_JUMPS)
        return second is not None and self.add(name, getattr(torch, name), (first, second), True)

    def step_integer(self) -> bool:
        def is_integer(value: Value) -> bool:
            return not self.is_float(value) and value.tensor.dtype != torch.bool

        first = self.pick(is_integer)
        if first is None:
            return False
        second = self.partner(first, is_integer)
        if second is None:
            return False
        name = self.rng.choice(BINARY_INTEGER + ["floor_divide", "remainder", "shift"])
        if name == "shift":
            return self.add("shift", lambda a, b: (a << (b.abs() % 5)) >> 1, (first, second), True)
        if name in ("floor_divide", "remainder"):
            function = getattr(torch, name)
            return self.add(name, lambda a, b: function(a, (b % 7) + 1), (first, second), True)
        return self.add(name, getattr(torch, name), (first, second), True)

    def dims(self, tensor: torch.Tensor) -> list[int]:
        count = self.rng.randint(1, max(1, tensor.dim()))
        return sorted(self.rng.sample(range(tensor.dim()), min(count, tensor.dim())))

    def step_reduce(self) -> bool:
        number = self.pick()
        tensor = self.values[number].tensor
        if not tensor.dim() or not tensor.numel():
            return False
        dims, keep = self.dims(tensor), self.rng.random() < 0.5
        if not tensor.is_floating_point():
            name = self.rng.choice(("sum", "amax", "amin", "any", "all"))
            if name in ("any", "all"):
                function = getattr(torch, name)
                return self.add(f"{name} {dims[0]}", lambda x: function(x, dims[0], keep), (number,), True)
            if tensor.dtype == torch.bool:
                return False
            function = getattr(torch, name)
            return self.add(f"{name} {dims} {keep}", lambda x: function(x, dims, keepdim=keep), (number,), True)
        name = self.rng.choice(REDUCTIONS)
        exact = name in ("amax", "amin")
        if name == "var":
            return self.add(f"var {dims}", lambda x: torch.var(x, dims, correction=0, keepdim=keep), (number,), False)
        if name == "norm":
            return self.add(f"norm {dims}", lambda x: torch.linalg.vector_norm(x, 2, dims, keep), (number,), False)
        function = getattr(torch, name)
        return self.add(f"{name} {dims} {keep}", lambda x: function(x, dims, keepdim=keep), (number,), exact)

    def step_arg(self) -> bool:
        number = self.pick(lambda value: value.exact and value.tensor.dim() and value.tensor.numel())
        if number is None or self.dtype(number) == torch.bool:
            return False
        dim = self.rng.randrange(self.values[number].tensor.dim())
        name = self.rng.choice(("argmax", "argmin"))
        function = getattr(torch, name)
        return self.add(f"{name} {dim}", lambda x: function(x, dim), (number,), True)

    def step_cumsum(self) -> bool:
        number = self.pick(
            lambda value: value.tensor.dim() and value.tensor.numel() and value.tensor.dtype != torch.bool
        )
        if number is None:
            return False
        dim = self.rng.randrange(self.values[number].tensor.dim())
        return self.add(
            f"cumsum {dim}", lambda x: torch.cumsum(x, dim), (number,), not self.is_float(self.values[number])
        )

    def step_view(self) -> bool:
        rng = self.rng
        number = self.pick()
        tensor = self.values[number].tensor
        kind = rng.choice(
            ("permute", "reshape", "slice", "unsqueeze", "squeeze", "expand", "flip", "select", "flatten")
        )
        if kind == "permute" and tensor.dim() >= 2:
            order = rng.sample(range(tensor.dim()), tensor.dim())
            return self.add(f"permute {order}", lambda x: x.permute(order), (number,), True)
        if kind == "reshape" and tensor.dim() and tensor.numel():
            factors = [f for f in (2, 3, 4, 5, 7, 8) if tensor.numel() % f == 0]
            if not factors:
                return False
            factor = rng.choice(factors)
            shape = [factor, tensor.numel() // factor] if rng.random() < 0.5 else [tensor.numel() // factor, factor]
            return self.add(f"reshape {shape}", lambda x: x.reshape(shape), (number,), True)
        if kind == "flatten" and tensor.dim() >= 2:
            return self.add("flatten", lambda x: x.flatten(0, 1), (number,), True)
        if kind == "slice" and tensor.dim():
            dim = rng.randrange(tensor.dim())
            size = tensor.shape[dim]
            if size < 2:
                return False
            start, step = rng.randrange(size - 1), rng.choice((1, 1, 2, 3))
            end = rng.randint(start + 1, size)
            index = (slice(None),) * dim + (slice(start, end, step),)
            return self.add(f"slice {dim} {start}:{end}:{step}", lambda x: x[index], (number,), True)
        if kind == "select" and tensor.dim():
            dim = rng.randrange(tensor.dim())
            if not tensor.shape[dim]:
                return False
            position = rng.randrange(tensor.shape[dim])
            return self.add(f"select {dim} {position}", lambda x: x.select(dim, position), (number,), True)
        if kind == "unsqueeze":
            dim = rng.randint(0, tensor.dim())
            return self.add(f"unsqueeze {dim}", lambda x: x.unsqueeze(dim), (number,), True)
        if kind == "squeeze":
            return self.add("squeeze", lambda x: x.squeeze(), (number,), True)
        if kind == "flip" and tensor.dim():
            dim = rng.randrange(tensor.dim())
            return self.add(f"flip {dim}", lambda x: x.flip(dim), (number,), True)
        if kind == "expand":
            size = rng.choice((2, 3, 5))
            return self.add(f"expand {size}", lambda x: x.expand(size, *x.shape), (number,), True)
        return False

    def step_cast(self) -> bool:
        number = self.pick()
        target = self.rng.choice(FLOATS + INTEGERS + (torch.bool,))
        value = self.values[number]
        if value.tensor.is_floating_point() and not target.is_floating_point:
            if not value.exact or value.tensor.isnan().any() or value.tensor.isinf().any():
                return False
            if target == torch.uint8:
                return self.add("abs uint8", lambda x: x.abs().to(torch.uint8), (number,), True)
        exact = not (value.tensor.is_floating_point() and target.is_floating_point and not value.exact)
        return self.add(f"to {target}", lambda x: x.to(target), (number,), exact)

    def step_where(self) -> bool:
        condition = self.pick(lambda value: value.tensor.dtype == torch.bool)
        if condition is None:
            number = self.pick(lambda value: value.exact and value.tensor.dtype != torch.bool)
            return number is not None and self.add("gt 0", lambda x: x > 0, (number,), True)
        first = self.partner(condition, self.is_float)
        if first is None:
            return False
        second = self.partner(first, lambda value: value.tensor.dtype == self.dtype(first))
        return second is not None and self.add("where", torch.where, (condition, first, second), True)

    def step_clamp(self) -> bool:
        number = self.pick(self.is_float)
        return number is not None and self.add("clamp", lambda x: x.clamp(-0.75, 1.5), (number,), True)

    def step_softmax(self) -> bool:
        number = self.pick(lambda value: self.is_float(value) and value.tensor.dim() and value.tensor.numel())
        if number is None:
            return False
        dim = self.rng.randrange(self.values[number].tensor.dim())
        function = self.rng.choice((F.softmax, F.log_softmax))
        return self.add(f"{function.__name__} {dim}", lambda x: function(x, dim), (number,), False)

    def step_norm(self) -> bool:
        number = self.pick(lambda value: self.is_float(value) and value.tensor.dim() and value.tensor.numel())
        if number is None or self.values[number].tensor.shape[-1] < 2:
            return False
        if self.rng.random() < 0.5:
            return self.add("layer_norm", lambda x: F.layer_norm(x, x.shape[-1:]), (number,), False)
        return self.add("rms_norm", lambda x: F.rms_norm(x, x.shape[-1:], eps=1e-5), (number,), False)

    def step_cat(self) -> bool:
        first = self.pick(lambda value: value.tensor.dim() > 0)
        if first is None:
            return False
        shape, dtype = self.values[first].tensor.shape, self.dtype(first)
        second = self.pick(lambda value: value.tensor.shape == shape and value.tensor.dtype == dtype)
        dim = self.rng.randrange(len(shape))
        if self.rng.random() < 0.3:
            return self.add(f"stack {dim}", lambda a, b: torch.stack((a, b), dim), (first, second), True)
        return self.add(f"cat {dim}", lambda a, b: torch.cat((a, b), dim), (first, second), True)

    def step_matmul(self) -> bool:
        first = self.pick(lambda value: self.is_float(value) and value.tensor.dim() == 2)
        if first is None:
            return False
        rows, columns = self.values[first].tensor.shape
        second = self.pick(
            lambda value: (
                value.tensor.dim() == 2 and value.tensor.dtype == self.dtype(first) and columns in value.tensor.shape
            )
        )
        if second is None:
            return False
        transposed = self.values[second].tensor.shape[0] != columns
        scale = max(columns, 1) ** -0.5
        return self.add(
            "matmul" + ("^T" if transposed else ""),
            lambda a, b: (a @ (b.t() if transposed else b)) * scale,
            (first, second),
            False,
        )

    def step_mutate(self) -> bool:
        # Writing into a fresh copy, sometimes through a view of it.
        number = self.pick(lambda value: self.is_float(value) and value.tensor.dim() and value.tensor.numel())
        if number is None:
            return False
        if self.rng.random() < 0.5:
            return self.add(
                "clone.add_(1)", lambda x: x.clone().add_(1), (number,), self.dtype(number) == torch.float32
            )

        def through_view(x):
            copy = x.clone()
            copy[: (x.shape[0] + 1) // 2].mul_(2)
            return copy

        return self.add("clone[:half].mul_(2)", through_view, (number,), True)

    def build(self) -> Program:
        rng = self.rng
        inputs = []
        large = rng.random() < 0.07
        if large:
            self.largest, self.num_steps = 16_000_000, min(self.num_steps, 6)
        base = large_shape(rng) if large else random_shape(rng)
        for _ in range(rng.randint(1, 4)):
            shape = list(base)
            if rng.random() < 0.4:
                shape = [size if rng.random() < 0.6 else 1 for size in shape][rng.randint(0, len(shape) // 2) :]
            elif rng.random() < 0.2 and not large:
                shape = random_shape(rng)
            dtype = rng.choice(FLOATS) if rng.random() < 0.7 else rng.choice(INTEGERS + (torch.bool,))
            tensor = random_tensor(rng, shape, dtype)
            inputs.append(tensor)
            self.values.append(Value(tensor, True, is_input=True))
        attempts = 0
        while len(self.program_steps) < self.num_steps and attempts < self.num_steps * 20:
            attempts += 1
            self.step()
        used = {number for step in self.program_steps for number in step.operands}
        first_step = len(inputs)
        outputs = [number for number in range(first_step, len(self.values)) if number not in used]
        extra = [number for number in range(first_step, len(self.values)) if number in used]
        outputs += rng.sample(extra, min(len(extra), rng.randint(0, 2)))
        if not outputs:
            outputs = [len(self.values) - 1]
        return Program(inputs, self.program_steps, outputs, self.values)


def random_program(seed: int, steps: int | None = None) -> Program:
    rng = random.Random(seed * 7919 + 13)
    return Builder(seed, steps or rng.choice((2, 4, 6, 10, 16))).build()

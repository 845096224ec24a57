# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Random programs, compiled and eager on the device, against CPU PyTorch: values, dtypes, shapes, strides.

A long run: NEURON_RANDOM_GRAPHS=5000 (and NEURON_RANDOM_GRAPHS_START=N to begin elsewhere). A failure prints the seed and
the program; `pytest test_random_graphs.py -k "compiled and 1234"` repeats one. Programs of test_products hold products,
attention, convolutions and indexing as well.
"""

from __future__ import annotations

import os

import pytest
import torch
from random_graphs import Program, random_program
from random_products import random_product_program

COUNT = int(os.environ.get("NEURON_RANDOM_GRAPHS", "150"))
START = int(os.environ.get("NEURON_RANDOM_GRAPHS_START", "0"))


def compare(seed: int, program: Program, got: tuple[torch.Tensor, ...], expected: tuple[torch.Tensor, ...]) -> None:
    outputs = zip(program.outputs, program.exact, program.tolerances, got, expected, strict=True)
    for number, exact, tolerance, actual, reference in outputs:
        where = f"seed {seed}, value v{number} of\n{program}\n"
        assert actual.device.type == "neuron", where
        assert actual.dtype == reference.dtype, f"{where}expected {reference.dtype} but got {actual.dtype}"
        assert actual.shape == reference.shape, f"{where}expected {reference.shape} but got {actual.shape}"
        # The stride of a dimension of one element has no meaning.
        triples = zip(reference.shape, actual.stride(), reference.stride(), strict=True)
        strides = [(got, want) for size, got, want in triples if size > 1]
        if reference.numel() > 0 and any(got != want for got, want in strides):
            pytest.fail(f"{where}expected strides {reference.stride()} but got {actual.stride()}")
        actual = actual.cpu()
        if exact and not (reference.is_floating_point() and reference.dtype != torch.float32):
            equal = (
                torch.equal(torch.nan_to_num(actual), torch.nan_to_num(reference))
                if reference.is_floating_point()
                else torch.equal(actual, reference)
            )
            assert equal, f"{where}expected {reference} but got {actual}"
            continue
        if not reference.is_floating_point():
            assert torch.equal(actual, reference), f"{where}expected {reference} but got {actual}"
            continue
        wanted = reference.float()
        finite = wanted[torch.isfinite(wanted)]
        scale = finite.abs().max().item() if finite.numel() else 0.0
        torch.testing.assert_close(
            actual.float(),
            wanted,
            rtol=tolerance,
            atol=tolerance * max(scale, 1e-2),
            equal_nan=True,
            msg=lambda text, where=where: f"{where}{text}",
        )


def run_compiled(seed: int, program: Program) -> None:
    expected = program.run(*[tensor.clone() for tensor in program.inputs])
    inputs = [tensor.to("neuron") for tensor in program.inputs]
    torch._dynamo.reset()
    with torch.no_grad():
        got = torch.compile(program.run, backend="neuron", fullgraph=True, dynamic=False)(*inputs)
    compare(seed, program, got, expected)


def run_eagerly(seed: int, program: Program) -> None:
    expected = program.run(*[tensor.clone() for tensor in program.inputs])
    with torch.no_grad():
        got = program.run(*[tensor.to("neuron") for tensor in program.inputs])
    compare(seed, program, got, expected)


@pytest.mark.parametrize("seed", range(START, START + COUNT))
def test_compiled(seed: int) -> None:
    run_compiled(seed, random_program(seed))


@pytest.mark.parametrize("seed", range(START, START + (COUNT + 2) // 3))
def test_eager(seed: int) -> None:
    run_eagerly(seed, random_program(seed))


@pytest.mark.parametrize("seed", range(START, START + (COUNT + 1) // 2))
def test_products(seed: int) -> None:
    run_compiled(seed, random_product_program(seed))


@pytest.mark.parametrize("seed", range(START, START + (COUNT + 5) // 6))
def test_products_eager(seed: int) -> None:
    run_eagerly(seed, random_product_program(seed))

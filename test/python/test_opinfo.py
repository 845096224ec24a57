# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""PyTorch's own operator database: every operator on samples of its own, forward and backward, against the CPU.

What the compiler does not know falls back, so that everything must be right; how much ran on the device is another
question, which the coverage report answers.
"""

from __future__ import annotations

import os
import warnings

import pytest
import torch

expecttest = pytest.importorskip("expecttest")

from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

# Samples per operator; 0 = all.
SAMPLES = int(os.environ.get("NEURON_TEST_OPINFO_SAMPLES", "3"))

# Which of several equal elements an index names is undefined.
UNDEFINED_INDICES = {"kthvalue", "topk"}

# Results are random or undefined.
UNDEFINED = {
    "bernoulli",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "multinomial",
    "new_empty",
    "new_empty_strided",
    "normal",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "torch.ops.aten._safe_softmax.default",
    "uniform",
    "cauchy",
    "exponential",
    "geometric",
    "log_normal",
    "nn.functional.alpha_dropout",
    "nn.functional.dropout",
    "nn.functional.dropout2d",
    "nn.functional.dropout3d",
    "nn.functional.feature_alpha_dropout",
    "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d",
    "nn.functional.multi_head_attention_forward",
    "nn.functional.rrelu",
    "nn.functional.scaled_dot_product_attention",
    "pca_lowrank",
    "svd_lowrank",
    "bfloat16_random",
}
# Need something the device does not have: sparse or quantized tensors, CPU tensors as arguments.
# Samples that PyTorch itself only defines on the CPU: indices that have to be there, memory outside of the tensor.
CPU_ONLY = {"tensor_split", "as_strided_partial_views"}
# Derivatives that are defined up to a phase.
UNDEFINED_BACKWARD = {"linalg.eig"}
OUT_OF_SCOPE = {"sparse.mm", "sparse.sampled_addmm", "to_sparse", "torch.ops.aten._flash_attention_forward"}


def to_device(value, device):
    if isinstance(value, torch.Tensor):
        moved = value.detach().to(device)
        return moved.requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(to_device(item, device) for item in value)
    if isinstance(value, dict):
        return {key: to_device(item, device) for key, item in value.items()}
    if isinstance(value, torch.device) or value == "cpu":
        return torch.device(device)
    return value


def tensors_of(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_of(item)]
    return []


def compare(actual, expected, tolerance):
    first, second = tensors_of(actual), tensors_of(expected)
    assert len(first) == len(second)
    for a, b in zip(first, second, strict=False):
        if b.layout != torch.strided or b.is_quantized:
            continue
        # Float results of integer arguments round as float results do.
        own = TOLERANCE[torch.float32] if b.is_floating_point() else tolerance
        torch.testing.assert_close(a.detach().cpu(), b.detach(), equal_nan=True, **own)


def samples(op, dtype, requires_grad=False):
    torch.manual_seed(11)
    for count, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=requires_grad)):
        if SAMPLES and count >= SAMPLES:
            return
        if any(tensor.layout != torch.strided for tensor in tensors_of((sample.input, sample.args, sample.kwargs))):
            continue
        yield sample


def names(condition):
    return [
        pytest.param(op, id=op.formatted_name)
        for op in op_db
        if f"{op.name}{'_' if op.variant_test_name else ''}{op.variant_test_name}" not in CPU_ONLY
        and op.name not in UNDEFINED | OUT_OF_SCOPE | CPU_ONLY
        and condition(op)
    ]


def run(op, sample, place):
    arguments = (
        to_device((sample.input, sample.args, sample.kwargs), place)
        if place != "cpu"
        else (
            sample.input,
            sample.args,
            sample.kwargs,
        )
    )
    torch.manual_seed(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return op(arguments[0], *arguments[1], **arguments[2]), arguments


TOLERANCE = {torch.float32: {"rtol": 1e-4, "atol": 1e-4}, torch.int64: {"rtol": 0, "atol": 0}}


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64], ids=lambda dtype: str(dtype).split(".")[1])
@pytest.mark.parametrize("op", names(lambda op: True))
def test_forward(op, dtype):
    if dtype not in op.supported_dtypes("cpu"):
        pytest.skip("dtype")
    for sample in samples(op, dtype):
        try:
            expected, _ = run(op, sample, "cpu")
        except Exception as error:
            with pytest.raises(type(error)):
                run(op, sample, "neuron")
            continue
        actual, _ = run(op, sample, "neuron")
        if op.name in UNDEFINED_INDICES:
            actual, expected = actual[0], expected[0]
        compare(actual, expected, TOLERANCE[dtype])


@pytest.mark.parametrize("op", names(lambda op: op.supports_autograd and op.name not in UNDEFINED_BACKWARD))
def test_backward(op):
    if torch.float32 not in op.supported_backward_dtypes("cpu"):
        pytest.skip("dtype")
    for sample in samples(op, torch.float32, requires_grad=True):
        sample.input, sample.args, sample.kwargs = to_device((sample.input, sample.args, sample.kwargs), "cpu")
        expected, host = run(op, sample, "cpu")
        actual, device = run(op, sample, "neuron")
        for results in (expected, actual):
            losses = [
                tensor.real.float().square().sum() if tensor.is_complex() else tensor.float().square().sum()
                for tensor in tensors_of(results)
                if tensor.requires_grad and tensor.layout == torch.strided
            ]
            if losses:
                sum(losses).backward()
        for a, b in zip(tensors_of(device), tensors_of(host), strict=False):
            assert (a.grad is None) == (b.grad is None)
            if b.grad is not None and b.grad.layout == torch.strided:
                torch.testing.assert_close(a.grad.cpu(), b.grad, rtol=1e-3, atol=1e-3, equal_nan=True)

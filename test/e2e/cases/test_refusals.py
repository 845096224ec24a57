# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""What is out of scope: a compiled graph refuses it by name, with the line; eager runs it on the CPU and says so once."""

from __future__ import annotations

import re
import warnings

import pytest
import torch
import torch.nn.functional as F
import torch_neuronx
from checking import compile, flat, moved
from torch_neuronx._dynamo.errors import NeuronCompileError, NeuronUnsupportedError

image = torch.randn(1, 3, 8, 6)
rows = torch.tensor([[3.0, 1.0, 3.0, float("nan"), 1.0], [0.0, -0.0, 5.0, 5.0, -2.0]])

# name: function, arguments, the operator a compiled graph names.
OUT_OF_SCOPE = {
    # aws-neuron/aws-neuron-sdk#868
    # aws-neuron/aws-neuron-sdk#130
    "adaptive_max_pool2d": (
        lambda t: F.adaptive_max_pool2d(t, (3, 2), return_indices=True),
        (image,),
        "adaptive_max_pool2d",
    ),
    "adaptive_avg_pool2d": (lambda t: F.adaptive_avg_pool2d(t, (3, 2)), (image,), "adaptive_avg_pool2d"),
    "median": (lambda t: t.median(), (rows[1],), "median"),
    "cummax": (lambda t: t.cummax(1), (rows,), "cummax"),
    "bucketize": (lambda t: torch.bucketize(t, torch.linspace(0, 5, 6, device=t.device)), (rows[1],), "bucketize"),
    "grid_sample": (
        lambda t, g: F.grid_sample(t, g, align_corners=False),
        (image, torch.rand(1, 4, 4, 2)),
        "grid_sampler_2d",
    ),
    "fft": (lambda t: torch.fft.rfft(t).abs(), (rows[1],), "fft"),
}


@pytest.mark.parametrize("name", OUT_OF_SCOPE)
def test_compiled_graph_refuses_by_name(name):
    """NeuronUnsupportedError with a code of the catalogue, the operator, and the file and line of the user's function."""
    function, arguments, operator = OUT_OF_SCOPE[name]
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as failure:
        compile(function)(*moved(arguments, "neuron"))
    error = failure.value.inner_exception
    assert isinstance(error, NeuronUnsupportedError) and isinstance(error, NeuronCompileError)
    assert error.code.startswith("NCC_EUOC"), error.code
    assert operator in str(error), str(error)
    assert operator in error.op and error.op.startswith("aten."), error.op
    assert f'File "{__file__}", line {function.__code__.co_firstlineno}, in' in str(error), str(error)
    # The innermost frame may be PyTorch's own Python code.
    assert any(frame[0] == __file__ and frame[1] == function.__code__.co_firstlineno for frame in error.frames), (
        error.frames
    )


@pytest.mark.parametrize("module", (torch.nn.AdaptiveAvgPool2d(3), torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(3))))
def test_compiled_module_of_pytorch_is_named(module):
    """All lines are PyTorch's own then, which Dynamo leaves out: the error names the module."""
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as failure:
        compile(module)(torch.randn(1, 2, 7, 7, device="neuron"))
    assert "aten._adaptive_avg_pool2d.default" in str(failure.value)
    assert re.search(r'File ".*pooling.py", line \d+, in AdaptiveAvgPool2d.forward', str(failure.value)), failure.value


@pytest.mark.parametrize("name", OUT_OF_SCOPE)
def test_eager_runs_on_the_cpu(name):
    """The right values on the device, the operator counted, and one warning for it at most."""
    function, arguments, _ = OUT_OF_SCOPE[name]
    want = flat(function(*moved(arguments, "cpu")))
    torch_neuronx.clear_op_tracking()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*moved(arguments, "neuron"))
        got = flat(function(*moved(arguments, "neuron")))
    for actual, expected in zip(got, want, strict=True):
        assert actual.device.type == "neuron"
        torch.testing.assert_close(actual.cpu(), expected, equal_nan=True, rtol=1e-5, atol=1e-5)
    assert torch_neuronx.get_fallback_ops()
    messages = [
        str(item.message).split(" runs on the CPU")[0] for item in caught if "runs on the CPU" in str(item.message)
    ]
    assert len(messages) == len(set(messages))


def test_fallback_execution_runs_the_graph_eagerly():
    """options={"fallback_execution": True} turns a refusal into eager execution, with a warning that names the cause."""
    x = rows[1]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = compile(lambda t: torch.cummax(t * 2, 0).values, options={"fallback_execution": True})(x.to("neuron"))
    torch.testing.assert_close(got.cpu(), torch.cummax(x * 2, 0).values)
    assert any("aten.cummax" in str(item.message) for item in caught)


def test_every_unsupported_operator_is_named():
    """One attempt reports all that stands in the way, not only the first (aws-neuron/aws-neuron-sdk#766)."""
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as failure:
        compile(lambda t: (t.cummin(0).values.cummax(0).values + 1, t.median()))(torch.randn(5).to("neuron"))
    for operator in ("aten.cummin", "aten.cummax", "aten.median"):
        assert operator in str(failure.value)


UNSUPPORTED_DTYPES = (
    torch.float64,
    torch.complex64,
    torch.complex128,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.complex32,
)


@pytest.mark.parametrize("dtype", UNSUPPORTED_DTYPES, ids=str)
def test_dtypes_are_refused_by_name(dtype):
    """A compiled graph says which dtype it does not know; never reinterpreted bits (iree-org/iree#11924)."""
    x = torch.ones(4).to(dtype)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as failure:
        compile(lambda t: t.clone().reshape(2, 2))(x.to("neuron"))
    assert isinstance(failure.value.inner_exception, NeuronUnsupportedError)
    assert re.search(rf"dtype (torch\.)?{str(dtype).removeprefix('torch.')}\b", str(failure.value))


@pytest.mark.parametrize("dtype", (torch.float64, torch.complex64), ids=str)
def test_dtypes_run_on_the_cpu_in_eager(dtype):
    """Doubles and complex numbers fall back, at full precision (iree-org/iree#11924)."""
    x = torch.randn(5, dtype=dtype)

    def function(t):
        return t * 0.1 + torch.tensor(2.0, dtype=dtype, device=t.device), (t * t).sum(), t.exp()

    torch_neuronx.clear_op_tracking()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = function(x.to("neuron"))
    for actual, expected in zip(got, function(x), strict=True):
        assert actual.dtype == dtype
        torch.testing.assert_close(actual.cpu(), expected, rtol=1e-12 if dtype == torch.float64 else 1e-5, atol=0)
    assert torch_neuronx.get_fallback_ops()


FLOATS_ONLY = {
    "hypot": lambda t: torch.hypot(t, t),
    "logaddexp": lambda t: torch.logaddexp(t, t),
    "logaddexp2": lambda t: torch.logaddexp2(t, t),
    "nextafter": lambda t: torch.nextafter(t, t),
    "var": lambda t: t.var(0),
    "std_mean": lambda t: torch.std_mean(t),
    "softmax": lambda t: t.softmax(0),
    "log_softmax": lambda t: t.log_softmax(0),
    "frac": torch.frac,
    "gelu": F.gelu,
    "silu": F.silu,
    "mish": F.mish,
    "softplus": F.softplus,
    "softplus with another beta": lambda t: F.softplus(t, beta=2),
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "softshrink": F.softshrink,
    "logsigmoid": F.logsigmoid,
    "elu": F.elu,
    "leaky_relu": F.leaky_relu,
    "lerp": lambda t: torch.lerp(t, t + 1, 0.5),
    "smooth_l1_loss": lambda t: F.smooth_l1_loss(t, t + 1),
    "huber_loss": lambda t: F.huber_loss(t, t + 1),
}


@pytest.mark.parametrize("name", FLOATS_ONLY)
def test_integers_are_refused_where_the_cpu_refuses_them(name):
    """Eager raises what the CPU raises; a compiled graph refuses by name."""
    function, x = FLOATS_ONLY[name], torch.arange(6).reshape(2, 3)
    with pytest.raises(RuntimeError) as expected:
        function(x)
    with pytest.raises(type(expected.value), match=re.escape(str(expected.value))):
        function(x.to("neuron"))
    with pytest.raises(torch._dynamo.exc.TorchDynamoException) as refused:
        compile(function)(x.to("neuron"))
    # Our words stand once, and an unsupported dtype is no bug to report.
    lines = [line for line in str(refused.value).splitlines() if "aten." in line and "unsupported dtype" in line]
    assert len(lines) <= 1 and "as a bug" not in str(refused.value).split("Set TORCHDYNAMO_VERBOSE")[0]


def test_complex_rotary_embedding_is_refused():
    """view_as_complex and polar: refused with the line, right in eager (tenstorrent/tt-xla#3060)."""

    def rotate(x, angles):
        z = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(z * torch.polar(torch.ones_like(angles), angles)).flatten(-2)

    x, angles = torch.randn(2, 5, 8), torch.randn(5, 4)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as failure:
        compile(rotate)(x.to("neuron"), angles.to("neuron"))
    error = failure.value.inner_exception
    assert isinstance(error, NeuronUnsupportedError) and "complex" in str(error)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.testing.assert_close(rotate(x.to("neuron"), angles.to("neuron")).cpu(), rotate(x, angles))


def test_control_flow_is_refused_at_capture():
    """cond, while_loop and scan are named (pytorch/executorch#8769)."""
    from torch._higher_order_ops.while_loop import while_loop

    def loop(i, x):
        return while_loop(lambda i, x: i < 4, lambda i, x: (i + 1, x * 1.5), (i, x))

    with pytest.raises(Exception, match="while_loop"):
        compile(loop)(torch.tensor(0, device="neuron"), torch.ones(3, device="neuron"))
    with pytest.raises(Exception, match="cond"):
        compile(lambda t: torch.cond(t.sum() > 0, lambda x: x + 1, lambda x: x - 1, (t,)))(
            torch.ones(3, device="neuron")
        )


def test_data_dependent_code():
    """A Python `if` on data breaks the graph, correctly, and is an error for the whole graph (pytorch/pytorch#114220)."""

    def function(x):
        y = x * 2
        if y.sum().item() > 0:
            y = y + 1
        return y.relu()

    for sign in (1.0, -1.0):
        x = torch.full((3,), sign)
        torch.testing.assert_close(compile(function, fullgraph=False)(x.to("neuron")).cpu(), function(x))
    with pytest.raises(torch._dynamo.exc.TorchDynamoException):
        compile(function)(torch.ones(3, device="neuron"))


def test_error_shows_the_source_line():
    """The text of the line and the name of the function follow the file and the number (aws-neuron/aws-neuron-sdk#766)."""

    def user_function(t):
        return torch.cummax(t * 2, 0).values  # the line to blame

    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as failure:
        compile(user_function)(torch.randn(4).to("neuron"))
    assert "in user_function" in str(failure.value) and "# the line to blame" in str(failure.value)


def test_index_out_of_range_is_an_error():
    """An index tensor beyond the end raises; nothing is read (aws-neuron/aws-neuron-sdk#1306)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((IndexError, RuntimeError)):
            torch.arange(4.0).to("neuron")[torch.tensor([0, 9], device="neuron")].cpu()


def test_errors_of_eager_pass_through():
    """Mistakes of the user give PyTorch's own messages."""
    for function in (
        lambda t: t + torch.ones(5, device=t.device),
        lambda t: t.reshape(7),
        lambda t: t.sum(3),
        lambda t: torch.cat([t, t[:, :1]]),
        lambda t: t.softmax(5),
        lambda t: t.transpose(0, 4),
        lambda t: t.expand(2, 4),
        lambda t: torch.stack([t, t[:1]]),
        lambda t: t.to(torch.int32).float().view(4, 4),
        lambda t: torch.where(t, t, t),
        lambda t: t.to(torch.bool).cumsum(4),
    ):
        with pytest.raises((RuntimeError, IndexError)) as expected:
            function(torch.ones(2, 3))
        with pytest.raises((RuntimeError, IndexError)) as actual:
            function(torch.ones(2, 3, device="neuron"))
        assert str(actual.value).split("\n")[0].replace("neuron:0", "cpu") == str(expected.value).split("\n")[0]

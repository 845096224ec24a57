# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""torch.compile(backend="neuron"): the edge between PyTorch and the compiler."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
import torch_neuronx
from conftest import same
from torch_neuronx import _C


@pytest.fixture(autouse=True)
def _reset_dynamo():
    torch._dynamo.reset()
    torch.neuron.reset_dynamo_metrics()
    yield


def compiled(function, **options):
    options.setdefault("fullgraph", True)
    return torch.compile(function, backend="neuron", **options)


def launches_of(call) -> int:
    before = sum(_C.queue_position(0)[:1])
    call()
    return sum(_C.queue_position(0)[:1]) - before


def rms_norm(x, w, eps=1e-6):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * w


def test_one_graph_is_one_dispatch():
    x, w = torch.randn(4, 64).bfloat16(), torch.ones(64).bfloat16()
    moved = x.to("neuron"), w.to("neuron")
    function = compiled(rms_norm)
    function(*moved)
    torch.neuron.synchronize()
    torch_neuronx.clear_op_tracking()
    assert launches_of(lambda: function(*moved)) == 1
    assert torch_neuronx.get_executed_ops() == [] and torch_neuronx.get_fallback_ops() == []
    same(function(*moved), rms_norm(x, w), rtol=2e-2, atol=2e-2)


def test_backend_is_listed():
    assert "neuron" in torch._dynamo.list_backends(exclude_tags=())


def test_default_backend_is_ours_for_neuron_tensors():
    function = torch.compile(lambda t: t.sin() + 1, fullgraph=True)
    same(function(torch.ones(3, device="neuron")), torch.ones(3).sin() + 1)
    assert len(torch.neuron.get_dynamo_metrics()) == 1


def test_metrics_and_counters():
    from torch._dynamo.utils import counters

    before = counters["neuron"]["compiled_graphs"]
    compiled(lambda t: t + 1, options={"model_name": "small"})(torch.ones(2, device="neuron"))
    (record,) = torch.neuron.get_dynamo_metrics()
    assert record["graph_id"] == 0 and record["has_collectives"] is False
    assert record["name"].startswith("small_") and record["kind"] == "inference"
    assert len(record["neff_hash"]) == 64
    assert counters["neuron"]["compiled_graphs"] == before + 1
    torch.neuron.reset_dynamo_metrics()
    assert torch_neuronx.get_dynamo_metrics() == []


def test_training_matches_eager():
    torch.manual_seed(0)
    host = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2))
    device = copy.deepcopy(host).to("neuron")
    function = compiled(device)
    data = torch.randn(5, 6)
    host(data).square().sum().backward()
    function(data.to("neuron")).square().sum().backward()
    for a, b in zip(device.parameters(), host.parameters(), strict=False):
        torch.testing.assert_close(a.grad.cpu(), b.grad, rtol=1e-4, atol=1e-5)
    assert sorted(record["kind"] for record in torch.neuron.get_dynamo_metrics()) == ["backward", "forward"]


def test_module_compile_method():
    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 3)

        def forward(self, data):
            return self.layer(data).relu()

    module = Module().to("neuron")
    expected = module(torch.ones(2, 3, device="neuron")).detach().cpu()
    module.compile(backend="neuron", fullgraph=True)
    with torch.no_grad():
        torch.testing.assert_close(module(torch.ones(2, 3, device="neuron")).cpu(), expected)


def test_outputs_keep_identity_and_aliasing():
    def function(a, b):
        c = a * 2
        return a, c, c, None, b.t(), a.shape[0], c[0]

    a, b = torch.randn(3, 3, device="neuron"), torch.randn(3, 2, device="neuron")
    out = compiled(function)(a, b)
    assert out[0] is a
    assert out[3] is None and out[5] == 3
    assert out[1].data_ptr() == out[2].data_ptr()
    assert out[4].data_ptr() == b.data_ptr() and out[4].shape == (2, 3)
    assert out[6].untyped_storage().data_ptr() == out[1].untyped_storage().data_ptr()
    same(out[1], a.cpu() * 2)


@pytest.mark.parametrize("dynamic", [True, False])
@pytest.mark.parametrize("gradients", [True, False])
def test_results_that_are_views_of_arguments(dynamic, gradients):
    """Where sizes vary, AOTAutograd takes the offset of such a result from what the program returns."""

    def function(t, index):
        parts = t.unbind(1) + t.split(2, 1) + t.chunk(2)
        strided = t[1:, ::2], t.narrow(0, index, 2), t.diagonal(), t.unsqueeze(1).expand(-1, 3, -1)
        return t[index], t[-1], t.t(), t.view(-1)[2:] if t.is_contiguous() else t[:0], *parts, *strided, t[index] * 2

    def arguments(rows):
        base = torch.arange(20.0 * rows + 7).to("neuron")
        views = (
            base[: 5 * rows].view(rows, 5),
            base[7 : 5 * rows + 7].view(rows, 5),
            base[3:].as_strided((rows, 5), (20, 2), 4),
        )
        return [view.requires_grad_() if gradients else view for view in (part.detach() for part in views)]

    run = compiled(function, dynamic=dynamic)
    for rows, index in ((4, 1), (7, 2), (4, 0)):
        for argument in arguments(rows):
            for number, (got, want) in enumerate(zip(run(argument, index), function(argument, index), strict=True)):
                assert torch.equal(got.cpu(), want.cpu()), (
                    f"result {number}, {rows} rows, offset {argument.storage_offset()}"
                )
                assert got.shape == want.shape and got.stride() == want.stride(), number
                if want._is_view():
                    assert got.data_ptr() == want.data_ptr(), number


@pytest.mark.parametrize("dynamic", [True, False])
def test_results_that_are_views_of_written_arguments(dynamic):
    def function(t, index):
        t[index].add_(1)
        t[:, index : index + 2].mul_(2)
        return t[index], t.narrow(0, index, 2), t.t(), t[1:, 1:]

    run = compiled(function, dynamic=dynamic)
    for rows, index in ((4, 1), (7, 2)):
        data = torch.randn(rows, 5)
        device = data.to("neuron")
        for got, want in zip(run(device, index), function(data, index), strict=True):
            assert got.stride() == want.stride() and got._base is not None
            same(got, want)
        same(device, data)


def test_as_strided_counts_from_the_storage():
    def function(t):
        return (
            t.as_strided((3, 2), (2, 1), 9) * 2,
            t[2:].as_strided((2, 2), (3, 1), 10) + 1,
            t.as_strided((2, 3), (4, 1)) - 1,
        )

    base = torch.arange(60.0)
    for offset in (0, 3, 8):
        torch._dynamo.reset()
        run = compiled(function)
        results = run(base.to("neuron")[offset : offset + 30])
        for got, want in zip(results, function(base[offset : offset + 30]), strict=True):
            assert torch.equal(got.cpu(), want), offset
        # Dynamo has no guard for the offset.
        with pytest.raises(RuntimeError, match=f"expected argument 0 to begin at element {offset} .* but got 5"):
            run(base.to("neuron")[5:35])
    torch._dynamo.reset()
    with pytest.raises(Exception, match="expected as_strided to stay inside the argument.*storage_offset 9"):
        compiled(function)(base.to("neuron")[10:40])


def test_parts_of_a_result_share_its_memory():
    def function(t):
        u = t * 2
        return u, *u.unbind(), *u.split(2, 1)

    for dynamic in (True, False):
        run = compiled(function, dynamic=dynamic)
        for rows in (3, 4):
            data = torch.randn(rows, 5)
            whole, *parts = run(data.to("neuron"))
            whole.zero_()
            for part, want in zip(parts, function(data)[1:], strict=True):
                assert part.shape == want.shape and part.stride() == want.stride()
                assert not part.any()


def test_output_strides_follow_eager():
    def function(a):
        return (
            a.permute(2, 0, 1) + 1,
            (a * 2).t_() if a.dim() == 2 else a.contiguous() * 3,
            a.sum(0, keepdim=True).expand(4, -1, -1),
        )

    a = torch.randn(2, 3, 4)
    for actual, expected in zip(compiled(function)(a.to("neuron")), function(a), strict=False):
        assert actual.shape == expected.shape
        torch.testing.assert_close(actual.cpu(), expected)
    first = compiled(lambda t: t.permute(2, 0, 1) + 1)(a.to("neuron"))
    assert first.stride() == (a.permute(2, 0, 1) + 1).stride()


def test_input_mutation():
    def function(buffer, value):
        buffer.mul_(2)
        buffer.add_(value)
        return buffer.sum()

    buffer, value = torch.randn(4), torch.randn(4)
    device = buffer.to("neuron")
    moved = value.to("neuron")
    run = compiled(function)
    with torch.no_grad():
        total = run(device, moved)
        expected = function(buffer, value)
    same(device, buffer)
    torch.testing.assert_close(total.cpu(), expected)
    torch.neuron.synchronize()
    with torch.no_grad():
        assert launches_of(lambda: run(device, moved)) == 1


def test_mutation_through_views_and_strides():
    def function(t):
        t[1:].mul_(3)
        t[:, 0].fill_(7)
        return t + 1

    host = torch.randn(4, 6)
    device = host.to("neuron")
    strided_host, strided = host.clone().t(), host.to("neuron").t()
    with torch.no_grad():
        same(compiled(function)(device), function(host))
        same(device, host)
        result = compiled(function)(strided)
        torch.testing.assert_close(result.cpu(), function(strided_host))
        torch.testing.assert_close(strided.cpu(), strided_host)


def test_batch_norm_updates_its_statistics():
    host = torch.nn.BatchNorm1d(4)
    device = copy.deepcopy(host).to("neuron")
    data = torch.randn(6, 4)
    with torch.no_grad():
        torch.testing.assert_close(compiled(device)(data.to("neuron")).cpu(), host(data), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(device.running_mean.cpu(), host.running_mean)
    assert device.num_batches_tracked.item() == 1


def test_non_contiguous_inputs():
    function = compiled(lambda t, u: t @ u + u.sum())
    a, b = torch.randn(5, 3), torch.randn(8, 10)[::2, ::2]
    torch.testing.assert_close(
        function(a.to("neuron").t(), b.contiguous().to("neuron")[:, :].narrow(0, 0, 4).repeat(2, 1)[:5]).cpu(),
        (lambda t, u: t @ u + u.sum())(a.t(), b.repeat(2, 1)[:5]),
        rtol=1e-4,
        atol=1e-4,
    )


def test_tangents_of_any_layout():
    weight = torch.randn(3, 4).to("neuron").requires_grad_()
    compiled(lambda w: w.sin().t())(weight).sum().backward()
    torch.testing.assert_close(weight.grad.cpu(), weight.detach().cpu().cos())


def test_cpu_inputs_are_copied_with_one_warning(run_python):
    def function(a, b):
        return a + b.sum(), b * 2

    a, b = torch.randn(3), torch.randn(4)
    first, second = compiled(function)(a.to("neuron"), b.to("neuron"))
    assert first.device.type == second.device.type == "neuron"
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        onlyhost = compiled(lambda t: t * 2 + 1)(a)
    assert onlyhost.device.type == "cpu"
    torch.testing.assert_close(onlyhost, a * 2 + 1)
    mixed = compiled(lambda t, s: t * s)(a.to("neuron"), torch.tensor(2.0))
    same(mixed, a * 2)
    process = run_python(
        """
        import torch, warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function = torch.compile(lambda t: t + 1, backend="neuron")
            function(torch.ones(2)); function(torch.ones(3)); function(torch.ones(4, 4))
        print(sum("on the CPU and are copied" in str(item.message) for item in caught))
        """
    )
    assert process.stdout.strip() == "1"
    process = run_python(
        """
        import torch
        try:
            torch.compile(lambda t: t + 1, backend="neuron")(torch.ones(2))
        except Exception as error:
            assert "TORCH_NEURONX_DYNAMO_DISABLE_CPU_AUTOCOPY" in str(error)
            print("refused")
        """,
        TORCH_NEURONX_DYNAMO_DISABLE_CPU_AUTOCOPY="1",
    )
    assert process.stdout.strip() == "refused"


def test_mutated_cpu_input_is_written_back():
    def function(t):
        t.add_(1)
        return t * 2

    host = torch.zeros(3)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        result = compiled(function)(host)
    assert host.tolist() == [1.0] * 3 and result.tolist() == [2.0] * 3


@pytest.mark.parametrize("dynamic", [None, True])
def test_cpu_inputs_whose_elements_share_memory(dynamic):
    base = torch.arange(12.0)
    views = {
        "expanded": base[:3, None].expand(3, 4),
        "expanded part": base.view(3, 4)[:, 1:2].expand(3, 5),
        "windows": base.unfold(0, 4, 2),
        "windows of one column": base.view(6, 2)[:, :1].unfold(0, 3, 1),
        "no elements": base[:0, None].expand(0, 4),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, view in views.items():
            result = compiled(lambda t: t * 2 + t.sum(0), dynamic=dynamic)(view)
            torch.testing.assert_close(result, view * 2 + view.sum(0), msg=lambda text, name=name: f"{name}: {text}")


def test_constants_and_factories_in_the_graph():
    table = torch.tensor([1.0, 2.0, 3.0])

    def function(t):
        return t + table.to(t.device) + torch.arange(3, device=t.device) + torch.full((3,), 0.5, device=t.device)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(compiled(function)(torch.zeros(3, device="neuron")), function(torch.zeros(3)))


def test_graphs_without_work():
    a = torch.ones(2, 3, device="neuron")
    assert compiled(lambda t: t)(a) is a
    assert compiled(lambda t: t.t())(a).shape == (3, 2)
    assert compiled(lambda t: t[:0] + 1)(a).shape == (0, 3)
    out = compiled(lambda t: (t[:0] + 1, t + 1))(a)
    assert out[0].shape == (0, 3)
    same(out[1], torch.full((2, 3), 2.0))


def test_graph_breaks():
    def function(t):
        t = t + 1
        torch._dynamo.graph_break()
        return t * 2

    same(torch.compile(function, backend="neuron")(torch.ones(3, device="neuron")), torch.full((3,), 4.0))
    assert len(torch.neuron.get_dynamo_metrics()) == 2
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported):
        compiled(function)(torch.ones(3, device="neuron"))


def test_unknown_options_are_rejected_by_name():
    with pytest.raises(Exception, match=r"expected options among .*model_name.* but got 'colour'"):
        compiled(lambda t: t + 1, options={"colour": "red"})(torch.ones(2, device="neuron"))


def test_unknown_modes_and_values_of_options_are_errors():
    with pytest.raises(Exception, match=r"expected mode among default, .*max-autotune.* but got 'fastest'"):
        torch.compile(lambda t: t + 1, backend="neuron", mode="fastest")(torch.ones(2, device="neuron"))
    with pytest.raises(Exception, match=r"expected a path in option 'compiler_workdir' but got 3"):
        torch.compile(lambda t: t + 1, backend="neuron", options={"compiler_workdir": 3})(
            torch.ones(2, device="neuron")
        )
    assert torch.compile(lambda t: t + 1, backend="neuron")(torch.ones(2, device="neuron")).sum().item() == 4.0


def test_mode_has_no_effect_and_says_so():
    with pytest.warns(UserWarning, match="mode='max-autotune' has no effect"):
        function = torch.compile(lambda t: t + 1, backend="neuron", mode="max-autotune")
        same(function(torch.ones(2, device="neuron")), torch.full((2,), 2.0))


@pytest.mark.parametrize("dynamic", [True, None])
def test_dynamic_shapes_are_specialised(dynamic):
    def function(t):
        return (t * t.shape[0]).sum(1) + torch.arange(t.shape[0], device=t.device)

    run = compiled(function, dynamic=dynamic)
    for rows in (3, 5, 9, 3, 5):
        data = torch.randn(rows, 4)
        same(run(data.to("neuron")), function(data), rtol=1e-4, atol=1e-5)
    hashes = [record["neff_hash"] for record in torch.neuron.get_dynamo_metrics()]
    # One program per size, however many graphs Dynamo makes of it.
    assert len(set(hashes)) == 3 and len(hashes) <= 4


def test_dynamic_training():
    weight = torch.randn(4, 2).to("neuron").requires_grad_()
    run = compiled(lambda t, w: (t @ w).relu(), dynamic=True)
    for rows in (3, 6, 3):
        weight.grad = None
        data = torch.randn(rows, 4)
        run(data.to("neuron"), weight).sum().backward()
        host = weight.detach().cpu().requires_grad_()
        (data @ host).relu().sum().backward()
        torch.testing.assert_close(weight.grad.cpu(), host.grad, rtol=1e-4, atol=1e-5)


def test_random_numbers():
    function = compiled(lambda t: torch.nn.functional.dropout(t, 0.5) + torch.rand_like(t))
    data = torch.ones(64, device="neuron")
    torch.manual_seed(1)
    first, second = function(data).cpu(), function(data).cpu()
    assert not torch.equal(first, second)
    torch.manual_seed(1)
    assert torch.equal(function(data).cpu(), first)
    state = torch.neuron.get_rng_state()
    third = function(data).cpu()
    assert torch.equal(third, second)
    assert not torch.equal(torch.neuron.get_rng_state(), state)


def test_autocast_in_the_graph():
    function = compiled(lambda a, b: (a @ b).softmax(-1))
    a, b = torch.randn(3, 4).to("neuron"), torch.randn(4, 5).to("neuron")
    with torch.autocast("neuron", dtype=torch.bfloat16):
        actual, expected = function(a, b), (a @ b).softmax(-1)
    assert actual.dtype == expected.dtype == torch.float32
    torch.testing.assert_close(actual.cpu(), expected.cpu(), rtol=2e-2, atol=2e-2)


def test_in_graph_queries_of_the_device():
    def function(t):
        assert torch.neuron.is_available()
        return t + torch.neuron.current_device() + torch.neuron.device_count()

    same(compiled(function)(torch.zeros(2, device="neuron")), torch.full((2,), 2.0))


def test_two_devices_in_one_graph_are_refused():
    a, b = torch.ones(2, device="neuron:0"), torch.ones(2, device="neuron:1")
    with pytest.raises(Exception, match=r"neuron:0 and neuron:1"):
        compiled(lambda x, y: (x + 1, y + 1))(a, b)


def test_second_device():
    with torch.neuron.device(1):
        result = compiled(lambda t: t * 2)(torch.ones(3, device="neuron:1"))
    assert result.device == torch.device("neuron", 1)
    same(result, torch.full((3,), 2.0))


def test_compiled_optimizer_step():
    weight = torch.ones(3, device="neuron", requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.5)
    weight.grad = torch.ones(3, device="neuron")

    @torch.compile(backend="neuron")
    def step():
        optimizer.step()

    step()
    same(weight.detach(), torch.full((3,), 0.5))


def test_wrong_number_of_elements_never_launches():
    graph = _C.CompiledGraph(
        program=None,
        device=0,
        arguments=1,
        inputs=[],
        outputs=[],
        results=[{"kind": "argument", "index": 0}],
        correlation_depth=0,
    )
    with pytest.raises(RuntimeError, match="expected 1 arguments but got 2"):
        graph([1, 2])


def test_register_decomposition():
    from torch_neuronx.neuron_dynamo_backend import register_decomposition

    op = torch.ops.aten.frexp.Tensor

    @register_decomposition(op)
    def frexp(t):
        exponent = t.abs().log2().floor() + 1
        return t * (-exponent).exp2(), exponent.to(torch.int32)

    with pytest.raises(ValueError, match="without a registered decomposition"):
        register_decomposition(op)(frexp)
    mantissa, exponent = compiled(lambda t: torch.frexp(t))(torch.tensor([6.0], device="neuron"))
    assert mantissa.item() == 0.75 and exponent.item() == 3


@pytest.mark.double
def test_errors_name_the_operator_and_the_line(run_python):
    source = """
        import torch, torch_neuronx, warnings

        def function(t):
            u = t * 2
            return u.tanh() + 1  # the user's line

        try:
            result = torch.compile(function, backend="neuron", fullgraph=True{options})(torch.ones(2, device="neuron"))
        except torch._dynamo.exc.BackendCompilerFailed as error:
            inner = error.inner_exception
            print(type(inner).__name__, inner.op, inner.code)
            print(error)
        else:
            print("ran", result.cpu().tolist())
    """
    process = run_python(source.replace("{options}", ""), NEURON_DOUBLE_UNSUPPORTED="aten.tanh.default")
    assert process.stdout.startswith("NeuronUnsupportedError aten.tanh.default NCC_EDBL001")
    assert "return u.tanh() + 1  # the user's line" in process.stdout
    assert "script.py" in process.stdout and "fallback_execution" in process.stdout
    fallback = source.replace("{options}", ", options={'fallback_execution': True}")
    process = run_python(fallback, NEURON_DOUBLE_UNSUPPORTED="aten.tanh.default")
    assert process.stdout.startswith("ran") and "runs eagerly" in process.stderr
    process = run_python(
        source.replace("{options}", ""),
        NEURON_DOUBLE_UNSUPPORTED="aten.tanh.default",
        TORCH_NEURONX_DISABLE_FALLBACK_EXECUTION="0",
    )
    assert process.stdout.startswith("ran")
    process = run_python(source.replace("{options}", ""), NEURON_DOUBLE_BROKEN="aten.tanh.default")
    assert process.stdout.startswith("NeuronCompileError") and "report this graph" in process.stdout


def test_data_dependent_shapes_are_refused_by_name():
    torch._dynamo.config.capture_dynamic_output_shape_ops = True
    try:
        with pytest.raises(Exception, match="nonzero|data"):
            compiled(lambda t: torch.nonzero(t) + 1)(torch.ones(3, device="neuron"))
    finally:
        torch._dynamo.config.capture_dynamic_output_shape_ops = False


def test_higher_order_operators_are_refused_by_name():
    def function(t):
        return torch.cond(t.sum() > 0, lambda x: x + 1, lambda x: x - 1, (t,))

    with pytest.raises(Exception, match="cond"):
        compiled(function)(torch.ones(3, device="neuron"))


def test_import_does_not_load_dynamo(run_python):
    process = run_python(
        """
        import sys, torch
        torch.ones(2).to("neuron").cpu()
        print("torch._dynamo" in sys.modules, "torch._inductor" in sys.modules)
        """,
        preamble=False,
    )
    assert process.stdout.strip() == "False False"


def test_first_compilations_of_several_threads(run_python):
    process = run_python(
        """
        import threading
        import torch

        start, results = threading.Barrier(6), {}

        def work(number):
            start.wait()
            function = torch.compile(lambda t: t * number + 1, backend="neuron", fullgraph=True)
            results[number] = function(torch.ones(3, device="neuron")).cpu().tolist()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(results == {number: [number + 1.0] * 3 for number in range(6)}, len(results))
        """
    )
    assert process.stdout.split() == ["True", "6"], process.stderr


def test_inputs_of_too_many_dimensions_name_their_first_use():
    def function(x):
        return torch.relu(x) + 1  # the first use

    with pytest.raises(Exception, match="NCC_EUOC002") as caught:
        torch.compile(function, backend="neuron", fullgraph=True)(torch.ones([1] * 8 + [2], device="neuron"))
    message = str(caught.value)
    assert "(torch.float32 [1, 1, 1, 1, 1, 1, 1, 1, 2]): expected at most 8 dimensions but got 9" in message
    assert "aten.relu.default" in message and "# the first use" in message


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex64])
def test_inputs_of_other_dtypes_name_their_first_use(dtype):
    def function(x):
        return x * 2  # the first use

    with pytest.raises(Exception, match=f"the device has no dtype {str(dtype)[6:]}; pass ") as caught:
        torch.compile(function, backend="neuron", fullgraph=True)(torch.ones(3, dtype=dtype))
    assert "aten.mul.Tensor" in str(caught.value) and "# the first use" in str(caught.value)


def test_folder_for_artefacts_that_cannot_be_made():
    options = {"compiler_workdir": "/proc/nowhere"}
    with pytest.raises(Exception, match="folder that can be written in option 'compiler_workdir'"):
        torch.compile(torch.neg, backend="neuron", options=options)(torch.ones(3, device="neuron"))


def test_nodes_that_differ_in_one_argument_only():
    """Signs of zero, NaN, and numbers that are equal in Python but not of one type, in every order of the nodes."""

    def function(x):
        ones = torch.ones_like(x)
        results = []
        for number in (0.0, -0.0, 1.0, -1.0, float("nan"), float("inf")):
            results += [torch.copysign(ones, torch.full_like(x, number)), x * number, torch.clamp(x, min=number)]
            padded = torch.nn.functional.pad(x, (1, 0), value=number)
            results += [padded, ones * 0 + number, torch.where(x > 1, x, number)]
        for number in (1, True, 1.0, 0, False, 0.0, -0.0):
            results += [torch.full((2,), number, device=x.device), torch.add(x, x, alpha=float(number))]
        return results + results[::-1]

    x = torch.tensor([1.0, -2.0, 0.0, -0.0, 3.0])
    for got, want in zip(compiled(function)(x.to("neuron")), function(x), strict=True):
        assert got.dtype == want.dtype
        got, nan = got.cpu(), want.isnan() if want.is_floating_point() else torch.zeros_like(want, dtype=torch.bool)
        assert torch.equal(got[~nan], want[~nan]) and torch.equal(got.isnan(), nan)
        if want.is_floating_point():
            assert torch.equal(got[~nan].signbit(), want[~nan].signbit())


@pytest.mark.parametrize("number", [0.0, -0.0, 0, False, 1, True, 1.0, float("nan"), -float("nan")])
def test_repeated_nodes_are_encoded_as_single_ones(number):
    """What a graph holds of a node does not depend on which nodes came before."""
    from torch_neuronx._graph.builder import graph_builder, parse

    def nodes(*numbers):
        builder = graph_builder("graph", "inference")
        value = builder.add_tensor_input("x", torch.float32, [3], [1])
        for each in numbers:
            arguments = [value, each, None, None, None, None, None]
            builder.add_node("aten.full_like.default", arguments, [(torch.float32, [3], [1])])
        found = parse(builder.serialise()).nodes
        for node in found:
            node.results[0] = 0
        return [node.SerializeToString(deterministic=True) for node in found]

    others = (-0.0, 0.0, False, 0, True, 1, 1.0, float("nan"))
    assert nodes(*others, number, number)[-2:] == 2 * nodes(number)

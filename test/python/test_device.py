# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The device: names, indices, memory, streams, events, serialisation, process boundaries."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
import torch_neuronx
from conftest import same


def test_device_is_the_accelerator():
    assert torch.accelerator.current_accelerator() == torch.device("neuron")
    assert torch.neuron.is_available()
    assert torch.neuron.device_count() == 2
    assert torch.accelerator.device_count() == 2


@pytest.mark.parametrize("spelling", ["neuron", "neuron:0", torch.device("neuron"), torch.device("neuron", 0)])
def test_device_spellings(spelling):
    tensor = torch.ones(3, device=spelling)
    assert tensor.device == torch.device("neuron", 0)
    assert tensor.is_neuron
    assert not torch.ones(3).is_neuron


def test_generated_methods():
    assert torch.ones(2).neuron().device.type == "neuron"
    module = torch.nn.Linear(2, 2).neuron()
    assert module.weight.is_neuron
    assert torch.ones(2).untyped_storage().neuron().device.type == "neuron"


@pytest.mark.parametrize("name", sorted(torch_neuronx._DEVICE_NAMES))
def test_package_and_device_module_agree(name):
    assert getattr(torch_neuronx, name) is getattr(torch.neuron, name)


def test_set_device_checks_the_index():
    with pytest.raises(ValueError, match=r"in 0\.\.1 but got 2"):
        torch.neuron.set_device(2)
    with pytest.raises(ValueError, match=r"0\.\.1"):
        torch.neuron.set_device(-2)
    with pytest.raises(ValueError, match="neuron device"):
        torch.neuron.set_device("cpu")
    with pytest.raises((ValueError, RuntimeError), match=r"0\.\.1"):
        torch.ones(1, device="neuron:5")


def test_device_context_managers():
    assert torch.neuron.current_device() == 0
    with torch.neuron.device(1):
        assert torch.neuron.current_device() == 1
        assert torch.ones(1, device="neuron").device.index == 1
    assert torch.neuron.current_device() == 0
    torch.neuron.set_device(1)
    try:
        assert torch.accelerator.current_device_index() == 1
    finally:
        torch.neuron.set_device(0)


def test_device_properties():
    properties = torch.neuron.get_device_properties(0)
    assert properties.total_memory > 0
    assert "NeuronCore" in properties.name
    assert torch.neuron.get_device_name() == properties.name
    capability = torch.accelerator.get_device_capability()
    assert torch.bfloat16 in capability["supported_dtypes"]
    assert torch.complex64 not in capability["supported_dtypes"]


def test_memory_statistics_follow_tensors():
    torch.neuron.empty_cache()
    before = torch.neuron.memory_allocated()
    torch.neuron.reset_peak_memory_stats()
    tensor = torch.empty(1000, device="neuron")
    assert torch.neuron.memory_allocated() - before == 4096  # 4000 bytes in blocks of 512
    assert torch.neuron.max_memory_allocated() >= before + 4096
    stats = torch.neuron.memory_stats()
    assert stats["allocated_bytes"]["current"] == stats["allocated_bytes"]["all"]["current"]
    assert stats["requested_bytes"]["current"] <= stats["allocated_bytes"]["current"]
    assert torch.accelerator.memory_allocated() == torch.neuron.memory_allocated()
    del tensor
    assert torch.neuron.memory_allocated() == before
    assert "allocated" in torch.neuron.memory_summary()


def test_allocations_are_aligned_and_reused():
    first = torch.empty(5, device="neuron")
    assert first.data_ptr() % 64 == 0
    address = first.data_ptr()
    del first
    assert torch.empty(5, device="neuron").data_ptr() == address


def test_empty_cache_returns_memory():
    tensor = torch.empty(64 << 20, dtype=torch.uint8, device="neuron")
    del tensor
    assert torch.neuron.memory_reserved() >= 64 << 20
    torch.neuron.empty_cache()
    assert torch.neuron.memory_reserved() < 64 << 20


def test_out_of_memory_has_numbers():
    free, total = torch.neuron.mem_get_info()
    assert 0 < free <= total
    with pytest.raises(torch.OutOfMemoryError, match=r"tried to allocate .* GiB on neuron:0, which has .* of HBM"):
        torch.empty(total + 1, dtype=torch.uint8, device="neuron")
    assert torch.neuron.memory_stats()["num_ooms"] >= 1
    torch.ones(3, device="neuron").cpu()  # still usable


def test_memory_fraction():
    torch.neuron.empty_cache()
    total = torch.neuron.mem_get_info()[1]
    torch.neuron.set_per_process_memory_fraction(0.001)
    try:
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(total // 100, dtype=torch.uint8, device="neuron")
    finally:
        torch.neuron.set_per_process_memory_fraction(1.0)
    with pytest.raises(ValueError, match="fraction"):
        torch.neuron.set_per_process_memory_fraction(0.0)


def test_streams():
    default = torch.neuron.default_stream()
    assert torch.neuron.current_stream() == default
    stream = torch.neuron.Stream()
    assert stream.stream_id != default.stream_id
    assert stream.device == torch.device("neuron", 0)
    with torch.neuron.stream(stream):
        assert torch.neuron.current_stream() == stream
        result = torch.ones(4, device="neuron") * 2
    assert torch.neuron.current_stream() == default
    stream.synchronize()
    assert stream.query()
    default.wait_stream(stream)
    event = stream.record_event()
    default.wait_event(event)
    same(result, torch.full((4,), 2.0))


def test_events_measure_modelled_time():
    start = torch.neuron.Event(enable_timing=True)
    end = torch.neuron.Event(enable_timing=True)
    assert start.query() in (True, False)
    start.synchronize()  # never recorded: returns at once
    tensor = torch.ones(128, device="neuron")
    tensor + tensor
    torch.neuron.synchronize()
    start.record()
    for _ in range(10):
        tensor = tensor + tensor
    end.record()
    end.synchronize()
    assert end.query()
    # Ten executions of at least the fixed cost of 9.4 us each.
    assert start.elapsed_time(end) >= 0.094


def test_event_errors():
    event = torch.neuron.Event(enable_timing=True)
    other = torch.neuron.Event(enable_timing=True)
    event.record()
    with pytest.raises((RuntimeError, ValueError), match="recorded"):
        event.elapsed_time(other)


def test_streams_through_torch_accelerator():
    stream = torch.Stream(device="neuron")
    with stream:
        assert torch.accelerator.current_stream() == stream
    event = torch.Event(device="neuron", enable_timing=True)
    event.record()
    event.synchronize()
    torch.accelerator.synchronize()


def test_record_stream():
    tensor = torch.ones(3, device="neuron")
    tensor.record_stream(torch.neuron.current_stream())


def test_printing_does_not_compute_on_the_device():
    tensor = torch.tensor([1.5, 2.5], device="neuron")
    torch_neuronx.clear_op_tracking()
    assert repr(tensor) == "tensor([1.5000, 2.5000], device='neuron:0')"
    assert torch_neuronx.get_executed_ops() == []
    assert torch_neuronx.get_fallback_ops() == []


def test_item_and_scalar_conversions():
    assert torch.tensor(2.5, device="neuron").item() == 2.5
    assert torch.tensor(2**40 + 1, device="neuron").item() == 2**40 + 1
    assert torch.tensor(True, device="neuron").item() is True
    assert int(torch.tensor([7], device="neuron")) == 7
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        torch.ones(2, device="neuron").item()


def test_deepcopy_pickle_and_save(tmp_path):
    tensor = torch.arange(12, dtype=torch.float32).reshape(3, 4).to("neuron").t()
    for restored in (copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor))):
        same(restored, tensor.cpu())
        assert restored.data_ptr() != tensor.data_ptr()
    buffer = io.BytesIO()
    torch.save({"weight": tensor}, buffer)
    buffer.seek(0)
    same(torch.load(buffer)["weight"], tensor.cpu())
    buffer.seek(0)
    assert torch.load(buffer, map_location="cpu")["weight"].device.type == "cpu"
    torch.save(torch.ones(2), tmp_path / "cpu.pt")
    assert torch.load(tmp_path / "cpu.pt", map_location="neuron:1").device == torch.device("neuron", 1)


def test_module_moves_keep_parameters():
    module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    module[1].weight = module[0].weight
    weight = module[0].weight
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    module.to("neuron")
    assert module[0].weight is weight and module[1].weight is weight
    assert optimizer.param_groups[0]["params"][0] is weight
    module(torch.ones(2, 3, device="neuron")).sum().backward()
    before = weight.detach().cpu().clone()
    optimizer.step()
    torch.testing.assert_close(weight.detach().cpu(), before - 0.5 * weight.grad.cpu())
    weight.data = torch.zeros(3, 3)
    assert weight.device.type == "cpu"


def test_storage_operations():
    tensor = torch.arange(6, dtype=torch.float32, device="cpu").to("neuron")
    other = torch.empty(0, device="neuron")
    other.set_(tensor.untyped_storage(), 2, (2, 2), (2, 1))
    same(other, torch.tensor([[2.0, 3.0], [4.0, 5.0]]))
    tensor.resize_(3, 4)
    assert tensor.shape == (3, 4)
    same(tensor.flatten()[:6].clone(), torch.arange(6, dtype=torch.float32))
    assert tensor.untyped_storage().nbytes() == 48
    with pytest.raises(RuntimeError, match="negative dimension"):
        tensor.resize_(-1, 2)


def test_pinned_memory():
    host = torch.arange(1000, dtype=torch.float32).pin_memory()
    assert host.is_pinned()
    assert not torch.ones(2).is_pinned()
    device = host.to("neuron", non_blocking=True)
    same(device, torch.arange(1000, dtype=torch.float32))
    with pytest.raises(RuntimeError, match="pinned"):
        torch.empty(2, device="neuron", pin_memory=True)


def test_data_loader_with_pinned_memory():
    data = torch.utils.data.TensorDataset(torch.arange(8, dtype=torch.float32))
    loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=1, pin_memory=True)
    batches = [batch[0] for batch in loader]
    assert all(batch.is_pinned() for batch in batches)
    same(batches[1].to("neuron"), torch.arange(4, 8, dtype=torch.float32))


def test_sparse_and_quantized_are_refused():
    with pytest.raises((NotImplementedError, RuntimeError)):
        torch.empty(2, 2, layout=torch.sparse_coo, device="neuron")


def test_use_after_fork(run_python):
    process = run_python(
        """
        import os, torch
        tensor = torch.ones(3, device="neuron")
        torch.neuron.synchronize()
        child = os.fork()
        if child == 0:
            assert not torch.neuron.is_initialized()
            torch.manual_seed(1)  # must not touch the device
            try:
                tensor + 1
            except RuntimeError as error:
                assert "spawn" in str(error), error
                os._exit(0)
            os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert (tensor + 1).cpu().tolist() == [2.0] * 3
        print("fine")
        """
    )
    assert "fine" in process.stdout


def test_fork_before_first_use(run_python):
    run_python(
        """
        import os, torch
        child = os.fork()
        if child == 0:
            os._exit(0 if (torch.ones(3, device="neuron") + 1).cpu().sum() == 6 else 1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        """
    )


def test_exit_with_pending_work(run_python):
    run_python(
        """
        import torch
        tensor = torch.ones(300, 300, device="neuron")
        for _ in range(50):
            tensor = tensor * 1.01
        """,
        NEURON_DOUBLE_DELAY_US="2000",
    )


def test_launch_blocking(run_python):
    run_python(
        """
        import torch
        from torch_neuronx import _C
        tensor = torch.ones(3, device="neuron")
        for _ in range(5):
            tensor = tensor + 1
            submitted, completed = _C.queue_position(0)
            assert submitted == completed, (submitted, completed)
        """,
        NEURON_LAUNCH_BLOCKING="1",
        NEURON_DOUBLE_DELAY_US="2000",
    )


def test_visible_cores(run_python):
    run_python(
        """
        import torch
        assert torch.neuron.device_count() == 1
        try:
            torch.ones(1, device="neuron:1")
        except (ValueError, RuntimeError) as error:
            assert "0..0" in str(error) and "NEURON_RT_NUM_CORES" in str(error)
        else:
            raise AssertionError
        """,
        NEURON_RT_NUM_CORES="1",
    )

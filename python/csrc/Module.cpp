// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The extension module: devices, memory, generators. Thin; every function that can wait releases the GIL, because other
// Python threads may have work to enqueue.

#include "Module.h"

#include <csignal>

#include <pybind11/stl.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/autograd/python_variable.h>

#include "Allocator.h"
#include "Device.h"
#include "Interrupt.h"
#include "Queue.h"
#include "Runtime.h"

namespace py = pybind11;

namespace neuroncore::device {

namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;

py::dict statDictionary(const Stat &stat) {
  py::dict result;
  result["current"] = stat.current;
  result["peak"] = stat.peak;
  result["allocated"] = stat.allocated;
  result["freed"] = stat.freed;
  return result;
}

/// {"current": ..., "all": {...}, "small_pool": {...}, "large_pool": {...}}: both the short and CUDA's spelling.
py::dict statArrayDictionary(const StatArray &stats) {
  py::dict result = statDictionary(stats[0]);
  result["all"] = statDictionary(stats[0]);
  result["small_pool"] = statDictionary(stats[1]);
  result["large_pool"] = statDictionary(stats[2]);
  return result;
}

py::dict memoryStats(int device) {
  const auto stats = deviceAllocator()->getDeviceStats(static_cast<c10::DeviceIndex>(device));
  py::dict result;
  result["allocation"] = statArrayDictionary(stats.allocation);
  result["segment"] = statArrayDictionary(stats.segment);
  result["active"] = statArrayDictionary(stats.active);
  result["inactive_split"] = statArrayDictionary(stats.inactive_split);
  result["allocated_bytes"] = statArrayDictionary(stats.allocated_bytes);
  result["reserved_bytes"] = statArrayDictionary(stats.reserved_bytes);
  result["active_bytes"] = statArrayDictionary(stats.active_bytes);
  result["inactive_split_bytes"] = statArrayDictionary(stats.inactive_split_bytes);
  result["requested_bytes"] = statArrayDictionary(stats.requested_bytes);
  result["num_alloc_retries"] = stats.num_alloc_retries;
  result["num_ooms"] = stats.num_ooms;
  result["num_device_alloc"] = stats.num_device_alloc;
  result["num_device_free"] = stats.num_device_free;
  return result;
}

py::tuple integerTuple(c10::IntArrayRef values) {
  py::tuple result(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    result[i] = values[i];
  return result;
}

/// (dtype, sizes, strides in elements) of a strided tensor, or None where a size is symbolic and for anything else.
/// Lowering asks for those of every node of a graph, and attribute by attribute Python takes several times as long.
py::object tensorType(py::handle object) {
  if (!THPVariable_Check(object.ptr()))
    return py::none();
  const at::Tensor &tensor = THPVariable_Unpack(object.ptr());
  if (tensor.layout() != at::kStrided || tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides())
    return py::none();
  auto dtype =
      py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject *>(torch::getTHPDtype(tensor.scalar_type())));
  return py::make_tuple(dtype, integerTuple(tensor.sizes()), integerTuple(tensor.strides()));
}

void raiseIfInterrupted() {
  // Threads that still wait while the interpreter shuts down must not touch it.
  if (!Py_IsInitialized() || _Py_IsFinalizing())
    return;
  const py::gil_scoped_acquire gil;
  // Runs the handlers of signals, on the main thread only.
  if (PyErr_CheckSignals() != 0)
    throw py::error_already_set();
}

/// The signal is a KeyboardInterrupt of the wait where nobody else can make it one: Python's own handler is in place,
/// and the main thread waits in the autograd engine, which raises there what is raised here.
void raiseIfEngineWaits() {
  if (!Py_IsInitialized() || _Py_IsFinalizing())
    return;
  const py::gil_scoped_acquire gil;
  const py::module_ signals = py::module_::import("signal");
  if (!signals.attr("getsignal")(SIGINT).is(signals.attr("default_int_handler")))
    return;
  const py::object thread = py::module_::import("threading").attr("main_thread")().attr("ident");
  const py::object frame = py::module_::import("sys").attr("_current_frames")().attr("get")(thread);
  if (frame.is_none() || !frame.attr("f_code").is(
                             py::module_::import("torch.autograd.graph").attr("_engine_run_backward").attr("__code__")))
    return;
  PyErr_SetNone(PyExc_KeyboardInterrupt);
  throw py::error_already_set();
}

void bindDevices(py::module_ &module) {
  static constexpr InterruptChecks interruptChecks{&raiseIfInterrupted, &raiseIfEngineWaits};
  setInterruptChecks(&interruptChecks);
  module.def("cancel_pending", &cancelAllQueues, py::call_guard<py::gil_scoped_release>());
  module.def("device_count", &deviceCount);
  module.def("tensor_type", &tensorType);
  module.def("current_device", &currentDevice);
  module.def("set_device", &setCurrentDevice);
  module.def("checked_device", &checkedDevice);
  module.def("initialise", &ensureUsable, py::call_guard<py::gil_scoped_release>());
  module.def("is_initialised", &isInitialised);
  module.def("is_in_bad_fork", &isInBadFork);
  module.def("target_name", &targetName);
  module.def("runtime_version", &runtimeVersion);
  module.def("device_memory_bytes", &deviceMemoryBytes);
  module.def(
      "synchronise", [](int device) { queueOf(device).synchronise(); }, py::call_guard<py::gil_scoped_release>());
  module.def("queue_position", [](int device) {
    Queue &queue = queueOf(device);
    return std::make_pair(queue.submitted(), queue.completed());
  });
  module.def("current_stream", [](int device) {
    const c10::Stream stream = currentStream(checkedDevice(device));
    return std::make_tuple(stream.id(), static_cast<int>(stream.device_index()),
                           static_cast<int>(stream.device_type()));
  });
  module.def("set_check_mode", &setCheckMode);
  module.def("set_worker_threads", &setWorkerThreads);
  module.def("default_generator", [](int device) {
    return py::reinterpret_steal<py::object>(THPGenerator_initDefaultGenerator(defaultGenerator(device)));
  });
}

void bindMemory(py::module_ &module) {
  module.def("empty_cache", [] { deviceAllocator()->emptyCache({0, 0}); }, py::call_guard<py::gil_scoped_release>());
  module.def("memory_stats", &memoryStats);
  module.def("memory_info", [](int device) {
    ensureUsable();
    const MemoryInfo info = memoryInfo(checkedDevice(device));
    return std::make_pair(info.limit - info.used, info.limit);
  });
  module.def("reset_peak_memory_stats",
             [](int device) { deviceAllocator()->resetPeakStats(static_cast<c10::DeviceIndex>(device)); });
  module.def("reset_accumulated_memory_stats",
             [](int device) { deviceAllocator()->resetAccumulatedStats(static_cast<c10::DeviceIndex>(device)); });
  module.def("set_memory_fraction", &setMemoryFraction);
}

} // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.doc() = "device library of torch_neuronx; use the package, not this module";
  // What this module was built against; the package compares before it lets anything be registered.
  module.attr("torch_version") = NEURON_TORCH_VERSION;
  module.attr("torch_commit") = NEURON_TORCH_COMMIT;
  module.attr("version") = NEURON_VERSION;
  bindDevices(module);
  bindMemory(module);
  bindEager(module);
  bindProfiling(module);
}

} // namespace neuroncore::device

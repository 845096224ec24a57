// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The extension module: what the session files of a capture need.

#include "Module.h"

#include <pybind11/stl.h>

#include "HostSampler.h"
#include "ProfilerPlugin.h"
#include "Program.h"
#include "Trace.h"
#include "TraceLoss.h"

namespace py = pybind11;

namespace neuroncore::device {

namespace {

const char *kindName(ActivityRecord::Kind kind) {
  switch (kind) {
  case ActivityRecord::Kind::Execution:
    return "execution";
  case ActivityRecord::Kind::HostToDevice:
    return "host_to_device";
  case ActivityRecord::Kind::DeviceToHost:
    return "device_to_host";
  case ActivityRecord::Kind::DeviceToDevice:
    return "device_to_device";
  case ActivityRecord::Kind::Fill:
    return "fill";
  }
  return "unknown";
}

py::dict toPython(const ActivityRecord &record) {
  py::dict result;
  result["kind"] = kindName(record.kind);
  result["device"] = record.device;
  result["stream"] = record.stream;
  result["external_id"] = record.externalId;
  result["thread_id"] = record.threadId;
  result["correlation"] = record.correlation;
  result["sequence"] = record.sequence;
  result["enqueue_start"] = record.enqueueStart;
  result["enqueue_end"] = record.enqueueEnd;
  result["device_start"] = record.deviceStart;
  result["device_end"] = record.deviceEnd;
  result["kernel_ns"] = record.kernelNanoseconds;
  result["overhead_ns"] = record.overheadNanoseconds;
  result["bytes"] = record.bytes;
  result["name"] = record.name;
  result["neff_hash"] = record.neffHash;
  result["failed"] = record.failed;
  return result;
}

std::shared_ptr<Program> findProgram(const std::string &hash) {
  for (const auto &program : livePrograms())
    if (program->description().hash == hash)
      return program;
  return nullptr;
}

} // namespace

void bindProfiling(py::module_ &module) {
  module.def("register_profiler", &registerProfiler);
  module.def("profiler_registered", [] { return profilerRegistered(); });
  module.def("last_capture", [] {
    py::list result;
    for (const ActivityRecord &record : Recorder::instance().lastCapture())
      result.append(toPython(record));
    return result;
  });
  module.def("cpu_samples", [] {
    py::list result;
    for (const CpuSample &sample : cpuSamples())
      result.append(py::make_tuple(sample.timestamp, sample.cpu, sample.utilisation));
    return result;
  });
  module.def("host_memory_samples", [] {
    py::list result;
    for (const HostMemorySample &sample : hostMemorySamples())
      result.append(py::make_tuple(sample.timestamp, sample.usedBytes, sample.processBytes));
    return result;
  });
  module.def("lost_records", &lostRecords);
  module.def("capture_active", [] { return Recorder::active(); });
  module.def("program_by_hash", &findProgram);
  module.def("model_summary", [](const std::shared_ptr<Program> &program, int device) {
    const py::gil_scoped_release release;
    return program->modelOn(device).summaryJson();
  });
  module.def("model_timeline", [](const std::shared_ptr<Program> &program, int device, uint64_t maxEvents) {
    std::vector<Model::TimelineEvent> events;
    {
      const py::gil_scoped_release release;
      events = program->modelOn(device).timeline(maxEvents);
    }
    py::list result;
    for (const auto &event : events)
      result.append(py::make_tuple(event.start, event.end, event.wait, event.kind, event.engine, event.queue,
                                   event.stream, event.pc, event.debugId, event.bytes, event.opcode ? event.opcode : "",
                                   event.run));
    return result;
  });
}

} // namespace neuroncore::device

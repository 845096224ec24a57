// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A capture: PyTorch's operator ids go to the recorder as they are pushed; at the end every record becomes a device
// activity linked to its operator (which is what gives the operator device time) and a host-side launch record (which
// is where the arrow starts). All device times are modelled.

#include "ProfilerPlugin.h"

#include <algorithm>
#include <atomic>

#include <c10/util/Exception.h>
#include <libkineto.h>
#include <output_base.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>
#include <torch/csrc/profiler/stubs/base.h>

#include "Device.h"
#include "HostSampler.h"
#include "Queue.h"
#include "Runtime.h"
#include "Trace.h"

#ifndef REGISTER_PRIVATEUSE1_PROFILER
#error "this file needs a PyTorch whose PrivateUse1 profiler registration is available (USE_KINETO)"
#endif

namespace neuroncore::device {

namespace {

using libkineto::ActivityType;

std::atomic<bool> registered{false};

struct CaptureConfig {
  CaptureOptions options;
  bool correlate = true;
  bool sampleCpu = false;
  bool sampleMemory = false;
};

int hexDigit(char digit) {
  if (digit >= '0' && digit <= '9')
    return digit - '0';
  if (digit >= 'a' && digit <= 'f')
    return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F')
    return digit - 'A' + 10;
  return -1;
}

std::string percentDecode(const std::string &text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hexDigit(text[i + 1]) >= 0 && hexDigit(text[i + 2]) >= 0) {
      result += static_cast<char>(hexDigit(text[i + 1]) * 16 + hexDigit(text[i + 2]));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

/// "0,2-5" -> bits 0, 2, 3, 4, 5. NeuronConfig has checked the text; anything else selects nothing.
uint64_t parseDevices(const std::string &text) {
  uint64_t mask = 0;
  size_t position = 0;
  while (position < text.size()) {
    size_t end = text.find(',', position);
    end = end == std::string::npos ? text.size() : end;
    const std::string item = text.substr(position, end - position);
    const size_t dash = item.find('-');
    const int first = std::atoi(item.c_str());
    const int last = dash == std::string::npos ? first : std::atoi(item.c_str() + dash + 1);
    for (int i = std::max(first, 0); i <= std::min(last, 63); ++i)
      mask |= uint64_t(1) << i;
    position = end + 1;
  }
  return mask;
}

/// The text of NeuronConfig: "key:value;key:value", percent-encoded.
CaptureConfig parseConfig(const std::string &text) {
  CaptureConfig config;
  size_t position = 0;
  while (position < text.size()) {
    size_t end = text.find(';', position);
    end = end == std::string::npos ? text.size() : end;
    const std::string item = text.substr(position, end - position);
    position = end + 1;
    const size_t colon = item.find(':');
    if (colon == std::string::npos)
      continue;
    const std::string key = item.substr(0, colon);
    const std::string value = percentDecode(item.substr(colon + 1));
    if (key == "modes") {
      config.options.deviceCapture = value.find("DEVICE") != std::string::npos;
      config.sampleCpu = value.find("CPU_UTIL") != std::string::npos;
      config.sampleMemory = value.find("HOST_MEMORY") != std::string::npos;
    }
    if (key == "max_events_per_nc")
      config.options.maxEventsPerDevice = static_cast<size_t>(std::max(1LL, std::atoll(value.c_str())));
    else if (key == "capture_enabled_for_nc" && !value.empty())
      config.options.deviceMask = parseDevices(value);
    else if (key == "correlate_device_time")
      config.correlate = value == "1";
  }
  return config;
}

const char *runtimeCallName(ActivityRecord::Kind kind) {
  switch (kind) {
  case ActivityRecord::Kind::Execution:
    return "nrta_execute_schedule";
  case ActivityRecord::Kind::HostToDevice:
    return "nrt_tensor_write";
  case ActivityRecord::Kind::DeviceToHost:
    return "nrt_tensor_read";
  case ActivityRecord::Kind::DeviceToDevice:
    return "nrt_tensor_copy";
  case ActivityRecord::Kind::Fill:
    return "nrt_tensor_memset";
  }
  return "nrt";
}

ActivityType deviceActivityType(ActivityRecord::Kind kind) {
  switch (kind) {
  case ActivityRecord::Kind::Execution:
    return ActivityType::CONCURRENT_KERNEL;
  case ActivityRecord::Kind::Fill:
    return ActivityType::GPU_MEMSET;
  default:
    return ActivityType::GPU_MEMCPY;
  }
}

class Session final : public libkineto::IActivityProfilerSession {
public:
  Session(CaptureConfig config, std::set<ActivityType> types) : config_(std::move(config)), types_(std::move(types)) {}
  ~Session() override {
    if (started_ && !stopped_) {
      Recorder::instance().cancel();
      stopHostSampler();
    }
  }

  void start() override {
    startHostSampler(config_.sampleCpu, config_.sampleMemory);
    Recorder::instance().start(config_.options);
    started_ = true;
    status_ = libkineto::TraceStatus::RECORDING;
  }
  void stop() override {
    // Called with the GIL held; nothing that this waits for takes the GIL.
    records_ = Recorder::instance().stop();
    stopHostSampler();
    stopped_ = true;
    status_ = libkineto::TraceStatus::PROCESSING;
  }
  std::vector<std::string> errors() override { return {}; }

  void processTrace(libkineto::ActivityLogger &logger) override {
    processTrace(logger, [](int32_t) -> const libkineto::ITraceActivity * { return nullptr; }, 0, 0);
  }
  void processTrace(libkineto::ActivityLogger &logger, libkineto::getLinkedActivityCallback linkedActivity,
                    int64_t startTime, int64_t) override {
    int lastDevice = 0;
    for (const ActivityRecord &record : records_) {
      if (record.enqueueStart < startTime || record.deviceEnd < record.deviceStart)
        continue;
      lastDevice = std::max(lastDevice, record.device);
      const libkineto::ITraceActivity *linked =
          config_.correlate && record.externalId ? linkedActivity(static_cast<int32_t>(record.externalId)) : nullptr;
      if (linked && types_.count(ActivityType::PRIVATEUSE1_RUNTIME))
        logRuntimeCall(logger, record, linked);
      if (types_.count(deviceActivityType(record.kind)))
        logDeviceActivity(logger, record, linked);
    }
    // getDeviceInfo() can name one device only.
    for (int device = 1; device <= lastDevice; ++device)
      logger.handleDeviceInfo({device, libkineto::kExceedMaxPid + device, "neuron " + std::to_string(device),
                               "NeuronCore " + std::to_string(device)},
                              startTime);
  }

  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override {
    return std::make_unique<libkineto::DeviceInfo>(
        libkineto::DeviceInfo{0, libkineto::kExceedMaxPid, "neuron 0", "NeuronCore 0"});
  }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override {
    std::vector<libkineto::ResourceInfo> infos;
    std::set<std::pair<int32_t, int64_t>> seen;
    for (const ActivityRecord &record : records_)
      if (seen.emplace(record.device, record.stream).second)
        infos.push_back({record.stream, record.stream, record.device, "stream " + std::to_string(record.stream)});
    return infos;
  }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override {
    return std::make_unique<libkineto::CpuTraceBuffer>();
  }

  void pushCorrelationId(uint64_t id) override { CorrelationStack::push(id); }
  void popCorrelationId() override { CorrelationStack::pop(); }

  std::string getDeviceProperties() override {
    if (!isInitialised())
      return "";
    return "{\"id\": 0, \"name\": \"" + targetName() +
           " NeuronCore (software)\", \"totalGlobalMem\": " + std::to_string(deviceMemoryBytes()) + "}";
  }
  std::unordered_map<std::string, std::string> getMetadata() override {
    return {{"neuron_device_times", "\"modelled\""}};
  }

private:
  static void logRuntimeCall(libkineto::ActivityLogger &logger, const ActivityRecord &record,
                             const libkineto::ITraceActivity *linked) {
    libkineto::GenericTraceActivity activity;
    activity.activityType = ActivityType::PRIVATEUSE1_RUNTIME;
    activity.activityName = runtimeCallName(record.kind);
    activity.startTime = record.enqueueStart;
    activity.endTime = std::max(record.enqueueEnd, record.enqueueStart);
    activity.id = record.correlation;
    activity.device = libkineto::processId();
    activity.resource = record.threadId;
    activity.threadId = record.threadId;
    activity.flow.id = static_cast<uint32_t>(record.correlation);
    activity.flow.type = libkineto::kLinkAsyncCpuGpu;
    activity.flow.start = 1;
    activity.linked = linked;
    activity.addMetadata("correlation", record.correlation);
    activity.addMetadata("nrt_sequence_id", record.sequence);
    activity.log(logger);
  }

  static void logDeviceActivity(libkineto::ActivityLogger &logger, const ActivityRecord &record,
                                const libkineto::ITraceActivity *linked) {
    libkineto::GenericTraceActivity activity;
    activity.activityType = deviceActivityType(record.kind);
    activity.activityName = record.name;
    activity.startTime = record.deviceStart;
    activity.endTime = record.deviceEnd;
    activity.id = record.correlation;
    activity.device = record.device;
    activity.resource = static_cast<int32_t>(record.stream);
    activity.flow.id = static_cast<uint32_t>(record.correlation);
    activity.flow.type = libkineto::kLinkAsyncCpuGpu;
    activity.flow.start = 0;
    activity.linked = linked;
    activity.addMetadata("device", record.device);
    activity.addMetadata("stream", record.stream);
    activity.addMetadata("correlation", record.correlation);
    activity.addMetadata("nrt_sequence_id", record.sequence);
    activity.addMetadataQuoted("time", "modelled");
    if (record.kind == ActivityRecord::Kind::Execution) {
      activity.addMetadata("kernel_ns", record.kernelNanoseconds);
      activity.addMetadata("fixed_overhead_ns", record.overheadNanoseconds);
      activity.addMetadataQuoted("neff", record.neffHash);
      if (record.failed)
        activity.addMetadataQuoted("status", "failed");
    } else {
      activity.addMetadata("bytes", record.bytes);
    }
    activity.log(logger);
  }

  CaptureConfig config_;
  std::set<ActivityType> types_;
  std::vector<ActivityRecord> records_;
  bool started_ = false;
  bool stopped_ = false;
};

class Profiler final : public libkineto::IActivityProfiler {
public:
  const std::string &name() const override {
    static const std::string theName = "neuron";
    return theName;
  }
  const std::set<ActivityType> &availableActivities() const override {
    static const std::set<ActivityType> types = {ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY,
                                                 ActivityType::GPU_MEMSET, ActivityType::PRIVATEUSE1_RUNTIME};
    return types;
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(const std::set<ActivityType> &types,
                                                                 const libkineto::Config &config) override {
    // Absent in a CPU-only capture.
    if (!types.count(ActivityType::CONCURRENT_KERNEL))
      return nullptr;
    return std::make_unique<Session>(parseConfig(config.getCustomConfig()), types);
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(int64_t, int64_t, const std::set<ActivityType> &types,
                                                                 const libkineto::Config &config) override {
    return configure(types, config);
  }
};

/// The legacy (non-Kineto) profiler brackets every operator with two events; without this it warns for each of them.
struct LegacyStubs final : torch::profiler::impl::ProfilerStubs {
  void record(c10::DeviceIndex *device, torch::profiler::impl::ProfilerVoidEventStub *event,
              int64_t *cpuNanoseconds) const override {
    auto time = std::make_shared<int64_t>(0);
    const int index = currentDevice();
    if (device)
      *device = static_cast<c10::DeviceIndex>(index);
    if (cpuNanoseconds)
      *cpuNanoseconds = wallClock();
    queueOf(index).submitMark([time](int64_t virtualTime) { *time = virtualTime; });
    *event = time;
  }
  float elapsed(const torch::profiler::impl::ProfilerVoidEventStub *first,
                const torch::profiler::impl::ProfilerVoidEventStub *second) const override {
    drainAllQueues();
    const auto start = *static_cast<const int64_t *>(first->get());
    const auto end = *static_cast<const int64_t *>(second->get());
    return static_cast<float>(static_cast<double>(end - start) / 1e3);
  }
  void mark(const char *) const override {}
  void rangePush(const char *) const override {}
  void rangePop() const override {}
  bool enabled() const override { return true; }
  void onEachDevice(std::function<void(int)> operation) const override { operation(currentDevice()); }
  void synchronize() const override { drainAllQueues(); }
};

} // namespace

void registerProfiler(const std::string &torchVersion) {
  TORCH_CHECK(torchVersion == NEURON_TORCH_VERSION, "expected PyTorch ", NEURON_TORCH_VERSION, " but got ",
              torchVersion, ": rebuild torch_neuronx against the installed PyTorch");
  if (registered.exchange(true))
    return;
  torch::profiler::impl::PrivateUse1ProfilerRegistry::instance().registerFactory(
      [] { return std::make_unique<Profiler>(); });
  static LegacyStubs stubs;
  torch::profiler::impl::registerPrivateUse1Methods(&stubs);
}

bool profilerRegistered() { return registered.load(); }

} // namespace neuroncore::device

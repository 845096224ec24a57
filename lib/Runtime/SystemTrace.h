// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the runtime did and when, in one bounded ring per core: the oldest events go first and are counted. Off, it
// costs one relaxed load per piece of work.

#ifndef NEURON_LIB_RUNTIME_SYSTEMTRACE_H
#define NEURON_LIB_RUNTIME_SYSTEMTRACE_H

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace neuroncore::runtime {

struct SystemEvent {
  /// A name of kEventTypes.
  const char *type = "";
  bool isHardware = false;
  int core = 0;
  uint64_t trackingId = 0;
  /// Nanoseconds since the Unix epoch; of hardware events on the core's modelled clock.
  int64_t startNs = 0, endNs = 0;
  uint64_t executionId = 0;
  uint64_t modelId = 0;
  std::string modelName, modelHash;
  int64_t kernelNs = 0, overheadNs = 0, bytes = 0;
  uint64_t sequence = 0;
  int threadId = 0;
  bool failed = false;
};

struct EventType {
  const char *name;
  bool isHardware;
};
inline constexpr EventType kEventTypes[] = {
    {"nrta_execute_schedule", false}, {"nc_exec_running", true}, {"tensor_copy", false}, {"tensor_memset", false}};

struct SystemTraceOptions {
  uint64_t maxEventsPerCore = 1000000;
  /// Empty: all.
  std::set<uint32_t> disabledCores;
  std::set<std::string> disabledTypes;

  /// A type or a group ("hardware", "software"); false for an unknown one.
  bool setType(const std::string &type, bool enabled);
};

class SystemTrace {
public:
  static SystemTrace &instance();
  static bool active() { return active_.load(std::memory_order_relaxed); }

  void start(const SystemTraceOptions &options);
  void stop();
  void record(SystemEvent event);
  uint64_t nextId() { return nextId_.fetch_add(1, std::memory_order_relaxed) + 1; }
  /// Takes at most `perCore` events of each core (or of one), oldest first.
  std::vector<SystemEvent> take(uint64_t perCore, int onlyCore = -1);
  /// Events lost since the last call.
  uint64_t takeDropped();

private:
  static std::atomic<bool> active_;
  std::atomic<uint64_t> nextId_ = 0;
  std::mutex mutex_;
  SystemTraceOptions options_;
  std::map<int, std::deque<SystemEvent>> rings_;
  uint64_t dropped_ = 0;
};

} // namespace neuroncore::runtime

#endif // NEURON_LIB_RUNTIME_SYSTEMTRACE_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Captures that the runtime writes itself: session folders (NEURON_RT_INSPECT_*, nrt_inspect_*), one model
// (nrt_profile_start) and continuous ones.

#ifndef NEURON_LIB_RUNTIME_INSPECT_H
#define NEURON_LIB_RUNTIME_INSPECT_H

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "lib/Profile/DeviceTrace.h"
#include "lib/Runtime/SystemTrace.h"
#include "nrt/nrt_status.h"

struct nrt_model;

namespace neuroncore::runtime {

struct InspectOptions {
  bool systemProfile = true;
  bool deviceProfile = true;
  std::string outputDirectory = "./output";
  uint32_t session = 1;
  SystemTraceOptions trace;

  /// From NEURON_RT_INSPECT_*; `enabled` is the master switch.
  static Expected<InspectOptions> fromEnvironment(bool &enabled);
};

class Inspector {
public:
  static Inspector &instance();
  static bool active() { return active_.load(std::memory_order_relaxed); }

  NRT_STATUS begin(const InspectOptions &options);
  /// Waits for the devices and writes the session folder.
  NRT_STATUS stop();
  /// Only executions of this model, for nrt_profile_start.
  NRT_STATUS beginModel(nrt_model *model, const std::string &file);
  NRT_STATUS stopModel(const std::string &file);
  /// Writes and forgets what ran on one core.
  NRT_STATUS save(uint32_t core, const std::string &directory);
  bool isContinuous() const { return continuous_; }
  NRT_STATUS beginContinuous(const std::string &directory);
  NRT_STATUS stopContinuous();

  /// On the device thread, after an execution of `model`.
  void noteExecution(nrt_model &model, int core, const profile::ExecutionRecord &record);
  /// Before a model goes.
  void noteUnload(nrt_model &model);

private:
  struct Program {
    nrt_model *model = nullptr; // null once it has been unloaded
    bool isWritten = false;
    profile::ProgramTrace trace;
    std::vector<uint8_t> neff;
    std::string error;
  };
  struct Core {
    std::map<std::string, Program> programs; // by hash
    std::vector<profile::ExecutionRecord> executions;
  };
  void clear();
  void complete(Program &program);
  NRT_STATUS writeCore(const std::string &folder, int core, Core &content, uint32_t session, std::string *index);

  static std::atomic<bool> active_;
  std::mutex mutex_;
  InspectOptions options_;
  std::map<int, Core> cores_;
  nrt_model *onlyModel_ = nullptr;
  std::string onlyFile_;
  bool continuous_ = false;
  bool inspects_ = false;
};

} // namespace neuroncore::runtime

#endif // NEURON_LIB_RUNTIME_INSPECT_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime of this process between nrt_init and nrt_close.

#ifndef NEURON_LIB_RUNTIME_STATE_H
#define NEURON_LIB_RUNTIME_STATE_H

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "lib/Runtime/Device.h"
#include "lib/Runtime/Settings.h"
#include "nrt/nrt.h"

namespace neuroncore::runtime {

struct State {
  Settings settings;
  const target::MachineModel *model = nullptr;
  std::unique_ptr<target::MachineModel> ownModel;
  std::vector<std::unique_ptr<Device>> devices; // the visible cores
  std::atomic<bool> checkMode = false;

  std::mutex mutex;
  std::set<nrt_model *> models;
  std::set<nrt_tensor *> tensors;
};

/// The state, or null with a status and message for the caller: before nrt_init, after nrt_close, in a forked child.
State *currentState(NRT_STATUS &status);

/// The visible core `vnc`, or null with a status.
Device *deviceOf(State &state, int64_t vnc, NRT_STATUS &status);

NRT_STATUS initialise();
void shutDown();

/// Settings and machine model without reserving anything (counts may be asked before nrt_init).
struct Preview {
  Settings settings;
  const target::MachineModel *model = nullptr;
  std::unique_ptr<target::MachineModel> ownModel;
  int totalCores = 0;
  int visibleCores = 0;
};
NRT_STATUS preview(Preview &result);

} // namespace neuroncore::runtime

#endif // NEURON_LIB_RUNTIME_STATE_H

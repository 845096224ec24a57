// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/State.h"

#include <cstdlib>

#include <pthread.h>

#include "lib/Runtime/Inspect.h"
#include "lib/Runtime/Model.h"
#include "lib/Runtime/Status.h"
#include "lib/Runtime/Tensor.h"
#include "neuron/Support/Text.h"

namespace neuroncore::runtime {

namespace {

enum class Phase : uint8_t { Uninitialised, Running, Closed };

std::mutex phaseMutex;
std::atomic<Phase> phase = Phase::Uninitialised;
std::atomic<State *> state = nullptr;
/// Device threads do not survive a fork.
std::atomic<bool> isForkedChild = false;

} // namespace

/// Ends a capture that the environment began. Nobody asks for its status.
static void writeInspection() {
  if (Inspector::active() && !isForkedChild.load() && state.load() && Inspector::instance().stop() != NRT_SUCCESS)
    log(LogLevel::Error, "inspect",
        cat("the capture that NEURON_RT_INSPECT_ENABLE asks for is not complete: ", lastError(),
            "; set NEURON_RT_INSPECT_OUTPUT_DIR to a folder that can be written"));
}

NRT_STATUS preview(Preview &result) {
  Expected<Settings> settings = Settings::fromEnvironment([](const char *name) { return std::getenv(name); });
  if (!settings)
    return fail(settings.error());
  result.settings = *settings;
  if (result.settings.machineModelPath.empty()) {
    result.model = target::MachineModel::builtin(result.settings.target);
    if (!result.model)
      return fail(NRT_FAILURE, cat("no machine model for target ", result.settings.target));
  } else {
    Expected<target::MachineModel> loaded =
        target::MachineModel::load(result.settings.target, result.settings.machineModelPath);
    if (!loaded)
      return fail(loaded.error());
    result.ownModel = std::make_unique<target::MachineModel>(std::move(*loaded));
    result.model = result.ownModel.get();
  }
  result.totalCores = result.model->topology().neuronCoresPerDevice;
  const int first = result.settings.firstCore;
  const int count = result.settings.numCores == 0 ? result.totalCores - first : result.settings.numCores;
  if (count < 1 || first + count > result.totalCores)
    return fail(NRT_LOAD_NOT_ENOUGH_NC, cat("cores ", first, " to ", first + count - 1,
                                            " were asked for but the modelled ", result.settings.target, " device has ",
                                            result.totalCores, "; set NEURON_RT_VISIBLE_CORES or NEURON_RT_NUM_CORES"));
  result.visibleCores = count;
  return NRT_SUCCESS;
}

NRT_STATUS initialise() {
  std::lock_guard lock(phaseMutex);
  if (isForkedChild.load())
    return fail(NRT_INVALID, "the runtime was initialised before this process was forked; start worker processes with "
                             "the spawn start method");
  if (phase == Phase::Running)
    return fail(NRT_FAILURE, "nrt_init was called twice");
  Preview settings;
  if (const NRT_STATUS status = preview(settings); status != NRT_SUCCESS)
    return status;
  bool inspect = false;
  Expected<InspectOptions> inspection = InspectOptions::fromEnvironment(inspect);
  if (!inspection)
    return fail(inspection.error());
  auto fresh = std::make_unique<State>();
  fresh->settings = settings.settings;
  fresh->model = settings.model;
  fresh->ownModel = std::move(settings.ownModel);
  setLogLevel(fresh->settings.logLevel);
  const int64_t capacity = fresh->model->topology().hbmCapacityDeviceBytes / settings.totalCores;
  for (int i = 0; i < settings.visibleCores; ++i) {
    Expected<std::unique_ptr<DeviceMemory>> memory = DeviceMemory::create(i, capacity);
    if (!memory)
      return fail(memory.error());
    fresh->devices.push_back(std::make_unique<Device>(i, fresh->settings, *fresh->model, std::move(*memory)));
  }
  static std::once_flag forkHandler;
  std::call_once(forkHandler, [] {
    pthread_atfork(nullptr, nullptr, [] {
      if (phase.load() == Phase::Running)
        isForkedChild.store(true);
    });
  });
  state.store(fresh.release());
  phase = Phase::Running;
  if (inspect && Inspector::instance().begin(*inspection) == NRT_SUCCESS) {
    // Most programs end without nrt_close.
    static std::once_flag exitHandler;
    std::call_once(exitHandler, [] { std::atexit(&writeInspection); });
  }
  log(LogLevel::Info, "nrt_init", cat(settings.visibleCores, " cores of a software ", settings.settings.target));
  return NRT_SUCCESS;
}

void shutDown() {
  writeInspection();
  std::lock_guard lock(phaseMutex);
  if (phase != Phase::Running || isForkedChild.load())
    return;
  State *old = state.exchange(nullptr);
  phase = Phase::Closed;
  for (const std::unique_ptr<Device> &device : old->devices)
    device->waitIdle();
  for (nrt_model *model : old->models)
    delete model;
  for (nrt_tensor *tensor : old->tensors)
    delete tensor;
  delete old;
}

State *currentState(NRT_STATUS &status) {
  State *current = state.load(std::memory_order_acquire);
  if (current && !isForkedChild.load(std::memory_order_relaxed))
    return current;
  if (isForkedChild.load())
    status = fail(NRT_INVALID, "the runtime cannot be used in a forked child process; start worker processes with the "
                               "spawn start method");
  else if (phase.load() == Phase::Closed)
    status = fail(NRT_CLOSED, "the runtime has been closed by nrt_close");
  else
    status = fail(NRT_UNINITIALIZED, "the runtime is not initialised; call nrt_init first");
  return nullptr;
}

Device *deviceOf(State &state, int64_t vnc, NRT_STATUS &status) {
  if (vnc >= 0 && vnc < int64_t(state.devices.size()))
    return state.devices[vnc].get();
  status = fail(NRT_INVALID, cat("core ", vnc, " is not visible; expected 0 <= core < ", state.devices.size(),
                                 " (NEURON_RT_VISIBLE_CORES and NEURON_RT_NUM_CORES select the cores)"));
  return nullptr;
}

} // namespace neuroncore::runtime

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Runtime.h"

#include <atomic>
#include <mutex>
#include <pthread.h>

#include <c10/util/Exception.h>

#include "nrt/nrt.h"
#include "nrt/open_neuron.h"

namespace neuroncore::device {

namespace {

std::atomic<bool> initialised{false};
std::atomic<bool> forked{false};

std::mutex &initialisationMutex() {
  static auto *mutex = new std::mutex;
  return *mutex;
}

/// "NAME(number): text of the runtime".
std::string describe(NRT_STATUS status) {
  std::string text = nrt_get_status_as_str(status);
  text += '(' + std::to_string(static_cast<int>(status)) + ')';
  const char *detail = open_neuron_last_error();
  if (detail && *detail)
    text += std::string(": ") + detail;
  return text;
}

} // namespace

int deviceCount() noexcept {
  static const int count = []() noexcept {
    uint32_t visible = 0;
    if (nrt_get_visible_vnc_count(&visible) != NRT_SUCCESS)
      return 0;
    return static_cast<int>(visible);
  }();
  return count;
}

void initialise() {
  TORCH_CHECK(!isInBadFork(),
              "cannot use the neuron device in a process forked after its first use: the device thread does not "
              "survive a fork. Start worker processes with the 'spawn' start method "
              "(torch.multiprocessing.set_start_method('spawn'))");
  if (initialised.load(std::memory_order_acquire))
    return;
  std::lock_guard<std::mutex> lock(initialisationMutex());
  if (initialised.load())
    return;
  const NRT_STATUS status = nrt_init(NRT_FRAMEWORK_TYPE_PYTORCH, "2.13", "");
  TORCH_CHECK(status == NRT_SUCCESS, "the neuron runtime did not initialise: ", describe(status));
  pthread_atfork(nullptr, nullptr, [] {
    if (initialised.load())
      forked.store(true);
  });
  initialised.store(true, std::memory_order_release);
}

bool isInitialised() noexcept { return initialised.load(std::memory_order_acquire); }

bool isInBadFork() noexcept { return forked.load(std::memory_order_relaxed); }

void ensureUsable() {
  if (C10_LIKELY(initialised.load(std::memory_order_acquire) && !forked.load(std::memory_order_relaxed)))
    return;
  initialise();
}

std::string targetName() { return open_neuron_target(); }

std::string runtimeVersion() {
  nrt_version_t version{};
  if (nrt_get_version(&version, sizeof(version)) != NRT_SUCCESS)
    return "unknown";
  return std::to_string(version.rt_major) + '.' + std::to_string(version.rt_minor) + '.' +
         std::to_string(version.rt_patch) + '.' + std::to_string(version.rt_maintenance);
}

size_t deviceMemoryBytes() { return open_neuron_memory_bytes(); }

std::byte *allocateDeviceMemory(int device, size_t bytes) {
  void *memory = nullptr;
  const NRT_STATUS status = open_neuron_memory_allocate(static_cast<uint32_t>(device), bytes, &memory);
  if (status == NRT_RESOURCE)
    return nullptr;
  TORCH_CHECK(status == NRT_SUCCESS, "allocating ", bytes, " bytes on neuron:", device, " failed: ", describe(status));
  return static_cast<std::byte *>(memory);
}

void freeDeviceMemory(int device, std::byte *memory) noexcept {
  // After a fork or at exit the runtime may be gone; the operating system then takes the memory back.
  if (!isInBadFork())
    (void)open_neuron_memory_free(static_cast<uint32_t>(device), memory);
}

MemoryInfo memoryInfo(int device) {
  nrt_vnc_memory_stats_t stats{};
  size_t written = 0;
  const NRT_STATUS status = nrt_get_vnc_memory_stats(static_cast<uint32_t>(device), &stats, sizeof(stats), &written);
  TORCH_CHECK(status == NRT_SUCCESS, "reading the memory statistics of neuron:", device, " failed: ", describe(status));
  return {stats.bytes_used, stats.bytes_limit};
}

void cancelExecutions(int device) noexcept { (void)open_neuron_cancel(static_cast<uint32_t>(device)); }

WaitProgress::WaitProgress(int device) : handle_(open_neuron_progress_begin(static_cast<uint32_t>(device))) {}

WaitProgress::~WaitProgress() { open_neuron_progress_end(static_cast<open_neuron_progress_t *>(handle_)); }

void setCheckMode(bool enabled) {
  ensureUsable();
  const NRT_STATUS status = open_neuron_set_check_mode(enabled);
  TORCH_CHECK(status == NRT_SUCCESS, "switching the checked mode failed: ", describe(status));
}

void setWorkerThreads(int threads) {
  ensureUsable();
  TORCH_CHECK(threads >= 0, "expected 0 or more worker threads but got ", threads);
  const NRT_STATUS status = open_neuron_set_worker_threads(static_cast<uint32_t>(threads));
  TORCH_CHECK(status == NRT_SUCCESS, "setting the number of worker threads failed: ", describe(status));
}

std::unique_ptr<Model> Model::load(std::string neff, int device) {
  ensureUsable();
  std::unique_ptr<Model> model(new Model);
  model->neff_ = std::move(neff);
  model->device_ = device;
  nrt_model_t *handle = nullptr;
  // The bytes live as long as the model, so constants are used where they are.
  NRT_STATUS status = open_neuron_load(model->neff_.data(), model->neff_.size(), static_cast<uint32_t>(device),
                                       OPEN_NEURON_LOAD_BORROW_BYTES, &handle);
  TORCH_CHECK_WITH(OutOfMemoryError, status != NRT_RESOURCE, "loading a NEFF on neuron:", device,
                   " failed: ", describe(status));
  TORCH_CHECK(status == NRT_SUCCESS, "loading a NEFF on neuron:", device, " failed: ", describe(status));
  model->handle_ = handle;
  open_neuron_model_info_t info{};
  status = open_neuron_model_info(handle, &info);
  TORCH_CHECK(status == NRT_SUCCESS, "reading a loaded model failed: ", describe(status));
  model->name_ = info.name ? info.name : "";
  model->id_ = info.model_id;
  model->rngIncrement_ = info.rng_increment;
  auto convert = [](const open_neuron_variable_t &variable) {
    ModelVariable result;
    result.name = variable.name ? variable.name : "";
    result.role = static_cast<ModelVariable::Role>(variable.role);
    result.bytes = variable.bytes;
    result.aliasOfInput = variable.alias_of_input;
    return result;
  };
  for (uint32_t i = 0; i < info.num_inputs; ++i) {
    open_neuron_variable_t variable{};
    status = open_neuron_model_input(handle, i, &variable);
    TORCH_CHECK(status == NRT_SUCCESS, "reading input ", i, " of a loaded model failed: ", describe(status));
    model->inputs_.push_back(convert(variable));
  }
  for (uint32_t i = 0; i < info.num_outputs; ++i) {
    open_neuron_variable_t variable{};
    status = open_neuron_model_output(handle, i, &variable);
    TORCH_CHECK(status == NRT_SUCCESS, "reading output ", i, " of a loaded model failed: ", describe(status));
    model->outputs_.push_back(convert(variable));
  }
  return model;
}

Model::~Model() {
  if (handle_ && !isInBadFork())
    (void)nrt_unload(static_cast<nrt_model_t *>(handle_));
}

bool Model::enqueue(const void *const *inputs, void *const *outputs, void *context) {
  const auto callback = [](void *user, NRT_STATUS status, const open_neuron_timing_t *timing) {
    ExecutionTiming times;
    if (timing) {
      times.kernel = static_cast<int64_t>(timing->kernel_ns);
      times.overhead = static_cast<int64_t>(timing->overhead_ns);
      times.captureOverhead = static_cast<int64_t>(timing->capture_overhead_ns);
    }
    IndexFault fault;
    bool hasFault = false;
    if (open_neuron_index_fault_t raw{}; status == NRT_EXEC_OOB && open_neuron_last_index_fault(&raw) == NRT_SUCCESS) {
      fault = {raw.debug_id, raw.dimension, raw.index};
      hasFault = true;
    }
    completeExecution(user, status == NRT_SUCCESS ? std::string() : describe(status), hasFault ? &fault : nullptr,
                      times);
  };
  const NRT_STATUS status =
      open_neuron_enqueue(static_cast<nrt_model_t *>(handle_), inputs, outputs, callback, context, nullptr);
  if (status == NRT_QUEUE_FULL)
    return false;
  TORCH_CHECK(status == NRT_SUCCESS, "enqueueing ", name_, " on neuron:", device_, " failed: ", describe(status));
  return true;
}

std::vector<uint32_t> Model::nodesOf(uint32_t debugId) const {
  open_neuron_debug_record_t record{};
  if (open_neuron_model_debug_record(static_cast<const nrt_model_t *>(handle_), debugId, &record) != NRT_SUCCESS)
    return {};
  return {record.nodes, record.nodes + record.num_nodes};
}

std::string Model::summaryJson() {
  char *text = nullptr;
  if (open_neuron_model_summary(static_cast<nrt_model_t *>(handle_), &text) != NRT_SUCCESS || !text)
    return "{}";
  std::string result(text);
  open_neuron_free_text(text);
  return result;
}

std::vector<Model::TimelineEvent> Model::timeline(uint64_t maxEvents) {
  std::vector<TimelineEvent> events;
  const auto visit = [](void *user, const open_neuron_event_t *event) {
    static_cast<std::vector<TimelineEvent> *>(user)->push_back(
        {event->start_ps, event->end_ps, event->wait_ps, event->kind, event->engine, event->queue, event->stream,
         event->pc, event->debug_id, event->bytes, event->opcode, event->run});
    return true;
  };
  (void)open_neuron_model_timeline(static_cast<nrt_model_t *>(handle_), maxEvents, visit, &events);
  return events;
}

} // namespace neuroncore::device

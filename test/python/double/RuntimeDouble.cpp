// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of libnrt that the device library calls, over the interpreter. NEURON_DOUBLE_DELAY_US makes every
// execution take that long; NEURON_DOUBLE_MEMORY is the HBM of a core in bytes.

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unistd.h>

#include "Interpreter.h"
#include "nrt/open_neuron.h"

namespace {

using neuron_double::Graph;

thread_local std::string lastError;

NRT_STATUS fail(NRT_STATUS status, const std::string &text) {
  lastError = text;
  return status;
}

uint64_t environmentNumber(const char *name, uint64_t fallback) {
  const char *value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : fallback;
}

uint64_t memoryLimit() { return environmentNumber("NEURON_DOUBLE_MEMORY", uint64_t(24) << 30); }

struct Item {
  nrt_model_t *model;
  std::vector<void *> inputs;
  std::vector<void *> outputs;
  open_neuron_callback_t callback;
  void *user;
  uint64_t sequence;
};

struct Core {
  std::mutex mutex;
  std::condition_variable work;
  std::deque<Item> items;
  std::thread thread;
  uint64_t sequence = 0;
  std::map<void *, size_t> allocations;
  uint64_t used = 0;
};

pid_t owner = 0;

std::vector<std::unique_ptr<Core>> &cores() {
  static auto *all = new std::vector<std::unique_ptr<Core>>;
  return *all;
}

} // namespace

struct nrt_model {
  std::unique_ptr<Graph> graph;
  uint32_t core = 0;
  uint64_t id = 0;
};

namespace {

void serve(Core &core) {
  while (true) {
    std::unique_lock<std::mutex> lock(core.mutex);
    core.work.wait(lock, [&] { return !core.items.empty(); });
    Item item = std::move(core.items.front());
    core.items.pop_front();
    lock.unlock();
    static const uint64_t delay = environmentNumber("NEURON_DOUBLE_DELAY_US", 0);
    if (delay)
      std::this_thread::sleep_for(std::chrono::microseconds(delay));
    NRT_STATUS status = NRT_SUCCESS;
    try {
      item.model->graph->run(item.inputs, item.outputs);
    } catch (const c10::Error &error) {
      status = fail(NRT_EXEC_COMPLETED_WITH_ERR, error.what_without_backtrace());
    } catch (const std::exception &error) {
      status = fail(NRT_EXEC_COMPLETED_WITH_ERR, error.what());
    }
    open_neuron_timing_t timing{};
    timing.kernel_ns = 3000 + static_cast<uint64_t>(item.model->graph->work) / 100;
    timing.overhead_ns = 9400;
    timing.capture_overhead_ns = 372000;
    timing.sequence = item.sequence;
    if (item.callback)
      item.callback(item.user, status, &timing);
  }
}

void describe(const neuron_double::Variable &source, open_neuron_variable_t *target, nrt_tensor_usage_t usage) {
  *target = {};
  target->name = source.name.c_str();
  target->usage = usage;
  target->role = source.role == "parameters"  ? OPEN_NEURON_ROLE_PARAMETERS
                 : source.role == "rng_state" ? OPEN_NEURON_ROLE_RNG_STATE
                                              : OPEN_NEURON_ROLE_TENSOR;
  target->ndim = static_cast<uint32_t>(source.sizes.size());
  target->shape = source.sizes.data();
  target->strides = source.strides.data();
  target->bytes = source.bytes;
  target->alias_of_input = source.alias;
}

} // namespace

extern "C" {

const char *open_neuron_last_error(void) { return lastError.c_str(); }

// Programs of the double check no indices: PyTorch's CPU kernels do.
NRT_STATUS open_neuron_last_index_fault(open_neuron_index_fault_t *) { return NRT_INVALID; }
NRT_STATUS open_neuron_model_debug_record(const nrt_model_t *, uint32_t, open_neuron_debug_record_t *) {
  return NRT_INVALID;
}

const char *nrt_get_status_as_str(NRT_STATUS status) {
  switch (status) {
  case NRT_SUCCESS:
    return "NRT_SUCCESS";
  case NRT_RESOURCE:
    return "NRT_RESOURCE";
  case NRT_INVALID:
    return "NRT_INVALID";
  case NRT_EXEC_COMPLETED_WITH_ERR:
    return "NRT_EXEC_COMPLETED_WITH_ERR";
  default:
    return "NRT_FAILURE";
  }
}

NRT_STATUS nrt_get_version(nrt_version_t *version, size_t size) {
  std::memset(version, 0, size);
  version->rt_major = 2;
  std::strcpy(version->rt_detail, "test double");
  return NRT_SUCCESS;
}

NRT_STATUS nrt_get_visible_vnc_count(uint32_t *count) {
  *count = static_cast<uint32_t>(environmentNumber("NEURON_RT_NUM_CORES", 2));
  return NRT_SUCCESS;
}

NRT_STATUS nrt_init(nrt_framework_type_t, const char *, const char *) {
  uint32_t count = 0;
  (void)nrt_get_visible_vnc_count(&count);
  for (uint32_t i = 0; i < count; ++i) {
    cores().push_back(std::make_unique<Core>());
    Core &core = *cores().back();
    core.thread = std::thread([&core] { serve(core); });
    core.thread.detach();
  }
  owner = getpid();
  return NRT_SUCCESS;
}

NRT_STATUS open_neuron_runtime_state(void) { return owner == getpid() ? NRT_SUCCESS : NRT_INVALID; }
const char *open_neuron_target(void) { return "trn2"; }
uint64_t open_neuron_memory_bytes(void) { return memoryLimit(); }

NRT_STATUS open_neuron_memory_allocate(uint32_t vnc, size_t size, void **memory) {
  Core &core = *cores().at(vnc);
  std::lock_guard<std::mutex> lock(core.mutex);
  if (core.used + size > memoryLimit())
    return fail(NRT_RESOURCE, "out of device memory");
  *memory = std::aligned_alloc(64, (size + 63) / 64 * 64);
  if (!*memory)
    return fail(NRT_RESOURCE, "out of host memory");
  // Whoever reads memory that nobody wrote shall notice.
  std::memset(*memory, 0xAB, std::min<size_t>(size, size_t(1) << 24));
  core.allocations[*memory] = size;
  core.used += size;
  return NRT_SUCCESS;
}

NRT_STATUS open_neuron_memory_free(uint32_t vnc, void *memory) {
  Core &core = *cores().at(vnc);
  std::lock_guard<std::mutex> lock(core.mutex);
  auto it = core.allocations.find(memory);
  if (it == core.allocations.end())
    return fail(NRT_INVALID, "not an allocation");
  core.used -= it->second;
  core.allocations.erase(it);
  std::free(memory);
  return NRT_SUCCESS;
}

NRT_STATUS nrt_get_vnc_memory_stats(uint32_t vnc, nrt_vnc_memory_stats_t *stats, size_t, size_t *written) {
  Core &core = *cores().at(vnc);
  std::lock_guard<std::mutex> lock(core.mutex);
  stats->bytes_used = core.used;
  stats->bytes_limit = memoryLimit();
  *written = sizeof(*stats);
  return NRT_SUCCESS;
}

NRT_STATUS open_neuron_load(const void *bytes, size_t size, uint32_t vnc, uint32_t, nrt_model_t **model) {
  static uint64_t counter = 0;
  try {
    auto fresh = std::make_unique<nrt_model>();
    fresh->graph = std::make_unique<Graph>(std::string(static_cast<const char *>(bytes), size));
    fresh->core = vnc;
    fresh->id = ++counter;
    *model = fresh.release();
    return NRT_SUCCESS;
  } catch (const std::exception &error) {
    return fail(NRT_INVALID, std::string("not a NEFF of the double: ") + error.what());
  }
}

NRT_STATUS nrt_unload(nrt_model_t *model) {
  delete model;
  return NRT_SUCCESS;
}

NRT_STATUS open_neuron_model_info(const nrt_model_t *model, open_neuron_model_info_t *info) {
  *info = {};
  info->name = model->graph->name.c_str();
  info->target = "trn2";
  info->compiler_version = "double";
  info->metrics_json = "{}";
  info->num_inputs = static_cast<uint32_t>(model->graph->inputs.size());
  info->num_outputs = static_cast<uint32_t>(model->graph->outputs.size());
  info->rng_increment = model->graph->rngIncrement;
  info->model_id = model->id;
  return NRT_SUCCESS;
}

NRT_STATUS open_neuron_model_input(const nrt_model_t *model, uint32_t index, open_neuron_variable_t *variable) {
  describe(model->graph->inputs.at(index), variable, NRT_TENSOR_USAGE_INPUT);
  return NRT_SUCCESS;
}

NRT_STATUS open_neuron_model_output(const nrt_model_t *model, uint32_t index, open_neuron_variable_t *variable) {
  describe(model->graph->outputs.at(index), variable, NRT_TENSOR_USAGE_OUTPUT);
  return NRT_SUCCESS;
}

NRT_STATUS open_neuron_enqueue(nrt_model_t *model, const void *const *inputs, void *const *outputs,
                               open_neuron_callback_t callback, void *user, nrta_seq_t *sequence) {
  if (owner != getpid())
    return fail(NRT_INVALID, "used after fork");
  Core &core = *cores().at(model->core);
  Item item;
  item.model = model;
  for (size_t i = 0; i < model->graph->inputs.size(); ++i)
    item.inputs.push_back(const_cast<void *>(inputs[i]));
  for (size_t i = 0; i < model->graph->outputs.size(); ++i)
    item.outputs.push_back(outputs[i]);
  item.callback = callback;
  item.user = user;
  {
    std::lock_guard<std::mutex> lock(core.mutex);
    item.sequence = ++core.sequence;
    if (sequence)
      *sequence = item.sequence;
    core.items.push_back(std::move(item));
  }
  core.work.notify_one();
  return NRT_SUCCESS;
}

NRT_STATUS open_neuron_cancel(uint32_t) { return NRT_SUCCESS; }
open_neuron_progress_t *open_neuron_progress_begin(uint32_t) { return nullptr; }
void open_neuron_progress_end(open_neuron_progress_t *) {}
NRT_STATUS open_neuron_set_check_mode(bool) { return NRT_SUCCESS; }
NRT_STATUS open_neuron_set_worker_threads(uint32_t) { return NRT_SUCCESS; }

NRT_STATUS open_neuron_model_timeline(nrt_model_t *model, uint64_t max_events,
                                      bool (*visit)(void *user, const open_neuron_event_t *event), void *user) {
  const int64_t end = 3000000 + model->graph->work * 10;
  open_neuron_event_t events[2] = {};
  events[0].end_ps = end / 2;
  events[0].kind = 1;
  events[0].bytes = 4096;
  events[0].opcode = "dma_copy";
  events[1].start_ps = end / 2;
  events[1].end_ps = end;
  events[1].engine = 2;
  events[1].opcode = "tensor_tensor";
  for (uint64_t i = 0; i < 2 && (max_events == 0 || i < max_events); ++i)
    if (!visit(user, &events[i]))
      break;
  return NRT_SUCCESS;
}

NRT_STATUS open_neuron_model_summary(nrt_model_t *, char **json) {
  *json = strdup("{\"double\": true}");
  return NRT_SUCCESS;
}
void open_neuron_free_text(char *text) { std::free(text); }

} // extern "C"

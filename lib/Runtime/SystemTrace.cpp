// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rings, and nrt_sys_trace.h.

#include "lib/Runtime/SystemTrace.h"

#include <cstdlib>
#include <cstring>

#include <nlohmann/json.hpp>

#include "lib/Runtime/Status.h"
#include "neuron/Support/Text.h"
#include "nrt/nrt_sys_trace.h"

using namespace neuroncore;
using namespace neuroncore::runtime;

struct nrt_sys_trace_config {
  SystemTraceOptions options;
};

struct nrt_sys_trace_fetch_options {
  uint64_t maxEventsPerCore = UINT64_MAX;
  int core = -1;
};

namespace neuroncore::runtime {

std::atomic<bool> SystemTrace::active_ = false;

bool SystemTraceOptions::setType(const std::string &type, bool enabled) {
  bool known = false;
  for (const EventType &candidate : kEventTypes)
    if (type == candidate.name || type == (candidate.isHardware ? "hardware" : "software")) {
      known = true;
      if (enabled)
        disabledTypes.erase(candidate.name);
      else
        disabledTypes.insert(candidate.name);
    }
  return known;
}

SystemTrace &SystemTrace::instance() {
  // Leaked: device threads may still deliver events while the process exits.
  static auto *trace = new SystemTrace;
  return *trace;
}

void SystemTrace::start(const SystemTraceOptions &options) {
  std::lock_guard lock(mutex_);
  options_ = options;
  rings_.clear();
  dropped_ = 0;
  active_.store(true);
}

void SystemTrace::stop() { active_.store(false); }

void SystemTrace::record(SystemEvent event) {
  std::lock_guard lock(mutex_);
  if (!active() || options_.disabledCores.count(uint32_t(event.core)) || options_.disabledTypes.count(event.type))
    return;
  std::deque<SystemEvent> &ring = rings_[event.core];
  ring.push_back(std::move(event));
  if (ring.size() > options_.maxEventsPerCore) {
    ring.pop_front();
    ++dropped_;
  }
}

std::vector<SystemEvent> SystemTrace::take(uint64_t perCore, int onlyCore) {
  std::lock_guard lock(mutex_);
  std::vector<SystemEvent> events;
  for (auto &[core, ring] : rings_) {
    if (onlyCore >= 0 && core != onlyCore)
      continue;
    for (uint64_t i = 0; i < perCore && !ring.empty(); ++i) {
      events.push_back(std::move(ring.front()));
      ring.pop_front();
    }
  }
  return events;
}

uint64_t SystemTrace::takeDropped() {
  std::lock_guard lock(mutex_);
  return std::exchange(dropped_, 0);
}

} // namespace neuroncore::runtime

namespace {

const char **listOf(const std::vector<std::string> &names, size_t *count) {
  auto **list = static_cast<const char **>(std::calloc(names.size() + 1, sizeof(char *)));
  for (size_t i = 0; list && i < names.size(); ++i)
    list[i] = strdup(names[i].c_str());
  *count = names.size();
  return list;
}

} // namespace

extern "C" {

NRT_STATUS nrt_sys_trace_config_allocate(nrt_sys_trace_config_t **config) {
  if (!config)
    return fail(NRT_INVALID, "the result pointer is null");
  *config = new nrt_sys_trace_config;
  return NRT_SUCCESS;
}

void nrt_sys_trace_config_set_defaults(nrt_sys_trace_config_t *config) {
  if (config)
    config->options = {};
}

void nrt_sys_trace_config_free(nrt_sys_trace_config_t *config) { delete config; }

NRT_STATUS nrt_sys_trace_config_set_max_events_per_nc(nrt_sys_trace_config_t *config, uint64_t events) {
  if (!config || events == 0)
    return fail(NRT_INVALID, "expected a configuration and at least one event per core");
  config->options.maxEventsPerCore = events;
  return NRT_SUCCESS;
}

NRT_STATUS nrt_sys_trace_config_set_capture_enabled_for_nc(nrt_sys_trace_config_t *config, uint32_t nc, bool enabled) {
  if (!config)
    return fail(NRT_INVALID, "the configuration is null");
  if (enabled)
    config->options.disabledCores.erase(nc);
  else
    config->options.disabledCores.insert(nc);
  return NRT_SUCCESS;
}

NRT_STATUS nrt_sys_trace_config_set_capture_enabled_for_event_type(nrt_sys_trace_config_t *config, const char *type,
                                                                   bool enabled) {
  if (!config || !type)
    return fail(NRT_INVALID, "the configuration or the type is null");
  if (!config->options.setType(type, enabled))
    return fail(NRT_INVALID, cat("expected an event type of nrt_sys_trace_get_event_types, 'hardware' or 'software' "
                                 "but got '",
                                 type, "'"));
  return NRT_SUCCESS;
}

NRT_STATUS nrt_sys_trace_config_get_enabled_event_types(const nrt_sys_trace_config_t *config, const char ***types,
                                                        size_t *count) {
  if (!config || !types || !count)
    return fail(NRT_INVALID, "the configuration or a result pointer is null");
  std::vector<std::string> names;
  for (const EventType &type : kEventTypes)
    if (!config->options.disabledTypes.count(type.name))
      names.push_back(type.name);
  *types = listOf(names, count);
  return NRT_SUCCESS;
}

NRT_STATUS nrt_sys_trace_get_event_types(const char ***types, size_t *count) {
  if (!types || !count)
    return fail(NRT_INVALID, "a result pointer is null");
  std::vector<std::string> names;
  for (const EventType &type : kEventTypes)
    names.push_back(type.name);
  *types = listOf(names, count);
  return NRT_SUCCESS;
}

void nrt_sys_trace_free_event_types(const char **types, size_t count) {
  for (size_t i = 0; types && i < count; ++i)
    std::free(const_cast<char *>(types[i]));
  std::free(types);
}

NRT_STATUS nrt_sys_trace_start(const nrt_sys_trace_config_t *config) {
  if (SystemTrace::active())
    return fail(NRT_INVALID, "a system trace is running already; stop it first");
  SystemTrace::instance().start(config ? config->options : SystemTraceOptions());
  return NRT_SUCCESS;
}

NRT_STATUS nrt_sys_trace_stop(void) {
  if (!SystemTrace::active())
    return fail(NRT_INVALID, "no system trace is running");
  SystemTrace::instance().stop();
  return NRT_SUCCESS;
}

NRT_STATUS nrt_sys_trace_fetch_options_allocate(nrt_sys_trace_fetch_options_t **options) {
  if (!options)
    return fail(NRT_INVALID, "the result pointer is null");
  *options = new nrt_sys_trace_fetch_options;
  return NRT_SUCCESS;
}

NRT_STATUS nrt_sys_trace_fetch_options_set_defaults(nrt_sys_trace_fetch_options_t *options) {
  if (!options)
    return fail(NRT_INVALID, "the options are null");
  *options = {};
  return NRT_SUCCESS;
}

NRT_STATUS nrt_sys_trace_fetch_options_free(nrt_sys_trace_fetch_options_t *options) {
  delete options;
  return NRT_SUCCESS;
}

NRT_STATUS nrt_sys_trace_fetch_options_set_max_events_per_nc(nrt_sys_trace_fetch_options_t *options, uint64_t events) {
  if (!options)
    return fail(NRT_INVALID, "the options are null");
  options->maxEventsPerCore = events;
  return NRT_SUCCESS;
}

NRT_STATUS nrt_sys_trace_fetch_options_set_nc_idx(nrt_sys_trace_fetch_options_t *options, uint32_t nc) {
  if (!options)
    return fail(NRT_INVALID, "the options are null");
  options->core = int(nc);
  return NRT_SUCCESS;
}

NRT_STATUS nrt_sys_trace_fetch_events(char **buffer, size_t *written, const nrt_sys_trace_fetch_options_t *options) {
  if (!buffer || !written)
    return fail(NRT_INVALID, "a result pointer is null");
  const nrt_sys_trace_fetch_options defaults;
  const nrt_sys_trace_fetch_options &wanted = options ? *options : defaults;
  nlohmann::json events = nlohmann::json::array();
  for (const SystemEvent &event : SystemTrace::instance().take(wanted.maxEventsPerCore, wanted.core)) {
    nlohmann::json data = {{"sequence", event.sequence}};
    if (event.modelId != 0)
      data.update({{"exec_id", event.executionId},
                   {"model_id", event.modelId},
                   {"model_name", event.modelName},
                   {"device_core_idx", event.core},
                   {"kernel_ns", event.kernelNs},
                   {"modelled", event.isHardware}});
    else
      data["size"] = event.bytes;
    for (const bool stop : {false, true})
      events.push_back({{"event_type", event.type},
                        {"nc_idx", event.core},
                        {"tracking_id", event.trackingId},
                        {"phase", stop ? "stop" : "start"},
                        {"timestamp_ns", stop ? event.endNs : event.startNs},
                        {"data", data}});
  }
  const nlohmann::json root = {{"events", std::move(events)},
                               {"dropped_events", SystemTrace::instance().takeDropped()}};
  const std::string text = root.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  *buffer = static_cast<char *>(std::malloc(text.size() + 1));
  if (!*buffer)
    return fail(NRT_RESOURCE, cat("cannot allocate ", text.size(), " bytes of events"));
  std::memcpy(*buffer, text.c_str(), text.size() + 1);
  *written = text.size();
  return NRT_SUCCESS;
}

void nrt_sys_trace_buffer_free(char *buffer) { std::free(buffer); }

} // extern "C"

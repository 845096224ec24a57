// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// nrt_profile.h.

#include "nrt/nrt_profile.h"

#include <cstdlib>
#include <cstring>

#include "lib/Runtime/Inspect.h"
#include "lib/Runtime/Status.h"
#include "neuron/Support/Text.h"

using namespace neuroncore;
using namespace neuroncore::runtime;

struct nrt_inspect_config {
  InspectOptions options;
};

struct nrt_profile_continuous_options {
  std::string directory = "./output";
};

namespace {

constexpr const char *kActivities[] = {"system_profile", "device_profile"};

NRT_STATUS noConfiguration() { return fail(NRT_INVALID, "the configuration is null"); }

} // namespace

extern "C" {

NRT_STATUS nrt_profile_start(nrt_model_t *model, const char *filename) {
  if (!model)
    return fail(NRT_INVALID_HANDLE, "the model is null");
  if (!filename || !*filename)
    return fail(NRT_INVALID, "the file name is empty");
  return Inspector::instance().beginModel(model, filename);
}

NRT_STATUS nrt_profile_stop(const char *filename) {
  if (!filename || !*filename)
    return fail(NRT_INVALID, "the file name is empty");
  return Inspector::instance().stopModel(filename);
}

NRT_STATUS nrt_profile_continuous_options_allocate(nrt_profile_continuous_options_t **options) {
  if (!options)
    return fail(NRT_INVALID, "the result pointer is null");
  *options = new nrt_profile_continuous_options;
  return NRT_SUCCESS;
}

NRT_STATUS nrt_profile_continuous_options_free(nrt_profile_continuous_options_t *options) {
  delete options;
  return NRT_SUCCESS;
}

NRT_STATUS nrt_profile_continuous_options_set_output_dir(nrt_profile_continuous_options_t *options,
                                                         const char *folder) {
  if (!options || !folder || !*folder)
    return fail(NRT_INVALID, "the options or the folder are missing");
  options->directory = folder;
  return NRT_SUCCESS;
}

NRT_STATUS nrt_profile_continuous_start(nrt_profile_continuous_options_t *options) {
  return Inspector::instance().beginContinuous(options ? options->directory : "./output");
}

NRT_STATUS nrt_profile_continuous_save(uint32_t vnc, nrt_profile_continuous_options_t *options) {
  return Inspector::instance().save(vnc, options ? options->directory : "");
}

NRT_STATUS nrt_profile_continuous_stop(void) { return Inspector::instance().stopContinuous(); }

NRT_STATUS nrt_inspect_config_allocate(nrt_inspect_config_t **config) {
  if (!config)
    return fail(NRT_INVALID, "the result pointer is null");
  *config = new nrt_inspect_config;
  return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_config_free(nrt_inspect_config_t *config) {
  delete config;
  return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_config_set_defaults(nrt_inspect_config_t *config) {
  if (!config)
    return noConfiguration();
  config->options = {};
  return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_config_set_session_id(nrt_inspect_config_t *config, int session) {
  if (!config || session < 0)
    return fail(NRT_INVALID, cat("expected a configuration and a session of at least 0 but got ", session));
  config->options.session = uint32_t(session);
  return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_config_set_output_dir(nrt_inspect_config_t *config, const char *folder) {
  if (!config || !folder || !*folder)
    return fail(NRT_INVALID, "the configuration or the folder is missing");
  config->options.outputDirectory = folder;
  return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_config_set_sys_trace_max_events_per_nc(nrt_inspect_config_t *config, uint64_t events) {
  if (!config || events == 0)
    return fail(NRT_INVALID, "expected a configuration and at least one event per core");
  config->options.trace.maxEventsPerCore = events;
  return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_config_set_capture_enabled_for_nc(nrt_inspect_config_t *config, uint32_t nc, bool enabled) {
  if (!config)
    return noConfiguration();
  if (enabled)
    config->options.trace.disabledCores.erase(nc);
  else
    config->options.trace.disabledCores.insert(nc);
  return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_config_set_capture_enabled_for_event_type_string(nrt_inspect_config_t *config, const char *type,
                                                                        bool enabled) {
  if (!config || !type)
    return fail(NRT_INVALID, "the configuration or the type is null");
  if (!config->options.trace.setType(type, enabled))
    return fail(NRT_INVALID, cat("unknown event type '", type, "'; nrt_sys_trace_get_event_types lists them"));
  return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_config_set_enable_inspect(nrt_inspect_config_t *config, bool enabled) {
  if (!config)
    return noConfiguration();
  config->options.deviceProfile = config->options.systemProfile = enabled;
  return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_config_set_enable_inspect_on_fail(nrt_inspect_config_t *config, bool enabled) {
  if (!config)
    return noConfiguration();
  if (enabled)
    return fail(NRT_INVALID, "captures that start at a failure are not supported; use the checked mode "
                             "(open_neuron_set_check_mode) to find its cause");
  return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_config_set_activity(nrt_inspect_config_t *config, const char *activity, bool enabled) {
  if (!config || !activity)
    return fail(NRT_INVALID, "the configuration or the activity is null");
  const std::string_view name = activity;
  if (name == "system_profile" || name == "all")
    config->options.systemProfile = enabled;
  if (name == "device_profile" || name == "all")
    config->options.deviceProfile = enabled;
  if (name == "host_memory" || name == "cpu_util")
    return enabled ? fail(NRT_INVALID, cat("activity '", activity,
                                           "' is sampled by torch.profiler captures only (NeuronConfig.modes)"))
                   : NRT_SUCCESS;
  if (name != "system_profile" && name != "device_profile" && name != "all")
    return fail(NRT_INVALID, cat("expected system_profile, device_profile or all but got '", activity, "'"));
  return NRT_SUCCESS;
}

static NRT_STATUS activities(bool system, bool device, const char ***types, size_t *count) {
  if (!types || !count)
    return fail(NRT_INVALID, "a result pointer is null");
  *types = static_cast<const char **>(std::calloc(3, sizeof(char *)));
  *count = 0;
  if (!*types)
    return fail(NRT_RESOURCE, "cannot allocate the list");
  if (system)
    (*types)[(*count)++] = strdup(kActivities[0]);
  if (device)
    (*types)[(*count)++] = strdup(kActivities[1]);
  return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_config_get_all_activity_types(const char ***types, size_t *count) {
  return activities(true, true, types, count);
}

NRT_STATUS nrt_inspect_config_get_enabled_activity_types(const nrt_inspect_config_t *config, const char ***types,
                                                         size_t *count) {
  if (!config)
    return noConfiguration();
  return activities(config->options.systemProfile, config->options.deviceProfile, types, count);
}

NRT_STATUS nrt_inspect_config_free_activity_types(const char **types, size_t count) {
  for (size_t i = 0; types && i < count; ++i)
    std::free(const_cast<char *>(types[i]));
  std::free(types);
  return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_begin(void) {
  bool enabled = false;
  Expected<InspectOptions> options = InspectOptions::fromEnvironment(enabled);
  if (!options)
    return fail(options.error());
  return Inspector::instance().begin(*options);
}

NRT_STATUS nrt_inspect_begin_with_options(const nrt_inspect_config_t *config) {
  return Inspector::instance().begin(config ? config->options : InspectOptions());
}

NRT_STATUS nrt_inspect_stop(void) { return Inspector::instance().stop(); }

} // extern "C"

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Capture of device and system profiles. Files are those of docs/Profiling.md; device times are modelled.

#ifndef NRT_NRT_PROFILE_H
#define NRT_NRT_PROFILE_H

#include <stdbool.h>

#include "nrt/nrt.h"

#ifdef __cplusplus
extern "C" {
#endif

/// From now on executions of the model are recorded; nrt_profile_stop with the same name writes them (an existing file
/// is replaced). One model at a time.
NRT_STATUS nrt_profile_start(nrt_model_t *model, const char *filename);
NRT_STATUS nrt_profile_stop(const char *filename);

// ---------------------------------------------------------------------------------------------------------------------
// Continuous: all models of all cores, saved on demand
// ---------------------------------------------------------------------------------------------------------------------

typedef struct nrt_profile_continuous_options nrt_profile_continuous_options_t;

NRT_STATUS nrt_profile_continuous_options_allocate(nrt_profile_continuous_options_t **options);
NRT_STATUS nrt_profile_continuous_options_free(nrt_profile_continuous_options_t *options);
NRT_STATUS nrt_profile_continuous_options_set_output_dir(nrt_profile_continuous_options_t *options, const char *folder);
NRT_STATUS nrt_profile_continuous_start(nrt_profile_continuous_options_t *options);
/// Writes what ran on core `vnc` since the start or the last save.
NRT_STATUS nrt_profile_continuous_save(uint32_t vnc, nrt_profile_continuous_options_t *options);
NRT_STATUS nrt_profile_continuous_stop(void);

// ---------------------------------------------------------------------------------------------------------------------
// Inspect: a session folder
// ---------------------------------------------------------------------------------------------------------------------

typedef struct nrt_inspect_config nrt_inspect_config_t;

NRT_STATUS nrt_inspect_config_allocate(nrt_inspect_config_t **config);
NRT_STATUS nrt_inspect_config_free(nrt_inspect_config_t *config);
/// Session 1, "./output", all activities, cores and events, inspect off, on-fail off.
NRT_STATUS nrt_inspect_config_set_defaults(nrt_inspect_config_t *config);
NRT_STATUS nrt_inspect_config_set_session_id(nrt_inspect_config_t *config, int session);
NRT_STATUS nrt_inspect_config_set_output_dir(nrt_inspect_config_t *config, const char *folder);
NRT_STATUS nrt_inspect_config_set_sys_trace_max_events_per_nc(nrt_inspect_config_t *config, uint64_t events);
NRT_STATUS nrt_inspect_config_set_capture_enabled_for_nc(nrt_inspect_config_t *config, uint32_t nc, bool enabled);
NRT_STATUS nrt_inspect_config_set_capture_enabled_for_event_type_string(nrt_inspect_config_t *config, const char *type,
                                                                        bool enabled);
NRT_STATUS nrt_inspect_config_set_enable_inspect(nrt_inspect_config_t *config, bool enabled);
NRT_STATUS nrt_inspect_config_set_enable_inspect_on_fail(nrt_inspect_config_t *config, bool enabled);
/// "system_profile", "device_profile", "host_memory", "cpu_util" or "all".
NRT_STATUS nrt_inspect_config_set_activity(nrt_inspect_config_t *config, const char *activity, bool enabled);
NRT_STATUS nrt_inspect_config_get_all_activity_types(const char ***types, size_t *count);
NRT_STATUS nrt_inspect_config_get_enabled_activity_types(const nrt_inspect_config_t *config, const char ***types,
                                                         size_t *count);
NRT_STATUS nrt_inspect_config_free_activity_types(const char **types, size_t count);

/// With the settings of the environment (NEURON_RT_INSPECT_*).
NRT_STATUS nrt_inspect_begin(void);
/// With `config`, or the defaults when it is NULL; the environment is ignored.
NRT_STATUS nrt_inspect_begin_with_options(const nrt_inspect_config_t *config);
/// Waits for all cores and writes the session folder.
NRT_STATUS nrt_inspect_stop(void);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // NRT_NRT_PROFILE_H

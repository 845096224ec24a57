// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The system trace: what the runtime did and when, in a ring per core, fetched as JSON.

#ifndef NRT_NRT_SYS_TRACE_H
#define NRT_NRT_SYS_TRACE_H

#include <stdbool.h>

#include "nrt/nrt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nrt_sys_trace_config nrt_sys_trace_config_t;
typedef struct nrt_sys_trace_fetch_options nrt_sys_trace_fetch_options_t;

NRT_STATUS nrt_sys_trace_config_allocate(nrt_sys_trace_config_t **config);
void nrt_sys_trace_config_set_defaults(nrt_sys_trace_config_t *config);
void nrt_sys_trace_config_free(nrt_sys_trace_config_t *config);
NRT_STATUS nrt_sys_trace_config_set_max_events_per_nc(nrt_sys_trace_config_t *config, uint64_t events);
NRT_STATUS nrt_sys_trace_config_set_capture_enabled_for_nc(nrt_sys_trace_config_t *config, uint32_t nc, bool enabled);
/// A type, or a group: "hardware", "software".
NRT_STATUS nrt_sys_trace_config_set_capture_enabled_for_event_type(nrt_sys_trace_config_t *config, const char *type,
                                                                   bool enabled);
NRT_STATUS nrt_sys_trace_config_get_enabled_event_types(const nrt_sys_trace_config_t *config, const char ***types,
                                                        size_t *count);
NRT_STATUS nrt_sys_trace_get_event_types(const char ***types, size_t *count);
void nrt_sys_trace_free_event_types(const char **types, size_t count);

NRT_STATUS nrt_sys_trace_start(const nrt_sys_trace_config_t *config);
NRT_STATUS nrt_sys_trace_stop(void);

NRT_STATUS nrt_sys_trace_fetch_options_allocate(nrt_sys_trace_fetch_options_t **options);
NRT_STATUS nrt_sys_trace_fetch_options_set_defaults(nrt_sys_trace_fetch_options_t *options);
NRT_STATUS nrt_sys_trace_fetch_options_free(nrt_sys_trace_fetch_options_t *options);
NRT_STATUS nrt_sys_trace_fetch_options_set_max_events_per_nc(nrt_sys_trace_fetch_options_t *options, uint64_t events);
NRT_STATUS nrt_sys_trace_fetch_options_set_nc_idx(nrt_sys_trace_fetch_options_t *options, uint32_t nc);
/// {"events": [{event_type, nc_idx, tracking_id, phase: "start" or "stop", timestamp_ns, data}], "dropped_events": n}.
/// Each event is given once. `options` may be NULL.
NRT_STATUS nrt_sys_trace_fetch_events(char **buffer, size_t *written, const nrt_sys_trace_fetch_options_t *options);
void nrt_sys_trace_buffer_free(char *buffer);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // NRT_NRT_SYS_TRACE_H

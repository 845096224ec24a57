// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What this runtime offers beyond the public interface: error texts, raw device memory, loading without a copy, a
// low-overhead queue with completion callbacks, modelled times, timelines and the checked mode. A core has one queue;
// everything enqueued on it, through whatever interface, runs in order on the core's device thread.

#ifndef NRT_OPEN_NEURON_H
#define NRT_OPEN_NEURON_H

#include "nrt/nrt_async.h"
#include "nrt/nrt_experimental.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The text that belongs to the last non-success status returned to the calling thread; "" if there was none. Valid
/// until the thread's next call into the library.
const char *open_neuron_last_error(void);

/// An index out of range that an execution read.
typedef struct {
  /// Of the instruction, for open_neuron_model_debug_record; 0: it has none.
  uint32_t debug_id;
  /// The dimension that the index belongs to, or -1 if the program has only one index there.
  int32_t dimension;
  int64_t index;
} open_neuron_index_fault_t;

/// For the callback of an execution that failed with NRT_EXEC_OOB; NRT_INVALID if its error is another one.
NRT_STATUS open_neuron_last_index_fault(open_neuron_index_fault_t *fault);

/// NRT_SUCCESS between nrt_init and nrt_close in the process that called nrt_init; NRT_INVALID in a forked child (with
/// a text that says to use the spawn start method).
NRT_STATUS open_neuron_runtime_state(void);

/// The modelled device: "trn1", "trn2" or "trn3", and bytes of HBM per core.
const char *open_neuron_target(void);
uint64_t open_neuron_memory_bytes(void);

// ---------------------------------------------------------------------------------------------------------------------
// Device memory
// ---------------------------------------------------------------------------------------------------------------------

/// Memory of core `vnc`, counted against its HBM; at least 64-byte aligned. NRT_RESOURCE when it is exhausted.
NRT_STATUS open_neuron_memory_allocate(uint32_t vnc, size_t size, void **memory);
/// Frees at once: the caller has made sure that no queued work uses the memory.
NRT_STATUS open_neuron_memory_free(uint32_t vnc, void *memory);

// ---------------------------------------------------------------------------------------------------------------------
// Models
// ---------------------------------------------------------------------------------------------------------------------

typedef enum {
  /// The caller promises that the bytes stay valid and unchanged until nrt_unload, so that the runtime need not copy.
  OPEN_NEURON_LOAD_BORROW_BYTES = 1,
} open_neuron_load_flags_t;

NRT_STATUS open_neuron_load(const void *neff_bytes, size_t size, uint32_t vnc, uint32_t flags, nrt_model_t **model);

typedef enum {
  OPEN_NEURON_ROLE_TENSOR = 0,
  OPEN_NEURON_ROLE_PARAMETERS = 1,
  OPEN_NEURON_ROLE_RNG_STATE = 2,
} open_neuron_role_t;

/// One bindable variable. Pointers belong to the model.
typedef struct {
  const char *name;
  nrt_tensor_usage_t usage;
  open_neuron_role_t role;
  /// Code of the dtype in the instruction set (docs/Encoding.md), which knows more types than nrt_dtype_t.
  uint32_t dtype_code;
  const char *dtype_name;
  uint32_t ndim;
  const int64_t *shape;
  /// In elements; NULL for row-major contiguous.
  const int64_t *strides;
  uint64_t bytes;
  /// Outputs: position among the inputs of the input whose memory this output is, or -1.
  int32_t alias_of_input;
} open_neuron_variable_t;

typedef struct {
  const char *name;
  const char *target;
  const char *compiler_version;
  /// Compile statistics and options as JSON text.
  const char *metrics_json;
  uint32_t num_inputs;
  uint32_t num_outputs;
  /// By how much one execution advances the random generator's offset.
  int64_t rng_increment;
  /// HBM that the loaded model holds (constants and scratch).
  uint64_t device_bytes;
  uint64_t instructions;
  /// Distinguishes loaded models of this process.
  uint64_t model_id;
} open_neuron_model_info_t;

NRT_STATUS open_neuron_model_info(const nrt_model_t *model, open_neuron_model_info_t *info);
NRT_STATUS open_neuron_model_input(const nrt_model_t *model, uint32_t index, open_neuron_variable_t *variable);
NRT_STATUS open_neuron_model_output(const nrt_model_t *model, uint32_t index, open_neuron_variable_t *variable);

/// Provenance of instructions: record `debug_id` (1-based) of the NEFF. Pointers belong to the model.
typedef struct {
  const char *kernel;
  const char *op;
  uint32_t num_nodes;
  const uint32_t *nodes;
} open_neuron_debug_record_t;

NRT_STATUS open_neuron_model_debug_record(const nrt_model_t *model, uint32_t debug_id,
                                          open_neuron_debug_record_t *record);

// ---------------------------------------------------------------------------------------------------------------------
// Queue
// ---------------------------------------------------------------------------------------------------------------------

/// Times of one execution, in ns. kernel_ns is *modelled* (docs/MachineModel.md): first instruction to last DMA
/// completion. One execution takes kernel_ns plus one of the two overheads, depending on whether a device capture is
/// on.
typedef struct {
  uint64_t kernel_ns;
  uint64_t overhead_ns;
  uint64_t capture_overhead_ns;
  /// On the core's virtual clock, whose origin is that of CLOCK_MONOTONIC: an execution starts when it was enqueued or
  /// when its predecessor ended, whichever is later, and lasts kernel_ns plus the overhead in force.
  uint64_t virtual_start_ns;
  uint64_t virtual_end_ns;
  /// CLOCK_MONOTONIC around the emulation itself.
  uint64_t host_start_ns;
  uint64_t host_end_ns;
  uint64_t sequence;
} open_neuron_timing_t;

/// Called on the device thread; must not block and must not call into the library, except open_neuron_last_error and
/// open_neuron_last_index_fault, which then tell what went wrong with the execution, and
/// open_neuron_model_debug_record. `timing` is NULL for work without modelled time.
typedef void (*open_neuron_callback_t)(void *user, NRT_STATUS status, const open_neuron_timing_t *timing);

/// Queues one execution. `inputs` and `outputs` are in the order of open_neuron_model_input / _output (the arrays may
/// be reused on return); an aliased output's entry is NULL or its input's pointer. `callback` and `sequence` may be
/// NULL.
NRT_STATUS open_neuron_enqueue(nrt_model_t *model, const void *const *inputs, void *const *outputs,
                               open_neuron_callback_t callback, void *user, nrta_seq_t *sequence);
/// In order with executions; the ranges must not overlap.
NRT_STATUS open_neuron_enqueue_copy(uint32_t vnc, void *dst, const void *src, size_t size,
                                    open_neuron_callback_t callback, void *user, nrta_seq_t *sequence);
NRT_STATUS open_neuron_enqueue_memset(uint32_t vnc, void *dst, int value, size_t size, open_neuron_callback_t callback,
                                      void *user, nrta_seq_t *sequence);
/// A marker: `callback` runs when everything before it is done (events, deferred frees).
NRT_STATUS open_neuron_enqueue_marker(uint32_t vnc, open_neuron_callback_t callback, void *user, nrta_seq_t *sequence);

/// Waits for one piece of work, or for all of a core's. The status is that of the first failure on the core that no
/// wait has reported yet, with its text in open_neuron_last_error; the queue goes on after a failure.
NRT_STATUS open_neuron_wait(nrta_seq_t sequence);
NRT_STATUS open_neuron_synchronize(uint32_t vnc);

/// For callers that have waited for a second by other means than the functions above, which do the same: shows on a
/// terminal how far the core is (TORCH_NEURONX_PROGRESS), until it is ended. NULL if the core does not exist.
typedef struct open_neuron_progress open_neuron_progress_t;
open_neuron_progress_t *open_neuron_progress_begin(uint32_t vnc);
void open_neuron_progress_end(open_neuron_progress_t *progress);

/// Stops the execution that runs on a core and drops those that wait, for a process that is about to end; returns when
/// the queue is empty. Each completes with a failure, and what it was to write has no defined value. Copies still run.
NRT_STATUS open_neuron_cancel(uint32_t vnc);

// ---------------------------------------------------------------------------------------------------------------------
// Modes, times and timelines
// ---------------------------------------------------------------------------------------------------------------------

/// Checked mode for executions enqueued from now on: the static check of each model (once per path through it). A
/// hazard fails the execution with NRT_EXEC_COMPLETED_WITH_ERR.
NRT_STATUS open_neuron_set_check_mode(bool enabled);
/// Host threads that share one instruction's work, per core; 0 = decide from the machine. Bits do not depend on it.
NRT_STATUS open_neuron_set_worker_threads(uint32_t threads);
/// Whether virtual clocks use the overhead of a device capture.
NRT_STATUS open_neuron_set_device_capture(bool enabled);

/// Modelled times of a model without running it (models whose time does not depend on data; otherwise those of the
/// latest execution, NRT_FAILURE before the first). sequence and host times are 0.
NRT_STATUS open_neuron_model_timing(nrt_model_t *model, open_neuron_timing_t *timing);

/// One interval of the modelled timeline; times in ps from the kernel's start.
typedef struct {
  int64_t start_ps;
  int64_t end_ps;
  /// Time the instruction waited for semaphores before it started.
  int64_t wait_ps;
  /// 0 instruction of an engine, 1 transfer on one DMA engine.
  uint32_t kind;
  /// kind 0: engine code of the instruction set; kind 1: DMA engine number.
  uint32_t engine;
  uint32_t queue;
  uint32_t stream; /* engine code of the stream that holds the instruction */
  uint32_t pc;     /* instruction index in that stream */
  uint32_t debug_id;
  uint64_t bytes;
  const char *opcode; /* static storage */
  uint32_t run;       /* which run of the program's units it belongs to; 0 in a program of one run */
} open_neuron_event_t;

/// Expands the latest timeline of the model in start order; calls `visit` until it returns false. Loops are expanded;
/// `max_events` bounds the number (0 = all).
NRT_STATUS open_neuron_model_timeline(nrt_model_t *model, uint64_t max_events,
                                      bool (*visit)(void *user, const open_neuron_event_t *event), void *user);

/// Summary of the modelled execution as JSON text (busy, wait and idle time per engine, DMA bytes, limiter). Free with
/// open_neuron_free_text.
NRT_STATUS open_neuron_model_summary(nrt_model_t *model, char **json);
void open_neuron_free_text(char *text);

/// The latest timeline of the model with what each event waited for, as a serialized ProgramTimeline message (the
/// schema of .ntff files; without the hash and the label, which the caller adds). Free with open_neuron_free_text.
NRT_STATUS open_neuron_model_trace(nrt_model_t *model, char **bytes, size_t *size);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // NRT_OPEN_NEURON_H

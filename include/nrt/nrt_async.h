// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The explicitly asynchronous interface: schedule work, get a sequence number, ask for completion. Here all units of a
// core share one device thread, so work completes in the order it was scheduled on the core.

#ifndef NRT_NRT_ASYNC_H
#define NRT_NRT_ASYNC_H

#include "nrt/nrt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  NRTA_XU_TENSOR_READ = 0,
  NRTA_XU_TENSOR_WRITE = 1,
  NRTA_XU_TENSOR_OP = 2,
  NRTA_XU_COMPUTE = 3,
  NRTA_XU_COLLECTIVES = 4,
  NRTA_XU_TYPE_NUM = 5
} nrta_xu_t;

/// Top 16 bits: execution unit; low 48 bits: a number that grows strictly within the unit.
typedef uint64_t nrta_seq_t;
typedef uint16_t nrta_xu_id_t;

#define NRTA_SEQ_NUM_MAX ((1ULL << 48) - 1)
#define NRTA_SEQ_NUM_MASK NRTA_SEQ_NUM_MAX
#define NRTA_SEQ_GET_SEQ_NUM(seq) ((seq) & NRTA_SEQ_NUM_MASK)
#define NRTA_SEQ_GET_XU_ID(seq) ((nrta_xu_id_t)((seq) >> 48))

typedef struct {
  nrta_seq_t seq_id;
  uint64_t error_code;
} nrta_error_t;

typedef struct nrta_error_tracker nrta_error_tracker_t;

/// Buffers and tensors stay alive until completion; results are defined only after completion was observed.
/// `err` may be NULL.
NRT_STATUS nrta_tensor_write(nrt_tensor_t *tensor, const void *buf, uint64_t offset, uint64_t size, int queue,
                             nrta_error_tracker_t *err, nrta_seq_t *req_sequence);
NRT_STATUS nrta_tensor_read(void *buf, nrt_tensor_t *tensor, uint64_t offset, uint64_t size, int queue,
                            nrta_error_tracker_t *err, nrta_seq_t *req_sequence);
NRT_STATUS nrta_tensor_copy(nrt_tensor_t *src, uint64_t src_offset, nrt_tensor_t *dst, uint64_t dst_offset,
                            uint64_t size, int queue, nrta_error_tracker_t *err, nrta_seq_t *req_sequence);
NRT_STATUS nrta_execute_schedule(nrt_model_t *model, const nrt_tensor_set_t *input, nrt_tensor_set_t *output, int queue,
                                 nrta_error_tracker_t *err, nrta_seq_t *req_sequence);

NRT_STATUS nrta_is_completed(nrta_seq_t seq, bool *is_completed);
/// The last completed number of a unit.
NRT_STATUS nrta_get_sequence(uint32_t lnc, nrta_xu_t xu, int queue, nrta_seq_t *seq);
/// A file descriptor that becomes readable when `seq` completes; only poll and close it.
NRT_STATUS nrta_get_completion_handle(nrta_seq_t seq, int *fd);

NRT_STATUS nrta_error_tracker_create(uint32_t lnc_idx, nrta_error_tracker_t **error_tracker);
NRT_STATUS nrta_error_tracker_destroy(nrta_error_tracker_t *error_tracker);
/// The list stays valid until the next call on this tracker.
NRT_STATUS nrta_error_tracker_get_list(nrta_error_tracker_t *error_tracker, const nrta_error_t **error_list,
                                       size_t *error_count);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // NRT_NRT_ASYNC_H

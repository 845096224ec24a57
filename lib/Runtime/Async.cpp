// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// nrt_async.h: scheduling, sequence numbers, completion handles, error trackers.

#include "nrt/nrt_async.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/Runtime/Execute.h"
#include "lib/Runtime/Model.h"
#include "lib/Runtime/State.h"
#include "lib/Runtime/Status.h"
#include "lib/Runtime/Tensor.h"
#include "neuron/Support/Text.h"

using namespace neuroncore;
using namespace neuroncore::runtime;

struct nrta_error_tracker {
  std::shared_ptr<ErrorTracker> state = std::make_shared<ErrorTracker>();
  std::vector<nrta_error_t> list; // what the last get_list returned
};

namespace {

/// Tensor operations have two queues per core.
constexpr int kTensorQueues = 2;

NRT_STATUS checkQueue(int queue, int count) {
  if (queue >= 0 && queue < count)
    return NRT_SUCCESS;
  return fail(NRT_INVALID, cat("expected a queue below ", count, " but got ", queue));
}

NRT_STATUS checkBytes(const nrt_tensor_t *tensor, uint64_t offset, uint64_t size) {
  if (!tensor)
    return fail(NRT_INVALID_HANDLE, "the tensor is null");
  if (!tensor->storage || offset > tensor->size || size > tensor->size - offset)
    return fail(NRT_INVALID, cat("bytes [", offset, ", ", offset, " + ", size, ") are outside tensor '", tensor->name,
                                 "' of ", tensor->size, " bytes"));
  return NRT_SUCCESS;
}

/// Queues a copy on the core of one of the tensors (host tensors: the first visible core).
NRT_STATUS scheduleCopy(nrta_xu_t unit, void *dst, const void *src, uint64_t size, int queue, const nrt_tensor_t *a,
                        const nrt_tensor_t *b, nrta_error_tracker_t *err, nrta_seq_t *sequence) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  if (!sequence)
    return fail(NRT_INVALID, "the sequence pointer is null");
  if (status = checkQueue(queue, kTensorQueues); status != NRT_SUCCESS)
    return status;
  Device *device = a->device();
  if (!device && b)
    device = b->device();
  if (!device)
    device = state->devices.front().get();
  Task task;
  task.kind = Task::Kind::Copy;
  task.unit = unit;
  task.queue = queue;
  task.dst = dst;
  task.src = src;
  task.size = size;
  task.storage.push_back(a->storage);
  if (b)
    task.storage.push_back(b->storage);
  if (err)
    task.tracker = err->state;
  return device->enqueue(std::move(task), sequence);
}

/// The device and unit of a sequence number; null if it was never given out.
Device *deviceOfSequence(State &state, nrta_seq_t sequence, int &unit, NRT_STATUS &status) {
  const int id = NRTA_SEQ_GET_XU_ID(sequence);
  unit = id % kUnitsPerCore;
  const size_t core = size_t(id / kUnitsPerCore);
  if (core >= state.devices.size() || !state.devices[core]->isKnown(unit, NRTA_SEQ_GET_SEQ_NUM(sequence))) {
    status = fail(NRT_INVALID, cat("sequence ", sequence, " was never scheduled"));
    return nullptr;
  }
  return state.devices[core].get();
}

} // namespace

extern "C" {

NRT_STATUS nrta_tensor_write(nrt_tensor_t *tensor, const void *buf, uint64_t offset, uint64_t size, int queue,
                             nrta_error_tracker_t *err, nrta_seq_t *req_sequence) {
  if (const NRT_STATUS status = checkBytes(tensor, offset, size); status != NRT_SUCCESS)
    return status;
  return scheduleCopy(NRTA_XU_TENSOR_WRITE, tensor->data() + offset, buf, size, queue, tensor, nullptr, err,
                      req_sequence);
}

NRT_STATUS nrta_tensor_read(void *buf, nrt_tensor_t *tensor, uint64_t offset, uint64_t size, int queue,
                            nrta_error_tracker_t *err, nrta_seq_t *req_sequence) {
  if (const NRT_STATUS status = checkBytes(tensor, offset, size); status != NRT_SUCCESS)
    return status;
  return scheduleCopy(NRTA_XU_TENSOR_READ, buf, tensor->data() + offset, size, queue, tensor, nullptr, err,
                      req_sequence);
}

NRT_STATUS nrta_tensor_copy(nrt_tensor_t *src, uint64_t src_offset, nrt_tensor_t *dst, uint64_t dst_offset,
                            uint64_t size, int queue, nrta_error_tracker_t *err, nrta_seq_t *req_sequence) {
  if (const NRT_STATUS status = checkBytes(src, src_offset, size); status != NRT_SUCCESS)
    return status;
  if (const NRT_STATUS status = checkBytes(dst, dst_offset, size); status != NRT_SUCCESS)
    return status;
  if (src->device() && dst->device() && src->device() != dst->device())
    return fail(NRT_INVALID, cat("tensor '", src->name, "' is on core ", src->device()->index(), " and '", dst->name,
                                 "' on core ", dst->device()->index(), "; copy through the host"));
  return scheduleCopy(NRTA_XU_TENSOR_OP, dst->data() + dst_offset, src->data() + src_offset, size, queue, src, dst, err,
                      req_sequence);
}

NRT_STATUS nrta_execute_schedule(nrt_model_t *model, const nrt_tensor_set_t *input, nrt_tensor_set_t *output, int queue,
                                 nrta_error_tracker_t *err, nrta_seq_t *req_sequence) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  if (!req_sequence)
    return fail(NRT_INVALID, "the sequence pointer is null");
  if (status = checkQueue(queue, 1); status != NRT_SUCCESS)
    return status;
  Task task;
  if (status = executionTask(*state, model, input, output, task); status != NRT_SUCCESS)
    return status;
  if (err)
    task.tracker = err->state;
  return model->device->enqueue(std::move(task), req_sequence);
}

NRT_STATUS nrta_is_completed(nrta_seq_t seq, bool *is_completed) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  if (!is_completed)
    return fail(NRT_INVALID, "the result pointer is null");
  int unit;
  Device *device = deviceOfSequence(*state, seq, unit, status);
  if (!device)
    return status;
  *is_completed = device->isCompleted(unit, NRTA_SEQ_GET_SEQ_NUM(seq));
  return NRT_SUCCESS;
}

NRT_STATUS nrta_get_sequence(uint32_t lnc, nrta_xu_t xu, int queue, nrta_seq_t *seq) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  Device *device = deviceOf(*state, lnc, status);
  if (!device)
    return status;
  if (!seq || int(xu) < 0 || xu >= NRTA_XU_TYPE_NUM || queue < 0 || queue >= kQueuesPerUnit)
    return fail(NRT_INVALID, "no such execution unit");
  const int unit = unitOf(xu, queue);
  *seq = device->sequenceOf(unit, device->lastCompleted(unit));
  return NRT_SUCCESS;
}

NRT_STATUS nrta_get_completion_handle(nrta_seq_t seq, int *fd) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  if (!fd)
    return fail(NRT_INVALID, "the result pointer is null");
  int unit;
  Device *device = deviceOfSequence(*state, seq, unit, status);
  if (!device)
    return status;
  const int handle = eventfd(0, EFD_CLOEXEC);
  const int own = handle < 0 ? -1 : dup(handle);
  if (own < 0) {
    if (handle >= 0)
      close(handle);
    return fail(NRT_RESOURCE, "cannot create an eventfd");
  }
  device->notifyWhenCompleted(unit, NRTA_SEQ_GET_SEQ_NUM(seq), own);
  *fd = handle;
  return NRT_SUCCESS;
}

NRT_STATUS nrta_error_tracker_create(uint32_t lnc_idx, nrta_error_tracker_t **error_tracker) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  if (!deviceOf(*state, lnc_idx, status))
    return status;
  if (!error_tracker)
    return fail(NRT_INVALID, "the result pointer is null");
  *error_tracker = new nrta_error_tracker;
  return NRT_SUCCESS;
}

NRT_STATUS nrta_error_tracker_destroy(nrta_error_tracker_t *error_tracker) {
  delete error_tracker;
  return NRT_SUCCESS;
}

NRT_STATUS nrta_error_tracker_get_list(nrta_error_tracker_t *error_tracker, const nrta_error_t **error_list,
                                       size_t *error_count) {
  if (!error_tracker || !error_list || !error_count)
    return fail(NRT_INVALID, "the tracker or a result pointer is null");
  std::lock_guard lock(error_tracker->state->mutex);
  error_tracker->list = error_tracker->state->errors;
  *error_list = error_tracker->list.data();
  *error_count = error_tracker->list.size();
  return NRT_SUCCESS;
}

} // extern "C"

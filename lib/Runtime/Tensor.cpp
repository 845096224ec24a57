// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// nrt_tensor_* and tensor sets. Synchronous access to a device tensor first waits for the work that is queued on its
// core.

#include "lib/Runtime/Tensor.h"

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "lib/Runtime/State.h"
#include "lib/Runtime/Status.h"
#include "neuron/Support/Text.h"

using namespace neuroncore;
using namespace neuroncore::runtime;

namespace neuroncore::runtime {

Storage::~Storage() {
  if (!isOwned)
    return;
  if (device)
    device->memory().free(memory);
  else
    std::free(memory);
}

void TensorCompletion::increment() {
  {
    std::lock_guard lock(mutex_);
    ++count_;
  }
  changed_.notify_all();
}

void TensorCompletion::reset() {
  std::lock_guard lock(mutex_);
  count_ = 0;
}

bool TensorCompletion::waitFor(uint64_t count, int64_t timeoutUs) {
  std::unique_lock lock(mutex_);
  const auto reached = [&] { return count_ >= count; };
  if (timeoutUs < 0) {
    changed_.wait(lock, reached);
    return true;
  }
  return changed_.wait_for(lock, std::chrono::microseconds(timeoutUs), reached);
}

namespace {

void registerTensor(State &state, nrt_tensor *tensor) {
  std::lock_guard lock(state.mutex);
  state.tensors.insert(tensor);
}

NRT_STATUS checkRange(const nrt_tensor *tensor, uint64_t offset, uint64_t size) {
  if (!tensor)
    return fail(NRT_INVALID_HANDLE, "the tensor is null");
  if (!tensor->storage && size != 0)
    return fail(NRT_INVALID, cat("tensor '", tensor->name, "' has no storage"));
  if (offset > tensor->size || size > tensor->size - offset)
    return fail(NRT_INVALID, cat("bytes [", offset, ", ", offset, " + ", size, ") are outside tensor '", tensor->name,
                                 "' of ", tensor->size, " bytes"));
  return NRT_SUCCESS;
}

void waitForQueue(const nrt_tensor *tensor) {
  if (Device *device = tensor->device())
    device->waitIdle();
}

NRT_STATUS readTensor(const nrt_tensor *tensor, void *buffer, uint64_t offset, uint64_t size) {
  if (const NRT_STATUS status = checkRange(tensor, offset, size); status != NRT_SUCCESS)
    return status;
  if (size != 0)
    std::memcpy(buffer, tensor->data() + offset, size);
  return NRT_SUCCESS;
}

NRT_STATUS writeTensor(const nrt_tensor *tensor, const void *buffer, uint64_t offset, uint64_t size) {
  if (const NRT_STATUS status = checkRange(tensor, offset, size); status != NRT_SUCCESS)
    return status;
  if (size != 0)
    std::memcpy(tensor->data() + offset, buffer, size);
  return NRT_SUCCESS;
}

} // namespace
} // namespace neuroncore::runtime

extern "C" {

NRT_STATUS nrt_tensor_allocate(nrt_tensor_placement_t placement, int vnc, size_t size, const char *name,
                               nrt_tensor_t **tensor) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  if (!tensor)
    return fail(NRT_INVALID, "the result pointer is null");
  auto storage = std::make_shared<Storage>();
  storage->size = size;
  if (placement == NRT_TENSOR_PLACEMENT_DEVICE) {
    Device *device = deviceOf(*state, vnc, status);
    if (!device)
      return status;
    Expected<void *> memory = device->memory().allocate(size);
    if (!memory)
      return fail(memory.error());
    storage->device = device;
    storage->memory = static_cast<uint8_t *>(*memory);
  } else {
    storage->memory = static_cast<uint8_t *>(std::aligned_alloc(64, (size + 127) / 64 * 64));
    if (!storage->memory)
      return fail(NRT_RESOURCE, cat("cannot allocate ", size, " bytes of host memory"));
  }
  storage->isOwned = true;
  auto created = new nrt_tensor;
  created->name = name ? name : "";
  created->placement = placement;
  created->storage = std::move(storage);
  created->size = size;
  registerTensor(*state, created);
  *tensor = created;
  return NRT_SUCCESS;
}

NRT_STATUS nrt_tensor_allocate_empty(const char *name, nrt_tensor_t **tensor) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  if (!tensor)
    return fail(NRT_INVALID, "the result pointer is null");
  auto created = new nrt_tensor;
  created->name = name ? name : "";
  registerTensor(*state, created);
  *tensor = created;
  return NRT_SUCCESS;
}

NRT_STATUS nrt_tensor_attach_buffer(nrt_tensor_t *tensor, void *buffer, size_t size) {
  NRT_STATUS status = NRT_SUCCESS;
  if (!currentState(status))
    return status;
  if (!tensor)
    return fail(NRT_INVALID_HANDLE, "the tensor is null");
  if (!buffer && size != 0)
    return fail(NRT_INVALID, "the buffer is null");
  auto storage = std::make_shared<Storage>();
  storage->memory = static_cast<uint8_t *>(buffer);
  storage->size = size;
  tensor->storage = std::move(storage);
  tensor->placement = NRT_TENSOR_PLACEMENT_VIRTUAL;
  tensor->offset = 0;
  tensor->size = size;
  return NRT_SUCCESS;
}

NRT_STATUS nrt_tensor_allocate_slice(const nrt_tensor_t *source, size_t offset, size_t size, const char *name,
                                     nrt_tensor_t **slice) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  if (!slice)
    return fail(NRT_INVALID, "the result pointer is null");
  if (status = checkRange(source, offset, size); status != NRT_SUCCESS)
    return status;
  auto created = new nrt_tensor;
  created->name = name ? name : source->name;
  created->placement = source->placement;
  created->storage = source->storage;
  created->offset = source->offset + offset;
  created->size = size;
  registerTensor(*state, created);
  *slice = created;
  return NRT_SUCCESS;
}

void nrt_tensor_free(nrt_tensor_t **tensor) {
  if (!tensor || !*tensor)
    return;
  NRT_STATUS status = NRT_SUCCESS;
  if (State *state = currentState(status)) {
    bool known;
    {
      std::lock_guard lock(state->mutex);
      known = state->tensors.erase(*tensor) != 0;
    }
    if (known)
      delete *tensor;
  }
  // After nrt_close the tensor is gone already.
  *tensor = nullptr;
}

NRT_STATUS nrt_tensor_read(const nrt_tensor_t *tensor, void *buf, size_t offset, size_t size) {
  NRT_STATUS status = NRT_SUCCESS;
  if (!currentState(status))
    return status;
  if (tensor)
    waitForQueue(tensor);
  return readTensor(tensor, buf, offset, size);
}

NRT_STATUS nrt_tensor_write(nrt_tensor_t *tensor, const void *buf, size_t offset, size_t size) {
  NRT_STATUS status = NRT_SUCCESS;
  if (!currentState(status))
    return status;
  if (tensor)
    waitForQueue(tensor);
  return writeTensor(tensor, buf, offset, size);
}

NRT_STATUS nrt_tensor_read_batch(const nrt_tensor_batch_t *batches, uint64_t num_batches, bool) {
  NRT_STATUS status = NRT_SUCCESS;
  if (!currentState(status))
    return status;
  for (uint64_t i = 0; i < num_batches; ++i) {
    if (batches[i].tensor)
      waitForQueue(batches[i].tensor);
    for (uint32_t k = 0; k < batches[i].num_ops; ++k) {
      const nrt_tensor_batch_op_t &op = batches[i].ops[k];
      if (status = readTensor(batches[i].tensor, op.buffer, op.offset, op.size); status != NRT_SUCCESS)
        return status;
    }
  }
  return NRT_SUCCESS;
}

NRT_STATUS nrt_tensor_write_batch(const nrt_tensor_batch_t *batches, uint64_t num_batches, bool) {
  NRT_STATUS status = NRT_SUCCESS;
  if (!currentState(status))
    return status;
  for (uint64_t i = 0; i < num_batches; ++i) {
    if (batches[i].tensor)
      waitForQueue(batches[i].tensor);
    for (uint32_t k = 0; k < batches[i].num_ops; ++k) {
      const nrt_tensor_batch_op_t &op = batches[i].ops[k];
      if (status = writeTensor(batches[i].tensor, op.buffer, op.offset, op.size); status != NRT_SUCCESS)
        return status;
    }
  }
  return NRT_SUCCESS;
}

NRT_STATUS nrt_tensor_copy(const nrt_tensor_t *src, size_t src_offset, nrt_tensor_t *dst, size_t dst_offset,
                           size_t size) {
  NRT_STATUS status = NRT_SUCCESS;
  if (!currentState(status))
    return status;
  if (status = checkRange(src, src_offset, size); status != NRT_SUCCESS)
    return status;
  if (status = checkRange(dst, dst_offset, size); status != NRT_SUCCESS)
    return status;
  if (src->device() && dst->device() && src->device() != dst->device())
    return fail(NRT_INVALID, cat("tensor '", src->name, "' is on core ", src->device()->index(), " and '", dst->name,
                                 "' on core ", dst->device()->index(), "; copy through the host"));
  waitForQueue(src);
  waitForQueue(dst);
  if (size != 0)
    std::memmove(dst->data() + dst_offset, src->data() + src_offset, size);
  return NRT_SUCCESS;
}

NRT_STATUS nrt_tensor_memset(nrt_tensor_t *tensor, uint64_t offset, int value, size_t size) {
  NRT_STATUS status = NRT_SUCCESS;
  if (!currentState(status))
    return status;
  if (status = checkRange(tensor, offset, size); status != NRT_SUCCESS)
    return status;
  waitForQueue(tensor);
  if (size != 0)
    std::memset(tensor->data() + offset, value, size);
  return NRT_SUCCESS;
}

size_t nrt_tensor_get_size(const nrt_tensor_t *tensor) { return tensor ? tensor->size : 0; }

void *nrt_tensor_get_va(const nrt_tensor_t *tensor) { return tensor ? tensor->data() : nullptr; }

NRT_STATUS nrt_tensor_get_device_allocation_info(const nrt_tensor_t *tensor,
                                                 nrt_tensor_device_allocation_info_t *info) {
  NRT_STATUS status = NRT_SUCCESS;
  if (!currentState(status))
    return status;
  if (!tensor || !info)
    return fail(NRT_INVALID, "the tensor or the result pointer is null");
  if (!tensor->device())
    return fail(NRT_INVALID, cat("tensor '", tensor->name, "' is not in device memory"));
  info->physical_address = reinterpret_cast<uint64_t>(tensor->data());
  info->size = tensor->size;
  info->hbm_index = tensor->device()->index();
  return NRT_SUCCESS;
}

NRT_STATUS nrt_tensor_check_output_completion(const nrt_tensor_t *output_tensor, int64_t timeout_us,
                                              uint64_t expected_completion_count) {
  NRT_STATUS status = NRT_SUCCESS;
  if (!currentState(status))
    return status;
  if (!output_tensor)
    return fail(NRT_INVALID, "the tensor is null");
  if (!output_tensor->completion->waitFor(expected_completion_count, timeout_us))
    return fail(NRT_TIMEOUT, cat("tensor '", output_tensor->name, "' was not written ", expected_completion_count,
                                 " times within ", timeout_us, " us"));
  return NRT_SUCCESS;
}

NRT_STATUS nrt_tensor_reset_output_completion(nrt_tensor_t *output_tensor) {
  NRT_STATUS status = NRT_SUCCESS;
  if (!currentState(status))
    return status;
  if (!output_tensor)
    return fail(NRT_INVALID, "the tensor is null");
  output_tensor->completion->reset();
  return NRT_SUCCESS;
}

NRT_STATUS nrt_allocate_tensor_set(nrt_tensor_set_t **result) {
  if (!result)
    return fail(NRT_INVALID, "the result pointer is null");
  *result = new TensorSet;
  return NRT_SUCCESS;
}

void nrt_destroy_tensor_set(nrt_tensor_set_t **tensor_set) {
  if (!tensor_set)
    return;
  delete static_cast<TensorSet *>(*tensor_set);
  *tensor_set = nullptr;
}

NRT_STATUS nrt_add_tensor_to_tensor_set(nrt_tensor_set_t *tensor_set, const char *tensor_name, nrt_tensor_t *tensor) {
  if (!tensor_set || !tensor_name || !tensor)
    return fail(NRT_INVALID, "the tensor set, the name or the tensor is null");
  static_cast<TensorSet *>(tensor_set)->tensors[tensor_name] = tensor;
  return NRT_SUCCESS;
}

NRT_STATUS nrt_get_tensor_from_tensor_set(nrt_tensor_set_t *tensor_set, const char *tensor_name,
                                          nrt_tensor_t **tensor) {
  if (!tensor_set || !tensor_name || !tensor)
    return fail(NRT_INVALID, "the tensor set, the name or the result pointer is null");
  const auto &tensors = static_cast<TensorSet *>(tensor_set)->tensors;
  const auto found = tensors.find(tensor_name);
  if (found == tensors.end())
    return fail(NRT_FAILURE, cat("the tensor set has no tensor '", tensor_name, "'"));
  *tensor = found->second;
  return NRT_SUCCESS;
}

} // extern "C"

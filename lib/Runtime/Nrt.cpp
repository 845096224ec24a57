// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// nrt.h and nrt_experimental.h except tensors: initialisation, devices, models, execution.

#include "nrt/nrt.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "lib/Runtime/Execute.h"
#include "lib/Runtime/Inspect.h"
#include "lib/Runtime/Model.h"
#include "lib/Runtime/State.h"
#include "lib/Runtime/Status.h"
#include "lib/Runtime/Tensor.h"
#include "neuron/Support/Text.h"
#include "nrt/nrt_experimental.h"

using namespace neuroncore;
using namespace neuroncore::runtime;

namespace neuroncore::runtime {

NRT_STATUS executionTask(State &state, nrt_model *model, const nrt_tensor_set_t *inputs, nrt_tensor_set_t *outputs,
                         Task &task) {
  if (!model)
    return fail(NRT_INVALID_HANDLE, "the model is null");
  static const TensorSet kEmpty;
  const TensorSet &in = inputs ? *static_cast<const TensorSet *>(inputs) : kEmpty;
  const TensorSet &out = outputs ? *static_cast<const TensorSet *>(outputs) : kEmpty;
  task.kind = Task::Kind::Execute;
  task.unit = NRTA_XU_COMPUTE;
  task.model = model;
  task.checked = state.checkMode.load(std::memory_order_relaxed);
  const auto find = [&](const TensorSet &set, uint32_t id, const char *what, nrt_tensor *&tensor) -> NRT_STATUS {
    const neff::Variable &variable = model->neff->variables[id];
    const auto found = set.tensors.find(variable.name);
    if (found == set.tensors.end())
      return fail(NRT_INVALID, cat("the ", what, " set has no tensor '", variable.name, "'"));
    tensor = found->second;
    if (!tensor->storage && variable.bytes != 0)
      return fail(NRT_INVALID, cat(what, " tensor '", variable.name, "' has no storage"));
    if (int64_t(tensor->size) < variable.bytes)
      return fail(NRT_INVALID, cat(what, " tensor '", variable.name, "': expected ", variable.bytes, " bytes but got ",
                                   tensor->size));
    if (tensor->device() && tensor->device() != model->device)
      return fail(NRT_INVALID, cat(what, " tensor '", variable.name, "' is on core ", tensor->device()->index(),
                                   " but the model on core ", model->device->index()));
    return NRT_SUCCESS;
  };
  for (uint32_t id : model->inputs) {
    nrt_tensor *tensor = nullptr;
    if (const NRT_STATUS status = find(in, id, "input", tensor); status != NRT_SUCCESS)
      return status;
    task.inputs.push_back(tensor->data());
    task.storage.push_back(tensor->storage);
  }
  for (size_t i = 0; i < model->outputs.size(); ++i) {
    const uint32_t id = model->outputs[i];
    const neff::Variable &variable = model->neff->variables[id];
    const int32_t alias = model->aliasOfInput[i];
    if (alias >= 0 && out.tensors.find(variable.name) == out.tensors.end()) {
      task.outputs.push_back(nullptr);
      continue;
    }
    nrt_tensor *tensor = nullptr;
    if (const NRT_STATUS status = find(out, id, "output", tensor); status != NRT_SUCCESS)
      return status;
    task.outputs.push_back(tensor->data());
    task.storage.push_back(tensor->storage);
    task.completions.push_back(tensor->completion);
    if (alias >= 0 && tensor->data() != task.inputs[alias])
      task.copyBacks.push_back({task.inputs[alias], tensor->data(), size_t(variable.bytes)});
  }
  return NRT_SUCCESS;
}

namespace {

NRT_STATUS runAndWait(nrt_model *model, const nrt_tensor_set_t *inputs, nrt_tensor_set_t *outputs, int repeat) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  Task task;
  if (status = executionTask(*state, model, inputs, outputs, task); status != NRT_SUCCESS)
    return status;
  task.repeat = repeat;
  task.result = std::make_shared<Task::Result>();
  const std::shared_ptr<Task::Result> result = task.result;
  nrta_seq_t sequence;
  if (status = model->device->enqueue(std::move(task), &sequence); status != NRT_SUCCESS)
    return status;
  model->device->waitFor(unitOf(NRTA_XU_COMPUTE, 0), NRTA_SEQ_GET_SEQ_NUM(sequence));
  return result->status == NRT_SUCCESS ? NRT_SUCCESS : fail(result->status, result->message);
}

nrt_dtype_t dtypeOf(isa::Dtype dtype) {
  switch (dtype) {
  case isa::Dtype::F32:
    return NRT_DTYPE_FLOAT32;
  case isa::Dtype::Bf16:
    return NRT_DTYPE_BFLOAT16;
  case isa::Dtype::F16:
    return NRT_DTYPE_FLOAT16;
  case isa::Dtype::F8e4m3:
  case isa::Dtype::F8e4m3fn:
    return NRT_DTYPE_FP8_E4;
  case isa::Dtype::F8e5m2:
    return NRT_DTYPE_FP8_E5;
  case isa::Dtype::I8:
    return NRT_DTYPE_INT8;
  case isa::Dtype::U8:
    return NRT_DTYPE_UINT8;
  case isa::Dtype::I16:
    return NRT_DTYPE_INT16;
  case isa::Dtype::U16:
    return NRT_DTYPE_UINT16;
  case isa::Dtype::I32:
    return NRT_DTYPE_INT32;
  case isa::Dtype::U32:
    return NRT_DTYPE_UINT32;
  case isa::Dtype::I64:
    return NRT_DTYPE_INT64;
  case isa::Dtype::U64:
    return NRT_DTYPE_UINT64;
  default:
    return NRT_DTYPE_UNKNOWN;
  }
}

} // namespace
} // namespace neuroncore::runtime

extern "C" {

NRT_STATUS nrt_init(nrt_framework_type_t, const char *, const char *) { return initialise(); }

void nrt_close(void) { shutDown(); }

NRT_STATUS nrt_get_version(nrt_version_t *ver, size_t size) {
  if (!ver)
    return fail(NRT_INVALID, "the result pointer is null");
  nrt_version_t version = {};
  version.rt_major = NRT_MAJOR_VERSION;
  version.rt_minor = NRT_MINOR_VERSION;
  std::strncpy(version.rt_detail, "open-torch-neuronx " NEURON_VERSION " (software device)",
               sizeof(version.rt_detail) - 1);
  std::memcpy(ver, &version, std::min(size, sizeof(version)));
  return NRT_SUCCESS;
}

NRT_STATUS nrt_get_instance_info(nrt_instance_info_t *info, size_t len) {
  if (!info)
    return fail(NRT_INVALID, "the result pointer is null");
  Preview settings;
  if (const NRT_STATUS status = preview(settings); status != NRT_SUCCESS)
    return status;
  nrt_instance_info_t result = {};
  const int generation = settings.model->generation();
  result.family = generation == 2 ? NRT_INSTANCE_TRN1 : generation == 3 ? NRT_INSTANCE_TRN2 : NRT_INSTANCE_TRN3;
  result.size = NRT_INSTANCE_SIZE_UNKNOWN;
  std::strncpy(result.arch_name, settings.settings.target.c_str(), sizeof(result.arch_name) - 1);
  std::strncpy(result.device_revision, "sw", sizeof(result.device_revision) - 1);
  std::memcpy(info, &result, std::min(len, sizeof(result)));
  return NRT_SUCCESS;
}

NRT_STATUS nrt_get_total_vnc_count(uint32_t *vnc_count) {
  if (!vnc_count)
    return fail(NRT_INVALID, "the result pointer is null");
  Preview settings;
  if (const NRT_STATUS status = preview(settings); status != NRT_SUCCESS)
    return status;
  *vnc_count = uint32_t(settings.totalCores);
  return NRT_SUCCESS;
}

NRT_STATUS nrt_get_visible_vnc_count(uint32_t *vnc_count) {
  if (!vnc_count)
    return fail(NRT_INVALID, "the result pointer is null");
  Preview settings;
  if (const NRT_STATUS status = preview(settings); status != NRT_SUCCESS)
    return status;
  *vnc_count = uint32_t(settings.visibleCores);
  return NRT_SUCCESS;
}

NRT_STATUS nrt_get_total_nc_count(uint32_t *nc_count) { return nrt_get_total_vnc_count(nc_count); }
NRT_STATUS nrt_get_visible_nc_count(uint32_t *nc_count) { return nrt_get_visible_vnc_count(nc_count); }

NRT_STATUS nrt_load(const void *neff_bytes, size_t size, int32_t vnc, int32_t vnc_count, nrt_model_t **model) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  if (!neff_bytes || !model)
    return fail(NRT_INVALID, "the NEFF or the result pointer is null");
  if (vnc_count != 1 && vnc_count != -1)
    return fail(NRT_INVALID, cat("a model runs on one core: expected a core count of 1 or -1 but got ", vnc_count));
  Device *device = nullptr;
  if (vnc == -1) {
    // The core with the fewest models.
    std::lock_guard lock(state->mutex);
    std::vector<size_t> loaded(state->devices.size());
    for (nrt_model *other : state->models)
      ++loaded[other->device->index()];
    device = state->devices[std::min_element(loaded.begin(), loaded.end()) - loaded.begin()].get();
  } else {
    device = deviceOf(*state, vnc, status);
    if (!device)
      return status;
  }
  Expected<std::unique_ptr<nrt_model>> result =
      loadModel(*device, {static_cast<const uint8_t *>(neff_bytes), size}, state->settings.validateHash);
  if (!result)
    return fail(result.error());
  std::lock_guard lock(state->mutex);
  state->models.insert(result->get());
  *model = result->release();
  return NRT_SUCCESS;
}

NRT_STATUS nrt_unload(nrt_model_t *model) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  {
    std::lock_guard lock(state->mutex);
    if (state->models.erase(model) == 0)
      return fail(NRT_INVALID_HANDLE, "the model is not loaded");
  }
  model->device->waitIdle();
  Inspector::instance().noteUnload(*model);
  delete model;
  return NRT_SUCCESS;
}

NRT_STATUS nrt_get_model_vnc_count(const nrt_model_t *model, uint32_t *vnc_count) {
  if (!model || !vnc_count)
    return fail(NRT_INVALID, "the model or the result pointer is null");
  *vnc_count = 1;
  return NRT_SUCCESS;
}
NRT_STATUS nrt_get_model_nc_count(const nrt_model_t *model, uint32_t *nc_count) {
  return nrt_get_model_vnc_count(model, nc_count);
}

NRT_STATUS nrt_execute(nrt_model_t *model, const nrt_tensor_set_t *input_set, nrt_tensor_set_t *output_set) {
  return runAndWait(model, input_set, output_set, 1);
}

NRT_STATUS nrt_execute_repeat(nrt_model_t *model, const nrt_tensor_set_t *input_set, nrt_tensor_set_t *output_set,
                              int repeat_count) {
  if (repeat_count < 1)
    return fail(NRT_INVALID, cat("expected a positive repeat count but got ", repeat_count));
  return runAndWait(model, input_set, output_set, repeat_count);
}

NRT_STATUS nrt_get_vnc_memory_stats(uint32_t vnc, nrt_vnc_memory_stats_t *stats, size_t stats_size_in,
                                    size_t *stats_size_out) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  Device *device = deviceOf(*state, vnc, status);
  if (!device)
    return status;
  if (!stats)
    return fail(NRT_INVALID, "the result pointer is null");
  const nrt_vnc_memory_stats_t result = {size_t(device->memory().used()), size_t(device->memory().capacity())};
  const size_t written = std::min(stats_size_in, sizeof(result));
  std::memcpy(stats, &result, written);
  if (stats_size_out)
    *stats_size_out = written;
  return NRT_SUCCESS;
}

NRT_STATUS nrt_load_collectives(const void *, size_t, int32_t, int32_t, uint32_t, uint32_t, nrt_model_t **) {
  return fail(NRT_INVALID, "collectives are not supported by the software device");
}
NRT_STATUS nrt_build_global_comm(int32_t, uint32_t, uint32_t) {
  return fail(NRT_INVALID, "collectives are not supported by the software device");
}
NRT_STATUS nrt_get_dmabuf_fd(uint64_t, uint64_t, int *) {
  return fail(NRT_INVALID, "dmabuf is not supported by the software device");
}

NRT_STATUS nrt_get_model_tensor_info(nrt_model_t *model, nrt_tensor_info_array_t **tensor_info) {
  if (!model || !tensor_info)
    return fail(NRT_INVALID, "the model or the result pointer is null");
  const size_t count = model->inputs.size() + model->outputs.size();
  auto *array = static_cast<nrt_tensor_info_array_t *>(
      std::calloc(1, sizeof(nrt_tensor_info_array_t) + count * sizeof(nrt_tensor_info_t)));
  if (!array)
    return fail(NRT_RESOURCE, "cannot allocate the tensor information");
  array->tensor_count = count;
  size_t i = 0;
  for (int usage = 0; usage < 2; ++usage)
    for (uint32_t id : usage == 0 ? model->inputs : model->outputs) {
      const neff::Variable &variable = model->neff->variables[id];
      nrt_tensor_info_t &info = array->tensor_array[i++];
      std::strncpy(info.name, variable.name.c_str(), sizeof(info.name) - 1);
      info.usage = usage == 0 ? NRT_TENSOR_USAGE_INPUT : NRT_TENSOR_USAGE_OUTPUT;
      info.size = size_t(variable.bytes);
      info.dtype = dtypeOf(variable.dtype);
      info.ndim = uint32_t(variable.shape.size());
      info.shape = static_cast<uint32_t *>(std::calloc(std::max<size_t>(1, variable.shape.size()), sizeof(uint32_t)));
      for (size_t d = 0; info.shape && d < variable.shape.size(); ++d)
        info.shape[d] = uint32_t(variable.shape[d]);
    }
  *tensor_info = array;
  return NRT_SUCCESS;
}

NRT_STATUS nrt_free_model_tensor_info(nrt_tensor_info_array_t *tensor_info) {
  if (!tensor_info)
    return NRT_SUCCESS;
  for (uint64_t i = 0; i < tensor_info->tensor_count; ++i)
    std::free(tensor_info->tensor_array[i].shape);
  std::free(tensor_info);
  return NRT_SUCCESS;
}

NRT_STATUS nrt_get_model_instance_count(nrt_model_t *model, uint32_t *instance_count) {
  if (!model || !instance_count)
    return fail(NRT_INVALID, "the model or the result pointer is null");
  *instance_count = 1;
  return NRT_SUCCESS;
}

NRT_STATUS nrt_get_model_info(const nrt_model_t *model, nrt_model_info_t *info, size_t info_size_in,
                              size_t *info_size_out) {
  if (!model || !info)
    return fail(NRT_INVALID, "the model or the result pointer is null");
  const nrt_model_info_t result = {uint32_t(model->device->index())};
  const size_t written = std::min(info_size_in, sizeof(result));
  std::memcpy(info, &result, written);
  if (info_size_out)
    *info_size_out = written;
  return NRT_SUCCESS;
}

} // extern "C"

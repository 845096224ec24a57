// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// open_neuron.h.

#include "nrt/open_neuron.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "lib/Runtime/Model.h"
#include "lib/Runtime/State.h"
#include "lib/Runtime/Status.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Support/Text.h"

using namespace neuroncore;
using namespace neuroncore::runtime;

namespace {

NRT_STATUS describeVariable(const nrt_model &model, uint32_t id, nrt_tensor_usage_t usage, int32_t alias,
                            open_neuron_variable_t *variable) {
  const neff::Variable &source = model.neff->variables[id];
  variable->name = source.name.c_str();
  variable->usage = usage;
  variable->role = open_neuron_role_t(source.role);
  variable->dtype_code = uint32_t(source.dtype);
  variable->dtype_name = isa::toString(source.dtype).data();
  variable->ndim = uint32_t(source.shape.size());
  variable->shape = source.shape.data();
  variable->strides = source.strides.empty() ? nullptr : source.strides.data();
  variable->bytes = uint64_t(source.bytes);
  variable->alias_of_input = alias;
  return NRT_SUCCESS;
}

NRT_STATUS enqueueOn(uint32_t vnc, Task task, nrta_seq_t *sequence) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  Device *device = deviceOf(*state, vnc, status);
  if (!device)
    return status;
  return device->enqueue(std::move(task), sequence);
}

NRT_STATUS reportErrors(Device &device) {
  const std::optional<Task::Result> error = device.takeError();
  return error ? fail(error->status, error->message) : NRT_SUCCESS;
}

void fillTiming(const nrt_model &model, const emulator::TimingResult &result, open_neuron_timing_t *timing) {
  const target::Sync &sync = model.device->model().sync();
  *timing = {};
  timing->kernel_ns = uint64_t((result.kernelPs + 500) / 1000);
  timing->overhead_ns = uint64_t(sync.neffStartStopOverheadPs / 1000);
  timing->capture_overhead_ns = uint64_t(sync.neffDeviceCaptureOverheadPs / 1000);
}

} // namespace

struct open_neuron_progress {
  std::unique_ptr<ProgressLine> line;
};

extern "C" {

const char *open_neuron_last_error(void) { return lastError(); }

NRT_STATUS open_neuron_last_index_fault(open_neuron_index_fault_t *fault) {
  if (!fault || !lastIndexFault())
    return NRT_INVALID;
  *fault = *lastIndexFault();
  return NRT_SUCCESS;
}

NRT_STATUS open_neuron_runtime_state(void) {
  NRT_STATUS status = NRT_SUCCESS;
  return currentState(status) ? NRT_SUCCESS : status;
}

const char *open_neuron_target(void) {
  NRT_STATUS status = NRT_SUCCESS;
  if (State *state = currentState(status))
    return state->settings.target.c_str();
  Preview settings;
  if (preview(settings) != NRT_SUCCESS)
    return "";
  static thread_local std::string target;
  target = settings.settings.target;
  return target.c_str();
}

uint64_t open_neuron_memory_bytes(void) {
  Preview settings;
  if (preview(settings) != NRT_SUCCESS)
    return 0;
  return uint64_t(settings.model->topology().hbmCapacityDeviceBytes / settings.totalCores);
}

NRT_STATUS open_neuron_memory_allocate(uint32_t vnc, size_t size, void **memory) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  Device *device = deviceOf(*state, vnc, status);
  if (!device)
    return status;
  if (!memory)
    return fail(NRT_INVALID, "the result pointer is null");
  Expected<void *> result = device->memory().allocate(size);
  if (!result)
    return fail(result.error());
  *memory = *result;
  return NRT_SUCCESS;
}

NRT_STATUS open_neuron_memory_free(uint32_t vnc, void *memory) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  Device *device = deviceOf(*state, vnc, status);
  if (!device)
    return status;
  if (!device->memory().free(memory))
    return fail(NRT_INVALID,
                cat("no allocation of core ", vnc, " starts at ", hex(reinterpret_cast<uint64_t>(memory))));
  return NRT_SUCCESS;
}

NRT_STATUS open_neuron_load(const void *neff_bytes, size_t size, uint32_t vnc, uint32_t flags, nrt_model_t **model) {
  if (flags & ~uint32_t(OPEN_NEURON_LOAD_BORROW_BYTES))
    return fail(NRT_INVALID, cat("unknown load flags ", hex(flags)));
  return nrt_load(neff_bytes, size, int32_t(vnc), 1, model);
}

NRT_STATUS open_neuron_model_info(const nrt_model_t *model, open_neuron_model_info_t *info) {
  if (!model || !info)
    return fail(NRT_INVALID, "the model or the result pointer is null");
  info->name = model->neff->name.c_str();
  info->target = model->neff->target.c_str();
  info->compiler_version = model->neff->compilerVersion.c_str();
  info->metrics_json = model->neff->metricsJson.c_str();
  info->num_inputs = uint32_t(model->inputs.size());
  info->num_outputs = uint32_t(model->outputs.size());
  info->rng_increment = model->neff->rngIncrement;
  info->device_bytes = model->deviceBytes;
  info->instructions = model->instructions;
  info->model_id = model->id;
  return NRT_SUCCESS;
}

NRT_STATUS open_neuron_model_input(const nrt_model_t *model, uint32_t index, open_neuron_variable_t *variable) {
  if (!model || !variable || index >= model->inputs.size())
    return fail(NRT_INVALID, "the model has no such input");
  return describeVariable(*model, model->inputs[index], NRT_TENSOR_USAGE_INPUT, -1, variable);
}

NRT_STATUS open_neuron_model_output(const nrt_model_t *model, uint32_t index, open_neuron_variable_t *variable) {
  if (!model || !variable || index >= model->outputs.size())
    return fail(NRT_INVALID, "the model has no such output");
  return describeVariable(*model, model->outputs[index], NRT_TENSOR_USAGE_OUTPUT, model->aliasOfInput[index], variable);
}

NRT_STATUS open_neuron_model_debug_record(const nrt_model_t *model, uint32_t debug_id,
                                          open_neuron_debug_record_t *record) {
  if (!model || !record || debug_id == 0 || debug_id > model->neff->debug.size())
    return fail(NRT_INVALID, "the model has no such debug record");
  const neff::DebugRecord &source = model->neff->debug[debug_id - 1];
  *record = {source.kernel.c_str(), source.op.c_str(), uint32_t(source.nodes.size()), source.nodes.data()};
  return NRT_SUCCESS;
}

NRT_STATUS open_neuron_enqueue(nrt_model_t *model, const void *const *inputs, void *const *outputs,
                               open_neuron_callback_t callback, void *user, nrta_seq_t *sequence) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  if (!model)
    return fail(NRT_INVALID_HANDLE, "the model is null");
  Task task;
  task.kind = Task::Kind::Execute;
  task.model = model;
  task.checked = state->checkMode.load(std::memory_order_relaxed);
  task.callback = callback;
  task.user = user;
  task.inputs.resize(model->inputs.size());
  for (size_t i = 0; i < task.inputs.size(); ++i) {
    task.inputs[i] = const_cast<void *>(inputs[i]);
    if (!task.inputs[i] && model->neff->variables[model->inputs[i]].bytes != 0)
      return fail(NRT_INVALID, cat("input '", model->neff->variables[model->inputs[i]].name, "' has no memory"));
  }
  task.outputs.resize(model->outputs.size());
  for (size_t i = 0; i < task.outputs.size(); ++i) {
    void *memory = outputs[i];
    const int32_t alias = model->aliasOfInput[i];
    const neff::Variable &variable = model->neff->variables[model->outputs[i]];
    if (alias >= 0 ? memory && memory != task.inputs[alias] : !memory && variable.bytes != 0)
      return fail(NRT_INVALID, alias >= 0 ? cat("output '", variable.name, "' is bound to the memory of input ", alias,
                                                " and cannot have other memory")
                                          : cat("output '", variable.name, "' has no memory"));
    task.outputs[i] = memory;
  }
  return model->device->enqueue(std::move(task), sequence);
}

NRT_STATUS open_neuron_enqueue_copy(uint32_t vnc, void *dst, const void *src, size_t size,
                                    open_neuron_callback_t callback, void *user, nrta_seq_t *sequence) {
  Task task;
  task.kind = Task::Kind::Copy;
  task.unit = NRTA_XU_TENSOR_OP;
  task.dst = dst;
  task.src = src;
  task.size = size;
  task.callback = callback;
  task.user = user;
  return enqueueOn(vnc, std::move(task), sequence);
}

NRT_STATUS open_neuron_enqueue_memset(uint32_t vnc, void *dst, int value, size_t size, open_neuron_callback_t callback,
                                      void *user, nrta_seq_t *sequence) {
  Task task;
  task.kind = Task::Kind::Memset;
  task.unit = NRTA_XU_TENSOR_OP;
  task.dst = dst;
  task.value = value;
  task.size = size;
  task.callback = callback;
  task.user = user;
  return enqueueOn(vnc, std::move(task), sequence);
}

NRT_STATUS open_neuron_enqueue_marker(uint32_t vnc, open_neuron_callback_t callback, void *user, nrta_seq_t *sequence) {
  Task task;
  task.unit = NRTA_XU_TENSOR_OP;
  task.callback = callback;
  task.user = user;
  return enqueueOn(vnc, std::move(task), sequence);
}

NRT_STATUS open_neuron_wait(nrta_seq_t sequence) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  const int id = NRTA_SEQ_GET_XU_ID(sequence);
  const size_t core = size_t(id / kUnitsPerCore);
  const int unit = id % kUnitsPerCore;
  const uint64_t number = NRTA_SEQ_GET_SEQ_NUM(sequence);
  if (core >= state->devices.size() || !state->devices[core]->isKnown(unit, number))
    return fail(NRT_INVALID, cat("sequence ", sequence, " was never scheduled"));
  state->devices[core]->waitFor(unit, number);
  return reportErrors(*state->devices[core]);
}

open_neuron_progress_t *open_neuron_progress_begin(uint32_t vnc) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  Device *device = state ? deviceOf(*state, vnc, status) : nullptr;
  return device ? new open_neuron_progress{progressOf(*device)} : nullptr;
}

void open_neuron_progress_end(open_neuron_progress_t *progress) { delete progress; }

NRT_STATUS open_neuron_synchronize(uint32_t vnc) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  Device *device = deviceOf(*state, vnc, status);
  if (!device)
    return status;
  device->waitIdle();
  return reportErrors(*device);
}

NRT_STATUS open_neuron_cancel(uint32_t vnc) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  Device *device = deviceOf(*state, vnc, status);
  if (!device)
    return status;
  device->cancel();
  return NRT_SUCCESS;
}

NRT_STATUS open_neuron_set_check_mode(bool enabled) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  state->checkMode.store(enabled);
  return NRT_SUCCESS;
}

NRT_STATUS open_neuron_set_worker_threads(uint32_t threads) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  if (threads > 64)
    return fail(NRT_INVALID, cat("expected at most 64 worker threads but got ", threads));
  for (const std::unique_ptr<Device> &device : state->devices)
    device->setWorkerThreads(int(threads));
  return NRT_SUCCESS;
}

NRT_STATUS open_neuron_set_device_capture(bool enabled) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  for (const std::unique_ptr<Device> &device : state->devices)
    device->setDeviceCapture(enabled);
  return NRT_SUCCESS;
}

NRT_STATUS open_neuron_model_timing(nrt_model_t *model, open_neuron_timing_t *timing) {
  if (!model || !timing)
    return fail(NRT_INVALID, "the model or the result pointer is null");
  Expected<std::shared_ptr<const emulator::TimingResult>> result = model->latestTiming();
  if (!result)
    return fail(NRT_FAILURE, result.error().message());
  fillTiming(*model, **result, timing);
  return NRT_SUCCESS;
}

NRT_STATUS open_neuron_model_timeline(nrt_model_t *model, uint64_t max_events,
                                      bool (*visit)(void *user, const open_neuron_event_t *event), void *user) {
  if (!model || !visit)
    return fail(NRT_INVALID, "the model or the callback is null");
  Expected<emulator::TimingResult> result = model->timeline();
  if (!result)
    return fail(NRT_FAILURE, result.error().message());
  const neff::Neff &neff = *model->neff;
  for (const emulator::TimelineEvent &event : result->timeline.expand(max_events)) {
    const isa::Instruction &instruction = neff.program[event.stream][event.pc];
    const bool isTransfer = event.kind == emulator::TimelineEvent::Kind::Transfer;
    open_neuron_event_t out = {};
    out.start_ps = event.startPs;
    out.end_ps = event.endPs;
    out.wait_ps = event.waitPs;
    out.kind = isTransfer ? 1 : 0;
    out.stream = uint32_t(isa::kStreamEngines[event.stream]);
    out.engine = isTransfer ? event.dmaEngine : out.stream;
    out.queue = event.queue;
    out.pc = event.pc;
    out.debug_id = instruction.debugId;
    out.bytes = uint64_t(event.bytes);
    out.run = event.run;
    out.opcode = event.kind == emulator::TimelineEvent::Kind::TableLoad
                     ? "ACT_TABLE_LOAD"
                     : isa::instructionInfo(instruction.opcode).mnemonic.data();
    if (!visit(user, &out))
      break;
  }
  return NRT_SUCCESS;
}

NRT_STATUS open_neuron_model_summary(nrt_model_t *model, char **json) {
  if (!model || !json)
    return fail(NRT_INVALID, "the model or the result pointer is null");
  Expected<std::shared_ptr<const emulator::TimingResult>> result = model->latestTiming();
  if (!result)
    return fail(NRT_FAILURE, result.error().message());
  const std::string text = emulator::summarise(**result);
  *json = static_cast<char *>(std::malloc(text.size() + 1));
  if (!*json)
    return fail(NRT_RESOURCE, "cannot allocate the text");
  std::memcpy(*json, text.c_str(), text.size() + 1);
  return NRT_SUCCESS;
}

void open_neuron_free_text(char *text) { std::free(text); }

NRT_STATUS open_neuron_model_trace(nrt_model_t *model, char **bytes, size_t *size) {
  if (!model || !bytes || !size)
    return fail(NRT_INVALID, "the model or the result pointer is null");
  Expected<profile::ProgramTrace> trace = model->trace();
  if (!trace)
    return fail(NRT_FAILURE, trace.error().message());
  const std::string text = profile::writeProgramTrace(*trace);
  *bytes = static_cast<char *>(std::malloc(std::max<size_t>(text.size(), 1)));
  if (!*bytes)
    return fail(NRT_RESOURCE, cat("cannot allocate ", text.size(), " bytes for the trace"));
  std::memcpy(*bytes, text.data(), text.size());
  *size = text.size();
  return NRT_SUCCESS;
}

} // extern "C"

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/Model.h"

#include <atomic>
#include <cstring>

#include "lib/Runtime/Device.h"
#include "neuron/Emulator/Check.h"
#include "neuron/Support/Text.h"

using namespace neuroncore;

void nrt_model::bind(std::span<void *const> inputPointers, std::span<void *const> outputPointers) {
  for (size_t i = 0; i < inputs.size(); ++i)
    bindings[inputs[i]] = inputPointers[i];
  for (size_t i = 0; i < outputs.size(); ++i)
    bindings[outputs[i]] = aliasOfInput[i] >= 0 ? inputPointers[aliasOfInput[i]] : outputPointers[i];
}

void nrt_model::remember(std::shared_ptr<const emulator::TimingResult> result, const emulator::ControlTrace &trace) {
  std::lock_guard lock(mutex_);
  latest_ = std::move(result);
  if (!trace.empty() || !latestTrace_.empty())
    latestTrace_ = trace;
}

Expected<std::shared_ptr<const emulator::TimingResult>> nrt_model::latestTiming() {
  {
    std::lock_guard lock(mutex_);
    if (latest_)
      return latest_;
  }
  if (program->pathDependsOnData())
    return Error(ErrorKind::NotFound, "the model's time depends on data and it has not been executed yet");
  return timing->get({}, isa::ActivationSet::Any);
}

Expected<emulator::ControlTrace> nrt_model::latestTrace() {
  std::lock_guard lock(mutex_);
  if (!latest_ && program->pathDependsOnData())
    return Error(ErrorKind::NotFound, "the model's time depends on data and it has not been executed yet");
  return latestTrace_;
}

Expected<emulator::TimingResult> nrt_model::timeline() {
  Expected<emulator::ControlTrace> path = latestTrace();
  if (!path)
    return path.error();
  return emulator::simulateTiming(*program, *path);
}

Expected<profile::ProgramTrace> nrt_model::trace() {
  Expected<emulator::ControlTrace> path = latestTrace();
  if (!path)
    return path.error();
  emulator::TimingOptions options;
  options.recordCauses = true;
  Expected<emulator::TimingResult> result = emulator::simulateTiming(*program, *path, options);
  if (!result)
    return result.error();
  profile::ProgramTrace trace;
  trace.summaryJson = emulator::summarise(*result);
  trace.timeline = std::move(result->timeline);
  trace.kernelPs = result->kernelPs;
  trace.control = std::move(*path);
  trace.programDigest = profile::programDigest(*neff);
  return trace;
}

const std::string &nrt_model::hash() {
  std::call_once(hashed_, [&] { hash_ = profile::programDigest(*neff); });
  return hash_;
}

Status nrt_model::check(const emulator::ControlTrace &trace) {
  std::lock_guard lock(mutex_);
  // Another path through the program is another question.
  if (checked_ && trace == checkedTrace_)
    return *checked_;
  emulator::CheckOptions options;
  options.trace = trace;
  Expected<emulator::CheckResult> result = emulator::checkProgram(*program, options);
  if (!result)
    checked_ = result.error();
  else if (!result->hazards.empty())
    checked_ = Error(ErrorKind::Hazard, result->hazards.front().message);
  else
    checked_ = Status::success();
  checkedTrace_ = trace;
  return *checked_;
}

nrt_model::~nrt_model() {
  if (device)
    for (void *memory : owned)
      device->memory().free(memory);
}

namespace neuroncore::runtime {

Expected<std::unique_ptr<nrt_model>> loadModel(Device &device, std::span<const uint8_t> bytes, bool validateHash) {
  static std::atomic<uint64_t> nextId = 1;
  neff::ReadOptions options;
  options.validateHash = validateHash;
  Expected<neff::Neff> read = neff::readNeff(bytes, options);
  if (!read)
    return read.error();
  auto model = std::make_unique<nrt_model>();
  model->device = &device;
  model->id = nextId++;
  auto neff = std::make_shared<neff::Neff>(std::move(*read));
  const size_t count = neff->variables.size();
  model->bindings.assign(count, nullptr);
  std::vector<int32_t> inputPosition(count, -1);
  for (uint32_t id = 0; id < count; ++id) {
    neff::Variable &variable = neff->variables[id];
    switch (variable.kind) {
    case neff::Variable::Kind::Input:
      inputPosition[id] = int32_t(model->inputs.size());
      model->inputs.push_back(id);
      model->inputByName[variable.name] = inputPosition[id];
      break;
    case neff::Variable::Kind::Output:
      model->outputByName[variable.name] = uint32_t(model->outputs.size());
      model->outputs.push_back(id);
      break;
    case neff::Variable::Kind::Constant:
    case neff::Variable::Kind::Scratch: {
      Expected<void *> memory = device.memory().allocate(size_t(variable.bytes));
      if (!memory)
        return memory.error().withContext(cat("variable '", variable.name, "'"));
      model->owned.push_back(*memory);
      model->bindings[id] = *memory;
      model->deviceBytes += uint64_t(variable.bytes);
      if (variable.kind == neff::Variable::Kind::Constant) {
        std::memcpy(*memory, variable.data.data(), variable.data.size());
        // It lives in device memory now.
        std::vector<uint8_t>().swap(variable.data);
      }
      break;
    }
    }
  }
  for (uint32_t id : model->outputs) {
    const int32_t alias = neff->variables[id].aliasOf;
    model->aliasOfInput.push_back(alias >= 0 && size_t(alias) < count ? inputPosition[alias] : -1);
  }
  for (const isa::Stream &stream : neff->program)
    model->instructions += stream.size();
  model->neff = neff;
  emulator::LoadOptions loadOptions;
  loadOptions.isVerified = true; // by readNeff
  Expected<std::shared_ptr<const emulator::LoadedProgram>> program =
      emulator::LoadedProgram::load(neff, device.model(), loadOptions);
  if (!program)
    return program.error();
  model->program = *program;
  model->timing = std::make_unique<emulator::TimingCache>(model->program);
  return model;
}

} // namespace neuroncore::runtime

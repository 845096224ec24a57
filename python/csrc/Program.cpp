// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Program.h"

#include <algorithm>

#include <c10/util/Exception.h>

#include "Trace.h"

namespace neuroncore::device {

namespace {

constexpr int parametersMarker = -1;
constexpr int rngStateMarker = -2;

struct ProgramRegistry {
  std::mutex mutex;
  std::vector<std::weak_ptr<Program>> programs;
};
ProgramRegistry &registry() {
  static auto *programs = new ProgramRegistry;
  return *programs;
}

/// Bound to variables of size zero, which are never read.
alignas(64) std::byte emptyVariable[64];

} // namespace

Program::Program(ProgramDescription description) : description_(std::move(description)) {}

Program::~Program() {
  for (int device = 0; device < maxDevices; ++device)
    if (Loaded *loaded = loaded_[device].load()) {
      // Pending executions refer to the model. The device thread never takes the GIL, so waiting here is safe.
      if (!isInBadFork())
        queueOf(device).drain();
      delete loaded;
    }
}

Program::Loaded &Program::loadedOn(int device) {
  if (Loaded *loaded = loaded_[device].load(std::memory_order_acquire))
    return *loaded;
  std::lock_guard<std::mutex> lock(mutex_);
  if (Loaded *loaded = loaded_[device].load())
    return *loaded;
  auto fresh = std::make_unique<Loaded>();
  fresh->model = Model::load(description_.neff, device);
  const auto describeMismatch = [&](const std::string &what) {
    return "the NEFF of " + description_.label + " does not fit its description: " + what +
           "; clear the NEFF cache and compile again";
  };
  for (const ModelVariable &variable : fresh->model->inputs()) {
    if (variable.role == ModelVariable::Role::Parameters) {
      fresh->inputs.push_back(parametersMarker);
      continue;
    }
    if (variable.role == ModelVariable::Role::RngState) {
      fresh->inputs.push_back(rngStateMarker);
      fresh->usesRandomState = true;
      continue;
    }
    auto it = std::find_if(description_.inputs.begin(), description_.inputs.end(),
                           [&](const auto &input) { return input.name == variable.name; });
    TORCH_CHECK(it != description_.inputs.end() && it->graphInput >= 0,
                describeMismatch("input " + variable.name + " is unknown"));
    fresh->inputs.push_back(it->graphInput);
  }
  for (const ModelVariable &variable : fresh->model->outputs()) {
    auto it = std::find_if(description_.outputs.begin(), description_.outputs.end(),
                           [&](const auto &output) { return output.name == variable.name; });
    TORCH_CHECK(it != description_.outputs.end(), describeMismatch("output " + variable.name + " is unknown"));
    fresh->outputs.push_back(static_cast<int>(it - description_.outputs.begin()));
  }
  TORCH_CHECK(fresh->outputs.size() == description_.outputs.size(),
              describeMismatch("expected " + std::to_string(description_.outputs.size()) + " outputs but got " +
                               std::to_string(fresh->outputs.size())));
  loaded_[device].store(fresh.get(), std::memory_order_release);
  return *fresh.release();
}

ParameterSlot parameterSlot(const c10::Scalar &scalar) {
  ParameterSlot slot;
  if (scalar.isFloatingPoint()) {
    const double value = scalar.toDouble();
    slot.real = static_cast<float>(value);
    // What an integer tensor would take of it: truncation, as the conversion in C++ for values in range.
    if (value > -9.2e18 && value < 9.2e18)
      slot.integer = static_cast<int64_t>(value);
  } else {
    slot.integer = scalar.toLong();
    slot.real = static_cast<float>(slot.integer);
  }
  return slot;
}

Model &Program::modelOn(int device) { return *loadedOn(device).model; }

void Program::launch(int device, std::span<void *const> graphInputs, std::span<void *const> graphOutputs,
                     const LaunchOptions &options) {
  Queue &queue = queueOf(device);
  Loaded &loaded = loadedOn(device);
  const int64_t stream = currentStream(device).id();
  auto submission = queue.acquire();
  submission->model = loaded.model.get();
  submission->label = &description_.label;
  submission->faultNotes = &description_.faultNotes;
  submission->callersLine = options.callersLine;
  submission->parameters.assign(options.parameters.begin(), options.parameters.end());
  if (loaded.usesRandomState) {
    const PhiloxState state = reservePhilox(options.generator, device, description_.rngIncrement);
    submission->rngState[0] = state.seed;
    submission->rngState[1] = state.offset;
  }
  if (Recorder::active()) {
    submission->record =
        Recorder::instance().begin(ActivityRecord::Kind::Execution, device, stream, options.correlationDepth);
    if (submission->record) {
      submission->record->name = description_.kernelName;
      submission->record->neffHash = description_.hash;
    }
    if (!options.parameters.empty()) {
      submission->parameterRecord =
          Recorder::instance().begin(ActivityRecord::Kind::HostToDevice, device, stream, options.correlationDepth);
      if (submission->parameterRecord) {
        submission->parameterRecord->name = "Memcpy HtoD (Scalar -> Device)";
        submission->parameterRecord->bytes = static_cast<int64_t>(options.parameters.size() * sizeof(ParameterSlot));
      }
    }
  }
  submission->inputs.resize(loaded.inputs.size());
  for (size_t i = 0; i < loaded.inputs.size(); ++i) {
    const int source = loaded.inputs[i];
    void *pointer = source == parametersMarker ? static_cast<void *>(submission->parameters.data())
                    : source == rngStateMarker ? static_cast<void *>(submission->rngState)
                                               : graphInputs[source];
    submission->inputs[i] = pointer ? pointer : emptyVariable;
  }
  submission->outputs.resize(loaded.outputs.size());
  for (size_t i = 0; i < loaded.outputs.size(); ++i) {
    void *pointer = graphOutputs[loaded.outputs[i]];
    submission->outputs[i] = pointer ? pointer : emptyVariable;
  }
  queue.submit(std::move(submission));
}

std::vector<std::shared_ptr<Program>> livePrograms() {
  std::lock_guard<std::mutex> lock(registry().mutex);
  std::vector<std::shared_ptr<Program>> result;
  auto &programs = registry().programs;
  std::erase_if(programs, [](const auto &program) { return program.expired(); });
  for (const auto &program : programs)
    if (auto strong = program.lock())
      result.push_back(std::move(strong));
  return result;
}

void rememberProgram(const std::shared_ptr<Program> &program) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  registry().programs.push_back(program);
}

} // namespace neuroncore::device

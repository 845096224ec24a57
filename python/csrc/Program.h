// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A compiled graph: the NEFF, how its variables bind to the graph's inputs and outputs, and its launch. Shared by eager
// operators (one-node graphs) and compiled regions.

#ifndef NEURON_PYTHON_CSRC_PROGRAM_H
#define NEURON_PYTHON_CSRC_PROGRAM_H

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Generator.h>
#include <c10/core/Scalar.h>

#include "Device.h"
#include "Queue.h"
#include "Runtime.h"

namespace neuroncore::device {

struct ProgramDescription {
  std::string neff;
  /// For messages and profiler rows, for example "aten::mul.Tensor".
  std::string label;
  /// Short name of the profiler's kernel rows.
  std::string kernelName;
  /// Content hash, as in the cache.
  std::string hash;
  struct Input {
    std::string name;
    ModelVariable::Role role = ModelVariable::Role::Tensor;
    /// Position among the graph's inputs (Role::Tensor).
    int graphInput = -1;
  };
  struct Output {
    std::string name;
    /// Position among the graph's inputs of the tensor that this output overwrites, or -1.
    int aliasOfGraphInput = -1;
  };
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  int64_t rngIncrement = 0;
  FaultNotes faultNotes;
};

/// A number as a program reads it.
ParameterSlot parameterSlot(const c10::Scalar &scalar);

/// What one launch needs besides the tensors.
struct LaunchOptions {
  std::span<const ParameterSlot> parameters;
  std::optional<at::Generator> generator;
  /// Where an eager operator was called, if its program has fault notes.
  std::optional<SourceLine> callersLine;
  /// How many entries below the top of the correlation stack the launch is attributed to.
  size_t correlationDepth = 0;
};

class Program {
public:
  explicit Program(ProgramDescription description);
  ~Program();

  const ProgramDescription &description() const { return description_; }

  /// Enqueues one execution. Pointers are in the order of the graph's inputs (null for scalars and the generator state)
  /// and outputs.
  void launch(int device, std::span<void *const> graphInputs, std::span<void *const> graphOutputs,
              const LaunchOptions &options);

  /// The model on a device; loads it on first use.
  Model &modelOn(int device);

private:
  struct Loaded {
    std::unique_ptr<Model> model;
    /// Per model input: position among the graph's inputs, or one of the two markers.
    std::vector<int> inputs;
    /// Per model output: position among the graph's outputs.
    std::vector<int> outputs;
    bool usesRandomState = false;
  };
  Loaded &loadedOn(int device);

  ProgramDescription description_;
  std::mutex mutex_;
  std::array<std::atomic<Loaded *>, maxDevices> loaded_{};
};

/// Every program of the process that still exists, for the profiling files.
std::vector<std::shared_ptr<Program>> livePrograms();
void rememberProgram(const std::shared_ptr<Program> &program);

} // namespace neuroncore::device

#endif // NEURON_PYTHON_CSRC_PROGRAM_H

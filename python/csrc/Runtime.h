// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The only unit of the device library that calls libnrt. Everything above it speaks of devices (one index = one
// NeuronCore), segments of device memory, loaded models and their executions.

#ifndef NEURON_PYTHON_CSRC_RUNTIME_H
#define NEURON_PYTHON_CSRC_RUNTIME_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ExecutionFault.h"

namespace neuroncore::device {

/// What the machine model says about one execution, in nanoseconds.
struct ExecutionTiming {
  /// First instruction to last DMA completion.
  int64_t kernel = 0;
  /// Fixed cost of an execution, without and with DEVICE capture.
  int64_t overhead = 0;
  int64_t captureOverhead = 0;
};

/// Called on the device thread, in order, once per enqueued execution; the queue defines it (Queue.cpp). `error` is
/// empty on success; `fault` is null unless an index out of range is the reason.
void completeExecution(void *context, const std::string &error, const IndexFault *fault, const ExecutionTiming &timing);

struct MemoryInfo {
  size_t used = 0;
  size_t limit = 0;
};

/// One bindable variable of a loaded model.
struct ModelVariable {
  enum class Role : uint8_t { Tensor, Parameters, RngState };
  std::string name;
  Role role = Role::Tensor;
  size_t bytes = 0;
  /// Outputs: position among the inputs of the input whose memory this output is, or -1.
  int aliasOfInput = -1;
};

/// A NEFF loaded on one device. The owner unloads it after the device's queue has drained.
class Model {
public:
  /// Loads an in-memory NEFF, which it keeps. Throws c10::Error.
  static std::unique_ptr<Model> load(std::string neff, int device);
  ~Model();
  Model(const Model &) = delete;
  Model &operator=(const Model &) = delete;

  int device() const { return device_; }
  const std::string &name() const { return name_; }
  uint64_t id() const { return id_; }
  const std::string &neff() const { return neff_; }
  int64_t rngIncrement() const { return rngIncrement_; }
  /// In binding order.
  const std::vector<ModelVariable> &inputs() const { return inputs_; }
  const std::vector<ModelVariable> &outputs() const { return outputs_; }

  /// Appends an execution to the device's queue; the pointers' targets must stay valid until completeExecution(context)
  /// has been called. False when the queue is full: wait for one completion and retry.
  bool enqueue(const void *const *inputs, void *const *outputs, void *context);

  /// Positions in the graph of the nodes that an instruction was made of; safe on the device thread.
  std::vector<uint32_t> nodesOf(uint32_t debugId) const;

  /// Summary of the modelled execution as JSON text ("{}" before the first execution of a data-dependent model).
  std::string summaryJson();
  /// One interval of the modelled timeline; see open_neuron_event_t.
  struct TimelineEvent {
    int64_t start, end, wait; // picoseconds
    uint32_t kind, engine, queue, stream, pc, debugId;
    uint64_t bytes;
    const char *opcode;
    uint32_t run;
  };
  std::vector<TimelineEvent> timeline(uint64_t maxEvents);

private:
  Model() = default;
  std::string neff_;
  std::string name_;
  int device_ = 0;
  uint64_t id_ = 0;
  int64_t rngIncrement_ = 0;
  void *handle_ = nullptr;
  std::vector<ModelVariable> inputs_;
  std::vector<ModelVariable> outputs_;
};

/// Number of visible devices; never initialises the runtime and never throws (0 when something is wrong).
int deviceCount() noexcept;
/// Initialises the runtime once per process; throws c10::Error with advice.
void initialise();
bool isInitialised() noexcept;
/// True in a child process that was forked after the runtime had started.
bool isInBadFork() noexcept;
/// Throws if the process was forked after initialisation, otherwise initialises.
void ensureUsable();

/// "trn1", "trn2" or "trn3".
std::string targetName();
/// Version text of the runtime library, for reports.
std::string runtimeVersion();
/// HBM of one device.
size_t deviceMemoryBytes();

/// Device memory straight from the runtime; null if the device has none left.
std::byte *allocateDeviceMemory(int device, size_t bytes);
/// No queued work may use it.
void freeDeviceMemory(int device, std::byte *memory) noexcept;
MemoryInfo memoryInfo(int device);

/// Stops the execution that runs on the device and drops those that wait; each completes with an error.
void cancelExecutions(int device) noexcept;

/// On a terminal, how far the device is: for who has waited for a second.
class WaitProgress {
public:
  explicit WaitProgress(int device);
  ~WaitProgress();
  WaitProgress(const WaitProgress &) = delete;
  WaitProgress &operator=(const WaitProgress &) = delete;

private:
  void *handle_;
};

/// Whether the runtime checks executions for hazards (slow); see docs/Emulator.md.
void setCheckMode(bool enabled);
/// Host threads that share the work of one instruction; 0: the runtime decides. Results do not depend on it.
void setWorkerThreads(int threads);

} // namespace neuroncore::device

#endif // NEURON_PYTHON_CSRC_RUNTIME_H

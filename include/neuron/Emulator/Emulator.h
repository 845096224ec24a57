// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The function observer: executes the five instruction streams of a NEFF on a software NeuronCore. A program is decoded
// once (LoadedProgram) and then executed on a core with HBM variables bound to host memory. Results do not depend on
// the order in which engines advance, on the number of threads or on the CPU. docs/Emulator.md describes the semantics.

#ifndef NEURON_EMULATOR_EMULATOR_H
#define NEURON_EMULATOR_EMULATOR_H

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "neuron/Isa/Instruction.h"
#include "neuron/Neff/Neff.h"
#include "neuron/Support/Error.h"
#include "neuron/Target/MachineModel.h"

namespace neuroncore::emulator {

/// Values that sequencers loaded from memory and that decide what is executed or transferred (branches, waits, sizes),
/// in stream order. With them the timing and the checker follow the same path as the execution. Empty for a program
/// whose path does not depend on data.
struct ControlTrace {
  std::array<std::vector<int32_t>, isa::kNumStreams> loads;

  bool empty() const;
  void clear();
  bool operator==(const ControlTrace &) const = default;
};

struct LoadOptions {
  /// The NEFF comes from readNeff or passed verifyNeff: do not verify it again.
  bool isVerified = false;
};

class LoadedProgram {
public:
  /// The model must outlive the program.
  static Expected<std::shared_ptr<const LoadedProgram>>
  load(std::shared_ptr<const neff::Neff> neff, const target::MachineModel &model, const LoadOptions &options = {});
  ~LoadedProgram();
  LoadedProgram(const LoadedProgram &) = delete;
  LoadedProgram &operator=(const LoadedProgram &) = delete;

  const neff::Neff &neff() const;
  const target::MachineModel &model() const;
  /// Whether an execution produces a non-empty ControlTrace.
  bool pathDependsOnData() const;
  /// What the five sequencers execute together, found by following their control flow once; 0 where that depends on
  /// data or would take too long. For estimates.
  uint64_t executedInstructions() const;

  struct Impl;
  const Impl &impl() const { return *impl_; }

private:
  explicit LoadedProgram(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// An index out of range, for callers that know what its program was made of.
struct IndexFault {
  /// Of the instruction (1 + position in Neff::debug); 0: it has no record.
  uint32_t debugId = 0;
  /// The row as the instruction read it (isa::RejectedIndex).
  int64_t row = 0;
};

struct ExecuteOptions {
  /// Receives the fault of an execution that fails with an index out of range, when not null.
  std::optional<IndexFault> *indexFault = nullptr;
  /// Receives the control trace when not null.
  ControlTrace *trace = nullptr;
  /// Checked at intervals; an execution that sees true, or runs past the deadline, stops with an error.
  const std::atomic<bool> *cancel = nullptr;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  /// Stops with an error after so many instructions (0: no limit); a guard against programs that never end.
  uint64_t maxInstructions = 0;
  /// Counts executed instructions, at intervals, when not null.
  std::atomic<uint64_t> *executed = nullptr;
};

/// One NeuronCore: SBUF, PSUM, registers, semaphores. Executes one program at a time; not thread-safe. The model must
/// outlive the core.
class Core {
public:
  /// `threads` host threads share the work of large instructions (1: none besides the caller).
  static Expected<std::unique_ptr<Core>> create(const target::MachineModel &model, int threads = 1);
  ~Core();
  Core(const Core &) = delete;
  Core &operator=(const Core &) = delete;

  /// `variables`: host memory of each variable of the NEFF, by var_id, of at least Variable::bytes bytes; constants
  /// hold their data. After an error the contents of outputs and scratch are undefined.
  Status execute(const LoadedProgram &program, std::span<void *const> variables, const ExecuteOptions &options = {});
  void setThreads(int threads);
  int threads() const;

  struct Impl;

private:
  explicit Core(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace neuroncore::emulator

#endif // NEURON_EMULATOR_EMULATOR_H

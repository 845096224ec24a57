// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One in-order queue per device. Executions go to the runtime's own queue; host-side work (copies, event marks) that
// comes behind a pending execution is attached to it and runs in its completion, before the next execution starts, so
// that one device thread serves both and nothing is handed over twice. All streams of a device share its queue: serial
// execution is a legal order of any set of streams.
//
// No function here takes the GIL, and nothing that runs on the device thread calls the dispatcher.

#ifndef NEURON_PYTHON_CSRC_QUEUE_H
#define NEURON_PYTHON_CSRC_QUEUE_H

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "Runtime.h"
#include "Trace.h"

namespace neuroncore::device {

/// One run-time scalar as the NEFF reads it.
struct ParameterSlot {
  float real = 0;
  uint32_t zero = 0;
  int64_t integer = 0;
};
static_assert(sizeof(ParameterSlot) == 16);

/// Host-side work in queue order: a copy or a mark.
struct HostWork {
  std::function<void()> work;
  /// Receives the virtual time at which everything before has ended; may be empty.
  std::function<void(int64_t)> mark;
  /// How long the device takes for it.
  int64_t modelled = 0;
  int64_t enqueueTime = 0;
  std::unique_ptr<ActivityRecord> record;
};

/// What an execution carries until it completes. Reused through a free list.
struct Submission {
  Model *model = nullptr;
  /// Name of the operator or graph, for error messages.
  const std::string *label = nullptr;
  /// Of the program; never null once it is submitted.
  const FaultNotes *faultNotes = nullptr;
  std::optional<SourceLine> callersLine;
  /// Bound by address, so they live here until the completion.
  std::vector<ParameterSlot> parameters;
  int64_t rngState[2] = {0, 0};
  std::vector<void *> inputs;
  std::vector<void *> outputs;
  std::unique_ptr<ActivityRecord> record;
  /// The operator's records of parameter transfers (host-to-device copies of run-time scalars).
  std::unique_ptr<ActivityRecord> parameterRecord;

private:
  friend class Queue;
  class Queue *queue = nullptr;
  int64_t enqueueTime = 0;
  uint64_t sequence = 0;
  std::vector<HostWork> followers;
};

class Queue {
public:
  explicit Queue(int device) : device_(device) {}

  int device() const { return device_; }

  /// A blank submission; hand it to submit() or discard it.
  std::unique_ptr<Submission> acquire();
  void recycle(std::unique_ptr<Submission> submission);

  /// Enqueues an execution; returns its sequence number. Blocks while the queue is full, and until completion under
  /// NEURON_LAUNCH_BLOCKING.
  uint64_t submit(std::unique_ptr<Submission> submission);

  /// Runs `work` after everything enqueued so far: at once on the calling thread when the queue is idle, otherwise on
  /// the device thread. `modelled` is how long the device takes for it, charged to the virtual clock; the start and end
  /// on the virtual clock are written to `record` if there is one.
  void submitHost(std::function<void()> work, int64_t modelled, std::unique_ptr<ActivityRecord> record);
  /// As above for a mark without duration; receives the virtual time.
  void submitMark(std::function<void(int64_t virtualTime)> mark);

  /// Waits until everything enqueued so far is done, then raises the first pending error (once). An interrupt ends the
  /// wait, not the work: what was enqueued runs to its end, and later work comes behind it.
  void synchronise();
  /// As above without raising errors of executions.
  void wait();
  /// As above without looking at interrupts, for where nothing may be raised.
  void drain() noexcept;
  bool idle();
  /// Number of executions completed so far, and enqueued so far.
  uint64_t completed();
  uint64_t submitted();

  /// Moves the virtual clock to the present (it may have run ahead).
  void reanchorClock();

  /// For the runtime: the execution of a Submission has ended.
  static void complete(void *context, const std::string &error, const IndexFault *fault, const ExecutionTiming &timing);

private:
  void onComplete(std::unique_ptr<Submission> submission, const std::string &error, const IndexFault *fault,
                  const ExecutionTiming &timing);
  /// What is known about an error until somebody is told of it.
  struct Failure {
    std::string label, text;
    /// Of an index out of range: what the instruction was made of, and where it was called.
    std::optional<IndexFault> fault;
    std::vector<uint32_t> nodes;
    FaultNotes notes;
    std::optional<SourceLine> callersLine;
  };
  static Failure failureOf(const Submission &submission, const std::string &error, const IndexFault *fault);
  void append(HostWork work);
  void run(HostWork work);
  template <typename Ready> void waitForProgress(std::unique_lock<std::mutex> &lock, Ready ready);
  /// Reserves `duration` on the virtual clock, not before `earliest`; returns the start.
  int64_t reserve(int64_t earliest, int64_t duration);

  const int device_;
  std::mutex mutex_;
  std::condition_variable progress_;
  int waiters_ = 0;
  /// The execution enqueued last, while it is pending.
  Submission *last_ = nullptr;
  uint64_t submitted_ = 0;
  uint64_t completed_ = 0;
  int64_t clock_ = 0;
  /// The first that nobody has seen yet.
  std::optional<Failure> failure_;
  std::vector<std::unique_ptr<Submission>> free_;
};

/// The queue of a device; initialises the runtime.
Queue &queueOf(int device);
/// Waits for all queues that exist.
void drainAllQueues() noexcept;
/// Before the process ends: stops what still runs instead of waiting for results that nobody can see.
void cancelAllQueues() noexcept;
void reanchorDeviceClocks();

/// Modelled duration of a copy within device memory.
int64_t deviceCopyTime(int64_t bytes);
/// Modelled duration of a host transfer of so many bytes, in nanoseconds (docs/Profiling.md states the constants).
int64_t hostTransferTime(int64_t bytes);

} // namespace neuroncore::device

#endif // NEURON_PYTHON_CSRC_QUEUE_H

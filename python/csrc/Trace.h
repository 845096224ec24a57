// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the profiler needs to know about device work: one record per execution and per copy, taken at enqueue (which
// PyTorch operator is running) and completed on the device thread (modelled times). Recording is off unless a capture
// is active, and then costs one allocation per launch.

#ifndef NEURON_PYTHON_CSRC_TRACE_H
#define NEURON_PYTHON_CSRC_TRACE_H

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace neuroncore::device {

struct ActivityRecord {
  enum class Kind : uint8_t { Execution, HostToDevice, DeviceToHost, DeviceToDevice, Fill };
  Kind kind = Kind::Execution;
  int32_t device = 0;
  int64_t stream = 0;
  /// Correlation id of the operator that launched this, 0 if none was being recorded.
  uint64_t externalId = 0;
  /// System thread id of the launching thread.
  int32_t threadId = 0;
  /// Our own id, unique in the process, in Kineto's id space (far from PyTorch's operator ids).
  int32_t correlation = 0;
  /// Position in the device's queue: queue number in the top 16 bits, as nrta_seq_t.
  uint64_t sequence = 0;
  /// Host clock, nanoseconds since the Unix epoch.
  int64_t enqueueStart = 0;
  int64_t enqueueEnd = 0;
  /// Modelled device clock, in the same time base.
  int64_t deviceStart = 0;
  int64_t deviceEnd = 0;
  int64_t kernelNanoseconds = 0;
  int64_t overheadNanoseconds = 0;
  int64_t bytes = 0;
  /// Short kernel name.
  std::string name;
  /// Content hash of the NEFF (Execution only), as in the cache and in the session folder.
  std::string neffHash;
  bool failed = false;
};

/// The operator ids PyTorch pushes while it records. Static and per thread: sessions come and go, and pops may be
/// unbalanced when a capture starts or ends inside an operator.
class CorrelationStack {
public:
  static void push(uint64_t id);
  static void pop();
  /// The id `depth` entries below the top (0 = top); 0 if there is none.
  static uint64_t peek(size_t depth);
};

struct CaptureOptions {
  /// Charge the fixed cost of an execution under DEVICE capture.
  bool deviceCapture = false;
  /// Bit i set: record device i.
  uint64_t deviceMask = ~uint64_t(0);
  /// Oldest records are dropped beyond this number per device.
  size_t maxEventsPerDevice = 1000000;
};

class Recorder {
public:
  static Recorder &instance();
  /// True while a capture runs; checked on every launch.
  static bool active() { return active_.load(std::memory_order_relaxed); }
  /// True while executions carry the fixed cost of DEVICE capture.
  static bool deviceCapture() { return deviceCapture_.load(std::memory_order_relaxed); }

  void start(const CaptureOptions &options);
  /// Waits for all devices, ends the capture and returns what was enqueued since start().
  std::vector<ActivityRecord> stop();
  /// Drops a capture that was started and never stopped.
  void cancel();

  /// Null when no capture is active or the device is filtered out.
  std::unique_ptr<ActivityRecord> begin(ActivityRecord::Kind kind, int device, int64_t stream, size_t depth);
  void finish(std::unique_ptr<ActivityRecord> record);

  /// The records of the last finished capture, for the session files.
  std::vector<ActivityRecord> lastCapture() const;

private:
  static std::atomic<bool> active_;
  static std::atomic<bool> deviceCapture_;
};

/// Nanoseconds since the Unix epoch.
int64_t wallClock();
int32_t systemThreadId();

} // namespace neuroncore::device

#endif // NEURON_PYTHON_CSRC_TRACE_H

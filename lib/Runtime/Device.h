// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One core: its memory, and an in-order queue served by one device thread that owns the emulated core.

#ifndef NEURON_LIB_RUNTIME_DEVICE_H
#define NEURON_LIB_RUNTIME_DEVICE_H

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lib/Runtime/DeviceMemory.h"
#include "lib/Runtime/Settings.h"
#include "neuron/Emulator/Emulator.h"
#include "neuron/Support/Progress.h"
#include "neuron/Target/MachineModel.h"
#include "nrt/nrt_async.h"
#include "nrt/open_neuron.h"

struct nrt_model;

namespace neuroncore::runtime {

struct Storage;
class TensorCompletion;

/// Errors of work that was scheduled with a tracker.
struct ErrorTracker {
  std::mutex mutex;
  std::vector<nrta_error_t> errors;
};

/// A sequence number's execution unit: (core, unit, queue).
inline constexpr int kQueuesPerUnit = 4;
inline constexpr int kUnitsPerCore = NRTA_XU_TYPE_NUM * kQueuesPerUnit;
inline int unitOf(nrta_xu_t unit, int queue) { return int(unit) * kQueuesPerUnit + queue; }

/// One piece of queued work.
struct Task {
  enum class Kind : uint8_t { Execute, Copy, Memset, Marker };
  Kind kind = Kind::Marker;
  nrta_xu_t unit = NRTA_XU_COMPUTE;
  int queue = 0;
  // Execute
  nrt_model *model = nullptr;
  std::vector<void *> inputs, outputs;
  int repeat = 1;
  bool checked = false;
  /// Results of aliased outputs that were bound to other memory: (from, to, bytes) after the execution.
  struct CopyBack {
    const void *from;
    void *to;
    size_t bytes;
  };
  std::vector<CopyBack> copyBacks;
  std::vector<std::shared_ptr<TensorCompletion>> completions;
  // Copy, Memset
  void *dst = nullptr;
  const void *src = nullptr;
  size_t size = 0;
  int value = 0;

  open_neuron_callback_t callback = nullptr;
  void *user = nullptr;
  std::shared_ptr<ErrorTracker> tracker;
  /// Keeps memory of tensors alive until the work is done.
  std::vector<std::shared_ptr<Storage>> storage;
  /// The one who waits takes the result from here; it is then not kept for another wait.
  struct Result {
    NRT_STATUS status = NRT_SUCCESS;
    std::string message;
  };
  std::shared_ptr<Result> result;
  int64_t enqueuedNs = 0;
  /// System thread that enqueued it; only while a capture runs.
  int threadId = 0;
  uint64_t number = 0;
};

int64_t monotonicNs();

class Device;
/// A line that shows how far the device is to who has waited for a second.
std::unique_ptr<ProgressLine> progressOf(Device &device);

class Device {
public:
  Device(int index, const Settings &settings, const target::MachineModel &model, std::unique_ptr<DeviceMemory> memory);
  ~Device();
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  int index() const { return index_; }
  DeviceMemory &memory() { return *memory_; }
  const target::MachineModel &model() const { return model_; }

  /// NRT_QUEUE_FULL when too much is waiting.
  NRT_STATUS enqueue(Task task, nrta_seq_t *sequence);
  /// False for a number that was never given out.
  bool isKnown(int unit, uint64_t number) const;
  bool isCompleted(int unit, uint64_t number) const;
  uint64_t lastCompleted(int unit) const;
  void waitFor(int unit, uint64_t number);
  void waitIdle();
  /// What a line of progress says: what is executed, how far it is, and how much waits behind it.
  std::string describeProgress();
  /// Makes every execution fail until the queue is empty, then returns.
  void cancel();
  /// Calls `notify` (an eventfd, owned by the device from now on) when the work is done.
  void notifyWhenCompleted(int unit, uint64_t number, int fd);
  /// The first failure that nobody has reported yet; all recorded ones are dropped.
  std::optional<Task::Result> takeError();

  void setWorkerThreads(int threads) { workerThreads_.store(threads, std::memory_order_relaxed); }
  void setDeviceCapture(bool enabled) { deviceCapture_.store(enabled, std::memory_order_relaxed); }

  nrta_seq_t sequenceOf(int unit, uint64_t number) const {
    return nrta_seq_t(index_ * kUnitsPerCore + unit) << 48 | number;
  }

private:
  static constexpr size_t kMaxPending = 4096;

  /// workDone_.wait(lock, done), with a line of progress when it takes long.
  template <typename Done> void wait(std::unique_lock<std::mutex> &lock, Done done);
  void threadMain();
  void runTask(Task &task);
  /// For captures of the runtime's own.
  void traceTask(const Task &task, const open_neuron_timing_t &timing, bool hasTiming, NRT_STATUS code);
  Status execute(Task &task, open_neuron_timing_t &timing, bool &hasTiming,
                 std::optional<open_neuron_index_fault_t> &indexFault);
  Status ensureCore();

  std::atomic<bool> cancelled_ = false;
  const int index_;
  const Settings &settings_;
  const target::MachineModel &model_;
  std::unique_ptr<DeviceMemory> memory_;

  mutable std::mutex mutex_;
  std::condition_variable workAvailable_;
  std::condition_variable workDone_;
  std::deque<Task> queue_;
  std::array<uint64_t, kUnitsPerCore> scheduled_ = {};
  std::array<std::atomic<uint64_t>, kUnitsPerCore> completed_ = {};
  struct Notification {
    int unit;
    uint64_t number;
    int fd;
  };
  std::vector<Notification> notifications_;
  std::vector<Task::Result> errors_;
  /// What the device thread executes, for those who ask how far it is.
  struct Running {
    std::shared_ptr<const emulator::LoadedProgram> program;
    int64_t startNs = 0;
    int repeat = 1;
  };
  Running running_;
  size_t unfinished_ = 0;
  int waiters_ = 0;
  bool sleeping_ = false;
  bool stop_ = false;
  std::atomic<uint64_t> arrivals_ = 0;
  /// Instructions of what runs, in steps.
  std::atomic<uint64_t> executed_ = 0;
  std::thread thread_;

  std::atomic<int> workerThreads_ = 0;
  std::atomic<bool> deviceCapture_ = false;

  // Of the device thread.
  std::unique_ptr<emulator::Core> core_;
  isa::ActivationSet tableSet_ = isa::ActivationSet::Any;
  int64_t virtualEndNs_ = 0;
};

} // namespace neuroncore::runtime

#endif // NEURON_LIB_RUNTIME_DEVICE_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Trace.h"

#include "TraceLoss.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <mutex>
#include <sys/syscall.h>
#include <unistd.h>

#include "Queue.h"

namespace neuroncore::device {

std::atomic<bool> Recorder::active_{false};
std::atomic<bool> Recorder::deviceCapture_{false};

namespace {

// Kineto ids are 32 bits wide and shared with PyTorch's operator ids, which count up from 1.
constexpr int32_t firstCorrelation = 1 << 30;

struct RecorderState {
  mutable std::mutex mutex;
  CaptureOptions options;
  int64_t startTime = 0;
  std::vector<std::deque<ActivityRecord>> perDevice;
  std::vector<ActivityRecord> last;
  uint64_t lost = 0, lastLost = 0;
};

RecorderState &state() {
  // Leaked: the device thread may still deliver records while the process exits.
  static auto *theState = new RecorderState;
  return *theState;
}

std::vector<uint64_t> &correlationIds() {
  thread_local std::vector<uint64_t> ids;
  return ids;
}

} // namespace

void CorrelationStack::push(uint64_t id) { correlationIds().push_back(id); }

void CorrelationStack::pop() {
  if (!correlationIds().empty())
    correlationIds().pop_back();
}

uint64_t CorrelationStack::peek(size_t depth) {
  const auto &ids = correlationIds();
  return depth < ids.size() ? ids[ids.size() - 1 - depth] : 0;
}

Recorder &Recorder::instance() {
  static Recorder recorder;
  return recorder;
}

void Recorder::start(const CaptureOptions &options) {
  RecorderState &current = state();
  std::lock_guard<std::mutex> lock(current.mutex);
  current.options = options;
  current.startTime = wallClock();
  current.perDevice.clear();
  current.lost = 0;
  // The virtual clocks may have run ahead of the wall clock; a capture begins at the present.
  reanchorDeviceClocks();
  deviceCapture_.store(options.deviceCapture);
  active_.store(true);
}

std::vector<ActivityRecord> Recorder::stop() {
  // Work of this capture is usually pending when a profiler step ends without a synchronisation.
  drainAllQueues();
  RecorderState &current = state();
  std::lock_guard<std::mutex> lock(current.mutex);
  active_.store(false);
  deviceCapture_.store(false);
  current.last.clear();
  for (auto &records : current.perDevice)
    current.last.insert(current.last.end(), std::make_move_iterator(records.begin()),
                        std::make_move_iterator(records.end()));
  current.perDevice.clear();
  current.lastLost = current.lost;
  std::stable_sort(current.last.begin(), current.last.end(),
                   [](const auto &a, const auto &b) { return a.enqueueStart < b.enqueueStart; });
  return current.last;
}

void Recorder::cancel() {
  RecorderState &current = state();
  std::lock_guard<std::mutex> lock(current.mutex);
  active_.store(false);
  deviceCapture_.store(false);
  current.perDevice.clear();
}

std::unique_ptr<ActivityRecord> Recorder::begin(ActivityRecord::Kind kind, int device, int64_t stream, size_t depth) {
  static std::atomic<uint32_t> counter{0};
  if (!active())
    return nullptr;
  {
    RecorderState &current = state();
    std::lock_guard<std::mutex> lock(current.mutex);
    if (device < 64 && !(current.options.deviceMask >> device & 1))
      return nullptr;
  }
  auto record = std::make_unique<ActivityRecord>();
  record->kind = kind;
  record->device = device;
  record->stream = stream;
  record->externalId = CorrelationStack::peek(depth);
  record->threadId = systemThreadId();
  record->correlation = firstCorrelation + static_cast<int32_t>(counter.fetch_add(1) % (1u << 29));
  record->enqueueStart = wallClock();
  return record;
}

void Recorder::finish(std::unique_ptr<ActivityRecord> record) {
  RecorderState &current = state();
  std::lock_guard<std::mutex> lock(current.mutex);
  // In flight when the capture started, or delivered after it was cancelled: not part of it.
  if (!active() || record->enqueueStart < current.startTime)
    return;
  if (current.perDevice.size() <= static_cast<size_t>(record->device))
    current.perDevice.resize(record->device + 1);
  auto &records = current.perDevice[record->device];
  records.push_back(std::move(*record));
  if (records.size() > current.options.maxEventsPerDevice) {
    records.pop_front();
    ++current.lost;
  }
}

uint64_t lostRecords() {
  RecorderState &current = state();
  std::lock_guard<std::mutex> lock(current.mutex);
  return current.lastLost;
}

std::vector<ActivityRecord> Recorder::lastCapture() const {
  RecorderState &current = state();
  std::lock_guard<std::mutex> lock(current.mutex);
  return current.last;
}

int64_t wallClock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int32_t systemThreadId() {
  thread_local const auto id = static_cast<int32_t>(syscall(SYS_gettid));
  return id;
}

} // namespace neuroncore::device

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Queue.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <c10/util/Exception.h>

#include "Device.h"
#include "Interrupt.h"

namespace neuroncore::device {

namespace {

/// Bounds the memory that pending work may hold; far above what hides the launch latency.
constexpr uint64_t maxInFlight = 4096;
constexpr size_t maxFreeSubmissions = 256;

// Host link of an instance: inferred (no public figure); docs/Profiling.md lists both constants.
constexpr int64_t hostTransferLatency = 2000;
constexpr double hostTransferBytesPerNanosecond = 32.0;
// A copy reads and writes HBM: half of one core's share of 362.5 GB/s (trn2), after the documented DMA latency.
constexpr int64_t deviceCopyLatency = 2000;
constexpr double deviceCopyBytesPerNanosecond = 181.0;

std::mutex &queuesMutex() {
  static auto *mutex = new std::mutex;
  return *mutex;
}

std::array<std::atomic<Queue *>, maxDevices> &queues() {
  // Leaked with their queues: the device threads may outlive static destruction.
  static auto *all = new std::array<std::atomic<Queue *>, maxDevices>{};
  return *all;
}

bool launchBlocking() {
  static const bool enabled = [] {
    const char *value = std::getenv("NEURON_LAUNCH_BLOCKING");
    return value && std::strcmp(value, "1") == 0;
  }();
  return enabled;
}

} // namespace

int64_t hostTransferTime(int64_t bytes) {
  return hostTransferLatency + static_cast<int64_t>(static_cast<double>(bytes) / hostTransferBytesPerNanosecond);
}

int64_t deviceCopyTime(int64_t bytes) {
  return deviceCopyLatency + static_cast<int64_t>(static_cast<double>(bytes) / deviceCopyBytesPerNanosecond);
}

std::unique_ptr<Submission> Queue::acquire() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
      auto submission = std::move(free_.back());
      free_.pop_back();
      return submission;
    }
  }
  return std::make_unique<Submission>();
}

void Queue::recycle(std::unique_ptr<Submission> submission) {
  submission->model = nullptr;
  submission->label = nullptr;
  submission->faultNotes = nullptr;
  submission->callersLine.reset();
  submission->parameters.clear();
  submission->inputs.clear();
  submission->outputs.clear();
  submission->followers.clear();
  submission->record.reset();
  submission->parameterRecord.reset();
  std::lock_guard<std::mutex> lock(mutex_);
  if (free_.size() < maxFreeSubmissions)
    free_.push_back(std::move(submission));
}

template <typename Ready> void Queue::waitForProgress(std::unique_lock<std::mutex> &lock, Ready ready) {
  struct Waiter {
    int &count;
    explicit Waiter(int &waiters) : count(waiters) { ++count; }
    ~Waiter() { --count; }
  } waiter(waiters_);
  constexpr std::chrono::seconds beforeProgress{1};
  const auto start = std::chrono::steady_clock::now();
  std::optional<WaitProgress> line;
  waitInterruptibly(progress_, lock, ready, [&] {
    if (!line && std::chrono::steady_clock::now() - start >= beforeProgress)
      line.emplace(device_);
  });
}

uint64_t Queue::submit(std::unique_ptr<Submission> submission) {
  submission->queue = this;
  if (submission->record)
    submission->record->enqueueEnd = wallClock();
  std::unique_lock<std::mutex> lock(mutex_);
  if (submitted_ - completed_ >= maxInFlight)
    waitForProgress(lock, [&] { return submitted_ - completed_ < maxInFlight; });
  submission->enqueueTime = wallClock();
  // The completion needs the mutex, so it cannot overtake the bookkeeping below.
  while (!submission->model->enqueue(submission->inputs.data(), submission->outputs.data(), submission.get())) {
    const uint64_t seen = completed_;
    waitForProgress(lock, [&] { return completed_ != seen || submitted_ == completed_; });
  }
  submission->sequence = ++submitted_;
  if (submission->record)
    submission->record->sequence = (static_cast<uint64_t>(device_) << 48) | submission->sequence;
  last_ = submission.release();
  const uint64_t sequence = submitted_;
  lock.unlock();
  if (launchBlocking())
    synchronise();
  return sequence;
}

int64_t Queue::reserve(int64_t earliest, int64_t duration) {
  const int64_t start = std::max(clock_, earliest);
  clock_ = start + duration;
  return start;
}

void completeExecution(void *context, const std::string &error, const IndexFault *fault,
                       const ExecutionTiming &timing) {
  Queue::complete(context, error, fault, timing);
}

void Queue::complete(void *context, const std::string &error, const IndexFault *fault, const ExecutionTiming &timing) {
  std::unique_ptr<Submission> submission(static_cast<Submission *>(context));
  Queue *queue = submission->queue;
  queue->onComplete(std::move(submission), error, fault, timing);
}

Queue::Failure Queue::failureOf(const Submission &submission, const std::string &error, const IndexFault *fault) {
  Failure failure;
  failure.label = submission.label ? *submission.label + ": " : std::string();
  failure.text = error;
  if (fault && submission.faultNotes && *submission.faultNotes) {
    failure.fault = *fault;
    failure.nodes = submission.model->nodesOf(fault->debugId);
    failure.notes = *submission.faultNotes;
    failure.callersLine = submission.callersLine;
  }
  return failure;
}

void Queue::onComplete(std::unique_ptr<Submission> submission, const std::string &error, const IndexFault *fault,
                       const ExecutionTiming &timing) {
  const int64_t parameterTime =
      submission->parameters.empty()
          ? 0
          : hostTransferTime(static_cast<int64_t>(submission->parameters.size() * sizeof(ParameterSlot)));
  const int64_t overhead = Recorder::deviceCapture() ? timing.captureOverhead : timing.overhead;
  std::unique_lock<std::mutex> lock(mutex_);
  if (!error.empty() && !failure_)
    failure_ = failureOf(*submission, error, fault);
  const int64_t transferStart = reserve(submission->enqueueTime, parameterTime);
  const int64_t start = reserve(transferStart + parameterTime, overhead + timing.kernel);
  const int64_t end = clock_;
  lock.unlock();

  if (auto &record = submission->parameterRecord) {
    record->enqueueEnd = submission->enqueueTime;
    record->deviceStart = transferStart;
    record->deviceEnd = transferStart + parameterTime;
    Recorder::instance().finish(std::move(record));
  }
  if (auto &record = submission->record) {
    record->deviceStart = start;
    record->deviceEnd = end;
    record->kernelNanoseconds = timing.kernel;
    record->overheadNanoseconds = overhead;
    record->failed = !error.empty();
    Recorder::instance().finish(std::move(record));
  }

  lock.lock();
  while (!submission->followers.empty()) {
    auto followers = std::move(submission->followers);
    submission->followers.clear();
    lock.unlock();
    for (HostWork &follower : followers)
      run(std::move(follower));
    lock.lock();
  }
  if (last_ == submission.get())
    last_ = nullptr;
  ++completed_;
  const bool notify = waiters_ > 0;
  lock.unlock();
  if (notify)
    progress_.notify_all();
  recycle(std::move(submission));
}

void Queue::run(HostWork item) {
  int64_t start;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    start = reserve(item.enqueueTime, item.modelled);
  }
  if (item.work)
    item.work();
  if (item.mark)
    item.mark(start);
  if (item.record) {
    item.record->deviceStart = start;
    item.record->deviceEnd = start + item.modelled;
    Recorder::instance().finish(std::move(item.record));
  }
}

void Queue::append(HostWork item) {
  ensureUsable();
  item.enqueueTime = wallClock();
  if (item.record) {
    item.record->enqueueEnd = item.enqueueTime;
    item.record->sequence = (static_cast<uint64_t>(device_) << 48) | submitted();
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (last_) {
      last_->followers.push_back(std::move(item));
      return;
    }
  }
  run(std::move(item));
}

void Queue::submitHost(std::function<void()> work, int64_t modelled, std::unique_ptr<ActivityRecord> record) {
  HostWork item;
  item.work = std::move(work);
  item.modelled = modelled;
  item.record = std::move(record);
  append(std::move(item));
}

void Queue::submitMark(std::function<void(int64_t)> mark) {
  HostWork item;
  item.mark = std::move(mark);
  append(std::move(item));
}

void Queue::wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  const uint64_t target = submitted_;
  if (completed_ < target)
    waitForProgress(lock, [&] { return completed_ >= target; });
}

void Queue::drain() noexcept {
  std::unique_lock<std::mutex> lock(mutex_);
  const uint64_t target = submitted_;
  if (completed_ >= target)
    return;
  ++waiters_;
  progress_.wait(lock, [&] { return completed_ >= target; });
  --waiters_;
}

void Queue::synchronise() {
  ensureUsable();
  wait();
  std::optional<Failure> failure;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    failure.swap(failure_);
  }
  if (!failure)
    return;
  std::optional<FaultDescription> description;
  if (failure->fault)
    description = describeFault(*failure->fault, failure->nodes, (*failure->notes)(), failure->callersLine);
  const std::string text =
      failure->label + (description ? description->text + "\n(device: " + failure->text + ')' : failure->text);
  TORCH_CHECK_INDEX(!description || !description->isIndexError, "execution failed on neuron:", device_, ": ", text);
  TORCH_CHECK(false, "execution failed on neuron:", device_, ": ", text);
}

bool Queue::idle() {
  std::lock_guard<std::mutex> lock(mutex_);
  return completed_ == submitted_;
}

uint64_t Queue::completed() {
  std::lock_guard<std::mutex> lock(mutex_);
  return completed_;
}

uint64_t Queue::submitted() {
  std::lock_guard<std::mutex> lock(mutex_);
  return submitted_;
}

void Queue::reanchorClock() {
  std::lock_guard<std::mutex> lock(mutex_);
  clock_ = wallClock();
}

Queue &queueOf(int device) {
  ensureUsable();
  checkedDevice(device);
  auto &slot = queues()[device];
  if (Queue *queue = slot.load(std::memory_order_acquire))
    return *queue;
  std::lock_guard<std::mutex> lock(queuesMutex());
  if (!slot.load())
    slot.store(new Queue(device));
  return *slot.load();
}

void drainAllQueues() noexcept {
  if (!isInitialised() || isInBadFork())
    return;
  for (auto &slot : queues())
    if (Queue *queue = slot.load(std::memory_order_acquire))
      queue->drain();
}

void cancelAllQueues() noexcept {
  if (!isInitialised() || isInBadFork())
    return;
  for (auto &slot : queues())
    if (Queue *queue = slot.load(std::memory_order_acquire); queue && !queue->idle())
      cancelExecutions(queue->device());
  drainAllQueues();
}

void reanchorDeviceClocks() {
  if (!isInitialised() || isInBadFork())
    return;
  for (auto &slot : queues())
    if (Queue *queue = slot.load(std::memory_order_acquire))
      queue->reanchorClock();
}

} // namespace neuroncore::device

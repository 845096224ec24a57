// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/Device.h"

#include <algorithm>
#include <cstring>

#include <ctime>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/Runtime/Inspect.h"
#include "lib/Runtime/Model.h"
#include "lib/Runtime/Status.h"
#include "lib/Runtime/SystemTrace.h"
#include "lib/Runtime/Tensor.h"
#include "neuron/Isa/RejectedIndex.h"
#include "neuron/Support/Text.h"

namespace neuroncore::runtime {

int64_t monotonicNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
}

namespace {

/// An idle device thread looks for work this long before it sleeps: waking it costs more than most small executions.
constexpr int64_t kSpinNs = 50000;

constexpr std::chrono::seconds kBeforeProgress{1};

bool isCaptured() { return SystemTrace::active() || Inspector::active(); }

/// What turns the monotonic clock into nanoseconds since the Unix epoch.
int64_t epochOffsetNs() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t(now.tv_sec) * 1000000000 + now.tv_nsec - monotonicNs();
}

int defaultWorkerThreads() {
  const int processors = int(std::thread::hardware_concurrency());
  return std::clamp(processors, 1, 4);
}

} // namespace

Device::Device(int index, const Settings &settings, const target::MachineModel &model,
               std::unique_ptr<DeviceMemory> memory)
    : index_(index), settings_(settings), model_(model), memory_(std::move(memory)) {}

Device::~Device() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    arrivals_.fetch_add(1, std::memory_order_release);
  }
  workAvailable_.notify_all();
  if (thread_.joinable())
    thread_.join();
  for (const Notification &notification : notifications_)
    close(notification.fd);
}

NRT_STATUS Device::enqueue(Task task, nrta_seq_t *sequence) {
  task.enqueuedNs = monotonicNs();
  if (isCaptured())
    task.threadId = int(syscall(SYS_gettid));
  bool wake;
  {
    std::lock_guard lock(mutex_);
    if (unfinished_ >= kMaxPending)
      return fail(NRT_QUEUE_FULL, cat("core ", index_, " has ", unfinished_,
                                      " pieces of work waiting; wait for one to complete and try again"));
    if (!thread_.joinable())
      thread_ = std::thread([this] { threadMain(); });
    const int unit = unitOf(task.unit, task.queue);
    task.number = ++scheduled_[unit];
    if (sequence)
      *sequence = sequenceOf(unit, task.number);
    queue_.push_back(std::move(task));
    ++unfinished_;
    wake = sleeping_;
    arrivals_.fetch_add(1, std::memory_order_release);
  }
  if (wake)
    workAvailable_.notify_one();
  return NRT_SUCCESS;
}

bool Device::isKnown(int unit, uint64_t number) const {
  std::lock_guard lock(mutex_);
  return number >= 1 && number <= scheduled_[unit];
}

bool Device::isCompleted(int unit, uint64_t number) const {
  return completed_[unit].load(std::memory_order_acquire) >= number;
}

uint64_t Device::lastCompleted(int unit) const { return completed_[unit].load(std::memory_order_acquire); }

void Device::waitFor(int unit, uint64_t number) {
  if (isCompleted(unit, number))
    return;
  std::unique_lock lock(mutex_);
  wait(lock, [&] { return isCompleted(unit, number); });
}

void Device::waitIdle() {
  std::unique_lock lock(mutex_);
  wait(lock, [&] { return unfinished_ == 0; });
}

template <typename Done> void Device::wait(std::unique_lock<std::mutex> &lock, Done done) {
  ++waiters_;
  // The line and its thread only for those who wait long.
  if (!workDone_.wait_for(lock, kBeforeProgress, done)) {
    lock.unlock();
    const std::unique_ptr<ProgressLine> line = progressOf(*this);
    lock.lock();
    workDone_.wait(lock, done);
    // Its thread asks for the queue's state.
    lock.unlock();
  }
  if (!lock.owns_lock())
    lock.lock();
  --waiters_;
}

std::string Device::describeProgress() {
  Running running;
  size_t waiting = 0;
  {
    std::lock_guard lock(mutex_);
    running = running_;
    waiting = queue_.size();
  }
  std::string text;
  if (running.program) {
    text = running.program->neff().name;
    // It counts in steps, which short programs do not reach. What is left is told of the last one only.
    if (const uint64_t executed = executed_.load(std::memory_order_relaxed))
      text +=
          cat(", ", describeAmount(executed, running.program->executedInstructions() * uint64_t(running.repeat),
                                   "instructions", waiting != 0 ? 0 : double(monotonicNs() - running.startNs) / 1e9));
  }
  if (waiting != 0)
    text += cat(text.empty() ? "" : ", ", waiting, " more in the queue");
  return text;
}

std::unique_ptr<ProgressLine> progressOf(Device &device) {
  return std::make_unique<ProgressLine>(
      cat("neuron:", device.index(), " executes"), [&device] { return device.describeProgress(); },
      std::chrono::steady_clock::now() - kBeforeProgress);
}

void Device::cancel() {
  std::unique_lock lock(mutex_);
  cancelled_.store(true, std::memory_order_relaxed);
  ++waiters_;
  workDone_.wait(lock, [&] { return unfinished_ == 0; });
  --waiters_;
  cancelled_.store(false, std::memory_order_relaxed);
}

void Device::notifyWhenCompleted(int unit, uint64_t number, int fd) {
  {
    std::lock_guard lock(mutex_);
    if (!isCompleted(unit, number)) {
      notifications_.push_back({unit, number, fd});
      return;
    }
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(fd, &one, sizeof(one));
  close(fd);
}

std::optional<Task::Result> Device::takeError() {
  std::lock_guard lock(mutex_);
  if (errors_.empty())
    return std::nullopt;
  Task::Result first = std::move(errors_.front());
  errors_.clear();
  return first;
}

void Device::threadMain() {
  // What profilers and debuggers show.
  pthread_setname_np(pthread_self(), cat("neuron:", index_).c_str());
  while (true) {
    // Spin without the lock while nothing has arrived, then sleep.
    std::optional<Task> task;
    {
      std::unique_lock lock(mutex_);
      if (queue_.empty() && !stop_) {
        const uint64_t seen = arrivals_.load(std::memory_order_acquire);
        lock.unlock();
        const int64_t begin = monotonicNs();
        while (arrivals_.load(std::memory_order_acquire) == seen && monotonicNs() - begin < kSpinNs)
          std::this_thread::yield();
        lock.lock();
        sleeping_ = true;
        workAvailable_.wait(lock, [&] { return !queue_.empty() || stop_; });
        sleeping_ = false;
      }
      if (queue_.empty())
        return; // stopped, and everything is done
      task = std::move(queue_.front());
      queue_.pop_front();
      if (task->kind == Task::Kind::Execute) {
        executed_.store(0, std::memory_order_relaxed);
        running_ = {task->model->program, monotonicNs(), task->repeat};
      }
    }
    runTask(*task);
  }
}

void Device::runTask(Task &task) {
  open_neuron_timing_t timing = {};
  timing.sequence = sequenceOf(unitOf(task.unit, task.queue), task.number);
  bool hasTiming = false;
  Status status;
  std::optional<open_neuron_index_fault_t> indexFault;
  timing.host_start_ns = uint64_t(monotonicNs());
  switch (task.kind) {
  case Task::Kind::Execute:
    status = execute(task, timing, hasTiming, indexFault);
    break;
  case Task::Kind::Copy:
    std::memmove(task.dst, task.src, task.size);
    break;
  case Task::Kind::Memset:
    std::memset(task.dst, task.value, task.size);
    break;
  case Task::Kind::Marker:
    break;
  }
  timing.host_end_ns = uint64_t(monotonicNs());
  NRT_STATUS code = NRT_SUCCESS;
  std::string message;
  if (!status) {
    code = executionStatusOf(status.error());
    message = status.error().message();
    if (message.find("ran past its time limit") != std::string::npos)
      code = NRT_TIMEOUT;
    log(LogLevel::Info, "execute", message);
  }
  setLastError(message);
  setLastIndexFault(status ? std::nullopt : indexFault);
  if (task.tracker && code != NRT_SUCCESS) {
    std::lock_guard lock(task.tracker->mutex);
    task.tracker->errors.push_back({timing.sequence, uint64_t(code)});
  }
  if (isCaptured())
    traceTask(task, timing, hasTiming, code);
  for (const std::shared_ptr<TensorCompletion> &completion : task.completions)
    completion->increment();
  // Before the work counts as done: who waits for it may rely on the callback having run.
  if (task.callback)
    task.callback(task.user, code, hasTiming ? &timing : nullptr);
  task.storage.clear();
  bool notify;
  {
    std::lock_guard lock(mutex_);
    if (code != NRT_SUCCESS) {
      if (task.result)
        *task.result = {code, message};
      else
        errors_.push_back({code, message});
    }
    const int unit = unitOf(task.unit, task.queue);
    completed_[unit].store(task.number, std::memory_order_release);
    --unfinished_;
    running_ = {};
    std::erase_if(notifications_, [&](const Notification &notification) {
      if (notification.unit != unit || notification.number > task.number)
        return false;
      const uint64_t one = 1;
      [[maybe_unused]] const ssize_t written = write(notification.fd, &one, sizeof(one));
      close(notification.fd);
      return true;
    });
    notify = waiters_ > 0;
  }
  if (notify)
    workDone_.notify_all();
}

void Device::traceTask(const Task &task, const open_neuron_timing_t &timing, bool hasTiming, NRT_STATUS code) {
  if (task.kind == Task::Kind::Marker)
    return;
  const int64_t offset = epochOffsetNs();
  SystemTrace &trace = SystemTrace::instance();
  SystemEvent event;
  event.core = index_;
  event.sequence = timing.sequence;
  event.threadId = task.threadId;
  event.failed = code != NRT_SUCCESS;
  event.bytes = int64_t(task.size);
  event.trackingId = trace.nextId();
  if (task.kind != Task::Kind::Execute) {
    event.type = task.kind == Task::Kind::Copy ? "tensor_copy" : "tensor_memset";
    event.startNs = int64_t(timing.host_start_ns) + offset;
    event.endNs = int64_t(timing.host_end_ns) + offset;
    trace.record(std::move(event));
    return;
  }
  nrt_model &model = *task.model;
  event.type = "nrta_execute_schedule";
  event.startNs = event.endNs = task.enqueuedNs + offset;
  event.executionId = task.number;
  event.modelId = model.id;
  event.modelName = model.neff->name;
  event.modelHash = model.hash();
  trace.record(event);
  if (!hasTiming)
    return;
  event.type = "nc_exec_running";
  event.isHardware = true;
  event.trackingId = trace.nextId();
  event.startNs = int64_t(timing.virtual_start_ns) + offset;
  event.endNs = int64_t(timing.virtual_end_ns) + offset;
  event.kernelNs = int64_t(timing.kernel_ns);
  event.overheadNs = event.endNs - event.startNs - event.kernelNs;
  if (Inspector::active())
    Inspector::instance().noteExecution(
        model, index_, {task.number, event.modelHash, event.startNs, event.endNs, event.kernelNs, event.overheadNs});
  trace.record(std::move(event));
}

Status Device::ensureCore() {
  const int wanted = workerThreads_.load(std::memory_order_relaxed);
  const int threads = wanted > 0 ? wanted : defaultWorkerThreads();
  if (!core_) {
    Expected<std::unique_ptr<emulator::Core>> core = emulator::Core::create(model_, threads);
    if (!core)
      return core.error();
    core_ = std::move(*core);
  }
  core_->setThreads(threads);
  return Status::success();
}

Status Device::execute(Task &task, open_neuron_timing_t &timing, bool &hasTiming,
                       std::optional<open_neuron_index_fault_t> &indexFault) {
  if (cancelled_.load(std::memory_order_relaxed))
    return Error(ErrorKind::Internal, "execution was cancelled");
  if (Status status = ensureCore(); !status)
    return status;
  nrt_model &model = *task.model;
  // Before the first execution where the path is known, after it where it depends on data.
  if (task.checked && !model.program->pathDependsOnData())
    if (Status status = model.check({}); !status)
      return status;
  emulator::ControlTrace trace;
  emulator::ExecuteOptions options;
  if (model.program->pathDependsOnData())
    options.trace = &trace;
  options.cancel = &cancelled_;
  options.executed = &executed_;
  options.deadline =
      std::chrono::steady_clock::now() + std::chrono::microseconds(int64_t(settings_.execTimeoutSeconds * 1e6));
  model.bind(task.inputs, task.outputs);
  std::optional<emulator::IndexFault> fault;
  options.indexFault = &fault;
  for (int i = 0; i < task.repeat; ++i)
    if (Status status = core_->execute(*model.program, model.bindings, options); !status) {
      if (fault) {
        const isa::RejectedIndex index = isa::RejectedIndex::of(fault->row);
        indexFault = {fault->debugId, index.dimension, index.index};
      }
      return status;
    }
  if (task.checked && model.program->pathDependsOnData())
    if (Status status = model.check(trace); !status)
      return status;
  for (const Task::CopyBack &copy : task.copyBacks)
    std::memmove(copy.to, copy.from, copy.bytes);
  Expected<std::shared_ptr<const emulator::TimingResult>> modelled = model.timing->get(trace, tableSet_);
  if (!modelled)
    return modelled.error();
  const emulator::TimingResult &result = **modelled;
  tableSet_ = result.finalTableSet;
  model.remember(*modelled, trace);
  const target::Sync &sync = model_.sync();
  timing.kernel_ns = uint64_t((result.kernelPs + 500) / 1000);
  timing.overhead_ns = uint64_t(sync.neffStartStopOverheadPs / 1000);
  timing.capture_overhead_ns = uint64_t(sync.neffDeviceCaptureOverheadPs / 1000);
  const uint64_t overhead =
      deviceCapture_.load(std::memory_order_relaxed) ? timing.capture_overhead_ns : timing.overhead_ns;
  const int64_t start = std::max(task.enqueuedNs, virtualEndNs_);
  virtualEndNs_ = start + int64_t(uint64_t(task.repeat) * (timing.kernel_ns + overhead));
  timing.virtual_start_ns = uint64_t(start);
  timing.virtual_end_ns = uint64_t(virtualEndNs_);
  hasTiming = true;
  return Status::success();
}

} // namespace neuroncore::runtime

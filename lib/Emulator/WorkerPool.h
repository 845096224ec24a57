// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A few host threads that share the work of one large instruction at a time. Helpers spin briefly for the next piece of
// work and then sleep: instructions follow each other closely, but an idle core must not burn a processor. Parts are
// claimed, not assigned: a helper that the host does not run at the moment holds nobody up, because the caller does its
// share, and an instruction is complete when its last part is.

#ifndef NEURON_LIB_EMULATOR_WORKERPOOL_H
#define NEURON_LIB_EMULATOR_WORKERPOOL_H

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "lib/Emulator/Machine.h"

namespace neuroncore::emulator {

class WorkerPool {
public:
  explicit WorkerPool(int threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool &) = delete;
  WorkerPool &operator=(const WorkerPool &) = delete;

  int threads() const { return int(workers_.size()); }
  /// The caller's own worker.
  Worker &main() { return *workers_[0]; }

  /// Work below this many nanoseconds is not worth dividing.
  static constexpr int64_t kMinNanoseconds = 20000;

  /// Calls work(worker, begin, end) on parts of [0, units), cut at multiples of `alignment`; returns when all are done.
  template <class Work> void run(int64_t units, int64_t alignment, Work &&work) {
    if (threads() == 1 || units <= alignment) {
      work(main(), 0, units);
      return;
    }
    struct Context {
      Work &work;
    } context = {work};
    dispatch(units, alignment, &context, [](void *opaque, Worker &worker, int64_t begin, int64_t end) {
      static_cast<Context *>(opaque)->work(worker, begin, end);
    });
  }
  /// The first fault in the order of the parts, or null; faults are cleared by the next run.
  Worker *failedWorker();
  void clearFaults();

private:
  using Call = void (*)(void *context, Worker &worker, int64_t begin, int64_t end);
  void dispatch(int64_t units, int64_t alignment, void *context, Call call);
  /// Claims parts until none is left.
  void runParts(int index);
  void helper(int index);

  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;
  struct Job {
    int64_t units = 0, alignment = 1;
    uint32_t parts = 0;
    void *context = nullptr;
    Call call = nullptr;
  } job_;
  /// The part in which a worker met its first fault, by worker.
  std::vector<uint32_t> faultParts_;
  /// What helpers wait for: counts jobs.
  alignas(64) std::atomic<uint32_t> generation_ = 0;
  /// Generation (upper half) and parts that nobody has claimed. Who claims one may read job_ until it has reported the
  /// part as done: the caller does not return before.
  alignas(64) std::atomic<uint64_t> unclaimed_ = 0;
  alignas(64) std::atomic<uint32_t> done_ = 0;
  alignas(64) std::atomic<int> sleepers_ = 0;
  std::atomic<bool> stop_ = false;
};

} // namespace neuroncore::emulator

#endif // NEURON_LIB_EMULATOR_WORKERPOOL_H

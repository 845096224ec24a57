// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Emulator/WorkerPool.h"

#include <algorithm>

namespace neuroncore::emulator {

namespace {

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// About 20 us of spinning: longer than the gap between two large instructions of a loop.
constexpr int kSpins = 600;
/// Parts of a job per thread: a thread that is late or slow leaves most of its share to the others.
constexpr int64_t kPartsPerThread = 4;

} // namespace

WorkerPool::WorkerPool(int threads) {
  threads = std::max(1, threads);
  for (int i = 0; i < threads; ++i)
    workers_.push_back(std::make_unique<Worker>());
  faultParts_.resize(workers_.size());
  for (int i = 1; i < threads; ++i)
    threads_.emplace_back([this, i] { helper(i); });
}

WorkerPool::~WorkerPool() {
  stop_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_seq_cst);
  generation_.notify_all();
  for (std::thread &thread : threads_)
    thread.join();
}

void WorkerPool::runParts(int index) {
  Worker &worker = *workers_[index];
  uint64_t unclaimed = unclaimed_.load(std::memory_order_acquire);
  while (uint32_t(unclaimed) != 0) {
    if (!unclaimed_.compare_exchange_weak(unclaimed, unclaimed - 1, std::memory_order_acq_rel,
                                          std::memory_order_acquire))
      continue;
    // Even shares in units of the alignment, in order.
    const int64_t parts = job_.parts, part = parts - uint32_t(unclaimed);
    const int64_t groups = (job_.units + job_.alignment - 1) / job_.alignment;
    const int64_t begin = std::min(job_.units, groups * part / parts * job_.alignment);
    const int64_t end = std::min(job_.units, groups * (part + 1) / parts * job_.alignment);
    const bool hadFailed = worker.failed;
    if (begin < end)
      job_.call(job_.context, worker, begin, end);
    if (worker.failed && !hadFailed)
      faultParts_[index] = uint32_t(part);
    done_.fetch_add(1, std::memory_order_release);
    unclaimed = unclaimed_.load(std::memory_order_acquire);
  }
}

void WorkerPool::dispatch(int64_t units, int64_t alignment, void *context, Call call) {
  const int64_t groups = (units + alignment - 1) / alignment;
  const uint32_t parts = uint32_t(std::min<int64_t>(groups, threads() * kPartsPerThread));
  job_ = {units, alignment, parts, context, call};
  std::fill(faultParts_.begin(), faultParts_.end(), 0);
  done_.store(0, std::memory_order_relaxed);
  const uint32_t generation = generation_.load(std::memory_order_relaxed) + 1;
  unclaimed_.store(uint64_t(generation) << 32 | parts, std::memory_order_release);
  generation_.store(generation, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0)
    generation_.notify_all();
  runParts(0);
  for (int spins = 0; done_.load(std::memory_order_acquire) != parts; ++spins) {
    if (spins < kSpins)
      relax();
    else
      std::this_thread::yield();
  }
}

void WorkerPool::helper(int index) {
  uint32_t seen = 0;
  while (true) {
    for (int spins = 0; generation_.load(std::memory_order_acquire) == seen && spins < kSpins; ++spins)
      relax();
    if (generation_.load(std::memory_order_acquire) == seen) {
      sleepers_.fetch_add(1, std::memory_order_seq_cst);
      while (generation_.load(std::memory_order_seq_cst) == seen)
        generation_.wait(seen, std::memory_order_seq_cst);
      sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    }
    // Jobs may have come and gone meanwhile.
    seen = generation_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed))
      return;
    runParts(index);
  }
}

Worker *WorkerPool::failedWorker() {
  int first = -1;
  for (int i = 0; i < threads(); ++i)
    if (workers_[i]->failed && (first < 0 || faultParts_[i] < faultParts_[first]))
      first = i;
  return first < 0 ? nullptr : workers_[first].get();
}

void WorkerPool::clearFaults() {
  for (const std::unique_ptr<Worker> &worker : workers_)
    worker->failed = false;
}

} // namespace neuroncore::emulator

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

} // namespace

WorkerPool::WorkerPool(int threads) {
  threads = std::max(1, threads);
  for (int i = 0; i < threads; ++i)
    workers_.push_back(std::make_unique<Worker>());
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

void WorkerPool::runPart(int index) {
  const int64_t parts = threads();
  // Even shares in units of the alignment.
  const int64_t groups = (job_.units + job_.alignment - 1) / job_.alignment;
  const int64_t begin = std::min(job_.units, groups * index / parts * job_.alignment);
  const int64_t end = std::min(job_.units, groups * (index + 1) / parts * job_.alignment);
  if (begin < end)
    job_.call(job_.context, *workers_[index], begin, end);
}

void WorkerPool::dispatch(int64_t units, int64_t alignment, void *context, Call call) {
  job_ = {units, alignment, context, call};
  pending_.store(int(threads_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0)
    generation_.notify_all();
  runPart(0);
  for (int spins = 0; pending_.load(std::memory_order_acquire) != 0; ++spins) {
    if (spins < 20 * kSpins)
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
    ++seen;
    if (stop_.load(std::memory_order_relaxed))
      return;
    runPart(index);
    pending_.fetch_sub(1, std::memory_order_release);
  }
}

Worker *WorkerPool::failedWorker() {
  for (const std::unique_ptr<Worker> &worker : workers_)
    if (worker->failed)
      return worker.get();
  return nullptr;
}

void WorkerPool::clearFaults() {
  for (const std::unique_ptr<Worker> &worker : workers_)
    worker->failed = false;
}

} // namespace neuroncore::emulator

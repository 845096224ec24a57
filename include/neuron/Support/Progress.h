// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How far long work is, for a person at a terminal: the caller owns a line for the duration of the work, and the work
// reports to it from wherever it can also be interrupted (Interrupt.h).

#ifndef NEURON_SUPPORT_PROGRESS_H
#define NEURON_SUPPORT_PROGRESS_H

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace neuroncore {

/// A line on standard error that is rewritten in place once the work has lasted for a second, and erased at the end.
/// Only on a terminal; TORCH_NEURONX_PROGRESS=0 switches it off, and =1 on for anything else than a terminal. Of
/// several on different threads the first shows. A thread of its own writes it, so the time goes on in steps that take
/// long.
class ProgressLine {
public:
  /// `describe`, if not empty, says what follows the work's name, instead of what is reported. The line's thread asks
  /// it before each writing. `start` may lie in the past.
  explicit ProgressLine(std::string work, std::function<std::string()> describe = {},
                        std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now());
  ~ProgressLine();
  ProgressLine(const ProgressLine &) = delete;
  ProgressLine &operator=(const ProgressLine &) = delete;

private:
  friend void reportPhase(const std::string &name);
  friend void reportStep(const char *unit, size_t number, size_t count);
  void show();
  void write(const std::string &description);

  const std::string work_;
  const std::function<std::string()> describe_;
  const std::chrono::steady_clock::time_point start_;
  ProgressLine *outer_ = nullptr;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false, shown_ = false;
  std::string phase_;
  std::atomic<const char *> unit_ = nullptr;
  std::atomic<size_t> number_ = 0, count_ = 0;
  std::thread writer_;
};

/// "34 % of 1.2 million instructions, about 8 s left": `done` of `total` units after so many seconds. Without the share
/// where the total is not known (0), without the estimate where it is too early for one or no seconds are given.
std::string describeAmount(uint64_t done, uint64_t total, const char *units, double seconds);

/// What this thread does now; without a line, nothing happens.
void reportPhase(const std::string &name);

/// The step it is at, from 0, of `count` in this phase. `unit` is a literal. Cheap enough for a loop whose steps take
/// microseconds.
void reportStep(const char *unit, size_t number, size_t count);

} // namespace neuroncore

#endif // NEURON_SUPPORT_PROGRESS_H

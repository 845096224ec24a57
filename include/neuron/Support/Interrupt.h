// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Long work that its caller may call off: the caller installs a question for the duration of the work, and the work
// asks it wherever it can stop.

#ifndef NEURON_SUPPORT_INTERRUPT_H
#define NEURON_SUPPORT_INTERRUPT_H

#include <chrono>
#include <functional>

namespace neuroncore {

/// While it lives, interruptRequested() on this thread asks `question`, at most every 50 ms. Once it has been answered
/// with true it is not asked again.
class InterruptScope {
public:
  explicit InterruptScope(std::function<bool()> question);
  ~InterruptScope();
  InterruptScope(const InterruptScope &) = delete;
  InterruptScope &operator=(const InterruptScope &) = delete;

private:
  friend bool interruptRequested();
  std::function<bool()> question_;
  std::chrono::steady_clock::time_point next_;
  bool requested_ = false;
  InterruptScope *outer_;
};

/// Whether the work is to end now; false without a scope. Cheap enough for a loop whose steps take microseconds.
bool interruptRequested();

} // namespace neuroncore

#endif // NEURON_SUPPORT_INTERRUPT_H

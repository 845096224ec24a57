// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ctrl-C while a thread waits for the device. The device library does not know Python: the extension module supplies
// the question whether a signal has arrived, and waits ask it in slices, holding no lock.
//
// Python runs handlers of signals on the main thread only. During `loss.backward()` that thread sits in the autograd
// engine, which knows no signals, while a thread of the engine waits for the device. Such a wait watches SIGINT itself:
// for its duration a handler in front of Python's takes the signal, and the waiting thread decides what becomes of it.

#ifndef NEURON_PYTHON_CSRC_INTERRUPT_H
#define NEURON_PYTHON_CSRC_INTERRUPT_H

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace neuroncore::device {

/// What the extension module knows about signals. Called on the waiting thread.
struct InterruptChecks {
  /// Raises if the wait is to end.
  void (*check)();
  /// For a SIGINT that a watching wait has taken: raises if it may end the wait. Otherwise the signal goes on to its
  /// own handler.
  void (*taken)();
};
/// `checks` must outlive all waits.
void setInterruptChecks(const InterruptChecks *checks);

/// Watches SIGINT in a wait on a thread of the autograd engine; does nothing on other threads.
class EngineWait {
public:
  EngineWait();
  ~EngineWait();
  EngineWait(const EngineWait &) = delete;
  EngineWait &operator=(const EngineWait &) = delete;

  /// Raises if an interrupt is to end the wait.
  void check();

private:
  bool watching_ = false;
};

/// Short enough to feel prompt, long enough to cost nothing.
constexpr std::chrono::milliseconds interruptInterval{100};

struct NoWaiting {
  void operator()() const {}
};

/// condition.wait(lock, ready), ended by an interrupt. `lock` is held again when the interrupt is raised. `waiting` is
/// called without the lock each time that the wait goes on.
template <typename Ready, typename Waiting = NoWaiting>
void waitInterruptibly(std::condition_variable &condition, std::unique_lock<std::mutex> &lock, Ready ready,
                       Waiting waiting = {}) {
  if (ready())
    return;
  EngineWait wait;
  while (!condition.wait_for(lock, interruptInterval, ready)) {
    struct Unlocked {
      std::unique_lock<std::mutex> &lock;
      explicit Unlocked(std::unique_lock<std::mutex> &held) : lock(held) { lock.unlock(); }
      ~Unlocked() { lock.lock(); }
    } unlocked(lock);
    wait.check();
    waiting();
  }
}

} // namespace neuroncore::device

#endif // NEURON_PYTHON_CSRC_INTERRUPT_H

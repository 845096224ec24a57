// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Interrupt.h"

#include <csignal>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include <torch/csrc/autograd/graph_task.h>

namespace neuroncore::device {

namespace {

std::atomic<const InterruptChecks *> theChecks{nullptr};

/// The handler in front of Python's, while at least one wait watches.
class SignalWatch {
public:
  bool begin() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (waits_ == 0) {
      struct sigaction current;
      if (sigaction(SIGINT, nullptr, &current) != 0)
        return false;
      // Ignored signals stay ignored, and the default ends the process: neither needs us.
      if (!(current.sa_flags & SA_SIGINFO) && (current.sa_handler == SIG_DFL || current.sa_handler == SIG_IGN))
        return false;
      previous_ = current;
      taken_.store(false);
      struct sigaction ours = current;
      ours.sa_flags &= ~(SA_SIGINFO | SA_RESETHAND);
      ours.sa_handler = [](int) { taken_.store(true); };
      if (sigaction(SIGINT, &ours, nullptr) != 0)
        return false;
      handler_ = ours.sa_handler;
    }
    ++waits_;
    return true;
  }

  void end() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (--waits_ > 0)
      return;
    restore();
    if (taken_.exchange(false))
      sendAgain();
  }

  /// True for one caller per signal.
  bool take() { return taken_.exchange(false); }

  /// Gives a signal to the handler that was there before. Other waits on threads of the engine no longer watch.
  void pass() {
    std::lock_guard<std::mutex> lock(mutex_);
    restore();
    sendAgain();
  }

private:
  void restore() {
    struct sigaction current;
    // Whoever has set a handler since keeps it.
    if (handler_ && sigaction(SIGINT, nullptr, &current) == 0 && !(current.sa_flags & SA_SIGINFO) &&
        current.sa_handler == handler_)
      sigaction(SIGINT, &previous_, nullptr);
    handler_ = nullptr;
  }
  /// To the process: the system prefers the main thread, whose system calls it interrupts.
  static void sendAgain() { kill(getpid(), SIGINT); }

  static inline std::atomic<bool> taken_{false};
  std::mutex mutex_;
  struct sigaction previous_ = {};
  void (*handler_)(int) = nullptr;
  int waits_ = 0;
};

static_assert(std::atomic<bool>::is_always_lock_free, "a handler of signals must not take locks");

SignalWatch &signalWatch() {
  static auto *watch = new SignalWatch;
  return *watch;
}

bool onEngineThread() {
  static thread_local const bool mainThread = syscall(SYS_gettid) == getpid();
  return !mainThread && torch::autograd::get_current_graph_task_id() != -1;
}

} // namespace

void setInterruptChecks(const InterruptChecks *checks) { theChecks.store(checks); }

EngineWait::EngineWait() : watching_(onEngineThread() && signalWatch().begin()) {}

EngineWait::~EngineWait() {
  if (watching_)
    signalWatch().end();
}

void EngineWait::check() {
  const InterruptChecks *checks = theChecks.load();
  if (checks)
    checks->check();
  if (!watching_ || !signalWatch().take())
    return;
  if (checks)
    checks->taken();
  signalWatch().pass();
}

} // namespace neuroncore::device

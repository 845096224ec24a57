// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ctrl-C while a thread waits for the device. The device library does not know Python: the extension module supplies
// the question whether a signal has arrived, and waits ask it in slices, holding no lock.

#ifndef NEURON_PYTHON_CSRC_INTERRUPT_H
#define NEURON_PYTHON_CSRC_INTERRUPT_H

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace neuroncore::device {

/// `check` raises if the wait is to end; called on the waiting thread.
void setInterruptCheck(void (*check)());
void checkInterrupt();

/// Short enough to feel prompt, long enough to cost nothing.
constexpr std::chrono::milliseconds interruptInterval{100};

/// condition.wait(lock, ready), ended by an interrupt. `lock` is held again when the interrupt is raised.
template <typename Ready>
void waitInterruptibly(std::condition_variable &condition, std::unique_lock<std::mutex> &lock, Ready ready) {
  while (!condition.wait_for(lock, interruptInterval, ready)) {
    struct Unlocked {
      std::unique_lock<std::mutex> &lock;
      explicit Unlocked(std::unique_lock<std::mutex> &held) : lock(held) { lock.unlock(); }
      ~Unlocked() { lock.lock(); }
    } unlocked(lock);
    checkInterrupt();
  }
}

} // namespace neuroncore::device

#endif // NEURON_PYTHON_CSRC_INTERRUPT_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Interrupt.h"

#include <atomic>

namespace neuroncore::device {

namespace {
std::atomic<void (*)()> theCheck{nullptr};
} // namespace

void setInterruptCheck(void (*check)()) { theCheck.store(check); }

void checkInterrupt() {
  if (auto *check = theCheck.load())
    check();
}

} // namespace neuroncore::device

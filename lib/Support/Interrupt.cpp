// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "neuron/Support/Interrupt.h"

#include <utility>

namespace neuroncore {

namespace {

constexpr std::chrono::milliseconds kInterval{50};
thread_local InterruptScope *theScope = nullptr;

} // namespace

InterruptScope::InterruptScope(std::function<bool()> question)
    : question_(std::move(question)), next_(std::chrono::steady_clock::now() + kInterval),
      outer_(std::exchange(theScope, this)) {}

InterruptScope::~InterruptScope() { theScope = outer_; }

bool interruptRequested() {
  InterruptScope *scope = theScope;
  if (!scope)
    return false;
  const auto now = std::chrono::steady_clock::now();
  if (!scope->requested_ && now >= scope->next_) {
    scope->requested_ = scope->question_();
    scope->next_ = now + kInterval;
  }
  return scope->requested_;
}

} // namespace neuroncore

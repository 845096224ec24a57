// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that run on the CPU instead, and the book of what ran where. Nothing falls back silently: every call is
// counted, the first of each operator warns, and a switch makes it an error.

#ifndef NEURON_PYTHON_CSRC_FALLBACK_H
#define NEURON_PYTHON_CSRC_FALLBACK_H

#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace neuroncore::device {

/// Runs an operator on copies of its arguments on the CPU. `reason` says why; `registered` operators are in the
/// compiler's table, but not with these arguments.
void fallbackToCpu(const c10::OperatorHandle &op, torch::jit::Stack *stack, const std::string &reason, bool registered);

/// Runs an operator whose shape function raised `refusal` on the CPU: a wrong call raises the CPU's own exception
/// there, and anything else counts as a fallback.
void refusedToCpu(const c10::OperatorHandle &op, torch::jit::Stack *stack, const std::string &reason,
                  std::exception_ptr refusal);

/// An operator that ran on the device.
void countExecution(const c10::OperatorHandle &op);
/// Work done on the CPU outside fallbackToCpu.
void countFallback(const std::string &name, const std::string &reason);

/// Shows a warning at the user's own line, which only the extension module can find; may raise. Without it, PyTorch
/// shows the line of this library and, within functions of its own, its own line.
void setWarningSink(void (*sink)(const std::string &));

/// Operator name ("aten::mul") and number of invocations since the last clear, in order of first use.
std::vector<std::pair<std::string, uint64_t>> executedOperators();
std::vector<std::pair<std::string, uint64_t>> fallbackOperators();
void clearOperatorTracking();

/// Switches of the environment, which tests and the package can also set.
struct FallbackPolicy {
  /// TORCH_NEURONX_DISABLE_CPU_FALLBACK: every fallback is an error.
  bool disabled = false;
  /// TORCH_NEURONX_FALLBACK_ONLY_FOR_UNIMPLEMENTED_OPS: operators of the table must run on the device.
  bool onlyUnimplemented = false;
};
FallbackPolicy fallbackPolicy();
void setFallbackPolicy(const FallbackPolicy &policy);

} // namespace neuroncore::device

#endif // NEURON_PYTHON_CSRC_FALLBACK_H

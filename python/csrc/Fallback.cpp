// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Fallback.h"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include "Device.h"

namespace neuroncore::device {

namespace {

/// Counts per operator name, in order of first use.
class Ledger {
public:
  void count(const std::string &name) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto [it, fresh] = index_.try_emplace(name, entries_.size());
    if (fresh)
      entries_.emplace_back(name, 0);
    ++entries_[it->second].second;
  }
  std::vector<std::pair<std::string, uint64_t>> list() {
    std::lock_guard<std::mutex> lock(mutex_);
    return entries_;
  }
  void clear() {
    std::lock_guard<std::mutex> lock(mutex_);
    index_.clear();
    entries_.clear();
  }

private:
  std::mutex mutex_;
  std::unordered_map<std::string, size_t> index_;
  std::vector<std::pair<std::string, uint64_t>> entries_;
};

Ledger &executed() {
  static auto *ledger = new Ledger;
  return *ledger;
}
Ledger &fellBack() {
  static auto *ledger = new Ledger;
  return *ledger;
}

bool environmentFlag(const char *name) {
  const char *value = std::getenv(name);
  return value && std::string(value) == "1";
}

std::mutex &policyMutex() {
  static auto *mutex = new std::mutex;
  return *mutex;
}
FallbackPolicy &policy() {
  static FallbackPolicy current{environmentFlag("TORCH_NEURONX_DISABLE_CPU_FALLBACK"),
                                environmentFlag("TORCH_NEURONX_FALLBACK_ONLY_FOR_UNIMPLEMENTED_OPS")};
  return current;
}

std::atomic<void (*)(const std::string &)> theWarningSink{nullptr};

void warnOnce(const std::string &name, const std::string &reason) {
  static auto *warned = new std::unordered_set<std::string>;
  static auto *mutex = new std::mutex;
  {
    std::lock_guard<std::mutex> lock(*mutex);
    if (!warned->insert(name).second)
      return;
  }
  const std::string text = name + " runs on the CPU" + (reason.empty() ? "" : ": ") + reason +
                           "; torch_neuronx.get_fallback_ops() counts such calls";
  if (auto *sink = theWarningSink.load())
    sink(text);
  else
    TORCH_WARN(text);
}

/// A CPU generator that continues one of ours: reproducible from (seed, offset), different at every offset.
at::Generator continueOnCpu(const at::Generator &ours) {
  const PhiloxState state = reservePhilox(ours, ours.device().index(), 4);
  uint64_t mixed = static_cast<uint64_t>(state.seed) + 0x9e3779b97f4a7c15ull * static_cast<uint64_t>(state.offset + 1);
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ull;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebull;
  return at::make_generator<at::CPUGeneratorImpl>(mixed ^ mixed >> 31);
}

int deviceOf(const torch::jit::Stack &stack, size_t base) {
  for (size_t i = base; i < stack.size(); ++i) {
    if (stack[i].isTensor() && stack[i].toTensor().defined() && stack[i].toTensor().is_privateuseone())
      return stack[i].toTensor().device().index();
    if (stack[i].isTensorList())
      for (const at::Tensor &tensor : stack[i].toTensorVector())
        if (tensor.is_privateuseone())
          return tensor.device().index();
    if (stack[i].isDevice() && stack[i].toDevice().is_privateuseone())
      return stack[i].toDevice().has_index() ? stack[i].toDevice().index() : currentDevice();
  }
  return -1;
}

bool isGeneratorType(const c10::Argument &argument) {
  c10::TypePtr type = argument.real_type();
  if (type->kind() == c10::TypeKind::OptionalType)
    type = type->expectRef<c10::OptionalType>().getElementType();
  return type->kind() == c10::TypeKind::GeneratorType;
}

void runOnCpu(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  const auto &arguments = op.schema().arguments();
  const size_t base = stack->size() - arguments.size();
  const int device = deviceOf(*stack, base);
  for (size_t i = 0; i < arguments.size(); ++i) {
    c10::IValue &value = (*stack)[base + i];
    // Without this, a random operator on the device would draw from the CPU's default generator.
    if (value.isNone() && device >= 0 && isGeneratorType(arguments[i]))
      value = defaultGenerator(device);
    if (value.isGenerator() && value.toGenerator().device().is_privateuseone())
      value = continueOnCpu(value.toGenerator());
  }
  // A view computed on a copy would claim to be a view and lose writes.
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
}

/// A kernel that refuses a dtype says it better than we could: this is the caller's mistake, on any device.
bool refusesDtype(const c10::NotImplementedError &error) {
  return std::string(error.what_without_backtrace()).find(" not implemented for '") != std::string::npos;
}

void boxedFallback(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  fallbackToCpu(op, stack, "the compiler has no lowering for it", /*registered=*/false);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&boxedFallback>());
}

} // namespace

void refusedToCpu(const c10::OperatorHandle &op, torch::jit::Stack *stack, const std::string &reason,
                  std::exception_ptr refusal) {
  const FallbackPolicy current = fallbackPolicy();
  if (current.disabled || current.onlyUnimplemented)
    std::rethrow_exception(refusal);
  try {
    runOnCpu(op, stack);
  } catch (const c10::NotImplementedError &error) {
    // A dtype that the CPU's kernel refuses, or no kernel at all.
    if (refusesDtype(error))
      throw;
    std::rethrow_exception(refusal);
  }
  fellBack().count(op.schema().name());
  warnOnce(op.schema().name(), reason);
}

void fallbackToCpu(const c10::OperatorHandle &op, torch::jit::Stack *stack, const std::string &reason,
                   bool registered) {
  const std::string &name = op.schema().name();
  const FallbackPolicy current = fallbackPolicy();
  TORCH_CHECK(!current.disabled && !(current.onlyUnimplemented && registered), "CPU fallback is disabled for ", name,
              ": ", reason,
              current.disabled ? " (unset TORCH_NEURONX_DISABLE_CPU_FALLBACK to allow it)"
                               : " (unset TORCH_NEURONX_FALLBACK_ONLY_FOR_UNIMPLEMENTED_OPS to allow it)");
  fellBack().count(name);
  warnOnce(name, reason);
  try {
    runOnCpu(op, stack);
  } catch (const c10::NotImplementedError &error) {
    if (refusesDtype(error))
      throw;
    TORCH_CHECK_NOT_IMPLEMENTED(false, "CPU fallback failed for ", name,
                                " on neuron tensors: ", error.what_without_backtrace());
  }
}

void setWarningSink(void (*sink)(const std::string &)) { theWarningSink.store(sink); }

void countExecution(const c10::OperatorHandle &op) { executed().count(op.schema().name()); }
void countFallback(const std::string &name, const std::string &reason) {
  fellBack().count(name);
  warnOnce(name, reason);
}

std::vector<std::pair<std::string, uint64_t>> executedOperators() { return executed().list(); }
std::vector<std::pair<std::string, uint64_t>> fallbackOperators() { return fellBack().list(); }
void clearOperatorTracking() {
  executed().clear();
  fellBack().clear();
}

FallbackPolicy fallbackPolicy() {
  std::lock_guard<std::mutex> lock(policyMutex());
  return policy();
}
void setFallbackPolicy(const FallbackPolicy &value) {
  std::lock_guard<std::mutex> lock(policyMutex());
  policy() = value;
}

} // namespace neuroncore::device

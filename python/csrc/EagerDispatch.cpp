// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "EagerDispatch.h"

#include <ATen/core/enum_tag.h>
#include <set>
#include <unordered_set>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>
#include <torch/library.h>

#include "EagerCall.h"
#include "EagerStatistics.h"
#include "Fallback.h"

namespace neuroncore::device {

namespace {

/// An exponent of 2 is a multiplication, one of -0.5 a reciprocal square root.
const std::unordered_set<std::string> &powerOperators() {
  static const std::unordered_set<std::string> names = {"aten::pow", "aten::pow_", "aten::_foreach_pow",
                                                        "aten::_foreach_pow_"};
  return names;
}

bool isForeach(const std::string &name) { return name.starts_with("aten::_foreach_"); }

/// A learning rate changes from step to step, though its schema type is that of a constant.
bool isLearningRate(const c10::FunctionSchema &schema, const c10::Argument &argument) {
  return schema.name().starts_with("aten::_fused_") && argument.name() == "lr" &&
         argument.type()->kind() == c10::TypeKind::FloatType;
}

std::string dotted(const c10::OperatorName &name) {
  std::string result = name.name;
  if (const size_t colon = result.find("::"); colon != std::string::npos)
    result.replace(colon, 2, ".");
  return result + '.' + (name.overload_name.empty() ? "default" : name.overload_name);
}

bool isWritten(const c10::Argument &argument) { return argument.alias_info() && argument.alias_info()->isWrite(); }

EagerArgumentPlan::Kind kindOf(const c10::Argument &argument) {
  c10::TypePtr type = argument.real_type();
  if (type->kind() == c10::TypeKind::OptionalType)
    type = type->expectRef<c10::OptionalType>().getElementType();
  switch (type->kind()) {
  case c10::TypeKind::TensorType:
    return EagerArgumentPlan::Kind::Tensor;
  case c10::TypeKind::NumberType:
    return EagerArgumentPlan::Kind::Scalar;
  case c10::TypeKind::GeneratorType:
    return EagerArgumentPlan::Kind::Generator;
  case c10::TypeKind::DeviceObjType:
    return EagerArgumentPlan::Kind::Device;
  case c10::TypeKind::ListType: {
    c10::TypePtr element = type->expectRef<c10::ListType>().getElementType();
    if (element->kind() == c10::TypeKind::OptionalType)
      element = element->expectRef<c10::OptionalType>().getElementType();
    if (element->kind() == c10::TypeKind::TensorType)
      return EagerArgumentPlan::Kind::TensorList;
    if (element->kind() == c10::TypeKind::NumberType)
      return EagerArgumentPlan::Kind::ScalarList;
    return EagerArgumentPlan::Kind::Structural;
  }
  default:
    return EagerArgumentPlan::Kind::Structural;
  }
}

struct EagerKernel final : c10::OperatorKernel {
  explicit EagerKernel(std::shared_ptr<EagerOverload> overload) : overload(std::move(overload)) {}
  void operator()(const c10::OperatorHandle &, c10::DispatchKeySet keys, torch::jit::Stack *stack) {
    overload->call(keys, stack);
  }
  std::shared_ptr<EagerOverload> overload;
};

/// Operators that the device library implements by other means, or whose core kernel must stay.
const std::unordered_set<std::string> &reservedOperators() {
  static const std::unordered_set<std::string> names = {
      "aten::copy_",      "aten::copy",          "aten::_to_copy",   "aten::clone",         "aten::contiguous",
      "aten::empty",      "aten::empty_strided", "aten::empty_like", "aten::new_empty",     "aten::lift_fresh",
      "aten::resize_",    "aten::set_",          "aten::detach",     "aten::alias",         "aten::lift_fresh_copy",
      "aten::to",         "aten::zeros_like",    "aten::ones_like",  "aten::scalar_tensor", "aten::new_empty_strided",
      "aten::zeros",      "aten::ones",          "aten::full",       "aten::full_like",     "aten::new_zeros",
      "aten::new_full",   "aten::new_ones",      "aten::rand",       "aten::randn",         "aten::rand_like",
      "aten::randn_like",
  };
  return names;
}

/// Composites that become one program instead of several launches.
const std::unordered_set<std::string> &nativeComposites() {
  static const std::unordered_set<std::string> names = {
      "aten::abs", // whose composite form loses the strides of its argument
      "aten::native_layer_norm",
      "aten::native_layer_norm_backward",
      "aten::native_group_norm",
      "aten::native_group_norm_backward",
      "aten::embedding",
      "aten::stack",
      "aten::repeat",
      "aten::convolution",
      "aten::convolution_backward",
      "aten::sum",
      "aten::arange",
      "aten::linspace",
      "aten::addr",
      "aten::masked_fill",
      "aten::masked_fill_",
      "aten::constant_pad_nd",
      "aten::native_dropout",
      "aten::native_dropout_backward",
      "aten::logsumexp",
      "aten::_fused_rms_norm",
      "aten::_fused_rms_norm_backward",
      "aten::std",
      "aten::var",
      "aten::var_mean",
      "aten::std_mean",
      "aten::fill",
      "aten::fill_",
      "aten::zero_",
      "aten::zero",
      "aten::roll",
      "aten::flip",
      "aten::mse_loss",
      "aten::select_backward",
      "aten::slice_backward",
      "aten::embedding_dense_backward",
      "aten::diagonal_backward",
      "aten::unfold_backward",
      "aten::_safe_softmax",
      "aten::log_sigmoid_forward",
      "aten::log_sigmoid_backward",
      "aten::binary_cross_entropy_with_logits",
      "aten::index_put",
      "aten::index_put_",
      "aten::max",
      "aten::min",
      "aten::argsort",
      "aten::sort",
      "aten::floor_divide",
      "aten::floor_divide_",
      "aten::select_scatter",
      "aten::slice_scatter",
      "aten::rsub",
      "aten::celu",
      "aten::celu_",
      "aten::glu",
      "aten::dist",
      "aten::logcumsumexp",
      "aten::nan_to_num_",
      "aten::prelu",
      "aten::_prelu_kernel",
      "aten::_prelu_kernel_backward",
      "aten::expand_copy",
      "aten::eye",
      "aten::clamp",
      "aten::clamp_",
      "aten::count_nonzero",
  };
  return names;
}

bool returnsView(const c10::FunctionSchema &schema) {
  for (const c10::Argument &result : schema.returns())
    if (result.alias_info() && !result.alias_info()->isWrite())
      return true;
  return false;
}

/// Whether a kernel for PrivateUse1 makes sense and keeps autograd right.
bool isEligible(const c10::OperatorHandle &op) {
  const c10::FunctionSchema &schema = op.schema();
  const std::string &name = schema.name();
  // An in-place view changes a tensor's metadata only.
  if (reservedOperators().count(name) || returnsView(schema) || op.hasTag(at::Tag::inplace_view))
    return false;
  // A backend kernel for an implicit composite takes the place of its decomposition, and with it of its derivative
  // unless it has one of its own, which then calls a backward operator that has to be native too.
  if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
      !(op.hasKernelForDispatchKey(c10::DispatchKey::Autograd) && nativeComposites().count(name)))
    return false;
  if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) && !nativeComposites().count(name) &&
      !isForeach(name))
    return false;
  for (const c10::Argument &argument : schema.arguments()) {
    const auto kind = argument.type()->kind();
    if (kind == c10::TypeKind::StorageType || kind == c10::TypeKind::StreamObjType)
      return false;
  }
  return true;
}

bool sameTypes(const c10::FunctionSchema &functional, const c10::FunctionSchema &other) {
  const auto &left = functional.arguments();
  const auto &right = other.arguments();
  if (right.size() < left.size())
    return false;
  for (size_t i = 0; i < left.size(); ++i)
    if (*left[i].real_type() != *right[i].real_type() || left[i].name() != right[i].name())
      return false;
  return true;
}

/// The candidate writes its first argument, or the arguments that the results of the functional overload stand for.
bool isInPlaceOf(const c10::FunctionSchema &functional, const c10::FunctionSchema &candidate) {
  const auto &arguments = candidate.arguments();
  if (arguments.size() != functional.arguments().size() || !sameTypes(functional, candidate))
    return false;
  std::vector<const c10::Argument *> written;
  for (const c10::Argument &argument : arguments)
    if (isWritten(argument))
      written.push_back(&argument);
  const auto &returns = functional.returns();
  if (written.empty() || written.size() != returns.size() || !isWritten(arguments[0]))
    return false;
  for (size_t i = 0; i < written.size(); ++i)
    if (*written[i]->real_type() != *returns[i].real_type())
      return false;
  return true;
}

bool isOutOf(const c10::FunctionSchema &functional, const c10::FunctionSchema &candidate) {
  const size_t inputs = functional.arguments().size();
  const auto &arguments = candidate.arguments();
  if (arguments.size() <= inputs || !sameTypes(functional, candidate))
    return false;
  if (arguments.size() - inputs != functional.returns().size())
    return false;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (isWritten(arguments[i]) != (i >= inputs) ||
        (i >= inputs && arguments[i].type()->kind() != c10::TypeKind::TensorType))
      return false;
  return true;
}

std::vector<std::shared_ptr<EagerOverload>> &allOverloads() {
  static auto *overloads = new std::vector<std::shared_ptr<EagerOverload>>;
  return *overloads;
}

class Registrar {
public:
  size_t add(const std::vector<std::pair<std::string, std::vector<int>>> &table) {
    auto &dispatcher = c10::Dispatcher::singleton();
    std::unordered_map<std::string, std::vector<c10::OperatorName>> byName;
    for (const c10::OperatorName &name : dispatcher.getAllOpNames())
      if (name.name.starts_with("aten::"))
        byName[name.name].push_back(name);
    for (const auto &[dottedName, structuralScalars] : table) {
      const auto functional = parse(dottedName);
      const auto handle = functional ? dispatcher.findSchema(*functional) : std::nullopt;
      // The list belongs to the compiler, which also knows overloads of other namespaces and PyTorch versions.
      if (!handle || !functional->name.starts_with("aten::"))
        continue;
      const c10::FunctionSchema &schema = handle->schema();
      if (std::any_of(schema.arguments().begin(), schema.arguments().end(), isWritten))
        continue;
      if (isEligible(*handle))
        add(*handle, EagerForm::Functional, *handle, structuralScalars);
      for (const c10::OperatorName &sibling : byName[functional->name])
        if (auto out = dispatcher.findSchema(sibling); out && isOutOf(schema, out->schema()) && isEligible(*out))
          add(*out, EagerForm::Out, *handle, structuralScalars);
      for (const c10::OperatorName &sibling : byName[inPlaceName(functional->name)])
        if (auto target = dispatcher.findSchema(sibling);
            target && isInPlaceOf(schema, target->schema()) && isEligible(*target))
          add(*target, EagerForm::InPlace, *handle, structuralScalars);
    }
    return count_;
  }

private:
  static std::optional<c10::OperatorName> parse(const std::string &dottedName) {
    const size_t first = dottedName.find('.');
    const size_t last = dottedName.rfind('.');
    if (first == std::string::npos || first == last)
      return std::nullopt;
    std::string overload = dottedName.substr(last + 1);
    if (overload == "default")
      overload.clear();
    return c10::OperatorName(dottedName.substr(0, first) + "::" + dottedName.substr(first + 1, last - first - 1),
                             overload);
  }

  /// mul -> mul_; normal_functional -> normal_ (the spelling of functionalised random operators).
  static std::string inPlaceName(const std::string &functional) {
    static const std::string suffix = "_functional";
    if (functional.ends_with(suffix))
      return functional.substr(0, functional.size() - suffix.size() + 1);
    return functional + '_';
  }

  void add(const c10::OperatorHandle &op, EagerForm form, const c10::OperatorHandle &functional,
           const std::vector<int> &structuralScalars) {
    const c10::OperatorName &name = op.operator_name();
    if (!done_.insert(dotted(name)).second || op.hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1))
      return;
    auto overload = std::make_shared<EagerOverload>(op, form, functional, structuralScalars);
    std::string local = name.name.substr(std::string("aten::").size());
    if (!name.overload_name.empty())
      local += '.' + name.overload_name;
    library().impl(local.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<EagerKernel>(overload)));
    allOverloads().push_back(overload);
    ++count_;
  }

  static torch::Library &library() {
    static auto *theLibrary =
        new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
    return *theLibrary;
  }

  std::set<std::string> done_;
  size_t count_ = 0;
};

EagerOverload &copyOverload() {
  static auto *overload = [] {
    auto &dispatcher = c10::Dispatcher::singleton();
    return new EagerOverload(dispatcher.findSchemaOrThrow("aten::copy_", ""), EagerForm::InPlace,
                             dispatcher.findSchemaOrThrow("aten::copy", ""));
  }();
  return *overload;
}

} // namespace

EagerOverload::EagerOverload(c10::OperatorHandle op, EagerForm form, c10::OperatorHandle functional,
                             const std::vector<int> &structuralScalars)
    : op_(std::move(op)), form_(form), functional_(std::move(functional)) {
  const c10::FunctionSchema &schema = op_.schema();
  name_ = schema.name() + (schema.overload_name().empty() ? "" : '.' + schema.overload_name());
  functionalName_ = dotted(functional_.operator_name());
  const bool power = powerOperators().count(schema.name()) > 0;
  for (const c10::Argument &argument : schema.arguments()) {
    EagerArgumentPlan plan;
    plan.kind = kindOf(argument);
    plan.written = isWritten(argument);
    plan.exponent = power && argument.name() == "exponent";
    if (isLearningRate(schema, argument))
      plan.kind = EagerArgumentPlan::Kind::Scalar;
    plan_.push_back(plan);
  }
  isForeach_ = isForeach(schema.name());
  updatesState_ = form_ == EagerForm::InPlace && functional_.schema().returns().size() > 1;
  structuralScalars_ = structuralScalars;
  for (const int position : structuralScalars)
    if (static_cast<size_t>(position) < plan_.size())
      plan_[position].structuralScalar = true;
  // index() and index_put() in all their forms, also those that only autograd calls.
  acceptsHostIndices_ = schema.arguments().size() > 1 && schema.arguments()[1].name() == "indices" &&
                        schema.arguments()[1].type()->kind() == c10::TypeKind::ListType;
}

EagerOverload &EagerOverload::functionalForm() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!functionalForm_)
    functionalForm_ =
        std::make_unique<EagerOverload>(functional_, EagerForm::Functional, functional_, structuralScalars_);
  return *functionalForm_;
}

size_t EagerOverload::entryCount() {
  std::lock_guard<std::mutex> lock(mutex_);
  return entries_.size();
}

/// One program for the whole list, or else core's loop, whose operators have programs of their own (or say what is
/// wrong).
void EagerOverload::callForeach(torch::jit::Stack *stack) {
  std::string reason;
  EagerCall attempt(*this, *stack);
  if (attempt.isOnOneDevice() && attempt.run(reason) == EagerCall::Outcome::Done) {
    countExecution(op_);
    return;
  }
  op_.callBoxedForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd, *stack);
}

void EagerOverload::call(c10::DispatchKeySet keys, torch::jit::Stack *stack) {
  if (isForeach_)
    return callForeach(stack);
  std::string reason;
  while (true) {
    EagerCall attempt(*this, *stack);
    switch (attempt.run(reason)) {
    case EagerCall::Outcome::Done:
      countExecution(op_);
      return;
    case EagerCall::Outcome::Fallback:
      fallbackToCpu(op_, stack, reason, /*registered=*/true);
      return;
    case EagerCall::Outcome::Refused:
      // PyTorch's own exception, or a result whose shape depends on data.
      reason = "the shape of the result depends on data";
      refusedToCpu(op_, stack, reason, attempt.refusal());
      attempt.rememberFallback(reason);
      return;
    case EagerCall::Outcome::Retry:
      break;
    }
  }
}

bool EagerOverload::tryCall(torch::jit::Stack *stack) {
  std::string reason;
  return tryCall(stack, reason);
}

bool EagerOverload::tryCall(torch::jit::Stack *stack, std::string &reason) {
  while (true) {
    EagerCall attempt(*this, *stack);
    const auto outcome = attempt.run(reason);
    if (outcome == EagerCall::Outcome::Refused)
      std::rethrow_exception(attempt.refusal());
    if (outcome != EagerCall::Outcome::Retry)
      return outcome == EagerCall::Outcome::Done;
  }
}

size_t registerEagerOverloads(const std::vector<std::pair<std::string, std::vector<int>>> &table) {
  return Registrar().add(table);
}

bool eagerCopy(const at::Tensor &destination, const at::Tensor &source) {
  EagerOverload &overload = copyOverload();
  torch::jit::Stack stack{destination, source, false};
  std::string reason;
  if (overload.tryCall(&stack, reason))
    return true;
  countFallback("aten::copy_", reason);
  return false;
}

void EagerOverload::forget() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto &[key, entry] : entries_)
    retired_.push_back(std::move(entry));
  entries_.clear();
}

void clearEagerCache() {
  for (const auto &overload : allOverloads())
    overload->forget();
  copyOverload().forget();
}

EagerCounters &eagerCounters() {
  static EagerCounters counters;
  return counters;
}

EagerStatistics eagerStatistics() {
  EagerCounters &counters = eagerCounters();
  return {counters.hits.load(), counters.misses.load(), counters.launches.load()};
}

} // namespace neuroncore::device

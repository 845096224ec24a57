// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The miss path of eager mode: what the results look like (meta kernels, which also raise PyTorch's own errors), and
// the request to the compiler.

#include <unordered_set>

#include <ATen/EmptyTensor.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/ones.h>
#include <ATen/record_function.h>
#include <c10/core/WrapDimMinimal.h>

#include "EagerCall.h"
#include "ShapeFunctions.h"
#include "Storage.h"

namespace neuroncore::device {

namespace {

EagerCompiler &theCompiler() {
  static auto *compiler = new EagerCompiler;
  return *compiler;
}

std::vector<int64_t> contiguous(const std::vector<int64_t> &sizes) {
  const auto strides = c10::contiguous_strides(sizes);
  return {strides.begin(), strides.end()};
}

bool isDense(const EagerResult &result) {
  std::vector<size_t> order;
  for (size_t i = 0; i < result.sizes.size(); ++i)
    if (result.sizes[i] != 1)
      order.push_back(i);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return result.strides[a] < result.strides[b]; });
  int64_t expected = 1;
  for (const size_t i : order) {
    if (result.strides[i] != expected)
      return false;
    expected *= result.sizes[i];
  }
  return true;
}

EagerResult resultOf(const at::Tensor &tensor) {
  EagerResult result;
  result.defined = tensor.defined();
  if (!result.defined)
    return result;
  result.dtype = tensor.scalar_type();
  result.sizes = tensor.sizes().vec();
  result.strides = tensor.strides().vec();
  if (tensor.numel() > 0 && !isDense(result))
    result.strides = contiguous(result.sizes);
  return result;
}

int64_t elements(const EagerResult &result) {
  int64_t count = 1;
  for (const int64_t size : result.sizes)
    count *= size;
  return result.defined ? count : 0;
}

at::Tensor toMeta(const at::Tensor &tensor) {
  // 0-dim CPU tensors keep their part in type promotion as they are.
  if (!tensor.defined() || (tensor.is_cpu() && tensor.dim() == 0))
    return tensor;
  return at::Tensor(at::detail::empty_strided_meta(tensor.sizes(), tensor.strides(), tensor.scalar_type()));
}

c10::IValue toMeta(const c10::IValue &value) {
  if (value.isTensor())
    return toMeta(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor &tensor : value.toTensorVector())
      list.push_back(toMeta(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor> &tensor : value.toOptionalTensorVector())
      list.push_back(tensor ? std::optional<at::Tensor>(toMeta(*tensor)) : std::nullopt);
    return list;
  }
  if (value.isDevice())
    return c10::Device(c10::DeviceType::Meta);
  if (value.isGenerator())
    return c10::IValue();
  return value;
}

/// One element of each tensor, on the CPU.
c10::IValue toProbe(const c10::IValue &value) {
  if (value.isTensor() && value.toTensor().defined()) {
    const at::Tensor &tensor = value.toTensor();
    // Of 16-bit types the device may have more.
    const c10::ScalarType dtype =
        c10::isReducedFloatingType(tensor.scalar_type()) ? c10::ScalarType::Float : tensor.scalar_type();
    return at::ones(std::vector<int64_t>(tensor.dim(), 1), at::TensorOptions(dtype).device(at::kCPU));
  }
  return value.isGenerator() ? c10::IValue() : value;
}

/// Elementwise operators whose shape functions are written in Python and do not find the strides that the CPU's
/// iterator over the same tensors does.
bool hasStridesOfIterator(const std::string &name) {
  static const std::unordered_set<std::string> names = {
      "aten.copysign.Tensor",
      "aten.div.Tensor_mode",
      "aten.elu_backward.default",
      "aten.floor_divide.default",
      "aten.hardsigmoid_backward.default",
      "aten.hardswish_backward.default",
      "aten.hardtanh_backward.default",
      "aten.heaviside.default",
      "aten.logaddexp.default",
      "aten.logaddexp2.default",
      "aten.logical_and.default",
      "aten.logical_or.default",
      "aten.logical_xor.default",
      "aten.logit_backward.default",
      "aten.softplus_backward.default",
      "aten.special_xlog1py.default",
      "aten.xlogy.Tensor",
  };
  return names.count(name) > 0;
}

bool isElementwiseWithoutTag(const std::string &name) {
  static const std::unordered_set<std::string> names = {
      "aten.elu_backward.default",
      "aten.floor_divide.default",
      "aten.hardshrink_backward.default",
      "aten.hardsigmoid_backward.default",
      "aten.hardswish.default",
      "aten.hardswish_backward.default",
      "aten.hardtanh_backward.default",
      "aten.leaky_relu_backward.default",
      "aten.log_sigmoid_forward.default",
      "aten.mish_backward.default",
      "aten.rsub.Tensor",
      "aten.softplus_backward.default",
      "aten.softshrink_backward.default",
  };
  return names.count(name) > 0;
}

/// Those whose CPU kernels allocate row-major results.
bool hasRowMajorResults(const std::string &name) {
  static const std::unordered_set<std::string> names = {"aten.isin.Tensor_Scalar", "aten.log_sigmoid_forward.default",
                                                        "aten.pow.Scalar"};
  return names.count(name) > 0;
}

std::vector<int64_t> stridesOfIterator(const std::vector<at::Tensor> &tensors, c10::ScalarType dtype) {
  at::TensorIteratorConfig config;
  config.set_check_mem_overlap(false).check_all_same_dtype(false).check_all_same_device(false);
  config.declare_static_dtype_and_device(dtype, at::kMeta);
  config.add_owned_output(at::Tensor());
  for (const at::Tensor &tensor : tensors)
    config.add_owned_const_input(
        at::Tensor(at::detail::empty_strided_meta(tensor.sizes(), tensor.strides(), tensor.scalar_type())));
  return config.build().output().strides().vec();
}

void flatten(const c10::IValue &value, std::vector<EagerResult> &results) {
  if (value.isTensor()) {
    results.push_back(resultOf(value.toTensor()));
  } else if (value.isTensorList()) {
    for (const at::Tensor &tensor : value.toTensorVector())
      results.push_back(resultOf(tensor));
  } else {
    results.push_back({});
    results.back().defined = false;
  }
}

} // namespace

void setEagerCompiler(EagerCompiler compiler) { theCompiler() = std::move(compiler); }

torch::jit::Stack EagerCall::metaStack() {
  torch::jit::Stack stack;
  stack.reserve(count_);
  for (size_t i = 0; i < count_; ++i)
    stack.push_back(toMeta(argument(i)));
  return stack;
}

const ShapeFunction *EagerCall::shapeFunction() {
  const ShapeFunction *shape = shapeFunctionOf(overload_.functionalName_);
  if (!shape || !shape->floatsOnly)
    return shape;
  for (size_t i = 0; i < count_; ++i)
    if (argument(i).isTensor() && !c10::isFloatingType(argument(i).toTensor().scalar_type()))
      return nullptr;
  return shape;
}

/// Whether the result is the first argument with other values, whatever it is.
bool EagerCall::fillsArgument() {
  const std::string &name = overload_.functionalName_;
  return overload_.form_ == EagerForm::InPlace && (name == "aten.fill.Scalar" || name == "aten.zero.default") &&
         argument(0).isTensor();
}

void EagerCall::checkInPlace(const std::vector<EagerResult> &results) {
  const ShapeFunction *shape = shapeFunction();
  if (fillsArgument())
    return;
  if (overload_.form_ != EagerForm::InPlace || !shape || !shape->isElementwise || results.size() != 1) {
    checkOnMeta();
    return;
  }
  // The shape is compared by the caller.
  const at::Tensor &self = *writtenArguments_[0];
  TORCH_CHECK(c10::canCast(results[0].dtype, self.scalar_type()), "result type ", results[0].dtype,
              " can't be cast to the desired output type ", self.scalar_type());
}

void EagerCall::checkOnMeta() {
  torch::jit::Stack stack = metaStack();
  overload_.op_.callBoxed(stack);
}

/// The shape functions do not check dimensions everywhere, and no program must be built for one that is none.
void EagerCall::checkDimensions() {
  const auto &arguments = overload_.op_.schema().arguments();
  if (arguments.empty() || arguments[0].type()->kind() != c10::TypeKind::TensorType || !argument(0).isTensor())
    return;
  int64_t rank = argument(0).toTensor().dim();
  for (size_t i = 1; i < count_; ++i) {
    // The dimension is one of the result, which the gradient of select() has fewer dimensions than.
    if (arguments[i].name() == "input_sizes" && argument(i).isIntList())
      rank = static_cast<int64_t>(argument(i).toIntVector().size());
    if (arguments[i].name() != "dim")
      continue;
    if (argument(i).isInt())
      c10::maybe_wrap_dim(argument(i).toInt(), rank);
    else if (argument(i).isIntList())
      for (const int64_t dimension : argument(i).toIntVector())
        c10::maybe_wrap_dim(dimension, rank);
  }
}

/// Position of a dtype= that is not given and for which the tensor in out= stands: reductions add in its type.
std::optional<size_t> EagerCall::impliedDtype() {
  if (overload_.form_ != EagerForm::Out || writtenArguments_.size() != 1)
    return std::nullopt;
  const auto &arguments = overload_.functional_.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name() == "dtype" && argument(i).isNone())
      return i;
  return std::nullopt;
}

/// An optimiser's operators: there are no shape functions of the in-place forms.
std::vector<EagerResult> EagerCall::updatedState() {
  const auto &arguments = overload_.op_.schema().arguments();
  bool unscales = false;
  std::vector<const at::Tensor *> first;
  for (size_t i = 0; i < count_; ++i) {
    unscales |= arguments[i].name() == "grad_scale" && argument(i).isTensor();
    if (overload_.plan_[i].kind != EagerArgumentPlan::Kind::TensorList)
      continue;
    const auto items = argument(i).toListRef();
    TORCH_CHECK(i == 0 || items.empty() || items.size() == first.size(), overload_.name(), ": expected ", first.size(),
                " tensors in ", arguments[i].name(), " but got ", items.size());
    for (size_t j = 0; j < items.size(); ++j) {
      const at::Tensor &tensor = items[j].toTensor();
      if (i == 0)
        first.push_back(&tensor);
      else
        TORCH_CHECK(arguments[i].name() == "state_steps" || tensor.sizes() == first[j]->sizes(), overload_.name(),
                    ": expected size ", first[j]->sizes(), " of tensor ", j, " of ", arguments[i].name(), " but got ",
                    tensor.sizes());
    }
  }
  std::vector<EagerResult> results;
  for (size_t i = 0; i < writtenArguments_.size(); ++i) {
    results.push_back(resultOf(*writtenArguments_[i]));
    // Gradients are written to when they are unscaled only.
    results.back().defined =
        writtenArguments_[i]->numel() > 0 && (unscales || arguments[writtenPositions_[i]].name() != "grads");
  }
  return results;
}

std::vector<EagerResult> EagerCall::inferResults(const EagerRequest &request) {
  std::vector<EagerResult> results;
  if (overload_.updatesState_)
    return updatedState();
  if (overload_.plan_.size() == 3 && overload_.functionalName_ == "aten.copy.default") {
    // The sizes were made equal before; the result is what the destination holds afterwards.
    results.push_back(resultOf(argument(0).toTensor()));
    results[0].strides = contiguous(results[0].sizes);
    return results;
  }
  if (fillsArgument()) {
    results.push_back(resultOf(argument(0).toTensor()));
    return results;
  }
  torch::jit::Stack stack = metaStack();
  // Out arguments come last and the functional form does not take them.
  stack.resize(overload_.functional_.schema().arguments().size());
  if (const std::optional<size_t> dtype = impliedDtype())
    stack[*dtype] = writtenArguments_[0]->scalar_type();
  if (const ShapeFunction *shape = shapeFunction())
    shape->kernel.callBoxed(overload_.functional_, c10::DispatchKeySet(c10::DispatchKey::Meta), &stack);
  else
    overload_.functional_.callBoxed(stack);
  for (const c10::IValue &value : stack)
    flatten(value, results);
  fixStrides(results);
  return results;
}

/// Where shape functions find other strides than the CPU's kernels have.
void EagerCall::fixStrides(std::vector<EagerResult> &results) {
  if (hasRowMajorResults(overload_.functionalName_)) {
    for (EagerResult &result : results)
      result.strides = contiguous(result.sizes);
    return;
  }
  const bool isLdexp = overload_.functionalName_ == "aten.ldexp.Tensor";
  if (results.size() != 1 || elements(results[0]) == 0 || !(isLdexp || hasStridesOfIterator(overload_.functionalName_)))
    return;
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < overload_.functional_.schema().arguments().size(); ++i)
    if (argument(i).isTensor())
      tensors.push_back(argument(i).toTensor());
  // The CPU's ldexp is a product with pow(2, other), whose result is row-major.
  if (isLdexp && tensors.size() == 2)
    tensors[1] = at::Tensor(at::detail::empty_strided_meta(
        tensors[1].sizes(), c10::contiguous_strides(tensors[1].sizes()), tensors[1].scalar_type()));
  results[0].strides = stridesOfIterator(tensors, results[0].dtype);
  if (!isDense(results[0]))
    results[0].strides = contiguous(results[0].sizes);
}

bool EagerOverload::isElementwise() const {
  return op_.hasTag(at::Tag::pointwise) || isElementwiseWithoutTag(functionalName_);
}

/// Raises what the CPU does about dtypes that its kernel refuses: shape functions accept them.
void EagerCall::checkDtypes() {
  if (overload_.isForeach_ || !overload_.isElementwise())
    return;
  torch::jit::Stack stack;
  for (size_t i = 0; i < overload_.functional_.schema().arguments().size(); ++i) {
    const c10::IValue &value = argument(i);
    if (value.isTensorList() || value.isOptionalTensorList())
      return;
    stack.push_back(toProbe(value));
  }
  const c10::impl::ExcludeDispatchKeyGuard noAutograd(c10::autograd_dispatch_keyset);
  overload_.functional_.callBoxed(stack);
}

std::unique_ptr<EagerEntry> EagerCall::compile() {
  auto entry = std::make_unique<EagerEntry>();
  const auto unsupported = [&](std::string reason) {
    entry->state = EagerEntry::State::Fallback;
    entry->reason = std::move(reason);
    return std::move(entry);
  };
  // Otherwise the shape functions show as operators in a profile.
  const at::DisableRecordFunctionGuard quiet;
  const at::AutoDispatchBelowADInplaceOrView below;

  EagerRequest request;
  request.op = overload_.functionalName_;
  request.schema = &overload_.functional_.schema();
  if (!read(&request))
    return unsupported(reason_);
  finishKey();
  request.arguments.resize(overload_.functional_.schema().arguments().size());
  if (const std::optional<size_t> dtype = impliedDtype())
    request.arguments[*dtype].constant = writtenArguments_[0]->scalar_type();
  try {
    entry->results = inferResults(request);
    if (overload_.form_ == EagerForm::Out) {
      for (size_t i = 0; i < writtenArguments_.size() && i < entry->results.size(); ++i)
        entry->resizes |= writtenArguments_[i]->sizes() != c10::IntArrayRef(entry->results[i].sizes);
      // An output that is resized gets the strides that the CPU's iterator finds; other kernels write row by row.
      if (entry->resizes && !overload_.isElementwise())
        for (EagerResult &result : entry->results)
          result.strides = contiguous(result.sizes);
      if (entry->resizes)
        return entry;
    }
    if (overload_.form_ != EagerForm::Functional && overload_.functionalName_ != "aten.copy.default" &&
        !overload_.updatesState_)
      checkInPlace(entry->results);
    checkDimensions();
    checkDtypes();
  } catch (...) {
    // Either the user's mistake or data that the result's shape depends on: the CPU tells which.
    refusal_ = std::current_exception();
    return nullptr;
  }
  request.results = entry->results;

  const size_t outputs = overload_.form_ == EagerForm::Functional
                             ? std::min(entry->results.size(), overload_.resultLimit_)
                             : writtenArguments_.size();
  if (outputs > entry->results.size())
    return unsupported("expected " + std::to_string(outputs) + " results but got " +
                       std::to_string(entry->results.size()));
  int64_t total = 0;
  for (size_t i = 0; i < outputs; ++i) {
    const EagerResult &result = entry->results[i];
    if (!result.defined)
      continue;
    EagerRequest::Output output;
    output.result = static_cast<int>(i);
    if (overload_.form_ == EagerForm::Functional) {
      output.dtype = result.dtype;
      output.strides = result.strides;
    } else {
      const at::Tensor &target = *writtenArguments_[i];
      TORCH_CHECK(target.sizes() == c10::IntArrayRef(result.sizes), "output with shape ", target.sizes(),
                  " doesn't match the broadcast shape ", c10::IntArrayRef(result.sizes));
      output.dtype = target.scalar_type();
      output.strides = target.strides().vec();
      output.mutatesInput = tensors_[written_[i]].graphInput;
    }
    if (overload_.isForeach_ && elements(result) == 0)
      return unsupported("a tensor of the list is empty");
    total += elements(result);
    request.outputs.push_back(std::move(output));
  }
  entry->outputs = request.outputs;
  entry->graphInputs = request.inputs.size();
  if (total == 0) {
    entry->state = EagerEntry::State::Nothing;
    return entry;
  }
  if (overload_.op_.hasTag(at::Tag::nondeterministic_seeded)) {
    EagerInput input;
    input.kind = EagerInput::Kind::RngState;
    input.dtype = c10::ScalarType::Long;
    input.sizes = {2};
    input.strides = {1};
    request.inputs.push_back(std::move(input));
    ++entry->graphInputs;
  }
  TORCH_CHECK(theCompiler(), "the compiler is not connected; import torch_neuronx instead of its extension module");
  std::string reason;
  entry->program = theCompiler()(request, reason);
  if (!entry->program)
    return unsupported(reason);
  return entry;
}

EagerCall::Outcome EagerCall::throughTemporary(std::string &reason) {
  // The written tensor shares memory with an argument in another layout: compute first, then copy.
  {
    const at::DisableRecordFunctionGuard quiet;
    const at::AutoDispatchBelowADInplaceOrView below;
    try {
      if (overload_.functionalName_ != "aten.copy.default")
        checkOnMeta();
    } catch (...) {
      finishKey();
      refusal_ = std::current_exception();
      return Outcome::Refused;
    }
  }
  torch::jit::Stack arguments;
  for (size_t i = 0; i < overload_.functional_.schema().arguments().size(); ++i)
    arguments.push_back(argument(i));
  if (overload_.functionalName_ == "aten.copy.default") {
    // A contiguous image of the source cannot overlap the destination.
    const at::Tensor &source = argument(1).toTensor();
    at::Tensor image(emptyStrided(source.sizes(), c10::contiguous_strides(source.sizes()), source.scalar_type(),
                                  source.device().index()));
    if (!eagerCopy(image, source) || !eagerCopy(argument(0).toTensor(), image)) {
      reason = "strided copies are not supported";
      return Outcome::Fallback;
    }
  } else {
    if (!overload_.functionalForm().tryCall(&arguments)) {
      reason = "the functional form is not supported";
      return Outcome::Fallback;
    }
    for (size_t i = 0; i < writtenArguments_.size(); ++i) {
      const at::Tensor target = *writtenArguments_[i];
      target.copy_(arguments[i].toTensor());
    }
  }
  EagerEntry none;
  pushResults({}, none);
  return Outcome::Done;
}

} // namespace neuroncore::device

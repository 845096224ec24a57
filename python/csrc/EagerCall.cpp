// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "EagerCall.h"

#include <cmath>
#include <cstring>

#include <ATen/Context.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <ATen/record_function.h>

#include "Copy.h"
#include "EagerStatistics.h"
#include "Storage.h"

namespace neuroncore::device {

namespace {

/// Kinds of key words; a word of the key starts with one of these in its low byte where a length or value follows.
enum KeyTag : uint64_t {
  None = 1,
  NewTensor,
  SameTensor,
  HostTensor,
  RuntimeScalar,
  ConstantScalar,
  List,
  Value,
  Text
};

uint64_t bits(double value) {
  uint64_t result;
  std::memcpy(&result, &value, sizeof(result));
  return result;
}

bool isFloatExact(double value) { return value != value || static_cast<double>(static_cast<float>(value)) == value; }

bool hasOwnAlgorithm(const c10::Scalar &exponent) {
  if (exponent.isComplex())
    return false;
  const double doubled = 2 * exponent.toDouble();
  return doubled == std::trunc(doubled) && std::abs(doubled) <= 8;
}

c10::ScalarType scalarDtype(const c10::Scalar &scalar) {
  if (scalar.isBoolean())
    return c10::ScalarType::Bool;
  return scalar.isIntegral(false) ? c10::ScalarType::Long : c10::ScalarType::Double;
}

std::pair<const std::byte *, const std::byte *> extent(const at::Tensor &tensor) {
  const auto *first = static_cast<const std::byte *>(tensor.const_data_ptr());
  int64_t last = 0;
  for (int64_t i = 0; i < tensor.dim(); ++i)
    last += (tensor.size(i) - 1) * tensor.stride(i);
  return {first, first + (last + 1) * static_cast<int64_t>(tensor.element_size())};
}

EagerInput describe(const at::Tensor &tensor) {
  EagerInput input;
  input.dtype = tensor.scalar_type();
  input.sizes = tensor.sizes().vec();
  input.strides = tensor.strides().vec();
  return input;
}

} // namespace

EagerCall::EagerCall(EagerOverload &overload, torch::jit::Stack &stack)
    : overload_(overload), stack_(stack), count_(overload.plan_.size()), base_(stack.size() - count_) {
  key_.words.reserve(64);
}

void EagerCall::checkDevice(const at::Tensor &tensor, size_t index) {
  const c10::Device device = tensor.device();
  if (device.is_privateuseone()) {
    if (device_ < 0)
      device_ = device.index();
    if (device.index() == device_)
      return;
  }
  TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two devices, neuron:",
              device_ < 0 ? currentDevice() : device_, " and ", device, "! (when checking argument for argument ",
              overload_.op_.schema().arguments()[index].name(), " in method ", overload_.name(), ")");
}

void EagerCall::noteWritten(int position, const at::Tensor &tensor, size_t index) {
  written_.push_back(position);
  writtenArguments_.push_back(&tensor);
  writtenPositions_.push_back(static_cast<int>(index));
}

bool EagerCall::readTensor(const at::Tensor &tensor, size_t index, bool written, EagerArgument *argument,
                           EagerRequest *request) {
  auto &words = key_.words;
  latest_ = -1;
  if (!tensor.defined()) {
    words.push_back(KeyTag::None);
    return true;
  }
  const bool onHost = tensor.is_cpu() && tensor.dim() == 0 && !written;
  if (onHost && tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
    // item() would dispatch.
    const void *data = tensor.const_data_ptr();
    switch (tensor.scalar_type()) {
    case c10::ScalarType::Double:
      return readScalar(*static_cast<const double *>(data), true, false, argument, request);
    case c10::ScalarType::Long:
      return readScalar(*static_cast<const int64_t *>(data), true, false, argument, request);
    case c10::ScalarType::Bool:
      return readScalar(*static_cast<const bool *>(data), true, false, argument, request);
    default:
      reason_ = "complex numbers are not supported";
      return false;
    }
  }
  if (!onHost)
    checkDevice(tensor, index);
  if (C10_UNLIKELY(tensor.layout() != c10::kStrided || tensor.is_quantized())) {
    reason_ = "only strided tensors are supported";
    return false;
  }
  void *data = const_cast<void *>(tensor.const_data_ptr());
  const auto dtype = static_cast<uint64_t>(tensor.scalar_type());
  if (!onHost)
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const Distinct &other = tensors_[i];
      if (other.data == data && !other.onHost && other.tensor->scalar_type() == tensor.scalar_type() &&
          other.tensor->sizes() == tensor.sizes() && other.tensor->strides() == tensor.strides() && data) {
        words.push_back(KeyTag::SameTensor | i << 8);
        latest_ = static_cast<int>(i);
        if (written)
          noteWritten(static_cast<int>(i), tensor, index);
        if (argument) {
          argument->kind = EagerArgument::Kind::Input;
          argument->input = other.graphInput;
        }
        return true;
      }
    }
  const auto dimensions = static_cast<uint64_t>(tensor.dim());
  words.push_back((onHost ? KeyTag::HostTensor : KeyTag::NewTensor) | dtype << 8 | dimensions << 16 |
                  static_cast<uint64_t>(written) << 32);
  for (const int64_t size : tensor.sizes())
    words.push_back(static_cast<uint64_t>(size));
  for (const int64_t stride : tensor.strides())
    words.push_back(static_cast<uint64_t>(stride));
  const int position = static_cast<int>(graphInputs_.size());
  graphInputs_.push_back(data);
  if (written)
    noteWritten(static_cast<int>(tensors_.size()), tensor, index);
  latest_ = static_cast<int>(tensors_.size());
  tensors_.push_back({&tensor, data, position, onHost});
  if (argument) {
    argument->kind = EagerArgument::Kind::Input;
    argument->input = position;
    request->inputs.push_back(describe(tensor));
  }
  return true;
}

bool EagerCall::readScalar(const c10::Scalar &scalar, bool wrapped, bool structural, EagerArgument *argument,
                           EagerRequest *request) {
  if (C10_UNLIKELY(scalar.isComplex() || scalar.isSymbolic())) {
    reason_ = "complex numbers are not supported";
    return false;
  }
  const c10::ScalarType dtype = scalarDtype(scalar);
  // A parameter slot holds a float: in double precision, other numbers are constants of the program.
  structural |= doublePrecision_ && scalar.isFloatingPoint() && !isFloatExact(scalar.toDouble());
  const uint64_t header = static_cast<uint64_t>(dtype) << 8 | static_cast<uint64_t>(wrapped) << 16;
  if (structural) {
    key_.words.push_back(KeyTag::ConstantScalar | header);
    key_.words.push_back(scalar.isFloatingPoint() ? bits(scalar.toDouble()) : static_cast<uint64_t>(scalar.toLong()));
    if (argument)
      argument->constant = scalar;
    return true;
  }
  key_.words.push_back(KeyTag::RuntimeScalar | header);
  const int position = static_cast<int>(graphInputs_.size());
  graphInputs_.push_back(nullptr);
  parameters_.push_back(parameterSlot(scalar));
  if (argument) {
    argument->kind = EagerArgument::Kind::Input;
    argument->input = position;
    EagerInput input;
    input.kind = EagerInput::Kind::Scalar;
    input.dtype = dtype;
    input.wrappedNumber = wrapped;
    request->inputs.push_back(std::move(input));
  }
  return true;
}

void EagerCall::readStructural(const c10::IValue &value) {
  auto &words = key_.words;
  if (value.isNone()) {
    words.push_back(KeyTag::None);
  } else if (value.isInt()) {
    words.push_back(KeyTag::Value | 1 << 8);
    words.push_back(static_cast<uint64_t>(value.toInt()));
  } else if (value.isBool()) {
    words.push_back(KeyTag::Value | 2 << 8 | static_cast<uint64_t>(value.toBool()) << 16);
  } else if (value.isDouble()) {
    words.push_back(KeyTag::Value | 3 << 8);
    words.push_back(bits(value.toDouble()));
  } else if (value.isString()) {
    const std::string &text = value.toStringRef();
    words.push_back(KeyTag::Text | static_cast<uint64_t>(text.size()) << 8);
    for (size_t i = 0; i < text.size(); i += 8) {
      uint64_t word = 0;
      std::memcpy(&word, text.data() + i, std::min<size_t>(8, text.size() - i));
      words.push_back(word);
    }
  } else if (value.isIntList()) {
    const auto list = value.toIntList();
    words.push_back(KeyTag::List | 1 << 8 | static_cast<uint64_t>(list.size()) << 16);
    for (const int64_t item : list)
      words.push_back(static_cast<uint64_t>(item));
  } else if (value.isDoubleList()) {
    const auto list = value.toDoubleList();
    words.push_back(KeyTag::List | 2 << 8 | static_cast<uint64_t>(list.size()) << 16);
    for (const double item : list)
      words.push_back(bits(item));
  } else if (value.isDevice()) {
    words.push_back(KeyTag::Value | 4 << 8 | static_cast<uint64_t>(value.toDevice().type()) << 16);
  } else if (value.isList()) {
    const auto list = value.toListRef();
    words.push_back(KeyTag::List | 3 << 8 | static_cast<uint64_t>(list.size()) << 16);
    for (const c10::IValue &item : list)
      readStructural(item);
  } else {
    reason_ = "an argument of type " + value.tagKind() + " is not supported";
  }
}

/// Index tensors may be on the CPU while the indexed tensor is not (as on every device).
void EagerCall::moveHostIndices() {
  for (size_t i = 0; i < count_; ++i) {
    if (overload_.plan_[i].kind != EagerArgumentPlan::Kind::TensorList || argument(i).isNone())
      continue;
    const auto items = argument(i).toListRef();
    bool any = false;
    for (const c10::IValue &item : items)
      any |= item.isTensor() && item.toTensor().defined() && item.toTensor().is_cpu();
    if (!any)
      continue;
    const at::Tensor &self = argument(0).toTensor();
    c10::List<std::optional<at::Tensor>> moved;
    for (const c10::IValue &item : items) {
      std::optional<at::Tensor> tensor;
      if (item.isTensor() && item.toTensor().defined())
        tensor = item.toTensor();
      if (tensor && tensor->is_cpu()) {
        at::Tensor onDevice(emptyStrided(tensor->sizes(), c10::contiguous_strides(tensor->sizes()),
                                         tensor->scalar_type(), self.device().index()));
        if (tensor->numel() > 0)
          copyHostToDevice(*tensor, onDevice, false);
        tensor = onDevice;
      }
      moved.push_back(tensor);
    }
    argument(i) = std::move(moved);
  }
}

bool EagerCall::read(EagerRequest *request) {
  key_.words.clear();
  tensors_.clear();
  written_.clear();
  writtenArguments_.clear();
  writtenPositions_.clear();
  occurrences_.clear();
  parameters_.clear();
  graphInputs_.clear();
  generator_.reset();
  const auto &plan = overload_.plan_;
  const bool writesLists = overload_.form_ == EagerForm::InPlace && (overload_.isForeach_ || overload_.updatesState_);
  for (size_t i = 0; i < count_; ++i)
    if (plan[i].kind == EagerArgumentPlan::Kind::Tensor && argument(i).isTensor() && argument(i).toTensor().defined() &&
        !argument(i).toTensor().unsafeGetTensorImpl()->is_wrapped_number())
      doublePrecision_ |= argument(i).toTensor().scalar_type() == c10::ScalarType::Double;
  if (request)
    request->arguments.resize(count_);
  for (size_t i = 0; i < count_; ++i) {
    const c10::IValue &value = argument(i);
    EagerArgument *out = request ? &request->arguments[i] : nullptr;
    switch (plan[i].kind) {
    case EagerArgumentPlan::Kind::Tensor:
      if (value.isNone())
        key_.words.push_back(KeyTag::None);
      else if (!readTensor(value.toTensor(), i, plan[i].written, out, request))
        return false;
      else if (writesLists && latest_ >= 0)
        occurrences_.push_back({latest_, -1, plan[i].written});
      break;
    case EagerArgumentPlan::Kind::TensorList: {
      if (value.isNone()) {
        key_.words.push_back(KeyTag::None);
        break;
      }
      const auto items = value.toListRef();
      key_.words.push_back(KeyTag::List | 4 << 8 | static_cast<uint64_t>(items.size()) << 16);
      if (out) {
        out->kind = EagerArgument::Kind::List;
        out->items.resize(items.size());
      }
      for (size_t j = 0; j < items.size(); ++j) {
        static const at::Tensor undefined;
        const at::Tensor &tensor = items[j].isTensor() ? items[j].toTensor() : undefined;
        if (!readTensor(tensor, i, plan[i].written, out ? &out->items[j] : nullptr, request))
          return false;
        if (writesLists && latest_ >= 0)
          occurrences_.push_back({latest_, static_cast<int>(j), plan[i].written});
      }
      break;
    }
    case EagerArgumentPlan::Kind::ScalarList: {
      const auto items = value.toListRef();
      key_.words.push_back(KeyTag::List | 5 << 8 | static_cast<uint64_t>(items.size()) << 16);
      if (out) {
        out->kind = EagerArgument::Kind::List;
        out->items.resize(items.size());
      }
      const bool structural = plan[i].structuralScalar || plan[i].exponent;
      for (size_t j = 0; j < items.size(); ++j)
        if (!readScalar(items[j].toScalar(), false, structural, out ? &out->items[j] : nullptr, request))
          return false;
      break;
    }
    case EagerArgumentPlan::Kind::Scalar: {
      if (value.isNone()) {
        key_.words.push_back(KeyTag::None);
        break;
      }
      const c10::Scalar scalar = value.toScalar();
      bool structural = plan[i].structuralScalar || (plan[i].exponent && hasOwnAlgorithm(scalar));
      const auto &fallback = overload_.op_.schema().arguments()[i].default_value();
      if (!structural && fallback && fallback->isScalar() && !scalar.isComplex()) {
        const c10::Scalar usual = fallback->toScalar();
        structural = scalarDtype(usual) == scalarDtype(scalar) && usual.equal(scalar.toDouble());
      }
      if (!readScalar(scalar, false, structural, out, request))
        return false;
      break;
    }
    case EagerArgumentPlan::Kind::Generator:
      if (value.isGenerator())
        generator_ = value.toGenerator();
      break;
    case EagerArgumentPlan::Kind::Device:
      if (value.isDevice() && device_ < 0 && value.toDevice().is_privateuseone() && value.toDevice().has_index())
        device_ = checkedDevice(value.toDevice().index());
      if (out)
        out->constant = value;
      break;
    case EagerArgumentPlan::Kind::Structural:
      readStructural(value);
      if (!reason_.empty())
        return false;
      if (out)
        out->constant = value;
      break;
    }
  }
  if (device_ < 0)
    device_ = currentDevice();
  return true;
}

void EagerCall::finishKey() {
  key_.words.push_back(static_cast<uint64_t>(at::globalContext().deterministicAlgorithms()));
  uint64_t hash = 0x9e3779b97f4a7c15ull;
  for (const uint64_t word : key_.words) {
    const auto product = static_cast<unsigned __int128>(hash ^ word) * 0xd6e8feb86659fd93ull;
    hash = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64) ^ 0x2545f4914f6cdd1dull;
  }
  key_.hash = hash;
}

EagerCall::Overlap EagerCall::overlapOf(const at::Tensor &written, const at::Tensor &other) const {
  if (written.numel() == 0 || other.numel() == 0 || !written.storage().is_alias_of(other.storage()))
    return Overlap::None;
  const auto [writtenBegin, writtenEnd] = extent(written);
  const auto [otherBegin, otherEnd] = extent(other);
  if (writtenEnd <= otherBegin || otherEnd <= writtenBegin)
    return Overlap::None;
  if (written.is_non_overlapping_and_dense() && other.is_non_overlapping_and_dense())
    return Overlap::Partial;
  return Overlap::Unknown;
}

bool EagerCall::isOnOneDevice() {
  std::optional<c10::Device> device;
  for (size_t i = 0; i < count_; ++i) {
    if (overload_.plan_[i].kind != EagerArgumentPlan::Kind::TensorList)
      continue;
    for (const c10::IValue &item : argument(i).toListRef()) {
      if (!item.isTensor() || !item.toTensor().defined())
        return false;
      const at::Tensor &tensor = item.toTensor();
      if (tensor.is_cpu() && tensor.dim() == 0)
        continue;
      if (device && *device != tensor.device())
        return false;
      device = tensor.device();
    }
  }
  return device && device->is_privateuseone();
}

bool EagerCall::couplesElements() const {
  // Memory that two of the tensors share, in address order.
  struct Span {
    const std::byte *begin, *end;
    bool written;
  };
  std::vector<Span> spans;
  std::vector<bool> isWritten(tensors_.size(), false);
  for (const int position : written_)
    isWritten[position] = true;
  for (size_t i = 0; i < tensors_.size(); ++i)
    if (!tensors_[i].onHost && tensors_[i].tensor->numel() > 0) {
      const auto [begin, end] = extent(*tensors_[i].tensor);
      spans.push_back({begin, end, isWritten[i]});
    }
  std::sort(spans.begin(), spans.end(), [](const Span &a, const Span &b) { return a.begin < b.begin; });
  const std::byte *end = nullptr, *writtenEnd = nullptr;
  for (const Span &span : spans) {
    if (span.begin < writtenEnd || (span.written && span.begin < end))
      return true;
    end = std::max(end, span.end);
    if (span.written)
      writtenEnd = std::max(writtenEnd, span.end);
  }
  // One tensor in two elements.
  std::vector<int> writtenElement(tensors_.size(), -2);
  std::vector<bool> several(tensors_.size(), false);
  for (const Occurrence &occurrence : occurrences_)
    if (occurrence.written) {
      int &element = writtenElement[occurrence.tensor];
      several[occurrence.tensor] = several[occurrence.tensor] || element != -2;
      element = occurrence.element;
    }
  return std::any_of(occurrences_.begin(), occurrences_.end(), [&](const Occurrence &occurrence) {
    const int element = writtenElement[occurrence.tensor];
    return several[occurrence.tensor] || (element != -2 && element != occurrence.element);
  });
}

bool EagerCall::needsTemporary() {
  bool temporary = false;
  for (const int position : written_) {
    const at::Tensor &written = *tensors_[position].tensor;
    at::assert_no_internal_overlap(written);
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (static_cast<int>(i) == position || tensors_[i].onHost)
        continue;
      switch (overlapOf(written, *tensors_[i].tensor)) {
      case Overlap::Partial:
        // Full in core's terms can still be another layout of the same bytes (out = a.t()); core lets that pass.
        at::assert_no_partial_overlap(written, *tensors_[i].tensor);
        temporary = true;
        break;
      case Overlap::Unknown:
        temporary = true;
        break;
      default:
        break;
      }
    }
  }
  return temporary;
}

EagerEntry *EagerCall::find() {
  std::lock_guard<std::mutex> lock(overload_.mutex_);
  auto it = overload_.entries_.find(key_);
  return it == overload_.entries_.end() ? nullptr : it->second.get();
}

EagerCall::Outcome EagerCall::run(std::string &reason) {
  if (C10_UNLIKELY(overload_.acceptsHostIndices_))
    moveHostIndices();
  if (!read(nullptr)) {
    reason = reason_;
    return Outcome::Fallback;
  }
  if (!written_.empty()) {
    if (overload_.isForeach_ || overload_.updatesState_) {
      for (const at::Tensor *tensor : writtenArguments_)
        at::assert_no_internal_overlap(*tensor);
      if (C10_UNLIKELY(couplesElements())) {
        reason = "the tensors that it writes share memory";
        return Outcome::Fallback;
      }
    } else if (C10_UNLIKELY(needsTemporary())) {
      return throughTemporary(reason);
    }
  }
  finishKey();
  EagerEntry *entry = find();
  if (C10_LIKELY(entry != nullptr)) {
    countEagerHit();
  } else {
    countEagerMiss();
    // No lock is held here: the compiler runs Python.
    std::unique_ptr<EagerEntry> fresh = compile();
    if (!fresh)
      return Outcome::Refused;
    std::lock_guard<std::mutex> lock(overload_.mutex_);
    // Another thread may have been faster; entries never move once they are in.
    entry = overload_.entries_.try_emplace(key_, std::move(fresh)).first->second.get();
  }
  if (entry->state == EagerEntry::State::Fallback) {
    reason = entry->reason;
    return Outcome::Fallback;
  }
  return launch(*entry);
}

void EagerCall::rememberFallback(std::string reason) {
  auto entry = std::make_unique<EagerEntry>();
  entry->state = EagerEntry::State::Fallback;
  entry->reason = std::move(reason);
  std::lock_guard<std::mutex> lock(overload_.mutex_);
  overload_.entries_.try_emplace(key_, std::move(entry));
}

void EagerCall::resizeOutputs(const EagerEntry &entry) {
  for (size_t i = 0; i < writtenArguments_.size() && i < entry.results.size(); ++i) {
    const EagerResult &result = entry.results[i];
    if (at::native::resize_output(*writtenArguments_[i], result.sizes))
      writtenArguments_[i]->unsafeGetTensorImpl()->set_sizes_and_strides(result.sizes, result.strides);
  }
}

EagerCall::Outcome EagerCall::launch(EagerEntry &entry) {
  if (C10_UNLIKELY(entry.resizes)) {
    resizeOutputs(entry);
    return Outcome::Retry;
  }
  std::vector<at::Tensor> fresh(entry.outputs.size());
  c10::SmallVector<void *, 4> outputs;
  for (size_t i = 0; i < entry.outputs.size(); ++i) {
    const auto &output = entry.outputs[i];
    if (output.mutatesInput >= 0) {
      outputs.push_back(graphInputs_[output.mutatesInput]);
      continue;
    }
    fresh[i] = at::Tensor(emptyStrided(entry.results[output.result].sizes, output.strides, output.dtype, device_));
    outputs.push_back(fresh[i].mutable_data_ptr());
  }
  if (entry.state == EagerEntry::State::Launch) {
    // The generator state is the last input of the graph, if it has one.
    graphInputs_.resize(std::max(graphInputs_.size(), entry.graphInputs), nullptr);
    // Host values must outlive this call: they travel in the parameter block's place.
    LaunchOptions options;
    options.parameters = {parameters_.data(), parameters_.size()};
    options.generator = generator_;
    if (entry.program->description().faultNotes)
      options.callersLine = callersLine();
    for (Distinct &distinct : tensors_)
      if (distinct.onHost) {
        at::Tensor onDevice(emptyStrided({}, {}, distinct.tensor->scalar_type(), device_));
        copyHostToDevice(*distinct.tensor, onDevice, false);
        // Released at once: whoever gets the block enqueues behind this launch.
        graphInputs_[distinct.graphInput] = onDevice.mutable_data_ptr();
      }
    entry.program->launch(device_, {graphInputs_.data(), graphInputs_.size()}, {outputs.data(), outputs.size()},
                          options);
    countEagerLaunch();
  }
  pushResults(std::move(fresh), entry);
  return Outcome::Done;
}

void EagerCall::pushResults(std::vector<at::Tensor> fresh, const EagerEntry &entry) {
  const auto &returns = overload_.op_.schema().returns();
  if (overload_.form_ != EagerForm::Functional) {
    // Copies of the written arguments, before the stack is cut.
    c10::SmallVector<at::Tensor, 4> results;
    for (size_t i = 0; i < std::min(returns.size(), writtenArguments_.size()); ++i)
      results.push_back(*writtenArguments_[i]);
    torch::jit::drop(stack_, count_);
    for (at::Tensor &result : results)
      stack_.emplace_back(std::move(result));
    return;
  }
  torch::jit::drop(stack_, count_);
  std::vector<at::Tensor> results(entry.results.size());
  for (size_t i = 0; i < entry.outputs.size(); ++i)
    if (fresh[i].defined())
      results[entry.outputs[i].result] = std::move(fresh[i]);
  if (returns.size() == 1 && returns[0].type()->kind() == c10::TypeKind::ListType) {
    stack_.emplace_back(c10::List<at::Tensor>(c10::ArrayRef<at::Tensor>(results)));
    return;
  }
  for (size_t i = 0; i < returns.size(); ++i)
    stack_.emplace_back(i < results.size() ? std::move(results[i]) : at::Tensor());
}

} // namespace neuroncore::device

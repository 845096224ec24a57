// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Interpreter.h"

#include <map>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/record_function.h>
#include <c10/util/Exception.h>

namespace neuron_double {

using nlohmann::json;

namespace {

at::ScalarType dtypeOf(int code) {
  static const std::map<int, at::ScalarType> table = {
      {1, at::kFloat},  {2, at::kBFloat16}, {3, at::kHalf},         {4, at::kFloat8_e4m3fn}, {5, at::kFloat8_e5m2},
      {6, at::kDouble}, {7, at::kChar},     {8, at::kByte},         {9, at::kShort},         {10, at::kInt},
      {11, at::kLong},  {12, at::kBool},    {13, at::kComplexFloat}};
  auto it = table.find(code);
  TORCH_CHECK(it != table.end(), "unknown dtype code ", code);
  return it->second;
}

uint64_t extentBytes(const std::vector<int64_t> &sizes, const std::vector<int64_t> &strides, at::ScalarType dtype) {
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0)
      return 0;
    last += (sizes[i] - 1) * strides[i];
  }
  return static_cast<uint64_t>(last + 1) * c10::elementSize(dtype);
}

c10::TypePtr withoutOptional(c10::TypePtr type) {
  if (type->kind() == c10::TypeKind::OptionalType)
    return type->expectRef<c10::OptionalType>().getElementType();
  return type;
}

using Values = std::map<int, c10::IValue>;

/// A number that stands where the schema wants a tensor is a wrapped number.
c10::IValue convert(const json &argument, const c10::TypePtr &fullType, const Values &values,
                    const at::Generator &generator) {
  const c10::TypePtr type = withoutOptional(fullType);
  if (type->kind() == c10::TypeKind::GeneratorType)
    return generator.defined() ? c10::IValue(generator) : c10::IValue();
  const std::string kind = argument.begin().key();
  const json &content = argument.begin().value();
  c10::IValue value;
  if (kind == "none") {
    return c10::IValue();
  } else if (kind == "value") {
    value = values.at(content.get<int>());
    if (value.isTensor() && type->kind() == c10::TypeKind::NumberType)
      value = value.toTensor().item();
  } else if (kind == "boolean") {
    value = content.get<bool>();
  } else if (kind == "integer") {
    value = content.get<int64_t>();
  } else if (kind == "floating") {
    value = content.is_string() ? std::stod(content.get<std::string>()) : content.get<double>();
  } else if (kind == "text") {
    value = content.get<std::string>();
  } else if (kind == "dtype") {
    value = static_cast<int64_t>(dtypeOf(content.get<int>()));
  } else if (kind == "device") {
    value = c10::Device("cpu");
  } else if (kind == "layout" || kind == "memory_format") {
    static const std::map<std::string, int64_t> codes = {
        {"strided", static_cast<int64_t>(c10::kStrided)},
        {"contiguous_format", static_cast<int64_t>(c10::MemoryFormat::Contiguous)},
        {"preserve_format", static_cast<int64_t>(c10::MemoryFormat::Preserve)},
        {"channels_last", static_cast<int64_t>(c10::MemoryFormat::ChannelsLast)},
        {"channels_last_3d", static_cast<int64_t>(c10::MemoryFormat::ChannelsLast3d)}};
    value = codes.at(content.get<std::string>());
  } else if (kind == "list") {
    const c10::TypePtr element = type->expectRef<c10::ListType>().getElementType();
    const c10::TypePtr bare = withoutOptional(element);
    if (bare->kind() == c10::TypeKind::TensorType) {
      if (element->kind() == c10::TypeKind::OptionalType) {
        c10::List<std::optional<at::Tensor>> list;
        for (const json &item : content) {
          const c10::IValue entry = convert(item, element, values, generator);
          list.push_back(entry.isNone() ? std::nullopt : std::optional<at::Tensor>(entry.toTensor()));
        }
        return list;
      }
      c10::List<at::Tensor> list;
      for (const json &item : content)
        list.push_back(convert(item, element, values, generator).toTensor());
      return list;
    }
    c10::List<int64_t> integers;
    c10::List<double> floats;
    c10::List<bool> booleans;
    for (const json &item : content) {
      const c10::IValue entry = convert(item, element, values, generator);
      if (bare->kind() == c10::TypeKind::FloatType)
        floats.push_back(entry.isInt() ? static_cast<double>(entry.toInt()) : entry.toDouble());
      else if (bare->kind() == c10::TypeKind::BoolType)
        booleans.push_back(entry.toBool());
      else
        integers.push_back(entry.toInt());
    }
    if (bare->kind() == c10::TypeKind::FloatType)
      return floats;
    if (bare->kind() == c10::TypeKind::BoolType)
      return booleans;
    return integers;
  } else {
    TORCH_CHECK(false, "unknown argument kind ", kind);
  }
  if (type->kind() == c10::TypeKind::TensorType && !value.isTensor()) {
    at::Tensor wrapped = at::scalar_tensor(value.toScalar(), at::dtype(value.isDouble() ? at::kDouble
                                                                       : value.isBool() ? at::kBool
                                                                                        : at::kLong));
    wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
    return wrapped;
  }
  if (type->kind() == c10::TypeKind::FloatType && value.isInt())
    return static_cast<double>(value.toInt());
  return value;
}

/// Has no CPU kernel; the formula of the gradient.
std::vector<at::Tensor> fusedRmsNormBackward(const torch::jit::Stack &stack) {
  const at::Tensor &gradient = stack[0].toTensor();
  const at::Tensor &input = stack[1].toTensor();
  const int64_t normalized = static_cast<int64_t>(stack[2].toIntVector().size());
  const at::Tensor &rstd = stack[3].toTensor();
  const at::Tensor weight = stack[4].isTensor() ? stack[4].toTensor() : at::Tensor();
  std::vector<int64_t> inner;
  std::vector<int64_t> outer;
  for (int64_t i = 0; i < input.dim(); ++i)
    (i < input.dim() - normalized ? outer : inner).push_back(i);
  const at::Tensor scaled = input.to(at::kFloat) * rstd;
  const at::Tensor incoming = gradient.to(at::kFloat);
  const at::Tensor weighted = weight.defined() ? incoming * weight.to(at::kFloat) : incoming;
  const at::Tensor inputGradient = rstd * (weighted - scaled * (weighted * scaled).mean(inner, true));
  at::Tensor weightGradient = incoming * scaled;
  if (!outer.empty())
    weightGradient = weightGradient.sum(outer);
  return {inputGradient.to(input.scalar_type()),
          weight.defined() ? weightGradient.to(weight.scalar_type()) : at::Tensor()};
}

} // namespace

Graph::Graph(const std::string &text) : graph_(json::parse(text)) {
  name = graph_.at("name").get<std::string>();
  const auto describe = [](const json &item, const std::string &role) {
    Variable variable;
    variable.role = role;
    variable.dtype = dtypeOf(item.at("dtype").get<int>());
    variable.sizes = item.at("sizes").get<std::vector<int64_t>>();
    variable.strides = item.at("strides").get<std::vector<int64_t>>();
    variable.bytes = extentBytes(variable.sizes, variable.strides, variable.dtype);
    return variable;
  };
  int scalars = 0;
  for (size_t i = 0; i < graph_.at("inputs").size(); ++i) {
    const json &item = graph_.at("inputs")[i];
    const std::string kind = item.at("kind").get<std::string>();
    if (kind == "scalar") {
      ++scalars;
      continue;
    }
    inputs.push_back(describe(item, kind));
    inputs.back().name = kind == "tensor" ? "input" + std::to_string(i) : kind;
    if (kind == "rng_state")
      rngIncrement = 4;
  }
  if (scalars > 0) {
    Variable variable;
    variable.name = variable.role = "parameters";
    variable.bytes = 16ull * static_cast<uint64_t>(scalars);
    inputs.push_back(variable);
  }
  for (size_t i = 0; i < graph_.at("outputs").size(); ++i) {
    const json &item = graph_.at("outputs")[i];
    outputs.push_back(describe(item, "tensor"));
    outputs.back().name = "output" + std::to_string(i);
    outputs.back().alias = item.at("mutates").get<int>() - 1;
  }
  for (const json &node : graph_.at("nodes"))
    work += node.value("work", int64_t(0));
}

void Graph::run(const std::vector<void *> &inputPointers, const std::vector<void *> &outputPointers) const {
  const at::DisableRecordFunctionGuard quiet;
  const at::AutoDispatchBelowADInplaceOrView below;
  Values values;
  at::Generator generator;
  const auto *parameters = static_cast<const unsigned char *>(nullptr);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].role == "parameters")
      parameters = static_cast<const unsigned char *>(inputPointers[i]);
  size_t tensorIndex = 0;
  size_t scalarIndex = 0;
  for (const json &item : graph_.at("inputs")) {
    const int value = item.at("value").get<int>();
    const std::string kind = item.at("kind").get<std::string>();
    if (kind == "scalar") {
      float real;
      int64_t integer;
      std::memcpy(&real, parameters + 16 * scalarIndex, sizeof(real));
      std::memcpy(&integer, parameters + 16 * scalarIndex + 8, sizeof(integer));
      ++scalarIndex;
      const at::ScalarType dtype = dtypeOf(item.at("dtype").get<int>());
      if (dtype == at::kDouble)
        values[value] = static_cast<double>(real);
      else if (dtype == at::kBool)
        values[value] = integer != 0;
      else
        values[value] = integer;
      continue;
    }
    const Variable &variable = inputs[tensorIndex];
    void *pointer = inputPointers[tensorIndex++];
    if (kind == "rng_state") {
      uint64_t state[2];
      std::memcpy(state, pointer, sizeof(state));
      generator = at::make_generator<at::CPUGeneratorImpl>(state[0] * 0x9e3779b97f4a7c15ull + state[1]);
      continue;
    }
    // A private copy: outputs may be written into inputs.
    values[value] = at::from_blob(pointer, variable.sizes, variable.strides, at::dtype(variable.dtype)).clone();
  }
  for (const json &node : graph_.at("nodes")) {
    std::string op = node.at("op").get<std::string>();
    const size_t dot = op.rfind('.');
    std::string overload = op.substr(dot + 1);
    op = "aten::" + op.substr(5, dot - 5);
    const auto handle =
        c10::Dispatcher::singleton().findSchemaOrThrow(op.c_str(), overload == "default" ? "" : overload.c_str());
    torch::jit::Stack stack;
    const auto &arguments = handle.schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i)
      stack.push_back(convert(node.at("args")[i], arguments[i].real_type(), values, generator));
    if (op == "aten::_fused_rms_norm_backward") {
      const std::vector<at::Tensor> gradients = fusedRmsNormBackward(stack);
      stack.assign(gradients.begin(), gradients.end());
    } else {
      handle.callBoxed(stack);
    }
    std::vector<c10::IValue> results;
    for (const c10::IValue &item : stack)
      if (item.isTensorList())
        for (const at::Tensor &tensor : item.toTensorVector())
          results.push_back(tensor);
      else
        results.push_back(item);
    for (size_t i = 0; i < node.at("results").size(); ++i)
      if (const int value = node.at("results")[i].get<int>())
        values[value] = results[i];
  }
  std::vector<at::Tensor> produced;
  for (const json &item : graph_.at("outputs"))
    produced.push_back(values.at(item.at("value").get<int>()).toTensor());
  for (size_t i = 0; i < produced.size(); ++i) {
    const Variable &variable = outputs[i];
    TORCH_CHECK(produced[i].sizes() == c10::IntArrayRef(variable.sizes) && produced[i].scalar_type() == variable.dtype,
                "output ", i, " of ", name, " has ", produced[i].scalar_type(), produced[i].sizes(),
                " but the graph says ", variable.dtype, c10::IntArrayRef(variable.sizes));
    at::from_blob(outputPointers[i], variable.sizes, variable.strides, at::dtype(variable.dtype)).copy_(produced[i]);
  }
}

} // namespace neuron_double

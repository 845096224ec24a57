// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Evaluate.h"

#include <cmath>
#include <cstring>

#include "dialects/Neuron/NeuronDialect.h"
#include "lib/Reference/Evaluator.h"
#include "neuron/Support/Text.h"

using namespace mlir;
using namespace mlir::neuron;
using namespace mlir::neuron::reference;
using neuroncore::cat;
using neuroncore::Error;
using neuroncore::ErrorKind;
using neuroncore::Expected;
using neuroncore::Status;

namespace {

Expected<HostTensor> readArgument(const std::string &path, RankedTensorType type) {
  Expected<NpyArray> array = readNpy(path);
  if (!array)
    return array.error();
  std::string descriptor = npyDescriptor(type.getElementType());
  if (array->descriptor != descriptor)
    return Error(ErrorKind::InvalidInput,
                 cat(path, ": expected elements '", descriptor, "' but got '", array->descriptor, "'"));
  if (ArrayRef<int64_t>(array->shape) != type.getShape())
    return Error(ErrorKind::InvalidInput, cat(path, ": expected the argument's shape"));
  return HostTensor::fromBytes(type, array->bytes);
}

/// A rank-0 array of any number type, as both members of a parameter record.
Status readScalar(const std::string &path, float &asFloat, int64_t &asInteger) {
  Expected<NpyArray> array = readNpy(path);
  if (!array)
    return array.error();
  if (array->descriptor == "<f8" && array->bytes.size() == 8) {
    double value;
    std::memcpy(&value, array->bytes.data(), 8);
    asFloat = static_cast<float>(value);
    asInteger = std::abs(value) < 0x1p63 ? static_cast<int64_t>(value) : std::numeric_limits<int64_t>::min();
    return Status::success();
  }
  if ((array->descriptor == "<i8" && array->bytes.size() == 8) ||
      (array->descriptor == "|b1" && array->bytes.size() == 1)) {
    asInteger = 0;
    std::memcpy(&asInteger, array->bytes.data(), array->bytes.size());
    asFloat = static_cast<float>(asInteger);
    return Status::success();
  }
  return Error(ErrorKind::InvalidInput, cat(path, ": expected a scalar '<f8', '<i8' or '|b1'"));
}

} // namespace

Status evaluateOnFiles(ModuleOp module, const neuroncore::graph::GraphDef *graph,
                       const std::vector<std::string> &inputs, const std::string &outputDirectory) {
  auto functions = module.getOps<func::FuncOp>();
  if (functions.empty())
    return Error(ErrorKind::InvalidInput, "expected a function in the module");
  func::FuncOp function = *functions.begin();
  std::vector<HostTensor> arguments;
  unsigned next = 0;
  auto nextType = [&] { return cast<RankedTensorType>(function.getArgument(next++).getType()); };
  if (!graph) {
    if (inputs.size() != function.getNumArguments())
      return Error(ErrorKind::InvalidInput,
                   cat("expected ", function.getNumArguments(), " input files but got ", inputs.size()));
    for (const std::string &path : inputs) {
      Expected<HostTensor> argument = readArgument(path, nextType());
      if (!argument)
        return argument.error();
      arguments.push_back(std::move(*argument));
    }
  } else {
    if (inputs.size() != static_cast<size_t>(graph->inputs_size()))
      return Error(ErrorKind::InvalidInput,
                   cat("expected ", graph->inputs_size(), " input files but got ", inputs.size()));
    std::vector<float> floats;
    std::vector<int64_t> integers;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (graph->inputs(i).kind() == ::neuron::graph::Input::SCALAR) {
        if (Status status = readScalar(inputs[i], floats.emplace_back(), integers.emplace_back()); !status)
          return status;
        continue;
      }
      Expected<HostTensor> argument = readArgument(inputs[i], nextType());
      if (!argument)
        return argument.error();
      arguments.push_back(std::move(*argument));
    }
    if (!floats.empty()) {
      arguments.emplace_back(nextType()).floats = floats;
      arguments.emplace_back(nextType()).integers = integers;
    }
  }
  Expected<std::vector<HostTensor>> results = evaluate(function, std::move(arguments));
  if (!results)
    return results.error();
  for (size_t k = 0; k < results->size(); ++k) {
    auto name = function.getResultAttrOfType<StringAttr>(k, attribute::kName);
    std::string file = name ? name.str() : cat("output", k);
    if (Status status = writeNpy(cat(outputDirectory, "/", file, ".npy"), (*results)[k]); !status)
      return status;
  }
  return Status::success();
}

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text form of a GraphDef, for dumps and bug reports. It is read by people; the message bytes are what tools exchange.

#include "neuron/Graph/GraphReader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "neuron/Support/Text.h"

namespace neuroncore::graph {

using ::neuron::graph::Argument;

namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + '"';
}

/// The shortest text that reads back as the same number.
std::string printFloat(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  char buffer[40];
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
  return text.find_first_of(".e") == text.npos ? text + ".0" : text;
}

std::string printArgument(const Argument &argument) {
  switch (argument.kind_case()) {
  case Argument::kNone:
    return "None";
  case Argument::kValue:
    return cat("%", argument.value());
  case Argument::kBoolean:
    return argument.boolean() ? "True" : "False";
  case Argument::kInteger:
    return cat(argument.integer());
  case Argument::kFloating:
    return printFloat(argument.floating());
  case Argument::kText:
    return quoted(argument.text());
  case Argument::kList: {
    std::string out = "[";
    for (int i = 0; i < argument.list().items_size(); ++i)
      out += (i ? ", " : "") + printArgument(argument.list().items(i));
    return out + "]";
  }
  case Argument::kDtype:
    return std::string(scalarTypeName(argument.dtype()));
  case Argument::kDevice:
    return cat("device(", quoted(argument.device()), ")");
  case Argument::kLayout:
    return cat("layout(", quoted(argument.layout()), ")");
  case Argument::kMemoryFormat:
    return cat("memory_format(", quoted(argument.memory_format()), ")");
  case Argument::KIND_NOT_SET:
    break;
  }
  return "<unset>";
}

} // namespace

std::string printType(const TensorType &type) {
  std::string out = cat(scalarTypeName(type.dtype()), "[");
  for (int i = 0; i < type.sizes_size(); ++i)
    out += cat(i ? ", " : "", type.sizes(i));
  out += "]";
  if (!isContiguous(type)) {
    out += " strides[";
    for (int i = 0; i < type.strides_size(); ++i)
      out += cat(i ? ", " : "", type.strides(i));
    out += "]";
  }
  if (type.storage_offset() != 0)
    out += cat(" offset ", type.storage_offset());
  return out;
}

std::string printNode(const ::neuron::graph::Node &node) {
  std::string out;
  for (int i = 0; i < node.results_size(); ++i)
    out += (i ? ", " : "") + (node.results(i) ? cat("%", node.results(i)) : std::string("_"));
  out += cat(node.results_size() ? " = " : "", node.op(), "(");
  for (int i = 0; i < node.arguments_size(); ++i)
    out += (i ? ", " : "") + printArgument(node.arguments(i));
  out += ")";
  for (int i = 0; i < node.types_size(); ++i)
    out += (i ? ", " : " : ") +
           (i < node.results_size() && node.results(i) == 0 ? std::string("None") : printType(node.types(i)));
  if (!node.name().empty())
    out += cat(" // ", node.name());
  return out;
}

namespace {

std::string printFrame(const ::neuron::graph::NodeLocation &location) {
  if (location.frames_size() == 0)
    return "";
  const auto &frame = location.frames(location.frames_size() - 1);
  return cat(frame.file(), ":", frame.line(), " in ", frame.function(), ": ", frame.text());
}

} // namespace

std::string printLocation(const GraphDef &graph, int node) {
  for (const auto &location : graph.locations())
    if (std::find(location.nodes().begin(), location.nodes().end(), uint32_t(node)) != location.nodes().end())
      return printFrame(location);
  return "";
}

std::string printGraph(const GraphDef &graph) {
  std::unordered_map<uint32_t, const ::neuron::graph::NodeLocation *> locations;
  for (const auto &location : graph.locations())
    for (uint32_t node : location.nodes())
      locations.emplace(node, &location);

  std::string out = cat("graph ", quoted(graph.name()), " ", graph.kind(), " version ", graph.version(), "\n");
  for (const auto &input : graph.inputs()) {
    std::string_view kind = input.kind() == ::neuron::graph::Input::SCALAR      ? "scalar "
                            : input.kind() == ::neuron::graph::Input::RNG_STATE ? "rng_state "
                                                                                : "";
    out += cat("  %", input.value(), " = input ", kind, quoted(input.name()), " : ", printType(input.type()),
               input.wrapped_number() ? " wrapped_number" : "", "\n");
  }
  for (const auto &constant : graph.constants())
    out += cat("  %", constant.value(), " = constant : ", printType(constant.type()), " // ", constant.data().size(),
               " bytes, hash ", hash128(constant.data()).toString(), "\n");
  for (int n = 0; n < graph.nodes_size(); ++n) {
    out += cat("  ", printNode(graph.nodes(n)), "\n");
    auto location = locations.find(uint32_t(n));
    std::string frame = location == locations.end() ? "" : printFrame(*location->second);
    if (!frame.empty())
      out += cat("      // ", frame, "\n");
  }
  for (const auto &output : graph.outputs()) {
    if (output.value() == 0) {
      out += "  output None\n";
      continue;
    }
    out += cat("  output %", output.value(), " : ", printType(output.type()));
    if (output.mutates_input())
      out += cat(" mutates input ", output.mutates_input() - 1);
    out += "\n";
  }
  return out;
}

} // namespace neuroncore::graph

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The identity of a graph for caches: a walk of its own rather than the serialised bytes, because protobuf does not
// promise that those are canonical.

#include "neuron/Graph/GraphReader.h"

#include <bit>
#include <unordered_map>

namespace neuroncore::graph {

using ::neuron::graph::Argument;

namespace {

class GraphHasher {
public:
  Hash128 run(const GraphDef &graph) {
    hash_.add("neuron graph").add(graph.version()).add(graph.kind());
    hash_.add(graph.inputs_size());
    for (const auto &input : graph.inputs()) {
      define(input.value());
      hash_.add(input.kind()).add(input.wrapped_number());
      type(input.type());
    }
    hash_.add(graph.constants_size());
    for (const auto &constant : graph.constants()) {
      define(constant.value());
      type(constant.type());
      hash_.add(constant.data());
    }
    hash_.add(graph.nodes_size());
    for (const auto &node : graph.nodes()) {
      hash_.add(node.op()).add(node.arguments_size());
      for (const Argument &item : node.arguments())
        argument(item);
      hash_.add(node.results_size());
      for (int i = 0; i < node.results_size(); ++i) {
        hash_.add(node.results(i) != 0);
        if (node.results(i) == 0)
          continue;
        define(node.results(i));
        type(node.types(i));
      }
    }
    hash_.add(graph.outputs_size());
    for (const auto &output : graph.outputs()) {
      use(output.value());
      type(output.type());
      hash_.add(output.mutates_input());
    }
    return hash_.finish();
  }

private:
  void define(uint32_t value) { numbers_.emplace(value, int64_t(numbers_.size()) + 1); }

  /// Values are hashed by the order of their definition.
  void use(uint32_t value) {
    auto found = numbers_.find(value);
    hash_.add(found == numbers_.end() ? 0 : found->second);
  }

  void type(const TensorType &type) {
    hash_.add(type.dtype()).add(type.storage_offset()).add(type.sizes_size());
    for (int64_t size : type.sizes())
      hash_.add(size);
    hash_.add(type.strides_size());
    for (int64_t stride : type.strides())
      hash_.add(stride);
  }

  void argument(const Argument &argument) {
    hash_.add(argument.kind_case());
    switch (argument.kind_case()) {
    case Argument::kNone:
    case Argument::KIND_NOT_SET:
      break;
    case Argument::kValue:
      use(argument.value());
      break;
    case Argument::kBoolean:
      hash_.add(argument.boolean());
      break;
    case Argument::kInteger:
      hash_.add(argument.integer());
      break;
    case Argument::kFloating:
      // The bits: -0.0 and 0.0 are different arguments, and a NaN equals itself.
      hash_.add(std::bit_cast<int64_t>(argument.floating()));
      break;
    case Argument::kText:
      hash_.add(argument.text());
      break;
    case Argument::kList:
      hash_.add(argument.list().items_size());
      for (const Argument &item : argument.list().items())
        this->argument(item);
      break;
    case Argument::kDtype:
      hash_.add(argument.dtype());
      break;
    case Argument::kDevice:
      hash_.add(argument.device());
      break;
    case Argument::kLayout:
      hash_.add(argument.layout());
      break;
    case Argument::kMemoryFormat:
      hash_.add(argument.memory_format());
      break;
    }
  }

  Hasher hash_;
  std::unordered_map<uint32_t, int64_t> numbers_;
};

} // namespace

Hash128 hashGraph(const GraphDef &graph) { return GraphHasher().run(graph); }

} // namespace neuroncore::graph

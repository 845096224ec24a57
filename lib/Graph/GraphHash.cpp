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

void hashArgument(Hasher &hash, const Argument &argument, const std::function<void(uint32_t)> &addValue) {
  hash.add(argument.kind_case());
  switch (argument.kind_case()) {
  case Argument::kNone:
  case Argument::KIND_NOT_SET:
    break;
  case Argument::kValue:
    addValue(argument.value());
    break;
  case Argument::kBoolean:
    hash.add(argument.boolean());
    break;
  case Argument::kInteger:
    hash.add(argument.integer());
    break;
  case Argument::kFloating:
    // The bits: -0.0 and 0.0 are different arguments, and a NaN equals itself.
    hash.add(std::bit_cast<int64_t>(argument.floating()));
    break;
  case Argument::kText:
    hash.add(argument.text());
    break;
  case Argument::kList:
    hash.add(argument.list().items_size());
    for (const Argument &item : argument.list().items())
      hashArgument(hash, item, addValue);
    break;
  case Argument::kDtype:
    hash.add(argument.dtype());
    break;
  case Argument::kDevice:
    hash.add(argument.device());
    break;
  case Argument::kLayout:
    hash.add(argument.layout());
    break;
  case Argument::kMemoryFormat:
    hash.add(argument.memory_format());
    break;
  }
}

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
        hashArgument(hash_, item, [this](uint32_t value) { use(value); });
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

  Hasher hash_;
  std::unordered_map<uint32_t, int64_t> numbers_;
};

} // namespace

Hash128 hashGraph(const GraphDef &graph) { return GraphHasher().run(graph); }

} // namespace neuroncore::graph

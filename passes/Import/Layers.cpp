// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes are hashed without their references. A distance between equal hashes that occurs often is a candidate for the
// period; the longest stretch that repeats with it is cut where the least is handed over and where references repeat
// too. Work is linear in the nodes per candidate, of which few are looked at.

#include "passes/Import/Layers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include "passes/Import/Registry.h"

using namespace mlir::neuron;
using ::neuron::graph::Argument;
using ::neuron::graph::Constant;
using ::neuron::graph::GraphDef;
using ::neuron::graph::Input;
using ::neuron::graph::Node;
using ::neuron::graph::TensorType;
using ::neuroncore::Hash128;
using ::neuroncore::Hasher;
using ::neuroncore::graph::visitValues;

namespace {

constexpr int kMinRepetitions = 3;
constexpr int kMaxLayers = 16;
/// Between runs of a layer the device is drained, and its operands are whole buffers: for the projections of queries,
/// keys and values that is not worth it.
constexpr int kMinRepetitionsOfShort = 4, kShort = 12;
constexpr size_t kMaxCandidates = 24;
/// Constants beyond this are operands of the layer, not copied into it.
constexpr size_t kMaxCopiedBytes = 4096;

/// Operators by the word between the dots, without the trailing underscore of the in-place form.
llvm::StringRef baseName(llvm::StringRef op) { return op.split('.').second.split('.').first.rtrim('_'); }

bool isProduct(const Node &node) {
  llvm::StringRef name = baseName(node.op());
  static const std::unordered_set<std::string> names = {"mm",     "addmm",  "bmm",         "baddbmm",
                                                        "linear", "matmul", "convolution", "convolution_backward"};
  return names.count(name.str()) != 0 || name.contains("attention");
}

bool isViewNode(const Node &node) {
  const Registration *found = findOverload(node.op()).registration;
  return found >= viewImporters().begin() && found < viewImporters().end() && found->name == node.op();
}

/// References an address in the storage of a value, which an operand of a call does not have.
bool seesStorage(const Node &node) { return llvm::StringRef(node.op()).contains("as_strided"); }

int64_t bytesOf(const TensorType &type) {
  int64_t bytes = ::neuroncore::graph::scalarTypeBytes(type.dtype());
  for (int64_t size : type.sizes())
    bytes *= size;
  return bytes;
}

/// What one choice of the repeated stretch means.
struct Cut {
  int first = 0, period = 0, count = 0;
  /// Values of a parameter in each repetition.
  std::vector<std::vector<uint32_t>> parameters;
  struct Output {
    int node = 0, result = 0;
    /// Number of the parameter whose memory the result replaces (a cache that is written in place), or -1.
    int replaced = -1;
  };
  /// Results of nodes in the stretch that later nodes or the caller need.
  std::vector<Output> outputs;
  /// Made anew in the layer: values shared by all repetitions, in the order of their definition.
  std::vector<uint32_t> copied;
  int64_t handedOverBytes = 0;
};

class LayerFinder {
public:
  explicit LayerFinder(const GraphDef &graph) : graph(graph) {
    for (int i = 0; i < graph.inputs_size(); ++i)
      definitions[graph.inputs(i).value()] = {Definition::Kind::Input, i, 0, &graph.inputs(i).type()};
    for (int i = 0; i < graph.constants_size(); ++i)
      definitions[graph.constants(i).value()] = {Definition::Kind::Constant, i, 0, &graph.constants(i).type()};
    for (int i = 0; i < graph.nodes_size(); ++i)
      for (int r = 0; r < graph.nodes(i).results_size(); ++r)
        if (graph.nodes(i).results(r) != 0)
          definitions[graph.nodes(i).results(r)] = {Definition::Kind::Node, i, r, &graph.nodes(i).types(r)};
    lastUse.resize(graph.nodes_size());
    firstReference.reserve(graph.nodes_size() + 1);
    for (int i = 0; i < graph.nodes_size(); ++i) {
      firstReference.push_back(references.size());
      visitValues(graph.nodes(i), [&](uint32_t value) {
        use(value, i);
        const Definition &definition = definitions.at(value);
        bool byNode = definition.kind == Definition::Kind::Node;
        references.push_back({value, byNode ? definition.index : -1, definition.result});
      });
    }
    firstReference.push_back(references.size());
    std::unordered_map<uint32_t, int> returned;
    for (const auto &output : graph.outputs())
      if (output.value() != 0) {
        use(output.value(), graph.nodes_size());
        ++returned[output.value()];
      }
    for (const auto &output : graph.outputs())
      if (output.value() != 0 && output.mutates_input() != 0)
        mutations[output.value()] =
            returned[output.value()] == 1 ? graph.inputs(output.mutates_input() - 1).value() : 0;
    hashes.reserve(graph.nodes_size());
    for (const Node &node : graph.nodes()) {
      hashes.push_back(hashOf(node));
      isProductNode.push_back(isProduct(node));
    }
  }

  std::optional<Cut> find() const {
    std::optional<Cut> best;
    int bestSaved = 0;
    for (int period : candidates()) {
      Run run = longestRun(period);
      int saved = (run.length / period) * period;
      int repetitions = period < kShort ? kMinRepetitionsOfShort : kMinRepetitions;
      if (run.length < (repetitions - 1) * period || saved <= bestSaved)
        continue;
      if (std::optional<Cut> found = cut(run.first, run.length + period, period)) {
        bestSaved = (found->count - 1) * period;
        best = std::move(found);
      }
    }
    return best;
  }

private:
  struct Definition {
    enum class Kind { Input, Constant, Node } kind = Kind::Input;
    int index = 0, result = 0;
    const TensorType *type = nullptr;
  };

  void use(uint32_t value, int user) {
    const Definition &definition = definitions.at(value);
    if (definition.kind == Definition::Kind::Input) {
      inputUsers.try_emplace(value, user, user).first->second.second = user;
    }
    if (definition.kind != Definition::Kind::Node)
      return;
    auto &uses = lastUse[definition.index];
    uses.resize(graph.nodes(definition.index).results_size(), -1);
    uses[definition.result] = std::max(uses[definition.result], user);
  }

  void addType(Hasher &hash, const TensorType &type) const {
    hash.add(type.dtype()).add(type.sizes_size());
    for (int64_t size : type.sizes())
      hash.add(size);
  }

  Hash128 hashOf(const Node &node) const {
    Hasher hash;
    hash.add(node.op()).add(node.arguments_size());
    for (const Argument &argument : node.arguments())
      ::neuroncore::graph::hashArgument(hash, argument,
                                        [&](uint32_t value) { addType(hash, *definitions.at(value).type); });
    for (int r = 0; r < node.results_size(); ++r) {
      hash.add(node.results(r) != 0);
      addType(hash, node.types(r));
      hash.add(node.types(r).strides_size());
      for (int64_t stride : node.types(r).strides())
        hash.add(stride);
    }
    return hash.finish();
  }

  /// Distances from product to equal product, the most frequent first: a layer has one, and few that are all alike.
  std::vector<int> candidates() const {
    std::map<Hash128, std::vector<int>> positions;
    for (int i = 0; i < graph.nodes_size(); ++i)
      if (isProductNode[i])
        positions[hashes[i]].push_back(i);
    std::map<int, int> votes;
    for (const auto &[hash, list] : positions)
      for (size_t i = 0; i < list.size(); ++i)
        for (size_t j = i + 1; j < std::min(list.size(), i + 9); ++j)
          ++votes[list[j] - list[i]];
    std::vector<std::pair<int, int>> ranked(votes.begin(), votes.end());
    std::stable_sort(ranked.begin(), ranked.end(), [](auto a, auto b) { return a.second > b.second; });
    std::vector<int> result;
    for (auto [distance, count] : ranked)
      if (count >= kMinRepetitions - 1 && result.size() < kMaxCandidates)
        result.push_back(distance);
    return result;
  }

  /// Nodes [first, first + length) equal those one period later.
  struct Run {
    int first = 0, length = 0;
  };

  Run longestRun(int period) const {
    Run best, current;
    for (int i = 0; i + period < graph.nodes_size(); ++i) {
      if (hashes[i] != hashes[i + period] || seesStorage(graph.nodes(i))) {
        current = {i + 1, 0};
        continue;
      }
      ++current.length;
      if (current.length > best.length)
        best = current;
    }
    return best;
  }

  /// The best cut of the nodes [first, first + length), which repeat with the period.
  std::optional<Cut> cut(int first, int length, int period) const {
    std::vector<Cut> cuts;
    // The first repetition may take its operands from elsewhere than the others do.
    for (int offset = 0; offset < 2 * period; ++offset) {
      Cut candidate{first + offset, period, (length - offset) / period, {}, {}, {}, 0};
      if (candidate.count < kMinRepetitions)
        break;
      if (addOutputs(candidate))
        cuts.push_back(std::move(candidate));
    }
    llvm::stable_sort(cuts, [](const Cut &a, const Cut &b) {
      return std::pair(a.handedOverBytes, -a.count) < std::pair(b.handedOverBytes, -b.count);
    });
    for (Cut &candidate : cuts)
      if (addParameters(candidate))
        return std::move(candidate);
    return std::nullopt;
  }

  bool isTensor(uint32_t value) const {
    const Definition &definition = definitions.at(value);
    return definition.type->dtype() != ::neuron::graph::FLOAT64 &&
           !(definition.kind == Definition::Kind::Input && graph.inputs(definition.index).kind() != Input::TENSOR);
  }

  bool isWrapped(uint32_t value) const {
    const Definition &definition = definitions.at(value);
    return definition.kind == Definition::Kind::Input && graph.inputs(definition.index).wrapped_number();
  }

  /// Strides of a buffer that holds the value: intermediate ones are row-major whatever ATen says.
  std::vector<int64_t> stridesOf(uint32_t value) const {
    const Definition &definition = definitions.at(value);
    const TensorType &type = *definition.type;
    std::vector<int64_t> strides(type.sizes_size());
    int64_t stride = 1;
    for (int d = type.sizes_size() - 1; d >= 0; --d) {
      strides[d] = stride;
      stride *= std::max<int64_t>(type.sizes(d), 1);
    }
    if (definition.kind == Definition::Kind::Input && type.strides_size() != 0)
      for (int d = 0; d < type.sizes_size(); ++d)
        if (type.sizes(d) != 1)
          strides[d] = type.strides(d);
    return strides;
  }

  /// Adds what has to be copied for `value` to be made in the layer; false when that would take more than views,
  /// sequences and small constants.
  bool copy(uint32_t value, std::vector<uint32_t> &copied, std::vector<uint32_t> &inputs, int depth = 0) const {
    if (llvm::is_contained(copied, value) || llvm::is_contained(inputs, value))
      return true;
    const Definition &definition = definitions.at(value);
    if (definition.kind == Definition::Kind::Input) {
      if (!isTensor(value))
        return false;
      inputs.push_back(value);
      return true;
    }
    if (definition.kind == Definition::Kind::Constant) {
      if (graph.constants(definition.index).data().size() > kMaxCopiedBytes) {
        inputs.push_back(value);
        return isTensor(value);
      }
      copied.push_back(value);
      return true;
    }
    const Node &node = graph.nodes(definition.index);
    bool hasOperands = false;
    visitValues(node, [&](uint32_t) { hasOperands = true; });
    if (seesStorage(node) || depth > 16 || (hasOperands && !isViewNode(node)) || node.results_size() != 1) {
      if (!isTensor(value))
        return false;
      inputs.push_back(value);
      return true;
    }
    bool possible = true;
    visitValues(node, [&](uint32_t operand) { possible = possible && copy(operand, copied, inputs, depth + 1); });
    copied.push_back(value);
    return possible;
  }

  /// Whether the repetitions refer to values in the same way, and what they take from outside.
  bool addParameters(Cut &result) const {
    auto [first, period, count] = std::tuple(result.first, result.period, result.count);
    // Positions of the references that come from outside, in the first repetition.
    llvm::SmallVector<size_t> outside;
    bool hasProduct = false;
    for (int j = 0; j < period; ++j) {
      hasProduct |= isProductNode[first + j];
      size_t begin = firstReference[first + j], end = firstReference[first + j + 1];
      for (size_t slot = 0; slot < end - begin; ++slot) {
        const Reference &reference = references[begin + slot];
        bool internal = reference.node >= first;
        for (int k = 1; k < count; ++k) {
          const Reference &other = references[firstReference[first + k * period + j] + slot];
          if ((other.node >= first + k * period) != internal)
            return false;
          if (internal && (other.node - k * period != reference.node || other.result != reference.result))
            return false;
        }
        if (!internal)
          outside.push_back(begin + slot - firstReference[first]);
      }
    }
    if (!hasProduct)
      return false;
    std::set<std::vector<uint32_t>> seen;
    for (size_t position : outside) {
      std::vector<uint32_t> values;
      for (int k = 0; k < count; ++k)
        values.push_back(references[firstReference[first + k * period] + position].value);
      if (seen.insert(values).second && !addParameter(values, result))
        return false;
    }
    if (!replaceParameters(result))
      return false;
    // The layer names its operands by those of the first repetition.
    std::unordered_set<uint32_t> names(result.copied.begin(), result.copied.end());
    for (const auto &values : result.parameters)
      if (!names.insert(values.front()).second)
        return false;
    return true;
  }

  bool addParameter(const std::vector<uint32_t> &values, Cut &result) const {
    bool shared = llvm::all_equal(values);
    if (shared) {
      std::vector<uint32_t> inputs;
      if (!copy(values.front(), result.copied, inputs))
        return false;
      for (uint32_t input : inputs) {
        std::vector<uint32_t> same(values.size(), input);
        if (!llvm::is_contained(result.parameters, same))
          result.parameters.push_back(std::move(same));
      }
      return true;
    }
    for (uint32_t value : values)
      if (!isTensor(value) || isWrapped(value) || bytesOf(*definitions.at(value).type) == 0 ||
          stridesOf(value) != stridesOf(values.front()))
        return false;
    if (!llvm::is_contained(result.parameters, values))
      result.parameters.push_back(values);
    return true;
  }

  /// Finds the parameters that results replace. Each repetition has one of its own, which nothing else reads.
  bool replaceParameters(Cut &cut) const {
    for (Cut::Output &output : cut.outputs) {
      std::vector<uint32_t> replaced = replacedBy(cut, output.node, output.result);
      if (replaced.empty())
        continue;
      auto found = llvm::find(cut.parameters, replaced);
      if (found == cut.parameters.end())
        return false;
      output.replaced = static_cast<int>(found - cut.parameters.begin());
      for (const auto &values : cut.parameters)
        if (&values != &*found && llvm::any_of(values, [&](uint32_t v) { return llvm::is_contained(replaced, v); }))
          return false;
      for (int k = 0; k < cut.count; ++k) {
        auto [first, last] = inputUsers.at(replaced[k]);
        int begin = cut.first + k * cut.period;
        if (first < begin || last >= begin + cut.period || llvm::count(replaced, replaced[k]) != 1)
          return false;
        const TensorType &type = *definitions.at(replaced[k]).type;
        if (!::neuroncore::graph::isContiguous(type))
          return false;
      }
    }
    return true;
  }

  /// The inputs that a result is the new content of, one per repetition; empty where none is or not all are.
  std::vector<uint32_t> replacedBy(const Cut &cut, int node, int result) const {
    std::vector<uint32_t> inputs;
    for (int k = 0; k < cut.count; ++k) {
      auto found = mutations.find(graph.nodes(cut.first + k * cut.period + node).results(result));
      if (found == mutations.end() || found->second == 0)
        return {};
      inputs.push_back(found->second);
    }
    return inputs;
  }

  bool addOutputs(Cut &cut) const {
    for (int j = 0; j < cut.period; ++j) {
      const Node &node = graph.nodes(cut.first + j);
      for (int r = 0; r < node.results_size(); ++r) {
        if (node.results(r) == 0)
          continue;
        bool needed = false, isNewContent = false;
        for (int k = 0; k < cut.count; ++k) {
          int index = cut.first + k * cut.period + j;
          const auto &uses = lastUse[index];
          needed |= r < static_cast<int>(uses.size()) && uses[r] >= cut.first + (k + 1) * cut.period;
          isNewContent |= mutations.count(graph.nodes(index).results(r)) != 0;
        }
        if (!needed)
          continue;
        if (isNewContent && replacedBy(cut, j, r).empty())
          return false;
        if (node.types(r).dtype() == ::neuron::graph::FLOAT64 || bytesOf(node.types(r)) == 0)
          return false;
        cut.outputs.push_back({j, r});
        if (isNewContent)
          continue;
        // Handing over what is computed is better than handing over a view of it.
        cut.handedOverBytes += bytesOf(node.types(r)) + (isViewNode(node) ? 1 : 0);
      }
    }
    return !cut.outputs.empty();
  }

  const GraphDef &graph;
  std::unordered_map<uint32_t, Definition> definitions;
  struct Reference {
    uint32_t value;
    int node; // that defines it; -1: none
    int result;
  };
  std::vector<Reference> references;  // of all nodes in order
  std::vector<size_t> firstReference; // of each node
  std::vector<char> isProductNode;
  std::vector<std::vector<int>> lastUse;            // per node and result: position of the last user
  std::unordered_map<uint32_t, uint32_t> mutations; // new content of an input: the input; 0: and something else
  std::unordered_map<uint32_t, std::pair<int, int>> inputUsers; // first and last node that reads an input
  std::vector<Hash128> hashes;

  friend class LayerBuilder;
};

/// The two graphs of a cut.
class LayerBuilder {
public:
  LayerBuilder(const GraphDef &graph, const LayerFinder &finder, const Cut &cut)
      : graph(graph), finder(finder), cut(cut) {}

  GraphDef layer(const std::string &name) {
    GraphDef result;
    result.set_version(graph.version());
    result.set_name(name);
    result.set_kind(graph.kind());
    for (const auto &values : cut.parameters) {
      uint32_t value = values.front();
      const LayerFinder::Definition &definition = finder.definitions.at(value);
      Input *input = result.add_inputs();
      input->set_value(renumber(value));
      input->set_name("operand" + std::to_string(result.inputs_size() - 1));
      input->set_wrapped_number(finder.isWrapped(value));
      *input->mutable_type() = plainType(*definition.type, finder.stridesOf(value));
    }
    // Nodes that draw do not name the generator's state. Import drops the operand of a layer in which none does.
    for (const Input &input : graph.inputs())
      if (input.kind() == Input::RNG_STATE) {
        *result.add_inputs() = input;
        result.mutable_inputs()->rbegin()->set_value(renumber(input.value()));
      }
    for (uint32_t value : cut.copied) {
      const LayerFinder::Definition &definition = finder.definitions.at(value);
      if (definition.kind == LayerFinder::Definition::Kind::Constant) {
        Constant *constant = result.add_constants();
        *constant = graph.constants(definition.index);
        constant->set_value(renumber(value));
      } else {
        addNode(result, definition.index);
      }
    }
    for (int j = 0; j < cut.period; ++j)
      addNode(result, cut.first + j);
    for (auto [j, r, replaced] : cut.outputs) {
      auto *output = result.add_outputs();
      const Node &node = graph.nodes(cut.first + j);
      output->set_value(numbers.at(node.results(r)));
      *output->mutable_type() = plainType(node.types(r), {});
      output->set_mutates_input(replaced + 1);
    }
    addLocations(result);
    return result;
  }

  GraphDef main(const std::string &op) {
    GraphDef result;
    result.set_version(graph.version());
    result.set_name(graph.name());
    result.set_kind(graph.kind());
    *result.mutable_inputs() = graph.inputs();
    *result.mutable_constants() = graph.constants();
    *result.mutable_outputs() = graph.outputs();
    origins.clear();
    for (int i = 0; i < cut.first; ++i)
      keepNode(result, i);
    for (int k = 0; k < cut.count; ++k) {
      Node *call = result.add_nodes();
      origins.push_back(cut.first + k * cut.period);
      call->set_op(op);
      call->set_name(op + ".run" + std::to_string(k));
      for (const auto &values : cut.parameters)
        call->add_arguments()->set_value(values[k]);
      for (auto [j, r, replaced] : cut.outputs) {
        const Node &node = graph.nodes(cut.first + k * cut.period + j);
        call->add_results(node.results(r));
        *call->add_types() = node.types(r);
      }
    }
    for (int i = cut.first + cut.count * cut.period; i < graph.nodes_size(); ++i)
      keepNode(result, i);
    addLocations(result);
    return result;
  }

private:
  static TensorType plainType(const TensorType &type, const std::vector<int64_t> &strides) {
    TensorType result;
    result.set_dtype(type.dtype());
    *result.mutable_sizes() = type.sizes();
    for (int64_t stride : strides)
      result.add_strides(stride);
    return result;
  }

  uint32_t renumber(uint32_t value) {
    return numbers.try_emplace(value, static_cast<uint32_t>(numbers.size() + 1)).first->second;
  }

  void renumber(Argument &argument) {
    if (argument.has_value())
      argument.set_value(numbers.at(argument.value()));
    if (argument.has_list())
      for (Argument &item : *argument.mutable_list()->mutable_items())
        renumber(item);
  }

  void keepNode(GraphDef &result, int index) {
    origins.push_back(index);
    *result.add_nodes() = graph.nodes(index);
  }

  void addNode(GraphDef &result, int index) {
    keepNode(result, index);
    Node &node = *result.mutable_nodes(result.nodes_size() - 1);
    for (Argument &argument : *node.mutable_arguments())
      renumber(argument);
    for (int r = 0; r < node.results_size(); ++r)
      if (node.results(r) != 0)
        node.set_results(r, renumber(node.results(r)));
  }

  void addLocations(GraphDef &result) {
    std::unordered_map<uint32_t, uint32_t> positions; // in the new graph, of nodes of the old one
    for (size_t i = 0; i < origins.size(); ++i)
      positions[origins[i]] = i;
    for (const auto &location : graph.locations()) {
      ::neuron::graph::NodeLocation *kept = nullptr;
      for (uint32_t node : location.nodes())
        if (auto found = positions.find(node); found != positions.end()) {
          if (!kept) {
            kept = result.add_locations();
            *kept->mutable_frames() = location.frames();
          }
          kept->add_nodes(found->second);
        }
    }
  }

  const GraphDef &graph;
  const LayerFinder &finder;
  const Cut &cut;
  std::unordered_map<uint32_t, uint32_t> numbers;
  std::vector<int> origins; // of the nodes of the graph under construction
};

} // namespace

LayeredGraph mlir::neuron::outlineLayers(const GraphDef &graph) {
  LayeredGraph result;
  for (const Node &node : graph.nodes())
    if (llvm::StringRef(node.op()).starts_with(kCallPrefix))
      return result;
  const GraphDef *current = &graph;
  while (result.layers.size() < kMaxLayers) {
    LayerFinder finder(*current);
    std::optional<Cut> cut = finder.find();
    if (!cut)
      break;
    LayerBuilder builder(*current, finder, *cut);
    std::string number = std::to_string(result.layers.size());
    result.layers.push_back(builder.layer("layer" + number));
    GraphDef main = builder.main(kCallPrefix + number);
    result.main.Swap(&main);
    current = &result.main;
  }
  return result;
}

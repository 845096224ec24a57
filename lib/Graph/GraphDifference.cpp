// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Why two graphs are different programs for the cache.

#include <algorithm>
#include <map>

#include <google/protobuf/util/message_differencer.h>

#include "neuron/Graph/GraphReader.h"
#include "neuron/Support/Text.h"

namespace neuroncore::graph {

using google::protobuf::util::MessageDifferencer;
using ::neuron::graph::Argument;
using ::neuron::graph::Constant;
using ::neuron::graph::Input;
using ::neuron::graph::Node;
using ::neuron::graph::Output;

namespace {

/// Where the values of a graph come from, as text that does not depend on how they are numbered.
class ValueNames {
public:
  explicit ValueNames(const GraphDef &graph) {
    for (int i = 0; i < graph.inputs_size(); ++i)
      names_.emplace(graph.inputs(i).value(), cat("input ", i));
    for (int i = 0; i < graph.constants_size(); ++i)
      names_.emplace(graph.constants(i).value(), cat("constant ", i));
    for (int n = 0; n < graph.nodes_size(); ++n)
      for (int r = 0; r < graph.nodes(n).results_size(); ++r)
        names_.emplace(graph.nodes(n).results(r), cat("result ", r, " of node ", n));
  }

  std::string of(uint32_t value) const {
    if (value == 0)
      return "None";
    auto found = names_.find(value);
    return found == names_.end() ? cat("unknown value ", value) : found->second;
  }

private:
  std::map<uint32_t, std::string> names_;
};

/// Without value numbers.
bool haveSameForm(const Argument &a, const Argument &b) {
  if (a.kind_case() != b.kind_case())
    return false;
  if (a.kind_case() == Argument::kValue)
    return true;
  if (a.kind_case() != Argument::kList)
    return a.SerializeAsString() == b.SerializeAsString();
  return std::equal(a.list().items().begin(), a.list().items().end(), b.list().items().begin(), b.list().items().end(),
                    haveSameForm);
}

bool haveSameTypes(const Node &a, const Node &b) {
  return std::equal(a.types().begin(), a.types().end(), b.types().begin(), b.types().end(),
                    [](const TensorType &x, const TensorType &y) { return MessageDifferencer::Equals(x, y); });
}

bool haveSameForm(const Node &a, const Node &b) {
  return a.op() == b.op() && a.results_size() == b.results_size() && haveSameTypes(a, b) &&
         std::equal(a.arguments().begin(), a.arguments().end(), b.arguments().begin(), b.arguments().end(),
                    [](const Argument &x, const Argument &y) { return haveSameForm(x, y); });
}

std::vector<uint32_t> valuesOf(const Node &node) {
  std::vector<uint32_t> values;
  visitValues(node, [&](uint32_t value) { values.push_back(value); });
  return values;
}

/// Types print in their short form, where row-major strides are left out; the hash sees whether they are given.
std::string printExactly(const TensorType &type) {
  std::string out = printType(type);
  if (type.strides_size() != 0 && isContiguous(type)) {
    out += " strides[";
    for (int i = 0; i < type.strides_size(); ++i)
      out += cat(i ? ", " : "", type.strides(i));
    out += "]";
  }
  return out;
}

std::string print(const Input &input) {
  const char *kind = input.kind() == Input::SCALAR ? "scalar " : input.kind() == Input::RNG_STATE ? "rng_state " : "";
  return cat(kind, printExactly(input.type()), input.wrapped_number() ? " wrapped_number" : "");
}

std::string print(const Output &output) {
  if (output.value() == 0)
    return "None";
  return cat(printExactly(output.type()),
             output.mutates_input() ? cat(", written to input ", output.mutates_input() - 1) : "");
}

class Comparison {
public:
  Comparison(const GraphDef &a, const GraphDef &b, std::span<const std::string> hashesOfA,
             std::span<const std::string> hashesOfB)
      : a(a), b(b), hashesOfA(hashesOfA), hashesOfB(hashesOfB), namesOfA(a), namesOfB(b) {}

  std::vector<std::string> run() {
    if (a.version() != b.version())
      add(cat("graph version: ", a.version(), " in A, ", b.version(), " in B"));
    if (a.kind() != b.kind())
      add(cat("graph kind: ", a.kind(), " in A, ", b.kind(), " in B"));
    inputs();
    constants();
    nodes();
    outputs();
    if (lines.empty())
      numbering();
    return std::move(lines);
  }

private:
  void add(std::string line) { lines.push_back(std::move(line)); }

  void compareCounts(const char *what, int countOfA, int countOfB) {
    if (countOfA != countOfB)
      add(cat(what, ": ", countOfA, " in A, ", countOfB, " in B"));
  }

  void inputs() {
    compareCounts("inputs", a.inputs_size(), b.inputs_size());
    for (int i = 0; i < std::min(a.inputs_size(), b.inputs_size()); ++i) {
      const Input &x = a.inputs(i), &y = b.inputs(i);
      if (std::string ofA = print(x), ofB = print(y); ofA != ofB)
        add(cat("input ", i, " (", x.name(), x.name() == y.name() ? "" : cat(" in A, ", y.name(), " in B"), "): ", ofA,
                " in A, ", ofB, " in B"));
    }
  }

  void constants() {
    compareCounts("constants", a.constants_size(), b.constants_size());
    for (int i = 0; i < std::min(a.constants_size(), b.constants_size()); ++i) {
      const Constant &x = a.constants(i), &y = b.constants(i);
      if (!MessageDifferencer::Equals(x.type(), y.type()))
        add(cat("constant ", i, ": ", printExactly(x.type()), " in A, ", printExactly(y.type()), " in B"));
      else if (size_t(i) < hashesOfA.size() && size_t(i) < hashesOfB.size() ? hashesOfA[i] != hashesOfB[i]
                                                                            : x.data() != y.data())
        add(cat("constant ", i, " (", printType(x.type()), "): the values differ"));
    }
  }

  /// The node with its Python line, below a difference.
  void show(const char *side, const GraphDef &graph, int node) {
    if (node >= graph.nodes_size()) {
      add(cat("  ", side, ": no more nodes"));
      return;
    }
    add(cat("  ", side, ": ", printNode(graph.nodes(node))));
    if (std::string location = printLocation(graph, node); !location.empty())
      add(cat("     ", location));
  }

  void differAt(int node, const std::string &how) {
    add(cat("node ", node, how));
    show("A", a, node);
    show("B", b, node);
  }

  /// Whether the rest of the shorter graph, from this node, is what the longer one has `more` nodes later.
  static bool isInsertion(const GraphDef &shorter, const GraphDef &longer, int node) {
    const int more = longer.nodes_size() - shorter.nodes_size();
    if (more <= 0)
      return false;
    for (int n = node; n < shorter.nodes_size(); ++n)
      if (!haveSameForm(shorter.nodes(n), longer.nodes(n + more)))
        return false;
    return true;
  }

  void nodes() {
    compareCounts("nodes", a.nodes_size(), b.nodes_size());
    const int common = std::min(a.nodes_size(), b.nodes_size());
    for (int n = 0; n < common; ++n)
      if (!haveSameForm(a.nodes(n), b.nodes(n)))
        return differAt(n, describe(n));
    if (a.nodes_size() != b.nodes_size())
      return differAt(common, insertion(common));
    // The same operators: what they read is compared where the values before them correspond.
    if (a.inputs_size() != b.inputs_size() || a.constants_size() != b.constants_size())
      return;
    for (int n = 0; n < common; ++n) {
      std::vector<uint32_t> x = valuesOf(a.nodes(n)), y = valuesOf(b.nodes(n));
      for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
        if (std::string ofA = namesOfA.of(x[i]), ofB = namesOfB.of(y[i]); ofA != ofB)
          return differAt(n, cat(" reads ", ofA, " in A, ", ofB, " in B"));
    }
  }

  std::string insertion(int node) {
    if (isInsertion(a, b, node))
      return cat(": B has ", b.nodes_size() - a.nodes_size(), " more here and then goes on as A does");
    if (isInsertion(b, a, node))
      return cat(": A has ", a.nodes_size() - b.nodes_size(), " more here and then goes on as B does");
    return " is the first that differs";
  }

  std::string describe(int n) {
    const Node &x = a.nodes(n), &y = b.nodes(n);
    if (a.nodes_size() != b.nodes_size())
      if (std::string text = insertion(n); text.starts_with(':'))
        return text;
    if (x.op() != y.op())
      return cat(": ", x.op(), " in A, ", y.op(), " in B");
    for (int i = 0; i < std::min(x.arguments_size(), y.arguments_size()); ++i)
      if (!haveSameForm(x.arguments(i), y.arguments(i)))
        return cat(" (", x.op(), "): argument ", i, " differs");
    for (int i = 0; i < std::min(x.types_size(), y.types_size()); ++i)
      if (!MessageDifferencer::Equals(x.types(i), y.types(i)))
        return cat(" (", x.op(), "): result ", i, " is ", printExactly(x.types(i)), " in A, ", printExactly(y.types(i)),
                   " in B");
    return " is the first that differs";
  }

  void outputs() {
    compareCounts("outputs", a.outputs_size(), b.outputs_size());
    for (int i = 0; i < std::min(a.outputs_size(), b.outputs_size()); ++i) {
      const Output &x = a.outputs(i), &y = b.outputs(i);
      if (std::string ofA = print(x), ofB = print(y); ofA != ofB)
        add(cat("output ", i, ": ", ofA, " in A, ", ofB, " in B"));
      else if (lines.empty() && namesOfA.of(x.value()) != namesOfB.of(y.value()))
        add(cat("output ", i, ": ", namesOfA.of(x.value()), " in A, ", namesOfB.of(y.value()), " in B"));
    }
  }

  /// What is left of a serialised graph.
  void numbering() {
    auto bare = [](GraphDef graph) {
      graph.clear_name();
      graph.clear_locations();
      for (Input &input : *graph.mutable_inputs())
        input.clear_name();
      for (Node &node : *graph.mutable_nodes())
        node.clear_name();
      for (Constant &constant : *graph.mutable_constants())
        constant.clear_data();
      return graph;
    };
    if (!MessageDifferencer::Equals(bare(a), bare(b)))
      add("the graphs compute the same, but number their values differently");
  }

  const GraphDef &a, &b;
  std::span<const std::string> hashesOfA, hashesOfB;
  ValueNames namesOfA, namesOfB;
  std::vector<std::string> lines;
};

} // namespace

std::vector<std::string> explainDifference(const GraphDef &a, const GraphDef &b, std::span<const std::string> hashesOfA,
                                           std::span<const std::string> hashesOfB) {
  return Comparison(a, b, hashesOfA, hashesOfB).run();
}

} // namespace neuroncore::graph

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading a GraphDef is a trust boundary: what readGraph returns satisfies every rule of verifyGraph, so importers may
// use its indices, sizes and value numbers without checks.

#ifndef NEURON_GRAPH_GRAPHREADER_H
#define NEURON_GRAPH_GRAPHREADER_H

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "neuron/Graph/graph_def.pb.h"
#include "neuron/Support/Error.h"
#include "neuron/Support/Hash.h"

namespace neuroncore::graph {

using ::neuron::graph::GraphDef;
using ::neuron::graph::ScalarType;
using ::neuron::graph::TensorType;

inline constexpr uint32_t kGraphVersion = 1;
inline constexpr int kMaxRank = 8;

/// Graphs that are kept for reading may be without the content of their constants.
enum class ConstantData : uint8_t { Required, MayBeLeftOut };

/// Parses and verifies.
Expected<GraphDef> readGraph(std::span<const uint8_t> bytes, ConstantData data = ConstantData::Required);

/// The rules, in the order of their checks:
///   g1  version is kGraphVersion and no message has fields this version does not know
///   g2  kind is "inference", "forward", "backward" or "eager"
///   g3  a type has a known dtype, at most kMaxRank sizes, sizes and strides >= 0, no strides or one per size, and its
///       extent in bytes fits 62 bits
///   g4  a value number is >= 1 and defined once, and used only after its definition
///   g5  a scalar input is a rank-0 f64, i64 or bool; at most one rng_state input, i64[2]; a wrapped number has rank 0
///   g6  a constant's data has the size of its type, whose strides are row-major
///   g7  types are parallel to results; a None result (number 0) has an empty type
///   g8  an operator is namespace.name.overload and every argument has a kind
///   g9  an output has the dtype and sizes of its value and mutates an input of that dtype and size at most once
///   g10 locations name nodes, each at most once
Status verifyGraph(const GraphDef &graph, ConstantData data = ConstantData::Required);

/// Identity for caches: equal for graphs that differ only in locations, names of nodes, inputs and the graph, and value
/// numbering.
Hash128 hashGraph(const GraphDef &graph);

/// Adds an argument of a node to a hash: its kind and content, in lists too; `addValue` says what a value is hashed as.
void hashArgument(Hasher &hash, const ::neuron::graph::Argument &argument,
                  const std::function<void(uint32_t)> &addValue);

/// The values that an argument or a node refers to, in lists too, in order.
template <typename Visit> void visitValues(const ::neuron::graph::Argument &argument, Visit visit) {
  if (argument.has_value())
    visit(argument.value());
  for (const ::neuron::graph::Argument &item : argument.list().items())
    visitValues(item, visit);
}
template <typename Visit> void visitValues(const ::neuron::graph::Node &node, Visit visit) {
  for (const ::neuron::graph::Argument &argument : node.arguments())
    visitValues(argument, visit);
}

/// One line per value, with the innermost Python line of each node where it is known.
std::string printGraph(const GraphDef &graph);
/// For example "%5 = aten.add.Tensor(%4, 1.0, 1) : f32[4, 1] // add".
std::string printNode(const ::neuron::graph::Node &node);
/// For example "model.py:12 in forward: return x + w"; empty where it is not known.
std::string printLocation(const GraphDef &graph, int node);

/// Why two graphs are different programs for the cache: lines for people, the first of each difference starting at the
/// margin; none when they are equal. Names and locations are not compared. Inputs, constants and outputs are compared
/// one by one, nodes up to the first that differs: what follows is mostly its consequence. Constants may be without
/// their content, which is compared by `hashes` (one per constant) when both graphs have them.
std::vector<std::string> explainDifference(const GraphDef &a, const GraphDef &b,
                                           std::span<const std::string> hashesOfA = {},
                                           std::span<const std::string> hashesOfB = {});

/// For example "bf16"; "invalid" for unknown codes.
std::string_view scalarTypeName(ScalarType type);
/// 0 for unknown codes.
int scalarTypeBytes(ScalarType type);
/// For example "f32[2, 3]", with strides when they are not row-major.
std::string printType(const TensorType &type);
bool isContiguous(const TensorType &type);

} // namespace neuroncore::graph

#endif // NEURON_GRAPH_GRAPHREADER_H

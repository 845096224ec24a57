// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layers of a graph: stretches of nodes that repeat with other operands become a graph of their own, which is imported,
// compiled and stored once. It is done before import, so that nothing after it grows with the number of layers.

#ifndef PASSES_IMPORT_LAYERS_H
#define PASSES_IMPORT_LAYERS_H

#include <string>
#include <vector>

#include "neuron/Graph/GraphReader.h"

namespace mlir::neuron {

/// Operator of the nodes that stand for a run of `layers[i]`: this and i. No ATen operator has it.
inline constexpr const char *kCallPrefix = "neuron.call.layer";

struct LayeredGraph {
  /// The given graph with a call node for each run of a layer. Not set where nothing repeats.
  ::neuron::graph::GraphDef main;
  std::vector<::neuron::graph::GraphDef> layers;
};

/// A layer is at least three repetitions of a stretch that contains a product, a convolution or an attention.
/// Repetitions have equal operators, attributes and types; what differs is where values come from, and those become
/// inputs of the layer. A stretch begins where the fewest bytes are handed over. Views and sequences that all
/// repetitions share are made anew in the layer.
LayeredGraph outlineLayers(const ::neuron::graph::GraphDef &graph);

} // namespace mlir::neuron

#endif // PASSES_IMPORT_LAYERS_H

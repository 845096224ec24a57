// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Masks that a graph computes from index numbers, as functions of row and column.

#ifndef PASSES_GRAPH_MASKANALYSIS_H
#define PASSES_GRAPH_MASKANALYSIS_H

#include <optional>

#include "dialects/Neuron/NeuronOps.h"

namespace mlir::neuron {

/// column - row <= bound ? inside : outside. A bool is 0 or 1.
struct Step {
  int64_t bound = 0;
  double inside = 0, outside = 0;
  bool isConstant() const { return inside == outside; }
};

/// `value` as a function of its last two dimensions (row, column); nullopt when it is no step, or not known to be one.
std::optional<Step> findStep(Value value);

} // namespace mlir::neuron

#endif // PASSES_GRAPH_MASKANALYSIS_H

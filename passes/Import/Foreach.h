// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef PASSES_IMPORT_FOREACH_H
#define PASSES_IMPORT_FOREACH_H

#include <string>
#include <vector>

#include "neuron/Graph/GraphReader.h"

namespace mlir::neuron {

/// The nodes, one per result, that an operator on lists of tensors stands for; empty for every other operator.
std::vector<::neuron::graph::Node> expandForeach(const ::neuron::graph::Node &node);

/// "aten._foreach_add.List" and the overload of one tensor, "aten.add.Tensor".
struct ForeachOverload {
  std::string name, base;
};
std::vector<ForeachOverload> foreachOverloads();

} // namespace mlir::neuron

#endif // PASSES_IMPORT_FOREACH_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TOOLS_NEURON_TRANSLATE_EVALUATE_H
#define TOOLS_NEURON_TRANSLATE_EVALUATE_H

#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"

#include "neuron/Graph/GraphReader.h"
#include "neuron/Support/Error.h"

/// Evaluates the module's function on .npy files and writes output0.npy, output1.npy, ... into `outputDirectory`. With
/// a graph, there is one file per input of the graph (run-time scalars too); without, one per argument of the function.
neuroncore::Status evaluateOnFiles(mlir::ModuleOp module, const neuroncore::graph::GraphDef *graph,
                                   const std::vector<std::string> &inputs, const std::string &outputDirectory);

#endif // TOOLS_NEURON_TRANSLATE_EVALUATE_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Why two programs have different keys in the NEFF cache of torch_neuronx.

#ifndef TOOLS_NEURON_COMPILE_EXPLAINCACHE_H
#define TOOLS_NEURON_COMPILE_EXPLAINCACHE_H

#include <string>

namespace neuroncore::compiler {

/// Prints the differences, field by field. `a` and `b` each name a GraphDef, a NEFF or folder with its key.json, or a
/// key of the cache in `directory` (empty: as torch_neuronx finds it). Returns what the process exits with, as diff
/// does: 0 when the keys are equal, 1 when they differ, 2 when they cannot be compared.
int explainCache(const std::string &a, const std::string &b, const std::string &directory);

} // namespace neuroncore::compiler

#endif // TOOLS_NEURON_COMPILE_EXPLAINCACHE_H

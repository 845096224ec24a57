// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes as a GraphDef: an error, or a graph that verifies, hashes and prints.

#include <cstdlib>

#include "neuron/Graph/GraphReader.h"

using namespace neuroncore::graph;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  neuroncore::Expected<GraphDef> graph = readGraph({data, size});
  if (!graph)
    return 0;
  if (!verifyGraph(*graph) || printGraph(*graph).empty() || hashGraph(*graph) != hashGraph(*graph))
    std::abort();
  return 0;
}

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs a graph in the double's JSON form (torch_neuronx_double.py writes it) with PyTorch's CPU kernels.

#ifndef NEURON_TEST_PYTHON_DOUBLE_INTERPRETER_H
#define NEURON_TEST_PYTHON_DOUBLE_INTERPRETER_H

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

namespace neuron_double {

struct Variable {
  std::string name;
  /// "tensor", "parameters" or "rng_state".
  std::string role;
  at::ScalarType dtype = at::ScalarType::Float;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int alias = -1;
  uint64_t bytes = 0;
};

class Graph {
public:
  explicit Graph(const std::string &text);
  std::string name;
  std::vector<Variable> inputs;
  std::vector<Variable> outputs;
  int64_t rngIncrement = 0;
  /// Sum of the elements of all results, for a made-up execution time.
  int64_t work = 0;

  void run(const std::vector<void *> &inputPointers, const std::vector<void *> &outputPointers) const;

private:
  nlohmann::json graph_;
};

} // namespace neuron_double

#endif // NEURON_TEST_PYTHON_DOUBLE_INTERPRETER_H

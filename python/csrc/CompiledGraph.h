// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The launch of a compiled region: arguments in, one enqueue, results out. Outputs are allocated here, so that a region
// shows in a profile without allocation rows.

#ifndef NEURON_PYTHON_CSRC_COMPILEDGRAPH_H
#define NEURON_PYTHON_CSRC_COMPILEDGRAPH_H

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "Program.h"

namespace neuroncore::device {

/// What one graph input expects of the argument it is bound to.
struct GraphInputSpec {
  /// Position among the call's arguments.
  int argument = 0;
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  /// The argument lives on the CPU: it is copied to the device before and, if it is written, back afterwards.
  bool onHost = false;
  bool written = false;
};

/// Where one result of the call comes from.
struct GraphResultSpec {
  enum class Kind : uint8_t {
    None,
    Argument, // the argument itself
    Integer,
    Tensor,       // a fresh tensor, written by the program
    View,         // of a fresh tensor, as the sizes, strides and offset say
    ArgumentView, // of an argument; the offset counts from where the argument begins
  };
  Kind kind = Kind::None;
  /// Argument: position; Integer: value; Tensor and View: position among the program's outputs; ArgumentView: position
  /// among the graph's inputs.
  int64_t index = 0;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t offset = 0;
};

/// One output of the program.
struct GraphOutputSpec {
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  /// Position among the graph's inputs of the tensor it overwrites, or -1: a fresh tensor.
  int mutatesInput = -1;
  /// The caller expects it on the CPU.
  bool onHost = false;
};

struct CompiledGraphDescription {
  /// Null: the graph has no tensor to compute (all results are arguments, integers or None, or have no elements).
  std::shared_ptr<Program> program;
  int device = 0;
  size_t arguments = 0;
  std::vector<GraphInputSpec> inputs;
  std::vector<GraphOutputSpec> outputs;
  std::vector<GraphResultSpec> results;
  size_t correlationDepth = 0;
  /// Numbers that every call passes to the program.
  size_t parameters = 0;
};

class CompiledGraph {
public:
  explicit CompiledGraph(CompiledGraphDescription description) : description_(std::move(description)) {}

  const CompiledGraphDescription &description() const { return description_; }

  struct Result {
    GraphResultSpec::Kind kind;
    int64_t index;
    at::Tensor tensor;
  };
  /// `arguments[i]` is undefined where the argument is not a tensor.
  std::vector<Result> run(const std::vector<at::Tensor> &arguments, const std::vector<double> &parameters);

private:
  at::Tensor onDevice(const at::Tensor &argument, const GraphInputSpec &spec, size_t index) const;
  CompiledGraphDescription description_;
};

} // namespace neuroncore::device

#endif // NEURON_PYTHON_CSRC_COMPILEDGRAPH_H

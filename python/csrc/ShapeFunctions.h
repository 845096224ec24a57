// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The shape functions of frequent operators, called directly. The dispatcher's Meta kernels of these operators are
// Python, and the first call of one imports torch._dynamo: seconds before the first result of eager mode.

#ifndef NEURON_PYTHON_CSRC_SHAPEFUNCTIONS_H
#define NEURON_PYTHON_CSRC_SHAPEFUNCTIONS_H

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace neuroncore::device {

struct ShapeFunction {
  c10::KernelFunction kernel;
  /// The result has the broadcast shape of the tensors, and in place all that can go wrong besides is its dtype.
  bool isElementwise = false;
  /// To be used for tensors of floating-point numbers only.
  bool floatsOnly = false;
};

/// Of the functional overload `name` ("aten.mul.Tensor"); null: call the operator on meta tensors.
const ShapeFunction *shapeFunctionOf(const std::string &name);

} // namespace neuroncore::device

#endif // NEURON_PYTHON_CSRC_SHAPEFUNCTIONS_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Evaluates a function of whole-tensor neuron operations on host arrays: what the operations mean, as plainly as it can
// be written. It is the oracle that importers and passes are tested against; no device result ever comes from it.

#ifndef LIB_REFERENCE_EVALUATOR_H
#define LIB_REFERENCE_EVALUATOR_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "lib/Reference/HostTensor.h"

namespace mlir::neuron::reference {

/// Arguments and results have the function's types. Strides, offsets and roles of arguments are how the device finds
/// the values; here each argument is given as its values.
neuroncore::Expected<std::vector<HostTensor>> evaluate(func::FuncOp function, std::vector<HostTensor> arguments);

} // namespace mlir::neuron::reference

#endif // LIB_REFERENCE_EVALUATOR_H

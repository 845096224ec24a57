// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef DIALECTS_NEURON_NEURONOPS_H
#define DIALECTS_NEURON_NEURONOPS_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Neuron/NeuronDialect.h"

#define GET_OP_CLASSES
#include "dialects/Neuron/NeuronOps.h.inc"

namespace mlir::neuron {

/// unary, binary, compare, select, cast.
bool isElementwise(Operation *op);
/// reshape, transpose, broadcast, slice, as_strided.
bool isView(Operation *op);
/// The value every element has, as a float, when `value` is a constant splat of float or exactly convertible integer
/// type.
std::optional<double> getSplatConstant(Value value);

} // namespace mlir::neuron

#endif // DIALECTS_NEURON_NEURONOPS_H

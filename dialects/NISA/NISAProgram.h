// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A function of nisa operations as the plain structured program that synchronisation and projection work on.

#ifndef DIALECTS_NISA_NISAPROGRAM_H
#define DIALECTS_NISA_NISAPROGRAM_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "dialects/NISA/NISADialect.h"
#include "neuron/Schedule/StructuredProgram.h"

namespace mlir::nisa {

struct ProgramView {
  ::neuroncore::schedule::StructuredProgram program;
  /// Position = the tag of an instruction.
  SmallVector<Operation *> instructions;
  /// Position = var_id: a function argument or the result of memref.alloc. Arguments of one name share a variable.
  SmallVector<Value> variables;
};

/// Requires that all buffers have addresses; reports the operation that breaks it.
FailureOr<ProgramView> buildProgram(func::FuncOp function);

} // namespace mlir::nisa

#endif // DIALECTS_NISA_NISAPROGRAM_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A function of nisa operations and those it calls as the plain structured programs that synchronisation and projection
// work on.

#ifndef DIALECTS_NISA_NISAPROGRAM_H
#define DIALECTS_NISA_NISAPROGRAM_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include "dialects/NISA/NISADialect.h"
#include "neuron/Schedule/Linking.h"
#include "neuron/Schedule/StructuredProgram.h"

namespace mlir::nisa {

/// A function in pieces: what stands between calls is a unit that runs once, a called function one that runs for each
/// of its calls.
struct ProgramView {
  SmallVector<::neuroncore::schedule::StructuredProgram> units;
  SmallVector<::neuroncore::schedule::Step> steps;
  /// Variables that the parameters of a called function stand for in each run of the program; empty for other runs.
  struct Run {
    int32_t firstParameter = 0;
    SmallVector<uint32_t> variables;
  };
  SmallVector<Run> runs;
  /// Parameters of all functions, one after the other.
  SmallVector<int64_t> parameterBytes;
  /// Position = the tag of an instruction.
  SmallVector<Operation *> instructions;
  /// Position = var_id: an argument of the function or the result of memref.alloc. Arguments of one name share a
  /// variable.
  SmallVector<Value> variables;
};

/// Requires that all buffers have addresses; reports the operation that breaks it.
FailureOr<ProgramView> buildProgram(func::FuncOp function);

/// Functions of the module that no other one calls: each is a program.
SmallVector<func::FuncOp> findPrograms(ModuleOp module);

} // namespace mlir::nisa

#endif // DIALECTS_NISA_NISAPROGRAM_H

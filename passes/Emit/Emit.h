// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef PASSES_EMIT_EMIT_H
#define PASSES_EMIT_EMIT_H

#include <string>

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "neuron/Neff/Neff.h"

namespace mlir::neuron {

struct EmitOptions {
  std::string target = "trn2";
  std::string name = "graph";
  std::string compilerVersion;
  /// Position of a GraphDef node by its name, for provenance; may be empty.
  llvm::StringMap<uint32_t> nodePositions;
};

/// Projects a scheduled function, and those it calls, onto five streams and collects what a NEFF holds. Requires the
/// contract of the schedule phase; errors are reported through the function's diagnostics.
FailureOr<::neuroncore::neff::Neff> emitProgram(func::FuncOp function, const EmitOptions &options);

} // namespace mlir::neuron

#endif // PASSES_EMIT_EMIT_H

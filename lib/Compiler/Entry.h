// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// IR that comes from a file: where it enters the compilation, and whether it may.

#ifndef LIB_COMPILER_ENTRY_H
#define LIB_COMPILER_ENTRY_H

#include <optional>
#include <string>
#include <string_view>

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include "passes/Pipelines/Phases.h"

namespace neuroncore::compiler {

/// The phase IR enters and the target it is compiled for.
struct Entry {
  std::optional<::mlir::neuron::Phase> phase;
  std::string target;
};

/// The parser recurses into brackets and affine expressions: text that is nested deeper than any program would exhaust
/// its stack. Returns the message if `text` is such.
std::optional<std::string> findDeepNesting(std::string_view text);

/// Fills in what was not requested from what the phases recorded in the module (neuron.phase, neuron.target), else
/// graph and trn2. A request that contradicts the record is an error.
::mlir::LogicalResult findEntry(::mlir::ModuleOp module, Entry &entry);

/// Checks the form of the module and the contract of the phase before. `reproducer`: file for the IR and the checks if
/// a contract is broken, or empty.
::mlir::LogicalResult verifyEntry(::mlir::ModuleOp module, const Entry &entry, const std::string &reproducer);

/// Position of each node of the graph by its name; of equal names the first.
llvm::StringMap<uint32_t> nodePositions(::mlir::ModuleOp module);

} // namespace neuroncore::compiler

#endif // LIB_COMPILER_ENTRY_H

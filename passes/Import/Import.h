// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a GraphDef to the neuron dialect. See README.md for the form of the function.

#ifndef PASSES_IMPORT_IMPORT_H
#define PASSES_IMPORT_IMPORT_H

#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace neuron::graph {
class GraphDef;
} // namespace neuron::graph

namespace mlir::neuron {

namespace attribute {
/// On a module: names of the graph's nodes in their order, by which locations refer to them.
inline constexpr llvm::StringLiteral kNodes = "neuron.nodes";
} // namespace attribute

/// Imports a graph that readGraph or verifyGraph accepted. Every node that cannot be imported is reported through the
/// context's diagnostics, with the user's Python frames as notes, before this fails.
FailureOr<OwningOpRef<ModuleOp>> importGraph(const ::neuron::graph::GraphDef &graph, MLIRContext *context);

/// One ATen overload the importer knows.
struct OverloadInfo {
  /// For example "aten.add.Tensor".
  std::string name;
  /// One letter per schema argument, see Registry.h.
  std::string signature;
  /// For an in-place, out= or copying variant: the overload whose meaning it has. Else empty.
  std::string variantOf;
  /// Source file of the importer, without its extension: the section of docs/OpSupport.md.
  std::string subject;
  /// Positions of Scalar arguments that must be known when the graph is built, because shapes or the choice of
  /// operations depend on them. All other Scalar arguments may be bound at run time.
  std::vector<unsigned> structuralScalars;
};

/// Sorted by name.
std::vector<OverloadInfo> supportedOverloads();

} // namespace mlir::neuron

#endif // PASSES_IMPORT_IMPORT_H

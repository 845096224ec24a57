// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// State of one import: the function under construction and what each value number stands for.

#ifndef PASSES_IMPORT_GRAPHIMPORTER_H
#define PASSES_IMPORT_GRAPHIMPORTER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/DenseMap.h"

#include "passes/Import/NodeImporter.h"
#include "passes/Import/Registry.h"

namespace mlir::neuron {

class GraphImporter {
public:
  GraphImporter(const ::neuron::graph::GraphDef &graph, MLIRContext *context);
  /// Appends the graph to the module as a function of this name. Call nodes name functions that are there already.
  LogicalResult run(ModuleOp module, StringRef name);

  //===-- For NodeImporter
  //-----------------------------------------------------------------------------------------===//

  /// A tensor or number by its value number; a null operand for values whose node failed.
  Operand operandOf(uint32_t value) const { return operands.lookup(value); }
  const ::neuron::graph::TensorType &typeOf(uint32_t value) const { return *types.find(value)->second; }
  void define(uint32_t value, Operand operand) { operands[value] = operand; }
  /// Rank-0 f32 or i64 read of the parameter block.
  Value parameter(unsigned index, bool asFloat, Location loc);
  /// The (seed, offset) argument, and the next increment of the offset; a null value when the graph has no such input.
  Value nextRandomState(int64_t &increment);

  /// The (seed, offset) for a call that takes so many increments.
  Value advancedRandomState(int64_t increments, Location loc);
  std::optional<NodeImporter::Storage> storageOf(uint32_t value, NodeImporter &emit);
  void error(const ::neuron::graph::Node &node, Location loc, const Twine &message);

  /// Null for dtypes the dialect does not have.
  Type elementType(::neuron::graph::ScalarType type);

private:
  Location locationOf(int node);
  LogicalResult importArguments(StringRef name, SmallVectorImpl<DictionaryAttr> &attributes);
  void importConstants();
  void importNode(int index);
  void importNode(const ::neuron::graph::Node &node, Location loc);
  void importCall(const ::neuron::graph::Node &node, Location loc);
  bool isSupported(const ::neuron::graph::Node &node);
  std::string checkArguments(const Lookup &overload, const ::neuron::graph::Node &node);
  LogicalResult importOutputs();
  void emitFrames(InFlightDiagnostic &diagnostic, int node);
  DictionaryAttr argumentAttributes(StringRef name, StringRef role, ArrayRef<int64_t> strides, int64_t offset);

  const ::neuron::graph::GraphDef &graph;
  MLIRContext *context;
  OpBuilder builder;
  ModuleOp module;
  func::FuncOp function;
  bool failed = false;
  int currentNode = -1;
  int lastFailedNode = -1;

  llvm::DenseMap<uint32_t, Operand> operands;
  llvm::DenseMap<uint32_t, const ::neuron::graph::TensorType *> types;
  /// The value whose storage a view's result lies in.
  llvm::DenseMap<uint32_t, uint32_t> storageBase;
  llvm::DenseMap<int, const ::neuron::graph::NodeLocation *> locations;
  llvm::DenseMap<int, unsigned> argumentOfInput;
  Value parametersF32, parametersI64, rngState;
  int64_t randomIncrements = 0;
};

/// Strides in elements, row-major when the type records none.
SmallVector<int64_t> stridesOf(const ::neuron::graph::TensorType &type);

} // namespace mlir::neuron

#endif // PASSES_IMPORT_GRAPHIMPORTER_H

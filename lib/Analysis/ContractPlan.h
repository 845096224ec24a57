// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a matrix product is blocked: rows and columns of one block of the result, which lives in PSUM while the products
// of all k are added, and how much of k is on chip at once.

#ifndef LIB_ANALYSIS_CONTRACTPLAN_H
#define LIB_ANALYSIS_CONTRACTPLAN_H

#include "dialects/Neuron/NeuronOps.h"
#include "lib/Analysis/TilePlan.h"

namespace mlir::neuron {

struct ContractProblem {
  StridedLayout lhs; // [batch, m, k]
  StridedLayout rhs; // [batch, k, n]
  int64_t elementBytes = 0, resultBytes = 0;
  bool isF32 = false;
  /// Per partition: what the operations on a block of the result need for each of its columns.
  int64_t epilogueBytesPerColumn = 0;
  /// Rows of the result are reduced, so a block has all columns.
  bool wholeRows = false;

  int64_t batch() const { return lhs.sizes[0]; }
  int64_t rows() const { return lhs.sizes[1]; }
  int64_t columns() const { return rhs.sizes[2]; }
  int64_t depth() const { return lhs.sizes[2]; }
};

/// How an operand gets k onto the partitions.
enum class OperandOrder : uint8_t {
  /// k is not the innermost dimension in memory: a plain load.
  Plain,
  /// The DMA engines transpose.
  DmaTranspose,
  /// Loaded as it lies in memory and transposed by the tensor engine.
  TensorEngineTranspose,
};

struct ContractPlan {
  OperandOrder lhs = OperandOrder::Plain, rhs = OperandOrder::Plain;
  /// Rows (tiles of 128, the last may be smaller), columns and depth of a block; depth is a multiple of 128 or all of
  /// k.
  int64_t rows = 0, columns = 0, depth = 0;
  /// Estimates from the machine model (ns; used to compare plans only).
  double tensorNs = 0, dmaNs = 0;
  double costNs() const { return std::max(tensorNs, dmaNs) + 0.2 * std::min(tensorNs, dmaNs); }
};

/// Finds a plan for all sizes above 0, but for whole rows that do not fit on chip.
std::optional<ContractPlan> planContract(const ContractProblem &problem,
                                         const ::neuroncore::target::MachineModel &model);

/// A kernel of one product and the operations on its result: elementwise ones and reductions of its rows.
struct ContractKernelPlan {
  ContractPlan blocks;
  /// What is computed from the product, and the dimensions of that space which are the product's (-1: size 1).
  TilePlan epilogue;
  int batchDim = -1, rowDim = -1, columnDim = -1;
  double costNs = 0;
};

/// The product among `ops`, or null.
ContractOp findContract(ArrayRef<Operation *> ops);

/// Fails, with the reason in `why`, when the other operations cannot be computed block by block from the product.
std::optional<ContractKernelPlan> planContractKernel(ArrayRef<Operation *> ops, ArrayRef<Value> stored,
                                                     IterationSpace::LayoutFn layoutOf,
                                                     const ::neuroncore::target::MachineModel &model,
                                                     std::string *why = nullptr);

} // namespace mlir::neuron

#endif // LIB_ANALYSIS_CONTRACTPLAN_H

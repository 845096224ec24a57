// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The search for a plan: candidates (TilePlan.cpp) and what they cost (TilePlanCost.cpp).

#ifndef LIB_ANALYSIS_TILEPLANNER_H
#define LIB_ANALYSIS_TILEPLANNER_H

#include "lib/Analysis/TilePlan.h"

namespace mlir::neuron {

inline DimMask dimBit(unsigned dim) { return DimMask(1) << dim; }

/// A float sum, which the tensor engine computes across partitions.
bool isTensorSum(Operation *op);

/// Which reductions a value is computed from.
class Dependences {
public:
  explicit Dependences(const IterationSpace &space) {
    for (Operation *op : space.ops()) {
      llvm::DenseSet<Operation *> set;
      for (Value operand : op->getOperands()) {
        auto it = sets.find(viewSource(operand).getDefiningOp());
        if (it != sets.end())
          set.insert(it->second.begin(), it->second.end());
      }
      if (space.reduced.contains(op) && !isa<ScanOp>(op))
        set.insert(op);
      sets[op] = std::move(set);
    }
  }
  const llvm::DenseSet<Operation *> &of(Operation *op) const { return sets.find(op)->second; }

private:
  llvm::DenseMap<Operation *, llvm::DenseSet<Operation *>> sets;
};

class TilePlanner {
public:
  /// `takesFirst`: any plan will do.
  TilePlanner(const IterationSpace &space, const ::neuroncore::target::MachineModel &model, bool takesFirst = false)
      : base(space), model(model), takesFirst(takesFirst), dependences(space) {}

  std::optional<TilePlan> run(std::string *why);

private:
  void classifyReductions();
  void classifyReads();
  SmallVector<int> innermostDims() const;
  void consider(int partition, int inner, bool split);
  std::optional<double> tryExtent(int partition, int inner, bool split, std::optional<int64_t> extent);
  bool isFeasible(TilePlan &plan, bool choosesTiles);
  void widen(const TilePlan &start, const TilePlan &completed, bool isComplete);
  std::pair<int64_t, int64_t> tileRange(const TilePlan &plan, int d) const;
  void orderFree(TilePlan &plan) const;
  bool complete(TilePlan &plan);
  bool orderLoops(TilePlan &plan);
  bool storesAreDistinct(const TilePlan &plan);
  bool placeOps(TilePlan &plan);
  int64_t tileElements(const TilePlan &plan, DimMask mask) const;
  void estimate(TilePlan &plan);
  int64_t liveBytes(const TilePlan &plan) const;
  int64_t partitionsOf(const TilePlan &plan, const HbmAccess &access) const;
  int64_t enginesFor(int64_t partitions) const;
  double descriptorsNs(int64_t partitions, double runsPerPartition, double runBytes) const;
  double accessNs(const TilePlan &plan, const HbmAccess &access, bool &strided) const;
  int64_t spanElements(const TilePlan &plan, const HbmAccess &access, DimMask span) const;
  double spanNs(const TilePlan &plan, const HbmAccess &access, DimMask span) const;
  DimMask chooseSpan(const TilePlan &plan, const HbmAccess &access) const;
  int64_t visits(const TilePlan &plan, DimMask mask) const;

  const IterationSpace &base;
  const ::neuroncore::target::MachineModel &model;
  const bool takesFirst;
  Dependences dependences;
  llvm::DenseSet<Operation *> resident;
  DimMask residentDims = 0;         // must lie entirely on the free axis
  SmallVector<bool> isFirstOfClass; // of the reads: nobody before reads the same elements
  std::optional<TilePlan> best;
  std::string reason = "no dimension fits on chip";
};

} // namespace mlir::neuron

#endif // LIB_ANALYSIS_TILEPLANNER_H

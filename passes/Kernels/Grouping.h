// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decides which operations of a function share a kernel.

#ifndef PASSES_KERNELS_GROUPING_H
#define PASSES_KERNELS_GROUPING_H

#include "lib/Analysis/ContractPlan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::neuron {

/// Operations whose value is made anew in each kernel that needs it.
bool isRematerialized(Operation *op);

/// Layout of a buffer in HBM: as the attributes of arguments and results say, else contiguous.
StridedLayout bufferLayout(Value buffer);

class Grouping {
public:
  /// `casts`: conversions that go wherever their only users are.
  Grouping(func::FuncOp function, const ::neuroncore::target::MachineModel &model, llvm::DenseSet<Operation *> casts,
           unsigned maxOps, bool explain);
  void run();

  struct Group {
    SmallVector<Operation *> ops; // program order; without the rematerialized sources
    double costNs = 0;
    bool alive = true;
    /// Groups that it needs directly, as they were numbered when they were noted; see livingGroup.
    SmallVector<unsigned> producers = {};
    /// What a dead group has become part of.
    unsigned mergedInto = 0;
  };
  /// Living groups, producers before consumers.
  SmallVector<const Group *> ordered() const;
  /// Results of the group that somebody outside needs, in program order.
  SmallVector<Value> storedValues(ArrayRef<Operation *> ops) const;
  /// The group's operations with the sources they need, in program order.
  SmallVector<Operation *> withSources(ArrayRef<Operation *> ops) const;
  ArrayRef<std::string> report() const { return reportLines; }

private:
  bool canFuse(Operation *op) const;
  /// Made in each kernel that needs it.
  bool isSource(Operation *op) const { return isRematerialized(op) || casts.contains(op); }
  /// What an operand is computed from, or a view of, beside what its kernel makes itself.
  Value producedValue(Value operand) const;
  void place(Operation *op);
  bool tryMerge(ArrayRef<unsigned> groups, Operation *op);
  bool makesCycle(ArrayRef<unsigned> groups, Operation *op) const;
  bool mustJoin(Operation *op, unsigned group) const;
  SmallVector<Operation *> followers(unsigned group, size_t start, size_t limit) const;
  void extend(unsigned group, size_t start);
  void mergeSiblings();
  void absorb(ArrayRef<unsigned> groups, Operation *op, SmallVector<Operation *> ops, double costNs);
  std::optional<double> costOf(ArrayRef<Operation *> ops, std::string *why) const;
  SmallVector<unsigned> producerGroups(Operation *op) const;
  unsigned livingGroup(unsigned group) const;
  void note(Operation *op, const Twine &text);

  func::FuncOp function;
  const ::neuroncore::target::MachineModel &model;
  llvm::DenseSet<Operation *> casts;
  unsigned maxOps;
  bool explain;
  SmallVector<Operation *> work; // what is to be placed, in program order
  llvm::DenseMap<Operation *, unsigned> position;
  llvm::DenseMap<Operation *, unsigned> groupOf;
  SmallVector<Group> groups;
  std::vector<std::string> reportLines;
};

} // namespace mlir::neuron

#endif // PASSES_KERNELS_GROUPING_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The iteration space of a set of operations. Dimensions of values that always move together are one: an elementwise
// operation identifies its operands' dimensions with its result's, a transpose or reshape passes them on, a reduction
// ends them. What remains are atoms: indivisible dimensions, each with a size. A reshape that merges or splits
// dimensions splits atoms until both sides agree. The kernels phase asks whether operations can share a space at all;
// the tile phase turns atoms into partitions, free dimensions and loops.

#ifndef LIB_ANALYSIS_KERNELDOMAIN_H
#define LIB_ANALYSIS_KERNELDOMAIN_H

#include "llvm/ADT/DenseMap.h"

#include "dialects/Neuron/NeuronViews.h"

namespace mlir::neuron {

using Atom = int32_t;
/// For each dimension of a value the atoms whose product it is, outermost first; empty for size 1.
using Axes = SmallVector<SmallVector<Atom, 2>, 4>;

class KernelDomain {
public:
  /// How a buffer that is read lies in memory.
  using LayoutFn = llvm::function_ref<StridedLayout(Value buffer)>;

  /// Builds the space of `ops` (in program order). Operands defined outside of `ops` (through any chain of views) are
  /// reads of buffers: each use has dimensions of its own. Fails, with the reason in `why`, when no common space
  /// exists.
  static std::optional<KernelDomain> build(ArrayRef<Operation *> ops, LayoutFn layoutOf, std::string *why = nullptr);

  /// Size of an atom.
  int64_t size(Atom atom) const { return nodes[atom].size; }
  /// All atoms of the space (size > 1), in order of first appearance.
  ArrayRef<Atom> getAtoms() const { return atoms; }
  /// Dimensions of the result of an operation of the set.
  const Axes &getAxes(Value value) const { return resultAxes.find(value)->second; }
  /// Dimensions of an operand, after its views.
  const Axes &getAxes(OpOperand &operand) const { return operandAxes.find(&operand)->second; }
  /// True when the operand is (a view of) a value defined outside of the set.
  bool isRead(OpOperand &operand) const { return reads.contains(&operand); }
  /// Where the resolvable part of a read's view chain ends; its dimensions are getReadAxes.
  Value getReadBase(OpOperand &operand) const { return reads.find(&operand)->second.base; }
  const Axes &getReadAxes(OpOperand &operand) const { return reads.find(&operand)->second.axes; }
  /// Atoms that a reduction of the set ends.
  ArrayRef<Atom> getReducedAtoms(Operation *reduce) const { return reduced.find(reduce)->second; }
  /// Atoms of a value's dimensions, flattened.
  static SmallVector<Atom> flatten(const Axes &axes);

private:
  struct Node {
    int64_t size = 1;
    Atom parent = -1;            // merged into
    Atom outer = -1, inner = -1; // split into
  };
  struct Read {
    Value base;
    Axes axes;
    StridedLayout layout; // of base in its source, if that is contiguous
  };

  Atom find(Atom atom) const;
  void expand(Atom atom, SmallVectorImpl<Atom> &leaves) const;
  SmallVector<Atom, 2> expand(ArrayRef<Atom> list) const;
  Atom create(int64_t size);
  bool unify(ArrayRef<Atom> lhs, ArrayRef<Atom> rhs);
  Axes freshAxes(ArrayRef<int64_t> shape);
  /// Passes dimensions through reshape, transpose or broadcast.
  std::optional<Axes> applyView(Operation *view, const Axes &operand);
  std::optional<Axes> axesOfOperand(OpOperand &operand, const llvm::SmallPtrSetImpl<Operation *> &members,
                                    LayoutFn layoutOf);
  bool addOp(Operation *op, const llvm::SmallPtrSetImpl<Operation *> &members, LayoutFn layoutOf, std::string *why);
  /// Lets reads of the same elements walk the same dimensions.
  bool joinReads(ArrayRef<Operation *> ops);
  bool finalize(ArrayRef<Operation *> ops, std::string *why);
  static std::optional<KernelDomain> buildWith(ArrayRef<Operation *> ops, LayoutFn layoutOf, bool join,
                                               std::string *why);

  SmallVector<Node> nodes;
  SmallVector<Atom> atoms;
  llvm::DenseMap<Value, Axes> resultAxes;
  llvm::DenseMap<OpOperand *, Axes> operandAxes;
  llvm::DenseMap<OpOperand *, Read> reads;
  llvm::DenseMap<Operation *, SmallVector<Atom>> reduced;
};

/// True for the views that a value can pass inside a kernel without being stored: reshape, transpose, broadcast.
bool isTransparentView(Operation *op);

} // namespace mlir::neuron

#endif // LIB_ANALYSIS_KERNELDOMAIN_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Analysis/KernelDomain.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace mlir::neuron;

bool mlir::neuron::isTransparentView(Operation *op) { return isa<ReshapeOp, TransposeOp, BroadcastOp>(op); }

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

static void explain(std::string *why, const Twine &text) {
  if (why)
    *why = text.str();
}

//===--------------------------------------------------------------------------------------------------------------===//
// Atoms
//===--------------------------------------------------------------------------------------------------------------===//

Atom KernelDomain::create(int64_t size) {
  nodes.push_back({size});
  return static_cast<Atom>(nodes.size()) - 1;
}

Atom KernelDomain::find(Atom atom) const {
  while (nodes[atom].parent >= 0)
    atom = nodes[atom].parent;
  return atom;
}

void KernelDomain::expand(Atom atom, SmallVectorImpl<Atom> &leaves) const {
  atom = find(atom);
  if (nodes[atom].outer >= 0) {
    expand(nodes[atom].outer, leaves);
    expand(nodes[atom].inner, leaves);
  } else if (nodes[atom].size != 1) {
    leaves.push_back(atom);
  }
}

SmallVector<Atom, 2> KernelDomain::expand(ArrayRef<Atom> list) const {
  SmallVector<Atom, 2> leaves;
  for (Atom atom : list)
    expand(atom, leaves);
  return leaves;
}

/// Makes both lists name the same atoms: equal sizes merge, unequal ones split from the inside.
bool KernelDomain::unify(ArrayRef<Atom> lhs, ArrayRef<Atom> rhs) {
  SmallVector<Atom, 2> left = expand(lhs), right = expand(rhs);
  while (!left.empty() && !right.empty()) {
    Atom a = left.pop_back_val(), b = right.pop_back_val();
    if (a == b)
      continue;
    int64_t sizeA = nodes[a].size, sizeB = nodes[b].size;
    if (sizeA == sizeB) {
      nodes[b].parent = a;
      // The remaining lists may name b.
      left = expand(left);
      right = expand(right);
      continue;
    }
    bool splitLeft = sizeA > sizeB;
    Atom large = splitLeft ? a : b;
    int64_t small = splitLeft ? sizeB : sizeA;
    if (small == 0 || nodes[large].size % small != 0)
      return false;
    Atom outer = create(nodes[large].size / small), inner = create(small);
    nodes[large].outer = outer;
    nodes[large].inner = inner;
    left.push_back(a);
    right.push_back(b);
    left = expand(left);
    right = expand(right);
  }
  return left.empty() && right.empty();
}

Axes KernelDomain::freshAxes(ArrayRef<int64_t> shape) {
  Axes axes;
  for (int64_t size : shape) {
    axes.emplace_back();
    if (size != 1)
      axes.back().push_back(create(size));
  }
  return axes;
}

SmallVector<Atom> KernelDomain::flatten(const Axes &axes) {
  SmallVector<Atom> list;
  for (const auto &axis : axes)
    llvm::append_range(list, axis);
  return list;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Operations
//===--------------------------------------------------------------------------------------------------------------===//

std::optional<Axes> KernelDomain::applyView(Operation *view, const Axes &operand) {
  if (auto transpose = dyn_cast<TransposeOp>(view)) {
    Axes axes;
    for (int64_t d : transpose.getPermutation())
      axes.push_back(operand[d]);
    return axes;
  }
  if (isa<BroadcastOp>(view)) {
    // The repeated dimensions are new ones; the operand does not depend on them.
    Axes axes = operand;
    for (auto [d, size] : llvm::enumerate(shapeOf(view->getResult(0))))
      if (size != shapeOf(view->getOperand(0))[d])
        axes[d] = {create(size)};
    return axes;
  }
  auto reshape = cast<ReshapeOp>(view);
  ArrayRef<int64_t> shape = shapeOf(reshape.getResult());
  Axes axes = freshAxes(shape);
  if (!unify(flatten(operand), flatten(axes)))
    return std::nullopt;
  return axes;
}

std::optional<Axes> KernelDomain::axesOfOperand(OpOperand &operand, const llvm::SmallPtrSetImpl<Operation *> &members,
                                                LayoutFn layoutOf) {
  // Views between the operand and its producer, outermost (latest) first.
  SmallVector<Operation *> chain;
  Value value = operand.get();
  while (Operation *definition = value.getDefiningOp()) {
    if (!isView(definition))
      break;
    chain.push_back(definition);
    value = definition->getOperand(0);
  }
  Axes axes;
  size_t remaining = chain.size();
  Operation *producer = value.getDefiningOp();
  if (producer && members.contains(producer)) {
    axes = resultAxes.find(value)->second;
  } else {
    // A read: strides absorb the views up to the first reshape that they cannot express.
    StridedLayout layout = layoutOf(value);
    while (remaining > 0) {
      std::optional<StridedLayout> next = neuron::applyView(chain[remaining - 1], layout);
      if (!next)
        break;
      layout = std::move(*next);
      value = chain[--remaining]->getResult(0);
    }
    axes = freshAxes(shapeOf(value));
    reads[&operand] = {value, axes, layout};
  }
  while (remaining > 0) {
    Operation *view = chain[--remaining];
    if (!isTransparentView(view))
      return std::nullopt;
    std::optional<Axes> next = applyView(view, axes);
    if (!next)
      return std::nullopt;
    axes = std::move(*next);
  }
  return axes;
}

bool KernelDomain::addOp(Operation *op, const llvm::SmallPtrSetImpl<Operation *> &members, LayoutFn layoutOf,
                         std::string *why) {
  for (OpOperand &operand : op->getOpOperands()) {
    std::optional<Axes> axes = axesOfOperand(operand, members, layoutOf);
    if (!axes) {
      explain(why, "a view between the operations needs the value in memory");
      return false;
    }
    operandAxes[&operand] = std::move(*axes);
  }
  if (op->getNumResults() != 1)
    return true;
  Value result = op->getResult(0);
  ArrayRef<int64_t> shape = shapeOf(result);
  if (isElementwise(op)) {
    Axes axes = freshAxes(shape);
    for (OpOperand &operand : op->getOpOperands())
      for (auto [d, size] : llvm::enumerate(shapeOf(operand.get())))
        if (size == shape[d] && !unify(axes[d], operandAxes[&operand][d])) {
          explain(why, "dimensions of " + Twine(size) + " elements divide differently");
          return false;
        }
    resultAxes[result] = std::move(axes);
    return true;
  }
  if (isa<ReduceOp, ArgReduceOp>(op)) {
    Axes axes = operandAxes[&op->getOpOperand(0)];
    auto dims = isa<ReduceOp>(op) ? cast<ReduceOp>(op).getDims() : cast<ArgReduceOp>(op).getDims();
    SmallVector<Atom> ended;
    for (int64_t d : dims) {
      llvm::append_range(ended, axes[d]);
      axes[d].clear();
    }
    reduced[op] = std::move(ended);
    resultAxes[result] = std::move(axes);
    return true;
  }
  if (isa<ScanOp>(op)) {
    resultAxes[result] = operandAxes[&op->getOpOperand(0)];
    return true;
  }
  if (isa<InsertOp>(op)) {
    // Source and destination have dimensions of their own.
    resultAxes[result] = operandAxes[&op->getOpOperand(1)];
    return true;
  }
  // Sources (constant, iota, random), concat and contract: dimensions of their own.
  resultAxes[result] = freshAxes(shape);
  return true;
}

bool KernelDomain::finalize(ArrayRef<Operation *> ops, std::string *why) {
  auto resolve = [&](Axes &axes) {
    for (auto &axis : axes)
      axis = expand(axis);
    // A value that has one atom twice would be read along a diagonal.
    SmallVector<Atom> all = flatten(axes);
    llvm::SmallDenseSet<Atom> unique(all.begin(), all.end());
    return unique.size() == all.size();
  };
  bool distinct = true;
  for (auto &entry : resultAxes)
    distinct &= resolve(entry.second);
  for (auto &entry : operandAxes)
    distinct &= resolve(entry.second);
  for (auto &entry : reads)
    distinct &= resolve(entry.second.axes);
  if (!distinct) {
    explain(why, "one value is needed along two directions at once");
    return false;
  }
  llvm::SetVector<Atom> order;
  for (auto &entry : reduced) {
    SmallVector<Atom, 2> leaves = expand(entry.second);
    entry.second.assign(leaves.begin(), leaves.end());
  }
  for (Operation *op : ops) {
    // The state of a random number generator is whole wherever it is needed; nothing iterates over it.
    if (!isa<RandomOp>(op))
      for (OpOperand &operand : op->getOpOperands())
        for (Atom atom : flatten(operandAxes[&operand]))
          order.insert(atom);
    for (Value result : op->getResults())
      for (Atom atom : flatten(resultAxes[result]))
        order.insert(atom);
  }
  atoms.assign(order.begin(), order.end());
  return true;
}

bool KernelDomain::joinReads(ArrayRef<Operation *> ops) {
  SmallVector<const Read *> seen;
  for (Operation *op : ops)
    for (OpOperand &operand : op->getOpOperands()) {
      auto it = reads.find(&operand);
      if (it == reads.end())
        continue;
      const Read &read = it->second;
      bool joined = false;
      for (const Read *other : seen) {
        if (viewSource(other->base) != viewSource(read.base) || other->layout.offset != read.layout.offset ||
            other->layout.sizes != read.layout.sizes || other->layout.strides != read.layout.strides)
          continue;
        for (auto [a, b] : llvm::zip(other->axes, read.axes))
          if (!unify(a, b))
            return false;
        joined = true;
        break;
      }
      if (!joined)
        seen.push_back(&read);
    }
  return true;
}

std::optional<KernelDomain> KernelDomain::buildWith(ArrayRef<Operation *> ops, LayoutFn layoutOf, bool join,
                                                    std::string *why) {
  KernelDomain domain;
  llvm::SmallPtrSet<Operation *, 16> members(ops.begin(), ops.end());
  for (Operation *op : ops)
    if (!domain.addOp(op, members, layoutOf, why))
      return std::nullopt;
  if (join && !domain.joinReads(ops))
    return std::nullopt;
  if (!domain.finalize(ops, why))
    return std::nullopt;
  return domain;
}

std::optional<KernelDomain> KernelDomain::build(ArrayRef<Operation *> ops, LayoutFn layoutOf, std::string *why) {
  // Two reads of a buffer need not walk it in step, but when they can, one load serves both.
  if (std::optional<KernelDomain> joined = buildWith(ops, layoutOf, true, why))
    return joined;
  return buildWith(ops, layoutOf, false, why);
}

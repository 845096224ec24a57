// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Kernels/SeparateCasts.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

#include "lib/Analysis/TilePlan.h"
#include "passes/Kernels/Grouping.h"

using namespace mlir;
using namespace mlir::neuron;

namespace {

bool mayWiden(Operation *op) { return isElementwise(op) || isa<ReduceOp, ArgReduceOp, ScanOp>(op); }

/// The operands that are a value, or a view of it, of operations that may widen it themselves.
void collectUses(Value value, SmallVectorImpl<OpOperand *> &uses) {
  for (OpOperand &use : value.getUses()) {
    if (isView(use.getOwner()))
      collectUses(use.getOwner()->getResult(0), uses);
    else if (mayWiden(use.getOwner()))
      uses.push_back(&use);
  }
}

/// Erases `value` and the views that lead from `source` to it, as far as nobody uses them.
void eraseUnused(Value value, Value source) {
  while (value && value != source && value.use_empty()) {
    Operation *definition = value.getDefiningOp();
    value = definition->getOperand(0);
    definition->erase();
  }
}

/// `value`, a view of the result of `conversion`, as the same view of its operand; null where strides cannot express
/// that.
Value narrowView(OpBuilder &builder, Value value, CastOp conversion) {
  SmallVector<Operation *> chain;
  for (; value != conversion.getResult(); value = chain.back()->getOperand(0))
    chain.push_back(value.getDefiningOp());
  Value current = conversion.getOperand();
  Type element = cast<RankedTensorType>(current.getType()).getElementType();
  for (Operation *view : llvm::reverse(chain)) {
    IRMapping mapping;
    mapping.map(view->getOperand(0), current);
    current = builder.clone(*view, mapping)->getResult(0);
    current.setType(cast<RankedTensorType>(current.getType()).clone(element));
  }
  if (layoutInSource(current, bufferLayout(viewSource(current))))
    return current;
  eraseUnused(current, conversion.getOperand());
  return {};
}

/// Whether an operation and what its kernel makes for it have a common iteration space.
bool hasSpace(Operation *op, const llvm::DenseSet<Operation *> &separate) {
  SmallVector<Operation *> ops;
  for (Value operand : op->getOperands())
    if (Operation *source = viewSource(operand).getDefiningOp();
        source && (isRematerialized(source) || separate.contains(source)) && !llvm::is_contained(ops, source))
      ops.push_back(source);
  ops.push_back(op);
  return IterationSpace::build(ops, SmallVector<Value>(op->getResults()), bufferLayout).has_value();
}

} // namespace

llvm::DenseSet<Operation *> mlir::neuron::separateCasts(func::FuncOp function) {
  llvm::DenseSet<Operation *> separate;
  for (CastOp conversion : llvm::to_vector(function.getOps<CastOp>())) {
    if (!isWideningCast(conversion))
      continue;
    SmallVector<OpOperand *> uses;
    collectUses(conversion.getResult(), uses);
    // One for all operands of an operation that are the same value.
    llvm::MapVector<std::pair<Operation *, Value>, SmallVector<OpOperand *>> users;
    for (OpOperand *use : uses)
      users[{use->getOwner(), use->get()}].push_back(use);
    for (auto &[user, operands] : users) {
      auto [op, value] = user;
      OpBuilder builder(op);
      Value narrow = narrowView(builder, value, conversion);
      if (!narrow)
        continue;
      Value wide = CastOp::create(builder, conversion.getLoc(), value.getType(), narrow);
      separate.insert(wide.getDefiningOp());
      for (OpOperand *operand : operands)
        operand->set(wide);
      if (hasSpace(op, separate)) {
        eraseUnused(value, conversion.getResult());
        continue;
      }
      for (OpOperand *operand : operands)
        operand->set(value);
      separate.erase(wide.getDefiningOp());
      eraseUnused(wide, conversion.getOperand());
    }
    if (conversion->use_empty())
      conversion->erase();
  }
  return separate;
}

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Analysis/IterationSpace.h"

using namespace mlir;
using namespace mlir::neuron;

namespace {

/// Coefficient of each dimension in a function that is linear in the indices of `axes` with the given strides.
SmallVector<int64_t> linearize(const KernelDomain &domain, const llvm::DenseMap<Atom, unsigned> &dimOf, size_t numDims,
                               const Axes &axes, ArrayRef<int64_t> strides) {
  SmallVector<int64_t> coefficients(numDims, 0);
  for (auto [axis, stride] : llvm::zip(axes, strides)) {
    int64_t inner = 1;
    for (Atom atom : llvm::reverse(axis)) {
      coefficients[dimOf.lookup(atom)] += stride * inner;
      inner *= domain.size(atom);
    }
  }
  return coefficients;
}

} // namespace

int64_t IterationSpace::elements(DimMask mask) const {
  int64_t product = 1;
  for (auto [d, size] : llvm::enumerate(sizes))
    if (mask >> d & 1)
      product *= size;
  return product;
}

const HbmAccess *IterationSpace::findRead(OpOperand &operand) const {
  auto it = readIndex.find(&operand);
  return it == readIndex.end() ? nullptr : &reads[it->second];
}

DimMask IterationSpace::maskOf(OpOperand &operand) const {
  if (const HbmAccess *read = findRead(operand)) {
    DimMask mask = 0;
    for (auto [d, stride] : llvm::enumerate(read->strides))
      if (stride != 0)
        mask |= DimMask(1) << d;
    return mask;
  }
  return values.lookup(viewSource(operand.get()));
}

std::optional<IterationSpace> IterationSpace::build(ArrayRef<Operation *> ops, ArrayRef<Value> stored,
                                                    LayoutFn layoutOf, std::string *why) {
  std::optional<KernelDomain> domain = KernelDomain::build(ops, layoutOf, why);
  if (!domain)
    return std::nullopt;
  if (domain->getAtoms().size() > 60) {
    if (why)
      *why = "more than 60 independent dimensions";
    return std::nullopt;
  }
  IterationSpace space;
  space.members.assign(ops.begin(), ops.end());
  llvm::DenseMap<Atom, unsigned> dimOf;
  for (Atom atom : domain->getAtoms()) {
    dimOf[atom] = space.sizes.size();
    space.sizes.push_back(domain->size(atom));
  }
  size_t numDims = space.sizes.size();
  auto maskOfAtoms = [&](ArrayRef<Atom> list) {
    DimMask mask = 0;
    for (Atom atom : list)
      mask |= DimMask(1) << dimOf.lookup(atom);
    return mask;
  };
  for (Operation *op : ops) {
    for (OpOperand &operand : op->getOpOperands()) {
      if (!domain->isRead(operand))
        continue;
      HbmAccess access;
      access.read = &operand;
      Value base = domain->getReadBase(operand);
      access.buffer = viewSource(base);
      access.elementBytes = elementBytes(cast<RankedTensorType>(base.getType()).getElementType());
      std::optional<StridedLayout> layout = layoutInSource(base, layoutOf(access.buffer));
      if (!layout) {
        if (why)
          *why = "a reshape of a strided buffer needs a copy";
        return std::nullopt;
      }
      access.offset = layout->offset;
      access.strides = isa<RandomOp>(op)
                           ? SmallVector<int64_t>(numDims, 0)
                           : linearize(*domain, dimOf, numDims, domain->getReadAxes(operand), layout->strides);
      space.readIndex[&operand] = space.reads.size();
      space.reads.push_back(std::move(access));
    }
    if (op->getNumResults() == 1) {
      Value result = op->getResult(0);
      const Axes &axes = domain->getAxes(result);
      space.values[result] = maskOfAtoms(KernelDomain::flatten(axes));
      if (auto iota = dyn_cast<IotaOp>(op))
        space.indices[op] = {static_cast<int64_t>(iota.getOffset()),
                             linearize(*domain, dimOf, numDims, axes, iota.getSteps())};
      if (auto random = dyn_cast<RandomOp>(op))
        space.indices[op] = {static_cast<int64_t>(random.getIndexOffset()),
                             linearize(*domain, dimOf, numDims, axes, random.getIndexSteps())};
    }
    if (auto argReduce = dyn_cast<ArgReduceOp>(op)) {
      // The row-major number of an element within the reduced dimensions.
      ArrayRef<int64_t> shape = cast<RankedTensorType>(argReduce.getOperand().getType()).getShape();
      SmallVector<int64_t> strides(shape.size(), 0);
      int64_t stride = 1;
      for (int64_t d : llvm::reverse(argReduce.getDims())) {
        strides[d] = stride;
        stride *= shape[d];
      }
      space.indices[op] = {0, linearize(*domain, dimOf, numDims, domain->getAxes(op->getOpOperand(0)), strides)};
    }
    if (isa<ReduceOp, ArgReduceOp>(op))
      space.reduced[op] = maskOfAtoms(domain->getReducedAtoms(op));
    if (auto scan = dyn_cast<ScanOp>(op))
      space.reduced[op] = maskOfAtoms(domain->getAxes(scan.getResult())[scan.getDim()]);
  }
  for (Value value : stored) {
    HbmAccess access;
    access.written = value;
    access.buffer = value;
    access.elementBytes = elementBytes(cast<RankedTensorType>(value.getType()).getElementType());
    StridedLayout layout = layoutOf(value);
    access.offset = layout.offset;
    access.strides = linearize(*domain, dimOf, numDims, domain->getAxes(value), layout.strides);
    space.writes.push_back(std::move(access));
  }
  return space;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Merging and splitting
//===--------------------------------------------------------------------------------------------------------------===//

bool IterationSpace::canMerge(unsigned outer, unsigned inner) const {
  auto linear = [&](ArrayRef<int64_t> strides) { return strides[outer] == strides[inner] * sizes[inner]; };
  for (const HbmAccess &access : reads)
    if (!linear(access.strides))
      return false;
  for (const HbmAccess &access : writes)
    if (!linear(access.strides))
      return false;
  for (const auto &entry : indices)
    if (!linear(entry.second.coefficients))
      return false;
  auto together = [&](DimMask mask) { return (mask >> outer & 1) == (mask >> inner & 1); };
  for (const auto &entry : values)
    if (!together(entry.second))
      return false;
  for (const auto &entry : reduced)
    if (!together(entry.second))
      return false;
  return true;
}

void IterationSpace::eraseDim(unsigned dim) {
  sizes.erase(sizes.begin() + dim);
  for (HbmAccess &access : reads)
    access.strides.erase(access.strides.begin() + dim);
  for (HbmAccess &access : writes)
    access.strides.erase(access.strides.begin() + dim);
  for (auto &entry : indices)
    entry.second.coefficients.erase(entry.second.coefficients.begin() + dim);
  DimMask low = (DimMask(1) << dim) - 1;
  auto drop = [&](DimMask &mask) { mask = (mask & low) | (mask >> 1 & ~low); };
  for (auto &entry : values)
    drop(entry.second);
  for (auto &entry : reduced)
    drop(entry.second);
}

void IterationSpace::merge(unsigned outer, unsigned inner) {
  sizes[inner] *= sizes[outer];
  eraseDim(outer);
}

void IterationSpace::mergeDims(llvm::function_ref<bool(unsigned outer, unsigned inner)> allowed) {
  bool changed = true;
  while (changed) {
    changed = false;
    for (unsigned outer = 0; outer < sizes.size() && !changed; ++outer)
      for (unsigned inner = 0; inner < sizes.size() && !changed; ++inner)
        if (outer != inner && (!allowed || allowed(outer, inner)) && canMerge(outer, inner)) {
          merge(outer, inner);
          changed = true;
        }
  }
}

unsigned IterationSpace::splitDim(unsigned dim, int64_t inner) {
  unsigned added = sizes.size();
  sizes.push_back(inner);
  sizes[dim] /= inner;
  auto split = [&](SmallVectorImpl<int64_t> &strides) {
    strides.push_back(strides[dim]);
    strides[dim] *= inner;
  };
  for (HbmAccess &access : reads)
    split(access.strides);
  for (HbmAccess &access : writes)
    split(access.strides);
  for (auto &entry : indices)
    split(entry.second.coefficients);
  auto extend = [&](DimMask &mask) { mask |= (mask >> dim & 1) << added; };
  for (auto &entry : values)
    extend(entry.second);
  for (auto &entry : reduced)
    extend(entry.second);
  return added;
}

unsigned IterationSpace::addUnitDim() {
  sizes.push_back(1);
  for (HbmAccess &access : reads)
    access.strides.push_back(0);
  for (HbmAccess &access : writes)
    access.strides.push_back(0);
  for (auto &entry : indices)
    entry.second.coefficients.push_back(0);
  return sizes.size() - 1;
}

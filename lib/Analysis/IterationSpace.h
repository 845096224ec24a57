// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The iteration space of a kernel in the form that tiling works on: a list of dimensions, and for each read, write,
// value and index function how it depends on them. Dimensions start as the atoms of the KernelDomain; neighbours that
// every access walks as one are merged, and one dimension may be split to be used on partitions and along the free
// axis.

#ifndef LIB_ANALYSIS_ITERATIONSPACE_H
#define LIB_ANALYSIS_ITERATIONSPACE_H

#include "lib/Analysis/KernelDomain.h"

namespace mlir::neuron {

/// Set of dimensions.
using DimMask = uint64_t;

struct HbmAccess {
  OpOperand *read = nullptr; // a read, or
  Value written;             // the stored value
  /// The buffer's value: for a read the source of its view chain.
  Value buffer;
  int64_t elementBytes = 0;
  int64_t offset = 0;           // elements
  SmallVector<int64_t> strides; // elements, one per dimension; 0: does not depend on it
};

/// offset + sum of index_d * coefficients[d]: iota and random numbers.
struct IndexFunction {
  int64_t offset = 0;
  SmallVector<int64_t> coefficients;
};

class IterationSpace {
public:
  /// Layout of a buffer, when it is not contiguous.
  using LayoutFn = llvm::function_ref<StridedLayout(Value buffer)>;

  /// `stored`: results of `ops` that are kept. Fails when there are more than 64 atoms.
  static std::optional<IterationSpace> build(ArrayRef<Operation *> ops, ArrayRef<Value> stored, LayoutFn layoutOf,
                                             std::string *why = nullptr);

  size_t numDims() const { return sizes.size(); }
  /// Number of elements over the dimensions of a mask.
  int64_t elements(DimMask mask) const;
  /// The dimensions a value depends on.
  DimMask maskOf(Value value) const { return values.lookup(value); }
  /// What a read or the producer of an operand depends on.
  DimMask maskOf(OpOperand &operand) const;
  const HbmAccess *findRead(OpOperand &operand) const;

  /// `allowed`: which pairs of an outer and an inner dimension may become one; all, without it.
  void mergeDims(llvm::function_ref<bool(unsigned outer, unsigned inner)> allowed = nullptr);
  /// Splits a dimension into (size / inner, inner); the dimension becomes the outer one, the new last one is the inner.
  /// The remainder of the division is not covered; the caller handles it as a separate box. Returns the inner's number.
  unsigned splitDim(unsigned dim, int64_t inner);

  /// Adds a dimension of one element that nothing depends on.
  unsigned addUnitDim();

  ArrayRef<Operation *> ops() const { return members; }

  SmallVector<int64_t> sizes;
  SmallVector<HbmAccess> reads, writes;
  llvm::DenseMap<Value, DimMask> values;
  llvm::DenseMap<Operation *, DimMask> reduced;
  llvm::DenseMap<Operation *, IndexFunction> indices;

private:
  bool canMerge(unsigned outer, unsigned inner) const;
  void merge(unsigned outer, unsigned inner);
  void eraseDim(unsigned dim);

  SmallVector<Operation *> members;
  llvm::DenseMap<OpOperand *, unsigned> readIndex;
};

} // namespace mlir::neuron

#endif // LIB_ANALYSIS_ITERATIONSPACE_H

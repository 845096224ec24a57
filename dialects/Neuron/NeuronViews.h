// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Views as address arithmetic: how a chain of view operations addresses the buffer it starts from.

#ifndef DIALECTS_NEURON_NEURONVIEWS_H
#define DIALECTS_NEURON_NEURONVIEWS_H

#include <optional>

#include "dialects/Neuron/NeuronOps.h"

namespace mlir::neuron {

/// Element (i0, i1, ...) lies `offset + sum of i_k * strides[k]` elements from the start of the buffer.
struct StridedLayout {
  int64_t offset = 0;
  SmallVector<int64_t> sizes;
  SmallVector<int64_t> strides;

  static StridedLayout contiguous(ArrayRef<int64_t> sizes);
  bool isContiguous() const;
  int64_t numElements() const;
};

/// Row-major strides of a shape.
SmallVector<int64_t> contiguousStrides(ArrayRef<int64_t> sizes);

/// Strides of `shape` over the same elements as (sizes, strides) in row-major order, when strides can express it.
std::optional<SmallVector<int64_t>> reshapeStrides(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides,
                                                   ArrayRef<int64_t> shape);

/// The layout of a view's result in its operand's buffer; nullopt when a reshape needs a copy.
std::optional<StridedLayout> applyView(Operation *view, const StridedLayout &operand);

/// The first value of a view chain that is not itself the result of a view.
Value viewSource(Value value);

/// The layout of `value` in the buffer of viewSource(value), which has layout `source`; nullopt when some reshape in
/// between needs a copy.
std::optional<StridedLayout> layoutInSource(Value value, const StridedLayout &source);

/// The layout that viewSource(value) has to have for `value` to have layout `wanted`; nullopt where a view leaves
/// elements out, repeats them, or merges what `wanted` separates.
std::optional<StridedLayout> sourceLayoutFor(Value value, StridedLayout wanted);

} // namespace mlir::neuron

#endif // DIALECTS_NEURON_NEURONVIEWS_H

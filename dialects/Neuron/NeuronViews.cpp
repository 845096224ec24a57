// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/Neuron/NeuronViews.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::neuron;

SmallVector<int64_t> mlir::neuron::contiguousStrides(ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= std::max<int64_t>(sizes[d], 1);
  }
  return strides;
}

StridedLayout StridedLayout::contiguous(ArrayRef<int64_t> sizes) {
  return {0, SmallVector<int64_t>(sizes), contiguousStrides(sizes)};
}

int64_t StridedLayout::numElements() const {
  int64_t elements = 1;
  for (int64_t size : sizes)
    elements *= size;
  return elements;
}

bool StridedLayout::isContiguous() const {
  int64_t expected = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] != 1 && strides[d] != expected)
      return numElements() == 0;
    expected *= sizes[d];
  }
  return true;
}

std::optional<SmallVector<int64_t>> mlir::neuron::reshapeStrides(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides,
                                                                 ArrayRef<int64_t> shape) {
  SmallVector<int64_t> result(shape.size(), 1);
  if (llvm::is_contained(shape, 0))
    return contiguousStrides(shape);
  // Walk both shapes from the innermost dimension; a chunk is a maximal run of old dimensions that one stride covers.
  int64_t next = static_cast<int64_t>(shape.size()) - 1;
  int64_t oldDim = static_cast<int64_t>(sizes.size()) - 1;
  while (oldDim >= 0) {
    while (oldDim >= 0 && sizes[oldDim] == 1)
      --oldDim;
    if (oldDim < 0)
      break;
    int64_t base = strides[oldDim], elements = sizes[oldDim];
    int64_t outer = oldDim - 1;
    auto extend = [&] {
      while (outer >= 0 && sizes[outer] == 1)
        --outer;
      if (outer < 0 || strides[outer] != base * elements)
        return false;
      elements *= sizes[outer--];
      return true;
    };
    while (extend()) {
    }
    oldDim = outer;
    int64_t covered = 1;
    while (next >= 0 && (covered < elements || shape[next] == 1)) {
      if (shape[next] != 1) {
        result[next] = base * covered;
        covered *= shape[next];
      } else {
        result[next] = base * covered;
      }
      --next;
    }
    if (covered != elements)
      return std::nullopt;
  }
  // Only size-1 dimensions are left; any stride does.
  if (next >= 0) {
    for (int64_t d = next; d >= 0; --d) {
      if (shape[d] != 1)
        return std::nullopt;
      result[d] = d + 1 < static_cast<int64_t>(shape.size()) ? result[d + 1] * shape[d + 1] : 1;
    }
  }
  return result;
}

std::optional<StridedLayout> mlir::neuron::applyView(Operation *view, const StridedLayout &operand) {
  StridedLayout result;
  result.offset = operand.offset;
  auto shape = cast<RankedTensorType>(view->getResult(0).getType()).getShape();
  result.sizes.assign(shape.begin(), shape.end());
  if (auto transpose = dyn_cast<TransposeOp>(view)) {
    for (int64_t d : transpose.getPermutation())
      result.strides.push_back(operand.strides[d]);
    return result;
  }
  if (isa<BroadcastOp>(view)) {
    for (auto [d, size] : llvm::enumerate(shape))
      result.strides.push_back(size != operand.sizes[d] ? 0 : operand.strides[d]);
    return result;
  }
  if (auto slice = dyn_cast<SliceOp>(view)) {
    for (size_t d = 0; d < shape.size(); ++d) {
      result.offset += slice.getStarts()[d] * operand.strides[d];
      result.strides.push_back(slice.getSteps()[d] * operand.strides[d]);
    }
    return result;
  }
  if (auto reshape = dyn_cast<ReshapeOp>(view)) {
    std::optional<SmallVector<int64_t>> strides = reshapeStrides(operand.sizes, operand.strides, shape);
    if (!strides)
      return std::nullopt;
    result.strides = std::move(*strides);
    return result;
  }
  auto strided = cast<AsStridedOp>(view);
  // as_strided addresses its operand as if contiguous.
  if (!operand.isContiguous())
    return std::nullopt;
  result.offset += strided.getOffset();
  result.strides.assign(strided.getStrides().begin(), strided.getStrides().end());
  return result;
}

Value mlir::neuron::viewSource(Value value) {
  while (Operation *definition = value.getDefiningOp()) {
    if (!isView(definition))
      break;
    value = definition->getOperand(0);
  }
  return value;
}

std::optional<StridedLayout> mlir::neuron::layoutInSource(Value value, const StridedLayout &source) {
  SmallVector<Operation *> chain;
  while (Operation *definition = value.getDefiningOp()) {
    if (!isView(definition))
      break;
    chain.push_back(definition);
    value = definition->getOperand(0);
  }
  StridedLayout layout = source;
  for (Operation *view : llvm::reverse(chain)) {
    std::optional<StridedLayout> next = applyView(view, layout);
    if (!next)
      return std::nullopt;
    layout = std::move(*next);
  }
  return layout;
}

std::optional<StridedLayout> mlir::neuron::sourceLayoutFor(Value value, StridedLayout wanted) {
  for (Value source = viewSource(value); value != source; value = value.getDefiningOp()->getOperand(0)) {
    Operation *view = value.getDefiningOp();
    ArrayRef<int64_t> shape = cast<RankedTensorType>(view->getOperand(0).getType()).getShape();
    StridedLayout layout{wanted.offset, SmallVector<int64_t>(shape), SmallVector<int64_t>(shape.size())};
    if (auto transpose = dyn_cast<TransposeOp>(view)) {
      for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
        layout.strides[from] = wanted.strides[to];
    } else {
      auto strides = isa<ReshapeOp>(view) ? reshapeStrides(wanted.sizes, wanted.strides, shape) : std::nullopt;
      if (!strides)
        return std::nullopt;
      layout.strides = *strides;
    }
    wanted = std::move(layout);
  }
  return wanted;
}

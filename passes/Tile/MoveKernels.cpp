// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Concatenation and insertion: data that only moves goes from HBM to HBM without passing SBUF.

#include "passes/Tile/SpecialKernels.h"

#include "neuron/Isa/Instruction.h"

using namespace mlir;
using namespace mlir::neuron;

void mlir::neuron::emitCopy(OpBuilder &builder, Location loc, const HbmTensor &source, const HbmTensor &destination) {
  // Merge neighbouring dimensions that both sides walk as one; drop those of size 1.
  SmallVector<int64_t> sizes, from, to;
  for (size_t d = 0; d < source.layout.sizes.size(); ++d) {
    int64_t size = source.layout.sizes[d];
    if (size == 0)
      return;
    if (size == 1)
      continue;
    int64_t s = source.layout.strides[d], t = destination.layout.strides[d];
    if (!sizes.empty() && from.back() == s * size && to.back() == t * size) {
      sizes.back() *= size;
      from.back() = s;
      to.back() = t;
      continue;
    }
    sizes.push_back(size);
    from.push_back(s);
    to.push_back(t);
  }
  if (sizes.empty()) {
    sizes.push_back(1);
    from.push_back(1);
    to.push_back(1);
  }
  // Dimensions beyond the pattern become loops around the transfer.
  constexpr size_t kDims = ::neuroncore::isa::kMaxHbmDims;
  SmallVector<Value> ivs;
  SmallVector<int64_t> fromStrides, toStrides;
  OpBuilder::InsertionGuard guard(builder);
  size_t outer = sizes.size() > kDims ? sizes.size() - kDims : 0;
  for (size_t d = 0; d < outer; ++d) {
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0), one = arith::ConstantIndexOp::create(builder, loc, 1);
    Value trips = arith::ConstantIndexOp::create(builder, loc, sizes[d]);
    auto loop = scf::ForOp::create(builder, loc, zero, trips, one);
    ivs.push_back(loop.getInductionVar());
    fromStrides.push_back(from[d]);
    toStrides.push_back(to[d]);
    builder.setInsertionPoint(loop.getBody()->getTerminator());
  }
  HbmCopyOp::create(builder, loc, source.buffer, destination.buffer, ivs, ivs, ArrayRef(sizes).drop_front(outer),
                    source.layout.offset, fromStrides, ArrayRef(from).drop_front(outer), destination.layout.offset,
                    toStrides, ArrayRef(to).drop_front(outer));
}

void mlir::neuron::emitConcat(OpBuilder &builder, ConcatOp op, ArrayRef<HbmTensor> operands, const HbmTensor &result) {
  int64_t start = 0, dim = op.getDim();
  for (const HbmTensor &operand : operands) {
    HbmTensor part = result;
    part.layout.offset += start * result.layout.strides[dim];
    part.layout.sizes = operand.layout.sizes;
    if (operand.buffer)
      emitCopy(builder, op.getLoc(), operand, part);
    start += operand.layout.sizes[dim];
  }
}

void mlir::neuron::emitInsert(OpBuilder &builder, InsertOp op, const HbmTensor &source, const HbmTensor &result) {
  HbmTensor part = result;
  part.layout.sizes = source.layout.sizes;
  for (size_t d = 0; d < part.layout.strides.size(); ++d) {
    part.layout.offset += op.getStarts()[d] * result.layout.strides[d];
    part.layout.strides[d] *= op.getSteps()[d];
  }
  emitCopy(builder, op.getLoc(), source, part);
}

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a plan costs: bytes of SBUF, DMA time and instruction time by the machine model.

#include <cmath>

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include "lib/Analysis/TilePlanner.h"
#include "neuron/Isa/Cost.h"

using namespace mlir;
using namespace mlir::neuron;

int64_t TilePlanner::tileElements(const TilePlan &plan, DimMask mask) const {
  int64_t elements = 1;
  for (unsigned d : plan.free)
    if (mask & dimBit(d))
      elements *= plan.tile[d];
  return elements;
}

bool mlir::neuron::isTensorSum(Operation *op) {
  auto reduce = dyn_cast<ReduceOp>(op);
  return reduce && reduce.getKind() == ReduceKind::Sum &&
         isa<FloatType>(cast<RankedTensorType>(reduce.getType()).getElementType());
}

bool mlir::neuron::isWideningCast(Operation *op) {
  auto cast = dyn_cast<CastOp>(op);
  if (!cast)
    return false;
  Type from = llvm::cast<RankedTensorType>(cast.getOperand().getType()).getElementType();
  Type to = llvm::cast<RankedTensorType>(cast.getResult().getType()).getElementType();
  return to.isF32() && isa<FloatType>(from);
}

/// Bytes per partition that are live at the worst point, without rotation. A result takes over the bytes of an operand
/// of the same size that dies with it.
int64_t TilePlanner::liveBytes(const TilePlan &plan) const {
  auto bytesOf = [&](DimMask mask, int64_t elementBytes) {
    return int64_t(llvm::alignTo(tileElements(plan, mask) * elementBytes, 4));
  };
  const IterationSpace &space = plan.space;
  struct Buffer {
    int64_t bytes;
    size_t first, last;
  };
  SmallVector<Buffer> buffers;
  llvm::DenseMap<Value, unsigned> bufferOf;
  llvm::DenseMap<OpOperand *, unsigned> bufferOfRead;
  size_t end = space.ops().size();
  // Reads of loops inside live as long as they are used, the others through all iterations.
  SmallVector<std::pair<const HbmAccess *, unsigned>> classes;
  for (auto [index, read] : llvm::enumerate(space.reads)) {
    const unsigned *known = nullptr;
    for (auto &[other, buffer] : classes)
      if (other->buffer == read.buffer && other->offset == read.offset && other->strides == read.strides)
        known = &buffer;
    if (!known) {
      bool inner = !plan.nest.empty() && plan.levelOf(read) == plan.nest.size();
      DimMask span = plan.spans[index];
      int64_t bytes = span ? int64_t(llvm::alignTo(spanElements(plan, read, span) * read.elementBytes, 4))
                           : bytesOf(space.maskOf(*read.read), read.elementBytes);
      buffers.push_back({bytes, inner ? end : 0, inner ? 0 : end});
      classes.push_back({&read, unsigned(buffers.size() - 1)});
      known = &classes.back().second;
    }
    bufferOfRead[read.read] = *known;
  }
  auto bufferOfOperand = [&](OpOperand &operand) -> std::optional<unsigned> {
    if (auto it = bufferOfRead.find(&operand); it != bufferOfRead.end())
      return it->second;
    if (auto it = bufferOf.find(viewSource(operand.get())); it != bufferOf.end())
      return it->second;
    return std::nullopt;
  };
  for (auto [index, op] : llvm::enumerate(space.ops())) {
    if (op->getNumResults() != 1 || isa<ConstantOp>(op))
      continue;
    for (OpOperand &operand : op->getOpOperands())
      if (auto buffer = bufferOfOperand(operand)) {
        buffers[*buffer].first = std::min(buffers[*buffer].first, index);
        buffers[*buffer].last = std::max(buffers[*buffer].last, index);
      }
    Value result = op->getResult(0);
    if (isWideningCast(op))
      if (auto buffer = bufferOfOperand(op->getOpOperand(0))) {
        bufferOf[result] = *buffer;
        continue;
      }
    int64_t bytes =
        bytesOf(space.maskOf(result), elementBytes(cast<RankedTensorType>(result.getType()).getElementType()));
    bufferOf[result] = buffers.size();
    buffers.push_back({bytes, index, index});
  }
  for (const HbmAccess &write : space.writes)
    if (auto it = bufferOf.find(write.written); it != bufferOf.end())
      buffers[it->second].last = end;
  SmallVector<int64_t> delta(end + 2, 0);
  for (const Buffer &buffer : buffers) {
    if (buffer.first > buffer.last)
      continue;
    delta[buffer.first] += buffer.bytes;
    delta[buffer.last + 1] -= buffer.bytes;
  }
  // In place: the operand's bytes are free one step earlier.
  for (auto [index, op] : llvm::enumerate(space.ops())) {
    if (!isElementwise(op) || op->getNumResults() != 1 || isWideningCast(op))
      continue;
    auto result = bufferOf.find(op->getResult(0));
    if (result == bufferOf.end())
      continue;
    for (OpOperand &operand : op->getOpOperands())
      if (auto buffer = bufferOfOperand(operand); buffer && *buffer != result->second &&
                                                  buffers[*buffer].last == index && buffers[*buffer].first < index &&
                                                  buffers[*buffer].bytes == buffers[result->second].bytes) {
        delta[index] -= buffers[*buffer].bytes;
        delta[index + 1] += buffers[*buffer].bytes;
        break;
      }
  }
  int64_t live = 0, peak = 0;
  for (int64_t change : delta)
    peak = std::max(peak, live += change);
  return peak;
}

/// How often something that depends on `mask` is done: loops inside of its innermost own loop repeat nothing.
int64_t TilePlanner::visits(const TilePlan &plan, DimMask mask) const {
  int64_t product = 1, result = 1;
  for (unsigned d : plan.nest) {
    product *= llvm::divideCeil(plan.space.sizes[d], plan.tile[d]) + (int(d) == plan.splitOuter && plan.leftover);
    if (mask & dimBit(d))
      result = product;
  }
  return result;
}

static DimMask maskOf(const HbmAccess &access) {
  DimMask mask = 0;
  for (auto [d, stride] : llvm::enumerate(access.strides))
    if (stride != 0)
      mask |= dimBit(d);
  return mask;
}

int64_t TilePlanner::partitionsOf(const TilePlan &plan, const HbmAccess &access) const {
  // A value that does not depend on the partition is stored once.
  if (plan.partition < 0 || (!access.read && access.strides[plan.partition] == 0))
    return 1;
  return plan.tile[plan.partition];
}

/// DMA engines that move the data of so many partitions.
int64_t TilePlanner::enginesFor(int64_t partitions) const {
  return std::min<int64_t>(model.topology().dmaEnginesPerCore,
                           llvm::divideCeil(partitions, model.dma().partitionsPerEngine));
}

/// DMA engine time of one transfer.
double TilePlanner::descriptorsNs(int64_t partitions, double runsPerPartition, double runBytes) const {
  return std::ceil(double(partitions) * runsPerPartition / double(enginesFor(partitions))) *
         model.dmaDescriptorNs(runBytes);
}

/// DMA engine time of all transfers of an access. A tile may lie in SBUF in the order of its source, which instructions
/// then walk with steps (`strided`), and DMA engines may transpose on the way in where the machine has that.
double TilePlanner::accessNs(const TilePlan &plan, const HbmAccess &access, bool &strided) const {
  DimMask mask = maskOf(access);
  bool isWrite = !access.read;
  int64_t partitions = partitionsOf(plan, access);
  int64_t elements = tileElements(plan, mask), run = 1;
  int64_t lastDim = -1;
  for (bool grown = true; grown;) {
    grown = false;
    for (auto [position, d] : llvm::enumerate(plan.free))
      if ((mask & dimBit(d)) && plan.tile[d] > 1 && std::abs(access.strides[d]) == run && access.strides[d] > 0) {
        // A run that does not follow the tile's own order.
        for (unsigned inner : ArrayRef(plan.free).drop_front(position + 1))
          strided |= lastDim < 0 && (mask & dimBit(inner)) && plan.tile[inner] > 1;
        strided |= lastDim >= 0 && int64_t(position) > lastDim;
        lastDim = position;
        run *= plan.tile[d];
        grown = true;
        break;
      }
  }
  run = std::min(run, elements);
  double ns = descriptorsNs(partitions, double(elements) / double(run), double(run) * access.elementBytes);
  double efficiency = model.dma().transposeEfficiencyHbmToSbuf;
  if (!isWrite && efficiency > 0 && partitions * access.elementBytes >= ::neuroncore::isa::kShortestTransposedRow &&
      elements > 1 && access.strides[plan.partition] == 1 && (access.elementBytes == 2 || access.elementBytes == 4)) {
    double bytes = double(partitions) * double(elements) * double(access.elementBytes);
    double transposed = bytes / double(enginesFor(partitions)) / (model.dma().engineGbpsPlanning * efficiency);
    if (transposed < kWorthwhilePart * ns) {
      ns = transposed;
      strided = false;
    }
  }
  return ns * double(visits(plan, mask));
}

TilePlan::Span TilePlan::spanOf(const HbmAccess &access, DimMask dims, ArrayRef<int64_t> extents) {
  int64_t low = 0, high = 0;
  for (auto [d, stride] : llvm::enumerate(access.strides))
    if (dims & dimBit(d))
      (stride < 0 ? low : high) += stride * (extents[d] - 1);
  return {low, high - low + 1};
}

/// Elements per partition of a tile that is loaded with a span.
int64_t TilePlanner::spanElements(const TilePlan &plan, const HbmAccess &access, DimMask span) const {
  return tileElements(plan, maskOf(access) & ~span) * TilePlan::spanOf(access, span, plan.tile).length;
}

/// As accessNs, where the dimensions of the span are one run.
double TilePlanner::spanNs(const TilePlan &plan, const HbmAccess &access, DimMask span) const {
  double runs = double(tileElements(plan, maskOf(access) & ~span));
  double bytes = double(TilePlan::spanOf(access, span, plan.tile).length) * double(access.elementBytes);
  return descriptorsNs(partitionsOf(plan, access), runs, bytes) * double(visits(plan, maskOf(access)));
}

/// Elements that lie apart would be loaded one by one; where the bytes between them are few, and where windows overlap,
/// it takes less time to load everything from the first to the last.
DimMask TilePlanner::chooseSpan(const TilePlan &plan, const HbmAccess &access) const {
  SmallVector<unsigned> dims;
  for (unsigned d : plan.free)
    if (access.strides[d] != 0 && plan.tile[d] > 1)
      dims.push_back(d);
  // Words of 64-bit elements are a dimension of their own.
  if (dims.empty() || (access.elementBytes == 8 && dims.size() >= ::neuroncore::isa::kMaxFreeDims))
    return 0;
  llvm::stable_sort(dims,
                    [&](unsigned a, unsigned b) { return std::abs(access.strides[a]) < std::abs(access.strides[b]); });
  bool strided = false;
  double least = kWorthwhilePart * accessNs(plan, access, strided);
  DimMask chosen = 0, span = 0;
  for (unsigned d : dims) {
    span |= dimBit(d);
    // Steps between elements are 16-bit.
    if (spanElements(plan, access, span) * (access.elementBytes == 8 ? 2 : 1) > INT16_MAX)
      continue;
    if (double ns = spanNs(plan, access, span); ns < least) {
      least = ns;
      chosen = span;
    }
  }
  return chosen;
}

void TilePlanner::estimate(TilePlan &plan) {
  plan.dmaNs = 0;
  double cycles = 0, loads = 0, stores = 0;
  const auto &vector = model.vectorEngine();
  auto addAccess = [&](const HbmAccess &access, DimMask mask, DimMask span = 0) {
    bool strided = span != 0;
    plan.dmaNs += span ? spanNs(plan, access, span) : accessNs(plan, access, strided);
    double count = double(visits(plan, mask));
    (access.read ? loads : stores) += count;
    if (strided)
      cycles += model.memory().slowStrideFactor * double(tileElements(plan, mask)) * count;
  };
  for (auto [index, read] : llvm::enumerate(plan.space.reads))
    if (isFirstOfClass[index])
      addAccess(read, plan.space.maskOf(*read.read), plan.spans[index]);
  for (const HbmAccess &write : plan.space.writes) {
    addAccess(write, maskOf(write));
  }
  for (Operation *op : plan.space.ops()) {
    if (isa<ConstantOp>(op))
      continue;
    DimMask mask = 0;
    for (Value result : op->getResults())
      mask |= plan.space.maskOf(result);
    for (OpOperand &operand : op->getOpOperands())
      mask |= plan.space.maskOf(operand);
    // Random numbers come from a routine of some hundred operations on eight cores.
    double perElement = isa<BinaryOp, SelectOp>(op) ? 1.5 : isa<RandomOp>(op) ? 20 : 1.0;
    cycles += std::max(vector.minIiCycles, perElement * double(tileElements(plan, mask))) * double(visits(plan, mask));
    // Across partitions the tensor engine sums floats in each tile; other reductions take a GpSimd routine at the end.
    if (isa<ReduceOp>(op) && plan.partition >= 0 && (plan.space.reduced.lookup(op) & dimBit(plan.partition))) {
      double kept = double(tileElements(plan, plan.space.maskOf(op->getResult(0))));
      cycles += isTensorSum(op) ? kept * double(visits(plan, mask))
                                : 32 * kept * double(visits(plan, plan.space.maskOf(op->getResult(0))));
    }
  }
  plan.computeNs = cycles / vector.clockGhz / 1.5;
  // Up to four iterations are under way, each with transfers on queues of its own; one engine triggers the loads and
  // another one the stores.
  plan.queueNs = std::max(loads, stores) * double(model.dma().queueMinOccupancyPs) * 1e-3 / 4;
}

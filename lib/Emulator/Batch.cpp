// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Emulator/Batch.h"

#include <algorithm>

namespace neuroncore::emulator {

namespace {

/// What the partitions of a strip may touch: half of a small second-level cache.
constexpr int64_t kStripBytes = 256 * 1024;
/// Below this the whole batch is in the caches anyway.
constexpr int64_t kMinNanoseconds = 50000;

bool addSpan(const isa::TilePattern &tile, const ImageLayout &layout, Locality &locality) {
  if (locality.isLocal() &&
      (locality.firstPartition != tile.startPartition || locality.partitions != tile.numPartitions))
    return false;
  locality.firstPartition = int16_t(tile.startPartition);
  locality.partitions = int16_t(tile.numPartitions);
  // Steps may be negative.
  int64_t low = 0, high = isa::dtypeBytes(tile.dtype);
  for (int i = 0; i < isa::kMaxFreeDims; ++i) {
    const int64_t extent = (int64_t(tile.count[i]) - 1) * tile.step[i] * isa::dtypeBytes(tile.dtype);
    (extent < 0 ? low : high) += extent;
  }
  const int64_t base = tile.byteOffset + (tile.space == isa::MemorySpace::Psum ? layout.sbufBytes : 0);
  locality.spans[locality.numSpans++] = {int32_t(base + low), int32_t(base + high)};
  return true;
}

/// Instructions that relate elements of one partition only.
bool worksOnPartitions(isa::Opcode opcode) {
  using isa::Opcode;
  switch (opcode) {
  case Opcode::TensorCopy:
  case Opcode::TensorCopyPredicated:
  case Opcode::Memset:
  case Opcode::TensorTensor:
  case Opcode::TensorScalar:
  case Opcode::ScalarTensorTensor:
  case Opcode::TensorScalarReduce:
  case Opcode::TensorTensorScan:
  case Opcode::Reciprocal:
  case Opcode::RangeSelect:
  case Opcode::Activation:
  case Opcode::TensorReduce:
  case Opcode::BnStats:
  case Opcode::BnAggr:
  case Opcode::Iota:
  case Opcode::AffineSelect:
    return true;
  default:
    return false;
  }
}

bool overlaps(const std::vector<HostRange> &ranges, const HostRange &range) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const HostRange &other) { return range.begin < other.end && other.begin < range.end; });
}

} // namespace

Locality Locality::ofTile(const isa::Instruction &instruction, const ImageLayout &layout) {
  Locality locality;
  if (!worksOnPartitions(instruction.opcode))
    return locality;
  for (const isa::TilePattern &tile : instruction.tiles)
    if (tile.present() && !addSpan(tile, layout, locality))
      return Locality();
  return locality;
}

Locality Locality::ofTransfer(const isa::Instruction &instruction, const DmaOp &op, const ImageLayout &layout) {
  Locality locality;
  if (!op.dividesByPartition())
    return locality;
  for (int i = 0; i < 2; ++i)
    if (instruction.tiles[i].space != isa::MemorySpace::Hbm && !addSpan(instruction.tiles[i], layout, locality))
      return Locality();
  locality.alignment = op.unitAlignment();
  return locality;
}

void Batch::append(const Item &item, int64_t nanoseconds) {
  items_.push_back(item);
  nanoseconds_ += nanoseconds;
  if (items_.size() == kMaxItems)
    runItems();
}

void Batch::add(const Locality &locality, const TileOp &op) {
  append({&locality, &op, nullptr, nullptr, nullptr}, op.nanoseconds());
}

void Batch::add(const Locality &locality, const DmaOp &op, const DmaOp::Transfer &transfer) {
  const HostRange &read = transfer.srcRange, &written = transfer.dstRange;
  if (overlaps(writes_, read) || overlaps(writes_, written) || overlaps(reads_, written))
    run();
  if (read.begin != read.end)
    reads_.push_back(read);
  if (written.begin != written.end)
    writes_.push_back(written);
  append({&locality, nullptr, &op, transfer.srcBase, transfer.dstBase}, op.bytes() / kDmaBytesPerNanosecond);
}

/// So many partitions that what the batch touches of them stays in a cache.
int Batch::partitionsPerStrip(int alignment) {
  spans_.clear();
  for (const Item &item : items_)
    spans_.insert(spans_.end(), item.locality->spans.begin(), item.locality->spans.begin() + item.locality->numSpans);
  std::sort(spans_.begin(), spans_.end(),
            [](const Locality::Span &a, const Locality::Span &b) { return a.begin < b.begin; });
  int64_t bytes = 0, end = INT64_MIN;
  for (const Locality::Span &span : spans_) {
    bytes += std::max<int64_t>(0, span.end - std::max<int64_t>(end, span.begin));
    end = std::max<int64_t>(end, span.end);
  }
  const int64_t partitions = kStripBytes / std::max<int64_t>(bytes, 1) / alignment * alignment;
  return int(std::clamp<int64_t>(partitions, alignment, kPartitions));
}

void Batch::runPartitions(Worker &worker, int begin, int end) {
  for (const Item &item : items_) {
    const int first = item.locality->firstPartition;
    const int from = std::max(begin - first, 0), to = std::min(end - first, int(item.locality->partitions));
    if (from >= to)
      continue;
    if (item.tile)
      item.tile->run(machine_, worker, from, to);
    else
      item.dma->runStatic(item.src, item.dst, worker, from, to);
  }
}

void Batch::runItems() {
  int alignment = 1;
  for (const Item &item : items_)
    alignment = std::max(alignment, item.locality->alignment);
  if (nanoseconds_ < kMinNanoseconds || items_.size() == 1) {
    if (nanoseconds_ > WorkerPool::kMinNanoseconds)
      pool_.run(kPartitions, alignment,
                [&](Worker &worker, int64_t begin, int64_t end) { runPartitions(worker, int(begin), int(end)); });
    else
      runPartitions(pool_.main(), 0, kPartitions);
  } else {
    const int strip = partitionsPerStrip(alignment);
    pool_.run(kPartitions, alignment, [&](Worker &worker, int64_t begin, int64_t end) {
      for (int first = int(begin); first < int(end); first += strip)
        runPartitions(worker, first, std::min(first + strip, int(end)));
    });
  }
  items_.clear();
  reads_.clear();
  writes_.clear();
  nanoseconds_ = 0;
}

} // namespace neuroncore::emulator

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Consecutive instructions that work on each partition by itself, executed partition by partition instead of
// instruction by instruction. A tile of long rows does not fit the host's caches, a few of its partitions do: what one
// instruction writes is still there when the next one reads it. The bits are the same, as no instruction of a batch
// reads what another partition of the batch has written.

#ifndef NEURON_LIB_EMULATOR_BATCH_H
#define NEURON_LIB_EMULATOR_BATCH_H

#include <array>
#include <vector>

#include "lib/Emulator/Dma.h"
#include "lib/Emulator/Machine.h"
#include "lib/Emulator/WorkerPool.h"

namespace neuroncore::emulator {

/// Where an instruction works, if it works on partitions separately: unit u of the instruction touches partition
/// `firstPartition` + u of SBUF and PSUM and nothing else there.
struct Locality {
  static constexpr int kMaxSpans = isa::kMaxTiles;

  int16_t firstPartition = -1;
  int16_t partitions = 0;
  int32_t numSpans = 0;
  /// Parts should begin at multiples of so many partitions.
  int32_t alignment = 1;
  /// The bytes of a partition that it reads or writes; those of PSUM behind those of SBUF.
  struct Span {
    int32_t begin, end;
  };
  std::array<Span, kMaxSpans> spans = {};

  bool isLocal() const { return firstPartition >= 0; }
  static Locality ofTile(const isa::Instruction &instruction, const ImageLayout &layout);
  static Locality ofTransfer(const isa::Instruction &instruction, const DmaOp &op, const ImageLayout &layout);
};

class Batch {
public:
  Batch(Machine &machine, WorkerPool &pool) : machine_(machine), pool_(pool) {}

  void add(const Locality &locality, const TileOp &op);
  /// Runs what is pending first if the transfer has to see or follow its HBM accesses.
  void add(const Locality &locality, const DmaOp &op, const DmaOp::Transfer &transfer);
  /// Executes everything that is pending.
  void run() {
    if (!items_.empty())
      runItems();
  }

private:
  struct Item {
    const Locality *locality;
    const TileOp *tile;
    const DmaOp *dma;
    const uint8_t *src;
    uint8_t *dst;
  };
  static constexpr size_t kMaxItems = 64;

  void append(const Item &item, int64_t nanoseconds);
  void runItems();
  void runPartitions(Worker &worker, int begin, int end);
  int partitionsPerStrip(int alignment);

  Machine &machine_;
  WorkerPool &pool_;
  std::vector<Item> items_;
  int64_t nanoseconds_ = 0;
  /// HBM bytes that pending transfers read and write.
  std::vector<HostRange> reads_, writes_;
  std::vector<Locality::Span> spans_;
};

} // namespace neuroncore::emulator

#endif // NEURON_LIB_EMULATOR_BATCH_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which bytes of SBUF and PSUM hold live data, from the operands of what executed: an allocation begins with a write
// and ends with the last access before its bytes are written anew. Ranges are those of the operands: first to last
// byte, so that operands with gaps count as full.

#include <algorithm>

#include "lib/Profile/DeviceProfile.h"
#include "neuron/Isa/InstructionTable.h"

namespace neuroncore::profile {

using isa::MemorySpace;
using isa::TilePattern;

namespace {

struct Range {
  int64_t firstByte = 0, endByte = 0;
  int32_t firstPartition = 0, partitions = 0;

  bool overlaps(const Range &other) const {
    return firstByte < other.endByte && other.firstByte < endByte &&
           firstPartition < other.firstPartition + other.partitions &&
           other.firstPartition < firstPartition + partitions;
  }
  bool covers(const Range &other) const {
    return firstByte <= other.firstByte && other.endByte <= endByte && firstPartition <= other.firstPartition &&
           other.firstPartition + other.partitions <= firstPartition + partitions;
  }
};

Range rangeOf(const TilePattern &tile) {
  int64_t low = 0, high = 0;
  for (int k = 0; k < isa::kMaxFreeDims; ++k) {
    const int64_t reach = int64_t(tile.step[k]) * (int64_t(tile.count[k]) - 1);
    (reach < 0 ? low : high) += reach;
  }
  const int64_t bytes = isa::dtypeBytes(tile.dtype);
  return {tile.byteOffset + low * bytes, tile.byteOffset + (high + 1) * bytes, tile.startPartition, tile.numPartitions};
}

struct Access {
  int64_t startPs, endPs;
  int32_t info, block;
};

struct Live {
  Range range;
  int64_t startPs, lastPs;
  int32_t info, block;
  bool wasRead;
};

} // namespace

AllocationRows DeviceProfile::allocations(MemorySpace space) const {
  std::vector<Access> accesses;
  accesses.reserve(instructions_.startPs.size());
  for (size_t i = 0; i < instructions_.startPs.size(); ++i)
    if (instructions_.kind[i] == uint8_t(emulator::TimelineEvent::Kind::Instruction))
      accesses.push_back({instructions_.startPs[i], instructions_.endPs[i], instructions_.info[i], -1});
  // All shares of a transfer are one access.
  std::vector<Access> transfers;
  for (size_t i = 0; i < transfers_.startPs.size(); ++i) {
    const auto block = size_t(transfers_.block[i]);
    if (block >= transfers.size())
      transfers.resize(block + 1, {INT64_MAX, 0, 0, -1});
    Access &access = transfers[block];
    access.startPs = std::min(access.startPs, transfers_.startPs[i]);
    access.endPs = std::max(access.endPs, transfers_.endPs[i]);
    access.info = transfers_.info[i];
    access.block = transfers_.block[i];
  }
  for (const Access &access : transfers)
    if (access.block >= 0)
      accesses.push_back(access);
  std::stable_sort(accesses.begin(), accesses.end(),
                   [](const Access &a, const Access &b) { return a.startPs < b.startPs; });

  AllocationRows rows;
  const auto close = [&](const Live &live) {
    rows.startPs.push_back(live.startPs);
    rows.endPs.push_back(live.lastPs);
    rows.startByte.push_back(live.range.firstByte);
    rows.endByte.push_back(live.range.endByte);
    rows.firstPartition.push_back(live.range.firstPartition);
    rows.partitions.push_back(live.range.partitions);
    rows.info.push_back(live.info);
    rows.block.push_back(live.block);
  };
  std::vector<Live> live;
  for (const Access &access : accesses) {
    const StaticInstruction &info = statics_[size_t(access.info)];
    const isa::Instruction &instruction = neff_->program[info.stream][info.pc];
    const isa::InstructionInfo &table = isa::instructionInfo(instruction.opcode);
    for (int t = 0; t < table.numTiles; ++t) {
      const TilePattern &tile = instruction.tiles[t];
      if (tile.space != space || !table.tiles[t].reads())
        continue;
      const Range range = rangeOf(tile);
      for (Live &entry : live)
        if (entry.range.overlaps(range)) {
          entry.wasRead = true;
          entry.lastPs = std::max(entry.lastPs, access.endPs);
        }
    }
    for (int t = 0; t < table.numTiles; ++t) {
      const TilePattern &tile = instruction.tiles[t];
      if (tile.space != space || !table.tiles[t].writes())
        continue;
      const Range range = rangeOf(tile);
      bool extended = false;
      for (size_t i = 0; i < live.size();) {
        Live &entry = live[i];
        if (!entry.range.overlaps(range)) {
          ++i;
        } else if (!entry.wasRead && entry.range.covers(range)) {
          // More of the same value: accumulation, or a tile written in pieces.
          entry.lastPs = std::max(entry.lastPs, access.endPs);
          extended = true;
          ++i;
        } else if (entry.wasRead || range.covers(entry.range)) {
          close(entry);
          live[i] = live.back();
          live.pop_back();
        } else {
          ++i;
        }
      }
      if (!extended)
        live.push_back({range, access.startPs, access.endPs, access.info, access.block, false});
    }
  }
  for (const Live &entry : live)
    close(entry);
  return rows;
}

} // namespace neuroncore::profile

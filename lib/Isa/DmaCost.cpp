// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cost of DMA instructions: how a transfer falls apart into descriptors and over the DMA engines. Rules:
// docs/MachineModel.md.

#include "neuron/Isa/Cost.h"

#include <cassert>
#include <cmath>
#include <numeric>

namespace neuroncore::isa {

using target::MachineModel;
using target::nsToPs;

namespace {

/// One side of a transfer as the hardware sees it, in elements.
struct Side {
  bool hbm = false;
  int64_t elementBytes = 1;
  /// Longest contiguous run; divides nothing in particular.
  int64_t run = 1;
  /// Share of the elements that dynamic counts leave.
  double activeFraction = 1;
};

Side tileSide(const TilePattern &tile) {
  Side side;
  side.elementBytes = dtypeBytes(tile.dtype);
  for (int k = kMaxFreeDims - 1; k >= 0; --k) {
    if (tile.count[k] == 1)
      continue;
    if (tile.step[k] != side.run)
      break;
    side.run *= tile.count[k];
  }
  return side;
}

class DmaCoster {
public:
  DmaCoster(const MachineModel &model, const Instruction &instruction, const uint32_t *registers)
      : model_(model), in_(instruction), registers_(registers) {}

  DmaCost run() {
    cost_.completionPs = model_.dma().completionPs;
    cost_.queueFloorPs = model_.dma().queueMinOccupancyPs;
    Side dst = side(0), src = side(1);
    int64_t elements = std::llround(double(staticElements_) * std::min(dst.activeFraction, src.activeFraction));
    cost_.hbmWriteBytes = dst.hbm ? elements * dst.elementBytes : 0;
    cost_.hbmReadBytes = src.hbm ? elements * src.elementBytes : 0;
    if (elements > 0) {
      if (in_.opcode == Opcode::DmaTranspose)
        transpose(dst, src, elements);
      else
        copy(dst, src, elements);
    }
    trigger();
    return cost_;
  }

private:
  Side hbmSide(const HbmPattern &pattern) {
    Side side;
    side.hbm = true;
    side.elementBytes = dtypeBytes(pattern.dtype);
    staticElements_ = pattern.elements();
    bool merging = true;
    // Elements beyond a dynamic count leave gaps on the other side, so no piece is longer than what is inside them.
    int64_t inner = 1;
    for (int k = kMaxHbmDims - 1; k >= 0; --k) {
      int64_t count = pattern.count[k];
      int64_t step = pattern.step[k];
      if (registers_ && pattern.countRegister[k] != kZeroRegister)
        count = std::min<int64_t>(registers_[pattern.countRegister[k]], count);
      if (registers_ && pattern.stepRegister[k] != kZeroRegister &&
          __builtin_mul_overflow(int64_t(int32_t(registers_[pattern.stepRegister[k]])), step, &step))
        step = 0;
      inner *= count;
      if (pattern.count[k] != 1) {
        if (merging && step == side.run * side.elementBytes)
          side.run *= count;
        else
          merging = false;
      }
      if (count < int64_t(pattern.count[k])) {
        side.activeFraction *= double(count) / double(pattern.count[k]);
        runLimit_ = std::min(runLimit_, std::max<int64_t>(inner, 1));
        // A dynamic outermost dimension that is the partition dimension shortens the partitions, not the rows.
        bool outermost = true;
        for (int outer = 0; outer < k; ++outer)
          outermost &= pattern.count[outer] == 1;
        if (outermost)
          activeOutermost_ = {pattern.count[k], count};
      }
    }
    side.run = std::max<int64_t>(side.run, 1);
    return side;
  }

  Side side(int index) {
    const TilePattern &tile = in_.tiles[index];
    if (tile.space == MemorySpace::Hbm)
      return hbmSide(in_.hbm[index]);
    staticElements_ = tile.numPartitions * tile.elementsPerPartition();
    return tileSide(tile);
  }

  /// Number of pieces that are contiguous on both sides, of `elements` consecutive ones.
  static int64_t pieces(int64_t elements, int64_t runA, int64_t runB) {
    runA = std::min(runA, elements);
    runB = std::min(runB, elements);
    double common = double(runA) / double(std::gcd(runA, runB)) * double(runB);
    double count = double(elements) / double(runA) + double(elements) / double(runB) - double(elements) / common;
    return std::max<int64_t>(1, int64_t(std::ceil(count - 1e-9)));
  }

  void copy(const Side &dst, const Side &src, int64_t elements) {
    int64_t elementBytes = std::max(dst.elementBytes, src.elementBytes);
    if (dst.hbm && src.hbm)
      return spreadEvenly(elements, pieces(elements, std::min(dst.run, runLimit_), std::min(src.run, runLimit_)),
                          elementBytes);
    const TilePattern &tile = in_.tiles[dst.hbm ? 1 : 0];
    int64_t partitions = tile.numPartitions;
    if (activeOutermost_.first == partitions && activeOutermost_.second > 0)
      partitions = activeOutermost_.second;
    int64_t perPartition = std::max<int64_t>(1, elements / partitions);
    int64_t count = pieces(perPartition, std::min(dst.run, runLimit_), std::min(src.run, runLimit_));
    double descriptorNs = model_.dmaDescriptorNs(double(perPartition * elementBytes) / double(count));
    forEachEngine(tile.startPartition, partitions, [&](int engine, int64_t share) {
      cost_.bytes[engine] += share * perPartition * elementBytes;
      cost_.busyPs[engine] += nsToPs(double(share * count) * descriptorNs);
    });
    cost_.descriptors = partitions * count;
  }

  template <typename Callback> void forEachEngine(int64_t start, int64_t partitions, Callback callback) const {
    int64_t group = model_.dma().partitionsPerEngine;
    for (int64_t p = start; p < start + partitions;) {
      int64_t end = std::min(start + partitions, (p / group + 1) * group);
      callback(int(p / group) % kMaxDmaEngines, end - p);
      p = end;
    }
  }

  void spreadEvenly(int64_t elements, int64_t count, int64_t elementBytes) {
    int engines = model_.topology().dmaEnginesPerCore;
    int64_t bytes = elements * elementBytes;
    // Large pieces are split so that all engines take part, down to the smallest efficient descriptor.
    int64_t wanted = (bytes + model_.dma().descriptorMinBytes - 1) / model_.dma().descriptorMinBytes;
    count = std::max(count, std::min<int64_t>(engines, wanted));
    double descriptorNs = model_.dmaDescriptorNs(double(bytes) / double(count));
    for (int engine = 0; engine < engines; ++engine) {
      int64_t share = count / engines + (engine < count % engines);
      cost_.busyPs[engine] = nsToPs(double(share) * descriptorNs);
      // The shares of bytes add up exactly.
      int64_t before = (count / engines) * engine + std::min<int64_t>(engine, count % engines);
      cost_.bytes[engine] = int64_t(double(bytes) / double(count) * double(before + share) + 0.5) -
                            int64_t(double(bytes) / double(count) * double(before) + 0.5);
    }
    cost_.descriptors = count;
  }

  void transpose(const Side &dst, const Side &src, int64_t elements) {
    const TilePattern &tile = in_.tiles[0];
    double efficiency =
        src.hbm ? model_.dma().transposeEfficiencyHbmToSbuf : model_.dma().transposeEfficiencySbufToSbuf;
    if (efficiency <= 0) // no DMA transpose on this target: the verifier refuses the instruction
      efficiency = 1;
    int64_t perPartition = elements / std::max<int64_t>(1, tile.numPartitions);
    forEachEngine(tile.startPartition, tile.numPartitions, [&](int engine, int64_t share) {
      int64_t bytes = share * perPartition * dst.elementBytes;
      cost_.bytes[engine] += bytes;
      cost_.busyPs[engine] += nsToPs(double(bytes) / (model_.dma().engineGbpsPlanning * efficiency));
    });
    cost_.descriptors = perPartition;
  }

  void trigger() {
    const target::Dma &dma = model_.dma();
    switch (in_.dgeMode) {
    case DgeMode::Software:
      cost_.issuePs = dma.triggerIssueSwdgePs;
      cost_.generatorPs = cost_.descriptors * dma.swdgeDescriptorPs;
      cost_.dispatchPs = std::max(dma.dispatchSwdgePs, cost_.generatorPs);
      break;
    case DgeMode::Hardware:
      cost_.issuePs = dma.triggerIssueHwdgePs;
      cost_.dispatchPs = dma.dispatchHwdgePs;
      break;
    case DgeMode::Static:
    case DgeMode::Unknown: // the verifier refuses it; the compiler may ask before it has chosen
      cost_.issuePs = dma.triggerIssueStaticPs;
      cost_.dispatchPs = dma.dispatchStaticPs;
      break;
    }
  }

  const MachineModel &model_;
  const Instruction &in_;
  const uint32_t *registers_;
  int64_t staticElements_ = 0;
  int64_t runLimit_ = INT64_MAX;
  std::pair<int64_t, int64_t> activeOutermost_ = {-1, -1};
  DmaCost cost_;
};

} // namespace

DmaCost dmaCost(const MachineModel &model, Engine engine, const Instruction &instruction, const uint32_t *registers) {
  return DmaCoster(model, instruction, registers).run();
}

} // namespace neuroncore::isa

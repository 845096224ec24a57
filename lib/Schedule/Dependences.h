// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From byte ranges to waits: which earlier instruction instances each instruction conflicts with, and the least counter
// value that proves the latest of them complete.

#ifndef NEURON_LIB_SCHEDULE_DEPENDENCES_H
#define NEURON_LIB_SCHEDULE_DEPENDENCES_H

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "FlatProgram.h"

namespace neuroncore::schedule {

/// Columns number the counters that a kernel can wait on: the engines, its own DMA counters, those of the kernel
/// before.
inline constexpr int32_t kFirstDmaColumn = isa::kNumStreams;

/// A wait on a column. Values of DMA counters are in transfers.
struct CounterWait {
  int32_t column = 0;
  int32_t anchor = -1;     // index in FlatProgram::loops
  int32_t anchorDepth = 0; // set when the table is finished
  int32_t immediate = 0;
  bool armedAfterFirstPass = false;
  bool kept = false;      // set by elimination: not implied at every visit
  bool armNeeded = false; // set by elimination: the value of the first pass is not known to be reached
};

/// The waits of the sites of one kernel.
struct WaitTable {
  std::vector<CounterWait> waits;
  std::vector<int32_t> first; // per site of the kernel, and the end

  std::span<CounterWait> of(int32_t localSite) {
    return {waits.data() + first[localSite], size_t(first[localSite + 1] - first[localSite])};
  }
};

class DependenceAnalysis {
public:
  /// The counters per kernel are assigned and the engine counts at kernel boundaries are known.
  DependenceAnalysis(const StructuredProgram &program, const FlatProgram &flat,
                     std::span<const int32_t> numDmaCounters);

  /// Kernels are analysed in order; each call compares with the kernel of the call before.
  void analyse(int32_t kernel, WaitTable &waits);

  int64_t numPairs() const { return numPairs_; }

private:
  struct Stride {
    int64_t bytes;
    int64_t bound; // count - 1
  };
  /// run contiguous bytes at low + sum of strides.
  struct Pattern {
    int64_t low = 0;
    int64_t run = 0;
    int32_t numStrides = 0;
    std::array<Stride, isa::kMaxHbmDims> strides;

    int64_t high() const;
    void add(int64_t step, int64_t count);
    void normalise();
  };
  struct Access {
    int64_t low = 0, high = 0; // on chip: with the space in the upper bits
    int32_t site = 0;
    int32_t pattern = -1; // on chip: -1 if [low, high) has no holes
    uint8_t firstPartition = 0, endPartition = 0;
    bool write = false;
  };
  struct HbmAccess {
    int64_t key = 0; // accesses of different keys never meet
    int32_t site = 0;
    int32_t side = 0;
    int32_t pattern = -1; // -1: anywhere in the variable
    bool write = false;
  };
  struct KernelAccesses {
    std::vector<Access> onChip;        // by low
    std::vector<int64_t> highestSoFar; // of onChip[0..i]
    std::vector<HbmAccess> hbm;        // by key
    std::vector<Pattern> patterns;
  };

  void collect(int32_t kernel);
  void collectTile(int32_t site, const isa::TilePattern &tile, bool write);
  void addOnChip(int32_t site, isa::MemorySpace space, const Pattern &pattern, int first, int count, bool write);
  void collectHbm(int32_t site, int side, bool anywhere, bool write);

  void withinKernel();
  void acrossKernels();
  bool conflict(const KernelAccesses &accessesA, const Access &a, const KernelAccesses &accessesB, const Access &b);
  bool mayMeetAnywhere(const KernelAccesses &accessesA, const HbmAccess &a, const KernelAccesses &accessesB,
                       const HbmAccess &b) const;
  bool mayMeetAtLevel(const HbmAccess &earlier, const HbmAccess &later, int32_t loop, int64_t leastDistance) const;
  bool interlocked(int32_t siteA, int32_t siteB) const;

  void orderWithinKernel(int32_t first, int32_t second);
  void orderHbmWithinKernel(const HbmAccess &first, const HbmAccess &second);
  void orderAcrossKernels(int32_t producer, int32_t consumer);

  void waitForEngine(int32_t consumer, int stream, int32_t anchor, int64_t immediate, bool armed);
  void waitForDma(int32_t consumer, int32_t producerDma);
  void addWait(int32_t consumer, const CounterWait &wait);
  bool setDmaValue(int32_t consumer, CounterWait &wait) const;
  void finish(WaitTable &waits);

  const StructuredProgram &program_;
  const FlatProgram &flat_;
  std::span<const int32_t> numDmaCounters_;
  int32_t kernel_ = -1;
  KernelAccesses current_, previous_;
  int64_t numPairs_ = 0;

  struct ListedWait {
    CounterWait wait;
    int32_t next;
  };
  std::vector<ListedWait> pool_;
  std::vector<int32_t> heads_; // per site of the kernel
};

} // namespace neuroncore::schedule

#endif // NEURON_LIB_SCHEDULE_DEPENDENCES_H

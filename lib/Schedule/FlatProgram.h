// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The structured program in flat arrays, normalised for analysis: loops that run one pass are spliced into their
// parent, what never runs is left out, and every position knows how often each counter was updated before it. All
// numbers are exact because every trip count is static.

#ifndef NEURON_LIB_SCHEDULE_FLATPROGRAM_H
#define NEURON_LIB_SCHEDULE_FLATPROGRAM_H

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "neuron/Schedule/StructuredProgram.h"
#include "neuron/Support/Error.h"

namespace neuroncore::schedule {

/// A count per compute engine, by index in isa::kStreamEngines.
using Counts = std::array<int32_t, isa::kNumStreams>;

/// No counter may go beyond this in one execution, so that differences, also to a disarmed value, fit 31 bits.
inline constexpr int64_t kCounterLimit = int64_t(1) << 29;
inline constexpr int64_t kPartsPerTransfer = 16;
/// Partitions of SBUF and PSUM; part of the encoding (TilePattern), not of a target.
inline constexpr int kNumPartitions = 128;

inline constexpr int kSyncStream = isa::kNumStreams - 1;
static_assert(isa::kStreamEngines[kSyncStream] == isa::Engine::Sync);

Error counterOverflow(int64_t count);

struct FlatLoop {
  LoopId id = -1;
  int32_t parent = -1; // index in FlatProgram::loops
  int32_t parentCopy = 0;
  int32_t depth = 1; // number of loops from the outermost to this one
  int32_t copies = 1;
  int64_t trips = 0;
  int64_t passes = 0; // at least 2
  int32_t firstSite = 0, endSite = 0;
  int32_t firstDma = 0, endDma = 0;
  int32_t firstCopyItem = 0; // in FlatProgram::copyItems; one more entry than copies
  /// Updates of each engine from the start of the parent's pass (or of the kernel) to the loop; in one pass; in all.
  Counts before = {}, rate = {}, total = {};
  uint8_t streams = 0; // bit per stream with an instruction inside

  int64_t runs(int32_t copy) const { return (trips - copy + copies - 1) / copies; }
  /// The copy that runs the last iteration.
  int32_t lastCopy() const { return int32_t((trips - 1) % copies); }
};

struct FlatSite {
  const Instruction *instruction = nullptr;
  int32_t loop = -1; // innermost
  int32_t copy = 0;
  int32_t dma = -1; // index in FlatProgram::dmaSites
  uint8_t stream = 0;
  bool ticks = false; // advances the counter of its engine
  /// Updates of each engine from the start of the innermost loop's pass (or of the kernel) to this instruction.
  Counts before = {};

  bool isDma() const { return dma >= 0; }
};

/// A loop-dependent part of an HBM address: pass number times stride.
struct PassTerm {
  int32_t loop;
  int64_t stride;
};

struct HbmAddress {
  int64_t offset = 0;
  uint32_t firstTerm = 0, numTerms = 0; // in FlatProgram::passTerms, outermost loop first
};

struct DmaSite {
  int32_t site = 0;
  int32_t counter = 0; // within the kernel
  uint32_t firstExecutions = 0;
  std::array<HbmAddress, 2> hbm;
};

struct FlatKernel {
  int32_t firstSite = 0, endSite = 0;
  int32_t firstLoop = 0, endLoop = 0;
  int32_t firstItem = 0, endItem = 0;
  int32_t firstDma = 0, endDma = 0;
  Counts total = {}; // body only
  uint8_t streams = 0;
  /// Absolute count of each engine at the start of the body and behind the exit ticks.
  Counts bodyStart = {}, end = {};

  int32_t numSites() const { return endSite - firstSite; }
  int32_t numDma() const { return endDma - firstDma; }
};

class FlatProgram {
public:
  enum class Stage { BeforeSynchronisation, AfterSynchronisation };
  /// Reads the bodies of all kernels. Boundaries and counters are not set yet.
  static Expected<FlatProgram> build(const StructuredProgram &program, Stage stage);
  /// Sets the engine counts at kernel boundaries. `ticks(kernel, stream)` is the number of ticks of the kernel's entry
  /// (first) and exit (second).
  template <typename Ticks> Status setBoundaryCounts(Ticks ticks) {
    std::array<int64_t, isa::kNumStreams> count = {};
    for (int32_t kernel = 0; kernel < int32_t(kernels.size()); ++kernel)
      for (int stream = 0; stream < isa::kNumStreams; ++stream) {
        auto [entry, exit] = ticks(kernel, stream);
        int64_t start = count[stream] + entry;
        count[stream] = start + kernels[kernel].total[stream] + exit;
        if (count[stream] >= kCounterLimit)
          return counterOverflow(count[stream]);
        kernels[kernel].bodyStart[stream] = int32_t(start);
        kernels[kernel].end[stream] = int32_t(count[stream]);
      }
    return Status::success();
  }
  std::vector<FlatKernel> kernels;
  std::vector<FlatLoop> loops;
  std::vector<FlatSite> sites; // in sequential (textual) order
  /// Bodies in order: site i as i, loop l as ~l followed by the items of its copies.
  std::vector<int32_t> items;
  std::vector<int32_t> copyItems;
  std::vector<DmaSite> dmaSites;
  std::vector<PassTerm> passTerms;
  std::vector<int32_t> executionPool;

  int32_t endItem(const FlatLoop &loop) const { return copyItems[loop.firstCopyItem + loop.copies]; }
  std::span<const PassTerm> terms(const HbmAddress &address) const {
    return {passTerms.data() + address.firstTerm, address.numTerms};
  }
  int32_t depthOf(int32_t loop) const { return loop < 0 ? 0 : loops[loop].depth; }
  /// Executions of a DMA site in one pass of the loop of that depth around it (0: in one run of the kernel).
  int32_t executions(const DmaSite &dma, int32_t depth) const { return executionPool[dma.firstExecutions + depth]; }
  bool contains(int32_t loop, int32_t site) const {
    return loop < 0 || (site >= loops[loop].firstSite && site < loops[loop].endSite);
  }
  /// The innermost loop around both, -1 if none.
  int32_t commonLoop(int32_t siteA, int32_t siteB) const {
    int32_t loop = sites[siteA].loop;
    while (loop >= 0 && !contains(loop, siteB))
      loop = loops[loop].parent;
    return loop;
  }
  /// The copy of `loop` that holds `site`.
  int32_t copyIn(int32_t loop, int32_t site) const {
    int32_t copy = sites[site].copy;
    for (int32_t inner = sites[site].loop; inner != loop; inner = loops[inner].parent)
      copy = loops[inner].parentCopy;
    return copy;
  }
  /// The loop around `site` with this id, -1 if none.
  int32_t enclosingLoop(int32_t site, LoopId id) const {
    int32_t loop = sites[site].loop;
    while (loop >= 0 && loops[loop].id != id)
      loop = loops[loop].parent;
    return loop;
  }
  /// Updates of the site's engine from the start of the current pass of `loop` (which contains the site; -1: of the
  /// kernel) up to and including the last update the site makes in that pass.
  int64_t endOffset(int32_t site, int32_t loop) const {
    const FlatSite &s = sites[site];
    int64_t offset = s.before[s.stream] + 1;
    int32_t copy = s.copy;
    for (int32_t inner = s.loop; inner != loop; inner = loops[inner].parent) {
      offset += int64_t(loops[inner].rate[s.stream]) * (loops[inner].runs(copy) - 1) + loops[inner].before[s.stream];
      copy = loops[inner].parentCopy;
    }
    return offset;
  }
};

} // namespace neuroncore::schedule

#endif // NEURON_LIB_SCHEDULE_FLATPROGRAM_H

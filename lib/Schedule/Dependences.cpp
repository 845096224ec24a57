// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// On chip, addresses are static, so two accesses meet in every pair of iterations or in none, and the latest producer
// instance before the consumer is the one that matters at each level. In HBM the question is asked per level with the
// iteration numbers as unknowns.

#include "Dependences.h"

#include <algorithm>

#include "LinearRange.h"
#include "neuron/Isa/InstructionTable.h"

namespace neuroncore::schedule {

int64_t DependenceAnalysis::Pattern::high() const {
  int64_t end = low + run;
  for (int32_t i = 0; i < numStrides; ++i)
    end += strides[i].bytes * strides[i].bound;
  return end;
}

void DependenceAnalysis::Pattern::add(int64_t step, int64_t count) {
  if (count <= 1 || step == 0)
    return;
  if (step < 0) {
    low += step * (count - 1);
    step = -step;
  }
  int32_t at = numStrides++;
  for (; at > 0 && strides[at - 1].bytes > step; --at)
    strides[at] = strides[at - 1];
  strides[at] = {step, count - 1};
}

/// Smallest strides first; those that leave no hole extend the run.
void DependenceAnalysis::Pattern::normalise() {
  int32_t merged = 0;
  while (merged < numStrides && strides[merged].bytes <= run) {
    run += strides[merged].bytes * strides[merged].bound;
    ++merged;
  }
  std::copy(strides.begin() + merged, strides.begin() + numStrides, strides.begin());
  numStrides -= merged;
}

DependenceAnalysis::DependenceAnalysis(const StructuredProgram &program, const FlatProgram &flat,
                                       std::span<const int32_t> numDmaCounters)
    : program_(program), flat_(flat), numDmaCounters_(numDmaCounters) {
  current_.onChip.reserve(64);
  current_.hbm.reserve(16);
  current_.patterns.reserve(16);
  pool_.reserve(64);
}

void DependenceAnalysis::analyse(int32_t kernel, WaitTable &waits) {
  kernel_ = kernel;
  std::swap(previous_, current_);
  collect(kernel);
  pool_.clear();
  heads_.assign(flat_.kernels[kernel].numSites(), -1);
  withinKernel();
  if (kernel > 0)
    acrossKernels();
  finish(waits);
}

void DependenceAnalysis::collect(int32_t kernel) {
  current_.onChip.clear();
  current_.hbm.clear();
  current_.patterns.clear();
  const FlatKernel &range = flat_.kernels[kernel];
  for (int32_t site = range.firstSite; site < range.endSite; ++site) {
    const isa::Instruction &code = flat_.sites[site].instruction->code;
    const isa::InstructionInfo &info = isa::instructionInfo(code.opcode);
    const isa::TilePattern *firstSource = nullptr;
    for (int slot = 0; slot < info.numTiles; ++slot) {
      const isa::TilePattern &tile = code.tiles[slot];
      if (!tile.present())
        continue;
      bool write = info.tiles[slot].writes();
      if (!write && !firstSource)
        firstSource = &tile;
      if (tile.space == isa::MemorySpace::Hbm) {
        // The third tile of a transfer is a vector of indices.
        collectHbm(site, slot, code.tiles[2].present(), write);
        continue;
      }
      collectTile(site, tile, write);
    }
    for (int i = 0; i < info.numScalars; ++i) {
      const isa::ScalarOperand &scalar = code.scalars[i];
      if (scalar.kind != isa::ScalarOperand::Kind::Vector)
        continue;
      Pattern pattern;
      pattern.low = scalar.byteOffset;
      pattern.run = 4;
      int first = firstSource ? firstSource->startPartition : 0;
      int count = firstSource ? firstSource->numPartitions : kNumPartitions;
      addOnChip(site, scalar.space, pattern, first, count, false);
    }
  }
  std::sort(current_.onChip.begin(), current_.onChip.end(),
            [](const Access &a, const Access &b) { return a.low != b.low ? a.low < b.low : a.site < b.site; });
  current_.highestSoFar.resize(current_.onChip.size());
  int64_t highest = 0;
  for (size_t i = 0; i < current_.onChip.size(); ++i)
    current_.highestSoFar[i] = highest = std::max(highest, current_.onChip[i].high);
  std::stable_sort(current_.hbm.begin(), current_.hbm.end(),
                   [](const HbmAccess &a, const HbmAccess &b) { return a.key < b.key; });
}

void DependenceAnalysis::collectTile(int32_t site, const isa::TilePattern &tile, bool write) {
  Pattern pattern;
  int bytes = isa::dtypeBytes(tile.dtype);
  pattern.low = tile.byteOffset;
  pattern.run = bytes;
  for (int dim = isa::kMaxFreeDims - 1; dim >= 0; --dim)
    pattern.add(int64_t(tile.step[dim]) * bytes, tile.count[dim]);
  pattern.normalise();
  addOnChip(site, tile.space, pattern, tile.startPartition, tile.numPartitions, write);
}

void DependenceAnalysis::addOnChip(int32_t site, isa::MemorySpace space, const Pattern &pattern, int first, int count,
                                   bool write) {
  constexpr int kSpaceShift = 40;
  Access &access = current_.onChip.emplace_back();
  int64_t base = int64_t(space) << kSpaceShift;
  access.low = base + pattern.low;
  access.high = base + pattern.high();
  access.site = site;
  access.firstPartition = uint8_t(first);
  access.endPartition = uint8_t(first + count);
  access.write = write;
  if (pattern.numStrides > 0) {
    access.pattern = int32_t(current_.patterns.size());
    current_.patterns.push_back(pattern);
    current_.patterns.back().low += base;
  }
}

void DependenceAnalysis::collectHbm(int32_t site, int side, bool anywhere, bool write) {
  const isa::HbmPattern &hbm = flat_.sites[site].instruction->code.hbm[side];
  const VariableInfo &variable = *program_.operand(hbm.variable);
  HbmAccess &access = current_.hbm.emplace_back();
  access.key = variable.aliasGroup >= 0 ? int64_t(variable.aliasGroup) : -1 - int64_t(hbm.variable);
  access.site = site;
  access.side = side;
  access.write = write;
  if (anywhere)
    return;
  Pattern pattern;
  pattern.low = flat_.dmaSites[flat_.sites[site].dma].hbm[side].offset;
  pattern.run = isa::dtypeBytes(hbm.dtype);
  for (int dim = isa::kMaxHbmDims - 1; dim >= 0; --dim)
    pattern.add(hbm.step[dim], hbm.count[dim]);
  pattern.normalise();
  access.pattern = int32_t(current_.patterns.size());
  current_.patterns.push_back(pattern);
}

/// Compute on one engine is ordered by the engine itself.
bool DependenceAnalysis::interlocked(int32_t siteA, int32_t siteB) const {
  const FlatSite &a = flat_.sites[siteA], &b = flat_.sites[siteB];
  return a.stream == b.stream && !a.isDma() && !b.isDma();
}

bool DependenceAnalysis::conflict(const KernelAccesses &accessesA, const Access &a, const KernelAccesses &accessesB,
                                  const Access &b) {
  if (!a.write && !b.write)
    return false;
  if (a.firstPartition >= b.endPartition || b.firstPartition >= a.endPartition || interlocked(a.site, b.site))
    return false;
  ++numPairs_;
  if (a.pattern < 0 && b.pattern < 0)
    return true;
  LinearRange difference;
  int64_t runA = a.high - a.low, runB = b.high - b.low;
  difference.addConstant(b.low - a.low);
  if (a.pattern >= 0) {
    const Pattern &pattern = accessesA.patterns[a.pattern];
    runA = pattern.run;
    for (int32_t i = 0; i < pattern.numStrides; ++i)
      difference.addTerm(-pattern.strides[i].bytes, pattern.strides[i].bound);
  }
  if (b.pattern >= 0) {
    const Pattern &pattern = accessesB.patterns[b.pattern];
    runB = pattern.run;
    for (int32_t i = 0; i < pattern.numStrides; ++i)
      difference.addTerm(pattern.strides[i].bytes, pattern.strides[i].bound);
  }
  return difference.mayReach(1 - runB, runA - 1);
}

void DependenceAnalysis::withinKernel() {
  const std::vector<Access> &accesses = current_.onChip;
  for (size_t i = 0; i < accesses.size(); ++i)
    for (size_t j = i + 1; j < accesses.size() && accesses[j].low < accesses[i].high; ++j)
      if (accesses[i].site != accesses[j].site && conflict(current_, accesses[i], current_, accesses[j]))
        orderWithinKernel(std::min(accesses[i].site, accesses[j].site), std::max(accesses[i].site, accesses[j].site));

  const std::vector<HbmAccess> &hbm = current_.hbm;
  for (size_t begin = 0, end = 0; begin < hbm.size(); begin = end) {
    bool anyWrite = false;
    for (end = begin; end < hbm.size() && hbm[end].key == hbm[begin].key; ++end)
      anyWrite |= hbm[end].write;
    if (!anyWrite)
      continue;
    for (size_t i = begin; i < end; ++i)
      for (size_t j = i + 1; j < end; ++j)
        if ((hbm[i].write || hbm[j].write) && hbm[i].site != hbm[j].site)
          orderHbmWithinKernel(hbm[i], hbm[j]); // collected in the order of sites
  }

  // At most one transfer in flight per counter.
  const FlatKernel &range = flat_.kernels[kernel_];
  bool shared = numDmaCounters_[kernel_] < range.numDma();
  for (int32_t dma = range.firstDma; dma < range.endDma; ++dma)
    if (shared || flat_.sites[flat_.dmaSites[dma].site].loop >= 0)
      waitForDma(flat_.dmaSites[dma].site, dma);
}

/// Conflicting in every pair of iterations; `first` stands before `second`.
void DependenceAnalysis::orderWithinKernel(int32_t first, int32_t second) {
  const FlatSite &a = flat_.sites[first], &b = flat_.sites[second];
  int32_t common = flat_.commonLoop(first, second);
  // Forward, the latest instance of `first` is in the same pass of the innermost common loop.
  if (a.isDma())
    waitForDma(second, a.dma);
  else
    waitForEngine(second, a.stream, common, flat_.endOffset(first, common), false);
  if (b.isDma()) {
    if (common >= 0)
      waitForDma(first, b.dma);
    return;
  }
  // Backward, it is in the pass before of the innermost loop that has one.
  for (int32_t loop = common; loop >= 0; loop = flat_.loops[loop].parent)
    waitForEngine(first, b.stream, loop, flat_.endOffset(second, loop) - flat_.loops[loop].rate[b.stream], true);
}

bool DependenceAnalysis::mayMeetAnywhere(const KernelAccesses &accessesA, const HbmAccess &a,
                                         const KernelAccesses &accessesB, const HbmAccess &b) const {
  if (a.pattern < 0 || b.pattern < 0)
    return true;
  LinearRange difference;
  const Pattern &patternA = accessesA.patterns[a.pattern], &patternB = accessesB.patterns[b.pattern];
  difference.addConstant(patternB.low - patternA.low);
  for (int32_t i = 0; i < patternA.numStrides; ++i)
    difference.addTerm(-patternA.strides[i].bytes, patternA.strides[i].bound);
  for (int32_t i = 0; i < patternB.numStrides; ++i)
    difference.addTerm(patternB.strides[i].bytes, patternB.strides[i].bound);
  for (const PassTerm &term : flat_.terms(flat_.dmaSites[flat_.sites[a.site].dma].hbm[a.side]))
    difference.addTerm(-term.stride, flat_.loops[term.loop].passes - 1);
  for (const PassTerm &term : flat_.terms(flat_.dmaSites[flat_.sites[b.site].dma].hbm[b.side]))
    difference.addTerm(term.stride, flat_.loops[term.loop].passes - 1);
  return difference.mayReach(1 - patternB.run, patternA.run - 1);
}

/// May `later` meet an instance of `earlier` that ran at least `leastDistance` passes of `loop` before, in the same
/// iteration of all loops around `loop`?
bool DependenceAnalysis::mayMeetAtLevel(const HbmAccess &earlier, const HbmAccess &later, int32_t loop,
                                        int64_t leastDistance) const {
  if (earlier.pattern < 0 || later.pattern < 0)
    return true;
  LinearRange difference;
  const Pattern &patternA = current_.patterns[earlier.pattern], &patternB = current_.patterns[later.pattern];
  difference.addConstant(patternB.low - patternA.low);
  for (int32_t i = 0; i < patternA.numStrides; ++i)
    difference.addTerm(-patternA.strides[i].bytes, patternA.strides[i].bound);
  for (int32_t i = 0; i < patternB.numStrides; ++i)
    difference.addTerm(patternB.strides[i].bytes, patternB.strides[i].bound);

  int32_t depth = flat_.depthOf(loop);
  auto termsA = flat_.terms(flat_.dmaSites[flat_.sites[earlier.site].dma].hbm[earlier.side]);
  auto termsB = flat_.terms(flat_.dmaSites[flat_.sites[later.site].dma].hbm[later.side]);
  auto strideIn = [](std::span<const PassTerm> terms, int32_t wanted) {
    for (const PassTerm &term : terms)
      if (term.loop == wanted)
        return term.stride;
    return int64_t(0);
  };
  for (const PassTerm &term : termsA) {
    const FlatLoop &around = flat_.loops[term.loop];
    if (around.depth > depth)
      difference.addTerm(-term.stride, around.passes - 1);
    else if (int64_t strideB = strideIn(termsB, term.loop); strideB != term.stride)
      difference.addTerm(strideB - term.stride, around.passes - 1);
  }
  for (const PassTerm &term : termsB) {
    const FlatLoop &around = flat_.loops[term.loop];
    if (around.depth > depth || strideIn(termsA, term.loop) == 0)
      difference.addTerm(term.stride, around.passes - 1);
    if (term.loop == loop) {
      difference.addConstant(term.stride * leastDistance);
      difference.addTerm(term.stride, around.passes - 1 - leastDistance);
    }
  }
  return difference.mayReach(1 - patternB.run, patternA.run - 1);
}

void DependenceAnalysis::orderHbmWithinKernel(const HbmAccess &first, const HbmAccess &second) {
  ++numPairs_;
  if (!mayMeetAnywhere(current_, first, current_, second))
    return;
  int32_t common = flat_.commonLoop(first.site, second.site);
  bool forward = common < 0 || mayMeetAtLevel(first, second, common, 0);
  bool backward = false;
  for (int32_t loop = common; loop >= 0; loop = flat_.loops[loop].parent) {
    forward = forward || (loop != common && mayMeetAtLevel(first, second, loop, 1));
    backward = backward || mayMeetAtLevel(second, first, loop, 1);
  }
  if (forward)
    waitForDma(second.site, flat_.sites[first.site].dma);
  if (backward)
    waitForDma(first.site, flat_.sites[second.site].dma);
}

void DependenceAnalysis::acrossKernels() {
  for (const Access &b : current_.onChip) {
    auto begin = previous_.onChip.begin();
    auto at = std::lower_bound(begin, previous_.onChip.end(), b.high,
                               [](const Access &a, int64_t high) { return a.low < high; });
    while (at != begin && previous_.highestSoFar[size_t(at - begin) - 1] > b.low) {
      --at;
      if (at->high > b.low && conflict(previous_, *at, current_, b))
        orderAcrossKernels(at->site, b.site);
    }
  }
  size_t i = 0;
  for (const HbmAccess &b : current_.hbm) {
    while (i < previous_.hbm.size() && previous_.hbm[i].key < b.key)
      ++i;
    for (size_t j = i; j < previous_.hbm.size() && previous_.hbm[j].key == b.key; ++j) {
      const HbmAccess &a = previous_.hbm[j];
      if (!a.write && !b.write)
        continue;
      ++numPairs_;
      if (mayMeetAnywhere(previous_, a, current_, b))
        orderAcrossKernels(a.site, b.site);
    }
  }
}

void DependenceAnalysis::orderAcrossKernels(int32_t producer, int32_t consumer) {
  const FlatSite &a = flat_.sites[producer];
  CounterWait wait;
  if (!a.isDma()) {
    wait.column = a.stream;
    wait.immediate = int32_t(flat_.kernels[kernel_ - 1].bodyStart[a.stream] + flat_.endOffset(producer, -1));
  } else {
    // The final count: all transfers of the counter.
    const FlatKernel &range = flat_.kernels[kernel_ - 1];
    int32_t counter = flat_.dmaSites[a.dma].counter;
    wait.column = kFirstDmaColumn + numDmaCounters_[kernel_] + counter;
    for (int32_t dma = range.firstDma + counter; dma < range.endDma; dma += numDmaCounters_[kernel_ - 1])
      wait.immediate += flat_.executions(flat_.dmaSites[dma], 0);
  }
  addWait(consumer, wait);
}

void DependenceAnalysis::waitForEngine(int32_t consumer, int stream, int32_t anchor, int64_t immediate, bool armed) {
  // A loop in which the engine does nothing does not move its counter.
  while (anchor >= 0 && flat_.loops[anchor].rate[stream] == 0) {
    immediate += flat_.loops[anchor].before[stream];
    anchor = flat_.loops[anchor].parent;
  }
  if (anchor < 0)
    immediate += flat_.kernels[kernel_].bodyStart[stream];
  CounterWait wait;
  wait.column = stream;
  wait.anchor = anchor;
  wait.immediate = int32_t(immediate);
  wait.armedAfterFirstPass = armed;
  addWait(consumer, wait);
}

/// The value is that of the counter before the consumer, whatever the level; it is set once, in finish().
void DependenceAnalysis::waitForDma(int32_t consumer, int32_t producerDma) {
  CounterWait wait;
  wait.column = kFirstDmaColumn + flat_.dmaSites[producerDma].counter;
  addWait(consumer, wait);
}

void DependenceAnalysis::addWait(int32_t consumer, const CounterWait &wait) {
  int32_t &head = heads_[consumer - flat_.kernels[kernel_].firstSite];
  for (int32_t i = head; i >= 0; i = pool_[i].next) {
    CounterWait &other = pool_[i].wait;
    if (other.column == wait.column && other.anchor == wait.anchor &&
        other.armedAfterFirstPass == wait.armedAfterFirstPass) {
      other.immediate = std::max(other.immediate, wait.immediate);
      return;
    }
  }
  pool_.push_back({wait, head});
  head = int32_t(pool_.size()) - 1;
}

/// Transfers of the counter sequentially before the consumer; false if there are none.
bool DependenceAnalysis::setDmaValue(int32_t consumer, CounterWait &wait) const {
  const FlatKernel &range = flat_.kernels[kernel_];
  int32_t step = numDmaCounters_[kernel_];
  int32_t first = range.firstDma + wait.column - kFirstDmaColumn;
  for (int32_t dma = first; dma < range.endDma; dma += step) {
    int32_t common = flat_.commonLoop(consumer, flat_.dmaSites[dma].site);
    if (flat_.depthOf(common) > flat_.depthOf(wait.anchor))
      wait.anchor = common;
  }
  wait.immediate = 0;
  for (int32_t dma = first; dma < range.endDma; dma += step) {
    // Sites outside the anchor run in none of its passes.
    const DmaSite &other = flat_.dmaSites[dma];
    if (other.site < consumer && flat_.contains(wait.anchor, other.site))
      wait.immediate += flat_.executions(other, flat_.depthOf(wait.anchor));
  }
  return wait.anchor >= 0 || wait.immediate > 0;
}

void DependenceAnalysis::finish(WaitTable &waits) {
  const FlatKernel &range = flat_.kernels[kernel_];
  int32_t ownEnd = kFirstDmaColumn + numDmaCounters_[kernel_];
  waits.waits.clear();
  waits.first.resize(range.numSites() + 1);
  for (int32_t local = 0; local < range.numSites(); ++local) {
    waits.first[local] = int32_t(waits.waits.size());
    for (int32_t i = heads_[local]; i >= 0; i = pool_[i].next) {
      CounterWait wait = pool_[i].wait;
      if (wait.column >= kFirstDmaColumn && wait.column < ownEnd) {
        if (!setDmaValue(range.firstSite + local, wait))
          continue;
      } else if (wait.anchor < 0 && wait.immediate <= 0) {
        continue;
      }
      wait.anchorDepth = flat_.depthOf(wait.anchor);
      waits.waits.push_back(wait);
    }
  }
  waits.first[range.numSites()] = int32_t(waits.waits.size());
}

} // namespace neuroncore::schedule

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Facts are absolute counts. "Stream e knows column c up to n" means: when the stream of e gets here, the first n
// updates of c have happened and everything before them in their producers' streams that orders memory is visible.
// Every wait gives its fact whether it is kept or dropped: a fact follows from sequentially earlier instructions only.
//
// Soundness of skipping. One pass maps what is known to what is known, by maxima and by shifts with the counters, and
// more knowledge before gives more after. If over one pass each entry either moved with its counter or stayed, then
// over each later pass it moves or stays at least that way: an entry that moved is dominated by one that moved. So the
// state moved by the remaining passes is a lower bound of the true one, and a wait that is implied both before the skip
// and in the last pass, where what stayed is furthest behind, is implied in between.

#include "Elimination.h"

#include <algorithm>
#include <cassert>

namespace neuroncore::schedule {

namespace {

constexpr int32_t kLanes = 8; // rows are padded to whole vectors

void joinRow(int32_t *__restrict target, const int32_t *__restrict source, int32_t width) {
  for (int32_t i = 0; i < width; i += kLanes)
    for (int32_t lane = 0; lane < kLanes; ++lane)
      target[i + lane] = std::max(target[i + lane], source[i + lane]);
}

} // namespace

void Elimination::resize(int32_t numCurrent, int32_t numPrevious) {
  numCurrent_ = numCurrent;
  numPrevious_ = numPrevious;
  width_ = (kFirstDmaColumn + numCurrent + numPrevious + kLanes - 1) / kLanes * kLanes;
}

void Elimination::enterKernel(int32_t numDmaCounters) {
  int32_t oldCurrent = numCurrent_, oldWidth = width_;
  std::vector<int32_t> oldRows = std::move(rows_), oldCounts = std::move(counts_);
  resize(numDmaCounters, oldCurrent);
  rows_.assign(size_t(kFirstRecordRow + numCurrent_ + numPrevious_) * width_, 0);
  counts_.assign(width_, 0);
  if (oldRows.empty())
    return;
  auto move = [&](const int32_t *from, int32_t *to) {
    std::copy_n(from, kFirstDmaColumn, to);
    std::copy_n(from + kFirstDmaColumn, oldCurrent, to + kFirstDmaColumn + numCurrent_);
  };
  move(oldCounts.data(), counts_.data());
  for (int32_t i = 0; i < kFirstRecordRow; ++i)
    move(oldRows.data() + size_t(i) * oldWidth, row(i));
  for (int32_t i = 0; i < oldCurrent; ++i)
    move(oldRows.data() + size_t(kFirstRecordRow + i) * oldWidth, row(kFirstRecordRow + numCurrent_ + i));
}

void Elimination::visitBoundary(int stream, std::span<CounterWait> waits, bool ticks) {
  passStarts_.assign(width_, 0);
  passes_.assign(1, 0);
  judge(stream, waits);
  if (ticks)
    tick(stream);
}

void Elimination::walkBody(int32_t kernel, WaitTable &waits) {
  kernel_ = kernel;
  waits_ = &waits;
  const FlatKernel &range = flat_.kernels[kernel];
  int32_t depths = 1;
  for (int32_t loop = range.firstLoop; loop < range.endLoop; ++loop)
    depths = std::max(depths, flat_.loops[loop].depth + 1);
  passStarts_.assign(size_t(depths) * width_, 0);
  passes_.assign(depths, 0);
  if (snapshots_.size() < size_t(depths))
    snapshots_.resize(depths);
  walkItems(range.firstItem, range.endItem);
}

void Elimination::walkItems(int32_t begin, int32_t end) {
  for (int32_t i = begin; i < end;) {
    int32_t item = flat_.items[i];
    if (item >= 0) {
      visitSite(item);
      ++i;
    } else {
      walkLoop(~item);
      i = flat_.endItem(flat_.loops[~item]);
    }
  }
}

void Elimination::visitSite(int32_t site) {
  const FlatSite &s = flat_.sites[site];
  judge(s.stream, waits_->of(site - flat_.kernels[kernel_].firstSite));
  if (s.isDma())
    transfer(s.stream, kFirstDmaColumn + flat_.dmaSites[s.dma].counter);
  else if (s.ticks)
    tick(s.stream);
}

/// What the producer of that update had seen; null if it is too long ago.
const int32_t *Elimination::factsOf(int32_t column, int32_t value) {
  int32_t age = counts_[column] - value;
  if (column >= kFirstDmaColumn) {
    assert(age == 0 && "a wait on a DMA counter asks for all transfers before it");
    return record(column);
  }
  return age < kHistory ? history(column, age) : nullptr;
}

void Elimination::learn(int stream, int32_t column, int32_t value) {
  int32_t *known = knownTo(stream);
  if (const int32_t *facts = factsOf(column, value)) {
    joinRow(known, facts, width_);
    if (column < kFirstDmaColumn)
      oldestUse_[column] = std::max(oldestUse_[column], counts_[column] - value);
  }
  known[column] = std::max(known[column], value);
}

/// Kept waits first, then always the one that implies most of the others.
void Elimination::judge(int stream, std::span<CounterWait> waits) {
  const int32_t *known = knownTo(stream);
  pending_.clear();
  bool anyDisarmed = false;
  for (CounterWait &wait : waits) {
    if (disarmed(wait)) {
      anyDisarmed = true;
      continue;
    }
    int32_t value = valueOf(wait);
    if (value <= known[wait.column])
      continue;
    if (wait.kept)
      learn(stream, wait.column, value);
    else
      pending_.push_back({&wait, value});
  }
  auto isImplied = [&](const Pending &p) { return p.value <= known[p.wait->column]; };
  std::erase_if(pending_, isImplied);
  while (!pending_.empty()) {
    size_t best = 0;
    int bestImplied = -1;
    for (size_t i = 0; pending_.size() > 1 && i < pending_.size(); ++i) {
      const int32_t *facts = factsOf(pending_[i].wait->column, pending_[i].value);
      int implied = 0;
      for (const Pending &other : pending_)
        implied += (facts && facts[other.wait->column] >= other.value) ||
                   (other.wait->column == pending_[i].wait->column && other.value <= pending_[i].value);
      if (implied > bestImplied) {
        bestImplied = implied;
        best = i;
      }
    }
    pending_[best].wait->kept = true;
    learn(stream, pending_[best].wait->column, pending_[best].value);
    std::erase_if(pending_, isImplied);
  }
  if (anyDisarmed)
    for (CounterWait &wait : waits)
      if (disarmed(wait) && valueOf(wait) > known[wait.column])
        wait.armNeeded = true;
}

void Elimination::tick(int stream) {
  ++counts_[stream];
  newest_[stream] = (newest_[stream] + 1) & (kHistory - 1);
  int32_t *facts = history(stream, 0);
  std::copy_n(knownTo(stream), width_, facts);
  facts[stream] = counts_[stream];
}

void Elimination::transfer(int stream, int32_t column) {
  ++counts_[column];
  int32_t *facts = record(column);
  std::copy_n(knownTo(stream), width_, facts);
  facts[column] = counts_[column];
}

void Elimination::walkLoop(int32_t index) {
  const FlatLoop &loop = flat_.loops[index];
  auto use = oldestUse_; // of the passes walked so far and of what stands before the loop
  // The passes that are walked whatever happens at the end: the last, and the last that runs all copies.
  int64_t tail = loop.lastCopy() == loop.copies - 1 ? 1 : 2;
  int comparisons = -1; // without a snapshot yet
  for (int64_t pass = 0; pass < loop.passes;) {
    std::copy_n(counts_.data(), width_, passStarts_.data() + size_t(loop.depth) * width_);
    passes_[loop.depth] = pass;
    oldestUse_.fill(-1);
    int32_t copies = pass == loop.passes - 1 ? loop.lastCopy() + 1 : loop.copies;
    walkItems(flat_.copyItems[loop.firstCopyItem], flat_.copyItems[loop.firstCopyItem + copies]);
    for (int stream = 0; stream < isa::kNumStreams; ++stream)
      use[stream] = std::max(use[stream], oldestUse_[stream]);
    ++pass;
    int64_t skippable = loop.passes - pass - tail;
    if (skippable <= 0 || !skipPasses_)
      continue;
    Snapshot &snapshot = snapshots_[loop.depth];
    bool isSteady = comparisons >= 0 && steady(loop, snapshot);
    if (isSteady || comparisons >= kMaxComparisons) {
      skip(loop, snapshot, skippable, isSteady);
      pass += skippable;
    } else {
      take(loop, snapshot);
      ++comparisons;
    }
  }
  oldestUse_ = use;
}

/// The rows that the loop can change and read, each with its counterpart in the snapshot: histories by age.
template <typename Visit> void Elimination::forEachRow(const FlatLoop &loop, const Snapshot &snapshot, Visit visit) {
  const int32_t *before = snapshot.rows.data();
  auto old = [&](int32_t index) { return before + size_t(index) * width_; };
  for (int stream = 0; stream < isa::kNumStreams; ++stream) {
    if (!(loop.streams >> stream & 1))
      continue;
    if (!visit(knownTo(stream), old(stream)))
      return;
    for (int age = 0; age <= oldestUse_[stream]; ++age) {
      int slot = (snapshot.newest[stream] - age) & (kHistory - 1);
      if (!visit(history(stream, age), old(kFirstHistoryRow + stream * kHistory + slot)))
        return;
    }
  }
  const FlatKernel &range = flat_.kernels[kernel_];
  bool shared = numCurrent_ < range.numDma();
  int32_t first = shared ? 0 : loop.firstDma - range.firstDma;
  int32_t end = shared ? numCurrent_ : loop.endDma - range.firstDma;
  for (int32_t counter = first; counter < end; ++counter)
    if (!visit(record(kFirstDmaColumn + counter), old(kFirstRecordRow + counter)))
      return;
}

void Elimination::take(const FlatLoop &loop, Snapshot &snapshot) {
  snapshot.rows.resize(rows_.size());
  snapshot.counts = counts_;
  snapshot.newest = newest_;
  // Whole histories: how far back the next pass looks is not known yet.
  auto copyRows = [&](int32_t first, int32_t count) {
    std::copy_n(row(first), size_t(count) * width_, snapshot.rows.data() + size_t(first) * width_);
  };
  for (int stream = 0; stream < isa::kNumStreams; ++stream)
    if (loop.streams >> stream & 1) {
      copyRows(stream, 1);
      copyRows(kFirstHistoryRow + stream * kHistory, kHistory);
    }
  copyRows(kFirstRecordRow, numCurrent_);
}

bool Elimination::steady(const FlatLoop &loop, const Snapshot &snapshot) {
  delta_.resize(width_);
  for (int32_t i = 0; i < width_; ++i)
    delta_[i] = counts_[i] - snapshot.counts[i];
  int32_t different = 0;
  forEachRow(loop, snapshot, [&](const int32_t *now, const int32_t *before) {
    for (int32_t i = 0; i < width_; i += kLanes)
      for (int32_t lane = 0; lane < kLanes; ++lane) {
        int32_t moved = now[i + lane] - before[i + lane];
        different |= (moved != 0) & (moved != delta_[i + lane]);
      }
    return different == 0;
  });
  return different == 0;
}

void Elimination::skip(const FlatLoop &loop, const Snapshot &snapshot, int64_t passes, bool isSteady) {
  delta_.resize(width_);
  for (int32_t i = 0; i < width_; ++i)
    delta_[i] = int32_t((counts_[i] - snapshot.counts[i]) * passes);
  if (isSteady)
    forEachRow(loop, snapshot, [&](int32_t *now, const int32_t *before) {
      for (int32_t i = 0; i < width_; ++i)
        now[i] += now[i] != before[i] ? delta_[i] : 0;
      return true;
    });
  // Otherwise everything stays: facts about older updates hold for the newer ones in their place.
  for (int32_t i = 0; i < width_; ++i)
    counts_[i] += delta_[i];
}

} // namespace neuroncore::schedule

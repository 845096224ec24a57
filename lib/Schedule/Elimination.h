// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which waits are implied by earlier ones. The program is walked in sequential order with, per engine, the counter
// values its stream is known to have seen, and, per counter, what the producers of its latest updates had seen. A wait
// that is implied at every visit is dropped. Loops are walked until what is known only moves along with the counters;
// then the passes up to the last are skipped.

#ifndef NEURON_LIB_SCHEDULE_ELIMINATION_H
#define NEURON_LIB_SCHEDULE_ELIMINATION_H

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "Dependences.h"
#include "FlatProgram.h"

namespace neuroncore::schedule {

class Elimination {
public:
  Elimination(const FlatProgram &flat, bool skipPasses) : flat_(flat), skipPasses_(skipPasses) {}

  /// The counters of the current kernel become those of the kernel before.
  void enterKernel(int32_t numDmaCounters);
  /// One instruction outside the body: judges its waits and applies its tick.
  void visitBoundary(int stream, std::span<CounterWait> waits, bool ticks);
  void walkBody(int32_t kernel, WaitTable &waits);

private:
  /// How many of the latest updates of an engine's counter are remembered. A wait further back still gives its own
  /// fact.
  static constexpr int kHistory = 16;
  static constexpr int kFirstHistoryRow = isa::kNumStreams;
  static constexpr int kFirstRecordRow = kFirstHistoryRow + isa::kNumStreams * kHistory;
  /// Passes compared before a loop is taken not to become steady.
  static constexpr int kMaxComparisons = 6;

  struct Snapshot {
    std::vector<int32_t> rows;
    std::vector<int32_t> counts;
    std::array<int32_t, isa::kNumStreams> newest;
  };
  struct Pending {
    CounterWait *wait;
    int32_t value;
  };

  int32_t *row(int32_t index) { return rows_.data() + size_t(index) * width_; }
  int32_t *knownTo(int stream) { return row(stream); }
  int32_t *history(int stream, int age) {
    return row(kFirstHistoryRow + stream * kHistory + ((newest_[stream] - age) & (kHistory - 1)));
  }
  int32_t *record(int32_t column) { return row(kFirstRecordRow + column - kFirstDmaColumn); }
  void resize(int32_t numCurrent, int32_t numPrevious);

  void walkItems(int32_t begin, int32_t end);
  void walkLoop(int32_t loop);
  void visitSite(int32_t site);
  void judge(int stream, std::span<CounterWait> waits);
  int32_t valueOf(const CounterWait &wait) const {
    return passStarts_[size_t(wait.anchorDepth) * width_ + wait.column] + wait.immediate;
  }
  bool disarmed(const CounterWait &wait) const { return wait.armedAfterFirstPass && passes_[wait.anchorDepth] == 0; }
  const int32_t *factsOf(int32_t column, int32_t value);
  void learn(int stream, int32_t column, int32_t value);
  void tick(int stream);
  void transfer(int stream, int32_t column);

  template <typename Visit> void forEachRow(const FlatLoop &loop, const Snapshot &snapshot, Visit visit);
  void take(const FlatLoop &loop, Snapshot &snapshot);
  bool steady(const FlatLoop &loop, const Snapshot &snapshot);
  void skip(const FlatLoop &loop, const Snapshot &snapshot, int64_t passes, bool steady);

  const FlatProgram &flat_;
  bool skipPasses_;
  int32_t numCurrent_ = 0, numPrevious_ = 0;
  int32_t width_ = 0;
  std::vector<int32_t> rows_;
  std::vector<int32_t> counts_;
  std::array<int32_t, isa::kNumStreams> newest_ = {};
  /// The greatest age looked up in each engine's history in the current pass of the innermost loop.
  std::array<int32_t, isa::kNumStreams> oldestUse_ = {};

  int32_t kernel_ = 0;
  WaitTable *waits_ = nullptr;
  /// By depth of the loops around the current place; depth 0 is the kernel, whose counts are absolute.
  std::vector<int32_t> passStarts_; // counts at the start of the current pass
  std::vector<int64_t> passes_;
  std::vector<Snapshot> snapshots_;
  std::vector<Pending> pending_;
  std::vector<int32_t> delta_;
};

} // namespace neuroncore::schedule

#endif // NEURON_LIB_SCHEDULE_ELIMINATION_H

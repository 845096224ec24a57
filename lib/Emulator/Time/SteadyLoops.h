// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exact skip-ahead over steady loops. At every taken back edge of a stream the simulator's state is taken relative to
// the current time. When three such states of one back edge are equal and equally far apart, the loop is periodic:
// clocks, counters and semaphores advance by constants. The future is then the same as the last period as long as
//   * every branch compares the same way: the difference of its operands moves by a constant per period, which bounds
//     how often it keeps its sign;
//   * every wait keeps its distance to the semaphore's value, or was satisfied in time and moves further away;
//   * arithmetic that is not linear, sizes of transfers and the number of skipped inner iterations do not change;
//   * no value came from the control trace.
// Registers change by linear arithmetic only, so the numbers of the last two periods decide all of this. Skipping
// advances everything by a multiple of the period and simulates the rest.

#ifndef NEURON_LIB_EMULATOR_TIME_STEADYLOOPS_H
#define NEURON_LIB_EMULATOR_TIME_STEADYLOOPS_H

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "lib/Emulator/Time/Simulator.h"

namespace neuroncore::emulator {

class SteadyLoops {
public:
  explicit SteadyLoops(Simulator &simulator) : sim_(simulator) {}

  /// A back edge of `stream` at branch `pc` was taken at `timePs`.
  void backEdge(int stream, uint32_t pc, int64_t timePs);
  /// The loop ended.
  void left(int stream, uint32_t pc) { trackers_.erase({stream, pc}); }

private:
  /// After so many iterations without a period a loop is simulated in full.
  static constexpr int kMaxSnapshots = 256;

  struct Snapshot {
    int64_t timePs = 0;
    uint64_t hash = 0;
    std::vector<int64_t> state;
    std::array<std::array<int32_t, isa::kNumRegisters>, isa::kNumStreams> registers;
    std::array<int32_t, isa::kNumSemaphores> semaphores;
    TimingSums sums;
    size_t segment = 0;
    size_t path = 0;
    int64_t events = 0;
  };
  struct Tracker {
    std::vector<Snapshot> snapshots;
    bool exhausted = false;
  };

  Snapshot take(int64_t timePs) const;
  /// How many periods may be skipped after `last`, given the two before; 0 if the conditions do not hold.
  int64_t periods(const Snapshot &first, const Snapshot &middle, const Snapshot &last) const;
  uint32_t runsBetween(const Snapshot &middle, const Snapshot &last) const;
  void skip(const Snapshot &middle, const Snapshot &last, int64_t n);
  void trim();

  Simulator &sim_;
  std::map<std::pair<int, uint32_t>, Tracker> trackers_;
};

} // namespace neuroncore::emulator

#endif // NEURON_LIB_EMULATOR_TIME_STEADYLOOPS_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is known to have happened before an instruction issues, proven from waits.
//
// Each executed instruction has a vector of knowledge. Its components:
//   issued[s]     the first so many instructions of stream s have passed their waits;
//   retired[s]    the first so many compute instructions of stream s are complete (one engine retires in order);
//   complete[d]   the first so many transfers of semaphore-and-stream d are complete.
// Knowledge is inherited from the instruction before in the stream, and gained by waits. A wait S >= v proves update u
// if the updates that may have happened without u add up to less than v. Updates that are known to come after u, or
// after this very wait, do not count. Knowledge of later instructions enters there, so the whole is a least fixpoint,
// started from nothing. A transfer is sixteen updates: without it being complete, fifteen of them may have happened.
//
// A wait on a semaphore that was cleared proves nothing before it is known, from anything else, to come after the
// clear.
//
// Two more facts: S >= v proves that some update so late in stream order was *issued* that all before it do not reach
// v; and "the waits of x have been passed" is carried apart from "x is complete". Both are needed to accept correct
// programs.

#ifndef NEURON_LIB_EMULATOR_CHECK_ORDERING_H
#define NEURON_LIB_EMULATOR_CHECK_ORDERING_H

#include <array>
#include <cstdint>
#include <vector>

#include "lib/Emulator/Sequencer.h"

namespace neuroncore::emulator {

/// One executed instruction that can wait, update or touch memory.
struct Executed {
  enum class Kind : uint8_t {
    Compute,   // retires in order
    Nop,       // its update follows the compute before it
    Sequencer, // done when issued
    Transfer,
  };
  Kind kind = Kind::Sequencer;
  uint8_t stream = 0;
  bool clears = false; // semaphore_range_clear
  uint32_t pc = 0;
  /// Position in its stream, from 1; compute: number among the stream's compute, else how many were before.
  int32_t position = 0;
  int32_t computeNumber = 0;
  /// Component and number of a transfer with a completion semaphore; -1 without.
  int32_t transferComponent = -1;
  int32_t transferNumber = 0;
  int32_t semaphore = -1; // of its update
  int32_t amount = 0;     // of one update; not additive: 0
  uint32_t firstWait = 0;
  uint8_t numWaits = 0;
};

struct ExecutedWait {
  int32_t semaphore;
  int32_t value;
  /// Equality, or on a semaphore with other updates than additions: proves nothing.
  bool provesNothing;
  /// Which use of the semaphore (between clears).
  int32_t epoch;
};

class Ordering {
public:
  /// `order`: all instructions in an order in which they can execute. `firstValues`: semaphores at the start.
  Ordering(std::vector<Executed> order, std::vector<ExecutedWait> waits, int numTransferComponents,
           const std::array<int32_t, isa::kNumSemaphores> &firstValues);
  void solve();

  const std::vector<Executed> &order() const { return order_; }
  /// Whether instruction `a` (index in order()) is complete before `b` starts, in every execution.
  bool isBefore(uint32_t a, uint32_t b) const;

  struct Reuse {
    uint32_t other; // the update or wait that may be outstanding
    uint32_t clear;
    int32_t semaphore;
  };
  /// Clears that are not ordered after the earlier and before the later use of their semaphore.
  std::vector<Reuse> unsafeClears() const;

private:
  static constexpr int kIssued = 0;
  static constexpr int kRetired = isa::kNumStreams;
  static constexpr int kTransfers = 2 * isa::kNumStreams;

  /// Updates of one semaphore in one epoch by one stream, in stream order.
  struct Updates {
    int stream = 0;
    std::vector<uint32_t> by;    // index in order_
    std::vector<int64_t> before; // sum of the amounts before each; one more at the end
    bool retireOnly = true;
  };
  struct Epoch {
    int32_t base = 0; // value at its start
    int32_t clearedBy = -1;
    std::vector<Updates> streams;
    std::vector<uint32_t> waiters;
  };

  const int32_t *known(uint32_t x) const { return knowledge_.data() + size_t(x) * components_; }
  int32_t *known(uint32_t x) { return knowledge_.data() + size_t(x) * components_; }
  static bool raise(int32_t &value, int32_t to) {
    if (to <= value)
      return false;
    value = to;
    return true;
  }
  bool join(int32_t *into, const int32_t *from) const;
  int64_t total(const Executed &update) const { return int64_t(update.amount) * parts(update); }
  static int parts(const Executed &update) { return update.kind == Executed::Kind::Transfer ? kDmaParts : 1; }
  bool knowsCompletion(const int32_t *knowledge, const Executed &update) const;
  bool gainFrom(uint32_t waiter, const ExecutedWait &wait, int32_t *knowledge) const;
  size_t firstAfterWait(const Updates &updates, const Executed &waiter) const;
  bool gainCompletion(const Updates &updates, size_t k, int32_t *knowledge) const;
  bool pass();

  std::vector<Executed> order_;
  std::vector<ExecutedWait> waits_;
  int components_;
  std::vector<int32_t> knowledge_;
  std::vector<int32_t> previous_; // in the stream; -1
  std::array<std::vector<Epoch>, isa::kNumSemaphores> epochs_;
};

} // namespace neuroncore::emulator

#endif // NEURON_LIB_EMULATOR_CHECK_ORDERING_H

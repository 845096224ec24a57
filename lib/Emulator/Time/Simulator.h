// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The time observer's machine: ten actors (five sequencers, and the data paths they feed) over shared resources. The
// actor with the earliest possible next action always goes first. That is exact: a blocked actor can only be freed by
// an action that has not happened yet, whose effects lie later than the current minimum.

#ifndef NEURON_LIB_EMULATOR_TIME_SIMULATOR_H
#define NEURON_LIB_EMULATOR_TIME_SIMULATOR_H

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "lib/Emulator/Program.h"
#include "lib/Emulator/Sequencer.h"
#include "neuron/Emulator/Timing.h"

namespace neuroncore::emulator {

inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

/// The future of a semaphore: changes in time order, on top of the value that all the past adds up to.
class SemaphoreLog {
public:
  struct Change {
    int64_t timePs;
    int32_t amount; // added, or the new value
    bool isWrite;
    int64_t source; // position of the event that made it
  };

  void add(int64_t timePs, int32_t amount, bool isWrite, int64_t source = -1);
  /// Earliest time >= `from` at which the wait holds, as far as is known; kNever if not.
  int64_t satisfiedAt(const ResolvedWait &wait, int64_t from) const;
  /// Changes up to `now` become part of the value.
  void settle(int64_t now);
  int32_t value() const { return value_; }
  int32_t finalValue() const;
  const std::vector<Change> &pending() const { return pending_; }
  /// Position of the event whose change came at `timePs`; -1 when there is none.
  int64_t sourceAt(int64_t timePs) const;
  /// Moves everything by `timePs`, all absolute values by `amount` and all sources by `events`.
  void shift(int64_t timePs, int32_t amount, int64_t events);

private:
  int32_t value_ = 0;
  std::vector<Change> pending_;
  /// The latest change that became part of the value.
  int64_t settledPs_ = -1;
  int64_t settledSource_ = -1;
};

/// Something the path of the simulation depended on, in the order it happened. Two periods of a steady loop must agree
/// in these; SteadyLoops.h says how.
struct PathStep {
  enum class Kind : uint8_t {
    Compare,  // a branch: value = left - right
    Wait,     // value = threshold - final value of the semaphore; detail = semaphore
    Constant, // value must not change (operand of non-linear arithmetic, size of a transfer)
    Recorded, // a value from the control trace: cannot be extrapolated
    Skipped,  // an inner loop was skipped `value` times
  };
  Kind kind;
  uint8_t stream;
  isa::AluOp op = isa::AluOp::Bypass; // Compare
  bool flag = false;                  // Compare: taken; Wait: it held up the stream, or is an equality
  bool mustNotChange = false;         // the step is part of a skipped inner loop
  uint32_t pc;
  int32_t detail = 0;
  int64_t value;
};

/// Everything that is summed up over a run.
struct TimingSums {
  std::array<EngineTiming, isa::kNumStreams> engines;
  std::array<int64_t, isa::kMaxDmaEngines> dmaBusyPs = {};
  uint64_t transfers = 0;
  int64_t dmaBytes = 0, hbmReadBytes = 0, hbmWriteBytes = 0;
  uint64_t tableLoads = 0;
  double flops = 0, transposeFlops = 0;

  /// this += n * (later - earlier)
  void extrapolate(const TimingSums &earlier, const TimingSums &later, uint64_t n);
};

class SteadyLoops;

class Simulator {
public:
  Simulator(const LoadedProgram &program, const ControlTrace &trace, const TimingOptions &options);
  ~Simulator();
  Expected<TimingResult> run();

private:
  friend class SteadyLoops;

  /// Instructions between a sequencer and its data path. Its depth on the hardware is not public (inferred).
  static constexpr size_t kQueueDepth = 16;

  /// Why something could not happen earlier: position of an event, or -1.
  struct Cause {
    TimelineEvent::Reason reason = TimelineEvent::Reason::Start;
    int64_t event = -1;
  };
  struct Pending {
    uint32_t pc = 0;
    int64_t issuedPs = 0;
    int64_t waitedPs = 0;
    int32_t semaphore = -1; // of the update, registers resolved
    uint32_t run = 0;
    Cause cause;
  };
  struct CachedCost {
    bool valid = false;
    isa::PeState pe;
    isa::ComputeCost cost;
  };
  struct Stream {
    SequencerState state;
    int64_t clockPs = 0;    // the sequencer is free
    int64_t slotFreePs = 0; // the queue has had room since
    /// When the next instruction can issue, and when its stream was ready for it.
    int64_t nextPs = 0;
    std::vector<Pending> queue; // oldest first
    int64_t enginePs = 0;       // the data path (tensor engine: the array) is free
    int64_t loaderPs = 0;       // the weight loader is free
    int64_t lastStartPs = 0;
    int64_t lastVisiblePs = 0;
    /// Positions of the latest events: of the sequencer, the data path, the weight loader, the start that freed a
    /// place in the queue, and what holds the data path until enginePs (GpSimd: also the trigger of a transfer whose
    /// descriptors it makes).
    int64_t sequencerEvent = -1, dataEvent = -1, loaderEvent = -1, slotEvent = -1, engineEvent = -1;
    isa::PeState pe;
    size_t traceIndex = 0;
    std::vector<CachedCost> costs;
  };

  void updateNext(int stream);
  int64_t engineStart(int stream, isa::ComputeCost &cost);
  bool stepSequencer(int stream);
  void stepEngine(int stream, int64_t startPs, const isa::ComputeCost &cost);
  void triggerDma(int stream, const isa::Instruction &instruction, int32_t semaphore, int64_t timePs, int64_t waitedPs,
                  Cause cause);
  bool control(int stream, const Step &step, int32_t semaphore, int64_t timePs, int64_t waitedPs, Cause cause);
  /// `source`: position of the event that makes the update.
  void post(int32_t semaphore, const isa::Update &update, int64_t timePs, int64_t source, int times = 1,
            bool isDma = false);
  Cause sequencerCause(int stream, const Step &step, int64_t timePs, int64_t waitedPs) const;
  Cause engineCause(int stream, const Pending &pending, const isa::ComputeCost &cost, int64_t startPs) const;
  /// Records what a sequencer did itself; returns its position.
  int64_t recordSequencer(int stream, uint32_t pc, uint32_t run, int64_t startPs, int64_t endPs, int64_t waitedPs,
                          Cause cause);
  /// Checks the semaphore of an update; -1 when there is none.
  bool resolveUpdate(int stream, const isa::Instruction &instruction, int32_t &semaphore);
  /// Instructions that go to the data path: compute, and NOPs whose update follows it.
  static bool isQueued(const Step &step) {
    return step.kind == Step::Kind::Tile ||
           (step.kind == Step::Kind::Control && step.hasUpdate && step.instruction->opcode == isa::Opcode::Nop);
  }
  void noteWaits(int stream, const isa::Instruction &instruction, int64_t readyPs);
  bool fail(int stream, std::string message);
  const isa::ComputeCost &costOf(int stream, uint32_t pc);
  /// Returns the event's position in the order of issue, -1 without a timeline.
  int64_t record(TimelineEvent event, Cause cause);
  /// What a stream takes part in now, in a program of several runs.
  uint32_t runOf(const SequencerState &state) const {
    return program_.neff->runs.empty() ? 0 : uint32_t(state.registers[isa::kRunRegister]);
  }
  void openSegment();
  void note(PathStep step) {
    if (notesPath_)
      path_.push_back(step);
  }
  TimingResult finish();

  const LoadedProgram::Impl &program_;
  const target::MachineModel &model_;
  const ControlTrace &trace_;
  const TimingOptions &options_;
  std::array<Stream, isa::kNumStreams> streams_;
  std::array<SemaphoreLog, isa::kNumSemaphores> semaphores_;
  std::array<bool, isa::kNumSemaphores> touched_ = {};
  std::array<int64_t, 32> resourcePs_ = {};
  std::array<int64_t, isa::kMaxDmaEngines> dmaPs_ = {};
  std::array<int64_t, 256> queuePs_ = {};
  isa::ActivationSet tableSet_;
  int64_t hopPs_; // from an update to the streams that wait
  int64_t nowPs_ = 0;
  int64_t endPs_ = 0;
  TimingSums sums_;
  Timeline timeline_;
  /// Events issued so far, with those of skipped iterations.
  int64_t events_ = 0;
  std::array<int64_t, 32> resourceEvent_;
  std::array<int64_t, isa::kMaxDmaEngines> dmaEvent_;
  std::array<int64_t, 256> queueEvent_;
  uint64_t steps_ = 0;
  bool notesPath_ = false;
  std::vector<PathStep> path_;
  std::unique_ptr<SteadyLoops> loops_;
  Status error_;
};

} // namespace neuroncore::emulator

#endif // NEURON_LIB_EMULATOR_TIME_SIMULATOR_H

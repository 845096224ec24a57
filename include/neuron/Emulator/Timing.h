// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The time observer: when each instruction of a program would run on the modelled machine. Times are integer
// picoseconds, computed from the executed streams and the machine model (isa::computeCost, isa::dmaCost) and nothing
// else; docs/MachineModel.md says which constants are documented and which inferred. Contention between cores is not
// modelled.

#ifndef NEURON_EMULATOR_TIMING_H
#define NEURON_EMULATOR_TIMING_H

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "neuron/Emulator/Emulator.h"
#include "neuron/Isa/Cost.h"

namespace neuroncore::emulator {

/// One interval of a timeline.
struct TimelineEvent {
  enum class Kind : uint8_t {
    Instruction, // while it occupies its engine; instructions of the sequencer are not recorded
    Transfer,    // one DMA engine's share of a transfer, first to last byte
    TableLoad,   // the scalar engine loads activation tables
    Sequencer,   // a control instruction or the trigger of a transfer; only with recordCauses
  };
  /// What an event had to wait for last, so that it could not start earlier.
  enum class Reason : uint8_t {
    Start,     // nothing
    Order,     // the instruction before it in its stream
    Engine,    // its engine was busy
    Slot,      // the engine's queue of instructions was full
    Semaphore, // an update by another stream or transfer
    Resource,  // another engine held a port or bank
    Trigger,   // a transfer: its trigger
    Queue,     // a transfer: the one before it in its queue
    DmaEngine, // a transfer: its DMA engine was busy
  };
  Kind kind = Kind::Instruction;
  /// The stream that holds the instruction (index in isa::kStreamEngines).
  uint8_t stream = 0;
  /// Transfer: DMA engine and queue.
  uint8_t dmaEngine = 0;
  uint8_t queue = 0;
  uint32_t pc = 0;
  /// In a program of several runs: which one.
  uint32_t run = 0;
  int64_t startPs = 0;
  int64_t endPs = 0;
  /// How long the stream had stood at this instruction because of semaphores.
  int64_t waitPs = 0;
  int64_t bytes = 0; // Transfer
  Reason reason = Reason::Start;
  /// Transfer: how many events before this one its trigger is.
  uint8_t trigger = 0;
  /// How many events before this one, in the order of issue, the event is that `reason` speaks of; 0: none.
  uint32_t cause = 0;
};

/// A change of a semaphore.
struct SemaphoreEvent {
  int64_t timePs = 0;
  int32_t amount = 0; // added, or the new value
  uint8_t semaphore = 0;
  isa::UpdateOp op = isa::UpdateOp::None;
  bool isDma = false;
  /// How many events of its segment were issued before it.
  uint32_t after = 0;
  /// How many events before those the event is that made the update; 0: unknown.
  uint32_t source = 0;
};

/// Events with repetition: a segment is its events (or its parts, one after the other), `repeats` times, the k-th
/// shifted by k * periodPs and belonging to a run k * periodRuns later.
class Timeline {
public:
  struct Segment {
    std::vector<TimelineEvent> events;
    std::vector<SemaphoreEvent> updates; // with recordCauses
    std::vector<Segment> parts;
    uint64_t repeats = 1;
    int64_t periodPs = 0;
    uint32_t periodRuns = 0;

    bool empty() const { return events.empty() && updates.empty() && parts.empty(); }
  };
  std::vector<Segment> segments;

  uint64_t size() const;
  /// In the order in which the simulation issued the instructions; stops when visit returns false.
  void forEach(const std::function<bool(const TimelineEvent &)> &visit) const;
  /// With the position of the event that made it, in the order of forEach; -1: unknown.
  void forEachUpdate(const std::function<bool(const SemaphoreEvent &, int64_t source)> &visit) const;
  /// Sorted by start time; at most `maxEvents` (0: all), the first issued.
  std::vector<TimelineEvent> expand(uint64_t maxEvents = 0) const;
};

struct EngineTiming {
  uint64_t instructions = 0; // data path
  int64_t busyPs = 0;        // occupied by an instruction
  int64_t waitPs = 0;        // its stream stood at a semaphore
};

struct TimingResult {
  /// First instruction to last DMA completion.
  int64_t kernelPs = 0;
  std::array<EngineTiming, isa::kNumStreams> engines;
  std::array<int64_t, isa::kMaxDmaEngines> dmaBusyPs = {};
  uint64_t transfers = 0;
  int64_t dmaBytes = 0;
  int64_t hbmReadBytes = 0;
  int64_t hbmWriteBytes = 0;
  uint64_t tableLoads = 0;
  int64_t tableLoadPs = 0;
  /// 2 * multiply-adds of all matmuls, transposes apart.
  double flops = 0;
  double transposeFlops = 0;
  /// The table set that the scalar engine is left with.
  isa::ActivationSet finalTableSet = isa::ActivationSet::Any;
  /// What was busy for the longest part: an engine's name, or "dma".
  std::string limiter;
  Timeline timeline;
  /// Instructions stepped through; those in skipped loop iterations are in `instructions` of the engines but not here.
  uint64_t simulatedSteps = 0;
};

/// How much faster parts of the machine are than the model says (what-if).
struct Speedup {
  std::array<double, isa::kNumStreams> engines = {1, 1, 1, 1, 1};
  /// Bytes by time of DMA engines and queues.
  double dmaRate = 1;
  /// From trigger to first byte, and from last byte to completion.
  double dmaLatency = 1;
  /// From an update to the stream that waits for it.
  double semaphores = 1;
};

struct TimingOptions {
  /// The table set loaded at the start; Any: none (a cold start).
  isa::ActivationSet initialTableSet = isa::ActivationSet::Any;
  bool recordTimeline = true;
  /// Also record instructions of the sequencers, why each event started when it did, and changes of semaphores.
  bool recordCauses = false;
  /// Replace repeated loop iterations by arithmetic; the result is the same.
  bool skipSteadyLoops = true;
  /// Constants other than the program's own (what-if); null: those it was loaded with.
  const target::MachineModel *model = nullptr;
  Speedup speedup;
  /// Give up with an error after so many steps (0: no limit).
  uint64_t maxSteps = 0;
};

/// `trace` is that of an execution when the program's path depends on data, and empty otherwise.
Expected<TimingResult> simulateTiming(const LoadedProgram &program, const ControlTrace &trace,
                                      const TimingOptions &options = {});

/// Results by (control trace, initial table set) of one program. Thread-safe.
class TimingCache {
public:
  explicit TimingCache(std::shared_ptr<const LoadedProgram> program);
  ~TimingCache();
  Expected<std::shared_ptr<const TimingResult>> get(const ControlTrace &trace, isa::ActivationSet initialTableSet);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// JSON text with the numbers above and percentages.
std::string summarise(const TimingResult &result);
/// Chrome trace format (one process, one thread per engine, DMA engine and queue); times in us.
std::string chromeTrace(const TimingResult &result, const neff::Neff &neff, uint64_t maxEvents = 0);

} // namespace neuroncore::emulator

#endif // NEURON_EMULATOR_TIMING_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs one after the other, with a barrier between two.
//
// The barrier behind run r, with the unit's semaphores 0 .. n - 1 and one more, G, that counts runs and is cleared by
// nothing:
//
//   sync                                       every other stream
//     wait for the final values of the unit      wait G >= r63 + 1
//     clear semaphores 0 .. n - 1                r63 += 1
//     G += 1
//     r63 += 1
//
// Why this is right:
// * When sync has passed its waits, nothing of run r is left (Unit.h). Each wait of a stream stands on or in front of a
//   compute instruction or a transfer of its stream, whose count is final, so all waits have been passed and the clear
//   hides no value from anyone. All updates are made, so it loses none.
// * What follows in another stream begins behind its wait for G, and G reaches r + 1 only by the increment behind the
//   clear. So no update and no wait of run r + 1 is before the clear, and each unit starts from zero, as it was
//   synchronised.
// * Sync itself goes on only behind its waits. Its clear is done when it issues, before everything that follows.
// * G never falls and only sync raises it, so a stream that is late finds it satisfied: nothing can deadlock that does
//   not deadlock alone.
// A stream that has nothing in some runs passes their barriers in one: wait G >= r63 + k, r63 += k.

#include "neuron/Schedule/Linking.h"

#include <algorithm>

#include "FlatProgram.h"
#include "Unit.h"
#include "neuron/Support/Text.h"

namespace neuroncore::schedule {

namespace {

struct Unit {
  bool isUsed = false;
  int32_t numSemaphores = 0;
  std::vector<isa::Wait> drain;
  /// Without the return at the end.
  isa::Program streams;
};

class StreamLinker {
public:
  StreamLinker(const std::vector<Unit> &units, std::span<const Step> steps, int64_t numRuns, int32_t gate, int index,
               isa::Stream &out)
      : units_(units), steps_(steps), numRuns_(numRuns), gate_(gate), index_(index), out_(out),
        isCalled_(units.size(), false), entries_(units.size(), 0) {}

  void run() {
    if (!takesPart())
      return;
    chooseCalls();
    int64_t first = 0;
    for (const Step &step : steps_) {
      if (step.runs > 0)
        writeStep(step, first);
      first += step.runs;
    }
    writeControl(isa::Opcode::Return);
    for (size_t unit = 0; unit < units_.size(); ++unit)
      if (isCalled_[unit])
        writeCalledUnit(unit);
    for (size_t call : calls_)
      out_[call].target = entries_[out_[call].target];
  }

  int32_t numCalledUnits() const { return int32_t(std::count(isCalled_.begin(), isCalled_.end(), true)); }

private:
  bool isSync() const { return index_ == kSyncStream; }
  const isa::Stream &body(size_t unit) const { return units_[unit].streams[index_]; }
  /// Whether the stream does something in each run of the unit; sync makes the barriers.
  bool isActive(size_t unit) const { return isSync() || !body(unit).empty(); }

  bool takesPart() const {
    return std::any_of(steps_.begin(), steps_.end(), [&](const Step &step) {
      return step.runs > 0 && (!body(size_t(step.unit)).empty() || (isSync() && numRuns_ > 1));
    });
  }

  /// Instructions of a barrier.
  size_t barrierSize(size_t unit) const {
    if (!isSync())
      return 2;
    size_t waits = units_[unit].drain.size();
    return (waits + isa::kMaxWaits - 1) / isa::kMaxWaits + 3;
  }

  /// A unit that several steps run is called where that is smaller than a copy in each.
  void chooseCalls() {
    std::vector<size_t> uses(units_.size(), 0);
    for (const Step &step : steps_)
      uses[size_t(step.unit)] += step.runs > 0;
    for (size_t unit = 0; unit < units_.size(); ++unit) {
      size_t size = body(unit).size() + barrierSize(unit);
      isCalled_[unit] = isActive(unit) && uses[unit] * size > uses[unit] + size + 1;
    }
  }

  void writeStep(const Step &step, int64_t first) {
    size_t unit = size_t(step.unit);
    if (!isActive(unit)) {
      pendingRuns_ += step.runs;
      return;
    }
    passBarriers();
    int64_t end = first + step.runs;
    bool isLast = end == numRuns_;
    uint32_t top = uint32_t(out_.size());
    if (isCalled_[unit]) {
      // The last run of the program returns without a barrier and without moving on to a next run: it has a call of its
      // own.
      int64_t inLoop = step.runs - (isLast && step.runs > 1);
      writeCall(unit);
      if (inLoop > 1)
        writeBranch(isa::AluOp::Less, first + inLoop, top);
      if (inLoop < step.runs)
        writeCall(unit);
      return;
    }
    append(body(unit));
    if (step.runs == 1) {
      if (isLast)
        return;
      if (isSync())
        writeBarrier(unit);
      else
        ++pendingRuns_;
      return;
    }
    size_t exit = out_.size();
    if (isLast)
      writeBranch(isa::AluOp::GreaterEqual, end - 1, 0);
    writeBarrier(unit);
    if (isLast) {
      writeControl(isa::Opcode::Branch).target = top;
      out_[exit].target = uint32_t(out_.size());
    } else {
      writeBranch(isa::AluOp::Less, end, top);
    }
  }

  void writeCalledUnit(size_t unit) {
    entries_[unit] = uint32_t(out_.size());
    append(body(unit));
    size_t exit = out_.size();
    bool endsProgram = lastUnit() == unit;
    if (endsProgram)
      writeBranch(isa::AluOp::GreaterEqual, numRuns_ - 1, 0);
    writeBarrier(unit);
    if (endsProgram)
      out_[exit].target = uint32_t(out_.size());
    writeControl(isa::Opcode::Return);
  }

  size_t lastUnit() const {
    auto last = std::find_if(steps_.rbegin(), steps_.rend(), [](const Step &step) { return step.runs > 0; });
    return size_t(last->unit);
  }

  void append(const isa::Stream &body) {
    uint32_t offset = uint32_t(out_.size());
    for (const isa::Instruction &instruction : body) {
      isa::Instruction &copy = out_.emplace_back(instruction);
      if (copy.opcode == isa::Opcode::Branch)
        copy.target += offset;
    }
  }

  void writeBarrier(size_t unit) {
    if (!isSync()) {
      pendingRuns_ = 1;
      passBarriers();
      return;
    }
    const std::vector<isa::Wait> &drain = units_[unit].drain;
    for (size_t at = 0; at < drain.size();) {
      isa::Instruction &nop = writeControl(isa::Opcode::Nop);
      while (at < drain.size() && nop.numWaits < isa::kMaxWaits)
        nop.waits[nop.numWaits++] = drain[at++];
    }
    isa::Instruction &clear = writeControl(isa::Opcode::SemaphoreRangeClear);
    clear.immediate = 0;
    clear.target = uint32_t(units_[unit].numSemaphores);
    isa::Instruction &open = writeControl(isa::Opcode::Nop);
    open.update.op = isa::UpdateOp::Increment;
    open.update.semaphore = uint8_t(gate_);
    writeNextRun(1);
  }

  void passBarriers() {
    if (pendingRuns_ == 0)
      return;
    isa::Instruction &nop = writeControl(isa::Opcode::Nop);
    nop.numWaits = 1;
    nop.waits[0].semaphore = uint8_t(gate_);
    nop.waits[0].valueRegister = isa::kRunRegister;
    nop.waits[0].immediate = int32_t(pendingRuns_);
    writeNextRun(pendingRuns_);
    pendingRuns_ = 0;
  }

  void writeNextRun(int64_t runs) {
    isa::Instruction &code = writeControl(isa::Opcode::RegisterAlu);
    code.op0 = isa::AluOp::Add;
    code.rd = isa::kRunRegister;
    code.rs = isa::kRunRegister;
    code.immediate = int32_t(runs);
  }

  /// On the number of the run.
  void writeBranch(isa::AluOp op, int64_t value, uint32_t target) {
    isa::Instruction &code = writeControl(isa::Opcode::Branch);
    code.op0 = op;
    code.rs = isa::kRunRegister;
    code.immediate = int32_t(value);
    code.target = target;
  }

  /// The target is the unit until all units have a place.
  void writeCall(size_t unit) {
    calls_.push_back(out_.size());
    writeControl(isa::Opcode::Call).target = uint32_t(unit);
  }

  isa::Instruction &writeControl(isa::Opcode opcode) {
    isa::Instruction &code = out_.emplace_back();
    code.opcode = opcode;
    return code;
  }

  const std::vector<Unit> &units_;
  std::span<const Step> steps_;
  int64_t numRuns_;
  int32_t gate_;
  int index_;
  isa::Stream &out_;
  std::vector<bool> isCalled_;
  std::vector<uint32_t> entries_; // of called units
  std::vector<size_t> calls_;     // places of calls
  int64_t pendingRuns_ = 0;       // barriers that the stream has not passed yet
};

void addReport(const ProjectionReport &unit, int32_t firstKernel, ProjectionReport &all) {
  for (int stream = 0; stream < isa::kNumStreams; ++stream) {
    const StreamReport &from = unit.streams[stream];
    StreamReport &to = all.streams[stream];
    to.maxLiveRegisters = std::max(to.maxLiveRegisters, from.maxLiveRegisters);
    to.fallback = std::max(to.fallback, from.fallback);
    for (RegisterUse use : from.registers) {
      use.kernel += firstKernel;
      to.registers.push_back(std::move(use));
    }
    to.numControl += from.numControl;
    to.numWaitNops += from.numWaitNops;
  }
}

} // namespace

Expected<isa::Program> link(std::span<StructuredProgram> units, std::span<const Step> steps,
                            const SynchronisationOptions &synchronisation, const ProjectionOptions &projection,
                            LinkReport *report) {
  LinkReport scratch;
  LinkReport &out = report ? *report : scratch;
  out = {};
  out.units.resize(units.size());
  std::vector<Unit> linked(units.size());
  for (const Step &step : steps) {
    if (step.unit < 0 || size_t(step.unit) >= units.size())
      return Error(ErrorKind::InvalidInput, cat("expected a unit below ", units.size(), " but got ", step.unit));
    if (step.runs < 0)
      return Error(ErrorKind::InvalidInput,
                   cat("expected at least 0 runs of unit ", step.unit, " but got ", step.runs));
    linked[size_t(step.unit)].isUsed |= step.runs > 0;
    out.numRuns += step.runs;
  }
  if (out.numRuns >= kCounterLimit)
    return Error(ErrorKind::Unsupported,
                 cat("expected less than ", kCounterLimit, " runs in a program but got ", out.numRuns));

  bool hasBarriers = out.numRuns > 1;
  SynchronisationOptions unitSynchronisation = synchronisation;
  if (hasBarriers)
    --unitSynchronisation.numSemaphores; // the one that counts runs
  int32_t numKernels = 0;
  for (size_t i = 0; i < units.size(); ++i) {
    if (!linked[i].isUsed)
      continue;
    SynchronisationReport &unitReport = out.units[i];
    if (Status status = synchroniseUnit(units[i], unitSynchronisation, &unitReport, &linked[i].drain); !status)
      return status.error();
    ProjectionOptions unitProjection = projection;
    if (hasBarriers || !units[i].parameters.empty())
      unitProjection.numRegisters = std::min(unitProjection.numRegisters, int32_t(isa::kRunRegister));
    ProjectionReport projected;
    Expected<isa::Program> streams = project(units[i], unitProjection, report ? &projected : nullptr);
    if (!streams)
      return streams.error();
    linked[i].streams = std::move(*streams);
    linked[i].numSemaphores = unitReport.numSemaphores;
    out.numSemaphores = std::max(out.numSemaphores, unitReport.numSemaphores);
    addReport(projected, numKernels, out.projection);
    numKernels += int32_t(units[i].kernels.size());
  }

  Expected<isa::Program> result{isa::Program()};
  if (!hasBarriers) {
    for (Unit &unit : linked)
      if (unit.isUsed)
        *result = std::move(unit.streams);
    return result;
  }
  for (Unit &unit : linked)
    for (isa::Stream &stream : unit.streams)
      if (!stream.empty())
        stream.pop_back();
  int32_t gate = out.numSemaphores++;
  for (int stream = 0; stream < isa::kNumStreams; ++stream) {
    StreamLinker linker(linked, steps, out.numRuns, gate, stream, (*result)[stream]);
    linker.run();
    out.numCalledUnits[stream] = linker.numCalledUnits();
  }
  return result;
}

} // namespace neuroncore::schedule

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

/// Runs of some units in a row, `repeats` times.
struct Round {
  std::vector<int32_t> units;
  int64_t repeats = 1;

  int64_t runs() const { return int64_t(units.size()) * repeats; }
};

/// Runs of one unit in a row are one round; then the shortest sequences of single runs that repeat are.
std::vector<Round> roundsOf(std::span<const Step> steps) {
  std::vector<Step> merged;
  for (const Step &step : steps) {
    if (step.runs == 0)
      continue;
    if (!merged.empty() && merged.back().unit == step.unit)
      merged.back().runs += step.runs;
    else
      merged.push_back(step);
  }
  // Layers rarely consist of more units; the search is then linear in the steps.
  constexpr size_t kMaxUnits = 16;
  std::vector<Round> rounds;
  size_t singlesEnd = 0; // behind the single runs that `at` is among
  for (size_t at = 0; at < merged.size();) {
    Round &round = rounds.emplace_back();
    round.units = {merged[at].unit};
    round.repeats = merged[at].runs;
    for (singlesEnd = std::max(at, singlesEnd); singlesEnd < merged.size() && merged[singlesEnd].runs == 1;)
      ++singlesEnd;
    size_t singles = singlesEnd - at;
    size_t covered = 1;
    for (size_t length = 2; length <= std::min(kMaxUnits, singles / 2); ++length) {
      size_t equal = 0;
      while (equal + length < singles && merged[at + equal].unit == merged[at + equal + length].unit)
        ++equal;
      size_t repeats = equal / length + 1;
      if (repeats < 2 || repeats * length <= covered)
        continue;
      covered = repeats * length;
      round.units.clear();
      for (size_t i = 0; i < length; ++i)
        round.units.push_back(merged[at + i].unit);
      round.repeats = int64_t(repeats);
    }
    at += covered;
  }
  return rounds;
}

class StreamLinker {
public:
  StreamLinker(const std::vector<Unit> &units, const std::vector<Round> &rounds, int64_t numRuns, int32_t gate,
               int index, isa::Stream &out)
      : units_(units), rounds_(rounds), numRuns_(numRuns), gate_(gate), index_(index), out_(out),
        isCalled_(units.size(), false), entries_(units.size(), 0) {}

  void run() {
    if (!takesPart())
      return;
    chooseCalls();
    int64_t first = 0;
    for (const Round &round : rounds_) {
      writeRound(round, first);
      first += round.runs();
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

  bool isActive(const Round &round) const {
    return std::any_of(round.units.begin(), round.units.end(), [&](int32_t unit) { return isActive(size_t(unit)); });
  }
  bool takesPart() const {
    return std::any_of(rounds_.begin(), rounds_.end(), [&](const Round &round) { return isActive(round); });
  }

  /// Instructions of a barrier.
  size_t barrierSize(size_t unit) const {
    if (!isSync())
      return 2;
    size_t waits = units_[unit].drain.size();
    return (waits + isa::kMaxWaits - 1) / isa::kMaxWaits + 3;
  }

  /// A unit that stands in several places is called where that is smaller than a copy in each.
  void chooseCalls() {
    std::vector<size_t> places(units_.size(), 0);
    for (const Round &round : rounds_)
      for (int32_t unit : round.units)
        ++places[size_t(unit)];
    for (size_t unit = 0; unit < units_.size(); ++unit) {
      size_t size = body(unit).size() + barrierSize(unit);
      isCalled_[unit] = isActive(unit) && places[unit] * size > places[unit] + size + 1;
    }
  }

  void writeRound(const Round &round, int64_t first) {
    if (!isActive(round)) {
      pendingRuns_ += round.runs();
      return;
    }
    int64_t end = first + round.runs();
    bool isLast = end == numRuns_;
    if (round.repeats == 1) {
      for (size_t i = 0; i < round.units.size(); ++i)
        writeRun(size_t(round.units[i]), isLast && i + 1 == round.units.size());
      return;
    }
    passBarriers();
    uint32_t top = uint32_t(out_.size());
    for (size_t i = 0; i + 1 < round.units.size(); ++i)
      writeRun(size_t(round.units[i]), false);
    size_t last = size_t(round.units.back());
    if (!isLast) {
      writeRun(last, false);
      passBarriers();
      writeBranch(isa::AluOp::Less, end, top);
      return;
    }
    // Behind the program's last run there is neither a barrier nor a next run.
    if (isActive(last) && isCalled_[last]) {
      passBarriers();
      if (round.units.size() == 1) {
        writeCall(last);
        if (round.repeats > 2)
          writeBranch(isa::AluOp::Less, end - 1, top);
        writeCall(last);
        return;
      }
      // Each repetition but the last one leaves a number below that of the last run.
      writeCall(last);
      writeBranch(isa::AluOp::Less, end - 1, top);
      return;
    }
    if (isActive(last)) {
      passBarriers();
      append(body(last));
    }
    pendingRuns_ += !isSync();
    size_t exit = out_.size();
    writeBranch(isa::AluOp::GreaterEqual, end - (isSync() ? 1 : pendingRuns_), 0);
    if (isSync())
      writeBarrier(last);
    else
      passBarriers();
    writeControl(isa::Opcode::Branch).target = top;
    out_[exit].target = uint32_t(out_.size());
  }

  void writeRun(size_t unit, bool isLast) {
    if (!isActive(unit)) {
      ++pendingRuns_;
      return;
    }
    passBarriers();
    if (isCalled_[unit]) {
      writeCall(unit);
      return;
    }
    append(body(unit));
    if (isLast)
      return;
    if (isSync())
      writeBarrier(unit);
    else
      ++pendingRuns_;
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

  size_t lastUnit() const { return size_t(rounds_.back().units.back()); }

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
  const std::vector<Round> &rounds_;
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
  std::vector<Round> rounds = roundsOf(steps);
  for (int stream = 0; stream < isa::kNumStreams; ++stream) {
    StreamLinker linker(linked, rounds, out.numRuns, gate, stream, (*result)[stream]);
    linker.run();
    out.numCalledUnits[stream] = linker.numCalledUnits();
  }
  return result;
}

} // namespace neuroncore::schedule

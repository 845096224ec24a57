// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver: counters, boundaries between kernels, dependences, elimination, and the results written into the program.

#include "neuron/Schedule/Synchronisation.h"

#include <utility>

#include "Dependences.h"
#include "Elimination.h"
#include "FlatProgram.h"
#include "Semaphores.h"
#include "Unit.h"

namespace neuroncore::schedule {

namespace {

class Synchroniser {
public:
  Synchroniser(StructuredProgram &program, const SynchronisationOptions &options, SynchronisationReport &report,
               std::vector<isa::Wait> *drain)
      : program_(program), options_(options), report_(report), drain_(drain) {}

  Status run() {
    Expected<FlatProgram> flat = FlatProgram::build(program_, FlatProgram::Stage::BeforeSynchronisation);
    if (!flat)
      return flat.error();
    flat_ = std::move(*flat);
    if (Status status = assignSemaphores(program_, flat_, options_, plan_, report_); !status)
      return status;
    if (Status status = setBoundaryCounts(); !status)
      return status;

    DependenceAnalysis dependences(program_, flat_, plan_.numCounters);
    Elimination elimination(flat_, options_.skipPasses);
    WaitTable waits;
    for (int32_t kernel = 0; kernel < numKernels(); ++kernel) {
      Kernel &out = program_.kernels[kernel];
      out.firstSemaphore = plan_.first[kernel];
      out.numDmaCounters = plan_.numCounters[kernel];
      out.entry.clear();
      out.exit.clear();
      // The kernel two before is still the one before, as seen from the last one.
      if (hasEntry(kernel))
        addOrderingEntry(kernel, elimination);
      elimination.enterKernel(plan_.numCounters[kernel]);
      if (hasEntry(kernel))
        addParticipantEntries(kernel, elimination);
      dependences.analyse(kernel, waits);
      if (options_.eliminate)
        elimination.walkBody(kernel, waits);
      else
        keepAll(waits.waits);
      writeBody(kernel, waits);
      if (hasExit(kernel))
        addExit(kernel, elimination);
    }
    if (drain_)
      writeDrain(elimination);
    report_.numInstructions = int64_t(flat_.sites.size());
    report_.numDmaSites = int64_t(flat_.dmaSites.size());
    report_.numPairs = dependences.numPairs();
    report_.numSemaphores = plan_.numSemaphores;
    return Status::success();
  }

private:
  int32_t numKernels() const { return int32_t(flat_.kernels.size()); }
  /// The first two kernels have nothing before that their dependences do not cover.
  bool hasEntry(int32_t kernel) const { return kernel >= 2; }
  /// Only the entry two kernels later asks for the exit ticks.
  bool hasExit(int32_t kernel) const { return kernel + 2 < numKernels(); }

  Status setBoundaryCounts() {
    return flat_.setBoundaryCounts([&](int32_t kernel, int stream) {
      bool entry = hasEntry(kernel) && stream == kSyncStream;
      bool exit = hasExit(kernel) && (flat_.kernels[kernel].streams >> stream & 1);
      return std::pair(int32_t(entry), int32_t(exit));
    });
  }

  static void keepAll(std::span<CounterWait> waits) {
    for (CounterWait &wait : waits) {
      wait.kept = true;
      wait.armNeeded = wait.armedAfterFirstPass;
    }
  }

  static Instruction makeControl(isa::Opcode opcode, int stream) {
    Instruction instruction;
    instruction.code.opcode = opcode;
    instruction.engine = isa::kStreamEngines[stream];
    return instruction;
  }

  static void setTick(Instruction &instruction, int stream) {
    instruction.code.update.op = isa::UpdateOp::Increment;
    instruction.code.update.semaphore = uint8_t(stream);
    instruction.code.update.value = 1;
  }

  /// Judges the waits of a boundary instruction and writes those that are kept.
  void finishBoundary(Instruction &instruction, int stream, std::span<CounterWait> waits, bool ticks,
                      int32_t ownCounters, uint8_t kernelsBack, Elimination &elimination) {
    if (options_.eliminate)
      elimination.visitBoundary(stream, waits, ticks);
    else
      keepAll(waits);
    if (ticks)
      setTick(instruction, stream);
    writeWaits(instruction, waits, ownCounters, kernelsBack);
  }

  /// The sync engine waits for everything of the kernel two before, clears the block that this kernel takes over from
  /// the one three before, and ticks.
  void addOrderingEntry(int32_t kernel, Elimination &elimination) {
    Kernel &out = program_.kernels[kernel];
    const FlatKernel &old = flat_.kernels[kernel - 2];
    boundaryWaits_.clear();
    for (int stream = 0; stream < isa::kNumStreams; ++stream)
      if (old.streams >> stream & 1)
        addFinalEngineWait(stream, old.end[stream]);
    addFinalTransferWaits(kernel - 2, kFirstDmaColumn + plan_.numCounters[kernel - 1]);
    bool clears = kernel >= kNumBlocks && plan_.numCounters[kernel - kNumBlocks] > 0;
    out.entry.push_back(makeControl(isa::Opcode::Nop, kSyncStream));
    finishBoundary(out.entry.back(), kSyncStream, boundaryWaits_, !clears, plan_.numCounters[kernel - 1], 2,
                   elimination);
    if (!clears)
      return;
    out.entry.push_back(makeControl(isa::Opcode::SemaphoreRangeClear, kSyncStream));
    out.entry.back().code.immediate = plan_.first[kernel];
    out.entry.back().code.target = uint32_t(plan_.numCounters[kernel - kNumBlocks]);
    out.entry.push_back(makeControl(isa::Opcode::Nop, kSyncStream));
    finishBoundary(out.entry.back(), kSyncStream, {}, true, 0, 0, elimination);
  }

  void addFinalEngineWait(int stream, int32_t count) {
    CounterWait &wait = boundaryWaits_.emplace_back();
    wait.column = stream;
    wait.immediate = count;
  }

  /// All transfers of a kernel, whose counters are the columns from `firstColumn` on.
  void addFinalTransferWaits(int32_t kernel, int32_t firstColumn) {
    const FlatKernel &range = flat_.kernels[kernel];
    for (int32_t counter = 0; counter < plan_.numCounters[kernel]; ++counter) {
      CounterWait &wait = boundaryWaits_.emplace_back();
      wait.column = firstColumn + counter;
      for (int32_t dma = range.firstDma + counter; dma < range.endDma; dma += plan_.numCounters[kernel])
        wait.immediate += flat_.executions(flat_.dmaSites[dma], 0);
    }
  }

  /// What the sync stream waits for behind the last kernel until nothing of the program is left (Unit.h). The entry of
  /// the last kernel has waited for the transfers of those before the last two.
  void writeDrain(Elimination &elimination) {
    drain_->clear();
    int32_t last = numKernels() - 1;
    if (last < 0)
      return;
    boundaryWaits_.clear();
    for (int stream = 0; stream < isa::kNumStreams; ++stream)
      if (flat_.kernels[last].end[stream] > 0)
        addFinalEngineWait(stream, flat_.kernels[last].end[stream]);
    int32_t ownEnd = kFirstDmaColumn + plan_.numCounters[last];
    addFinalTransferWaits(last, kFirstDmaColumn);
    if (last > 0)
      addFinalTransferWaits(last - 1, ownEnd);
    if (options_.eliminate)
      elimination.visitBoundary(kSyncStream, boundaryWaits_, false);
    else
      keepAll(boundaryWaits_);
    for (const CounterWait &wait : boundaryWaits_) {
      ++report_.numWaits;
      report_.numKeptWaits += wait.kept;
      if (!wait.kept)
        continue;
      isa::Wait &out = drain_->emplace_back();
      out.immediate = wait.immediate;
      if (wait.column < kFirstDmaColumn) {
        out.semaphore = uint8_t(wait.column);
        continue;
      }
      bool own = wait.column < ownEnd;
      out.semaphore = uint8_t(plan_.first[own ? last : last - 1] + wait.column - (own ? kFirstDmaColumn : ownEnd));
      out.immediate *= int32_t(kPartsPerTransfer);
    }
  }

  void addParticipantEntries(int32_t kernel, Elimination &elimination) {
    Kernel &out = program_.kernels[kernel];
    for (int stream = 0; stream < isa::kNumStreams; ++stream) {
      if (stream == kSyncStream || !(flat_.kernels[kernel].streams >> stream & 1))
        continue;
      CounterWait wait;
      wait.column = kSyncStream;
      wait.immediate = flat_.kernels[kernel].bodyStart[kSyncStream];
      out.entry.push_back(makeControl(isa::Opcode::Nop, stream));
      finishBoundary(out.entry.back(), stream, {&wait, 1}, false, 0, 0, elimination);
    }
  }

  void addExit(int32_t kernel, Elimination &elimination) {
    Kernel &out = program_.kernels[kernel];
    for (int stream = 0; stream < isa::kNumStreams; ++stream) {
      if (!(flat_.kernels[kernel].streams >> stream & 1))
        continue;
      out.exit.push_back(makeControl(isa::Opcode::Nop, stream));
      finishBoundary(out.exit.back(), stream, {}, true, 0, 0, elimination);
    }
  }

  void writeBody(int32_t kernel, WaitTable &waits) {
    const FlatKernel &range = flat_.kernels[kernel];
    for (int32_t i = range.firstSite; i < range.endSite; ++i) {
      const FlatSite &site = flat_.sites[i];
      // The tree belongs to our caller's mutable program; the flat view is shared with projection, which only reads.
      Instruction &instruction = const_cast<Instruction &>(*site.instruction);
      if (site.isDma()) {
        instruction.dmaSite = flat_.dmaSites[site.dma].counter;
        setTick(instruction, plan_.first[kernel] + instruction.dmaSite);
      } else {
        setTick(instruction, site.stream);
      }
      writeWaits(instruction, waits.of(i - range.firstSite), plan_.numCounters[kernel], 1);
    }
  }

  /// Columns behind the own counters belong to the kernel `kernelsBack` before.
  void writeWaits(Instruction &instruction, std::span<const CounterWait> waits, int32_t ownCounters,
                  uint8_t kernelsBack) {
    instruction.waits.clear();
    size_t kept = 0;
    for (const CounterWait &wait : waits)
      kept += wait.kept;
    report_.numWaits += int64_t(waits.size());
    report_.numKeptWaits += int64_t(kept);
    instruction.waits.reserve(kept);
    for (const CounterWait &wait : waits) {
      if (!wait.kept)
        continue;
      SymbolicWait &out = instruction.waits.emplace_back();
      if (wait.column < kFirstDmaColumn) {
        out.index = wait.column;
      } else {
        out.counter = SymbolicWait::Counter::DmaSite;
        out.index = wait.column - kFirstDmaColumn;
        if (out.index >= ownCounters) {
          out.index -= ownCounters;
          out.kernelsBack = kernelsBack;
        }
      }
      out.anchor = wait.anchor < 0 ? -1 : flat_.loops[wait.anchor].id;
      out.armedAfterFirstPass = wait.armedAfterFirstPass && wait.armNeeded;
      out.immediate = wait.immediate;
    }
  }

  StructuredProgram &program_;
  const SynchronisationOptions &options_;
  SynchronisationReport &report_;
  std::vector<isa::Wait> *drain_;
  FlatProgram flat_;
  SemaphorePlan plan_;
  std::vector<CounterWait> boundaryWaits_;
};

} // namespace

Status synchroniseUnit(StructuredProgram &program, const SynchronisationOptions &options, SynchronisationReport *report,
                       std::vector<isa::Wait> *drain) {
  SynchronisationReport scratch;
  SynchronisationReport &out = report ? *report : scratch;
  out = {};
  return Synchroniser(program, options, out, drain).run();
}

Status synchronise(StructuredProgram &program, const SynchronisationOptions &options, SynchronisationReport *report) {
  return synchroniseUnit(program, options, report, nullptr);
}

} // namespace neuroncore::schedule

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <map>
#include <set>

#include "lib/Emulator/Check/Access.h"
#include "lib/Emulator/Check/Memory.h"
#include "lib/Emulator/Check/Ordering.h"
#include "lib/Emulator/Program.h"
#include "neuron/Emulator/Check.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Support/Text.h"

namespace neuroncore::emulator {

using isa::Instruction;
using isa::kNumStreams;
using isa::MemorySpace;
using isa::Opcode;
using isa::UpdateOp;

namespace {

class Checker {
public:
  Checker(const LoadedProgram &program, const CheckOptions &options)
      : program_(program.impl()), neff_(*program_.neff), options_(options), table_(neff_), history_(neff_),
        written_(neff_, program_.layout) {}

  CheckResult run() {
    for (int s = 0; s < kNumStreams; ++s)
      states_[s].ended = program_.steps[s].empty();
    bool more = true;
    while (more && result_.hazards.size() < options_.maxHazards) {
      more = executeWindow();
      ++result_.windows;
      checkWindow();
    }
    return std::move(result_);
  }

private:
  struct Touch {
    uint32_t by;
    Access access;
  };

  // -------------------------------------------------------------------------------------------------------------------
  // Execution: streams until they block, without data
  // -------------------------------------------------------------------------------------------------------------------

  /// Fills order_, waits_ and touches_; false when the program is done or cannot go on.
  bool executeWindow() {
    order_.clear();
    waits_.clear();
    touches_.clear();
    windowValues_ = semaphores_;
    components_.clear();
    transferNumbers_.clear();
    counts_.fill({});
    while (true) {
      bool progress = false, done = true;
      for (int s = 0; s < kNumStreams; ++s) {
        SequencerState &state = states_[s];
        while (!state.ended) {
          if (order_.size() >= options_.windowInstructions)
            return true;
          if (result_.instructions >= options_.maxInstructions) {
            result_.isComplete = false;
            return false;
          }
          if (isBlocked(s))
            break;
          if (!execute(s))
            return false;
          progress = true;
        }
        done &= state.ended;
      }
      if (done)
        return false;
      if (!progress) {
        reportDeadlock();
        return false;
      }
    }
  }

  bool isBlocked(int s) {
    const SequencerState &state = states_[s];
    const Step &step = program_.steps[s][state.pc];
    for (int i = 0; i < step.numWaits; ++i) {
      const ResolvedWait wait = resolve(step.instruction->waits[i], state);
      if (isValidSemaphore(wait.semaphore) && !isSatisfied(wait, semaphores_[wait.semaphore]))
        return true;
    }
    return false;
  }

  bool fail(int s, Hazard::Kind kind, const std::string &text) {
    const uint32_t pc = states_[s].pc;
    Hazard hazard;
    hazard.kind = kind;
    hazard.first = hazard.second = {s, pc};
    hazard.message = cat(describeInstruction(neff_, s, pc), ": ", text);
    result_.hazards.push_back(std::move(hazard));
    return false;
  }

  bool execute(int s) {
    SequencerState &state = states_[s];
    const Step &step = program_.steps[s][state.pc];
    const Instruction &instruction = *step.instruction;
    const uint32_t length = uint32_t(program_.steps[s].size());
    ++result_.instructions;
    Executed executed;
    executed.stream = uint8_t(s);
    executed.pc = state.pc;
    executed.position = ++counts_[s].position;
    executed.kind = kindOf(step);
    if (executed.kind == Executed::Kind::Compute)
      ++counts_[s].compute;
    executed.computeNumber = counts_[s].compute;
    executed.firstWait = uint32_t(waits_.size());
    executed.numWaits = step.numWaits;
    for (int i = 0; i < step.numWaits; ++i) {
      const ResolvedWait wait = resolve(instruction.waits[i], state);
      if (!isValidSemaphore(wait.semaphore))
        return fail(s, Hazard::Kind::OutOfBounds, cat("semaphore ", wait.semaphore, " does not exist"));
      waits_.push_back({int32_t(wait.semaphore), wait.value, wait.equal || otherUpdates_[wait.semaphore], 0});
    }
    if (step.hasUpdate) {
      const int64_t semaphore = resolveSemaphore(instruction.update, state);
      if (!isValidSemaphore(semaphore))
        return fail(s, Hazard::Kind::OutOfBounds, cat("semaphore ", semaphore, " does not exist"));
      executed.semaphore = int32_t(semaphore);
      const bool isAddition =
          instruction.update.op == UpdateOp::Increment || instruction.update.op == UpdateOp::AddImmediate;
      if (isAddition)
        executed.amount = applyUpdate(instruction.update.op, 0, instruction.update.value);
      else
        otherUpdates_[semaphore] = true;
      const int times = executed.kind == Executed::Kind::Transfer ? kDmaParts : 1;
      for (int i = 0; i < times; ++i)
        semaphores_[semaphore] = applyUpdate(instruction.update.op, semaphores_[semaphore], instruction.update.value);
      if (executed.kind == Executed::Kind::Transfer && isAddition) {
        const int component = components_.insert({{int(semaphore), s}, int(components_.size())}).first->second;
        transferNumbers_.resize(components_.size(), 0);
        executed.transferComponent = component;
        executed.transferNumber = ++transferNumbers_[component];
      }
    }
    if (step.kind == Step::Kind::SemaphoreClear) {
      executed.clears = true;
      executed.semaphore = instruction.immediate;
      executed.amount = int32_t(instruction.target);
      for (uint32_t i = 0; i < instruction.target; ++i)
        semaphores_[instruction.immediate + i] = 0;
    }
    if (step.kind != Step::Kind::Control && step.kind != Step::Kind::SemaphoreClear) {
      const std::string error = table_.collect(s, state.pc, state, accesses_);
      if (!error.empty())
        return fail(s, Hazard::Kind::OutOfBounds, error);
      for (Access &access : accesses_)
        touches_.push_back({uint32_t(order_.size()), std::move(access)});
    }
    // Pure control flow neither waits nor is waited for.
    if (step.kind != Step::Kind::Control || step.numWaits != 0 || step.hasUpdate)
      order_.push_back(executed);
    else
      --counts_[s].position;
    if (step.kind == Step::Kind::RegisterLoad) {
      int32_t value = 0;
      const std::vector<int32_t> &loads = options_.trace.loads[s];
      if (step.isRecorded && traceIndex_[s] < loads.size())
        value = loads[traceIndex_[s]++];
      state.write(instruction.rd, value);
    }
    if (step.kind == Step::Kind::Control) {
      if (executeControl(instruction, state, length) != ControlResult::Ok)
        return fail(s, Hazard::Kind::OutOfBounds, cat("calls are nested deeper than ", kMaxCallDepth));
    } else {
      advance(state, length);
    }
    return true;
  }

  static Executed::Kind kindOf(const Step &step) {
    switch (step.kind) {
    case Step::Kind::Tile:
      return Executed::Kind::Compute;
    case Step::Kind::Dma:
      return Executed::Kind::Transfer;
    default:
      return step.instruction->opcode == Opcode::Nop ? Executed::Kind::Nop : Executed::Kind::Sequencer;
    }
  }

  void reportDeadlock() {
    for (int s = 0; s < kNumStreams; ++s) {
      if (states_[s].ended)
        continue;
      const Instruction &instruction = *program_.steps[s][states_[s].pc].instruction;
      for (int i = 0; i < instruction.numWaits; ++i) {
        const ResolvedWait wait = resolve(instruction.waits[i], states_[s]);
        if (isSatisfied(wait, semaphores_[wait.semaphore]))
          continue;
        fail(s, Hazard::Kind::Deadlock,
             cat("waits for semaphore ", wait.semaphore, wait.equal ? " == " : " >= ", wait.value, " but it stays at ",
                 semaphores_[wait.semaphore]));
        break;
      }
    }
  }

  // -------------------------------------------------------------------------------------------------------------------
  // Verdict
  // -------------------------------------------------------------------------------------------------------------------

  void checkWindow() {
    Ordering ordering(std::move(order_), std::move(waits_), int(components_.size()), windowValues_);
    ordering.solve();
    history_.clear();
    const std::vector<Executed> &order = ordering.order();
    size_t i = 0;
    while (i < touches_.size()) {
      // All reads of an instruction, then its writes: it does not race with itself.
      const uint32_t by = touches_[i].by;
      size_t end = i;
      while (end < touches_.size() && touches_[end].by == by)
        ++end;
      for (bool writes : {false, true})
        for (size_t k = i; k < end; ++k)
          if (touches_[k].access.isWrite == writes)
            touch(ordering, order[by], by, touches_[k].access);
      i = end;
      if (result_.hazards.size() >= options_.maxHazards)
        return;
    }
    for (const Ordering::Reuse &reuse : ordering.unsafeClears()) {
      const Executed &other = order[reuse.other], &clear = order[reuse.clear];
      add(Hazard::Kind::SemaphoreReuse, clear, other,
          cat("semaphore ", reuse.semaphore, " is cleared by ", name(clear),
              " but nothing orders that with its use by ", name(other)));
    }
  }

  void touch(const Ordering &ordering, const Executed &executed, uint32_t by, const Access &access) {
    const Instruction &instruction = neff_.program[executed.stream][executed.pc];
    const bool isMatmul = instruction.opcode == Opcode::Matmul;
    int partition = 0;
    if (!access.isWrite) {
      const int64_t byte = written_.firstUnwritten(access, partition);
      if (byte >= 0)
        add(Hazard::Kind::UnwrittenRead, executed, executed,
            cat(name(executed), " reads ", describe(access, neff_), " but byte ", byte,
                access.space == MemorySpace::Hbm ? std::string() : cat(" of partition ", partition),
                " was never written"));
      if (isMatmul && access.space == MemorySpace::Psum && byte < 0) {
        const int64_t foreign = written_.firstForeign(access, partition);
        if (foreign >= 0)
          add(Hazard::Kind::PsumAccumulate, executed, executed,
              cat("matmul_c6: ", name(executed), " accumulates onto ", describe(access, neff_), " but byte ", foreign,
                  " of partition ", partition, " was not written by a matmul"));
      }
    } else {
      if (access.space == MemorySpace::Hbm && neff_.variables[access.variable].kind == neff::Variable::Kind::Constant)
        add(Hazard::Kind::ConstantWrite, executed, executed,
            cat(name(executed), " writes ", describe(access, neff_), ", which is a constant"));
      written_.write(access, isMatmul);
    }
    history_.visit(access, [&](const AccessHistory::Entry &entry) {
      if (entry.by == by || ordering.isBefore(entry.by, by))
        return true;
      const Executed &earlier = ordering.order()[entry.by];
      add(Hazard::Kind::Race, earlier, executed,
          cat("race: ", name(executed), " ", access.isWrite ? "writes " : "reads ", describe(access, neff_), " while ",
              name(earlier), " may still be ", entry.access.isWrite ? "writing" : "reading", " ",
              describe(entry.access, neff_), "; no wait orders them"));
      return false;
    });
    history_.add(access, by, [&](const AccessHistory::Entry &entry) {
      // Later compute of one engine, and anything proven to come after, stands for the earlier access.
      return entry.by == by || ordering.isBefore(entry.by, by);
    });
  }

  std::string name(const Executed &executed) const { return describeInstruction(neff_, executed.stream, executed.pc); }

  void add(Hazard::Kind kind, const Executed &first, const Executed &second, std::string message) {
    if (result_.hazards.size() >= options_.maxHazards)
      return;
    const Hazard::Place a = {first.stream, first.pc}, b = {second.stream, second.pc};
    if (!reported_.insert({int(kind), a.stream, a.pc, b.stream, b.pc}).second)
      return;
    result_.hazards.push_back({kind, std::move(message), a, b});
  }

  const LoadedProgram::Impl &program_;
  const neff::Neff &neff_;
  const CheckOptions &options_;
  AccessTable table_;
  AccessHistory history_;
  WrittenMemory written_;
  CheckResult result_;

  std::array<SequencerState, kNumStreams> states_ = {};
  std::array<size_t, kNumStreams> traceIndex_ = {};
  std::array<int32_t, isa::kNumSemaphores> semaphores_ = {};
  /// Semaphores with updates other than additions: their waits prove nothing.
  std::array<bool, isa::kNumSemaphores> otherUpdates_ = {};

  // Of the window.
  std::vector<Executed> order_;
  std::vector<ExecutedWait> waits_;
  std::vector<Touch> touches_;
  std::vector<Access> accesses_;
  std::array<int32_t, isa::kNumSemaphores> windowValues_ = {};
  struct Counts {
    int32_t position = 0, compute = 0;
  };
  std::array<Counts, kNumStreams> counts_ = {};
  std::map<std::pair<int, int>, int> components_; // (semaphore, stream)
  std::vector<int32_t> transferNumbers_;
  std::set<std::tuple<int, int, uint32_t, int, uint32_t>> reported_;
};

} // namespace

Expected<CheckResult> checkProgram(const LoadedProgram &program, const CheckOptions &options) {
  if (options.windowInstructions == 0)
    return Error(ErrorKind::InvalidInput, "expected a window of at least one instruction");
  return Checker(program, options).run();
}

} // namespace neuroncore::emulator

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two events per dynamic instruction: its waits have been passed, and it is complete. The order between events is the
// least fixpoint of: stream order of passing; retirement in order on an engine; a count of an engine's semaphore proves
// its updates; a count of a DMA semaphore proves a transfer if the increments that can occur without it are too few. A
// wait on a semaphore that was cleared proves nothing before it is known to come after the clear.

#include "HappensBefore.h"

#include <algorithm>
#include <map>

#include "neuron/Isa/InstructionTable.h"
#include "neuron/Support/Text.h"

namespace neuroncore::schedule::test {

namespace {

struct Operation {
  const isa::Instruction *code;
  int stream;
  size_t position; // in the stream
  std::vector<std::pair<int, int32_t>> waits;
  Effects effects;
  bool isTransfer = false;
  bool isCompute = false; // retires in order
  std::vector<int> waitEpochs;
  int updateEpoch = 0;
};

class Checker {
public:
  Checker(const isa::Program &program, const Layout &layout, const CheckOptions &options)
      : program_(program), layout_(layout), options_(options) {}

  std::string run() {
    if (!execute())
      return "deadlock";
    solve();
    if (std::string text = checkClears(); !text.empty())
      return text;
    return checkMemory();
  }

private:
  using Word = uint64_t;

  /// One execution, each instruction complete at once. Its order is a topological order of everything guaranteed.
  bool execute() {
    std::array<Sequencer, isa::kNumStreams> sequencers;
    std::array<int32_t, isa::kNumSemaphores> semaphores = {};
    std::array<int, isa::kNumSemaphores> epochs = {};
    for (bool progress = true; progress;) {
      progress = false;
      for (int stream = 0; stream < isa::kNumStreams; ++stream)
        while (!sequencers[stream].ended(program_[stream])) {
          Sequencer &sequencer = sequencers[stream];
          const isa::Instruction &code = program_[stream][sequencer.pc];
          if (stepControl(code, sequencer)) {
            progress = true;
            continue;
          }
          Operation op{&code, stream, sequencer.pc, {}, {}, false, false, {}, 0};
          bool holds = true;
          for (int i = 0; i < code.numWaits; ++i) {
            int32_t value =
                int32_t(uint32_t(sequencer.registers[code.waits[i].valueRegister]) + uint32_t(code.waits[i].immediate));
            holds &= semaphores[code.waits[i].semaphore] - int64_t(value) >= 0;
            op.waits.push_back({code.waits[i].semaphore, value});
            op.waitEpochs.push_back(epochs[code.waits[i].semaphore]);
          }
          if (!holds)
            break;
          progress = true;
          isa::Group group = isa::instructionInfo(code.opcode).group;
          op.isTransfer = group == isa::Group::Dma;
          op.isCompute = group == isa::Group::Compute ||
                         (code.opcode == isa::Opcode::Nop && code.update.op != isa::UpdateOp::None);
          op.effects = effectsOf(code, layout_, sequencer.registers);
          if (code.opcode == isa::Opcode::SemaphoreRangeClear)
            for (uint32_t s = 0; s < code.target; ++s) {
              semaphores[code.immediate + s] = 0;
              clears_[{code.immediate + int(s), ++epochs[code.immediate + s]}] = operations_.size();
            }
          if (code.update.op != isa::UpdateOp::None) {
            op.updateEpoch = epochs[code.update.semaphore];
            semaphores[code.update.semaphore] += op.isTransfer ? 16 : 1;
            updates_[{code.update.semaphore, op.updateEpoch}].push_back(operations_.size());
          }
          operations_.push_back(std::move(op));
          ++sequencer.pc;
        }
    }
    for (int stream = 0; stream < isa::kNumStreams; ++stream)
      if (!sequencers[stream].ended(program_[stream]))
        return false;
    words_ = (2 * operations_.size() + 63) / 64;
    return true;
  }

  size_t passed(size_t op) const { return 2 * op; }
  size_t complete(size_t op) const { return 2 * op + 1; }
  bool before(size_t a, size_t b) const { return order_[b * words_ + a / 64] >> (a % 64) & 1; }
  void precede(std::vector<Word> &order, size_t a, size_t b) const {
    order[b * words_ + a / 64] |= Word(1) << (a % 64);
    for (size_t i = 0; i < words_; ++i)
      order[b * words_ + i] |= order[a * words_ + i];
  }

  void solve() {
    order_.assign(2 * operations_.size() * words_, 0);
    proven_.assign(operations_.size(), {});
    int round = 0;
    for (bool changed = true; changed && round < options_.maxRounds; ++round) {
      std::vector<Word> next = order_; // what is proven stays proven
      std::array<int64_t, isa::kNumStreams> latest, latestCompute;
      latest.fill(-1);
      latestCompute.fill(-1);
      for (size_t i = 0; i < operations_.size(); ++i) {
        const Operation &op = operations_[i];
        if (latest[op.stream] >= 0)
          precede(next, passed(latest[op.stream]), passed(i));
        for (size_t event : proven_[i])
          precede(next, event, passed(i)); // what came before it may have grown
        for (size_t w = 0; w < op.waits.size(); ++w)
          proveWait(next, i, w);
        precede(next, passed(i), complete(i));
        if (op.isCompute && latestCompute[op.stream] >= 0)
          precede(next, complete(latestCompute[op.stream]), complete(i));
        latest[op.stream] = int64_t(i);
        if (op.isCompute)
          latestCompute[op.stream] = int64_t(i);
      }
      changed = next != order_;
      order_ = std::move(next);
    }
  }

  bool knows(const std::vector<Word> &next, size_t waiter, size_t event) const {
    return next[passed(waiter) * words_ + event / 64] >> (event % 64) & 1;
  }

  void prove(std::vector<Word> &next, size_t event, size_t waiter) {
    proven_[waiter].push_back(event);
    precede(next, event, passed(waiter));
  }

  void proveWait(std::vector<Word> &next, size_t waiter, size_t w) {
    auto [semaphore, value] = operations_[waiter].waits[w];
    int epoch = operations_[waiter].waitEpochs[w];
    auto found = updates_.find({semaphore, epoch});
    if (value <= 0 || found == updates_.end())
      return;
    // Unless something else orders it behind the clear, what was counted before may have satisfied it.
    if (epoch > 0 && !knows(next, waiter, passed(clears_.at({semaphore, epoch}))))
      return;
    const std::vector<size_t> &updates = found->second;
    if (!operations_[updates[0]].isTransfer) {
      // Updates of one engine, in order.
      if (size_t(value) > updates.size())
        return; // never satisfied
      size_t update = updates[size_t(value) - 1];
      if (update < waiter && !knows(next, waiter, complete(update)))
        prove(next, complete(update), waiter);
      return;
    }
    for (size_t i = updates.size(); i-- > 0;) {
      size_t transfer = updates[i];
      if (transfer >= waiter || knows(next, waiter, complete(transfer)))
        continue;
      int64_t possible = 15;
      for (size_t other : updates)
        if (other != transfer && other != waiter && !before(complete(transfer), passed(other)) &&
            !before(passed(waiter), passed(other)))
          possible += 16;
      if (possible < value)
        prove(next, complete(transfer), waiter);
    }
    bool oneIssuer = std::all_of(updates.begin(), updates.end(), [&](size_t other) {
      return operations_[other].stream == operations_[updates[0]].stream;
    });
    if (oneIssuer)
      for (size_t k = 0; k < updates.size() && value > 16 * int64_t(k); ++k)
        if (updates[k] < waiter && !knows(next, waiter, passed(updates[k])))
          prove(next, passed(updates[k]), waiter);
  }

  std::string name(size_t op) const {
    const Operation &o = operations_[op];
    return cat(isa::toString(isa::kStreamEngines[o.stream]), "[", o.position, "] #", o.code->debugId);
  }

  /// Every use of a semaphore lies between the clears around it.
  std::string checkClears() const {
    for (size_t clear = 0; clear < operations_.size(); ++clear) {
      const isa::Instruction &code = *operations_[clear].code;
      if (code.opcode != isa::Opcode::SemaphoreRangeClear)
        continue;
      auto covers = [&](int s) { return s >= code.immediate && s < code.immediate + int(code.target); };
      for (size_t op = 0; op < operations_.size(); ++op) {
        const Operation &o = operations_[op];
        for (auto [semaphore, value] : o.waits)
          if (covers(semaphore) &&
              !(op < clear ? before(passed(op), passed(clear)) : before(passed(clear), passed(op))))
            return cat("wait of ", name(op), " is not ordered with the clear at ", name(clear));
        if (o.code->update.op != isa::UpdateOp::None && covers(o.code->update.semaphore) &&
            !(op < clear ? before(complete(op), passed(clear)) : before(passed(clear), passed(op))))
          return cat("update of ", name(op), " is not ordered with the clear at ", name(clear));
      }
    }
    return "";
  }

  bool ordered(size_t first, size_t second) const {
    const Operation &a = operations_[first], &b = operations_[second];
    if (first == second || (a.stream == b.stream && a.isCompute && b.isCompute))
      return true;
    return before(complete(first), passed(second));
  }

  std::string checkMemory() const {
    struct Cell {
      int64_t write = -1;
      std::vector<size_t> reads;
    };
    std::vector<Cell> cells(layout_.cells());
    for (size_t op = 0; op < operations_.size(); ++op) {
      for (int cell : operations_[op].effects.reads) {
        if (cells[cell].write >= 0 && !ordered(cells[cell].write, op))
          return cat("read of cell ", cell, " by ", name(op), " races with the write by ", name(cells[cell].write));
        cells[cell].reads.push_back(op);
      }
      for (int cell : operations_[op].effects.writes) {
        if (cells[cell].write >= 0 && !ordered(cells[cell].write, op))
          return cat("write of cell ", cell, " by ", name(op), " races with the write by ", name(cells[cell].write));
        for (size_t reader : cells[cell].reads)
          if (!ordered(reader, op))
            return cat("write of cell ", cell, " by ", name(op), " races with the read by ", name(reader));
        cells[cell].write = int64_t(op);
        cells[cell].reads.clear();
      }
    }
    return "";
  }

  const isa::Program &program_;
  const Layout &layout_;
  const CheckOptions &options_;
  std::vector<Operation> operations_;
  std::map<std::pair<int, int>, std::vector<size_t>> updates_; // (semaphore, epoch)
  std::map<std::pair<int, int>, size_t> clears_;               // what began the epoch
  size_t words_ = 0;
  std::vector<Word> order_;                 // per event, the events before it
  std::vector<std::vector<size_t>> proven_; // per operation, events its waits prove
};

} // namespace

std::string findHazard(const isa::Program &program, const Layout &layout, const CheckOptions &options) {
  return Checker(program, layout, options).run();
}

} // namespace neuroncore::schedule::test

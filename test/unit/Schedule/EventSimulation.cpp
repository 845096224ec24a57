// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both simulations place instructions one by one, each after everything it waits for.

#include "EventSimulation.h"

#include <algorithm>
#include <stdexcept>

#include "neuron/Isa/InstructionTable.h"

namespace neuroncore::schedule::test {

namespace {

/// The time lines of one engine: when its sequencer passed the last waits, when its data path and its queue are free.
struct Lane {
  double issue = 0;
  double engine = 0;
  double queue = 0;
};

struct Placed {
  double seen; // by other engines
  double end;
};

Placed place(const isa::Instruction &code, const Durations &durations, Lane &lane, double ready) {
  isa::Group group = isa::instructionInfo(code.opcode).group;
  auto found = durations.of.find(code.debugId);
  double duration = found == durations.of.end() ? 0 : found->second;
  lane.issue = std::max(lane.issue, ready);
  double end;
  if (group == isa::Group::Dma) {
    end = std::max(lane.issue + durations.dispatch, lane.queue) + duration;
    lane.queue = end;
    end += durations.completion;
  } else {
    end = std::max(lane.issue, lane.engine) + duration;
    lane.engine = end;
  }
  return {end + durations.hop, end};
}

} // namespace

double timeOfStreams(const isa::Program &program, const Durations &durations) {
  std::array<Sequencer, isa::kNumStreams> sequencers;
  std::array<Lane, isa::kNumStreams> lanes;
  std::array<std::vector<double>, isa::kNumSemaphores> updates; // times of single increments
  double last = 0;
  for (bool progress = true; progress;) {
    progress = false;
    for (int stream = 0; stream < isa::kNumStreams; ++stream)
      while (!sequencers[stream].ended(program[stream])) {
        Sequencer &sequencer = sequencers[stream];
        const isa::Instruction &code = program[stream][sequencer.pc];
        if (stepControl(code, sequencer)) {
          progress = true;
          continue;
        }
        double ready = 0;
        bool known = true;
        for (int i = 0; i < code.numWaits && known; ++i) {
          int64_t value = sequencer.registers[code.waits[i].valueRegister] + int64_t(code.waits[i].immediate);
          const std::vector<double> &times = updates[code.waits[i].semaphore];
          known = value <= int64_t(times.size());
          if (known && value > 0)
            ready = std::max(ready, times[size_t(value) - 1]);
        }
        if (!known)
          break;
        progress = true;
        ++sequencer.pc;
        if (code.opcode == isa::Opcode::SemaphoreRangeClear)
          for (uint32_t s = 0; s < code.target; ++s)
            updates[code.immediate + s].clear();
        Placed placed = place(code, durations, lanes[stream], ready);
        last = std::max(last, placed.end);
        if (code.update.op != isa::UpdateOp::None) {
          bool transfer = isa::instructionInfo(code.opcode).group == isa::Group::Dma;
          updates[code.update.semaphore].insert(updates[code.update.semaphore].end(), transfer ? 16 : 1, placed.seen);
        }
      }
  }
  for (int stream = 0; stream < isa::kNumStreams; ++stream)
    if (!sequencers[stream].ended(program[stream]))
      throw std::runtime_error("deadlock in the event simulation");
  return last;
}

namespace {

class ExactRun {
public:
  ExactRun(const Layout &layout, const Durations &durations)
      : layout_(layout), durations_(durations), cells_(layout.cells()) {}

  void run(const Sequence &sequence) {
    for (const Node &node : sequence) {
      if (const Instruction *instruction = std::get_if<Instruction>(&node)) {
        run(*instruction);
        continue;
      }
      const Loop &loop = *std::get<std::unique_ptr<Loop>>(node);
      for (int64_t i = 0; i < loop.trips; ++i) {
        iterations_[loop.id] = i;
        run(loop.copies[i % int64_t(loop.copies.size())]);
      }
    }
  }

  double last = 0;

private:
  struct Access {
    double seen = 0;
    int computeStream = -1; // ordered by the engine for compute of that stream
  };
  struct Cell {
    Access write;
    std::vector<Access> reads;
  };

  void run(const Instruction &instruction) {
    isa::Instruction code = instruction.code;
    for (int side = 0; side < 2; ++side)
      for (const HbmTerm &term : instruction.hbmTerms[side])
        code.hbm[side].byteOffset += iterations_.at(term.loop) * term.stride;
    Effects effects = effectsOf(code, layout_, {});
    int stream = isa::streamIndex(instruction.engine);
    bool transfer = isa::instructionInfo(code.opcode).group == isa::Group::Dma;
    double ready = 0;
    auto after = [&](const Access &access) {
      if (transfer || access.computeStream != stream)
        ready = std::max(ready, access.seen);
    };
    for (int cell : effects.reads)
      after(cells_[cell].write);
    for (int cell : effects.writes) {
      after(cells_[cell].write);
      for (const Access &read : cells_[cell].reads)
        after(read);
    }
    Placed placed = place(code, durations_, lanes_[stream], ready);
    last = std::max(last, placed.end);
    Access access{placed.seen, transfer ? -1 : stream};
    for (int cell : effects.reads)
      cells_[cell].reads.push_back(access);
    for (int cell : effects.writes)
      cells_[cell] = {access, {}};
  }

  const Layout &layout_;
  const Durations &durations_;
  std::vector<Cell> cells_;
  std::map<LoopId, int64_t> iterations_;
  std::array<Lane, isa::kNumStreams> lanes_;
};

} // namespace

double timeWithExactDependences(const StructuredProgram &program, const Layout &layout, const Durations &durations) {
  ExactRun run(layout, durations);
  for (const Kernel &kernel : program.kernels)
    run.run(kernel.body);
  return run.last;
}

} // namespace neuroncore::schedule::test

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The adversary: every run draws how eager each engine and each sequencer is, transfers are sixteen parts whose
// reading, writing and signalling are separate events in random order, and in part of the runs one DMA engine nearly
// stops.

#include "SymbolicMachine.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>

#include "neuron/Isa/InstructionTable.h"
#include "neuron/Support/Text.h"

namespace neuroncore::schedule::test {

Layout::Layout(const std::vector<VariableInfo> &variables) {
  cells_ = kPartitions * (kSbufWords + kPsumWords);
  std::map<int, std::pair<int, int64_t>> groups; // start, bytes
  for (const VariableInfo &variable : variables)
    if (variable.aliasGroup >= 0) {
      auto &group = groups[variable.aliasGroup];
      group.second = std::max(group.second, variable.bytes);
    }
  for (auto &[name, group] : groups) {
    group.first = cells_;
    cells_ += int(group.second / 4);
  }
  for (const VariableInfo &variable : variables) {
    if (variable.aliasGroup >= 0) {
      start_.push_back(groups[variable.aliasGroup].first);
      continue;
    }
    start_.push_back(cells_);
    cells_ += int(variable.bytes / 4);
  }
}

int Layout::onChip(isa::MemorySpace space, int partition, int64_t byte) const {
  int word = int(byte / 4);
  if (space == isa::MemorySpace::Sbuf)
    return partition * kSbufWords + word;
  return kPartitions * kSbufWords + partition * kPsumWords + word;
}

int Layout::hbm(uint16_t operand, int64_t byte, int32_t run) const {
  int variable = operand;
  if (operand & isa::kParameterFlag)
    variable = bindings.at(size_t(run)).at(operand & ~isa::kParameterFlag);
  int cell = start_.at(variable) + int(byte / 4);
  if (byte < 0 || cell >= cells_)
    throw std::out_of_range(cat("test program leaves variable ", variable, " at byte ", byte));
  return cell;
}

namespace {

void addTile(const isa::TilePattern &tile, const Layout &layout, std::vector<int> &out) {
  for (int p = 0; p < tile.numPartitions; ++p)
    for (int i0 = 0; i0 < tile.count[0]; ++i0)
      for (int i1 = 0; i1 < tile.count[1]; ++i1)
        for (int i2 = 0; i2 < tile.count[2]; ++i2)
          for (int i3 = 0; i3 < tile.count[3]; ++i3)
            out.push_back(layout.onChip(
                tile.space, tile.startPartition + p,
                tile.byteOffset + 4 * (i0 * tile.step[0] + i1 * tile.step[1] + i2 * tile.step[2] + i3 * tile.step[3])));
}

void addHbm(const isa::HbmPattern &hbm, const Layout &layout, const Registers &registers, std::vector<int> &out) {
  int64_t base = hbm.byteOffset;
  for (const isa::HbmPattern::Term &term : hbm.terms)
    base += int64_t(registers[term.reg]) * term.stride;
  for (uint32_t i3 = 0; i3 < hbm.count[3]; ++i3)
    for (uint32_t i4 = 0; i4 < hbm.count[4]; ++i4)
      out.push_back(layout.hbm(hbm.variable, base + i3 * hbm.step[3] + i4 * hbm.step[4], registers[isa::kRunRegister]));
}

} // namespace

Effects effectsOf(const isa::Instruction &code, const Layout &layout, const Registers &registers) {
  Effects effects;
  const isa::InstructionInfo &info = isa::instructionInfo(code.opcode);
  effects.elementwise = info.group == isa::Group::Dma;
  for (const isa::ScalarOperand &scalar : code.scalars)
    if (scalar.kind == isa::ScalarOperand::Kind::Vector)
      for (int p = 0; p < code.tiles[1].numPartitions; ++p)
        effects.reads.push_back(layout.onChip(scalar.space, code.tiles[1].startPartition + p, scalar.byteOffset));
  for (int slot = 0; slot < info.numTiles; ++slot) {
    const isa::TilePattern &tile = code.tiles[slot];
    if (!tile.present())
      continue;
    std::vector<int> cells;
    if (tile.space == isa::MemorySpace::Hbm)
      addHbm(code.hbm[slot], layout, registers, cells);
    else
      addTile(tile, layout, cells);
    if (info.tiles[slot].reads())
      effects.reads.insert(effects.reads.end(), cells.begin(), cells.end());
    if (info.tiles[slot].writes())
      effects.writes.insert(effects.writes.end(), cells.begin(), cells.end());
  }
  return effects;
}

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15ull ^ (b + 0x7f4a7c15ull + (a << 6) + (a >> 2));
  x ^= x >> 31;
  x *= 0xbf58476d1ce4e5b9ull;
  return x ^ x >> 29;
}

Memory initialMemory(const Layout &layout) {
  Memory memory(layout.cells());
  for (size_t i = 0; i < memory.size(); ++i)
    memory[i] = mix(i, 1);
  return memory;
}

namespace {

uint64_t hashOfReads(const isa::Instruction &code, const Effects &effects, int64_t count, const Memory &memory) {
  uint64_t hash = mix(code.debugId, uint64_t(count));
  for (int cell : effects.reads)
    hash = mix(hash, memory[cell]);
  return hash;
}

void writeHash(const Effects &effects, uint64_t hash, Memory &memory) {
  for (size_t i = 0; i < effects.writes.size(); ++i)
    memory[effects.writes[i]] = mix(hash, i);
}

uint64_t elementValue(const isa::Instruction &code, int64_t count, size_t element, uint64_t source) {
  return mix(mix(code.debugId, uint64_t(count)), mix(source, element));
}

} // namespace

void applyWhole(const isa::Instruction &code, const Effects &effects, int64_t count, Memory &memory) {
  if (!effects.elementwise) {
    writeHash(effects, hashOfReads(code, effects, count, memory), memory);
    return;
  }
  std::vector<uint64_t> values;
  for (size_t i = 0; i < effects.reads.size(); ++i)
    values.push_back(elementValue(code, count, i, memory[effects.reads[i]]));
  for (size_t i = 0; i < effects.writes.size(); ++i)
    memory[effects.writes[i]] = values[i];
}

namespace {

class SequentialRun {
public:
  SequentialRun(const Layout &layout) : layout_(layout), memory(initialMemory(layout)) {}

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
      iterations_.erase(loop.id);
    }
  }

private:
  void run(const Instruction &instruction) {
    isa::Instruction code = instruction.code;
    for (int side = 0; side < 2; ++side)
      for (const HbmTerm &term : instruction.hbmTerms[side])
        code.hbm[side].byteOffset += iterations_.at(term.loop) * term.stride;
    Registers registers = {};
    registers[isa::kRunRegister] = runNumber;
    applyWhole(code, effectsOf(code, layout_, registers), counts_[code.debugId]++, memory);
    ++numInstructions;
  }

  const Layout &layout_;
  std::map<LoopId, int64_t> iterations_;
  std::map<uint32_t, int64_t> counts_;

public:
  Memory memory;
  int64_t numInstructions = 0;
  int32_t runNumber = 0;
};

} // namespace

Memory runSequentially(const StructuredProgram &program, const Layout &layout, int64_t *dynamicInstructions) {
  SequentialRun run(layout);
  for (const Kernel &kernel : program.kernels)
    run.run(kernel.body);
  if (dynamicInstructions)
    *dynamicInstructions += run.numInstructions;
  return std::move(run.memory);
}

Memory runSequentially(std::span<const StructuredProgram> units, std::span<const Step> steps, const Layout &layout,
                       int64_t *dynamicInstructions) {
  SequentialRun run(layout);
  for (const Step &step : steps)
    for (int32_t i = 0; i < step.runs; ++i, ++run.runNumber)
      for (const Kernel &kernel : units[size_t(step.unit)].kernels)
        run.run(kernel.body);
  if (dynamicInstructions)
    *dynamicInstructions += run.numInstructions;
  return std::move(run.memory);
}

bool stepControl(const isa::Instruction &code, Sequencer &sequencer) {
  Registers &registers = sequencer.registers;
  size_t &pc = sequencer.pc;
  auto wrap = [](int64_t value) { return int32_t(uint32_t(uint64_t(value))); };
  int64_t a = registers[code.rs], b = wrap(int64_t(registers[code.rt]) + code.immediate);
  switch (code.opcode) {
  case isa::Opcode::RegisterMove:
    registers[code.rd] = code.immediate;
    break;
  case isa::Opcode::RegisterAlu:
    registers[code.rd] = wrap(code.op0 == isa::AluOp::Add ? a + b : code.op0 == isa::AluOp::Subtract ? a - b : a * b);
    break;
  case isa::Opcode::Branch: {
    bool taken = code.op0 == isa::AluOp::Bypass || (code.op0 == isa::AluOp::Less && a < b) ||
                 (code.op0 == isa::AluOp::GreaterEqual && a >= b);
    if (taken) {
      pc = code.target;
      return true;
    }
    break;
  }
  case isa::Opcode::Call:
    sequencer.stack.push_back(pc + 1);
    pc = code.target;
    return true;
  case isa::Opcode::Return:
    if (sequencer.stack.empty())
      return false;
    pc = sequencer.stack.back();
    sequencer.stack.pop_back();
    return true;
  default:
    return false;
  }
  registers[0] = 0;
  ++pc;
  return true;
}

namespace {

class StreamRun {
public:
  StreamRun(const isa::Program &program, const Layout &layout, uint64_t seed)
      : program_(program), layout_(layout), random_(seed), memory_(initialMemory(layout)) {
    auto weight = [&] { return std::array{0.02, 0.2, 1.0, 1.0, 5.0}[random_() % 5]; };
    for (int stream = 0; stream < isa::kNumStreams; ++stream) {
      sequencerWeight_[stream] = weight();
      engineWeight_[stream] = weight();
    }
    transferWeight_ = weight();
    lookahead_ = size_t(1 + random_() % 4);
    slowPart_ = random_() % 3 == 0 ? int(random_() % kParts) : -1;
    slowStream_ = int(random_() % isa::kNumStreams);
  }

  RunResult run() {
    while (true) {
      collectActions();
      double total = 0;
      for (const Action &action : actions_)
        total += action.weight;
      double transfers = transferWeight_ * double(std::min<size_t>(parts_.size(), kParts)) / 4;
      if (total + transfers == 0)
        break;
      double at = std::uniform_real_distribution<double>(0, total + transfers)(random_);
      if (at >= total) {
        advancePart();
        continue;
      }
      size_t chosen = 0;
      while (chosen + 1 < actions_.size() && at >= actions_[chosen].weight)
        at -= actions_[chosen++].weight;
      perform(actions_[chosen]);
    }
    RunResult result;
    for (int stream = 0; stream < isa::kNumStreams; ++stream)
      if (!finished(stream)) {
        result.deadlock = true;
        result.where += cat(isa::toString(isa::kStreamEngines[stream]), " at ", sequencers_[stream].pc, " ");
      }
    result.memory = std::move(memory_);
    return result;
  }

private:
  static constexpr int kParts = 16;

  /// In an engine's queue; reads and writes happen at different moments.
  struct Queued {
    const isa::Instruction *code;
    Effects effects;
    int64_t count;
    bool hasRead = false;
    uint64_t hash = 0;
  };
  struct Transfer {
    const isa::Instruction *code;
    Effects effects;
    int64_t count;
  };
  struct Part {
    std::shared_ptr<Transfer> transfer;
    bool slow;
    std::vector<size_t> elements;
    std::vector<uint64_t> values;
    int stage = 0; // 0: nothing, 1: read, 2: written
  };
  struct Action {
    enum class Kind { Sequencer, Read, Write } kind;
    double weight;
    int stream;
    size_t index; // of the queue entry
  };

  bool finished(int stream) const {
    return sequencers_[stream].ended(program_[stream]) && queue_[stream].empty() && parts_.empty();
  }

  bool waitsHold(int stream, const isa::Instruction &code) const {
    for (int i = 0; i < code.numWaits; ++i) {
      const isa::Wait &wait = code.waits[i];
      uint32_t value = uint32_t(sequencers_[stream].registers[wait.valueRegister]) + uint32_t(wait.immediate);
      if (int32_t(uint32_t(semaphores_[wait.semaphore]) - value) < 0)
        return false;
    }
    return true;
  }

  bool canIssue(int stream) const {
    if (sequencers_[stream].ended(program_[stream]))
      return false;
    const isa::Instruction &next = program_[stream][sequencers_[stream].pc];
    bool queued =
        isa::instructionInfo(next.opcode).group == isa::Group::Compute || next.update.op != isa::UpdateOp::None;
    if (queued && queue_[stream].size() >= lookahead_ && isa::instructionInfo(next.opcode).group != isa::Group::Dma)
      return false;
    return waitsHold(stream, next);
  }

  static bool meet(const std::vector<int> &a, const std::vector<int> &b) {
    for (int x : a)
      if (std::find(b.begin(), b.end(), x) != b.end())
        return true;
    return false;
  }

  /// The second instruction of a queue may read before the first has written, if the engine's interlock allows it.
  bool canRead(int stream, size_t index) const {
    const Queued &entry = queue_[stream][index];
    if (entry.hasRead)
      return false;
    for (size_t i = 0; i < index; ++i)
      if (meet(queue_[stream][i].effects.writes, entry.effects.reads))
        return false;
    return true;
  }

  void collectActions() {
    actions_.clear();
    for (int stream = 0; stream < isa::kNumStreams; ++stream) {
      if (canIssue(stream))
        actions_.push_back({Action::Kind::Sequencer, sequencerWeight_[stream], stream, 0});
      for (size_t i = 0; i < std::min<size_t>(2, queue_[stream].size()); ++i)
        if (canRead(stream, i))
          actions_.push_back({Action::Kind::Read, engineWeight_[stream], stream, i});
      if (!queue_[stream].empty() && queue_[stream].front().hasRead)
        actions_.push_back({Action::Kind::Write, engineWeight_[stream], stream, 0});
    }
  }

  void update(const isa::Instruction &code) {
    if (code.update.op == isa::UpdateOp::Increment)
      ++semaphores_[code.update.semaphore];
  }

  void issue(int stream) {
    Sequencer &sequencer = sequencers_[stream];
    const isa::Instruction &code = program_[stream][sequencer.pc];
    if (stepControl(code, sequencer))
      return;
    ++sequencer.pc;
    if (code.opcode == isa::Opcode::SemaphoreRangeClear) {
      std::fill_n(semaphores_.begin() + code.immediate, code.target, 0);
      return;
    }
    const isa::InstructionInfo &info = isa::instructionInfo(code.opcode);
    if (info.group == isa::Group::Control && code.update.op == isa::UpdateOp::None)
      return;
    Effects effects = effectsOf(code, layout_, sequencer.registers);
    int64_t count = counts_[code.debugId]++;
    if (info.group != isa::Group::Dma) {
      queue_[stream].push_back({&code, std::move(effects), count});
      return;
    }
    size_t first = parts_.size();
    for (int part = 0; part < kParts; ++part) {
      Part &out = parts_.emplace_back();
      out.slow = part == slowPart_ && stream == slowStream_;
    }
    for (size_t i = 0; i < effects.writes.size(); ++i)
      parts_[first + random_() % kParts].elements.push_back(i);
    auto transfer = std::make_shared<Transfer>(Transfer{&code, std::move(effects), count});
    for (size_t i = first; i < parts_.size(); ++i)
      parts_[i].transfer = transfer;
  }

  void perform(const Action &action) {
    switch (action.kind) {
    case Action::Kind::Sequencer:
      issue(action.stream);
      return;
    case Action::Kind::Read: {
      Queued &entry = queue_[action.stream][action.index];
      entry.hash = hashOfReads(*entry.code, entry.effects, entry.count, memory_);
      entry.hasRead = true;
      return;
    }
    case Action::Kind::Write: {
      Queued &entry = queue_[action.stream].front();
      writeHash(entry.effects, entry.hash, memory_);
      update(*entry.code);
      queue_[action.stream].pop_front();
    }
    }
  }

  void advancePart() {
    size_t index = random_() % parts_.size();
    // A slow part moves when little else is left to move.
    if (parts_[index].slow && random_() % 1024 >= 1024 / parts_.size())
      return;
    Part &part = parts_[index];
    const Transfer &transfer = *part.transfer;
    switch (part.stage++) {
    case 0:
      for (size_t i : part.elements)
        part.values.push_back(elementValue(*transfer.code, transfer.count, i, memory_[transfer.effects.reads[i]]));
      return;
    case 1:
      for (size_t i = 0; i < part.elements.size(); ++i)
        memory_[transfer.effects.writes[part.elements[i]]] = part.values[i];
      return;
    default:
      update(*transfer.code);
      std::swap(parts_[index], parts_.back());
      parts_.pop_back();
    }
  }

  const isa::Program &program_;
  const Layout &layout_;
  std::mt19937_64 random_;
  Memory memory_;
  std::array<int32_t, isa::kNumSemaphores> semaphores_ = {};
  std::array<Sequencer, isa::kNumStreams> sequencers_;
  std::array<std::deque<Queued>, isa::kNumStreams> queue_;
  std::vector<Part> parts_;
  std::map<uint32_t, int64_t> counts_;
  std::vector<Action> actions_;
  std::array<double, isa::kNumStreams> sequencerWeight_, engineWeight_;
  double transferWeight_;
  size_t lookahead_;
  int slowPart_, slowStream_;
};

} // namespace

RunResult runStreams(const isa::Program &program, const Layout &layout, uint64_t seed) {
  return StreamRun(program, layout, seed).run();
}

} // namespace neuroncore::schedule::test

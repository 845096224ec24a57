// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Execution in a random legal order. Reads and writes of an instruction happen at different moments: the result is
// computed when it starts and written when it completes. A transfer is sixteen parts, each with its own two moments.

#include <cstring>
#include <random>

#include "lib/Emulator/Check/Access.h"
#include "lib/Emulator/Program.h"
#include "neuron/Emulator/Check.h"
#include "neuron/Support/Text.h"

namespace neuroncore::emulator {

using isa::Instruction;
using isa::kNumStreams;
using isa::MemorySpace;
using isa::Opcode;

namespace {

class Adversary {
public:
  Adversary(const LoadedProgram &program, std::span<void *const> variables, uint64_t seed, MemoryImage &image)
      : program_(program.impl()), neff_(*program_.neff), machine_(image), table_(neff_), random_(seed) {
    for (void *variable : variables)
      machine_.variables.push_back(static_cast<uint8_t *>(variable));
    for (int s = 0; s < kNumStreams; ++s) {
      streams_[s].state.ended = program_.steps[s].empty();
      streams_[s].sequencerWeight = weight();
      streams_[s].engineWeight = weight();
    }
    transferWeight_ = weight();
    // In half of the runs one DMA engine of one queue hardly moves.
    if (random_() % 2) {
      slowQueue_ = int(random_() % 16);
      slowPart_ = int(random_() % kDmaParts);
    }
  }

  Status run() {
    while (true) {
      if (!step()) {
        if (!error_)
          return error_;
        bool done = parts_.empty();
        for (const Stream &stream : streams_)
          done &= stream.state.ended && stream.queue.empty();
        if (done)
          return Status::success();
        return Error(ErrorKind::Hazard, "deadlock under a random order; execute the program for details");
      }
      if (!error_)
        return error_;
    }
  }

private:
  static constexpr size_t kRunAhead = 4;

  /// Bytes to be written later.
  struct Patch {
    uint8_t *at;
    std::vector<uint8_t> bytes;
    std::vector<uint8_t> mask; // empty: all
  };
  struct Queued {
    const Step *step;
    uint32_t pc;
    int32_t semaphore;
  };
  struct Stream {
    SequencerState state;
    std::vector<Queued> queue;
    bool running = false; // the oldest has read its operands
    std::vector<Patch> results;
    double sequencerWeight, engineWeight;
  };
  struct Part {
    const DmaOp *op;
    const Instruction *instruction;
    DmaOp::Transfer transfer;
    int index;
    int stream;
    uint32_t pc;
    int32_t semaphore;
    std::vector<Access> writes, reads;
    bool hasRead = false;
    std::vector<Patch> results;
  };

  double weight() { return std::exp2(-double(random_() % 6)); }

  bool isBlocked(const Stream &stream, int s) const {
    const Step &step = program_.steps[s][stream.state.pc];
    for (int i = 0; i < step.numWaits; ++i) {
      const ResolvedWait wait = resolve(step.instruction->waits[i], stream.state);
      if (!isValidSemaphore(wait.semaphore) || !isSatisfied(wait, semaphores_[wait.semaphore]))
        return true;
    }
    return isQueued(step) && stream.queue.size() >= kRunAhead;
  }

  static bool isQueued(const Step &step) {
    return step.kind == Step::Kind::Tile || (step.instruction->opcode == Opcode::Nop && step.hasUpdate);
  }

  /// One action of a randomly chosen actor; false if none can act.
  bool step() {
    double total = 0;
    std::array<double, 2 * kNumStreams> weights = {};
    for (int s = 0; s < kNumStreams; ++s) {
      Stream &stream = streams_[s];
      if (!stream.state.ended && !isBlocked(stream, s))
        weights[s] = stream.sequencerWeight;
      if (!stream.queue.empty())
        weights[kNumStreams + s] = stream.engineWeight;
      total += weights[s] + weights[kNumStreams + s];
    }
    std::vector<double> partWeights(parts_.size());
    for (size_t i = 0; i < parts_.size(); ++i) {
      const bool slow = parts_[i].instruction->queue == slowQueue_ && parts_[i].index == slowPart_;
      partWeights[i] = transferWeight_ * (slow ? 1e-4 : 1.0);
      total += partWeights[i];
    }
    if (total == 0)
      return false;
    double choice = std::uniform_real_distribution<double>(0, total)(random_);
    for (int a = 0; a < 2 * kNumStreams; ++a) {
      if (weights[a] == 0)
        continue;
      if (choice < weights[a]) {
        a < kNumStreams ? stepSequencer(a) : stepEngine(a - kNumStreams);
        return true;
      }
      choice -= weights[a];
    }
    size_t chosen = 0;
    while (chosen + 1 < parts_.size() && choice >= partWeights[chosen])
      choice -= partWeights[chosen++];
    if (parts_.empty())
      return step(); // rounding: choose again
    stepPart(chosen);
    return true;
  }

  void fail(int s, uint32_t pc, ErrorKind kind, const std::string &message) {
    error_ = Status(Error(kind, message).withContext(describeInstruction(neff_, s, pc)));
  }

  bool failFromWorker(int s, uint32_t pc) {
    if (!worker_.failed)
      return false;
    fail(s, pc, worker_.kind, worker_.message);
    return true;
  }

  void post(int32_t semaphore, const isa::Update &update) {
    if (semaphore >= 0)
      semaphores_[semaphore] = applyUpdate(update.op, semaphores_[semaphore], update.value);
  }

  void stepSequencer(int s) {
    Stream &stream = streams_[s];
    SequencerState &state = stream.state;
    const Step &step = program_.steps[s][state.pc];
    const Instruction &instruction = *step.instruction;
    const uint32_t length = uint32_t(program_.steps[s].size());
    const uint32_t pc = state.pc;
    int32_t semaphore = -1;
    if (step.hasUpdate) {
      const int64_t index = resolveSemaphore(instruction.update, state);
      if (!isValidSemaphore(index))
        return fail(s, pc, ErrorKind::OutOfBounds, cat("semaphore ", index, " does not exist"));
      semaphore = int32_t(index);
    }
    if (isQueued(step)) {
      stream.queue.push_back({&step, pc, semaphore});
      advance(state, length);
      return;
    }
    switch (step.kind) {
    case Step::Kind::Dma:
      trigger(s, step, semaphore);
      break;
    case Step::Kind::RegisterLoad:
    case Step::Kind::RegisterStore: {
      const std::string error = table_.collect(s, pc, state, accesses_);
      if (!error.empty() || accesses_.size() != 1)
        return fail(s, pc, ErrorKind::OutOfBounds, error);
      uint8_t *address = at(accesses_[0], accesses_[0].p0, accesses_[0].begin());
      if (step.kind == Step::Kind::RegisterStore) {
        std::memcpy(address, &state.registers[instruction.rs], 4);
      } else {
        int32_t value;
        std::memcpy(&value, address, 4);
        state.write(instruction.rd, value);
      }
      post(semaphore, instruction.update);
      break;
    }
    case Step::Kind::SemaphoreClear:
      for (uint32_t i = 0; i < instruction.target; ++i)
        semaphores_[instruction.immediate + i] = 0;
      post(semaphore, instruction.update);
      break;
    default:
      post(semaphore, instruction.update);
      if (executeControl(instruction, state, length) != ControlResult::Ok)
        fail(s, pc, ErrorKind::InvalidInput, cat("calls are nested deeper than ", kMaxCallDepth));
      return;
    }
    advance(state, length);
  }

  uint8_t *at(const Access &access, int partition, int64_t byte) {
    if (access.space == MemorySpace::Hbm)
      return machine_.variables[access.variable] + byte;
    return machine_.base + program_.layout.offset(access.space, partition, byte);
  }

  /// Calls visit(pointer, bytes) for each run of an access.
  template <class Visit> void forRuns(const Access &access, Visit &&visit) {
    for (int p = access.p0; p < access.p1; ++p)
      for (const ByteRange &run : *access.runs)
        visit(at(access, p, access.base + run.begin), size_t(run.end - run.begin));
  }

  std::vector<uint8_t> save(const Access &access) {
    std::vector<uint8_t> bytes;
    forRuns(access, [&](uint8_t *from, size_t n) { bytes.insert(bytes.end(), from, from + n); });
    return bytes;
  }
  void restore(const Access &access, const std::vector<uint8_t> &bytes) {
    size_t position = 0;
    forRuns(access, [&](uint8_t *to, size_t n) {
      std::memcpy(to, bytes.data() + position, n);
      position += n;
    });
  }

  static void apply(const std::vector<Patch> &patches) {
    for (const Patch &patch : patches)
      for (size_t i = 0; i < patch.bytes.size(); ++i)
        if (patch.mask.empty() || patch.mask[i])
          patch.at[i] = patch.bytes[i];
  }

  void stepEngine(int s) {
    Stream &stream = streams_[s];
    const Queued queued = stream.queue.front();
    if (queued.step->kind == Step::Kind::Tile && !stream.running) {
      const std::string error = table_.collect(s, queued.pc, stream.state, accesses_);
      if (!error.empty())
        return fail(s, queued.pc, ErrorKind::OutOfBounds, error);
      std::vector<std::vector<uint8_t>> old;
      for (const Access &access : accesses_)
        if (access.isWrite)
          old.push_back(save(access));
      queued.step->tile->run(machine_, worker_, 0, queued.step->tile->units());
      if (failFromWorker(s, queued.pc))
        return;
      stream.results.clear();
      for (const Access &access : accesses_)
        if (access.isWrite)
          forRuns(access, [&](uint8_t *from, size_t n) {
            stream.results.push_back({from, std::vector<uint8_t>(from, from + n), {}});
          });
      size_t next = 0;
      for (const Access &access : accesses_)
        if (access.isWrite)
          restore(access, old[next++]);
      stream.running = true;
      return;
    }
    apply(stream.results);
    stream.results.clear();
    stream.running = false;
    post(queued.semaphore, queued.step->instruction->update);
    stream.queue.erase(stream.queue.begin());
  }

  void trigger(int s, const Step &step, int32_t semaphore) {
    const SequencerState &state = streams_[s].state;
    DmaOp::Transfer transfer;
    if (!step.dma->resolveTransfer(machine_, neff_, state, worker_, transfer)) {
      failFromWorker(s, state.pc);
      return;
    }
    const std::string error = table_.collect(s, state.pc, state, accesses_);
    if (!error.empty())
      return fail(s, state.pc, ErrorKind::OutOfBounds, error);
    for (int i = 0; i < kDmaParts; ++i) {
      Part part;
      part.op = step.dma;
      part.instruction = step.instruction;
      part.transfer = transfer;
      part.index = i;
      part.stream = s;
      part.pc = state.pc;
      part.semaphore = semaphore;
      for (const Access &access : accesses_)
        (access.isWrite ? part.writes : part.reads).push_back(access);
      parts_.push_back(std::move(part));
    }
  }

  void stepPart(size_t index) {
    Part &part = parts_[index];
    const int64_t units = part.op->units();
    const int64_t begin = units * part.index / kDmaParts, end = units * (part.index + 1) / kDmaParts;
    if (!part.hasRead && begin < end) {
      if (!readPart(part, begin, end))
        return;
      part.hasRead = true;
      return;
    }
    apply(part.results);
    post(part.semaphore, part.instruction->update);
    parts_.erase(parts_.begin() + int64_t(index));
  }

  /// Finds which bytes a part writes, and with what, by running it over two different backgrounds.
  bool readPart(Part &part, int64_t begin, int64_t end) {
    bool inPlace = false; // source and destination overlap: the part moves at once
    for (const Access &write : part.writes)
      for (const Access &read : part.reads)
        inPlace |= overlap(write, read);
    std::vector<std::vector<uint8_t>> old, first;
    if (!inPlace)
      for (const Access &access : part.writes)
        old.push_back(save(access));
    for (uint8_t background : {uint8_t(0x00), uint8_t(0xff)}) {
      if (!inPlace)
        for (const Access &access : part.writes)
          forRuns(access, [&](uint8_t *to, size_t n) { std::memset(to, background, n); });
      part.op->run(part.transfer, machine_, neff_, worker_, begin, end);
      if (inPlace || worker_.failed)
        break;
      if (background == 0)
        for (const Access &access : part.writes)
          first.push_back(save(access));
    }
    if (!inPlace) {
      size_t k = 0;
      for (const Access &access : part.writes) {
        size_t position = 0;
        if (!worker_.failed)
          forRuns(access, [&](uint8_t *from, size_t n) {
            Patch patch = {from, std::vector<uint8_t>(from, from + n), std::vector<uint8_t>(n)};
            for (size_t i = 0; i < n; ++i)
              patch.mask[i] = first[k][position + i] == from[i];
            position += n;
            part.results.push_back(std::move(patch));
          });
        restore(access, old[k++]);
      }
    }
    return !failFromWorker(part.stream, part.pc);
  }

  const LoadedProgram::Impl &program_;
  const neff::Neff &neff_;
  Machine machine_;
  Worker worker_;
  AccessTable table_;
  std::mt19937_64 random_;
  std::array<Stream, kNumStreams> streams_;
  std::array<int32_t, isa::kNumSemaphores> semaphores_ = {};
  std::vector<Part> parts_;
  std::vector<Access> accesses_;
  double transferWeight_ = 1;
  int slowQueue_ = -1, slowPart_ = -1;
  Status error_;
};

} // namespace

Status executeAdversarially(const LoadedProgram &program, std::span<void *const> variables, uint64_t seed) {
  const size_t expected = program.neff().variables.size();
  if (variables.size() != expected)
    return Error(ErrorKind::InvalidInput, cat("expected ", expected, " variables but got ", variables.size()));
  Expected<std::unique_ptr<MemoryImage>> image = MemoryImage::create(program.impl().layout);
  if (!image)
    return image.error();
  // What was never written is different in every run.
  std::mt19937_64 random(seed ^ 0x9e3779b97f4a7c15ull);
  const int64_t words = program.impl().layout.totalBytes() / 8;
  const uint64_t pattern = random();
  for (int64_t i = 0; i < words; ++i) {
    const uint64_t word = pattern * uint64_t(i + 1);
    std::memcpy((*image)->base() + i * 8, &word, 8);
  }
  return std::make_unique<Adversary>(program, variables, seed, **image)->run();
}

} // namespace neuroncore::emulator

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The function observer. Each stream runs until a semaphore stops it; a transfer executes at its trigger and then posts
// its sixteen increments. For a program without races any order that respects the waits gives the same result, and this
// one needs no bookkeeping.

#include "neuron/Emulator/Emulator.h"

#include <cstring>

#include "lib/Emulator/ProductBatch.h"
#include "lib/Emulator/Program.h"
#include "lib/Emulator/Sequencer.h"
#include "lib/Emulator/WorkerPool.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Support/Text.h"

namespace neuroncore::emulator {

using isa::Instruction;
using isa::kNumStreams;

struct Core::Impl {
  const target::MachineModel *model = nullptr;
  std::unique_ptr<MemoryImage> image;
  std::unique_ptr<WorkerPool> pool;
  Machine machine;

  Impl(const target::MachineModel &theModel, std::unique_ptr<MemoryImage> theImage, int threads)
      : model(&theModel), image(std::move(theImage)), pool(std::make_unique<WorkerPool>(threads)), machine(*image) {}
};

namespace {

class Execution {
public:
  Execution(const LoadedProgram &program, Machine &machine, WorkerPool &pool, const ExecuteOptions &options)
      : program_(program.impl()), neff_(*program_.neff), machine_(machine), pool_(pool), options_(options),
        batch_(machine, pool), products_(machine, pool) {}

  Status run() {
    for (int s = 0; s < kNumStreams; ++s)
      states_[s].ended = program_.steps[s].empty();
    while (true) {
      bool progress = false, done = true;
      for (int s = 0; s < kNumStreams; ++s) {
        if (states_[s].ended)
          continue;
        const uint64_t before = executed_;
        if (!runStream(s))
          return error_;
        progress |= executed_ != before;
        done &= states_[s].ended;
      }
      if (done) {
        finishPending();
        return Status::success();
      }
      if (!progress)
        return deadlock();
    }
  }

private:
  static constexpr uint64_t kCheckInterval = 256;

  void finishPending() {
    products_.run();
    batch_.run();
  }

  bool fail(int stream, ErrorKind kind, std::string message) {
    error_ =
        Status(Error(kind, std::move(message)).withContext(describeInstruction(neff_, stream, states_[stream].pc)));
    return false;
  }

  bool failFromWorker(int stream) {
    Worker *worker = pool_.failedWorker();
    if (!worker)
      return true;
    fail(stream, worker->kind, worker->message);
    if (options_.indexFault && worker->index) {
      const uint32_t pc = states_[stream].pc;
      *options_.indexFault = {neff_.program[stream][pc].debugId, *worker->index};
    }
    pool_.clearFaults();
    return false;
  }

  /// Runs until the stream ends or waits; false on an error.
  bool runStream(int stream) {
    SequencerState &state = states_[stream];
    const std::vector<Step> &steps = program_.steps[stream];
    const uint32_t length = uint32_t(steps.size());
    while (!state.ended) {
      const Step &step = steps[state.pc];
      if (step.numWaits != 0) {
        bool blocked = false;
        for (int i = 0; i < step.numWaits && !blocked; ++i) {
          const ResolvedWait wait = resolve(step.instruction->waits[i], state);
          if (!isValidSemaphore(wait.semaphore))
            return fail(stream, ErrorKind::OutOfBounds,
                        cat("semaphore ", wait.semaphore, " is outside [0, ", isa::kNumSemaphores, ")"));
          blocked = !isSatisfied(wait, semaphores_[wait.semaphore]);
        }
        if (blocked)
          return true;
      }
      ++executed_;
      // One instruction may take a millisecond, and who cancels waits for the next look.
      if (executed_ % kCheckInterval == 0 && !checkLimits(stream))
        return false;
      if (!executeStep(stream, step, state, length))
        return false;
    }
    return true;
  }

  bool checkLimits(int stream) {
    if (options_.executed)
      options_.executed->fetch_add(kCheckInterval, std::memory_order_relaxed);
    if (options_.cancel && options_.cancel->load(std::memory_order_relaxed))
      return fail(stream, ErrorKind::Internal, "execution was cancelled");
    if (options_.deadline != std::chrono::steady_clock::time_point::max() &&
        std::chrono::steady_clock::now() > options_.deadline)
      return fail(stream, ErrorKind::Internal, "execution ran past its time limit");
    if (options_.maxInstructions != 0 && executed_ > options_.maxInstructions)
      return fail(stream, ErrorKind::InvalidInput,
                  cat("execution did not end within ", options_.maxInstructions, " instructions"));
    return true;
  }

  bool executeStep(int stream, const Step &step, SequencerState &state, uint32_t length) {
    const Instruction &instruction = *step.instruction;
    switch (step.kind) {
    case Step::Kind::Tile: {
      const TileOp &op = *step.tile;
      if (step.load) {
        batch_.run();
        products_.add(*step.load);
        break;
      }
      if (step.product) {
        batch_.run();
        if (products_.add(*step.product))
          break;
      }
      products_.run();
      if (step.locality.isLocal()) {
        batch_.add(step.locality, op);
        break;
      }
      batch_.run();
      if (op.nanoseconds() > WorkerPool::kMinNanoseconds)
        pool_.run(op.units(), op.unitAlignment(),
                  [&](Worker &worker, int64_t begin, int64_t end) { op.run(machine_, worker, int(begin), int(end)); });
      else
        op.run(machine_, pool_.main(), 0, op.units());
      if (!failFromWorker(stream))
        return false;
      break;
    }
    case Step::Kind::Dma:
      if (!executeDma(stream, step, state))
        return false;
      break;
    case Step::Kind::RegisterLoad:
    case Step::Kind::RegisterStore:
      finishPending();
      if (!executeRegisterMove(stream, step, state))
        return false;
      break;
    case Step::Kind::SemaphoreClear:
      for (uint32_t i = 0; i < instruction.target; ++i)
        semaphores_[instruction.immediate + i] = 0;
      break;
    case Step::Kind::Control:
      if (step.hasUpdate && !update(stream, instruction, state, 1))
        return false;
      if (executeControl(instruction, state, length) != ControlResult::Ok)
        return fail(stream, ErrorKind::InvalidInput, cat("calls are nested deeper than ", kMaxCallDepth));
      return true;
    }
    if (step.hasUpdate && !update(stream, instruction, state, step.kind == Step::Kind::Dma ? kDmaParts : 1))
      return false;
    advance(state, length);
    return true;
  }

  bool update(int stream, const Instruction &instruction, const SequencerState &state, int times) {
    const int64_t index = resolveSemaphore(instruction.update, state);
    if (!isValidSemaphore(index))
      return fail(stream, ErrorKind::OutOfBounds,
                  cat("semaphore ", index, " is outside [0, ", isa::kNumSemaphores, ")"));
    for (int i = 0; i < times; ++i)
      semaphores_[index] = applyUpdate(instruction.update.op, semaphores_[index], instruction.update.value);
    return true;
  }

  bool executeDma(int stream, const Step &step, const SequencerState &state) {
    const DmaOp &op = *step.dma;
    DmaOp::Transfer transfer;
    if (!op.resolveTransfer(machine_, neff_, state, pool_.main(), transfer))
      return failFromWorker(stream);
    products_.run();
    if (step.locality.isLocal()) {
      if (!transfer.empty)
        batch_.add(step.locality, op, transfer);
      return true;
    }
    batch_.run();
    if (op.bytes() / kDmaBytesPerNanosecond > WorkerPool::kMinNanoseconds)
      pool_.run(op.units(), op.unitAlignment(), [&](Worker &worker, int64_t begin, int64_t end) {
        op.run(transfer, machine_, neff_, worker, begin, end);
      });
    else
      op.run(transfer, machine_, neff_, pool_.main(), 0, op.units());
    return failFromWorker(stream);
  }

  /// The memory element of register_load or register_store; null after an error.
  uint8_t *elementAddress(int stream, const Instruction &instruction, const SequencerState &state) {
    const isa::TilePattern &tile = instruction.tiles[0];
    if (tile.space != isa::MemorySpace::Hbm)
      return machine_.base + program_.layout.offset(tile.space, tile.startPartition, tile.byteOffset);
    const isa::HbmPattern &pattern = instruction.hbm[registerOperandSide(instruction.opcode)];
    const int32_t run = state.registers[isa::kRunRegister];
    const int32_t variable = neff::boundVariable(neff_, pattern.variable, run);
    if (variable < 0) {
      fail(stream, ErrorKind::OutOfBounds, unboundParameter(pattern, run));
      return nullptr;
    }
    const int64_t bytes = neff::operandBytes(neff_, pattern.variable);
    const std::optional<ByteRange> range = byteRange(resolve(pattern, state), 4);
    if (!range || range->begin < 0 || range->end > bytes || range->end - range->begin != 4) {
      fail(stream, ErrorKind::OutOfBounds,
           cat("register operand is outside ", neff::describeOperand(neff_, pattern.variable, run), " of ", bytes,
               " bytes"));
      return nullptr;
    }
    return machine_.variables[variable] + range->begin;
  }

  bool executeRegisterMove(int stream, const Step &step, SequencerState &state) {
    const Instruction &instruction = *step.instruction;
    uint8_t *address = elementAddress(stream, instruction, state);
    if (!address)
      return false;
    if (step.kind == Step::Kind::RegisterStore) {
      const int32_t value = state.registers[instruction.rs];
      std::memcpy(address, &value, sizeof(value));
      return true;
    }
    int32_t value;
    std::memcpy(&value, address, sizeof(value));
    state.write(instruction.rd, value);
    if (step.isRecorded && options_.trace)
      options_.trace->loads[stream].push_back(value);
    return true;
  }

  Status deadlock() {
    std::string text = "deadlock:";
    const char *separator = " ";
    for (int s = 0; s < kNumStreams; ++s) {
      const SequencerState &state = states_[s];
      if (state.ended)
        continue;
      text += separator + describeInstruction(neff_, s, state.pc);
      const Instruction &instruction = *program_.steps[s][state.pc].instruction;
      for (int i = 0; i < instruction.numWaits; ++i) {
        const ResolvedWait wait = resolve(instruction.waits[i], state);
        if (isSatisfied(wait, semaphores_[wait.semaphore]))
          continue;
        text += cat(" waits for semaphore ", wait.semaphore, wait.equal ? " == " : " >= ", wait.value, " but it is ",
                    semaphores_[wait.semaphore]);
        break;
      }
      separator = "; ";
    }
    return Error(ErrorKind::Hazard, text);
  }

  const LoadedProgram::Impl &program_;
  const neff::Neff &neff_;
  Machine &machine_;
  WorkerPool &pool_;
  const ExecuteOptions &options_;
  /// At most one of the two has something pending.
  Batch batch_;
  ProductBatch products_;
  std::array<SequencerState, kNumStreams> states_ = {};
  std::array<int32_t, isa::kNumSemaphores> semaphores_ = {};
  uint64_t executed_ = 0;
  Status error_;
};

} // namespace

Expected<std::unique_ptr<Core>> Core::create(const target::MachineModel &model, int threads) {
  Expected<std::unique_ptr<MemoryImage>> image = MemoryImage::create(layoutOf(model));
  if (!image)
    return image.error();
  return std::unique_ptr<Core>(new Core(std::make_unique<Impl>(model, std::move(*image), threads)));
}

Core::Core(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Core::~Core() = default;

void Core::setThreads(int threads) {
  if (threads != impl_->pool->threads())
    impl_->pool = std::make_unique<WorkerPool>(threads);
}

int Core::threads() const { return impl_->pool->threads(); }

Status Core::execute(const LoadedProgram &program, std::span<void *const> variables, const ExecuteOptions &options) {
  if (&program.model() != impl_->model && program.model().target() != impl_->model->target())
    return Error(ErrorKind::InvalidInput, "the program was loaded for another machine model");
  const size_t expected = program.neff().variables.size();
  if (variables.size() != expected)
    return Error(ErrorKind::InvalidInput, cat("expected ", expected, " variables but got ", variables.size()));
  Machine &machine = impl_->machine;
  machine.variables.resize(expected);
  for (size_t i = 0; i < expected; ++i) {
    if (!variables[i] && program.neff().variables[i].bytes != 0)
      return Error(ErrorKind::InvalidInput, cat("variable '", program.neff().variables[i].name, "' has no memory"));
    machine.variables[i] = static_cast<uint8_t *>(variables[i]);
  }
  // Nothing carries over from an earlier program but memory.
  machine.stationary.k = 0;
  std::memset(machine.scalarAccumulators, 0, sizeof(machine.scalarAccumulators));
  std::memset(machine.vectorAccumulators, 0, sizeof(machine.vectorAccumulators));
  if (options.trace)
    options.trace->clear();
  return Execution(program, machine, *impl_->pool, options).run();
}

} // namespace neuroncore::emulator

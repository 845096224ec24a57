// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writing the streams. While code is written, the difference between what each register holds and its form at this
// place is a known constant; it goes into the immediates, and the end of a pass adds what the form moved by.

#include "neuron/Schedule/Projection.h"

#include <algorithm>

#include "FlatProgram.h"
#include "RegisterPlan.h"
#include "neuron/Support/Text.h"

namespace neuroncore::schedule {

namespace {

class StreamWriter {
public:
  StreamWriter(const StructuredProgram &program, const FlatProgram &flat, const ProjectionOptions &options, int index,
               isa::Stream &stream, StreamReport *report)
      : program_(program), flat_(flat), options_(options), index_(index), stream_(stream), report_(report),
        plan_(program, flat) {}

  Status run() {
    reserve();
    for (int32_t kernel = 0; kernel < int32_t(flat_.kernels.size()); ++kernel)
      if (Status status = writeKernel(kernel); !status)
        return status.error().withContext(cat("kernel '", program_.kernels[kernel].name, "'"));
    if (!stream_.empty())
      stream_.emplace_back().opcode = isa::Opcode::Return;
    return Status::success();
  }

private:
  static constexpr int kFallbacks = int(RegisterFallback::HoistWaits) + 1;
  enum class Written { Yes, TooFewRegisters };

  void reserve() {
    size_t count = 1;
    for (const FlatSite &site : flat_.sites)
      count += site.stream == index_;
    for (const FlatLoop &loop : flat_.loops)
      count += (loop.streams >> index_ & 1) * 8;
    for (const Kernel &kernel : program_.kernels)
      count += (kernel.entry.size() + kernel.exit.size()) / 4 + 1;
    stream_.reserve(count + count / 8);
  }

  Status writeKernel(int32_t kernel) {
    kernel_ = kernel;
    writeBoundary(program_.kernels[kernel].entry);
    if (flat_.kernels[kernel].streams >> index_ & 1)
      if (Status status = writeBodyWithinRegisters(); !status)
        return status;
    writeBoundary(program_.kernels[kernel].exit);
    return Status::success();
  }

  Status writeBodyWithinRegisters() {
    const FlatKernel &range = flat_.kernels[kernel_];
    size_t begin = stream_.size();
    StreamReport before;
    if (report_)
      before = *report_;
    for (int level = 0; level < kFallbacks; ++level) {
      if (Status status = plan_.build(kernel_, index_, RegisterFallback(level)); !status)
        return status;
      number_.assign(plan_.registers().size(), 0);
      offset_.assign(plan_.registers().size(), 0);
      live_.clear();
      used_ = 1; // register 0 is not a register
      shortage_ = {};
      if (writeItems(range.firstItem, range.endItem) == Written::Yes) {
        if (report_)
          report_->fallback = std::max(report_->fallback, RegisterFallback(level));
        return Status::success();
      }
      stream_.resize(begin);
      if (report_)
        *report_ = before;
    }
    return Error(ErrorKind::Unsupported,
                 cat("expected the ", isa::toString(isa::kStreamEngines[index_]), " stream to need at most ",
                     options_.numRegisters - 1, " registers but loop ", shortage_.loop,
                     " needs more than that even "
                     "with waits rounded up; use fewer nested loops, rotation copies or DMA sites in it"));
  }

  void writeBoundary(const std::vector<Instruction> &instructions) {
    for (const Instruction &instruction : instructions) {
      if (isa::streamIndex(instruction.engine) != index_)
        continue;
      ready_.clear();
      for (const SymbolicWait &wait : instruction.waits) {
        // Values are constants here.
        isa::Wait &out = ready_.emplace_back();
        bool isEngine = wait.counter == SymbolicWait::Counter::Engine;
        out.semaphore = isEngine ? uint8_t(wait.index)
                                 : uint8_t(program_.kernels[kernel_ - wait.kernelsBack].firstSemaphore + wait.index);
        out.immediate = int32_t(wait.immediate * (isEngine ? 1 : kPartsPerTransfer));
      }
      size_t first = writeWaitNops();
      attachWaits(stream_.emplace_back(instruction.code), first);
    }
  }

  Written writeItems(int32_t begin, int32_t end) {
    for (int32_t i = begin; i < end;) {
      int32_t item = flat_.items[i];
      if (item >= 0) {
        if (flat_.sites[item].stream == index_)
          writeSite(item);
        ++i;
        continue;
      }
      const FlatLoop &loop = flat_.loops[~item];
      if (loop.streams >> index_ & 1)
        if (writeLoop(~item) != Written::Yes)
          return Written::TooFewRegisters;
      i = flat_.endItem(loop);
    }
    return Written::Yes;
  }

  void writeSite(int32_t site) {
    const PlannedSite &planned = plan_.site(site);
    const FlatSite &flatSite = flat_.sites[site];
    prepareWaits(plan_.waits(planned));
    size_t first = writeWaitNops();
    isa::Instruction &code = stream_.emplace_back(flatSite.instruction->code);
    attachWaits(code, first);
    if (!flatSite.isDma())
      return;
    for (int side = 0; side < 2; ++side) {
      if (code.tiles[side].space != isa::MemorySpace::Hbm)
        continue;
      isa::HbmPattern &pattern = code.hbm[side];
      pattern.byteOffset = flat_.dmaSites[flatSite.dma].hbm[side].offset;
      int slot = 0;
      for (const PlannedTerm &term : plan_.terms(planned, side)) {
        pattern.terms[slot].reg = number_[term.reg];
        pattern.terms[slot].stride = term.stride;
        pattern.byteOffset -= offset_[term.reg] * term.stride;
        ++slot;
      }
    }
  }

  /// Several waits on one semaphore and register: the largest value is enough.
  void prepareWaits(std::span<const PlannedWait> waits) {
    ready_.clear();
    for (const PlannedWait &wait : waits) {
      isa::Wait out;
      out.semaphore = wait.semaphore;
      out.valueRegister = wait.reg < 0 ? isa::kZeroRegister : number_[wait.reg];
      out.immediate = int32_t(wait.constant - (wait.reg < 0 ? 0 : offset_[wait.reg]));
      auto same = std::find_if(ready_.begin(), ready_.end(), [&](const isa::Wait &other) {
        return other.semaphore == out.semaphore && other.valueRegister == out.valueRegister;
      });
      if (same == ready_.end())
        ready_.push_back(out);
      else
        same->immediate = std::max(same->immediate, out.immediate);
    }
  }

  /// What does not fit an instruction's slots goes on NOPs in front of it. Returns the first wait that is left.
  size_t writeWaitNops() {
    size_t first = 0;
    while (ready_.size() - first > isa::kMaxWaits)
      first = writeWaitNop(first);
    return first;
  }

  size_t writeWaitNop(size_t first) {
    isa::Instruction &nop = stream_.emplace_back();
    nop.opcode = isa::Opcode::Nop;
    if (report_)
      ++report_->numWaitNops;
    size_t count = std::min<size_t>(ready_.size() - first, isa::kMaxWaits);
    std::copy_n(ready_.begin() + first, count, nop.waits.begin());
    nop.numWaits = uint8_t(count);
    return first + count;
  }

  void attachWaits(isa::Instruction &code, size_t first) {
    std::copy(ready_.begin() + first, ready_.end(), code.waits.begin());
    code.numWaits = uint8_t(ready_.size() - first);
  }

  isa::Instruction &writeControl(isa::Opcode opcode) {
    if (report_)
      ++report_->numControl;
    isa::Instruction &code = stream_.emplace_back();
    code.opcode = opcode;
    return code;
  }

  void writeMove(uint8_t rd, int64_t value) {
    isa::Instruction &code = writeControl(isa::Opcode::RegisterMove);
    code.rd = rd;
    code.immediate = int32_t(value);
  }

  void writeAlu(isa::AluOp op, uint8_t rd, uint8_t rs, int64_t value) {
    isa::Instruction &code = writeControl(isa::Opcode::RegisterAlu);
    code.op0 = op;
    code.rd = rd;
    code.rs = rs;
    code.immediate = int32_t(value);
  }

  isa::Instruction &writeBranch(isa::AluOp op, uint8_t rs, int64_t value) {
    isa::Instruction &code = writeControl(isa::Opcode::Branch);
    code.op0 = op;
    code.rs = rs;
    code.immediate = int32_t(value);
    return code;
  }

  bool allocate(int32_t reg) {
    int number = 1;
    while (number < options_.numRegisters && (used_ >> number & 1))
      ++number;
    if (number >= options_.numRegisters)
      return false;
    used_ |= uint64_t(1) << number;
    number_[reg] = uint8_t(number);
    live_.push_back(reg);
    if (report_) {
      report_->maxLiveRegisters = std::max(report_->maxLiveRegisters, int32_t(live_.size()));
      const PlannedRegister &planned = plan_.registers()[reg];
      RegisterUse &use = report_->registers.emplace_back();
      use.kernel = kernel_;
      use.number = uint8_t(number);
      use.kind = planned.kind;
      use.scope = flat_.loops[planned.scope].id;
      for (const LoopRate &rate : planned.rates)
        use.rates.push_back({flat_.loops[rate.loop].id, rate.rate});
    }
    return true;
  }

  Written enterScope(int32_t loop) {
    for (size_t reg = 0; reg < plan_.registers().size(); ++reg) {
      const PlannedRegister &planned = plan_.registers()[reg];
      if (planned.scope != loop)
        continue;
      if (!allocate(int32_t(reg))) {
        shortage_.loop = flat_.loops[loop].id;
        return Written::TooFewRegisters;
      }
      offset_[reg] = 0;
      writeMove(number_[reg], planned.kind == RegisterUse::Kind::Linear ? 0 : kDisarmed);
    }
    return Written::Yes;
  }

  Written writeLoop(int32_t index) {
    const FlatLoop &loop = flat_.loops[index];
    if (std::span<const PlannedWait> waits = plan_.waitsBefore(index); !waits.empty()) {
      prepareWaits(waits);
      for (size_t first = 0; first < ready_.size();)
        first = writeWaitNop(first);
    }
    size_t outerLive = live_.size();
    if (enterScope(index) != Written::Yes)
      return Written::TooFewRegisters;

    std::vector<int64_t> start = offset_;
    int32_t counter = plan_.exitRegister(index);
    int64_t step = plan_.rateIn(counter, index);
    uint32_t top = uint32_t(stream_.size());
    uint32_t exitBranch = 0;
    bool exitsInside = loop.lastCopy() != loop.copies - 1;
    std::vector<int64_t> end; // offsets behind the loop, with respect to the loops around it
    for (int32_t copy = 0; copy < loop.copies; ++copy) {
      if (writeItems(flat_.copyItems[loop.firstCopyItem + copy], flat_.copyItems[loop.firstCopyItem + copy + 1]) !=
          Written::Yes)
        return Written::TooFewRegisters;
      if (!exitsInside || copy != loop.lastCopy())
        continue;
      exitBranch = uint32_t(stream_.size());
      writeBranch(isa::AluOp::GreaterEqual, number_[counter], step * (loop.passes - 1) + offset_[counter]);
      end = offset_;
      for (int32_t reg : live_)
        end[reg] += plan_.rateIn(reg, index) * (loop.passes - 1);
    }

    endPass(index, start);
    if (exitsInside) {
      writeBranch(isa::AluOp::Bypass, isa::kZeroRegister, 0).target = top;
      stream_[exitBranch].target = uint32_t(stream_.size());
    } else {
      writeBranch(isa::AluOp::Less, number_[counter], step * loop.passes + start[counter]).target = top;
      end = start;
      for (int32_t reg : live_)
        end[reg] += plan_.rateIn(reg, index) * loop.passes;
    }
    offset_ = std::move(end);
    for (; live_.size() > outerLive; live_.pop_back())
      used_ &= ~(uint64_t(1) << number_[live_.back()]);
    return Written::Yes;
  }

  /// Registers move on to the start of the next pass.
  void endPass(int32_t loop, const std::vector<int64_t> &start) {
    for (int32_t reg : live_) {
      if (plan_.registers()[reg].kind != RegisterUse::Kind::Linear)
        continue;
      int64_t change = start[reg] + plan_.rateIn(reg, loop) - offset_[reg];
      if (change != 0)
        writeAlu(isa::AluOp::Add, number_[reg], number_[reg], change);
    }
    for (int32_t reg : live_) {
      const PlannedRegister &planned = plan_.registers()[reg];
      if (planned.kind != RegisterUse::Kind::EarlierPass || planned.scope != loop)
        continue;
      if (planned.ratio == 1)
        writeAlu(isa::AluOp::Add, number_[reg], number_[planned.source], -start[planned.source]);
      else
        writeScaled(number_[reg], number_[planned.source], planned.ratio, start[planned.source]);
    }
  }

  /// rd = (rs - offset) * ratio
  void writeScaled(uint8_t rd, uint8_t rs, int64_t ratio, int64_t offset) {
    writeAlu(isa::AluOp::Multiply, rd, rs, ratio);
    if (offset != 0)
      writeAlu(isa::AluOp::Subtract, rd, rd, offset * ratio);
  }

  const StructuredProgram &program_;
  const FlatProgram &flat_;
  const ProjectionOptions &options_;
  int index_;
  isa::Stream &stream_;
  StreamReport *report_;
  RegisterPlan plan_;
  int32_t kernel_ = 0;

  std::vector<uint8_t> number_;  // of each planned register
  std::vector<int64_t> offset_;  // content - form at this place
  std::vector<int32_t> live_;    // planned registers, in the order of their scopes
  uint64_t used_ = 0;            // bit per number
  std::vector<isa::Wait> ready_; // of the instruction to be written
  struct {
    LoopId loop = -1;
  } shortage_;
};

} // namespace

Expected<isa::Program> project(const StructuredProgram &program, const ProjectionOptions &options,
                               ProjectionReport *report) {
  if (options.numRegisters < 1 || options.numRegisters > isa::kNumRegisters)
    return Error(ErrorKind::InvalidInput,
                 cat("expected 1 to ", isa::kNumRegisters, " registers but got ", options.numRegisters));
  Expected<FlatProgram> flat = FlatProgram::build(program, FlatProgram::Stage::AfterSynchronisation);
  if (!flat)
    return flat.error();
  Status counted = flat->setBoundaryCounts([&](int32_t kernel, int stream) {
    auto ticks = [&](const std::vector<Instruction> &instructions) {
      int32_t count = 0;
      for (const Instruction &instruction : instructions)
        count += isa::streamIndex(instruction.engine) == stream && instruction.code.update.op != isa::UpdateOp::None;
      return count;
    };
    return std::pair(ticks(program.kernels[kernel].entry), ticks(program.kernels[kernel].exit));
  });
  if (!counted)
    return counted.error();
  if (report)
    *report = {};
  Expected<isa::Program> result{isa::Program()};
  for (int stream = 0; stream < isa::kNumStreams; ++stream) {
    StreamWriter writer(program, *flat, options, stream, (*result)[stream],
                        report ? &report->streams[stream] : nullptr);
    if (Status status = writer.run(); !status)
      return status.error();
  }
  return result;
}

} // namespace neuroncore::schedule

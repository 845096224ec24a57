// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Flattening and validation of the structured program.

#include "FlatProgram.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "neuron/Isa/InstructionTable.h"
#include "neuron/Support/Text.h"

namespace neuroncore::schedule {

namespace {

class Builder {
public:
  Builder(const StructuredProgram &program, FlatProgram::Stage stage, FlatProgram &flat)
      : program_(program), stage_(stage), flat_(flat) {}

  Status run() {
    reserve();
    for (const Kernel &kernel : program_.kernels) {
      FlatKernel &out = flat_.kernels.emplace_back();
      out.firstSite = int32_t(flat_.sites.size());
      out.firstLoop = int32_t(flat_.loops.size());
      out.firstItem = int32_t(flat_.items.size());
      out.firstDma = int32_t(flat_.dmaSites.size());
      now_ = {};
      streams_ = 0;
      loop_ = -1;
      copy_ = 0;
      if (Status status = addSequence(kernel.body); !status)
        return status.error().withContext(cat("kernel '", kernel.name, "'"));
      out.endSite = int32_t(flat_.sites.size());
      out.endLoop = int32_t(flat_.loops.size());
      out.endItem = int32_t(flat_.items.size());
      out.endDma = int32_t(flat_.dmaSites.size());
      out.total = now_;
      out.streams = streams_;
      for (int32_t dma = out.firstDma; dma < out.endDma; ++dma)
        if (Status status = addExecutions(flat_.dmaSites[dma]); !status)
          return status.error().withContext(cat("kernel '", kernel.name, "'"));
    }
    return Status::success();
  }

private:
  /// Small programs, the most frequent ones, are built without growing.
  void reserve() {
    flat_.kernels.reserve(program_.kernels.size());
    flat_.sites.reserve(32);
    flat_.items.reserve(32);
    flat_.dmaSites.reserve(16);
    flat_.passTerms.reserve(16);
    flat_.executionPool.reserve(32);
  }

  /// A loop around the current position: a flat one, or a spliced one whose iteration is a constant here.
  struct Frame {
    LoopId id;
    int32_t flatLoop; // -1: spliced
    int32_t copies;
    int64_t iteration; // spliced: the iteration; else the copy
  };

  Status addSequence(const Sequence &sequence) {
    for (const Node &node : sequence) {
      if (const Instruction *instruction = std::get_if<Instruction>(&node)) {
        if (Status status = addSite(*instruction); !status)
          return status;
      } else if (Status status = addLoop(*std::get<std::unique_ptr<Loop>>(node)); !status) {
        return status;
      }
    }
    return Status::success();
  }

  Status addLoop(const Loop &loop) {
    for (const Frame &frame : frames_)
      if (frame.id == loop.id)
        return Error(ErrorKind::InvalidInput, cat("expected distinct ids of nested loops but got ", loop.id, " twice"));
    if (loop.trips < 0)
      return Error(ErrorKind::Unsupported, cat("expected a static trip count of loop ", loop.id, " but got ",
                                               loop.trips, "; trip counts known only at run time are not supported"));
    if (loop.trips > std::numeric_limits<int32_t>::max())
      return Error(ErrorKind::Unsupported, cat("expected at most ", std::numeric_limits<int32_t>::max(),
                                               " trips of loop ", loop.id, " but got ", loop.trips));
    if (loop.copies.empty())
      return Error(ErrorKind::InvalidInput, cat("expected at least 1 copy of the body of loop ", loop.id));
    int64_t numCopies = int64_t(loop.copies.size());
    if (loop.trips <= numCopies) {
      frames_.push_back({loop.id, -1, int32_t(numCopies), 0});
      for (int64_t iteration = 0; iteration < loop.trips; ++iteration) {
        frames_.back().iteration = iteration;
        if (Status status = addSequence(loop.copies[iteration]); !status)
          return status;
      }
      frames_.pop_back();
      return Status::success();
    }
    return addRepeatedLoop(loop);
  }

  Status addRepeatedLoop(const Loop &loop) {
    int32_t index = int32_t(flat_.loops.size());
    FlatLoop &out = flat_.loops.emplace_back();
    out.id = loop.id;
    out.parent = loop_;
    out.parentCopy = copy_;
    out.depth = flat_.depthOf(loop_) + 1;
    out.copies = int32_t(loop.copies.size());
    out.trips = loop.trips;
    out.passes = (loop.trips + out.copies - 1) / out.copies;
    out.firstSite = int32_t(flat_.sites.size());
    out.firstDma = int32_t(flat_.dmaSites.size());
    out.firstCopyItem = int32_t(flat_.copyItems.size());
    out.before = now_;
    flat_.copyItems.resize(flat_.copyItems.size() + loop.copies.size() + 1);
    flat_.items.push_back(~index);

    uint8_t outerStreams = std::exchange(streams_, 0);
    now_ = {};
    Counts throughLastCopy = {};
    frames_.push_back({loop.id, index, out.copies, 0});
    for (int32_t copy = 0; copy < int32_t(loop.copies.size()); ++copy) {
      loop_ = index;
      copy_ = copy;
      frames_.back().iteration = copy;
      flat_.copyItems[flat_.loops[index].firstCopyItem + copy] = int32_t(flat_.items.size());
      if (Status status = addSequence(loop.copies[copy]); !status)
        return status;
      if (copy == flat_.loops[index].lastCopy())
        throughLastCopy = now_;
    }
    frames_.pop_back();

    FlatLoop &done = flat_.loops[index];
    flat_.copyItems[done.firstCopyItem + done.copies] = int32_t(flat_.items.size());
    done.endSite = int32_t(flat_.sites.size());
    done.endDma = int32_t(flat_.dmaSites.size());
    done.rate = now_;
    done.streams = streams_;
    for (int stream = 0; stream < isa::kNumStreams; ++stream) {
      int64_t total = done.rate[stream] * (done.passes - 1) + throughLastCopy[stream];
      if (total + done.before[stream] >= kCounterLimit)
        return counterOverflow(total + done.before[stream]);
      done.total[stream] = int32_t(total);
      now_[stream] = done.before[stream] + int32_t(total);
    }
    loop_ = done.parent;
    copy_ = done.parentCopy;
    streams_ |= outerStreams;
    return Status::success();
  }

  Status addSite(const Instruction &instruction) {
    int stream = isa::streamIndex(instruction.engine);
    const isa::InstructionInfo &info = isa::instructionInfo(instruction.code.opcode);
    if (stream < 0)
      return Error(ErrorKind::InvalidInput, cat("expected an engine with a stream for ", info.name, " but got '",
                                                isa::toString(instruction.engine), "'"));
    if (!(info.engines >> stream & 1))
      return Error(ErrorKind::InvalidInput, cat("expected an engine that runs ", info.name, " but got '",
                                                isa::toString(instruction.engine), "'"));
    if (info.group == isa::Group::Control && instruction.code.opcode != isa::Opcode::Nop)
      return Error(ErrorKind::Unsupported,
                   cat("expected a compute or DMA instruction but got ", info.name,
                       "; control flow is expressed by loops, and conditionals on device data are not supported"));
    if (instruction.code.numWaits != 0)
      return Error(ErrorKind::InvalidInput, cat("expected ", info.name, " without waits but got ",
                                                int(instruction.code.numWaits), "; synchronisation inserts them"));

    bool hasUpdate = instruction.code.update.op != isa::UpdateOp::None;
    if (hasUpdate != (stage_ == FlatProgram::Stage::AfterSynchronisation))
      return Error(ErrorKind::InvalidInput,
                   hasUpdate ? cat("expected ", info.name, " without an update; is the program synchronised already?")
                             : cat("expected ", info.name, " with an update; synchronise the program first"));
    for (int slot = 0; slot < info.numTiles; ++slot) {
      const isa::TilePattern &tile = instruction.code.tiles[slot];
      if (tile.space == isa::MemorySpace::Hbm && (info.group != isa::Group::Dma || slot > 1))
        return Error(ErrorKind::InvalidInput,
                     cat("expected operand ", slot, " of ", info.name, " on chip but got HBM"));
      isa::Dtype dtype = tile.space == isa::MemorySpace::Hbm ? instruction.code.hbm[slot].dtype : tile.dtype;
      if (tile.present() && isa::dtypeBytes(dtype) == 0)
        return Error(ErrorKind::InvalidInput, cat("expected operand ", slot, " of ", info.name, " to have a dtype"));
      if (tile.present() && tile.space != isa::MemorySpace::Hbm &&
          (tile.numPartitions == 0 || tile.startPartition + tile.numPartitions > kNumPartitions))
        return Error(ErrorKind::InvalidInput,
                     cat("expected partitions within [0, ", kNumPartitions, ") in operand ", slot, " of ", info.name,
                         " but got ", int(tile.startPartition), " and a count of ", int(tile.numPartitions)));
    }

    FlatSite &site = flat_.sites.emplace_back();
    site.instruction = &instruction;
    site.loop = loop_;
    site.copy = copy_;
    site.stream = uint8_t(stream);
    site.before = now_;
    streams_ |= uint8_t(1 << stream);
    flat_.items.push_back(int32_t(flat_.sites.size()) - 1);
    if (info.group == isa::Group::Dma) {
      site.dma = int32_t(flat_.dmaSites.size());
      DmaSite &dma = flat_.dmaSites.emplace_back();
      dma.site = int32_t(flat_.sites.size()) - 1;
      for (int side = 0; side < 2; ++side)
        if (Status status = addAddress(instruction, side, dma.hbm[side]); !status)
          return status.error().withContext(std::string(info.name));
      return Status::success();
    }
    if (!instruction.hbmTerms[0].empty() || !instruction.hbmTerms[1].empty())
      return Error(ErrorKind::InvalidInput, cat("expected no HBM address terms on ", info.name));
    site.ticks = true;
    ++now_[stream];
    if (now_[stream] >= kCounterLimit)
      return counterOverflow(now_[stream]);
    return Status::success();
  }

  Status addAddress(const Instruction &instruction, int side, HbmAddress &out) {
    const isa::HbmPattern &pattern = instruction.code.hbm[side];
    if (instruction.code.tiles[side].space != isa::MemorySpace::Hbm) {
      if (!instruction.hbmTerms[side].empty())
        return Error(ErrorKind::InvalidInput,
                     cat("expected no address terms for operand ", side, ", which is not in HBM"));
      return Status::success();
    }
    if (!program_.operand(pattern.variable)) {
      if (!pattern.isParameter())
        return Error(ErrorKind::InvalidInput,
                     cat("expected a variable below ", program_.variables.size(), " but got ", pattern.variable));
      return Error(ErrorKind::InvalidInput, cat("expected one of ", program_.parameters.size(), " parameters from ",
                                                program_.firstParameter, " on but got ", pattern.parameter()));
    }
    for (int dim = 0; dim < isa::kMaxHbmDims; ++dim)
      if (pattern.countRegister[dim] != 0 || pattern.stepRegister[dim] != 0)
        return Error(ErrorKind::Unsupported, "expected static sizes and steps of an HBM pattern but got a register; "
                                             "dynamic transfers are not supported");
    for (const isa::HbmPattern::Term &term : pattern.terms)
      if (term.reg != 0 || term.stride != 0)
        return Error(ErrorKind::InvalidInput, "expected an HBM pattern without register terms; loops give them");
    out.offset = pattern.byteOffset;
    out.firstTerm = uint32_t(flat_.passTerms.size());
    for (const Frame &frame : frames_) {
      int64_t stride = 0;
      for (const HbmTerm &term : instruction.hbmTerms[side])
        if (term.loop == frame.id)
          stride += term.stride;
      if (stride == 0)
        continue;
      int64_t part = 0;
      if (__builtin_mul_overflow(stride, frame.iteration, &part) ||
          __builtin_add_overflow(out.offset, part, &out.offset) ||
          __builtin_mul_overflow(stride, int64_t(frame.copies), &stride))
        return Error(ErrorKind::InvalidInput, cat("HBM address overflows 64 bits in loop ", frame.id));
      if (frame.flatLoop >= 0)
        flat_.passTerms.push_back({frame.flatLoop, stride});
    }
    out.numTerms = uint32_t(flat_.passTerms.size()) - out.firstTerm;
    for (const HbmTerm &term : instruction.hbmTerms[side])
      if (std::none_of(frames_.begin(), frames_.end(), [&](const Frame &frame) { return frame.id == term.loop; }))
        return Error(ErrorKind::InvalidInput,
                     cat("expected address terms of enclosing loops but got loop ", term.loop));
    return Status::success();
  }

  Status addExecutions(DmaSite &dma) {
    const FlatSite &site = flat_.sites[dma.site];
    int32_t depth = flat_.depthOf(site.loop);
    dma.firstExecutions = uint32_t(flat_.executionPool.size());
    flat_.executionPool.resize(flat_.executionPool.size() + depth + 1);
    int32_t *executions = flat_.executionPool.data() + dma.firstExecutions;
    int64_t count = 1;
    int32_t copy = site.copy;
    executions[depth] = 1;
    for (int32_t loop = site.loop; loop >= 0; loop = flat_.loops[loop].parent) {
      count *= flat_.loops[loop].runs(copy);
      copy = flat_.loops[loop].parentCopy;
      if (count * kPartsPerTransfer >= kCounterLimit)
        return counterOverflow(count * kPartsPerTransfer);
      executions[--depth] = int32_t(count);
    }
    return Status::success();
  }

  const StructuredProgram &program_;
  FlatProgram::Stage stage_;
  FlatProgram &flat_;
  std::vector<Frame> frames_;
  Counts now_ = {};
  int32_t loop_ = -1;
  int32_t copy_ = 0;
  uint8_t streams_ = 0;
};

} // namespace

Error counterOverflow(int64_t count) {
  return Error(ErrorKind::Unsupported,
               cat("expected less than ", kCounterLimit, " updates of one semaphore in an execution but got ", count,
                   "; use larger tiles or fewer iterations"));
}

Expected<FlatProgram> FlatProgram::build(const StructuredProgram &program, Stage stage) {
  FlatProgram flat;
  if (Status status = Builder(program, stage, flat).run(); !status)
    return status.error();
  return flat;
}

} // namespace neuroncore::schedule

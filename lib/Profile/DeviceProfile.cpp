// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Profile/DeviceProfile.h"

#include <algorithm>
#include <numeric>

#include "neuron/Isa/Assembly.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Support/Text.h"

namespace neuroncore::profile {

using emulator::SemaphoreEvent;
using emulator::TimelineEvent;
using isa::Instruction;
using isa::MemorySpace;
using isa::TilePattern;
using Reason = TimelineEvent::Reason;

namespace {

constexpr uint32_t kTransferBit = uint32_t(1) << 31;

std::string joined(const std::vector<int64_t> &numbers) {
  std::string text;
  for (int64_t number : numbers)
    text += cat(text.empty() ? "" : "x", number);
  return text;
}

/// The text after the name and before waits, which have columns of their own.
std::string operandsOf(const Instruction &instruction) {
  std::string text = isa::printInstruction(instruction);
  const size_t space = text.find(' ');
  return space == std::string::npos ? std::string() : text.substr(space + 1);
}

double flopsFactor(const target::MachineModel &model, isa::Dtype dtype) {
  switch (isa::dtypeBytes(dtype)) {
  case 4:
    return 4;
  case 1:
    return model.generation() >= 3 ? 0.5 : 1;
  default:
    return 1;
  }
}

struct Side {
  std::string text, shape, steps, partitions;
  int64_t offset = 0;
  int32_t numPartitions = 0;
  int32_t variable = -1;
};

Side describeSide(const neff::Neff &neff, const Instruction &instruction, int slot, uint32_t run) {
  Side side;
  const TilePattern &tile = instruction.tiles[slot];
  std::vector<int64_t> counts, steps;
  if (tile.space == MemorySpace::Hbm) {
    const isa::HbmPattern &pattern = instruction.hbm[slot];
    side.variable = neff::boundVariable(neff, pattern.variable, run);
    side.offset = pattern.byteOffset;
    side.text = side.variable >= 0 ? neff.variables[size_t(side.variable)].name : "hbm";
    for (int k = 0; k < isa::kMaxHbmDims; ++k)
      if (pattern.count[k] != 1 || k == isa::kMaxHbmDims - 1) {
        counts.push_back(pattern.count[k]);
        steps.push_back(pattern.step[k]);
      }
  } else if (tile.present()) {
    side.offset = tile.byteOffset;
    side.text = isa::printTile(tile);
    side.numPartitions = tile.numPartitions;
    side.partitions = cat(int(tile.startPartition), "-", tile.startPartition + tile.numPartitions - 1);
    counts.push_back(tile.numPartitions);
    for (int k = 0; k < isa::kMaxFreeDims; ++k)
      if (tile.count[k] != 1 || k == isa::kMaxFreeDims - 1) {
        counts.push_back(tile.count[k]);
        steps.push_back(int64_t(tile.step[k]) * isa::dtypeBytes(tile.dtype));
      }
  }
  side.shape = joined(counts);
  side.steps = joined(steps);
  return side;
}

} // namespace

Expected<std::unique_ptr<DeviceProfile>> DeviceProfile::create(std::shared_ptr<const neff::Neff> neff,
                                                               ProgramTrace trace) {
  std::unique_ptr<DeviceProfile> profile(new DeviceProfile);
  profile->neff_ = std::move(neff);
  profile->trace_ = std::move(trace);
  profile->model_ = target::MachineModel::builtin(profile->neff_->target);
  if (!profile->model_)
    return Error(ErrorKind::InvalidInput, cat("expected a known target but got '", profile->neff_->target, "'"));
  if (Status status = profile->check(); !status)
    return status.error();
  profile->describeStatics();
  profile->arrange();
  return profile;
}

Status DeviceProfile::check() const {
  if (const std::string digest = programDigest(*neff_); digest != trace_.programDigest)
    return Error(ErrorKind::InvalidInput,
                 cat("the NEFF and the trace do not belong together: the trace is of program ", trace_.programDigest,
                     " ('", trace_.label, "') but the NEFF '", neff_->name, "' is ", digest,
                     "; use the pair with the same number in their names, of one capture"));
  Status status;
  int64_t position = 0;
  trace_.timeline.forEach([&](const TimelineEvent &event) {
    const size_t length = neff_->program[event.stream].size();
    if (event.pc >= length || event.cause > position ||
        (event.kind == TimelineEvent::Kind::TableLoad && isa::kStreamEngines[event.stream] != isa::Engine::Scalar) ||
        event.run >= std::max<size_t>(1, neff_->runs.size()) ||
        (event.kind == TimelineEvent::Kind::Transfer &&
         (event.trigger > position || !neff_->program[event.stream][event.pc].tiles[0].present())))
      status = Error(ErrorKind::InvalidInput, cat("event ", position, ": expected an instruction of ", length,
                                                  " and earlier events but got ", event.pc, ", cause ", event.cause,
                                                  ", trigger ", int(event.trigger), ": the trace is damaged"));
    ++position;
    return bool(status);
  });
  if (!status)
    return status;
  if (position >= int64_t(kTransferBit))
    return Error(ErrorKind::Unsupported, cat("expected fewer than 2^31 events but got ", position));
  return status;
}

StaticInstruction DeviceProfile::describe(int stream, uint32_t pc, uint32_t run, bool isTableLoad) const {
  const Instruction &in = neff_->program[stream][pc];
  const isa::InstructionInfo &info = isa::instructionInfo(in.opcode);
  StaticInstruction out;
  out.stream = uint8_t(stream);
  out.pc = pc;
  out.run = run;
  out.isTableLoad = isTableLoad;
  out.debugId = in.debugId;
  if (isTableLoad) {
    out.opcode = "ACT_TABLE_LOAD";
    out.operands = std::string(isa::activationInfo(in.function).name);
    return out;
  }
  out.opcode = std::string(info.mnemonic);
  out.operands = operandsOf(in);
  out.isControl = info.group == isa::Group::Control;
  if (info.uses(isa::Field::Function))
    out.function = std::string(isa::activationInfo(in.function).name);
  for (int t = 0; t < info.numTiles; ++t) {
    const TilePattern &tile = in.tiles[t];
    if (!tile.present() || tile.space == MemorySpace::Hbm)
      continue;
    const int64_t bytes = int64_t(tile.numPartitions) * tile.elementsPerPartition() * isa::dtypeBytes(tile.dtype);
    const bool isSbuf = tile.space == MemorySpace::Sbuf;
    if (info.tiles[t].reads())
      (isSbuf ? out.sbufReadBytes : out.psumReadBytes) += bytes;
    if (info.tiles[t].writes())
      (isSbuf ? out.sbufWriteBytes : out.psumWriteBytes) += bytes;
    out.elements = std::max(out.elements, int64_t(tile.numPartitions) * tile.elementsPerPartition());
    out.partitions = std::max<int32_t>(out.partitions, tile.numPartitions);
  }
  out.isLoader = info.group == isa::Group::Compute &&
                 isa::computeCost(*model_, isa::kStreamEngines[stream], in).unit == isa::TensorUnit::Loader;
  if (in.opcode == isa::Opcode::Matmul) {
    out.isMatmul = true;
    out.isTranspose = in.isTranspose;
    out.flops = 2 * int64_t(in.tiles[1].numPartitions) * in.tiles[0].numPartitions * in.tiles[1].elementsPerPartition();
    out.flopsFactor = flopsFactor(*model_, in.tiles[1].dtype);
  }
  if (info.group == isa::Group::Dma && info.uses(isa::Field::Queue)) {
    out.isDma = true;
    out.queue = in.queue;
    out.isDynamic = in.dgeMode == isa::DgeMode::Software;
    out.isHardware = in.dgeMode == isa::DgeMode::Hardware;
    const Side destination = describeSide(*neff_, in, 0, run), source = describeSide(*neff_, in, 1, run);
    out.readsHbm = in.tiles[1].space == MemorySpace::Hbm;
    out.writesHbm = in.tiles[0].space == MemorySpace::Hbm;
    out.source = source.text;
    out.destination = destination.text;
    out.sourceShape = source.shape;
    out.destinationShape = destination.shape;
    out.sourceOffset = source.offset;
    out.destinationOffset = destination.offset;
    out.sourceSteps = source.steps;
    out.destinationSteps = destination.steps;
    out.sourcePartitions = source.partitions;
    out.destinationPartitions = destination.partitions;
    out.numSourcePartitions = source.numPartitions;
    out.numDestinationPartitions = destination.numPartitions;
    out.readVariable = source.variable;
    out.writeVariable = destination.variable;
    if (in.update.op != isa::UpdateOp::None)
      out.semaphore = cat("S[", int(in.update.semaphore), "]");
  }
  return out;
}

void DeviceProfile::describeStatics() {
  for (int s = 0; s < isa::kNumStreams; ++s) {
    firstStatic_[s] = uint32_t(statics_.size());
    for (uint32_t pc = 0; pc < neff_->program[s].size(); ++pc)
      statics_.push_back(describe(s, pc, 0, false));
  }
  firstTableLoad_ = uint32_t(statics_.size());
  const int scalar = isa::streamIndex(isa::Engine::Scalar);
  for (uint32_t pc = 0; pc < neff_->program[scalar].size(); ++pc)
    statics_.push_back(describe(scalar, pc, 0, true));
}

int32_t DeviceProfile::infoOf(const TimelineEvent &event) {
  const bool isTableLoad = event.kind == TimelineEvent::Kind::TableLoad;
  const uint32_t position = (isTableLoad ? firstTableLoad_ : firstStatic_[event.stream]) + event.pc;
  if (event.run == 0)
    return int32_t(position);
  const auto [found, isNew] = otherRuns_.try_emplace({position, event.run}, int32_t(statics_.size()));
  if (isNew)
    statics_.push_back(describe(event.stream, event.pc, event.run, isTableLoad));
  return found->second;
}

void DeviceProfile::arrange() {
  // Positions in the order of issue, by lane.
  std::array<std::vector<uint32_t>, isa::kNumStreams> byStream;
  std::array<std::vector<uint32_t>, isa::kMaxDmaEngines> byEngine;
  std::vector<TimelineEvent> events;
  events.reserve(trace_.timeline.size());
  trace_.timeline.forEach([&](const TimelineEvent &event) {
    const uint32_t position = uint32_t(events.size());
    if (event.kind == TimelineEvent::Kind::Transfer)
      byEngine[event.dmaEngine].push_back(position);
    else
      byStream[event.stream].push_back(position);
    events.push_back(event);
    return true;
  });
  rowOf_.resize(events.size());
  edges_.resize(events.size());
  const auto sorted = [&](std::vector<uint32_t> &positions) {
    std::stable_sort(positions.begin(), positions.end(),
                     [&](uint32_t a, uint32_t b) { return events[a].startPs < events[b].startPs; });
  };
  for (isa::Engine engine : kRowEngines) {
    std::vector<uint32_t> &positions = byStream[isa::streamIndex(engine)];
    sorted(positions);
    for (uint32_t position : positions) {
      const TimelineEvent &event = events[position];
      rowOf_[position] = uint32_t(instructions_.startPs.size());
      instructions_.startPs.push_back(event.startPs);
      instructions_.endPs.push_back(event.endPs);
      instructions_.waitPs.push_back(event.waitPs);
      instructions_.kind.push_back(uint8_t(event.kind));
      instructions_.reason.push_back(uint8_t(event.reason));
      instructions_.info.push_back(infoOf(event));
    }
    std::vector<uint32_t>().swap(positions);
  }
  // Transfers are numbered in the order of issue: all shares of one have the same trigger.
  std::vector<int32_t> block(events.size(), -1);
  int32_t blocks = 0;
  int64_t lastTrigger = -1;
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i].kind != TimelineEvent::Kind::Transfer)
      continue;
    const int64_t trigger = events[i].trigger == 0 ? -1 : int64_t(i) - events[i].trigger;
    if (trigger < 0 || trigger != lastTrigger)
      ++blocks;
    lastTrigger = trigger;
    block[i] = blocks - 1;
  }
  for (std::vector<uint32_t> &positions : byEngine) {
    sorted(positions);
    for (uint32_t position : positions) {
      const TimelineEvent &event = events[position];
      rowOf_[position] = uint32_t(transfers_.startPs.size()) | kTransferBit;
      transfers_.startPs.push_back(event.startPs);
      transfers_.endPs.push_back(event.endPs);
      transfers_.bytes.push_back(event.bytes);
      transfers_.info.push_back(infoOf(event));
      transfers_.dmaEngine.push_back(event.dmaEngine);
      transfers_.queue.push_back(event.queue);
      transfers_.reason.push_back(uint8_t(event.reason));
      transfers_.block.push_back(block[position]);
      const uint32_t trigger = event.trigger == 0 ? kTransferBit : rowOf_[position - event.trigger];
      transfers_.trigger.push_back(trigger & kTransferBit ? -1 : int64_t(trigger));
    }
    std::vector<uint32_t>().swap(positions);
  }
  for (size_t i = 0; i < events.size(); ++i) {
    const TimelineEvent &event = events[i];
    edges_[i] = {event.cause, event.reason};
    // Edges inside one lane say nothing that the lane does not show.
    if (event.cause == 0 || event.reason == Reason::Order || event.reason == Reason::Engine ||
        event.reason == Reason::Slot || event.reason == Reason::DmaEngine)
      continue;
    const uint32_t from = rowOf_[i - event.cause], to = rowOf_[i];
    flows_.from.push_back(from & ~kTransferBit);
    flows_.to.push_back(to & ~kTransferBit);
    flows_.fromTable.push_back(from & kTransferBit ? 1 : 0);
    flows_.toTable.push_back(to & kTransferBit ? 1 : 0);
    flows_.reason.push_back(uint8_t(event.reason));
    flows_.gapPs.push_back(event.startPs - events[i - event.cause].endPs);
  }
}

UpdateRows DeviceProfile::updates() const {
  struct Update {
    SemaphoreEvent event;
    int64_t position;
  };
  std::vector<Update> updates;
  trace_.timeline.forEachUpdate([&](const SemaphoreEvent &event, int64_t source) {
    updates.push_back({event, source >= 0 && source < int64_t(rowOf_.size()) ? source : -1});
    return true;
  });
  std::stable_sort(updates.begin(), updates.end(),
                   [](const Update &a, const Update &b) { return a.event.timePs < b.event.timePs; });
  UpdateRows rows;
  std::array<int32_t, isa::kNumSemaphores> values = {};
  for (const Update &update : updates) {
    int32_t &value = values[update.event.semaphore];
    value = update.event.op == isa::UpdateOp::Write ? update.event.amount
                                                    : int32_t(uint32_t(value) + uint32_t(update.event.amount));
    rows.timePs.push_back(update.event.timePs);
    rows.value.push_back(value);
    rows.semaphore.push_back(update.event.semaphore);
    rows.op.push_back(uint8_t(update.event.op));
    rows.isDma.push_back(update.event.isDma);
    const uint32_t row = update.position < 0 ? 0 : rowOf_[size_t(update.position)];
    const bool isTransfer = row & kTransferBit;
    rows.row.push_back(update.position < 0 ? -1 : int64_t(row & ~kTransferBit));
    rows.stream.push_back(update.position < 0 || isTransfer ? int8_t(-1)
                                                            : int8_t(statics_[size_t(instructions_.info[row])].stream));
    rows.table.push_back(isTransfer);
  }
  return rows;
}

PathRows DeviceProfile::criticalPath() const {
  PathRows path;
  // The event that ends last, in the order of issue.
  size_t last = 0;
  int64_t end = -1;
  const auto endOf = [&](size_t position) {
    const uint32_t row = rowOf_[position];
    return row & kTransferBit ? transfers_.endPs[row & ~kTransferBit] : instructions_.endPs[row];
  };
  for (size_t i = 0; i < rowOf_.size(); ++i)
    if (const int64_t time = endOf(i); time > end) {
      end = time;
      last = i;
    }
  if (end < 0)
    return path;
  for (size_t position = last;;) {
    const uint32_t row = rowOf_[position];
    const bool isTransfer = row & kTransferBit;
    const size_t index = row & ~kTransferBit;
    const int64_t start = isTransfer ? transfers_.startPs[index] : instructions_.startPs[index];
    path.row.push_back(int64_t(index));
    path.table.push_back(isTransfer);
    path.startPs.push_back(start);
    path.endPs.push_back(end);
    path.reason.push_back(uint8_t(edges_[position].reason));
    path.info.push_back(isTransfer ? transfers_.info[index] : instructions_.info[index]);
    end = start;
    if (edges_[position].cause == 0)
      break;
    position -= edges_[position].cause;
  }
  const auto reversed = [](auto &column) { std::reverse(column.begin(), column.end()); };
  reversed(path.row);
  reversed(path.table);
  reversed(path.startPs);
  reversed(path.endPs);
  reversed(path.reason);
  reversed(path.info);
  return path;
}

Expected<int64_t> DeviceProfile::whatIf(const emulator::Speedup &speedup) const {
  Expected<std::shared_ptr<const emulator::LoadedProgram>> program =
      emulator::LoadedProgram::load(neff_, *model_, {.isVerified = true});
  if (!program)
    return program.error();
  emulator::TimingOptions options;
  options.recordTimeline = false;
  options.speedup = speedup;
  Expected<emulator::TimingResult> result = emulator::simulateTiming(**program, trace_.control, options);
  if (!result)
    return result.error();
  return result->kernelPs;
}

} // namespace neuroncore::profile

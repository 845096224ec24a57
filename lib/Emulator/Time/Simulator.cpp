// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Emulator/Time/Simulator.h"

#include <algorithm>

#include "lib/Emulator/Time/SteadyLoops.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Support/Text.h"

namespace neuroncore::emulator {

using isa::ComputeCost;
using isa::Engine;
using isa::Instruction;
using isa::kNumStreams;
using isa::Opcode;
using isa::TensorUnit;

// ---------------------------------------------------------------------------------------------------------------------
// Semaphores
// ---------------------------------------------------------------------------------------------------------------------

void SemaphoreLog::add(int64_t timePs, int32_t amount, bool isWrite, int64_t source) {
  auto position = pending_.end();
  while (position != pending_.begin() && (position - 1)->timePs > timePs)
    --position;
  pending_.insert(position, {timePs, amount, isWrite, source});
}

int64_t SemaphoreLog::satisfiedAt(const ResolvedWait &wait, int64_t from) const {
  int32_t value = value_;
  size_t next = 0;
  for (; next < pending_.size() && pending_[next].timePs <= from; ++next)
    value = pending_[next].isWrite ? pending_[next].amount : wrap(int64_t(value) + pending_[next].amount);
  if (isSatisfied(wait, value))
    return from;
  for (; next < pending_.size(); ++next) {
    value = pending_[next].isWrite ? pending_[next].amount : wrap(int64_t(value) + pending_[next].amount);
    if (isSatisfied(wait, value))
      return pending_[next].timePs;
  }
  return kNever;
}

void SemaphoreLog::settle(int64_t now) {
  size_t past = 0;
  for (; past < pending_.size() && pending_[past].timePs <= now; ++past) {
    value_ = pending_[past].isWrite ? pending_[past].amount : wrap(int64_t(value_) + pending_[past].amount);
    settledPs_ = pending_[past].timePs;
    settledSource_ = pending_[past].source;
  }
  pending_.erase(pending_.begin(), pending_.begin() + past);
}

int32_t SemaphoreLog::finalValue() const {
  int32_t value = value_;
  for (const Change &change : pending_)
    value = change.isWrite ? change.amount : wrap(int64_t(value) + change.amount);
  return value;
}

int64_t SemaphoreLog::sourceAt(int64_t timePs) const {
  int64_t source = settledPs_ == timePs ? settledSource_ : -1;
  for (const Change &change : pending_)
    if (change.timePs == timePs)
      source = change.source;
  return source;
}

void SemaphoreLog::shift(int64_t timePs, int32_t amount, int64_t events) {
  value_ = wrap(int64_t(value_) + amount);
  settledPs_ += timePs;
  settledSource_ += events;
  for (Change &change : pending_) {
    change.timePs += timePs;
    change.source += events;
    if (change.isWrite)
      change.amount = wrap(int64_t(change.amount) + amount);
  }
}

void TimingSums::extrapolate(const TimingSums &earlier, const TimingSums &later, uint64_t n) {
  const auto grow = [n](auto &sum, auto from, auto to) { sum += decltype(from)(n) * (to - from); };
  for (int s = 0; s < kNumStreams; ++s) {
    grow(engines[s].instructions, earlier.engines[s].instructions, later.engines[s].instructions);
    grow(engines[s].busyPs, earlier.engines[s].busyPs, later.engines[s].busyPs);
    grow(engines[s].waitPs, earlier.engines[s].waitPs, later.engines[s].waitPs);
  }
  for (size_t e = 0; e < dmaBusyPs.size(); ++e)
    grow(dmaBusyPs[e], earlier.dmaBusyPs[e], later.dmaBusyPs[e]);
  grow(transfers, earlier.transfers, later.transfers);
  grow(dmaBytes, earlier.dmaBytes, later.dmaBytes);
  grow(hbmReadBytes, earlier.hbmReadBytes, later.hbmReadBytes);
  grow(hbmWriteBytes, earlier.hbmWriteBytes, later.hbmWriteBytes);
  grow(tableLoads, earlier.tableLoads, later.tableLoads);
  grow(flops, earlier.flops, later.flops);
  grow(transposeFlops, earlier.transposeFlops, later.transposeFlops);
}

// ---------------------------------------------------------------------------------------------------------------------
// Simulator
// ---------------------------------------------------------------------------------------------------------------------

static int64_t faster(int64_t timePs, double factor) { return int64_t(double(timePs) / factor); }

Simulator::Simulator(const LoadedProgram &program, const ControlTrace &trace, const TimingOptions &options)
    : program_(program.impl()), model_(options.model ? *options.model : program.model()), trace_(trace),
      options_(options), tableSet_(options.initialTableSet),
      hopPs_(faster(model_.sync().engineToEngineSemaphorePs, options.speedup.semaphores)) {
  resourceEvent_.fill(-1);
  dmaEvent_.fill(-1);
  queueEvent_.fill(-1);
  for (int s = 0; s < kNumStreams; ++s) {
    streams_[s].state.ended = program_.steps[s].empty();
    streams_[s].costs.resize(program_.steps[s].size());
  }
  if (options.skipSteadyLoops)
    loops_ = std::make_unique<SteadyLoops>(*this);
}

Simulator::~Simulator() = default;

bool Simulator::fail(int stream, std::string message) {
  error_ = Error(ErrorKind::Hazard, std::move(message))
               .withContext(describeInstruction(*program_.neff, stream, streams_[stream].state.pc));
  return false;
}

const ComputeCost &Simulator::costOf(int stream, uint32_t pc) {
  CachedCost &cached = streams_[stream].costs[pc];
  const isa::PeState &pe = streams_[stream].pe;
  const Instruction &instruction = *program_.steps[stream][pc].instruction;
  const bool usesPe = instruction.opcode == Opcode::Matmul;
  if (!cached.valid || (usesPe && (cached.pe.rows != pe.rows || cached.pe.cols != pe.cols ||
                                   cached.pe.dtype != pe.dtype || cached.pe.oneZero != pe.oneZero))) {
    cached.cost = isa::computeCost(model_, isa::kStreamEngines[stream], instruction, usesPe ? &pe : nullptr);
    if (const double factor = options_.speedup.engines[stream]; factor != 1)
      for (int64_t *time : {&cached.cost.issuePs, &cached.cost.occupancyPs, &cached.cost.latencyPs})
        *time = faster(*time, factor);
    cached.pe = pe;
    cached.valid = true;
  }
  return cached.cost;
}

void Simulator::updateNext(int s) {
  Stream &stream = streams_[s];
  stream.nextPs = kNever;
  if (stream.state.ended)
    return;
  const Step &step = program_.steps[s][stream.state.pc];
  int64_t time = stream.clockPs;
  if (isQueued(step)) {
    if (stream.queue.size() >= kQueueDepth)
      return;
    time = std::max(time, stream.slotFreePs);
  }
  for (int i = 0; i < step.numWaits; ++i) {
    const ResolvedWait wait = resolve(step.instruction->waits[i], stream.state);
    if (!isValidSemaphore(wait.semaphore)) {
      // Reported when the instruction is stepped.
      stream.nextPs = time;
      return;
    }
    time = semaphores_[wait.semaphore].satisfiedAt(wait, time);
    if (time == kNever)
      return;
  }
  // With several waits a later one may have moved past a window of an earlier equality: look again.
  if (step.numWaits > 1)
    for (int i = 0; i < step.numWaits; ++i) {
      const ResolvedWait wait = resolve(step.instruction->waits[i], stream.state);
      const int64_t again = semaphores_[wait.semaphore].satisfiedAt(wait, time);
      if (again != time) {
        time = again;
        i = -1;
        if (time == kNever)
          return;
      }
    }
  stream.nextPs = time;
}

/// When the oldest queued instruction of a data path starts; adds a table load to the cost's start.
int64_t Simulator::engineStart(int s, ComputeCost &cost) {
  Stream &stream = streams_[s];
  if (stream.queue.empty())
    return kNever;
  const Pending &pending = stream.queue.front();
  cost = costOf(s, pending.pc);
  if (program_.steps[s][pending.pc].kind == Step::Kind::Control)
    return std::max(pending.issuedPs, stream.lastStartPs);
  int64_t start = std::max(pending.issuedPs, stream.lastStartPs);
  switch (cost.unit) {
  case TensorUnit::Loader:
    start = std::max(start, stream.loaderPs);
    break;
  case TensorUnit::Array:
    start = std::max({start, stream.loaderPs, stream.enginePs});
    break;
  case TensorUnit::None:
    start = std::max(start, stream.enginePs);
    break;
  }
  for (uint32_t mask = cost.resources; mask != 0; mask &= mask - 1)
    start = std::max(start, resourcePs_[__builtin_ctz(mask)]);
  return start;
}

Simulator::Cause Simulator::sequencerCause(int s, const Step &step, int64_t time, int64_t waited) const {
  const Stream &stream = streams_[s];
  if (waited > 0)
    for (int i = 0; i < step.numWaits; ++i) {
      const int64_t semaphore = resolve(step.instruction->waits[i], stream.state).semaphore;
      if (const int64_t source = semaphores_[semaphore].sourceAt(time); source >= 0)
        return {TimelineEvent::Reason::Semaphore, source};
    }
  if (isQueued(step) && stream.slotFreePs > stream.clockPs)
    return {TimelineEvent::Reason::Slot, stream.slotEvent};
  // An instruction of the data path may still be waiting for its tables.
  const int64_t before =
      stream.lastStartPs <= time ? std::max(stream.sequencerEvent, stream.dataEvent) : stream.sequencerEvent;
  return {before < 0 ? TimelineEvent::Reason::Start : TimelineEvent::Reason::Order, before};
}

Simulator::Cause Simulator::engineCause(int s, const Pending &pending, const ComputeCost &cost, int64_t start) const {
  const Stream &stream = streams_[s];
  if (pending.issuedPs == start) {
    // The instruction before it may have been issued and not started when this one was issued.
    if (pending.cause.reason == TimelineEvent::Reason::Order && stream.dataEvent > pending.cause.event)
      return {TimelineEvent::Reason::Order, stream.dataEvent};
    return pending.cause;
  }
  if (cost.unit != TensorUnit::None && stream.loaderPs == start)
    return {TimelineEvent::Reason::Engine, stream.loaderEvent};
  if (stream.enginePs == start)
    return {TimelineEvent::Reason::Engine, stream.engineEvent};
  if (stream.lastStartPs == start)
    return {TimelineEvent::Reason::Engine, stream.dataEvent};
  for (uint32_t mask = cost.resources; mask != 0; mask &= mask - 1)
    if (const int bit = __builtin_ctz(mask); resourcePs_[bit] == start)
      return {TimelineEvent::Reason::Resource, resourceEvent_[bit]};
  return pending.cause;
}

void Simulator::stepEngine(int s, int64_t start, const ComputeCost &cost) {
  Stream &stream = streams_[s];
  const Pending pending = stream.queue.front();
  stream.queue.erase(stream.queue.begin());
  const Cause cause = engineCause(s, pending, cost, start);
  const bool freesSlot = start > stream.slotFreePs;
  stream.slotFreePs = std::max(stream.slotFreePs, start);
  const Instruction &instruction = *program_.steps[s][pending.pc].instruction;
  const int64_t hop = hopPs_;
  if (instruction.opcode == Opcode::Nop) {
    stream.lastStartPs = start;
    stream.lastVisiblePs = std::max(stream.lastVisiblePs, start);
    endPs_ = std::max(endPs_, stream.lastVisiblePs);
    const int64_t position =
        options_.recordCauses ? recordSequencer(s, pending.pc, pending.run, start, start, pending.waitedPs, cause) : -1;
    if (freesSlot)
      stream.slotEvent = position;
    post(pending.semaphore, instruction.update, stream.lastVisiblePs + hop, position);
    updateNext(s);
    return;
  }
  TimelineEvent event;
  event.stream = uint8_t(s);
  event.pc = pending.pc;
  event.run = pending.run;
  bool tableLoaded = false;
  if (cost.tableSet != isa::ActivationSet::Any && cost.tableSet != tableSet_) {
    tableSet_ = cost.tableSet;
    ++sums_.tableLoads;
    const int64_t load = model_.scalarEngine().tableLoadPs;
    event.kind = TimelineEvent::Kind::TableLoad;
    event.startPs = start;
    event.endPs = start + load;
    stream.dataEvent = record(event, cause);
    if (freesSlot)
      stream.slotEvent = stream.dataEvent;
    tableLoaded = true;
    start += load;
  }
  const int64_t end = start + cost.occupancyPs;
  // Weights are loaded beside a multiplication: such time counts once.
  const int64_t busyUntil = std::max({start, stream.loaderPs, stream.enginePs});
  switch (cost.unit) {
  case TensorUnit::Loader:
    stream.loaderPs = end;
    break;
  default:
    stream.enginePs = end;
  }
  for (uint32_t mask = cost.resources; mask != 0; mask &= mask - 1)
    resourcePs_[__builtin_ctz(mask)] = end;
  stream.lastStartPs = start;
  stream.lastVisiblePs = std::max(stream.lastVisiblePs, start + cost.latencyPs);
  endPs_ = std::max(endPs_, stream.lastVisiblePs);
  EngineTiming &timing = sums_.engines[s];
  ++timing.instructions;
  timing.busyPs += std::max<int64_t>(0, end - busyUntil);
  event.kind = TimelineEvent::Kind::Instruction;
  event.startPs = start;
  event.endPs = end;
  event.waitPs = pending.waitedPs;
  const int64_t position = record(event, tableLoaded ? Cause{TimelineEvent::Reason::Engine, stream.dataEvent} : cause);
  stream.dataEvent = position;
  if (cost.unit == TensorUnit::Loader)
    stream.loaderEvent = position;
  else
    stream.engineEvent = position;
  if (freesSlot && !tableLoaded)
    stream.slotEvent = position;
  for (uint32_t mask = cost.resources; mask != 0; mask &= mask - 1)
    resourceEvent_[__builtin_ctz(mask)] = position;
  if (instruction.opcode == Opcode::Matmul) {
    const double flops = 2.0 * instruction.tiles[1].numPartitions * instruction.tiles[0].numPartitions *
                         double(instruction.tiles[1].elementsPerPartition());
    (instruction.isTranspose ? sums_.transposeFlops : sums_.flops) += flops;
  }
  if (isa::kStreamEngines[s] == Engine::Tensor)
    stream.pe.update(instruction);
  if (pending.semaphore >= 0)
    post(pending.semaphore, instruction.update, stream.lastVisiblePs + hop, position);
  updateNext(s); // the queue has room
}

bool Simulator::resolveUpdate(int s, const Instruction &instruction, int32_t &semaphore) {
  semaphore = -1;
  if (instruction.update.op == isa::UpdateOp::None)
    return true;
  const int64_t index = resolveSemaphore(instruction.update, streams_[s].state);
  if (!isValidSemaphore(index))
    return fail(s, cat("semaphore ", index, " is outside [0, ", isa::kNumSemaphores, ")"));
  semaphore = int32_t(index);
  return true;
}

void Simulator::post(int32_t index, const isa::Update &update, int64_t time, int64_t source, int times, bool isDma) {
  SemaphoreLog &log = semaphores_[index];
  touched_[index] = true;
  const bool isWrite = update.op == isa::UpdateOp::Write;
  const int32_t amount = isWrite ? update.value : applyUpdate(update.op, 0, update.value) * times;
  log.add(time, amount, isWrite, source);
  if (options_.recordCauses && options_.recordTimeline) {
    if (timeline_.segments.empty())
      timeline_.segments.emplace_back();
    Timeline::Segment &segment = timeline_.segments.back();
    segment.updates.push_back({time, amount, uint8_t(index), update.op, isDma, uint32_t(segment.events.size()),
                               source < 0 ? 0 : uint32_t(events_ - source)});
  }
  for (int other = 0; other < kNumStreams; ++other) {
    Stream &stream = streams_[other];
    if (stream.state.ended)
      continue;
    const Step &step = program_.steps[other][stream.state.pc];
    for (int i = 0; i < step.numWaits; ++i)
      if (resolve(step.instruction->waits[i], stream.state).semaphore == index) {
        updateNext(other);
        break;
      }
  }
}

void Simulator::noteWaits(int s, const Instruction &instruction, int64_t ready) {
  if (!notesPath_)
    return;
  for (int i = 0; i < instruction.numWaits; ++i) {
    const ResolvedWait wait = resolve(instruction.waits[i], streams_[s].state);
    const SemaphoreLog &log = semaphores_[wait.semaphore];
    PathStep step = {};
    step.kind = PathStep::Kind::Wait;
    step.stream = uint8_t(s);
    step.pc = streams_[s].state.pc;
    step.detail = int32_t(wait.semaphore);
    step.value = wrap(int64_t(wait.value) - log.finalValue());
    // Did it hold the stream up, or would a later satisfaction have been noticed?
    step.flag = wait.equal || log.satisfiedAt(wait, ready) != ready;
    path_.push_back(step);
  }
}

bool Simulator::stepSequencer(int s) {
  Stream &stream = streams_[s];
  const uint32_t pc = stream.state.pc;
  const Step &step = program_.steps[s][pc];
  const Instruction &instruction = *step.instruction;
  const int64_t time = stream.nextPs;
  int64_t waited = 0;
  if (step.numWaits != 0) {
    for (int i = 0; i < step.numWaits; ++i) {
      const ResolvedWait wait = resolve(instruction.waits[i], stream.state);
      if (!isValidSemaphore(wait.semaphore))
        return fail(s, cat("semaphore ", wait.semaphore, " is outside [0, ", isa::kNumSemaphores, ")"));
    }
    int64_t ready = stream.clockPs;
    if (isQueued(step))
      ready = std::max(ready, stream.slotFreePs);
    noteWaits(s, instruction, ready);
    waited = time - ready;
    sums_.engines[s].waitPs += waited;
  }
  int32_t semaphore;
  if (!resolveUpdate(s, instruction, semaphore))
    return false;
  const Cause cause = options_.recordCauses ? sequencerCause(s, step, time, waited) : Cause();
  if (isQueued(step)) {
    stream.queue.push_back({pc, time, waited, semaphore, runOf(stream.state), cause});
    stream.clockPs = time + costOf(s, pc).issuePs;
    advance(stream.state, uint32_t(program_.steps[s].size()));
  } else if (step.kind == Step::Kind::Dma) {
    triggerDma(s, instruction, semaphore, time, waited, cause);
    advance(stream.state, uint32_t(program_.steps[s].size()));
  } else if (!control(s, step, semaphore, time, waited, cause)) {
    return false;
  }
  updateNext(s);
  return bool(error_);
}

void Simulator::triggerDma(int s, const Instruction &instruction, int32_t semaphore, int64_t time, int64_t waited,
                           Cause cause) {
  Stream &stream = streams_[s];
  const auto noteSizes = [&](const isa::HbmPattern &pattern) {
    for (int i = 0; i < isa::kMaxHbmDims; ++i)
      for (uint8_t reg : {pattern.countRegister[i], pattern.stepRegister[i]})
        if (reg != isa::kZeroRegister) {
          PathStep step = {};
          step.kind = PathStep::Kind::Constant;
          step.stream = uint8_t(s);
          step.pc = stream.state.pc;
          step.value = stream.state.registers[reg];
          note(step);
        }
  };
  noteSizes(instruction.hbm[0]);
  noteSizes(instruction.hbm[1]);
  std::array<uint32_t, isa::kNumRegisters> registers;
  for (int i = 0; i < isa::kNumRegisters; ++i)
    registers[i] = uint32_t(stream.state.registers[i]);
  isa::DmaCost cost = isa::dmaCost(model_, isa::kStreamEngines[s], instruction, registers.data());
  if (const double rate = options_.speedup.dmaRate; rate != 1) {
    for (int64_t &busy : cost.busyPs)
      busy = faster(busy, rate);
    cost.queueFloorPs = faster(cost.queueFloorPs, rate);
  }
  if (const double latency = options_.speedup.dmaLatency; latency != 1) {
    cost.dispatchPs = faster(cost.dispatchPs, latency);
    cost.completionPs = faster(cost.completionPs, latency);
  }
  stream.clockPs = time + cost.issuePs;
  const int64_t trigger = options_.recordCauses ? recordSequencer(s, stream.state.pc, runOf(stream.state), time,
                                                                  stream.clockPs, waited, cause)
                                                : -1;
  Cause startCause = {TimelineEvent::Reason::Trigger, trigger};
  int64_t begin = time;
  if (cost.generatorPs > 0) {
    // The descriptors are made on the GpSimd data path, between its instructions.
    Stream &gpsimd = streams_[isa::streamIndex(Engine::Gpsimd)];
    if (gpsimd.enginePs > begin)
      startCause = {TimelineEvent::Reason::Engine, gpsimd.engineEvent};
    begin = std::max(begin, gpsimd.enginePs);
    gpsimd.enginePs = begin + cost.generatorPs;
    // What waits for the data path waits for this trigger.
    gpsimd.engineEvent = trigger;
    sums_.engines[isa::streamIndex(Engine::Gpsimd)].busyPs += cost.generatorPs;
  }
  const int64_t start = std::max(begin + cost.dispatchPs, queuePs_[instruction.queue]);
  if (queuePs_[instruction.queue] > begin + cost.dispatchPs)
    startCause = {TimelineEvent::Reason::Queue, queueEvent_[instruction.queue]};
  queuePs_[instruction.queue] = start + std::max(cost.queueFloorPs, cost.dataPs());
  ++sums_.transfers;
  sums_.hbmReadBytes += cost.hbmReadBytes;
  sums_.hbmWriteBytes += cost.hbmWriteBytes;
  const int engines = std::min(model_.topology().dmaEnginesPerCore, isa::kMaxDmaEngines);
  int64_t last = start;
  int64_t longestPart = -1;
  std::array<int64_t, kDmaParts> parts;
  parts.fill(trigger);
  // Each engine posts its own increment; one without data does so as soon as the transfer has started.
  std::array<int64_t, kDmaParts> ends;
  ends.fill(start);
  for (int e = 0; e < engines; ++e) {
    int64_t end = start;
    if (cost.busyPs[e] > 0) {
      const int64_t first = std::max(start, dmaPs_[e]);
      end = first + cost.busyPs[e];
      dmaPs_[e] = end;
      sums_.dmaBusyPs[e] += cost.busyPs[e];
      sums_.dmaBytes += cost.bytes[e];
      TimelineEvent event;
      event.kind = TimelineEvent::Kind::Transfer;
      event.stream = uint8_t(s);
      event.pc = stream.state.pc;
      event.run = runOf(stream.state);
      event.dmaEngine = uint8_t(e);
      event.queue = instruction.queue;
      event.startPs = first;
      event.endPs = end;
      event.bytes = cost.bytes[e];
      event.trigger = trigger < 0 ? 0 : uint8_t(events_ - trigger);
      parts[e] = record(event, first > start ? Cause{TimelineEvent::Reason::DmaEngine, dmaEvent_[e]} : startCause);
      dmaEvent_[e] = parts[e];
      if (longestPart < 0 || end > last)
        longestPart = parts[e];
      last = std::max(last, end);
    }
    ends[e] = end;
  }
  queueEvent_[instruction.queue] = longestPart >= 0 ? longestPart : trigger;
  if (semaphore >= 0) {
    std::array<std::pair<int64_t, int64_t>, kDmaParts> order;
    for (int i = 0; i < kDmaParts; ++i)
      order[i] = {ends[i], parts[i]};
    std::sort(order.begin(), order.end());
    for (int i = 0; i < kDmaParts;) {
      int equal = 1;
      while (i + equal < kDmaParts && order[i + equal].first == order[i].first)
        ++equal;
      post(semaphore, instruction.update, order[i].first + cost.completionPs, order[i + equal - 1].second, equal, true);
      i += equal;
    }
  }
  endPs_ = std::max(endPs_, last + cost.completionPs);
}

bool Simulator::control(int s, const Step &step, int32_t semaphore, int64_t time, int64_t waited, Cause cause) {
  Stream &stream = streams_[s];
  const Instruction &instruction = *step.instruction;
  const uint32_t pc = stream.state.pc;
  const uint32_t length = uint32_t(program_.steps[s].size());
  const int64_t end = time + costOf(s, pc).issuePs;
  stream.clockPs = end;
  endPs_ = std::max(endPs_, end);
  const int64_t position =
      options_.recordCauses ? recordSequencer(s, pc, runOf(stream.state), time, end, waited, cause) : -1;
  if (semaphore >= 0)
    post(semaphore, instruction.update, end + hopPs_, position);
  switch (step.kind) {
  case Step::Kind::RegisterLoad: {
    int32_t value = 0;
    if (step.isRecorded) {
      const std::vector<int32_t> &loads = trace_.loads[s];
      if (stream.traceIndex >= loads.size())
        return fail(s, cat("the control trace has ", loads.size(), " values for this stream and another is needed"));
      value = loads[stream.traceIndex++];
      PathStep recorded = {};
      recorded.kind = PathStep::Kind::Recorded;
      recorded.stream = uint8_t(s);
      recorded.pc = pc;
      note(recorded);
    }
    stream.state.write(instruction.rd, value);
    advance(stream.state, length);
    return true;
  }
  case Step::Kind::RegisterStore:
    advance(stream.state, length);
    return true;
  case Step::Kind::SemaphoreClear:
    for (uint32_t i = 0; i < instruction.target; ++i) {
      const int index = instruction.immediate + int(i);
      if (!touched_[index])
        continue;
      isa::Update write;
      write.op = isa::UpdateOp::Write;
      write.value = 0;
      post(index, write, end, position);
    }
    advance(stream.state, length);
    return true;
  default:
    break;
  }
  const auto &r = stream.state.registers;
  const int32_t right = wrap(int64_t(r[instruction.rt]) + instruction.immediate);
  PathStep note1 = {};
  note1.stream = uint8_t(s);
  note1.pc = pc;
  if (instruction.opcode == Opcode::Branch) {
    const bool taken = compareRegisters(instruction.op0, r[instruction.rs], right);
    note1.kind = PathStep::Kind::Compare;
    note1.op = instruction.op0;
    note1.flag = taken;
    note1.value = int64_t(r[instruction.rs]) - right;
    note(note1);
    const bool isBack = instruction.target <= pc;
    if (executeControl(instruction, stream.state, length) != ControlResult::Ok)
      return fail(s, "call stack overflow");
    if (isBack && loops_) {
      if (taken) {
        updateNext(s);
        loops_->backEdge(s, pc, time);
      } else {
        loops_->left(s, pc);
      }
    }
    return true;
  }
  if (instruction.opcode == Opcode::RegisterAlu) {
    const bool linear = instruction.op0 == isa::AluOp::Add || instruction.op0 == isa::AluOp::Subtract ||
                        instruction.op0 == isa::AluOp::Bypass ||
                        (instruction.op0 == isa::AluOp::Multiply && instruction.rt == isa::kZeroRegister);
    if (!linear)
      for (int64_t operand : {int64_t(r[instruction.rs]), int64_t(right)}) {
        note1.kind = PathStep::Kind::Constant;
        note1.value = operand;
        note(note1);
      }
  }
  if (executeControl(instruction, stream.state, length) != ControlResult::Ok)
    return fail(s, cat("calls are nested deeper than ", kMaxCallDepth));
  return true;
}

int64_t Simulator::record(TimelineEvent event, Cause cause) {
  if (!options_.recordTimeline)
    return -1;
  if (timeline_.segments.empty())
    timeline_.segments.emplace_back();
  if (options_.recordCauses && cause.event >= 0) {
    event.reason = cause.reason;
    event.cause = uint32_t(events_ - cause.event);
  }
  timeline_.segments.back().events.push_back(event);
  return events_++;
}

int64_t Simulator::recordSequencer(int s, uint32_t pc, uint32_t run, int64_t start, int64_t end, int64_t waited,
                                   Cause cause) {
  TimelineEvent event;
  event.kind = TimelineEvent::Kind::Sequencer;
  event.stream = uint8_t(s);
  event.pc = pc;
  event.run = run;
  event.startPs = start;
  event.endPs = end;
  event.waitPs = waited;
  event.queue = program_.steps[s][pc].instruction->queue;
  return streams_[s].sequencerEvent = record(event, cause);
}

void Simulator::openSegment() {
  if (options_.recordTimeline && !timeline_.segments.empty() && !timeline_.segments.back().empty())
    timeline_.segments.emplace_back();
}

Expected<TimingResult> Simulator::run() {
  for (int s = 0; s < kNumStreams; ++s)
    updateNext(s);
  while (true) {
    // The earliest action of the ten actors; data paths before sequencers at equal times.
    int64_t best = kNever;
    int actor = -1;
    bool isEngine = false;
    ComputeCost bestCost, cost;
    bool live = false;
    for (int s = 0; s < kNumStreams; ++s) {
      const Stream &stream = streams_[s];
      live |= !stream.state.ended || !stream.queue.empty();
      const int64_t start = engineStart(s, cost);
      if (start < best) {
        best = start;
        actor = s;
        isEngine = true;
        bestCost = cost;
      }
    }
    for (int s = 0; s < kNumStreams; ++s) {
      const int64_t next = streams_[s].nextPs;
      if (next < best) {
        best = next;
        actor = s;
        isEngine = false;
      }
    }
    if (actor < 0) {
      if (live)
        return Error(ErrorKind::Hazard, "deadlock in the modelled execution; execute the program for details");
      return finish();
    }
    nowPs_ = std::max(nowPs_, best);
    if (++steps_ % 64 == 0)
      for (int i = 0; i < isa::kNumSemaphores; ++i)
        if (touched_[i])
          semaphores_[i].settle(nowPs_);
    if (options_.maxSteps != 0 && steps_ > options_.maxSteps)
      return Error(ErrorKind::InvalidInput,
                   cat("the modelled execution did not end within ", options_.maxSteps, " steps"));
    if (isEngine)
      stepEngine(actor, best, bestCost);
    else
      stepSequencer(actor);
    if (!error_)
      return error_.error();
  }
}

TimingResult Simulator::finish() {
  TimingResult result;
  result.kernelPs = endPs_;
  result.engines = sums_.engines;
  result.dmaBusyPs = sums_.dmaBusyPs;
  result.transfers = sums_.transfers;
  result.dmaBytes = sums_.dmaBytes;
  result.hbmReadBytes = sums_.hbmReadBytes;
  result.hbmWriteBytes = sums_.hbmWriteBytes;
  result.tableLoads = sums_.tableLoads;
  result.tableLoadPs = int64_t(sums_.tableLoads) * model_.scalarEngine().tableLoadPs;
  result.flops = sums_.flops;
  result.transposeFlops = sums_.transposeFlops;
  result.finalTableSet = tableSet_;
  result.timeline = std::move(timeline_);
  result.simulatedSteps = steps_;
  int64_t longest = -1;
  for (int s = 0; s < kNumStreams; ++s)
    if (result.engines[s].busyPs > longest) {
      longest = result.engines[s].busyPs;
      result.limiter = isa::toString(isa::kStreamEngines[s]);
    }
  for (int64_t busy : result.dmaBusyPs)
    if (busy > longest) {
      longest = busy;
      result.limiter = "dma";
    }
  return result;
}

Expected<TimingResult> simulateTiming(const LoadedProgram &program, const ControlTrace &trace,
                                      const TimingOptions &options) {
  return Simulator(program, trace, options).run();
}

} // namespace neuroncore::emulator

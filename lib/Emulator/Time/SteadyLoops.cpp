// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Emulator/Time/SteadyLoops.h"

#include <algorithm>

namespace neuroncore::emulator {

using isa::AluOp;
using isa::kNumStreams;

SteadyLoops::Snapshot SteadyLoops::take(int64_t now) const {
  Snapshot snapshot;
  snapshot.timePs = now;
  std::vector<int64_t> &state = snapshot.state;
  state.reserve(256);
  // Times that lie in the past have no influence any more: one value for all of them.
  const auto time = [&](int64_t t) { state.push_back(t > now ? t - now : 0); };
  for (int s = 0; s < kNumStreams; ++s) {
    const Simulator::Stream &stream = sim_.streams_[s];
    snapshot.registers[s] = stream.state.registers;
    state.push_back(stream.state.ended ? -1 : int64_t(stream.state.pc));
    state.push_back(stream.state.depth);
    for (int i = 0; i < stream.state.depth; ++i)
      state.push_back(stream.state.stack[i]);
    time(stream.clockPs);
    time(stream.slotFreePs);
    time(stream.enginePs);
    time(stream.loaderPs);
    time(stream.lastStartPs);
    time(stream.lastVisiblePs);
    state.push_back(int64_t(stream.queue.size()));
    for (const Simulator::Pending &pending : stream.queue) {
      state.push_back(pending.pc);
      state.push_back(pending.semaphore);
      time(pending.issuedPs);
      state.push_back(pending.waitedPs);
    }
    if (isa::kStreamEngines[s] == isa::Engine::Tensor) {
      state.push_back(stream.pe.rows);
      state.push_back(stream.pe.cols);
      state.push_back(int64_t(stream.pe.dtype));
      state.push_back(stream.pe.oneZero);
    }
  }
  for (int64_t t : sim_.resourcePs_)
    time(t);
  for (int64_t t : sim_.dmaPs_)
    time(t);
  for (int q = 0; q < 16; ++q)
    time(sim_.queuePs_[q]);
  for (size_t q = 16; q < sim_.queuePs_.size(); ++q)
    if (sim_.queuePs_[q] > now) {
      state.push_back(int64_t(q));
      time(sim_.queuePs_[q]);
    }
  state.push_back(int64_t(sim_.tableSet_));
  for (int i = 0; i < isa::kNumSemaphores; ++i) {
    const SemaphoreLog &log = sim_.semaphores_[i];
    snapshot.semaphores[i] = log.finalValue();
    for (const SemaphoreLog::Change &change : log.pending())
      if (change.timePs > now) {
        state.push_back(i);
        time(change.timePs);
        state.push_back(change.isWrite ? INT64_MIN : change.amount);
      }
  }
  snapshot.hash = 1469598103934665603ull;
  for (int64_t value : state)
    snapshot.hash = (snapshot.hash ^ uint64_t(value)) * 1099511628211ull;
  snapshot.sums = sim_.sums_;
  snapshot.segment = sim_.timeline_.segments.size();
  if (snapshot.segment > 0 && sim_.timeline_.segments.back().empty())
    --snapshot.segment;
  snapshot.events = sim_.events_;
  snapshot.path = sim_.path_.size();
  return snapshot;
}

namespace {

/// For how many k = 1, 2, ... does `value + k * step` compare with 0 as `value` does?
int64_t stableSteps(AluOp op, int64_t value, int64_t step) {
  if (step == 0 || op == AluOp::Bypass)
    return INT64_MAX;
  switch (op) {
  case AluOp::Less:
  case AluOp::GreaterEqual: // changes between -1 and 0
    if (value < 0)
      return step > 0 ? (-1 - value) / step : INT64_MAX;
    return step < 0 ? value / -step : INT64_MAX;
  case AluOp::LessEqual:
  case AluOp::Greater: // changes between 0 and 1
    if (value > 0)
      return step < 0 ? (value - 1) / -step : INT64_MAX;
    return step > 0 ? -value / step : INT64_MAX;
  default: // equal, not_equal
    if (value == 0)
      return 0;
    if ((value > 0) == (step > 0) || value % step != 0)
      return INT64_MAX;
    return -value / step - 1;
  }
}

} // namespace

int64_t SteadyLoops::periods(const Snapshot &first, const Snapshot &middle, const Snapshot &last) const {
  const size_t length = last.path - middle.path;
  if (middle.path - first.path != length)
    return 0;
  int64_t n = INT64_MAX;
  for (size_t i = 0; i < length; ++i) {
    const PathStep &a = sim_.path_[first.path + i], &b = sim_.path_[middle.path + i];
    if (a.kind != b.kind || a.stream != b.stream || a.pc != b.pc || a.detail != b.detail)
      return 0;
    const int64_t change = b.value - a.value;
    if (change != 0 && (a.mustNotChange || b.mustNotChange))
      return 0;
    switch (b.kind) {
    case PathStep::Kind::Compare:
      n = std::min(n, stableSteps(b.op, b.value, change));
      break;
    case PathStep::Kind::Wait:
      if (change > 0 || (change < 0 && (a.flag || b.flag)))
        return 0;
      break;
    case PathStep::Kind::Constant:
    case PathStep::Kind::Skipped:
      if (change != 0)
        return 0;
      break;
    case PathStep::Kind::Recorded:
      return 0;
    }
    if (n == 0)
      return 0;
  }
  // Registers move by constants; they must stay inside 32 bits, where comparison and wrapping agree with arithmetic.
  for (int s = 0; s < kNumStreams; ++s)
    for (int r = 0; r < isa::kNumRegisters; ++r) {
      const int64_t change = int64_t(last.registers[s][r]) - middle.registers[s][r];
      if (change != int64_t(middle.registers[s][r]) - first.registers[s][r])
        return 0;
      if (change > 0)
        n = std::min(n, (INT32_MAX - int64_t(last.registers[s][r])) / change);
      else if (change < 0)
        n = std::min(n, (int64_t(last.registers[s][r]) - INT32_MIN) / -change);
    }
  for (int i = 0; i < isa::kNumSemaphores; ++i) {
    const int64_t change = int64_t(last.semaphores[i]) - middle.semaphores[i];
    if (change != int64_t(middle.semaphores[i]) - first.semaphores[i])
      return 0;
    if (change > 0)
      n = std::min(n, (INT32_MAX - int64_t(last.semaphores[i])) / change);
    else if (change < 0)
      n = std::min(n, (int64_t(last.semaphores[i]) - INT32_MIN) / -change);
  }
  // A loop without any comparison never ends; let the step limit find that.
  return n == INT64_MAX ? 0 : n;
}

/// How many runs of the program a period takes. Streams that do nothing in these runs may pass their barriers later.
uint32_t SteadyLoops::runsBetween(const Snapshot &middle, const Snapshot &last) const {
  int32_t runs = 0;
  if (!sim_.program_.neff->runs.empty())
    for (int s = 0; s < kNumStreams; ++s)
      runs = std::max(runs, last.registers[s][isa::kRunRegister] - middle.registers[s][isa::kRunRegister]);
  return uint32_t(runs);
}

void SteadyLoops::skip(const Snapshot &middle, const Snapshot &last, int64_t n) {
  const int64_t period = last.timePs - middle.timePs;
  const int64_t shift = n * period;
  // Events of the last period have their like at the end of what is skipped.
  const int64_t events = n * (last.events - middle.events);
  const auto moveEvent = [&](int64_t &event) {
    if (event >= middle.events)
      event += events;
  };
  // Only times of this period move; older ones have no influence, and a stream that has been waiting since before keeps
  // the moment it began to.
  const auto move = [&](int64_t &time) {
    if (time > middle.timePs && time != kNever)
      time += shift;
  };
  const uint32_t runs = runsBetween(middle, last);
  for (int s = 0; s < kNumStreams; ++s) {
    Simulator::Stream &stream = sim_.streams_[s];
    for (int r = 0; r < isa::kNumRegisters; ++r)
      stream.state.registers[r] += int32_t(n * (int64_t(last.registers[s][r]) - middle.registers[s][r]));
    move(stream.clockPs);
    move(stream.slotFreePs);
    move(stream.enginePs);
    move(stream.loaderPs);
    move(stream.lastStartPs);
    move(stream.lastVisiblePs);
    for (Simulator::Pending &pending : stream.queue) {
      move(pending.issuedPs);
      pending.run += uint32_t(n) * runs;
      moveEvent(pending.cause.event);
    }
    for (int64_t *event :
         {&stream.sequencerEvent, &stream.dataEvent, &stream.loaderEvent, &stream.slotEvent, &stream.engineEvent})
      moveEvent(*event);
  }
  for (int64_t &event : sim_.resourceEvent_)
    moveEvent(event);
  for (int64_t &event : sim_.dmaEvent_)
    moveEvent(event);
  for (int64_t &event : sim_.queueEvent_)
    moveEvent(event);
  for (int64_t &time : sim_.resourcePs_)
    move(time);
  for (int64_t &time : sim_.dmaPs_)
    move(time);
  for (int64_t &time : sim_.queuePs_)
    move(time);
  for (int i = 0; i < isa::kNumSemaphores; ++i)
    if (sim_.touched_[i])
      sim_.semaphores_[i].shift(shift, int32_t(n * (int64_t(last.semaphores[i]) - middle.semaphores[i])), events);
  sim_.events_ += events;
  sim_.nowPs_ += shift;
  sim_.endPs_ += shift;
  sim_.sums_.extrapolate(middle.sums, last.sums, uint64_t(n));
  if (sim_.options_.recordTimeline && last.segment > middle.segment) {
    Timeline::Segment repeated;
    repeated.repeats = uint64_t(n);
    repeated.periodPs = period;
    repeated.periodRuns = runs;
    repeated.parts.assign(sim_.timeline_.segments.begin() + int64_t(middle.segment),
                          sim_.timeline_.segments.begin() + int64_t(last.segment));
    // The first repetition is one period after the copied events.
    const std::function<void(Timeline::Segment &)> advance = [&](Timeline::Segment &segment) {
      for (TimelineEvent &event : segment.events) {
        event.startPs += period;
        event.endPs += period;
        event.run += runs;
      }
      for (SemaphoreEvent &update : segment.updates)
        update.timePs += period;
      for (Timeline::Segment &part : segment.parts)
        advance(part);
    };
    for (Timeline::Segment &part : repeated.parts)
      advance(part);
    if (!sim_.timeline_.segments.empty() && sim_.timeline_.segments.back().empty())
      sim_.timeline_.segments.pop_back();
    sim_.timeline_.segments.push_back(std::move(repeated));
    sim_.timeline_.segments.emplace_back();
  }
  // For loops around this one: what decided about the skip must be the same next time.
  for (size_t i = middle.path; i < last.path; ++i)
    sim_.path_[i].mustNotChange = true;
  PathStep skipped = {};
  skipped.kind = PathStep::Kind::Skipped;
  skipped.value = n;
  sim_.note(skipped);
  for (int s = 0; s < kNumStreams; ++s)
    sim_.updateNext(s);
}

void SteadyLoops::backEdge(int stream, uint32_t pc, int64_t now) {
  Tracker &tracker = trackers_[{stream, pc}];
  if (tracker.exhausted)
    return;
  if (tracker.snapshots.size() >= kMaxSnapshots) {
    tracker.exhausted = true;
    tracker.snapshots.clear();
    trim();
    return;
  }
  sim_.notesPath_ = true;
  sim_.openSegment();
  for (int i = 0; i < isa::kNumSemaphores; ++i)
    if (sim_.touched_[i])
      sim_.semaphores_[i].settle(now);
  tracker.snapshots.push_back(take(now));
  const std::vector<Snapshot> &snapshots = tracker.snapshots;
  const size_t last = snapshots.size() - 1;
  const auto equal = [&](size_t a, size_t b) {
    return snapshots[a].hash == snapshots[b].hash && snapshots[a].state == snapshots[b].state;
  };
  // The shortest period that the last three states show.
  for (size_t distance = 1; 2 * distance <= last; ++distance) {
    const size_t middle = last - distance, first = middle - distance;
    if (!equal(last, middle) || !equal(middle, first))
      continue;
    if (snapshots[last].timePs - snapshots[middle].timePs != snapshots[middle].timePs - snapshots[first].timePs ||
        snapshots[last].timePs == snapshots[middle].timePs)
      continue;
    const int64_t n = periods(snapshots[first], snapshots[middle], snapshots[last]);
    if (n < 1)
      continue;
    const Snapshot from = snapshots[middle], to = snapshots[last];
    skip(from, to, n);
    // Other loops' snapshots lie before the jump: loops inside or beside this one start anew; loops around it go on,
    // for them the jump is a step of the path.
    for (auto &[key, other] : trackers_)
      if (!other.snapshots.empty() && other.snapshots.back().timePs >= from.timePs)
        other.snapshots.clear();
    trim();
    return;
  }
}

/// The path is kept from the oldest snapshot on.
void SteadyLoops::trim() {
  size_t oldest = SIZE_MAX;
  for (const auto &[key, tracker] : trackers_)
    if (!tracker.snapshots.empty())
      oldest = std::min(oldest, tracker.snapshots.front().path);
  if (oldest == SIZE_MAX) {
    sim_.path_.clear();
    sim_.notesPath_ = false;
    return;
  }
  if (oldest < 4096)
    return;
  sim_.path_.erase(sim_.path_.begin(), sim_.path_.begin() + int64_t(oldest));
  for (auto &[key, tracker] : trackers_)
    for (Snapshot &snapshot : tracker.snapshots)
      snapshot.path -= oldest;
}

} // namespace neuroncore::emulator

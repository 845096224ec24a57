// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Modulo scheduling after Rau (1994) without backtracking: in program order each instruction takes the first free time
// of its engine, modulo the initiation interval, that its dependences allow. Intervals from the load of the busiest
// engine upwards are tried. A schedule is only an order: engines are not clocked together, semaphores do the rest, so a
// wrong estimate costs time and never correctness.

#include "passes/Schedule/ModuloSchedule.h"

#include <algorithm>
#include <array>

using namespace mlir::neuron;
namespace isa = ::neuroncore::isa;

namespace {

/// Free time of one engine, modulo the interval.
class Reservations {
public:
  explicit Reservations(int64_t interval) : interval(interval) {}

  /// The first time from `earliest` on at which `length` is free; nullopt if there is none.
  std::optional<int64_t> find(int64_t earliest, int64_t length) const {
    if (length > interval)
      return std::nullopt;
    const int64_t phase = ((earliest % interval) + interval) % interval;
    // Twice round the interval: what begins near its end may go on at its beginning.
    auto next = std::partition_point(taken.begin(), taken.end(), [&](const Span &span) { return span.end <= phase; });
    int64_t time = phase;
    for (int64_t turn = 0; turn <= interval; turn += interval, next = taken.begin())
      for (; next != taken.end() && next->start + turn < time + length; ++next)
        time = std::max(time, next->end + turn);
    if (time >= phase + interval)
      return std::nullopt;
    return earliest + time - phase;
  }

  void take(int64_t start, int64_t length) {
    const int64_t low = ((start % interval) + interval) % interval;
    insert(low, std::min(low + length, interval));
    insert(0, low + length - interval);
  }

private:
  struct Span {
    int64_t start, end;
  };

  void insert(int64_t start, int64_t end) {
    if (start < end)
      taken.insert(
          std::partition_point(taken.begin(), taken.end(), [&](const Span &span) { return span.start < start; }),
          {start, end});
  }

  int64_t interval;
  /// By time, none beyond the end of the interval, none meets another.
  std::vector<Span> taken;
};

int64_t leastInterval(const LoopBody &body) {
  std::array<int64_t, isa::kNumStreams> load = {};
  int64_t transfers = 0;
  for (const BodyInstruction &instruction : body.instructions) {
    load[instruction.stream] += instruction.occupancy;
    transfers += instruction.transfer;
  }
  return std::max(transfers, *std::max_element(load.begin(), load.end()));
}

/// Whether `to` waits for the result of `from`: an engine executes in order and sees its own results.
bool isWaitedFor(const BodyInstruction &from, const BodyInstruction &to) {
  return from.stream != to.stream || from.transfer > 0 || to.transfer > 0;
}

/// How long after the start of `from` its dependent `to` may start. Loads run ahead, their time is hidden.
int64_t visibleDelay(const BodyInstruction &from, const BodyInstruction &to) {
  if (from.load)
    return 0;
  return isWaitedFor(from, to) ? from.latency : from.occupancy;
}

/// The dependences of each instruction.
struct Neighbours {
  explicit Neighbours(const LoopBody &body) : into(body.instructions.size()), outOf(body.instructions.size()) {
    for (const BodyDependence &dependence : body.dependences) {
      into[dependence.to].push_back(dependence);
      outOf[dependence.from].push_back(dependence);
    }
  }
  std::vector<std::vector<BodyDependence>> into, outOf;
};

/// Time per iteration of the body in a given order, by simulation of in-order engines.
int64_t simulatePeriod(const LoopBody &body, const Neighbours &neighbours,
                       const std::vector<PipelinedOrder::Entry> &order) {
  constexpr int64_t kWarm = 8, kIterations = 16;
  const size_t count = body.instructions.size();
  std::vector<std::array<int64_t, kIterations>> done(count);
  std::array<int64_t, isa::kNumStreams> engineFree = {};
  int64_t transferFree = 0, now = 0, warm = 0;
  for (int64_t iteration = 0; iteration < kIterations; ++iteration) {
    for (const PipelinedOrder::Entry &entry : order) {
      int64_t own = iteration - entry.stage;
      if (own < 0)
        continue;
      const BodyInstruction &instruction = body.instructions[entry.index];
      int64_t start = engineFree[instruction.stream];
      for (const BodyDependence &dependence : neighbours.into[entry.index])
        if (int64_t other = own - dependence.distance;
            other >= 0 && isWaitedFor(body.instructions[dependence.from], instruction))
          start = std::max(start, done[dependence.from][other]);
      engineFree[instruction.stream] = start + instruction.occupancy;
      int64_t end = start + instruction.latency;
      if (instruction.transfer > 0) {
        transferFree = std::max(transferFree, start) + instruction.transfer;
        end = std::max(end, transferFree);
      }
      done[entry.index][own] = end;
      now = std::max(now, end);
    }
    if (iteration == kWarm - 1)
      warm = now;
  }
  return (now - warm) / (kIterations - kWarm);
}

std::optional<PipelinedOrder> scheduleWithInterval(const LoopBody &body, const Neighbours &neighbours, int64_t interval,
                                                   int64_t maxStages) {
  const size_t count = body.instructions.size();
  const auto &[into, outOf] = neighbours;
  std::vector<Reservations> engines(isa::kNumStreams, Reservations(interval));
  std::vector<int64_t> start(count, 0);
  for (size_t index = 0, next; index < count; index = next) {
    // What is attached is placed at once, one behind the other.
    int64_t length = 0, earliest = 0, latest = INT64_MAX;
    for (next = index; next < count && (next == index || body.instructions[next].attached); ++next) {
      for (const BodyDependence &dependence : into[next])
        if (dependence.from < index)
          earliest = std::max(earliest, start[dependence.from] +
                                            visibleDelay(body.instructions[dependence.from], body.instructions[next]) -
                                            dependence.distance * interval - length);
      for (const BodyDependence &dependence : outOf[next])
        if (dependence.to < index)
          latest = std::min(latest, start[dependence.to] + dependence.distance * interval - 1 - length);
      start[next] = length;
      length += body.instructions[next].occupancy;
    }
    const int stream = body.instructions[index].stream;
    std::optional<int64_t> time = engines[stream].find(earliest, length);
    if (!time || *time > latest || *time + length > maxStages * interval)
      return std::nullopt;
    engines[stream].take(*time, length);
    for (size_t member = index; member < next; ++member)
      start[member] += *time;
  }
  PipelinedOrder result;
  for (size_t index = 0; index < count; ++index) {
    result.order.push_back({static_cast<unsigned>(index), start[index] / interval});
    result.stages = std::max(result.stages, start[index] / interval + 1);
  }
  std::stable_sort(result.order.begin(), result.order.end(),
                   [&](const auto &a, const auto &b) { return start[a.index] % interval < start[b.index] % interval; });
  result.periodPs = simulatePeriod(body, neighbours, result.order);
  return result;
}

} // namespace

std::optional<PipelinedOrder> mlir::neuron::pipeline(const LoopBody &body, int64_t maxStages) {
  std::vector<PipelinedOrder::Entry> original;
  for (size_t index = 0; index < body.instructions.size(); ++index)
    original.push_back({static_cast<unsigned>(index), 0});
  const Neighbours neighbours(body);
  const int64_t least = leastInterval(body), now = simulatePeriod(body, neighbours, original);
  std::optional<PipelinedOrder> best;
  for (int64_t percent : {100, 103, 107, 112, 120, 130, 145, 165, 200, 240, 300, 400}) {
    int64_t interval = std::max<int64_t>(least * percent / 100, 1);
    // No order is faster than the busiest engine, and one that is hardly better is not taken.
    if (interval > now || (best && least * 100 >= best->periodPs * 99))
      break;
    std::optional<PipelinedOrder> found = scheduleWithInterval(body, neighbours, interval, maxStages);
    if (found && found->periodPs * 100 < now * 98 && (!best || found->periodPs * 100 < best->periodPs * 99))
      best = std::move(found);
  }
  return best;
}

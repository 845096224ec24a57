// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expansion and summaries of timelines, and the memo of timings.

#include <algorithm>
#include <map>
#include <mutex>

#include "lib/Emulator/Program.h"
#include "neuron/Emulator/Timing.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Support/Text.h"

namespace neuroncore::emulator {

namespace {

uint64_t sizeOf(const Timeline::Segment &segment) {
  uint64_t n = segment.events.size();
  for (const Timeline::Segment &part : segment.parts)
    n += sizeOf(part);
  return n * segment.repeats;
}

bool visitSegment(const Timeline::Segment &segment, int64_t shift, uint32_t runs,
                  const std::function<bool(const TimelineEvent &)> &visit) {
  for (uint64_t i = 0; i < segment.repeats; ++i, shift += segment.periodPs, runs += segment.periodRuns) {
    for (TimelineEvent event : segment.events) {
      event.startPs += shift;
      event.endPs += shift;
      event.run += runs;
      if (!visit(event))
        return false;
    }
    for (const Timeline::Segment &part : segment.parts)
      if (!visitSegment(part, shift, runs, visit))
        return false;
  }
  return true;
}

bool visitUpdates(const Timeline::Segment &segment, int64_t shift, int64_t &position,
                  const std::function<bool(const SemaphoreEvent &, int64_t)> &visit) {
  for (uint64_t i = 0; i < segment.repeats; ++i, shift += segment.periodPs) {
    for (SemaphoreEvent update : segment.updates) {
      update.timePs += shift;
      if (!visit(update, update.source == 0 ? -1 : position + update.after - update.source))
        return false;
    }
    position += int64_t(segment.events.size());
    for (const Timeline::Segment &part : segment.parts)
      if (!visitUpdates(part, shift, position, visit))
        return false;
  }
  return true;
}

std::string percent(int64_t part, int64_t whole) { return whole > 0 ? cat(double(part) * 100.0 / double(whole)) : "0"; }

std::string ns(int64_t ps) { return cat(double(ps) / 1000.0); }

} // namespace

uint64_t Timeline::size() const {
  uint64_t n = 0;
  for (const Segment &segment : segments)
    n += sizeOf(segment);
  return n;
}

void Timeline::forEach(const std::function<bool(const TimelineEvent &)> &visit) const {
  for (const Segment &segment : segments)
    if (!visitSegment(segment, 0, 0, visit))
      return;
}

void Timeline::forEachUpdate(const std::function<bool(const SemaphoreEvent &, int64_t)> &visit) const {
  int64_t position = 0;
  for (const Segment &segment : segments)
    if (!visitUpdates(segment, 0, position, visit))
      return;
}

std::vector<TimelineEvent> Timeline::expand(uint64_t maxEvents) const {
  std::vector<TimelineEvent> events;
  events.reserve(size_t(maxEvents != 0 ? std::min(maxEvents, size()) : size()));
  forEach([&](const TimelineEvent &event) {
    events.push_back(event);
    return maxEvents == 0 || events.size() < maxEvents;
  });
  std::stable_sort(events.begin(), events.end(),
                   [](const TimelineEvent &a, const TimelineEvent &b) { return a.startPs < b.startPs; });
  return events;
}

std::string summarise(const TimingResult &result) {
  std::string text = cat("{\n  \"kernel_ns\": ", ns(result.kernelPs), ",\n  \"limiter\": \"", result.limiter,
                         "\",\n  \"engines\": {\n");
  for (int s = 0; s < isa::kNumStreams; ++s) {
    const EngineTiming &engine = result.engines[s];
    text += cat("    \"", isa::toString(isa::kStreamEngines[s]), "\": {\"instructions\": ", engine.instructions,
                ", \"busy_ns\": ", ns(engine.busyPs), ", \"busy_percent\": ", percent(engine.busyPs, result.kernelPs),
                ", \"wait_ns\": ", ns(engine.waitPs),
                ", \"idle_ns\": ", ns(std::max<int64_t>(0, result.kernelPs - engine.busyPs)), "}",
                s + 1 < isa::kNumStreams ? "," : "", "\n");
  }
  int64_t busy = 0, longest = 0;
  for (int64_t engine : result.dmaBusyPs) {
    busy += engine;
    longest = std::max(longest, engine);
  }
  text += cat("  },\n  \"dma\": {\"transfers\": ", result.transfers, ", \"bytes\": ", result.dmaBytes,
              ", \"hbm_read_bytes\": ", result.hbmReadBytes, ", \"hbm_write_bytes\": ", result.hbmWriteBytes,
              ", \"busy_percent\": ", percent(busy, result.kernelPs * int64_t(result.dmaBusyPs.size())),
              ", \"busiest_engine_percent\": ", percent(longest, result.kernelPs), "},\n");
  text += cat("  \"table_loads\": ", result.tableLoads, ",\n  \"table_load_ns\": ", ns(result.tableLoadPs),
              ",\n  \"flops\": ", result.flops, ",\n  \"transpose_flops\": ", result.transposeFlops,
              ",\n  \"simulated_steps\": ", result.simulatedSteps, "\n}\n");
  return text;
}

namespace {

void appendJsonText(std::string &out, std::string_view text) {
  out += '"';
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    if (uint8_t(c) < 0x20)
      out += ' ';
    else
      out += c;
  }
  out += '"';
}

} // namespace

std::string chromeTrace(const TimingResult &result, const neff::Neff &neff, uint64_t maxEvents) {
  std::string out = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n";
  const auto name = [&](int thread, const std::string &text) {
    out += cat("{\"ph\": \"M\", \"pid\": 0, \"tid\": ", thread, ", \"name\": \"thread_name\", \"args\": {\"name\": \"",
               text, "\"}},\n");
  };
  for (int s = 0; s < isa::kNumStreams; ++s)
    name(s, std::string(isa::toString(isa::kStreamEngines[s])));
  for (int e = 0; e < isa::kMaxDmaEngines; ++e)
    name(100 + e, cat("DMA-E", e));
  out += "{\"ph\": \"M\", \"pid\": 0, \"name\": \"process_name\", \"args\": {\"name\": ";
  appendJsonText(out, cat(neff.name, " (modelled time, ", neff.target, ")"));
  out += "}}";
  uint64_t count = 0;
  result.timeline.forEach([&](const TimelineEvent &event) {
    const isa::Instruction &instruction = neff.program[event.stream][event.pc];
    const bool isTransfer = event.kind == TimelineEvent::Kind::Transfer;
    const std::string_view opcode = event.kind == TimelineEvent::Kind::TableLoad
                                        ? std::string_view("ACT_TABLE_LOAD")
                                        : isa::instructionInfo(instruction.opcode).mnemonic;
    out +=
        cat(",\n{\"ph\": \"X\", \"pid\": 0, \"tid\": ", isTransfer ? 100 + event.dmaEngine : int(event.stream),
            ", \"ts\": ", double(event.startPs) / 1e6, ", \"dur\": ", double(event.endPs - event.startPs) / 1e6,
            ", \"name\": \"", opcode, "\", \"args\": {\"stream\": \"", isa::toString(isa::kStreamEngines[event.stream]),
            "\", \"pc\": ", event.pc, ", \"wait_ns\": ", double(event.waitPs) / 1000.0);
    if (neff.runs.size() > 1)
      out += cat(", \"run\": ", event.run);
    if (isTransfer)
      out += cat(", \"queue\": ", int(event.queue), ", \"bytes\": ", event.bytes);
    if (instruction.debugId != 0 && instruction.debugId <= neff.debug.size()) {
      const neff::DebugRecord &record = neff.debug[instruction.debugId - 1];
      // A kernel that is stored once and run several times has an instance per run.
      out += ", \"kernel\": ";
      appendJsonText(out, neff.runs.size() > 1 ? cat(record.kernel, "#", event.run) : record.kernel);
      out += ", \"op\": ";
      appendJsonText(out, record.op);
    }
    out += "}}";
    return maxEvents == 0 || ++count < maxEvents;
  });
  out += "\n]}\n";
  return out;
}

// ---------------------------------------------------------------------------------------------------------------------
// Memo
// ---------------------------------------------------------------------------------------------------------------------

struct TimingCache::Impl {
  std::shared_ptr<const LoadedProgram> program;
  std::mutex mutex;
  struct Key {
    std::array<std::vector<int32_t>, isa::kNumStreams> loads;
    isa::ActivationSet set;
    auto operator<=>(const Key &) const = default;
  };
  /// Data-dependent programs may have many paths: the memo is bounded.
  static constexpr size_t kMaxEntries = 64;
  std::map<Key, std::shared_ptr<const TimingResult>> entries;
};

TimingCache::TimingCache(std::shared_ptr<const LoadedProgram> program) : impl_(std::make_unique<Impl>()) {
  impl_->program = std::move(program);
}
TimingCache::~TimingCache() = default;

Expected<std::shared_ptr<const TimingResult>> TimingCache::get(const ControlTrace &trace,
                                                               isa::ActivationSet initialTableSet) {
  std::lock_guard lock(impl_->mutex);
  const Impl::Key key = {trace.loads, initialTableSet};
  if (const auto found = impl_->entries.find(key); found != impl_->entries.end())
    return found->second;
  TimingOptions options;
  options.initialTableSet = initialTableSet;
  options.recordTimeline = false; // expanded on demand only
  Expected<TimingResult> result = simulateTiming(*impl_->program, trace, options);
  if (!result)
    return result.error();
  if (impl_->entries.size() >= Impl::kMaxEntries)
    impl_->entries.clear();
  return impl_->entries[key] = std::make_shared<const TimingResult>(std::move(*result));
}

} // namespace neuroncore::emulator

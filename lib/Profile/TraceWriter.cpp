// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes device_trace.proto's wire format without protobuf: libnrt is loaded beside PyTorch, whose libtorch_cpu exports
// another version of protobuf's symbols. The reader (DeviceTrace.cpp) uses protobuf and so checks what is written here.

#include "lib/Profile/DeviceTrace.h"

#include <algorithm>

#include "lib/Profile/WireFormat.h"
#include "neuron/Isa/Codec.h"
#include "neuron/Support/Hash.h"

namespace neuroncore::profile {

using emulator::SemaphoreEvent;
using emulator::Timeline;
using emulator::TimelineEvent;

namespace {

Message segmentMessage(const Timeline::Segment &segment) {
  Message out;
  if (!segment.events.empty()) {
    Message events;
    int64_t last = 0;
    events.packed(1, segment.events, [&](const TimelineEvent &event) {
      const int64_t delta = event.startPs - last;
      last = event.startPs;
      return Message::zigzag(delta);
    });
    events.packed(2, segment.events, [](const TimelineEvent &event) { return uint64_t(event.endPs - event.startPs); });
    events.packed(3, segment.events, [](const TimelineEvent &event) { return uint64_t(event.waitPs); });
    events.packed(4, segment.events, [](const TimelineEvent &event) {
      return uint64_t(event.kind) | uint64_t(event.stream) << 2 | uint64_t(event.reason) << 5 |
             uint64_t(event.dmaEngine) << 9 | uint64_t(event.trigger) << 13 | uint64_t(event.queue) << 18;
    });
    events.packed(5, segment.events, [](const TimelineEvent &event) { return uint64_t(event.pc); });
    events.packed(6, segment.events, [](const TimelineEvent &event) { return uint64_t(event.cause); });
    events.packed(7, segment.events, [](const TimelineEvent &event) { return uint64_t(event.bytes); });
    if (std::any_of(segment.events.begin(), segment.events.end(),
                    [](const TimelineEvent &event) { return event.run != 0; }))
      events.packed(8, segment.events, [](const TimelineEvent &event) { return uint64_t(event.run); });
    out.element(1, events);
  }
  if (!segment.updates.empty()) {
    Message updates;
    int64_t last = 0;
    updates.packed(1, segment.updates, [&](const SemaphoreEvent &update) {
      const int64_t delta = update.timePs - last;
      last = update.timePs;
      return Message::zigzag(delta);
    });
    updates.packed(2, segment.updates, [](const SemaphoreEvent &update) { return Message::zigzag(update.amount); });
    updates.packed(3, segment.updates, [](const SemaphoreEvent &update) {
      return uint64_t(update.semaphore) | uint64_t(update.op) << 8 | uint64_t(update.isDma) << 11;
    });
    updates.packed(4, segment.updates, [](const SemaphoreEvent &update) { return uint64_t(update.after); });
    updates.packed(5, segment.updates, [](const SemaphoreEvent &update) { return uint64_t(update.source); });
    out.element(2, updates);
  }
  for (const Timeline::Segment &part : segment.parts)
    out.element(3, segmentMessage(part));
  out.number(4, segment.repeats);
  out.number(5, uint64_t(segment.periodPs));
  out.number(6, segment.periodRuns);
  return out;
}

Message programMessage(const ProgramTrace &trace) {
  Message out;
  out.text(1, trace.neffHash);
  out.text(2, trace.label);
  out.text(3, trace.summaryJson);
  for (const Timeline::Segment &segment : trace.timeline.segments)
    out.element(4, segmentMessage(segment));
  out.number(5, uint64_t(trace.kernelPs));
  if (!trace.control.empty())
    for (const std::vector<int32_t> &loads : trace.control.loads) {
      Message values;
      values.packed(1, loads, [](int32_t value) { return Message::zigzag(value); });
      out.element(6, values);
    }
  out.text(7, trace.graphDef);
  out.text(8, trace.programDigest);
  for (const std::string &module : trace.modules) {
    Message text;
    text.raw(module);
    out.element(9, text);
  }
  return out;
}

} // namespace

std::string programDigest(const neff::Neff &neff) {
  Hasher hasher;
  hasher.add(neff.target);
  for (int s = 0; s < isa::kNumStreams; ++s) {
    // A verified program can always be encoded.
    Expected<std::vector<uint8_t>> bytes = isa::encodeStream(isa::kStreamEngines[s], neff.program[s]);
    if (bytes)
      hasher.add(std::span<const uint8_t>(*bytes));
  }
  for (const neff::Variable &variable : neff.variables)
    hasher.add(variable.name).add(variable.bytes).add(int64_t(variable.kind));
  for (const neff::Run &run : neff.runs) {
    hasher.add(int64_t(run.firstParameter)).add(int64_t(run.variables.size()));
    for (uint32_t variable : run.variables)
      hasher.add(int64_t(variable));
  }
  return hasher.finish().toString();
}

std::string writeProgramTrace(const ProgramTrace &trace) { return programMessage(trace).take(); }

std::string writeDeviceTrace(const DeviceTrace &trace) {
  Message out;
  out.number(1, kTraceVersion);
  out.number(2, uint64_t(int64_t(trace.core)));
  out.number(3, trace.session);
  out.text(4, trace.target);
  for (const ProgramTrace &program : trace.programs)
    out.element(5, programMessage(program));
  for (const ExecutionRecord &record : trace.executions) {
    Message execution;
    execution.number(1, record.id);
    execution.text(2, record.neffHash);
    execution.number(3, uint64_t(record.startNs));
    execution.number(4, uint64_t(record.endNs));
    execution.number(5, uint64_t(record.kernelNs));
    execution.number(6, uint64_t(record.overheadNs));
    out.element(6, execution);
  }
  out.text(7, trace.timeStatement);
  return std::string(kTraceMagic) + out.take();
}

} // namespace neuroncore::profile

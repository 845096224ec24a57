// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Field numbers are those of Perfetto's published schema (protos/perfetto/trace).

#include "lib/Profile/PerfettoWriter.h"

#include <algorithm>
#include <numeric>

namespace neuroncore::profile {

namespace {

constexpr uint64_t kSequence = 1;
// TracePacket.sequence_flags
constexpr uint64_t kStateCleared = 1, kNeedsState = 2;
// TrackEvent.type
constexpr uint64_t kBegin = 1, kEnd = 2, kCounter = 4;
// Clock ids: boottime needs no conversion.
constexpr uint64_t kBoottime = 6;

Message eventPacket(int64_t time, const Message &event) {
  Message packet;
  packet.explicitNumber(8, uint64_t(time));
  packet.number(10, kSequence);
  packet.element(11, event);
  packet.number(13, kNeedsState);
  return packet;
}

} // namespace

PerfettoWriter::PerfettoWriter() {
  Message defaults;
  defaults.number(58, kBoottime);
  Message first;
  first.number(10, kSequence);
  first.number(13, kStateCleared);
  first.element(59, defaults);
  packet(first);
}

void PerfettoWriter::track(uint64_t id, uint64_t parent, const std::string &name, int64_t rank,
                           const std::string &unit) {
  Message descriptor;
  descriptor.number(1, id);
  descriptor.text(2, name);
  descriptor.number(5, parent);
  if (!unit.empty()) {
    Message counter;
    counter.text(6, unit);
    descriptor.element(8, counter);
  }
  descriptor.number(11, 3); // children in the order of their ranks
  descriptor.explicitNumber(12, uint64_t(rank));
  Message out;
  out.number(10, kSequence);
  out.element(60, descriptor);
  packet(out);
}

uint64_t PerfettoWriter::intern(const std::string &name) {
  const auto [found, isNew] = names_.emplace(name, names_.size() + 1);
  if (isNew)
    newNames_.push_back(name);
  return found->second;
}

void PerfettoWriter::writeNames() {
  if (newNames_.empty())
    return;
  Message interned;
  for (const std::string &name : newNames_) {
    Message entry;
    entry.number(1, names_[name]);
    entry.text(2, name);
    interned.element(2, entry); // event_names
  }
  newNames_.clear();
  Message out;
  out.number(10, kSequence);
  out.element(12, interned);
  out.number(13, kNeedsState);
  packet(out);
}

void PerfettoWriter::slices(uint64_t track, std::span<const int64_t> start, std::span<const int64_t> end,
                            std::span<const uint64_t> name, std::span<const uint64_t> flowOut,
                            std::span<const uint64_t> flowIn) {
  writeNames();
  Message event;
  for (size_t i = 0; i < start.size(); ++i) {
    event.clear();
    event.number(9, kBegin);
    event.number(10, name[i]);
    event.number(11, track);
    if (flowOut[i] != 0)
      event.fixed64(47, flowOut[i]);
    if (flowIn[i] != 0)
      event.fixed64(48, flowIn[i]);
    packet(eventPacket(start[i], event));
    event.clear();
    event.number(9, kEnd);
    event.number(11, track);
    packet(eventPacket(end[i], event));
  }
}

void PerfettoWriter::counter(uint64_t track, std::span<const int64_t> times, std::span<const double> values) {
  Message event;
  for (size_t i = 0; i < times.size(); ++i) {
    event.clear();
    event.number(9, kCounter);
    event.number(11, track);
    event.real(44, values[i]);
    packet(eventPacket(times[i], event));
  }
}

std::string PerfettoWriter::finish() { return trace_.take(); }

std::vector<int32_t> rowsWithoutOverlap(std::span<const int64_t> start, std::span<const int64_t> end) {
  std::vector<int32_t> rows(start.size());
  std::vector<uint32_t> order(start.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return start[a] < start[b]; });
  std::vector<int64_t> free;
  for (uint32_t i : order) {
    size_t row = 0;
    while (row < free.size() && free[row] > start[i])
      ++row;
    if (row == free.size())
      free.push_back(0);
    free[row] = std::max(end[i], start[i]);
    rows[i] = int32_t(row);
  }
  return rows;
}

} // namespace neuroncore::profile

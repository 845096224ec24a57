// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packets of Perfetto's trace format: tracks, slices, flows and counters. One sequence, names interned, timestamps
// absolute.

#ifndef NEURON_LIB_PROFILE_PERFETTOWRITER_H
#define NEURON_LIB_PROFILE_PERFETTOWRITER_H

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/Profile/WireFormat.h"

namespace neuroncore::profile {

class PerfettoWriter {
public:
  PerfettoWriter();
  /// `parent` 0: none. A counter track has a unit.
  void track(uint64_t id, uint64_t parent, const std::string &name, int64_t rank, const std::string &unit);
  uint64_t intern(const std::string &name);
  /// Slices of one track, in order, none overlapping; flow ids of 0 are none.
  void slices(uint64_t track, std::span<const int64_t> start, std::span<const int64_t> end,
              std::span<const uint64_t> name, std::span<const uint64_t> flowOut, std::span<const uint64_t> flowIn);
  void counter(uint64_t track, std::span<const int64_t> times, std::span<const double> values);
  std::string finish();

private:
  void packet(const Message &content) { trace_.element(1, content); }
  void writeNames();

  Message trace_;
  std::unordered_map<std::string, uint64_t> names_;
  std::vector<std::string> newNames_;
};

/// For each interval, in order of start, the first of the rows that is free at its start.
std::vector<int32_t> rowsWithoutOverlap(std::span<const int64_t> start, std::span<const int64_t> end);

} // namespace neuroncore::profile

#endif // NEURON_LIB_PROFILE_PERFETTOWRITER_H

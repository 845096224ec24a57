// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The .ntff file in memory, and its codec (device_trace.proto). Reading is a trust boundary: what readDeviceTrace
// returns is consistent in itself (columns of equal length, known kinds, bounded sizes); whether it fits a NEFF is
// checked by DeviceProfile.

#ifndef NEURON_LIB_PROFILE_DEVICETRACE_H
#define NEURON_LIB_PROFILE_DEVICETRACE_H

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "neuron/Emulator/Timing.h"

namespace neuroncore::profile {

inline constexpr std::string_view kTraceMagic("ONTFF\0\0\2", 8);
inline constexpr uint32_t kTraceVersion = 2;

struct ProgramTrace {
  std::string neffHash;
  std::string label;
  std::string summaryJson;
  emulator::Timeline timeline;
  int64_t kernelPs = 0;
  emulator::ControlTrace control;
  std::string graphDef;
  std::string programDigest;
  std::vector<std::string> modules; // by node of the graph
};

struct ExecutionRecord {
  uint64_t id = 0;
  std::string neffHash;
  int64_t startNs = 0, endNs = 0, kernelNs = 0, overheadNs = 0;
};

struct DeviceTrace {
  int32_t core = 0;
  uint32_t session = 0;
  std::string target;
  std::vector<ProgramTrace> programs;
  std::vector<ExecutionRecord> executions;
  std::string timeStatement;
};

/// What a NEFF must have in common with the one that was traced: streams and variables.
std::string programDigest(const neff::Neff &neff);

/// One serialized ProgramTimeline message.
std::string writeProgramTrace(const ProgramTrace &trace);
/// A whole file.
std::string writeDeviceTrace(const DeviceTrace &trace);

struct ReadTraceOptions {
  /// Bound of the events that repetitions unfold to.
  uint64_t maxEvents = uint64_t(1) << 28;
  /// Only the program of this hash, or all.
  std::string onlyHash;
  /// Everything but events and updates.
  bool headersOnly = false;
};
Expected<DeviceTrace> readDeviceTrace(std::span<const uint8_t> bytes, const ReadTraceOptions &options = {});

} // namespace neuroncore::profile

#endif // NEURON_LIB_PROFILE_DEVICETRACE_H

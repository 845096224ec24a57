// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Samples of the host during a capture: utilisation per CPU and memory in use, from /proc.

#ifndef NEURON_PYTHON_CSRC_HOSTSAMPLER_H
#define NEURON_PYTHON_CSRC_HOSTSAMPLER_H

#include <cstdint>
#include <vector>

namespace neuroncore::device {

struct CpuSample {
  int64_t timestamp; // nanoseconds since the Unix epoch
  int cpu;
  double utilisation; // 0..1 since the sample before
};

struct HostMemorySample {
  int64_t timestamp;
  int64_t usedBytes;    // of the machine
  int64_t processBytes; // resident in this process
};

/// Starts a thread that samples every few milliseconds; at least one sample of each kind is taken.
void startHostSampler(bool cpu, bool memory);
void stopHostSampler();
std::vector<CpuSample> cpuSamples();
std::vector<HostMemorySample> hostMemorySamples();

} // namespace neuroncore::device

#endif // NEURON_PYTHON_CSRC_HOSTSAMPLER_H

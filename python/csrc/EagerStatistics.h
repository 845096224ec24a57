// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef NEURON_PYTHON_CSRC_EAGERSTATISTICS_H
#define NEURON_PYTHON_CSRC_EAGERSTATISTICS_H

#include <atomic>
#include <cstdint>

namespace neuroncore::device {

struct EagerCounters {
  std::atomic<uint64_t> hits{0};
  std::atomic<uint64_t> misses{0};
  std::atomic<uint64_t> launches{0};
};
EagerCounters &eagerCounters();

inline void countEagerHit() { eagerCounters().hits.fetch_add(1, std::memory_order_relaxed); }
inline void countEagerMiss() { eagerCounters().misses.fetch_add(1, std::memory_order_relaxed); }
inline void countEagerLaunch() { eagerCounters().launches.fetch_add(1, std::memory_order_relaxed); }

} // namespace neuroncore::device

#endif // NEURON_PYTHON_CSRC_EAGERSTATISTICS_H

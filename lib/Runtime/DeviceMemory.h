// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// HBM of one core: an address range reserved once, of the capacity that the machine model gives, and an allocator in
// it. Freed pages stay mapped and are handed out again, because a fresh page costs more than most kernels.

#ifndef NEURON_LIB_RUNTIME_DEVICEMEMORY_H
#define NEURON_LIB_RUNTIME_DEVICEMEMORY_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "neuron/Support/Error.h"

namespace neuroncore::runtime {

class DeviceMemory {
public:
  static Expected<std::unique_ptr<DeviceMemory>> create(int core, int64_t capacity);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;

  static constexpr int64_t kAlignment = 64;

  /// Zero bytes give a distinct address too.
  Expected<void *> allocate(size_t bytes);
  /// False when nothing is allocated there.
  bool free(void *memory);
  /// Whether [memory, memory + bytes) is inside the range.
  bool contains(const void *memory, size_t bytes) const;
  int64_t used() const;
  int64_t capacity() const { return capacity_; }

private:
  DeviceMemory(int core, int64_t capacity, uint8_t *base);
  void insertFree(int64_t offset, int64_t bytes);
  void eraseFree(std::map<int64_t, int64_t>::iterator block);

  const int core_;
  const int64_t capacity_;
  uint8_t *const base_;
  mutable std::mutex mutex_;
  std::map<int64_t, int64_t> allocated_;             // offset -> bytes
  std::map<int64_t, int64_t> free_;                  // offset -> bytes, neighbours merged
  std::set<std::pair<int64_t, int64_t>> freeBySize_; // (bytes, offset)
  int64_t used_ = 0;
  /// Pages below this offset may be in memory.
  int64_t highWater_ = 0;
};

} // namespace neuroncore::runtime

#endif // NEURON_LIB_RUNTIME_DEVICEMEMORY_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/DeviceMemory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include <sys/mman.h>

#include "neuron/Support/Text.h"

namespace neuroncore::runtime {

namespace {
/// Vector loads may look a little past the end of the last allocation.
constexpr int64_t kSlack = 4096;
constexpr int64_t kPage = 4096;
/// Freed blocks of this size are given back to the host once so much lies idle.
constexpr int64_t kLargeBlock = int64_t(64) << 20;
constexpr int64_t kMaxIdle = int64_t(2) << 30;
} // namespace

Expected<std::unique_ptr<DeviceMemory>> DeviceMemory::create(int core, int64_t capacity) {
  void *base = mmap(nullptr, size_t(capacity + kSlack), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return Error(ErrorKind::OutOfMemory,
                 cat("cannot reserve ", capacity, " bytes of host addresses for the HBM of core ", core, ": ",
                     std::strerror(errno)));
  madvise(base, size_t(capacity), MADV_HUGEPAGE);
  return std::unique_ptr<DeviceMemory>(new DeviceMemory(core, capacity, static_cast<uint8_t *>(base)));
}

DeviceMemory::DeviceMemory(int core, int64_t capacity, uint8_t *base) : core_(core), capacity_(capacity), base_(base) {
  insertFree(0, capacity);
}

DeviceMemory::~DeviceMemory() { munmap(base_, size_t(capacity_ + kSlack)); }

void DeviceMemory::insertFree(int64_t offset, int64_t bytes) {
  free_[offset] = bytes;
  freeBySize_.insert({bytes, offset});
}

void DeviceMemory::eraseFree(std::map<int64_t, int64_t>::iterator block) {
  freeBySize_.erase({block->second, block->first});
  free_.erase(block);
}

Expected<void *> DeviceMemory::allocate(size_t requested) {
  std::lock_guard lock(mutex_);
  const auto fail = [&] {
    return Error(ErrorKind::OutOfMemory, cat("core ", core_, " is out of device memory: tried to allocate ", requested,
                                             " bytes while ", used_, " of ", capacity_, " are in use"));
  };
  if (requested > size_t(capacity_))
    return fail();
  const int64_t bytes = std::max<int64_t>(1, (int64_t(requested) + kAlignment - 1) / kAlignment) * kAlignment;
  // Best fit; the untouched end of the range is the largest block, so used pages come first.
  const auto found = freeBySize_.lower_bound({bytes, 0});
  if (found == freeBySize_.end())
    return fail();
  const auto [blockBytes, offset] = *found;
  eraseFree(free_.find(offset));
  if (blockBytes > bytes)
    insertFree(offset + bytes, blockBytes - bytes);
  allocated_[offset] = bytes;
  used_ += bytes;
  highWater_ = std::max(highWater_, offset + bytes);
  return static_cast<void *>(base_ + offset);
}

bool DeviceMemory::free(void *memory) {
  std::lock_guard lock(mutex_);
  const int64_t freed = static_cast<uint8_t *>(memory) - base_;
  const auto found = allocated_.find(freed);
  if (found == allocated_.end())
    return false;
  int64_t offset = freed, bytes = found->second;
  used_ -= bytes;
  allocated_.erase(found);
  auto next = free_.lower_bound(offset);
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      offset = previous->first;
      bytes += previous->second;
      eraseFree(previous);
    }
  }
  next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + bytes) {
    bytes += next->second;
    eraseFree(next);
  }
  insertFree(offset, bytes);
  if (highWater_ - used_ > kMaxIdle) {
    const int64_t begin = (offset + kPage - 1) / kPage * kPage;
    const int64_t end = std::min(offset + bytes, highWater_) / kPage * kPage;
    if (end - begin >= kLargeBlock) {
      madvise(base_ + begin, size_t(end - begin), MADV_DONTNEED);
      if (offset + bytes >= highWater_)
        highWater_ = begin;
    }
  }
  return true;
}

bool DeviceMemory::contains(const void *memory, size_t bytes) const {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(memory), base = reinterpret_cast<uintptr_t>(base_);
  return begin >= base && bytes <= size_t(capacity_) && begin - base <= size_t(capacity_) - bytes;
}

int64_t DeviceMemory::used() const {
  std::lock_guard lock(mutex_);
  return used_;
}

} // namespace neuroncore::runtime

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "HostAllocator.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include <c10/util/Exception.h>
#include <c10/util/llvmMathExtras.h>

#include "Queue.h"
#include "Runtime.h"

namespace neuroncore::device {

namespace {

constexpr size_t pageBytes = 4096;

struct PinnedBlock {
  std::byte *address = nullptr;
  size_t bytes = 0;
  bool allocated = false;
  /// Last use: device -> executions enqueued on it at that time.
  std::map<int, uint64_t> uses;

  bool pending() const {
    for (const auto &[device, sequence] : uses)
      if (queueOf(device).completed() < sequence)
        return true;
    return false;
  }
};

class PinnedAllocator final : public at::HostAllocator {
public:
  at::DataPtr allocate(size_t bytes) override {
    if (bytes == 0)
      return {nullptr, nullptr, &PinnedAllocator::release, c10::Device(c10::DeviceType::CPU)};
    const size_t rounded = std::max(pageBytes, static_cast<size_t>(c10::llvm::PowerOf2Ceil(bytes)));
    std::lock_guard<std::mutex> lock(mutex_);
    PinnedBlock *block = nullptr;
    auto [first, last] = free_.equal_range(rounded);
    for (auto it = first; it != last; ++it)
      if (!it->second->pending()) {
        block = it->second;
        free_.erase(it);
        break;
      }
    if (!block) {
      void *memory = std::aligned_alloc(pageBytes, rounded);
      TORCH_CHECK_WITH(OutOfMemoryError, memory, "could not allocate ", rounded, " bytes of pinned host memory");
      block = new PinnedBlock;
      block->address = static_cast<std::byte *>(memory);
      block->bytes = rounded;
      blocks_[block->address] = block;
      ++stats_.num_host_alloc;
      stats_.allocations.increase(1);
      stats_.allocated_bytes.increase(static_cast<int64_t>(rounded));
    }
    block->allocated = true;
    block->uses.clear();
    stats_.active_requests.increase(1);
    stats_.active_bytes.increase(static_cast<int64_t>(rounded));
    return {block->address, block, &PinnedAllocator::release, c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void *destination, const void *source, std::size_t count) const override {
    std::memcpy(destination, source, count);
  }

  bool record_event(void *address, void *, c10::Stream stream) override { return note(address, stream.device_index()); }

  void empty_cache() override {
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto it = free_.begin(); it != free_.end();) {
      PinnedBlock *block = it->second;
      if (block->pending()) {
        ++it;
        continue;
      }
      it = free_.erase(it);
      blocks_.erase(block->address);
      ++stats_.num_host_free;
      stats_.allocations.decrease(1);
      stats_.allocated_bytes.decrease(static_cast<int64_t>(block->bytes));
      std::free(block->address);
      delete block;
    }
  }

  at::HostStats get_stats() override {
    std::lock_guard<std::mutex> lock(mutex_);
    return stats_;
  }
  void reset_accumulated_stats() override {
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto *stat : {&stats_.active_requests, &stats_.active_bytes, &stats_.allocations, &stats_.allocated_bytes})
      stat->reset_accumulated();
    stats_.num_host_alloc = stats_.num_host_free = 0;
  }
  void reset_peak_stats() override {
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto *stat : {&stats_.active_requests, &stats_.active_bytes, &stats_.allocations, &stats_.allocated_bytes})
      stat->reset_peak();
  }

  bool contains(const void *address) {
    std::lock_guard<std::mutex> lock(mutex_);
    return find(address) != nullptr;
  }

  bool note(const void *address, int device) {
    const uint64_t sequence = queueOf(device).submitted();
    std::lock_guard<std::mutex> lock(mutex_);
    PinnedBlock *block = find(address);
    if (block)
      block->uses[device] = sequence;
    return block != nullptr;
  }

private:
  PinnedBlock *find(const void *address) {
    auto it = blocks_.upper_bound(static_cast<std::byte *>(const_cast<void *>(address)));
    if (it == blocks_.begin())
      return nullptr;
    PinnedBlock *block = (--it)->second;
    return static_cast<const std::byte *>(address) < block->address + block->bytes ? block : nullptr;
  }

  static void release(void *context);

  std::mutex mutex_;
  std::map<std::byte *, PinnedBlock *> blocks_;
  std::multimap<size_t, PinnedBlock *> free_;
  at::HostStats stats_;
};

PinnedAllocator &theAllocator() {
  static auto *allocator = new PinnedAllocator;
  return *allocator;
}

void PinnedAllocator::release(void *context) {
  if (!context || isInBadFork())
    return;
  auto *block = static_cast<PinnedBlock *>(context);
  PinnedAllocator &allocator = theAllocator();
  std::lock_guard<std::mutex> lock(allocator.mutex_);
  block->allocated = false;
  allocator.stats_.active_requests.decrease(1);
  allocator.stats_.active_bytes.decrease(static_cast<int64_t>(block->bytes));
  allocator.free_.emplace(block->bytes, block);
}

REGISTER_HOST_ALLOCATOR(at::kPrivateUse1, &theAllocator())

} // namespace

at::HostAllocator *pinnedAllocator() { return &theAllocator(); }
bool isPinnedAddress(const void *address) { return theAllocator().contains(address); }
void notePinnedUse(const void *address, int device) { theAllocator().note(address, device); }

} // namespace neuroncore::device

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Allocator.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <unordered_map>

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include "Device.h"
#include "Queue.h"
#include "Runtime.h"

namespace neuroncore::device {

namespace {

using c10::CachingAllocator::StatType;
using c10::CachingDeviceAllocator::DeviceStats;

constexpr size_t roundingBytes = 512;          // every block is a multiple, so every address is 64-byte aligned
constexpr size_t smallLimit = size_t(1) << 20; // requests up to this share small segments
constexpr size_t smallSegment = size_t(2) << 20;
constexpr size_t largeSegment = size_t(20) << 20; // segment for requests below `hugeLimit`
constexpr size_t hugeLimit = size_t(10) << 20;
constexpr size_t hugeRounding = size_t(2) << 20;

size_t roundUp(size_t value, size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

struct Block {
  std::byte *address = nullptr;
  size_t bytes = 0;
  size_t requested = 0;
  int device = 0;
  bool small = true;
  bool allocated = false;
  /// Neighbours in the same segment.
  Block *previous = nullptr;
  Block *next = nullptr;
};

struct BySizeThenAddress {
  bool operator()(const Block *a, const Block *b) const {
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->address < b->address;
  }
};
using Pool = std::set<Block *, BySizeThenAddress>;

std::string formatBytes(size_t bytes) {
  std::ostringstream text;
  text.precision(2);
  text << std::fixed;
  if (bytes < 1024)
    text << bytes << " bytes";
  else if (bytes < size_t(1) << 20)
    text << static_cast<double>(bytes) / 1024.0 << " KiB";
  else if (bytes < size_t(1) << 30)
    text << static_cast<double>(bytes) / 1048576.0 << " MiB";
  else
    text << static_cast<double>(bytes) / 1073741824.0 << " GiB";
  return text.str();
}

/// The blocks of one device. Not movable: blocks point into it.
class DevicePool {
public:
  explicit DevicePool(int device) : device_(device) {}

  Block *allocate(size_t requested) {
    std::unique_lock<std::mutex> lock(mutex_);
    const size_t bytes = std::max(roundUp(requested, roundingBytes), roundingBytes);
    const bool small = bytes <= smallLimit;
    Block *block = takeFree(bytes, small);
    if (!block)
      block = newSegment(bytes, small);
    if (!block) {
      ++stats_.num_alloc_retries;
      lock.unlock();
      releaseCached();
      lock.lock();
      block = takeFree(bytes, small);
      if (!block)
        block = newSegment(bytes, small);
    }
    if (!block)
      raiseOutOfMemory(lock, requested);
    split(block, bytes);
    block->allocated = true;
    block->requested = requested;
    account(*block, true);
    return block;
  }

  void release(Block *block) {
    std::lock_guard<std::mutex> lock(mutex_);
    account(*block, false);
    block->allocated = false;
    merge(block, block->previous);
    merge(block, block->next);
    if (block->previous || block->next)
      change(stats_.inactive_split, *block, 1), change(stats_.inactive_split_bytes, *block, block->bytes);
    free(block->small).insert(block);
  }

  /// Gives whole free segments back to the runtime once nothing can use them any more.
  void releaseCached() {
    queueOf(device_).wait();
    std::lock_guard<std::mutex> lock(mutex_);
    for (Pool *pool : {&freeSmall_, &freeLarge_})
      for (auto it = pool->begin(); it != pool->end();) {
        Block *block = *it;
        if (block->previous || block->next) {
          ++it;
          continue;
        }
        it = pool->erase(it);
        change(stats_.segment, *block, -1);
        change(stats_.reserved_bytes, *block, -static_cast<int64_t>(block->bytes));
        ++stats_.num_device_free;
        segments_.erase(block->address);
        freeDeviceMemory(device_, block->address);
        delete block;
      }
  }

  bool contains(const void *address) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = segments_.upper_bound(static_cast<std::byte *>(const_cast<void *>(address)));
    if (it == segments_.begin())
      return false;
    --it;
    return static_cast<const std::byte *>(address) < it->first + it->second;
  }

  DeviceStats stats() {
    std::lock_guard<std::mutex> lock(mutex_);
    return stats_;
  }

  void resetAccumulated() {
    std::lock_guard<std::mutex> lock(mutex_);
    forEachStat([](c10::CachingAllocator::Stat &stat) { stat.reset_accumulated(); });
    stats_.num_alloc_retries = stats_.num_ooms = stats_.num_device_alloc = stats_.num_device_free = 0;
  }

  void resetPeaks() {
    std::lock_guard<std::mutex> lock(mutex_);
    forEachStat([](c10::CachingAllocator::Stat &stat) { stat.reset_peak(); });
  }

  void setFraction(double fraction) {
    std::lock_guard<std::mutex> lock(mutex_);
    limit_ = static_cast<size_t>(fraction * static_cast<double>(deviceMemoryBytes()));
  }

  size_t allocatedBytes() { return current(stats_.allocated_bytes); }
  size_t reservedBytes() { return current(stats_.reserved_bytes); }

private:
  static size_t index(StatType type) { return static_cast<size_t>(type); }
  static size_t current(const c10::CachingAllocator::StatArray &stats) {
    return static_cast<size_t>(stats[index(StatType::AGGREGATE)].current);
  }
  static void change(c10::CachingAllocator::StatArray &stats, const Block &block, int64_t amount) {
    for (StatType type : {StatType::AGGREGATE, block.small ? StatType::SMALL_POOL : StatType::LARGE_POOL}) {
      if (amount >= 0)
        stats[index(type)].increase(amount);
      else
        stats[index(type)].decrease(-amount);
    }
  }
  template <typename Function> void forEachStat(Function function) {
    for (auto *stats :
         {&stats_.allocation, &stats_.segment, &stats_.active, &stats_.inactive_split, &stats_.allocated_bytes,
          &stats_.reserved_bytes, &stats_.active_bytes, &stats_.inactive_split_bytes, &stats_.requested_bytes})
      for (auto &stat : *stats)
        function(stat);
  }

  Pool &free(bool small) { return small ? freeSmall_ : freeLarge_; }

  void account(const Block &block, bool allocated) {
    const int64_t sign = allocated ? 1 : -1;
    const auto bytes = static_cast<int64_t>(block.bytes);
    change(stats_.allocation, block, sign);
    change(stats_.active, block, sign);
    change(stats_.allocated_bytes, block, sign * bytes);
    change(stats_.active_bytes, block, sign * bytes);
    change(stats_.requested_bytes, block, sign * static_cast<int64_t>(block.requested));
  }

  Block *takeFree(size_t bytes, bool small) {
    Pool &pool = free(small);
    Block key;
    key.bytes = bytes;
    auto it = pool.lower_bound(&key);
    if (it == pool.end())
      return nullptr;
    Block *block = *it;
    pool.erase(it);
    if (block->previous || block->next)
      change(stats_.inactive_split, *block, -1),
          change(stats_.inactive_split_bytes, *block, -static_cast<int64_t>(block->bytes));
    return block;
  }

  Block *newSegment(size_t bytes, bool small) {
    const size_t segmentBytes =
        small ? smallSegment : (bytes < hugeLimit ? largeSegment : roundUp(bytes, hugeRounding));
    if (limit_ && current(stats_.reserved_bytes) + segmentBytes > limit_)
      return nullptr;
    std::byte *memory = allocateDeviceMemory(device_, segmentBytes);
    if (!memory)
      return nullptr;
    auto *block = new Block;
    block->address = memory;
    block->bytes = segmentBytes;
    block->device = device_;
    block->small = small;
    segments_[memory] = segmentBytes;
    change(stats_.segment, *block, 1);
    change(stats_.reserved_bytes, *block, static_cast<int64_t>(segmentBytes));
    ++stats_.num_device_alloc;
    return block;
  }

  void split(Block *block, size_t bytes) {
    const size_t rest = block->bytes - bytes;
    if (rest < (block->small ? roundingBytes : smallLimit))
      return;
    auto *tail = new Block;
    tail->address = block->address + bytes;
    tail->bytes = rest;
    tail->device = device_;
    tail->small = block->small;
    tail->previous = block;
    tail->next = block->next;
    if (tail->next)
      tail->next->previous = tail;
    block->next = tail;
    block->bytes = bytes;
    change(stats_.inactive_split, *tail, 1);
    change(stats_.inactive_split_bytes, *tail, static_cast<int64_t>(rest));
    free(tail->small).insert(tail);
  }

  void merge(Block *block, Block *other) {
    if (!other || other->allocated)
      return;
    free(other->small).erase(other);
    change(stats_.inactive_split, *other, -1);
    change(stats_.inactive_split_bytes, *other, -static_cast<int64_t>(other->bytes));
    if (other == block->previous) {
      block->address = other->address;
      block->previous = other->previous;
      if (block->previous)
        block->previous->next = block;
    } else {
      block->next = other->next;
      if (block->next)
        block->next->previous = block;
    }
    block->bytes += other->bytes;
    delete other;
  }

  [[noreturn]] void raiseOutOfMemory(std::unique_lock<std::mutex> &lock, size_t requested) {
    ++stats_.num_ooms;
    const size_t allocated = current(stats_.allocated_bytes);
    const size_t reserved = current(stats_.reserved_bytes);
    lock.unlock();
    const MemoryInfo info = memoryInfo(device_);
    const size_t limit = limit_ ? std::min(limit_, info.limit) : info.limit;
    c10::reportOutOfMemoryToProfiler(static_cast<int64_t>(requested), allocated, reserved,
                                     c10::Device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device_)));
    TORCH_CHECK_WITH(OutOfMemoryError, false, "neuron out of memory: tried to allocate ", formatBytes(requested),
                     " on neuron:", device_, ", which has ", formatBytes(limit), " of HBM; ", formatBytes(allocated),
                     " are in use by tensors, ", formatBytes(reserved - allocated), " are cached, ",
                     formatBytes(info.used >= reserved ? info.used - reserved : 0),
                     " are held by loaded programs. Free tensors, use smaller batches or call "
                     "torch.neuron.empty_cache()");
  }

  const int device_;
  std::mutex mutex_;
  Pool freeSmall_;
  Pool freeLarge_;
  std::map<std::byte *, size_t> segments_;
  DeviceStats stats_;
  size_t limit_ = 0;
};

/// Read on every allocation without a lock; leaked, because tensors may die after static destruction.
DevicePool &poolOf(int device) {
  static auto *pools = new std::array<std::atomic<DevicePool *>, maxDevices>{};
  static auto *mutex = new std::mutex;
  auto &slot = (*pools)[device];
  if (DevicePool *pool = slot.load(std::memory_order_acquire))
    return *pool;
  std::lock_guard<std::mutex> lock(*mutex);
  if (!slot.load())
    slot.store(new DevicePool(device));
  return *slot.load();
}

struct LiveBlocks {
  std::mutex mutex;
  std::unordered_map<std::byte *, Block *> blocks;
};
LiveBlocks &liveBlocks() {
  static auto *live = new LiveBlocks;
  return *live;
}

void deleteBlock(void *context) {
  // In a forked child the mutexes may be held by threads that no longer exist.
  if (!context || isInBadFork())
    return;
  auto *block = static_cast<Block *>(context);
  DevicePool &pool = poolOf(block->device);
  const c10::Device device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(block->device));
  void *address = block->address;
  const auto bytes = static_cast<int64_t>(block->bytes);
  pool.release(block);
  if (C10_UNLIKELY(c10::memoryProfilingEnabled()))
    c10::reportMemoryUsageToProfiler(address, -bytes, pool.allocatedBytes(), pool.reservedBytes(), device);
}

class Allocator final : public c10::DeviceAllocator {
public:
  c10::DataPtr allocate(size_t bytes) override {
    const int index = currentDevice();
    const c10::Device device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(index));
    ensureUsable();
    if (bytes == 0)
      return {nullptr, nullptr, &deleteBlock, device};
    DevicePool &pool = poolOf(index);
    Block *block = pool.allocate(bytes);
    if (C10_UNLIKELY(c10::memoryProfilingEnabled()))
      c10::reportMemoryUsageToProfiler(block->address, static_cast<int64_t>(block->bytes), pool.allocatedBytes(),
                                       pool.reservedBytes(), device);
    return {block->address, block, &deleteBlock, device};
  }

  // The data pointer and its context differ, so raw_allocate is not available (the deleter takes the context).
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }

  void copy_data(void *destination, const void *source, std::size_t count) const override {
    const int device = deviceOfAddress(destination);
    queueOf(device).submitHost([=] { std::memcpy(destination, source, count); }, 0, nullptr);
  }

  bool initialized() override { return isInitialised(); }
  void emptyCache(c10::MempoolId_t) override {
    if (!isInitialised())
      return;
    ensureUsable();
    for (int device = 0; device < deviceCount(); ++device)
      poolOf(device).releaseCached();
  }
  // One queue per device: work of any stream is already ordered before any reuse.
  void recordStream(const c10::DataPtr &, c10::Stream) override {}
  DeviceStats getDeviceStats(c10::DeviceIndex device) override { return poolOf(checked(device)).stats(); }
  void resetAccumulatedStats(c10::DeviceIndex device) override { poolOf(checked(device)).resetAccumulated(); }
  void resetPeakStats(c10::DeviceIndex device) override { poolOf(checked(device)).resetPeaks(); }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    ensureUsable();
    const MemoryInfo info = memoryInfo(checked(device));
    return {info.limit - info.used, info.limit};
  }

private:
  static int checked(c10::DeviceIndex device) { return device < 0 ? currentDevice() : checkedDevice(device); }
};

Allocator &theAllocator() {
  static auto *allocator = new Allocator;
  return *allocator;
}

[[maybe_unused]] const bool registered = [] {
  c10::SetAllocator(c10::DeviceType::PrivateUse1, &theAllocator(), 0);
  return true;
}();

} // namespace

c10::DeviceAllocator *deviceAllocator() { return &theAllocator(); }

std::byte *allocateBlock(int device, size_t bytes) {
  ensureUsable();
  Block *block = poolOf(device).allocate(bytes);
  std::lock_guard<std::mutex> lock(liveBlocks().mutex);
  liveBlocks().blocks[block->address] = block;
  return block->address;
}

void releaseBlock(std::byte *address) noexcept {
  if (!address || isInBadFork())
    return;
  Block *block;
  {
    std::lock_guard<std::mutex> lock(liveBlocks().mutex);
    auto it = liveBlocks().blocks.find(address);
    if (it == liveBlocks().blocks.end())
      return;
    block = it->second;
    liveBlocks().blocks.erase(it);
  }
  poolOf(block->device).release(block);
}

int deviceOfAddress(const void *address) {
  for (int device = 0; device < deviceCount(); ++device)
    if (poolOf(device).contains(address))
      return device;
  return -1;
}

void setMemoryFraction(int device, double fraction) {
  TORCH_CHECK_VALUE(fraction > 0 && fraction <= 1, "expected a memory fraction in (0, 1] but got ", fraction);
  poolOf(device).setFraction(fraction);
}

} // namespace neuroncore::device

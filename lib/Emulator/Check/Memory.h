// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the checker remembers of memory: which earlier accesses a new one may conflict with, and which bytes were
// written.

#ifndef NEURON_LIB_EMULATOR_CHECK_MEMORY_H
#define NEURON_LIB_EMULATOR_CHECK_MEMORY_H

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "lib/Emulator/Check/Access.h"

namespace neuroncore::emulator {

/// Earlier accesses by address. An access is forgotten when a later one stands for it.
class AccessHistory {
public:
  explicit AccessHistory(const neff::Neff &neff);

  struct Entry {
    Access access;
    uint32_t by; // executed instruction
  };
  /// Calls conflict(earlier) for each remembered access that overlaps with `access`, one of the two being a write;
  /// conflict returns whether the earlier is ordered before.
  void visit(const Access &access, const std::function<bool(const Entry &)> &conflict);
  /// Remembers an access. `replaces` tells whether an earlier access of the same kind to the same place is implied by
  /// this one (everything ordered after this one is ordered after the earlier one).
  void add(const Access &access, uint32_t by, const std::function<bool(const Entry &)> &replaces);
  void clear();

private:
  using Key = uint64_t;
  static bool covers(const Access &whole, const Access &part);
  template <class Visit> void forBuckets(const Access &access, Visit &&visit);
  int64_t bucketBytes(const Access &access) const;
  std::vector<int64_t> variableBuckets_; // bytes of a bucket, by variable
  std::unordered_map<Key, std::vector<Entry>> buckets_;
};

/// One bit per byte: written or not. And per PSUM word: last written by a matmul or not.
class WrittenMemory {
public:
  WrittenMemory(const neff::Neff &neff, const ImageLayout &layout);

  /// First byte of the access that was never written, or -1. Inputs and constants are always written.
  int64_t firstUnwritten(const Access &access, int &partition) const;
  void write(const Access &access, bool isMatmul);
  /// First byte of a PSUM access that no matmul wrote last, or -1.
  int64_t firstForeign(const Access &access, int &partition) const;

private:
  struct Bits {
    std::vector<uint64_t> words;
    void set(int64_t begin, int64_t end);
    int64_t firstClear(int64_t begin, int64_t end) const; // -1: none
  };
  const Bits *bitsOf(const Access &access, int partition) const;
  Bits *bitsOf(const Access &access, int partition) {
    return const_cast<Bits *>(std::as_const(*this).bitsOf(access, partition));
  }
  std::array<Bits, kPartitions> sbuf_, psum_;
  std::array<std::vector<uint8_t>, kPartitions> matmulWords_;
  std::vector<Bits> variables_; // empty: always written
};

} // namespace neuroncore::emulator

#endif // NEURON_LIB_EMULATOR_CHECK_MEMORY_H

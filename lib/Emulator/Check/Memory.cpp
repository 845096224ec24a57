// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Emulator/Check/Memory.h"

#include <algorithm>

namespace neuroncore::emulator {

using isa::MemorySpace;

AccessHistory::AccessHistory(const neff::Neff &neff) {
  for (const neff::Variable &variable : neff.variables)
    variableBuckets_.push_back(std::max<int64_t>(4096, variable.bytes / 512));
}

int64_t AccessHistory::bucketBytes(const Access &access) const {
  if (access.space == MemorySpace::Hbm)
    return variableBuckets_[access.variable];
  return access.space == MemorySpace::Psum ? 2048 : 4096;
}

template <class Visit> void AccessHistory::forBuckets(const Access &access, Visit &&visit) {
  const int64_t size = bucketBytes(access);
  const Key space = Key(access.space) << 60 | Key(uint32_t(access.variable + 1)) << 40;
  for (int64_t bucket = access.begin() / size; bucket <= (access.end() - 1) / size; ++bucket)
    visit(buckets_[space | Key(bucket)], bucket * size);
}

bool AccessHistory::covers(const Access &whole, const Access &part) {
  return whole.p0 <= part.p0 && whole.p1 >= part.p1 && whole.isExact &&
         ((whole.runs->size() == 1 && whole.begin() <= part.begin() && whole.end() >= part.end()) ||
          (whole.runs == part.runs && whole.base == part.base));
}

void AccessHistory::visit(const Access &access, const std::function<bool(const Entry &)> &conflict) {
  forBuckets(access, [&](std::vector<Entry> &entries, int64_t bucketBegin) {
    for (size_t i = 0; i < entries.size();) {
      const Entry &entry = entries[i];
      // A pair that meets in several buckets is looked at in the first of them.
      const int64_t meet = std::max(entry.access.begin(), access.begin());
      const bool isFirst = meet >= bucketBegin && meet < bucketBegin + bucketBytes(access);
      const bool writes = access.isWrite || entry.access.isWrite;
      bool ordered = true;
      if (writes && isFirst && overlap(entry.access, access))
        ordered = conflict(entry);
      // A covering write stands for what it overwrites: everything ordered after the write is ordered after that too.
      if (ordered && isFirst && access.isWrite && covers(access, entry.access) && overlap(entry.access, access) &&
          entry.access.end() <= bucketBegin + bucketBytes(access)) {
        entries[i] = std::move(entries.back());
        entries.pop_back();
        continue;
      }
      ++i;
    }
  });
}

void AccessHistory::add(const Access &access, uint32_t by, const std::function<bool(const Entry &)> &replaces) {
  forBuckets(access, [&](std::vector<Entry> &entries, int64_t) {
    std::erase_if(entries, [&](const Entry &entry) {
      return entry.access.isWrite == access.isWrite && covers(access, entry.access) && replaces(entry);
    });
    entries.push_back({access, by});
  });
}

void AccessHistory::clear() { buckets_.clear(); }

// ---------------------------------------------------------------------------------------------------------------------

void WrittenMemory::Bits::set(int64_t begin, int64_t end) {
  while (begin < end) {
    const int64_t word = begin / 64, bit = begin % 64;
    const int64_t count = std::min<int64_t>(64 - bit, end - begin);
    words[word] |= (count == 64 ? ~0ull : (1ull << count) - 1) << bit;
    begin += count;
  }
}

int64_t WrittenMemory::Bits::firstClear(int64_t begin, int64_t end) const {
  while (begin < end) {
    const int64_t word = begin / 64, bit = begin % 64;
    const int64_t count = std::min<int64_t>(64 - bit, end - begin);
    const uint64_t mask = (count == 64 ? ~0ull : (1ull << count) - 1) << bit;
    if (const uint64_t clear = ~words[word] & mask)
      return word * 64 + __builtin_ctzll(clear);
    begin += count;
  }
  return -1;
}

WrittenMemory::WrittenMemory(const neff::Neff &neff, const ImageLayout &layout) {
  for (int p = 0; p < kPartitions; ++p) {
    sbuf_[p].words.assign(size_t(layout.sbufBytes + 63) / 64, 0);
    psum_[p].words.assign(size_t(layout.psumBytes + 63) / 64, 0);
    matmulWords_[p].assign(size_t(layout.psumBytes) / 4 + 1, 0);
  }
  variables_.resize(neff.variables.size());
  for (size_t i = 0; i < neff.variables.size(); ++i) {
    const neff::Variable &variable = neff.variables[i];
    const bool starts = variable.kind == neff::Variable::Kind::Input ||
                        variable.kind == neff::Variable::Kind::Constant || variable.aliasOf >= 0;
    if (!starts)
      variables_[i].words.assign(size_t(variable.bytes + 63) / 64, 0);
  }
}

const WrittenMemory::Bits *WrittenMemory::bitsOf(const Access &access, int partition) const {
  if (access.space == MemorySpace::Hbm)
    return variables_[access.variable].words.empty() ? nullptr : &variables_[access.variable];
  return access.space == MemorySpace::Psum ? &psum_[partition] : &sbuf_[partition];
}

int64_t WrittenMemory::firstUnwritten(const Access &access, int &partition) const {
  if (!access.isExact)
    return -1; // which bytes are read is not known
  for (partition = access.p0; partition < access.p1; ++partition)
    if (const Bits *bits = bitsOf(access, partition))
      for (const ByteRange &run : *access.runs)
        if (const int64_t byte = bits->firstClear(access.base + run.begin, access.base + run.end); byte >= 0)
          return byte;
  return -1;
}

void WrittenMemory::write(const Access &access, bool isMatmul) {
  if (!access.isExact && access.space == MemorySpace::Hbm && access.runs->size() == 1 && access.base == 0 &&
      access.runs->front().begin == 0)
    return; // scattered rows: which ones is not known
  for (int partition = access.p0; partition < access.p1; ++partition) {
    if (Bits *bits = bitsOf(access, partition))
      for (const ByteRange &run : *access.runs)
        bits->set(access.base + run.begin, access.base + run.end);
    if (access.space == MemorySpace::Psum)
      for (const ByteRange &run : *access.runs)
        for (int64_t word = (access.base + run.begin) / 4; word <= (access.base + run.end - 1) / 4; ++word)
          matmulWords_[partition][word] = isMatmul;
  }
}

int64_t WrittenMemory::firstForeign(const Access &access, int &partition) const {
  for (partition = access.p0; partition < access.p1; ++partition)
    for (const ByteRange &run : *access.runs)
      for (int64_t word = (access.base + run.begin) / 4; word <= (access.base + run.end - 1) / 4; ++word)
        if (!matmulWords_[partition][word])
          return word * 4;
  return -1;
}

} // namespace neuroncore::emulator

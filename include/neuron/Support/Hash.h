// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Content hashes: xxHash's 128-bit XXH3 for cache keys and identities, CRC-32 for stored bytes. Neither is
// cryptographic.

#ifndef NEURON_SUPPORT_HASH_H
#define NEURON_SUPPORT_HASH_H

#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace neuroncore {

struct Hash128 {
  uint64_t high = 0, low = 0;
  auto operator<=>(const Hash128 &) const = default;
  /// 32 hexadecimal digits.
  std::string toString() const;
};

Hash128 hash128(std::span<const uint8_t> bytes);
Hash128 hash128(std::string_view text);

/// The same hash over pieces. Numbers are hashed as eight little-endian bytes and text with its length, so that the
/// pieces cannot run into each other.
class Hasher {
public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher &) = delete;
  Hasher &operator=(const Hasher &) = delete;
  Hasher &add(int64_t number);
  Hasher &add(std::string_view text);
  Hasher &add(std::span<const uint8_t> bytes);
  Hash128 finish() const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The CRC-32 of zlib, PNG and gzip; `previous` continues an earlier call.
uint32_t crc32(std::span<const uint8_t> bytes, uint32_t previous = 0);

} // namespace neuroncore

#endif // NEURON_SUPPORT_HASH_H

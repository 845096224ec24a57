// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// xxHash and zlib behind our own signatures.

#include "neuron/Support/Hash.h"

#include <array>
#include <cstdio>
#include <new>

#include <xxhash.h>
#include <zlib.h>

namespace neuroncore {

static Hash128 fromXxh(XXH128_hash_t hash) { return {hash.high64, hash.low64}; }

std::string Hash128::toString() const {
  char buffer[33];
  std::snprintf(buffer, sizeof(buffer), "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  return buffer;
}

Hash128 hash128(std::span<const uint8_t> bytes) { return fromXxh(XXH3_128bits(bytes.data(), bytes.size())); }

Hash128 hash128(std::string_view text) { return fromXxh(XXH3_128bits(text.data(), text.size())); }

struct Hasher::State {
  XXH3_state_t *xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

Hasher::Hasher() : state_(std::make_unique<State>()) {
  if (!state_->xxh)
    throw std::bad_alloc();
  XXH3_128bits_reset(state_->xxh);
}

Hasher::~Hasher() = default;

Hasher &Hasher::add(int64_t number) {
  std::array<uint8_t, 8> bytes;
  for (int i = 0; i < 8; ++i)
    bytes[i] = uint8_t(uint64_t(number) >> (8 * i));
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
  return *this;
}

Hasher &Hasher::add(std::string_view text) {
  add(int64_t(text.size()));
  XXH3_128bits_update(state_->xxh, text.data(), text.size());
  return *this;
}

Hasher &Hasher::add(std::span<const uint8_t> bytes) {
  add(int64_t(bytes.size()));
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
  return *this;
}

Hash128 Hasher::finish() const { return fromXxh(XXH3_128bits_digest(state_->xxh)); }

uint32_t crc32(std::span<const uint8_t> bytes, uint32_t previous) {
  return uint32_t(::crc32_z(previous, bytes.data(), bytes.size()));
}

} // namespace neuroncore

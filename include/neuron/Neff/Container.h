// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The container of a NEFF: a header of 1,024 bytes and a tar archive, as the public documentation describes it. Nothing
// here knows what the members mean. Reading is a trust boundary.

#ifndef NEURON_NEFF_CONTAINER_H
#define NEURON_NEFF_CONTAINER_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "neuron/Support/Error.h"

namespace neuroncore::neff {

/// The stored form, little-endian. Field names are those of the documentation.
struct Header {
  uint64_t pkg_version = 2;
  uint64_t header_size = 1024;
  uint64_t data_size = 0;
  uint64_t neff_version_major = 2;
  uint64_t neff_version_minor = 0;
  uint8_t neff_build_version[128] = {};
  uint32_t num_tpb = 1;
  uint8_t hash[32] = {};
  uint8_t uuid[16] = {};
  char name[256] = {};
  uint32_t requested_tpb_count = 1;
  uint8_t tpb_per_node[64] = {1};
  uint64_t feature_bits = 0;
  uint32_t lnc_size = 1;
  uint8_t pad[468] = {};
};

inline constexpr size_t kHeaderBytes = 1024;
static_assert(sizeof(Header) == kHeaderBytes);
static_assert(offsetof(Header, header_size) == 8);
static_assert(offsetof(Header, data_size) == 16);
static_assert(offsetof(Header, neff_version_major) == 24);
static_assert(offsetof(Header, neff_version_minor) == 32);
static_assert(offsetof(Header, neff_build_version) == 40);
static_assert(offsetof(Header, num_tpb) == 168);
static_assert(offsetof(Header, hash) == 172);
static_assert(offsetof(Header, uuid) == 204);
static_assert(offsetof(Header, name) == 220);
static_assert(offsetof(Header, requested_tpb_count) == 476);
static_assert(offsetof(Header, tpb_per_node) == 480);
static_assert(offsetof(Header, feature_bits) == 544);
static_assert(offsetof(Header, lnc_size) == 552);
static_assert(offsetof(Header, pad) == 556);

/// Marks streams in our own encoding. Runtimes that gate on feature bits refuse it, as they must.
inline constexpr uint64_t kOpenNeuronFeature = uint64_t(1) << 47;

struct Member {
  std::string name;
  std::vector<uint8_t> data;
};

/// A deterministic ustar or pax archive of the members in their order, compressed with gzip or not.
Expected<std::vector<uint8_t>> packMembers(std::span<const Member> members, bool compress);

/// Accepts a tar archive, compressed with gzip or not, and trailing zero bytes. Names are relative, without "..", and
/// unique; entries that are not regular files are skipped.
Expected<std::vector<Member>> unpackMembers(std::span<const uint8_t> payload, uint64_t maxBytes);

/// Header and payload; fills data_size and hash.
std::vector<uint8_t> makeContainer(Header header, std::span<const uint8_t> payload);

/// The digest that the header of a payload holds: SHA-256 for pkg_version 1, MD5 and zeros for 2.
Expected<std::vector<uint8_t>> payloadDigest(uint64_t pkgVersion, std::span<const uint8_t> payload);

struct Container {
  Header header;
  std::span<const uint8_t> payload;
};

/// Splits the bytes and checks that they are consistent: sizes, package version, and the hash if asked for.
Expected<Container> readContainer(std::span<const uint8_t> bytes, bool validateHash);

/// Whether this project can execute it: versions, feature bits, logical core size.
Status checkCompatible(const Header &header);

/// Text of a fixed-size field, up to its first NUL.
std::string_view fixedText(std::span<const char> field);

} // namespace neuroncore::neff

#endif // NEURON_NEFF_CONTAINER_H

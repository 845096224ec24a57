// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Header of the container, and its digests.

#include "neuron/Neff/Container.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <openssl/evp.h>

#include "neuron/Support/Text.h"

namespace neuroncore::neff {

static_assert(std::endian::native == std::endian::little, "the header is copied as it lies in memory");

static Error invalid(std::string message) { return Error(ErrorKind::InvalidInput, std::move(message)); }

std::string_view fixedText(std::span<const char> field) {
  return {field.data(), size_t(std::find(field.begin(), field.end(), '\0') - field.begin())};
}

Expected<std::vector<uint8_t>> payloadDigest(uint64_t pkgVersion, std::span<const uint8_t> payload) {
  if (pkgVersion != 1 && pkgVersion != 2)
    return Error(ErrorKind::UnsupportedVersion, cat("expected package version 1 or 2 but got ", pkgVersion));
  std::vector<uint8_t> digest(EVP_MAX_MD_SIZE);
  unsigned size = 0;
  const EVP_MD *algorithm = pkgVersion == 1 ? EVP_sha256() : EVP_md5();
  if (!EVP_Digest(payload.data(), payload.size(), digest.data(), &size, algorithm, nullptr))
    return Error(ErrorKind::Internal, "expected a digest of the payload but the cryptographic library gave none");
  digest.resize(size);
  digest.resize(sizeof(Header::hash));
  return digest;
}

std::vector<uint8_t> makeContainer(Header header, std::span<const uint8_t> payload) {
  header.data_size = payload.size();
  if (Expected<std::vector<uint8_t>> digest = payloadDigest(header.pkg_version, payload))
    std::copy(digest->begin(), digest->end(), header.hash);
  std::vector<uint8_t> bytes(sizeof(Header) + payload.size());
  std::memcpy(bytes.data(), &header, sizeof(Header));
  std::copy(payload.begin(), payload.end(), bytes.begin() + sizeof(Header));
  return bytes;
}

Expected<Container> readContainer(std::span<const uint8_t> bytes, bool validateHash) {
  if (bytes.size() < sizeof(Header))
    return invalid(cat("expected a NEFF header of ", sizeof(Header), " bytes but the file has ", bytes.size()));
  Container container;
  std::memcpy(&container.header, bytes.data(), sizeof(Header));
  const Header &header = container.header;
  if (header.header_size < 24 || header.header_size >= bytes.size())
    return invalid(cat("expected a header size of 24 to ", bytes.size() - 1, " but got ", header.header_size,
                       "; the file is no NEFF or is truncated"));
  container.payload = bytes.subspan(size_t(header.header_size));
  if (header.pkg_version != 1 && header.pkg_version != 2)
    return Error(ErrorKind::UnsupportedVersion, cat("expected package version 1 or 2 but got ", header.pkg_version));
  // Some writers count the header in.
  if (header.data_size != container.payload.size() && header.data_size != container.payload.size() + header.header_size)
    return invalid(cat("expected ", header.data_size, " bytes of payload but got ", container.payload.size(),
                       "; the file is truncated"));
  if (header.header_size < sizeof(Header))
    return Error(ErrorKind::UnsupportedVersion,
                 cat("expected a header of ", sizeof(Header), " bytes but got ", header.header_size));
  if (validateHash) {
    Expected<std::vector<uint8_t>> digest = payloadDigest(header.pkg_version, container.payload);
    if (!digest)
      return digest.error();
    if (!std::equal(digest->begin(), digest->end(), header.hash))
      return invalid("expected the payload to have the header's hash but it differs; the file is damaged");
  }
  return container;
}

Status checkCompatible(const Header &header) {
  if (!(header.feature_bits & kOpenNeuronFeature))
    return Error(
        ErrorKind::UnsupportedVersion,
        "expected a NEFF of this project (feature bit 47) but got another producer's; AWS instruction encoding "
        "is not public, so only NEFFs compiled by this project can be executed");
  if (header.neff_version_major > 2)
    return Error(ErrorKind::UnsupportedVersion,
                 cat("expected NEFF version 0, 1 or 2 but got ", header.neff_version_major));
  if (uint64_t unknown = header.feature_bits & ~kOpenNeuronFeature)
    return Error(ErrorKind::UnsupportedVersion, cat("expected no feature bits but bit 47 and got ", hex(unknown)));
  if (header.lnc_size > 1)
    return Error(ErrorKind::Unsupported, cat("expected a logical core of one physical core (LNC 1) but got LNC ",
                                             header.lnc_size, "; compile for LNC 1"));
  return Status::success();
}

} // namespace neuroncore::neff

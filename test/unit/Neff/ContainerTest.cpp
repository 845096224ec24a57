// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The archive and its digests.

#include "neuron/Neff/Container.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/Neff/Npy.h"

using namespace neuroncore;
using namespace neuroncore::neff;
using testing::HasSubstr;

namespace {

std::string unpackFailure(std::span<const uint8_t> payload) {
  Expected<std::vector<Member>> members = unpackMembers(payload, 1 << 30);
  return members ? "no error" : members.error().message();
}

std::string unpackFailure(const Member &member) { return unpackFailure(*packMembers(std::span(&member, 1), false)); }

} // namespace

TEST(Container, MembersSurvive) {
  std::vector<Member> members = {
      {"a", {}}, {"dir/b.bin", std::vector<uint8_t>(100000, 7)}, {std::string(300, 'n'), {1}}};
  for (bool compress : {true, false}) {
    std::vector<uint8_t> payload = *packMembers(members, compress);
    Expected<std::vector<Member>> read = unpackMembers(payload, 1 << 30);
    ASSERT_TRUE(read) << read.error().message();
    ASSERT_EQ(read->size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ((*read)[i].name, members[i].name);
      EXPECT_EQ((*read)[i].data, members[i].data);
    }
    EXPECT_EQ(payload, *packMembers(members, compress));
  }
}

TEST(Container, UnsafeNamesAreRefused) {
  EXPECT_EQ(unpackFailure({"a", {1}}), "no error");
  for (const char *name : {"/etc/passwd", "../a", "a/../../b", "a//b", "a/.", "a\\b"})
    EXPECT_THAT(unpackFailure({name, {1}}), HasSubstr("expected a relative member name")) << name;
  std::vector<Member> twice = {{"a", {1}}, {"./a", {2}}};
  EXPECT_THAT(unpackFailure(*packMembers(twice, false)), HasSubstr("'a' occurs again"));
}

TEST(Container, GarbageIsRefused) {
  EXPECT_NE(unpackFailure(std::span<const uint8_t>()), "no error");
  std::vector<uint8_t> noise(5000);
  for (size_t i = 0; i < noise.size(); ++i)
    noise[i] = uint8_t(i * 2654435761u >> 13);
  EXPECT_THAT(unpackFailure(noise), HasSubstr("expected a tar archive"));
  EXPECT_THAT(unpackFailure(std::vector<uint8_t>(10240, 0)), HasSubstr("found none"));
  Member member = {"a", std::vector<uint8_t>(50000, 3)};
  std::vector<uint8_t> payload = *packMembers(std::span(&member, 1), true);
  payload.resize(payload.size() / 2);
  EXPECT_NE(unpackFailure(payload), "no error");
  payload = *packMembers(std::span(&member, 1), false);
  payload.resize(20000);
  EXPECT_NE(unpackFailure(payload), "no error");
}

TEST(Container, Digests) {
  const std::vector<uint8_t> abc = {'a', 'b', 'c'};
  // The test vectors of RFC 1321 and FIPS 180.
  std::vector<uint8_t> md5 = *payloadDigest(2, abc);
  ASSERT_EQ(md5.size(), 32u);
  EXPECT_EQ(md5[0], 0x90);
  EXPECT_EQ(md5[15], 0x72);
  EXPECT_EQ(std::count(md5.begin() + 16, md5.end(), 0), 16);
  std::vector<uint8_t> sha = *payloadDigest(1, abc);
  EXPECT_EQ(sha[0], 0xba);
  EXPECT_EQ(sha[31], 0xad);
  EXPECT_FALSE(payloadDigest(3, abc));
}

TEST(Npy, HeaderIsAlignedAndDescribesTheArray) {
  Variable variable;
  variable.kind = Variable::Kind::Constant;
  variable.dtype = isa::Dtype::F32;
  variable.shape = {2, 3};
  variable.bytes = 24;
  variable.data.assign(24, 5);
  std::vector<uint8_t> file = writeNpy(variable);
  std::string text(file.begin() + 10, file.begin() + 128);
  EXPECT_THAT(text, HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"));
  EXPECT_EQ((file.size() - 24) % 64, 0u);
  EXPECT_EQ(readNpy(file)->size(), 24u);
  variable.shape = {6};
  file = writeNpy(variable);
  EXPECT_THAT(std::string(file.begin() + 10, file.begin() + 100), HasSubstr("(6,)"));
  variable.shape = {};
  variable.bytes = 4;
  variable.data.resize(4);
  file = writeNpy(variable);
  EXPECT_THAT(std::string(file.begin() + 10, file.begin() + 100), HasSubstr("()"));
  // Not its row-major elements: stored as bytes.
  variable.bytes = 10;
  variable.data.resize(10);
  file = writeNpy(variable);
  EXPECT_THAT(std::string(file.begin() + 10, file.begin() + 100),
              HasSubstr("'|u1', 'fortran_order': False, 'shape': (10,)"));
}

TEST(Npy, DamagedFilesAreRefused) {
  Variable variable;
  variable.kind = Variable::Kind::Constant;
  variable.bytes = 4;
  variable.data.assign(4, 1);
  const std::vector<uint8_t> good = writeNpy(variable);
  EXPECT_FALSE(readNpy(std::span(good).first(8)));
  EXPECT_FALSE(readNpy(std::span(good).first(60)));
  std::vector<uint8_t> bytes = good;
  bytes[6] = 9;
  EXPECT_FALSE(readNpy(bytes));
  bytes = good;
  auto at = std::search(bytes.begin(), bytes.end(), std::string_view("False").begin(), std::string_view("False").end());
  std::copy_n("True ", 5, at);
  EXPECT_FALSE(readNpy(bytes));
}

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text, hashes, files and the error types.

#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "neuron/Support/Error.h"
#include "neuron/Support/File.h"
#include "neuron/Support/Hash.h"
#include "neuron/Support/Interrupt.h"
#include "neuron/Support/Text.h"

using namespace neuroncore;

TEST(Text, CatWritesEachKind) {
  EXPECT_EQ(cat("a", 'b', std::string("c"), std::string_view("d"), 1, -2, uint8_t(3), INT64_MIN, UINT64_MAX, true, 0.5),
            "abcd1-23-922337203685477580818446744073709551615true0.5");
  EXPECT_EQ(hex(0x1c00), "0x1c00");
  EXPECT_EQ(hex(UINT64_MAX), "0xffffffffffffffff");
}

TEST(Error, ExpectedHoldsAValueOrAnError) {
  Expected<std::unique_ptr<int>> value = std::make_unique<int>(3);
  ASSERT_TRUE(value);
  EXPECT_EQ(**value, 3);
  Expected<int> error = Error(ErrorKind::NotFound, "nothing");
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().withContext("here").message(), "here: nothing");
  EXPECT_EQ(error.error().withContext("here").kind(), ErrorKind::NotFound);
  EXPECT_TRUE(Status::success());
  EXPECT_FALSE(Status(error.error()));
}

TEST(Error, EveryKindHasAName) {
  std::set<std::string_view> names;
  for (int kind = 0; kind <= int(ErrorKind::Internal); ++kind)
    EXPECT_TRUE(names.insert(toString(ErrorKind(kind))).second) << kind;
  EXPECT_EQ(toString(ErrorKind::OutOfBounds), "out of bounds");
  EXPECT_EQ(nrtStatus(ErrorKind::OutOfBounds), 1006);
  EXPECT_EQ(nrtStatusName(ErrorKind::UnsupportedVersion), "NRT_UNSUPPORTED_NEFF_VERSION");
  EXPECT_EQ(pythonException(ErrorKind::OutOfMemory), "MemoryError");
}

TEST(Hash, KnownValues) {
  const std::string digits = "123456789";
  std::span bytes(reinterpret_cast<const uint8_t *>(digits.data()), digits.size());
  // The check value of CRC-32/ISO-HDLC.
  EXPECT_EQ(crc32(bytes), 0xcbf43926u);
  EXPECT_EQ(crc32(bytes.subspan(4), crc32(bytes.first(4))), 0xcbf43926u);
  // XXH3_128bits of nothing, from its specification.
  EXPECT_EQ(hash128(std::string_view()).toString(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash128(digits), hash128(bytes));
}

TEST(Hash, PiecesDoNotRunTogether) {
  auto hash = [](std::string_view a, std::string_view b) { return Hasher().add(a).add(b).finish(); };
  EXPECT_NE(hash("ab", "c"), hash("a", "bc"));
  EXPECT_EQ(hash("ab", "c"), hash("ab", "c"));
  EXPECT_NE(Hasher().add(1).finish(), Hasher().add(2).finish());
}

TEST(File, RoundTrip) {
  std::string path = testing::TempDir() + "/support_test_file";
  for (size_t size : {size_t(0), size_t(1), size_t(1) << 16, (size_t(1) << 18) + 5}) {
    std::vector<uint8_t> bytes(size);
    for (size_t i = 0; i < size; ++i)
      bytes[i] = uint8_t(i * 7);
    ASSERT_TRUE(writeFile(path, std::span<const uint8_t>(bytes)));
    EXPECT_EQ(*readFile(path), bytes);
  }
  ASSERT_TRUE(writeFile(path, std::string_view("text")));
  EXPECT_EQ(*readTextFile(path), "text");
  std::filesystem::remove(path);
  EXPECT_EQ(readFile(path).error().kind(), ErrorKind::NotFound);
  EXPECT_FALSE(readFile(testing::TempDir()));
  EXPECT_FALSE(writeFile(testing::TempDir() + "/no/such/directory", std::string_view()));
}

TEST(Interrupt, IsAskedWithinAScopeAndStays) {
  EXPECT_FALSE(interruptRequested());
  int asked = 0;
  {
    InterruptScope outer([&] {
      ++asked;
      return true;
    });
    while (!interruptRequested()) {
    }
    EXPECT_TRUE(interruptRequested());
    EXPECT_EQ(asked, 1);
    InterruptScope inner([] { return false; });
    EXPECT_FALSE(interruptRequested());
  }
  EXPECT_FALSE(interruptRequested());
}

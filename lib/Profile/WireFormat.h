// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes protobuf's wire format where protobuf itself cannot be linked (TraceWriter.cpp) or where its messages would
// cost more than what they hold (Perfetto exports of millions of slices).

#ifndef NEURON_LIB_PROFILE_WIREFORMAT_H
#define NEURON_LIB_PROFILE_WIREFORMAT_H

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace neuroncore::profile {

/// A message in the making. Fields with default values are left out, as protobuf does.
class Message {
public:
  void number(int field, uint64_t value) {
    if (value == 0)
      return;
    tag(field, 0);
    varint(value);
  }
  void text(int field, std::string_view value) {
    if (value.empty())
      return;
    tag(field, 2);
    varint(value.size());
    bytes_ += value;
  }
  /// Also when it is empty: an element of a repeated field.
  void element(int field, const Message &value) {
    tag(field, 2);
    varint(value.bytes_.size());
    bytes_ += value.bytes_;
  }
  template <typename Range, typename Value> void packed(int field, const Range &range, Value value) {
    if (range.empty())
      return;
    Message content;
    content.bytes_.reserve(range.size() * 2);
    for (const auto &item : range)
      content.varint(value(item));
    element(field, content);
  }
  /// Also when it is zero.
  void fixed64(int field, uint64_t value) {
    tag(field, 1);
    char bytes[8];
    for (char &byte : bytes) {
      byte = char(value);
      value >>= 8;
    }
    bytes_.append(bytes, 8);
  }
  void real(int field, double value) { fixed64(field, std::bit_cast<uint64_t>(value)); }
  /// Also when it is zero.
  void explicitNumber(int field, uint64_t value) {
    tag(field, 0);
    varint(value);
  }
  void raw(std::string_view bytes) { bytes_ += bytes; }
  void clear() { bytes_.clear(); }
  const std::string &bytes() const { return bytes_; }
  static uint64_t zigzag(int64_t value) { return uint64_t(value) << 1 ^ uint64_t(value >> 63); }
  std::string take() { return std::move(bytes_); }

private:
  void tag(int field, int type) { varint(uint64_t(field) << 3 | uint64_t(type)); }
  void varint(uint64_t value) {
    while (value >= 0x80) {
      bytes_ += char(value | 0x80);
      value >>= 7;
    }
    bytes_ += char(value);
  }

  std::string bytes_;
};

} // namespace neuroncore::profile

#endif // NEURON_LIB_PROFILE_WIREFORMAT_H

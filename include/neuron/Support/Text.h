// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text building for messages: cat("expected ", 3, " dimensions but got ", n).

#ifndef NEURON_SUPPORT_TEXT_H
#define NEURON_SUPPORT_TEXT_H

#include <concepts>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace neuroncore {

inline void appendText(std::string &out, std::string_view text) { out += text; }
inline void appendText(std::string &out, const char *text) { out += text; }
inline void appendText(std::string &out, char c) { out += c; }
inline void appendText(std::string &out, bool value) { out += value ? "true" : "false"; }
template <std::integral T> void appendText(std::string &out, T value) { out += std::to_string(value); }
template <std::floating_point T> void appendText(std::string &out, T value) {
  char buffer[40];
  std::snprintf(buffer, sizeof(buffer), "%.9g", double(value));
  out += buffer;
}

/// The arguments written one after the other.
template <typename... Parts> std::string cat(const Parts &...parts) {
  std::string out;
  (appendText(out, parts), ...);
  return out;
}

/// 0x1c00
inline std::string hex(uint64_t value) {
  char buffer[24];
  std::snprintf(buffer, sizeof(buffer), "0x%llx", static_cast<unsigned long long>(value));
  return buffer;
}

} // namespace neuroncore

#endif // NEURON_SUPPORT_TEXT_H

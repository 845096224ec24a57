// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checked access to JSON that others wrote: a member of the wrong type or range is an error that names it, never an
// exception.

#ifndef NEURON_LIB_NEFF_JSON_H
#define NEURON_LIB_NEFF_JSON_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "neuron/Support/Error.h"

namespace neuroncore::neff {

/// Members are sorted: output is deterministic, and an object of many members is no quadratic cost to read.
using Json = nlohmann::json;

/// The key under which all of our extensions live.
inline constexpr const char *kExtensionKey = "x_open_neuron";

Expected<Json> parseJson(std::span<const uint8_t> bytes);
/// An error if a text is not UTF-8.
Expected<std::string> dumpJson(const Json &json, int indent = -1);

/// An object whose members are read one by one; the first problem is kept and later reads give defaults.
class ObjectReader {
public:
  ObjectReader(const Json *object, std::string where);

  bool has(const char *key) const { return find(key) != nullptr; }
  std::string text(const char *key, std::optional<std::string> fallback = std::nullopt);
  int64_t integer(const char *key, int64_t low, int64_t high, std::optional<int64_t> fallback = std::nullopt);
  std::vector<int64_t> integers(const char *key, int64_t low, int64_t high);
  /// A member that is an object; null if absent.
  const Json *object(const char *key);
  const Json *array(const char *key);

  void fail(std::string message);
  Status status() const { return status_; }

private:
  const Json *find(const char *key) const;
  std::optional<int64_t> number(const Json &value, const std::string &key, int64_t low, int64_t high);

  const Json *object_;
  std::string where_;
  Status status_;
};

} // namespace neuroncore::neff

#endif // NEURON_LIB_NEFF_JSON_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checked access to JSON.

#include "Json.h"

#include "neuron/Support/Text.h"

namespace neuroncore::neff {

/// The files of a NEFF are nested a handful of levels. Deeper text costs the parser far more time than its size.
constexpr int kMaxDepth = 64;

static bool isNestedTooDeep(std::span<const uint8_t> bytes) {
  int depth = 0;
  bool inText = false;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const uint8_t c = bytes[i];
    if (inText) {
      i += c == '\\';
      inText = c != '"';
    } else if (c == '"') {
      inText = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth)
        return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

Expected<Json> parseJson(std::span<const uint8_t> bytes) {
  if (isNestedTooDeep(bytes))
    return Error(ErrorKind::InvalidInput, cat("expected JSON text of at most ", kMaxDepth, " levels"));
  Json json = Json::parse(bytes.begin(), bytes.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded())
    return Error(ErrorKind::InvalidInput, "expected JSON text");
  return json;
}

Expected<std::string> dumpJson(const Json &json, int indent) {
  try {
    return json.dump(indent);
  } catch (const Json::exception &) {
    return Error(ErrorKind::InvalidInput, "expected names and texts in UTF-8");
  }
}

ObjectReader::ObjectReader(const Json *object, std::string where) : object_(object), where_(std::move(where)) {
  if (object_ && object_->is_object())
    return;
  fail("expected a JSON object");
  object_ = nullptr;
}

const Json *ObjectReader::find(const char *key) const {
  if (!object_)
    return nullptr;
  auto found = object_->find(key);
  return found == object_->end() ? nullptr : &*found;
}

void ObjectReader::fail(std::string message) {
  if (status_)
    status_ = Error(ErrorKind::InvalidInput, cat(where_, ": ", message));
}

std::string ObjectReader::text(const char *key, std::optional<std::string> fallback) {
  const Json *value = find(key);
  if (value && value->is_string())
    return value->get<std::string>();
  if (value || !fallback)
    fail(cat("expected a text '", key, "'", value ? "" : " but it is missing"));
  return fallback.value_or(std::string());
}

std::optional<int64_t> ObjectReader::number(const Json &value, const std::string &key, int64_t low, int64_t high) {
  // A number above 2^63 is unsigned in the library and would wrap.
  bool fits =
      value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t(INT64_MAX));
  if (fits && value.get<int64_t>() >= low && value.get<int64_t>() <= high)
    return value.get<int64_t>();
  fail(cat("expected '", key, "' to be an integer from ", low, " to ", high));
  return std::nullopt;
}

int64_t ObjectReader::integer(const char *key, int64_t low, int64_t high, std::optional<int64_t> fallback) {
  const Json *value = find(key);
  if (!value) {
    if (!fallback)
      fail(cat("expected an integer '", key, "' but it is missing"));
    return fallback.value_or(low);
  }
  return number(*value, key, low, high).value_or(low);
}

std::vector<int64_t> ObjectReader::integers(const char *key, int64_t low, int64_t high) {
  std::vector<int64_t> values;
  const Json *list = array(key);
  if (!list)
    return values;
  for (const Json &item : *list)
    values.push_back(number(item, key, low, high).value_or(low));
  return values;
}

const Json *ObjectReader::object(const char *key) {
  const Json *value = find(key);
  if (value && !value->is_object()) {
    fail(cat("expected '", key, "' to be an object"));
    return nullptr;
  }
  return value;
}

const Json *ObjectReader::array(const char *key) {
  const Json *value = find(key);
  if (value && !value->is_array()) {
    fail(cat("expected '", key, "' to be an array"));
    return nullptr;
  }
  return value;
}

} // namespace neuroncore::neff

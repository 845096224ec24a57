// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/Settings.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "neuron/Support/Text.h"

namespace neuroncore::runtime {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return out;
}

bool parseInt(std::string_view text, int &value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Error invalid(std::string_view name, std::string_view value, std::string_view expected) {
  return Error(ErrorKind::InvalidInput, cat(name, ": expected ", expected, " but got '", value, "'"));
}

} // namespace

Status parseCoreList(std::string_view text, int &first, int &count) {
  first = -1;
  count = 0;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    const size_t dash = item.find('-');
    int low, high;
    if (!parseInt(item.substr(0, dash), low) || low < 0)
      return invalid("NEURON_RT_VISIBLE_CORES", item, "a core number or a range such as 1-3");
    high = low;
    if (dash != std::string_view::npos && (!parseInt(item.substr(dash + 1), high) || high < low))
      return invalid("NEURON_RT_VISIBLE_CORES", item, "a range such as 1-3");
    if (first < 0)
      first = low;
    else if (low != first + count)
      return invalid("NEURON_RT_VISIBLE_CORES", item, cat("core ", first + count, " (the list must be contiguous)"));
    count += high - low + 1;
  }
  if (first < 0)
    return invalid("NEURON_RT_VISIBLE_CORES", "", "a list of cores");
  return Status::success();
}

Expected<Settings> Settings::fromEnvironment(const Lookup &lookup) {
  Settings settings;
  if (const char *value = lookup("NEURON_PLATFORM_TARGET_OVERRIDE"); value && *value) {
    const std::string target = lower(value);
    if (target == "trn1" || target == "trn1n" || target == "inf2")
      settings.target = "trn1";
    else if (target == "trn2" || target == "trn3")
      settings.target = target;
    else
      return invalid("NEURON_PLATFORM_TARGET_OVERRIDE", value, "trn1, trn2 or trn3");
  }
  if (const char *value = lookup("OPEN_NEURON_MACHINE_MODEL"); value && *value)
    settings.machineModelPath = value;
  if (const char *value = lookup("NEURON_RT_NUM_CORES"); value && *value)
    if (!parseInt(value, settings.numCores) || settings.numCores < 0)
      return invalid("NEURON_RT_NUM_CORES", value, "a number of cores");
  if (const char *value = lookup("NEURON_RT_VISIBLE_CORES"); value && *value)
    if (Status status = parseCoreList(value, settings.firstCore, settings.numCores); !status)
      return status.error();
  if (const char *value = lookup("NEURON_RT_LOG_LEVEL"); value && *value) {
    const std::string level = lower(value);
    const std::pair<const char *, LogLevel> levels[] = {{"quiet", LogLevel::Quiet},     {"error", LogLevel::Error},
                                                        {"warning", LogLevel::Warning}, {"warn", LogLevel::Warning},
                                                        {"info", LogLevel::Info},       {"debug", LogLevel::Debug},
                                                        {"trace", LogLevel::Trace}};
    const auto found = std::find_if(std::begin(levels), std::end(levels), [&](auto &l) { return level == l.first; });
    if (found == std::end(levels))
      return invalid("NEURON_RT_LOG_LEVEL", value, "QUIET, ERROR, WARNING, INFO, DEBUG or TRACE");
    settings.logLevel = found->second;
  }
  if (const char *value = lookup("NEURON_RT_EXEC_TIMEOUT"); value && *value) {
    int seconds;
    if (!parseInt(value, seconds) || seconds <= 0)
      return invalid("NEURON_RT_EXEC_TIMEOUT", value, "a number of seconds");
    settings.execTimeoutSeconds = seconds;
  }
  if (const char *value = lookup("NEURON_RT_VALIDATE_HASH"); value && *value) {
    const std::string text = lower(value);
    if (text == "true" || text == "1")
      settings.validateHash = true;
    else if (text == "false" || text == "0")
      settings.validateHash = false;
    else
      return invalid("NEURON_RT_VALIDATE_HASH", value, "true or false");
  }
  return settings;
}

} // namespace neuroncore::runtime

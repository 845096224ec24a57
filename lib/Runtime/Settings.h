// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the runtime reads from the environment, once, in nrt_init (docs/Runtime.md lists the variables).

#ifndef NEURON_LIB_RUNTIME_SETTINGS_H
#define NEURON_LIB_RUNTIME_SETTINGS_H

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "neuron/Support/Error.h"

namespace neuroncore::runtime {

enum class LogLevel : uint8_t { Quiet, Error, Warning, Info, Debug, Trace };

struct Settings {
  std::string target = "trn2";
  /// File with a machine model instead of the built-in one.
  std::string machineModelPath;
  /// First of the visible cores, and how many (0: all from the first on).
  int firstCore = 0;
  int numCores = 0;
  LogLevel logLevel = LogLevel::Error;
  double execTimeoutSeconds = 600;
  bool validateHash = true;

  using Lookup = std::function<const char *(const char *name)>;
  static Expected<Settings> fromEnvironment(const Lookup &lookup);
};

/// "0", "1-3", "3-5,6": first core and count; the list must be contiguous and increasing.
Status parseCoreList(std::string_view text, int &first, int &count);

} // namespace neuroncore::runtime

#endif // NEURON_LIB_RUNTIME_SETTINGS_H

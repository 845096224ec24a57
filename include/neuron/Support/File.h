// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whole files.

#ifndef NEURON_SUPPORT_FILE_H
#define NEURON_SUPPORT_FILE_H

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "neuron/Support/Error.h"

namespace neuroncore {

Expected<std::vector<uint8_t>> readFile(const std::string &path);
Expected<std::string> readTextFile(const std::string &path);
Status writeFile(const std::string &path, std::span<const uint8_t> bytes);
Status writeFile(const std::string &path, std::string_view text);

} // namespace neuroncore

#endif // NEURON_SUPPORT_FILE_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The subcommands of neuron-packager. Output and errors go through the caller.

#ifndef NEURON_TOOLS_NEURON_PACKAGER_PACKAGER_H
#define NEURON_TOOLS_NEURON_PACKAGER_PACKAGER_H

#include <string>
#include <vector>

#include "neuron/Support/Error.h"

namespace neuroncore::packager {

struct CreateOptions {
  std::string input; // tarball
  std::string toolVersion;
  std::string neffVersion = "0.4";
  int headerVersion = 2;
  std::string name;
  int numCores = 1;
  std::string output = "NN";
  std::vector<std::string> features;
};
/// Puts a header before a tarball.
Status create(const CreateOptions &options);

struct InfoOptions {
  std::string file;
  bool showWeights = false;
  bool showSpills = false;
  bool json = false;
};
/// Header, nodes and streams as text or JSON.
Expected<std::string> info(const InfoOptions &options);

/// Extracts the members, and the payload as neff.tgz. `directory` empty: named after the file.
Status unpack(const std::string &file, std::string directory);

/// The program as text, with the debug information as comments.
Expected<std::string> disassemble(const std::string &file);

/// A copy of `file` whose program is that of the text.
Status assemble(const std::string &text, const std::string &file, const std::string &output);

} // namespace neuroncore::packager

#endif // NEURON_TOOLS_NEURON_PACKAGER_PACKAGER_H

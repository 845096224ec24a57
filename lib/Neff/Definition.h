// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// def.json of a subgraph: its variables and where its engines' files are.

#ifndef NEURON_LIB_NEFF_DEFINITION_H
#define NEURON_LIB_NEFF_DEFINITION_H

#include <array>
#include <string>
#include <vector>

#include "Json.h"
#include "neuron/Neff/Neff.h"

namespace neuroncore::neff {

/// How the container names an engine, in the order of isa::kStreamEngines.
struct EngineNames {
  const char *key;   // def.json: "pe", "pe_instr"
  const char *file;  // "PE": PE0.json, PE0.bin
  const char *queue; // part of a queue's name
};
inline constexpr std::array<EngineNames, isa::kNumStreams> kEngineNames = {{{"pe", "PE", "Tensor"},
                                                                            {"act", "Activation", "Scalar"},
                                                                            {"pool", "Pool", "GpSimd"},
                                                                            {"dve", "DVE", "Vector"},
                                                                            {"sp", "SP", "Sync"}}};

/// "data", "dynamic" and the like: the queue of a transfer as the container names it, and its type there.
struct QueueName {
  std::string name;
  const char *type;
};
QueueName queueName(int stream, const isa::Instruction &instruction);

/// Name of the variable that stands for SBUF; chosen so that no variable of the program has it.
std::string stateBufferName(const Neff &neff);

/// File name of a constant inside the subgraph's folder.
std::string constantFile(size_t variable);

Json writeDefinition(const Neff &neff);

struct Definition {
  /// Member names relative to the subgraph's folder; empty where the engine has none.
  std::array<std::string, isa::kNumStreams> binaries;
  /// Parallel to Neff::variables; empty where there is no file.
  std::vector<std::string> files;
};

/// Fills variables (without constant data), target and resources of `neff`.
Expected<Definition> readDefinition(const Json &json, Neff &neff);

} // namespace neuroncore::neff

#endif // NEURON_LIB_NEFF_DEFINITION_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a user reads when an execution meets an index out of range: operator, index, allowed range, Python line, remedy.
// The device knows the instruction and what it read; a program knows the operator, the sizes and, for a compiled graph,
// the line. An eager operator's line is looked up when it is called, because the error surfaces elsewhere.

#ifndef NEURON_PYTHON_CSRC_EXECUTIONFAULT_H
#define NEURON_PYTHON_CSRC_EXECUTIONFAULT_H

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace neuroncore::device {

/// An index out of range, as the runtime reports it.
struct IndexFault {
  uint32_t debugId = 0;
  /// -1: the node has only one index.
  int dimension = -1;
  int64_t index = 0;
};

/// A node of a program that reads at indices that are data.
struct FaultNote {
  uint32_t node = 0;
  std::string op;
  /// "index" or "target".
  std::string noun;
  /// Dimensions that are indexed, with their sizes; dimension -1: all elements.
  std::vector<std::pair<int, int64_t>> dimensions;
  /// Negative indices count from the end.
  bool wraps = false;
  /// The CPU raises IndexError, otherwise RuntimeError.
  bool isIndexError = false;
  /// "  File ..., line ..., in ..." and the source; empty where it is known at the call only.
  std::string place;
  std::string remedy;
  /// Replaces everything about the index: the node is a condition of the user's.
  std::string condition;
};

/// Makes the notes of a program, from its graph, when somebody is told of a fault: at compilation they would take
/// longer than compiling a small graph does. Null for programs that read at no such indices.
using FaultNotes = std::shared_ptr<const std::function<std::vector<FaultNote>()>>;

/// A line of the user's program.
struct SourceLine {
  std::string file;
  int line = 0;
  std::string function;
};

/// The line that called the operator that is being launched; supplied by the extension module, which knows Python.
/// Called on the launching thread, for programs with notes only.
using SourceLineProvider = std::optional<SourceLine> (*)();
void setSourceLineProvider(SourceLineProvider provider);
std::optional<SourceLine> callersLine();

struct FaultDescription {
  std::string text;
  bool isIndexError = false;
};
/// `nodes`: what the instruction was made of. Nullopt if none of them has a note.
std::optional<FaultDescription> describeFault(const IndexFault &fault, const std::vector<uint32_t> &nodes,
                                              const std::vector<FaultNote> &notes,
                                              const std::optional<SourceLine> &callersLine);

} // namespace neuroncore::device

#endif // NEURON_PYTHON_CSRC_EXECUTIONFAULT_H

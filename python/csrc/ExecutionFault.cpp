// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExecutionFault.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <sstream>

namespace neuroncore::device {

namespace {

std::atomic<SourceLineProvider> theProvider{nullptr};

/// The text of a line without its indentation; empty if the file cannot be read.
std::string sourceText(const SourceLine &place) {
  std::ifstream file(place.file);
  std::string text;
  for (int line = 0; line < place.line; ++line)
    if (!std::getline(file, text))
      return {};
  const size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t\r");
  return begin == std::string::npos ? std::string() : text.substr(begin, end - begin + 1);
}

std::string placeText(const SourceLine &place) {
  std::ostringstream out;
  out << "\n  File \"" << place.file << "\", line " << place.line << ", in " << place.function;
  if (const std::string text = sourceText(place); !text.empty())
    out << "\n    " << text;
  return out.str();
}

/// The note of the node that failed. An instruction may stand for several nodes; the one whose index has the dimension
/// of the fault is meant.
const FaultNote *noteOf(const IndexFault &fault, const std::vector<uint32_t> &nodes,
                        const std::vector<FaultNote> &notes) {
  const FaultNote *result = nullptr;
  for (const FaultNote &note : notes) {
    if (std::find(nodes.begin(), nodes.end(), note.node) == nodes.end())
      continue;
    const bool fits = fault.dimension < 0 || std::any_of(
                                                 note.dimensions.begin(), note.dimensions.end(),
                                                 [&](const auto &d) { return d.first == fault.dimension; });
    if (!result || fits)
      result = &note;
    if (fits)
      break;
  }
  return result;
}

} // namespace

void setSourceLineProvider(SourceLineProvider provider) { theProvider.store(provider); }

std::optional<SourceLine> callersLine() {
  const SourceLineProvider provider = theProvider.load();
  return provider ? provider() : std::nullopt;
}

std::optional<FaultDescription> describeFault(const IndexFault &fault, const std::vector<uint32_t> &nodes,
                                              const std::vector<FaultNote> &notes,
                                              const std::optional<SourceLine> &callersLine) {
  const FaultNote *note = noteOf(fault, nodes, notes);
  if (!note)
    return std::nullopt;
  std::ostringstream out;
  if (!note->condition.empty()) {
    out << note->condition << " (operator " << note->op << ')';
  } else {
    auto at = std::find_if(note->dimensions.begin(), note->dimensions.end(),
                           [&](const auto &d) { return fault.dimension < 0 || d.first == fault.dimension; });
    if (at == note->dimensions.end())
      return std::nullopt;
    const auto [dimension, size] = *at;
    // The device counts from the end before it looks at the range.
    const int64_t index = note->wraps && fault.index < 0 ? fault.index - size : fault.index;
    const int64_t first = note->wraps ? -size : 0;
    // The device hands on the lower 59 bits.
    if (index >= first && index < size)
      out << "a " << note->noun << " beyond 58 bits is out of bounds for ";
    else
      out << note->noun << ' ' << index << " is out of bounds for ";
    if (note->noun == "target")
      out << size << " classes";
    else if (dimension < 0)
      out << "a tensor of " << size << " elements";
    else
      out << "dimension " << dimension << " with size " << size;
    out << ": expected " << first << " <= " << note->noun << " < " << size << " (operator " << note->op << ')';
  }
  if (!note->place.empty())
    out << '\n' << note->place;
  else if (callersLine)
    out << placeText(*callersLine);
  if (!note->remedy.empty())
    out << '\n' << note->remedy;
  return FaultDescription{out.str(), note->isIndexError};
}

} // namespace neuroncore::device

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which bytes an instruction reads and writes.

#ifndef NEURON_LIB_EMULATOR_CHECK_ACCESS_H
#define NEURON_LIB_EMULATOR_CHECK_ACCESS_H

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/Emulator/Operand.h"
#include "lib/Emulator/Sequencer.h"
#include "neuron/Neff/Neff.h"

namespace neuroncore::emulator {

/// Sorted, disjoint, not touching byte ranges.
using Runs = std::vector<ByteRange>;

/// The bytes of a pattern relative to its first element. Patterns of very many runs are given as their hull, which sets
/// `isHull`.
Runs runsOf(const Pattern &pattern, int elementBytes, bool &isHull);

struct Access {
  isa::MemorySpace space = isa::MemorySpace::None;
  bool isWrite = false;
  /// The bytes are exactly these (not a hull, not chosen by an index).
  bool isExact = true;
  /// Root variable of HBM accesses: outputs that share memory with an input count as the input.
  int variable = -1;
  /// Partitions [p0, p1); HBM: [0, 1).
  int p0 = 0, p1 = 1;
  int64_t base = 0; // added to the runs
  std::shared_ptr<const Runs> runs;

  int64_t begin() const { return base + runs->front().begin; }
  int64_t end() const { return base + runs->back().end; }
};

bool overlap(const Access &a, const Access &b);

/// "sbuf partitions 0-127, bytes [0, 4096)" or "variable 'x', bytes [0, 512)"
std::string describe(const Access &access, const neff::Neff &neff);

class AccessTable {
public:
  explicit AccessTable(const neff::Neff &neff);

  /// Accesses of instruction `pc` of a stream; HBM operands with the registers of `state`. An error text if an operand
  /// leaves its variable.
  std::string collect(int stream, uint32_t pc, const SequencerState &state, std::vector<Access> &accesses);
  int rootOf(int variable) const { return roots_[variable]; }

private:
  struct Cached {
    bool valid = false;
    std::vector<Access> onChip;
    bool hasHbm = false;
  };
  void addTile(const isa::TilePattern &tile, bool isWrite, std::vector<Access> &accesses);
  std::string addHbm(const isa::Instruction &instruction, int side, bool isWrite, bool isIndexed,
                     const SequencerState &state, std::vector<Access> &accesses);
  std::shared_ptr<const Runs> cachedRuns(const Pattern &pattern, int elementBytes, bool &isHull);

  const neff::Neff &neff_;
  std::vector<int> roots_;
  std::array<std::vector<Cached>, isa::kNumStreams> cache_;
  struct RunsEntry {
    std::shared_ptr<const Runs> runs;
    bool isHull;
  };
  std::map<std::vector<int64_t>, RunsEntry> runs_;
};

} // namespace neuroncore::emulator

#endif // NEURON_LIB_EMULATOR_CHECK_ACCESS_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Emulator/Check/Access.h"

#include <algorithm>

#include "lib/Emulator/Dma.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Support/Text.h"

namespace neuroncore::emulator {

using isa::Instruction;
using isa::MemorySpace;
using isa::Opcode;

Runs runsOf(const Pattern &pattern, int elementBytes, bool &isHull) {
  constexpr int64_t kMaxRuns = 1 << 16;
  isHull = false;
  // Dimensions by the size of their step, the largest first; steps of 0 add nothing.
  struct Dim {
    int64_t count, step;
  };
  std::vector<Dim> dims;
  int64_t low = 0;
  for (int i = 0; i < pattern.numDims; ++i) {
    if (pattern.count[i] == 0)
      return {};
    if (pattern.count[i] == 1 || pattern.step[i] == 0)
      continue;
    int64_t step = pattern.step[i];
    if (step < 0) { // the same bytes, walked upwards
      low += (pattern.count[i] - 1) * step;
      step = -step;
    }
    dims.push_back({pattern.count[i], step});
  }
  std::sort(dims.begin(), dims.end(), [](const Dim &a, const Dim &b) { return a.step > b.step; });
  int64_t run = elementBytes;
  while (!dims.empty() && dims.back().step <= run) {
    run += (dims.back().count - 1) * dims.back().step;
    dims.pop_back();
  }
  __int128 count = 1;
  int64_t extent = run;
  for (const Dim &dim : dims) {
    count *= dim.count;
    extent += (dim.count - 1) * dim.step;
  }
  if (count > kMaxRuns) {
    isHull = true;
    return {{low, low + extent}};
  }
  Runs runs = {{low, low + run}};
  // From the innermost dimension outwards.
  for (size_t d = dims.size(); d-- > 0;) {
    const size_t inner = runs.size();
    for (int64_t k = 1; k < dims[d].count; ++k)
      for (size_t i = 0; i < inner; ++i)
        runs.push_back({runs[i].begin + k * dims[d].step, runs[i].end + k * dims[d].step});
  }
  std::sort(runs.begin(), runs.end(), [](const ByteRange &a, const ByteRange &b) { return a.begin < b.begin; });
  Runs merged;
  for (const ByteRange &range : runs) {
    if (!merged.empty() && range.begin <= merged.back().end)
      merged.back().end = std::max(merged.back().end, range.end);
    else
      merged.push_back(range);
  }
  return merged;
}

bool overlap(const Access &a, const Access &b) {
  if (a.space != b.space || a.variable != b.variable || a.p0 >= b.p1 || b.p0 >= a.p1)
    return false;
  if (a.begin() >= b.end() || b.begin() >= a.end())
    return false;
  const Runs &x = *a.runs, &y = *b.runs;
  if (x.size() == 1 && y.size() == 1)
    return true;
  // Two sorted lists.
  size_t i = 0, j = 0;
  while (i < x.size() && j < y.size()) {
    if (a.base + x[i].end <= b.base + y[j].begin)
      ++i;
    else if (b.base + y[j].end <= a.base + x[i].begin)
      ++j;
    else
      return true;
  }
  return false;
}

std::string describe(const Access &access, const neff::Neff &neff) {
  if (access.space == MemorySpace::Hbm)
    return cat("variable '", neff.variables[access.variable].name, "', bytes [", access.begin(), ", ", access.end(),
               ")");
  return cat(access.space == MemorySpace::Psum ? "psum" : "sbuf", " partitions ", access.p0, "-", access.p1 - 1,
             ", bytes [", access.begin(), ", ", access.end(), ")");
}

AccessTable::AccessTable(const neff::Neff &neff) : neff_(neff) {
  for (size_t i = 0; i < neff.variables.size(); ++i) {
    const int32_t alias = neff.variables[i].aliasOf;
    roots_.push_back(alias >= 0 ? alias : int(i));
  }
  for (int s = 0; s < isa::kNumStreams; ++s)
    cache_[s].resize(neff.program[s].size());
}

std::shared_ptr<const Runs> AccessTable::cachedRuns(const Pattern &pattern, int elementBytes, bool &isHull) {
  std::vector<int64_t> key = {elementBytes};
  for (int i = 0; i < pattern.numDims; ++i) {
    key.push_back(pattern.count[i]);
    key.push_back(pattern.step[i]);
  }
  const auto found = runs_.find(key);
  if (found != runs_.end()) {
    isHull = found->second.isHull;
    return found->second.runs;
  }
  // Run-time sizes could make the table grow without bound.
  if (runs_.size() > 20000)
    runs_.clear();
  auto runs = std::make_shared<const Runs>(runsOf(pattern, elementBytes, isHull));
  runs_[key] = {runs, isHull};
  return runs;
}

void AccessTable::addTile(const isa::TilePattern &tile, bool isWrite, std::vector<Access> &accesses) {
  Access access;
  access.space = tile.space;
  access.isWrite = isWrite;
  access.p0 = tile.startPartition;
  access.p1 = tile.startPartition + tile.numPartitions;
  access.base = tile.byteOffset;
  bool isHull;
  access.runs = cachedRuns(freePattern(tile, 0, isa::kMaxFreeDims), isa::dtypeBytes(tile.dtype), isHull);
  access.isExact = !isHull;
  accesses.push_back(std::move(access));
}

std::string AccessTable::addHbm(const Instruction &instruction, int side, bool isWrite, bool isIndexed,
                                const SequencerState &state, std::vector<Access> &accesses) {
  const isa::HbmPattern &pattern = instruction.hbm[side];
  const int32_t run = state.registers[isa::kRunRegister];
  const int32_t variable = neff::boundVariable(neff_, pattern.variable, run);
  if (variable < 0)
    return unboundParameter(pattern, run);
  const int64_t variableBytes = neff::operandBytes(neff_, pattern.variable);
  const ResolvedHbm resolved = resolve(pattern, state);
  if (resolved.beyondBound >= 0)
    return cat("run-time size of dimension ", resolved.beyondBound, " is ", resolved.limit[resolved.beyondBound],
               ", above its bound ", resolved.count[resolved.beyondBound]);
  ResolvedHbm checked = resolved;
  if (isIndexed)
    checked.step[0] = 0;
  const int bytes = isa::dtypeBytes(pattern.dtype);
  const std::optional<ByteRange> range = byteRange(checked, bytes);
  if (!range || range->begin < 0 || range->end > variableBytes) {
    const std::string text = neff::describeOperand(neff_, pattern.variable, run);
    return range
               ? cat("bytes [", range->begin, ", ", range->end, ") are outside ", text, " of ", variableBytes, " bytes")
               : cat("an address is beyond 64 bits in ", text);
  }
  if (resolved.isEmpty())
    return "";
  Access access;
  access.space = MemorySpace::Hbm;
  access.isWrite = isWrite;
  access.variable = roots_[variable];
  bool isHull = false;
  if (isIndexed) {
    // Any row may be meant.
    access.runs = std::make_shared<const Runs>(Runs{{0, variableBytes}});
    access.isExact = false;
  } else {
    Pattern bytesOf;
    for (int i = 0; i < isa::kMaxHbmDims; ++i)
      bytesOf.add(resolved.limit[i], resolved.step[i]);
    access.base = resolved.offset;
    access.runs = cachedRuns(bytesOf, bytes, isHull);
    access.isExact = !isHull;
  }
  accesses.push_back(std::move(access));
  return "";
}

std::string AccessTable::collect(int stream, uint32_t pc, const SequencerState &state, std::vector<Access> &accesses) {
  accesses.clear();
  const Instruction &instruction = neff_.program[stream][pc];
  const isa::InstructionInfo &info = isa::instructionInfo(instruction.opcode);
  Cached &cached = cache_[stream][pc];
  if (!cached.valid) {
    cached.valid = true;
    for (int i = 0; i < info.numTiles; ++i) {
      const isa::TilePattern &tile = instruction.tiles[i];
      if (!tile.present())
        continue;
      if (tile.space == MemorySpace::Hbm) {
        cached.hasHbm = true;
        continue;
      }
      bool reads = info.tiles[i].reads(), writes = info.tiles[i].writes();
      // A tile that is read only in some forms of the instruction.
      if (instruction.opcode == Opcode::Matmul && i == 0)
        reads = instruction.accumulate;
      if ((instruction.opcode == Opcode::Activation || instruction.opcode == Opcode::TensorScalarReduce) && i == 2)
        reads = instruction.reduceCommand == isa::ReduceCommand::LoadReduce;
      if (instruction.opcode == Opcode::StreamShuffle && i == 0) {
        reads = false;
        for (int k = 0; k < 32; ++k)
          reads |= uint8_t(uint64_t(instruction.immediates[k / 8]) >> (8 * (k % 8))) == 255;
      }
      if (instruction.opcode == Opcode::GpsimdCall && instruction.routine == isa::Routine::Scatter && i == 0)
        reads = true; // elements that no index names keep their value
      if (reads)
        addTile(tile, false, cached.onChip);
      if (writes)
        addTile(tile, true, cached.onChip);
    }
    // Scalar vectors lie in the partitions of the first source tile.
    const isa::TilePattern *firstSource = nullptr;
    for (int i = 0; i < info.numTiles && !firstSource; ++i)
      if (instruction.tiles[i].present() && info.tiles[i].access == isa::Access::Read)
        firstSource = &instruction.tiles[i];
    for (const isa::ScalarOperand &scalar : instruction.scalars) {
      if (scalar.kind != isa::ScalarOperand::Kind::Vector || !firstSource)
        continue;
      isa::TilePattern column;
      column.space = scalar.space;
      column.dtype = isa::Dtype::F32;
      column.startPartition = firstSource->startPartition;
      column.numPartitions = firstSource->numPartitions;
      column.byteOffset = scalar.byteOffset;
      addTile(column, false, cached.onChip);
    }
  }
  accesses = cached.onChip;
  if (!cached.hasHbm)
    return "";
  const bool isIndexed = instruction.opcode == Opcode::DmaCopy && instruction.tiles[2].present();
  for (int side = 1; side >= 0; --side) { // sources first
    if (side >= info.numTiles || instruction.tiles[side].space != MemorySpace::Hbm)
      continue;
    const bool isWrite = info.tiles[side].writes();
    // The pattern of a source is the second, also if it is the only operand (register_load).
    std::string error = addHbm(instruction, isWrite ? 0 : 1, isWrite, isIndexed, state, accesses);
    if (!error.empty())
      return error;
  }
  return "";
}

} // namespace neuroncore::emulator

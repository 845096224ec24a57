// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A machine whose instructions hash what they read into what they write, so that any wrong order of conflicting
// accesses shows in memory. It runs a structured program sequentially, and five streams in any order the machine
// allows.

#ifndef NEURON_TEST_SCHEDULE_SYMBOLICMACHINE_H
#define NEURON_TEST_SCHEDULE_SYMBOLICMACHINE_H

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "neuron/Schedule/StructuredProgram.h"

namespace neuroncore::schedule::test {

/// Small memories: a cell is a word of four bytes of one partition.
inline constexpr int kPartitions = 4;
inline constexpr int kSbufWords = 256;
inline constexpr int kPsumWords = 64;

/// Where each variable starts; variables of one alias group start at the same cell.
class Layout {
public:
  explicit Layout(const std::vector<VariableInfo> &variables);
  int cells() const { return cells_; }
  int onChip(isa::MemorySpace space, int partition, int64_t byte) const;
  int hbm(int variable, int64_t byte) const;

private:
  std::vector<int> start_;
  int cells_ = 0;
};

/// The cells an instruction touches, in the order of its elements.
struct Effects {
  std::vector<int> reads;
  std::vector<int> writes;
  bool elementwise = false; // a transfer: writes[i] depends on reads[i] only
};

using Registers = std::array<int32_t, isa::kNumRegisters>;
Effects effectsOf(const isa::Instruction &code, const Layout &layout, const Registers &registers);

using Memory = std::vector<uint64_t>;
Memory initialMemory(const Layout &layout);
/// Execution number `count` of an instruction.
uint64_t mix(uint64_t a, uint64_t b);
void applyWhole(const isa::Instruction &code, const Effects &effects, int64_t count, Memory &memory);

Memory runSequentially(const StructuredProgram &program, const Layout &layout, int64_t *dynamicInstructions = nullptr);

struct RunResult {
  Memory memory;
  bool deadlock = false;
  std::string where; // of a deadlock
};

/// One adversarial execution of the streams: only their own registers, branches and semaphores count.
RunResult runStreams(const isa::Program &program, const Layout &layout, uint64_t seed);

/// One step of a sequencer. False: it is not a register, branch or clear instruction.
bool stepControl(const isa::Instruction &code, Registers &registers, size_t &pc);

} // namespace neuroncore::schedule::test

#endif // NEURON_TEST_SCHEDULE_SYMBOLICMACHINE_H

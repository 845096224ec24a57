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
#include <span>
#include <string>
#include <vector>

#include "neuron/Schedule/Linking.h"
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
  /// `operand` is a variable, or a parameter of run `run`.
  int hbm(uint16_t operand, int64_t byte, int32_t run) const;
  /// What each run binds to each parameter; -1: nothing.
  std::vector<std::vector<int>> bindings;

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
/// The runs of all steps in order.
Memory runSequentially(std::span<const StructuredProgram> units, std::span<const Step> steps, const Layout &layout,
                       int64_t *dynamicInstructions = nullptr);

struct RunResult {
  Memory memory;
  bool deadlock = false;
  std::string where; // of a deadlock
};

/// One adversarial execution of the streams: only their own registers, branches and semaphores count.
RunResult runStreams(const isa::Program &program, const Layout &layout, uint64_t seed);

struct Sequencer {
  Registers registers = {};
  size_t pc = 0;
  std::vector<size_t> stack; // where calls return to

  bool ended(const isa::Stream &stream) const {
    return pc >= stream.size() || (stream[pc].opcode == isa::Opcode::Return && stack.empty());
  }
};
/// One step of a sequencer. False: it is not a register, branch, call or return instruction.
bool stepControl(const isa::Instruction &code, Sequencer &sequencer);

} // namespace neuroncore::schedule::test

#endif // NEURON_TEST_SCHEDULE_SYMBOLICMACHINE_H

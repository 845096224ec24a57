// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One program's timeline together with its NEFF, as rows: instructions by engine and start, transfers by DMA engine and
// start, changes of semaphores by time, and the edges between them. What does not change from one execution of an
// instruction to the next (operands, bytes, provenance) is kept once, as StaticInstruction.

#ifndef NEURON_LIB_PROFILE_DEVICEPROFILE_H
#define NEURON_LIB_PROFILE_DEVICEPROFILE_H

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/Profile/DeviceTrace.h"

namespace neuroncore::profile {

/// Order of the engines' rows: as people read them.
inline constexpr std::array<isa::Engine, isa::kNumStreams> kRowEngines = {
    isa::Engine::Tensor, isa::Engine::Vector, isa::Engine::Scalar, isa::Engine::Gpsimd, isa::Engine::Sync};

struct StaticInstruction {
  uint8_t stream = 0;
  uint32_t pc = 0;
  /// Of a program of several runs: variables, and so texts, differ between them.
  uint32_t run = 0;
  /// A load of activation tables, charged to the instruction that needs them.
  bool isTableLoad = false;
  std::string opcode;
  std::string operands;
  std::string function; // activations
  uint32_t debugId = 0;
  int64_t sbufReadBytes = 0, sbufWriteBytes = 0, psumReadBytes = 0, psumWriteBytes = 0;
  /// Twice the multiply-adds of a matmul, and the factor that makes them equivalents of bfloat16.
  int64_t flops = 0;
  double flopsFactor = 1;
  bool isMatmul = false, isTranspose = false, isLoader = false, isControl = false;
  /// Operations on elements by vector, scalar and GpSimd.
  int64_t elements = 0;
  int32_t partitions = 0;
  // Transfers.
  bool isDma = false;
  bool isDynamic = false; // descriptors from the GpSimd program
  bool isHardware = false;
  uint8_t queue = 0;
  bool readsHbm = false, writesHbm = false;
  int32_t readVariable = -1, writeVariable = -1;
  std::string source, destination, sourceShape, destinationShape;
  int64_t sourceOffset = 0, destinationOffset = 0;
  std::string sourceSteps, destinationSteps;
  std::string sourcePartitions, destinationPartitions;
  int32_t numSourcePartitions = 0, numDestinationPartitions = 0;
  std::string semaphore; // that completion updates
};

/// Columns of equal length.
struct InstructionRows {
  std::vector<int64_t> startPs, endPs, waitPs;
  std::vector<int32_t> info; // position in statics()
  std::vector<uint8_t> kind, reason;
};
struct TransferRows {
  std::vector<int64_t> startPs, endPs, bytes, trigger; // row of the instruction that triggered it, or -1
  std::vector<int32_t> info, block;
  std::vector<uint8_t> dmaEngine, queue, reason;
};
struct UpdateRows {
  std::vector<int64_t> timePs, row; // row of what made it, or -1
  std::vector<int32_t> value;
  std::vector<uint8_t> semaphore, op, isDma, table; // table of `row`: 1 transfers
  std::vector<int8_t> stream;                       // of the instruction, or -1
};
/// Tables: 0 instructions, 1 transfers.
struct FlowRows {
  std::vector<int64_t> from, to, gapPs;
  std::vector<uint8_t> fromTable, toTable, reason;
};
struct PathRows {
  std::vector<int64_t> row, startPs, endPs;
  std::vector<uint8_t> table, reason;
  std::vector<int32_t> info;
};
struct AllocationRows {
  std::vector<int64_t> startPs, endPs, startByte, endByte;
  std::vector<int32_t> firstPartition, partitions, info, block; // block: -1 for instructions
};

class DeviceProfile {
public:
  /// `neff`: the file that the trace belongs to. An error when they do not fit.
  static Expected<std::unique_ptr<DeviceProfile>> create(std::shared_ptr<const neff::Neff> neff, ProgramTrace trace);

  const neff::Neff &neff() const { return *neff_; }
  const target::MachineModel &model() const { return *model_; }
  const ProgramTrace &trace() const { return trace_; }
  const std::vector<StaticInstruction> &statics() const { return statics_; }

  const InstructionRows &instructions() const { return instructions_; }
  const TransferRows &transfers() const { return transfers_; }
  const FlowRows &flows() const { return flows_; }
  UpdateRows updates() const;
  /// First to last.
  PathRows criticalPath() const;
  AllocationRows allocations(isa::MemorySpace space) const;
  /// Time of the kernel on a machine that is faster in parts, ps.
  Expected<int64_t> whatIf(const emulator::Speedup &speedup) const;

private:
  DeviceProfile() = default;
  Status check() const;
  void describeStatics();
  StaticInstruction describe(int stream, uint32_t pc, uint32_t run, bool isTableLoad) const;
  int32_t infoOf(const emulator::TimelineEvent &event);
  void arrange();

  struct Edge {
    uint32_t cause = 0;
    emulator::TimelineEvent::Reason reason = emulator::TimelineEvent::Reason::Start;
  };

  std::shared_ptr<const neff::Neff> neff_;
  const target::MachineModel *model_ = nullptr;
  ProgramTrace trace_;
  std::vector<StaticInstruction> statics_;
  std::array<uint32_t, isa::kNumStreams> firstStatic_ = {};
  uint32_t firstTableLoad_ = 0;
  /// By (position of the first run's, run).
  std::map<std::pair<uint32_t, uint32_t>, int32_t> otherRuns_;
  InstructionRows instructions_;
  TransferRows transfers_;
  FlowRows flows_;
  /// By position in the order of issue: row, with the top bit for transfers; and what it waited for.
  std::vector<uint32_t> rowOf_;
  std::vector<Edge> edges_;
};

} // namespace neuroncore::profile

#endif // NEURON_LIB_PROFILE_DEVICEPROFILE_H

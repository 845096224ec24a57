// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is known about the chips, from lib/Target/machine_model.json: one object per target, with typed accessors
// grouped as in the file. Times are integer picoseconds or engine cycles, sizes are bytes; the name says which. Every
// constant keeps its source and confidence (entries()). docs/MachineModel.md explains the rules that use them.

#ifndef NEURON_TARGET_MACHINEMODEL_H
#define NEURON_TARGET_MACHINEMODEL_H

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "neuron/Support/Error.h"
#include "neuron/Support/Hash.h"
#include "neuron/Target/Formula.h"

namespace neuroncore::target {

enum class Confidence : uint8_t { Documented, Inferred };

/// One constant or formula as it is in force, for listings.
struct Entry {
  std::string key;   // "dma.completion_ns", "instructions.iota.ii_cycles"
  std::string value; // JSON text; "null" when unknown
  std::string unit;
  std::string source;
  Confidence confidence = Confidence::Inferred;
  std::string note;
  /// Subject of the calibration that set the value, or empty.
  std::string calibration;
};

struct Topology {
  int neuronCoresPerDevice = 0;
  int dmaEnginesPerCore = 0;
  int dmaQueuesPerEngine = 0;
  int sequencersPerCore = 0;
  int registersPerSequencer = 0;
  int semaphoresPerCore = 0;
  int eventsPerCore = 0;
  int hwDgeInstances = 0;
  int64_t hbmCapacityDeviceBytes = 0;
};

struct Memory {
  int partitions = 0;
  /// Start partitions of instruction operands are multiples of this (see isLegalStartPartition).
  int partitionQuadrant = 0;
  int64_t maxElementsPerPartitionSbuf = 0;
  int64_t maxElementsPerPartitionPsum = 0;
  int64_t sbufBytesPerPartition = 0;
  int64_t sbufUsableBytesPerPartition = 0;
  int64_t sbufPartitionAddressPitchBytes = 0;
  int64_t psumBytesPerPartition = 0;
  int psumBanks = 0;
  int64_t psumBankBytes = 0;
  double hbmGbpsDevice = 0;
  double hbmGbpsPerCoreShare = 0;
  double accessStartCycles = 0;
  /// An innermost step above this many bytes costs slowStrideFactor.
  int64_t fastStrideLimitBytes = 0;
  double slowStrideFactor = 1;
  /// The vector engine and GpSimd cannot access SBUF at the same time.
  bool conflictDvePoolSbufSerialize = false;
  enum class PsumConflict : uint8_t { Serialize, SameBankOnly };
  PsumConflict conflictDveActPsum = PsumConflict::Serialize;
};

struct TensorEngine {
  double clockGhz = 0;          // peak FLOPS, fixed latencies
  double sustainedClockGhz = 0; // initiation intervals
  int rows = 0;
  int cols = 0;
  /// Factors on the initiation interval.
  double bf16IiFactor = 1, fp16IiFactor = 1, fp8IiFactor = 1, fp32IiFactor = 1;
  double fp32OneZeroHintFactor = 1;
  double fp32TransposeModeFactor = 1;
  double fp32HwPasses = 1;
  int maxMovingFree = 0;
  int maxPsumBanksPerMatmul = 0;
  double matmulResultLatencyExtraCycles = 0;
  double matmulFp32ResultLatencyExtraCycles = 0;
  double ldweightsMinCycles = 0;

  /// Dense, in operations per second (two per multiply-add), for a dtype of factor 1.
  double peakFlops() const { return 2.0 * rows * cols * clockGhz * 1e9; }
};

struct VectorEngine {
  double clockGhz = 0;
  double minIiCycles = 0;
  double resultLatencyExtraCycles = 0;
  double perfMode16BitCopyScalarMax = 1;
  double perfMode16BitTensorTensor = 1;
  bool perfModeFp8 = false;
};

struct ScalarEngine {
  double clockGhz = 0;
  double minIiCycles = 0;
  double resultLatencyExtraCycles = 0;     // functions that need a table
  double resultLatencyExtraCyclesCopy = 0; // functions that do not
  int64_t tableLoadPs = 0;
  double wide16BitFactor = 1;
};

struct GpsimdEngine {
  double clockGhz = 0;
  int cores = 0;
  int simdBits = 0;
  double resultLatencyExtraCycles = 0;
  double rsqrtSlowdown = 1;
};

struct SyncEngine {
  double clockGhz = 0;
};

struct Dma {
  double engineGbpsPlanning = 0; // GB/s = bytes per ns
  double engineGbpsTheoretical = 0;
  int partitionsPerEngine = 0;
  int semaphoreIncrementsPerTransfer = 0;
  int64_t descriptorMinBytes = 0;
  int64_t dispatchSwdgePs = 0;
  int64_t dispatchHwdgePs = 0; // 0 where there is no hardware generator
  int64_t dispatchStaticPs = 0;
  int64_t triggerIssueSwdgePs = 0;
  int64_t triggerIssueHwdgePs = 0;
  int64_t triggerIssueStaticPs = 0;
  int64_t swdgeDescriptorPs = 0;
  int64_t completionPs = 0;
  int64_t queueMinOccupancyPs = 0;
  double transposeEfficiencyHbmToSbuf = 0; // 0 where there is no DMA transpose
  double transposeEfficiencySbufToSbuf = 0;
};

struct Sync {
  int64_t engineToEngineSemaphorePs = 0;
  int64_t controlInstructionPs = 0;
  int64_t registerLoadHbmPs = 0;
  /// Fixed cost of one execution without and with device capture; not part of kernel time.
  int64_t neffStartStopOverheadPs = 0;
  int64_t neffDeviceCaptureOverheadPs = 0;
};

/// Rows of the file's instruction table that instructions of ours are charged with.
enum class CostRow : uint8_t {
  LoadStationary,
  Matmul,
  TransposeDve,
  Activation,
  ActivationReduce,
  TensorCopy,
  TensorCopyPool,
  TensorCopyPredicatedMixed,
  TensorCopyPredicatedSbuf,
  MemsetZero16Bit,
  Memset,
  MemsetPool,
  TensorTensorOnePsum,
  TensorTensorBf16Sbuf,
  TensorTensor,
  TensorTensorPool,
  TensorScalar,
  TensorScalarPool,
  TensorScalarReduce,
  ScalarTensorTensor,
  ScalarTensorTensorBf16,
  TensorTensorScan,
  TensorReduce,
  TensorReduceBf16,
  Reciprocal,
  BnStats,
  BnAggr,
  Max8,
  FindIndex8,
  StreamShuffle,
  RangeSelect,
  Iota,
  AffineSelect,
  GpsimdCall,
  RegisterLoad,
};
inline constexpr int kNumCostRows = int(CostRow::RegisterLoad) + 1;

/// What the formulas of the instruction table may refer to.
struct CostVariables {
  double n = 0;           // N: free elements per partition, with the stride penalty
  double p = 0;           // P: partitions
  double k = 0;           // K: rows of the array in use
  double nStationary = 0; // N_stationary
  double nMoving = 0;     // N_moving
  double f = 1;           // factor of the dtype on the tensor engine
  double passes = 1;      // hardware passes of the dtype on the tensor engine
  double perf = 1;        // performance mode
  double ops = 0;         // vector operations of a GpSimd routine
  double laneBytes = 4;   // lane_bytes of a GpSimd routine
};

class MachineModel {
public:
  /// `path`: a file of the same shape instead of the built-in one. A target is trn1, trn2 or trn3.
  static Expected<MachineModel> load(std::string_view target, const std::string &path = {});
  static Expected<MachineModel> parse(std::string_view json, std::string_view target);
  /// The built-in model, loaded once per process; null for an unknown target.
  static const MachineModel *builtin(std::string_view target);

  const std::string &target() const { return target_; }
  /// 2, 3 or 4: the generation of the NeuronCore (trn1, trn2, trn3).
  int generation() const { return generation_; }

  const Topology &topology() const { return topology_; }
  const Memory &memory() const { return memory_; }
  const TensorEngine &tensorEngine() const { return tensorEngine_; }
  const VectorEngine &vectorEngine() const { return vectorEngine_; }
  const ScalarEngine &scalarEngine() const { return scalarEngine_; }
  const GpsimdEngine &gpsimdEngine() const { return gpsimdEngine_; }
  const SyncEngine &syncEngine() const { return syncEngine_; }
  const Dma &dma() const { return dma_; }
  const Sync &sync() const { return sync_; }

  /// Cycles of the row's engine.
  double iiCycles(CostRow row, const CostVariables &variables) const;
  /// Time one DMA engine is busy with a descriptor of so many bytes.
  double dmaDescriptorNs(double bytes) const { return descriptorNs_.evaluate(std::span(&bytes, 1)); }

  /// Whether an instruction operand of so many partitions may start there.
  bool isLegalStartPartition(int start, int partitions) const {
    int quadrant = memory_.partitionQuadrant;
    if (start % quadrant != 0 || start + partitions > memory_.partitions)
      return false;
    return partitions <= quadrant || (partitions <= 2 * quadrant && start % (2 * quadrant) == 0) || start == 0;
  }

  /// All constants in force, in the order of the file.
  std::span<const Entry> entries() const { return entries_; }
  /// Identity of all values in force (not of their sources), for cache keys.
  Hash128 hash() const { return hash_; }

private:
  friend class ModelLoader;
  MachineModel() = default;

  std::string target_;
  int generation_ = 0;
  Topology topology_;
  Memory memory_;
  TensorEngine tensorEngine_;
  VectorEngine vectorEngine_;
  ScalarEngine scalarEngine_;
  GpsimdEngine gpsimdEngine_;
  SyncEngine syncEngine_;
  Dma dma_;
  Sync sync_;
  std::array<Formula, kNumCostRows> ii_ = {};
  Formula descriptorNs_;
  std::vector<Entry> entries_;
  Hash128 hash_;
};

inline int64_t nsToPs(double ns) { return std::llround(ns * 1000.0); }
inline int64_t cyclesToPs(double cycles, double clockGhz) { return std::llround(cycles * 1000.0 / clockGhz); }

} // namespace neuroncore::target

#endif // NEURON_TARGET_MACHINEMODEL_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cost of compute and control instructions: which row of the model's table applies, with which variables, and what the
// engine adds. Rules: docs/MachineModel.md.

#include "neuron/Isa/Cost.h"

#include <cassert>
#include <cmath>

#include "neuron/Isa/InstructionTable.h"

namespace neuroncore::isa {

using target::CostRow;
using target::CostVariables;
using target::cyclesToPs;
using target::MachineModel;

namespace {

/// Step in elements of the innermost dimension that is more than one long; 1 if there is none.
int innermostStep(const TilePattern &tile) {
  for (int k = kMaxFreeDims - 1; k >= 0; --k)
    if (tile.count[k] > 1)
      return tile.step[k];
  return 1;
}

bool isContiguousInnermost(const TilePattern &tile) { return innermostStep(tile) == 1; }

bool is16BitFloat(Dtype dtype) { return dtype == Dtype::Bf16 || dtype == Dtype::F16; }

bool isFp8(Dtype dtype) { return dtype == Dtype::F8e4m3 || dtype == Dtype::F8e4m3fn || dtype == Dtype::F8e5m2; }

class ComputeCoster {
public:
  ComputeCoster(const MachineModel &model, Engine engine, const Instruction &instruction)
      : model_(model), engine_(engine), in_(instruction), info_(instructionInfo(instruction.opcode)) {}

  ComputeCost run(const PeState *pe) {
    cost_.issuePs = model_.sync().controlInstructionPs;
    if (info_.group == Group::Control)
      return control();
    assert(info_.group == Group::Compute && "DMA instructions are costed by dmaCost");
    measureTiles();
    addResources();
    switch (engine_) {
    case Engine::Tensor:
      tensor(pe);
      break;
    case Engine::Scalar:
      scalar();
      break;
    case Engine::Gpsimd:
      gpsimd();
      break;
    default:
      vector();
      break;
    }
    cost_.latencyPs = std::max(cost_.latencyPs, cost_.occupancyPs);
    return cost_;
  }

private:
  double clockGhz() const {
    switch (engine_) {
    case Engine::Tensor:
      return model_.tensorEngine().clockGhz;
    case Engine::Scalar:
      return model_.scalarEngine().clockGhz;
    case Engine::Gpsimd:
      return model_.gpsimdEngine().clockGhz;
    case Engine::Vector:
      return model_.vectorEngine().clockGhz;
    default:
      return model_.syncEngine().clockGhz;
    }
  }

  ComputeCost control() {
    if (in_.opcode == Opcode::RegisterLoad || in_.opcode == Opcode::RegisterStore)
      cost_.issuePs = in_.tiles[0].space == MemorySpace::Hbm
                          ? model_.sync().registerLoadHbmPs
                          : cyclesToPs(model_.iiCycles(CostRow::RegisterLoad, v_), clockGhz());
    cost_.occupancyPs = cost_.latencyPs = cost_.issuePs;
    return cost_;
  }

  bool present(int tile) const { return in_.tiles[tile].present(); }
  bool inPsum(int tile) const { return in_.tiles[tile].space == MemorySpace::Psum; }

  void measureTiles() {
    bool slow = false;
    for (int i = 0; i < info_.numTiles; ++i) {
      const TilePattern &tile = in_.tiles[i];
      if (!present(i))
        continue;
      double elements = double(tile.elementsPerPartition());
      if (elements > v_.n) {
        v_.n = elements;
        widest_ = 0;
      }
      if (elements == v_.n)
        widest_ = std::max(widest_, dtypeBytes(tile.dtype));
      v_.p = std::max(v_.p, double(tile.numPartitions));
      slow |= std::abs(innermostStep(tile)) * dtypeBytes(tile.dtype) > model_.memory().fastStrideLimitBytes;
    }
    elements_ = v_.n;
    if (slow)
      v_.n *= model_.memory().slowStrideFactor;
  }

  void addPsumBanks(int64_t firstByte, int64_t lastByte) {
    int64_t bank = model_.memory().psumBankBytes;
    for (int64_t i = firstByte / bank; i <= lastByte / bank && i < model_.memory().psumBanks; ++i)
      cost_.resources |= Resource::PsumBank0 << i;
  }

  void addResources() {
    bool sbuf = false, psum = false;
    bool sharesPsum = engine_ == Engine::Vector || engine_ == Engine::Scalar;
    bool perBank = model_.memory().conflictDveActPsum == target::Memory::PsumConflict::SameBankOnly;
    for (int i = 0; i < info_.numTiles; ++i) {
      const TilePattern &tile = in_.tiles[i];
      sbuf |= tile.space == MemorySpace::Sbuf;
      psum |= tile.space == MemorySpace::Psum;
      if (tile.space != MemorySpace::Psum || !sharesPsum || !perBank)
        continue;
      int64_t low = 0, high = 0;
      for (int k = 0; k < kMaxFreeDims; ++k) {
        int64_t reach = int64_t(tile.step[k]) * (tile.count[k] - 1);
        (reach < 0 ? low : high) += reach;
      }
      int64_t bytes = dtypeBytes(tile.dtype);
      addPsumBanks(std::max<int64_t>(tile.byteOffset + low * bytes, 0), tile.byteOffset + (high + 1) * bytes - 1);
    }
    for (const ScalarOperand &scalar : in_.scalars) {
      if (scalar.kind != ScalarOperand::Kind::Vector)
        continue;
      sbuf |= scalar.space == MemorySpace::Sbuf;
      psum |= scalar.space == MemorySpace::Psum;
      if (scalar.space == MemorySpace::Psum && sharesPsum && perBank)
        addPsumBanks(scalar.byteOffset, scalar.byteOffset + 3);
    }
    if (psum && sharesPsum && !perBank)
      cost_.resources |= Resource::PsumVectorScalar;
    if (sbuf && (engine_ == Engine::Vector || engine_ == Engine::Gpsimd) &&
        model_.memory().conflictDvePoolSbufSerialize)
      cost_.resources |= Resource::SbufVectorGpsimd;
  }

  double dtypeFactor(Dtype dtype) const {
    const target::TensorEngine &pe = model_.tensorEngine();
    if (dtype == Dtype::F32)
      return pe.fp32IiFactor;
    if (dtype == Dtype::F16)
      return pe.fp16IiFactor;
    return isFp8(dtype) ? pe.fp8IiFactor : pe.bf16IiFactor;
  }

  void tensor(const PeState *pe) {
    const target::TensorEngine &engine = model_.tensorEngine();
    if (in_.opcode == Opcode::LoadStationary) {
      const TilePattern &src = in_.tiles[0];
      v_.k = src.numPartitions;
      v_.nStationary = v_.n;
      v_.passes = src.dtype == Dtype::F32 ? engine.fp32HwPasses : 1;
      cost_.unit = TensorUnit::Loader;
      setTimes(CostRow::LoadStationary, engine.sustainedClockGhz, engine.ldweightsMinCycles, engine.clockGhz);
      return;
    }
    const TilePattern &moving = in_.tiles[1];
    bool fp32 = moving.dtype == Dtype::F32;
    bool oneZero = in_.oneZero || (pe && pe->oneZero);
    v_.k = moving.numPartitions;
    v_.nStationary = pe && pe->cols ? pe->cols : engine.cols;
    v_.nMoving = v_.n;
    v_.f = dtypeFactor(moving.dtype);
    if (fp32 && in_.isTranspose)
      v_.f *= engine.fp32TransposeModeFactor;
    else if (fp32 && oneZero)
      v_.f *= engine.fp32OneZeroHintFactor;
    cost_.unit = TensorUnit::Array;
    setTimes(CostRow::Matmul, engine.sustainedClockGhz,
             fp32 ? engine.matmulFp32ResultLatencyExtraCycles : engine.matmulResultLatencyExtraCycles, engine.clockGhz);
  }

  void scalar() {
    const target::ScalarEngine &engine = model_.scalarEngine();
    bool narrow = true;
    for (int i = 0; i < 2; ++i)
      narrow &= is16BitFloat(in_.tiles[i].dtype) || isFp8(in_.tiles[i].dtype);
    v_.perf = narrow ? engine.wide16BitFactor : 1;
    double extra = engine.resultLatencyExtraCyclesCopy;
    CostRow row = in_.opcode == Opcode::TensorCopy ? CostRow::TensorCopy : CostRow::TensorScalar;
    if (in_.opcode == Opcode::Activation) {
      row = present(2) ? CostRow::ActivationReduce : CostRow::Activation;
      cost_.tableSet = activationInfo(in_.function).set;
      if (cost_.tableSet != ActivationSet::Any)
        extra = engine.resultLatencyExtraCycles;
    }
    setTimes(row, engine.clockGhz, extra, engine.clockGhz, engine.minIiCycles);
  }

  void gpsimd() {
    const target::GpsimdEngine &engine = model_.gpsimdEngine();
    CostRow row;
    switch (in_.opcode) {
    case Opcode::TensorCopy:
      row = CostRow::TensorCopyPool;
      break;
    case Opcode::Memset:
      row = CostRow::MemsetPool;
      break;
    case Opcode::TensorTensor:
      row = CostRow::TensorTensorPool;
      break;
    case Opcode::TensorScalar:
      row = CostRow::TensorScalarPool;
      v_.perf = in_.op0 == AluOp::Rsqrt || in_.op1 == AluOp::Rsqrt ? 1 / engine.rsqrtSlowdown : 1;
      break;
    case Opcode::Iota:
      row = CostRow::Iota;
      break;
    case Opcode::AffineSelect:
      row = CostRow::AffineSelect;
      break;
    default: {
      assert(in_.opcode == Opcode::GpsimdCall);
      const RoutineFunctionInfo *function = routineFunctionInfo(in_.routine, in_.routineFunction);
      row = CostRow::GpsimdCall;
      // Routines compute for longer than they access memory, so strides do not count.
      v_.n = elements_;
      v_.ops = function ? function->vectorOps : 0;
      v_.laneBytes = widest_ == 8 ? 8 : 4;
      break;
    }
    }
    setTimes(row, engine.clockGhz, engine.resultLatencyExtraCycles, engine.clockGhz);
  }

  bool isFast(Dtype dtype) const { return is16BitFloat(dtype) || (isFp8(dtype) && model_.vectorEngine().perfModeFp8); }

  bool all(int tiles, bool (ComputeCoster::*predicate)(const TilePattern &) const) const {
    for (int i = 0; i < tiles; ++i)
      if (!(this->*predicate)(in_.tiles[i]))
        return false;
    return true;
  }
  bool isFastTile(const TilePattern &tile) const { return isFast(tile.dtype); }
  bool isBf16Tile(const TilePattern &tile) const { return tile.dtype == Dtype::Bf16; }
  bool isBf16ContiguousSbufTile(const TilePattern &tile) const {
    return isBf16Tile(tile) && tile.space == MemorySpace::Sbuf && isContiguousInnermost(tile);
  }

  /// Performance mode of tensor_copy and tensor_scalar (dst, src).
  double copyPerfMode() const {
    double full = model_.vectorEngine().perfMode16BitCopyScalarMax;
    double half = std::max(1.0, full / 2);
    if (!all(2, &ComputeCoster::isFastTile))
      return 1;
    bool contiguous = isContiguousInnermost(in_.tiles[0]) && isContiguousInnermost(in_.tiles[1]);
    int psum = inPsum(0) + inPsum(1);
    if (psum == 0)
      return contiguous ? full : half;
    return psum == 1 && contiguous ? half : 1;
  }

  CostRow vectorRow() {
    switch (in_.opcode) {
    case Opcode::TensorCopy:
      v_.perf = copyPerfMode();
      return CostRow::TensorCopy;
    case Opcode::TensorScalar:
      v_.perf = copyPerfMode();
      return CostRow::TensorScalar;
    case Opcode::TensorCopyPredicated:
      return inPsum(1) || inPsum(2) ? CostRow::TensorCopyPredicatedMixed : CostRow::TensorCopyPredicatedSbuf;
    case Opcode::Memset:
      return in_.scalars[0].bits == 0 && is16BitFloat(in_.tiles[0].dtype) ? CostRow::MemsetZero16Bit : CostRow::Memset;
    case Opcode::TensorTensor: {
      if (inPsum(1) || inPsum(2))
        return CostRow::TensorTensorOnePsum;
      bool simple = in_.op0 == AluOp::Add || in_.op0 == AluOp::Subtract || in_.op0 == AluOp::Multiply;
      if (simple && all(3, &ComputeCoster::isBf16ContiguousSbufTile))
        return CostRow::TensorTensorBf16Sbuf;
      v_.perf = all(3, &ComputeCoster::isFastTile) ? model_.vectorEngine().perfMode16BitTensorTensor : 1;
      return CostRow::TensorTensor;
    }
    case Opcode::ScalarTensorTensor: {
      bool fast = in_.op0 == AluOp::Subtract && in_.op1 == AluOp::Multiply && int64_t(elements_) % 2 == 0 &&
                  all(3, &ComputeCoster::isBf16Tile);
      return fast ? CostRow::ScalarTensorTensorBf16 : CostRow::ScalarTensorTensor;
    }
    case Opcode::TensorReduce: {
      bool fast = (in_.op0 == AluOp::Add || in_.op0 == AluOp::Maximum) && all(2, &ComputeCoster::isBf16Tile);
      return fast ? CostRow::TensorReduceBf16 : CostRow::TensorReduce;
    }
    case Opcode::TensorScalarReduce:
      return CostRow::TensorScalarReduce;
    case Opcode::TensorTensorScan:
      return CostRow::TensorTensorScan;
    case Opcode::Reciprocal:
      return CostRow::Reciprocal;
    case Opcode::RangeSelect:
      return CostRow::RangeSelect;
    case Opcode::BnStats:
      return CostRow::BnStats;
    case Opcode::BnAggr:
      return CostRow::BnAggr;
    case Opcode::Transpose:
      return CostRow::TransposeDve;
    case Opcode::StreamShuffle:
      return CostRow::StreamShuffle;
    case Opcode::Max8:
      return CostRow::Max8;
    case Opcode::FindIndex8:
      return CostRow::FindIndex8;
    default:
      assert(false && "instruction does not run on the vector engine");
      return CostRow::TensorCopy;
    }
  }

  void vector() {
    const target::VectorEngine &engine = model_.vectorEngine();
    setTimes(vectorRow(), engine.clockGhz, engine.resultLatencyExtraCycles, engine.clockGhz, engine.minIiCycles);
  }

  /// An instruction shorter than the minimal interval delivers its result after its own elements, not after the
  /// interval.
  void setTimes(CostRow row, double clockGhz, double extraCycles, double extraClockGhz, double minIiCycles = 0) {
    double ii = model_.iiCycles(row, v_);
    double streaming = ii <= minIiCycles ? std::min(ii, v_.n) : ii;
    cost_.occupancyPs = cyclesToPs(ii, clockGhz);
    cost_.latencyPs = cyclesToPs(streaming, clockGhz) + cyclesToPs(extraCycles, extraClockGhz);
  }

  const MachineModel &model_;
  Engine engine_;
  const Instruction &in_;
  const InstructionInfo &info_;
  CostVariables v_;
  double elements_ = 0; // N without the stride penalty
  int widest_ = 0;      // bytes of an element, of the tiles with N elements
  ComputeCost cost_;
};

} // namespace

void PeState::update(const Instruction &instruction) {
  if (instruction.opcode != Opcode::LoadStationary)
    return;
  const TilePattern &src = instruction.tiles[0];
  rows = src.numPartitions;
  cols = uint8_t(std::min<int64_t>(src.elementsPerPartition(), 255));
  dtype = src.dtype;
  oneZero = instruction.oneZero;
}

ComputeCost computeCost(const MachineModel &model, Engine engine, const Instruction &instruction, const PeState *pe) {
  return ComputeCoster(model, engine, instruction).run(pe);
}

} // namespace neuroncore::isa

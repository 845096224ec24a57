// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decoding of a NEFF: every compute instruction into a TileOp, every transfer into a DmaOp, once.

#include "lib/Emulator/Program.h"

#include "lib/Emulator/Ops/Ops.h"
#include "lib/Emulator/Sequencer.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Support/Text.h"

namespace neuroncore::emulator {

using isa::Instruction;
using isa::Opcode;

bool ControlTrace::empty() const {
  for (const auto &stream : loads)
    if (!stream.empty())
      return false;
  return true;
}

void ControlTrace::clear() {
  for (auto &stream : loads)
    stream.clear();
}

ImageLayout layoutOf(const target::MachineModel &model) {
  return {model.memory().sbufBytesPerPartition, model.memory().psumBytesPerPartition};
}

std::string describeInstruction(const neff::Neff &neff, int stream, uint32_t index) {
  std::string text = cat(isa::toString(isa::kStreamEngines[stream]), "[", index, "]");
  if (index >= neff.program[stream].size())
    return text;
  const Instruction &instruction = neff.program[stream][index];
  text += cat(" ", isa::instructionInfo(instruction.opcode).mnemonic);
  if (instruction.debugId != 0 && instruction.debugId <= neff.debug.size()) {
    const neff::DebugRecord &record = neff.debug[instruction.debugId - 1];
    text += cat(" (kernel '", record.kernel, "', ", record.op, ")");
  }
  return text;
}

std::vector<bool> decidingRegisters(const isa::Stream &stream) {
  std::vector<bool> deciding(isa::kNumRegisters, false);
  for (const Instruction &instruction : stream) {
    for (int i = 0; i < instruction.numWaits; ++i) {
      deciding[instruction.waits[i].blockRegister] = true;
      deciding[instruction.waits[i].valueRegister] = true;
    }
    deciding[instruction.update.blockRegister] = true;
    if (instruction.opcode == Opcode::Branch) {
      deciding[instruction.rs] = true;
      deciding[instruction.rt] = true;
    }
    for (const isa::HbmPattern &pattern : instruction.hbm)
      for (int i = 0; i < isa::kMaxHbmDims; ++i) {
        deciding[pattern.countRegister[i]] = true;
        deciding[pattern.stepRegister[i]] = true;
      }
  }
  // Backwards through arithmetic, until nothing changes.
  for (bool changed = true; changed;) {
    changed = false;
    for (const Instruction &instruction : stream) {
      if (instruction.opcode != Opcode::RegisterAlu || !deciding[instruction.rd])
        continue;
      for (uint8_t source : {instruction.rs, instruction.rt})
        if (!deciding[source]) {
          deciding[source] = true;
          changed = true;
        }
    }
  }
  deciding[isa::kZeroRegister] = false;
  return deciding;
}

namespace {

/// Which forms of a stationary the matmuls after load_stationary `index` use; both where control flow hides it.
void stationaryForms(const isa::Stream &stream, size_t index, bool &packed, bool &raw) {
  packed = raw = false;
  for (size_t i = index + 1; i < stream.size(); ++i) {
    switch (stream[i].opcode) {
    case Opcode::LoadStationary:
      return;
    case Opcode::Matmul:
      (stream[i].isTranspose ? raw : packed) = true;
      break;
    case Opcode::Branch:
    case Opcode::Call:
    case Opcode::Return:
      packed = raw = true;
      return;
    default:
      break;
    }
  }
}

/// Loads and products that read SBUF and write PSUM: none of them reads what another has written, but for sums.
bool mayBatch(const Instruction &instruction) {
  if (instruction.opcode == Opcode::LoadStationary)
    return instruction.tiles[0].space == isa::MemorySpace::Sbuf;
  return !instruction.isTranspose && instruction.tiles[0].space == isa::MemorySpace::Psum &&
         instruction.tiles[1].space == isa::MemorySpace::Sbuf;
}

Step::Kind kindOf(const Instruction &instruction) {
  switch (isa::instructionInfo(instruction.opcode).group) {
  case isa::Group::Compute:
    return Step::Kind::Tile;
  case isa::Group::Dma:
    return Step::Kind::Dma;
  case isa::Group::Control:
    break;
  }
  switch (instruction.opcode) {
  case Opcode::RegisterLoad:
    return Step::Kind::RegisterLoad;
  case Opcode::RegisterStore:
    return Step::Kind::RegisterStore;
  case Opcode::SemaphoreRangeClear:
    return Step::Kind::SemaphoreClear;
  default:
    return Step::Kind::Control;
  }
}

/// What a NEFF that did not come through readNeff may get wrong, and what decoding relies on.
Status checkReferences(const neff::Neff &neff, int stream, uint32_t index) {
  const Instruction &instruction = neff.program[stream][index];
  for (int i = 0; i < 2; ++i) {
    const bool isHbm = instruction.tiles[i].space == isa::MemorySpace::Hbm;
    const int side = instruction.opcode == Opcode::RegisterLoad ? registerOperandSide(instruction.opcode) : i;
    const isa::HbmPattern &pattern = instruction.hbm[side];
    if (isHbm && pattern.isParameter() && pattern.parameter() >= neff.parameterBytes.size())
      return Error(ErrorKind::InvalidInput, cat("parameter ", pattern.parameter(), " does not exist; the NEFF has ",
                                                neff.parameterBytes.size()));
    if (isHbm && !pattern.isParameter() && pattern.variable >= neff.variables.size())
      return Error(ErrorKind::InvalidInput,
                   cat("variable ", pattern.variable, " does not exist; the NEFF has ", neff.variables.size()));
  }
  if (instruction.opcode == Opcode::SemaphoreRangeClear &&
      (instruction.immediate < 0 || int64_t(instruction.immediate) + instruction.target > isa::kNumSemaphores))
    return Error(ErrorKind::InvalidInput,
                 cat("semaphores [", instruction.immediate, ", ", int64_t(instruction.immediate) + instruction.target,
                     ") are outside [0, ", isa::kNumSemaphores, ")"));
  return Status::success();
}

} // namespace

Expected<std::shared_ptr<const LoadedProgram>> LoadedProgram::load(std::shared_ptr<const neff::Neff> neff,
                                                                   const target::MachineModel &model,
                                                                   const LoadOptions &options) {
  if (neff->target != model.target())
    return Error(ErrorKind::Unsupported, cat("the NEFF was compiled for ", neff->target, " but the device is ",
                                             model.target(), "; compile for this target or select it"));
  auto impl = std::make_unique<Impl>();
  impl->neff = std::move(neff);
  impl->model = &model;
  impl->layout = layoutOf(model);
  const neff::Neff &source = *impl->neff;
  if (!options.isVerified)
    if (Status status = neff::verifyNeff(source); !status)
      return status.error();
  for (int s = 0; s < isa::kNumStreams; ++s) {
    const isa::Stream &stream = source.program[s];
    const std::vector<bool> deciding = decidingRegisters(stream);
    std::vector<Step> &steps = impl->steps[s];
    steps.resize(stream.size());
    for (uint32_t i = 0; i < stream.size(); ++i) {
      const Instruction &instruction = stream[i];
      Step &step = steps[i];
      step.kind = kindOf(instruction);
      step.numWaits = instruction.numWaits;
      step.hasUpdate = instruction.update.op != isa::UpdateOp::None;
      step.instruction = &instruction;
      if (Status status = checkReferences(source, s, i); !status)
        return status.error().withContext(describeInstruction(source, s, i));
      if (step.kind == Step::Kind::Tile) {
        DecodeContext context;
        context.layout = impl->layout;
        context.engine = isa::kStreamEngines[s];
        if (instruction.opcode == Opcode::LoadStationary)
          stationaryForms(stream, i, context.needsPacked, context.needsRaw);
        TileOpOrError op = decodeTileOp(instruction, context);
        if (!op)
          return op.error().withContext(describeInstruction(source, s, i));
        step.tile = op->get();
        if (instruction.opcode == Opcode::Matmul && mayBatch(instruction))
          step.product = static_cast<const MatmulOp *>(step.tile);
        if (instruction.opcode == Opcode::LoadStationary && mayBatch(instruction) &&
            static_cast<const LoadStationaryOp *>(step.tile)->isPackedOnly())
          step.load = static_cast<const LoadStationaryOp *>(step.tile);
        step.locality = Locality::ofTile(instruction, impl->layout);
        impl->tileOps.push_back(std::move(*op));
      } else if (step.kind == Step::Kind::Dma) {
        if (Status status = DmaOp::check(instruction); !status)
          return status.error().withContext(describeInstruction(source, s, i));
        impl->dmaOps.push_back(std::make_unique<DmaOp>(instruction, impl->layout));
        if (instruction.tiles[0].space == isa::MemorySpace::Hbm &&
            neff::operandBytes(source, instruction.hbm[0].variable) >= kStreamedVariableBytes)
          impl->dmaOps.back()->setStreaming();
        step.dma = impl->dmaOps.back().get();
        step.locality = Locality::ofTransfer(instruction, *step.dma, impl->layout);
      } else if (step.kind == Step::Kind::RegisterLoad) {
        step.isRecorded = deciding[instruction.rd];
        impl->pathDependsOnData |= step.isRecorded;
      }
    }
  }
  return std::shared_ptr<const LoadedProgram>(new LoadedProgram(std::move(impl)));
}

LoadedProgram::LoadedProgram(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LoadedProgram::~LoadedProgram() = default;
const neff::Neff &LoadedProgram::neff() const { return *impl_->neff; }
const target::MachineModel &LoadedProgram::model() const { return *impl_->model; }
bool LoadedProgram::pathDependsOnData() const { return impl_->pathDependsOnData; }

uint64_t LoadedProgram::executedInstructions() const {
  // Following the control flow takes some nanoseconds each; what is longer runs for minutes.
  constexpr uint64_t kMost = 100'000'000;
  std::call_once(impl_->counted, [this] {
    if (impl_->pathDependsOnData)
      return;
    uint64_t executed = 0;
    for (const std::vector<Step> &steps : impl_->steps) {
      const uint32_t length = uint32_t(steps.size());
      SequencerState state;
      state.ended = steps.empty();
      while (!state.ended) {
        if (++executed > kMost)
          return;
        const Step &step = steps[state.pc];
        if (step.kind != Step::Kind::Control)
          advance(state, length);
        else if (executeControl(*step.instruction, state, length) != ControlResult::Ok)
          return;
      }
    }
    impl_->executedInstructions = executed;
  });
  return impl_->executedInstructions;
}

TileOpOrError decodeTileOp(const Instruction &instruction, const DecodeContext &context) {
  switch (instruction.opcode) {
  case Opcode::LoadStationary:
    return decodeLoadStationary(instruction, context);
  case Opcode::Matmul:
    return decodeMatmul(instruction, context);
  case Opcode::TensorCopy:
    return decodeCopy(instruction, context);
  case Opcode::TensorCopyPredicated:
    return decodeCopyPredicated(instruction, context);
  case Opcode::Memset:
    return decodeMemset(instruction, context);
  case Opcode::TensorTensor:
    return decodeTensorTensor(instruction, context);
  case Opcode::TensorScalar:
    return decodeTensorScalar(instruction, context);
  case Opcode::ScalarTensorTensor:
    return decodeScalarTensorTensor(instruction, context);
  case Opcode::TensorScalarReduce:
    return decodeTensorScalarReduce(instruction, context);
  case Opcode::TensorTensorScan:
    return decodeScan(instruction, context);
  case Opcode::Reciprocal:
    return decodeReciprocal(instruction, context);
  case Opcode::RangeSelect:
    return decodeRangeSelect(instruction, context);
  case Opcode::Activation:
    return decodeActivation(instruction, context);
  case Opcode::TensorReduce:
    return decodeTensorReduce(instruction, context);
  case Opcode::BnStats:
    return decodeBnStats(instruction, context);
  case Opcode::BnAggr:
    return decodeBnAggr(instruction, context);
  case Opcode::Transpose:
    return decodeTranspose(instruction, context);
  case Opcode::StreamShuffle:
    return decodeStreamShuffle(instruction, context);
  case Opcode::Max8:
    return decodeMax8(instruction, context);
  case Opcode::FindIndex8:
    return decodeFindIndex8(instruction, context);
  case Opcode::Iota:
    return decodeIota(instruction, context);
  case Opcode::AffineSelect:
    return decodeAffineSelect(instruction, context);
  case Opcode::GpsimdCall:
    return decodeGpsimdCall(instruction, context);
  default:
    return unsupported(cat(isa::instructionInfo(instruction.opcode).name, " is not a compute instruction"));
  }
}

} // namespace neuroncore::emulator

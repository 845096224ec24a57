// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instruction to slots.

#include "Encoding.h"

#include <algorithm>
#include <limits>

#include "neuron/Isa/Codec.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Isa/Verify.h"
#include "neuron/Support/Hash.h"
#include "neuron/Support/Text.h"

namespace neuroncore::isa {

using namespace encoding;

int encoding::hbmIndex(isa::Opcode opcode, int tile) { return instructionInfo(opcode).tiles[tile].writes() ? 0 : 1; }

bool encoding::hasImmediateSlot(isa::Opcode opcode) { return instructionInfo(opcode).uses(Field::Immediates); }

int slotCount(const Instruction &in) {
  const InstructionInfo &info = instructionInfo(in.opcode);
  int slots = 1 + hasImmediateSlot(in.opcode);
  for (int i = 0; i < info.numTiles; ++i)
    slots += in.tiles[i].space == MemorySpace::Hbm;
  return slots;
}

static void encodeTile(uint8_t *bytes, const TilePattern &tile) {
  bytes[Tile::Type] = uint8_t(uint8_t(tile.dtype) | uint8_t(tile.space) << 6);
  // Of an absent tile and of one in HBM nothing else is stored.
  if (tile.space == MemorySpace::None || tile.space == MemorySpace::Hbm)
    return;
  bytes[Tile::StartPartition] = tile.startPartition;
  bytes[Tile::NumPartitions] = tile.numPartitions;
  for (int i = 0; i < 3; ++i)
    bytes[Tile::ByteOffset + i] = uint8_t(tile.byteOffset >> (8 * i));
  for (int k = 0; k < kMaxFreeDims; ++k) {
    store(bytes + Tile::Steps + 2 * k, tile.step[k]);
    store(bytes + Tile::Counts + 2 * k, tile.count[k]);
  }
}

static void encodeHbm(uint8_t *bytes, const HbmPattern &pattern) {
  store(bytes + Hbm::Variable, pattern.variable);
  bytes[Hbm::Dtype] = uint8_t(pattern.dtype);
  store(bytes + Hbm::ByteOffset, pattern.byteOffset);
  for (int i = 0; i < kMaxHbmTerms; ++i) {
    bytes[Hbm::TermRegisters + i] = pattern.terms[i].reg;
    store(bytes + Hbm::TermStrides + 8 * i, pattern.terms[i].stride);
  }
  for (int k = 0; k < kMaxHbmDims; ++k) {
    store(bytes + Hbm::Steps + 8 * k, pattern.step[k]);
    store(bytes + Hbm::Counts + 4 * k, pattern.count[k]);
    bytes[Hbm::CountRegisters + k] = pattern.countRegister[k];
    bytes[Hbm::StepRegisters + k] = pattern.stepRegister[k];
  }
}

static uint8_t modifier(const InstructionInfo &info, const Instruction &in) {
  if (info.uses(Field::ReduceCommand))
    return uint8_t(in.reduceCommand);
  return info.uses(Field::Axes) ? in.axes : in.routineFunction;
}

static void encodeFirstSlot(uint8_t *bytes, const Instruction &in, int slots) {
  const InstructionInfo &info = instructionInfo(in.opcode);
  bytes[Slot::Opcode] = uint8_t(in.opcode);
  bytes[Slot::Slots] = uint8_t(slots);
  uint16_t flags = uint16_t(in.numWaits << Flag::kNumWaitsShift);
  flags |= in.accumulate ? Flag::Accumulate : 0;
  flags |= in.oneZero ? Flag::OneZero : 0;
  flags |= in.isTranspose ? Flag::IsTranspose : 0;
  flags |= in.reverse0 ? Flag::Reverse0 : 0;
  flags |= in.reverse1 ? Flag::Reverse1 : 0;
  flags |= in.negate ? Flag::Negate : 0;
  for (int i = 0; i < kMaxWaits; ++i) {
    const Wait &wait = in.waits[i];
    flags |= uint16_t(wait.equal << (Flag::kWaitEqualShift + i));
    store(bytes + Slot::WaitImmediates + 4 * i, wait.immediate);
    bytes[Slot::Waits + 3 * i] = wait.semaphore;
    bytes[Slot::Waits + 3 * i + 1] = wait.blockRegister;
    bytes[Slot::Waits + 3 * i + 2] = wait.valueRegister;
  }
  store(bytes + Slot::Flags, flags);
  store(bytes + Slot::DebugId, in.debugId);
  if (in.update.op != UpdateOp::None) {
    bytes[Slot::Update] = uint8_t(in.update.op);
    bytes[Slot::Update + 1] = in.update.semaphore;
    bytes[Slot::Update + 2] = in.update.blockRegister;
    bytes[Slot::Update + 3] = in.update.value;
  }
  bytes[Slot::Op0] = uint8_t(in.op0);
  bytes[Slot::Op1] = uint8_t(in.op1);
  bytes[Slot::Selector] = info.uses(Field::Routine) ? uint8_t(in.routine) : uint8_t(in.function);
  bytes[Slot::Modifier] = modifier(info, in);
  bytes[Slot::Queue] = in.queue;
  bytes[Slot::DgeMode] = uint8_t(in.dgeMode);
  bytes[Slot::OobMode] = uint8_t(in.oobMode);
  for (int i = 0; i < 2; ++i) {
    const ScalarOperand &scalar = in.scalars[i];
    bytes[Slot::ScalarKinds] |= uint8_t((uint8_t(scalar.kind) | uint8_t(scalar.space) << 2) << (4 * i));
    store(bytes + Slot::Scalars + 4 * i, scalar.kind == ScalarOperand::Kind::Vector ? scalar.byteOffset : scalar.bits);
  }
  store(bytes + Slot::Immediate, in.immediate);
  for (int i = 0; i < std::min<int>(info.numTiles, kTilesInFirstSlot); ++i)
    encodeTile(bytes + Slot::Tiles + kTileBytes * i, in.tiles[i]);
  if (info.group == Group::Control) {
    bytes[Slot::Rd] = in.rd;
    bytes[Slot::Rs] = in.rs;
    bytes[Slot::Rt] = in.rt;
    store(bytes + Slot::Target, in.target);
  }
}

void encoding::encodeInstruction(uint8_t *bytes, const Instruction &in, int slots) {
  const InstructionInfo &info = instructionInfo(in.opcode);
  encodeFirstSlot(bytes, in, slots);
  bytes += kSlotBytes;
  if (hasImmediateSlot(in.opcode)) {
    for (size_t i = 0; i < in.immediates.size(); ++i)
      store(bytes + Extension::Immediates + 8 * i, in.immediates[i]);
    for (int i = kTilesInFirstSlot; i < info.numTiles; ++i)
      encodeTile(bytes + Extension::Tiles + kTileBytes * size_t(i - kTilesInFirstSlot), in.tiles[i]);
    bytes += kSlotBytes;
  }
  for (int i = 0; i < info.numTiles; ++i) {
    if (in.tiles[i].space != MemorySpace::Hbm)
      continue;
    encodeHbm(bytes, in.hbm[hbmIndex(in.opcode, i)]);
    bytes += kSlotBytes;
  }
}

uint32_t encoding::binaryChecksum(std::span<const uint8_t> bytes) {
  return crc32(bytes.subspan(kBinaryHeaderBytes), crc32(bytes.first(Header::Crc)));
}

std::string describeInstruction(Engine engine, size_t index, Opcode opcode) {
  return cat(toString(engine), " instruction ", index, " (", toString(opcode), ")");
}

Expected<std::vector<uint8_t>> encodeStream(Engine engine, std::span<const Instruction> stream) {
  size_t slots = 0;
  if (streamIndex(engine) < 0)
    return Error(ErrorKind::InvalidInput, cat("expected an engine with a stream but got ", toString(engine)));
  if (stream.size() > std::numeric_limits<uint32_t>::max())
    return Error(ErrorKind::Unsupported, cat("expected fewer than 2^32 instructions but got ", stream.size()));
  for (size_t i = 0; i < stream.size(); ++i) {
    if (Status status = verifyForm(engine, stream[i]); !status)
      return status.error().withContext(describeInstruction(engine, i, stream[i].opcode));
    slots += size_t(slotCount(stream[i]));
  }
  if (Status status = verifyTargets(engine, stream); !status)
    return status.error();
  std::vector<uint8_t> bytes(kBinaryHeaderBytes + slots * kSlotBytes);
  std::copy(kBinaryMagic.begin(), kBinaryMagic.end(), bytes.begin());
  store(&bytes[Header::Major], uint16_t(kIsaVersionMajor));
  store(&bytes[Header::Minor], uint16_t(kIsaVersionMinor));
  bytes[Header::Engine] = uint8_t(engine);
  store(&bytes[Header::Count], uint32_t(stream.size()));
  uint8_t *next = bytes.data() + kBinaryHeaderBytes;
  for (const Instruction &in : stream) {
    int count = slotCount(in);
    encodeInstruction(next, in, count);
    next += count * kSlotBytes;
  }
  store(&bytes[Header::Crc], binaryChecksum(bytes));
  return bytes;
}

} // namespace neuroncore::isa

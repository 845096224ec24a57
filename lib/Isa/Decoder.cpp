// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots to instructions. After decoding, each instruction is encoded again and compared: whatever is not canonical
// (reserved bytes, bits of unused fields) shows there, without a rule of its own.

#include "Encoding.h"

#include <algorithm>
#include <cstring>

#include "neuron/Isa/Codec.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Isa/Verify.h"
#include "neuron/Support/Text.h"

namespace neuroncore::isa {

using namespace encoding;

namespace {

Error invalid(std::string message) { return Error(ErrorKind::InvalidInput, std::move(message)); }

TilePattern decodeTile(const uint8_t *bytes) {
  TilePattern tile;
  tile.space = MemorySpace(bytes[Tile::Type] >> 6);
  tile.dtype = Dtype(bytes[Tile::Type] & 63);
  if (tile.space == MemorySpace::None || tile.space == MemorySpace::Hbm)
    return tile;
  tile.startPartition = bytes[Tile::StartPartition];
  tile.numPartitions = bytes[Tile::NumPartitions];
  for (int i = 0; i < 3; ++i)
    tile.byteOffset |= uint32_t(bytes[Tile::ByteOffset + i]) << (8 * i);
  for (int k = 0; k < kMaxFreeDims; ++k) {
    tile.step[k] = load<int16_t>(bytes + Tile::Steps + 2 * k);
    tile.count[k] = load<uint16_t>(bytes + Tile::Counts + 2 * k);
  }
  return tile;
}

HbmPattern decodeHbm(const uint8_t *bytes) {
  HbmPattern pattern;
  pattern.variable = load<uint16_t>(bytes + Hbm::Variable);
  pattern.dtype = Dtype(bytes[Hbm::Dtype]);
  pattern.byteOffset = load<int64_t>(bytes + Hbm::ByteOffset);
  for (int i = 0; i < kMaxHbmTerms; ++i)
    pattern.terms[i] = {bytes[Hbm::TermRegisters + i], load<int64_t>(bytes + Hbm::TermStrides + 8 * i)};
  for (int k = 0; k < kMaxHbmDims; ++k) {
    pattern.step[k] = load<int64_t>(bytes + Hbm::Steps + 8 * k);
    pattern.count[k] = load<uint32_t>(bytes + Hbm::Counts + 4 * k);
    pattern.countRegister[k] = bytes[Hbm::CountRegisters + k];
    pattern.stepRegister[k] = bytes[Hbm::StepRegisters + k];
  }
  return pattern;
}

void decodeModifier(const InstructionInfo &info, uint8_t code, Instruction &in) {
  if (info.uses(Field::ReduceCommand))
    in.reduceCommand = ReduceCommand(code);
  else if (info.uses(Field::Axes))
    in.axes = code;
  else
    in.routineFunction = code;
}

/// The opcode must be valid; nothing else is checked here.
Instruction decodeFirstSlot(const uint8_t *bytes) {
  Instruction in;
  in.opcode = Opcode(bytes[Slot::Opcode]);
  const InstructionInfo &info = instructionInfo(in.opcode);
  auto flags = load<uint16_t>(bytes + Slot::Flags);
  in.accumulate = flags & Flag::Accumulate;
  in.oneZero = flags & Flag::OneZero;
  in.isTranspose = flags & Flag::IsTranspose;
  in.reverse0 = flags & Flag::Reverse0;
  in.reverse1 = flags & Flag::Reverse1;
  in.negate = flags & Flag::Negate;
  in.numWaits = uint8_t(flags >> Flag::kNumWaitsShift & 7);
  for (int i = 0; i < kMaxWaits; ++i) {
    Wait &wait = in.waits[i];
    wait.equal = flags >> (Flag::kWaitEqualShift + i) & 1;
    wait.immediate = load<int32_t>(bytes + Slot::WaitImmediates + 4 * i);
    wait.semaphore = bytes[Slot::Waits + 3 * i];
    wait.blockRegister = bytes[Slot::Waits + 3 * i + 1];
    wait.valueRegister = bytes[Slot::Waits + 3 * i + 2];
  }
  in.debugId = load<uint32_t>(bytes + Slot::DebugId);
  if (bytes[Slot::Update] != uint8_t(UpdateOp::None))
    in.update = {UpdateOp(bytes[Slot::Update]), bytes[Slot::Update + 1], bytes[Slot::Update + 2],
                 bytes[Slot::Update + 3]};
  in.op0 = AluOp(bytes[Slot::Op0]);
  in.op1 = AluOp(bytes[Slot::Op1]);
  if (info.uses(Field::Routine))
    in.routine = Routine(bytes[Slot::Selector]);
  else
    in.function = ActivationFunction(bytes[Slot::Selector]);
  decodeModifier(info, bytes[Slot::Modifier], in);
  in.queue = bytes[Slot::Queue];
  in.dgeMode = DgeMode(bytes[Slot::DgeMode]);
  in.oobMode = OutOfBoundsMode(bytes[Slot::OobMode]);
  for (int i = 0; i < 2; ++i) {
    ScalarOperand &scalar = in.scalars[i];
    int kinds = bytes[Slot::ScalarKinds] >> (4 * i) & 15;
    scalar.kind = ScalarOperand::Kind(kinds & 3);
    scalar.space = MemorySpace(kinds >> 2);
    auto payload = load<uint32_t>(bytes + Slot::Scalars + 4 * i);
    (scalar.kind == ScalarOperand::Kind::Vector ? scalar.byteOffset : scalar.bits) = payload;
  }
  in.immediate = load<int32_t>(bytes + Slot::Immediate);
  for (int i = 0; i < std::min<int>(info.numTiles, kTilesInFirstSlot); ++i)
    in.tiles[i] = decodeTile(bytes + Slot::Tiles + kTileBytes * i);
  if (info.group == Group::Control) {
    in.rd = bytes[Slot::Rd];
    in.rs = bytes[Slot::Rs];
    in.rt = bytes[Slot::Rt];
    in.target = load<uint32_t>(bytes + Slot::Target);
  }
  return in;
}

void decodeExtensions(const uint8_t *bytes, Instruction &in) {
  const InstructionInfo &info = instructionInfo(in.opcode);
  if (hasImmediateSlot(in.opcode)) {
    for (size_t i = 0; i < in.immediates.size(); ++i)
      in.immediates[i] = load<int64_t>(bytes + Extension::Immediates + 8 * i);
    for (int i = kTilesInFirstSlot; i < info.numTiles; ++i)
      in.tiles[i] = decodeTile(bytes + Extension::Tiles + kTileBytes * size_t(i - kTilesInFirstSlot));
    bytes += kSlotBytes;
  }
  for (int i = 0; i < info.numTiles; ++i) {
    if (in.tiles[i].space != MemorySpace::Hbm)
      continue;
    in.hbm[hbmIndex(in.opcode, i)] = decodeHbm(bytes);
    bytes += kSlotBytes;
  }
}

Status checkCanonical(const uint8_t *bytes, const Instruction &in, int slots) {
  uint8_t expected[3 * kSlotBytes] = {};
  encodeInstruction(expected, in, slots);
  size_t size = size_t(slots) * kSlotBytes;
  if (std::memcmp(bytes, expected, size) == 0)
    return Status::success();
  size_t at = size_t(std::mismatch(bytes, bytes + size, expected).first - bytes);
  return invalid(cat("byte ", at % kSlotBytes, " of slot ", at / kSlotBytes, ": expected ", hex(expected[at]),
                     " but got ", hex(bytes[at]), "; unused bytes and bits are zero"));
}

Status checkHeader(Engine engine, std::span<const uint8_t> bytes) {
  if (!isOurBinary(bytes))
    return Error(ErrorKind::UnsupportedVersion, "expected the magic of our instruction encoding; the encoding of other "
                                                "producers is not public and cannot be executed");
  if (bytes.size() < kBinaryHeaderBytes)
    return invalid(cat("expected a header of ", kBinaryHeaderBytes, " bytes but got ", bytes.size()));
  auto major = load<uint16_t>(&bytes[Header::Major]);
  auto minor = load<uint16_t>(&bytes[Header::Minor]);
  if (major != kIsaVersionMajor || minor > kIsaVersionMinor)
    return Error(ErrorKind::UnsupportedVersion,
                 cat("expected encoding version ", kIsaVersionMajor, ".", kIsaVersionMinor, " but got ", major, ".",
                     minor, "; compile the program again"));
  if (bytes[Header::Engine] != uint8_t(engine))
    return invalid(cat("expected engine id ", int(engine), " but got ", int(bytes[Header::Engine])));
  for (size_t i = Header::Engine + 1; i < Header::Count; ++i)
    if (bytes[i] != 0)
      return invalid(cat("expected byte ", i, " of the header to be zero but got ", int(bytes[i])));
  for (size_t field : {size_t(Header::Functions), size_t(Header::Strings)})
    if (load<uint32_t>(&bytes[field]) != 0)
      return Error(ErrorKind::UnsupportedVersion, cat("expected no table at byte ", field, " of the header"));
  if (uint32_t stored = load<uint32_t>(&bytes[Header::Crc]), actual = binaryChecksum(bytes); stored != actual)
    return invalid(cat("expected checksum ", hex(stored), " but got ", hex(actual), "; the stream is damaged"));
  return Status::success();
}

} // namespace

bool isOurBinary(std::span<const uint8_t> bytes) {
  return bytes.size() >= kBinaryMagic.size() && std::equal(kBinaryMagic.begin(), kBinaryMagic.end(), bytes.begin());
}

Expected<Stream> decodeStream(Engine engine, std::span<const uint8_t> bytes) {
  if (Status status = checkHeader(engine, bytes); !status)
    return status.error().withContext(cat(toString(engine), " stream"));
  size_t count = load<uint32_t>(&bytes[Header::Count]);
  std::span<const uint8_t> rest = bytes.subspan(kBinaryHeaderBytes);
  if (count > rest.size() / kSlotBytes)
    return invalid(cat(toString(engine), " stream: expected ", count, " instructions but ", rest.size(),
                       " bytes hold at most ", rest.size() / kSlotBytes));
  Stream stream;
  stream.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if (rest.size() < kSlotBytes)
      return invalid(
          cat(toString(engine), " instruction ", i, ": expected ", count, " instructions but the stream ends here"));
    if (!isValidOpcode(rest[Slot::Opcode]))
      return invalid(cat(toString(engine), " instruction ", i, ": opcode: expected a known code but got ",
                         hex(rest[Slot::Opcode])));
    auto where = [&](const Error &error) {
      return error.withContext(describeInstruction(engine, i, Opcode(rest[Slot::Opcode])));
    };
    Instruction in = decodeFirstSlot(rest.data());
    int slots = slotCount(in);
    if (slots != rest[Slot::Slots])
      return where(invalid(cat("slots: expected ", slots, " but got ", int(rest[Slot::Slots]))));
    if (rest.size() < size_t(slots) * kSlotBytes)
      return where(invalid(cat("expected ", slots, " slots but the stream ends after ", rest.size() / kSlotBytes)));
    decodeExtensions(rest.data() + kSlotBytes, in);
    if (Status status = verifyForm(engine, in); !status)
      return where(status.error());
    if (Status status = checkCanonical(rest.data(), in, slots); !status)
      return where(status.error());
    stream.push_back(in);
    rest = rest.subspan(size_t(slots) * kSlotBytes);
  }
  if (!rest.empty())
    return invalid(cat(toString(engine), " stream: expected ", count, " instructions but ", rest.size(),
                       " bytes follow the last one"));
  if (Status status = verifyTargets(engine, stream); !status)
    return status.error();
  return stream;
}

} // namespace neuroncore::isa

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The byte layout of docs/Encoding.md: offsets in the first slot and in the extension slots. All numbers are
// little-endian.

#ifndef NEURON_LIB_ISA_ENCODING_H
#define NEURON_LIB_ISA_ENCODING_H

#include <concepts>
#include <cstdint>
#include <span>
#include <type_traits>

#include "neuron/Isa/Instruction.h"

namespace neuroncore::isa::encoding {

/// File header.
namespace Header {
enum : size_t { Magic = 0, Major = 8, Minor = 10, Engine = 12, Count = 16, Functions = 20, Strings = 24, Crc = 28 };
} // namespace Header

/// First slot.
namespace Slot {
enum : size_t {
  Opcode = 0,
  Slots = 1,
  Flags = 2,
  DebugId = 4,
  WaitImmediates = 8, // 4 x i32
  Waits = 24,         // 4 x {semaphore, block register, value register}
  Update = 36,        // operation, semaphore, block register, value
  Op0 = 40,
  Op1 = 41,
  Selector = 42, // activation function or routine
  Modifier = 43, // reduce command, axes or function of the routine
  Queue = 44,
  DgeMode = 45,
  OobMode = 46,
  ScalarKinds = 47,
  Scalars = 48, // 2 x u32
  Immediate = 56,
  Tiles = 60, // 3 x kTileBytes
  // Sequencer instructions have at most one tile; these lie over the third.
  Rd = 104,
  Rs = 105,
  Rt = 106,
  Target = 108,
};
} // namespace Slot

namespace Flag {
enum : uint16_t {
  Accumulate = 1 << 0,
  OneZero = 1 << 1,
  IsTranspose = 1 << 2,
  Reverse0 = 1 << 3,
  Reverse1 = 1 << 4,
  Negate = 1 << 5,
  // Bits 8 to 11: wait i compares for equality. Bits 12 to 14: number of waits.
};
inline constexpr int kWaitEqualShift = 8;
inline constexpr int kNumWaitsShift = 12;
} // namespace Flag

/// A tile in the first slot and in the immediate extension.
inline constexpr size_t kTileBytes = 22;
inline constexpr int kTilesInFirstSlot = 3;
namespace Tile {
enum : size_t {
  Type = 0, // dtype in bits 0 to 5, space in bits 6 and 7
  StartPartition = 1,
  NumPartitions = 2,
  ByteOffset = 3, // u24
  Steps = 6,      // 4 x i16
  Counts = 14,    // 4 x u16
};
inline constexpr uint32_t kMaxByteOffset = (1 << 24) - 1;
} // namespace Tile

/// Extension slot of immediates and further tiles.
namespace Extension {
enum : size_t { Immediates = 0 /* 6 x i64 */, Tiles = 48 /* 3 x kTileBytes */ };
} // namespace Extension

/// Extension slot of an HBM pattern.
namespace Hbm {
enum : size_t {
  Variable = 0,
  Dtype = 2,
  TermRegisters = 4,
  ByteOffset = 8,
  TermStrides = 16,     // 4 x i64
  Steps = 48,           // 5 x i64
  Counts = 88,          // 5 x u32
  CountRegisters = 108, // 5
  StepRegisters = 113,  // 5
};
} // namespace Hbm

template <std::integral T> void store(uint8_t *bytes, T value) {
  using U = std::make_unsigned_t<T>;
  for (size_t i = 0; i < sizeof(T); ++i)
    bytes[i] = uint8_t(U(value) >> (8 * i));
}

template <std::integral T> T load(const uint8_t *bytes) {
  using U = std::make_unsigned_t<T>;
  U value = 0;
  for (size_t i = 0; i < sizeof(T); ++i)
    value = U(value | U(U(bytes[i]) << (8 * i)));
  return T(value);
}

/// Which pattern of Instruction::hbm a tile in HBM takes, by the instruction's group of fields: 0 written, 1 read.
int hbmIndex(isa::Opcode opcode, int tile);
/// Whether the opcode has the extension slot of immediates.
bool hasImmediateSlot(isa::Opcode opcode);

/// Writes `slots` = slotCount(in) slots, which must be zero before.
void encodeInstruction(uint8_t *bytes, const Instruction &in, int slots);

/// CRC-32 of a .bin file without its checksum field.
uint32_t binaryChecksum(std::span<const uint8_t> bytes);

} // namespace neuroncore::isa::encoding

#endif // NEURON_LIB_ISA_ENCODING_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instruction streams as bytes (docs/Encoding.md): the content of an engine's .bin file in a NEFF. Decoding is a trust
// boundary: any input gives a well-formed stream or an error that names the stream, the instruction and the field.

#ifndef NEURON_ISA_CODEC_H
#define NEURON_ISA_CODEC_H

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "neuron/Isa/Instruction.h"
#include "neuron/Support/Error.h"

namespace neuroncore::isa {

inline constexpr std::string_view kBinaryMagic("ONEURON\0", 8);
inline constexpr int kBinaryHeaderBytes = 32;

/// The .bin file of one stream. Refuses instructions that are not well formed (verifyForm).
Expected<std::vector<uint8_t>> encodeStream(Engine engine, std::span<const Instruction> stream);

/// Accepts exactly what encodeStream writes: the same bytes come out when the result is encoded again.
Expected<Stream> decodeStream(Engine engine, std::span<const uint8_t> bytes);

/// Slots the instruction takes: one, and an extension slot for immediates or for each side in HBM.
int slotCount(const Instruction &instruction);

/// Whether the bytes start with our magic; tells a foreign stream from a damaged one.
bool isOurBinary(std::span<const uint8_t> bytes);

/// "vector instruction 12 (tensor_copy)": how errors name an instruction.
std::string describeInstruction(Engine engine, size_t index, Opcode opcode);

} // namespace neuroncore::isa

#endif // NEURON_ISA_CODEC_H

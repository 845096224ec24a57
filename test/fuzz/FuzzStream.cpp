// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any slots as an instruction stream. The header and its checksum are made to fit, so that damage reaches the decoder.

#include <algorithm>
#include <cstdlib>

#include "neuron/Isa/Assembly.h"
#include "neuron/Isa/Codec.h"
#include "neuron/Isa/Cost.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Isa/Verify.h"
#include "neuron/Support/Hash.h"

using namespace neuroncore::isa;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2)
    return 0;
  Engine engine = kStreamEngines[data[0] % kNumStreams];
  std::vector<uint8_t> bytes(kBinaryHeaderBytes);
  std::copy(kBinaryMagic.begin(), kBinaryMagic.end(), bytes.begin());
  bytes[8] = kIsaVersionMajor;
  bytes[10] = kIsaVersionMinor;
  bytes[12] = uint8_t(engine);
  bytes[16] = data[1];
  bytes.insert(bytes.end(), data + 2, data + size);
  std::span<const uint8_t> all(bytes);
  uint32_t crc = neuroncore::crc32(all.subspan(32), neuroncore::crc32(all.first(28)));
  for (int i = 0; i < 4; ++i)
    bytes[28 + i] = uint8_t(crc >> (8 * i));

  neuroncore::Expected<Stream> stream = decodeStream(engine, bytes);
  if (!stream)
    return 0;
  neuroncore::Expected<std::vector<uint8_t>> again = encodeStream(engine, *stream);
  if (!again || *again != bytes)
    std::abort();
  Program program;
  program[size_t(streamIndex(engine))] = *stream;
  neuroncore::Expected<Program> parsed = parseProgram(printProgram(program));
  if (!parsed || *encodeStream(engine, (*parsed)[size_t(streamIndex(engine))]) != bytes)
    std::abort();
  for (const char *target : {"trn1", "trn2", "trn3"}) {
    const neuroncore::target::MachineModel &model = *neuroncore::target::MachineModel::builtin(target);
    if (!verifyStream(model, engine, *stream))
      continue;
    for (const Instruction &in : *stream) {
      if (instructionInfo(in.opcode).group == Group::Dma)
        dmaCost(model, engine, in);
      else if (computeCost(model, engine, in).occupancyPs <= 0)
        std::abort();
    }
  }
  return 0;
}

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Small helpers on the decoded instruction.

#include "neuron/Isa/Instruction.h"

#include <bit>

#include "neuron/Isa/InstructionTable.h"

namespace neuroncore::isa {

int streamIndex(Engine engine) {
  for (int i = 0; i < kNumStreams; ++i)
    if (kStreamEngines[i] == engine)
      return i;
  return -1;
}

int dtypeBytes(Dtype dtype) {
  // The decoder asks for every operand, so this is a load, not a search.
  static const std::array<uint8_t, 256> sizes = [] {
    std::array<uint8_t, 256> table = {};
    for (const DtypeInfo &info : dtypeTable())
      table[uint8_t(info.dtype)] = info.bytes;
    return table;
  }();
  return sizes[uint8_t(dtype)];
}

bool isFloatDtype(Dtype dtype) {
  switch (dtype) {
  case Dtype::F32:
  case Dtype::Bf16:
  case Dtype::F16:
  case Dtype::F8e4m3:
  case Dtype::F8e4m3fn:
  case Dtype::F8e5m2:
  case Dtype::F64:
    return true;
  default:
    return false;
  }
}

bool isIntegerDtype(Dtype dtype) { return dtypeBytes(dtype) != 0 && !isFloatDtype(dtype); }

ScalarOperand ScalarOperand::constant(float value) { return constantBits(std::bit_cast<uint32_t>(value)); }

ScalarOperand ScalarOperand::constantBits(uint32_t bits) {
  ScalarOperand operand;
  operand.kind = Kind::Constant;
  operand.bits = bits;
  return operand;
}

ScalarOperand ScalarOperand::vector(MemorySpace space, uint32_t byteOffset) {
  ScalarOperand operand;
  operand.kind = Kind::Vector;
  operand.space = space;
  operand.byteOffset = byteOffset;
  return operand;
}

float ScalarOperand::asFloat() const { return std::bit_cast<float>(bits); }

} // namespace neuroncore::isa

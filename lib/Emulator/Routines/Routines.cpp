// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Emulator/Routines/Routines.h"

#include "neuron/Isa/InstructionTable.h"

namespace neuroncore::emulator {

using isa::Dtype;
using isa::Routine;

RoutineOperands::RoutineOperands(const isa::Instruction &instruction, const DecodeContext &context)
    : dst(instruction.tiles[0], context.layout), dstTile(instruction.tiles[0]), src0Tile(instruction.tiles[1]),
      function(instruction.routineFunction) {
  Operand *optional[] = {&src0, &src1, &src2, &src3, &dst1};
  for (int i = 0; i < 5; ++i)
    if (instruction.tiles[i + 1].present())
      *optional[i] = Operand(instruction.tiles[i + 1], context.layout);
  for (int i = 0; i < 4; ++i)
    immediates[i] = instruction.immediates[i];
}

int64_t trailingElements(const isa::TilePattern &tile, int64_t axes) {
  int64_t elements = 1;
  for (int64_t i = isa::kMaxFreeDims - axes; i < isa::kMaxFreeDims; ++i)
    elements *= tile.count[i];
  return elements;
}

namespace {

template <typename T>
void widen(const Operand &operand, const uint8_t *base, int64_t row, int64_t first, int64_t n, int64_t *to,
           Worker &worker) {
  T *raw = reinterpret_cast<T *>(worker.stage[kStageBuffers - 1]);
  for (int64_t i = 0; i < n; i += kRoutineChunk) {
    const int64_t count = n - i < kRoutineChunk ? n - i : kRoutineChunk;
    loadTyped(operand, base, row, first + i, count, raw);
    for (int64_t k = 0; k < count; ++k)
      to[i + k] = int64_t(raw[k]);
  }
}

} // namespace

void loadIndices(const Operand &operand, const uint8_t *base, int64_t row, int64_t first, int64_t n, int64_t *to,
                 Worker &worker) {
  switch (operand.dtype) {
  case Dtype::I8:
    return widen<int8_t>(operand, base, row, first, n, to, worker);
  case Dtype::U8:
    return widen<uint8_t>(operand, base, row, first, n, to, worker);
  case Dtype::I16:
    return widen<int16_t>(operand, base, row, first, n, to, worker);
  case Dtype::U16:
    return widen<uint16_t>(operand, base, row, first, n, to, worker);
  case Dtype::I32:
    return widen<int32_t>(operand, base, row, first, n, to, worker);
  case Dtype::U32:
    return widen<uint32_t>(operand, base, row, first, n, to, worker);
  default:
    return widen<int64_t>(operand, base, row, first, n, to, worker);
  }
}

TileOpOrError decodeGpsimdCall(const isa::Instruction &instruction, const DecodeContext &context) {
  const RoutineOperands operands(instruction, context);
  const auto decode = [&]() -> TileOpOrError {
    switch (instruction.routine) {
    case Routine::Cast:
      return decodeCastRoutine(operands);
    case Routine::IntBinary:
      return decodeIntBinary(operands);
    case Routine::IntCompare:
      return decodeIntCompare(operands);
    case Routine::IntUnary:
      return decodeIntUnary(operands);
    case Routine::FloatUnary:
      return decodeFloatUnary(operands);
    case Routine::FloatBinary:
      return decodeFloatBinary(operands);
    case Routine::Select:
      return decodeSelect(operands);
    case Routine::IntReduce:
      return decodeIntReduce(operands);
    case Routine::ArgReduce:
      return decodeArgReduce(operands);
    case Routine::PartitionReduce:
      return decodePartitionReduce(operands);
    case Routine::Philox:
      return decodePhilox(operands);
    case Routine::Iota64:
      return decodeIota64(operands);
    case Routine::Gather:
      return decodeGather(operands);
    case Routine::Scan:
      return decodeScanRoutine(operands);
    case Routine::Sort:
      return decodeSort(operands);
    case Routine::Scatter:
      return decodeScatter(operands);
    case Routine::Float64Binary:
    case Routine::None:
      break;
    }
    return unsupported(cat("routine ", isa::toString(instruction.routine), " has no implementation"));
  };
  TileOpOrError op = decode();
  if (!op)
    return op.error().withContext(cat("gpsimd_call ", isa::toString(instruction.routine)));
  return op;
}

} // namespace neuroncore::emulator

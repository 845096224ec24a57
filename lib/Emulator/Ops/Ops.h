// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decoding of compute instructions into TileOps, one function per group. The instruction has passed the verifier.

#ifndef NEURON_LIB_EMULATOR_OPS_OPS_H
#define NEURON_LIB_EMULATOR_OPS_OPS_H

#include <memory>

#include "lib/Emulator/Machine.h"
#include "lib/Emulator/Operand.h"
#include "neuron/Isa/Instruction.h"
#include "neuron/Support/Error.h"

namespace neuroncore::emulator {

struct DecodeContext {
  ImageLayout layout;
  isa::Engine engine = isa::Engine::Unknown;
  /// load_stationary: which forms of the matrix later matmuls need.
  bool needsPacked = true, needsRaw = true;
};

using TileOpOrError = Expected<std::unique_ptr<TileOp>>;

/// Any compute instruction.
TileOpOrError decodeTileOp(const isa::Instruction &instruction, const DecodeContext &context);

TileOpOrError decodeCopy(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeCopyPredicated(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeMemset(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeTensorTensor(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeTensorScalar(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeScalarTensorTensor(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeTensorScalarReduce(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeScan(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeReciprocal(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeRangeSelect(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeActivation(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeTensorReduce(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeBnStats(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeBnAggr(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeTranspose(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeStreamShuffle(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeMax8(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeFindIndex8(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeIota(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeAffineSelect(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeLoadStationary(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeMatmul(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeGpsimdCall(const isa::Instruction &instruction, const DecodeContext &context);

/// Integer forms, called by the decoders above.
TileOpOrError decodeIntegerTensorTensor(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeBitvecTensorTensor(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeBitvecTensorScalar(const isa::Instruction &instruction, const DecodeContext &context);
TileOpOrError decodeBitvecReduce(const isa::Instruction &instruction, const DecodeContext &context);

inline Error unsupported(std::string message) { return Error(ErrorKind::Unsupported, std::move(message)); }

/// Cuts the rows [p0, p1) of element-wise operands into blocks and calls body(rows, columns, inputs, out, firstRow).
template <size_t kInputs, class Body>
void forBlocks(const BlockPlan &plan, const Operand *const (&inputs)[kInputs], const Operand &out, Machine &machine,
               Worker &worker, int64_t p0, int64_t p1, Body &&body) {
  uint8_t *base = machine.base;
  for (int64_t c0 = 0; c0 < out.n;) {
    const int64_t runEnd = c0 - c0 % plan.run + plan.run;
    const int64_t columns = plan.columns < runEnd - c0 ? plan.columns : runEnd - c0;
    const int64_t step = plan.rows != 0 ? plan.rows : p1 - p0;
    for (int64_t r0 = p0; r0 < p1; r0 += step) {
      const int64_t rows = step < p1 - r0 ? step : p1 - r0;
      ConstRows in[kInputs];
      for (size_t i = 0; i < kInputs; ++i) {
        if (plan.inPlace[i]) {
          in[i] = {inputs[i]->row(base, r0) + inputs[i]->free.offsetOf(c0), inputs[i]->stride};
        } else {
          loadBlock(*inputs[i], base, r0, rows, c0, columns, worker.stage[i]);
          in[i] = {worker.stage[i], columns * int64_t(sizeof(float))};
        }
      }
      if (plan.inPlace[kInputs]) {
        body(rows, columns, in, MutableRows{out.row(base, r0) + out.free.offsetOf(c0), out.stride}, r0);
      } else {
        body(rows, columns, in, MutableRows{worker.stage[kInputs], columns * int64_t(sizeof(float))}, r0);
        storeBlock(out, base, r0, rows, c0, columns, worker.stage[kInputs]);
      }
    }
    c0 += columns;
  }
}

} // namespace neuroncore::emulator

#endif // NEURON_LIB_EMULATOR_OPS_OPS_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// load_stationary and matmul, decoded. Apart from running by themselves they can be taken apart: the columns of a
// product are cut into panels, and a panel of the moving operand, once packed, serves every product that reads it.

#ifndef NEURON_LIB_EMULATOR_OPS_MATMUL_H
#define NEURON_LIB_EMULATOR_OPS_MATMUL_H

#include "lib/Emulator/Ops/Ops.h"

namespace neuroncore::emulator {

class LoadStationaryOp : public TileOp {
public:
  LoadStationaryOp(const isa::Instruction &instruction, const DecodeContext &context);

  void run(Machine &machine, Worker &worker, int begin, int end) const override;

  /// Whether products alone use the matrix, not transposes.
  bool isPackedOnly() const { return packed_ && !raw_; }
  /// What `run` does for such a load, in two steps: sizes, then columns in groups of kGroupColumns.
  void prepare(Stationary &stationary) const;
  int groups() const;
  void pack(Stationary &stationary, const Machine &machine, Worker &worker, int firstGroup, int lastGroup) const;

private:
  static constexpr int kGroupColumns = 32;

  Operand in_;
  bool packed_, raw_;
};

/// matmul without is_transpose. Units are panels.
class MatmulOp : public TileOp {
public:
  MatmulOp(const isa::Instruction &instruction, const DecodeContext &context);

  void run(Machine &machine, Worker &worker, int begin, int end) const override;

  bool matches(const Stationary &stationary) const {
    return stationary.k == moving_.partitions && stationary.m == out_.partitions && stationary.hasPacked;
  }
  /// Whether both products read the same moving operand in panels, so that packing it once is enough.
  bool sharesPanels(const MatmulOp &other) const;
  /// Whether two products may be computed panel by panel instead of one after the other: their results are apart, or
  /// column i of one is column i of the other.
  bool dividesWith(const MatmulOp &other) const;

  /// Floats that panels [0, count) of the moving operand, and what `multiply` needs behind them, take up.
  size_t panelFloats(int count) const;
  void pack(const Machine &machine, int firstPanel, int lastPanel, float *panels) const;
  /// The products of `stationary` with packed panels.
  void multiply(const Stationary &stationary, const Machine &machine, int firstPanel, int lastPanel,
                float *panels) const;
  /// Few rows of results: the moving operand is used once and not packed.
  bool isNarrow() const { return isNarrow_; }
  void multiplyNarrow(const Stationary &stationary, const Machine &machine, int firstPanel, int lastPanel) const;

private:
  int64_t firstColumn(int panel) const;

  Operand out_, moving_;
  bool accumulate_;
  bool outInPlace_ = false, movingInPlace_ = false, isNarrow_ = false;
  Storage storage_ = Storage::F32;
  /// Bytes of a PSUM partition that lie between the first and the last element of a row of results.
  int64_t outBegin_ = 0, outEnd_ = 0;
};

} // namespace neuroncore::emulator

#endif // NEURON_LIB_EMULATOR_OPS_MATMUL_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes instructions with the alternatives that compute the same on other engines; the choice among them is made when
// a loop body is complete (EngineBalance.cpp).

#ifndef PASSES_SELECT_INSTRUCTIONWRITER_H
#define PASSES_SELECT_INSTRUCTIONWRITER_H

#include "neuron/Isa/Cost.h"
#include "passes/Select/TileRef.h"

namespace mlir::neuron {

/// One way to execute an instruction.
struct Choice {
  ::neuroncore::isa::Engine engine;
  ::neuroncore::isa::Instruction code;
  SmallVector<Value, 4> tiles;   // buffers of the tile slots
  SmallVector<Value, 2> scalars; // buffers of the vector scalars
  int64_t occupancyPs = 0;
};

/// One operator of a tensor_scalar: x op scalar, or scalar op x when reversed.
struct ScalarStep {
  ::neuroncore::isa::AluOp op = ::neuroncore::isa::AluOp::Bypass;
  ScalarRef scalar = {};
  bool reverse = false;
};

class InstructionWriter {
public:
  using Engine = ::neuroncore::isa::Engine;
  using AluOp = ::neuroncore::isa::AluOp;
  using Function = ::neuroncore::isa::ActivationFunction;

  InstructionWriter(OpBuilder &builder, const ::neuroncore::target::MachineModel &model)
      : builder(builder), model(model) {}

  const ::neuroncore::target::MachineModel &machine() const { return model; }

  // Each call writes one instruction over `shape` (free dimensions of the result).
  void tensorCopy(Location loc, const TileRef &dst, const TileRef &src);
  void memset(Location loc, const TileRef &dst, uint32_t bits);
  void memset(Location loc, const TileRef &dst, float value);
  void tensorTensor(Location loc, const TileRef &dst, const TileRef &lhs, const TileRef &rhs, AluOp op,
                    bool onGpsimd = false);
  void tensorScalar(Location loc, const TileRef &dst, const TileRef &src, ScalarStep first,
                    ScalarStep second = ScalarStep());
  void tensorScalarBits(Location loc, const TileRef &dst, const TileRef &src, AluOp op, uint32_t bits);
  void scalarTensorTensor(Location loc, const TileRef &dst, const TileRef &lhs, ScalarStep first, const TileRef &rhs,
                          AluOp op, bool reverse);
  void activation(Location loc, const TileRef &dst, const TileRef &src, Function function, const ScalarRef &scale,
                  const ScalarRef &bias, const TileRef &rowSum = {});
  void tensorScalarReduce(Location loc, const TileRef &dst, const TileRef &src, ScalarStep step, AluOp reduce,
                          const TileRef &result);
  void copyPredicated(Location loc, const TileRef &dst, const TileRef &src, const TileRef &predicate);
  /// `unused`: where the scalar engine, which sums on the way, may write the elements of a row sum.
  void tensorReduce(Location loc, const TileRef &dst, const TileRef &src, ArrayRef<int64_t> keptDims,
                    ArrayRef<int64_t> endedDims, AluOp op, const TileRef &unused = {});
  /// s = (factors * s) op terms along a row, starting from `initial`.
  void scan(Location loc, const TileRef &dst, const TileRef &factors, const TileRef &terms, AluOp op, float initial);
  /// bn_stats and bn_aggr: (count, mean, squares around the mean) of even and odd elements; mean and variance of those.
  void rowStatistics(Location loc, const TileRef &dst, const TileRef &row);
  void mergeStatistics(Location loc, const TileRef &dst, const TileRef &statistics);
  void routine(Location loc, ::neuroncore::isa::Routine routine, uint8_t function, const TileRef &dst,
               ArrayRef<TileRef> sources, ArrayRef<int64_t> shape, ArrayRef<int64_t> immediates = {},
               const TileRef &secondResult = {});
  /// A routine on rows: the last `sourceTrailing` dimensions of the source (and `dstTrailing` of the result) are a row.
  /// Immediate 0 is the number of dimensions a row has in the pattern, immediate 1 is `lastImmediate`.
  void rowRoutine(Location loc, ::neuroncore::isa::Routine routine, uint8_t function, const TileRef &dst,
                  const TileRef &source, size_t sourceTrailing, size_t dstTrailing, int64_t lastImmediate = 0);
  void iota(Location loc, const TileRef &dst, int64_t offset, int64_t channelMultiplier, ArrayRef<int64_t> steps);
  void affineSelect(Location loc, const TileRef &dst, const TileRef &src, int64_t channelMultiplier, int64_t step,
                    AluOp compare, float onFalse);
  void loadStationary(Location loc, const TileRef &src, bool oneZero);
  void matmul(Location loc, const TileRef &dst, const TileRef &moving, bool accumulate, bool oneZero, bool transpose);
  /// `transposes` (loads only): the innermost dimension of the pattern is across the partitions. `index`: partition p
  /// of the tile goes with row index[p] of the pattern, whose outermost step is that of the rows.
  void dma(Location loc, const TileRef &tile, Value hbm, ::neuroncore::isa::HbmPattern pattern,
           const nisa::HbmTerms &terms, bool isLoad, bool transposes = false, const TileRef &index = {});

  /// A transfer without operands: who triggers it and how, before the schedule phase decides.
  Choice transfer() const;

  /// Instructions written since the last call, in order, with their choices.
  struct Written {
    Operation *op;
    std::vector<Choice> choices;
  };
  std::vector<Written> take() { return std::exchange(written, {}); }
  std::vector<Written> &pending() { return written; }

  /// The element type that arithmetic on a tile stored like this uses is f32: all types up to 32 bits convert exactly
  /// or as CPU PyTorch converts them.
  static bool isReadable(Type element);

private:
  void write(Location loc, std::vector<Choice> choices);
  Choice base(Engine engine, ::neuroncore::isa::Opcode opcode) const;
  void setTile(Choice &choice, unsigned slot, const TileRef &ref, ArrayRef<int64_t> shape, size_t trailing = 0) const;
  void writeRoutine(Location loc, ::neuroncore::isa::Routine routine, uint8_t function, const TileRef &dst,
                    ArrayRef<TileRef> sources, ArrayRef<int64_t> shape, ArrayRef<int64_t> immediates,
                    const TileRef &secondResult, size_t sourceTrailing, size_t dstTrailing);
  void setScalar(Choice &choice, unsigned slot, const ScalarRef &scalar) const;

  OpBuilder &builder;
  const ::neuroncore::target::MachineModel &model;
  std::vector<Written> written;
};

/// Chooses an engine for each instruction of one loop body (or straight-line part) and rewrites the operations.
void balanceEngines(OpBuilder &builder, const ::neuroncore::target::MachineModel &model,
                    std::vector<InstructionWriter::Written> instructions);

} // namespace mlir::neuron

#endif // PASSES_SELECT_INSTRUCTIONWRITER_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns the operations of one kernel into loops over tiles, following a TilePlan.

#ifndef PASSES_TILE_TILEGENERATOR_H
#define PASSES_TILE_TILEGENERATOR_H

#include "lib/Analysis/TilePlan.h"
#include "passes/Tile/TileLoops.h"

namespace mlir::neuron {

class TileGenerator {
public:
  /// `bufferOf`: the HBM buffer of a value that is read or stored.
  using BufferFn = llvm::function_ref<Value(Value)>;

  TileGenerator(OpBuilder &builder, const TilePlan &plan, BufferFn bufferOf);
  void run();

  using Range = TileRange;

  /// For plans without loops: the places (ranges of all dimensions) evaluated until endPlaces() share what does not
  /// depend on the partition dimension. `first` has the most partitions of them.
  void beginPlaces(ArrayRef<Range> first);
  /// Evaluates the plan at one place; reads of `buffer` are `tile`.
  void runAt(ArrayRef<Range> place, Value buffer, Value tile);
  void endPlaces() { scopes.pop_back(); }

private:
  using Scope = llvm::DenseMap<const void *, Value>;

  const IterationSpace &space() const { return plan.space; }
  int64_t partitions() const { return plan.partition < 0 ? 1 : ranges[plan.partition].extent; }
  RankedTensorType tileType(ArrayRef<int64_t> shape, Type element) const {
    return RankedTensorType::get(shape, element);
  }
  /// Position of a free dimension in a tile (the partition is dimension 0).
  int64_t tileDim(unsigned dim) const;
  /// Extents of the free dimensions of a mask; 1 for the others.
  SmallVector<int64_t> fullShape(int64_t partitions, DimMask mask) const;

  void emitLevel(unsigned level);
  void emitLoops(unsigned level);
  void emitRange(unsigned level, Range range);
  void emitReads(unsigned level);
  void emitAccumulation(Operation *reduce);
  void startAccumulators(unsigned level);
  void finishAccumulators(unsigned level);
  void emitStores(unsigned level);
  void advanceBases(unsigned dim, int64_t count);

  Value lookup(const void *key) const;
  Value resizeSplat(ConstantOp constant, ArrayRef<int64_t> shape);
  Value load(const HbmAccess &access, int64_t partitions);
  Value tileOf(OpOperand &operand, int64_t partitions);
  Value onPartitions(OpOperand &operand, int64_t partitions);
  Value firstPartitions(Value tile, int64_t partitions);
  Value expand(Value tile, ArrayRef<int64_t> shape);
  void evaluate(Operation *op);
  Value evaluateElementwise(Operation *op, int64_t partitions);
  Value evaluateIota(IotaOp op);
  Value evaluateRandom(RandomOp op);
  Value reduceFree(ReduceOp op, Value operand, DimMask ended, Type element);
  Value constant(Location loc, ArrayRef<int64_t> shape, Type element, double value);
  Value neutral(ReduceOp op, ArrayRef<int64_t> shape, Type element);
  Type accumulatorElement(ReduceOp op) const;
  bool sumsOnTensorEngine(ReduceOp op) const;
  bool isAccumulating(Operation *op) const { return plan.places.lookup(op).accumulates; }
  bool endsLoop(Operation *op) const;
  bool endsPartition(Operation *op) const;
  /// The reductions whose accumulators pass through the loop at `level`.
  SmallVector<Operation *> activeAccumulators(unsigned level) const;
  SmallVector<Operation *> activeBases(unsigned level) const;
  bool indexFits32(Operation *op) const;

  OpBuilder &builder;
  const TilePlan &plan;
  BufferFn bufferOf;
  SmallVector<Range> ranges;
  SmallVector<Scope> scopes;
  llvm::DenseMap<const OpOperand *, unsigned> readClass; // reads of the same elements share a load
  SmallVector<const HbmAccess *> classRead;
  llvm::DenseMap<Operation *, Value> accumulators;
  llvm::DenseMap<Operation *, Value> bases; // running index of partition p's first element, [P, 1]
};

} // namespace mlir::neuron

#endif // PASSES_TILE_TILEGENERATOR_H

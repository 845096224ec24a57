// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Selects the instructions of one tiled kernel. Operations are visited in order. An elementwise operation whose only
// user may absorb it is deferred: the user either folds it into its own instruction or asks for its value.

#ifndef PASSES_SELECT_KERNELSELECTOR_H
#define PASSES_SELECT_KERNELSELECTOR_H

#include "dialects/Neuron/NeuronIndexingOps.h"
#include "passes/Select/InstructionWriter.h"

namespace mlir::neuron {

class KernelSelector {
public:
  KernelSelector(OpBuilder &builder, const ::neuroncore::target::MachineModel &model)
      : builder(builder), writer(builder, model), model(model) {}

  /// Selects `kernel` into the body of `target` (empty).
  LogicalResult run(KernelOp kernel, nisa::KernelOp target);

private:
  using Engine = InstructionWriter::Engine;
  using AluOp = InstructionWriter::AluOp;
  using Function = InstructionWriter::Function;
  using Step = ScalarStep;

  // Structure (KernelSelector.cpp)
  LogicalResult selectBlock(Block &block);
  LogicalResult selectOp(Operation *op);
  LogicalResult selectLoop(scf::ForOp loop);
  LogicalResult selectView(Operation *op);
  LogicalResult unsupported(Operation *op, const Twine &why);
  void flush();

  // Transfers (TransferSelection.cpp)
  LogicalResult selectLoad(LoadOp op);
  LogicalResult selectStore(StoreOp op);
  LogicalResult selectHbmCopy(HbmCopyOp op);
  LogicalResult selectIndexedLoad(IndexedLoadOp op);
  LogicalResult selectIndexedStore(IndexedStoreOp op);
  /// How long the busiest DMA engine takes.
  int64_t transferPs(const TileRef &tile, const ::neuroncore::isa::HbmPattern &pattern, bool isLoad,
                     bool transposes = false) const;

  // Values
  static ArrayRef<int64_t> freeShape(Value value) { return typeOf(value).getShape().drop_front(); }
  TileRef allocate(int64_t partitions, ArrayRef<int64_t> shape, Type element, MemorySpace space = MemorySpace::Sbuf);
  TileRef allocateFor(Value value, MemorySpace space = MemorySpace::Sbuf);
  TileRef scratch(int64_t partitions, ArrayRef<int64_t> shape, bool ofScalarEngine);
  void define(Value value, TileRef ref) { refs[value] = std::move(ref); }
  /// The tile of a value; writes its instructions if they were deferred, materialises constants.
  FailureOr<TileRef> tile(Value value);
  /// As tile(), stored with the value's own type.
  FailureOr<TileRef> exactTile(Value value);
  /// As tile(), in SBUF.
  TileRef inSbuf(Location loc, const TileRef &ref);
  /// A constant, or a column of f32; nullopt when the value varies along the free axis.
  FailureOr<std::optional<ScalarRef>> scalar(Value value);
  FailureOr<TileRef> constantTile(Value value);
  TileRef constantColumn(Location loc, TypedAttr value);
  bool isScalarLike(Value value) const;
  bool isColumnShape(Value value) const;
  /// The type the result is stored with: that of its only user when it is a narrowing float conversion.
  Value storedResult(Value result) const;

  // Float elementwise (FloatSelection.cpp)
  bool canDefer(Operation *op) const;
  /// The user of a result that is not done yet, if there is exactly one.
  Operation *onlyPendingUser(Value result) const;
  LogicalResult selectFloatUnary(UnaryOp op);
  LogicalResult selectFloatBinary(BinaryOp op);
  LogicalResult selectCompare(CompareOp op);
  LogicalResult selectSelect(SelectOp op);
  LogicalResult selectFloatCast(CastOp op);
  LogicalResult floatRoutine(Operation *op, ::neuroncore::isa::Routine routine, uint8_t function);
  /// Splits x into inner * scale + bias as far as deferred operations allow.
  FailureOr<TileRef> peelAffine(Value value, ScalarRef &scale, ScalarRef &bias);
  std::optional<AluOp> aluOf(BinaryFunction function) const;
  /// A deferred binary with a scalar operand as a step on the other operand.
  FailureOr<std::optional<Step>> asStep(Operation *op, Value &inner);
  bool isNonNegative(Value value, int depth = 0) const;
  ReduceOp rowSumUser(Value value) const;
  /// `sum` holds the row sum that came with `summed`.
  void defineRowSum(ReduceOp rowSum, Value summed, const TileRef &sum);
  FailureOr<ScalarRef> negated(Location loc, const ScalarRef &scalar);

  // Integers and bool (IntegerSelection.cpp)
  LogicalResult selectIntegerUnary(UnaryOp op);
  LogicalResult selectIntegerBinary(BinaryOp op);
  LogicalResult selectIntegerCompare(CompareOp op);
  LogicalResult selectIntegerCast(CastOp op);
  LogicalResult selectIota(IotaOp op);
  LogicalResult selectRandom(RandomOp op);

  // Reductions (ReductionSelection.cpp)
  LogicalResult selectReduce(ReduceOp op);
  LogicalResult selectPartitionReduce(ReduceOp op);
  LogicalResult selectArgReduce(ArgReduceOp op);
  LogicalResult selectScan(ScanOp op);
  LogicalResult selectFloatScan(ScanOp op, int64_t numRows);
  LogicalResult selectAccumulate(AccumulateOp op);
  /// A sum over partitions whose only user adds it to an accumulator in PSUM: it is written with the accumulation.
  bool isAccumulatedSum(Operation *op) const;
  LogicalResult combine(Location loc, ReduceKind kind, Type element, const TileRef &dst, const TileRef &lhs,
                        const TileRef &rhs);

  // Mean and variance (MomentSelection.cpp)
  struct RowMoments {
    BinaryOp mean, centred;
    UnaryOp square;
    ReduceOp squares;
    /// What the sum of the squares is divided by differs: with and without Bessel's correction.
    SmallVector<BinaryOp, 2> variances;
  };
  /// The operations that compute mean and variance of the rows that `sum` adds up, where all are there.
  std::optional<RowMoments> findRowMoments(ReduceOp sum) const;
  LogicalResult selectRowMoments(ReduceOp sum, RowMoments moments);

  // Tensor engine (MatmulSelection.cpp)
  /// Whether an accumulator's value comes from the tensor engine and may stay in PSUM.
  bool accumulatesInPsum(Value accumulator) const;
  LogicalResult startPsumAccumulator(Location loc, const TileRef &ref);
  LogicalResult sumPartitions(Location loc, const TileRef &dst, const TileRef &src, bool accumulate);
  LogicalResult selectTileMatmul(TileMatmulOp op);
  LogicalResult multiply(Location loc, const TileRef &dst, Value stationary, Value moving, bool accumulate);
  LogicalResult selectTileTranspose(TileTransposeOp op);
  TileRef ones(Location loc, int64_t partitions, Type element);
  TileRef identity(Location loc, int64_t size, Type element);
  TileRef matmulOperand(Location loc, const TileRef &ref);

  OpBuilder &builder;
  InstructionWriter writer;
  const ::neuroncore::target::MachineModel &model;
  /// Where buffers and constants that live through the whole kernel are created.
  Operation *prologueEnd = nullptr;
  llvm::DenseMap<Value, TileRef> refs;
  /// Where a value that a loop carries on is to be written: over the one it replaces.
  llvm::DenseMap<Value, TileRef> replaced;
  llvm::DenseMap<Value, Value> loopCounters; // scf.for induction variable -> nisa.loop counter
  llvm::DenseSet<Operation *> deferred;
  llvm::DenseSet<Operation *> done; // written together with another operation
  /// Differences between rows and their mean whose square nobody needs any more.
  llvm::DenseSet<Operation *> centredRows;
  llvm::DenseMap<std::pair<Type, int64_t>, TileRef> onesTiles, identityTiles;
  llvm::DenseMap<std::pair<Attribute, int64_t>, TileRef> constantTiles;
  llvm::DenseMap<std::pair<int, int64_t>, TileRef> scratchTiles; // by (in PSUM, elements)
  bool usesPsum = false;                                         // for products and sums over partitions
  /// Of the block that is being selected: columns by (buffer, byte offset), negated.
  llvm::DenseMap<std::pair<Value, int64_t>, TileRef> negatedColumns;
};

} // namespace mlir::neuron

#endif // PASSES_SELECT_KERNELSELECTOR_H

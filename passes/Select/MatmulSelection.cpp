// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tensor engine: products, sums over partitions (a product with ones) and transposes (a product with the identity
// in transpose mode, which moves bits). Accumulators live in PSUM; only a product may start one.

#include "passes/Select/KernelSelector.h"

using namespace mlir;
using namespace mlir::neuron;
namespace isa = ::neuroncore::isa;

namespace {

/// Through loops and accumulations to the accumulate operations that contribute to a running value.
void contributions(Value value, SmallVectorImpl<AccumulateOp> &found, llvm::DenseSet<Value> &seen) {
  if (!seen.insert(value).second)
    return;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (auto accumulate = dyn_cast<AccumulateOp>(user)) {
      if (accumulate.getAccumulator() != value)
        continue;
      found.push_back(accumulate);
      contributions(accumulate.getResult(), found, seen);
    } else if (auto loop = dyn_cast<scf::ForOp>(user)) {
      if (OpOperand *init = llvm::find_if(loop.getInitsMutable(), [&](OpOperand &o) { return &o == &use; });
          init != loop.getInitsMutable().end()) {
        unsigned index = use.getOperandNumber() - loop.getInitsMutable().begin()->getOperandNumber();
        contributions(loop.getRegionIterArg(index), found, seen);
        contributions(loop.getResult(index), found, seen);
      }
    } else if (isa<scf::YieldOp>(user)) {
      auto loop = cast<scf::ForOp>(user->getParentOp());
      contributions(loop.getResult(use.getOperandNumber()), found, seen);
    }
  }
}

int64_t freeElements(ArrayRef<int64_t> shape) {
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  return elements;
}

} // namespace

/// All contributions are products of the tensor engine and the accumulator fits in PSUM.
bool KernelSelector::accumulatesInPsum(Value accumulator) const {
  SmallVector<AccumulateOp> found;
  llvm::DenseSet<Value> seen;
  contributions(accumulator, found, seen);
  if (auto own = accumulator.getDefiningOp<AccumulateOp>())
    found.push_back(own);
  if (found.empty() || !typeOf(accumulator).getElementType().isF32())
    return false;
  if (freeElements(freeShape(accumulator)) * 4 > model.memory().psumBytesPerPartition)
    return false;
  return llvm::all_of(found, [](AccumulateOp accumulate) {
    if (accumulate.getKind() != ReduceKind::Sum)
      return false;
    if (accumulate.getValue().getDefiningOp<TileMatmulOp>())
      return true;
    auto reduce = accumulate.getValue().getDefiningOp<ReduceOp>();
    return reduce && llvm::is_contained(reduce.getDims(), 0) &&
           isa<FloatType>(typeOf(reduce.getOperand()).getElementType());
  });
}

TileRef KernelSelector::ones(Location loc, int64_t partitions, Type element) {
  TileRef &column = onesTiles[{element, 0}];
  if (!column) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(prologueEnd);
    column = allocate(model.memory().partitions, {1}, element);
    writer.memset(loc, column, 1.0f);
  }
  TileRef ref = column;
  ref.partitions = partitions;
  return ref;
}

TileRef KernelSelector::identity(Location loc, int64_t size, Type element) {
  TileRef &matrix = identityTiles[{element, 0}];
  if (!matrix) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(prologueEnd);
    int64_t full = model.memory().partitions;
    TileRef all = allocate(full, {1}, element);
    writer.memset(loc, all, 1.0f);
    all.counts = {full};
    all.steps = {0};
    matrix = allocate(full, {full}, element);
    // 1 where partition - column is 0.
    writer.affineSelect(loc, matrix, all, /*channelMultiplier=*/1, /*step=*/-1, AluOp::Equal, 0.0f);
  }
  TileRef ref = matrix;
  ref.partitions = size;
  ref.counts = {size};
  ref.steps = {1};
  return ref;
}

/// A product of zeros: what starts an accumulator that later products add to.
LogicalResult KernelSelector::startPsumAccumulator(Location loc, const TileRef &ref) {
  Type element = builder.getBF16Type();
  TileRef &zero = onesTiles[{element, 1}];
  if (!zero) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(prologueEnd);
    zero = allocate(1, {model.memory().partitions}, element);
    writer.memset(loc, zero, 0.0f);
  }
  int64_t bankElements = model.memory().psumBankBytes / 4, elements = ref.elementsPerPartition();
  TileRef stationary = zero;
  stationary.counts = {ref.partitions};
  writer.loadStationary(loc, stationary, /*oneZero=*/true);
  for (int64_t start = 0; start < elements; start += bankElements) {
    TileRef part = ref, moving = zero;
    part.byteOffset += start * 4;
    part.counts = {std::min(bankElements, elements - start)};
    part.steps = {1};
    moving.counts = part.counts;
    moving.steps = {0};
    writer.matmul(loc, part, moving, /*accumulate=*/false, /*oneZero=*/true, /*transpose=*/false);
  }
  return success();
}

/// An operand the tensor engine can read.
TileRef KernelSelector::matmulOperand(Location loc, const TileRef &ref) {
  bool readable = ref.element.isF32() || ref.element.isBF16() || ref.element.isF16();
  if (readable && ref.space() == MemorySpace::Sbuf)
    return ref;
  Type element =
      readable ? ref.element
               : (ref.element.getIntOrFloatBitWidth() <= 8 ? Type(builder.getBF16Type()) : Type(builder.getF32Type()));
  TileRef copy = allocate(ref.partitions, ref.counts, element);
  writer.tensorCopy(loc, copy, ref);
  return copy;
}

/// dst[0, i] (+)= sum over partitions of src[p, i], one PSUM bank at a time.
LogicalResult KernelSelector::sumPartitions(Location loc, const TileRef &dst, const TileRef &source, bool accumulate) {
  TileRef src = matmulOperand(loc, source);
  writer.loadStationary(loc, ones(loc, src.partitions, src.element), /*oneZero=*/true);
  int64_t bankElements = model.memory().psumBankBytes / 4, elements = dst.elementsPerPartition();
  // Chunks run along the flattened free axis; both sides must be walkable by one step then.
  isa::TilePattern from = src.pattern(), to = dst.pattern();
  auto isFlat = [](const isa::TilePattern &p) { return p.count[0] == 1 && p.count[1] == 1 && p.count[2] == 1; };
  if (!isFlat(from) || !isFlat(to)) {
    TileRef flat = allocate(src.partitions, src.counts, src.element);
    writer.tensorCopy(loc, flat, src);
    src = flat;
    from = src.pattern();
    if (!isFlat(to)) {
      emitError(loc) << "internal: an accumulator of the tensor engine is not contiguous";
      return failure();
    }
  }
  for (int64_t start = 0; start < elements; start += bankElements) {
    int64_t count = std::min(bankElements, elements - start);
    TileRef part = dst, moving = src;
    part.byteOffset += start * 4 * to.step[3];
    part.counts = {count};
    part.steps = {elements == 1 ? 1 : to.step[3]};
    moving.byteOffset += start * elementBytes(src.element) * from.step[3];
    moving.counts = {count};
    moving.steps = {elements == 1 ? 1 : from.step[3]};
    writer.matmul(loc, part, moving, accumulate, /*oneZero=*/true, /*transpose=*/false);
  }
  return success();
}

LogicalResult KernelSelector::multiply(Location loc, const TileRef &dst, Value stationary, Value moving,
                                       bool accumulate) {
  FailureOr<TileRef> left = tile(stationary), right = tile(moving);
  if (failed(left) || failed(right))
    return failure();
  TileRef a = matmulOperand(loc, *left), b = matmulOperand(loc, *right);
  // f32 only with f32.
  if (a.element != b.element) {
    TileRef &narrow = a.element.isF32() ? b : a;
    TileRef wide = allocate(narrow.partitions, narrow.counts, builder.getF32Type());
    writer.tensorCopy(loc, wide, narrow);
    narrow = wide;
  }
  // One product per piece of k and PSUM bank; the columns of a piece share what is loaded.
  int64_t pieces = a.counts.size() == 2 ? a.counts.front() : 1;
  int64_t bankElements = model.memory().psumBankBytes / 4, columns = dst.elementsPerPartition();
  auto piece = [](TileRef operand, int64_t index) {
    if (operand.counts.size() == 2) {
      operand.byteOffset += index * operand.steps[0] * elementBytes(operand.element);
      operand.counts = {operand.counts[1]};
      operand.steps = {operand.steps[1]};
    }
    return operand;
  };
  for (int64_t index = 0; index < pieces; ++index) {
    TileRef moved = piece(b, index);
    writer.loadStationary(loc, piece(a, index), /*oneZero=*/false);
    for (int64_t start = 0, count = 0; start < columns; start += count) {
      TileRef part = dst, moving = moved;
      part.byteOffset += start * 4 * dst.steps.back();
      moving.byteOffset += start * moved.steps.back() * elementBytes(moved.element);
      // Part of an accumulator may start within a bank.
      count = std::min(bankElements - part.byteOffset / 4 % bankElements, columns - start);
      part.counts = moving.counts = {count};
      part.steps = {dst.steps.back()};
      writer.matmul(loc, part, moving, accumulate || index > 0, /*oneZero=*/false, /*transpose=*/false);
    }
  }
  return success();
}

LogicalResult KernelSelector::selectTileMatmul(TileMatmulOp op) {
  // A product that is accumulated is written with the accumulation.
  if (op.getResult().hasOneUse())
    if (auto accumulate = dyn_cast<AccumulateOp>(*op.getResult().user_begin()))
      if (accumulate.getValue() == op.getResult() && accumulatesInPsum(accumulate.getResult()))
        return success();
  TileRef dst = allocateFor(op.getResult(), MemorySpace::Psum);
  if (failed(multiply(op.getLoc(), dst, op.getStationary(), op.getMoving(), /*accumulate=*/false)))
    return failure();
  define(op.getResult(), dst);
  return success();
}

LogicalResult KernelSelector::selectTileTranspose(TileTransposeOp op) {
  FailureOr<TileRef> src = exactTile(op.getOperand());
  if (failed(src))
    return failure();
  Location loc = op.getLoc();
  TileRef operand = matmulOperand(loc, *src), turned = allocateFor(op.getResult(), MemorySpace::Psum);
  int64_t size = turned.partitions, count = operand.partitions;
  for (int64_t piece = 0; piece < turned.counts[0]; ++piece) {
    TileRef from = operand, to = turned;
    from.byteOffset += piece * size * operand.steps[0] * elementBytes(operand.element);
    from.counts = {size};
    to.byteOffset += piece * turned.steps[0] * elementBytes(turned.element);
    to.counts = {count};
    to.steps = {turned.steps[1]};
    writer.loadStationary(loc, from, /*oneZero=*/false);
    writer.matmul(loc, to, identity(loc, count, operand.element), /*accumulate=*/false, /*oneZero=*/true,
                  /*transpose=*/true);
  }
  // PSUM is scarce, and the tensor engine reads SBUF only: it leaves PSUM at once.
  define(op.getResult(), matmulOperand(loc, turned));
  return success();
}

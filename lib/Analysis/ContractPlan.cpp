// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block of the result is as large as PSUM. Blocks that are nearly square need the fewest bytes per product, wide ones
// have longer rows in memory; the machine model decides. Chunks of k are long enough to hide a transfer's latency and
// short enough that several are on chip at once.

#include "lib/Analysis/ContractPlan.h"

#include <algorithm>
#include <limits>

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::neuron;
using ::neuroncore::target::MachineModel;

namespace {

/// Chunks of k that are on chip at once: one in use, one complete, one on its way.
constexpr int64_t kChunksOnChip = 3;
/// Of a transfer, from its trigger to its use, beside the time of its bytes.
constexpr double kTransferLatencyNs = 2500;

class ContractPlanner {
public:
  ContractPlanner(const ContractProblem &problem, const MachineModel &model) : problem(problem), model(model) {
    partitions = model.tensorEngine().rows;
    bankColumns = std::min<int64_t>(model.tensorEngine().maxMovingFree, model.memory().psumBankBytes / 4);
  }

  std::optional<ContractPlan> run() {
    base.lhs = order(problem.lhs, /*depthDim=*/2, /*otherDim=*/1);
    base.rhs = order(problem.rhs, /*depthDim=*/1, /*otherDim=*/2);
    int64_t banks = model.memory().psumBanks;
    bool tensorTransposes =
        base.lhs == OperandOrder::TensorEngineTranspose || base.rhs == OperandOrder::TensorEngineTranspose;
    if (tensorTransposes) // their results pass through PSUM
      banks /= 2;
    std::optional<ContractPlan> best;
    double bestCost = std::numeric_limits<double>::infinity();
    int64_t rowTiles = llvm::divideCeil(problem.rows(), partitions);
    int64_t columnTiles = llvm::divideCeil(problem.columns(), bankColumns);
    int64_t depthTiles = llvm::divideCeil(problem.depth(), partitions);
    for (int64_t rows = 1; rows <= std::min(rowTiles, banks); ++rows)
      for (int64_t columns = 1; rows * columns <= banks && columns <= columnTiles; ++columns)
        for (int64_t depth = 1; depth < 2 * depthTiles && depth <= kMaxDepthTiles; depth *= 2) {
          ContractPlan plan = base;
          plan.rows = std::min(rows * partitions, problem.rows());
          plan.columns = std::min(columns * bankColumns, problem.columns());
          plan.depth = std::min(depth * partitions, problem.depth());
          if (base.rhs == OperandOrder::TensorEngineTranspose)
            plan.columns = std::min(plan.columns, partitions);
          if (problem.wholeRows && plan.columns < problem.columns())
            continue;
          bool smallest = rows == 1 && columns == 1 && depth == 1 && !problem.wholeRows;
          if (!smallest && sbufBytes(plan) > model.memory().sbufUsableBytesPerPartition)
            continue;
          estimate(plan);
          // Longer programs must pay.
          double cost = plan.costNs() + 5.0 * double(rows * columns * depth);
          if (cost < bestCost) {
            bestCost = cost;
            best = plan;
          }
        }
    return best;
  }

private:
  static constexpr int64_t kMaxDepthTiles = 16;

  OperandOrder order(const StridedLayout &layout, unsigned depthDim, unsigned otherDim) const {
    int64_t depthStride = std::abs(layout.strides[depthDim]), otherStride = std::abs(layout.strides[otherDim]);
    bool depthIsInner =
        depthStride != 0 && layout.sizes[depthDim] > 1 && layout.sizes[otherDim] > 1 && depthStride < otherStride;
    if (!depthIsInner)
      return OperandOrder::Plain;
    bool transposable = problem.elementBytes == 2 || problem.elementBytes == 4;
    if (!transposable)
      return OperandOrder::Plain;
    if (depthStride == 1 && layout.strides[depthDim] == 1 && model.generation() >= 3)
      return OperandOrder::DmaTranspose;
    return OperandOrder::TensorEngineTranspose;
  }

  int64_t sbufBytes(const ContractPlan &plan) const {
    int64_t depthTiles = llvm::divideCeil(plan.depth, partitions);
    int64_t operands = depthTiles * (plan.rows + plan.columns) * problem.elementBytes;
    // A transposed operand is on chip in both orders.
    if (plan.lhs == OperandOrder::TensorEngineTranspose)
      operands += depthTiles * plan.rows * problem.elementBytes;
    if (plan.rhs == OperandOrder::TensorEngineTranspose)
      operands += depthTiles * plan.columns * problem.elementBytes;
    int64_t rowTiles = llvm::divideCeil(plan.rows, partitions);
    int64_t result = rowTiles * plan.columns * (problem.resultBytes + problem.epilogueBytesPerColumn);
    // The first chunk has buffers of its own.
    return (kChunksOnChip + 1) * operands + result;
  }

  /// Time of the DMA engines for `elements` in contiguous runs of `run` elements.
  double transferNs(double elements, double run, int64_t bytes) const {
    if (bytes == 0)
      return 0;
    return elements / run * model.dmaDescriptorNs(run * double(bytes)) / model.topology().dmaEnginesPerCore;
  }

  double operandNs(const ContractPlan &plan, OperandOrder how, const StridedLayout &layout, unsigned depthDim,
                   unsigned otherDim, double elements, int64_t blockOther) const {
    if (how == OperandOrder::DmaTranspose)
      return elements * double(problem.elementBytes) /
             (model.dma().engineGbpsPlanning * model.dma().transposeEfficiencyHbmToSbuf *
              model.topology().dmaEnginesPerCore);
    double run = 1;
    if (how == OperandOrder::TensorEngineTranspose)
      run = std::abs(layout.strides[depthDim]) == 1 ? double(plan.depth) : 1;
    else if (std::abs(layout.strides[otherDim]) == 1)
      run = double(blockOther);
    return transferNs(elements, run, problem.elementBytes);
  }

  void estimate(ContractPlan &plan) const {
    const auto &engine = model.tensorEngine();
    double factor = problem.isF32 ? engine.fp32IiFactor : engine.bf16IiFactor;
    double rowBlocks = double(llvm::divideCeil(problem.rows(), plan.rows)),
           columnBlocks = double(llvm::divideCeil(problem.columns(), plan.columns)),
           chunks = double(llvm::divideCeil(problem.depth(), plan.depth)), batch = double(problem.batch());
    double rowTiles = double(llvm::divideCeil(problem.rows(), partitions)),
           depthTiles = double(llvm::divideCeil(problem.depth(), partitions));
    double perCycleNs = 1 / engine.sustainedClockGhz;
    // Narrow products take as long as ones of 64 columns.
    double columns = std::max<double>(double(problem.columns()), 64 * columnBlocks);
    plan.tensorNs = batch * rowTiles * depthTiles * columns * factor * perCycleNs;
    if (plan.lhs == OperandOrder::TensorEngineTranspose)
      plan.tensorNs += batch * columnBlocks * rowTiles * depthTiles * double(partitions) * factor * perCycleNs;
    if (plan.rhs == OperandOrder::TensorEngineTranspose)
      plan.tensorNs += batch * rowBlocks * double(problem.columns()) * depthTiles * factor * perCycleNs;
    double lhsElements = batch * double(problem.rows()) * double(problem.depth()) * columnBlocks;
    double rhsElements = batch * double(problem.depth()) * double(problem.columns()) * rowBlocks;
    plan.dmaNs = operandNs(plan, plan.lhs, problem.lhs, 2, 1, lhsElements, plan.rows) +
                 operandNs(plan, plan.rhs, problem.rhs, 1, 2, rhsElements, plan.columns) +
                 transferNs(batch * double(problem.rows()) * double(problem.columns()), double(plan.columns),
                            problem.resultBytes);
    // Each chunk is two transfers; what is on chip hides their latency only as far as there are products to do.
    double steps = batch * rowBlocks * columnBlocks * chunks;
    plan.dmaNs = std::max(plan.dmaNs, steps * kTransferLatencyNs / double(kChunksOnChip - 1));
    // The first chunk of all is waited for, and the last block of the result.
    double first = (double(plan.depth) * double(plan.rows + plan.columns) * double(problem.elementBytes)) /
                   (model.dma().engineGbpsPlanning * model.topology().dmaEnginesPerCore);
    plan.tensorNs += first + kTransferLatencyNs;
    // A block leaves PSUM while the last chunk of its later rows is multiplied; what that does not hide, the next block
    // waits for.
    double blockRows = double(llvm::divideCeil(plan.rows, partitions));
    double leaving = blockRows * double(plan.columns) / (2 * model.vectorEngine().clockGhz);
    double hidden = (blockRows - 1) * double(llvm::divideCeil(std::min(plan.depth, problem.depth()), partitions)) *
                    double(plan.columns) * factor * perCycleNs;
    plan.tensorNs += batch * rowBlocks * columnBlocks * std::max(0.0, leaving - hidden);
  }

  const ContractProblem &problem;
  const MachineModel &model;
  ContractPlan base;
  int64_t partitions, bankColumns;
};

} // namespace

std::optional<ContractPlan> mlir::neuron::planContract(const ContractProblem &problem, const MachineModel &model) {
  return ContractPlanner(problem, model).run();
}

//===--------------------------------------------------------------------------------------------------------------===//
// Kernels
//===--------------------------------------------------------------------------------------------------------------===//

ContractOp mlir::neuron::findContract(ArrayRef<Operation *> ops) {
  for (Operation *op : ops)
    if (auto contract = dyn_cast<ContractOp>(op))
      return contract;
  return {};
}

namespace {

std::nullopt_t refuse(std::string *why, const char *reason) {
  if (why)
    *why = reason;
  return std::nullopt;
}

/// Which dimension of the product [batch, row, column] something with this stride in it belongs to.
unsigned classOf(int64_t stride, int64_t rows, int64_t columns) {
  return stride < columns ? 2 : stride < rows * columns ? 1 : 0;
}

} // namespace

std::optional<ContractKernelPlan> mlir::neuron::planContractKernel(ArrayRef<Operation *> ops, ArrayRef<Value> stored,
                                                                   IterationSpace::LayoutFn layoutOf,
                                                                   const MachineModel &model, std::string *why) {
  ContractOp contract = findContract(ops);
  Value product = contract.getResult();
  SmallVector<Operation *> others;
  llvm::DenseSet<Operation *> members(ops.begin(), ops.end());
  for (Operation *op : ops) {
    if (op == contract)
      continue;
    if (isa<ContractOp>(op))
      return refuse(why, "one kernel has one matrix product");
    if (!isElementwise(op) && !isa<ConstantOp, ReduceOp>(op))
      return refuse(why, "only elementwise operations and reductions follow a matrix product in its kernel");
    others.push_back(op);
  }
  for (Value operand : contract->getOperands())
    if (members.contains(viewSource(operand).getDefiningOp()))
      return refuse(why, "operands of a matrix product come from memory");

  ContractKernelPlan plan;
  ContractProblem problem;
  auto operandLayout = [&](Value operand) { return layoutInSource(operand, layoutOf(viewSource(operand))); };
  std::optional<StridedLayout> lhs = operandLayout(contract.getLhs()), rhs = operandLayout(contract.getRhs());
  if (!lhs || !rhs)
    return refuse(why, "operands of a matrix product need strides");
  problem.lhs = *lhs;
  problem.rhs = *rhs;
  Type element = cast<RankedTensorType>(contract.getLhs().getType()).getElementType();
  problem.elementBytes = elementBytes(element);
  problem.isF32 = element.isF32();
  problem.resultBytes = elementBytes(cast<RankedTensorType>(product.getType()).getElementType());
  int64_t rows = problem.rows(), columns = problem.columns();

  double epilogueNs = 0, epilogueDmaNs = 0;
  if (!others.empty()) {
    SmallVector<Value> written;
    for (Value value : stored)
      if (value != product)
        written.push_back(value);
    std::optional<IterationSpace> space = IterationSpace::build(others, written, layoutOf, why);
    if (!space)
      return std::nullopt;
    const HbmAccess *own = nullptr;
    for (const HbmAccess &read : space->reads)
      if (read.buffer == product) {
        if (own && (own->strides != read.strides || own->offset != read.offset))
          return refuse(why, "the product is read at several places at once");
        own = &read;
      }
    if (!own || own->offset != 0)
      return refuse(why, "the operation does not read the product element by element");
    for (size_t d = 0; d < space->sizes.size(); ++d) {
      int64_t stride = own->strides[d], reach = stride * space->sizes[d];
      unsigned kind = classOf(stride, rows, columns);
      if (stride <= 0 || (kind == 2 && reach > columns) || (kind == 1 && reach > rows * columns))
        return refuse(why, "the operation has other dimensions than the product");
    }
    space->mergeDims([&](unsigned outer, unsigned inner) {
      return classOf(own->strides[outer], rows, columns) == classOf(own->strides[inner], rows, columns);
    });
    int dims[3] = {-1, -1, -1};
    const int64_t sizes[3] = {problem.batch(), rows, columns};
    for (size_t d = 0; d < space->sizes.size(); ++d) {
      unsigned kind = classOf(own->strides[d], rows, columns);
      if (dims[kind] >= 0 || space->sizes[d] != sizes[kind])
        return refuse(why, "the operation walks a dimension of the product in several steps");
      dims[kind] = int(d);
    }
    if (dims[2] < 0)
      dims[2] = int(space->addUnitDim());
    plan.batchDim = dims[0];
    plan.rowDim = dims[1];
    plan.columnDim = dims[2];
    TilePlan &tiles = plan.epilogue;
    tiles.space = std::move(*space);
    tiles.roles.assign(tiles.space.numDims(), TilePlan::Role::Loop);
    tiles.tile.assign(tiles.space.numDims(), 1);
    tiles.roles[plan.columnDim] = TilePlan::Role::Free;
    tiles.free = {unsigned(plan.columnDim)};
    tiles.partition = plan.rowDim;
    if (plan.rowDim >= 0)
      tiles.roles[plan.rowDim] = TilePlan::Role::Partition;
    for (Operation *op : others) {
      tiles.places[op] = {};
      DimMask ended = tiles.space.reduced.lookup(op);
      if (ended & ~(DimMask(1) << plan.columnDim))
        return refuse(why, "of a matrix product only rows are reduced in its kernel");
      problem.wholeRows |= ended != 0;
    }
    tiles.storeLevels.assign(tiles.space.writes.size(), 0);
    // Two engines compute; each element of each operation takes a cycle of a lane.
    double elements = double(problem.batch()) * double(rows) * double(columns);
    double steps = 0;
    for (Operation *op : others)
      steps += isa<ConstantOp>(op) ? 0 : 1;
    epilogueNs = elements * steps / (double(model.memory().partitions) * 2 * model.vectorEngine().clockGhz);
    problem.epilogueBytesPerColumn = 4 * int64_t(steps + 1);
    auto traffic = [&](const HbmAccess &access) {
      double bytes = double(access.elementBytes);
      for (auto [size, stride] : llvm::zip(tiles.space.sizes, access.strides))
        bytes *= stride ? double(size) : 1;
      return bytes / (model.dma().engineGbpsPlanning * model.topology().dmaEnginesPerCore);
    };
    for (const HbmAccess &read : tiles.space.reads)
      epilogueDmaNs += read.buffer == product ? 0 : traffic(read);
    for (const HbmAccess &write : tiles.space.writes)
      epilogueDmaNs += traffic(write);
    if (!llvm::is_contained(stored, product))
      problem.resultBytes = 0; // counted with the writes
  }
  std::optional<ContractPlan> blocks = planContract(problem, model);
  if (!blocks)
    return refuse(why, "whole rows of the matrix product, which are reduced, do not fit on chip");
  plan.blocks = *blocks;
  // Nothing hides what is computed from the last block.
  double count = double(problem.batch()) * double(llvm::divideCeil(rows, plan.blocks.rows)) *
                 double(llvm::divideCeil(columns, plan.blocks.columns));
  plan.costNs = std::max({plan.blocks.tensorNs, plan.blocks.dmaNs + epilogueDmaNs, epilogueNs}) + epilogueNs / count;
  return plan;
}

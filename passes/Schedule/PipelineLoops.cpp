// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Engines run their streams in order, so an engine that works at the start and at the end of an iteration would wait
// for the other engines in between. Here the body of a loop is reordered such that the end of one iteration runs beside
// the start of the next (ModuloSchedule.h); the first and last iterations are completed outside of the loop.

#include "llvm/ADT/SetVector.h"

#include "dialects/NISA/NISAProgram.h"
#include "neuron/Isa/Cost.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Support/Interrupt.h"
#include "neuron/Support/Progress.h"
#include "passes/Schedule/ModuloSchedule.h"
#include "passes/Schedule/Passes.h"

namespace mlir::neuron {
#define GEN_PASS_DEF_PIPELINELOOPSPASS
#include "passes/Schedule/Passes.h.inc"
} // namespace mlir::neuron

using namespace mlir;
using namespace mlir::neuron;
namespace isa = ::neuroncore::isa;
namespace schedule = ::neuroncore::schedule;

namespace {

/// Bodies beyond this are not worth the quadratic search for dependences.
constexpr size_t kMaxInstructions = 200;

/// State inside an engine, as spaces of their own: what the tensor engine has loaded, and running row sums.
constexpr int64_t kStationary = 1000, kRunningSums = 1001;

/// A box of bytes that an instruction reads or writes: its hull, so never too small.
struct Access {
  int64_t space = 0; // on chip: the space; HBM: -1 - the variable or group of variables
  int64_t low = 0, high = INT64_MAX;
  int64_t firstPartition = 0, endPartition = 1;
  bool write = false;

  bool meets(const Access &other) const {
    return (write || other.write) && space == other.space && low < other.high && other.low < high &&
           firstPartition < other.endPartition && other.firstPartition < endPartition;
  }
};
using Accesses = SmallVector<Access, 4>;

Accesses accessesOf(const schedule::Instruction &instruction, const schedule::StructuredProgram &unit) {
  Accesses accesses;
  const isa::Instruction &code = instruction.code;
  const isa::InstructionInfo &info = isa::instructionInfo(code.opcode);
  const isa::TilePattern *source = nullptr;
  for (int slot = 0; slot < info.numTiles; ++slot) {
    const isa::TilePattern &tile = code.tiles[slot];
    if (!tile.present())
      continue;
    Access access;
    access.write = info.tiles[slot].writes();
    if (!access.write && !source)
      source = &tile;
    if (tile.space == isa::MemorySpace::Hbm) {
      unsigned variable = code.hbm[slot == 0 ? 0 : 1].variable;
      // Parameters of one run do not overlap what the run writes, but for a result that replaces an operand.
      int64_t group = variable;
      if (const schedule::VariableInfo *info = unit.operand(variable); info && info->aliasGroup >= 0)
        group = info->aliasGroup;
      access.space = -1 - group;
      accesses.push_back(access);
      continue;
    }
    int64_t low = 0, high = 0;
    for (int dim = 0; dim < isa::kMaxFreeDims; ++dim) {
      int64_t reach = int64_t(tile.step[dim]) * (tile.count[dim] - 1);
      (reach < 0 ? low : high) += reach;
    }
    int64_t bytes = isa::dtypeBytes(tile.dtype);
    access.space = static_cast<int64_t>(tile.space);
    access.low = tile.byteOffset + low * bytes;
    access.high = tile.byteOffset + (high + 1) * bytes;
    access.firstPartition = tile.startPartition;
    access.endPartition = tile.startPartition + tile.numPartitions;
    accesses.push_back(access);
  }
  auto addState = [&](int64_t space, bool write) {
    Access access;
    access.space = space;
    access.write = write;
    accesses.push_back(access);
  };
  if (instruction.engine == isa::Engine::Tensor)
    addState(kStationary, code.opcode == isa::Opcode::LoadStationary);
  // A complete row sum in one instruction may go anywhere but between the parts of one in several.
  if (code.reduceCommand != isa::ReduceCommand::Idle)
    addState(kRunningSums + static_cast<int64_t>(instruction.engine),
             code.reduceCommand != isa::ReduceCommand::ResetReduce);
  for (int slot = 0; slot < info.numScalars; ++slot) {
    const isa::ScalarOperand &scalar = code.scalars[slot];
    if (scalar.kind != isa::ScalarOperand::Kind::Vector)
      continue;
    Access access;
    access.space = static_cast<int64_t>(scalar.space);
    access.low = scalar.byteOffset;
    access.high = scalar.byteOffset + 4;
    access.firstPartition = source ? source->startPartition : 0;
    access.endPartition = source ? source->startPartition + source->numPartitions : 128;
    accesses.push_back(access);
  }
  return accesses;
}

bool conflict(const Accesses &a, const Accesses &b) {
  return llvm::any_of(a, [&](const Access &x) { return llvm::any_of(b, [&](const Access &y) { return x.meets(y); }); });
}

BodyInstruction describe(const schedule::Instruction &instruction, const ::neuroncore::target::MachineModel &model) {
  BodyInstruction result;
  result.stream = isa::streamIndex(instruction.engine);
  const isa::InstructionInfo &info = isa::instructionInfo(instruction.code.opcode);
  if (info.group == isa::Group::Dma) {
    isa::DmaCost cost = isa::dmaCost(model, instruction.engine, instruction.code);
    result.occupancy = cost.issuePs;
    result.transfer = cost.dataPs();
    result.latency = cost.dispatchPs + cost.dataPs() + cost.completionPs;
    result.load = instruction.code.tiles[0].space != isa::MemorySpace::Hbm;
    return result;
  }
  isa::ComputeCost cost = isa::computeCost(model, instruction.engine, instruction.code);
  result.occupancy = cost.occupancyPs;
  result.latency = cost.latencyPs + model.sync().engineToEngineSemaphorePs;
  return result;
}

/// Rewrites one loop.
class Pipeliner {
public:
  Pipeliner(nisa::LoopOp loop, const PipelinedOrder &found) : loop(loop), found(found), builder(loop) {
    for (Region &copy : loop.getCopies()) {
      auto &list = copies.emplace_back();
      for (Operation &op : copy.front())
        if (nisa::isInstruction(&op))
          list.push_back(&op);
    }
  }

  void run() {
    // Buffers of all copies are used by all of the new code.
    for (Region &copy : loop.getCopies())
      for (Operation &op : llvm::make_early_inc_range(copy.front()))
        if (isa<nisa::AllocOp>(op))
          op.moveBefore(loop);
    const int64_t last = found.stages - 1, trips = loop.getTrips();
    // Step s runs stage t of iteration s - t, as far as there is one.
    auto writeOut = [&](int64_t from, int64_t to) {
      for (int64_t step = from; step < to; ++step)
        for (const PipelinedOrder::Entry &entry : found.order)
          if (int64_t iteration = step - entry.stage; iteration >= 0 && iteration < trips)
            instantiate(entry.index, iteration, Value());
    };
    // Too few iterations for a loop.
    if (trips < int64_t(copies.size()) + last) {
      writeOut(0, trips + last);
      loop.erase();
      return;
    }
    writeOut(0, last);
    OperationState state(loop.getLoc(), nisa::LoopOp::getOperationName());
    state.addAttribute("trips", builder.getI64IntegerAttr(trips - last));
    for (size_t copy = 0; copy < copies.size(); ++copy)
      state.addRegion();
    auto target = cast<nisa::LoopOp>(builder.create(state));
    for (auto [number, region] : llvm::enumerate(target.getCopies())) {
      Block &block = region.emplaceBlock();
      Value counter = block.addArgument(builder.getIndexType(), loop.getLoc());
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToEnd(&block);
      for (const PipelinedOrder::Entry &entry : found.order)
        instantiate(entry.index, int64_t(number) + last - entry.stage, counter, last - entry.stage);
    }
    builder.setInsertionPointAfter(target);
    writeOut(trips, trips + last);
    loop.erase();
  }

private:
  /// A copy of instruction `index` on the buffers of the rotation that `iteration` uses. With a counter, it belongs to
  /// iteration counter + shift, otherwise to `iteration` itself.
  void instantiate(unsigned index, int64_t iteration, Value counter, int64_t shift = 0) {
    Operation *source = copies[iteration % copies.size()][index];
    Operation *op = builder.clone(*source);
    auto tiles = cast<ArrayAttr>(op->getAttr("tiles"));
    auto segments = cast<DenseI32ArrayAttr>(op->getAttr("operandSegmentSizes"));
    Value old = cast<nisa::LoopOp>(source->getParentOp()).getCopies()[iteration % copies.size()].getArgument(0);
    SmallVector<Value> operands(op->operand_begin(), op->operand_begin() + segments[0]);
    unsigned nextIv = segments[0];
    SmallVector<Attribute> newTiles;
    for (Attribute tile : tiles) {
      auto hbm = dyn_cast<nisa::HbmPatternAttr>(tile);
      if (!hbm) {
        newTiles.push_back(tile);
        continue;
      }
      int64_t offset = hbm.getByteOffset();
      SmallVector<int64_t> strides;
      for (int64_t stride : hbm.getIvStrides()) {
        Value iv = op->getOperand(nextIv++);
        if (iv != old) {
          operands.push_back(iv);
          strides.push_back(stride);
        } else if (counter) {
          offset += stride * shift;
          operands.push_back(counter);
          strides.push_back(stride);
        } else {
          offset += stride * iteration;
        }
      }
      newTiles.push_back(nisa::HbmPatternAttr::get(op->getContext(), offset, hbm.getDtype(), strides, hbm.getSteps(),
                                                   hbm.getCounts()));
    }
    op->setAttr("tiles", builder.getArrayAttr(newTiles));
    op->setAttr("operandSegmentSizes",
                builder.getDenseI32ArrayAttr({segments[0], static_cast<int32_t>(operands.size()) - segments[0]}));
    op->setOperands(operands);
  }

  nisa::LoopOp loop;
  const PipelinedOrder &found;
  OpBuilder builder;
  SmallVector<SmallVector<Operation *>> copies;
};

struct PipelineLoopsPass : neuron::impl::PipelineLoopsPassBase<PipelineLoopsPass> {
  using PipelineLoopsPassBase::PipelineLoopsPassBase;

  static void collect(const schedule::Sequence &sequence, ArrayRef<Operation *> ops,
                      llvm::DenseMap<Operation *, const schedule::Instruction *> &instructions) {
    for (const schedule::Node &node : sequence) {
      if (const auto *loop = std::get_if<std::unique_ptr<schedule::Loop>>(&node)) {
        for (const schedule::Sequence &copy : (*loop)->copies)
          collect(copy, ops, instructions);
      } else {
        const auto &instruction = std::get<schedule::Instruction>(node);
        instructions[ops[instruction.tag]] = &instruction;
      }
    }
  }

  void runOnOperation() override {
    const auto *model = ::neuroncore::target::MachineModel::builtin(target);
    if (!model) {
      getOperation().emitError() << "expected target trn1, trn2 or trn3 but got " << target;
      return signalPassFailure();
    }
    for (func::FuncOp function : nisa::findPrograms(getOperation())) {
      FailureOr<nisa::ProgramView> view = nisa::buildProgram(function);
      if (failed(view))
        return signalPassFailure();
      llvm::DenseMap<Operation *, const schedule::Instruction *> instructions;
      for (const schedule::StructuredProgram &unit : view->units)
        for (const schedule::Kernel &kernel : unit.kernels)
          collect(kernel.body, view->instructions, instructions);
      llvm::SetVector<nisa::LoopOp> loops;
      for (Operation *op : view->instructions)
        if (auto loop = op->getParentOfType<nisa::LoopOp>())
          if (loop.getCopies().size() > 1 &&
              llvm::none_of(loop.getCopies().front().front(), llvm::IsaPred<nisa::LoopOp>))
            loops.insert(loop);
      for (auto [number, loop] : llvm::enumerate(loops)) {
        ::neuroncore::reportStep("loop", number, loops.size());
        if (::neuroncore::interruptRequested())
          return signalPassFailure();
        rewrite(loop, instructions, view->units.front(), *model);
      }
    }
  }

  static void rewrite(nisa::LoopOp loop, const llvm::DenseMap<Operation *, const schedule::Instruction *> &instructions,
                      const schedule::StructuredProgram &unit, const ::neuroncore::target::MachineModel &model) {
    const int64_t numCopies = loop.getCopies().size();
    LoopBody body;
    SmallVector<SmallVector<Accesses>> accesses;
    for (Region &copy : loop.getCopies()) {
      auto &list = accesses.emplace_back();
      for (Operation &op : copy.front())
        if (auto it = instructions.find(&op); it != instructions.end()) {
          list.push_back(accessesOf(*it->second, unit));
          if (accesses.size() > 1)
            continue;
          body.instructions.push_back(describe(*it->second, model));
          // A product uses the weights that the instruction before it has loaded.
          if (list.size() > 1 && it->second->engine == isa::Engine::Tensor &&
              it->second->code.opcode != isa::Opcode::LoadStationary) {
            const BodyInstruction &before = body.instructions[list.size() - 2];
            body.instructions.back().attached =
                before.stream == body.instructions.back().stream && before.transfer == 0;
          }
        }
    }
    const size_t count = body.instructions.size();
    if (count == 0 || count > kMaxInstructions)
      return;
    // Weights and the products that use them stay together, so where all do, their groups may change places.
    const int tensor = isa::streamIndex(isa::Engine::Tensor);
    bool grouped = true;
    for (size_t index = 0; index < count; ++index)
      if (body.instructions[index].stream == tensor && !body.instructions[index].attached)
        grouped &= llvm::any_of(accesses.front()[index],
                                [](const Access &access) { return access.space == kStationary && access.write; });
    if (grouped)
      for (SmallVector<Accesses> &list : accesses)
        for (Accesses &of : list)
          llvm::erase_if(of, [](const Access &access) { return access.space == kStationary; });
    // Beyond a whole turn of the copies nothing new meets.
    for (unsigned from = 0; from < count; ++from)
      for (unsigned to = 0; to < count; ++to)
        for (int64_t distance = from < to ? 0 : 1; distance <= numCopies; ++distance)
          if (conflict(accesses[0][from], accesses[distance % numCopies][to]))
            body.dependences.push_back({from, to, distance});
    std::optional<PipelinedOrder> found = pipeline(body, std::min<int64_t>(numCopies, 3));
    if (!found)
      return;
    Pipeliner(loop, *found).run();
  }
};

} // namespace

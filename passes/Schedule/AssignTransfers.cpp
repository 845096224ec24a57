// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "neuron/Isa/Cost.h"
#include "neuron/Target/MachineModel.h"
#include "passes/Schedule/Passes.h"

namespace mlir::neuron {
#define GEN_PASS_DEF_ASSIGNTRANSFERSPASS
#include "passes/Schedule/Passes.h.inc"
} // namespace mlir::neuron

using namespace mlir;
using namespace mlir::neuron;
namespace isa = ::neuroncore::isa;

namespace {

class TransferAssigner {
public:
  explicit TransferAssigner(const ::neuroncore::target::MachineModel &model) : model(model) {}

  /// The kernels of one program, in order.
  void run(func::FuncOp program) {
    written.clear();
    for (nisa::KernelOp kernel : program.getOps<nisa::KernelOp>()) {
      nextQueue = 0;
      Block &body = kernel.getBody().front();
      runBlock(body);
      freeSyncEngine(body);
      kernel.walk([&](Operation *op) {
        if (isStore(op))
          written.insert(nisa::getSlotBuffers(op).front().buffer);
      });
    }
  }

private:
  static bool isStore(Operation *op) {
    return nisa::isTransfer(op) && nisa::getSpace(nisa::getSlotBuffers(op).front().buffer) == MemorySpace::Hbm;
  }

  /// `test` for some instruction of an operation of a block, which may be a loop.
  template <typename Test> static bool anyInstruction(Operation &op, Test test) {
    return op
        .walk([&](Operation *inner) {
          return nisa::isInstruction(inner) && test(inner) ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// The sync engine runs ahead only until it meets a transfer that has to wait. Loads of what earlier kernels
  /// computed, and stores of this kernel, wait for all that is before them; on the sync engine they would hold up the
  /// loads of the next kernel's weights. They go to the scalar engine where that has nothing to do meanwhile: before it
  /// computes for the first time and after the last.
  void freeSyncEngine(Block &body) {
    if (model.topology().hwDgeInstances == 0)
      return;
    auto usesScalar = [](Operation *op) { return nisa::getEngine(op) == isa::Engine::Scalar; };
    auto move = [&](Operation *op) {
      if (nisa::getEngine(op) == isa::Engine::Sync)
        nisa::setEngine(op, isa::Engine::Scalar);
    };
    for (Operation &op : body) {
      if (anyInstruction(op, usesScalar))
        break;
      if (isa<nisa::LoopOp>(op) && anyInstruction(op, isStore))
        continue;
      op.walk([&](Operation *inner) {
        if (nisa::isTransfer(inner) && !isStore(inner) && written.contains(nisa::getSlotBuffers(inner)[1].buffer))
          move(inner);
      });
    }
    for (Operation &op : llvm::reverse(body)) {
      if (isa<nisa::LoopOp>(op) ||
          anyInstruction(op, [&](Operation *inner) { return usesScalar(inner) && !nisa::isTransfer(inner); }))
        break;
      if (isStore(&op))
        move(&op);
    }
  }

  /// Modelled time each engine computes in one run of the block, nested loops left out.
  std::array<int64_t, isa::kNumStreams> loadOf(Block &block) {
    std::array<int64_t, isa::kNumStreams> load = {};
    for (Operation &op : block)
      if (nisa::isInstruction(&op) && !nisa::isTransfer(&op)) {
        isa::Engine engine = nisa::getEngine(&op);
        load[isa::streamIndex(engine)] += isa::computeCost(model, engine, nisa::getCode(&op)).occupancyPs;
      }
    return load;
  }

  void runBlock(Block &block) {
    std::array<int64_t, isa::kNumStreams> load = loadOf(block);
    llvm::DenseMap<Value, Operation *> writer;
    bool inLoop = isa<nisa::LoopOp>(block.getParentOp());
    for (Operation &op : block) {
      if (auto loop = dyn_cast<nisa::LoopOp>(op)) {
        for (Region &copy : loop.getCopies())
          runBlock(copy.front());
        continue;
      }
      if (!nisa::isInstruction(&op))
        continue;
      if (!nisa::isTransfer(&op)) {
        for (nisa::SlotBuffer slot : nisa::getSlotBuffers(&op))
          if (!slot.isScalar && slot.slot == 0)
            writer[slot.buffer] = &op;
        continue;
      }
      SmallVector<nisa::SlotBuffer> slots = nisa::getSlotBuffers(&op);
      bool isIndexed = slots.size() > 2; // their descriptors come from GpSimd
      assign(&op, isIndexed      ? isa::Engine::Gpsimd
                  : isStore(&op) ? storeEngine(&op, slots[1].buffer, load, writer, inLoop)
                                 : isa::Engine::Sync);
    }
  }

  isa::Engine storeEngine(Operation *op, Value source, const std::array<int64_t, isa::kNumStreams> &load,
                          const llvm::DenseMap<Value, Operation *> &writer, bool inLoop) {
    if (nisa::getSpace(source) == MemorySpace::Hbm || !inLoop)
      return isa::Engine::Sync;
    int64_t scalar = load[isa::streamIndex(isa::Engine::Scalar)], gpsimd = load[isa::streamIndex(isa::Engine::Gpsimd)];
    // GpSimd generates descriptors itself: of many short pieces it makes fewer than the DMA engines could move. A few
    // are made in the time that the transfer takes to start.
    isa::Instruction code = nisa::getCode(op);
    code.dgeMode = isa::DgeMode::Software;
    isa::DmaCost cost = isa::dmaCost(model, isa::Engine::Gpsimd, code);
    if (cost.generatorPs > std::max(cost.dataPs(), model.dma().dispatchSwdgePs))
      return isa::Engine::Scalar;
    if (gpsimd == 0)
      return isa::Engine::Gpsimd;
    if (Operation *producer = writer.lookup(source)) {
      isa::Engine engine = nisa::getEngine(producer);
      if (engine == isa::Engine::Scalar || engine == isa::Engine::Gpsimd)
        return engine;
    }
    return gpsimd < scalar ? isa::Engine::Gpsimd : isa::Engine::Scalar;
  }

  void assign(Operation *op, isa::Engine engine) {
    // Without hardware descriptor generation only GpSimd can trigger transfers with computed addresses.
    if (model.topology().hwDgeInstances == 0)
      engine = isa::Engine::Gpsimd;
    nisa::setEngine(op, engine);
    Builder b(op->getContext());
    NamedAttrList fields(cast<DictionaryAttr>(op->getAttr("fields")));
    fields.set("dge_mode", b.getStringAttr(engine == isa::Engine::Gpsimd ? "swdge" : "hwdge"));
    if (int64_t queue = nextQueue++ % model.topology().dmaQueuesPerEngine)
      fields.set("queue", b.getI64IntegerAttr(queue));
    else
      fields.erase("queue");
    op->setAttr("fields", fields.getDictionary(op->getContext()));
  }

  const ::neuroncore::target::MachineModel &model;
  int64_t nextQueue = 0;
  llvm::DenseSet<Value> written; // by kernels before the present one
};

struct AssignTransfersPass : neuron::impl::AssignTransfersPassBase<AssignTransfersPass> {
  using AssignTransfersPassBase::AssignTransfersPassBase;

  void runOnOperation() override {
    const auto *model = ::neuroncore::target::MachineModel::builtin(target);
    if (!model) {
      getOperation().emitError() << "expected target trn1, trn2 or trn3 but got " << target;
      return signalPassFailure();
    }
    TransferAssigner assigner(*model);
    getOperation().walk([&](func::FuncOp program) { assigner.run(program); });
  }
};

} // namespace

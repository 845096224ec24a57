// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/IR/IRMapping.h"

#include "neuron/Isa/Cost.h"
#include "passes/Schedule/BufferPlacement.h"
#include "passes/Schedule/Passes.h"

namespace mlir::neuron {
#define GEN_PASS_DEF_ROTATELOOPSPASS
#include "passes/Schedule/Passes.h.inc"
} // namespace mlir::neuron

using namespace mlir;
using namespace mlir::neuron;
namespace isa = ::neuroncore::isa;

namespace {

constexpr int64_t kMaxCopies = 4;

struct RotateLoopsPass : neuron::impl::RotateLoopsPassBase<RotateLoopsPass> {
  using RotateLoopsPassBase::RotateLoopsPassBase;

  /// How many iterations are under way at once: the latency of one over the time of its slowest stage.
  static int64_t wantedCopies(nisa::LoopOp loop, const ::neuroncore::target::MachineModel &model) {
    std::array<int64_t, isa::kNumStreams> engines = {};
    int64_t dma = 0, latency = 0;
    for (Operation &op : loop.getCopies().front().front()) {
      if (!nisa::isInstruction(&op))
        continue;
      isa::Engine engine = nisa::getEngine(&op);
      isa::Instruction code = nisa::getCode(&op);
      if (isa<nisa::DmaCopyOp, nisa::DmaTransposeOp>(op)) {
        isa::DmaCost cost = isa::dmaCost(model, engine, code);
        dma += cost.dataPs();
        latency += cost.dispatchPs + cost.dataPs() + cost.completionPs;
      } else {
        isa::ComputeCost cost = isa::computeCost(model, engine, code);
        engines[isa::streamIndex(engine)] += cost.occupancyPs;
        latency += cost.latencyPs;
      }
    }
    int64_t stage = std::max(dma, *llvm::max_element(engines));
    if (stage == 0)
      return 1;
    return std::clamp<int64_t>(llvm::divideCeil(latency, stage) + 1, 2, kMaxCopies);
  }

  static void rotate(nisa::LoopOp loop, int64_t copies) {
    OperationState state(loop.getLoc(), nisa::LoopOp::getOperationName());
    state.addAttributes(loop->getAttrs());
    for (int64_t i = 0; i < copies; ++i)
      state.addRegion();
    OpBuilder builder(loop);
    auto rotated = cast<nisa::LoopOp>(builder.create(state));
    Region &source = loop.getCopies().front();
    for (Region &target : rotated.getCopies().drop_front()) {
      IRMapping mapping;
      source.cloneInto(&target, mapping);
    }
    rotated.getCopies().front().takeBody(source);
    loop.erase();
  }

  void runOnOperation() override {
    const auto *model = ::neuroncore::target::MachineModel::builtin(target);
    if (!model) {
      getOperation().emitError() << "expected target trn1, trn2 or trn3 but got " << target;
      return signalPassFailure();
    }
    const int64_t sbuf = model->memory().sbufUsableBytesPerPartition, psum = model->memory().psumBytesPerPartition;
    getOperation().walk([&](nisa::KernelOp kernel) {
      SmallVector<nisa::LoopOp> loops;
      kernel.walk([&](nisa::LoopOp loop) {
        bool innermost = true, moves = false;
        for (Operation &op : loop.getCopies().front().front()) {
          innermost &= !isa<nisa::LoopOp>(op);
          moves |= isa<nisa::DmaCopyOp, nisa::DmaTransposeOp>(op);
        }
        if (innermost && moves && loop.getTrips() > 1 && loop.getCopies().size() == 1)
          loops.push_back(loop);
      });
      for (nisa::LoopOp loop : loops) {
        BufferPlacement placement(kernel);
        (void)placement.place(MemorySpace::Sbuf, BufferPlacement::Sharing::InCopy, INT64_MAX);
        int64_t whole = placement.bytesNeeded(), body = placement.bodyBytes(loop, MemorySpace::Sbuf);
        (void)placement.place(MemorySpace::Psum, BufferPlacement::Sharing::InCopy, INT64_MAX);
        int64_t wholePsum = placement.bytesNeeded(), bodyPsum = placement.bodyBytes(loop, MemorySpace::Psum);
        int64_t copies = std::min<int64_t>(wantedCopies(loop, *model), loop.getTrips());
        while (copies > 1 && (whole + (copies - 1) * body > sbuf || wholePsum + (copies - 1) * bodyPsum > psum))
          --copies;
        if (copies > 1)
          rotate(loop, copies);
      }
    });
  }
};

} // namespace

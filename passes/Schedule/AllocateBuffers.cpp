// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Schedule/BufferPlacement.h"
#include "passes/Schedule/Passes.h"

namespace mlir::neuron {
#define GEN_PASS_DEF_ALLOCATEBUFFERSPASS
#include "passes/Schedule/Passes.h.inc"
} // namespace mlir::neuron

using namespace mlir;
using namespace mlir::neuron;

namespace {

struct AllocateBuffersPass : neuron::impl::AllocateBuffersPassBase<AllocateBuffersPass> {
  using AllocateBuffersPassBase::AllocateBuffersPassBase;
  using Sharing = BufferPlacement::Sharing;

  /// `upper`: place from the other half of the memory when the kernel needs at most one half.
  LogicalResult allocate(nisa::KernelOp kernel, MemorySpace space, int64_t capacity, bool upper) {
    BufferPlacement placement(kernel);
    int64_t base = 0;
    std::optional<llvm::MapVector<nisa::AllocOp, int64_t>> addresses;
    // Spread buffers may leave no room for larger ones; then fewer are.
    for (Sharing sharing : {Sharing::None, Sharing::InCopy, Sharing::InPsumToo})
      for (int64_t part : {1, 8, 16, 32, 64, 0})
        if (!addresses)
          addresses = placement.place(space, sharing, capacity, part ? capacity / part : 0);
    if (!addresses) {
      kernel.emitOpError() << "needs " << placement.bytesNeeded() << " bytes per partition of "
                           << stringifyMemorySpace(space) << " but the target has " << capacity;
      return failure();
    }
    constexpr int64_t kAlignment = 2048; // a PSUM bank
    if (upper && placement.bytesNeeded() <= capacity / 2)
      base = llvm::alignDown(capacity / 2, kAlignment);
    if (base + placement.bytesNeeded() > capacity)
      base = 0;
    Builder b(kernel.getContext());
    for (auto &[alloc, address] : *addresses) {
      alloc.setAddressAttr(b.getI64IntegerAttr(base + address));
      alloc.setPartitionAttr(b.getI64IntegerAttr(0));
    }
    return success();
  }

  void runOnOperation() override {
    const auto *model = ::neuroncore::target::MachineModel::builtin(target);
    if (!model) {
      getOperation().emitError() << "expected target trn1, trn2 or trn3 but got " << target;
      return signalPassFailure();
    }
    bool upper = false, failedKernel = false;
    getOperation().walk([&](nisa::KernelOp kernel) {
      failedKernel |= failed(allocate(kernel, MemorySpace::Sbuf, model->memory().sbufUsableBytesPerPartition, upper));
      failedKernel |= failed(allocate(kernel, MemorySpace::Psum, model->memory().psumBytesPerPartition, upper));
      upper = !upper;
    });
    if (failedKernel)
      signalPassFailure();
  }
};

} // namespace

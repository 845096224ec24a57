// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "passes/Schedule/BufferPlacement.h"
#include "passes/Schedule/Passes.h"

namespace mlir::neuron {
#define GEN_PASS_DEF_ALLOCATEBUFFERSPASS
#include "passes/Schedule/Passes.h.inc"
} // namespace mlir::neuron

using namespace mlir;
using namespace mlir::neuron;

namespace {

/// Bytes of a PSUM bank in a partition.
constexpr int64_t kBank = 2048;

struct AllocateBuffersPass : neuron::impl::AllocateBuffersPassBase<AllocateBuffersPass> {
  using AllocateBuffersPassBase::AllocateBuffersPassBase;
  using Sharing = BufferPlacement::Sharing;

  using Addresses = std::optional<llvm::MapVector<nisa::AllocOp, int64_t>>;

  /// Spread buffers may leave no room for larger ones; then fewer are.
  static Addresses place(BufferPlacement &placement, MemorySpace space, int64_t capacity, ArrayRef<Sharing> sharings) {
    Addresses addresses;
    for (Sharing sharing : sharings) {
      if (!addresses && space == MemorySpace::Psum && sharing == Sharing::InCopy)
        addresses = placement.placeApart(space, sharing, capacity, kBank / 2, capacity / 4);
      for (int64_t part : {1, 8, 16, 32, 64, 0}) {
        if (!addresses && part == 0)
          addresses = placement.place(space, sharing, capacity, capacity, /*longFirst=*/true);
        if (!addresses)
          addresses = placement.place(space, sharing, capacity, part ? capacity / part : 0);
      }
    }
    return addresses;
  }

  /// `neighbours`: other kernels follow or precede, and one half of the memory is for them where the kernel loses
  /// nothing by it; the upper half is the kernel's own if `upper`.
  LogicalResult allocate(nisa::KernelOp kernel, MemorySpace space, int64_t capacity, bool neighbours, bool upper) {
    BufferPlacement placement(kernel);
    int64_t base = 0;
    Addresses addresses;
    if (neighbours)
      addresses = place(placement, space, llvm::alignDown(capacity / 2, kBank), {Sharing::None});
    if (!addresses)
      addresses = place(placement, space, capacity, {Sharing::None, Sharing::InCopy, Sharing::InPsumToo});
    if (!addresses) {
      kernel.emitOpError() << "needs " << placement.bytesNeeded() << " bytes per partition of "
                           << stringifyMemorySpace(space) << " but the target has " << capacity;
      return failure();
    }
    if (upper && placement.bytesNeeded() <= capacity / 2)
      base = llvm::alignDown(capacity / 2, kBank);
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
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      bool neighbours = !llvm::hasNItemsOrLess(function.getOps<nisa::KernelOp>(), 1);
      for (nisa::KernelOp kernel : function.getOps<nisa::KernelOp>()) {
        failedKernel |=
            failed(allocate(kernel, MemorySpace::Sbuf, model->memory().sbufUsableBytesPerPartition, neighbours, upper));
        failedKernel |=
            failed(allocate(kernel, MemorySpace::Psum, model->memory().psumBytesPerPartition, neighbours, upper));
        upper = !upper;
      }
    }
    if (failedKernel)
      signalPassFailure();
  }
};

} // namespace

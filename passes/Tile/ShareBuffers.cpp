// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Buffers between kernels take over the memory of earlier ones that nobody needs any more, and the whole has to fit in
// the memory of a core.

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

#include "dialects/Neuron/NeuronOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "neuron/Target/MachineModel.h"
#include "passes/Tile/Passes.h"

namespace mlir::neuron {
#define GEN_PASS_DEF_SHAREBUFFERSPASS
#include "passes/Tile/Passes.h.inc"
} // namespace mlir::neuron

using namespace mlir;
using namespace mlir::neuron;

namespace {

/// A kernel may run beside the one before it. One that lies between the last use of a buffer and the first use of its
/// successor keeps the two from waiting for each other.
constexpr int kDistance = 2;
constexpr unsigned kCulprits = 3;

int64_t bytesOf(Type type) {
  auto buffer = cast<MemRefType>(type);
  return buffer.getNumElements() * elementBytes(buffer.getElementType());
}

/// First and last operation of the function, by position, that use a buffer.
struct Life {
  int first = INT_MAX, last = -1;
};

void shareBuffers(func::FuncOp function) {
  Block &body = function.getBody().front();
  llvm::DenseMap<Operation *, int> position;
  int number = 0;
  for (Operation &op : body)
    position[&op] = number++;
  llvm::MapVector<memref::AllocOp, Life> lives;
  for (auto alloc : body.getOps<memref::AllocOp>()) {
    if (alloc->hasAttr("neuron.value"))
      continue;
    Life life;
    for (Operation *user : alloc->getUsers()) {
      int at = position.lookup(body.findAncestorOpInBlock(*user));
      life.first = std::min(life.first, at);
      life.last = std::max(life.last, at);
    }
    if (life.last >= 0)
      lives[alloc] = life;
  }
  auto ordered = lives.takeVector();
  llvm::stable_sort(ordered, [](auto &a, auto &b) { return a.second.first < b.second.first; });
  llvm::DenseMap<Type, SmallVector<std::pair<memref::AllocOp, int>>> owners; // and the end of their last use
  for (auto &[alloc, life] : ordered) {
    auto &candidates = owners[alloc.getType()];
    auto found =
        llvm::find_if(candidates, [&, first = life.first](auto &owner) { return owner.second + kDistance <= first; });
    if (found == candidates.end()) {
      candidates.push_back({alloc, life.last});
      continue;
    }
    found->second = life.last;
    alloc.getResult().replaceAllUsesWith(found->first.getResult());
    alloc.erase();
  }
}

std::string gibibytes(int64_t bytes) { return llvm::formatv("{0:f2} GiB", double(bytes) / double(int64_t(1) << 30)); }

LogicalResult checkMemory(ModuleOp module, int64_t capacity) {
  // Arguments of called functions are buffers of the caller.
  int64_t operands = 0, between = 0;
  SmallVector<memref::AllocOp> allocs;
  func::FuncOp program;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isPrivate()) {
      program = function;
      llvm::SmallDenseSet<StringRef> names;
      for (BlockArgument argument : function.getArguments()) {
        unsigned index = argument.getArgNumber();
        auto name = function.getArgAttrOfType<StringAttr>(index, attribute::kName);
        // A result that replaces an argument is the argument's memory, and one variable may have several views.
        if (function.getArgAttr(index, attribute::kAliasOf) || (name && !names.insert(name.getValue()).second))
          continue;
        operands += bytesOf(argument.getType());
      }
    }
  module.walk([&](memref::AllocOp alloc) {
    between += bytesOf(alloc.getType());
    allocs.push_back(alloc);
  });
  if (!program || operands + between <= capacity)
    return success();
  auto diagnostic =
      program.emitError() << "expected a graph that takes at most the " << gibibytes(capacity)
                          << " of HBM of a core but got " << gibibytes(operands + between) << ": "
                          << gibibytes(operands) << " of inputs and outputs and " << gibibytes(between)
                          << " between kernels; compile smaller parts, use smaller batches or 16-bit types";
  llvm::stable_sort(allocs, [](auto a, auto b) { return bytesOf(a.getType()) > bytesOf(b.getType()); });
  for (memref::AllocOp alloc : ArrayRef(allocs).take_front(kCulprits))
    diagnostic.attachNote(alloc.getLoc()) << gibibytes(bytesOf(alloc.getType())) << " for a value between kernels";
  return diagnostic;
}

struct ShareBuffersPass : neuron::impl::ShareBuffersPassBase<ShareBuffersPass> {
  using ShareBuffersPassBase::ShareBuffersPassBase;

  void runOnOperation() override {
    const auto *model = ::neuroncore::target::MachineModel::builtin(target);
    if (!model) {
      getOperation().emitError() << "expected target trn1, trn2 or trn3 but got " << target;
      return signalPassFailure();
    }
    for (auto function : getOperation().getOps<func::FuncOp>())
      shareBuffers(function);
    // Cores have equal shares of the device's memory.
    int64_t capacity = model->topology().hbmCapacityDeviceBytes / model->topology().neuronCoresPerDevice;
    if (failed(checkMemory(getOperation(), capacity)))
      signalPassFailure();
  }
};

} // namespace

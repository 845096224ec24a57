// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/Neuron/NeuronAttentionOps.h"
#include "dialects/Neuron/NeuronIndexingOps.h"
#include "dialects/Neuron/NeuronViews.h"
#include "passes/Graph/Passes.h"

namespace mlir::neuron {
#define GEN_PASS_DEF_VERIFYGRAPHPASS
#include "passes/Graph/Passes.h.inc"
} // namespace mlir::neuron

using namespace mlir;
using namespace mlir::neuron;

namespace {

constexpr int64_t kMaxRank = 8;

bool isWholeTensorOp(Operation *op) {
  return isElementwise(op) || isView(op) || isa<GatherOp, ScatterOp>(op) ||
         isa<ConstantOp, IotaOp, RandomOp, ReduceOp, ArgReduceOp, ScanOp, ConcatOp, InsertOp, ContractOp, AttentionOp,
             AttentionBackwardOp, CallOp>(op);
}

/// Sorted by stride, each dimension reaches past all smaller ones.
bool elementsOverlap(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  SmallVector<int64_t> order;
  for (auto [d, size] : llvm::enumerate(sizes)) {
    if (size == 0)
      return false;
    if (size != 1)
      order.push_back(d);
  }
  llvm::sort(order, [&](int64_t a, int64_t b) { return strides[a] < strides[b]; });
  int64_t reach = 0;
  for (int64_t d : order) {
    if (strides[d] <= reach)
      return true;
    reach += (sizes[d] - 1) * strides[d];
  }
  return false;
}

LogicalResult verifyType(Operation *op, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() || tensor.getRank() > kMaxRank)
    return op->emitOpError() << "graph contract g2: expected a tensor of static shape and at most " << kMaxRank
                             << " dimensions but got " << type;
  return success();
}

LogicalResult verifyMemory(func::FuncOp function, StringRef what, unsigned position, Type type,
                           DictionaryAttr attributes) {
  auto strides = attributes ? attributes.getAs<DenseI64ArrayAttr>(attribute::kStrides) : DenseI64ArrayAttr();
  auto tensor = cast<RankedTensorType>(type);
  if (!strides || static_cast<int64_t>(strides.size()) != tensor.getRank())
    return function.emitOpError() << "graph contract g3: expected " << what << " " << position << " to have "
                                  << attribute::kStrides << " with " << tensor.getRank() << " strides";
  if (!attributes.getAs<StringAttr>(attribute::kName))
    return function.emitOpError() << "graph contract g3: expected " << what << " " << position << " to have "
                                  << attribute::kName;
  if (what == "result" && elementsOverlap(tensor.getShape(), strides.asArrayRef()))
    return function.emitOpError() << "graph contract g4: expected the elements of result " << position
                                  << " not to overlap in memory";
  return success();
}

struct VerifyGraphPass : neuron::impl::VerifyGraphPassBase<VerifyGraphPass> {
  void runOnOperation() override {
    if (failed(verifyBody(getOperation())) || failed(verifySignature(getOperation())))
      signalPassFailure();
  }

  static LogicalResult verifyBody(func::FuncOp function) {
    if (!function.getBody().hasOneBlock())
      return function.emitOpError() << "graph contract g1: expected one block";
    for (Operation &op : function.getBody().front()) {
      if (isa<func::ReturnOp>(op))
        continue;
      if (!isWholeTensorOp(&op))
        return op.emitOpError() << "graph contract g1: expected whole-tensor neuron operations only";
      for (Type type : op.getResultTypes())
        if (failed(verifyType(&op, type)))
          return failure();
    }
    for (Type type : function.getArgumentTypes())
      if (failed(verifyType(function, type)))
        return failure();
    return success();
  }

  static LogicalResult verifySignature(func::FuncOp function) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (failed(verifyMemory(function, "argument", i, function.getArgument(i).getType(), function.getArgAttrDict(i))))
        return failure();
    llvm::SmallDenseSet<int64_t> replaced;
    for (unsigned k = 0; k < function.getNumResults(); ++k) {
      Type type = function.getResultTypes()[k];
      if (failed(verifyMemory(function, "result", k, type, function.getResultAttrDict(k))))
        return failure();
      auto alias = function.getResultAttrOfType<IntegerAttr>(k, attribute::kAliasOf);
      if (!alias)
        continue;
      int64_t argument = alias.getInt();
      if (argument < 0 || argument >= static_cast<int64_t>(function.getNumArguments()) ||
          function.getArgument(argument).getType() != type || !replaced.insert(argument).second)
        return function.emitOpError() << "graph contract g5: expected result " << k
                                      << " to replace an argument of its type that no other result replaces but got "
                                      << argument;
    }
    return success();
  }
};

} // namespace

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes every value addressable and every result a stored one, groups the operations (Grouping.cpp) and outlines the
// groups into neuron.kernel.

#include <limits>

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

#include "dialects/Neuron/NeuronAttentionOps.h"
#include "dialects/Neuron/NeuronIndexingOps.h"
#include "neuron/Support/Interrupt.h"
#include "passes/Kernels/Grouping.h"
#include "passes/Kernels/LongRows.h"
#include "passes/Kernels/NarrowAssembly.h"
#include "passes/Kernels/OrderScatters.h"
#include "passes/Kernels/Passes.h"
#include "passes/Kernels/SeparateCasts.h"

namespace mlir::neuron {
#define GEN_PASS_DEF_FORMKERNELSPASS
#include "passes/Kernels/Passes.h.inc"
} // namespace mlir::neuron

using namespace mlir;
using namespace mlir::neuron;

namespace {

Value copyOf(OpBuilder &builder, Value value) {
  return UnaryOp::create(builder, value.getLoc(), value.getType(), UnaryFunction::Copy, value);
}

bool isEmpty(Value value) { return cast<RankedTensorType>(value.getType()).getNumElements() == 0; }

/// What a reduction of nothing gives.
Value neutralElement(OpBuilder &builder, ReduceOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  Type element = type.getElementType();
  double value = op.getKind() == ReduceKind::Prod ? 1 : 0;
  if (isa<FloatType>(element)) {
    if (op.getKind() == ReduceKind::Max)
      value = -std::numeric_limits<double>::infinity();
    if (op.getKind() == ReduceKind::Min)
      value = std::numeric_limits<double>::infinity();
  } else if (op.getKind() == ReduceKind::And) {
    value = element.isInteger(1) ? 1 : -1;
  }
  return ConstantOp::create(builder, op.getLoc(), type, value);
}

/// Tensors without elements need no work: what is computed from them is a constant or what else there is.
void dropEmptyTensors(func::FuncOp function) {
  SmallVector<Operation *> ops;
  for (Operation &op : function.getBody().front().without_terminator())
    ops.push_back(&op);
  for (Operation *op : ops) {
    OpBuilder builder(op);
    if (op->getNumResults() != 1 || isEmpty(op->getResult(0)) || !llvm::any_of(op->getOperands(), isEmpty))
      continue;
    Value result = op->getResult(0), replacement;
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      replacement = neutralElement(builder, reduce);
    } else if (auto concat = dyn_cast<ConcatOp>(op)) {
      SmallVector<Value> operands;
      for (Value operand : concat.getOperands())
        if (!isEmpty(operand))
          operands.push_back(operand);
      replacement =
          operands.size() == 1
              ? operands.front()
              : ConcatOp::create(builder, op->getLoc(), result.getType(), operands, concat.getDim()).getResult();
    } else if (auto insert = dyn_cast<InsertOp>(op)) {
      replacement = insert.getDestination();
    } else if (auto scatter = dyn_cast<ScatterOp>(op)) {
      replacement = scatter.getDestination();
    } else if (isa<ContractOp>(op)) {
      replacement = ConstantOp::create(builder, op->getLoc(), cast<RankedTensorType>(result.getType()), 0.0);
    }
    if (replacement) {
      result.replaceAllUsesWith(replacement);
      op->erase();
    }
  }
  // Results without elements stay as they are: constants that nobody stores.
  ops.clear();
  for (Operation &op : function.getBody().front().without_terminator())
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops)) {
    for (Value result : op->getResults())
      if (isEmpty(result) && !isa<ConstantOp>(op) && !result.use_empty()) {
        OpBuilder builder(op);
        auto type = cast<RankedTensorType>(result.getType());
        Value empty = ConstantOp::create(builder, op->getLoc(), type,
                                         cast<ElementsAttr>(DenseElementsAttr::get(type, ArrayRef<Attribute>())));
        result.replaceAllUsesWith(empty);
      }
    if (op->use_empty() && isMemoryEffectFree(op) && llvm::all_of(op->getResults(), isEmpty) && op->getNumResults())
      op->erase();
  }
}

/// What nobody needs, most often because it was for a tensor without elements.
void dropUnused(func::FuncOp function) {
  SmallVector<Operation *> ops;
  for (Operation &op : function.getBody().front().without_terminator())
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty() && isMemoryEffectFree(op))
      op->erase();
}

/// `value`, by way of copies where strides cannot express a view on the way to it.
Value addressable(OpBuilder &builder, Value value) {
  SmallVector<Operation *> chain;
  Value source = value;
  for (; source.getDefiningOp() && isView(source.getDefiningOp()); source = source.getDefiningOp()->getOperand(0))
    chain.push_back(source.getDefiningOp());
  // What kernels make anew has no address.
  if (source.getDefiningOp() && isRematerialized(source.getDefiningOp()))
    return copyOf(builder, value);
  StridedLayout layout = bufferLayout(source);
  Value current = source;
  for (Operation *view : llvm::reverse(chain)) {
    std::optional<StridedLayout> next = applyView(view, layout);
    if (!next) {
      current = copyOf(builder, current);
      next = applyView(view, StridedLayout::contiguous(cast<RankedTensorType>(current.getType()).getShape()));
    }
    layout = std::move(*next);
    if (current == view->getOperand(0)) {
      current = view->getResult(0);
      continue;
    }
    IRMapping mapping;
    mapping.map(view->getOperand(0), current);
    current = builder.clone(*view, mapping)->getResult(0);
  }
  return current;
}

/// A slice (or as_strided) of what has no address by strides needs its operand in memory.
void materializeReshapes(func::FuncOp function) {
  SmallVector<Operation *> views;
  function.walk([&](Operation *op) {
    if (isa<SliceOp, AsStridedOp>(op))
      views.push_back(op);
  });
  for (Operation *view : views) {
    OpBuilder builder(view);
    Value operand = view->getOperand(0), source = viewSource(operand);
    if (source.getDefiningOp() && isRematerialized(source.getDefiningOp())) {
      view->setOperand(0, copyOf(builder, operand));
      continue;
    }
    operand = addressable(builder, operand);
    if (!applyView(view, *layoutInSource(operand, bufferLayout(viewSource(operand)))))
      operand = copyOf(builder, operand);
    view->setOperand(0, operand);
  }
}

/// The order of elements in memory is kept by `value` relative to its source (reshapes and transposes only).
bool isRearrangement(Value value) {
  while (Operation *definition = value.getDefiningOp()) {
    if (!isView(definition))
      return true;
    if (!isa<ReshapeOp, TransposeOp>(definition))
      return false;
    value = definition->getOperand(0);
  }
  return true;
}

/// Indices are checked against the end of the buffer, so a value that is gathered from has to be the whole of it. Rows
/// in few pieces also keep the address within its terms.
bool isIndexable(Value value, const StridedLayout &layout) {
  return isRearrangement(value) && (layout.sizes.size() <= 4 || layout.isContiguous());
}

/// Operations that move data as it lies in memory need operands in memory: constants and index sequences, and views
/// that strides cannot express, are computed into a buffer first.
void materializeOperands(func::FuncOp function) {
  SmallVector<OpOperand *> operands;
  function.walk([&](Operation *op) {
    if (isa<ConcatOp, InsertOp, GatherOp, ScatterOp, ContractOp, AttentionOp, AttentionBackwardOp>(op))
      for (OpOperand &operand : op->getOpOperands())
        operands.push_back(&operand);
  });
  for (OpOperand *operand : operands) {
    if (isEmpty(operand->get()))
      continue;
    OpBuilder builder(operand->getOwner());
    Value source = viewSource(operand->get());
    bool inMemory = !source.getDefiningOp<ConstantOp>() && !source.getDefiningOp<IotaOp>();
    Value value = inMemory ? addressable(builder, operand->get()) : copyOf(builder, operand->get());
    if (isa<GatherOp>(operand->getOwner()) && operand->getOperandNumber() == 0 &&
        !isIndexable(value, *layoutInSource(value, bufferLayout(viewSource(value)))))
      value = copyOf(builder, value);
    operand->set(value);
  }
}

/// A call hands over whole buffers, which the callee reads with strides it knows. Where a value does not lie like that
/// it is copied; buffers between kernels are row-major.
void materializeCallOperands(func::FuncOp function) {
  function.walk([](CallOp call) {
    for (OpOperand &operand : call->getOpOperands()) {
      Value value = operand.get(), source = viewSource(value);
      Operation *definition = source.getDefiningOp();
      ArrayRef<int64_t> wanted = call.getStridesOf(operand.getOperandNumber());
      std::optional<StridedLayout> layout;
      if (!definition || !isRematerialized(definition))
        layout = layoutInSource(value, bufferLayout(source));
      bool fits = layout && layout->offset == 0;
      for (size_t d = 0; fits && d < layout->sizes.size(); ++d)
        fits = layout->sizes[d] == 1 || layout->strides[d] == wanted[d];
      if (fits)
        continue;
      // As early as possible, so that calls of one function follow each other.
      OpBuilder builder(call);
      builder.setInsertionPointAfterValue(value);
      operand.set(copyOf(builder, value));
    }
  });
}

/// Whether strides can express all views of `source` that are used, if it is stored as `layout`.
bool viewsFit(Value source, const StridedLayout &layout) {
  SmallVector<Value> work = {source};
  while (!work.empty()) {
    Value value = work.pop_back_val();
    for (Operation *user : value.getUsers()) {
      if (!isView(user))
        continue;
      if (!layoutInSource(user->getResult(0), layout))
        return false;
      work.push_back(user->getResult(0));
    }
  }
  return true;
}

/// Each returned value gets a stored value of its own, in the layout the caller asks for.
void storeResults(func::FuncOp function) {
  auto ret = cast<func::ReturnOp>(function.getBody().front().getTerminator());
  OpBuilder builder(ret);
  llvm::DenseSet<Value> taken;
  for (OpOperand &operand : ret->getOpOperands()) {
    Value value = operand.get(), source = viewSource(value);
    if (isEmpty(value))
      continue;
    Operation *definition = source.getDefiningOp();
    bool computed = definition && !isa<ConstantOp, IotaOp>(definition);
    bool direct = value == source;
    if (auto wanted = function.getResultAttrOfType<DenseI64ArrayAttr>(operand.getOperandNumber(), attribute::kStrides);
        direct && wanted) {
      StridedLayout layout = StridedLayout::contiguous(cast<RankedTensorType>(value.getType()).getShape());
      layout.strides.assign(wanted.asArrayRef().begin(), wanted.asArrayRef().end());
      direct = viewsFit(source, layout);
    }
    // A call stores its results row by row.
    if (direct && isa_and_nonnull<CallOp>(definition))
      direct = bufferLayout(value).isContiguous();
    if (computed && !direct && isRearrangement(value)) {
      // The source may be stored as the view asks for when the view of a contiguous source has just those strides.
      auto wanted = function.getResultAttrOfType<DenseI64ArrayAttr>(operand.getOperandNumber(), attribute::kStrides);
      auto shape = cast<RankedTensorType>(value.getType()).getShape();
      SmallVector<int64_t> strides = wanted ? SmallVector<int64_t>(wanted.asArrayRef()) : contiguousStrides(shape);
      auto layout =
          layoutInSource(value, StridedLayout::contiguous(cast<RankedTensorType>(source.getType()).getShape()));
      direct = layout && layout->offset == 0;
      for (size_t d = 0; direct && d < shape.size(); ++d)
        direct = shape[d] == 1 || layout->strides[d] == strides[d];
    }
    if (computed && direct && taken.insert(source).second)
      continue;
    Value copy = copyOf(builder, value);
    taken.insert(copy);
    operand.set(copy);
  }
}

/// The first view between a buffer and `value` whose result the layout cannot address, or null.
Operation *firstBeyond(Value value, const StridedLayout &layout) {
  Operation *found = nullptr;
  for (Value source = viewSource(value); value != source; value = value.getDefiningOp()->getOperand(0))
    if (!layoutInSource(value, layout))
      found = value.getDefiningOp();
  return found;
}

/// The view between an operand and its source before which the value has to be in memory, or null.
Operation *firstObstacle(Value operand) {
  Value source = viewSource(operand);
  if (Operation *definition = source.getDefiningOp(); definition && isRematerialized(definition)) {
    // Made anew in the kernel, where values pass reshapes, transposes and broadcasts only.
    Operation *found = nullptr;
    for (Value value = operand; value != source; value = value.getDefiningOp()->getOperand(0))
      if (Operation *view = value.getDefiningOp(); !isTransparentView(view))
        found = view;
    return found;
  }
  return firstBeyond(operand, bufferLayout(source));
}

/// Every operation needs an iteration space of its own, at least. An argument with strides, or what is made anew in
/// each kernel, may be seen through views that neither strides nor common dimensions express; it is copied in between.
void materializeViews(func::FuncOp function) {
  SmallVector<Operation *> work;
  function.walk([&](Operation *op) {
    if (isElementwise(op) || isa<ReduceOp, ArgReduceOp, ScanOp>(op))
      work.push_back(op);
  });
  while (!work.empty()) {
    Operation *op = work.back();
    SmallVector<Operation *> ops;
    for (Value operand : op->getOperands())
      if (Operation *source = viewSource(operand).getDefiningOp();
          source && isRematerialized(source) && !llvm::is_contained(ops, source))
        ops.push_back(source);
    ops.push_back(op);
    Operation *obstacle = nullptr;
    std::optional<IterationSpace> space =
        IterationSpace::build(ops, SmallVector<Value>(op->getResults()), bufferLayout);
    if (space)
      space->mergeDims();
    // A scan walks one dimension.
    if (!space || (isa<ScanOp>(op) && llvm::popcount(space->reduced.lookup(op)) > 1))
      for (Value operand : op->getOperands())
        if (!obstacle && !isEmpty(operand))
          obstacle = firstObstacle(operand);
    if (!obstacle) {
      work.pop_back();
      continue;
    }
    OpBuilder builder(obstacle);
    Value copy = copyOf(builder, obstacle->getOperand(0));
    obstacle->setOperand(0, copy);
    work.push_back(copy.getDefiningOp());
  }
}

/// What may share a kernel with a random operation because it needs its value, in program order; the operation first.
SmallVector<Operation *> dependents(RandomOp random) {
  llvm::SetVector<Operation *> found;
  found.insert(random);
  SmallVector<Value> work = {random.getResult()};
  while (!work.empty()) {
    Value value = work.pop_back_val();
    for (Operation *user : value.getUsers()) {
      if (isView(user))
        work.push_back(user->getResult(0));
      else if ((isElementwise(user) || isa<ReduceOp, ArgReduceOp, ScanOp>(user)) && found.insert(user))
        work.push_back(user->getResult(0));
    }
  }
  SmallVector<Operation *> ops = found.takeVector();
  llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ops;
}

/// Whether everything around a random operation favours the dimension along which its elements are numbered one by one:
/// a tile of them is drawn as consecutive numbers along the free axis.
bool isDrawnInOrder(RandomOp random) {
  SmallVector<Operation *> ops = dependents(random), all;
  llvm::SetVector<Operation *> sources;
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (Operation *source = viewSource(operand).getDefiningOp(); source && isRematerialized(source))
        sources.insert(source);
  all = sources.takeVector();
  llvm::append_range(all, ops);
  llvm::sort(all, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  SmallVector<Value> results;
  auto ret = cast<func::ReturnOp>(random->getBlock()->getTerminator());
  for (Value value : ret.getOperands())
    if (Operation *definition = value.getDefiningOp(); definition && llvm::is_contained(ops, definition))
      results.push_back(value);
  auto layoutOf = [&](Value buffer) {
    StridedLayout layout = bufferLayout(buffer);
    for (OpOperand &operand : ret->getOpOperands())
      if (operand.get() == buffer)
        if (auto strides = ret->getParentOfType<func::FuncOp>().getResultAttrOfType<DenseI64ArrayAttr>(
                operand.getOperandNumber(), attribute::kStrides))
          layout.strides.assign(strides.asArrayRef().begin(), strides.asArrayRef().end());
    return layout;
  };
  std::optional<IterationSpace> space = IterationSpace::build(all, results, layoutOf);
  // What has no common space is stored in between.
  if (!space)
    return true;
  space->mergeDims();
  const IndexFunction &index = space->indices.find(random)->second;
  int innermost = -1;
  DimMask own = 0;
  for (auto [d, coefficient] : llvm::enumerate(index.coefficients))
    if (coefficient != 0) {
      own |= DimMask(1) << d;
      if (innermost < 0 || coefficient < index.coefficients[innermost])
        innermost = static_cast<int>(d);
    }
  if (innermost < 0)
    return true;
  auto favours = [&](const HbmAccess &access) {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (auto [d, stride] : llvm::enumerate(access.strides))
      if (own >> d & 1 && stride != 0)
        least = std::min(least, std::abs(stride));
    int64_t along = std::abs(access.strides[innermost]);
    return along == 0 || along == least;
  };
  auto keepsRows = [&](const auto &entry) { return !(entry.second & own) || entry.second >> innermost & 1; };
  return llvm::all_of(space->reads, favours) && llvm::all_of(space->writes, favours) &&
         llvm::all_of(space->reduced, keepsRows);
}

/// Random numbers whose users would walk them out of order are drawn in a kernel of their own, which a movement of data
/// separates from theirs. So is the kernel that computes a generator's state, which is loaded into every partition.
void isolateRandom(func::FuncOp function) {
  SmallVector<RandomOp> ops;
  function.walk([&](RandomOp op) { ops.push_back(op); });
  for (RandomOp op : ops) {
    if (isEmpty(op.getResult()))
      continue;
    OpBuilder builder(op);
    OpOperand &state = op.getStateMutable();
    if (isa_and_nonnull<UnaryOp, BinaryOp, CompareOp, SelectOp, CastOp, ReduceOp, ScanOp>(
            viewSource(state.get()).getDefiningOp()))
      state.set(ConcatOp::create(builder, op.getLoc(), state.get().getType(), ValueRange(state.get()), 0));
    if (isDrawnInOrder(op))
      continue;
    builder.setInsertionPointAfter(op);
    auto moved = ConcatOp::create(builder, op.getLoc(), op.getType(), ValueRange(op.getResult()), 0);
    op.getResult().replaceAllUsesExcept(moved.getResult(), moved);
  }
}

struct FormKernelsPass : neuron::impl::FormKernelsPassBase<FormKernelsPass> {
  using FormKernelsPassBase::FormKernelsPassBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    const auto *model = ::neuroncore::target::MachineModel::builtin(target);
    if (!model) {
      function.emitError() << "expected target trn1, trn2 or trn3 but got " << target;
      return signalPassFailure();
    }
    dropEmptyTensors(function);
    dropUnused(function);
    selectNarrowParts(function);
    orderScatters(function);
    splitLongRows(function, *model);
    materializeReshapes(function);
    materializeOperands(function);
    materializeCallOperands(function);
    storeResults(function);
    materializeViews(function);
    isolateRandom(function);
    Grouping grouping(function, *model, separateCasts(function), maxOps, explain);
    grouping.run();
    if (::neuroncore::interruptRequested())
      return signalPassFailure();
    outline(function, grouping);
    if (explain) {
      SmallVector<Attribute> lines;
      for (const std::string &line : grouping.report())
        lines.push_back(StringAttr::get(&getContext(), line));
      function->setAttr("neuron.fusion_report", ArrayAttr::get(&getContext(), lines));
    }
  }

  void outline(func::FuncOp function, const Grouping &grouping) {
    Block &body = function.getBody().front();
    SmallVector<Operation *> old;
    for (Operation &op : body.without_terminator())
      old.push_back(&op);
    OpBuilder builder(body.getTerminator());
    IRMapping kernelResults; // stored value -> kernel result
    unsigned number = 0;
    // A profile names kernels, so those of called functions say where they are.
    std::string prefix = function.isPrivate() ? (function.getName() + ".kernel").str() : "kernel";
    for (const Grouping::Group *group : grouping.ordered())
      outlineGroup(builder, grouping, *group, prefix + std::to_string(number++), kernelResults);
    // Results: views of kernel results stay outside.
    Operation *ret = body.getTerminator();
    for (OpOperand &operand : ret->getOpOperands()) {
      SmallVector<Operation *> chain;
      Value value = operand.get();
      if (isEmpty(value))
        continue;
      while (isView(value.getDefiningOp())) {
        chain.push_back(value.getDefiningOp());
        value = chain.back()->getOperand(0);
      }
      value = kernelResults.lookup(value);
      for (Operation *view : llvm::reverse(chain)) {
        IRMapping mapping;
        mapping.map(view->getOperand(0), value);
        value = builder.clone(*view, mapping)->getResult(0);
      }
      operand.set(value);
    }
    for (Operation *op : llvm::reverse(old))
      if (op->use_empty())
        op->erase();
  }

  void outlineGroup(OpBuilder &builder, const Grouping &grouping, const Grouping::Group &group, const std::string &name,
                    IRMapping &kernelResults) {
    SmallVector<Operation *> all = grouping.withSources(group.ops);
    llvm::DenseSet<Operation *> members(all.begin(), all.end());
    llvm::SetVector<Value> inputs;
    for (Operation *op : all)
      for (Value operand : op->getOperands())
        if (Value source = viewSource(operand); !members.contains(source.getDefiningOp()))
          inputs.insert(source);
    SmallVector<Value> stored = grouping.storedValues(group.ops), outer;
    for (Value input : inputs)
      outer.push_back(kernelResults.lookupOrDefault(input));
    SmallVector<Type> types;
    for (Value value : stored)
      types.push_back(value.getType());
    SmallVector<Location> locations;
    for (Operation *op : group.ops)
      locations.push_back(op->getLoc());
    auto kernel = KernelOp::create(builder, builder.getFusedLoc(locations), types, builder.getStringAttr(name), outer);
    Block &block = kernel.getBody().emplaceBlock();
    IRMapping mapping;
    for (Value input : inputs)
      mapping.map(input, block.addArgument(input.getType(), input.getLoc()));
    OpBuilder inside = OpBuilder::atBlockEnd(&block);
    for (Operation *op : all) {
      for (Value operand : op->getOperands())
        cloneViews(inside, operand, mapping);
      inside.clone(*op, mapping);
    }
    SmallVector<Value> yielded;
    for (auto [value, result] : llvm::zip(stored, kernel.getResults())) {
      yielded.push_back(mapping.lookup(value));
      kernelResults.map(value, result);
    }
    YieldOp::create(inside, kernel.getLoc(), yielded);
  }

  /// Brings the views between `value` and its source into the kernel.
  static void cloneViews(OpBuilder &builder, Value value, IRMapping &mapping) {
    if (mapping.contains(value))
      return;
    Operation *view = value.getDefiningOp();
    cloneViews(builder, view->getOperand(0), mapping);
    builder.clone(*view, mapping);
  }
};

} // namespace

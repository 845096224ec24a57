// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives every tensor of the function a place in HBM, then rewrites kernel by kernel.

#include "neuron/Support/Interrupt.h"
#include "neuron/Support/Progress.h"
#include "passes/Tile/IndexedKernels.h"
#include "passes/Tile/Passes.h"
#include "passes/Tile/SpecialKernels.h"
#include "passes/Tile/TileGenerator.h"

namespace mlir::neuron {
#define GEN_PASS_DEF_GENERATETILESPASS
#include "passes/Tile/Passes.h.inc"
} // namespace mlir::neuron

using namespace mlir;
using namespace mlir::neuron;
using ::neuroncore::target::MachineModel;

namespace {

class FunctionTiler {
public:
  FunctionTiler(func::FuncOp function, const MachineModel &model)
      : function(function), model(model), context(function.getContext()), builder(function.getContext()) {}

  LogicalResult run() {
    collect();
    createFunction();
    placeBuffers();
    for (auto [number, kernel] : llvm::enumerate(kernels)) {
      ::neuroncore::reportStep("kernel", number, kernels.size());
      if (::neuroncore::interruptRequested() || failed(tileKernel(kernel)))
        return failure();
    }
    writeLateResults();
    func::ReturnOp::create(builder, function.getLoc());
    tiled->setAttrs(function->getAttrs());
    tiled.setFunctionType(FunctionType::get(context, tiled.getBody().front().getArgumentTypes(), {}));
    tiled.setAllArgAttrs(argumentAttributes);
    tiled->removeAttr("res_attrs");
    function.erase();
    return success();
  }

private:
  MemRefType hbmType(int64_t elements, Type element) {
    return MemRefType::get({elements}, element, MemRefLayoutAttrInterface(),
                           MemorySpaceAttr::get(context, MemorySpace::Hbm));
  }

  /// Elements from the start of the buffer to behind the last one.
  static int64_t reach(const StridedLayout &layout) {
    if (layout.numElements() == 0)
      return 0;
    int64_t last = layout.offset;
    for (auto [size, stride] : llvm::zip(layout.sizes, layout.strides))
      last += (size - 1) * stride;
    return last + 1;
  }

  void collect() {
    for (Operation &op : function.getBody().front())
      if (auto kernel = dyn_cast<KernelOp>(op)) {
        kernelIndex[kernel] = kernels.size();
        kernels.push_back(kernel);
      }
    ret = cast<func::ReturnOp>(function.getBody().front().getTerminator());
  }

  void createFunction() {
    builder.setInsertionPoint(function);
    tiled = func::FuncOp::create(builder, function.getLoc(), function.getName(), FunctionType::get(context, {}, {}));
    Block *entry = tiled.addEntryBlock();
    for (BlockArgument argument : function.getArguments()) {
      StridedLayout layout = argumentLayout(argument.getArgNumber());
      layouts[argument] = layout;
      SmallVector<NamedAttribute> attributes(llvm::to_vector(
          function.getArgAttrDict(argument.getArgNumber()) ? function.getArgAttrDict(argument.getArgNumber()).getValue()
                                                           : ArrayRef<NamedAttribute>()));
      addShape(attributes, "input", argument, layout.strides);
      if (!llvm::any_of(attributes, [](NamedAttribute a) { return a.getName() == attribute::kName; }))
        attributes.push_back(
            builder.getNamedAttr(attribute::kName, builder.getStringAttr("input" + Twine(argument.getArgNumber()))));
      argumentAttributes.push_back(builder.getDictionaryAttr(attributes));
      buffers[argument] =
          entry->addArgument(hbmType(reach(layout), typeOf(argument).getElementType()), argument.getLoc());
    }
    builder.setInsertionPointToEnd(entry);
  }

  void addShape(SmallVectorImpl<NamedAttribute> &attributes, StringRef kind, Value value, ArrayRef<int64_t> strides) {
    attributes.push_back(builder.getNamedAttr(attribute::kKind, builder.getStringAttr(kind)));
    attributes.push_back(builder.getNamedAttr("neuron.shape", builder.getDenseI64ArrayAttr(typeOf(value).getShape())));
    if (!llvm::any_of(attributes, [](NamedAttribute a) { return a.getName() == attribute::kStrides; }))
      attributes.push_back(builder.getNamedAttr(attribute::kStrides, builder.getDenseI64ArrayAttr(strides)));
  }

  StridedLayout argumentLayout(unsigned index) {
    StridedLayout layout = StridedLayout::contiguous(typeOf(function.getArgument(index)).getShape());
    if (auto strides = function.getArgAttrOfType<DenseI64ArrayAttr>(index, attribute::kStrides))
      layout.strides.assign(strides.asArrayRef().begin(), strides.asArrayRef().end());
    if (auto offset = function.getArgAttrOfType<IntegerAttr>(index, attribute::kOffset))
      layout.offset = offset.getInt();
    return layout;
  }

  void placeBuffers() {
    // Results of the function.
    for (OpOperand &operand : ret->getOpOperands()) {
      unsigned number = operand.getOperandNumber();
      Value value = operand.get(), source = viewSource(value);
      StridedLayout layout = StridedLayout::contiguous(typeOf(source).getShape());
      SmallVector<int64_t> strides = contiguousStrides(typeOf(value).getShape());
      if (auto wanted = function.getResultAttrOfType<DenseI64ArrayAttr>(number, attribute::kStrides))
        strides.assign(wanted.asArrayRef().begin(), wanted.asArrayRef().end());
      if (source == value)
        layout.strides = strides;
      layouts[source] = layout;
      SmallVector<NamedAttribute> attributes;
      addShape(attributes, "output", value, strides);
      attributes.push_back(builder.getNamedAttr(attribute::kName, builder.getStringAttr("output" + Twine(number))));
      auto alias = function.getResultAttrOfType<IntegerAttr>(number, attribute::kAliasOf);
      if (alias)
        attributes.push_back(builder.getNamedAttr(attribute::kAliasOf, alias));
      argumentAttributes.push_back(builder.getDictionaryAttr(attributes));
      Value buffer =
          tiled.getBody().front().addArgument(hbmType(reach(layout), typeOf(source).getElementType()), source.getLoc());
      buffers[source] = buffer;
      if (!alias)
        continue;
      if (mayWriteEarly(alias.getInt(), source, layout)) {
        overwritten[source] = function.getArgument(alias.getInt());
        continue;
      }
      buffers.erase(source);
      lateResults.push_back({source, buffer, layout});
    }
    findWritesInPlace();
    findParts();
    // Values between kernels and constants.
    for (Operation &op : function.getBody().front())
      for (Value result : op.getResults()) {
        if (!isa<KernelOp, ConstantOp>(op) || buffers.contains(result) || typeOf(result).getNumElements() == 0 ||
            becomes.contains(result) || parts.contains(result))
          continue;
        StridedLayout layout = StridedLayout::contiguous(typeOf(result).getShape());
        auto type = hbmType(layout.numElements(), typeOf(result).getElementType());
        Value buffer = memref::AllocOp::create(builder, result.getLoc(), type);
        if (auto constant = dyn_cast<ConstantOp>(op))
          buffer.getDefiningOp()->setAttr("neuron.value", constant.getValue());
        layouts[result] = layout;
        buffers[result] = buffer;
      }
    for (auto [value, last] : becomes) {
      buffers[value] = buffers.lookup(last);
      layouts[value] = StridedLayout::contiguous(typeOf(value).getShape());
    }
    for (auto [value, whole] : parts)
      buffers[value] = buffers.lookup(whole);
  }

  /// What is only joined with other values may be computed where the result of the concatenation lies.
  void findParts() {
    for (KernelOp kernel : kernels) {
      // Of what nobody needs nothing is stored.
      if (kernel.getNumResults() == 0)
        continue;
      auto concat = dyn_cast<ConcatOp>(operationsOf(kernel).back());
      Value result = kernel.getResult(0);
      if (!concat || isLate(result) || overwritten.contains(result) || becomes.contains(result))
        continue;
      StridedLayout whole =
          layouts.contains(result) ? layouts.lookup(result) : StridedLayout::contiguous(typeOf(result).getShape());
      int64_t start = 0;
      for (Value operand : concat.getOperands()) {
        StridedLayout part = whole;
        part.offset += start * whole.strides[concat.getDim()];
        part.sizes.assign(typeOf(operand).getShape().begin(), typeOf(operand).getShape().end());
        start += typeOf(operand).getDimSize(concat.getDim());
        auto argument = dyn_cast<BlockArgument>(viewSource(operand));
        Value value = argument ? kernel.getInputs()[argument.getArgNumber()] : Value();
        if (!value || !value.getDefiningOp<KernelOp>() || !value.hasOneUse() || isUsedTwice(argument, operand) ||
            buffers.contains(value) || isLate(value) || becomes.contains(value))
          continue;
        std::optional<StridedLayout> layout = sourceLayoutFor(operand, part);
        if (layout && mayStoreAs(value, *layout)) {
          parts[value] = result;
          layouts[value] = *layout;
        }
      }
    }
  }

  /// Whether a kernel uses its input otherwise than through the views that lead to `end`.
  static bool isUsedTwice(Value input, Value end) {
    for (Value value = end;; value = value.getDefiningOp()->getOperand(0)) {
      if (!value.hasOneUse())
        return true;
      if (value == input)
        return false;
    }
  }

  /// Whether the kernel that computes a value finds a plan for storing it in a layout.
  bool mayStoreAs(Value value, const StridedLayout &layout) {
    auto kernel = value.getDefiningOp<KernelOp>();
    SmallVector<Operation *> ops = operationsOf(kernel);
    if (isa<AttentionOp, AttentionBackwardOp>(ops.front()))
      return true;
    if (!llvm::all_of(
            ops, [](Operation *op) { return isElementwise(op) || isa<ReduceOp, ArgReduceOp, ConstantOp, IotaOp>(op); }))
      return false;
    auto yield = cast<YieldOp>(kernel.getBody().front().getTerminator());
    SmallVector<Value> stored(yield.getOperands());
    Value inside = stored[cast<OpResult>(value).getResultNumber()];
    auto layoutOf = [&](Value other) { return other == inside ? layout : layoutOfValue(kernel, other); };
    std::optional<IterationSpace> space = IterationSpace::build(ops, stored, layoutOf);
    if (!space)
      return false;
    space->mergeDims();
    return hasTilePlan(*space, model);
  }

  /// The operation that writes part of a tensor, when the kernel is just that.
  static Operation *partialWrite(KernelOp kernel) {
    Operation *op = operationsOf(kernel).back();
    return isa<InsertOp, ScatterOp>(op) ? op : nullptr;
  }

  /// The input whose content a kernel keeps in part: destination of a partial write, read by nothing else in the
  /// kernel.
  static std::optional<unsigned> keptInput(KernelOp kernel) {
    Operation *write = partialWrite(kernel);
    if (!write)
      return std::nullopt;
    Value value = write->getOperand(1);
    while (value.hasOneUse() && value.getDefiningOp() && isView(value.getDefiningOp()))
      value = value.getDefiningOp()->getOperand(0);
    auto destination = dyn_cast<BlockArgument>(value);
    if (!destination || !destination.hasOneUse())
      return std::nullopt;
    return destination.getArgNumber();
  }

  /// Whether what a partial write keeps has the same place in its input and in its result.
  static bool keepsPlace(KernelOp kernel, const StridedLayout &input, const StridedLayout &result) {
    std::optional<StridedLayout> kept = layoutInSource(partialWrite(kernel)->getOperand(1), input);
    if (!kept || kept->offset != result.offset || kept->sizes != result.sizes)
      return false;
    return llvm::all_of(llvm::seq<size_t>(0, kept->sizes.size()),
                        [&](size_t d) { return kept->sizes[d] == 1 || kept->strides[d] == result.strides[d]; });
  }

  /// A value between kernels that is only written into may be computed where the result of the last write lies.
  void findWritesInPlace() {
    for (KernelOp kernel : llvm::reverse(kernels)) {
      std::optional<unsigned> kept = keptInput(kernel);
      if (!kept)
        continue;
      Value destination = kernel.getInputs()[*kept], result = kernel.getResult(0);
      Value last = becomes.lookup(result) ? becomes.lookup(result) : result;
      if (!destination.getDefiningOp<KernelOp>() || !destination.hasOneUse() || buffers.contains(destination) ||
          isLate(destination) || typeOf(destination).getNumElements() != typeOf(result).getNumElements())
        continue;
      if (auto layout = layouts.find(last); layout != layouts.end() && !isLate(last) && !layout->second.isContiguous())
        continue;
      if (!keepsPlace(kernel, StridedLayout::contiguous(typeOf(destination).getShape()),
                      StridedLayout::contiguous(typeOf(result).getShape())))
        continue;
      // Memory of the caller is then written by the kernel that computes the destination.
      if (Value argument = overwritten.lookup(last);
          argument && !mayWriteEarly(cast<BlockArgument>(argument).getArgNumber(), destination,
                                     StridedLayout::contiguous(typeOf(destination).getShape())))
        continue;
      becomes[destination] = last;
    }
  }

  bool isLate(Value value) const {
    return llvm::any_of(lateResults, [&](const LateResult &late) { return late.value == value; });
  }

  /// Whether what a partial write keeps lies where its result is stored.
  bool sharesMemory(KernelOp kernel) {
    std::optional<unsigned> kept = keptInput(kernel);
    if (!kept)
      return false;
    Value destination = kernel.getInputs()[*kept], result = kernel.getResult(0);
    Value last = becomes.lookup(result) ? becomes.lookup(result) : result;
    return (buffers.lookup(destination) == buffers.lookup(result) || overwritten.lookup(last) == destination) &&
           keepsPlace(kernel, layouts.lookup(destination), layouts.lookup(result));
  }

  /// An output shares the memory of argument `index`. It may be written where it is computed when all reads of the old
  /// content come before, or happen in the same tile at the same places.
  bool mayWriteEarly(unsigned index, Value source, const StridedLayout &layout) {
    auto producer = source.getDefiningOp<KernelOp>();
    BlockArgument argument = function.getArgument(index);
    unsigned writer = kernelIndex.lookup(producer);
    for (OpOperand &use : argument.getUses()) {
      auto reader = dyn_cast<KernelOp>(use.getOwner());
      if (!reader)
        return false;
      unsigned position = kernelIndex.lookup(reader);
      if (position > writer)
        return false;
      if (position == writer && !readsInPlace(reader, use.getOperandNumber(), source, layout))
        return false;
    }
    return true;
  }

  /// Each element of the input is read by the kernel only for the result element at the same address, before it is
  /// stored.
  bool readsInPlace(KernelOp kernel, unsigned input, Value source, const StridedLayout &layout) {
    SmallVector<Operation *> ops = operationsOf(kernel);
    if (auto call = dyn_cast<CallOp>(ops.back()))
      return replacesInput(kernel, call, input, source);
    if (partialWrite(kernel))
      return keptInput(kernel) == input && keepsPlace(kernel, layouts.lookup(kernel.getInputs()[input]), layout);
    // Results of reductions are used after whole rows were read, but the rows of a tile are stored after its reads only
    // when nothing runs across tiles.
    for (Operation *op : ops)
      if (!isElementwise(op) && !isa<ConstantOp, IotaOp, RandomOp>(op))
        return false;
    Value stored =
        cast<YieldOp>(kernel.getBody().front().getTerminator()).getOperand(cast<OpResult>(source).getResultNumber());
    auto layoutOf = [&](Value value) {
      if (value == stored)
        return layout;
      return layoutOfValue(kernel, value);
    };
    std::optional<IterationSpace> space = IterationSpace::build(ops, stored, layoutOf);
    if (!space)
      return false;
    Value inside = kernel.getBody().getArgument(input);
    for (const HbmAccess &read : space->reads)
      if (read.buffer == inside &&
          (read.offset != space->writes.front().offset || read.strides != space->writes.front().strides))
        return false;
    return true;
  }

  /// Whether a call writes a result of its kernel to the memory of the input, which it takes as one operand only.
  static bool replacesInput(KernelOp kernel, CallOp call, unsigned input, Value source) {
    auto yield = cast<YieldOp>(kernel.getBody().front().getTerminator());
    auto result = dyn_cast<OpResult>(yield.getOperand(cast<OpResult>(source).getResultNumber()));
    if (!result || result.getOwner() != call)
      return false;
    for (auto [position, operand] : llvm::enumerate(call.getOperands()))
      if (viewSource(operand) == kernel.getBody().getArgument(input) &&
          static_cast<int64_t>(position) != call.getReplacedBy(result.getResultNumber()))
        return false;
    return true;
  }

  static SmallVector<Operation *> operationsOf(KernelOp kernel) {
    SmallVector<Operation *> ops;
    for (Operation &op : kernel.getBody().front().without_terminator())
      if (!isView(&op))
        ops.push_back(&op);
    return ops;
  }

  /// The function-level value that a value inside of a kernel stands for.
  static Value outerValue(KernelOp kernel, Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return kernel.getInputs()[argument.getArgNumber()];
    auto yield = cast<YieldOp>(kernel.getBody().front().getTerminator());
    for (auto [index, operand] : llvm::enumerate(yield.getOperands()))
      if (operand == value)
        return kernel.getResult(index);
    return {};
  }

  StridedLayout layoutOfValue(KernelOp kernel, Value value) {
    Value outer = outerValue(kernel, value);
    if (auto it = layouts.find(outer); it != layouts.end())
      return it->second;
    return StridedLayout::contiguous(typeOf(value).getShape());
  }

  HbmTensor tensorOf(KernelOp kernel, Value value) {
    Value source = viewSource(value);
    HbmTensor tensor;
    tensor.buffer = buffers.lookup(outerValue(kernel, source));
    std::optional<StridedLayout> layout = layoutInSource(value, layoutOfValue(kernel, source));
    if (layout)
      tensor.layout = *layout;
    else
      tensor.buffer = Value();
    return tensor;
  }

  LogicalResult tileKernel(KernelOp kernel) {
    SmallVector<Operation *> ops = operationsOf(kernel);
    auto yield = cast<YieldOp>(kernel.getBody().front().getTerminator());
    SmallVector<Value> stored(yield.getOperands());
    if (auto call = dyn_cast<CallOp>(ops.back()))
      return tileCall(kernel, call);
    // What is joined lies where it belongs already.
    if (isa<ConcatOp>(ops.back()) && !kernel.getInputs().empty() &&
        llvm::all_of(kernel.getInputs(), [&](Value value) { return parts.contains(value); }))
      return success();
    // A value yielded twice is stored once per result; the copies have been made by the kernels phase.
    auto out = KernelOp::create(builder, kernel.getLoc(), TypeRange(), kernel.getSymNameAttr(), ValueRange());
    Block &body = out.getBody().emplaceBlock();
    OpBuilder inside = OpBuilder::atBlockBegin(&body);
    if (failed(fillKernel(inside, kernel, ops, stored)))
      return failure();
    inside.setInsertionPointToEnd(&body);
    YieldOp::create(inside, kernel.getLoc());
    return success();
  }

  /// Buffers in place of tensors; results that nobody needs are stored as well.
  LogicalResult tileCall(KernelOp kernel, CallOp call) {
    SmallVector<Value> operands;
    for (auto [i, value] : llvm::enumerate(call.getOperands())) {
      HbmTensor tensor = tensorOf(kernel, value);
      bool fits = tensor.buffer && tensor.layout.offset == 0;
      for (size_t d = 0; fits && d < tensor.layout.sizes.size(); ++d)
        fits = tensor.layout.sizes[d] == 1 || tensor.layout.strides[d] == call.getStridesOf(i)[d];
      if (!fits)
        return call.emitOpError() << "expected operand " << i << " to be a whole buffer with strides "
                                  << (*call.getStrides())[i];
      operands.push_back(tensor.buffer);
    }
    for (OpResult result : call.getResults()) {
      Value outer = outerValue(kernel, result);
      // The callee keeps what it does not write.
      if (int64_t replaced = call.getReplacedBy(result.getResultNumber()); replaced >= 0) {
        Value argument = outer ? overwritten.lookup(outer) : Value();
        if (!argument || buffers.lookup(argument) != operands[replaced])
          return call.emitOpError() << "expected result " << result.getResultNumber()
                                    << " to have the memory of operand " << replaced << ", which it replaces";
      }
      if (outer && !layouts.lookup(outer).isContiguous())
        return call.emitOpError() << "expected results to be stored row by row";
      operands.push_back(
          outer ? buffers.lookup(outer)
                : memref::AllocOp::create(builder, call.getLoc(),
                                          hbmType(typeOf(result).getNumElements(), typeOf(result).getElementType())));
    }
    CallOp::create(builder, call.getLoc(), TypeRange(), call.getCallee(), operands, ArrayAttr(), DenseI64ArrayAttr());
    return success();
  }

  /// Where a kernel stores a result: with its dimensions in another order if a copy of a transpose is what it stores.
  HbmTensor storedTensorOf(KernelOp kernel, Value value, ArrayRef<Value> stored) {
    for (Value result : stored) {
      if (result == value)
        return tensorOf(kernel, value);
      auto copy = result.getDefiningOp<UnaryOp>();
      if (!copy || viewSource(copy.getOperand()) != value)
        continue;
      HbmTensor tensor = tensorOf(kernel, result);
      if (std::optional<StridedLayout> layout = sourceLayoutFor(copy.getOperand(), tensor.layout))
        return {tensor.buffer, *layout};
    }
    return {};
  }

  /// Each value that the kernel yields is a result of the operation or a copy of one.
  static LogicalResult expectStored(Operation *op, ArrayRef<HbmTensor> results, ArrayRef<Value> stored) {
    size_t found = llvm::count_if(results, [](const HbmTensor &tensor) { return bool(tensor.buffer); });
    if (found != stored.size())
      return op->emitOpError() << "expected to store " << stored.size() << " results of its kernel but got " << found;
    return success();
  }

  LogicalResult fillKernel(OpBuilder &inside, KernelOp kernel, ArrayRef<Operation *> ops, ArrayRef<Value> stored) {
    Operation *first = ops.front();
    if (isa<ConcatOp, InsertOp, GatherOp, ScatterOp>(ops.back()))
      first = ops.back();
    auto layoutOf = [&](Value value) { return layoutOfValue(kernel, value); };
    auto bufferOf = [&](Value value) { return buffers.lookup(outerValue(kernel, value)); };
    if (ContractOp contract = findContract(ops)) {
      std::string why;
      std::optional<ContractKernelPlan> plan = planContractKernel(ops, stored, layoutOf, model, &why);
      if (!plan)
        return contract.emitOpError() << "has no tile plan: " << why;
      HbmTensor product;
      if (llvm::is_contained(stored, contract.getResult()))
        product = tensorOf(kernel, contract.getResult());
      emitContract(inside, contract, *plan, tensorOf(kernel, contract.getLhs()), tensorOf(kernel, contract.getRhs()),
                   product, bufferOf, model);
      return success();
    }
    if (auto attention = dyn_cast<AttentionOp>(first)) {
      AttentionTensors tensors;
      tensors.query = tensorOf(kernel, attention.getQuery());
      tensors.key = tensorOf(kernel, attention.getKey());
      tensors.value = tensorOf(kernel, attention.getValue());
      if (attention.getMask())
        tensors.mask = tensorOf(kernel, attention.getMask());
      if (attention.getState()) {
        tensors.state = tensorOf(kernel, attention.getState());
        tensors.index = tensorOf(kernel, attention.getIndex());
      }
      tensors.result = storedTensorOf(kernel, attention.getResult(), stored);
      tensors.logsumexp = storedTensorOf(kernel, attention.getLogsumexp(), stored);
      for (Value operand : attention->getOperands())
        if (!tensorOf(kernel, operand).buffer)
          return attention.emitError() << "expected operands that strides can address";
      if (failed(expectStored(attention, {tensors.result, tensors.logsumexp}, stored)))
        return failure();
      emitAttention(inside, attention, tensors, model);
      return success();
    }
    if (auto backward = dyn_cast<AttentionBackwardOp>(first)) {
      for (Value operand : backward->getOperands())
        if (!tensorOf(kernel, operand).buffer)
          return backward.emitError() << "expected operands that strides can address";
      auto tensor = [&](Value value) { return value ? tensorOf(kernel, value) : HbmTensor(); };
      auto result = [&](Value value) { return storedTensorOf(kernel, value, stored); };
      HbmTensor query = result(backward.getQueryGradient()), key = result(backward.getKeyGradient()),
                value = result(backward.getValueGradient());
      if (failed(expectStored(backward, {query, key, value}, stored)))
        return failure();
      emitAttentionBackward(inside, backward,
                            {tensor(backward.getGradient()), tensor(backward.getQuery()), tensor(backward.getKey()),
                             tensor(backward.getValue()), tensor(backward.getMask()), tensor(backward.getState()),
                             tensor(backward.getIndex()), tensor(backward.getLogsumexp()), tensor(backward.getDelta()),
                             query, key, value},
                            model);
      return success();
    }
    if (isa<ConcatOp, InsertOp, GatherOp, ScatterOp>(first)) {
      SmallVector<HbmTensor> operands;
      for (Value operand : first->getOperands()) {
        operands.push_back(tensorOf(kernel, operand));
        if (!operands.back().buffer)
          return first->emitError() << "expected operands that strides can address";
      }
      HbmTensor result = tensorOf(kernel, first->getResult(0));
      if (auto concat = dyn_cast<ConcatOp>(first)) {
        for (auto [value, operand] : llvm::zip(concat.getOperands(), operands))
          if (parts.contains(outerValue(kernel, viewSource(value))))
            operand.buffer = Value();
        emitConcat(inside, concat, operands, result);
        return success();
      }
      if (auto gather = dyn_cast<GatherOp>(first))
        return emitGather(inside, gather, operands[0], operands[1], result, model);
      // What is written into comes first, unless the result already lies there.
      if (!sharesMemory(kernel))
        emitCopy(inside, first->getLoc(), operands[1], result);
      if (auto scatter = dyn_cast<ScatterOp>(first))
        return emitScatter(inside, scatter, operands[0], operands[2], result, model);
      emitInsert(inside, cast<InsertOp>(first), operands[0], result);
      return success();
    }
    std::string why;
    std::optional<IterationSpace> space = IterationSpace::build(ops, stored, layoutOf, &why);
    std::optional<TilePlan> plan;
    if (space) {
      space->mergeDims();
      plan = planTiles(*space, model, &why);
    }
    if (!plan)
      return kernel.emitError() << "no tile plan for " << ops.back()->getName() << ": " << why;
    TileGenerator(inside, *plan, bufferOf).run();
    return success();
  }

  /// Results that could not be written in place of their input until all reads were done.
  void writeLateResults() {
    if (lateResults.empty())
      return;
    auto out =
        KernelOp::create(builder, function.getLoc(), TypeRange(), builder.getStringAttr("write_back"), ValueRange());
    Block &body = out.getBody().emplaceBlock();
    OpBuilder inside = OpBuilder::atBlockBegin(&body);
    for (const LateResult &late : lateResults) {
      HbmTensor source{buffers.lookup(late.value), layouts.lookup(late.value)};
      source.layout = StridedLayout::contiguous(late.layout.sizes);
      emitCopy(inside, late.value.getLoc(), source, {late.buffer, late.layout});
    }
    YieldOp::create(inside, function.getLoc());
  }

  struct LateResult {
    Value value, buffer;
    StridedLayout layout;
  };

  func::FuncOp function, tiled;
  const MachineModel &model;
  MLIRContext *context;
  OpBuilder builder;
  func::ReturnOp ret;
  SmallVector<KernelOp> kernels;
  llvm::DenseMap<Operation *, unsigned> kernelIndex;
  llvm::DenseMap<Value, Value> buffers;         // function-level value -> HBM buffer
  llvm::DenseMap<Value, StridedLayout> layouts; // function-level value -> its layout there
  llvm::DenseMap<Value, Value> overwritten;     // result written early -> the argument whose memory it replaces
  llvm::MapVector<Value, Value> parts;          // value between kernels -> concatenation in whose memory it is computed
  llvm::MapVector<Value, Value> becomes;        // value between kernels -> result whose memory it is computed in
  SmallVector<DictionaryAttr> argumentAttributes;
  SmallVector<LateResult> lateResults;
};

struct GenerateTilesPass : neuron::impl::GenerateTilesPassBase<GenerateTilesPass> {
  using GenerateTilesPassBase::GenerateTilesPassBase;

  void runOnOperation() override {
    const MachineModel *model = MachineModel::builtin(target);
    if (!model) {
      getOperation().emitError() << "expected target trn1, trn2 or trn3 but got " << target;
      return signalPassFailure();
    }
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (failed(FunctionTiler(function, *model).run()))
        return signalPassFailure();
  }
};

} // namespace

void mlir::neuron::buildTilePipeline(OpPassManager &pm, const TilePipelineOptions &options) {
  GenerateTilesPassOptions generate;
  generate.target = options.target;
  pm.addPass(createGenerateTilesPass(generate));
  ShareBuffersPassOptions share;
  share.target = options.target;
  pm.addPass(createShareBuffersPass(share));
  pm.addPass(createVerifyTilePass());
}

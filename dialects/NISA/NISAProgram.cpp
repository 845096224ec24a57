// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/NISA/NISAProgram.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include "dialects/Neuron/NeuronOps.h"
#include "neuron/Isa/InstructionTable.h"

using namespace mlir;
using namespace mlir::nisa;
namespace isa = ::neuroncore::isa;
namespace schedule = ::neuroncore::schedule;

namespace {

class ProgramBuilder {
public:
  explicit ProgramBuilder(func::FuncOp main) : main(main) {}

  FailureOr<ProgramView> run() {
    if (failed(checkArguments(main)))
      return failure();
    SmallVector<func::FuncOp> layers;
    for (auto call : main.getOps<::mlir::neuron::CallOp>()) {
      auto layer = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
      if (!layer)
        return call.emitOpError() << "expected a function of the module but got @" << call.getCallee();
      if (llvm::is_contained(layers, layer))
        continue;
      if (failed(checkArguments(layer)))
        return failure();
      layers.push_back(layer);
    }
    addArguments();
    main.walk([&](memref::AllocOp alloc) { addVariable(alloc.getResult()); });
    for (func::FuncOp layer : layers)
      layer.walk([&](memref::AllocOp alloc) { addVariable(alloc.getResult()); });
    for (func::FuncOp layer : layers)
      if (failed(addLayer(layer)))
        return failure();
    if (failed(addMain()))
      return failure();
    for (schedule::StructuredProgram &unit : view.units)
      unit.variables = variables;
    return std::move(view);
  }

private:
  static LogicalResult checkArguments(func::FuncOp function) {
    for (Type type : function.getArgumentTypes())
      if (!isa<MemRefType>(type))
        return function.emitOpError() << "expected HBM buffers as arguments but got " << type;
    return success();
  }

  LogicalResult addKernel(KernelOp kernel, schedule::StructuredProgram &unit) {
    schedule::Kernel target;
    target.name = kernel.getSymName().str();
    if (failed(addBlock(kernel.getBody().front(), target.body)))
      return failure();
    unit.kernels.push_back(std::move(target));
    return success();
  }

  LogicalResult addLayer(func::FuncOp layer) {
    schedule::StructuredProgram unit;
    unit.firstParameter = view.parameterBytes.size();
    unit.parameters.resize(layer.getNumArguments());
    for (BlockArgument argument : layer.getArguments()) {
      parameterOf[argument] = view.parameterBytes.size();
      view.parameterBytes.push_back(bytesOf(argument));
      schedule::VariableInfo &parameter = unit.parameters[argument.getArgNumber()];
      parameter.bytes = bytesOf(argument);
      if (auto alias =
              layer.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), ::mlir::neuron::attribute::kAliasOf))
        parameter.aliasGroup = unit.parameters[alias.getInt()].aliasGroup =
            isa::kParameterFlag | (unit.firstParameter + static_cast<uint32_t>(alias.getInt()));
    }
    for (Operation &op : layer.getBody().front()) {
      if (isa<::mlir::neuron::CallOp>(op))
        return op.emitOpError() << "expected no call in a function that is called itself";
      if (auto kernel = dyn_cast<KernelOp>(op); kernel && failed(addKernel(kernel, unit)))
        return failure();
    }
    unitOf[layer.getName()] = view.units.size();
    view.units.push_back(std::move(unit));
    return success();
  }

  LogicalResult addMain() {
    schedule::StructuredProgram unit;
    auto finishUnit = [&] {
      if (unit.kernels.empty())
        return;
      view.steps.push_back({static_cast<int32_t>(view.units.size()), 1});
      view.runs.emplace_back();
      view.units.push_back(std::move(unit));
      unit = {};
    };
    for (Operation &op : main.getBody().front()) {
      if (auto kernel = dyn_cast<KernelOp>(op)) {
        if (failed(addKernel(kernel, unit)))
          return failure();
        continue;
      }
      auto call = dyn_cast<::mlir::neuron::CallOp>(op);
      if (!call)
        continue;
      finishUnit();
      int32_t callee = unitOf.lookup(call.getCallee());
      if (!view.steps.empty() && view.steps.back().unit == callee)
        ++view.steps.back().runs;
      else
        view.steps.push_back({callee, 1});
      ProgramView::Run &run = view.runs.emplace_back();
      run.firstParameter = view.units[callee].firstParameter;
      for (Value operand : call.getOperands())
        run.variables.push_back(variableOf.lookup(operand));
    }
    finishUnit();
    // A program without kernels is still one.
    if (view.units.empty()) {
      view.units.emplace_back();
      view.steps.push_back({0, 1});
      view.runs.emplace_back();
    }
    return success();
  }

  void addArguments() {
    llvm::StringMap<unsigned> byName;
    SmallVector<unsigned> variableOfArgument;
    for (BlockArgument argument : main.getArguments()) {
      unsigned index = argument.getArgNumber();
      auto name = main.getArgAttrOfType<StringAttr>(index, ::mlir::neuron::attribute::kName);
      if (name)
        if (auto it = byName.find(name.getValue()); it != byName.end()) {
          variableOf[argument] = it->second;
          variableOfArgument.push_back(it->second);
          grow(it->second, argument);
          continue;
        }
      unsigned id = addVariable(argument);
      variableOfArgument.push_back(id);
      if (name)
        byName[name.getValue()] = id;
      if (auto alias = main.getArgAttrOfType<IntegerAttr>(index, ::mlir::neuron::attribute::kAliasOf)) {
        unsigned other = variableOfArgument[alias.getInt()];
        variables[id].aliasGroup = variables[other].aliasGroup = other;
      }
    }
  }

  static int64_t bytesOf(Value buffer) {
    auto type = cast<MemRefType>(buffer.getType());
    return type.getNumElements() * ::mlir::neuron::elementBytes(type.getElementType());
  }

  void grow(unsigned id, Value buffer) { variables[id].bytes = std::max(variables[id].bytes, bytesOf(buffer)); }

  unsigned addVariable(Value buffer) {
    unsigned id = view.variables.size();
    view.variables.push_back(buffer);
    variableOf[buffer] = id;
    schedule::VariableInfo info;
    info.bytes = bytesOf(buffer);
    variables.push_back(info);
    return id;
  }

  LogicalResult addBlock(Block &block, schedule::Sequence &sequence) {
    for (Operation &op : block) {
      if (auto loop = dyn_cast<LoopOp>(op)) {
        auto target = std::make_unique<schedule::Loop>();
        target->id = nextLoop++;
        target->trips = loop.getTrips();
        for (Region &copy : loop.getCopies()) {
          loopOf[copy.getArgument(0)] = target->id;
          target->copies.emplace_back();
        }
        for (auto [copy, body] : llvm::zip(loop.getCopies(), target->copies))
          if (failed(addBlock(copy.front(), body)))
            return failure();
        sequence.push_back(std::move(target));
      } else if (isInstruction(&op)) {
        if (failed(addInstruction(&op, sequence)))
          return failure();
      }
    }
    return success();
  }

  LogicalResult addInstruction(Operation *op, schedule::Sequence &sequence) {
    schedule::Instruction instruction;
    instruction.code = getCode(op);
    instruction.engine = getEngine(op);
    instruction.tag = view.instructions.size();
    view.instructions.push_back(op);
    auto tiles = cast<ArrayAttr>(op->getAttr("tiles"));
    unsigned numBuffers = cast<DenseI32ArrayAttr>(op->getAttr("operandSegmentSizes"))[0], nextIv = numBuffers;
    for (SlotBuffer slot : getSlotBuffers(op)) {
      if (getSpace(slot.buffer) == ::mlir::neuron::MemorySpace::Hbm) {
        unsigned side = slot.slot == 0 ? 0 : 1;
        if (auto variable = variableOf.find(slot.buffer); variable != variableOf.end())
          instruction.code.hbm[side].variable = variable->second;
        else if (auto parameter = parameterOf.find(slot.buffer); parameter != parameterOf.end())
          instruction.code.hbm[side].variable = isa::kParameterFlag | parameter->second;
        else
          return op->emitOpError() << "expected HBM buffers that are arguments of the function or memref.alloc";
        for (int64_t stride : cast<HbmPatternAttr>(tiles[slot.slot]).getIvStrides())
          instruction.hbmTerms[side].push_back({loopOf.lookup(op->getOperand(nextIv++)), stride});
        continue;
      }
      auto alloc = slot.buffer.getDefiningOp<AllocOp>();
      if (!alloc || !alloc.getAddress())
        return op->emitOpError() << "expected buffers with addresses";
      if (slot.isScalar) {
        instruction.code.scalars[slot.slot].byteOffset += *alloc.getAddress();
        continue;
      }
      isa::TilePattern &tile = instruction.code.tiles[slot.slot];
      tile.byteOffset += *alloc.getAddress();
      tile.startPartition += alloc.getPartition().value_or(0);
    }
    sequence.push_back(std::move(instruction));
    return success();
  }

  func::FuncOp main;
  ProgramView view;
  std::vector<schedule::VariableInfo> variables;
  llvm::StringMap<int32_t> unitOf;
  llvm::DenseMap<Value, unsigned> variableOf, parameterOf;
  llvm::DenseMap<Value, schedule::LoopId> loopOf;
  schedule::LoopId nextLoop = 0;
};

} // namespace

FailureOr<ProgramView> mlir::nisa::buildProgram(func::FuncOp function) { return ProgramBuilder(function).run(); }

SmallVector<func::FuncOp> mlir::nisa::findPrograms(ModuleOp module) {
  llvm::DenseSet<StringRef> called;
  module.walk([&](::mlir::neuron::CallOp call) { called.insert(call.getCallee()); });
  SmallVector<func::FuncOp> programs;
  for (auto function : module.getOps<func::FuncOp>())
    if (!called.contains(function.getName()))
      programs.push_back(function);
  return programs;
}

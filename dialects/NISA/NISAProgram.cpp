// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/NISA/NISAProgram.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include "dialects/Neuron/NeuronDialect.h"
#include "neuron/Isa/InstructionTable.h"

using namespace mlir;
using namespace mlir::nisa;
namespace isa = ::neuroncore::isa;
namespace schedule = ::neuroncore::schedule;

namespace {

class ProgramBuilder {
public:
  explicit ProgramBuilder(func::FuncOp function) : function(function) {}

  FailureOr<ProgramView> run() {
    for (Type type : function.getArgumentTypes())
      if (!isa<MemRefType>(type))
        return function.emitOpError() << "expected HBM buffers as arguments but got " << type;
    addVariables();
    for (Operation &op : function.getBody().front()) {
      auto kernel = dyn_cast<KernelOp>(op);
      if (!kernel)
        continue;
      schedule::Kernel target;
      target.name = kernel.getSymName().str();
      if (failed(addBlock(kernel.getBody().front(), target.body)))
        return failure();
      view.program.kernels.push_back(std::move(target));
    }
    return std::move(view);
  }

private:
  void addVariables() {
    llvm::StringMap<unsigned> byName;
    SmallVector<unsigned> variableOfArgument;
    for (BlockArgument argument : function.getArguments()) {
      unsigned index = argument.getArgNumber();
      auto name = function.getArgAttrOfType<StringAttr>(index, ::mlir::neuron::attribute::kName);
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
      if (auto alias = function.getArgAttrOfType<IntegerAttr>(index, ::mlir::neuron::attribute::kAliasOf)) {
        unsigned other = variableOfArgument[alias.getInt()];
        view.program.variables[id].aliasGroup = view.program.variables[other].aliasGroup = other;
      }
    }
    function.walk([&](memref::AllocOp alloc) { addVariable(alloc.getResult()); });
  }

  static int64_t bytesOf(Value buffer) {
    auto type = cast<MemRefType>(buffer.getType());
    return type.getNumElements() * ::mlir::neuron::elementBytes(type.getElementType());
  }

  void grow(unsigned id, Value buffer) {
    view.program.variables[id].bytes = std::max(view.program.variables[id].bytes, bytesOf(buffer));
  }

  unsigned addVariable(Value buffer) {
    unsigned id = view.variables.size();
    view.variables.push_back(buffer);
    variableOf[buffer] = id;
    schedule::VariableInfo info;
    info.bytes = bytesOf(buffer);
    view.program.variables.push_back(info);
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
        auto variable = variableOf.find(slot.buffer);
        if (variable == variableOf.end())
          return op->emitOpError() << "expected HBM buffers that are arguments of the function or memref.alloc";
        instruction.code.hbm[side].variable = variable->second;
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

  func::FuncOp function;
  ProgramView view;
  llvm::DenseMap<Value, unsigned> variableOf;
  llvm::DenseMap<Value, schedule::LoopId> loopOf;
  schedule::LoopId nextLoop = 0;
};

} // namespace

FailureOr<ProgramView> mlir::nisa::buildProgram(func::FuncOp function) { return ProgramBuilder(function).run(); }

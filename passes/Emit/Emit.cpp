// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Emit/Emit.h"

#include <map>

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/raw_ostream.h"

#include "dialects/NISA/NISAProgram.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "neuron/Schedule/Linking.h"

using namespace mlir;
using namespace mlir::neuron;
namespace isa = ::neuroncore::isa;
namespace neff = ::neuroncore::neff;
namespace schedule = ::neuroncore::schedule;

namespace {

class Emitter {
public:
  Emitter(func::FuncOp function, const EmitOptions &options) : function(function), options(options) {}

  FailureOr<neff::Neff> run() {
    FailureOr<nisa::ProgramView> built = nisa::buildProgram(function);
    if (failed(built))
      return failure();
    result.name = options.name;
    result.target = options.target;
    result.compilerVersion = options.compilerVersion;
    // Only the caller draws random numbers.
    if (auto increment = function->getAttrOfType<IntegerAttr>(attribute::kRngIncrement))
      result.rngIncrement = increment.getInt();
    for (auto [index, variable] : llvm::enumerate(built->variables))
      addVariable(variable, built->units.front().variables[index].bytes);
    for (schedule::StructuredProgram &unit : built->units)
      for (schedule::Kernel &kernel : unit.kernels)
        addDebug(kernel.body, kernel.name, built->instructions);
    schedule::LinkReport report;
    ::neuroncore::Expected<isa::Program> streams = schedule::link(built->units, built->steps, {}, {}, &report);
    if (!streams)
      return function.emitError() << "program: " << streams.error().message();
    result.program = std::move(*streams);
    result.semaphores = report.numSemaphores;
    if (!built->parameterBytes.empty()) {
      result.parameterBytes.assign(built->parameterBytes.begin(), built->parameterBytes.end());
      for (const nisa::ProgramView::Run &run : built->runs)
        result.runs.push_back(
            {static_cast<uint32_t>(run.firstParameter), {run.variables.begin(), run.variables.end()}});
    }
    function->getParentOfType<ModuleOp>().walk([&](nisa::AllocOp alloc) {
      int64_t end = int64_t(alloc.getAddress().value_or(0)) + cast<MemRefType>(alloc.getType()).getDimSize(1);
      int64_t &used = nisa::getSpace(alloc.getResult()) == MemorySpace::Psum ? result.psumBytesPerPartition
                                                                             : result.sbufBytesPerPartition;
      used = std::max(used, end);
    });
    return std::move(result);
  }

private:
  void addVariable(Value buffer, int64_t bytes) {
    neff::Variable variable;
    auto type = cast<MemRefType>(buffer.getType());
    variable.bytes = bytes;
    variable.dtype = nisa::toDtype(type.getElementType());
    if (auto argument = dyn_cast<BlockArgument>(buffer)) {
      unsigned index = argument.getArgNumber();
      auto text = [&](StringRef name) {
        auto attribute = function.getArgAttrOfType<StringAttr>(index, name);
        return attribute ? attribute.getValue() : StringRef();
      };
      variable.name = text(attribute::kName).str();
      bool isOutput = text(attribute::kKind) == "output";
      variable.kind = isOutput ? neff::Variable::Kind::Output : neff::Variable::Kind::Input;
      if (text(attribute::kRole) == "parameters") {
        // Two typed views of one block of 16-byte records.
        variable.role = neff::Variable::Role::Parameters;
        variable.dtype = isa::Dtype::I32;
        variable.bytes = llvm::alignTo(bytes, 16);
        variable.shape = {variable.bytes / 4};
      } else {
        if (text(attribute::kRole) == "rng_state")
          variable.role = neff::Variable::Role::RngState;
        if (auto shape = function.getArgAttrOfType<DenseI64ArrayAttr>(index, "neuron.shape"))
          variable.shape.assign(shape.asArrayRef().begin(), shape.asArrayRef().end());
        if (auto strides = function.getArgAttrOfType<DenseI64ArrayAttr>(index, attribute::kStrides))
          variable.strides.assign(strides.asArrayRef().begin(), strides.asArrayRef().end());
      }
      if (auto alias = function.getArgAttrOfType<IntegerAttr>(index, attribute::kAliasOf))
        variable.aliasOf = alias.getInt();
    } else {
      Operation *alloc = buffer.getDefiningOp();
      if (auto value = alloc->getAttrOfType<DenseElementsAttr>("neuron.value")) {
        variable.kind = neff::Variable::Kind::Constant;
        variable.name = "constant" + std::to_string(result.variables.size());
        auto shape = cast<ShapedType>(value.getType()).getShape();
        variable.shape.assign(shape.begin(), shape.end());
        appendBytes(value, variable.data);
      } else {
        variable.kind = neff::Variable::Kind::Scratch;
        variable.name = "scratch" + std::to_string(result.variables.size());
        variable.shape.assign(type.getShape().begin(), type.getShape().end());
      }
    }
    result.variables.push_back(std::move(variable));
  }

  static void appendBytes(DenseElementsAttr value, std::vector<uint8_t> &bytes) {
    Type element = value.getElementType();
    if (element.isInteger(1)) {
      for (bool bit : value.getValues<bool>())
        bytes.push_back(bit);
      return;
    }
    int64_t width = elementBytes(element), count = value.getNumElements();
    ArrayRef<char> raw = value.getRawData();
    if (value.isSplat())
      for (int64_t i = 0; i < count; ++i)
        bytes.insert(bytes.end(), raw.begin(), raw.begin() + width);
    else
      bytes.insert(bytes.end(), raw.begin(), raw.begin() + width * count);
  }

  /// Names of the GraphDef nodes a location stands for.
  static void nodeNames(Location loc, llvm::SetVector<StringAttr> &names) {
    if (auto name = dyn_cast<NameLoc>(loc)) {
      names.insert(name.getName());
    } else if (auto fused = dyn_cast<FusedLoc>(loc)) {
      for (Location part : fused.getLocations())
        nodeNames(part, names);
    }
  }

  void addDebug(schedule::Sequence &sequence, const std::string &kernel, ArrayRef<Operation *> ops) {
    for (schedule::Node &node : sequence) {
      if (auto *loop = std::get_if<std::unique_ptr<schedule::Loop>>(&node)) {
        for (schedule::Sequence &copy : (*loop)->copies)
          addDebug(copy, kernel, ops);
        continue;
      }
      auto &instruction = std::get<schedule::Instruction>(node);
      Location loc = ops[instruction.tag]->getLoc();
      auto [it, isNew] = recordOf.try_emplace(Key{kernel, loc}, result.debug.size() + 1);
      if (isNew) {
        neff::DebugRecord record;
        record.kernel = kernel;
        llvm::SetVector<StringAttr> names;
        nodeNames(loc, names);
        llvm::raw_string_ostream text(record.op);
        llvm::interleave(names, text, [&](StringAttr name) { text << name.getValue(); }, "+");
        for (StringAttr name : names)
          if (auto position = options.nodePositions.find(name.getValue()); position != options.nodePositions.end())
            record.nodes.push_back(position->second);
        result.debug.push_back(std::move(record));
      }
      instruction.code.debugId = it->second;
    }
  }

  func::FuncOp function;
  const EmitOptions &options;
  neff::Neff result;
  struct Key {
    std::string kernel;
    Location loc;
    bool operator<(const Key &other) const {
      return std::tie(kernel) < std::tie(other.kernel) ||
             (kernel == other.kernel && loc.getAsOpaquePointer() < other.loc.getAsOpaquePointer());
    }
  };
  std::map<Key, uint32_t> recordOf;
};

} // namespace

FailureOr<neff::Neff> mlir::neuron::emitProgram(func::FuncOp function, const EmitOptions &options) {
  return Emitter(function, options).run();
}

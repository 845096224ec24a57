// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Entry.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "dialects/NISA/NISAProgram.h"
#include "dialects/Neuron/NeuronOps.h"
#include "passes/Import/Import.h"

using namespace mlir;
using mlir::neuron::kPhases;
using mlir::neuron::parsePhase;
using mlir::neuron::Phase;
using mlir::neuron::phaseName;
namespace attribute = mlir::neuron::attribute;

namespace neuroncore::compiler {

namespace {

constexpr int kMaxNesting = 256;

/// A string attribute of the module; null when absent, an error when it is something else.
FailureOr<StringAttr> textAttribute(ModuleOp module, StringRef name) {
  Attribute attribute = module->getAttr(name);
  if (!attribute)
    return StringAttr();
  auto text = dyn_cast<StringAttr>(attribute);
  if (!text)
    return module.emitError() << "expected a string in " << name << " but got " << attribute;
  return text;
}

LogicalResult findPhase(ModuleOp module, Entry &entry) {
  FailureOr<StringAttr> recorded = textAttribute(module, attribute::kPhase);
  if (failed(recorded))
    return failure();
  if (entry.phase == Phase::Import)
    return module.emitError()
           << "expected IR to enter at phase graph or later but got 'import' (compile-from), which reads "
              "a GraphDef";
  if (!*recorded) {
    if (!entry.phase)
      entry.phase = Phase::Graph;
    return success();
  }
  std::optional<Phase> finished = parsePhase(recorded->getValue());
  if (!finished || *finished == Phase::Emit)
    return module.emitError() << "expected the name of a phase before emit in " << attribute::kPhase << " but got "
                              << *recorded;
  Phase next = kPhases[static_cast<int>(*finished) + 1].phase;
  if (entry.phase.value_or(next) != next)
    return module.emitError() << "expected the module, which has finished phase " << recorded->getValue()
                              << ", to enter at phase " << phaseName(next) << " but got '" << phaseName(*entry.phase)
                              << "' (compile-from); a module without the attribute " << attribute::kPhase
                              << " may enter where its contract holds";
  entry.phase = next;
  return success();
}

LogicalResult findTarget(ModuleOp module, Entry &entry) {
  FailureOr<StringAttr> recorded = textAttribute(module, attribute::kTarget);
  if (failed(recorded))
    return failure();
  StringRef target = *recorded ? recorded->getValue() : StringRef("trn2");
  if (target != "trn1" && target != "trn2" && target != "trn3")
    return module.emitError() << "expected target trn1, trn2 or trn3 in " << attribute::kTarget << " but got '"
                              << target << "'";
  // The graph phase does not look at the target.
  if (*recorded && *entry.phase > Phase::Kernels && !entry.target.empty() && entry.target != target)
    return module.emitError() << "expected target " << target << ", for which the module was lowered, but got '"
                              << entry.target << "' (target)";
  if (entry.target.empty())
    entry.target = target.str();
  return success();
}

LogicalResult verifyFunction(func::FuncOp function, Phase phase) {
  if (!function.getBody().hasOneBlock())
    return function.emitError() << "expected a function with one block but got "
                                << function.getBody().getBlocks().size();
  bool isTensors = phase <= Phase::Tile;
  for (Type type : llvm::concat<const Type>(function.getArgumentTypes(), function.getResultTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    auto buffer = dyn_cast<MemRefType>(type);
    if (isTensors ? !tensor || !tensor.hasStaticShape() : !buffer || buffer.getRank() != 1 || !buffer.hasStaticShape())
      return function.emitError() << "expected " << (isTensors ? "tensors of static shape" : "HBM buffers of rank 1")
                                  << " as arguments and results at the entry of phase " << phaseName(phase)
                                  << " but got " << type;
  }
  return success();
}

/// What the contracts of the phases take for granted. Beside the program a module may have layers that it calls, which
/// call nothing and replace no arguments.
LogicalResult verifyForm(ModuleOp module, Phase phase) {
  for (Operation &op : *module.getBody()) {
    auto function = dyn_cast<func::FuncOp>(op);
    if (!function)
      return op.emitError() << "expected functions and nothing else in the module";
    if (failed(verifyFunction(function, phase)))
      return failure();
  }
  SmallVector<func::FuncOp> programs = nisa::findPrograms(module);
  if (programs.size() != 1)
    return module.emitError() << "expected one function that no other one calls in the module but got "
                              << programs.size();
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function == programs.front())
      continue;
    WalkResult calls = function.walk([](::mlir::neuron::CallOp call) {
      call.emitOpError() << "expected no call in a function that is called itself";
      return WalkResult::interrupt();
    });
    if (calls.wasInterrupted())
      return failure();
  }
  return success();
}

LogicalResult verifyNodes(ModuleOp module) {
  Attribute nodes = module->getAttr(attribute::kNodes);
  auto array = dyn_cast_or_null<ArrayAttr>(nodes);
  if (nodes && (!array || !llvm::all_of(array, llvm::IsaPred<StringAttr>)))
    return module.emitError() << "expected an array of names in " << attribute::kNodes;
  return success();
}

} // namespace

std::optional<std::string> findDeepNesting(std::string_view text) {
  if (text.starts_with("ML\xefR")) // bytecode, which is not read by recursion
    return std::nullopt;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char character = text[i];
    if (character == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        i += text[i] == '\\';
    } else if (character == '/' && text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
    } else if (character == '(' || character == '[' || character == '{' || character == '<') {
      if (++depth > kMaxNesting)
        return "expected at most " + std::to_string(kMaxNesting) + " nested brackets but got more at byte " +
               std::to_string(i);
    } else if (character == ')' || character == ']' || character == '}' ||
               (character == '>' && (i == 0 || text[i - 1] != '-'))) {
      depth = std::max(0, depth - 1);
    } else if (text.substr(i, 11) == "affine_map<" || text.substr(i, 11) == "affine_set<") {
      return "expected no affine maps, which no phase has, but got one at byte " + std::to_string(i);
    }
  }
  return std::nullopt;
}

LogicalResult findEntry(ModuleOp module, Entry &entry) {
  return success(succeeded(findPhase(module, entry)) && succeeded(findTarget(module, entry)) &&
                 succeeded(verifyNodes(module)));
}

LogicalResult verifyEntry(ModuleOp module, const Entry &entry, const std::string &reproducer) {
  if (failed(verifyForm(module, *entry.phase)))
    return failure();
  PassManager manager(module.getContext());
  if (!reproducer.empty())
    manager.enableCrashReproducerGeneration(reproducer);
  ::mlir::neuron::PipelineOptions options;
  options.target = entry.target;
  ::mlir::neuron::buildEntryCheck(manager, *entry.phase, options);
  return manager.run(module);
}

llvm::StringMap<uint32_t> nodePositions(ModuleOp module) {
  llvm::StringMap<uint32_t> positions;
  if (auto nodes = module->getAttrOfType<ArrayAttr>(attribute::kNodes))
    for (auto [position, name] : llvm::enumerate(nodes.getAsRange<StringAttr>()))
      positions.try_emplace(name.getValue(), position);
  return positions;
}

} // namespace neuroncore::compiler

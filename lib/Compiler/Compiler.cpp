// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "neuron/Compiler/Compiler.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include "dialects/NISA/NISADialect.h"
#include "dialects/NISA/NISAProgram.h"
#include "dialects/Neuron/NeuronOps.h"
#include "neuron/Graph/GraphReader.h"
#include "neuron/Neff/Neff.h"
#include "neuron/Support/Interrupt.h"
#include "neuron/Support/Progress.h"
#include "neuron/Target/MachineModel.h"
#include "passes/Emit/Emit.h"
#include "passes/Import/Import.h"
#include "passes/Pipelines/Phases.h"

#include "Entry.h"

using namespace mlir;
using mlir::neuron::kPhases;
using mlir::neuron::Phase;
using mlir::neuron::PhaseInfo;

namespace neuroncore::compiler {

namespace {

constexpr const char *kVersion = "0.1.0";

/// Innermost first.
void collectFrames(Location loc, std::vector<SourceFrame> &frames, std::string &node) {
  if (auto name = dyn_cast<NameLoc>(loc)) {
    if (node.empty())
      node = name.getName().str();
    collectFrames(name.getChildLoc(), frames, node);
  } else if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    collectFrames(call.getCallee(), frames, node);
    collectFrames(call.getCaller(), frames, node);
  } else if (auto file = dyn_cast<FileLineColLoc>(loc)) {
    frames.push_back({file.getFilename().str(), static_cast<int>(file.getLine()), "", ""});
  } else if (auto fused = dyn_cast<FusedLoc>(loc)) {
    // The last operation of a kernel is what the user asked for.
    if (!fused.getLocations().empty())
      collectFrames(fused.getLocations().back(), frames, node);
  }
}

Diagnostic convert(mlir::Diagnostic &diagnostic) {
  Diagnostic result;
  switch (diagnostic.getSeverity()) {
  case DiagnosticSeverity::Error:
    result.severity = Diagnostic::Severity::Error;
    break;
  case DiagnosticSeverity::Warning:
    result.severity = Diagnostic::Severity::Warning;
    break;
  case DiagnosticSeverity::Remark:
    result.severity = Diagnostic::Severity::Remark;
    break;
  case DiagnosticSeverity::Note:
    result.severity = Diagnostic::Severity::Note;
    break;
  }
  result.message = diagnostic.str();
  collectFrames(diagnostic.getLocation(), result.frames, result.node);
  return result;
}

class Compilation {
public:
  Compilation(const CompileOptions &options, CompileResult &result)
      : options(options), result(result), context(MLIRContext::Threading::DISABLED),
        handler(&context, [this](mlir::Diagnostic &diagnostic) {
          this->result.diagnostics.push_back(convert(diagnostic));
          return success();
        }) {
    context.loadDialect<::mlir::neuron::NeuronDialect, nisa::NISADialect, func::FuncDialect, arith::ArithDialect,
                        scf::SCFDialect, memref::MemRefDialect>();
  }

  /// Reads the options that do not depend on the input.
  bool start() {
    for (auto [name, phase] :
         {std::pair(&options.compileFrom, &requestedFirst), std::pair(&options.compileTo, &requestedLast)}) {
      if (name->empty())
        continue;
      *phase = ::mlir::neuron::parsePhase(*name);
      if (!*phase)
        return fail("expected a phase (import, graph, kernels, tile, select, schedule, emit) but got '" + *name + "'");
    }
    last = requestedLast.value_or(Phase::Emit);
    target = options.target.empty() ? "trn2" : options.target;
    if (target != "trn1" && target != "trn2" && target != "trn3")
      return fail("expected target trn1, trn2 or trn3 but got '" + target + "'");
    return true;
  }

  /// Options that the phases from `first` to `last` would not look at are mistakes.
  bool checkRange() {
    auto name = [](Phase phase) { return ::mlir::neuron::phaseName(phase).str(); };
    if (last < first)
      return fail("expected the last phase to be " + name(first) + " or later, where the input enters, but got '" +
                  name(last) + "' (compile-to)");
    if (options.explainFusion && (first > Phase::Kernels || last < Phase::Kernels))
      return fail("expected the kernels phase, whose decisions explain-fusion prints, to run, but the phases are " +
                  name(first) + " to " + name(last));
    if (!options.dumpPhasesTo.empty() && first == Phase::Emit)
      return fail("expected a phase with IR to dump (dump-phases-to), but only emit runs");
    return true;
  }

  bool fail(const std::string &message) {
    Diagnostic diagnostic;
    diagnostic.message = message;
    result.diagnostics.push_back(std::move(diagnostic));
    return false;
  }

  bool import(std::span<const uint8_t> bytes) {
    first = Phase::Import;
    if (requestedFirst.value_or(first) != first)
      return fail("a GraphDef enters at phase import, but got '" + options.compileFrom +
                  "' (compile-from); IR of a later phase is read from a .mlir or .mlirbc file");
    if (!checkRange())
      return false;
    return timed(Phase::Import, [&] {
      Expected<graph::GraphDef> read = graph::readGraph(bytes);
      if (!read)
        return fail("graph: " + read.error().message());
      FailureOr<OwningOpRef<ModuleOp>> imported = ::mlir::neuron::importGraph(*read, &context);
      if (failed(imported)) {
        result.unsupported = true;
        return false;
      }
      module = std::move(*imported);
      return true;
    });
  }

  bool parse(std::string_view text) {
    if (std::optional<std::string> problem = findDeepNesting(text))
      return fail(*problem);
    ParserConfig config(&context);
    module = parseSourceString<ModuleOp>(StringRef(text.data(), text.size()), config);
    if (!module)
      return false;
    Entry entry{requestedFirst, options.target};
    if (failed(findEntry(*module, entry)))
      return false;
    first = *entry.phase;
    target = entry.target;
    return checkRange() && succeeded(verifyEntry(*module, entry, options.reproducer));
  }

  bool lower() {
    ::mlir::neuron::PipelineOptions pipeline;
    pipeline.target = target;
    pipeline.explainFusion = options.explainFusion;
    for (const PhaseInfo &info : kPhases) {
      if (info.phase < first || info.phase == Phase::Import)
        continue;
      if (info.phase == Phase::Emit || info.phase > last)
        break;
      bool ran = timed(info.phase, [&] {
        PassManager pm(&context);
        pm.enableVerifier(options.verifyEachPass);
        if (!options.reproducer.empty())
          pm.enableCrashReproducerGeneration(options.reproducer);
        ::mlir::neuron::buildPhase(pm, info.phase, pipeline);
        return succeeded(pm.run(*module));
      });
      if (!ran)
        return false;
    }
    return true;
  }

  bool finish() {
    for (auto function : module->getOps<func::FuncOp>())
      if (auto report = options.explainFusion ? function->getAttrOfType<ArrayAttr>("neuron.fusion_report") : nullptr)
        for (Attribute line : report)
          result.fusionReport.push_back(cast<StringAttr>(line).getValue().str());
    if (last != Phase::Emit) {
      llvm::raw_string_ostream stream(result.ir);
      module->print(stream, OpPrintingFlags().enableDebugInfo());
      return true;
    }
    return timed(Phase::Emit, [&] {
      ::mlir::neuron::EmitOptions emit;
      emit.target = target;
      emit.name = module->getName().value_or("graph").str();
      emit.compilerVersion = compilerVersion();
      emit.nodePositions = nodePositions(*module);
      FailureOr<neff::Neff> program = ::mlir::neuron::emitProgram(nisa::findPrograms(*module).front(), emit);
      if (failed(program))
        return false;
      describe(*program);
      neff::WriteOptions write;
      write.compress = options.compress;
      Expected<std::vector<uint8_t>> bytes = neff::writeNeff(*program, write);
      if (!bytes)
        return fail("neff: " + bytes.error().message());
      result.neff = std::move(*bytes);
      return true;
    });
  }

private:
  template <typename Body> bool timed(Phase phase, Body body) {
    if (interruptRequested())
      return fail("the compilation was interrupted before phase " + ::mlir::neuron::phaseName(phase).str());
    reportPhase(::mlir::neuron::phaseName(phase).str());
    auto start = std::chrono::steady_clock::now();
    bool ok = body();
    std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    result.phaseMilliseconds.push_back({::mlir::neuron::phaseName(phase).str(), elapsed.count()});
    if (ok && !options.dumpPhasesTo.empty() && phase != Phase::Emit)
      ok = dump(phase);
    return ok;
  }

  bool dump(Phase phase) {
    if (std::error_code error = llvm::sys::fs::create_directories(options.dumpPhasesTo))
      return fail("cannot create " + options.dumpPhasesTo + ": " + error.message());
    llvm::SmallString<128> path(options.dumpPhasesTo);
    llvm::sys::path::append(path, std::to_string(static_cast<int>(phase)) + "-" +
                                      ::mlir::neuron::phaseName(phase).str() + ".mlir");
    std::error_code error;
    llvm::raw_fd_ostream file(path, error);
    if (error)
      return fail("cannot write " + path.str().str() + ": " + error.message());
    module->print(file, OpPrintingFlags().enableDebugInfo());
    file << '\n';
    return true;
  }

  void describe(const neff::Neff &program) {
    nlohmann::json inputs = nlohmann::json::array(), outputs = nlohmann::json::array();
    // Arguments are named by their position among the graph's inputs.
    auto positionOf = [](StringRef name) -> nlohmann::json {
      int64_t position;
      if (name.consume_front("input") && !name.getAsInteger(10, position))
        return position;
      return nullptr;
    };
    for (const neff::Variable &variable : program.variables) {
      if (variable.kind == neff::Variable::Kind::Input) {
        const char *role = variable.role == neff::Variable::Role::Parameters ? "parameters"
                           : variable.role == neff::Variable::Role::RngState ? "rng_state"
                                                                             : "tensor";
        inputs.push_back({{"name", variable.name}, {"role", role}, {"index", positionOf(variable.name)}});
      } else if (variable.kind == neff::Variable::Kind::Output) {
        nlohmann::json alias = nullptr;
        if (variable.aliasOf >= 0)
          alias = positionOf(program.variables[variable.aliasOf].name);
        outputs.push_back({{"name", variable.name}, {"alias_input", alias}});
      }
    }
    int64_t instructions = 0, scratch = 0;
    for (const isa::Stream &stream : program.program)
      instructions += stream.size();
    for (const neff::Variable &variable : program.variables)
      if (variable.kind == neff::Variable::Kind::Scratch)
        scratch += variable.bytes;
    int64_t kernels = 0;
    module->walk([&](nisa::KernelOp) { ++kernels; });
    nlohmann::json phases = nlohmann::json::object();
    for (auto &[name, milliseconds] : result.phaseMilliseconds)
      phases[name] = milliseconds;
    // Part of the compiler: for people who compare two programs.
    const auto *model = ::neuroncore::target::MachineModel::builtin(target);
    result.metadataJson = nlohmann::json({{"inputs", inputs},
                                          {"machine_model", model ? model->hash().toString() : ""},
                                          {"outputs", outputs},
                                          {"rng_increment", program.rngIncrement},
                                          {"kernels", kernels},
                                          {"instructions", instructions},
                                          {"scratch_bytes", scratch},
                                          {"phase_milliseconds", phases}})
                              .dump();
  }

  const CompileOptions &options;
  CompileResult &result;
  MLIRContext context;
  ScopedDiagnosticHandler handler;
  OwningOpRef<ModuleOp> module;
  std::optional<Phase> requestedFirst, requestedLast;
  Phase first = Phase::Import, last = Phase::Emit;
  std::string target;
};

} // namespace

CompileResult compileGraph(std::span<const uint8_t> graphDef, const CompileOptions &options) {
  CompileResult result;
  ProgressLine progress("neuron compiles");
  Compilation compilation(options, result);
  result.succeeded = compilation.start() && compilation.import(graphDef) && compilation.lower() && compilation.finish();
  return result;
}

CompileResult compileIr(std::string_view text, const CompileOptions &options) {
  CompileResult result;
  ProgressLine progress("neuron compiles");
  Compilation compilation(options, result);
  result.succeeded = compilation.start() && compilation.parse(text) && compilation.lower() && compilation.finish();
  return result;
}

std::vector<Overload> supportedOverloads() {
  std::vector<Overload> result;
  for (const ::mlir::neuron::OverloadInfo &info : ::mlir::neuron::supportedOverloads())
    result.push_back({info.name, info.signature, info.variantOf, info.structuralScalars});
  return result;
}

std::string compilerVersion() { return kVersion; }

} // namespace neuroncore::compiler

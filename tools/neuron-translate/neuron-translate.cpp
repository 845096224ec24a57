// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// neuron-translate: between GraphDef, MLIR and arrays. One action per call:
//   --print-graph GRAPH              the graph as text
//   --import-graph GRAPH             the graph in the neuron dialect
//   --evaluate GRAPH|MLIR            its results for the .npy files given by --inputs
//   --evaluate-batch DIRECTORY       the same for each DIRECTORY/*/graph.pb with input0.npy, ...; errors go to
//   error.txt
//   --list-overloads                 what the importer knows, one overload a line, tab separated

#include <filesystem>
#include <fstream>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

#include "Evaluate.h"
#include "dialects/Neuron/NeuronOps.h"
#include "neuron/Graph/GraphReader.h"
#include "passes/Graph/Passes.h"
#include "passes/Import/Import.h"

namespace cl = llvm::cl;
namespace fs = std::filesystem;
using mlir::LogicalResult;
using neuroncore::Expected;
using neuroncore::Status;
using neuroncore::graph::GraphDef;

namespace {

/// The shared library of LLVM brings hundreds of options of its own, which --help leaves out.
cl::OptionCategory options("neuron-translate options");

enum class Action { None, PrintGraph, ImportGraph, Evaluate, EvaluateBatch, ListOverloads };

cl::opt<Action>
    action(cl::desc("Action:"),
           cl::values(clEnumValN(Action::PrintGraph, "print-graph", "print a GraphDef as text"),
                      clEnumValN(Action::ImportGraph, "import-graph", "import a GraphDef"),
                      clEnumValN(Action::Evaluate, "evaluate", "evaluate a GraphDef or MLIR on arrays"),
                      clEnumValN(Action::EvaluateBatch, "evaluate-batch", "evaluate every case below a directory"),
                      clEnumValN(Action::ListOverloads, "list-overloads", "list the operators that can be imported")),
           cl::init(Action::None), cl::cat(options));
cl::opt<std::string> inputPath(cl::Positional, cl::desc("<input>"), cl::init("-"));
cl::opt<std::string> outputPath("o", cl::desc("output file"), cl::init("-"), cl::cat(options));
cl::list<std::string> inputs("inputs", cl::desc("arrays to evaluate on (.npy)"), cl::CommaSeparated, cl::cat(options));
cl::opt<std::string> outputDirectory("output-dir", cl::desc("directory for the resulting arrays"), cl::init("."),
                                     cl::cat(options));
cl::opt<bool> optimize("graph-pipeline", cl::desc("run the graph phase on what was imported"), cl::cat(options));
cl::opt<bool> debugInfo("mlir-locations", cl::desc("print locations"), cl::cat(options));

int fail(const std::string &message) {
  llvm::errs() << "error: " << message << "\n";
  return 1;
}

Expected<GraphDef> readGraphFile(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(path);
  if (!buffer)
    return neuroncore::Error(neuroncore::ErrorKind::NotFound, "expected a readable file but cannot open " + path);
  llvm::StringRef bytes = (*buffer)->getBuffer();
  return neuroncore::graph::readGraph(
      std::span<const uint8_t>(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
}

LogicalResult runGraphPipeline(mlir::ModuleOp module) {
  if (!optimize)
    return mlir::success();
  mlir::PassManager manager(module.getContext());
  mlir::neuron::buildGraphPipeline(manager);
  return manager.run(module);
}

mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> importAndRun(const GraphDef &graph, mlir::MLIRContext &context) {
  mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> module = mlir::neuron::importGraph(graph, &context);
  if (failed(module) || failed(runGraphPipeline(**module)))
    return mlir::failure();
  return module;
}

void registerDialects(mlir::MLIRContext &context) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::neuron::NeuronDialect, mlir::func::FuncDialect, mlir::arith::ArithDialect,
                  mlir::scf::SCFDialect, mlir::memref::MemRefDialect>();
  context.appendDialectRegistry(registry);
}

int printOrImport(mlir::MLIRContext &context, llvm::raw_ostream &os) {
  Expected<GraphDef> graph = readGraphFile(inputPath);
  if (!graph)
    return fail(graph.error().message());
  if (action == Action::PrintGraph) {
    os << neuroncore::graph::printGraph(*graph);
    return 0;
  }
  auto module = importAndRun(*graph, context);
  if (failed(module))
    return 1;
  mlir::OpPrintingFlags flags;
  if (debugInfo)
    flags.enableDebugInfo(true, true);
  (*module)->print(os, flags);
  os << "\n";
  return 0;
}

int evaluateOne(mlir::MLIRContext &context) {
  std::vector<std::string> paths(inputs.begin(), inputs.end());
  if (llvm::StringRef(inputPath).ends_with(".mlir")) {
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceFile<mlir::ModuleOp>(inputPath, &context);
    if (!module || failed(runGraphPipeline(*module)))
      return 1;
    Status status = evaluateOnFiles(*module, nullptr, paths, outputDirectory);
    return status ? 0 : fail(status.error().message());
  }
  Expected<GraphDef> graph = readGraphFile(inputPath);
  if (!graph)
    return fail(graph.error().message());
  auto module = importAndRun(*graph, context);
  if (failed(module))
    return 1;
  Status status = evaluateOnFiles(**module, &*graph, paths, outputDirectory);
  return status ? 0 : fail(status.error().message());
}

/// The message of the first error, and the notes below it.
std::string evaluateCase(const fs::path &directory) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  registerDialects(context);
  std::string messages;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    messages += diagnostic.str() + "\n";
    return mlir::success();
  });
  Expected<GraphDef> graph = readGraphFile((directory / "graph.pb").string());
  if (!graph)
    return graph.error().message();
  auto module = importAndRun(*graph, context);
  if (failed(module))
    return messages.empty() ? "import failed" : messages;
  std::vector<std::string> paths;
  for (int i = 0; i < graph->inputs_size(); ++i)
    paths.push_back((directory / ("input" + std::to_string(i) + ".npy")).string());
  Status status = evaluateOnFiles(**module, &*graph, paths, directory.string());
  return status ? std::string() : status.error().message();
}

int evaluateBatch() {
  std::error_code problem;
  for (const fs::directory_entry &entry : fs::directory_iterator(std::string(inputPath), problem)) {
    if (!fs::exists(entry.path() / "graph.pb"))
      continue;
    if (std::string message = evaluateCase(entry.path()); !message.empty())
      std::ofstream(entry.path() / "error.txt") << message;
  }
  return problem ? fail("expected a readable directory but cannot open " + inputPath) : 0;
}

/// An option that the action does not look at is a mistake. Returns its message, or an empty one.
std::string findUnusedOption() {
  bool evaluates = action == Action::Evaluate, imports = action == Action::ImportGraph;
  struct Use {
    const cl::Option &option;
    bool isUsed;
  };
  for (const auto &[option, isUsed] : {
           Use{inputs, evaluates},
           Use{outputDirectory, evaluates},
           Use{outputPath, !evaluates && action != Action::EvaluateBatch},
           Use{optimize, evaluates || imports || action == Action::EvaluateBatch},
           Use{debugInfo, imports},
           Use{inputPath, action != Action::ListOverloads},
       })
    if (option.getNumOccurrences() != 0 && !isUsed)
      return option.ArgStr.empty() ? std::string("expected no input file for this action")
                                   : "expected no -" + (option.ArgStr.size() > 1 ? "-" + option.ArgStr.str() : "o") +
                                         " with this action; see --help";
  return "";
}

void listOverloads(llvm::raw_ostream &os) {
  for (const mlir::neuron::OverloadInfo &info : mlir::neuron::supportedOverloads()) {
    os << info.name << "\t" << info.signature << "\t" << info.subject << "\t" << info.variantOf << "\t";
    llvm::interleave(info.structuralScalars, os, ",");
    os << "\n";
  }
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(options);
  cl::ParseCommandLineOptions(argc, argv, "translate between GraphDef, MLIR and arrays\n");
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  registerDialects(context);
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler handler(sources, &context);
  if (action == Action::None)
    return fail("expected an action: --print-graph, --import-graph, --evaluate, --evaluate-batch or --list-overloads; "
                "see --help");
  if (std::string message = findUnusedOption(); !message.empty())
    return fail(message);
  switch (action) {
  case Action::Evaluate:
    return evaluateOne(context);
  case Action::EvaluateBatch:
    return evaluateBatch();
  default:
    break;
  }
  std::string message;
  std::unique_ptr<llvm::ToolOutputFile> output = mlir::openOutputFile(outputPath, &message);
  if (!output)
    return fail(message);
  int status = 0;
  if (action == Action::ListOverloads)
    listOverloads(output->os());
  else
    status = printOrImport(context, output->os());
  if (status == 0)
    output->keep();
  return status;
}

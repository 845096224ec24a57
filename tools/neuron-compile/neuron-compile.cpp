// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// neuron-compile: a GraphDef or the text of any phase in, a NEFF or the text of a later phase out.

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <sstream>

#include "ExplainCache.h"
#include "neuron/Compiler/Compiler.h"

using namespace neuroncore::compiler;

namespace {

/// MLIR has no name for text that comes from memory.
std::string fileOf(const SourceFrame &frame, const std::string &input) {
  return frame.file == "-" ? input : frame.file;
}

void print(const Diagnostic &diagnostic, const std::string &input) {
  static constexpr const char *kNames[] = {"error", "warning", "remark", "note"};
  if (diagnostic.frames.empty())
    std::cerr << input << ": ";
  else
    std::cerr << fileOf(diagnostic.frames.front(), input) << ':' << diagnostic.frames.front().line << ": ";
  std::cerr << kNames[static_cast<int>(diagnostic.severity)] << ": ";
  if (!diagnostic.node.empty())
    std::cerr << '[' << diagnostic.node << "] ";
  std::cerr << diagnostic.message << '\n';
  for (size_t i = 1; i < diagnostic.frames.size(); ++i)
    std::cerr << "  called from " << fileOf(diagnostic.frames[i], input) << ':' << diagnostic.frames[i].line << '\n';
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app{
      "compile a GraphDef (.pb) or MLIR (.mlir, .mlirbc) for a NeuronCore; the NEFF runs on the emulator only"};
  std::string input, output;
  CompileOptions options;
  bool timing = false, metadata = false;
  app.name("neuron-compile");
  app.set_version_flag("--version", "neuron-compile " NEURON_VERSION);
  app.add_option("input", input, "GraphDef or MLIR file")->check(CLI::ExistingFile);
  app.add_option("-o,--output", output, "file to write (default: standard output for IR, <input>.neff for a NEFF)");
  app.add_option("--target", options.target, "trn1, trn2 or trn3 (default: that of the MLIR input, else trn2)");
  app.add_option("--compile-from", options.compileFrom,
                 "phase the MLIR input enters (default: after the phase it says it has finished, else graph)");
  app.add_option("--compile-to", options.compileTo, "last phase to run (default: emit)");
  app.add_option("--dump-phases-to", options.dumpPhasesTo, "directory for the IR after each phase");
  app.add_option("--reproducer", options.reproducer, "file for the IR and pipeline of a failing pass");
  app.add_flag("--explain-fusion", options.explainFusion, "print why values were not fused");
  app.add_flag("--verify-each", options.verifyEachPass, "verify the IR after every pass");
  app.add_flag("--timing", timing, "print milliseconds per phase");
  app.add_flag("--metadata", metadata, "print the program's metadata as JSON");
  bool uncompressed = false;
  app.add_flag("--uncompressed", uncompressed, "write an uncompressed container");
  std::vector<std::string> explained;
  std::string cacheDirectory;
  CLI::Option *explain =
      app.add_option(
             "--explain-cache", explained,
             "print why two programs have different keys in the NEFF cache: each a GraphDef, a kept NEFF or folder, "
             "or a key; exit status 0 when the keys are equal, 1 when they differ")
          ->expected(2)
          ->type_name("A B");
  app.add_option("--cache-dir", cacheDirectory, "where the keys of --explain-cache are (default: as torch_neuronx)")
      ->needs(explain);
  app.final_callback([&] {
    if (explained.empty() && input.empty())
      throw CLI::RequiredError("input");
    if (!explained.empty() && !input.empty())
      throw CLI::ExcludesError("input", "--explain-cache");
  });
  CLI11_PARSE(app, argc, argv);
  if (!explained.empty())
    return explainCache(explained[0], explained[1], cacheDirectory);
  options.compress = !uncompressed;
  if (!options.compileTo.empty() && options.compileTo != "emit")
    for (auto [name, given] : {std::pair("--metadata", metadata), std::pair("--uncompressed", uncompressed)})
      if (given) {
        std::cerr << "error: " << name << " is about the NEFF, which --compile-to " << options.compileTo
                  << " does not make\n";
        return 1;
      }

  std::ifstream file(input, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  std::string bytes = content.str();
  bool isIr = input.size() > 5 && (input.ends_with(".mlir") || input.ends_with(".mlirbc"));
  CompileResult result = isIr ? compileIr(bytes, options)
                              : compileGraph({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()}, options);
  for (const Diagnostic &diagnostic : result.diagnostics)
    print(diagnostic, input);
  if (timing)
    for (auto &[phase, milliseconds] : result.phaseMilliseconds)
      std::cerr << phase << ": " << milliseconds << " ms\n";
  for (const std::string &line : result.fusionReport)
    std::cerr << line << '\n';
  if (options.explainFusion && result.succeeded && result.fusionReport.empty())
    std::cerr << "no fusion was refused\n";
  if (!result.succeeded)
    return 1;
  if (metadata)
    std::cout << result.metadataJson << '\n';
  bool wroteIr = result.neff.empty();
  if (output.empty() && wroteIr) {
    std::cout << result.ir << '\n';
    return 0;
  }
  if (output.empty())
    output = input + ".neff";
  std::ofstream out(output, std::ios::binary);
  if (wroteIr)
    out << result.ir << '\n';
  else
    out.write(reinterpret_cast<const char *>(result.neff.data()), static_cast<std::streamsize>(result.neff.size()));
  if (!out) {
    std::cerr << "error: cannot write " << output << '\n';
    return 1;
  }
  return 0;
}

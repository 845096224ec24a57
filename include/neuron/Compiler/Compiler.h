// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The compiler as a library: a GraphDef (or the text of any phase) in, a NEFF out. No MLIR or protobuf type appears
// here. Calls are independent and may run on several threads at once.

#ifndef NEURON_COMPILER_COMPILER_H
#define NEURON_COMPILER_COMPILER_H

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace neuroncore::compiler {

struct CompileOptions {
  /// trn1, trn2 or trn3; empty: that of the IR, else trn2.
  std::string target;
  /// False: an uncompressed container, quicker to write and to load.
  bool compress = true;
  /// Collect why values were or were not fused.
  bool explainFusion = false;
  /// Names of phases (passes/Pipelines/Phases.h); empty: from where the input enters (IR: after the phase it has
  /// finished) to the NEFF.
  std::string compileFrom;
  std::string compileTo;
  /// Directory that receives the IR after each phase, numbered; empty: none.
  std::string dumpPhasesTo;
  /// Verify the IR after every pass, not only at the end of phases.
  bool verifyEachPass = false;
  /// File that receives the IR and pipeline of a pass that failed; empty: none.
  std::string reproducer;
};

/// A frame of the user's Python stack.
struct SourceFrame {
  std::string file;
  int line = 0;
  std::string function;
  std::string text;
};

struct Diagnostic {
  enum class Severity { Error, Warning, Remark, Note };
  Severity severity = Severity::Error;
  std::string message;
  /// Name of the graph node it concerns, or empty.
  std::string node;
  /// Innermost first.
  std::vector<SourceFrame> frames;
};

struct CompileResult {
  bool succeeded = false;
  /// True when the graph holds something the compiler does not support (as opposed to an internal failure).
  bool unsupported = false;
  std::vector<Diagnostic> diagnostics;
  /// The NEFF, unless compileTo stopped earlier.
  std::vector<uint8_t> neff;
  /// The IR at the end, when compileTo stopped before emit.
  std::string ir;
  /// JSON: inputs, outputs, rng_increment, kernels, instructions, milliseconds per phase.
  std::string metadataJson;
  std::vector<std::string> fusionReport;
  std::vector<std::pair<std::string, double>> phaseMilliseconds;
};

CompileResult compileGraph(std::span<const uint8_t> graphDef, const CompileOptions &options);
/// `text`: MLIR text or bytecode at the entry of options.compileFrom.
CompileResult compileIr(std::string_view text, const CompileOptions &options);

/// Overloads the importer knows, sorted: {name, signature, variant of, structural scalars as "0,2"}.
struct Overload {
  std::string name;
  std::string signature;
  std::string variantOf;
  std::vector<unsigned> structuralScalars;
};
std::vector<Overload> supportedOverloads();

/// Changes whenever generated code may change: part of every cache key.
std::string compilerVersion();

} // namespace neuroncore::compiler

#endif // NEURON_COMPILER_COMPILER_H

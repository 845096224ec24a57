// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The content of one NEFF in memory, and its two codecs: the container of the public documentation with our own
// instruction streams inside (docs/Encoding.md, docs/Neff.md). Reading is a trust boundary: a Neff that readNeff
// returns is well formed (every index, offset, extent and access pattern checked against its buffer).

#ifndef NEURON_NEFF_NEFF_H
#define NEURON_NEFF_NEFF_H

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "neuron/Isa/Instruction.h"
#include "neuron/Support/Error.h"

namespace neuroncore::neff {

/// One HBM variable of the subgraph (`def.json` var).
struct Variable {
  enum class Kind : uint8_t {
    Input,    // bound at execute
    Output,   // bound at execute
    Constant, // `file`: content in the NEFF
    Scratch,  // `tmp-buf`: private to the NEFF, undefined at start
  };
  /// What an input holds, so that the caller knows what to bind.
  enum class Role : uint8_t {
    Tensor,
    Parameters, // the run-time scalars: 16 bytes each {f32 value, u32 zero, i64 value}
    RngState,   // i64 (seed, offset)
  };
  std::string name;
  Kind kind = Kind::Input;
  Role role = Role::Tensor;
  int64_t bytes = 0;
  int64_t alignment = 64;
  isa::Dtype dtype = isa::Dtype::None;
  std::vector<int64_t> shape;
  /// Strides in elements; empty means row-major contiguous.
  std::vector<int64_t> strides;
  /// Kind::Output: var_id of the input whose memory this output is bound to, or -1.
  int32_t aliasOf = -1;
  std::vector<uint8_t> data; // Constant
};

/// One record of instruction provenance; Instruction::debugId is its position + 1.
struct DebugRecord {
  std::string kernel;
  /// Text of the neuron op(s) the instruction comes from, for example "neuron.unary<rsqrt>".
  std::string op;
  /// GraphDef node positions. The Python lines are a sidecar, attached at load.
  std::vector<uint32_t> nodes;
};

/// What the parameters stand for in one run: parameter p is variable variables[p - firstParameter]. Other parameters
/// are not bound in this run.
struct Run {
  uint32_t firstParameter = 0;
  std::vector<uint32_t> variables;
};

struct Neff {
  std::string name;
  std::string target = "trn2"; // trn1, trn2, trn3
  std::string compilerVersion;
  std::vector<Variable> variables; // position = var_id
  isa::Program program;
  /// Bytes of each parameter: an access stays inside them, and whatever is bound to it has at least as many.
  std::vector<int64_t> parameterBytes;
  /// By run number, which isa::kRunRegister of each stream holds. Empty: one run, without parameters.
  std::vector<Run> runs;
  std::vector<DebugRecord> debug;
  /// Bytes of SBUF per partition and of PSUM per partition that the program uses (information).
  int64_t sbufBytesPerPartition = 0;
  int64_t psumBytesPerPartition = 0;
  int32_t semaphores = 0;
  /// Random numbers: how far one execution advances the generator's offset.
  int64_t rngIncrement = 0;
  /// Compile statistics and options as JSON text, stored as is.
  std::string metricsJson = "{}";
};

/// The variable that an HBM operand stands for in a run; -1 for a parameter that the run does not bind.
inline int32_t boundVariable(const Neff &neff, uint16_t operand, int64_t run) {
  if (!(operand & isa::kParameterFlag))
    return operand;
  if (run < 0 || run >= int64_t(neff.runs.size()))
    return -1;
  const Run &bindings = neff.runs[size_t(run)];
  uint32_t index = uint32_t(operand & ~isa::kParameterFlag) - bindings.firstParameter;
  return index < bindings.variables.size() ? int32_t(bindings.variables[index]) : -1;
}
/// How many bytes an HBM operand of a verified NEFF may touch, in any run.
inline int64_t operandBytes(const Neff &neff, uint16_t operand) {
  return operand & isa::kParameterFlag ? neff.parameterBytes[operand & ~isa::kParameterFlag]
                                       : neff.variables[operand].bytes;
}
/// "variable 'x'", or "variable 'x' (parameter 3 in run 2)".
std::string describeOperand(const Neff &neff, uint16_t operand, int64_t run);

/// Everything that readNeff guarantees and writeNeff requires: variables, instructions on the target, static accesses.
Status verifyNeff(const Neff &neff);

struct WriteOptions {
  /// False: an uncompressed tar payload (the in-memory container of eager one-op graphs).
  bool compress = true;
};

/// Deterministic: the same Neff gives the same bytes.
Expected<std::vector<uint8_t>> writeNeff(const Neff &neff, const WriteOptions &options = {});

struct ReadOptions {
  bool validateHash = true;
  /// Bound of what the archive may unpack to.
  uint64_t maxUnpackedBytes = uint64_t(1) << 36;
};
Expected<Neff> readNeff(std::span<const uint8_t> bytes, const ReadOptions &options = {});

} // namespace neuroncore::neff

#endif // NEURON_NEFF_NEFF_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Accesses of the program to its HBM variables.

#include <algorithm>

#include "Variables.h"
#include "neuron/Isa/Codec.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Support/Text.h"

namespace neuroncore::neff {

using isa::HbmPattern;
using isa::Instruction;

namespace {

/// Sums of products of 64-bit numbers; the encoding allows them to exceed 64 bits.
using Wide = __int128;

std::string printWide(Wide value) {
  if (value > INT64_MAX)
    return "more than 2^63";
  if (value < INT64_MIN)
    return "less than -2^63";
  return std::to_string(int64_t(value));
}

bool isDynamic(const HbmPattern &pattern) {
  for (const HbmPattern::Term &term : pattern.terms)
    if (term.reg != isa::kZeroRegister)
      return true;
  for (int k = 0; k < isa::kMaxHbmDims; ++k)
    if (pattern.countRegister[k] != isa::kZeroRegister || pattern.stepRegister[k] != isa::kZeroRegister)
      return true;
  return false;
}

class AccessVerifier {
public:
  explicit AccessVerifier(const Neff &neff)
      : neff_(neff), variables_(neff.variables), mutated_(neff.variables.size()),
        boundTo_(neff.parameterBytes.size(), kUnbound), readOnly_(neff.parameterBytes.size(), kUnbound) {
    for (const Variable &variable : variables_)
      if (variable.aliasOf >= 0)
        mutated_[size_t(variable.aliasOf)] = true;
    for (const Run &run : neff.runs)
      for (size_t i = 0; i < run.variables.size(); ++i) {
        size_t parameter = run.firstParameter + i;
        boundTo_[parameter] = run.variables[i];
        if (!mayBeWritten(run.variables[i]))
          readOnly_[parameter] = run.variables[i];
      }
  }

  Status check(const Instruction &in) const {
    const isa::InstructionInfo &info = isa::instructionInfo(in.opcode);
    for (int i = 0; i < info.numTiles; ++i) {
      if (in.tiles[i].space != isa::MemorySpace::Hbm)
        continue;
      bool writes = info.tiles[i].writes();
      // An index scales the outermost step of the side in HBM: only the run knows what it selects.
      bool indexed = in.opcode == isa::Opcode::DmaCopy && in.tiles[2].present();
      if (Status status = access(in.hbm[writes ? 0 : 1], writes, indexed); !status)
        return status.error().withContext(std::string(info.tiles[i].name));
    }
    return Status::success();
  }

private:
  Status access(const HbmPattern &pattern, bool writes, bool indexed) const {
    auto outOfBounds = [](std::string message) { return Error(ErrorKind::InvalidInput, std::move(message)); };
    uint32_t written = pattern.variable;
    if (pattern.isParameter()) {
      if (pattern.parameter() >= boundTo_.size())
        return outOfBounds(cat("expected a parameter below ", boundTo_.size(), " but got ", pattern.parameter()));
      if (boundTo_[pattern.parameter()] == kUnbound)
        return outOfBounds(cat("expected a parameter that some run binds but got ", pattern.parameter()));
      written = readOnly_[pattern.parameter()];
    } else if (pattern.variable >= variables_.size()) {
      return outOfBounds(cat("expected a variable below ", variables_.size(), " but got ", pattern.variable));
    }
    if (writes && written != kUnbound && !mayBeWritten(written)) {
      const Variable &variable = variables_[written];
      return Error(ErrorKind::InvalidInput,
                   cat("expected to write an output, a scratch variable or an input that an output aliases, but '",
                       variable.name, "'", pattern.isParameter() ? ", to which a run binds the parameter," : "", " is ",
                       variable.kind == Variable::Kind::Constant ? "a constant" : "an input"));
    }
    if (isDynamic(pattern))
      return Status::success();
    Wide low = indexed ? 0 : Wide(pattern.byteOffset), high = low;
    for (int k = indexed ? 1 : 0; k < isa::kMaxHbmDims; ++k) {
      Wide reach = Wide(pattern.step[k]) * (Wide(pattern.count[k]) - 1);
      (reach < 0 ? low : high) += reach;
    }
    high += isa::dtypeBytes(pattern.dtype);
    // With an index, the inner extent must at least fit somewhere.
    int64_t bytes = operandBytes(neff_, pattern.variable);
    if (indexed ? high - low > bytes : low < 0 || high > bytes)
      return outOfBounds(cat("expected bytes 0 to ", bytes, " of ",
                             pattern.isParameter() ? cat("parameter ", pattern.parameter())
                                                   : cat("'", variables_[pattern.variable].name, "'"),
                             " but the access takes ", printWide(low), " to ", printWide(high)));
    return Status::success();
  }

  bool mayBeWritten(uint32_t id) const {
    Variable::Kind kind = variables_[id].kind;
    return kind != Variable::Kind::Constant && (kind != Variable::Kind::Input || mutated_[id]);
  }

  static constexpr uint32_t kUnbound = UINT32_MAX;
  const Neff &neff_;
  const std::vector<Variable> &variables_;
  std::vector<bool> mutated_;
  /// By parameter: a variable that some run binds to it, and one of those that may not be written.
  std::vector<uint32_t> boundTo_, readOnly_;
};

} // namespace

Status verifyAccesses(const Neff &neff) {
  AccessVerifier verifier(neff);
  for (int s = 0; s < isa::kNumStreams; ++s) {
    const isa::Stream &stream = neff.program[s];
    for (size_t i = 0; i < stream.size(); ++i) {
      auto where = [&](const Error &error) {
        return error.withContext(isa::describeInstruction(isa::kStreamEngines[s], i, stream[i].opcode));
      };
      if (stream[i].debugId > neff.debug.size())
        return where(Error(ErrorKind::InvalidInput,
                           cat("expected a debug id of at most ", neff.debug.size(), " but got ", stream[i].debugId)));
      if (Status status = verifier.check(stream[i]); !status)
        return where(status.error());
    }
  }
  return Status::success();
}

} // namespace neuroncore::neff

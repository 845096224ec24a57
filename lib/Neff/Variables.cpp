// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules of the variables of a NEFF.

#include "Variables.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "neuron/Support/Text.h"

namespace neuroncore::neff {

static Error invalid(std::string message) { return Error(ErrorKind::InvalidInput, std::move(message)); }

bool isRowMajor(const Variable &variable) {
  if (variable.strides.empty())
    return true;
  int64_t expected = 1;
  for (size_t i = variable.shape.size(); i-- > 0;) {
    if (variable.shape[i] == 0)
      return true;
    if (variable.shape[i] != 1 && variable.strides[i] != expected)
      return false;
    expected *= variable.shape[i];
  }
  return true;
}

int64_t tensorBytes(const Variable &variable) {
  int64_t bytes = isa::dtypeBytes(variable.dtype);
  for (int64_t size : variable.shape)
    bytes *= size;
  return bytes;
}

static Status verifyShape(const Variable &variable) {
  if (variable.shape.size() > kMaxRank)
    return invalid(cat("expected at most ", kMaxRank, " dimensions but got ", variable.shape.size()));
  if (!variable.strides.empty() && variable.strides.size() != variable.shape.size())
    return invalid(cat("expected no strides or ", variable.shape.size(), " but got ", variable.strides.size()));
  if (variable.dtype == isa::Dtype::None) {
    if (!variable.shape.empty())
      return invalid("expected no shape without a dtype");
    return Status::success();
  }
  int64_t elementBytes = isa::dtypeBytes(variable.dtype);
  if (elementBytes == 0)
    return invalid(cat("expected a known dtype but got code ", int(variable.dtype)));
  int64_t elements = 1, last = 0, step = 0;
  bool empty = false;
  for (size_t i = 0; i < variable.shape.size(); ++i) {
    int64_t size = variable.shape[i];
    int64_t stride = variable.strides.empty() ? 0 : variable.strides[i];
    if (size < 0 || stride < 0)
      return invalid(cat("expected sizes and strides of at least 0 but got ", size, " and ", stride));
    empty |= size == 0;
    if (__builtin_mul_overflow(elements, std::max<int64_t>(size, 1), &elements) ||
        __builtin_mul_overflow(std::max<int64_t>(size - 1, 0), stride, &step) ||
        __builtin_add_overflow(last, step, &last))
      return invalid("expected a shape whose elements can be counted in 63 bits");
  }
  int64_t reach = empty ? 0 : variable.strides.empty() ? elements : last + 1;
  if (reach > variable.bytes / elementBytes)
    return invalid(
        cat("expected at least ", reach, " elements of ", elementBytes, " bytes but the size is ", variable.bytes));
  return Status::success();
}

static Status verifyVariable(const Neff &neff, const Variable &variable) {
  if (variable.bytes < 0)
    return invalid(cat("expected a size of at least 0 but got ", variable.bytes));
  if (variable.alignment <= 0 || !std::has_single_bit(uint64_t(variable.alignment)) ||
      variable.alignment > int64_t(1) << 30)
    return invalid(cat("expected an alignment that is a power of two up to 2^30 but got ", variable.alignment));
  if (Status status = verifyShape(variable); !status)
    return status;
  bool isConstant = variable.kind == Variable::Kind::Constant;
  if (isConstant ? int64_t(variable.data.size()) != variable.bytes : !variable.data.empty())
    return invalid(cat("expected ", isConstant ? variable.bytes : 0, " bytes of data but got ", variable.data.size()));
  if (variable.role != Variable::Role::Tensor && variable.kind != Variable::Kind::Input)
    return invalid("expected parameters and random state to be inputs");
  if (variable.role == Variable::Role::Parameters && variable.bytes % kParameterBytes != 0)
    return invalid(cat("expected parameters of ", kParameterBytes, " bytes each but the size is ", variable.bytes));
  if (variable.role == Variable::Role::RngState && variable.bytes != kRngStateBytes)
    return invalid(cat("expected ", kRngStateBytes, " bytes of random state but got ", variable.bytes));
  if (variable.aliasOf == -1)
    return Status::success();
  if (variable.kind != Variable::Kind::Output || variable.aliasOf < 0 ||
      size_t(variable.aliasOf) >= neff.variables.size())
    return invalid(cat("expected an output to alias an input but got variable ", variable.aliasOf));
  const Variable &input = neff.variables[size_t(variable.aliasOf)];
  if (input.kind != Variable::Kind::Input || input.role != Variable::Role::Tensor || input.bytes != variable.bytes)
    return invalid(cat("expected to alias a tensor input of ", variable.bytes, " bytes but got '", input.name, "' of ",
                       input.bytes));
  return Status::success();
}

Status verifyVariables(const Neff &neff) {
  if (neff.variables.size() > isa::kParameterFlag)
    return Error(ErrorKind::Unsupported,
                 cat("expected at most ", isa::kParameterFlag, " variables but got ", neff.variables.size()));
  std::unordered_set<std::string_view> names;
  std::unordered_set<int32_t> mutated;
  for (size_t i = 0; i < neff.variables.size(); ++i) {
    const Variable &variable = neff.variables[i];
    auto where = [&](const Error &error) { return error.withContext(cat("variable ", i, " '", variable.name, "'")); };
    // 255 is what the runtime's interface carries.
    if (variable.name.empty() || variable.name.size() > 255)
      return where(invalid(cat("expected a name of 1 to 255 bytes but got ", variable.name.size())));
    if (!names.insert(variable.name).second)
      return where(invalid("expected a name of its own but another variable has it"));
    if (Status status = verifyVariable(neff, variable); !status)
      return where(status.error());
    if (variable.aliasOf >= 0 && !mutated.insert(variable.aliasOf).second)
      return where(invalid(cat("expected one output per aliased input but variable ", variable.aliasOf, " has two")));
  }
  return Status::success();
}

Status verifyRuns(const Neff &neff) {
  size_t numParameters = neff.parameterBytes.size();
  if (numParameters > isa::kParameterFlag)
    return Error(ErrorKind::Unsupported,
                 cat("expected at most ", isa::kParameterFlag, " parameters but got ", numParameters));
  for (size_t i = 0; i < numParameters; ++i)
    if (neff.parameterBytes[i] < 0)
      return invalid(cat("parameter ", i, ": expected a size of at least 0 but got ", neff.parameterBytes[i]));
  for (size_t r = 0; r < neff.runs.size(); ++r) {
    const Run &run = neff.runs[r];
    if (run.firstParameter > numParameters || run.variables.size() > numParameters - run.firstParameter)
      return invalid(cat("run ", r, ": expected to bind parameters below ", numParameters, " but got ",
                         run.variables.size(), " from ", run.firstParameter, " on"));
    for (size_t i = 0; i < run.variables.size(); ++i) {
      size_t parameter = run.firstParameter + i;
      if (run.variables[i] >= neff.variables.size())
        return invalid(cat("run ", r, ": expected to bind parameter ", parameter, " to a variable below ",
                           neff.variables.size(), " but got ", run.variables[i]));
      const Variable &variable = neff.variables[run.variables[i]];
      if (variable.bytes < neff.parameterBytes[parameter])
        return invalid(cat("run ", r, ": expected a variable of at least ", neff.parameterBytes[parameter],
                           " bytes for parameter ", parameter, " but '", variable.name, "' has ", variable.bytes));
    }
  }
  return Status::success();
}

std::string describeOperand(const Neff &neff, uint16_t operand, int64_t run) {
  int32_t variable = boundVariable(neff, operand, run);
  std::string text = variable >= 0 && size_t(variable) < neff.variables.size()
                         ? cat("variable '", neff.variables[size_t(variable)].name, "'")
                         : std::string("nothing");
  if (operand & isa::kParameterFlag)
    text += cat(" (parameter ", operand & ~isa::kParameterFlag, " in run ", run, ")");
  return text;
}

} // namespace neuroncore::neff

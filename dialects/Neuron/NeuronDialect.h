// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef DIALECTS_NEURON_NEURONDIALECT_H
#define DIALECTS_NEURON_NEURONDIALECT_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"

#include "dialects/Neuron/NeuronDialect.h.inc"
#include "dialects/Neuron/NeuronEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Neuron/NeuronAttrs.h.inc"

namespace mlir::neuron {

/// Names of the discardable attributes that functions and their arguments carry.
namespace attribute {
/// On an argument: the NEFF variable's name, for example "input0".
inline constexpr llvm::StringLiteral kName = "neuron.name";
/// On a tensor argument or result: strides in elements.
inline constexpr llvm::StringLiteral kStrides = "neuron.strides";
/// On an argument: elements between the start of its memory and its first element.
inline constexpr llvm::StringLiteral kOffset = "neuron.offset";
/// On an argument: "tensor", "parameters" or "rng_state".
inline constexpr llvm::StringLiteral kRole = "neuron.role";
/// On a result: number of the argument whose memory it replaces.
inline constexpr llvm::StringLiteral kAliasOf = "neuron.alias_of";
/// On an argument of a tiled function: "input", "output", "constant" or "scratch".
inline constexpr llvm::StringLiteral kKind = "neuron.kind";
/// On a function: how far one run advances the random generator's offset.
inline constexpr llvm::StringLiteral kRngIncrement = "neuron.rng_increment";
/// On a module: target name ("trn2").
inline constexpr llvm::StringLiteral kTarget = "neuron.target";
/// On a module: name of the last finished phase.
inline constexpr llvm::StringLiteral kPhase = "neuron.phase";
} // namespace attribute

/// The type of a value of the dialect: all are ranked tensors.
inline RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
/// Bytes one element takes in memory (bool: 1).
int64_t elementBytes(Type type);
/// True for the torch integer types and bool.
bool isIntegerElement(Type type);

/// What a predicate says of two values.
template <typename T> bool compareValues(ComparePredicate predicate, T a, T b) {
  switch (predicate) {
  case ComparePredicate::Eq:
    return a == b;
  case ComparePredicate::Ne:
    return a != b;
  case ComparePredicate::Lt:
    return a < b;
  case ComparePredicate::Le:
    return a <= b;
  case ComparePredicate::Gt:
    return a > b;
  case ComparePredicate::Ge:
    return a >= b;
  }
  return false;
}

} // namespace mlir::neuron

#endif // DIALECTS_NEURON_NEURONDIALECT_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of the dialect's enums on single values, with the meaning of CPU PyTorch. Float functions are computed
// in double and rounded once to f32, except single additions and the like, which are f32 operations.

#ifndef LIB_REFERENCE_SCALARFUNCTIONS_H
#define LIB_REFERENCE_SCALARFUNCTIONS_H

#include <optional>

#include "mlir/IR/Types.h"

#include "dialects/Neuron/NeuronDialect.h"

namespace mlir::neuron::reference {

double unaryFloat(UnaryFunction function, float x);
/// Isnan, Isinf, Isfinite, Signbit.
bool classify(UnaryFunction function, float x);
int64_t unaryInteger(UnaryFunction function, Type element, int64_t x);

double binaryFloat(BinaryFunction function, Type element, float a, float b);
/// Nullopt: division by zero.
std::optional<int64_t> binaryInteger(BinaryFunction function, Type element, int64_t a, int64_t b);

/// Word `element mod 4` of the Philox4x32-10 block with counter (element div 4, offset) under `seed`.
uint32_t philoxWord(uint64_t seed, uint64_t offset, uint64_t element);
/// The value of a distribution for an element: uniform has 24 bits; normal is Box-Muller on the word pairs of a block.
double philoxFloat(RandomDistribution distribution, uint64_t seed, uint64_t offset, uint64_t element);

} // namespace mlir::neuron::reference

#endif // LIB_REFERENCE_SCALARFUNCTIONS_H

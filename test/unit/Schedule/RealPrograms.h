// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels as the compiler makes them, for measurements and for tests of overlap. Addresses are in words; these programs
// are larger than the symbolic machine's memory unless said otherwise.

#ifndef NEURON_TEST_SCHEDULE_REALPROGRAMS_H
#define NEURON_TEST_SCHEDULE_REALPROGRAMS_H

#include "ProgramBuilder.h"

namespace neuroncore::schedule::test {

/// One tile: load, load, add, store.
StructuredProgram oneOperation();

/// A loop over tiles: two loads, `length` operations on alternating engines, a store.
void addChain(ProgramBuilder &builder, int length, int copies, int64_t trips, int input0, int input1, int output);

/// y = x * rsqrt(mean(x^2) + eps) * w on row tiles (docs/Synchronisation.md).
void addRmsNorm(ProgramBuilder &builder, int copies, int64_t trips, int x, int w, int y);

/// C[m, n] += A[m, k] B[k, n] in three loops, K rotated by `copies`, two PSUM banks.
void addMatmul(ProgramBuilder &builder, int copies, int64_t m, int64_t n, int64_t k, int a, int b, int c);

} // namespace neuroncore::schedule::test

#endif // NEURON_TEST_SCHEDULE_REALPROGRAMS_H

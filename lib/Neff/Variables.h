// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules of the variables of a NEFF, shared by writer and reader.

#ifndef NEURON_LIB_NEFF_VARIABLES_H
#define NEURON_LIB_NEFF_VARIABLES_H

#include "neuron/Neff/Neff.h"

namespace neuroncore::neff {

inline constexpr int kMaxRank = 8;
inline constexpr int64_t kParameterBytes = 16;
inline constexpr int64_t kRngStateBytes = 16;

/// Names, sizes, shapes, roles, aliases and constant data.
Status verifyVariables(const Neff &neff);

/// The parameters and what each run binds to them. Only after verifyVariables.
Status verifyRuns(const Neff &neff);

/// Every access to HBM: the variable exists, is written only if it may be, and contains what is accessed, as far as
/// that does not depend on registers or indices.
Status verifyAccesses(const Neff &neff);

bool isRowMajor(const Variable &variable);
/// Bytes of the row-major tensor. Only for verified variables.
int64_t tensorBytes(const Variable &variable);

} // namespace neuroncore::neff

#endif // NEURON_LIB_NEFF_VARIABLES_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names of members and small enumerations in the text form, for printer and parser.

#ifndef NEURON_LIB_ISA_FIELDNAMES_H
#define NEURON_LIB_ISA_FIELDNAMES_H

#include <array>
#include <string_view>
#include <utility>

#include "neuron/Isa/Instruction.h"

namespace neuroncore::isa {

inline constexpr std::pair<std::string_view, bool Instruction::*> kFlagNames[] = {
    {"reverse0", &Instruction::reverse0}, {"reverse1", &Instruction::reverse1},
    {"negate", &Instruction::negate},     {"accumulate", &Instruction::accumulate},
    {"one_zero", &Instruction::oneZero},  {"is_transpose", &Instruction::isTranspose}};

inline constexpr std::pair<std::string_view, uint8_t Instruction::*> kRegisterNames[] = {
    {"rd", &Instruction::rd}, {"rs", &Instruction::rs}, {"rt", &Instruction::rt}};

inline constexpr std::array<std::string_view, 5> kReduceCommandNames = {"idle", "reset", "reduce", "reset_reduce",
                                                                        "load_reduce"};
inline constexpr std::array<std::string_view, 4> kDgeModeNames = {"unknown", "software", "hardware", "static"};
inline constexpr std::array<std::string_view, 2> kOobModeNames = {"error", "skip"};

} // namespace neuroncore::isa

#endif // NEURON_LIB_ISA_FIELDNAMES_H

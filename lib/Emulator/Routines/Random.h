// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef NEURON_LIB_EMULATOR_ROUTINES_RANDOM_H
#define NEURON_LIB_EMULATOR_ROUTINES_RANDOM_H

#include <cstdint>

namespace neuroncore::emulator {

/// Philox4x32-10: the four words of `blocks` consecutive blocks, whose counters are (firstCounter + i) in the low and
/// `highCounter` in the high 64 bits.
void philoxBlocks(uint64_t firstCounter, uint64_t highCounter, uint64_t key, int64_t blocks, uint32_t *words);

} // namespace neuroncore::emulator

#endif // NEURON_LIB_EMULATOR_ROUTINES_RANDOM_H

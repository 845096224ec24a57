// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A small program with every kind of variable: out = (x + w) * alpha row by row, with x updated in place.

#ifndef NEURON_TEST_UNIT_NEFF_SAMPLENEFF_H
#define NEURON_TEST_UNIT_NEFF_SAMPLENEFF_H

#include "neuron/Neff/Neff.h"

namespace neuroncore::neff {

/// Positions of the sample's variables.
enum SampleVariable : uint16_t { kX, kW, kOut, kXUpdated, kScratch, kParameters, kRng };

Neff sampleNeff();
/// The sample, whose load of x and first store take parameters 0 and 1, with a table of three runs.
Neff sampleRuns();

/// A contiguous f32 tile of 128 partitions.
isa::TilePattern sampleTile(uint32_t byteOffset, int columns);
/// Rows of so many f32 from the start of a variable.
isa::HbmPattern sampleRows(uint16_t variable, int columns, int rows = 128);
isa::Instruction sampleDma(isa::TilePattern tile, isa::HbmPattern pattern, bool store);

} // namespace neuroncore::neff

#endif // NEURON_TEST_UNIT_NEFF_SAMPLENEFF_H

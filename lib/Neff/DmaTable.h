// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The `dma` array of an engine's JSON: the static transfers of its stream in the form the documentation gives. Tools
// that look at a NEFF read it; our emulator executes the instructions of the .bin file only.

#ifndef NEURON_LIB_NEFF_DMATABLE_H
#define NEURON_LIB_NEFF_DMATABLE_H

#include "Json.h"
#include "neuron/Neff/Neff.h"

namespace neuroncore::neff {

/// The whole engine JSON. Transfers that the documented form cannot express (more than four dimensions, transposes,
/// dtypes without a documented name) are counted in the extension key.
Json writeEngineJson(const Neff &neff, int stream);

/// The documented rules of a `dma` array against def.json: known queues and variables, at most four dimensions of equal
/// number of steps and sizes, equal products, extents inside the variables.
Status verifyDmaTable(const Json &engine, const Json &definition);

} // namespace neuroncore::neff

#endif // NEURON_LIB_NEFF_DMATABLE_H

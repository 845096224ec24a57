// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes as a NEFF: an error, or a program that satisfies what readNeff promises and survives a round trip.

#include <cstdlib>

#include "neuron/Neff/Neff.h"

using namespace neuroncore::neff;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  neuroncore::Expected<Neff> neff =
      readNeff({data, size}, {.validateHash = false, .maxUnpackedBytes = uint64_t(1) << 26});
  if (!neff)
    return 0;
  if (!verifyNeff(*neff))
    std::abort();
  neuroncore::Expected<std::vector<uint8_t>> bytes = writeNeff(*neff, {.compress = false});
  if (bytes && !readNeff(*bytes))
    std::abort();
  return 0;
}

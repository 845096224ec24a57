// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A NEFF and any bytes as its device trace: an error, or rows that all computations of the Explorer can read.
// Input: length of the NEFF (4 bytes, little endian), the NEFF, the trace. A length of 0 reads the trace alone.

#include <cstring>
#include <memory>

#include "lib/Profile/DeviceProfile.h"
#include "neuron/Neff/Neff.h"

using namespace neuroncore;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint32_t neffSize = 0;
  if (size < sizeof(neffSize))
    return 0;
  std::memcpy(&neffSize, data, sizeof(neffSize));
  const std::span<const uint8_t> rest(data + sizeof(neffSize), size - sizeof(neffSize));
  if (neffSize > rest.size())
    return 0;
  profile::ReadTraceOptions options;
  options.maxEvents = 1 << 16;
  Expected<profile::DeviceTrace> trace = profile::readDeviceTrace(rest.subspan(neffSize), options);
  if (!trace || neffSize == 0)
    return 0;
  Expected<neff::Neff> neff =
      neff::readNeff(rest.first(neffSize), {.validateHash = false, .maxUnpackedBytes = uint64_t(1) << 24});
  if (!neff)
    return 0;
  const auto shared = std::make_shared<const neff::Neff>(std::move(*neff));
  for (profile::ProgramTrace &program : trace->programs) {
    const auto decoded = profile::DeviceProfile::create(shared, std::move(program));
    if (!decoded)
      continue;
    (*decoded)->updates();
    (*decoded)->criticalPath();
    (*decoded)->allocations(isa::MemorySpace::Sbuf);
    (*decoded)->allocations(isa::MemorySpace::Psum);
    (void)(*decoded)->whatIf(emulator::Speedup{.dmaRate = 2});
  }
  return 0;
}

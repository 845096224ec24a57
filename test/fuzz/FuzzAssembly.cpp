// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any text as a program: an error, or a program whose text parses to the same.

#include <cstdlib>

#include "neuron/Isa/Assembly.h"
#include "neuron/Isa/Codec.h"

using namespace neuroncore::isa;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  neuroncore::Expected<Program> program = parseProgram({reinterpret_cast<const char *>(data), size});
  if (!program)
    return 0;
  std::string text = printProgram(*program);
  neuroncore::Expected<Program> again = parseProgram(text);
  if (!again || printProgram(*again) != text)
    std::abort();
  for (int s = 0; s < kNumStreams; ++s)
    if (!encodeStream(kStreamEngines[s], (*program)[size_t(s)]))
      std::abort();
  return 0;
}

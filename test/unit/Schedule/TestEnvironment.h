// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many random programs a test tries: NEURON_SCHEDULE_PROGRAMS (default: a few hundred), from the seed
// NEURON_SCHEDULE_SEED on. The long mode is a large number.

#ifndef NEURON_TEST_SCHEDULE_TESTENVIRONMENT_H
#define NEURON_TEST_SCHEDULE_TESTENVIRONMENT_H

#include <cstdint>
#include <cstdlib>

namespace neuroncore::schedule::test {

inline uint64_t environmentNumber(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

inline uint64_t numPrograms() { return environmentNumber("NEURON_SCHEDULE_PROGRAMS", 200); }
inline uint64_t firstSeed() { return environmentNumber("NEURON_SCHEDULE_SEED", 1); }

} // namespace neuroncore::schedule::test

#endif // NEURON_TEST_SCHEDULE_TESTENVIRONMENT_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef NEURON_PYTHON_CSRC_TRACELOSS_H
#define NEURON_PYTHON_CSRC_TRACELOSS_H

#include <cstdint>

namespace neuroncore::device {

/// Records that the last finished capture lost because the ring of a device was full.
uint64_t lostRecords();

} // namespace neuroncore::device

#endif // NEURON_PYTHON_CSRC_TRACELOSS_H

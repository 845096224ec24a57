// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pinned host memory. A block that a non-blocking copy reads or writes becomes free for reuse only when the queues that
// use it have passed that copy.

#ifndef NEURON_PYTHON_CSRC_HOSTALLOCATOR_H
#define NEURON_PYTHON_CSRC_HOSTALLOCATOR_H

#include <ATen/core/CachingHostAllocator.h>

namespace neuroncore::device {

at::HostAllocator *pinnedAllocator();
bool isPinnedAddress(const void *address);
/// Marks the block that contains the address as in use by everything enqueued on the device so far.
void notePinnedUse(const void *address, int device);

} // namespace neuroncore::device

#endif // NEURON_PYTHON_CSRC_HOSTALLOCATOR_H

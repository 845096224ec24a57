// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The caching allocator of device memory. Every device has one in-order queue, so a freed block may be handed out again
// at once: whoever gets it enqueues behind the work that still uses it. Only giving segments back to the runtime has to
// wait for the queue. The functions never take the GIL and never call the dispatcher, because deleters run in garbage
// collection and on the device thread.

#ifndef NEURON_PYTHON_CSRC_ALLOCATOR_H
#define NEURON_PYTHON_CSRC_ALLOCATOR_H

#include <c10/core/CachingDeviceAllocator.h>

namespace neuroncore::device {

/// The process-wide allocator, registered for PrivateUse1.
c10::DeviceAllocator *deviceAllocator();

/// A block of `bytes` (rounded up) on a device; the caller gives it back with releaseBlock.
std::byte *allocateBlock(int device, size_t bytes);
void releaseBlock(std::byte *block) noexcept;

/// The device whose segment contains the address, or -1.
int deviceOfAddress(const void *address);

/// Upper bound on reserved bytes as a fraction of the device's memory (1 = all).
void setMemoryFraction(int device, double fraction);

} // namespace neuroncore::device

#endif // NEURON_PYTHON_CSRC_ALLOCATOR_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which device and stream the calling thread works with.

#ifndef NEURON_PYTHON_CSRC_DEVICE_H
#define NEURON_PYTHON_CSRC_DEVICE_H

#include <cstdint>

#include <ATen/core/Generator.h>
#include <c10/core/Stream.h>

namespace neuroncore::device {

/// Per-device tables have this many entries; the runtime shows at most as many cores.
constexpr int maxDevices = 128;

int currentDevice() noexcept;
/// Throws c10::ValueError naming the valid range.
void setCurrentDevice(int device);
/// The index itself, after the same check.
int checkedDevice(int device);

c10::Stream currentStream(int device);
/// Returns the previous one.
c10::Stream exchangeStream(c10::Stream stream);

/// The device's default generator.
const at::Generator &defaultGenerator(int device);
at::Generator newGenerator(int device);
struct PhiloxState {
  int64_t seed;
  int64_t offset;
};
/// Takes `increment` numbers from a generator (the device's default one if it is undefined): returns the state before.
PhiloxState reservePhilox(const std::optional<at::Generator> &generator, int device, int64_t increment);

} // namespace neuroncore::device

#endif // NEURON_PYTHON_CSRC_DEVICE_H

// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/Storage.h>

#include "Allocator.h"
#include "Device.h"
#include "HostAllocator.h"
#include "Queue.h"
#include "Runtime.h"
#include "Storage.h"

namespace neuroncore::device {

namespace {

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return neuroncore::device::deviceCount() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return isInitialised(); }
  void init() const override { ensureUsable(); }
  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(neuroncore::device::deviceCount());
  }
  void setCurrentDevice(c10::DeviceIndex device) const override { neuroncore::device::setCurrentDevice(device); }
  c10::DeviceIndex getCurrentDevice() const override { return static_cast<c10::DeviceIndex>(currentDevice()); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    const int previous = currentDevice();
    if (device >= 0)
      neuroncore::device::setCurrentDevice(device);
    return static_cast<c10::DeviceIndex>(previous);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override { return exchangeDevice(device); }
  bool isPinnedPtr(const void *data) const override { return isPinnedAddress(data); }
  at::Allocator *getPinnedMemoryAllocator() const override { return pinnedAllocator(); }
  at::Device getDeviceFromPtr(void *data) const override {
    const int device = deviceOfAddress(data);
    TORCH_CHECK(device >= 0, "expected an address in neuron memory but got ", data);
    return {c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device)};
  }
  const at::Generator &getDefaultGenerator(c10::DeviceIndex device) const override {
    return defaultGenerator(device < 0 ? currentDevice() : checkedDevice(device));
  }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return newGenerator(device < 0 ? currentDevice() : checkedDevice(device));
  }
  void resizePrivateUse1Bytes(const c10::Storage &storage, size_t bytes) const override {
    resizeStorage(storage.unsafeGetStorageImpl(), bytes);
  }
};

[[maybe_unused]] const bool registered = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

} // namespace

} // namespace neuroncore::device

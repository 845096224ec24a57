// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The device guard: current device and stream per thread, streams, events. Streams of one device share its in-order
// queue, so waiting for an event of the same device is a matter of order alone.

#include <array>
#include <atomic>
#include <memory>

#include <c10/core/Event.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include "Device.h"
#include "Interrupt.h"
#include "Queue.h"
#include "Runtime.h"

namespace neuroncore::device {

namespace {

constexpr auto deviceType = c10::DeviceType::PrivateUse1;

thread_local int theCurrentDevice = 0;
thread_local std::array<c10::StreamId, maxDevices> theCurrentStreams{};

std::atomic<c10::StreamId> streamCounter{0};

/// One recording of an event. Shared with the queue, which may outlive the event object.
struct Mark {
  std::mutex mutex;
  std::condition_variable ready;
  bool done = false;
  int64_t virtualTime = 0;
};

struct Event {
  int device = 0;
  bool timing = false;
  std::shared_ptr<Mark> mark;
};

struct GuardImplementation final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return deviceType; }

  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device previous = getDevice();
    setDevice(device);
    return previous;
  }
  c10::Device getDevice() const override { return {deviceType, static_cast<c10::DeviceIndex>(theCurrentDevice)}; }
  void setDevice(c10::Device device) const override {
    if (device.index() >= 0)
      setCurrentDevice(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0)
      theCurrentDevice = device.index();
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(neuroncore::device::deviceCount());
  }

  c10::Stream getStream(c10::Device device) const override { return currentStream(index(device)); }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, c10::Device(deviceType, static_cast<c10::DeviceIndex>(index(device))));
  }
  c10::Stream getNewStream(c10::Device device, int) const override {
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(deviceType, static_cast<c10::DeviceIndex>(index(device))),
                       streamCounter.fetch_add(1) + 1);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return getNewStream(device, 0); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return neuroncore::device::exchangeStream(stream); }
  void *getStreamNativeHandle(const c10::Stream stream) const override { return &queueOf(index(stream.device())); }

  bool queryStream(const c10::Stream &stream) const override { return queueOf(index(stream.device())).idle(); }
  void synchronizeStream(const c10::Stream &stream) const override { queueOf(index(stream.device())).synchronise(); }
  void synchronizeDevice(const c10::DeviceIndex device) const override {
    queueOf(index(c10::Device(deviceType, device))).synchronise();
  }

  void record(void **event, const c10::Stream &stream, const c10::DeviceIndex device,
              const c10::EventFlag flag) const override {
    const int target = index(stream.device());
    TORCH_CHECK(device == -1 || device == target, "expected an event of neuron:", target,
                " (the stream's device) but got one of neuron:", static_cast<int>(device),
                "; create the event on the device where it is recorded");
    if (!*event)
      *event = new Event{target, flag != c10::EventFlag::PYTORCH_DEFAULT, nullptr};
    auto *current = static_cast<Event *>(*event);
    auto mark = std::make_shared<Mark>();
    current->mark = mark;
    queueOf(target).submitMark([mark](int64_t virtualTime) {
      {
        std::lock_guard<std::mutex> lock(mark->mutex);
        mark->done = true;
        mark->virtualTime = virtualTime;
      }
      mark->ready.notify_all();
    });
  }
  void block(void *event, const c10::Stream &stream) const override {
    auto *current = static_cast<Event *>(event);
    // Another device's queue cannot be made to wait without the host.
    if (current && current->device != index(stream.device()))
      synchronizeEvent(event);
  }
  bool queryEvent(void *event) const override {
    auto *current = static_cast<Event *>(event);
    if (!current || !current->mark)
      return true;
    std::lock_guard<std::mutex> lock(current->mark->mutex);
    return current->mark->done;
  }
  void synchronizeEvent(void *event) const override {
    auto *current = static_cast<Event *>(event);
    if (!current || !current->mark)
      return;
    // The event may be recorded again, or destroyed, by the handler of a signal.
    const std::shared_ptr<Mark> mark = current->mark;
    std::unique_lock<std::mutex> lock(mark->mutex);
    waitInterruptibly(mark->ready, lock, [&] { return mark->done; });
  }
  void destroyEvent(void *event, const c10::DeviceIndex) const noexcept override { delete static_cast<Event *>(event); }
  double elapsedTime(void *first, void *second, const c10::DeviceIndex) const override {
    auto *start = static_cast<Event *>(first);
    auto *end = static_cast<Event *>(second);
    TORCH_CHECK(start && start->mark && end && end->mark,
                "Both events must be recorded before calculating elapsed time.");
    TORCH_CHECK(queryEvent(start) && queryEvent(end), "Both events must be completed before calculating elapsed time.");
    TORCH_CHECK(start->timing && end->timing, "Both events must be created with argument 'enable_timing=True'.");
    return static_cast<double>(end->mark->virtualTime - start->mark->virtualTime) / 1e6;
  }

  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    c10::DeviceCapability capability;
    capability.capability_data.capability_bits = 0;
    for (auto index : {c10::kIndex_Byte, c10::kIndex_Char, c10::kIndex_Short, c10::kIndex_Int, c10::kIndex_Long,
                       c10::kIndex_Half, c10::kIndex_Float, c10::kIndex_Double, c10::kIndex_Bool, c10::kIndex_BFloat16,
                       c10::kIndex_Float8_e5m2, c10::kIndex_Float8_e4m3fn})
      capability.capability_data.capability_bits |= uint64_t(1) << index;
    return capability;
  }

private:
  static int index(c10::Device device) { return device.index() < 0 ? theCurrentDevice : checkedDevice(device.index()); }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, GuardImplementation)

} // namespace

int currentDevice() noexcept { return theCurrentDevice; }

int checkedDevice(int device) {
  const int count = deviceCount();
  TORCH_CHECK_VALUE(device >= 0 && device < count, "expected a neuron device index in 0..", count - 1, " but got ",
                    device, " (", count,
                    " device(s) are visible; NEURON_RT_NUM_CORES and NEURON_RT_VISIBLE_CORES "
                    "choose them)");
  return device;
}

void setCurrentDevice(int device) { theCurrentDevice = checkedDevice(device); }

c10::Stream currentStream(int device) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(deviceType, static_cast<c10::DeviceIndex>(device)),
                     theCurrentStreams[device]);
}

c10::Stream exchangeStream(c10::Stream stream) {
  const int device = stream.device_index();
  const c10::Stream previous = currentStream(checkedDevice(device));
  theCurrentStreams[device] = stream.id();
  return previous;
}

} // namespace neuroncore::device

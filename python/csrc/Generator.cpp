// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The random generator: a Philox (seed, offset) pair. Programs read it as an input and say by how much one execution
// advances the offset, so eager and compiled code draw from one sequence.

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>

#include <ATen/EmptyTensor.h>
#include <c10/core/GeneratorImpl.h>
#include <c10/util/Exception.h>

#include "Device.h"
#include "Runtime.h"

namespace neuroncore::device {

namespace {

struct PhiloxGenerator final : c10::GeneratorImpl {
  explicit PhiloxGenerator(int device)
      : GeneratorImpl(c10::Device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device)),
                      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

  void set_current_seed(uint64_t seed) override {
    seed_ = seed;
    offset_ = 0;
  }
  void set_offset(uint64_t offset) override { offset_ = offset; }
  uint64_t get_offset() const override { return offset_; }
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return seed_;
  }
  void set_state(const c10::TensorImpl &state) override {
    TORCH_CHECK_TYPE(state.layout() == c10::kStrided && state.device_type() == c10::DeviceType::CPU &&
                         state.dtype() == caffe2::TypeMeta::Make<uint8_t>(),
                     "RNG state must be a torch.ByteTensor");
    TORCH_CHECK(state.is_contiguous() && state.numel() == stateBytes, "RNG state is wrong size: expected ", stateBytes,
                " contiguous bytes but got ", state.numel());
    const auto *data = static_cast<const uint8_t *>(state.data());
    std::memcpy(&seed_, data, sizeof(seed_));
    std::memcpy(&offset_, data + sizeof(seed_), sizeof(offset_));
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    at::TensorBase state = at::detail::empty_cpu({stateBytes}, c10::ScalarType::Byte, false, std::nullopt);
    auto *data = static_cast<uint8_t *>(state.mutable_data_ptr());
    std::memcpy(data, &seed_, sizeof(seed_));
    std::memcpy(data + sizeof(seed_), &offset_, sizeof(offset_));
    return state.getIntrusivePtr();
  }

private:
  static constexpr int64_t stateBytes = 16;
  PhiloxGenerator *clone_impl() const override {
    auto *copy = new PhiloxGenerator(device_.index());
    copy->seed_ = seed_;
    copy->offset_ = offset_;
    return copy;
  }
  uint64_t seed_ = c10::default_rng_seed_val;
  uint64_t offset_ = 0;
};

} // namespace

const at::Generator &defaultGenerator(int device) {
  static auto *generators = new std::array<at::Generator, maxDevices>;
  static auto *flags = new std::array<std::once_flag, maxDevices>;
  std::call_once((*flags)[device], [&] { (*generators)[device] = newGenerator(device); });
  return (*generators)[device];
}

at::Generator newGenerator(int device) { return at::make_generator<PhiloxGenerator>(device); }

PhiloxState reservePhilox(const std::optional<at::Generator> &generator, int device, int64_t increment) {
  const at::Generator &source = generator.has_value() && generator->defined() ? *generator : defaultGenerator(device);
  TORCH_CHECK(source.device().is_privateuseone(), "Expected a 'neuron' device type for generator but found '",
              source.device().type(), "'");
  auto *implementation = source.get<PhiloxGenerator>();
  std::lock_guard<std::mutex> lock(implementation->mutex_);
  const PhiloxState state{static_cast<int64_t>(implementation->current_seed()),
                          static_cast<int64_t>(implementation->get_offset())};
  implementation->set_offset(implementation->get_offset() + static_cast<uint64_t>(increment));
  return state;
}

} // namespace neuroncore::device

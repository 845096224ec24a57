// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies between host and devices. Bytes move through the device's queue; dtype conversion and gathering of a strided
// layout happen on the host for transfers between host and device, and in a compiled program for copies on one device.

#include "Copy.h"

#include <cstring>
#include <memory>

#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/record_function.h>
#include <torch/library.h>

#include "Device.h"
#include "EagerDispatch.h"
#include "Fallback.h"
#include "HostAllocator.h"
#include "Queue.h"
#include "Storage.h"

namespace neuroncore::device {

namespace {

/// Up to this size a pageable source is snapshot rather than waited for.
constexpr int64_t snapshotLimit = int64_t(1) << 20;

at::Tensor emptyHost(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype) {
  return at::Tensor(at::detail::empty_strided_cpu(sizes, strides, dtype));
}

/// Host copy without a profiler row.
void hostCopy(at::Tensor destination, const at::Tensor &source) {
  const at::DisableRecordFunctionGuard quiet;
  const c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset);
  destination.copy_(source);
}

struct ScatterDimension {
  int64_t size;
  int64_t stride; // bytes in the destination
};

/// Writes contiguous bytes into a strided layout. Runs on the device thread: no dispatcher.
void scatter(std::byte *destination, const std::byte *source, const std::vector<ScatterDimension> &dimensions,
             size_t index, size_t rowBytes) {
  if (index == dimensions.size()) {
    std::memcpy(destination, source, rowBytes);
    return;
  }
  size_t inner = rowBytes;
  for (size_t i = index + 1; i < dimensions.size(); ++i)
    inner *= static_cast<size_t>(dimensions[i].size);
  for (int64_t i = 0; i < dimensions[index].size; ++i)
    scatter(destination + i * dimensions[index].stride, source + static_cast<size_t>(i) * inner, dimensions, index + 1,
            rowBytes);
}

bool sameLayout(const at::Tensor &a, const at::Tensor &b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

bool hasLazyBits(const at::Tensor &tensor) { return tensor.is_conj() || tensor.is_neg(); }

/// The stored content of `source` once it is written into `destination`, whose lazy bits apply when it is read.
at::Tensor physicalContent(const at::Tensor &source, const at::Tensor &destination) {
  if (!hasLazyBits(source) && !hasLazyBits(destination))
    return source;
  const at::DisableRecordFunctionGuard quiet;
  at::Tensor content = source;
  if (destination.is_conj())
    content = content.conj();
  if (destination.is_neg())
    content = content.neg();
  return content.resolve_conj().resolve_neg();
}

void copySameDevice(const at::Tensor &source, const at::Tensor &destination) {
  const int device = destination.device().index();
  if (hasLazyBits(source) || hasLazyBits(destination)) {
    // Complex and negated tensors are host business; the device has no complex arithmetic.
    countFallback("aten::copy_", "the device has no complex arithmetic, and no lazy negation");
    at::Tensor staging = emptyHost(source.sizes(), source.strides(), source.scalar_type());
    copyDeviceToHost(source, staging);
    copyHostToDevice(staging, destination, false);
    return;
  }
  if (sameLayout(source, destination) && destination.is_non_overlapping_and_dense()) {
    if (source.const_data_ptr() == destination.const_data_ptr())
      return;
    const auto bytes = static_cast<size_t>(destination.numel()) * destination.element_size();
    auto record =
        Recorder::instance().begin(ActivityRecord::Kind::DeviceToDevice, device, currentStream(device).id(), 0);
    if (record) {
      record->name = "Memcpy DtoD (Device -> Device)";
      record->bytes = static_cast<int64_t>(bytes);
    }
    void *to = destination.mutable_data_ptr();
    const void *from = source.const_data_ptr();
    queueOf(device).submitHost([=] { std::memmove(to, from, bytes); }, deviceCopyTime(static_cast<int64_t>(bytes)),
                               std::move(record));
    return;
  }
  at::assert_no_internal_overlap(destination);
  at::assert_no_partial_overlap(destination, source);
  if (eagerCopy(destination, source))
    return;
  at::Tensor staging = emptyHost(source.sizes(), source.strides(), source.scalar_type());
  copyDeviceToHost(source, staging);
  copyHostToDevice(staging, destination, false);
}

at::Tensor copyFrom(const at::Tensor &self, const at::Tensor &destination, bool nonBlocking) {
  at::Tensor source = self;
  if (source.sizes() != destination.sizes()) {
    const std::vector<int64_t> shape = at::infer_size(destination.sizes(), source.sizes());
    TORCH_CHECK(destination.sizes().equals(shape), "output with shape ", destination.sizes(),
                " doesn't match the broadcast shape ", c10::IntArrayRef(shape));
    const at::DisableRecordFunctionGuard quiet;
    source = source.expand(destination.sizes());
  }
  if (destination.numel() == 0)
    return destination;
  if (source.is_cpu()) {
    copyHostToDevice(source, destination, nonBlocking);
  } else if (destination.is_cpu()) {
    copyDeviceToHost(source, destination);
  } else {
    TORCH_CHECK(source.is_privateuseone() && destination.is_privateuseone(), "cannot copy from ", source.device(),
                " to ", destination.device(), "; go through the CPU");
    if (source.device() == destination.device()) {
      copySameDevice(source, destination);
    } else {
      at::Tensor staging = emptyHost(source.sizes(), source.strides(), source.scalar_type());
      copyDeviceToHost(source, staging);
      copyHostToDevice(staging, destination, false);
    }
  }
  return destination;
}

at::Tensor copyFromAndResize(const at::Tensor &self, const at::Tensor &destination) {
  if (destination.sizes() != self.sizes()) {
    const at::DisableRecordFunctionGuard quiet;
    destination.resize_(self.sizes());
  }
  return copyFrom(self, destination, false);
}

at::Scalar localScalarDense(const at::Tensor &self) {
  const int device = self.device().index();
  Queue &queue = queueOf(device);
  auto record = Recorder::instance().begin(ActivityRecord::Kind::DeviceToHost, device, currentStream(device).id(), 0);
  if (record) {
    record->name = "Memcpy DtoH (Device -> Pageable)";
    record->bytes = static_cast<int64_t>(self.element_size());
  }
  queue.submitHost({}, hostTransferTime(static_cast<int64_t>(self.element_size())), std::move(record));
  queue.synchronise();
  return at::native::_local_scalar_dense_cpu(hostAlias(self));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_copy_from", &copyFrom);
  library.impl("_copy_from_and_resize", &copyFromAndResize);
  library.impl("_local_scalar_dense", &localScalarDense);
}

// Core's kernels for these keys materialise the source with a copy, which would come back here for ever; the copies
// above honour the bits themselves.
TORCH_LIBRARY_IMPL(aten, Conjugate, library) {
  library.impl("_copy_from", torch::CppFunction::makeFallthrough());
  library.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, library) {
  library.impl("_copy_from", torch::CppFunction::makeFallthrough());
  library.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}

} // namespace

at::Tensor hostAlias(const at::Tensor &tensor) {
  const at::DisableRecordFunctionGuard quiet;
  at::Tensor alias = at::for_blob(const_cast<void *>(tensor.const_data_ptr()), tensor.sizes())
                         .strides(tensor.strides())
                         .options(c10::TensorOptions().dtype(tensor.scalar_type()).device(c10::DeviceType::CPU))
                         .target_device(c10::Device(c10::DeviceType::CPU))
                         .make_tensor();
  if (tensor.is_conj())
    alias._set_conj(true);
  if (tensor.is_neg())
    alias._set_neg(true);
  return alias;
}

void copyHostToDevice(const at::Tensor &source, const at::Tensor &destination, bool nonBlocking) {
  at::assert_no_internal_overlap(destination);
  const int device = destination.device().index();
  Queue &queue = queueOf(device);
  at::Tensor content = physicalContent(source, destination);
  const bool dense = destination.is_non_overlapping_and_dense();
  const c10::ScalarType dtype = destination.scalar_type();
  bool owned = !content.is_same(source);
  if (dense ? !sameLayout(content, destination) : (content.scalar_type() != dtype || !content.is_contiguous())) {
    at::Tensor staging = dense ? emptyHost(destination.sizes(), destination.strides(), dtype)
                               : at::Tensor(at::detail::empty_cpu(destination.sizes(), dtype, false, std::nullopt));
    hostCopy(staging, content);
    content = std::move(staging);
    owned = true;
  }
  const auto bytes = destination.numel() * static_cast<int64_t>(destination.element_size());
  const bool pinned = isPinnedAddress(source.const_data_ptr());
  auto record = Recorder::instance().begin(ActivityRecord::Kind::HostToDevice, device, currentStream(device).id(), 0);
  if (record) {
    record->name = pinned ? "Memcpy HtoD (Pinned -> Device)" : "Memcpy HtoD (Pageable -> Device)";
    record->bytes = bytes;
  }
  if (!owned && !queue.idle()) {
    if (pinned && nonBlocking) {
      // The caller keeps the buffer unchanged; the allocator keeps it from being reused.
      notePinnedUse(source.const_data_ptr(), device);
    } else if (bytes <= snapshotLimit) {
      at::Tensor staging = emptyHost(content.sizes(), content.strides(), dtype);
      std::memcpy(staging.mutable_data_ptr(), content.const_data_ptr(), static_cast<size_t>(bytes));
      content = std::move(staging);
      owned = true;
    } else {
      queue.wait();
    }
  }
  auto *to = static_cast<std::byte *>(destination.mutable_data_ptr());
  const auto *from = static_cast<const std::byte *>(content.const_data_ptr());
  // Only storage that Python cannot hold travels to the device thread.
  std::shared_ptr<at::Tensor> keep = owned ? std::make_shared<at::Tensor>(content) : nullptr;
  std::function<void()> work;
  if (dense) {
    work = [to, from, bytes, keep] { std::memcpy(to, from, static_cast<size_t>(bytes)); };
  } else {
    std::vector<ScatterDimension> dimensions;
    const auto itemsize = static_cast<int64_t>(destination.element_size());
    for (int64_t i = 0; i < destination.dim(); ++i)
      if (destination.size(i) != 1)
        dimensions.push_back({destination.size(i), destination.stride(i) * itemsize});
    size_t rowBytes = static_cast<size_t>(itemsize);
    while (!dimensions.empty() && dimensions.back().stride == static_cast<int64_t>(rowBytes)) {
      rowBytes *= static_cast<size_t>(dimensions.back().size);
      dimensions.pop_back();
    }
    work = [to, from, dimensions, rowBytes, keep] { scatter(to, from, dimensions, 0, rowBytes); };
  }
  queue.submitHost(std::move(work), hostTransferTime(bytes), std::move(record));
}

void copyDeviceToHost(const at::Tensor &source, const at::Tensor &destination) {
  const int device = source.device().index();
  const auto bytes = source.numel() * static_cast<int64_t>(source.element_size());
  auto record = Recorder::instance().begin(ActivityRecord::Kind::DeviceToHost, device, currentStream(device).id(), 0);
  if (record) {
    record->name = isPinnedAddress(destination.const_data_ptr()) ? "Memcpy DtoH (Device -> Pinned)"
                                                                 : "Memcpy DtoH (Device -> Pageable)";
    record->bytes = bytes;
  }
  Queue &queue = queueOf(device);
  queue.submitHost({}, hostTransferTime(bytes), std::move(record));
  queue.synchronise();
  if (sameLayout(source, destination) && destination.is_non_overlapping_and_dense() && !hasLazyBits(source) &&
      !hasLazyBits(destination)) {
    std::memcpy(destination.mutable_data_ptr(), source.const_data_ptr(), static_cast<size_t>(bytes));
    return;
  }
  hostCopy(destination, hostAlias(source));
}

} // namespace neuroncore::device

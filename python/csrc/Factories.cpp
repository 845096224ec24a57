// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Allocation and metadata: empty, resize, set and the views. Views are core's own functions, which touch sizes, strides
// and offsets only; core has no composite kernel for exactly these.

#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "Allocator.h"
#include "Device.h"
#include "Queue.h"
#include "Runtime.h"
#include "Storage.h"

namespace neuroncore::device {

namespace {

constexpr c10::DispatchKeySet keySet(c10::DispatchKey::PrivateUse1);

/// Makes a device current for an allocation, without the virtual calls of a DeviceGuard.
class CurrentDevice {
public:
  explicit CurrentDevice(int device) : previous_(currentDevice()), changed_(device != previous_) {
    if (changed_)
      setCurrentDevice(device);
  }
  ~CurrentDevice() {
    if (changed_)
      setCurrentDevice(previous_);
  }

private:
  int previous_;
  bool changed_;
};

int deviceIndex(std::optional<c10::Device> device) {
  if (!device || !device->has_index())
    return currentDevice();
  return checkedDevice(device->index());
}

void checkOptions(std::optional<c10::Layout> layout, std::optional<bool> pinned) {
  TORCH_CHECK_NOT_IMPLEMENTED(!layout || *layout == c10::kStrided,
                              "the neuron device supports strided tensors only, but got layout ", *layout);
  TORCH_CHECK(!pinned || !*pinned, "Only dense CPU tensors can be pinned");
}

at::Tensor emptyMemoryFormat(c10::IntArrayRef sizes, std::optional<c10::ScalarType> dtype,
                             std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                             std::optional<bool> pinned, std::optional<c10::MemoryFormat> format) {
  checkOptions(layout, pinned);
  const CurrentDevice guard(deviceIndex(device));
  return at::Tensor(at::detail::empty_generic(sizes, deviceAllocator(), keySet, c10::dtype_or_default(dtype), format));
}

at::Tensor emptyStridedOverload(c10::IntArrayRef sizes, c10::IntArrayRef strides, std::optional<c10::ScalarType> dtype,
                                std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                                std::optional<bool> pinned) {
  checkOptions(layout, pinned);
  return at::Tensor(emptyStrided(sizes, strides, c10::dtype_or_default(dtype), deviceIndex(device)));
}

/// Gives a tensor new sizes (and strides, or contiguous ones) and grows its storage if they need more.
void resizeTensor(c10::TensorImpl *self, c10::IntArrayRef sizes, std::optional<c10::IntArrayRef> strides) {
  if (self->sizes() == sizes && (!strides || self->strides() == *strides))
    return;
  const size_t itemsize = self->dtype().itemsize();
  const auto offset = static_cast<size_t>(self->storage_offset());
  size_t bytes;
  if (strides) {
    self->set_sizes_and_strides(sizes, *strides);
    bytes = at::detail::computeStorageNbytes(sizes, *strides, itemsize, offset);
  } else {
    self->set_sizes_contiguous(sizes);
    bytes = at::detail::computeStorageNbytesContiguous(sizes, itemsize, offset);
  }
  if (self->numel() == 0)
    return;
  const c10::Storage &storage = self->unsafe_storage();
  TORCH_CHECK(storage, "Tensor: invalid null storage");
  if (bytes > storage.nbytes())
    resizeStorage(storage.unsafeGetStorageImpl(), bytes);
}

const at::Tensor &resize(const at::Tensor &self, c10::IntArrayRef sizes, std::optional<c10::MemoryFormat> format) {
  for (const int64_t size : sizes)
    TORCH_CHECK(size >= 0, "Trying to create tensor with negative dimension ", size, ": ", sizes);
  resizeTensor(self.unsafeGetTensorImpl(), sizes, std::nullopt);
  if (format) {
    TORCH_CHECK(*format != c10::MemoryFormat::Preserve, "Unsupported memory format", *format);
    self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  }
  return self;
}

at::Tensor &setStorageWithOffset(at::Tensor &self, at::Storage source, int64_t offset, c10::IntArrayRef sizes,
                                 c10::IntArrayRef strides) {
  at::native::checkSetStorage(self, std::move(source), offset, sizes, strides);
  self.unsafeGetTensorImpl()->set_storage_offset(offset);
  resizeTensor(self.unsafeGetTensorImpl(), sizes,
               strides.data() ? std::optional<c10::IntArrayRef>(strides) : std::nullopt);
  return self;
}

at::Tensor &setStorage(at::Tensor &self, at::Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return setStorageWithOffset(self, std::move(source), 0, count, {});
}

at::Tensor &setEmpty(at::Tensor &self) {
  const CurrentDevice guard(self.device().index());
  c10::Storage storage(c10::Storage::use_byte_size_t(), 0, deviceAllocator(), true);
  return setStorageWithOffset(self, std::move(storage), 0, {0}, {});
}

void recordStream(at::Tensor &self, c10::Stream stream) {
  deviceAllocator()->recordStream(self.storage().data_ptr(), stream);
}

/// Lets `module.to("neuron")` keep its Parameter objects, as on CUDA: ties, optimiser references and `.data =` survive.
bool compatibleShallowCopy(const at::Tensor &self, const at::Tensor &from) {
  const auto plain = [](const at::Tensor &tensor) {
    return tensor.layout() == c10::kStrided && (tensor.is_cpu() || tensor.is_privateuseone()) &&
           !tensor.is_quantized() && !tensor.key_set().has(c10::DispatchKey::Python);
  };
  return plain(self) && plain(from);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &emptyMemoryFormat);
  library.impl("empty_strided", &emptyStridedOverload);
  library.impl("resize_", &resize);
  library.impl("set_.source_Storage", &setStorage);
  library.impl("set_.source_Storage_storage_offset", &setStorageWithOffset);
  library.impl("set_.source_Tensor", &at::native::set_tensor_);
  library.impl("set_", &setEmpty);
  library.impl("view", &at::native::view);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("unfold", &at::native::unfold);
  library.impl("view_as_real", &at::native::view_as_real);
  library.impl("view_as_complex", &at::native::view_as_complex);
  library.impl("record_stream", &recordStream);
  library.impl("_has_compatible_shallow_copy_type", &compatibleShallowCopy);
}

} // namespace

at::TensorBase emptyStrided(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype, int device) {
  const CurrentDevice guard(device);
  return at::detail::empty_strided_generic(sizes, strides, deviceAllocator(), keySet, dtype);
}

void resizeStorage(c10::StorageImpl *storage, size_t bytes) {
  TORCH_CHECK(storage->resizable(), "Trying to resize storage that is not resizable");
  const int device = storage->device().index();
  const CurrentDevice guard(device);
  c10::DataPtr fresh = deviceAllocator()->allocate(bytes);
  const size_t kept = std::min(bytes, storage->nbytes());
  if (kept > 0) {
    // The old block may be reused as soon as it is released, but only by work that is queued behind this copy.
    void *destination = fresh.get();
    const void *source = storage->data();
    queueOf(device).submitHost([=] { std::memcpy(destination, source, kept); }, 0, nullptr);
  }
  storage->set_data_ptr_noswap(std::move(fresh));
  storage->set_nbytes(bytes);
}

} // namespace neuroncore::device

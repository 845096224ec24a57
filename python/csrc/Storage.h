// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef NEURON_PYTHON_CSRC_STORAGE_H
#define NEURON_PYTHON_CSRC_STORAGE_H

#include <ATen/core/TensorBase.h>
#include <c10/core/StorageImpl.h>

namespace neuroncore::device {

/// Grows or shrinks a storage, keeping its content up to the smaller size.
void resizeStorage(c10::StorageImpl *storage, size_t bytes);

/// An uninitialised tensor without a trip through the dispatcher (no profiler row). `device` must be valid.
at::TensorBase emptyStrided(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype, int device);

} // namespace neuroncore::device

#endif // NEURON_PYTHON_CSRC_STORAGE_H
